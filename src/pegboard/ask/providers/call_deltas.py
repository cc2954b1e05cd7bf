"""Corrections of the pieces of text and calls as OpenAI-compatible servers stream them.

Imported late: it loads the library.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import Choice, ChoiceDelta, ChoiceDeltaToolCall
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import FinishReason, ModelResponseStreamEvent
from pydantic_ai.models.openai import OpenAIStreamedResponse
from pydantic_ai.models.openrouter import OpenRouterStreamedResponse
from pydantic_ai.usage import RequestUsage

from pegboard.ask.call_text import UnreadableArguments, arguments, plain_arguments
from pegboard.ask.providers.limits import has_end_marker
from pegboard.ask.providers.thinking_tags import ThinkingTags

_REASONS: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_length": "length",
    "model_length": "length",
    "tool_call": "tool_call",
    "tool_calls": "tool_call",
    "tool_use": "tool_call",
    "error": "error",
}
"""Why a model ended its answer, in the words of servers that don't use those of OpenAI.

After any other reason the answer may be incomplete, so that its calls don't run.
"""


@dataclass
class _OpenCall:
    """Pieces of a call that have arrived."""

    index: int
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    is_held: bool = False

    def add(self, id_: str, name: str, arguments: str) -> None:
        self.id = self.id or id_
        self.name += name
        if arguments:
            self.arguments.append(arguments)

    @property
    def is_complete(self) -> bool:
        """Whether its arguments are a complete JSON object, or a string with one."""
        if not self.arguments or not self.arguments[-1].rstrip().endswith(("}", '"')):
            return False
        try:
            arguments(plain_arguments("".join(self.arguments)))
        except UnreadableArguments:
            return False
        return True


@dataclass
class CompatibleResponse(OpenAIStreamedResponse):
    """Response in which each call has its own index, and its name once, and each thinking tag is a piece of its own.

    Some servers send every call with the index 0, others repeat the name with each piece. The library would join the
    calls, or the names.
    """

    _open: dict[int, _OpenCall] = field(default_factory=dict, init=False)
    _indexes: set[int] = field(default_factory=set, init=False)
    _calls: list[_OpenCall] = field(default_factory=list, init=False)
    _is_old: bool = field(default=False, init=False)
    _tags: ThinkingTags = field(default_factory=ThinkingTags, init=False)

    async def _validate_response(self) -> AsyncIterator[ChatCompletionChunk]:
        """Yield the chunks, also those of which the client's types don't hold.

        Some servers leave out the delta of the last chunk, which the library would skip with the reason of the end.
        Errors of vLLM have no key `error`, by which the client recognizes one.

        Raises:
            ModelAPIError: A chunk is an error.
        """
        started = False
        async for chunk in super()._validate_response():
            if str(chunk.object) == "error":
                raise ModelAPIError(self.model_name, "", body=chunk.model_dump(), in_stream=True)
            for choice in chunk.choices or ():
                if started and getattr(choice, "delta", None) is None:
                    choice.delta = ChoiceDelta()
            chunk.usage = chunk.usage or _usage(chunk)
            started = True
            yield chunk

    def _add_usage(self, usage: RequestUsage, *, reported: bool, cumulative: bool = False) -> None:
        # Some servers report the usage so far with each piece; the library would add the reports up.
        super()._add_usage(usage, reported=reported, cumulative=cumulative or reported)

    def _map_text_delta(self, choice: Choice) -> Iterable[ModelResponseStreamEvent]:
        content = choice.delta.content
        is_last = bool(choice.finish_reason or choice.delta.tool_calls)
        if not (isinstance(content, str) or (content is None and is_last)):
            for thought in _thoughts(content):  # some servers send a list of parts
                yield from self._parts_manager.handle_thinking_delta(vendor_part_id="thinking", content=thought)
            yield from super()._map_text_delta(choice)
            return
        for piece in self._tags.split(content or "", is_last=is_last):
            choice.delta.content = piece
            yield from super()._map_text_delta(choice)

    def _map_finish_reason(
        self, key: Literal["stop", "length", "tool_calls", "content_filter", "function_call"]
    ) -> FinishReason | None:
        return super()._map_finish_reason(key) or _REASONS.get(str(key).casefold())

    def _map_tool_call_delta(self, choice: Choice) -> Iterable[ModelResponseStreamEvent]:
        self._is_old = self._is_old or bool(choice.delta.function_call)
        # The library fails on calls whose name comes late or never.
        choice.delta.tool_calls = [piece for piece in choice.delta.tool_calls or () if self._has_name(piece)]
        return super()._map_tool_call_delta(choice)

    @property
    def unusable_call(self) -> Literal["", "nameless", "old"]:
        """Why the library left a call out: it has no name, or the form `function_call`; empty if there is none."""
        if self._is_old:
            return "old"
        return "nameless" if any(not call.name and (call.id or call.arguments) for call in self._calls) else ""

    @property
    def has_end_marker(self) -> bool:
        """Whether the server marked the end of the answer with `[DONE]`."""
        return has_end_marker(self._response.source.response)

    def _has_name(self, piece: ChoiceDeltaToolCall) -> bool:
        """Correct a piece, and return whether the name of its call is known; otherwise the piece is held back."""
        # Without an index, the library joins only pieces without a name.
        call = self._correct(piece) if isinstance(piece.index, int) else self._without_index(piece)
        if call.name and call.is_held and piece.function is not None:
            piece.id, piece.function.arguments = call.id or piece.id, "".join(call.arguments)
        call.is_held = not call.name
        return bool(call.name)

    def _without_index(self, piece: ChoiceDeltaToolCall) -> _OpenCall:
        """Return the call of a piece without an index: the last one, unless the piece has a name."""
        id_, name, given = _parts(piece)
        if name or not self._calls:
            self._calls.append(_OpenCall(-1))
        self._calls[-1].add(id_, name, given)
        return self._calls[-1]

    def _correct(self, piece: ChoiceDeltaToolCall) -> _OpenCall:
        id_, name, given = _parts(piece)
        call = self._open.get(piece.index)
        if call is None or _is_another(call, id_, name, given):
            index = piece.index
            if index in self._indexes:
                index = max(self._indexes) + 1
            self._indexes.add(index)
            call = self._open[piece.index] = _OpenCall(index)
            self._calls.append(call)
        elif piece.function is not None and name and name == call.name:
            piece.function.name, name = None, ""
        call.add(id_, name, given)
        piece.index = call.index
        return call


@dataclass
class RoutedResponse(CompatibleResponse, OpenRouterStreamedResponse):  # type: ignore[misc]
    """Response of OpenRouter with the same corrections; its reasons for the end differ in type only."""


def _usage(chunk: ChatCompletionChunk) -> CompletionUsage | None:
    """Return the usage in the field of Groq or that of Moonshot."""
    groq = getattr(chunk, "x_groq", None)
    found = groq.get("usage") if isinstance(groq, dict) else None
    if found is None and chunk.choices:
        found = getattr(chunk.choices[0], "usage", None)
    return CompletionUsage.construct(**found) if isinstance(found, dict) else None


def _parts(piece: ChoiceDeltaToolCall) -> tuple[str, str, str]:
    """Return the id, the name and the arguments of a piece of a call, each empty if it is missing."""
    function = piece.function
    given = (function and function.arguments) or ""
    # Some servers send an object, which the library accepts.
    return piece.id or "", (function and function.name) or "", given if isinstance(given, str) else "{}"


def _thoughts(content: object) -> Iterator[str]:
    """Yield the reasoning among the parts of a content, as Mistral sends it."""
    for part in content if isinstance(content, list) else ():
        match part:
            case {"type": "thinking", "thinking": str(thought)}:
                yield thought
            case {"type": "thinking", "thinking": list(pieces)}:
                for piece in pieces:
                    if isinstance(piece, dict) and isinstance(text := piece.get("text"), str):
                        yield text


def _is_another(call: _OpenCall, id_: str, name: str, arguments: str) -> bool:
    """Return whether a piece with the index of a call starts another call."""
    if not name:
        return False
    if id_ and call.id:
        # Some servers make up an id for each piece of one call.
        return id_ != call.id and (name != call.name or call.is_complete)
    return bool(arguments.strip()) and call.is_complete
