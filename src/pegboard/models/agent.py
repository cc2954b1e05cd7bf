"""Agents outside of Pegboard that call tools: MCP clients of `pegboard serve` and `pegboard watch`."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Self
from urllib.parse import quote, unquote

from pegboard.models.model import DataModel

_PREFIX = "agent:"
_LONGEST = 100
_LONGEST_SHOWN = 40
_PARTS = 5
_PROC = "/proc"
_PS_SECONDS = 2.0


class Agent(DataModel):
    """A client of MCP servers. Its name and version are untrusted text.

    All servers that one client process connects to are one agent.
    """

    name: str = ""
    """The client's own name; empty if it doesn't report one."""
    version: str = ""
    process: int | None = None
    """Id of the client's process; None if it is unknown, as for clients over HTTP."""
    started: str = ""
    """Start of the process, or of the connection: an ISO time in UTC."""
    key: str = ""
    """Distinguishes connections of clients whose process is unknown, unless their server is their only one."""

    @classmethod
    def connected(cls, process: int | None, *, started: str = "", name: str = "", version: str = "") -> Self:
        """Return the agent of a new connection.

        Args:
            process: Id of the client's process, if known.
            started: Start of the process or of the connection, if known.
            name: The client's name.
            version: The client's version.
        """
        if process is None:
            key = "" if started else os.urandom(4).hex()
            return cls(name=name, version=version, started=started or _iso(time.time()), key=key)
        return cls(name=name, version=version, process=process, started=started or _started_at(process))

    @property
    def session(self) -> str:
        """The session id under which the agent's calls are recorded."""
        parts = (self.name[:_LONGEST], self.version[:_LONGEST], str(self.process or ""), self.started, self.key)
        return _PREFIX + ":".join(quote(part, safe=" ", errors="replace") for part in parts)

    @classmethod
    def of_session(cls, session: str | None) -> Self | None:
        """Return the agent of a session id; None if it isn't one of an agent."""
        if session is None or not session.startswith(_PREFIX):
            return None
        parts = [unquote(part) for part in session.removeprefix(_PREFIX).split(":")]
        if len(parts) != _PARTS or not (parts[2].isdecimal() or not parts[2]):
            return None
        name, version, process, started, key = parts
        return cls(name=name, version=version, process=int(process) if process else None, started=started, key=key)

    def __str__(self) -> str:
        """Return the agent as text: `claude-code 2.0 (process 4711)`.

        The name and the version are cut and their blanks collapsed, so that they can't fill lines, which would hide or
        imitate the text around them.
        """
        name, version = _shown(self.name), _shown(self.version)
        process = f" (process {self.process})" if self.process is not None else ""
        return f"{name or 'MCP client'}{f' {version}' if version else ''}{process}"


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_SHOWN else f"{line[: _LONGEST_SHOWN - 1]}…"


def _started_at(process: int) -> str:
    """Return when a process started, or now if that is unknown."""
    try:
        seconds = _started_by_proc(process) if os.path.isdir(f"{_PROC}/self") else _started_by_ps(process)  # noqa: PTH112
    except (OSError, ValueError, IndexError, StopIteration):
        seconds = time.time()
    return _iso(seconds)


def _started_by_proc(process: int) -> float:
    fields = Path(f"{_PROC}/{process}/stat").read_bytes().rpartition(b")")[2].split()
    # Not from the uptime: every process must find the same second.
    booted = next(line for line in Path(f"{_PROC}/stat").read_text("ascii").splitlines() if line.startswith("btime"))
    return int(booted.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _started_by_ps(process: int) -> float:
    """Return when a process started on systems without `/proc`, such as macOS.

    Raises:
        OSError, ValueError: That is unknown.
    """
    import subprocess

    command = ["ps", "-o", "lstart=", "-p", str(process)]
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC0"}
    try:
        shown = subprocess.run(  # noqa: S603 - no text of others
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PS_SECONDS,
            check=False,
        ).stdout
    except subprocess.TimeoutExpired as error:
        raise OSError(str(error)) from None
    return datetime.strptime(shown.strip(), "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC).timestamp()


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
