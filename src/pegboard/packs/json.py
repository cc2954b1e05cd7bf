"""JSON: ask a file or a value with jq, and see what it is made of."""

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict  # Any: JSON values may be anything

from annotated_types import Ge, Le

from pegboard.sdk import ToolFailed, aliases, hints, requires_lib

from ._roots import read_text

requires_lib("jq", min_version="1.10", install="pip install jq")

# What jq would tell about the process and the disk, which belong to nobody's data. It is defined in front of a filter,
# and nothing in a filter can get behind it.
_SHIELD = """
{} as $ENV | def env: {}; def get_search_list: []; def get_jq_origin: null; def get_prog_origin: null;
def input_filename: null; def modulemeta: error("Modules can't be imported.");
"""
_MODULE_WORDS = re.compile(r"\b(?:import|include|module)\b")
_LONGEST_EXAMPLE = 60
_MOST_PATHS = 1000


class Answers(TypedDict):
    """What a filter gives."""

    results: list[Any]
    """Every result, in order; most filters give one."""
    truncated: bool
    """Whether there are more."""


class Part(TypedDict):
    """What is found at one place of a value, and at all places like it."""

    path: str
    """A jq path; `[]` stands for every item of a list."""
    types: list[str]
    count: int
    """How often it is there."""
    example: str
    """The first value as JSON, cut; of objects and lists how many entries it has."""


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=20)
@aliases(max_results="maxResults", max_bytes="maxBytes")
def query(
    *,
    filter: str,  # noqa: A002 - it is jq's word for it
    value: object = None,
    file: str | None = None,
    max_results: Annotated[int, Ge(1), Le(100_000)] = 1000,
    max_bytes: Annotated[int, Ge(0)] = 50_000_000,
) -> Answers:
    """Runs a jq filter over a value or a file.

    Of a file with several values, one behind the other (JSON Lines), each goes through the filter. Large numbers that
    the filter passes on stay exact. Modules can't be imported, and `env` and `$ENV` are empty.

    Args:
        filter: In jq's language, such as `.items[] | select(.size > 3) | .name`.
        value: The JSON value, unless there is a file.
        file: The file, inside the working directory.
        max_results: How many results to give at most.
        max_bytes: The largest file to read, in bytes.
    """
    text = _text(value, file, max_bytes)
    results: list[Any] = []
    try:
        for result in _compiled(filter).input_text(text):
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
) -> list[Part]:
    """Tells what a value or a file is made of: every path, with the types found there, how often, and an example.

    It is the quickest way to learn what to ask of JSON that you have never seen.

    Args:
        value: The JSON value, unless there is a file.
        file: The file, inside the working directory; it may hold several values, one behind the other (JSON Lines).
        max_bytes: The largest file to read, in bytes.
    """
    text = _text(value, file, max_bytes)
    parts: dict[str, Part] = {}
    for each in _values(text):
        for path, found in _parts(each):
            part = parts.get(path)
            if part is None:
                if len(parts) == _MOST_PATHS:
                    raise ToolFailed(f"There are more than {_MOST_PATHS} paths.", code="too_many_paths")
                part = parts[path] = {"path": path, "types": [], "count": 0, "example": _example(found)}
            part["count"] += 1
            if (kind := _type(found)) not in part["types"]:
                part["types"].append(kind)
    return list(parts.values())


def _text(value: object, file: str | None, max_bytes: int) -> str:
    if file is None:
        return json.dumps(value)
    if value is not None:
        raise ToolFailed("Give a value or a file, not both.", code="invalid_argument")
    return read_text(file, max_bytes)


def _compiled(program: str) -> Any:  # noqa: ANN401 - the library has no types
    import jq  # type: ignore[import-not-found] # it comes without types

    # In parentheses, a program can't begin with `import`, which would read files from anywhere. As JSON, results keep
    # numbers that no float can hold.
    try:
        return jq.compile(f"{_SHIELD}({program}\n)|tojson")
    except ValueError as error:
        if re.search("unexpected (?:import|include|module)", str(error)):
            raise ToolFailed("Modules can't be imported.", code="jq_failed") from None
        if not _MODULE_WORDS.search(program):  # else it would read files here
            jq.compile(program)  # its message shows the program as it was written
        raise


def _values(text: str) -> Iterator[object]:
    """Gives the values that stand in a text, one behind the other."""
    decoder = json.JSONDecoder()
    at = 0
    try:
        while (at := _after_space(text, at)) < len(text):
            value, at = decoder.raw_decode(text, at)
            yield value
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ToolFailed(f"This is not JSON: {error.msg} at {where}.", code="not_json") from None
    except RecursionError:
        raise ToolFailed("The value is nested too deeply.", code="too_deep") from None


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _parts(value: object) -> Iterator[tuple[str, object]]:
    """Gives every part of a value with its path, the whole first."""
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
