"""Conversations with a model: messages, proposed calls, and the stream of a response."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pegboard.models.model import DataModel, JsonObject


class ProposedCall(DataModel):
    """A tool call as a model wrote it, before any check."""

    provider_id: str
    """The provider's id, or one from Pegboard if the provider sent none."""
    name: str
    """The tool's name as the model wrote it: untrusted text."""
    arguments: str
    """The arguments' JSON text as the model wrote it; may be truncated or invalid."""
    from_text: bool = False
    """Whether the call was found in the model's text, as small models write it, not sent as a call."""
    provider: str = Field(default="", exclude=True)
    """The library's name of the provider that sent the details; they are only sent to this one."""
    details: JsonObject | None = Field(default=None, exclude=True)
    """Data that the provider requires again with the call, such as a signature of the thought before it.

    Sent back until the question is answered, and not stored.
    """


class Thinking(DataModel):
    """Reasoning of a model before its calls, which some providers require again with the results."""

    text: str
    field: str | None
    """Name of the field, or the id, that it came with."""
    signature: str | None
    """Signature of the text by the provider."""
    provider: str
    """The library's name of the provider; the text is only sent to this one."""
    details: JsonObject | None = None
    """More that the provider requires with the text, such as encrypted reasoning."""


class SystemMessage(DataModel):
    """Instructions to the model at the start of a conversation."""

    role: Literal["system"] = "system"
    text: str


class UserMessage(DataModel):
    """A message of the user, as typed."""

    role: Literal["user"] = "user"
    text: str


class ModelMessage(DataModel):
    """A model's response in one turn, with the calls that it proposed."""

    role: Literal["model"] = "model"
    text: str = ""
    calls: tuple[ProposedCall, ...] = ()
    thinking: tuple[Thinking, ...] = Field(default=(), exclude=True)
    """Reasoning before the calls; sent back until the question is answered, and not stored."""


class ToolMessage(DataModel):
    """The result of a call that the model proposed."""

    role: Literal["tool"] = "tool"
    provider_id: str
    name: str
    text: str
    """The result as the model reads it, shortened if it is long."""
    ok: bool = True


Message = Annotated[SystemMessage | UserMessage | ModelMessage | ToolMessage, Field(discriminator="role")]
"""One message of a conversation."""


class OfferedTool(DataModel):
    """A tool as a model sees it."""

    name: str
    """The name in the form that providers accept: letters, digits, `_` and `-`, at most 64."""
    description: str
    parameters: JsonObject
    """JSON Schema of the arguments; always of type object."""


class Prompt(DataModel):
    """The input of one model turn."""

    messages: tuple[Message, ...]
    tools: tuple[OfferedTool, ...] = ()
    """Empty if the model must answer with text."""
    max_tokens: int | None = None
    temperature: float | None = None


class Usage(DataModel):
    """Token usage of a turn, as far as the provider reports it."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Those of the input tokens that the provider read from its cache, which usually cost less."""

    def __add__(self, other: Usage) -> Usage:
        """Return the sum of both."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
        )


class TextDelta(DataModel):
    """The next piece of the model's text."""

    kind: Literal["text"] = "text"
    text: str


class ThinkingDelta(DataModel):
    """The next piece of the model's reasoning before it answers."""

    kind: Literal["thinking"] = "thinking"
    text: str


class ThinkingEnded(DataModel):
    """All text of the turn so far was reasoning: the model ended it with a tag, but its template began it."""

    kind: Literal["thinking_ended"] = "thinking_ended"


class CallDelta(DataModel):
    """The next piece of a call that the model is writing: first its name, then its arguments."""

    kind: Literal["call"] = "call"
    index: int
    """Index of the call in this turn, from 0."""
    name: str = ""
    """Text to append to the name."""
    arguments: str = ""
    """Text to append to the arguments' JSON."""


class TurnEnded(DataModel):
    """End of a successful turn; its last event."""

    kind: Literal["turn_ended"] = "turn_ended"
    message: ModelMessage
    """The whole message from the final response, not assembled from the deltas."""
    usage: Usage = Usage.model_construct()
    reason: Literal["stop", "calls", "length", "filter", "unknown"] = "stop"
    """Why the turn ended: complete, complete with calls, out of tokens, filtered, or unknown.

    After any reason but `stop` and `calls` the message is incomplete, and none of its calls may run.
    """

    @property
    def is_complete(self) -> bool:
        """Whether the response is complete."""
        return self.reason in ("stop", "calls")


ModelEvent = Annotated[TextDelta | ThinkingDelta | ThinkingEnded | CallDelta | TurnEnded, Field(discriminator="kind")]
"""Any event of a model's response; `TurnEnded` comes once and last, unless the turn fails with a `ModelError`."""
