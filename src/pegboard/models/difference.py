"""Differences of two values, or of two calls."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from pegboard.models.model import DataModel
from pegboard.models.record import RecordedCall


class DiffLine(DataModel):
    """One line of the comparison of two texts."""

    kind: Literal["equal", "removed", "added"]
    before: int | None
    """Line number in the first text, from 1; None for an added line."""
    after: int | None
    """Line number in the second text; None for a removed line."""
    text: str


class JsonDifference(DataModel):
    """One difference of two JSON values."""

    path: str
    """Path of the value, such as `.rows[3].name`; empty for the whole value."""
    kind: Literal["added", "removed", "changed", "text"]
    """*text*: a text of several lines, compared by line."""
    before: JsonValue = None
    after: JsonValue = None
    lines: tuple[DiffLine, ...] = ()
    """For *text*: changed lines, with some equal ones around them."""
    is_whole: bool = True
    """Whether `lines` has all changed lines; the number is limited."""


class ValueDiff(DataModel):
    """The differences of two JSON values."""

    differences: tuple[JsonDifference, ...]
    is_whole: bool = True
    """Whether these are all differences; a comparison of large values ends early."""


class CallDiff(DataModel):
    """The comparison of two recorded calls."""

    before: RecordedCall
    after: RecordedCall
    arguments: ValueDiff
    result: ValueDiff | None
    """None if a result is no longer stored or the call still runs."""
    problem: str = ""
    """Why the results aren't compared."""
