"""Conversion of annotations to JSON Schema, compared with the schemas of pydantic."""

from __future__ import annotations

import json
import sys
import textwrap
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from pegboard.discovery import read
from pegboard.models import Problem, ToolSpec
from pegboard.sdk.values import encode

HEAD = """
import collections, datetime, decimal, enum, ipaddress, pathlib, re, typer, typing, uuid, zoneinfo
import pydantic.networks, pydantic.types
import typing as t
import collections.abc as c
import annotated_types as at
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum, auto
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, NewType, Optional, TypeAlias, TypeVar, Union
from typing import Optional as Opt
from uuid import UUID
from annotated_types import Ge, Gt, Interval, Len, MaxLen
from pydantic import BaseModel, ConfigDict, Field, JsonValue, PositiveInt, RootModel, SecretStr, conint, constr
from typing_extensions import Doc, NamedTuple, NotRequired, Required, TypedDict
"""


def tool(parameter: str, head: str = "") -> tuple[ToolSpec, tuple[Problem, ...]]:
    source = f'{HEAD}{textwrap.dedent(head)}\ndef f(*, {parameter}):\n    """Do it."""\n'
    specs, problems = read(source, "/packs/sample.py")
    (spec,) = specs
    Draft202012Validator.check_schema(spec.input_schema)
    return spec, problems


def properties(parameter: str, head: str = "") -> dict[str, Any]:
    spec, problems = tool(parameter, head)
    assert problems == ()
    found = spec.input_schema["properties"]
    assert isinstance(found, dict)
    return found


def schema(annotation: str, head: str = "") -> dict[str, Any]:
    """Return the schema of a parameter with this annotation, with its reference resolved."""
    spec, problems = tool(f"a: {annotation}", head)
    assert problems == ()
    whole: Any = spec.input_schema
    found: dict[str, Any] = dict(whole["properties"]["a"])
    if "$defs" in whole:
        found["$defs"] = whole["$defs"]
    return found


def untitled(value: Any) -> Any:
    """Remove pydantic's generated titles, and its additions to untyped mappings."""
    if isinstance(value, dict):
        return {
            key: untitled(item)
            for key, item in value.items()
            if not (key == "title" and isinstance(item, str)) and not (key == "items" and item == {})
        }
    if isinstance(value, list):
        return [untitled(item) for item in value]
    return value


def judged(annotation: str, head: str = "") -> dict[str, Any]:
    """Return pydantic's schema of the evaluated annotation."""
    module = ModuleType("pegboard_judged_sample")
    names = vars(module)
    # dataclasses look up their module
    with mock.patch.dict(sys.modules, {module.__name__: module}):
        exec(compile(HEAD + textwrap.dedent(head), "sample", "exec", dont_inherit=True), names)
        adapter: TypeAdapter[Any] = TypeAdapter(eval(annotation, names))
        adapter.rebuild(_types_namespace=names)
        found: dict[str, Any] = untitled(adapter.json_schema())
    return found


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    "annotation",
    [
        "str",
        "int",
        "float",
        "bool",
        "None",
        "bytes",
        "object",
        "Any",
        "JsonValue",
        "list",
        "list[int]",
        "t.List[str]",
        "list[list[int]]",
        "Sequence[int]",
        "c.Iterable[str]",
        "typing.Iterable[str]",
        "deque[int]",
        "set[int]",
        "frozenset[str]",
        "t.Set[str]",
        "tuple[int, str]",
        "tuple[int, ...]",
        "t.Tuple[int, ...]",
        "dict",
        "dict[str, int]",
        "Mapping[str, list[int]]",
        "dict[str, Any]",
        "defaultdict[str, int]",
        "OrderedDict[str, int]",
        *(["frozendict[str, int]"] if sys.version_info >= (3, 15) else []),
        "t.Dict[str, t.Dict[str, int]]",
        "Optional[int]",
        "Opt[str]",
        "int | None",
        "int | str | None",
        "Union[int, str]",
        "Union[int, Union[str, None]]",
        "Union[int]",
        "list[int | None]",
        "Literal['a']",
        "Literal['a', 'b']",
        "Literal[1, 2]",
        "Literal['a', 1]",
        "Literal[True, False]",
        "Literal[Literal['a'], 'b']",
        "datetime.datetime",
        "date",
        "datetime.time",
        "datetime.timedelta",
        "UUID",
        "Path",
        "pathlib.PurePath",
        "re.Pattern",
        "ipaddress.IPv4Address",
        "SecretStr",
        "PositiveInt",
        "Annotated[int, Field(ge=1, le=10)]",
        "Annotated[int, Field(gt=1, lt=10, multiple_of=2)]",
        "Annotated[str, Field(min_length=1, max_length=5, pattern='^a')]",
        "Annotated[list[int], Field(min_length=1, max_length=5)]",
        "Annotated[dict[str, int], Field(min_length=1)]",
        "Annotated[int, Field(description='How many.', examples=[1, 2])]",
        "Annotated[int, Field(multiple_of=3)]",
        "Annotated[str, Field(json_schema_extra={'format': 'password'})]",
        "Annotated[int, Ge(1), at.Le(5)]",
        "Annotated[int, Interval(gt=1, le=5)]",
        "Annotated[str, Len(1, 5)]",
        "Annotated[list[str], MaxLen(3)]",
        "Annotated[float, Gt(0.5), at.MultipleOf(0.5)]",
        "list[Annotated[int, Ge(1)]]",
        "conint(ge=1)",
        "constr(min_length=1, pattern='a')",
        "dict[str, Annotated[int, Ge(0)]]",
        "pydantic.conset(int, min_length=1)",
        "pydantic.confrozenset(str, max_length=3)",
        "pydantic.conbytes(min_length=1)",
        "pydantic.condate()",
        "pydantic.types.PositiveInt",
        "pydantic.types.conint(ge=1)",
        "pydantic.networks.IPvAnyNetwork",
        "pydantic.UUID1",
        "pydantic.UUID7",
        "pydantic.PastDate",
        "pydantic.FutureDatetime",
        "pydantic.Base64Bytes",
        "pydantic.Base64UrlStr",
        "pydantic.FiniteFloat",
        "pydantic.SecretBytes",
        "pydantic.NewPath",
        "pydantic.StrictBytes",
        "pydantic.IPvAnyAddress",
        "ipaddress.IPv4Network",
        "ipaddress.IPv6Interface",
        "zoneinfo.ZoneInfo",
        "dict[str, zoneinfo.ZoneInfo | None]",
        "complex",
    ],
)
def test_the_schema_of_an_annotation_equals_that_of_pydantic(annotation: str) -> None:
    assert schema(annotation) == judged(annotation)


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    ("annotation", "accepted", "rejected"),
    [
        ("pydantic.NaiveDatetime", ["2024-01-01T00:00:00"], [1]),
        ("pydantic.Json", ["[1]"], [[1]]),
        ("pydantic.Json[list[int]]", ["[1]"], [[1]]),
        ("pydantic.ByteSize", ["3 kB", 3], [-3]),
        ("pydantic.condecimal(gt=1)", [1.5, "1.5"], [0.5]),
        ("pydantic.FtpUrl", ["ftp://example.org/a"], [1]),
        ("pydantic.PostgresDsn", ["postgres://example.org/a"], [1]),
    ],
)
def test_a_type_of_pydantic_accepts_the_values_that_pydantic_accepts(
    annotation: str, accepted: list[Any], rejected: list[Any]
) -> None:
    validator = Draft202012Validator(schema(annotation))
    assert [value for value in accepted if not validator.is_valid(value)] == []
    assert [value for value in rejected if validator.is_valid(value)] == []


