"""Model events from the library's stream.

Imported late: it loads the library.
"""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from pydantic_ai import messages as theirs
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import StreamedResponse

from pegboard.ask.providers.call_deltas import CompatibleResponse
from pegboard.ask.providers.connection import ModelConnection
from pegboard.ask.providers.endpoint import ModelTimeouts
from pegboard.ask.providers.errors import ErrorFactory
from pegboard.ask.providers.limits import closed_at_end
from pegboard.ask.providers.messages import their_messages, their_settings, their_tools
from pegboard.ask.providers.thinking_tags import UnopenedThinking
from pegboard.errors import ModelError
from pegboard.models.conversation import (
    CallDelta,
    ModelEvent,
    ModelMessage,
    Prompt,
    ProposedCall,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ThinkingEnded,
    TurnEnded,
    Usage,
)

# The libraries' warnings about what a server sends are for their own developers, and would appear between the answers.
warnings.filterwarnings("ignore", module=r"(pydantic_ai|google\.genai)\.")


async def turn(
    connection: ModelConnection, prompt: Prompt, timeouts: ModelTimeouts, errors: ErrorFactory
) -> AsyncGenerator[ModelEvent]:
    """Send a prompt to a model and yield its answer piece by piece, `TurnEnded` last.

    Raises:
        ModelError: The provider failed.
    """
    started = False
    try:
        async with (
            closed_at_end(),
            model_request_stream(
                connection.model,
                their_messages(prompt.messages, ids=connection.ids, accepts_blank=connection.accepts_blank),
                model_settings=their_settings(prompt, timeouts),
                model_request_parameters=their_tools(prompt, declares_calls=connection.declares_calls),
            ) as stream,
        ):
            async with aclosing(_events(stream, timeouts.silence)) as events:
                pieces = _without_unopened(events) if isinstance(stream, CompatibleResponse) else events
                async with aclosing(pieces):
                    async for event in pieces:
                        started = True
                        yield event
            ended = _ended(stream, errors)
    except TimeoutError:
        failure = errors.silence(timeouts.silence)
    except ModelError as error:
        failure = error
    except Exception as error:  # noqa: BLE001 - the libraries rely on the shape of what a server sends, and raise anything
        where = connection.refused_redirect
        failure = errors.redirected(where) if where and not started else errors.of(error, started=started)
    else:
        yield ended
        return
    # Raised outside the handlers: exceptions in its context may hold the key.
    raise failure


async def _events(stream: StreamedResponse, silence: float) -> AsyncGenerator[ModelEvent]:
    calls: dict[int, int] = {}
    paragraphs = _Paragraphs()
    pieces = aiter(stream)
    try:
        piece = await anext(pieces)  # the library itself has a timeout for the first one
        while True:
            if (event := _event(piece, calls)) is not None:
                yield paragraphs.apart(event, getattr(piece, "index", -1))
            async with asyncio.timeout(silence):
                piece = await anext(pieces)
    except StopAsyncIteration:
        return


class _Paragraphs:
    """Separator of texts between which the model makes calls; providers send no line break there."""

    def __init__(self) -> None:
        self._text: int | None = None
        self._has_called = False

    def apart(self, event: ModelEvent, part: int) -> ModelEvent:
        """Return an event, with a blank line before its text if it begins another text after a call.

        Args:
            event: The event.
            part: Index of its part of the answer.
        """
        if isinstance(event, CallDelta):
            self._has_called = True
        if not isinstance(event, TextDelta):
            return event
        is_apart = self._text not in (None, part) and self._has_called
        self._text, self._has_called = part, False
        return TextDelta(text=f"\n\n{event.text}") if is_apart else event


