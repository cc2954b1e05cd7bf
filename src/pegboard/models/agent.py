"""Agents outside of Pegboard that call its tools."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from pydantic import Field

from pegboard.models.model import DataModel

_LONGEST = 60


class Agent(DataModel):
    """One connection of an MCP client. Its name and version are untrusted text."""

    name: str = ""
    """The client's own name; empty if it doesn't report one."""
    version: str = ""
    process: int | None = None
    """Id of the client's process, if known."""
    at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    """When the connection began, UTC."""
    key: str = Field(default_factory=lambda: os.urandom(4).hex())
    """Distinguishes connections that are otherwise equal."""

    @property
    def session(self) -> str:
        """The session of its calls: `claude-code 2.1 · pid 4711 · 2026-11-22T10:42:07Z · 5f0c9a1e`."""
        named = " ".join(text for text in (_line(self.name), _line(self.version)) if text) or "MCP client"
        process = f"pid {self.process}" if self.process is not None else ""
        return " · ".join(text for text in (named, process, f"{self.at:%Y-%m-%dT%H:%M:%SZ}", self.key) if text)


def _line(text: str) -> str:
    """Return the printable characters of a text on one line, shortened."""
    return "".join(sign if sign.isprintable() and sign != "·" else " " for sign in text[:_LONGEST]).strip()
