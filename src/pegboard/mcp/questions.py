"""Answers to what one server asks: elicitation, sampling and roots."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, Literal, cast

from mcp.client.session import ClientRequestContext
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    ListRootsResult,
    Root,
    SamplingMessage,
    TextContent,
)
from pydantic import FileUrl, ValidationError

from pegboard.mcp.limits import MOST_QUESTIONS
from pegboard.mcp.services import SamplingError, Services
from pegboard.models import Elicitation, ElicitationAnswer, JsonObject, SamplingRequest, ServerConfig
from pegboard.ports import ServerQuestions
from pegboard.schema.validation import validator

_REJECTED: Final = -1
"""Code of the specification for a request that the user rejected."""


class Questions:
    """Answers to the requests of one server, one at a time.

    Args:
        config: The server.
        services: Who answers.
        pack: Returns the name of the server's pack.
        tool: Returns the qualified name of the tool whose call asks, or None if that is unknown.
        paused: Pauses the time limits of the server's calls.
        note: Adds a line to the log of the server's calls.
    """

    def __init__(
        self,
        config: ServerConfig,
        services: Services,
        *,
        pack: Callable[[], str],
        tool: Callable[[], str | None],
        paused: Callable[[], AbstractContextManager[None]],
        note: Callable[[str], None],
    ) -> None:
        self._config = config
        self._services = services
        self._pack = pack
        self._tool = tool
        self._paused = paused
        self._note = note
        self._one_at_a_time = asyncio.Lock()
        self._asked = 0

    def start_over(self) -> None:
        """Allow as many questions as at the start; the calls that asked have ended."""
        self._asked = 0

    async def elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """Answer an elicitation; see `mcp.Client`."""
        del context
        return await self.answer(params)

    async def answer(self, params: ElicitRequestParams) -> ElicitResult:
        """Ask the user what a server asks."""
        async with self._turn() as questions:
            if questions is None:
                return ElicitResult(action="cancel" if self._asked > MOST_QUESTIONS else "decline")
            schema = params.requested_schema if isinstance(params, ElicitRequestFormParams) else None
            elicitation = Elicitation(
                server=self._pack(),
                message=params.message,
                json_schema=cast("JsonObject | None", schema),
                url=params.url if isinstance(params, ElicitRequestURLParams) else None,
                tool=self._tool(),
            )
            answer = await self._services.user.ask(lambda: questions.elicit(elicitation))
            return self._result(elicitation, answer)

    async def sample(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        """Answer a server's prompt with the configured model, if the user approves; see `mcp.Client`."""
        del context
        if params.tools or not all(
            isinstance(block, TextContent) for message in params.messages for block in _blocks(message)
        ):
            return ErrorData(code=INVALID_REQUEST, message="Only text can be sampled, without tools.")
        request = SamplingRequest(
            server=self._pack(),
            system=params.system_prompt or "",
            messages=tuple((message.role, _text(message)) for message in params.messages),
            max_tokens=params.max_tokens,
            tool=self._tool(),
        )
        async with self._turn() as questions:
            sample = self._services.sample
            if questions is None or sample is None:
                return ErrorData(code=_REJECTED, message="The user can't approve sampling now.")
            if not await self._services.user.ask(lambda: questions.approve_sampling(request)):
                return ErrorData(code=_REJECTED, message="The user rejected the sampling request.")

            async def sampled() -> CreateMessageResult | ErrorData:
                try:
                    answer = await sample(request, params.temperature)
                except SamplingError as error:
                    return ErrorData(code=INTERNAL_ERROR, message=str(error))
                reason: Literal["endTurn", "maxTokens"] = "endTurn" if answer.is_complete else "maxTokens"
                content = TextContent(type="text", text=answer.text)
                return CreateMessageResult(role="assistant", content=content, model=answer.model, stop_reason=reason)

            result = await self._services.user.ask(sampled)
        return result or ErrorData(code=INTERNAL_ERROR, message="Pegboard is closing.")

    async def roots(self, context: ClientRequestContext) -> ListRootsResult:
        """Return the folders that the server may work in; see `mcp.Client`."""
        del context
        folders = (os.getcwd(),) if self._config.roots is None else self._config.roots  # noqa: PTH109 - no Path needed
        return ListRootsResult(roots=[_root(folder) for folder in folders])

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[ServerQuestions | None]:
        """Wait for other questions of the server; yield who answers, or None to answer for the user."""
        questions = self._services.user.questions
        self._asked += 1
        if self._asked == MOST_QUESTIONS + 1:
            self._note(f"The server asked more than {MOST_QUESTIONS} questions; Pegboard cancels all further ones.\n")
        if questions is None or self._asked > MOST_QUESTIONS:
            yield None
            return
        async with self._one_at_a_time:
            with self._paused():
                yield questions

    def _result(self, elicitation: Elicitation, answer: ElicitationAnswer | None) -> ElicitResult:
        if answer is None:
            return ElicitResult(action="cancel")
        if answer.action != "accept" or elicitation.json_schema is None:
            return ElicitResult(action=answer.action)
        content = {**_defaults(elicitation.json_schema), **(answer.content or {})}
        faults = validator(elicitation.json_schema).faults(content)
        if not faults:
            try:
                return ElicitResult.model_validate({"action": "accept", "content": content})
            except ValidationError:
                self._note("The answer to the server's question was not sent because it contains nested values.\n")
                return ElicitResult(action="cancel")
        self._note(f"The answer to the server's question was not sent because it is invalid: {faults[0]}\n")
        return ElicitResult(action="cancel")


def _defaults(schema: JsonObject) -> JsonObject:
    """Return the defaults of a form's fields, which apply to fields without a value."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: part["default"] for name, part in properties.items() if isinstance(part, dict) and "default" in part}


def _blocks(message: SamplingMessage) -> list[object]:
    return list(message.content) if isinstance(message.content, list) else [message.content]


def _text(message: SamplingMessage) -> str:
    return "\n\n".join(block.text for block in _blocks(message) if isinstance(block, TextContent))


def _root(folder: str) -> Root:
    return Root(uri=FileUrl(Path(folder).absolute().as_uri()), name=Path(folder).name or folder)
