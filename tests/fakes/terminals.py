"""Pegboard in a real terminal whose every byte is read."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from commands import forked

_SECONDS = 40
_ON = re.compile(r"\x1b\[\?(1049|1000|1003|1002|1015|1006|2004|1004)([hl])")


class Terminal:
    """A separate terminal with a program as the leader of its session.

    Attributes:
        process: The program.
        output: Its output so far.
    """

    def __init__(self, command: list[str], environ: Mapping[str, str] | None, size: tuple[int, int]) -> None:
        self._primary, secondary = pty.openpty()
        columns, rows = size
        fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._before: list[Any] = termios.tcgetattr(secondary)
        self._secondary = secondary
        self.output = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")  # reads may split characters
        self.process = subprocess.Popen(
            command,
            stdin=secondary,
            stdout=secondary,
            stderr=secondary,
            env={**os.environ, "TERM": "xterm-256color", **(environ or {})},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - nothing runs beside it
        )

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self._primary, text.encode())

    def read_until(self, words: str) -> None:
        """Read until a text is in the output; fail after a timeout."""
        end = time.monotonic() + _SECONDS
        while words not in self.output:
            assert time.monotonic() < end, f"{words!r} was not written: {self.output[-3000:]!r}"
            self._read()

    def until(self, true: Callable[[], object], what: str) -> None:
        """Read until a condition is true; fail after a timeout."""
        end = time.monotonic() + _SECONDS
        while not true():
            assert time.monotonic() < end, f"not so after a while: {what}; {self.output[-3000:]!r}"
            self._read()

    def read_all(self) -> int:
        """Read until the program has ended; return its exit code."""
        end = time.monotonic() + _SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < end, f"the program has not ended: {self.output[-3000:]!r}"
            self._read()
        self.read_rest()
        return self.process.returncode

    def read_rest(self) -> None:
        """Read what the program, which has ended or stopped, has written."""
        while self._read():
            pass

    @property
    def shows_input(self) -> bool:
        """Whether the terminal shows typed characters."""
        return bool(termios.tcgetattr(self._secondary)[3] & termios.ECHO)

    def stop(self) -> None:
        """Stop the program, and take the terminal as a shell does, which shows typed characters."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)
        termios.tcsetattr(self._secondary, termios.TCSANOW, self._before)

    def hang_up(self) -> None:
        """Close the terminal, like closing its window."""
        os.close(self._secondary)
        os.close(self._primary)
        self._primary = self._secondary = -1

    @property
    def modes(self) -> dict[str, bool]:
        """The modes that the program has set: alternate screen, mouse, paste, focus; whether each is on."""
        return {mode: state == "h" for mode, state in _ON.findall(self.output)}

    @property
    def is_as_before(self) -> bool:
        """Whether the program has restored the terminal."""
        now = termios.tcgetattr(self._secondary)
        cursor = self.output.rfind("\x1b[?25h") >= self.output.rfind("\x1b[?25l")
        return not any(self.modes.values()) and cursor and now == self._before

    def _read(self) -> bool:
        if not select.select([self._primary], [], [], 0.05)[0]:
            return False
        self.output += self._decoder.decode(os.read(self._primary, 65536))
        return True

    def close(self) -> None:
        """End the program, if it runs, and close the terminal."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for descriptor in (self._primary, self._secondary):
            if descriptor >= 0:
                os.close(descriptor)


@contextmanager
def pegboard(
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    size: tuple[int, int] = (100, 30),
    is_forked: bool = False,
) -> Iterator[Terminal]:
    """Run Pegboard in a terminal, and end it with the block.

    Args:
        arguments: The arguments of the program.
        environ: More environment variables.
        size: Columns and rows.
        is_forked: Whether the command server runs it, see `commands`: quicker, but of the signals of the terminal
            it gets only those that end it.
    """
    command = forked("pegboard") if is_forked else [sys.executable, "-m", "pegboard"]
    terminal = Terminal([*command, *arguments], environ, size)
    try:
        yield terminal
    finally:
        terminal.close()
