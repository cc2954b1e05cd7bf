"""Timeline of a session, and the totals of its tools."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from pegboard.models.conversation import Usage
from pegboard.models.model import DataModel
from pegboard.models.record import CallState


class SessionTool(DataModel):
    """Calls of one tool in one session."""

    tool: str
    calls: int
    failures: int
    """Failed calls, without cancelled and denied ones."""
    duration_ms: float
    """Duration of all calls together."""
    size: int
    """Size of the results that the agent received, as JSON in bytes; calls inside scripts don't count."""


class TimelineBar(DataModel):
    """A model turn or a call on the timeline of a session."""

    kind: Literal["turn", "call"]
    id: str
    """Id of the call; for a turn, its message's position in the session, or its own id in a session of telemetry."""
    label: str
    """Name of the tool, or start of the model's text."""
    start: datetime
    end: datetime
    state: CallState
    parent: str | None = None
    """Id of the call that made it."""
    exit_code: int | None = Field(default=None, exclude_if=lambda code: code is None)
    """Exit code of a script that ran to its end; its state is ok even if the code isn't 0."""
    model: str = Field(default="", exclude_if=lambda model: not model)
    """Model of a turn of another agent: untrusted text."""
    usage: Usage | None = Field(default=None, exclude_if=lambda usage: usage is None)
    """Tokens of such a turn."""

    @property
    def outcome(self) -> str:
        """Its state, or the exit code of a script if it isn't 0."""
        return f"exit {self.exit_code}" if self.exit_code else self.state


class TimelineGap(DataModel):
    """A time in which neither the model nor a tool worked."""

    start: datetime
    end: datetime


class SessionTimeline(DataModel):
    """Model turns and calls of one session, in the order of their start."""

    session: str
    bars: tuple[TimelineBar, ...]
    gaps: tuple[TimelineGap, ...]
    is_whole: bool
    """Whether these are all; only the latest calls of a long session are listed."""
