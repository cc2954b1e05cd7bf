"""Parts of annotations, recognized by name: the worker doesn't import `typing` and libraries for this."""

from __future__ import annotations

from operator import is_
from types import UnionType

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
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

_ANY_LISTS = {("collections.abc", name) for name in ("Collection", "Container", "Iterable", "Iterator", "Reversible")}
"""Types of JSON lists that pydantic doesn't support, or passes as an iterator that can be read only once."""

_ITERATOR = ("collections.abc", "Iterator")

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


def with_lists(annotation: Annotation) -> Annotation:
    """Return an annotation with `list` in place of types such as `Iterable`, so that pydantic makes lists of them.

    Values of type `Iterator` become iterators of such lists.
    """
    metadata = getattr(annotation, "__metadata__", None)
    if metadata is not None:
        inner = with_lists(annotation.__origin__)
        return annotation if inner is annotation.__origin__ else annotation.copy_with((inner,))
    origin = called(getattr(annotation, "__origin__", None))
    args = arguments_of(annotation)
    if not _ANY_LISTS.isdisjoint((called(annotation), origin)):
        listed = list[with_lists(args[0])] if len(args) == 1 else list  # type: ignore[misc] # not a static type
        return _as_iterator(listed) if _ITERATOR in (called(annotation), origin) else listed
    changed = tuple(map(with_lists, args))
    if origin == ("collections.abc", "Callable") or all(map(is_, changed, args)):
        return annotation
    return _rebuilt(annotation, changed)


def _as_iterator(annotation: Annotation) -> Annotation:
    from typing import Annotated

    from pydantic import AfterValidator

    return Annotated[annotation, AfterValidator(iter)]


def _rebuilt(annotation: Annotation, args: Sequence[Annotation]) -> Annotation:
    """Return an annotation with other types in its brackets."""
    if is_union(annotation):
        from typing import Union

        return Union[tuple(args)]  # noqa: UP007 - the number of types varies
    copy_with = getattr(annotation, "copy_with", None)  # those of `typing`
    return copy_with(args) if copy_with else annotation.__origin__[args]