CLASSES = '''
class Color(Enum):
    RED = "red"
    BLUE = "blue"

class Level(IntEnum):
    LOW = 1
    HIGH = 2

class Mode(StrEnum):
    FAST = auto()
    SLOW = auto()

class Point(TypedDict):
    """A point."""
    x: int
    y: NotRequired[float]

class Loose(TypedDict, total=False):
    name: Required[str]
    size: int

class Sub(Point):
    z: list["Sub"]

@dataclass
class Window:
    start: int
    rows: int = 10
    tags: list[str] = field(default_factory=list)
    name: str | None = None
    secret: ClassVar[int] = 3

@dataclass
class Wide(Window):
    rows: int = 20
    more: "Wide | None" = None

class Model(BaseModel):
    """A model."""
    id: int = Field(ge=1, description="Which.")
    name: str = "x"
    limits: Annotated[list[int], Field(max_length=3)] = []
    other: Optional["Other"] = None
    aka: str = Field("y", alias="alsoKnownAs")
    _private: int = 3

class Other(BaseModel):
    model_config = ConfigDict(extra="forbid")
    back: Model | None = None

class Holder(BaseModel):
    window: Window

class Open(Other, extra="allow"):
    more: bool = True

class Cat(BaseModel):
    kind: Literal["cat"]

class Dog(BaseModel):
    kind: Literal["dog"]

class Pair(NamedTuple):
    a: int
    b: str = "x"

class Numbers(RootModel[list[int]]):
    pass
'''


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    "annotation", ["Point", "Loose", "Model", "Other", "Holder", "Open", "Pair", "Numbers", "Wide", "list[Sub]"]
)
def test_the_schema_of_a_class_equals_that_of_pydantic(annotation: str) -> None:
    def resolved(found: dict[str, Any]) -> dict[str, Any]:
        """Replace the reference of the root by its class, as pydantic does unless the class is recursive."""
        defs = found.pop("$defs", {})
        while "$ref" in found:
            found = dict(defs[found["$ref"].removeprefix("#/$defs/")])
        return {"root": found, "defs": {name: item for name, item in defs.items() if _mentions(name, found, defs)}}

    def _mentions(name: str, root: object, defs: dict[str, Any]) -> bool:
        return f"#/$defs/{name}'" in str(root) or any(f"#/$defs/{name}'" in str(item) for item in defs.values())

    spec, _ = tool(f"a: {annotation}", CLASSES)
    whole: Any = spec.input_schema
    given = {**whole["properties"]["a"], "$defs": whole.get("$defs", {})}
    ours, theirs = resolved(given), resolved(judged(annotation, CLASSES))
    assert _comparable(ours) == _comparable(theirs)


