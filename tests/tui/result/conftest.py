"""Fixtures for the result pane."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pyperclip
import pytest

from .pane_stage import OpenStage, PaneApp, Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenStage:
    """Return a function that opens the app at a size, without a system clipboard."""

    def no_clipboard(text: str) -> None:
        raise pyperclip.PyperclipException("none here")

    monkeypatch.setattr(pyperclip, "copy", no_clipboard)
    for name in ("TMUX", "STY", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.chdir(tmp_path)

    @asynccontextmanager
    async def opened(width: int = 80, height: int = 24, *, notices: bool = False) -> AsyncIterator[Stage]:
        app = PaneApp(tmp_path / "copies")
        async with app.run_test(size=(width, height), notifications=notices) as pilot:
            yield Stage(app, pilot)

    return opened
