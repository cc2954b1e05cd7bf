"""Parts of annotations, recognized by name: the worker doesn't import `typing` and libraries for this."""

from __future__ import annotations

from types import UnionType

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any  # annotations may be any object

    Annotation = Any

MAPPINGS = {("builtins", "dict"), ("collections.abc", "Mapping"), ("collections.abc", "MutableMapping")}
"""Types of JSON objects with any keys."""

LISTS = {
    ("builtins", "list"),
    ("collections.abc", "Sequence"),
    ("collections.abc", "MutableSequence"),
    ("collections.abc", "Collection"),
    ("collections.abc", "Iterable"),
}
"""Types of JSON lists."""

_CONVERTING = ("func", "__get_pydantic_core_schema__", "strip_whitespace", "to_lower", "to_upper")
"""Attributes of arguments of `Annotated` that change a value: validators, encodings, and options of strings."""


def called(annotation: Annotation) -> tuple[str, str]:
    """Return the module and the name of a type."""
    name = getattr(annotation, "_name", None) or getattr(annotation, "__name__", "")
    return getattr(annotation, "__module__", ""), str(name)


def is_union(annotation: Annotation) -> bool:
    """Return whether an annotation is `X | Y`, `Union` or `Optional`."""
    return isinstance(annotation, UnionType) or called(annotation) in {("typing", "Union"), ("typing", "Optional")}


def arguments_of(annotation: Annotation) -> tuple[Annotation, ...]:
    """Return the types in the brackets of an annotation; those of `typing` without brackets have no such attribute."""
    args: tuple[Annotation, ...] = getattr(annotation, "__args__", ())
    return args


def without_none(annotation: Annotation) -> Annotation:
    """Return `X` of `X | None`, otherwise the annotation."""
    args = arguments_of(annotation)
    if is_union(annotation) and len(args) == 2 and type(None) in args:
        return next(arg for arg in args if arg is not type(None))
    return annotation


def converts(metadata: Iterable[object]) -> bool:
    """Return whether one of the arguments of `Annotated` changes a value, such as a validator."""
    return any(getattr(item, name, None) for item in metadata for name in _CONVERTING)
