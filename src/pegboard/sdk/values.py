"""Conversion of return values to JSON."""

from __future__ import annotations

import base64
import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from enum import Enum

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from typing import Any  # tools return any value

    from _typeshed import DataclassInstance

DEPTH = 150
"""Maximum nesting of a result; later stages fail soon beyond it."""

_BIGGEST_INT_BITS = 14_000  # Python writes integers of at most 4,300 digits as text
_SCALARS = frozenset({str, int, float, bool, type(None)})
_KEY_OF_OTHER_TYPE = re.compile(r'"(?:-?[0-9][0-9.e+-]*|null|true|false)":')
"""Key that may not have been text. Searching for one takes a tenth of the time of writing the text."""

_LONE_SURROGATES = re.compile("[\ud800-\udfff]+")
_PRIVATE_PACKAGE = re.compile(r"^_(?:pegboard_)?packs_\d+\.")
"""Prefix that the import of a packs folder adds to the names of its modules."""


class _UnwritableError(Exception):
    """An image can't be written; the message is the reason."""


class NotSerializableError(Exception):
    """A value has no JSON form. The message contains the reason and path, and `fault` only these two."""

    def __init__(self, path: Sequence[str | int], reason: str) -> None:
        self.fault = f"{reason} at {_shown(path)}"
        super().__init__(f"The result can't be converted to JSON: {self.fault}.")


