"""Copying with a system clipboard, a terminal, a multiplexer, or none of them."""

from __future__ import annotations

import asyncio
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyperclip
import pytest
from headless import TIMEOUT_SECONDS

from pegboard.tui.widgets import clipboard
from pegboard.tui.widgets.clipboard import copy, terminal_accepts

from .pane_stage import OpenStage

pytestmark = pytest.mark.promise("TUI-5")


async def test_the_system_clipboard_is_used_in_addition_to_the_terminal(
    stage: OpenStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []
    async with stage() as on:
        monkeypatch.setattr(pyperclip, "copy", copied.append)
        said = await copy(on.app, "täxt", tmp_path)
        assert said == "Copied 5 B to the terminal (OSC 52) and the system clipboard."
        assert copied == ["täxt"]
        assert on.app.clipboard == "täxt"
        assert on.app.notices == [said]


async def test_without_a_system_clipboard_the_terminal_is_trusted(stage: OpenStage, tmp_path: Path) -> None:
    async with stage() as on:
        folder = tmp_path / "copies"
        assert await copy(on.app, "x" * 1200, folder) == "Copied 1.2 kB to the terminal (OSC 52)."
        assert not folder.exists()


async def test_text_that_no_clipboard_accepts_is_saved_to_a_private_file(
    stage: OpenStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default")
    async with stage() as on:
        monkeypatch.setenv("TMUX", "/tmp/tmux-0/default")
        said = await copy(on.app, "x" * 100_000, tmp_path / "copies")
        [file] = (tmp_path / "copies").iterdir()
        assert said == f"No clipboard accepts 100 kB here. The text is in {file}"
        assert file.read_text() == "x" * 100_000
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert on.app.clipboard == "x" * 100_000


async def test_a_clipboard_program_that_never_ends_occupies_no_thread_that_others_need(
    stage: OpenStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    monkeypatch.setattr(pyperclip, "copy", lambda _: ended.wait())
    monkeypatch.setattr(clipboard, "_SYSTEM_SECONDS", 0.01)
    async with stage() as on:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        try:
            assert await copy(on.app, "text", tmp_path) == "Copied 4 B to the terminal (OSC 52)."
            async with asyncio.timeout(TIMEOUT_SECONDS):
                assert await asyncio.to_thread(tmp_path.is_dir)
        finally:
            ended.set()


async def test_a_file_that_cannot_be_written_is_reported(
    stage: OpenStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    async with stage() as on:
        monkeypatch.setenv("TERM", "dumb")
        said = await copy(on.app, "text", tmp_path / "file")
        assert said.startswith("4 B was not copied")


async def test_text_that_cannot_be_encoded_is_copied_escaped(stage: OpenStage, tmp_path: Path) -> None:
    async with stage() as on:
        await copy(on.app, "a\ud800", tmp_path)
        assert on.app.clipboard == "a\\ud800"


@pytest.mark.parametrize(
    ("environ", "count", "takes"),
    [
        ({"TERM": "xterm-256color"}, 500_000, True),
        ({"TERM": "xterm-256color"}, 900_000, False),
        ({"TERM": "xterm-256color", "TMUX": "x"}, 50_000, True),
        ({"TERM": "xterm-256color", "TMUX": "x"}, 60_000, False),
        ({"TERM": "screen.xterm"}, 60_000, False),
        ({"TERM": "linux"}, 1, False),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, 1, False),
    ],
)
def test_a_terminal_is_trusted_up_to_its_known_limit(environ: dict[str, str], count: int, takes: bool) -> None:
    assert terminal_accepts(count, environ) is takes
