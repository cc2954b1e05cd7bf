"""Completion of paths in a jq filter, from the data that it runs on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import islice

from pydantic import JsonValue

from pegboard.data.json_text import JsonTextError, parse
from pegboard.results.paths import jq_path

_SAMPLED = 50
"""Maximum number of values that represent the input of a part of the filter."""
_MOST = 200
_STEP = r"""\.?\[\d*\]\??|\.(?:[A-Za-z_]\w*|"(?:[^"\\]|\\.)*")\??"""
_PATH = re.compile(rf"\s*(?:\.|(?:{_STEP})+)\s*")
_TAIL = re.compile(rf"""(?P<before>(?:{_STEP})*)\.(?P<begun>\w*|"[^"]*)$""")
_STEPS = re.compile(_STEP)
_ITEMWISE = {"map", "sort_by", "group_by", "unique_by", "min_by", "max_by", "any", "all"}
_UNCHANGED = re.compile(
    r"\s*(?:select|sort_by|unique_by)\b.*|\s*(?:sort|unique|reverse)\s*|\s*map\(\s*select\b.*", re.DOTALL
)


def first_filter(value: JsonValue) -> str:
    """Return a filter to begin with: the identity, after `fromjson` for a text that is a JSON object or list."""
    return "fromjson | ." if isinstance(_from_json(value), dict | list) else "."


def _from_json(value: JsonValue) -> JsonValue:
    """Return the value of a text that is JSON, otherwise None."""
    try:
        return parse(value) if isinstance(value, str) else None
    except JsonTextError:
        return None


def completions(value: JsonValue, filter: str) -> list[str]:  # noqa: A002 - jq's own word
    """Return the filters that complete the path at the end of a filter.

    Args:
        value: The data.
        filter: The beginning of a filter, such as `.results[] | .na`.
    """
    values, part = _input([value], filter)
    found = _TAIL.search(part)
    if found is None:
        return []
    begun = found["begun"].removeprefix('"').casefold()
    stem = filter[: len(filter) - len(part) + found.end("before")]
    keys: dict[str, None] = {}
    has_list = False
    for one in _through(values, found["before"]):
        if isinstance(one, dict):
            keys.update(dict.fromkeys(islice(one, _MOST)))
        has_list = has_list or isinstance(one, list)
    wanted = [key for key in keys if key.casefold().startswith(begun)]
    steps = [jq_path((key,)) for key in wanted[:_MOST]]
    lists = [f"{stem}{'' if found['before'] else '.'}[]"] if has_list and not begun else []
    exact = [key for key in wanted if key.casefold() == begun and _is_list(values, found["before"], key)]
    return lists + [stem + step for step in steps] + [f"{stem}{jq_path((key,))}[]" for key in exact]


def _is_list(values: list[JsonValue], path: str, key: str) -> bool:
    return any(isinstance(one, dict) and isinstance(one.get(key), list) for one in _through(values, path))


def _input(values: list[JsonValue], filter: str) -> tuple[list[JsonValue], str]:  # noqa: A002 - as above
    """Return the input of the last part of a filter, as samples, and that part."""
    parts, opened = _split(filter)
    for part in parts[:-1]:
        values = _result(values, part)
    last = parts[-1]
    if opened < 0:
        return values, last
    at = len(last) - (len(filter) - opened)
    name = re.search(r"(\w+)\s*$", last[:at])
    if name and name[1] in _ITEMWISE:
        values = _through(values, "[]")
    return _input(values, last[at + 1 :])


def _split(filter: str) -> tuple[list[str], int]:  # noqa: A002 - as above
    """Return the parts between pipes outside of brackets, and the position of the first open parenthesis, or -1."""
    parts, begin = [], 0
    opened: list[int] = []
    in_text = False
    for at, sign in enumerate(filter):
        if sign == '"' and filter[at - 1 : at] != "\\":
            in_text = not in_text
        elif in_text:
            continue
        elif sign in "([{":
            opened.append(at)
        elif sign in ")]}" and opened:
            opened.pop()
        elif sign == "|" and not opened:
            parts.append(filter[begin:at])
            begin = at + 1
    parts.append(filter[begin:])
    return parts, opened[0] if opened and not in_text else -1


def _result(values: list[JsonValue], part: str) -> list[JsonValue]:
    """Return samples of the result of a part of a filter; none for parts that only jq can evaluate."""
    if _PATH.fullmatch(part):
        return _through(values, part)
    if part.strip() == "fromjson":
        return [_from_json(value) for value in values]
    return values if _UNCHANGED.fullmatch(part) else []


def _through(values: list[JsonValue], path: str) -> list[JsonValue]:
    for step in _STEPS.findall(path):
        values = list(islice(_step(values, step.lstrip(".").removesuffix("?")), _SAMPLED))
    return values


def _step(values: list[JsonValue], step: str) -> Iterable[JsonValue]:
    for value in values:
        match value:
            case list() if step == "[]":
                yield from value[:_SAMPLED]
            case dict() if step == "[]":
                yield from islice(value.values(), _SAMPLED)
            case list() if step[1:-1].isdigit() and int(step[1:-1]) < len(value):
                yield value[int(step[1:-1])]
            case dict() if (key := _key(step)) in value:
                yield value[key]
            case _:
                pass


def _key(step: str) -> str:
    try:
        return str(json.loads(step)) if step.startswith('"') else step
    except ValueError:
        return step
