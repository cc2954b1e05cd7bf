"""Settings from the files and the environment: a fault costs its own line and nothing else."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel, ValidationError

from pegboard.config.files import read_text, shown, unusable
from pegboard.config.lines import key_lines
from pegboard.config.paths import Paths, absolute
from pegboard.config.settings import Origin, Settings
from pegboard.models import Problem

Table: TypeAlias = dict[str, Any]  # outside data: TOML before validation
Location: TypeAlias = tuple[str | int, ...]

OVERLAY = "pegboard.toml"
"""The file of the working directory that is laid over the user's own."""

_VARIABLE = re.compile(r"PEGBOARD_(\w+?(?:__\w+?)+)")
_DOTTED = (("keys",), ("tools", "timeouts"))
"""Tables whose keys contain dots, which a user may leave unquoted."""

_WANTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "float_type": "a number",
    "int_type": "a whole number",
    "is_instance_of": "the path of a folder",
    "model_type": "a table",
    "string_type": "text",
    "tuple_type": "a list",
}
"""What pydantic's errors about types ask for, in the words of TOML."""


def load(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> tuple[Settings, tuple[Problem, ...]]:
    """Reads the settings: the user's file, the working directory's `pegboard.toml` over it, then the environment.

    A missing file counts as empty. What is wrong is left out and named in a problem; nothing is raised.

    Args:
        environ: The environment; the process's own by default.
        cwd: The working directory; the process's own by default.

    Returns:
        The settings, and everything wrong with them.
    """
    environ = os.environ if environ is None else environ
    user_file = Paths.from_environment(environ).config_file
    overlay = absolute(OVERLAY, cwd)
    files = dict.fromkeys([user_file, overlay])
    layers = [*map(_read_file, files), *_read_environment(environ)]

    merged: Table = {}
    origins: dict[str, Origin] = {}
    problems: list[Problem] = []
    for layer in layers:
        problems += layer.problems
        problems += sorted(_drop_faults(layer), key=lambda problem: problem.line or 0)
        _make_folders_absolute(layer)
        _merge(merged, layer.table)
        origins |= {key: layer.origin(key) for key in _leaves(layer.table)}

    settings = Settings.model_validate(merged)
    settings._origins = {key: origins[key] for key in _leaves(merged)}  # noqa: SLF001 - only loading knows them
    return settings, tuple(problems)


@dataclass
class _Layer:
    """Settings from one place: a file, or one variable."""

    table: Table
    file: Path | None = None
    variable: str = ""
    lines: Mapping[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def origin(self, key: str) -> Origin:
        if self.variable:
            return Origin(variable=self.variable)
        return Origin(shown(self.file), self.lines.get(key))


def _read_file(file: Path) -> _Layer:
    layer = _Layer({}, file)
    text = read_text(file)
    if isinstance(text, Problem):
        layer.problems.append(text)
        return layer
    try:
        layer.table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        layer.problems.append(unusable(file, f"This file is no TOML: {error}.", _line_of(error, text)))
        return layer
    except RecursionError:
        layer.problems.append(unusable(file, "This file is nested too deeply."))
        return layer
    # `\r\n` is one line break to TOML, as `\n` is.
    layer.lines = key_lines(text.replace("\r\n", "\n"))
    _join_dotted(layer.table)
    return layer


def _line_of(error: tomllib.TOMLDecodeError, text: str) -> int:
    match = re.search(r"at line (\d+)", str(error))
    return int(match[1]) if match else text.rstrip("\n").count("\n") + 1


def _read_environment(environ: Mapping[str, str]) -> Iterator[_Layer]:
    """Gives a layer for each `PEGBOARD_SECTION__KEY`, in the order of their names."""
    for variable in sorted(environ):
        match = _VARIABLE.fullmatch(variable)
        if match is None:
            continue
        keys = match[1].lower().split("__")
        candidates = [_nested(keys, value) for value in _meanings(environ[variable])]
        # Where no meaning fits, the text is what the problem should speak of: it is what the user wrote.
        fitting = next((table for table in candidates if not _errors(table)), candidates[-1])
        yield _Layer(fitting, variable=variable)


def _meanings(text: str) -> list[object]:
    """Gives what a variable's value may mean: a TOML value, or plain text."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return [text]
    return [parsed["value"], text] if len(parsed) == 1 else [text]


def _nested(keys: Sequence[str], value: object) -> Table:
    table: Table = {keys[-1]: value}
    for key in reversed(keys[:-1]):
        table = {key: table}
    _join_dotted(table)
    return table


def _join_dotted(table: Table) -> None:
    """Makes `keys = {tools = {run = …}}`, which `tools.run = …` means to TOML, `keys = {"tools.run" = …}`."""
    for path in _DOTTED:
        holder: object = table
        for key in path[:-1]:
            holder = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and isinstance(holder.get(path[-1]), dict):
            holder[path[-1]] = dict(_flat(holder[path[-1]]))


def _flat(table: Table) -> Iterator[tuple[str, object]]:
    # Not by recursion: `a.a.a. …` makes tables nested deeper than Python's stack.
    waiting: list[tuple[str, object]] = [*table.items()]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{key}.{inner}", value[inner]) for inner in value]
        else:
            yield key, value


def _leaves(table: Table) -> Iterator[str]:
    return (key for key, _ in _flat(table))


def _errors(table: Table) -> list[tuple[Location, str, str]]:
    """Gives what is wrong with a table: the place in it, pydantic's name for the error, and its message."""
    try:
        Settings.model_validate(table)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        return [(_within(table, item["loc"]), item["type"], item["msg"]) for item in found]
    return []


def _within(table: Table, location: Location) -> Location:
    """Cuts what pydantic adds to a place (`[key]`, the branch of a union) and the table doesn't have."""
    here: object = table
    for depth, part in enumerate(location):
        is_key = isinstance(here, dict) and part in here
        is_item = isinstance(here, list) and isinstance(part, int) and part < len(here)
        if not (is_key or is_item):
            return location[:depth]
        here = here[part]  # type: ignore[index]  # one of the two was just seen
    return location


def _drop_faults(layer: _Layer) -> Iterator[Problem]:
    errors = {location: (kind, message) for location, kind, message in reversed(_errors(layer.table))}
    # From the back, so that dropping one item of a list leaves the places of those before it true.
    for location in sorted(errors, key=lambda place: [(isinstance(part, str), part) for part in place], reverse=True):
        kind, message = errors[location]
        key = ".".join(map(str, location))
        value = _pop(layer.table, location)
        if kind == "extra_forbidden" or _is_misspelt_pack_setting(location, value):
            yield layer.origin(key).problem(f"Unknown setting `{key}`.", _suggestion(key))
            continue
        fix = "This value is not used."
        if location[:2] == ("tools", "allow"):
            # A broken list that admitted everything would be worse than one that admits too little.
            layer.table["tools"].setdefault("allow", [])
            fix = "What it was to admit is not admitted."
        yield layer.origin(key).problem(_complaint(key, kind, message, value), fix)


def _is_misspelt_pack_setting(location: Location, value: object) -> bool:
    return len(location) == 2 and location[0] == "packs" and location[1] != "folders" and not isinstance(value, dict)


def _pop(table: Table, location: Location) -> object:
    holder: Any = table  # outside data, at a place known to be in it
    for part in location[:-1]:
        holder = holder[part]
    return holder.pop(location[-1])


def _complaint(key: str, kind: str, message: str, value: object) -> str:
    # Never the value itself: it may be a secret.
    if kind in _WANTED:
        return f"`{key}` should be {_WANTED[kind]}, but is {_kind(value)}."
    return f"`{key}` {message.removeprefix('Value error, ').removeprefix('Input ')}."


def _kind(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or time"


def _suggestion(key: str) -> str:
    from difflib import get_close_matches

    parent, _, name = key.rpartition(".")
    known = list(_known_keys(Settings))
    siblings = [other for other in known if other.rpartition(".")[0] == parent]
    elsewhere = [other for other in known if other.rpartition(".")[2] == name]
    near = get_close_matches(key, siblings, n=1) or elsewhere or get_close_matches(key, known, n=1)
    return f"Did you mean `{near[0]}`?" if near else ""


def _known_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in model.model_fields.items():
        yield prefix + name
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from _known_keys(info.annotation, f"{prefix}{name}.")


def _make_folders_absolute(layer: _Layer) -> None:
    folders = layer.table.get("packs", {}).get("folders")
    if folders:
        start = layer.file.parent if layer.file else None
        layer.table["packs"]["folders"] = [absolute(folder, start) for folder in folders]


def _merge(below: Table, above: Table) -> None:
    waiting = [(below, above)]
    while waiting:
        below, above = waiting.pop()
        for key, value in above.items():
            if isinstance(value, dict) and isinstance(below.get(key), dict):
                waiting.append((below[key], value))
            else:
                below[key] = value
