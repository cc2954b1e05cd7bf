"""Tools whose decorators don't use `functools.wraps`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any


def timed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Call a function."""

    def inner(*args: Any, **keywords: Any) -> Any:
        return function(*args, **keywords)

    return inner


def retried(times: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Call a function, at most several times."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **keywords: Any) -> Any:
            assert times
            return partial(function, *args)(**keywords)

        return wrapper

    return decorate


class Remembered:
    """A function with a cache."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.function(*args, **keywords)


@timed
def in_closure(*, day: date) -> str:
    """Return a day."""
    return repr(day)


@timed
@retried(times=2)
def in_two_closures(*, day: date) -> str:
    """Return a day."""
    return repr(day)


@Remembered
def in_attribute(*, day: date) -> str:
    """Return a day."""
    return repr(day)


class Calendar:
    """A class with a method of the same name."""

    def in_closure(self, *, day: str) -> str:
        """Return a day."""
        return day
