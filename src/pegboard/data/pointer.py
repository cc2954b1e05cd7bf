"""JSON Pointers (RFC 6901)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import JsonValue


def pointer(*steps: str | int) -> str:
    """Return the JSON Pointer made of keys and indexes."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def steps(path: str) -> list[str]:
    """Return the keys and indexes of a JSON Pointer, unescaped."""
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def numeric_keys(*steps: str | int) -> tuple[int, ...]:
    """Return the positions of keys that look like indexes: a JSON Pointer doesn't distinguish them."""
    return tuple(at for at, step in enumerate(steps) if isinstance(step, str) and step.isdecimal())


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
