"""Tools with parameters of types that JSON doesn't have."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Optional, Required, TypedDict, Union, Unpack
from uuid import UUID

from pydantic import AfterValidator, AliasChoices, Base64Str, BaseModel, Field, StringConstraints, constr, validate_call


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


@dataclass
class Point:
    x: int
    at: date


class Person(BaseModel):
    name: str
    born: date | None = None
    friends: list[Person] = []


class Exact(BaseModel, strict=True):
    born: date
    colour: Colour
    pair: tuple[int, str]


class Plain(TypedDict):
    a: int


class Dated(TypedDict, total=False):
    when: date


class Nested(TypedDict):
    dated: NotRequired[Dated]
    more: list[Nested]
    colour: Required[Colour]


class Heir(Plain):
    days: list[date]


class Eased(Plain, total=False):
    when: Required[date]
    colour: Optional[Colour]


QuotedAlias = "list[Dated]"
Functional = TypedDict("Functional", {"class": str, "in-days": list[date]})
Document = Union[dict[str, "Document"], list["Document"], str, int, None]


class Bare(TypedDict):
    count: int


@dataclass
class Holder:
    dated: Dated


class Located(TypedDict):
    when: date
    where: NotRequired[Path]


class Opaque:
    pass


def dicts(
    *,
    maybe: Optional[Dated] = None,
    several: list[Dated] = (),
    nested: Nested = None,
    by_number: dict[int, str] = None,
    by_day: dict[date, int] = None,
    holder: Holder = None,
    quoted: list["Dated"] = None,
    all_quoted: "list[Dated]" = None,
    alias: "QuotedAlias" = None,
    heir: Heir = None,
    eased: Eased = None,
    functional: Functional = None,
):
    """Return the arguments."""
    return {name: repr(value) for name, value in locals().items() if value}


def opaque(*, value: Opaque = None):
    """Accept a parameter of a type that can't be converted."""
    return repr(value)


def endless(*, value: Document = None):
    """Accept a parameter of a recursive type, which pydantic doesn't support."""
    return repr(value)


def integers(
    *,
    some: list[int] = None,
    by_name: dict[str, int] = None,
    maybe: Optional[list[int]] = None,
    deep: dict[str, list[dict[str, Union[int, str, None]]]] = None,
    either: Union[list[int], dict[str, int], int, None] = None,
    numbers: list[float] = None,
    mixed: list[Union[int, float]] = None,
    bare: list[Bare] = None,
):
    """Return the arguments, and whether pydantic's converters were needed."""
    given = {name: repr(value) for name, value in locals().items() if value is not None}
    return given


def kinds(
    *,
    day: date = None,
    at: datetime = None,
    length: timedelta = None,
    price: Decimal = None,
    id: UUID = None,
    path: Path = None,
    raw: bytes = None,
    colour: Colour = None,
    point: Point = None,
    person: Person = None,
    exact: Exact = None,
    exact_day: Annotated[date, Field(strict=True)] = None,
    dated: Dated = None,
    tags: set[str] = None,
    pair: tuple[int, str] = None,
    days: list[date] = None,
    by_day: dict[str, Optional[date]] = None,
    either: Union[int, date, None] = None,
    even: Annotated[int, AfterValidator(lambda value: value // 2 * 2)] = None,
):
    """Return the types of the arguments."""
    return {name: repr(value) for name, value in locals().items() if value is not None}


def positive(value: int) -> int:
    if value < 0:
        raise ValueError("must not be negative")
    return value


class Sizes(BaseModel):
    width: Annotated[int, AfterValidator(positive)]


def framed(*, outer: Sizes, inner: list[Sizes]):
    """Accept two parameters of one type."""


def native(
    *,
    text: str = "",
    number: int = 0,
    ratio: float = 0.0,
    some: list[int] | None = None,
    choice: Literal["a", 1, None] = "a",
    anything: Any = None,
    nested: dict[str, list[Plain]] | None = None,
    limited: Annotated[int, Field(ge=1)] = 1,
    maybe: Optional[int] = None,
    unknown: NotDefinedAnywhere = None,
):
    """Return the types of the arguments, and whether pydantic's converters were needed."""
    import sys

    return {name: repr(value) for name, value in locals().items() if name != "sys"}


def texts(
    *,
    trimmed: Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)] = "",
    shouted: list[constr(to_upper=True)] = (),
    short: Annotated[str, StringConstraints(max_length=9)] = "",
    decoded: Base64Str = "",
):
    """Accept text that pydantic changes."""
    return {name: value for name, value in locals().items() if value}


def positional(first: int, count: int = Field(10, ge=1), tags: list[str] = Field(default_factory=list)):
    """Have defaults written as pydantic fields of positional parameters."""
    return [first, count, tags]


def fields(*, count: int = Field(10, ge=1), tags: list[str] = Field(default_factory=list)):
    """Have defaults written as pydantic fields."""
    return [count, tags]


def field_defaults(
    *,
    until: date = Field(None),
    since: date = Field(default_factory=list),
    checked: date = Field("2024-01-01", validate_default=True),
):
    """Have defaults of other types than the annotated ones, written as pydantic fields."""
    return repr((until, since, checked))


def prepared(*, day: date, kind: str = Field("other")):
    """Have an argument that is passed in advance."""
    return repr((day, kind))


prepared = functools.partial(prepared, kind="fixed")


def with_rest(*, first: int, **rest: date):
    """Accept more keywords than the named ones."""
    return [first, repr(rest)]


def with_paths(*, first: int, **rest: Unpack[Located]):
    """Accept the keys of an object as keywords."""
    return [first, repr(rest)]


def with_numbers(*args: str, **rest: int):
    """Accept numbers as keywords."""
    return repr(rest)


def no_annotations(first, second=2):
    """Have no annotations."""
    return [first, second]


@validate_call
def validated(
    query: Annotated[str, Field(alias="q")],
    *,
    day: Annotated[date, Field(validation_alias=AliasChoices("when", "on"))],
    most: int = Field(10, alias="max"),
):
    """Show the arguments of a function that pydantic validates."""
    return f"{query!r} {day!r} {most!r}"
