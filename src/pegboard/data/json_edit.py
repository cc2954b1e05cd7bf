"""Values added to JSON text and removed from it; the rest stays as it is written, with its comments."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from pegboard.data.json_spans import JsonSpan, spans

_INDENT: Final = re.compile(r"^([ \t]+)\S", re.MULTILINE)


def with_value(text: str, place: Sequence[str], value: JsonValue) -> str:
    """Return JSON text with a value at the end of the list at a place; missing objects and the list are created.

    Args:
        text: JSON text, which may have comments.
        place: The names that lead to the list.
        value: The value.

    Raises:
        JsonTextError: The text is not JSON.
        ValueError: Something else than an object or the list is at the place.
    """
    span = spans(text, comments=True)
    for depth, name in enumerate(place):
        if span.members is None:
            raise ValueError(
                f"has `{'.'.join(place[:depth])}`, which is not an object" if depth else "is not an object"
            )
        member = span.member(name)
        if member is None:
            missing: JsonValue = [value]
            for inner in reversed(place[depth + 1 :]):
                missing = {inner: missing}
            return _appended(text, span, missing, name)
        span = member.value
    if span.items is None:
        raise ValueError(f"has `{'.'.join(place)}`, which is not a list")
    return _appended(text, span, value)


def without(text: str, place: Sequence[str | int]) -> str:
    """Return JSON text without the member or the item at a place, and without lists and objects that this empties.

    Args:
        text: JSON text, which may have comments.
        place: The names and positions that lead to it; it must exist.
    """
    way = [spans(text, comments=True)]
    for step in place:
        way.append(_child(way[-1], step)[1])
    depth = len(place)
    while depth > 1 and len(_children(way[depth - 1])) == 1:
        depth -= 1
    holder = way[depth - 1]
    start, child = _child(holder, place[depth - 1])
    children = _children(holder)
    at = [begin for begin, _ in children].index(start)
    if len(children) == 1:
        return text[: holder.start + 1] + text[holder.end - 1 :]
    if at == 0:
        return text[:start] + text[children[1][0] :]
    return text[: children[at - 1][1].end] + text[child.end :]


def _child(span: JsonSpan, step: str | int) -> tuple[int, JsonSpan]:
    """Return the start of a member or an item, and its value."""
    if isinstance(step, int):
        item = (span.items or [])[step]
        return item.start, item
    member = span.member(step)
    assert member is not None, "it exists"
    return member.start, member.value


def _children(span: JsonSpan) -> list[tuple[int, JsonSpan]]:
    return [(one.start, one.value) for one in span.members or ()] + [(one.start, one) for one in span.items or ()]


def _appended(text: str, holder: JsonSpan, value: JsonValue, name: str | None = None) -> str:
    """Return the text with an item, or a member with a name, at the end of a list or an object, in its layout."""
    found = _INDENT.search(text)
    step = found[1] if found is not None else "  "
    line = text[text.rfind("\n", 0, holder.start) + 1 : holder.start]
    outer = line[: len(line) - len(line.lstrip())]
    inner = outer + step
    written = json.dumps(value, ensure_ascii=False, indent=step).replace("\n", f"\n{inner}")
    if name is not None:
        written = f"{json.dumps(name, ensure_ascii=False)}: {written}"
    children = _children(holder)
    if not children:
        return f"{text[: holder.start + 1]}\n{inner}{written}\n{outer}{text[holder.end - 1 :]}"
    end = children[-1][1].end
    return f"{text[:end]},\n{inner}{written}{text[end:]}"