def encode(value: object) -> bytes:
    """Return a value as JSON in UTF-8.

    Dataclasses, pydantic models and mappings become objects. Tuples, sets, iterators and arrays become lists; sets are
    sorted if possible. Enumeration members become their values. Dates, paths, UUIDs, decimals, fractions, addresses,
    NaN and the infinities become text, and so do keys. Bytes become text, or base64 if they are not UTF-8. A series
    becomes a list. One with labels becomes an object, or a list of pairs if a label repeats; one with several levels of
    labels is a table. A table of pandas, Polars or Arrow becomes a list of objects; labels of rows become columns, and
    missing values of pandas null. Rows of databases, attrs classes and msgspec structures become objects. Images and
    figures become MCP's object for an image, with `type`, `mimeType` and `data` as base64.

    Raises:
        NotSerializableError: A part has no JSON form, contains itself, or is nested too deeply.
    """
    try:
        text = _quick(value)
    except (TypeError, ValueError, RecursionError):
        text = _thorough(value)
    is_deep = text.count("[") + text.count("{") > DEPTH and not _is_shallow(value)
    if is_deep or (_KEY_OF_OTHER_TYPE.search(text) and _repeats_key(text)):
        text = _thorough(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        text = _without_surrogates(text)
    return (_thorough(value) if _repeats_key(text) else text).encode()


def _thorough(value: object) -> str:
    try:
        return _quick(_plain(value, [], set()))
    except RecursionError:
        raise NotSerializableError((), "an infinitely nested object") from None


def _is_shallow(value: object) -> bool:
    """Return whether a value is certainly not nested too deeply; False if it contains other types than JSON's."""
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


def _repeats_key(text: str) -> bool:
    """Return whether an object in a JSON text has the same key twice, because keys became other text."""
    repeated = False

    def check(pairs: list[tuple[str, object]]) -> None:
        nonlocal repeated
        repeated |= len(dict(pairs)) < len(pairs)

    json.loads(text, object_pairs_hook=check)
    return repeated


def _without_surrogates(text: str) -> str:
    return _LONE_SURROGATES.sub(_replace_surrogates, text)


def _replace_surrogates(found: re.Match[str]) -> str:
    # pairs become the character that they encode; lone surrogates have no UTF-8 form
    return found[0].encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _plain(value: object, path: list[str | int], above: set[int]) -> object:
    """Return the value in JSON's types, or raise an error with the path of a part that has no JSON form."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return _bounded(value, path)
    if isinstance(value, float):
        return value if math.isfinite(value) else _nonfinite(value)
    if id(value) in above:
        raise NotSerializableError(path, "an object that contains itself")
    if isinstance(value, (dict, list, tuple)) and len(path) >= DEPTH:
        raise NotSerializableError(path[:5], f"an object nested deeper than {DEPTH} levels")
    above.add(id(value))
    try:
        if isinstance(value, dict):
            return _plain_object(value, path, above)
        if isinstance(value, (list, tuple)):
            return [_plain(item, [*path, index], above) for index, item in enumerate(value)]
        return _plain(_convert(value, path), path, above)
    finally:
        above.discard(id(value))


def _bounded(value: int, path: Sequence[str | int]) -> int:
    if value.bit_length() > _BIGGEST_INT_BITS:
        raise NotSerializableError(path, "an integer of more than 4,300 digits")
    return value


def _plain_object(value: dict[object, object], path: list[str | int], above: set[int]) -> dict[str, object]:
    plain: dict[str, object] = {}
    for key, item in value.items():
        name = _key(key, path)
        if name in plain:
            raise NotSerializableError(path, f"two keys that both become “{name}”")
        plain[name] = _plain(item, [*path, name], above)
    return plain


def _key(key: object, path: list[str | int]) -> str:
    if isinstance(key, str):
        return _without_surrogates(key)
    if _is_missing(type(key)):
        return _key(None, path)
    if isinstance(key, float) and not math.isfinite(key):
        return _nonfinite(key)
    if key is None or isinstance(key, (bool, int, float)):
        return json.dumps(_bounded(key, path) if isinstance(key, int) else key)
    text = None if isinstance(key, (tuple, frozenset)) else _convert(key, path)
    if isinstance(text, (str, int, float)):
        return _key(text, path)
    raise NotSerializableError(path, f"a key of type {_type_name(key)}")


def _nonfinite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _convert(value: object, path: Sequence[str | int] = ()) -> object:
    """Convert a Python object to a type closer to JSON; its parts may need further conversion."""
    for fits, convert in _CONVERSIONS:
        if fits(type(value)):
            try:
                return convert(value)
            except _UnwritableError as error:
                raise NotSerializableError(path, str(error)) from error.__cause__
    raise NotSerializableError(path, f"an object of type {_type_name(value)}")


def _convert_repeatably(value: object) -> object:
    """Convert like `_convert`, but reject iterators: they can't be read again in the second attempt."""
    if isinstance(value, Iterator):
        raise TypeError
    try:
        return _convert(value)
    except NotSerializableError as unfit:
        raise TypeError from unfit  # the second attempt knows the path


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


def _from_model(value: Any) -> object:  # noqa: ANN401 - pydantic is too heavy to import for this
    try:
        return value.model_dump(mode="json")
    except ValueError:  # it contains bytes that aren't UTF-8, or an object without a serializer of its own
        return value.model_dump()


def _from_dataclass(value: DataclassInstance) -> dict[str, object]:
    from dataclasses import fields

    return {field.name: getattr(value, field.name) for field in fields(value)}


def _from_series(value: Any) -> object:  # noqa: ANN401 - pandas is not a dependency
    if getattr(value.index, "nlevels", 1) > 1:  # such as the sizes of groups by two columns
        return _from_frame(value.to_frame())
    labels, items = value.index.tolist(), _without_missing(value)
    if labels == list(range(len(value))):  # numbered, not labeled
        return items
    pairs = zip(labels, items, strict=True)
    return dict(pairs) if value.index.is_unique else list(pairs)


def _without_missing(value: Any) -> list[object]:  # noqa: ANN401 - pandas is not a dependency
    """Return the items of a series, an index or an array of pandas, with None for those that are missing."""
    items: list[object] = value.tolist()
    missing = value.isna().tolist() if hasattr(value, "isna") else [False] * len(items)
    return [None if gone else item for item, gone in zip(items, missing, strict=True)]


def _is_labels(cls: type) -> bool:
    """Return whether a class is an index or an array of pandas; `isna` rejects an index of several levels."""
    return hasattr(cls, "isna") and hasattr(cls, "tolist") and cls.__name__ != "MultiIndex"


def _is_missing(cls: type) -> bool:
    return cls.__name__ in {"NAType", "NaTType"} and cls.__module__.partition(".")[0] == "pandas"


def _from_array(value: Any) -> object:  # noqa: ANN401 - NumPy is not a dependency
    kind, names = (getattr(getattr(value, "dtype", None), name, None) or "" for name in ("kind", "names"))
    if names:  # a structured array or one of its rows, of which `tolist` would return only the values
        return list(value) if value.shape else {name: value[name] for name in names}
    is_time = kind in {"m", "M"} and type(value).__module__.startswith("numpy")
    if is_time and value.dtype.str.endswith(_FINER_THAN_PYTHON):
        value = value.astype(f"{kind}8[us]")  # `tolist` would return integers
    items: Any = value.tolist()
    if kind in {"f", "c"} and type(items) is type(value):  # a long double of NumPy
        return float(items) if kind == "f" else complex(items)
    objects = list(getattr(value, "flat", ())) if kind == "O" else []
    if not objects or not all(hasattr(item, "get_figure") for item in objects):
        return items
    # axes of one figure, such as those of pandas' `plot(subplots=True)`
    figures = list({id(figure): figure for figure in (axes.get_figure() for axes in objects)}.values())
    return figures[0] if len(figures) == 1 else figures


def _from_frame(value: Any) -> list[dict[str, object]]:  # noqa: ANN401 - pandas is not a dependency
    if value.index.nlevels > 1 or value.index.name is not None or value.index.dtype.kind not in "iu":
        value = value.reset_index(allow_duplicates=True)  # labels, not only positions
    names: dict[str, None] = {}
    for label in value.columns.tolist():
        parts = [str(part) for part in label if part != ""] if isinstance(label, tuple) else [str(label)]
        name = first = ".".join(parts)
        number = 1
        while name in names:  # an object can't repeat a key
            number += 1
            name = f"{first}.{number}"
        names[name] = None
    filled = value.astype(object).where(value.notna(), None)
    return [dict(zip(names, row, strict=True)) for row in filled.itertuples(index=False, name=None)]


def _from_fields(value: Any) -> dict[str, object]:  # noqa: ANN401 - msgspec and attrs are not dependencies
    names = getattr(value, "__struct_fields__", None) or [field.name for field in value.__attrs_attrs__]
    return {name: getattr(value, name) for name in names}


def _from_duration(value: timedelta) -> str:
    """Return a duration in ISO 8601, the format `duration` of JSON Schema."""
    length = abs(value)
    fraction = f".{length.microseconds:06}".rstrip("0") if length.microseconds else ""
    return f"{'-' if value.days < 0 else ''}P{length.days}DT{length.seconds}{fraction}S"


def _image(kind: str, raw: bytes | str) -> dict[str, str]:
    data = raw if isinstance(raw, str) else base64.b64encode(raw).decode()
    return {"type": "image", "mimeType": kind, "data": data}


def _displays_image(cls: type) -> bool:
    return callable(getattr(cls, "_repr_png_", None)) or callable(getattr(cls, "_repr_jpeg_", None))


def _from_displayed(value: Any) -> dict[str, str]:  # noqa: ANN401 - IPython's display protocol
    reason, cause = f"an object of type {_type_name(value)} that can't be saved as PNG or JPEG", None
    for name, kind in (("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg")):
        method = getattr(value, name, None)
        try:
            shown = method() if callable(method) else None
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - the author's code may raise anything
            reason, cause = _unwritable(value, error), error
            continue
        raw = shown[0] if isinstance(shown, tuple) and shown else shown  # the protocol allows metadata beside it
        if isinstance(raw, (bytes, str)) and raw:
            return _image(kind, raw)
    raise _UnwritableError(reason) from cause


def _from_figure(value: Any) -> dict[str, str]:  # noqa: ANN401 - matplotlib is not a dependency
    from io import BytesIO

    target = BytesIO()
    try:
        value.savefig(target, format="png")
    except MemoryError:
        raise
    except Exception as error:
        raise _UnwritableError(_unwritable(value, error)) from error
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:  # otherwise it would keep the figures of all calls
        pyplot.close(getattr(value, "figure", value))
    return _image("image/png", target.getvalue())


def _unwritable(value: object, error: Exception) -> str:
    return f"an object of type {_type_name(value)} that can't be saved as an image ({type(error).__name__}: {error})"


_FINER_THAN_PYTHON = ("ns]", "ps]", "fs]", "as]")
"""Ends of the names of NumPy's types of times and durations that `datetime` can't hold."""

_WRITTEN_AS_TEXT = {
    ("uuid", "UUID"),
    ("decimal", "Decimal"),
    ("fractions", "Fraction"),
    ("zoneinfo", "ZoneInfo"),
    ("pandas", "Period"),
    ("pandas", "Interval"),
    ("pydantic", "SecretStr"),
}

# The first match applies. Types of slow modules are recognized by name or attribute, without importing them.
_CONVERSIONS: tuple[tuple[Callable[[type], bool], Callable[[Any], object]], ...] = (
    (lambda cls: issubclass(cls, Enum), lambda value: value.value),
    (lambda cls: issubclass(cls, (bytes, bytearray, memoryview)), _from_bytes),
    (lambda cls: issubclass(cls, os.PathLike), _from_path),
    (lambda cls: (cls.__module__.partition(".")[0], cls.__name__) in _WRITTEN_AS_TEXT, str),
    (lambda cls: cls.__module__ in {"ipaddress", "pydantic.networks"}, str),
    (lambda cls: issubclass(cls, complex), lambda value: str(value).strip("()")),  # as pydantic writes it
    (_is_missing, lambda value: None),
    (lambda cls: hasattr(cls, "isoformat"), lambda value: value.isoformat()),
    (lambda cls: hasattr(cls, "total_seconds"), _from_duration),
    (lambda cls: hasattr(cls, "to_image_content"), lambda value: value.to_image_content()),
    (
        lambda cls: cls.__name__ == "ImageContent" and hasattr(cls, "model_dump"),
        lambda value: value.model_dump(mode="json", by_alias=True, exclude_none=True),
    ),
    (lambda cls: hasattr(cls, "model_dump"), _from_model),
    (lambda cls: hasattr(cls, "__dataclass_fields__"), _from_dataclass),
    (lambda cls: hasattr(cls, "__attrs_attrs__") or hasattr(cls, "__struct_fields__"), _from_fields),
    (lambda cls: issubclass(cls, Mapping), dict),
    (lambda cls: hasattr(cls, "to_dicts"), lambda value: value.to_dicts()),  # Polars
    (lambda cls: hasattr(cls, "to_pylist"), lambda value: value.to_pylist()),  # Arrow
    (lambda cls: hasattr(cls, "itertuples") and hasattr(cls, "to_dict"), _from_frame),  # pandas
    (lambda cls: hasattr(cls, "tolist") and hasattr(cls, "to_dict"), _from_series),  # has `keys`, too
    (lambda cls: hasattr(cls, "_asdict"), lambda value: value._asdict()),  # SQLAlchemy; a tuple is a list before this
    (lambda cls: callable(getattr(cls, "keys", None)) and hasattr(cls, "__getitem__"), dict),  # sqlite3
    (lambda cls: issubclass(cls, AbstractSet), _from_set),
    (_is_labels, _without_missing),
    (lambda cls: hasattr(cls, "tolist"), _from_array),
    (lambda cls: hasattr(cls, "to_list"), lambda value: value.to_list()),  # series of Polars
    (lambda cls: issubclass(cls, (Sequence, ValuesView)), list),
    (lambda cls: issubclass(cls, Iterator) and not hasattr(cls, "fileno"), list),
    (lambda cls: hasattr(cls, "savefig"), _from_figure),
    (_displays_image, _from_displayed),
    (lambda cls: hasattr(cls, "get_figure"), lambda value: value.get_figure()),  # axes, which pandas' plots return
)

_quick = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_convert_repeatably
).encode


def _type_name(value: object) -> str:
    cls = type(value)
    module = _PRIVATE_PACKAGE.sub("", cls.__module__)
    return cls.__qualname__ if module == "builtins" else f"{module}.{cls.__qualname__}"


def _shown(path: Sequence[str | int]) -> str:
    steps = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" if step.isidentifier() else f"[{json.dumps(step)}]"
        for step in path
    )
    return steps or "the top"