@pytest.mark.promise("DSC-4")
def test_an_item_of_a_named_tuple_with_a_computed_default_is_optional() -> None:
    head = """
    class Entry(NamedTuple):
        name: str
        day: date = date.today()
        note: str = ""
    """
    spec, problems = tool("a: Entry", head)
    assert problems == ()
    names: dict[str, Any] = {"__name__": "sample"}
    exec(compile(HEAD + textwrap.dedent(head), "sample", "exec", dont_inherit=True), names)
    for value in (["x"], ["x", "2024-05-01"], ["x", "2024-05-01", "y"]):
        assert Draft202012Validator(spec.input_schema).is_valid({"a": value})
        assert TypeAdapter(names["Entry"]).validate_python(value).name == "x"
    assert not Draft202012Validator(spec.input_schema).is_valid({"a": []})


NESTED = """
from enum import Enum
from pydantic import BaseModel

class Tank(BaseModel):
    class Shrimp(BaseModel):
        class Eye(BaseModel):
            size: int
        eyes: list[Eye]
    class Color(Enum):
        RED = "red"
    shrimps: list[Shrimp]
    color: "Color" = Color.RED

class Pond(BaseModel):
    class Shrimp(BaseModel):
        legs: int
    shrimp: Shrimp
"""


@pytest.mark.promise("DSC-4")
def test_classes_inside_classes_are_found_by_the_class_and_from_outside() -> None:
    spec, problems = tool("tank: Tank, pond: Pond, one: Tank.Shrimp, eye: Tank.Shrimp.Eye, color: Tank.Color", NESTED)
    assert problems == ()
    schema: Any = spec.input_schema
    assert {name: field.get("$ref", field) for name, field in schema["properties"].items()} == {
        "tank": "#/$defs/Tank",
        "pond": "#/$defs/Pond",
        "one": "#/$defs/Tank.Shrimp",
        "eye": "#/$defs/Tank.Shrimp.Eye",
        "color": {"const": "red", "type": "string"},
    }
    fields = {name: [*definition["properties"]] for name, definition in schema["$defs"].items()}
    assert fields == {
        "Tank": ["shrimps", "color"],
        "Tank.Shrimp": ["eyes"],
        "Tank.Shrimp.Eye": ["size"],
        "Pond": ["shrimp"],
        "Pond.Shrimp": ["legs"],
    }
    assert schema["$defs"]["Pond"]["properties"]["shrimp"] == {"$ref": "#/$defs/Pond.Shrimp"}


def test_a_class_inside_a_class_is_not_found_by_its_bare_name_from_outside() -> None:
    spec, problems = tool("one: Shrimp", NESTED)
    assert spec.input_schema["properties"] == {"one": {}}
    assert len(problems) == 1