async def _without_unopened(events: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
    """Yield the events, and `ThinkingEnded` instead of the closing tag of reasoning without an opening one."""
    thinking = UnopenedThinking()
    async for event in events:
        if not isinstance(event, TextDelta):
            if held := thinking.rest():
                yield TextDelta(text=held)
            yield event
            continue
        thought, text = thinking.split(event.text)
        if thought:
            yield TextDelta(text=thought)
        if thought is not None:
            yield ThinkingEnded()
        if text:
            yield TextDelta(text=text)
    if held := thinking.rest():
        yield TextDelta(text=held)


def _answer(text: str) -> str:
    """Return a whole text without reasoning that has no opening tag."""
    thought, answer = UnopenedThinking().split(text)
    return text if thought is None else answer


def _event(piece: theirs.ModelResponseStreamEvent, calls: dict[int, int]) -> ModelEvent | None:
    match piece:
        case theirs.PartStartEvent(index=index, part=theirs.ToolCallPart() as part):
            return CallDelta(index=_call(calls, index), name=part.tool_name, arguments=_json(part.args))
        case theirs.PartDeltaEvent(index=index, delta=theirs.ToolCallPartDelta() as delta):
            name, arguments = delta.tool_name_delta or "", _json(delta.args_delta)
            return CallDelta(index=_call(calls, index), name=name, arguments=arguments) if name or arguments else None
        case (
            theirs.PartStartEvent(part=theirs.TextPart(content=text))
            | theirs.PartDeltaEvent(delta=theirs.TextPartDelta(content_delta=text))
        ):
            return TextDelta(text=text) if text else None
        case (
            theirs.PartStartEvent(part=theirs.ThinkingPart(content=thought))
            | theirs.PartDeltaEvent(delta=theirs.ThinkingPartDelta(content_delta=thought))
        ):
            return ThinkingDelta(text=thought) if thought else None
        case _:
            return None  # the ends of parts, and events for the library's agents


def _call(calls: dict[int, int], index: int) -> int:
    """Return the index of a call, from 0; the library's indexes also count text and thinking."""
    return calls.setdefault(index, len(calls))


def _json(arguments: object) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _ended(stream: StreamedResponse, errors: ErrorFactory) -> TurnEnded:
    response = stream.get()
    details = response.provider_details or {}
    calls = tuple(
        ProposedCall(
            provider_id=part.tool_call_id,
            name=part.tool_name,
            arguments=_json(part.args) or "{}",
            provider=part.provider_name or "",
            details=part.provider_details,
        )
        for part in response.parts
        if isinstance(part, theirs.ToolCallPart)
    )
    text = _text(response)
    if isinstance(stream, CompatibleResponse):
        text = _answer(text)
    message = ModelMessage(text=text, calls=calls, thinking=_thinking(response) if calls else ())
    usage = Usage(
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
        cached_tokens=response.usage.cache_read_tokens,
    )
    if response.finish_reason == "content_filter":
        if not (text or calls):
            raise errors.refusal(_words_of_refusal(details))
        return TurnEnded(message=message, usage=usage, reason="filter")
    # If a stream ends without a reason, the library makes one up; only the details have the provider's own.
    if not details.get("finish_reason"):
        is_marked = isinstance(stream, CompatibleResponse) and stream.has_end_marker
        # Some servers only send the end marker. Calls stay unfinished: such a server may also cut them off.
        if calls or not (is_marked and text.strip()):
            raise errors.cut_off(calls=len(calls), is_marked=is_marked) if response.parts else errors.empty()
    if isinstance(stream, CompatibleResponse) and stream.unusable_call and response.finish_reason != "length":
        raise errors.unusable_call(stream.unusable_call)
    match response.finish_reason:
        case "error":
            given = str(details["finish_reason"])
            raise errors.own_error("" if given == "error" else given)
        case "length":
            return TurnEnded(message=message, usage=usage, reason="length")
        case "stop" | "tool_call":
            # Not by the provider's reason: many servers send `stop` for calls.
            return TurnEnded(message=message, usage=usage, reason="calls" if calls else "stop")
        case _:
            # Unknown to the library: the answer may be incomplete.
            return TurnEnded(message=message, usage=usage, reason="unknown")


def _words_of_refusal(details: Mapping[str, object]) -> str:
    """Return why there is no answer: in the model's words, or the reason of the provider's filter."""
    given = (details.get(key) for key in ("refusal", "block_reason_message", "block_reason", "finish_reason"))
    words = next((one for one in given if isinstance(one, str) and one), "")
    return "" if words in ("content_filter", "refusal") else words


def _text(response: theirs.ModelResponse) -> str:
    """Return the whole text as its pieces were streamed."""
    paragraphs, text = _Paragraphs(), ""
    for index, part in enumerate(response.parts):
        match part:
            case theirs.TextPart(content=content) if content:
                event: ModelEvent = TextDelta(text=content)
            case theirs.ToolCallPart():
                event = CallDelta(index=index)
            case _:
                continue
        piece = paragraphs.apart(event, index)
        text += piece.text if isinstance(piece, TextDelta) else ""
    return text


def _thinking(response: theirs.ModelResponse) -> tuple[Thinking, ...]:
    """Return the reasoning that has its own field or is signed, not that in the text.

    DeepSeek and others reject the results of calls without it.
    """
    return tuple(
        Thinking(
            text=part.content,
            field=part.id,
            signature=part.signature,
            provider=part.provider_name,
            details=part.provider_details,
        )
        for part in response.parts
        if isinstance(part, theirs.ThinkingPart) and part.provider_name
        if part.signature or part.id not in (None, "content")  # the library's id of thinking between tags
    )
