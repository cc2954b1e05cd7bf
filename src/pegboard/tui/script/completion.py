"""Completion of the word at the cursor of a script. Independent of Textual."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from pegboard.data.json_text import write
from pegboard.forms.labels import picks
from pegboard.models import JsonObject, ToolSpec
from pegboard.results.clean import clean_line
from pegboard.tui.script.bash import SHELL, ShellState, scan

_MOST: Final = 50
_MOST_ENTRIES: Final = 2_000
"""Most entries of a folder that are read."""
_CURRENT: Final = re.compile(r"[^\s|&;()<>`]*$")
_PLAIN: Final = re.compile(r"[\w@%+=:,./~-]+")
_PART: Final = re.compile(r"[._-]")
_TARGET: Final = re.compile(r"(?:>>?|<)\s*([\w./-]+)")
_FOLDERS: Final = ("/tmp/", "/home/")  # noqa: S108 - folders of the sandbox


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A text that can replace the word at the cursor."""

    text: str
    """The text, quoted for the shell where necessary; it ends with a space if a word is complete."""
    note: str = ""
    value: str = ""
    """The text without quotes, which is compared with the typed word, if it differs."""

    @property
    def label(self) -> str:
        """The text as shown."""
        return clean_line(self.text.rstrip())


@dataclass(frozen=True, slots=True)
class WordCompletion:
    """Suggestions for the word at the cursor."""

    start: int
    """Column at which the word starts."""
    word: str
    """The word so far."""
    suggestions: Sequence[Suggestion]
    is_value_of_flag: bool = False
    """Whether the word is the value of a flag, for which suggestions are useful before it is typed."""


@dataclass(frozen=True, slots=True)
class Known:
    """Names that scripts can use."""

    tools: Mapping[str, ToolSpec | None]
    """Tools by all names of their commands; None for commands without a schema."""
    functions: Collection[str] = ()
    """Functions that the script defines."""
    script: str = ""
    folder: Path | None = None
    """Working directory of the tools."""


def complete(before: str, state: ShellState, known: Known) -> WordCompletion | None:
    """Return what can complete the word at the cursor; None within quotes or without suggestions. Read folders.

    Args:
        before: The line up to the cursor.
        state: State of the scanner at the start of the line.
        known: What scripts can name.
    """
    current = _CURRENT.search(before)
    word = current[0] if current else ""
    start = len(before) - len(word)
    left = scan(before[:start], state)
    if state.here or left.after.around[-1:] in (('"',), ("'",), ("$'",), ("((",), ("${",)):
        return None
    if set(word) & set("\"'$\\"):
        return None
    if _is_command(before[:start], state):
        return _completion(start, word, _commands(known))
    call = next((one for one in reversed(left.words) if one.is_command), None)
    if call is None:
        return _completion(start, word, _files(known))
    words = _words(before[call.end : start])
    spec = known.tools.get(call.text)
    if spec is None:
        return _completion(start, word, _files(known)) if call.text in SHELL else None
    properties = _properties(spec)
    if word.startswith("-"):
        name, equals, value = word.partition("=")
        if equals:
            return _completion(start + len(name) + 1, value, _values(_named(name, properties), value, known))
        return _completion(start, word, _flags(properties, words))
    asked = _named(words[-1], properties) if words and words[-1].startswith("-") else None
    if asked is None or asked[1].get("type") == "boolean":
        asked = _positional(spec, properties, words)
        follows_flag = False
    else:
        follows_flag = True
    found = _completion(start, word, _values(asked, word, known))
    return replace(found, is_value_of_flag=follows_flag) if found is not None else None


def _completion(start: int, word: str, offered: Iterable[Suggestion]) -> WordCompletion | None:
    """Keep what starts with the word, then what has a part that does."""
    typed = word.lower()
    starts: list[Suggestion] = []
    parts: list[Suggestion] = []
    for one in offered:
        text = (one.value or one.text.rstrip()).lower()
        if text == typed:
            continue
        if text.startswith(typed):
            starts.append(one)
        elif typed and any(part.startswith(typed) for part in _PART.split(text)):
            parts.append(one)
    found = [*starts, *parts][:_MOST]
    return WordCompletion(start, word, found) if found else None


def _is_command(before: str, state: ShellState) -> bool:
    words = scan(f"{before}:", state).words
    return bool(words) and words[-1].start == len(before) and words[-1].is_command


def _commands(known: Known) -> Iterator[Suggestion]:
    for name, spec in known.tools.items():
        yield Suggestion(f"{name} ", clean_line(spec.summary) if spec is not None else "")
    for name in sorted(known.functions):
        yield Suggestion(f"{name} ", "function")
    for name in sorted(SHELL):
        yield Suggestion(f"{name} ", "shell")