def _comparable(value: Any) -> Any:
    """Remove generated docstrings of dataclasses, defaults of factories, which pydantic omits, and bans of other keys.

    Arguments accept fewer keys than pydantic does.
    """
    if isinstance(value, dict):
        generated = {"description"} if "properties" in value else set()
        return {
            key: _comparable(item)
            for key, item in value.items()
            if key not in generated
            and not (key == "default" and item == [])
            and not (key == "additionalProperties" and item is False)
        }
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    return value


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("Color", {"enum": ["red", "blue"], "type": "string"}),
        ("Level", {"enum": [1, 2], "type": "integer"}),
        ("Mode", {"enum": ["fast", "slow"], "type": "string"}),
        ("Color | None", {"anyOf": [{"enum": ["red", "blue"], "type": "string"}, {"type": "null"}]}),
        ("Literal[Mode.FAST, 'x']", {"enum": ["fast", "x"], "type": "string"}),
        ("Literal[Color.RED.value, 'x']", {"enum": ["red", "x"], "type": "string"}),
        (
            "dict[Color, int]",
            {
                "type": "object",
                "propertyNames": {"enum": ["red", "blue"], "type": "string"},
                "additionalProperties": {"type": "integer"},
            },
        ),
        (
            "dict[Level, int]",
            {
                "type": "object",
                "propertyNames": {"enum": ["1", "2"], "type": "string"},
                "additionalProperties": {"type": "integer"},
            },
        ),
        (
            "dict[Literal[True], int]",
            {
                "type": "object",
                "propertyNames": {"const": "true", "type": "string"},
                "additionalProperties": {"type": "integer"},
            },
        ),
        ("Made", {"enum": [1, 2], "type": "integer"}),
        ("Paired", {"const": "x", "type": "string"}),
        ("Bits", {"type": "integer", "minimum": 0, "maximum": 7}),
        ("Child", {"enum": ["c"], "type": "string"} | {"const": "c"}),
    ],
)
def test_enumerations_are_choices_by_value(annotation: str, expected: dict[str, Any]) -> None:
    head = (
        CLASSES + 'Made = Enum("Made", "ONE TWO")\nPaired = Enum("Paired", {"X": "x"})\n'
        "class Bits(enum.Flag):\n    A = auto()\n    B = auto()\n    C = auto()\n"
        "class Kind(str, Enum):\n    def hello(self): ...\n"
        'class Child(Kind):\n    C = "c"\n    _ignored = 5\n'
    )
    if "const" in expected:
        expected.pop("enum", None)
    assert schema(annotation, head) == expected


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    ("head", "annotation", "expected"),
    [
        ("X = int | None", "X", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("X: TypeAlias = 'list[Y]'\nY = str", "X", {"type": "array", "items": {"type": "string"}}),
        ("UserId = NewType('UserId', int)", "UserId", {"type": "integer"}),
        ("T = TypeVar('T', bound=int)", "list[T]", {"type": "array", "items": {"type": "integer"}}),
        ("T = TypeVar('T')", "list[T]", {"type": "array"}),
        ("T = TypeVar('T', int, str)", "T", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("Port = Annotated[int, Field(ge=1)]", "Port", {"type": "integer", "minimum": 1}),
        ("MAX = 2 ** 10", "Annotated[int, Ge(-MAX)]", {"type": "integer", "minimum": -1024}),
        (
            "from typing import *",
            "List[Set[int]]",
            {
                "type": "array",
                "items": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
            },
        ),
        (
            "import typing_extensions as te",
            "te.Annotated[int, te.Doc('How many.')]",
            {
                "type": "integer",
                "description": "How many.",
            },
        ),
        ("", "Annotated[int, 'How many.']", {"type": "integer", "description": "How many."}),
        ("", "'int | None'", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("", "list['Opt[int]']", {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}),
        (
            "",
            "Annotated[str | None, Field(min_length=2)]",
            {
                "anyOf": [{"type": "string", "minLength": 2}, {"type": "null"}],
            },
        ),
        ("", "Any | None", {}),
        ("", "Decimal", {"anyOf": [{"type": "number"}, {"type": "string"}]}),
        ("", "collections.Counter[str]", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("try:\n    from nowhere import X\nexcept ImportError:\n    pass\nX = int", "X", {"type": "integer"}),
        ("if True:\n    X = int", "X", {"type": "integer"}),
    ],
)
def test_names_are_resolved_within_the_file(head: str, annotation: str, expected: dict[str, Any]) -> None:
    assert schema(annotation, head) == expected


def test_a_recursive_alias_becomes_a_definition() -> None:
    assert schema("Json", "Json = Union[dict[str, 'Json'], list['Json'], str]") == {
        "$ref": "#/$defs/Json",
        "$defs": {
            "Json": {
                "anyOf": [
                    {"type": "object", "additionalProperties": {"$ref": "#/$defs/Json"}},
                    {"type": "array", "items": {"$ref": "#/$defs/Json"}},
                    {"type": "string"},
                ]
            }
        },
    }


def test_mutually_recursive_aliases_terminate() -> None:
    found = schema("A", "A = list['B']\nB = Union[int, 'A']")
    Draft202012Validator(found).validate([1, [2, []]])
    assert not Draft202012Validator(found).is_valid(["x"])


def test_variants_with_a_discriminator_are_one_of() -> None:
    found = schema("Annotated[Cat | Dog, Field(discriminator='kind')]", CLASSES)
    assert [variant["$ref"] for variant in found["oneOf"]] == ["#/$defs/Cat", "#/$defs/Dog"]
    assert found["discriminator"] == {"propertyName": "kind"}


def test_the_discriminator_of_a_union_is_required_despite_its_default() -> None:
    head = """
        class Cat(BaseModel):
            kind: Literal["cat"] = "cat"
            lives: int = 9


        class Dog(BaseModel):
            kind: Literal["dog"] = "dog"
        """
    found = schema("Annotated[Cat | Dog, Field(discriminator='kind')]", head)
    validator = Draft202012Validator(found)
    assert validator.is_valid({"kind": "cat", "lives": 3})
    assert not validator.is_valid({"lives": 3})


@pytest.mark.parametrize(
    ("annotation", "arguments"),
    [
        ("Pet", "{}"),
        ("Pet | None", "{}"),
        ("list[Pet]", "[{}]"),
        ("dict[str, Pet]", '{{"a": {}}}'),
        ("Owner", '{{"pet": {}}}'),
    ],
)
def test_the_discriminator_of_an_alias_is_required(annotation: str, arguments: str) -> None:
    head = """
        class Cat(BaseModel):
            kind: Literal["cat"] = "cat"
            lives: int = 9


        class Dog(BaseModel):
            kind: Literal["dog"] = "dog"


        Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


        class Owner(BaseModel):
            pet: Pet
        """
    validator = Draft202012Validator(schema(annotation, head))
    assert validator.is_valid(json.loads(arguments.format('{"kind": "cat", "lives": 3}')))
    assert validator.is_valid(json.loads(arguments.format('{"kind": "dog"}')))
    assert not validator.is_valid(json.loads(arguments.format('{"lives": 3}')))


def test_fields_are_described_by_docstrings_and_by_the_text_below() -> None:
    head = '''
        @dataclass
        class Box:
            """A box.

            Attributes:
                wide: How wide.
            """

            wide: int
            _: KW_ONLY
            high: int
            """How high."""
            area: int = field(init=False)
            unit: InitVar[str] = "cm"
    '''
    box = schema("Box", head)["$defs"]["Box"]
    assert box["description"] == "A box."
    assert box["properties"]["wide"]["description"] == "How wide."
    assert box["properties"]["high"]["description"] == "How high."
    assert box["properties"].keys() == {"wide", "high", "unit"}
    assert box["required"] == ["wide", "high"]


GENERIC = """
T = TypeVar("T")
U = TypeVar("U")

class Item(BaseModel):
    day: date

class Page(BaseModel, t.Generic[T]):
    rows: list[T]
    following: "Page[T] | None" = None

class Titled(Page[T]):
    title: T

class Pair(TypedDict, t.Generic[T, U]):
    first: T
    second: dict[str, U]

@dataclass
class Box(t.Generic[T]):
    content: Page[T]

class Endless(BaseModel, t.Generic[T]):
    inner: "Endless[list[T]] | None" = None
"""


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    ("annotation", "valid", "invalid"),
    [
        ("Page[Item]", {"rows": [{"day": "2024-01-01"}]}, {"rows": [1]}),
        ("Page[int]", {"rows": [1], "following": {"rows": [2]}}, {"rows": [1], "following": {"rows": ["a"]}}),
        ("Page[Annotated[int, Ge(1)]]", {"rows": [1]}, {"rows": [0]}),
        ("Page['Page[int]']", {"rows": [{"rows": [1]}]}, {"rows": [1]}),
        ("Titled[str]", {"rows": ["a"], "title": "b"}, {"rows": [1], "title": "b"}),
        ("Pair[Any, int]", {"first": "a", "second": {"b": 1}}, {"first": 1, "second": {"b": "a"}}),
        ("Pair[int, Any]", {"first": 1, "second": {"b": "a"}}, {"first": "a", "second": {"b": 1}}),
        ("Box[Item | None]", {"content": {"rows": [None]}}, {"content": {"rows": [1]}}),
        ("Page", {"rows": [1, "a"]}, {"rows": 1}),
        ("dict[str, Page[int] | Page[str]]", {"a": {"rows": [1]}, "b": {"rows": ["a"]}}, {"a": {"rows": [None]}}),
    ],
)
def test_a_generic_class_has_the_fields_of_its_arguments(annotation: str, valid: object, invalid: object) -> None:
    validator = Draft202012Validator(schema(annotation, GENERIC))
    validator.validate(valid)
    assert not validator.is_valid(invalid)


def test_a_generic_class_whose_arguments_grow_without_end_is_a_problem() -> None:
    _, problems = tool("a: Endless[int]", GENERIC)
    assert ["its annotation is too large" in problem.message for problem in problems] == [True]


def test_only_the_fields_of_a_dataclass_are_in_its_form_and_its_results() -> None:
    head = '''
        class Plain:
            kind: str = "box"

        @dataclass
        class Box(Plain):
            wide: int
            most: "ClassVar[int]" = 3
            _: "KW_ONLY"
            area: int = field(init=False)
            unit: "InitVar[str]" = "cm"

        class Heavy(Box):
            weight: int = 1

        def g() -> Heavy:
            """Do it."""
    '''
    source = f'{HEAD}{textwrap.dedent(head)}\ndef f(*, a: Heavy):\n    """Do it."""\n'
    given, accepted = read(source, "/packs/sample.py")[0]
    box: Any = accepted.input_schema["$defs"]
    assert box["Heavy"]["properties"] == {"wide": {"type": "integer"}, "unit": {"type": "string", "default": "cm"}}
    result: Any = given.output_schema
    assert result["$defs"]["Heavy"]["properties"].keys() == {"wide", "area"}
    assert result["$defs"]["Heavy"]["required"] == ["wide", "area"]


@pytest.mark.promise("DSC-4", "DSC-3")
@pytest.mark.parametrize(
    ("parameter", "default"),
    [
        ("a: int = 5", 5),
        ("a: float = -1.5", -1.5),
        ("a: int = 200 * 1024", 204800),
        ("a: str = 'x' 'y'", "xy"),
        ("a: str = 'x' + NAME", "xname"),
        ("a: bool = not True", False),
        ("a: Path = Path('.')", "."),
        ("a: Path = pathlib.Path()", "."),
        ("a: zoneinfo.ZoneInfo = zoneinfo.ZoneInfo('UTC')", "UTC"),
        ("a: Decimal = Decimal('1.5')", "1.5"),
        ("a: list[int] = [1, 2]", [1, 2]),
        ("a: tuple[int, ...] = (1, 2)", [1, 2]),
        ("a: frozenset[int] = frozenset()", []),
        ("a: dict[str, int] = {'x': 1}", {"x": 1}),
        ("a: Color = Color.RED", "red"),
        ("a: str = Color.RED.value", "red"),
        ("a: str = NAME", "name"),
        ("a: int = Field(3, ge=1)", 3),
        ("a: int = Field(default=3)", 3),
        ("a: list[int] = Field(default_factory=list)", []),
        ("a: int = typer.Option(3, '--a', min=1)", 3),
        ("a: int = typer.Argument(default=3)", 3),
    ],
)
def test_defaults_that_can_be_read_are_in_the_schema(parameter: str, default: object) -> None:
    head = 'NAME = "name"\nclass Color(Enum):\n    RED = "red"\n    BLUE = "blue"\n'
    spec, problems = tool(parameter, head)
    assert problems == ()
    found: Any = spec.input_schema
    assert found["properties"]["a"]["default"] == default
    assert "required" not in found


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    "default", ["os.getcwd()", "object()", "_MISSING", "9**9**9", "'x' * 10**9", "1e400", "{1: 2}"]
)
def test_a_default_that_cannot_be_read_makes_the_parameter_optional_only(default: str) -> None:
    spec, problems = tool(f"a: int = {default}")
    assert problems == ()
    assert spec.input_schema["properties"] == {"a": {"type": "integer"}}
    assert "required" not in spec.input_schema


def test_a_very_large_default_is_omitted() -> None:
    spec, _ = tool(f"a: list[str] = [{'TEXT, ' * 1_000}]", f"TEXT = {'x' * 60_000!r}")
    assert spec.input_schema["properties"] == {"a": {"type": "array", "items": {"type": "string"}}}


@pytest.mark.parametrize("step", [0, -2, "'a'"])
def test_a_step_that_no_number_can_have_is_omitted(step: object) -> None:
    assert properties(f"a: Annotated[int, Field(multiple_of={step})]") == {"a": {"type": "integer"}}


def test_the_default_none_makes_a_parameter_nullable() -> None:
    assert properties("a: int = None") == {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}}
    assert properties("a=None") == {"a": {"default": None}}
    assert properties("a: Annotated[int, Field(description='x')] = None")["a"] == {
        "anyOf": [{"type": "integer"}, {"type": "null"}],
        "description": "x",
        "default": None,
    }


