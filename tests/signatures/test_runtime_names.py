"""Annotations with names that are imported only for type checkers."""

from __future__ import annotations

import textwrap

import pytest

from pegboard.discovery import read
from pegboard.models import Problem

HEAD = """
from __future__ import annotations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

if TYPE_CHECKING:
    import datetime
    import uuid as ids
    import pandas as pd
    from collections.abc import Mapping, Sequence
    from datetime import date
    from decimal import Decimal
    from typing import Any, Optional
    from annotated_types import Ge
    from elsewhere import Unknown
else:
    Decimal = str

class Row(TypedDict):
    a: int
Rows = list[Row]
Days = "list[date]"
"""


def problems_of(annotation: str) -> tuple[Problem, ...]:
    """Return the problems of a tool whose only parameter `a` has this annotation."""
    source = f'{textwrap.dedent(HEAD)}\ndef f(*,\n    a: {annotation},\n):\n    """Do it."""\n'
    return read(source, "/packs/sample.py")[1]


@pytest.mark.promise("DSC-4", "DSC-7")
@pytest.mark.parametrize(
    ("annotation", "name"),
    [
        ("date", "date"),
        ("'date'", "date"),
        ("date | None", "date"),
        ("datetime.datetime", "datetime"),
        ("ids.UUID", "ids"),
        ("Optional[Path]", "Optional"),
        ("Sequence[Path]", "Sequence"),
        ("Mapping[str, list[date]]", "Mapping"),
        ("Annotated[date, 'A day.']", "date"),
        ("set[Any]", "Any"),
        ("Optional[Days]", "Optional"),
        ("pd.DataFrame", "pd"),
    ],
)
def test_a_type_that_the_worker_cannot_convert_to_is_a_problem(annotation: str, name: str) -> None:
    (problem,) = problems_of(annotation)
    assert problem.message == (
        f"`f`, parameter `a`: the function receives plain JSON, because `{name}` is imported only for type checkers."
    )
    assert problem.fix == f"Import `{name}` outside of `if TYPE_CHECKING`."
    assert problem.line == HEAD.count("\n") + 3


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    "annotation",
    [
        "Path",
        "Any",
        "Decimal",
        "Optional[int]",
        "Sequence[str]",
        "Mapping[str, Any] | None",
        "Annotated[int, Ge(1)]",
        "Optional[Literal['date']]",
        "Sequence[Row]",
        "Optional[Rows]",
    ],
)
def test_a_type_that_needs_no_conversion_or_can_be_evaluated_is_accepted(annotation: str) -> None:
    assert problems_of(annotation) == ()


def test_an_unknown_type_is_one_problem() -> None:
    (problem,) = problems_of("Unknown")
    assert "`Unknown` can't be resolved" in problem.message
