"""From JSON to what a function's annotations ask for."""

from __future__ import annotations

import builtins
import sys
from contextlib import contextmanager
from types import UnionType

from pegboard.data.pointer import pointer
from pegboard.sdk.host import log

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any  # arguments may be anything

    Annotation = Any  # what an author writes behind the colon may be anything

_NATIVE = {str, int, float, bool, list, dict, type(None), None, object}
_NATIVE_BY_NAME = {
    ("typing", "Any"),
    ("collections.abc", "Sequence"),
    ("collections.abc", "MutableSequence"),
    ("collections.abc", "Mapping"),
    ("collections.abc", "MutableMapping"),
    ("collections.abc", "Collection"),
    ("collections.abc", "Iterable"),
}
"""Types for which a JSON value does as it is, beside Python's own."""

_MAPPINGS = {("builtins", "dict"), ("collections.abc", "Mapping"), ("collections.abc", "MutableMapping")}
_LISTS = {("builtins", "list"), *_NATIVE_BY_NAME} - {("typing", "Any"), *_MAPPINGS}


class Unfit(Exception):  # noqa: N818 - it reads as a sentence where it is raised
    """Arguments that can't be made into what the function asks for; `.faults` has a path and a message of each."""

    def __init__(self, faults: Sequence[dict[str, str]]) -> None:
        super().__init__("; ".join(fault["message"] for fault in faults))
        self.faults = faults


class Parameters:
    """What a function's parameters ask for; most are content with JSON values as they are.

    Args:
        function: The function, decorated or not.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        inner = function
        while "__wrapped__" in getattr(inner, "__dict__", ()):
            inner = inner.__dict__["__wrapped__"]
        self._function = inner
        annotations = {
            name: _evaluated(annotation, inner)
            for name, annotation in getattr(inner, "__annotations__", {}).items()
            if name != "return"
        }
        self._integers = {name: mend for name, annotation in annotations.items() if (mend := _integers_in(annotation))}
        self._paths = {name: path for name, annotation in annotations.items() if (path := _path_type(annotation))}
        self._foreign = [
            name
            for name, annotation in annotations.items()
            if name not in self._paths and not isinstance(annotation, str) and not _is_native(annotation)
        ]
        defaults = _defaults_of(inner)
        self._fields = {name: value for name, value in defaults.items() if _is_field(value)}
        # `when: date = None`, as it is often written
        self._nullable = {name for name, value in defaults.items() if value is None}
        self._adapters: dict[str, Any] | None = None

    def fit(self, args: dict[str, Any]) -> dict[str, Any]:
        """Gives the keywords to call the function with.

        Args:
            args: A JSON object; changed in place.

        Raises:
            Unfit: Some don't fit; all of them at once.
        """
        for name, mend in self._integers.items():
            if name in args:
                args[name] = mend(args[name])
        for name, path in self._paths.items():
            if isinstance(args.get(name), str):
                args[name] = path(args[name])
        for name, field in self._fields.items():
            if name not in args:
                args[name] = field.get_default(call_default_factory=True)
        if self._foreign:
            self._convert(args)
        return args

    def _convert(self, args: dict[str, Any]) -> None:
        if self._adapters is None:
            self._adapters = _adapters(self._function, self._foreign)
        from pydantic import ValidationError

        faults: list[dict[str, str]] = []
        for name in self._adapters:
            if name not in args or (args[name] is None and name in self._nullable):
                continue
            try:
                args[name] = self._adapters[name].validate_python(args[name])
            except ValidationError as error:
                faults += [
                    {"path": _pointer((name, *wrong["loc"])), "message": wrong["msg"]}
                    for wrong in error.errors(include_url=False, include_context=False, include_input=False)
                ]
        if faults:
            raise Unfit(faults)


def _adapters(function: Callable[..., Any], names: Sequence[str]) -> dict[str, Any]:
    """Builds a converter for each of the named parameters; says so where pydantic has none."""
    import typing

    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

    try:
        annotations = typing.get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001 - an annotation runs the author's code; one that can't be had asks for nothing
        annotations = {name: _evaluated(function.__annotations__[name], function) for name in names}
    adapters = {}
    with _typed_dicts_for_pydantic():
        for name in names:
            try:
                adapters[name] = TypeAdapter(annotations[name])
            except (PydanticUserError, PydanticUndefinedAnnotation, TypeError, NameError) as error:
                reason = str(error).partition("\n")[0]
                log(f"{function.__name__} gets {name} as JSON has it, as it can't be made into its type: {reason}")
    return adapters


@contextmanager
def _typed_dicts_for_pydantic() -> Iterator[None]:
    """Lets pydantic take every TypedDict, wherever it stands in a type.

    Before Python 3.12 it takes only those of `typing_extensions`, as those of `typing` may not know what they inherited
    from a generic one; it tells them by the module of their metaclass.
    """
    if sys.version_info >= (3, 12):
        yield
        return
    from typing import TypedDict

    class Example(TypedDict):
        pass

    metaclass = type(Example)
    module = metaclass.__module__
    metaclass.__module__ = "typing_extensions"
    try:
        yield
    finally:
        metaclass.__module__ = module


def _evaluated(annotation: Annotation, function: Callable[..., Any]) -> Annotation:
    """Gives what an annotation written as text stands for, or the text where that can't be had."""
    if not isinstance(annotation, str):
        return annotation
    names = getattr(function, "__globals__", {})
    if annotation.isidentifier():
        return names.get(annotation, getattr(builtins, annotation, annotation))
    try:
        return eval(annotation, names)  # noqa: S307 - the pack's own text, in the pack's own process
    except Exception:  # noqa: BLE001 - an annotation runs the author's code; one that can't be had asks for nothing
        return annotation


