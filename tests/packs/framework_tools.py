"""Tools whose decorators, as those of agent frameworks, replace them by objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any


class InClosure:
    """A tool that can't be called, and keeps its function in another one."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.invoke = lambda arguments: function(**arguments)


class TakesText:
    """A tool that is called with one text."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.func = function

    def __call__(self, tool_input: str, callbacks: object = None) -> str:
        return f"called with {tool_input}"


class TakesKeywords(TakesText):
    """A tool that is called with the arguments of its function."""

    def __call__(self, *args: object, **arguments: object) -> str:
        return f"checked {self.func(**arguments)}"


class TakesContext(TakesText):
    """A tool that is called with a context, which only its framework has."""

    def __call__(self, ctx: object, *args: object, **arguments: object) -> str:  # type: ignore[override] # see above
        return f"called in {ctx}"


def forgotten(function: Callable[..., Any]) -> None:
    """Keep nothing."""


@InClosure
def in_closure(*, a: int, b: int) -> int:
    """Multiply."""
    return a * b


@TakesText
async def takes_text(*, a: int, b: int) -> int:
    """Multiply."""
    return a * b


@TakesKeywords
def takes_keywords(*, a: int, b: int) -> int:
    """Multiply."""
    return a * b


@TakesContext
def takes_context(ctx: object = None, *, a: int, b: int) -> int:
    """Multiply."""
    return a * b


@forgotten
def lost(*, a: int, b: int) -> int:
    """Multiply."""
    return a * b


class Context:
    """Object that a framework would supply, of a type that pydantic does not support."""


def needs_context(ctx: Context, *, a: int) -> int:
    """Return the number."""
    return a


def may_lack_context(ctx: Context | None = None, *, a: int) -> str:
    """Return the arguments."""
    return f"{ctx} {a}"


def calls_itself(*, a: int) -> int:
    """Fail for want of an argument."""
    return calls_itself()  # type: ignore[call-arg]


@singledispatch
def by_type(value: object, *, suffix: str = "") -> str:
    """Return the kind of a value."""
    return f"something{suffix}"


@by_type.register
def _(value: int, *, suffix: str = "") -> str:
    return f"a number{suffix}"
