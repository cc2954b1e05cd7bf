"""Changes of single values in the user's configuration file, which keep its comments and order."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pegboard import storage
from pegboard.config.files import encoded, read_text, shown
from pegboard.config.layer import drop_errors, file_layer
from pegboard.data.toml import TomlError, parse_toml
from pegboard.models import Problem

if TYPE_CHECKING:
    from pydantic import JsonValue

_MEANT = re.compile(r"Did you mean `[^`]*`\?")
_WITH_DOTTED_NAMES = ("keys", "tools.timeouts")
"""Tables whose keys contain dots."""


def set_values(file: Path, values: Mapping[str, JsonValue]) -> Problem | None:
    """Set or remove values in a configuration file; nothing is written if one of them is invalid.

    Args:
        file: The file; it is created if it doesn't exist.
        values: Dotted keys, such as `model.name`, with their new values; None removes the value.

    Returns:
        Why nothing was written, or None.
    """
    try:
        with storage.locked(file):
            return _changed(file, values)
    except OSError as error:
        return Problem(message=f"The configuration was not changed: {error.strerror or error}.", file=shown(file))


def is_set(file: Path, key: str) -> bool:
    """Return whether a configuration file contains a value or a table, also one that is invalid, unknown or overridden.

    Args:
        file: The file.
        key: Dotted, as in `set_values`.

    Returns:
        Whether it does; True if the file can't be read, as `set_values` says why.
    """
    text = read_text(file)
    if isinstance(text, Problem):
        return True
    try:
        found: object = parse_toml(text)
    except TomlError:
        return True
    for step in _steps(key):
        if not isinstance(found, dict) or step not in found:
            return False
        found = found[step]
    return True


def typed_value(typed: str, before: JsonValue) -> JsonValue:
    """Return a typed value: text stays text where a text was set; anything else is JSON if it can be.

    Args:
        typed: The value as typed.
        before: The present value; None if there is none.
    """
    if isinstance(before, str):
        return typed
    try:
        value: JsonValue = json.loads(typed)
    except ValueError:
        return typed
    return value


def _changed(file: Path, values: Mapping[str, JsonValue]) -> Problem | None:
    """Read, change and write a file that is locked.

    Args:
        file: The file.
        values: As in `set_values`.

    Returns:
        Why nothing was written, or None.

    Raises:
        OSError: The file can't be written.
    """
    import tomlkit
    from tomlkit.exceptions import ConvertError, TOMLKitError

    text = read_text(file)
    if isinstance(text, Problem):
        return text
    try:
        document = tomlkit.parse(text)
        for key, value in values.items():
            _set(document, _steps(key), value)
        changed = tomlkit.dumps(document)
    except ConvertError:  # JSON has nothing else that TOML lacks
        return Problem(message="The configuration was not changed: TOML has no null.", fix="Omit it.")
    except (TOMLKitError, TypeError, ValueError) as error:
        return Problem(message=f"The configuration was not changed: {error}.", file=shown(file))
    known = {problem.message for problem in _problems(file, text)}
    wrong = next((problem for problem in _problems(file, changed) if problem.message not in known), None)
    if wrong is not None:
        meant = _MEANT.match(wrong.fix)  # the rest is about a value that is in the file
        return Problem(message=f"The configuration was not changed: {wrong.message}", fix=meant[0] if meant else "")
    storage.rewrite(file, encoded(changed, file))
    return None


def _problems(file: Path, text: str) -> list[Problem]:
    layer = file_layer(file, text)
    drop_errors(layer)
    return layer.problems


def _steps(key: str) -> list[str]:
    """Return the tables and the name of a dotted key; the name of a tool may be in quotation marks, as in the file."""
    for table in _WITH_DOTTED_NAMES:
        if key.startswith(f"{table}."):
            name = key.removeprefix(f"{table}.")
            is_quoted = len(name) > 1 and name[0] == name[-1] and name[0] in "\"'"
            return [*table.split("."), name[1:-1] if is_quoted else name]
    return key.split(".")


def _set(document: MutableMapping[str, object], steps: list[str], value: JsonValue) -> None:
    import tomlkit

    table = document
    for step in steps[:-1]:
        if step not in table:
            if value is None:
                return
            table[step] = tomlkit.table()
        inner = table[step]
        if not isinstance(inner, MutableMapping):
            raise TypeError(f"`{step}` is not a table")
        table = cast("MutableMapping[str, object]", inner)
    if value is None:
        table.pop(steps[-1], None)
    else:
        table[steps[-1]] = value
