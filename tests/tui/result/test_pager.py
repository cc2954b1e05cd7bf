"""The pager in a real terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import textwrap
from pathlib import Path
from time import monotonic

import pytest
from headless import TIMEOUT_SECONDS

from pegboard.results.export import pager_command

APP = """
    import sys
    from pathlib import Path

    from textual.app import App

    from pegboard.models import ToolCall, ToolResult
    from pegboard.tui.result import ResultPane


    class OnePane(App):
        def compose(self):
            yield ResultPane()

        def on_mount(self):
            pane = self.query_one(ResultPane)
            data = {"secret of the pane": "\\x1b[31m" + "x" * 3000}
            pane.show(ToolCall(name="demo.tool", source="form"), ToolResult(ok=True, data=data))
            self.call_after_refresh(pane.focus)
            self.ticks = 0
            self.set_interval(0.01, self.tick)

        def tick(self):
            # The loop goes on while the pager has the terminal; it is the pager that waits for this file.
            if Path(sys.argv[1], "paged").exists():
                Path(sys.argv[1], "ticked").touch()


    OnePane().run()
"""
PAGER = """\
#!/bin/sh
echo the pager has the terminal
cp "$2" "$1/content"
touch "$1/paged"
until [ -e "$1/ticked" ]; do sleep 0.01; done
"""


class Terminal:
    """Process in its own terminal of 80 by 24 cells."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, start_new_session=True
        )
        os.close(theirs)
        self._said = b""

    def press(self, keys: bytes) -> None:
        """Send keys as a terminal does."""
        os.write(self._ours, keys)

    def wait_for(self, text: bytes) -> None:
        """Read until `text` has been written since the last call."""
        end = monotonic() + TIMEOUT_SECONDS
        while text not in self._said:
            ready, _, _ = select.select([self._ours], [], [], max(end - monotonic(), 0))
            assert ready, f"{text!r} was not written; but: {self._said[-2000:]!r}"
            self._said += os.read(self._ours, 65536)
        self._said = self._said.split(text, 1)[1]

    def close(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.mark.promise("TUI-2")
def test_the_pager_owns_the_terminal_while_calls_and_timers_continue(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(textwrap.dedent(APP))
    pager = tmp_path / "pager"
    pager.write_text(PAGER)
    pager.chmod(0o755)
    environ = os.environ | {
        "PAGER": f"'{pager}' '{tmp_path}'",
        "TERM": "xterm-256color",
        "TMPDIR": str(tmp_path),
        "COLUMNS": "80",
        "LINES": "24",
    }
    terminal = Terminal([sys.executable, str(tmp_path / "app.py"), str(tmp_path)], environ)
    try:
        terminal.wait_for(b"secret of the pane")
        terminal.press(b"\x1bOR")
        terminal.wait_for(b"the pager has the terminal")
        terminal.wait_for(b"secret of the pane")
        assert (tmp_path / "content").read_text() == '{\n  "secret of the pane": "\\u001b[31m' + "x" * 3000 + '"\n}'
        assert list(tmp_path.glob("result-*")) == []
        terminal.press(b"\x11")
        assert terminal.process.wait(timeout=TIMEOUT_SECONDS) == 0
    finally:
        terminal.close()


def test_the_app_has_the_terminal_again_if_the_pager_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(textwrap.dedent(APP))
    environ = os.environ | {"PAGER": "no-such-pager", "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    terminal = Terminal([sys.executable, str(tmp_path / "app.py"), str(tmp_path)], environ)
    try:
        terminal.wait_for(b"secret of the pane")
        terminal.press(b"\x1bOR")
        terminal.wait_for(b"no-such-pager was not opened")
        terminal.press(b"\x11")
        assert terminal.process.wait(timeout=TIMEOUT_SECONDS) == 0
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("said", "command"),
    [(None, ["less"]), ("", ["less"]), ("bat -p 'a b'", ["bat", "-p", "a b"]), ("less 'open", ["less"])],
)
def test_the_users_pager_is_used(monkeypatch: pytest.MonkeyPatch, said: str | None, command: list[str]) -> None:
    monkeypatch.delenv("PAGER", raising=False)
    if said is not None:
        monkeypatch.setenv("PAGER", said)
    assert pager_command() == command
