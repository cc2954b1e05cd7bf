"""What a tool returns, as JSON."""

from __future__ import annotations

import base64
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from enum import Enum

from pegboard.errors import PegboardError

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from typing import Any  # what a tool returns may be anything

    from _typeshed import DataclassInstance

DEPTH = 150
"""How deep a result may be nested; what reads it further on gives up soon after."""

_BIGGEST_INT_BITS = 14_000  # Python writes integers of at most 4,300 digits as text
_SCALARS = frozenset({str, int, float, bool, type(None)})
_LONE_SURROGATES = re.compile("[\ud800-\udfff]+")


class NotSerialisable(PegboardError):  # noqa: N818 - it reads as a sentence where it is raised
    """A value has no JSON form; the message says which, where and why, and `fault` the last two."""

    def __init__(self, path: Sequence[str | int], reason: str) -> None:
        self.fault = f"{reason} at {_shown(path)}"
        super().__init__(f"The result can't be written as JSON: {self.fault}.")


def encode(value: object) -> bytes:
    """Writes a value as JSON in UTF-8.

    What JSON has is written as it is. Dataclasses, pydantic models and mappings become objects; tuples, sets,
    iterators and arrays become lists; enums their value; dates, paths, UUIDs and decimals text; bytes text, or base64
    where they aren't UTF-8; NaN and the infinities text. Keys become text.

    Raises:
        NotSerialisable: Something in it has no JSON form, contains itself or is nested too deep.
    """
    try:
        text = _quick(value)
    except (TypeError, ValueError, RecursionError):
        text = _thorough(value)
    if text.count("[") + text.count("{") > DEPTH and not _is_shallow(value):
        text = _thorough(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _LONE_SURROGATES.sub(_mended, text).encode()


def _thorough(value: object) -> str:
    try:
        return _quick(_plain(value, [], set()))
    except RecursionError:
        raise NotSerialisable((), "something that unfolds without end") from None


def _is_shallow(value: object) -> bool:
    """Whether a value is surely not nested too deep; what is made of other types than JSON's is not looked at."""
    level = [value]
    for _ in range(DEPTH):
        lists = [item for item in level if isinstance(item, (list, tuple))]
        objects = [item for item in level if isinstance(item, dict)]
        if len(lists) + len(objects) < sum(type(item) not in _SCALARS for item in level):
            return False
        level = [item for part in lists for item in part if type(item) not in _SCALARS]
        level += [item for part in objects for item in part.values() if type(item) not in _SCALARS]
        if not level:
            return True
    return False


def _mended(found: re.Match[str]) -> str:
    # pairs that stand for one character become it; halves without the other have no UTF-8 form
    return found[0].encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _plain(value: object, path: list[str | int], above: set[int]) -> object:
    """Gives the value in JSON's own types, or says where it has none."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        if value.bit_length() > _BIGGEST_INT_BITS:
            raise NotSerialisable(path, "an integer of more than 4,300 digits")
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _no_number(value)
    if id(value) in above:
        raise NotSerialisable(path, "something that contains itself")
    if isinstance(value, (dict, list, tuple)) and len(path) >= DEPTH:
        raise NotSerialisable(path[:5], f"something nested deeper than {DEPTH} levels")
    above.add(id(value))
    try:
        if isinstance(value, dict):
            return _plain_object(value, path, above)
        if isinstance(value, (list, tuple)):
            return [_plain(item, [*path, index], above) for index, item in enumerate(value)]
        return _plain(_converted(value, path), path, above)
    finally:
        above.discard(id(value))


def _plain_object(value: dict[object, object], path: list[str | int], above: set[int]) -> dict[str, object]:
    plain: dict[str, object] = {}
    for key, item in value.items():
        name = _key(key, path)
        if name in plain:
            raise NotSerialisable(path, f"two keys that both become “{name}”")
        plain[name] = _plain(item, [*path, name], above)
    return plain


def _key(key: object, path: list[str | int]) -> str:
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, (bool, int, float)):
        return _no_number(key) if isinstance(key, float) and not math.isfinite(key) else json.dumps(key)
    text = None if isinstance(key, (tuple, frozenset)) else _converted(key, path)
    if isinstance(text, (str, int, float)):
        return _key(text, path)
    raise NotSerialisable(path, f"a key of type {_type_name(key)}")


def _no_number(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _converted(value: object, path: Sequence[str | int] = ()) -> object:
    """Takes one step from a Python object towards JSON; its parts may need further steps."""
    for fits, convert in _CONVERSIONS:
        if fits(type(value)):
            return convert(value)
    raise NotSerialisable(path, f"an object of type {_type_name(value)}")


def _converted_again(value: object) -> object:
    """As `_converted`, for an attempt that is repeated if it fails: what can be read only once is left alone."""
    if isinstance(value, Iterator):
        raise TypeError
    try:
        return _converted(value)
    except NotSerialisable as unfit:
        raise TypeError from unfit  # the second attempt knows where in the result it is


def _from_bytes(value: bytes | bytearray | memoryview) -> str:
    raw = bytes(value)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return base64.b64encode(raw).decode()


def _from_path(value: os.PathLike[str] | os.PathLike[bytes]) -> str:
    return os.fsdecode(value)


def _from_set(value: AbstractSet[Any]) -> list[object]:
    try:
        return sorted(value)
    except TypeError:
        return list(value)


def _from_dataclass(value: DataclassInstance) -> dict[str, object]:
    from dataclasses import fields

    return {field.name: getattr(value, field.name) for field in fields(value)}


def _from_duration(value: timedelta) -> str:
    """ISO 8601, as JSON Schema's format `duration` asks for."""
    length = abs(value)
    fraction = f".{length.microseconds:06}".rstrip("0") if length.microseconds else ""
    return f"{'-' if value.days < 0 else ''}P{length.days}DT{length.seconds}{fraction}S"


# The first that fits wins. Types of heavy modules are told by name or attribute, so that nothing is imported for them.
_CONVERSIONS: tuple[tuple[Callable[[type], bool], Callable[[Any], object]], ...] = (
    (lambda cls: issubclass(cls, Enum), lambda value: value.value),
    (lambda cls: issubclass(cls, (bytes, bytearray, memoryview)), _from_bytes),
    (lambda cls: issubclass(cls, os.PathLike), _from_path),
    (lambda cls: (cls.__module__, cls.__name__) in {("uuid", "UUID"), ("decimal", "Decimal")}, str),
    (lambda cls: hasattr(cls, "isoformat"), lambda value: value.isoformat()),
    (lambda cls: hasattr(cls, "total_seconds"), _from_duration),
    (lambda cls: hasattr(cls, "model_dump"), lambda value: value.model_dump(mode="json")),
    (lambda cls: hasattr(cls, "__dataclass_fields__"), _from_dataclass),
    (lambda cls: issubclass(cls, Mapping), dict),
    (lambda cls: issubclass(cls, AbstractSet), _from_set),
    (lambda cls: hasattr(cls, "tolist"), lambda value: value.tolist()),
    (lambda cls: issubclass(cls, (Sequence, ValuesView)), list),
    (lambda cls: issubclass(cls, Iterator) and not hasattr(cls, "fileno"), list),
)

_quick = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_converted_again).encode


def _type_name(value: object) -> str:
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _shown(path: Sequence[str | int]) -> str:
    steps = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" if step.isidentifier() else f"[{json.dumps(step)}]"
        for step in path
    )
    return steps or "the top"
