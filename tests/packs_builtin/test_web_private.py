"""Calls of models and other agents reach public addresses only."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any  # arguments of the patched functions

import pytest
from connect_proxy import connect_proxy
from web import CERTIFICATE, Answer, Asked, Web

from pegboard.models import CallSource, ToolCall
from pegboard.packs import web
from pegboard.packs._web_addresses import is_public
from pegboard.runtime import Runtime
from pegboard.sdk import ToolFailed, lazy_client, testing

PUBLIC = "93.184.216.34"
NESTING = (Path(__file__).parents[1] / "packs" / "nesting.py").read_text()


def answer(asked: Asked) -> Answer:
    """Answer with a page, or with a redirect to the address in the path."""
    if asked.path.startswith("/to/"):
        return Answer(status=302, headers={"Location": asked.path.removeprefix("/to/")})
    return Answer(b'{"a": "inner"}')


@pytest.fixture
def inner() -> Iterator[Web]:
    """Provide a server on this machine, which agents must not reach."""
    with Web(answer).running() as running:
        yield running


@pytest.fixture
def dialled(inner: Web, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Redirect every connection to the inner server; return the addresses that were requested."""
    port, found, connect = int(inner.url.rpartition(":")[2]), list[str](), socket.create_connection

    def create_connection(address: tuple[str, int], *args: Any, **kwargs: Any) -> socket.socket:
        found.append(address[0])
        return connect(("127.0.0.1", port), *args, **kwargs)

    monkeypatch.setattr(socket, "create_connection", create_connection)
    monkeypatch.setattr(web, "_agents_client", lazy_client(web._public_client))
    return found


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """Resolve names as the test defines: each time another list of addresses, the last one repeated."""
    found: dict[str, list[list[str]]] = {}
    resolve = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in found:
            return resolve(host, port, *args, **kwargs)
        addresses = found[name].pop(0) if len(found[name]) > 1 else found[name][0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return found


def refused(url: str) -> bool:
    """Return whether every tool refuses an address when an agent calls it."""
    calls: list[Callable[[], object]] = [
        lambda: web.fetch(url=url), lambda: web.get_json(url=url), lambda: web.links(url=url),
    ]  # fmt: skip
    for call in calls:
        with testing.host(caller="agent"), pytest.raises(ToolFailed) as failed:
            call()
        if failed.value.code != "private_address":
            return False
    with testing.host(caller="agent"):
        return "private = true" in web.fetch_many(urls=[url])


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (PUBLIC, True), ("2606:2800:220:1::1", True), ("::ffff:8.8.8.8", True), ("64:ff9b::808:808", True),
        ("2002:808:808::1", True),
        ("127.0.0.1", False), ("127.255.0.1", False), ("0.0.0.0", False), ("0.1.2.3", False), ("10.0.0.1", False),
        ("172.16.0.1", False), ("172.31.255.255", False), ("192.168.1.1", False), ("169.254.169.254", False),
        ("100.64.0.1", False), ("100.127.255.255", False), ("192.0.0.8", False), ("192.0.2.1", False),
        ("192.88.99.1", False), ("198.18.0.1", False), ("224.0.0.1", False), ("240.0.0.1", False),
        ("255.255.255.255", False), ("::", False), ("::1", False), ("::7f00:1", False), ("fe80::1%eth0", False),
        ("fec0::1", False), ("fc00::1", False), ("fd00:ec2::254", False), ("ff02::1", False),
        ("::ffff:127.0.0.1", False), ("::ffff:a00:1", False), ("64:ff9b::7f00:1", False), ("64:ff9b::a00:1", False),
        ("64:ff9b:1::1", False), ("2002:7f00:1::", False), ("2002:c0a8:101::1", False), ("2001::1", False),
        ("168.63.129.16", False),
        ("2001:db8::1", False), ("100::1", False), ("::ffff:0:7f00:1", False), ("not an address", False),
    ],
)  # fmt: skip
def test_which_addresses_are_public(address: str, expected: bool) -> None:
    assert is_public(address) is expected


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "0", "2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]", "0.0.0.0"]
)
def test_an_agent_cannot_reach_this_machine_by_any_spelling(inner: Web, host: str) -> None:
    port = inner.url.rpartition(":")[2]
    assert refused(f"http://{host}:{port}/")
    assert inner.asked == []


def test_a_person_and_an_agent_with_permission_reach_it(inner: Web) -> None:
    with testing.host():
        assert web.get_json(url=inner.url) == {"a": "inner"}
    with testing.host(caller="agent", config={"web": {"private": True}}):
        assert web.get_json(url=inner.url) == {"a": "inner"}
    with testing.host(caller="agent", config={"web": {"private": "false"}}), pytest.raises(ToolFailed):
        web.get_json(url=inner.url)


