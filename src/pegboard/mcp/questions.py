"""Answers to what one server asks: elicitation, sampling and roots."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, Literal, TypeVar, cast

from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    ListRootsResult,
    Root,
    SamplingCapability,
    SamplingMessage,
    SamplingToolsCapability,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, FileUrl, ValidationError

from pegboard.mcp.limits import MOST_QUESTIONS
from pegboard.mcp.services import SamplingError, Services
from pegboard.mcp.texts import OwnWords
from pegboard.models import Elicitation, ElicitationAnswer, JsonObject, SamplingRequest, ServerConfig, ToolCall
from pegboard.models.model import as_json
from pegboard.ports import ServerQuestions
from pegboard.schema.validation import validator

_ResultT = TypeVar("_ResultT", bound=BaseModel)

_REJECTED: Final = -1
"""Code of the specification for a request that the user rejected."""


class RequestAnswers:
    """Answers to the requests of one server, one at a time.

    Args:
        config: The server.
        services: Who answers.
        pack: Returns the name of the server's pack.
        tool: Returns the qualified name of the tool whose call asks, or None if that is unknown.
        call: Returns the call that asks, or None if that is unknown.
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
        call: Callable[[], ToolCall | None],
        paused: Callable[[], AbstractContextManager[None]],
        note: Callable[[str], None],
    ) -> None:
        self._config = config
        self._services = services
        self._pack = pack
        self._tool = tool
        self._call = call
        self._paused = paused
        self._note = note
        self._one_at_a_time = asyncio.Lock()
        self._asked = 0

    @property
    def sampling(self) -> SamplingCapability:
        """Kinds of prompts that are answered: those with tools only by the model of an MCP client."""
        return SamplingCapability(tools=SamplingToolsCapability() if self._services.user.requests is not None else None)

    def start_over(self) -> None:
        """Allow as many questions as at the start; the calls that asked have ended."""
        self._asked = 0

    async def elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """Answer an elicitation; see `mcp.Client`."""
        del context
        return await self.answer(params)

    async def answer(self, params: ElicitRequestParams) -> ElicitResult:
        """Ask the user, or the MCP client that made the call, what a server asks."""
        if self._services.user.requests is not None:
            return await self._forwarded("elicitation/create", params, ElicitResult) or ElicitResult(action="decline")
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
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        """Answer a server's prompt with the configured model, if the user approves; see `mcp.Client`."""
        answer = await self._sampled(params)
        if isinstance(answer, ErrorData) and context.session.protocol_version in MODERN_PROTOCOL_VERSIONS:
            answer.data = OwnWords()  # the server never sees it: the SDK raises it in place of the response
        return answer

    async def _sampled(
        self, params: CreateMessageRequestParams
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        if self._services.user.requests is not None:
            kind: type[CreateMessageResult | CreateMessageResultWithTools]
            kind = CreateMessageResultWithTools if params.tools else CreateMessageResult
            answer = await self._forwarded("sampling/createMessage", params, kind)
            return answer or ErrorData(code=_REJECTED, message="The client doesn't answer sampling requests.")
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
        if self._config.roots is None and self._services.user.requests is not None:
            forwarded = await self._forwarded("roots/list", None, ListRootsResult)
            if forwarded is not None:
                return forwarded
        return self._own_roots()

    def _own_roots(self) -> ListRootsResult:
        folders = (os.getcwd(),) if self._config.roots is None else self._config.roots  # noqa: PTH109 - no Path needed
        return ListRootsResult(roots=[_root(folder) for folder in folders])

    async def answer_all(self, call: ToolCall, requests: Mapping[str, BaseModel]) -> dict[str, JsonObject]:
        """Return the results of requests that came together instead of the result of a call, by their keys.

        Raises:
            MCPError: A request was refused.
        """
        plain = {key: as_json(request) for key, request in requests.items()}
        own = {
            key for key, one in plain.items() if one.get("method") == "roots/list" and self._config.roots is not None
        }
        results = await self._ask_client(call, {key: one for key, one in plain.items() if key not in own})
        for key, one in plain.items():
            if key in results:
                continue
            if one.get("method") == "elicitation/create":
                results[key] = {"action": "decline"}
            elif one.get("method") == "roots/list":
                results[key] = as_json(self._own_roots())
            else:
                raise MCPError(_REJECTED, "The client doesn't answer sampling requests.", OwnWords())
        return results

    async def _forwarded(self, method: str, params: BaseModel | None, kind: type[_ResultT]) -> _ResultT | None:
        """Return the result of a request that is passed on to the MCP client whose call asks; None if it refuses."""
        call = self._call()
        if call is None:
            self._note("A question of the server was declined because it is unknown which call it belongs to.\n")
            return None
        request: JsonObject = {"method": method, **({} if params is None else {"params": as_json(params)})}
        result = (await self._ask_client(call, {"1": request})).get("1")
        try:
            return None if result is None else kind.model_validate(result)
        except ValidationError:
            self._note("The client's answer to the server's question was not sent because it is invalid.\n")
            return None

    async def _ask_client(self, call: ToolCall, requests: Mapping[str, JsonObject]) -> dict[str, JsonObject]:
        user = self._services.user
        self._asked += len(requests)
        if user.requests is None or not requests or self._asked > MOST_QUESTIONS:
            return {}
        forward = user.requests
        with self._paused():
            return dict(await user.ask(lambda: _as_coroutine(forward.ask(call, requests))) or {})

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
        with self._paused():
            async with self._one_at_a_time:
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


async def _as_coroutine(answers: Awaitable[Mapping[str, JsonObject]]) -> Mapping[str, JsonObject]:
    return await answers


def _blocks(message: SamplingMessage) -> list[object]:
    return list(message.content) if isinstance(message.content, list) else [message.content]


def _text(message: SamplingMessage) -> str:
    return "\n\n".join(block.text for block in _blocks(message) if isinstance(block, TextContent))


def _root(folder: str) -> Root:
    return Root(uri=FileUrl(Path(folder).absolute().as_uri()), name=Path(folder).name or folder)
