"""A history in a temporary folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pegboard.history import History


@pytest.fixture
def open_history(tmp_path: Path) -> Iterator[Callable[..., History]]:
    """Return a function that opens histories on one database; close them after the test."""
    opened: list[History] = []

    def build(*, size_limit: int = 500_000_000) -> History:
        opened.append(History(tmp_path / "state" / "history.db", tmp_path / "state" / "results", size_limit=size_limit))
        return opened[-1]

    yield build
    for history in opened:
        history.close()


@pytest.fixture
def history(open_history: Callable[..., History]) -> History:
    """Return an empty history."""
    return open_history()
