"""Names of keys, and the keys that the user assigned in `[keys]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from textual.binding import Binding, BindingsMap
from textual.keys import (
    KEY_NAME_REPLACEMENTS,
    Keys,
    _character_to_key,  # nothing public names the key of a character
    key_to_character,
)

_MODIFIERS: Final = frozenset({"alt", "ctrl", "hyper", "meta", "shift", "super"})
_SIGNS: Final = frozenset(KEY_NAME_REPLACEMENTS.values())
_NAMED: Final = frozenset(
    {key.value.rpartition("+")[2] for key in Keys if key.value.replace("+", "").isalnum()}.difference({"return"})
    | _SIGNS
)
_OTHER_NAMES: Final = {"esc": "escape", "return": "enter", "pgup": "pageup", "pgdown": "pagedown", "pgdn": "pagedown"}
"""Names of keys elsewhere, by which Textual doesn't know them."""
_EDITING: Final = frozenset({
    "backspace", "delete", "down", "end", "enter", "home", "insert", "left", "pagedown", "pageup", "right", "tab", "up",
})  # fmt: skip
"""Keys that move and delete in a text field or list."""


def key_names(keys: str) -> tuple[str, ...]:
    """Return Textual's names of keys that are separated by commas: `ctrl+[` is `ctrl+left_square_bracket`."""
    return tuple(dict.fromkeys(_key_name(key.strip()) for key in keys.split(",") if key.strip()))


def _key_name(key: str) -> str:
    *modifiers, last = key.split("+") if not key.endswith("+") else [*key[:-1].removesuffix("+").split("+"), "+"]
    return "+".join([*sorted(filter(None, modifiers)), _character_to_key(last) if len(last) == 1 else last])


def is_key(name: str) -> bool:
    """Return whether a terminal can send a key of this name."""
    *modifiers, last = name.split("+")
    if not _MODIFIERS.issuperset(modifiers) or ("ctrl" in modifiers and last != last.lower()):
        return False
    return len(last) == 1 or last in _NAMED or is_printable(last)


def nearest_key(name: str) -> str:
    """Return the name of a key that resembles an unknown one, or an empty string."""
    *modifiers, last = name.lower().replace("-", "+").split("+")
    known = [_OTHER_NAMES[last]] if last in _OTHER_NAMES else get_close_matches(last, sorted(_NAMED), n=1, cutoff=0.75)
    if last and (len(last) == 1 or last in _NAMED):
        known = [last]
    found = "+".join([*sorted(modifiers), *known[:1]])
    return found if known and found != name and is_key(found) else ""


def is_printable(key: str) -> bool:
    """Return whether a key inserts a character into a text field."""
    character = key_to_character(key)
    return key in _SIGNS or (character is not None and character.isprintable())


def is_for_focus(key: str) -> bool:
    """Return whether text fields and lists need a key: it inserts or deletes a character, or moves."""
    return key in _EDITING or is_printable(key)


def assign_keys(declared: BindingsMap, keymap: Mapping[str, str]) -> BindingsMap:
    """Return the bindings of one node with the keys that the user assigned.

    Textual's `BindingsMap.apply_keymap` also removes the other commands of the old and the new keys, and ignores a
    command from which the user removed all keys.

    A key that edits or inserts text only takes precedence over the focused widget if the command declares it.

    Args:
        declared: The bindings as declared.
        keymap: The keys by command id.
    """
    own: dict[str, set[str]] = {}
    for key, binding in declared:
        own.setdefault(binding.id or "", set()).add(key)
    assigned: dict[str, list[Binding]] = {}
    others: dict[str, list[Binding]] = {}
    done: set[str] = set()
    for key, binding in declared:
        name = binding.id
        if name is None or name not in keymap:
            others.setdefault(key, []).append(binding)
        elif name not in done:
            done.add(name)
            for new in key_names(keymap[name]):
                assigned.setdefault(new, []).append(_with_key(binding, new, is_own=new in own[name]))
    both = {key: [*assigned.get(key, ()), *others.get(key, ())] for key in (assigned | others)}
    return BindingsMap.from_keys(both)


def _with_key(binding: Binding, key: str, *, is_own: bool) -> Binding:
    """Return a binding of another key, which yields to text fields and lists if they need it."""
    with_key = binding.with_key(key)
    if is_own or not binding.priority or not is_for_focus(key):
        return with_key
    return replace(with_key, priority=False)
