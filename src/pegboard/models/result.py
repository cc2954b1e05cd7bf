"""The answer to a call."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from pegboard.models.model import Model
from pegboard.models.problem import Fault

ErrorCode = Literal["tool_not_found", "invalid_args", "execution_error"]


class ToolError(Model):
    """Why a call failed."""

    code: ErrorCode
    message: str
    """A sentence or more, for people and models alike."""
    detail: str | None = None
    """What kind of failure, finer than the code: `timeout`, `cancelled`, `crashed`, `out_of_memory`, `import_failed`,
    `not_serialisable`, `not_kept`, `not_allowed`, `denied`, `dependency_missing`, `too_deep`, or the author's own code
    given to `ToolFailed`."""
    faults: tuple[Fault, ...] = Field(default=(), exclude_if=lambda faults: not faults)
    """For `invalid_args`: every fault with its path; not in the JSON of any other error."""
    said: bool = Field(default=False, exclude=True, repr=False)
    """Whether the tool's author worded it, with `ToolFailed`; never in the JSON."""


class Truncation(Model):
    """What of a large result is missing and where all of it is."""

    shown_bytes: int
    total_bytes: int
    file: str
    """Absolute path of the whole result as JSON."""


class ResultMeta(Model):
    """How a call went, whatever came of it."""

    duration_ms: float = 0.0
    """From the start of the tool to its end; waiting for a worker is left out."""
    worker: str | None = None
    """Which process ran it (`pid 4711`), for people."""
    size: int = 0
    """Bytes of the whole data as JSON."""
    cached: bool = False
    truncated: Truncation | None = None
    traceback: str | None = None
    """The frames of the tool's own code, where an exception ended it."""
    log_bytes_dropped: int = 0
    """Bytes of output beyond what is kept of a call."""


class ToolResult(Model):
    """The answer to one call."""

    ok: bool
    data: JsonValue = None
    error: ToolError | None = None
    meta: ResultMeta = ResultMeta()

    @classmethod
    def failed(cls, code: ErrorCode, message: str, detail: str | None = None, *faults: Fault) -> ToolResult:
        """Builds the answer to a call that failed before or without running."""
        return cls(ok=False, error=ToolError(code=code, message=message, detail=detail, faults=faults))