def test_a_field_without_a_default_is_required() -> None:
    spec, _ = tool("a: int = Field(..., ge=1), b: int = Field(ge=1), c: Annotated[int, Field(default=1)]")
    assert spec.input_schema["required"] == ["a", "b", "c"]


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    ("annotation", "expected", "named"),
    [
        ("Gone", {}, "`Gone`"),
        ("np.ndarray", {}, "`np.ndarray`"),
        ("list[Gone]", {"type": "array"}, "`Gone`"),
        ("Gone | None", {}, "`Gone`"),
        ("'list['", {}, "'list['"),
        ("5", {}, "`5`"),
        ("Plain", {}, "`Plain`"),
        ("int()", {}, "`int()`"),
        ("Unknown", {}, "`Unknown`"),
        ("t.Callable[[int], str]", {}, "Callable"),
        ("Literal[f()]", {}, "`f()`"),
        ("Annotated[int, Field(ge=f())]", {"type": "integer"}, "`ge`"),
        ("Self", {}, "`Self`"),
        ("Endless", {}, "`Endless`"),
    ],
)
def test_an_unresolved_annotation_accepts_anything_and_is_a_problem(
    annotation: str, expected: dict[str, Any], named: str
) -> None:
    head = "class Plain: pass\nclass Unknown(Enum):\n    A = f()\nEndless = 'Endless'\n"
    spec, problems = tool(f"a: int,\n    b: {annotation}", head)
    assert spec.input_schema["properties"] == {"a": {"type": "integer"}, "b": expected}
    assert spec.problems == problems
    assert named in problems[0].message
    assert "`b`" in problems[0].message
    assert (problems[0].severity, problems[0].file) == ("warning", "/packs/sample.py")
    assert problems[0].line == spec.handler.line + 1  # type: ignore[union-attr] # the handler of a pack


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        ("Callable[[str], None]", "`Callable[[str], None]` has no JSON form."),
        ("c.Callable", "`c.Callable` has no JSON form."),
        ("threading.Lock", "`threading.Lock` has no JSON form."),
        ("type[int]", "`type[int]` has no JSON form."),
        ("Exception", "`Exception` has no JSON form."),
        ("typing.Lisst[int]", "`typing.Lisst[int]` can't be resolved in this file."),
        ("Gone[int]", "`Gone[int]` can't be resolved in this file."),
        ("requests.Session", "`requests.Session` can't be resolved in this file."),
    ],
)
def test_the_problem_of_a_standard_type_says_that_it_has_no_json_form(annotation: str, reason: str) -> None:
    head = "import collections.abc as c, typing, threading, requests\nfrom typing import Callable\n"
    _, (problem,) = tool(f"a: int,\n    b: {annotation}", head)
    assert problem.message.endswith(reason)
    assert ("standard library" in problem.fix) == ("JSON form" not in reason)


