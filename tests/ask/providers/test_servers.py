"""The model servers of this machine."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from listening import hear
from provider import Answer, FakeProvider, says
from web import Answer as Page
from web import Silent, Web

from pegboard.ask.providers import discover, model
from pegboard.ask.providers.endpoint import PROVIDERS
from pegboard.ask.providers.servers import USUAL_PORTS

LONG = 30.0
"""Seconds; more than a server takes to answer on a busy machine."""


def refused_port(stack: ExitStack) -> int:
    """Return a port at which connections are refused."""
    taken = stack.enter_context(socket.socket())
    taken.bind(("127.0.0.1", 0))
    return int(taken.getsockname()[1])


async def test_servers_are_found_with_models_whose_names_work() -> None:
    with (
        FakeProvider(says("Fine."), models=["qwen3:8b", "nomic-embed-text", "qwen3:8b"]).running() as ollama,
        FakeProvider(says("Fine."), models=[]).running() as studio,
    ):
        found = await discover({"ollama": ollama.port, "lmstudio": studio.port}, seconds=LONG)
        assert [(server.title, server.names) for server in found] == [
            ("Ollama", ("ollama:qwen3:8b",)),
            ("LM Studio", ()),
        ]
        first = found[0]
        heard = await hear(model(first.names[0], base_url=first.base_url, key=lambda _: None))
    assert heard.text == "Fine."


@pytest.mark.parametrize(
    "page",
    [
        Page(b"<html>a printer</html>", type="text/html"),
        Page(b'{"data": 5}'),
        Page(b'{"data": [{"name": "x"}]}'),
        Page(b'{"data": [{"id": "' + b"x" * 2_000_000 + b'"}]}'),
        Page(b"[]", status=500),
        Page(b'{"data": [', length=1000, then="close"),
        Silent(then="close"),
        Silent(then="reset"),
    ],
)
async def test_other_servers_are_left_out(page: Page) -> None:
    with Web(lambda _: page).running() as web, ExitStack() as stack:
        port = int(web.url.rpartition(":")[2])
        assert await discover({"llamacpp": port, "ollama": refused_port(stack)}) == []


async def test_several_servers_that_hang_delay_discovery_by_one_timeout() -> None:
    with (
        Web(lambda _: Silent(then="stall")).running() as web,
        FakeProvider(Answer(), models=["m"]).running() as well,
    ):
        hanging = int(web.url.rpartition(":")[2])
        ports = {"ollama": hanging, "lmstudio": hanging, "llamacpp": well.port}
        async with asyncio.timeout(30):
            found = await discover(ports, seconds=3.0)
    assert [server.names for server in found] == [("llamacpp:m",)]
    assert len(web.asked) == 2


async def test_a_server_without_models_may_answer_null() -> None:
    with Web(lambda _: Page(b'{"object": "list", "data": null}')).running() as web:
        (server,) = await discover({"ollama": int(web.url.rpartition(":")[2])}, seconds=LONG)
    assert server.models == ()


async def test_a_proxy_from_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with FakeProvider(Answer(), models=["m"]).running() as fake:
        assert len(await discover({"ollama": fake.port}, seconds=LONG)) == 1


def test_every_provider_whose_server_runs_on_this_machine_is_looked_for_at_its_port() -> None:
    local = {name: urlsplit(provider.base_url).port for name, provider in PROVIDERS.items() if provider.start}
    assert local == dict(USUAL_PORTS)
