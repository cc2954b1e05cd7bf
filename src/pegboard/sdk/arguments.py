"""Conversion of JSON arguments to the types of a function's annotations."""

from __future__ import annotations

import builtins
import sys
from types import CodeType

from pegboard.sdk.annotations import (
    LISTS,
    MAPPINGS,
    arguments_of,
    called,
    converts,
    is_union,
    with_lists,
    without_none,
)
from pegboard.sdk.layers import is_partial, keywords_of_validated_call, layers
from pegboard.sdk.tables import table_converter
from pegboard.sdk.typed_dicts import typed_dicts_for_pydantic

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any  # arguments have any type

    Annotation = Any  # annotations may be any object
    Path = tuple[str | int, ...]

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
"""Types besides Python's own whose JSON values need no conversion."""

_VARARGS, _VARKEYWORDS = 4, 8
"""Flags of code objects, as in `inspect`, which is slow to import."""

_MOST_QUOTES = 3
"""Quotes around an annotation: its own, those of `from __future__ import annotations`, those of an alias."""


class ConversionError(Exception):
    """Arguments can't be converted to the annotated types; `faults` contains the path and message of each."""

    def __init__(self, faults: Sequence[tuple[Path, str]]) -> None:
        super().__init__("; ".join(f"{_readable(path)}: {message}" for path, message in faults))
        self.faults = faults


class Parameters:
    """Converter for the arguments of one function. Most parameters need no conversion.

    Args:
        function: Function, possibly decorated.
        name: Name of the tool's function in its pack.
        log: Function that shows a message, for parameters of unsupported types.
    """

    def __init__(self, function: Callable[..., Any], name: str, log: Callable[[str], None]) -> None:
        self._log = log
        passed: dict[str, Any] = function.keywords if is_partial(function) else {}  # type: ignore[attr-defined]
        functions = layers(function, name)
        inner = self._function = functions[-1]
        annotations = {
            name: _evaluated(annotation, inner)
            for name, annotation in _annotations_of(inner).items()
            if name != "return"
        }
        self._named, self._rest = _names_of(inner)
        if self._rest in annotations:
            annotations[self._rest] = _of_keywords(annotations[self._rest])
        else:
            self._rest = None
        self._integers = {
            name: convert for name, annotation in annotations.items() if (convert := _integer_converter(annotation))
        }
        self._paths = {name: path for name, annotation in annotations.items() if (path := _path_type(annotation))}
        self._tables = {
            name: convert for name, annotation in annotations.items() if (convert := table_converter(annotation))
        }
        known = {name: annotation for name, annotation in annotations.items() if not isinstance(annotation, str)}
        self._foreign = [
            name
            for name, annotation in known.items()
            if name not in self._paths.keys() | self._tables.keys() and not _is_native(annotation)
        ]
        self._native = {
            name: annotation for name, annotation in known.items() if name not in {*self._tables, *self._foreign}
        }
        defaults = {name: value for name, value in _defaults_of(inner).items() if name not in passed}
        self._fields = {name: field for name, value in defaults.items() if (field := _field(value)) is not None}
        self._keywords = keywords_of_validated_call(functions, annotations, defaults)
        # `when: date = None` is common
        self._nullable = {
            name
            for name, value in defaults.items()
            if (self._fields[name].default if name in self._fields else value) is None
        }
        self._adapters: dict[str, Any] = {}

    def fit(self, args: dict[str, Any], *, check: bool = False) -> dict[str, Any]:
        """Return the keyword arguments for the function.

        Args:
            args: Arguments as JSON; changed in place.
            check: Whether to check arguments that need no conversion, too, because no schema was applied to them.

        Raises:
            ConversionError: Some arguments can't be converted. It lists all of them.
        """
        if self._rest is not None:  # further keywords are converted as one object
            args[self._rest] = {name: args.pop(name) for name in list(args) if name not in self._named}
        missing = [name for name in self._fields if name not in args]
        required = [name for name in missing if self._fields[name].is_required()]
        if required:
            raise ConversionError([((name,), "is required") for name in required])
        defaults = {name: self._fields[name].get_default(call_default_factory=True) for name in missing}
        args |= {name: value for name, value in defaults.items() if self._fields[name].validate_default}
        for name, convert in self._integers.items():
            if name in args:
                args[name] = convert(args[name])
        if check:
            self._check({name: value for name, value in args.items() if name not in defaults})
        for name, path in self._paths.items():
            if isinstance(args.get(name), str):
                args[name] = path(args[name])
        self._make_tables(args)
        self._convert(args)
        if self._rest is not None:
            args |= args.pop(self._rest)
        return {self._keywords.get(name, name): value for name, value in {**defaults, **args}.items()}

    def _make_tables(self, args: dict[str, Any]) -> None:
        faults: list[tuple[Path, str]] = []
        for name, convert in self._tables.items():
            if name in args:
                try:
                    args[name] = convert(args[name])
                except Exception as error:  # noqa: BLE001 - the libraries raise exceptions of their own
                    faults.append(((name,), str(error)))
        if faults:
            raise ConversionError(faults)

    def _check(self, args: dict[str, Any]) -> None:
        constrained = self._constraints(self._native)
        names = {
            name: constraints
            for name, constraints in constrained.items()
            if name in args and (constraints or type(args[name]) is not self._native[name])
        }
        if names:
            self._apply(_adapters(self._function, names, self._rest, self._log), args, _checked)

    def _convert(self, args: dict[str, Any]) -> None:
        # not those of parameters that are never passed, such as the context of an agent framework
        if names := [name for name in self._foreign if name in args]:
            self._foreign = [name for name in self._foreign if name not in args]
            self._adapters |= _adapters(self._function, self._constraints(names), self._rest, self._log)
        if self._adapters:
            self._apply(self._adapters, args, _converted)

    def _constraints(self, names: Iterable[str]) -> dict[str, Sequence[object]]:
        return {name: self._fields[name].metadata if name in self._fields else () for name in names}

    def _apply(
        self, adapters: Mapping[str, Any], args: dict[str, Any], change: Callable[[Annotation, object], object]
    ) -> None:
        from pydantic import ValidationError

        faults: list[tuple[Path, str]] = []
        for name in adapters:
            if name not in args or (args[name] is None and name in self._nullable):
                continue
            try:
                args[name] = change(adapters[name], args[name])
            except ValidationError as error:
                within = () if name == self._rest else (name,)
                faults += [
                    (
                        (*within, *_path(wrong["loc"], args[name], wrong["type"])),
                        wrong["msg"].removeprefix("Value error, "),
                    )
                    for wrong in error.errors(include_url=False, include_context=False, include_input=False)
                ]
        if faults:
            raise ConversionError(list(dict.fromkeys(faults)))