@pytest.mark.promise("DSC-4")
def test_an_unresolved_field_is_a_problem_of_each_tool_that_uses_the_class() -> None:
    source = (
        "from pydantic import BaseModel\nclass M(BaseModel):\n    a: int\n    b: Gone\n"
        'def f(*, m: M):\n    """Do it."""\ndef g(*, m: list[M]):\n    """Do it."""\ndef h():\n    """Do it."""\n'
    )
    specs, problems = read(source, "/packs/sample.py")
    assert [len(spec.problems) for spec in specs] == [1, 1, 0]
    assert {problem.line for problem in problems} == {4}


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    "head",
    [
        "\n".join(["A0 = int", *(f"A{n} = tuple[A{n - 1}, A{n - 1}]" for n in range(1, 60)), "X = A59"]),
        "\n".join(["A0 = 1", *(f"A{n} = [A{n - 1}, A{n - 1}]" for n in range(1, 40)), "X = Literal[A39]"]),
        "\n".join(["A0 = 'aaaa'", *(f"A{n} = A{n - 1} + A{n - 1}" for n in range(1, 60)), "X = Literal[A59]"]),
        "X = " + "list[" * 90 + "int" + "]" * 90,
        "\n".join(
            [
                "class A0: pass",
                *(f"class A{n}(A{n - 1}, B{n - 1}): pass\nclass B{n}(A{n - 1}): pass" for n in range(1, 60)),
            ]
        )
        + "\nX = A59",
    ],
    ids=["aliases", "lists", "texts", "depth", "classes"],
)
def test_an_exponentially_large_annotation_is_a_problem(head: str) -> None:
    spec, problems = tool("a: X", head)
    assert spec.input_schema["properties"] == {"a": {}}
    assert problems


