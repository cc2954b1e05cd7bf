"""One declaration per command: its key, its place in the footer, the palette and the help.

A screen, pane or widget lists its commands in `ACTIONS` and passes them to Textual with
`BINDINGS = bindings(ACTIONS)`. The footer and Textual's keymap read the bindings; the palette and the help screen
read `ACTIONS` of everything from the focused widget up to the app (`in_reach`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from textual.actions import parse
from textual.binding import Binding, BindingsMap, BindingType
from textual.dom import DOMNode
from textual.keys import format_key

from pegboard.tui.keys import assign_keys, key_names

_NO_KEY = "none:"
"""Start of the key name of a command without a key; no terminal sends it.

Textual assigns keys only to commands that have one. Names must differ: it removes all commands of a key."""


@dataclass(frozen=True)
class Command:
    """An action that users can run, with its key and its texts."""

    id: str
    """Stable id, `page.verb`; `[keys]` in the configuration remaps it."""
    keys: str
    """Textual key names, separated by commas; the first is shown. Empty: only the palette and the mouse run it,
    unless the user assigns a key."""
    action: str
    """The Textual action to run on the widget that declares it, such as `run` or `mode('tools')`."""
    title: str
    """Title of two or three words, for the footer and the palette."""
    help: str
    """One sentence for the palette, the tooltip and the help screen."""
    footer: bool = False
    """Whether the footer shows it."""
    priority: bool = False
    """Whether its keys take precedence over those of the focused widget."""
    meaning: str = ""
    """What its keys mean on every page, if that is more general than the title."""
    words: str = ""
    """Other words under which the palette finds it."""

    @property
    def binding(self) -> Binding:
        """The binding for Textual."""
        return Binding(
            self.keys or f"{_NO_KEY}{self.id}",
            self.action,
            self.title,
            show=self.footer,
            priority=self.priority,
            tooltip=self.help,
            id=self.id,
        )


CHOOSE_MODEL: Final = Command(
    "chat.model",
    "f2",
    "model",
    "Model",
    "Choose and set up the model that answers.",
    footer=True,
    meaning="Details",
    words="connect provider key llm",
)
"""The command of Chat that other pages mention."""


def bindings(commands: Iterable[Command]) -> list[BindingType]:
    """Return the Textual bindings of commands."""
    return [command.binding for command in commands]


def bindings_of(node: DOMNode) -> BindingsMap:
    """Return the bindings of one node with the keys that the user assigned; its own ones have the declared keys."""
    declared, keymap = node._bindings, node.app._keymap  # noqa: SLF001 - nothing public returns them for one node
    return assign_keys(declared, keymap) if keymap else declared


def key_of(node: DOMNode, command_id: str) -> str:
    """Return the first key of a command that a widget declares, remapped and formatted: `ctrl+s`, `/`.

    Args:
        node: The widget, screen or app.
        command_id: The id of one of its `ACTIONS`.

    Returns:
        The key, or an empty string if the command has none.
    """
    return as_written(first_key(node, command_id))


def key_or_title(node: DOMNode, command_id: str) -> str:
    """Return the first key of a command that a widget declares, or its title in quotes if the user removed its keys."""
    declared = node._bindings  # noqa: SLF001 - nothing public returns them for one node
    titles = (binding.description for _, binding in declared if binding.id == command_id)
    return key_of(node, command_id) or f"“{next(titles, command_id)}”"


def assigned_key(node: DOMNode, command: Command) -> str:
    """Return the first key of a command of another page or dialog, remapped and formatted, or an empty string."""
    keys = key_names(node.app._keymap.get(command.id, command.keys))  # noqa: SLF001 - nothing public returns it
    return as_written(keys[0]) if keys else ""


def first_key(node: DOMNode, command_id: str | None) -> str:
    """Return Textual's name for the first key of a command; like `key_of`, which formats it."""
    return next(iter(keys_of(node, command_id)), "")


def keys_of(node: DOMNode, command_id: str | None) -> list[str]:
    """Return Textual's names for the keys of a command that a widget declares."""
    keys = (key for key, binding in bindings_of(node) if binding.id == command_id)
    return [key for key in keys if not key.startswith(_NO_KEY)]


def key_in_reach(node: DOMNode, command_ids: Collection[str]) -> str:
    """Return the first key of the first of these commands that is available from a widget, or an empty string."""
    for owner, command in in_reach(node):
        if command.id in command_ids:
            return key_of(owner, command.id)
    return ""


def as_written(key: str) -> str:
    """Return Textual's name of a key as users write it: `escape` is `esc`, `question_mark` is `?`."""
    *modifiers, last = key.split("+")
    return "+".join([*modifiers, format_key(last)]) if last else ""


def as_word(key: str) -> str:
    """Return Textual's name of a key as it is written in sentences, where `as_written` has a sign: `shift+enter`."""
    return as_written(key).replace("⏎", "enter")


def in_reach(node: DOMNode | None) -> Iterator[tuple[DOMNode, Command]]:
    """Yield the commands available from a widget: its own, then those of each ancestor up to the app.

    Args:
        node: Usually the focused widget or the screen.
    """
    while node is not None:
        for command in getattr(type(node), "ACTIONS", ()):
            yield node, command
        node = node.parent


def is_possible(node: DOMNode, command: Command) -> bool:
    """Return whether a widget would run one of its commands now."""
    _, action, parameters = parse(command.action)
    return bool(node.check_action(action, parameters))


def help_now(node: DOMNode, command: Command) -> str:
    """Return the help line of a command, with a note if the command isn't possible now."""
    return command.help if is_possible(node, command) else f"{command.help} Not possible now."
