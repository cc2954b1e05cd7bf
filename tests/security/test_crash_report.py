"""An unexpected error ends with a sentence and a private report without secrets and values of variables."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import Terminal

SECRET = "sk-or-v1-0123456789abcdef0123456789abcdef"
LOCAL = "value-of-a-local-variable"

CRASHES = {
    "a key": "PegboardApp.action_help = lambda self: fail()",
    "a task": "PegboardApp.action_help = lambda self: self.run_worker(later())",
    "a thread worker": "PegboardApp.action_help = lambda self: self.run_worker(fail, thread=True)",
    "an error that draws itself": "PegboardApp.action_help = lambda self: fail(Drawn)",
    "a panic": "PegboardApp.action_help = lambda self: self.panic('[/] ' + held['key'])",
    "the start": "PegboardApp.on_mount = lambda self: fail()",
    "before the start": "PegboardApp.__init__ = lambda *_: fail()",
}

PROGRAM = f"""
import sys

from pegboard.tui.app import PegboardApp

held = {{"key": {SECRET!r}}}

class Drawn(Exception):
    def __rich__(self):
        return str(self)

def fail(kind=ValueError):
    local = {LOCAL!r}
    raise kind(f"refused {{held['key']}} \\x1b]0;x\\x07 [/]")

async def later():
    fail()

CHANGE
sys.argv = ["pegboard", *sys.argv[1:]]
from pegboard.__main__ import main
main()
"""


def _reports(home: Path) -> list[Path]:
    return sorted((home / "state" / "crashes").glob("crash-*.txt"))


def _check(report: Path, output: str) -> None:
    text = report.read_text()
    assert str(report) in output.replace("\r", "").replace("\n", "")
    assert "Traceback" not in output
    for secret in (SECRET, LOCAL):
        assert secret not in output
    assert SECRET not in text
    assert f"= '{LOCAL}'" not in text
    assert "\x1b" not in text
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert stat.S_IMODE(report.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("where", CRASHES)
@pytest.mark.promise("SEC-7", "STO-2")
def test_a_crash_of_the_app_restores_the_terminal_and_names_a_redacted_report(where: str, home: Path) -> None:
    program = PROGRAM.replace("CHANGE", CRASHES[where])
    terminal = Terminal([sys.executable, "-c", program], {"OPENROUTER_API_KEY": SECRET}, (100, 30))
    try:
        if "start" not in where:
            terminal.read_until("type to filter")
            terminal.type("\x1bOP")  # f1
        assert terminal.read_all() == 1
        assert terminal.is_as_before
        [report] = _reports(home)
        after = terminal.output.rpartition("\x1b[?1049l")[2]
        _check(report, after)
        assert SECRET not in terminal.output
        assert LOCAL not in terminal.output
        text = report.read_text()
        assert "Error" in text or "Drawn" in text
        assert "«secret OPENROUTER_API_KEY»" in text
    finally:
        terminal.close()


@pytest.mark.parametrize("where", ["a key", "a task", "a thread worker"])
def test_the_report_of_a_crash_of_the_app_shows_where_the_error_was_raised(where: str, home: Path) -> None:
    terminal = Terminal([sys.executable, "-c", PROGRAM.replace("CHANGE", CRASHES[where])], {}, (100, 30))
    try:
        terminal.read_until("type to filter")
        terminal.type("\x1bOP")  # f1
        assert terminal.read_all() == 1
        [report] = _reports(home)
        text = report.read_text()
        assert ", in fail\n" in text
        assert "\nValueError: refused " in text
        assert "unexpected error (ValueError)" in terminal.output.rpartition("\x1b[?1049l")[2]
    finally:
        terminal.close()


COMMANDS = {
    "a command": "Tools.scan = lambda self: fail()",
    "a task": """
async def call(self, call):
    fail()
    yield
Runtime.call = call""",
}

COMMAND = PROGRAM.replace(
    "from pegboard.tui.app import PegboardApp",
    "from pegboard.runtime import Runtime\nfrom pegboard.runtime.tools import Tools",
)


@pytest.mark.parametrize("where", COMMANDS)
def test_an_unexpected_error_of_a_command_is_a_sentence_and_a_redacted_report(
    where: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", SECRET)
    program = COMMAND.replace("CHANGE", COMMANDS[where])
    done = subprocess.run(
        [sys.executable, "-c", program, "tools", "invoke", "time.now"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    [report] = _reports(home)
    _check(report, done.stderr)
    assert len(done.stderr.splitlines()) == 1


BACKGROUND = {
    "a thread": "import threading; t = threading.Thread(target=fail); t.start(); t.join()",
    "a finalizer": "class Bad:\n    def __del__(self): fail()\nBad()",
    "a forgotten task": """
import asyncio, gc
async def forget():
    asyncio.get_running_loop().create_task(later())
    await asyncio.sleep(0.01)
asyncio.run(forget()); gc.collect()""",
}


@pytest.mark.parametrize("where", BACKGROUND)
def test_a_background_error_is_reported_and_ends_nothing(
    where: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", SECRET)
    begun = "from pegboard.cli import crash\ncrash.install()\ncrash.follow_tasks()\n"
    program = COMMAND.replace("CHANGE", begun + BACKGROUND[where])
    done = subprocess.run(
        [sys.executable, "-c", program, "tools", "list"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0
    assert "time.now" in done.stdout
    [report] = _reports(home)
    _check(report, done.stderr)


def test_a_report_that_cannot_be_written_is_mentioned_without_the_error_text(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", SECRET)
    (home / "state").write_text("a file in the way")
    done = subprocess.run(
        [sys.executable, "-c", COMMAND.replace("CHANGE", COMMANDS["a command"]), "tools", "list"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "could not be written" in done.stderr
    assert SECRET not in done.stderr
    assert "Traceback" not in done.stderr