@pytest.mark.promise("DSC-4")
def test_future_annotations_and_quotes_change_nothing() -> None:
    plain, _ = read('def f(*, a: int | None = None) -> list[int]:\n    """Do it."""\n', "/packs/s.py")
    future, _ = read(
        'from __future__ import annotations\ndef f(*, a: int | None = None) -> list[int]:\n    """Do it."""\n',
        "/packs/s.py",
    )
    quoted, _ = read('def f(*, a: "int | None" = None) -> "list[int]":\n    """Do it."""\n', "/packs/s.py")
    schemas = [(spec.input_schema, spec.output_schema) for (spec,) in (plain, future, quoted)]
    assert schemas[0] == schemas[1] == schemas[2]


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        ("", None),
        ("-> Any", None),
        ("-> object", None),
        ("-> None", {"type": "null"}),
        ("-> 'int'", {"type": "integer"}),
        ("-> pd.DataFrame", {"type": "array", "items": {"type": "object"}}),
        ("-> Series | None", {"anyOf": [{"type": ["array", "object"]}, {"type": "null"}]}),
        ("-> Image.Image", None),
        ("-> Image.Image | None", None),
        ("-> list[Image.Image]", {"type": "array"}),
        ("-> 'Figure'", None),
        ("-> dict[str, Figure]", {"type": "object", "additionalProperties": True}),
    ],
)
def test_the_return_annotation_becomes_the_output_schema(returns: str, expected: dict[str, Any] | None) -> None:
    head = "import pandas as pd\nfrom pandas import Series\nfrom typing import Any\n"
    head += "from PIL import Image\nfrom matplotlib.figure import Figure\n"
    (spec,), problems = read(f'{head}def f() {returns}:\n    """Do it."""\n', "/packs/s.py")
    assert (spec.output_schema, problems) == (expected, ())


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    ("returns", "body"),
    [
        ("list[sqlite3.Row]", "_rows().fetchall()"),
        ("sqlite3.Row | None", "_rows().fetchone()"),
        ("sqlite3.Cursor", "_rows()"),
        ("range", "range(3)"),
        ("bytearray", "bytearray(b'a')"),
        ("memoryview", "memoryview(b'a')"),
        ("np.float64", "np.float64(1.5)"),
        ("np.float32", "np.float32('nan')"),
        ("list[np.int64]", "[np.int64(1)]"),
        ("np.uint8", "np.uint8(1)"),
        ("np.bool_", "np.bool_(True)"),
        ("pd.Timestamp", "pd.Timestamp('2026-01-01')"),
        ("dict[str, pd.Timestamp]", "{'a': pd.NaT}"),
        ("pd.Timedelta", "pd.Timedelta(days=1)"),
        ("pd.Index", "pd.Index(['a'])"),
    ],
)
def test_a_type_whose_values_become_json_has_a_schema_as_a_result(returns: str, body: str) -> None:
    head = """
import sqlite3
import numpy as np
import pandas as pd
def _rows():
    base = sqlite3.connect(":memory:")
    base.row_factory = sqlite3.Row
    return base.execute("SELECT 1 AS a, 'b' AS b")
"""
    source = f'{head}def f() -> {returns}:\n    """Do it."""\n    return {body}\n'
    (spec,), problems = read(source, "/packs/sample.py")
    assert problems == ()
    assert spec.output_schema is not None
    names: dict[str, Any] = {}
    exec(compile(source, "sample", "exec", dont_inherit=True), names)
    Draft202012Validator(spec.output_schema).validate(json.loads(encode(names["f"]())))


def test_the_output_schema_contains_its_definitions() -> None:
    source = f'{HEAD}{CLASSES}\ndef f() -> list[Holder]:\n    """Do it."""\n'
    (spec,), _ = read(source, "/packs/s.py")
    assert spec.output_schema is not None
    Draft202012Validator(spec.output_schema).validate([{"window": {"start": 1}}])
    assert not Draft202012Validator(spec.output_schema).is_valid([{"window": {}}])


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    "parameter",
    [
        "a: int = typer.Argument(..., help='How many.', min=1, max=3)",
        "a: int = typer.Option(help='How many.', min=1, max=3)",
        "a: Annotated[int, typer.Option('--a', '-a', help='How many.', min=1, max=3)]",
    ],
)
def test_a_parameter_described_for_typer_has_its_description_and_limits(parameter: str) -> None:
    spec, problems = tool(parameter)
    assert problems == ()
    assert spec.input_schema["required"] == ["a"]
    expected = {"type": "integer", "description": "How many.", "minimum": 1, "maximum": 3}
    assert spec.input_schema["properties"] == {"a": expected}


