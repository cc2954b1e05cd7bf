"""The results of rows that the dialog of a batch shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pegboard.batch.results import RowResult, read_results

_SHOWN: Final = 500
"""Results in the list; the export has all of them."""


@dataclass
class LatestResults:
    """The latest results, and the latest failures; of each row only the last one."""

    recent: dict[int, RowResult] = field(default_factory=dict)
    failures: dict[int, RowResult] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    """All rows that failed and that no retry fixed."""

    def add(self, result: RowResult) -> None:
        """Add a result instead of an earlier one of the same row."""
        _keep(self.recent, result)
        self.failures.pop(result.row, None)
        self.failed.discard(result.row)
        if not result.ok:
            _keep(self.failures, result)
            self.failed.add(result.row)


def _keep(results: dict[int, RowResult], result: RowResult) -> None:
    """Add a result to the latest ones, instead of an earlier one of the same row."""
    results.pop(result.row, None)
    results[result.row] = result
    if len(results) > _SHOWN:
        del results[next(iter(results))]


def readable_results(parts: Sequence[Path]) -> tuple[list[Path], LatestResults]:
    """Return the files of results up to a damaged one, and the results in them."""
    readable: list[Path] = []
    latest = LatestResults()
    for part in parts:
        with_part = LatestResults({**latest.recent}, {**latest.failures}, {*latest.failed})
        try:
            for line in read_results(part):
                with_part.add(RowResult.parsed(line))
        except (OSError, ValueError, KeyError):
            break
        readable.append(part)
        latest = with_part
    return readable, latest