def _words(text: str) -> Sequence[str]:
    """Return the words of a call, as far as its quotes are closed."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _properties(spec: ToolSpec) -> dict[str, JsonObject]:
    """Return the schema of each argument, and of each property of an object as `object.property`."""
    found: dict[str, JsonObject] = {}
    declared = spec.input_schema.get("properties")
    for name, node in (declared if isinstance(declared, dict) else {}).items():
        schema = _without_null(node)
        found[name] = schema
        inner = schema.get("properties")
        for key, value in (inner if isinstance(inner, dict) else {}).items():
            found[f"{name}.{key}"] = _without_null(value)
    return found


def _without_null(node: JsonValue) -> JsonObject:
    """Return the schema of the only variant that isn't null."""
    if not isinstance(node, dict):
        return {}
    for keyword in ("anyOf", "oneOf"):
        variants = node.get(keyword)
        others = (
            [one for one in variants if isinstance(one, dict) and one.get("type") != "null"]
            if isinstance(variants, list)
            else []
        )
        if len(others) == 1:
            return {**node, **others[0]}
    return node


def _named(flag: str, properties: Mapping[str, JsonObject]) -> tuple[str, JsonObject] | None:
    name = flag.lstrip("-")
    for one in (name, name.replace("-", "_")):
        if one in properties:
            return one, properties[one]
    return None


def _positional(
    spec: ToolSpec, properties: Mapping[str, JsonObject], words: Sequence[str]
) -> tuple[str, JsonObject] | None:
    """Return the required argument that the next word without a flag sets."""
    required = spec.input_schema.get("required")
    names = [name for name in (required if isinstance(required, list) else ()) if isinstance(name, str)]
    given = 0
    awaits = False
    for word in words:
        if word.startswith("-"):
            named = _named(word, properties)
            awaits = named is not None and "=" not in word and named[1].get("type") != "boolean"
            if named is not None and named[0] in names:
                names.remove(named[0])
        elif awaits:
            awaits = False
        else:
            given += 1
    return (names[given], properties.get(names[given], {})) if given < len(names) else None


def _flags(properties: Mapping[str, JsonObject], words: Sequence[str]) -> Iterator[Suggestion]:
    used = {word.partition("=")[0].lstrip("-").replace("-", "_") for word in words if word.startswith("-")}
    for name, schema in properties.items():
        if name not in used or schema.get("type") == "array":
            yield Suggestion(f"--{name} ", _described(schema))
    yield Suggestion("--help ", "show the usage")


def _described(schema: JsonObject) -> str:
    kind, description = schema.get("type"), schema.get("description")
    choices = schema.get("enum")
    shown = "|".join(map(_plain, choices)) if isinstance(choices, list) else kind if isinstance(kind, str) else ""
    text = description if isinstance(description, str) else ""
    return clean_line("  ".join(filter(None, (shown[:30], text.partition("\n")[0]))))


def _values(asked: tuple[str, JsonObject] | None, word: str, known: Known) -> Iterator[Suggestion]:
    """Yield the values of an argument: its choices, or paths."""
    if asked is None:
        return
    name, schema = asked
    items = schema.get("items")
    node = items if isinstance(items, dict) and schema.get("type") == "array" else schema
    choices = node.get("enum")
    if isinstance(choices, list):
        for choice in choices:
            yield Suggestion(
                f"{_quoted(_plain(choice))} ", "default" if choice == schema.get("default") else "", _plain(choice)
            )
    elif node.get("type") == "boolean":
        yield Suggestion("true ")
        yield Suggestion("false ")
    elif kind := picks(node, name.rpartition(".")[2]):
        yield from _paths(word, known.folder, folders_only=kind == "folder")


def _paths(word: str, folder: Path | None, *, folders_only: bool) -> Iterator[Suggestion]:
    """Yield the entries of the folder that the word names; hidden ones only after a dot."""
    above, slash, last = word.rpartition("/")
    if folder is None:
        return
    try:
        entries = sorted((folder / (above + slash)).iterdir())[:_MOST_ENTRIES]
    except (OSError, ValueError):
        return
    for entry in entries:
        if entry.name.startswith(".") and not last.startswith("."):
            continue
        path = f"{above}{slash}{entry.name}"
        if os.path.isdir(entry):  # noqa: PTH112 - pathlib raises without permission
            yield Suggestion(f"{_quoted(path)}/", "folder", f"{path}/")
        elif not folders_only:
            yield Suggestion(f"{_quoted(path)} ", "file", path)


def _files(known: Known) -> Iterator[Suggestion]:
    """Yield the files that the script writes or reads in the sandbox, and its folders."""
    for name in dict.fromkeys(_TARGET.findall(known.script)):
        yield Suggestion(f"{name} ", "file of this script")
    for name in _FOLDERS:
        yield Suggestion(name, "folder of the sandbox")


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else write(value)


def _quoted(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else shlex.quote(text)