SERIALIZED = """
    from pydantic import Json, PlainSerializer, WrapSerializer, field_serializer, model_serializer

    class Base(BaseModel):
        at: datetime.datetime
        count: int = Field(3, gt=0)
        size: int = 3

        @field_serializer("at")
        def _seconds(self, value) -> int: ...

    class Entry(Base):
        "An entry."
        text: Json[list[int]]
        level: Annotated[int, PlainSerializer(str, return_type=str)] = 1
        kind: Annotated[int, WrapSerializer(lambda value, write: None)] = 1
        note: int | None = None

        @field_serializer("count")
        def _count(self, value): ...

        @field_serializer("note", when_used="unless-none", return_type=str)
        def _note(self, value): ...

    class Short(Entry):
        @model_serializer(mode="plain")
        def _short(self) -> str: ...

    class Anything(Short):
        @model_serializer
        def _anything(self): ...
    """


def _schemas(name: str, head: str) -> tuple[Any, Any]:
    """Return the schemas of a class as an argument and as a result."""
    source = f'{HEAD}{textwrap.dedent(head)}\ndef f(*, a: {name}) -> list[{name}]:\n    """Do it."""\n'
    (spec,), problems = read(source, "/packs/sample.py")
    assert problems == ()
    given: Any = spec.input_schema
    returned: Any = spec.output_schema
    return given["$defs"][name], returned["$defs"][name]


@pytest.mark.promise("DSC-4")
def test_a_result_has_the_types_that_serializers_of_pydantic_return() -> None:
    given, returned = _schemas("Entry", SERIALIZED)
    assert returned["properties"] == {
        "at": {"type": "integer"},
        "count": {"default": 3},
        "size": {"type": "integer", "default": 3},
        "text": {},
        "level": {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": 1},
        "kind": {"default": 1},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    }
    assert given["properties"]["at"] == {"type": "string", "format": "date-time"}
    assert given["properties"]["count"] == {"type": "integer", "exclusiveMinimum": 0, "default": 3}
    assert given["properties"]["text"]["type"] == "string"


@pytest.mark.promise("DSC-4")
def test_a_field_that_is_serialized_by_its_value_has_its_type() -> None:
    given, returned = _schemas("Box", "class Box(BaseModel):\n    at: pydantic.SerializeAsAny[int]\n")
    assert given["properties"] == returned["properties"] == {"at": {"type": "integer"}}


@pytest.mark.promise("DSC-4")
def test_a_result_has_no_fields_that_a_model_excludes() -> None:
    head = """
    class Page(BaseModel):
        title: str
        raw: bytes = Field(exclude=True)
        etag: Annotated[str, Field(exclude=True)]
        note: str | None = Field(exclude_if=lambda note: note is None)
        kept: int = Field(exclude=False)
    """
    given, returned = _schemas("Page", head)
    assert given["required"] == ["title", "raw", "etag", "note", "kept"]
    assert (returned["properties"].keys(), returned["required"]) == ({"title", "note", "kept"}, ["title", "kept"])


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(("name", "expected"), [("Short", {"type": "string"}), ("Anything", {})])
def test_a_result_is_what_the_serializer_of_a_model_returns(name: str, expected: object) -> None:
    given, returned = _schemas(name, SERIALIZED)
    assert (given["type"], returned) == ("object", expected)


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    "annotation", ["np.ndarray", "npt.NDArray", "npt.NDArray[np.float64]", "NDArray[np.int_]", "np.ndarray[Any, Any]"]
)
def test_an_array_of_numpy_is_a_list_also_with_the_type_of_its_elements(annotation: str) -> None:
    head = "import numpy as np, numpy.typing as npt\nfrom numpy.typing import NDArray\n"
    assert properties(f"a: {annotation}, b: list[{annotation}]", head) == {
        "a": {"type": "array"},
        "b": {"type": "array", "items": {"type": "array"}},
    }


@pytest.mark.promise("DSC-4")
def test_the_type_that_a_validator_declares_as_its_input_is_the_type_of_the_argument() -> None:
    either = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    validator = "pydantic.BeforeValidator(_split, json_schema_input_type=str | list[str])"
    head = """
    def _split(value): ...
    class Entry(BaseModel):
        tags: list[str] = Field(description="Which.")
        others: list[str]

        @pydantic.field_validator("tags", mode="before", json_schema_input_type=str | list[str])
        @classmethod
        def _split(cls, value): ...
    """
    assert properties(f"a: Annotated[list[str], {validator}]", head) == {"a": either}
    found = schema("Entry", head)["$defs"]["Entry"]
    assert found["properties"] == {
        "tags": {**either, "description": "Which."},
        "others": {"type": "array", "items": {"type": "string"}},
    }
    alias = f"Tags = Annotated[list[str], {validator}]"
    assert properties("a: Tags, b: list[Tags]", alias) == {"a": either, "b": {"type": "array", "items": either}}
    assert properties("a: Tags | None", alias)["a"]["anyOf"] == [*either["anyOf"], {"type": "null"}]
    plain = "a: Annotated[list[str], pydantic.BeforeValidator(_split)]"
    assert properties(plain, head) == {"a": {"type": "array", "items": {"type": "string"}}}
