"""What is said between us and a model: messages, calls that it proposes, and the stream of its answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pegboard.models.model import JsonObject, Model


class ProposedCall(Model):
    """A tool call as a model wrote it; nothing about it has been checked."""

    provider_id: str
    """The id that the provider gave it; ours where it gave none."""
    name: str
    """The tool's name as the model wrote it: untrusted text."""
    arguments: str
    """The arguments' JSON text as the model wrote it: it may be cut short, or no JSON at all."""
    from_text: bool = False
    """Whether it was found in the model's text, as small models write it, and not told as a call."""


class SystemMessage(Model):
    """What a model is told beforehand."""

    role: Literal["system"] = "system"
    text: str


class UserMessage(Model):
    """What the user said, as typed."""

    role: Literal["user"] = "user"
    text: str


class ModelMessage(Model):
    """What the model said in one turn, and the calls that it proposed."""

    role: Literal["model"] = "model"
    text: str = ""
    calls: tuple[ProposedCall, ...] = ()


class ToolMessage(Model):
    """What came of a call that the model proposed."""

    role: Literal["tool"] = "tool"
    provider_id: str
    name: str
    text: str
    """The result as the model reads it, shortened where it was long."""
    ok: bool = True


Message = Annotated[SystemMessage | UserMessage | ModelMessage | ToolMessage, Field(discriminator="role")]
"""One piece of a conversation."""


class OfferedTool(Model):
    """A tool as a model sees it."""

    name: str
    """As providers allow it: letters, digits, `_` and `-`, at most 64."""
    description: str
    parameters: JsonObject
    """JSON Schema of the arguments, always an object's."""


class Prompt(Model):
    """Everything that a model is sent for one turn."""

    messages: tuple[Message, ...]
    tools: tuple[OfferedTool, ...] = ()
    """None: it is to answer in words."""
    max_tokens: int | None = None
    temperature: float | None = None


class Usage(Model):
    """What a turn took, as far as the provider tells."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Gives what both took."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


class TextDelta(Model):
    """The next piece of the model's text."""

    kind: Literal["text"] = "text"
    text: str


class ThinkingDelta(Model):
    """The next piece of what the model thinks aloud before it answers."""

    kind: Literal["thinking"] = "thinking"
    text: str


class CallDelta(Model):
    """The next piece of a call that the model is writing: its name comes first, its arguments follow."""

    kind: Literal["call"] = "call"
    index: int
    """Which of this turn's calls, from 0."""
    name: str = ""
    """What is added to the name."""
    arguments: str = ""
    """What is added to the arguments' JSON text."""


class TurnEnded(Model):
    """The model has said all; the last event of a turn that didn't fail."""

    kind: Literal["turn_ended"] = "turn_ended"
    message: ModelMessage
    """All of it, from the final response and not put together from the pieces."""
    usage: Usage = Usage()
    reason: Literal["stop", "calls", "length", "filter", "unknown"] = "stop"
    """Why it ended: complete, complete with calls, out of tokens, filtered, or for a reason that isn't known.

    Only after `stop` and `calls` is it complete; after any other, none of its calls may run."""

    @property
    def is_complete(self) -> bool:
        """Whether the model said all that it wanted to."""
        return self.reason in ("stop", "calls")


ModelEvent = Annotated[TextDelta | ThinkingDelta | CallDelta | TurnEnded, Field(discriminator="kind")]
"""Everything that a model streams; `TurnEnded` comes once and last, unless the turn fails with a `ModelError`."""
