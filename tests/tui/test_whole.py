"""The app on the real runtime: packs on disk, worker processes, the history."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from stage import Stage, on_stage

from pegboard.runtime import Runtime
from pegboard.tui import app as app_module
from pegboard.tui.dialogs.confirm import Confirm

PACK = '''
"""Greets."""
from pegboard.sdk import hints, log, progress

@hints(read_only=True)
def greet(*, name: str, times: int = 1) -> list[str]:
    """Greets somebody.

    Args:
        name: Whom.
        times: How often.
    """
    log(f"greeting {name}")
    progress(1, 1)
    return [f"Hello {name}"] * times

@hints(timeout=60)
def hang() -> None:
    """Never ends."""
    import time
    while True:
        time.sleep(1)
'''


@pytest.mark.promise("SEC-7", "STO-1")
async def test_calls_that_cant_be_recorded_are_marked_in_the_header_and_listed_with_the_reason(
    write_pack: Callable[[str, str], Path], home: Path
) -> None:
    (home / "state").write_text("a file where the folder should be")
    runtime = Runtime.from_environment(packs=[write_pack("greeter.py", PACK)])
    async with on_stage(runtime) as stage:
        await stage.open("greet")
        await stage.type("Ada")
        await stage.press("ctrl+r")
        await stage.until_seen("✓ ok")
        await stage.until(lambda: "✖ not recorded" in stage.lines[0], "the header says so")
        await stage.press("f6")
        await stage.until(lambda: "✖ not recorded" in stage.lines[0], "on every page")
        await stage.until(lambda: "1 problem" in stage.lines[0], "it is counted among the problems")
        await stage.press("ctrl+g")
        await stage.until_seen("The history can't be kept")
        assert "1 call is not recorded" in " ".join(stage.text.split())


@pytest.mark.promise("TUI-1", "STO-1", "EXE-7")
async def test_a_tool_is_found_filled_in_run_and_recorded(write_pack: Callable[[str, str], Path]) -> None:
    runtime = Runtime.from_environment(packs=[write_pack("greeter.py", PACK)])
    async with on_stage(runtime) as stage:
        await stage.open("greet")
        await stage.type("Ada")
        await stage.press("ctrl+r")
        await stage.until_seen("✓ ok")
        assert "not recorded" not in stage.lines[0]
        await stage.until_seen("Hello Ada")
        await stage.until_seen("1 call · none failed")
        await stage.until_seen("ctrl+↑ last arguments")
        assert [(record.tool, record.source, record.ok) for record in runtime.history.records()] == [
            ("greeter.greet", "form", True)
        ]


@pytest.mark.promise("EXE-4")
async def test_a_tool_that_hangs_is_cancelled_and_the_next_call_works(write_pack: Callable[[str, str], Path]) -> None:
    runtime = Runtime.from_environment(packs=[write_pack("greeter.py", PACK)])
    async with on_stage(runtime) as stage:
        await stage.type("hang")
        await stage.press("ctrl+r")
        await stage.until_seen("running")
        await stage.press("escape")
        await stage.until_seen("cancelled")
        await stage.press("escape")
        await stage.type("now")
        await stage.press("ctrl+r")
        await stage.until_seen("✓ ok")


@pytest.mark.promise("DSC-6", "DSC-7")
async def test_added_changed_and_broken_files_are_listed_live(write_pack: Callable[[str, str], Path]) -> None:
    folder = write_pack("greeter.py", PACK)
    runtime = Runtime.from_environment(packs=[folder])

    def tool_list(stage: Stage) -> str:
        return "\n".join(stage.tool_list)

    async with on_stage(runtime) as stage:
        write_pack("later.py", '"""Later."""\ndef come() -> None:\n    """Came."""\n')
        await stage.until(lambda: "come" in tool_list(stage), "the new tool is in the list")
        write_pack("later.py", "def (:")
        await stage.until(lambda: "✖ later" in tool_list(stage), "the broken pack is in the list")
        (folder / "later.py").unlink()
        await stage.until(lambda: "later" not in tool_list(stage), "the removed pack is gone")


@pytest.mark.promise("TUI-2")
async def test_files_of_killed_processes_are_deleted_while_the_app_runs(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "_SWEEP_AFTER_SECONDS", 0.1)
    left = home / "state" / "results" / "left.json"
    unused = home / "cache" / "index" / "0123456789abcdef-00"
    for file in (left, unused):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("[]")
        os.utime(file, (0, 0))
    async with on_stage(Runtime.from_environment()) as stage:
        await stage.until(lambda: not left.exists() and not unused.exists(), "both are gone")


def test_the_editor_runs_in_the_terminal_with_file_and_line_and_the_app_resumes(
    write_pack: Callable[[str, str], Path], tmp_path: Path
) -> None:
    folder = write_pack("greeter.py", PACK)
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/o && mv {tmp_path}/o {tmp_path}/opened\n')
    editor.chmod(0o755)
    environ = os.environ | {"VISUAL": str(editor), "TERM": "xterm-256color", "LINES": "40", "COLUMNS": "120"}
    primary, secondary = pty.openpty()
    command = [sys.executable, "-m", "pegboard", "--packs", str(folder)]
    process = subprocess.Popen(command, stdin=secondary, stdout=secondary, stderr=secondary, env=environ)
    os.close(secondary)
    try:
        _read_until(primary, "type to filter")
        os.write(primary, b"greet")
        _read_until(primary, "Whom.")
        os.write(primary, b"\x1bOS")  # f4
        # A key pressed before the screen is taken back would go to the terminal's own line editing.
        _read_until(primary, "type to filter|Arguments", after=_SCREEN_TAKEN)
        assert (tmp_path / "opened").read_text().split() == ["+6", str(folder / "greeter.py")]
        os.write(primary, b"\x11")  # ctrl+q
        _drain(primary, process)
        assert process.wait(20) == 0
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        os.close(primary)


_SCREEN_TAKEN = "\x1b[?1049h"


def _read_until(terminal: int, words: str, *, after: str = "") -> None:
    """Read the output of the app until a word appears after another text, at most 30 seconds."""
    seen = ""
    end = time.monotonic() + 30
    while not any(word in seen.partition(after)[2] if after else word in seen for word in words.split("|")):
        assert time.monotonic() < end, f"{words!r} was not painted: {seen[-2000:]!r}"
        if select.select([terminal], [], [], 0.05)[0]:
            seen += os.read(terminal, 65536).decode(errors="replace")


def _drain(terminal: int, process: subprocess.Popen[bytes]) -> None:
    """Read the output until the app has ended, at most 30 seconds."""
    end = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < end:
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                os.read(terminal, 65536)
            except OSError:  # the other end is closed
                return


async def test_a_tool_with_a_missing_requirement_is_marked_and_reports_it_when_run(
    write_pack: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_pack("lacking.py", LACKING)
    monkeypatch.setenv("PEGBOARD_PACKS", str(folder))
    async with on_stage(Runtime.from_environment()) as stage:
        await stage.type("lacking")
        await stage.until_seen("blocked")
        await stage.press("ctrl+r")
        await stage.until_seen("anyway?")
        await stage.press("ctrl+y")
        await stage.until_seen("dependency_missing")
        await stage.until_seen("no-such-program")


LACKING = '''
"""Needs what is nowhere."""

from pegboard.sdk import requires_cli


@requires_cli("no-such-program", install="Get it from the shop.")
def work() -> int:
    """Works."""
    return 1
'''


@pytest.mark.promise("SEC-2", "DSC-6")
async def test_a_tool_that_has_just_become_destructive_asks_before_it_runs(
    write_pack: Callable[[str, str], Path],
) -> None:
    pack = write_pack("greeter.py", PACK)
    async with on_stage(Runtime.from_environment(packs=[pack])) as stage:
        await stage.open("greet")
        await stage.type("Ada")
        write_pack("greeter.py", PACK.replace("@hints(read_only=True)", "@hints(destructive=True)"))
        await stage.press("ctrl+r")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it asks")
        assert "greeter.greet may delete or overwrite data." in stage.text