def _integers_in(annotation: Annotation) -> Callable[[Any], Any] | None:
    """Gives what makes 3.0 into 3 wherever the annotation asks for an integer, as both are one to JSON Schema.

    None where it asks for none. What the value has in place of a list or an object is left as it is.
    """
    if hasattr(annotation, "__metadata__"):
        return _integers_in(annotation.__origin__)
    if annotation is int:
        return _integer
    if _is_union(annotation):
        return _integers_in_either(annotation.__args__)
    if isinstance(annotation, type) and hasattr(annotation, "__total__"):
        return _integers_in_fields(annotation)
    called = _called(getattr(annotation, "__origin__", None))
    args: tuple[Annotation, ...] = getattr(annotation, "__args__", ())
    if called in _MAPPINGS and len(args) == 2:
        return _integers_in_values(args[1])
    if called in _LISTS and len(args) == 1:
        return _integers_in_items(args[0])
    return None


def _integer(value: object) -> object:
    return int(value) if type(value) is float and value.is_integer() else value


def _integers_in_items(annotation: Annotation) -> Callable[[Any], Any] | None:
    mend = _integers_in(annotation)
    if mend is None:
        return None

    def mend_items(value: object) -> object:
        if not isinstance(value, list) or (mend is _integer and float not in set(map(type, value))):
            return value
        return [mend(item) for item in value]

    return mend_items


def _integers_in_values(annotation: Annotation) -> Callable[[Any], Any] | None:
    mend = _integers_in(annotation)
    return mend and (
        lambda value: {key: mend(item) for key, item in value.items()} if isinstance(value, dict) else value
    )


def _integers_in_fields(annotation: Annotation) -> Callable[[Any], Any] | None:
    mends = {name: mend for name, field in annotation.__annotations__.items() if (mend := _integers_in(field))}
    return (mends or None) and (
        lambda value: (
            {key: mends[key](item) if key in mends else item for key, item in value.items()}
            if isinstance(value, dict)
            else value
        )
    )


def _integers_in_either(annotations: Sequence[Annotation]) -> Callable[[Any], Any] | None:
    """Mends by the first alternative that has integers where the value is such a number, list or object."""
    mends = [
        mend
        for annotation in annotations
        if (mend := _integers_in(annotation)) and not (mend is _integer and float in annotations)
    ]

    def mend_first(value: object) -> object:
        for mend in mends:
            mended = mend(value)
            if mended is not value:
                return mended
        return value

    return mend_first if mends else None


def _path_type(annotation: Annotation) -> Callable[[str], object] | None:
    """Gives the class of paths that is asked for: so common that pydantic is not loaded for it alone."""
    if _is_union(annotation) and len(annotation.__args__) == 2 and type(None) in annotation.__args__:
        annotation = next(arg for arg in annotation.__args__ if arg is not type(None))
    module, name = _called(annotation)
    is_path = module.partition(".")[0] == "pathlib" and name in {"Path", "PurePath"} and isinstance(annotation, type)
    return annotation if is_path else None


def _is_native(annotation: Annotation) -> bool:
    """Whether every JSON value that fits the annotation's schema already is what it asks for."""
    metadata = getattr(annotation, "__metadata__", None)
    if metadata is not None:
        return _is_native(annotation.__origin__) and not any(hasattr(item, "func") for item in metadata)
    if _is_union(annotation):
        return all(map(_is_native, annotation.__args__))
    origin = getattr(annotation, "__origin__", None)
    if origin is not None and _called(annotation) == ("typing", "Literal"):
        return all(type(value) in _NATIVE for value in annotation.__args__)
    if _called(origin) in _MAPPINGS and len(annotation.__args__) == 2:
        key, value = annotation.__args__
        return _takes_any_text(key) and _is_native(value)
    if origin is not None:
        return _is_native(origin) and all(map(_is_native, annotation.__args__))
    if isinstance(annotation, type) and hasattr(annotation, "__total__"):
        return all(isinstance(field, type) and _is_native(field) for field in annotation.__annotations__.values())
    return _is_one_of(annotation)


def _takes_any_text(key: Annotation) -> bool:
    return key is str or _called(key) == ("typing", "Any")


def _is_one_of(annotation: Annotation) -> bool:
    try:
        return annotation in _NATIVE or _called(annotation) in _NATIVE_BY_NAME
    except TypeError:  # not hashable
        return False


def _called(annotation: Annotation) -> tuple[str, str]:
    name = getattr(annotation, "_name", None) or getattr(annotation, "__name__", "")
    return getattr(annotation, "__module__", ""), str(name)


def _is_union(annotation: Annotation) -> bool:
    return isinstance(annotation, UnionType) or _called(annotation) in {("typing", "Union"), ("typing", "Optional")}


def _defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    code = getattr(function, "__code__", None)
    defaults = dict(getattr(function, "__kwdefaults__", None) or {})
    positional = getattr(function, "__defaults__", None) or ()
    if code is not None and positional:
        names = code.co_varnames[: code.co_argcount]
        defaults.update(zip(names[-len(positional) :], positional, strict=True))
    return defaults


def _is_field(default: object) -> bool:
    """Whether a default is written as pydantic's `Field(…)`, which Python would pass on as it is."""
    return _called(type(default)) == ("pydantic.fields", "FieldInfo")


def _pointer(path: Sequence[str | int]) -> str:
    if path[-1] == "[key]":  # so says pydantic where it is the key itself that doesn't fit
        path = path[:-1]
    return pointer(*path)
