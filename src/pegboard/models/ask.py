"""Events and outcome of asking a model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from pegboard.models.call import CallSource, ToolCall
from pegboard.models.conversation import ModelEvent, ProposedCall, Usage
from pegboard.models.events import CallEvent
from pegboard.models.model import DataModel, JsonObject
from pegboard.models.result import ErrorCode, ResultMeta, ToolError, ToolResult

StoppedBy = Literal[
    "answer",
    "steps",
    "tokens",
    "time",
    "size",
    "invalid_args",
    "length",
    "filter",
    "unknown",
    "interrupted",
    "model_error",
]
"""What ended an ask: the model's answer; a limit (`size` is the limit of one turn); several turns in a row with invalid
calls; the provider, which cut the answer off at its own limit of tokens, with its content filter, or for an unknown
reason; the user; a failure of the provider.
"""


class AskedCall(DataModel):
    """A call in an outcome: one that the model made."""

    id: str
    name: str
    args: JsonObject
    source: CallSource

    @classmethod
    def of(cls, call: ToolCall) -> AskedCall:
        """Return the entry for a call."""
        return cls.model_construct(id=call.id, name=call.name, args=call.args, source=call.source)


class AskedResult(DataModel):
    """A result in an outcome."""

    call_id: str
    tool: str
    ok: bool
    data: JsonValue
    error: ToolError | None
    meta: ResultMeta

    @classmethod
    def of(cls, call: ToolCall, result: ToolResult) -> AskedResult:
        """Return the entry for the result of a call."""
        return cls.model_construct(
            call_id=call.id, tool=call.name, ok=result.ok, data=result.data, error=result.error, meta=result.meta
        )


class FirstToolError(DataModel):
    """The first failure among an ask's calls."""

    tool: str
    code: ErrorCode
    message: str


class ModelFailure(DataModel):
    """Why the provider returned no response: a `pegboard.errors.ModelError` as data."""

    code: str
    message: str
    fix: str = ""
    retry_after: float | None = None
    """Seconds to wait before a retry, if the provider sent them."""


class Outcome(DataModel):
    """Outcome of asking once."""

    answer: str
    """The model's last text, or its text so far if the ask was interrupted."""
    tool_calls: tuple[AskedCall, ...] = ()
    """The calls of all steps, in order."""
    tool_results: tuple[AskedResult, ...] = ()
    """The results of the calls, in the same order."""
    tool_error: FirstToolError | None = None
    session_context_updated: bool = False
    """Whether a tool's result was added to the session."""
    session_id: str
    usage: Usage = Usage.model_construct()
    steps: int = 0
    """Number of turns that the model had."""
    stopped_by: StoppedBy = "answer"
    model_error: ModelFailure | None = None


class Waiting(DataModel):
    """Another process is asking in the same session; this ask starts when it finishes."""

    kind: Literal["waiting"] = "waiting"
    session: str


class AskStarted(DataModel):
    """The user's message is in the session, and the first model turn is about to start."""

    kind: Literal["ask_started"] = "ask_started"
    session: str
    model: str
    tools: int
    """Number of tools that the model can use."""


class TurnStarted(DataModel):
    """A model turn starts."""

    kind: Literal["turn_started"] = "turn_started"
    step: int
    """Number of the turn in this ask, from 1."""
    of: int
    """Highest number of turns."""
    with_tools: bool
    """Whether the model can call tools; False in the last turn."""


class ModelSaid(DataModel):
    """A piece of the model's response, or the end of its turn."""

    kind: Literal["model_said"] = "model_said"
    event: ModelEvent


class CallProposed(DataModel):
    """The model proposes a call, which may still be rejected."""

    kind: Literal["call_proposed"] = "call_proposed"
    call: ToolCall
    """The call with the tool's own name, and the arguments as far as they could be parsed."""
    proposed: ProposedCall
    """The call as the model wrote it."""
    error: ToolError | None = None
    """Why it can't run, if that is known already: its arguments can't be read, for example."""


class CallHappened(DataModel):
    """An event of a call that the model proposed, or of a nested one."""

    kind: Literal["call_happened"] = "call_happened"
    call_id: str
    """The id of the proposed call."""
    event: CallEvent


class ToolAnswered(DataModel):
    """The result of a proposed call is in the session. Results arrive in the order of the proposals."""

    kind: Literal["tool_answered"] = "tool_answered"
    call: ToolCall
    """The call as it ran: aliases resolved, and edited if the user did so."""
    result: ToolResult
    text: str
    """The result as the model reads it."""


class AskFinished(DataModel):
    """The last event of every ask."""

    kind: Literal["ask_finished"] = "ask_finished"
    outcome: Outcome


AskEvent = Annotated[
    Waiting | AskStarted | TurnStarted | ModelSaid | CallProposed | CallHappened | ToolAnswered | AskFinished,
    Field(discriminator="kind"),
]
"""Any event of an ask; `AskFinished` comes exactly once and last, unless the iterator is closed before."""
