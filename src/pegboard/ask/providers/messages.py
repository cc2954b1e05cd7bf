"""Messages and tools in the types of the library.

Imported late: it loads the library.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final, assert_never

from pydantic_ai import messages as theirs
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from pegboard.ask.providers.endpoint import ModelTimeouts, allowed_name
from pegboard.data.unicode import encodable
from pegboard.models.conversation import (
    Message,
    ModelMessage,
    OfferedTool,
    Prompt,
    SystemMessage,
    ToolMessage,
    UserMessage,
)

_NO_TEXT: Final = "(The result is an empty text.)"


def their_messages(
    messages: tuple[Message, ...], *, ids: re.Pattern[str] | None, accepts_blank: bool
) -> list[theirs.ModelMessage]:
    """Return messages in the library's types, without empty ones of the model.

    Args:
        messages: The messages.
        ids: The ids of calls that the provider accepts, each only once; it rejects others, which a session may contain
            from another provider. None if it accepts all.
        accepts_blank: Whether the provider accepts results without text, or with nothing but whitespace.
    """
    result: list[theirs.ModelMessage] = []
    for message in messages if ids is None else map(_CallIds(ids).apply, messages):
        match message:
            case SystemMessage():
                _request(result).append(theirs.SystemPromptPart(encodable(message.text)))
            case UserMessage():
                _request(result).append(theirs.UserPromptPart(encodable(message.text)))
            case ToolMessage():
                _request(result).append(_tool_return(message, accepts_blank=accepts_blank))
            case ModelMessage():
                if parts := _response_parts(message):
                    result.append(theirs.ModelResponse(parts=parts))
            case _:
                assert_never(message)
    return result


def their_tools(prompt: Prompt, *, declares_calls: bool) -> ModelRequestParameters:
    """Return tools in the library's types, with unchanged schemas.

    Args:
        prompt: The tools and messages.
        declares_calls: Whether to declare the tools of earlier calls if no tool is offered: Anthropic has rejected
            conversations with calls but no tools. `their_settings` keeps the model from calling them.
    """
    tools = prompt.tools or (_called(prompt.messages) if declares_calls else ())
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=dict(tool.parameters),
                # Strict schemas require every parameter.
                strict=False,
            )
            for tool in tools
        ],
        allow_text_output=True,
    )


def their_settings(prompt: Prompt, timeouts: ModelTimeouts) -> ModelSettings:
    """Return the settings of one turn."""
    settings = ModelSettings(first_event_timeout=timeouts.first)
    if not prompt.tools:
        settings["tool_choice"] = "none"  # not sent if no tool is declared
    if prompt.max_tokens is not None:
        settings["max_tokens"] = prompt.max_tokens
    if prompt.temperature is not None:
        settings["temperature"] = prompt.temperature
    return settings


def _called(messages: tuple[Message, ...]) -> tuple[OfferedTool, ...]:
    """Return the tools that were called in a conversation, as far as their calls reveal them."""
    calls = (call for message in messages if isinstance(message, ModelMessage) for call in message.calls)
    names = dict.fromkeys(allowed_name(call.name) for call in calls)
    return tuple(
        OfferedTool(name=name, description="This tool can no longer be called.", parameters={"type": "object"})
        for name in names
    )


class _CallIds:
    """Replacement of ids of calls that a provider rejects; the same in each turn.

    Args:
        accepted: The ids that the provider accepts.
    """

    def __init__(self, accepted: re.Pattern[str]) -> None:
        self._accepted = accepted
        self._used: set[str] = set()
        self._latest: dict[str, str] = {}

    def apply(self, message: Message) -> Message:
        """Return the next message with ids that the provider accepts."""
        match message:
            case ModelMessage():
                self._latest = {call.provider_id: self._new(call.provider_id) for call in message.calls}
                calls = tuple(
                    call.model_copy(update={"provider_id": self._latest[call.provider_id]}) for call in message.calls
                )
                return message.model_copy(update={"calls": calls})
            case ToolMessage():
                id_ = self._latest.get(message.provider_id, message.provider_id)
                return message.model_copy(update={"provider_id": id_})
            case _:
                return message

    def _new(self, id_: str) -> str:
        new, salt = id_, 0
        while new in self._used or not self._accepted.fullmatch(new):
            new = sha256(encodable(f"{id_}{salt or ''}").encode()).hexdigest()[:9]
            salt += 1
        self._used.add(new)
        return new


def _request(messages: list[theirs.ModelMessage]) -> list[theirs.ModelRequestPart]:
    """Return the parts of the request at the end of the messages; start one if necessary."""
    if messages and isinstance(last := messages[-1], theirs.ModelRequest):
        parts = last.parts
    else:
        parts = []
        messages.append(theirs.ModelRequest(parts=parts))
    # The library types it as a read-only sequence; the list is ours.
    assert isinstance(parts, list)
    return parts


def _response_parts(message: ModelMessage) -> list[theirs.ModelResponsePart]:
    parts: list[theirs.ModelResponsePart] = [
        theirs.ThinkingPart(
            encodable(thought.text),
            id=thought.field,
            signature=thought.signature,
            provider_name=thought.provider,
            provider_details=thought.details,
        )
        for thought in message.thinking
    ]
    # Models write line feeds before a call, and Anthropic rejects texts of nothing but whitespace.
    if message.text.strip():
        parts.append(theirs.TextPart(encodable(message.text)))
    # A model may write a name that the provider rejects, which would make every later turn fail. The library wraps
    # arguments that are not a JSON object into one.
    parts += [
        theirs.ToolCallPart(
            allowed_name(call.name),
            encodable(call.arguments),
            tool_call_id=call.provider_id,
            provider_name=call.provider or None,
            provider_details=call.details,
        )
        for call in message.calls
    ]
    return parts


def _tool_return(message: ToolMessage, *, accepts_blank: bool) -> theirs.ToolReturnPart:
    return theirs.ToolReturnPart(
        allowed_name(message.name),
        encodable(message.text) if accepts_blank or message.text.strip() else _NO_TEXT,
        tool_call_id=message.provider_id,
        outcome="success" if message.ok else "failed",
    )
