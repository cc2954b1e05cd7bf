"""The messages to and from a server are kept as they were sent."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from servers import SDK_SERVER, Open, run

from pegboard.mcp.messages import MessageLog
from pegboard.runtime import Runtime


@pytest.fixture(params=["stdio", "http"])
async def runtime(request: pytest.FixtureRequest, open_server: Open, serve_http: Callable[..., str]) -> Runtime:
    """Return a runtime that is connected to the server written with the SDK."""
    return await open_server(SDK_SERVER if request.param == "stdio" else serve_http(SDK_SERVER))


@pytest.mark.promise("MCP-1")
async def test_messages_of_both_transports_are_kept_as_they_were_sent(runtime: Runtime) -> None:
    connecting = runtime.servers.messages("peer")
    assert (connecting[0].sent, connecting[0].kind, connecting[0].method) == (True, "request", "server/discover")
    assert {"server/discover", "tools/list"} <= {one.method for one in connecting if one.kind == "response"}
    assert (await run(runtime, "peer.add", a=1, b=2)).data == {"total": 3}
    request, response = (
        one for one in runtime.servers.messages("peer", connecting[-1].number) if one.method == "tools/call"
    )
    assert (request.sent, request.kind, request.about) == (True, "request", "add")
    assert json.loads(request.text)["params"]["arguments"] == {"a": 1, "b": 2}
    assert (response.sent, response.kind, response.about, response.id) == (False, "response", "add", request.id)
    assert json.loads(response.text)["result"]["structuredContent"] == {"total": 3}
    assert response.milliseconds == pytest.approx((response.at - request.at).total_seconds() * 1000, abs=1)
    assert runtime.servers.messages("peer", response.number) == ()
    assert runtime.servers.messages("nobody") == ()


@pytest.mark.promise("MCP-1")
async def test_only_the_beginning_of_a_long_message_is_kept_with_its_request(runtime: Runtime) -> None:
    await run(runtime, "peer.big", size=1_000_000)
    response = next(one for one in runtime.servers.messages("peer") if one.size > 1_000_000)
    assert (response.kind, response.method, response.about, response.is_cut) == ("response", "tools/call", "big", True)
    assert len(response.text) < 100_000


@pytest.mark.promise("MCP-1")
async def test_a_line_that_is_not_a_message_is_kept_too(open_server: Open, tmp_path: Path) -> None:
    script = tmp_path / "printing.py"
    run_it = f"runpy.run_path({str(SDK_SERVER)!r}, run_name='__main__')"
    script.write_text(f"import runpy\nprint('Loading', flush=True)\n{run_it}\n")
    runtime = await open_server(script)
    [other] = [one for one in runtime.servers.messages("peer") if one.kind == "other"]
    assert (other.sent, other.text, other.size) == (False, "Loading", 7)


@pytest.mark.promise("MCP-1")
async def test_lines_of_stderr_are_kept_between_the_messages(open_server: Open) -> None:
    runtime = await open_server(SDK_SERVER)
    await run(runtime, "peer.work", steps=1)
    kept: list[str] = []
    async with asyncio.timeout(20):
        for _ in itertools.count():
            kept = [one.text for one in runtime.servers.messages("peer") if one.kind == "stderr"]
            if kept:
                break
            await asyncio.sleep(0.01)
    assert kept == ["working"]


@pytest.mark.promise("MCP-1")
async def test_messages_of_an_ended_connection_stay_after_reconnecting(open_server: Open) -> None:
    runtime = await open_server(SDK_SERVER)
    before = runtime.servers.messages("peer")
    await runtime.servers.reconnect("peer")
    after = runtime.servers.messages("peer")
    assert after[: len(before)] == before
    assert [one.number for one in after] == [*range(1, len(after) + 1)]
    assert sum(one.method == "server/discover" and one.sent for one in after) == 2


def test_the_newest_messages_replace_the_oldest() -> None:
    log = MessageLog()
    for number in range(1_500):
        log.add(json.dumps({"jsonrpc": "2.0", "method": "tick", "params": {"data": str(number)}}).encode(), sent=False)
    kept = log.messages()
    assert [one.about for one in kept] == [str(number) for number in range(500, 1_500)]
    for _ in range(500):
        log.add(b'"' + b"x" * 60_000 + b'"', sent=False)
    assert sum(one.size for one in log.messages()) < 10_000_000
    assert log.messages()[-1].number == 2_000


@pytest.mark.parametrize(
    ("text", "kind", "method", "about"),
    [
        ('{"id": 0, "method": "resources/read", "params": {"uri": "a:b"}}', "request", "resources/read", "a:b"),
        (
            '{"method": "notifications/message", "params": {"data": "a"}}',
            "notification",
            "notifications/message",
            "a",
        ),
        ('{"id": 1, "error": {"code": 1, "message": "no"}}', "error", "", "no"),
        ('{"id": 1, "result": {}}', "response", "", ""),
        ("[1]", "other", "", ""),
        ("{}", "other", "", ""),
        ("Loading…", "other", "", ""),
        ("[" * 50_000, "other", "", ""),
        ('{"id": 7, "result": "' + "x" * 70_000 + '"}', "response", "", ""),
        ('{"result": "' + "x" * 70_000 + '", "id": 7}', "response", "", ""),
        ('{"params": "' + "x" * 70_000 + '", "method": "say"}', "notification", "say", ""),
        ("x" * 70_000, "other", "", ""),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
def test_the_kind_of_a_message_is_recognized(text: str, kind: str, method: str, about: str) -> None:
    log = MessageLog()
    log.add(text.encode(), sent=False)
    [message] = log.messages()
    assert (message.kind, message.method, message.about) == (kind, method, about)


@pytest.mark.promise("MCP-1")
@pytest.mark.parametrize(
    ("start", "end", "kind", "method", "number"),
    [
        (b'{"jsonrpc": "2.0", "id": 3, "result": {"id": 7, "text": "', b'"}}', "response", "", "3"),
        (b'{"result": {"id": 7, "method": "GET", "text": "', b'"},"jsonrpc":"2.0","id":"a"}', "response", "", '"a"'),
        (b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"', b'"},"id":3}', "request", "tools/call", "3"),
        (b'{"params":{"text":"', b'"},"jsonrpc":"2.0","method":"tick"}', "notification", "tick", ""),
    ],
)
def test_a_long_message_is_recognized_by_its_own_members(
    start: bytes, end: bytes, kind: str, method: str, number: str
) -> None:
    log = MessageLog()
    log.add(start + b"x" * 100_000 + end, sent=False)
    (message,) = log.messages()
    assert (message.kind, message.method, message.id, message.is_cut) == (kind, method, number, True)
