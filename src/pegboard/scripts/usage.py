"""Usage and help of tools as commands of scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from pegboard.data.json_text import write
from pegboard.forms.flags import stdin_argument, whole_flag
from pegboard.forms.shapes import Shapes
from pegboard.models import JsonObject, ToolSpec
from pegboard.schema.validation import validator

_DESCRIBED: Final = 160
"""Characters of an argument's description in a list of arguments."""
_DEEPEST: Final = 3
"""Levels of objects and lists whose fields are listed."""
_MOST_LINES: Final = 200
"""Lines on the arguments of one tool."""


def usage(spec: ToolSpec, name: str) -> str:
    """Return a command with its arguments, in one line."""
    required, optional = _parted(spec.input_schema)
    words = [f"<{argument}>" for argument in required]
    words += [f"[--{argument}{_value(schema)}]" for argument, schema in optional.items()]
    taker = stdin_argument(spec)
    return " ".join([name, *words]) + (f"  (stdin: {taker})" if taker else "")


def help_text(spec: ToolSpec, names: Sequence[str]) -> str:
    """Return the usage, the description and the arguments of a command, with the fields of their objects.

    Args:
        spec: The tool.
        names: Names of the command.
    """
    lines = [f"usage: {usage(spec, names[0])}", ""]
    if spec.description.strip():
        lines += [spec.description.strip(), ""]
    checked = validator(spec.input_schema)
    shapes = Shapes(checked)
    described = _described(shapes, shapes.plain(checked.schema), "--", 0)
    arguments = [*islice(described, _MOST_LINES), *(["  …"] if next(described, None) else [])]
    lines += [*arguments, "", f"{whole_flag(spec)} sets all of them as a JSON object."] if arguments else []
    if len(names) > 1:
        lines += ["", f"Also called {', '.join(names[1:])}."]
    return "\n".join(lines).rstrip() + "\n"


def _described(shapes: Shapes, schema: JsonObject, prefix: str, depth: int) -> Iterator[str]:
    """Yield the lines on the properties of an object, each with those of its own."""
    required, optional = _parted(schema)
    for name, written in {**required, **optional}.items():
        plain = shapes.plain(written)
        facts = [_kind(plain), "required" if name in required else ""]
        if "default" in written:
            facts.append(f"default {write(written['default'])}")
        yield f"  {prefix}{name}  {', '.join(filter(None, facts))}"
        described = plain.get("description")
        if isinstance(described, str) and described.strip():
            yield f"      {_short(described)}"
        inner, place = plain, f"{prefix}{name}."
        while isinstance(items := inner.get("items"), dict) and place.count(".") < _DEEPEST:
            inner, place = shapes.plain(items), f"{place}0."
        if depth < _DEEPEST:
            yield from _described(shapes, inner, place, depth + 1)


def _parted(schema: JsonObject) -> tuple[dict[str, JsonObject], dict[str, JsonObject]]:
    """Return the required properties in the order in which they are requested, and the optional ones."""
    properties, required = schema.get("properties"), schema.get("required")
    known = properties if isinstance(properties, dict) else {}
    named = [name for name in (required if isinstance(required, list) else ()) if isinstance(name, str)]
    described = {name: inner if isinstance(inner, dict) else {} for name, inner in known.items()}
    return (
        {name: described.get(name, {}) for name in named},
        {name: inner for name, inner in described.items() if name not in named},
    )


def _value(schema: JsonObject) -> str:
    return "" if schema.get("type") == "boolean" else f" {_kind(schema).replace(' ', '-')}"


def _kind(schema: JsonObject) -> str:
    choices = schema.get("enum")
    if isinstance(choices, list) and 0 < len(choices) <= 8:
        return "|".join(choice if isinstance(choice, str) else write(choice) for choice in choices)
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return "|".join(kind for kind in kinds if isinstance(kind, str) and kind != "null")
    if isinstance(kinds, str):
        return kinds
    inner = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(inner, list):
        known = dict.fromkeys(_kind(one) for one in inner if isinstance(one, dict) and one.get("type") != "null")
        return "|".join(known)
    return "value"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _DESCRIBED else f"{line[: _DESCRIBED - 1]}…"