@pytest.mark.parametrize("target", ["http://127.0.0.1/", "http://inside.example/", "//10.0.0.1/", "http://[fd00::1]/"])
def test_a_redirect_to_a_private_address_is_refused(
    inner: Web, dialled: list[str], names: dict[str, list[list[str]]], target: str
) -> None:
    names["public.example"], names["inside.example"] = [[PUBLIC]], [["192.168.0.7"]]
    assert refused(f"http://public.example/to/{target}")
    assert set(dialled) == {PUBLIC}
    assert {asked.path for asked in inner.asked} == {f"/to/{target}"}


def test_a_name_that_resolves_differently_later_has_no_effect(
    inner: Web, dialled: list[str], names: dict[str, list[list[str]]]
) -> None:
    names["rebound.example"] = [[PUBLIC], ["127.0.0.1"]]
    with testing.host(caller="agent"):
        assert web.get_json(url="http://rebound.example/") == {"a": "inner"}
    assert dialled == [PUBLIC]
    assert inner.asked[0].headers["host"] == "rebound.example"
    assert refused("http://rebound.example/")
    assert dialled == [PUBLIC]


def test_of_several_addresses_only_public_ones_are_tried(dialled: list[str], names: dict[str, list[list[str]]]) -> None:
    names["mixed.example"] = [["10.0.0.1", PUBLIC, "127.0.0.1"]]
    with testing.host(caller="agent"):
        assert web.get_json(url="http://mixed.example/") == {"a": "inner"}
    assert dialled == [PUBLIC]


def test_an_open_connection_of_the_user_is_not_used_for_an_agent(inner: Web) -> None:
    with testing.host():
        web.get_json(url=inner.url)
    assert refused(inner.url)
    assert len(inner.asked) == 1


def test_a_proxy_gets_the_checked_address(
    inner: Web, dialled: list[str], names: dict[str, list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "")
    names["public.example"], names["inside.example"] = [[PUBLIC]], [["192.168.0.7"]]
    with testing.host(caller="agent"):
        assert web.get_json(url="http://public.example/x") == {"a": "inner"}
    assert dialled == ["proxy.example"]
    assert inner.asked[0].headers["host"] == "public.example"
    assert refused("http://inside.example/x")
    assert len(inner.asked) == 1


@pytest.mark.parametrize("is_behind_proxy", [True, False])
def test_a_certificate_is_checked_for_the_name_although_the_connection_is_to_an_address(
    names: dict[str, list[list[str]]], monkeypatch: pytest.MonkeyPatch, is_behind_proxy: bool
) -> None:
    names["localhost"], names["other.example"] = [[PUBLIC]], [[PUBLIC]]
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setattr(web, "_agents_client", lazy_client(web._public_client))
    connect = socket.create_connection

    def create_connection(address: tuple[str, int], *args: Any, **kwargs: Any) -> socket.socket:
        return connect(("127.0.0.1", port) if address[0] == PUBLIC else address, *args, **kwargs)

    monkeypatch.setattr(socket, "create_connection", create_connection)
    with Web(answer, tls=True).running() as server:
        port = int(server.url.rpartition(":")[2])
        with connect_proxy(port) as (proxy, tunnels), testing.host(caller="agent"):
            if is_behind_proxy:
                monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy}")
            assert web.get_json(url="https://localhost/") == {"a": "inner"}
            with pytest.raises(ToolFailed, match="certificate"):
                web.get_json(url="https://other.example/")
        assert server.asked[0].headers["host"] == "localhost"
        assert len(server.asked) == 1
        assert set(tunnels) == ({f"{PUBLIC}:443"} if is_behind_proxy else set())


@pytest.mark.parametrize(("source", "is_reached"), [("form", True), ("cli", True), ("script", True), ("mcp", False)])
@pytest.mark.parametrize("is_nested", [False, True])
async def test_a_worker_knows_who_called(
    inner: Web,
    write_pack: Callable[[str, str], Path],
    open_runtime: Callable[..., Runtime],
    source: CallSource,
    is_reached: bool,
    is_nested: bool,
) -> None:
    runtime = open_runtime(write_pack("nesting.py", NESTING))
    args = {"url": inner.url}
    name = "nesting.through" if is_nested else "web.get_json"
    call = ToolCall.model_validate(
        {"name": name, "args": {"tool": "web.get_json", "arguments": args} if is_nested else args, "source": source}
    )
    _, result = await runtime.result(call)
    said = f"{result.data} {result.error}"
    assert ("inner" in said) is is_reached, said
    assert ("private_address" in said) is not is_reached, said
    assert len(inner.asked) == is_reached
