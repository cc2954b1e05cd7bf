"""Requests to OpenAI-compatible servers, as each of them accepts them.

Imported late: it loads the library.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, cast

from openai import omit
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionStreamOptionsParam
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings, OpenAIStreamedResponse
from pydantic_ai.models.openrouter import OpenRouterModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext

from pegboard.ask.providers.call_deltas import CompatibleResponse, RoutedResponse

_WITH_REASONING: Final = re.compile(r"deepseek-(v4|flash)")
"""Models that reject each message of theirs without reasoning, also those of earlier questions, whose is not stored."""


class CompatibleModel(OpenAIChatModel):
    """Model of an OpenAI-compatible server."""

    _asks_for_usage = True

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Send a request; from then on without `stream_options` if the server rejects it, as Mistral does."""
        request = messages, model_settings, model_request_parameters, run_context
        async with AsyncExitStack() as stack:
            stream: StreamedResponse | None = None
            asks_for_usage = self._asks_for_usage
            try:
                stream = await stack.enter_async_context(super().request_stream(*request))
            except ModelHTTPError as error:
                if not asks_for_usage or "stream_options" not in str(error.body):
                    raise
                self._asks_for_usage = False
            if stream is None:
                stream = await stack.enter_async_context(super().request_stream(*request))
            yield stream

    async def _map_messages(
        self,
        messages: Sequence[ModelMessage],
        model_request_parameters: ModelRequestParameters,
        *,
        model_settings: ModelSettings | None = None,
    ) -> list[ChatCompletionMessageParam]:
        mapped = await super()._map_messages(messages, model_request_parameters, model_settings=model_settings)
        if _WITH_REASONING.search(self.model_name.lower()):
            for message in mapped:
                if message["role"] == "assistant" and "reasoning" not in message:
                    cast("dict[str, object]", message).setdefault("reasoning_content", "")
        return mapped

    def _get_stream_options(self, model_settings: OpenAIChatModelSettings) -> ChatCompletionStreamOptionsParam:
        if self._asks_for_usage:
            return super()._get_stream_options(model_settings)
        return cast("ChatCompletionStreamOptionsParam", omit)

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return CompatibleResponse


class RoutedModel(OpenRouterModel):
    """Model of OpenRouter, which passes on the pieces of calls as the server behind it sends them."""

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return RoutedResponse
