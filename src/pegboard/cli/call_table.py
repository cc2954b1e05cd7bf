"""Recorded calls as a table: `pegboard history list`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Final

from pegboard.cli.differences import compact
from pegboard.cli.output import print_table
from pegboard.models import RecordedCall
from pegboard.models.turn import ModelTurn
from pegboard.results.sizes import duration, local_time, short_time

_SHOWN_ID: Final = 16
_NARROW: Final = 130
"""Width of a terminal below which a table has only the columns that recognize a call, so that the arguments fit."""


def print_calls(calls: Sequence[RecordedCall], empty: str) -> None:
    """Print calls as a table, on a narrow terminal with fewer columns and the time without today's date.

    Args:
        calls: The calls.
        empty: Message if there are none.
    """
    is_narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < _NARROW
    headings: tuple[str, ...] = ("ID", "TIME", "RESULT", "DURATION", "SOURCE", "TOOL", "ARGUMENTS")
    rows = [_row(call, is_narrow=is_narrow) for call in calls]
    if is_narrow:
        headings, rows = _without_details(headings), [_without_details(row) for row in rows]
    print_table(rows, headings, empty=empty)


def _row(call: RecordedCall, *, is_narrow: bool) -> tuple[str, ...]:
    return (
        call.id[:_SHOWN_ID],
        short_time(call.at) if is_narrow else local_time(call.at),
        _outcome(call),
        duration(call.duration_ms) if call.duration_ms else "",
        call.source,
        call.tool,
        compact(ModelTurn.of(call).text if call.is_turn else call.args),
    )


def _without_details(row: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out the duration and the source."""
    return (*row[:3], *row[5:])


def _outcome(call: RecordedCall) -> str:
    if call.error:
        return call.error.detail or call.error.code
    return f"exit {call.exit_code}" if call.exit_code else call.state
