"""Questions of servers to a client of the protocol 2026-07-28, which answers with its next request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, InputRequiredResult, TextContent
from processes import until
from servers import HOSTILE_SERVER, SDK_SERVER, start_of
from serving import allow, records

from pegboard.models import ServerConfig
from pegboard.runtime import Runtime
from pegboard.serve import calls
from pegboard.serve.service import Service

ADA = ElicitResult(action="accept", content={"name": "Ada"})
ORDER = ElicitResult(action="accept", content={"name": "Bob", "size": "s"})


class Timers:
    """The timers of the time that a client has to answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._timers: list[asyncio.TimerHandle] = []
        loop = asyncio.get_running_loop()
        start = loop.call_later
        monkeypatch.setattr(calls, "_ANSWER_SECONDS", 12345.0)

        def call_later(delay: float, callback: Callable[..., object], *args: Any, **options: Any) -> Any:
            timer = start(delay, callback, *args, **options)
            if delay == 12345.0:
                self._timers.append(timer)
            return timer

        monkeypatch.setattr(loop, "call_later", call_later)

    def expire(self) -> None:
        """Let the time of the earliest timer pass."""
        timer = self._timers.pop(0)
        if not timer.cancelled():
            timer._run()


@asynccontextmanager
async def connected(home: Path, script: Path, *arguments: str) -> AsyncIterator[Client]:
    """Yield a client of what `pegboard serve` serves, with one server, in this process."""
    allow(home, "*")
    runtime = Runtime.from_environment()
    command, *args = start_of(script, *arguments)
    runtime.servers.add(ServerConfig(name="peer", command=command, args=tuple(args), timeout=30.0))
    service = Service(runtime)
    try:
        async with (
            service.running(),
            Client(service.server, elicitation_callback=_unused, read_timeout_seconds=60) as client,
        ):
            yield client
    finally:
        await runtime.close()


async def _unused(context: Any, params: ElicitRequestParams) -> ElicitResult:
    """Declare that the client can be asked; the tests answer themselves."""
    raise AssertionError("the tests answer themselves")


async def _call(
    client: Client, tool: str, asked: InputRequiredResult | None = None, **answers: ElicitResult
) -> CallToolResult | InputRequiredResult:
    return await client.session.call_tool(
        tool,
        {},
        input_responses=dict(answers) if asked else None,
        request_state=asked.request_state if asked else None,
        allow_input_required=True,
    )


def _asked(outcome: CallToolResult | InputRequiredResult) -> InputRequiredResult:
    assert isinstance(outcome, InputRequiredResult), outcome
    return outcome


def _text(outcome: CallToolResult | InputRequiredResult) -> str:
    assert isinstance(outcome, CallToolResult), outcome
    (part,) = outcome.content
    assert isinstance(part, TextContent)
    return part.text


@pytest.mark.promise("MCP-2")
async def test_a_client_that_answers_only_some_questions_is_asked_only_the_others_again(home: Path) -> None:
    async with connected(home, SDK_SERVER) as client:
        first = _asked(await _call(client, "peer_both"))
        person, order = first.input_requests or {}
        second = _asked(await _call(client, "peer_both", first, **{person: ADA}))
        assert [*(second.input_requests or {})] == [order]
        with pytest.raises(MCPError, match="Call the tool again"):
            await _call(client, "peer_both", first, **{person: ADA, order: ORDER})
        assert _text(await _call(client, "peer_both", second, **{order: ORDER})) == "Ada and Bob"


@pytest.mark.promise("MCP-2")
async def test_a_call_is_cancelled_if_no_answer_comes_in_time_but_not_after_an_answer(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = Timers(monkeypatch)
    async with connected(home, SDK_SERVER) as client:
        first = _asked(await _call(client, "peer_both"))
        person, order = first.input_requests or {}
        second = _asked(await _call(client, "peer_both", first, **{person: ADA}))
        timers.expire()
        assert _text(await _call(client, "peer_both", second, **{order: ORDER})) == "Ada and Bob"
        timers.expire()

        _asked(await _call(client, "peer_both"))
        timers.expire()
        await until(lambda: [one for one in records("peer.both") if not one.ok])
    cancelled, answered = records("peer.both")
    assert answered.ok
    assert cancelled.error is not None
    assert cancelled.error.message == "The call was cancelled."


@pytest.mark.promise("MCP-2")
async def test_questions_that_a_server_asks_at_the_same_time_come_one_after_the_other(home: Path) -> None:
    async with connected(home, HOSTILE_SERVER, "questions") as client, asyncio.timeout(60):
        outcome = await _call(client, "peer_bad")
        while isinstance(outcome, InputRequiredResult):
            ((key, request),) = (outcome.input_requests or {}).items()
            answer = ElicitResult(action="accept", content={"name": getattr(request.params, "message", "")})
            outcome = await _call(client, "peer_bad", outcome, **{key: answer})
    answers = json.loads(_text(outcome))
    assert {name: answer["content"]["name"] for name, answer in answers.items()} == {"a": "a", "b": "b", "c": "c"}