def _checked(adapter: Annotation, value: object) -> object:
    """Return the value unchanged if it is JSON of the type, without conversions such as from text to a number.

    Raises:
        ValidationError: Pydantic rejects it.
    """
    import json

    adapter.validate_json(json.dumps(value), strict=True)
    return value


def _converted(adapter: Annotation, value: object) -> object:
    """Return the converted value. Strict types read JSON only from text, so a rejected value is tried as text, too.

    Raises:
        ValidationError: Pydantic rejects it.
    """
    import json

    from pydantic import ValidationError

    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        try:
            return adapter.validate_json(json.dumps(value))
        except ValidationError:
            raise error from None


def _adapters(
    function: Callable[..., Any],
    names: Mapping[str, Sequence[object]],
    rest: str | None,
    log: Callable[[str], None],
) -> dict[str, Any]:
    """Return pydantic's converters for these parameters, and log those that pydantic doesn't support.

    Args:
        function: Function.
        names: Names of the parameters, each with the constraints in its default.
        rest: Name of `**kwargs`, or None.
        log: Function that shows a message.
    """
    import typing
    import warnings

    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        annotations = typing.get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001 - annotations run the author's code; parameters without a known type are not converted
        found = _annotations_of(function)
        annotations = {name: _evaluated(found[name], function) for name in names}
    adapters = {}
    with typed_dicts_for_pydantic(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as that an alias has no effect here
        warnings.filterwarnings("error", message="Mixing V1 models")  # whose conversion fails for every value
        for name, constraints in names.items():
            try:
                annotation = _of_keywords(annotations[name]) if name == rest else annotations[name]
                annotation = with_lists(annotation)
                adapter = TypeAdapter(typing.Annotated[annotation, *constraints] if constraints else annotation)
                adapter.rebuild()  # does nothing if the type is complete; otherwise names the undefined part
            except (PydanticUserError, AttributeError, NameError, RecursionError, TypeError, UserWarning) as error:
                unknown = getattr(error, "code", None) == "schema-for-unknown-type" or isinstance(error, UserWarning)
                reason = "It contains a class without a JSON form." if unknown else str(error).partition("\n")[0]
                log(f"{function.__name__} receives {name} unconverted, because its type is not supported: {reason}")
            else:
                adapters[name] = adapter
    return adapters


def _annotations_of(function: Callable[..., Any]) -> dict[str, Annotation]:
    """Return the annotations of a function; those that use undefined names as text.

    Since Python 3.14, annotations are evaluated when they are read, and an undefined name is an error.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        read = get_annotations(function, format=Format.FORWARDREF)
        return {name: getattr(annotation, "__forward_arg__", annotation) for name, annotation in read.items()}
    annotations = getattr(function, "__annotations__", None)
    return annotations if isinstance(annotations, dict) else {}  # a mock has None


def _evaluated(annotation: Annotation, function: Callable[..., Any]) -> Annotation:
    """Return the object that a quoted annotation refers to, or the text if it can't be evaluated."""
    names = getattr(function, "__globals__", {})
    for _ in range(_MOST_QUOTES):
        if not isinstance(annotation, str):
            break
        if annotation.isidentifier():
            annotation = names.get(annotation, getattr(builtins, annotation, annotation))
            continue
        try:
            annotation = eval(annotation, names)  # noqa: S307 - the pack's own code in the pack's own process
        except Exception:  # noqa: BLE001 - annotations run the author's code; parameters without a known type are not converted
            break
    return annotation


def _integer_converter(annotation: Annotation) -> Callable[[Any], Any] | None:
    """Return a function that converts 3.0 to 3 at every integer in the annotation, or None if it contains no integer.

    JSON Schema treats both numbers as integers. The function returns values of other types unchanged.
    """
    if hasattr(annotation, "__metadata__"):
        return _integer_converter(annotation.__origin__)
    if annotation is int:
        return _integer
    if is_union(annotation):
        return _union_converter(arguments_of(annotation))
    if isinstance(annotation, type) and hasattr(annotation, "__total__"):
        return _fields_converter(annotation)
    origin = called(getattr(annotation, "__origin__", None))
    args = arguments_of(annotation)
    if origin in MAPPINGS and len(args) == 2:
        return _values_converter(args[1])
    if origin in LISTS and len(args) == 1:
        return _items_converter(args[0])
    return None


def _integer(value: object) -> object:
    return int(value) if type(value) is float and value.is_integer() else value


def _items_converter(annotation: Annotation) -> Callable[[Any], Any] | None:
    convert = _integer_converter(annotation)
    if convert is None:
        return None

    def convert_items(value: object) -> object:
        if not isinstance(value, list) or (convert is _integer and float not in set(map(type, value))):
            return value
        return [convert(item) for item in value]

    return convert_items


def _values_converter(annotation: Annotation) -> Callable[[Any], Any] | None:
    convert = _integer_converter(annotation)
    return convert and (
        lambda value: {key: convert(item) for key, item in value.items()} if isinstance(value, dict) else value
    )


def _fields_converter(annotation: Annotation) -> Callable[[Any], Any] | None:
    converters = {
        name: convert for name, field in annotation.__annotations__.items() if (convert := _integer_converter(field))
    }
    return (converters or None) and (
        lambda value: (
            {key: converters[key](item) if key in converters else item for key, item in value.items()}
            if isinstance(value, dict)
            else value
        )
    )


def _union_converter(annotations: Sequence[Annotation]) -> Callable[[Any], Any] | None:
    """Return a function that applies the first converter of the alternatives that changes the value."""
    converters = [
        convert
        for annotation in annotations
        if (convert := _integer_converter(annotation)) and not (convert is _integer and float in annotations)
    ]

    def convert_first(value: object) -> object:
        for convert in converters:
            converted = convert(value)
            if converted is not value:
                return converted
        return value

    return convert_first if converters else None


def _path_type(annotation: Annotation) -> Callable[[str], object] | None:
    """Return the annotated class of paths, or None; paths are common, and pydantic is slow to import."""
    annotation = without_none(annotation)
    module, name = called(annotation)
    is_path = module.partition(".")[0] == "pathlib" and name in {"Path", "PurePath"} and isinstance(annotation, type)
    return annotation if is_path else None


def _is_native(annotation: Annotation) -> bool:
    """Return whether JSON values that match the annotation's schema need no conversion."""
    metadata = getattr(annotation, "__metadata__", None)
    if metadata is not None:
        return _is_native(annotation.__origin__) and not converts(metadata)
    args = arguments_of(annotation)
    if is_union(annotation):
        return all(map(_is_native, args))
    origin = getattr(annotation, "__origin__", None)
    if origin is not None and called(annotation) == ("typing", "Literal"):
        return all(type(value) in _NATIVE for value in args)
    if called(origin) in MAPPINGS and len(args) == 2:
        key, value = args
        return _is_any_text(key) and _is_native(value)
    if origin is not None:
        return _is_native(origin) and all(map(_is_native, args))
    if isinstance(annotation, type) and hasattr(annotation, "__total__"):
        return all(isinstance(field, type) and _is_native(field) for field in annotation.__annotations__.values())
    return _is_one_of(annotation)


def _is_any_text(key: Annotation) -> bool:
    return key is str or called(key) == ("typing", "Any")


def _is_one_of(annotation: Annotation) -> bool:
    try:
        return annotation in _NATIVE or called(annotation) in _NATIVE_BY_NAME
    except TypeError:  # not hashable
        return False


def _defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    code = _code_of(function)
    defaults = dict(getattr(function, "__kwdefaults__", None) or {})
    positional = getattr(function, "__defaults__", None) or ()
    if code is not None and positional:
        names = code.co_varnames[: code.co_argcount]
        defaults.update(zip(names[-len(positional) :], positional, strict=True))
    return defaults


def _code_of(function: Callable[..., Any]) -> CodeType | None:
    code = getattr(function, "__code__", None)
    return code if type(code) is CodeType else None  # a mock only pretends to have one


def _names_of(function: Callable[..., Any]) -> tuple[tuple[str, ...], str | None]:
    """Return the names of a function's parameters without `*args` and `**kwargs`, and the name of the latter."""
    code = _code_of(function)
    if code is None:
        return (), None
    count = code.co_argcount + code.co_kwonlyargcount
    after = count + bool(code.co_flags & _VARARGS)
    return code.co_varnames[:count], code.co_varnames[after] if code.co_flags & _VARKEYWORDS else None


def _of_keywords(annotation: Annotation) -> Annotation:
    """Return the type of the object that `**kwargs` with this annotation accepts."""
    if isinstance(annotation, str):
        return annotation
    if called(getattr(annotation, "__origin__", None))[1] == "Unpack":
        return annotation.__args__[0]
    return dict[str, annotation]


def _field(default: Any) -> Any:  # noqa: ANN401 - libraries have classes of their own
    """Return pydantic's description of a parameter if it is the default, otherwise None.

    Python would pass `Field(…)` to the function unresolved. So it would with `Option(…)` and `Argument(…)` of Typer,
    which converts their default like a value of the command line.
    """
    kind = called(type(default))
    if kind in {("typer.models", "OptionInfo"), ("typer.models", "ArgumentInfo")}:
        from pydantic.fields import FieldInfo

        made, value = default.default_factory, default.default
        return (
            FieldInfo(default_factory=made, validate_default=True)
            if made
            else FieldInfo(default=value, validate_default=value is not None)
        )
    return default if kind == ("pydantic.fields", "FieldInfo") else None


def _path(steps: Path, value: Any, kind: str) -> Path:  # noqa: ANN401 - arguments have any type
    """Return the path of an error within a value. Pydantic's steps also name variants of unions, and `[key]`.

    Args:
        steps: Pydantic's location of the error.
        value: Value that pydantic rejected.
        kind: Pydantic's type of the error.
    """
    found: list[str | int] = []
    for number, step in enumerate(steps, start=1):
        parts = range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
        if step in parts:
            value = value[step]
        elif number < len(steps) or not kind.startswith("missing"):
            continue
        found.append(step)
    return tuple(found)


def _readable(path: Path) -> str:
    return "".join(f" #{step + 1}" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
