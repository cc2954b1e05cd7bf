"""Tables, series and arrays of libraries as arguments."""

from __future__ import annotations

import sys
from functools import partial

from pegboard.sdk.annotations import LISTS, MAPPINGS, arguments_of, called, converts, without_none

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any  # annotations may be any object

    Annotation = Any
    Converter = Callable[[Any], Any]

_ARRAY = ("numpy", "ndarray")

_TABLES = {
    ("pandas", "DataFrame"),
    ("pandas", "Series"),
    ("polars", "DataFrame"),
    ("polars", "Series"),
}
"""Types besides arrays that JSON lists and objects are converted to, which pydantic doesn't know."""


def table_converter(annotation: Annotation) -> Converter | None:
    """Return a function that makes the annotated tables, series and arrays from lists and objects.

    They can be items of a list or values of an object. The function returns values of other types unchanged. For an
    annotation without such a type, return None.
    """
    annotation = without_none(annotation)
    metadata = getattr(annotation, "__metadata__", None)
    if metadata is not None:
        return None if converts(metadata) else table_converter(annotation.__origin__)
    origin = called(getattr(annotation, "__origin__", None))
    args = arguments_of(annotation)
    if origin in LISTS and len(args) == 1:
        return _of_items(table_converter(args[0]))
    if origin in MAPPINGS and len(args) == 2 and args[0] is str:
        return _of_values(table_converter(args[1]))
    make = _array_maker(annotation, origin, args) or _maker(annotation)
    return make and (lambda value: make(value) if isinstance(value, list | dict) else value)


def _maker(annotation: Annotation) -> Converter | None:
    module, name = called(annotation)
    library = module.partition(".")[0]
    return annotation if isinstance(annotation, type) and (library, name) in _TABLES else None


def _array_maker(annotation: Annotation, origin: tuple[str, str], args: Sequence[Annotation]) -> Converter | None:
    """Return the function that makes an array of NumPy with the element type of `NDArray[…]`, if it is concrete."""
    names = [(module.partition(".")[0], name) for module, name in (origin, called(annotation))]
    if ("numpy", "NDArray") in names:  # an alias of its own since NumPy 2.5
        elements = args
    elif _ARRAY in names:
        elements = arguments_of(args[-1]) if args else ()
    else:
        return None
    kind = elements[0] if elements else None
    is_concrete = isinstance(kind, type) and kind.__module__ == "numpy" and not kind.__subclasses__()
    return partial(sys.modules["numpy"].asarray, **({"dtype": kind} if is_concrete else {}))


def _of_items(convert: Converter | None) -> Converter | None:
    return convert and (lambda value: [convert(item) for item in value] if isinstance(value, list) else value)


def _of_values(convert: Converter | None) -> Converter | None:
    return convert and (
        lambda value: {key: convert(item) for key, item in value.items()} if isinstance(value, dict) else value
    )
