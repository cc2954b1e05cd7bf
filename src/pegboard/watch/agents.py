"""Identity of a watched agent: the client's name, version, process and start time."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self
from urllib.parse import quote, unquote

_PREFIX = "agent:"
_LONGEST = 100


@dataclass(frozen=True)
class Agent:
    """A client of MCP servers. Its name and version are untrusted text.

    All servers that one client process connects to are one agent.
    """

    name: str = "unknown"
    version: str = ""
    pid: int = 0
    """Its process; 0 if it is unknown, as of clients over HTTP."""
    started: str = ""
    """Start of the process, or of the connection: an ISO time in UTC."""

    @property
    def session(self) -> str:
        """The session id under which the agent's calls are recorded."""
        parts = (self.name[:_LONGEST], self.version[:_LONGEST], str(self.pid or ""), self.started)
        return _PREFIX + ":".join(quote(part, safe=" ", errors="replace") for part in parts)

    @classmethod
    def of_session(cls, session: str | None) -> Self | None:
        """Return the agent of a session id; None if it isn't one of an agent."""
        if session is None or not session.startswith(_PREFIX):
            return None
        parts = [unquote(part) for part in session.removeprefix(_PREFIX).split(":")]
        if len(parts) != 4 or not (parts[2].isdecimal() or not parts[2]):
            return None
        return cls(parts[0], parts[1], int(parts[2] or 0), parts[3])

    def __str__(self) -> str:
        """Return the agent as text: `claude-code 2.0 (process 4711)`."""
        process = f" (process {self.pid})" if self.pid else ""
        return f"{self.name}{f' {self.version}' if self.version else ''}{process}"


def started_at(pid: int) -> str:
    """Return when a process started, or now if that is unknown."""
    seconds = time.time()
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        uptime = float(Path("/proc/uptime").read_text("ascii").split()[0])
        seconds = time.time() - uptime + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        pass
    return datetime.fromtimestamp(round(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
