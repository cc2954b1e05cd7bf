"""Subscriptions to resources, without a screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest
from servers import CHANGING_SERVER, Open, run

from pegboard.models import Problem
from pegboard.runtime import Runtime


async def text(runtime: Runtime, uri: str) -> str:
    """Return the text of a resource."""
    read = await runtime.servers.read("peer", uri)
    assert not isinstance(read, Problem), read
    return read[0].text or ""


@pytest.mark.promise("MCP-6")
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_subscription_reports_changes_and_survives_a_new_connection(
    open_server: Open, serve_http: Callable[..., str], transport: str
) -> None:
    runtime = await open_server(serve_http(CHANGING_SERVER) if transport == "http" else CHANGING_SERVER)
    async with asyncio.timeout(60), aclosing(runtime.servers.follow("peer", "memo://now")) as changes:
        await anext(changes)  # the subscription begins
        assert (await run(runtime, "peer.edit")).ok
        await anext(changes)
        assert await text(runtime, "memo://now") == "version 1"
        await runtime.servers.reconnect("peer")
        await anext(changes)  # it begins again
        assert (await run(runtime, "peer.edit")).ok
        await anext(changes)
    async with asyncio.timeout(60):
        while True:
            log = await text(runtime, "memo://log")
            if log.count('"subscribed') == log.count('"unsubscribed'):
                break
