"""The result of a call."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from pegboard.models.model import DataModel, JsonObject
from pegboard.models.problem import Fault

ErrorCode = Literal["tool_not_found", "invalid_args", "execution_error"]


class ToolError(DataModel):
    """Why a call failed."""

    code: ErrorCode
    message: str
    """One or more sentences, for people and models alike."""
    detail: str | None = None
    """Finer kind of failure: `timeout`, `cancelled`, `crashed`, `out_of_memory`, `import_failed`, `not_serialisable`,
    `not_kept`, `not_allowed`, `denied`, `dependency_missing`, `too_deep`, `changed`, or the code that an author passed
    to `ToolFailed`.
    """
    faults: tuple[Fault, ...] = Field(default=(), exclude_if=lambda faults: not faults)
    """For `invalid_args`: every validation error with its path; not in the JSON of other errors."""
    said: bool = Field(default=False, exclude=True, repr=False)
    """Whether the tool's author wrote the message, with `ToolFailed`; never in the JSON."""


class Truncation(DataModel):
    """The file that contains the whole of a large result."""

    shown_bytes: int
    total_bytes: int
    file: str
    """Absolute path of the whole result as JSON."""


class LogPart(DataModel):
    """A piece of a tool's output: untrusted text, not necessarily whole lines."""

    stream: Literal["stdout", "stderr", "log"]
    text: str


class ResultMeta(DataModel):
    """Measurements of a call, whatever its result."""

    duration_ms: float = 0.0
    """Time from the start of the tool to its end, without waiting for a worker or for approval."""
    waited_ms: float = Field(default=0.0, exclude_if=lambda waited: not waited)
    """Time for which the call waited for approval or for the end of a pause; 0 if it didn't."""
    worker: str | None = None
    """The process that ran it (`pid 4711`), for people."""
    size: int = 0
    """Bytes of the whole data as JSON; 0 for an error without data."""
    cached: bool = False
    truncated: Truncation | None = None
    traceback: str | None = None
    """The frames of the tool's own code, if it raised an exception."""
    exit_code: int | None = Field(default=None, exclude_if=lambda code: code is None)
    """Exit code of a script that ran to its end."""
    log_bytes_dropped: int = 0
    """Bytes of output beyond the limit of a call."""
    log: tuple[LogPart, ...] = Field(default=(), exclude_if=lambda log: not log)
    """The end of the tool's output, only in the record of a call."""
    warnings: tuple[str, ...] = Field(default=(), exclude_if=lambda warnings: not warnings)
    """Problems of a successful result, such as data that doesn't match the output schema."""
    server_meta: JsonObject | None = Field(default=None, exclude_if=lambda meta: meta is None)
    """The `_meta` of an MCP server's result: untrusted."""
    content: tuple[JsonValue, ...] = Field(default=(), exclude_if=lambda content: not content)
    """What an MCP server sent beside structured content, which is the data: images, texts and more; untrusted."""

    @property
    def beside_data(self) -> list[JsonValue]:
        """All that an MCP server sent beside the data."""
        return [self.server_meta, *self.content]


class ToolResult(DataModel):
    """The result of one call."""

    ok: bool
    data: JsonValue = None
    error: ToolError | None = None
    meta: ResultMeta = ResultMeta.model_construct()
    original: JsonObject | None = Field(default=None, exclude=True, repr=False)
    """The result as an MCP server sent it, for an MCP client that made the call; never recorded."""

    @property
    def was_stopped(self) -> bool:
        """Whether the call was cancelled or rejected."""
        return self.error is not None and self.error.detail in {"cancelled", "denied"}

    @classmethod
    def failed(cls, code: ErrorCode, message: str, detail: str | None = None, *faults: Fault) -> ToolResult:
        """Build the result of a call that failed before or without running."""
        return cls(ok=False, error=ToolError(code=code, message=message, detail=detail, faults=faults))

    @classmethod
    def changed(cls, tool: str) -> ToolResult:
        """Build the result of a call whose tool changed after the call was allowed."""
        message = f"{tool} was not called because the tool changed while the call was waiting. Call it again."
        return cls.failed("execution_error", message, "changed")

    def after_wait(self, milliseconds: float) -> ToolResult:
        """Return this result with the time for which its call waited for approval."""
        if milliseconds <= 0:
            return self
        return self.model_copy(update={"meta": self.meta.model_copy(update={"waited_ms": milliseconds})})

    def timed(self, milliseconds: float) -> ToolResult:
        """Return this result with the duration of its call."""
        return self.model_copy(update={"meta": self.meta.model_copy(update={"duration_ms": milliseconds})})
