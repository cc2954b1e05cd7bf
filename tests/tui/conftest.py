"""Fixtures of the interface tests; `stage`, `chat_stage` and the fakes are importable by name."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from textual.app import App

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "fakes")]

from headless import no_invisible_work  # noqa: E402, F401 - only now it can be found; a fixture
from pictures import snap_compare  # noqa: E402, F401 - as above
from stage import GivenRuntime  # noqa: E402 - as above

from pegboard.tui.widgets import answer_guard  # noqa: E402 - as above


@pytest.fixture
def external_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that sets `$EDITOR` to a shell script; the script's `$file` is the edited file."""

    @contextmanager
    def suspend(app: App[None]) -> Iterator[None]:
        """Do nothing: tests have no terminal to suspend."""
        del app
        yield

    def edit_with(script: str) -> None:
        editor = tmp_path / "editor.sh"
        editor.write_text(f"#!/bin/sh\nfor file; do :; done\n{script}\n")
        editor.chmod(0o755)
        monkeypatch.setenv("EDITOR", str(editor))
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setattr(App, "suspend", suspend)

    return edit_with


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
def _no_program_is_missing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Provide the programs of the built-in packs that this machine lacks, whose problems every header would count."""
    folder = tmp_path_factory.mktemp("programs")
    program = folder / "rg"
    program.write_text("#!/bin/sh\necho 'ripgrep 14.1.1'\n")
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{folder}")
        yield
