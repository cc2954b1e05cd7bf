"""JSON Pointers (RFC 6901), and paths as users read them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from pydantic import JsonValue

_PLAIN = re.compile(r"(?!\d+$)[\w:@-]+")
"""Keys that need no quotes in a path."""


def pointer(*steps: str | int) -> str:
    """Return the JSON Pointer made of keys and indexes."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def steps(path: str) -> list[str]:
    """Return the keys and indexes of a JSON Pointer, unescaped."""
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def numeric_keys(*steps: str | int) -> tuple[int, ...]:
    """Return the positions of keys that look like indexes: a JSON Pointer doesn't tell them apart."""
    return tuple(at for at, step in enumerate(steps) if isinstance(step, str) and step.isdecimal())


def readable(path: str, keys: Collection[int] = ()) -> str:
    """Return a JSON Pointer as users read it: `steps #2.title`. Rows count from 1, as in forms.

    Args:
        path: The pointer.
        keys: Positions of steps that are keys although they look like indexes.
    """
    shown = ""
    for at, step in enumerate(steps(path)):
        if step.isdecimal() and at not in keys:
            shown += f" #{int(step) + 1}"
        else:
            shown += f".{step if _PLAIN.fullmatch(step) else json.dumps(step, ensure_ascii=False)}"
    return shown.strip(" .")


def resolve(value: JsonValue, path: str) -> tuple[JsonValue, ...]:
    """Return the target of a JSON Pointer as the only item, or nothing if it does not exist."""
    for name in steps(path):
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return ()
    return (value,)
