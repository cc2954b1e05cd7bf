"""Fixtures of the interface tests; `stage`, `chat_stage` and the fakes are importable by name."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "fakes")]

import headless  # noqa: E402 - only now it can be found
from stage import GivenRuntime  # noqa: E402 - as above

from pegboard.tui.widgets import answer_guard  # noqa: E402 - as above


@pytest.fixture
def given(tmp_path: Path) -> GivenRuntime:
    """Return a runtime with five tools."""
    return GivenRuntime(tmp_path)


class PatientClock(answer_guard.Clock):
    """A clock for tests without delays: every event happens long after the question appeared."""

    def of(self, event: answer_guard.TimedEvent) -> float:
        """Return a time in the future."""
        return event.time + 1_000_000


@pytest.fixture(autouse=True)
def _answers_count_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let answers count without a delay; tests of the delay set a clock of their own."""
    monkeypatch.setattr(answer_guard, "clock", PatientClock())


@pytest.fixture(autouse=True, scope="package")
def _no_invisible_work() -> Iterator[None]:
    """Share parsed CSS between apps and compose no frames that nothing displays."""
    with pytest.MonkeyPatch.context() as patch:
        headless.install(patch)
        yield


@pytest.fixture(autouse=True)
def _closed_apps_are_collected() -> Iterator[None]:
    """Unfreeze the objects that an app excluded from garbage collection, because many more apps follow."""
    yield
    gc.unfreeze()
