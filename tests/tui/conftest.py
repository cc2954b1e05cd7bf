"""What the tests of the screen share; `stage`, `chat_stage` and the fakes are imported by their names."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "fakes")]

from stage import GivenRuntime  # noqa: E402 - only now it can be found

from pegboard.tui.widgets import answer_guard  # noqa: E402 - as above


@pytest.fixture
def given(tmp_path: Path) -> GivenRuntime:
    """A runtime with five tools."""
    return GivenRuntime(tmp_path)


class PatientClock(answer_guard.Clock):
    """A clock for tests that answer at once: every event happened long after all that was shown."""

    def of(self, event: answer_guard.TimedEvent) -> float:
        """Return a time far ahead."""
        return event.time + 1_000_000


@pytest.fixture(autouse=True)
def _answers_count_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let answers count without a delay; tests of the delay set a clock of their own."""
    monkeypatch.setattr(answer_guard, "clock", PatientClock())


@pytest.fixture(autouse=True)
def _apps_are_let_go_of() -> Iterator[None]:
    """Lets the collector see again what an app had set aside: that app is gone, and many more will come."""
    yield
    gc.unfreeze()
