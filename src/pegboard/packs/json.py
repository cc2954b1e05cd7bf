"""Query JSON with jq, and describe its structure."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict  # Any: JSON values may be anything

from annotated_types import Ge, Le

from pegboard.sdk import ToolFailed, aliases, hints, requires_lib

from ._jq import compile_filter
from ._roots import read_text

requires_lib("jq", min_version="1.10")

_LONGEST_EXAMPLE = 60
_MOST_PATHS = 1000


class Answers(TypedDict):
    """Results of a filter."""

    results: list[Any]
    """All results, in order; most filters have one."""
    truncated: bool
    """Whether there are more results."""


class JsonPart(TypedDict):
    """Values at one path."""

    path: str
    """A jq path; `[]` matches every item of a list."""
    types: list[str]
    count: int
    """Number of values at this path."""
    example: str
    """The first value as JSON, shortened; for objects and lists, the number of entries."""


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=20)
@aliases(max_results="maxResults", max_bytes="maxBytes")
def query(
    *,
    filter: str,  # noqa: A002 - jq's own word
    value: object = None,
    file: str | None = None,
    max_results: Annotated[int, Ge(1), Le(100_000)] = 1000,
    max_bytes: Annotated[int, Ge(0)] = 50_000_000,
) -> Answers:
    """Run a jq filter on a value or a file.

    If a file contains several values (JSON Lines), the filter runs on each. Large numbers that the filter passes on
    stay exact. Modules can't be imported, and `env` and `$ENV` are empty.

    Args:
        filter: jq filter, such as `.items[] | select(.size > 3) | .name`.
        value: JSON value; set either this or `file`.
        file: File, inside the working directory.
        max_results: Maximum number of results to return.
        max_bytes: Maximum size of the file, in bytes.
    """
    text = _text(value, file, max_bytes)
    results: list[Any] = []
    try:
        for result in compile_filter(filter).input_text(text):
            if len(results) == max_results:
                return {"results": results, "truncated": True}
            results.append(json.loads(result))
    except ValueError as error:
        raise ToolFailed(f"jq: {str(error).removeprefix('jq: ')}", code="jq_failed") from None
    except RecursionError:
        raise ToolFailed("A result is nested too deeply.", code="too_deep") from None
    return {"results": results, "truncated": False}


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=20)
@aliases(max_bytes="maxBytes")
def shape(
    *, value: object = None, file: str | None = None, max_bytes: Annotated[int, Ge(0)] = 50_000_000
) -> list[JsonPart]:
    """Return the structure of a value or a file: every path with its types, its count and an example.

    Use it first for JSON with an unknown structure.

    Args:
        value: JSON value; set either this or `file`.
        file: File, inside the working directory; it may contain several values (JSON Lines).
        max_bytes: Maximum size of the file, in bytes.
    """
    text = _text(value, file, max_bytes)
    parts: dict[str, JsonPart] = {}
    for each in _values(text):
        for path, found in _parts(each):
            part = parts.get(path)
            if part is None:
                if len(parts) == _MOST_PATHS:
                    raise ToolFailed(f"The value has more than {_MOST_PATHS} paths.", code="too_many_paths")
                part = parts[path] = {"path": path, "types": [], "count": 0, "example": _example(found)}
            part["count"] += 1
            if (kind := _type(found)) not in part["types"]:
                part["types"].append(kind)
    return list(parts.values())


def _text(value: object, file: str | None, max_bytes: int) -> str:
    if file is None:
        return json.dumps(value)
    if value is not None:
        raise ToolFailed("Set either `value` or `file`, not both.", code="invalid_argument")
    return read_text(file, max_bytes)


def _values(text: str) -> Iterator[object]:
    """Yield the consecutive JSON values of a text."""
    decoder = json.JSONDecoder()
    at = 0
    try:
        while (at := _after_space(text, at)) < len(text):
            value, at = decoder.raw_decode(text, at)
            yield value
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ToolFailed(f"The JSON is invalid: {error.msg} at {where}.", code="not_json") from None
    except RecursionError:
        raise ToolFailed("The value is nested too deeply.", code="too_deep") from None


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _parts(value: object) -> Iterator[tuple[str, object]]:
    """Yield every part of a value with its path, the whole first."""
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        path, part = waiting.pop()
        yield path or ".", part
        if isinstance(part, dict):
            waiting += [(path + _step(key, path), inner) for key, inner in reversed(part.items())]
        elif isinstance(part, list):
            waiting += [(f"{path or '.'}[]", inner) for inner in reversed(part)]


def _step(key: str, path: str) -> str:
    if key.isidentifier() and key.isascii():
        return f".{key}"
    return f"{'' if path else '.'}[{json.dumps(key, ensure_ascii=False)}]"


def _type(value: object) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def _example(value: object) -> str:
    if isinstance(value, dict):
        return f"{{{len(value)}}}"
    if isinstance(value, list):
        return f"[{len(value)}]"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_EXAMPLE else f"{text[:_LONGEST_EXAMPLE]}…"
