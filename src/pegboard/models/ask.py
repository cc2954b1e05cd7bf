"""What happens while a model is asked, and what came of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from pegboard.models.call import CallSource, ToolCall
from pegboard.models.conversation import ModelEvent, ProposedCall, Usage
from pegboard.models.events import CallEvent
from pegboard.models.model import JsonObject, Model
from pegboard.models.result import ErrorCode, ResultMeta, ToolError, ToolResult

StoppedBy = Literal["answer", "steps", "tokens", "time", "size", "invalid_args", "interrupted", "model_error"]
"""What ended an ask: the model's answer; a limit (`size` is that of one turn); several turns in a row whose calls
couldn't be run; the user; the provider."""


class AskedCall(Model):
    """A call that the model made, as an outcome lists it."""

    id: str
    name: str
    args: JsonObject
    source: CallSource

    @classmethod
    def of(cls, call: ToolCall) -> AskedCall:
        """Gives what an outcome tells of a call."""
        return cls.model_construct(id=call.id, name=call.name, args=call.args, source=call.source)


class AskedResult(Model):
    """What came of a call, as an outcome lists it."""

    call_id: str
    tool: str
    ok: bool
    data: JsonValue
    error: ToolError | None
    meta: ResultMeta

    @classmethod
    def of(cls, call: ToolCall, result: ToolResult) -> AskedResult:
        """Gives what an outcome tells of a result."""
        return cls.model_construct(
            call_id=call.id, tool=call.name, ok=result.ok, data=result.data, error=result.error, meta=result.meta
        )


class FirstToolError(Model):
    """The first failure among an ask's calls."""

    tool: str
    code: ErrorCode
    message: str


class ModelFailure(Model):
    """Why the provider gave no answer: a `pegboard.errors.ModelError` as data."""

    code: str
    message: str
    fix: str = ""
    retry_after: float | None = None
    """Seconds after which it may be tried again, where the provider says so."""


class Outcome(Model):
    """All that came of asking once."""

    answer: str
    """What the model said last; what it had said when the ask was ended."""
    tool_calls: tuple[AskedCall, ...] = ()
    """All calls of all steps, in order."""
    tool_results: tuple[AskedResult, ...] = ()
    """Their results, in the same order."""
    tool_error: FirstToolError | None = None
    session_context_updated: bool = False
    """Whether a tool's result was written into the session."""
    session_id: str
    usage: Usage = Usage()
    steps: int = 0
    """How many turns the model had."""
    stopped_by: StoppedBy = "answer"
    model_error: ModelFailure | None = None


class Waiting(Model):
    """Somebody else is asking in the same session; it goes on when they are done."""

    kind: Literal["waiting"] = "waiting"
    session: str


class AskStarted(Model):
    """The user's message stands in the session, and the model is about to read it."""

    kind: Literal["ask_started"] = "ask_started"
    session: str
    model: str
    tools: int
    """How many tools the model may use."""


class TurnStarted(Model):
    """The model is given the word."""

    kind: Literal["turn_started"] = "turn_started"
    step: int
    """Which turn of this ask, from 1."""
    of: int
    """How many it may have."""
    with_tools: bool
    """Whether it may call tools; not in the last turn."""


class ModelSaid(Model):
    """A piece of what the model says, or the end of its turn."""

    kind: Literal["model_said"] = "model_said"
    event: ModelEvent


class CallProposed(Model):
    """The model wants a tool to be called. It may still be refused."""

    kind: Literal["call_proposed"] = "call_proposed"
    call: ToolCall
    """With the tool's own name, and the arguments as far as they could be read."""
    proposed: ProposedCall
    """As the model wrote it."""


class CallHappened(Model):
    """Something happened to a call that the model proposed, or to one within it."""

    kind: Literal["call_happened"] = "call_happened"
    call_id: str
    """The id of the proposed call."""
    event: CallEvent


class ToolAnswered(Model):
    """The result of a proposed call stands in the session; they come in the order of the proposals."""

    kind: Literal["tool_answered"] = "tool_answered"
    call: ToolCall
    """As it was made: aliases resolved, edited if the user did so."""
    result: ToolResult
    text: str
    """The result as the model reads it."""


class AskFinished(Model):
    """The last event of every ask."""

    kind: Literal["ask_finished"] = "ask_finished"
    outcome: Outcome


AskEvent = Annotated[
    Waiting | AskStarted | TurnStarted | ModelSaid | CallProposed | CallHappened | ToolAnswered | AskFinished,
    Field(discriminator="kind"),
]
"""Everything that asking yields; `AskFinished` comes exactly once and last, unless the iterator is closed before."""
