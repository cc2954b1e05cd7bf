"""TypedDict classes of `typing` for pydantic."""

from __future__ import annotations

import sys
from contextlib import contextmanager

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def typed_dicts_for_pydantic() -> Iterator[None]:
    """Make pydantic accept the TypedDict classes of `typing`, inside the `with` block.

    Before Python 3.12, pydantic accepts only those of `typing_extensions`, because those of `typing` lose information
    about base classes. It distinguishes them by the module of their metaclass, and reads the base classes from
    `__orig_bases__`, which classes that inherit and functional ones lack.
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
    metaclass.__orig_bases__ = (TypedDict,)  # type: ignore[attr-defined] # for the classes without their own
    try:
        yield
    finally:
        metaclass.__module__ = module
        del metaclass.__orig_bases__  # type: ignore[attr-defined]
