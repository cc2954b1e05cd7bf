"""What a provider is sent: our messages and tools as the library has them.

Imported late: it loads the library.
"""

from __future__ import annotations

from typing import assert_never

from pydantic_ai import messages as theirs
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from pegboard.ask.providers.endpoint import Patience, allowed_name
from pegboard.models.conversation import (
    Message,
    ModelMessage,
    OfferedTool,
    Prompt,
    SystemMessage,
    ToolMessage,
    UserMessage,
)


def their_messages(messages: tuple[Message, ...]) -> list[theirs.ModelMessage]:
    """Gives messages as the library has them; what the model said nothing in is left out."""
    result: list[theirs.ModelMessage] = []
    for message in messages:
        match message:
            case SystemMessage():
                _request(result).append(theirs.SystemPromptPart(_sendable(message.text)))
            case UserMessage():
                _request(result).append(theirs.UserPromptPart(_sendable(message.text)))
            case ToolMessage():
                _request(result).append(_tool_return(message))
            case ModelMessage():
                if parts := _response_parts(message):
                    result.append(theirs.ModelResponse(parts=parts))
            case _:
                assert_never(message)
    return result


def their_tools(prompt: Prompt, *, declares_calls: bool) -> ModelRequestParameters:
    """Gives tools as the library has them, with their schemas as they are.

    Args:
        prompt: What is offered, and what was said so far.
        declares_calls: Whether, where no tool is offered, those are declared all the same that were called before:
            Anthropic has refused conversations with calls but no tools. `their_settings` lets none be called.
    """
    tools = prompt.tools or (_called(prompt.messages) if declares_calls else ())
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=dict(tool.parameters),
                # Strictness would have every optional parameter made required.
                strict=False,
            )
            for tool in tools
        ],
        allow_text_output=True,
    )


def their_settings(prompt: Prompt, patience: Patience) -> ModelSettings:
    """Gives the settings of one turn."""
    settings = ModelSettings(first_event_timeout=patience.first)
    if not prompt.tools:
        settings["tool_choice"] = "none"  # nothing is sent of it where no tool is declared
    if prompt.max_tokens is not None:
        settings["max_tokens"] = prompt.max_tokens
    if prompt.temperature is not None:
        settings["temperature"] = prompt.temperature
    return settings


def _called(messages: tuple[Message, ...]) -> tuple[OfferedTool, ...]:
    """Gives the tools that were called in a conversation, as far as their calls tell."""
    calls = (call for message in messages if isinstance(message, ModelMessage) for call in message.calls)
    names = dict.fromkeys(allowed_name(call.name) for call in calls)
    return tuple(
        OfferedTool(name=name, description="It can't be called any more.", parameters={"type": "object"})
        for name in names
    )


def _request(messages: list[theirs.ModelMessage]) -> list[theirs.ModelRequestPart]:
    """Gives the parts of the request at the end, which is begun if there is none."""
    if messages and isinstance(last := messages[-1], theirs.ModelRequest):
        parts = last.parts
    else:
        parts = []
        messages.append(theirs.ModelRequest(parts=parts))
    # The library types it as what is only read; the list is ours.
    assert isinstance(parts, list)
    return parts


def _response_parts(message: ModelMessage) -> list[theirs.ModelResponsePart]:
    parts: list[theirs.ModelResponsePart] = []
    if message.text:
        parts.append(theirs.TextPart(_sendable(message.text)))
    # Names are as a model wrote them, and one that breaks the rules would make every later turn fail. Arguments that
    # are no JSON object are wrapped into one by the library.
    parts += [
        theirs.ToolCallPart(allowed_name(call.name), _sendable(call.arguments), tool_call_id=call.provider_id)
        for call in message.calls
    ]
    return parts


def _tool_return(message: ToolMessage) -> theirs.ToolReturnPart:
    return theirs.ToolReturnPart(
        allowed_name(message.name),
        _sendable(message.text),
        tool_call_id=message.provider_id,
        outcome="success" if message.ok else "failed",
    )


def _sendable(text: str) -> str:
    """Gives a text without halves of surrogate pairs, as tools print them: they can't be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
