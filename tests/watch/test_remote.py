"""Watched servers with an address: the bridge to stdio, and the HTTP proxy."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import socket
import subprocess
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import commands
import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from oauth_server import OAuthServer
from pydantic import AnyUrl, JsonValue
from remotes import (
    Echo,
    JsonServer,
    call_of,
    echo_server,
    free_port,
    http_proxy,
    respond,
    respond_with,
    stream_by_bytes,
)
from servers import SDK_SERVER, start_of
from serving import MODES
from watched import PROGRAM, Watched, eventually, recorded, records, result_of

from pegboard.brake import Answer, Questions
from pegboard.config import Paths
from pegboard.mcp.logins import Login, Logins
from pegboard.models import Agent
from pegboard.watch.edit_notes import EditNotes, NotedBody
from pegboard.watch.lines import LONGEST_PARSED
from pegboard.watch.listener import listen
from pegboard.watch.sse import EventReader


@contextmanager
def sdk_server() -> Iterator[str]:
    """Run a server of the SDK over HTTP and yield its address."""
    port = free_port()
    process = subprocess.Popen(start_of(SDK_SERVER, "http", str(port)), stderr=subprocess.DEVNULL)
    try:

        def is_up() -> bool:
            with socket.socket() as one:
                return one.connect_ex(("127.0.0.1", port)) == 0

        eventually(is_up)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def _watched(*words: str) -> StdioServerParameters:
    """Return the command of a proxy on stdio."""
    return StdioServerParameters(command=PROGRAM, args=["watch", "--name", "far", *words], env=dict(os.environ))


@pytest.mark.promise("WAT-1")
async def test_the_official_client_works_through_the_http_proxy() -> None:
    with sdk_server() as url, http_proxy(url) as address:
        async with Client(address) as client:
            result = await client.call_tool("add", {"a": 2, "b": 3})
            assert result.structured_content == {"total": 5}
    found = recorded(1)[0]
    assert (found.tool, found.args, found.source, found.ok) == ("remote.add", {"a": 2, "b": 3}, "watch", True)
    agent = Agent.of_session(found.session)
    assert agent is not None
    assert agent.name


@pytest.mark.promise("WAT-1")
async def test_small_responses_are_sent_without_waiting_for_an_acknowledgment() -> None:
    is_immediate: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_immediate.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with closing(listen(0)) as listener:
        async with await asyncio.start_server(accept, sock=listener) as server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            async with asyncio.timeout(30):
                assert await is_immediate
            writer.close()


@pytest.mark.promise("WAT-1")
async def test_the_http_proxy_says_once_that_a_client_cannot_log_in_through_it() -> None:
    text = (
        "pegboard watch: the server requires a login (HTTP 401). Clients refuse to log in through a proxy, because its"
        " address isn't the server's. Watch the server as a bridge, as `pegboard guide watch` describes, or configure"
        " an `Authorization` header in the client.\n"
    )
    with OAuthServer().running() as server, http_proxy(server.url, says=text) as address:
        for _ in range(2):
            login = OAuthClientProvider(
                address, OAuthClientMetadata(redirect_uris=[AnyUrl("http://127.0.0.1/back")]), Storage()
            )
            async with httpx2.AsyncClient(auth=login) as client:
                with pytest.raises(OAuthFlowError, match=f"{server.url} does not match expected {address}"):
                    await client.post(address, json=call_of(1))


def stored_login(server: OAuthServer) -> Login:
    """Return a login whose access token has expired."""
    server.refresh_tokens.add("valid")
    metadata: dict[str, JsonValue] = {
        "issuer": server.origin,
        "authorization_endpoint": f"{server.origin}/authorize",
        "token_endpoint": f"{server.origin}/token",
        "response_types_supported": ["code"],
    }
    return Login(
        url=server.url,
        tokens={"access_token": "old", "token_type": "Bearer", "refresh_token": "valid"},
        expires_at=1.0,
        client={"client_id": "registered-1", "redirect_uris": ["http://127.0.0.1:1/callback"]},
        authorization_server=metadata,
    )


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize("secret", [None, "hidden-secret"], ids=["a registered client", "a configured client"])
async def test_a_bridge_refreshes_the_stored_login(secret: str | None, home: Path) -> None:
    with OAuthServer().running() as server:
        server.clients.append("registered-1")
        login = stored_login(server)
        if secret is not None:
            login.client = None
            entry = f'url = "{server.url}"\n[mcp.servers.vault.oauth]\nclient_id = "mine"\nclient_secret = "{secret}"\n'
            (home / "config.toml").write_text(f"[mcp.servers.vault]\n{entry}")
        assert Logins(Paths.from_environment().logins).write(login) is None
        async with Client(stdio_client(_watched("--url", server.url))) as session:
            assert [tool.name for tool in (await session.list_tools()).tools] == ["save"]
    [(_, form)] = server.requests
    assert (form["grant_type"], form["refresh_token"]) == ("refresh_token", "valid")
    assert form["authorization"].startswith("Basic ") is bool(secret)


@pytest.mark.promise("WAT-1")
def test_a_bridge_uses_a_login_that_was_stored_after_its_start() -> None:
    with OAuthServer().running() as server:
        server.tokens["new"] = "read"
        command = [PROGRAM, "watch", "--url", server.url]
        bridge = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert bridge.stdin is not None
        assert bridge.stdout is not None
        answers = []
        for number in (1, 2):
            message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": {}}
            bridge.stdin.write(json.dumps(message).encode() + b"\n")
            bridge.stdin.flush()
            answers.append(json.loads(bridge.stdout.readline()))
            login = stored_login(server).model_copy(update={"tokens": {"access_token": "new", "token_type": "Bearer"}})
            assert Logins(Paths.from_environment().logins).write(login.model_copy(update={"expires_at": None})) is None
        bridge.communicate(timeout=20)
    assert "requires a login" in answers[0]["error"]["message"]
    assert [tool["name"] for tool in answers[1]["result"]["tools"]] == ["save"]


@pytest.mark.promise("WAT-1")
def test_a_bridge_prints_only_its_own_message_if_a_login_cannot_be_refreshed() -> None:
    with OAuthServer().running() as server:
        server.clients.append("registered-1")
        assert Logins(Paths.from_environment().logins).write(stored_login(server)) is None
        server.refresh_tokens.clear()
        line = json.dumps(call_of(1)) + "\n"
        command = [PROGRAM, "watch", "--url", server.url]
        done = subprocess.run(command, check=False, input=line, capture_output=True, text=True, timeout=60)
    assert "requires a login" in json.loads(done.stdout)["error"]["message"]
    [said] = done.stderr.splitlines()
    assert said.startswith("pegboard watch: The server requires a login")


@pytest.mark.promise("WAT-1")
def test_a_bridge_says_that_a_revoked_login_is_needed_again() -> None:
    with OAuthServer().running() as server:
        server.clients.append("registered-1")
        login = stored_login(server).model_copy(update={"expires_at": None})
        assert Logins(Paths.from_environment().logins).write(login) is None
        server.refresh_tokens.clear()
        line = json.dumps(call_of(1)) + "\n"
        command = [PROGRAM, "watch", "--url", server.url]
        done = subprocess.run(command, check=False, input=line, capture_output=True, text=True, timeout=60)
    assert "requires a login" in json.loads(done.stdout)["error"]["message"]


@pytest.mark.promise("WAT-1")
def test_a_bridge_requires_no_login_if_the_login_cannot_be_refreshed_at_present() -> None:
    with OAuthServer().running() as server:
        server.clients.append("registered-1")
        server.refresh_status = 503
        assert Logins(Paths.from_environment().logins).write(stored_login(server)) is None
        line = json.dumps(call_of(1)) + "\n"
        command = [PROGRAM, "watch", "--url", server.url]
        done = subprocess.run(command, check=False, input=line, capture_output=True, text=True, timeout=60)
    said = json.loads(done.stdout)["error"]["message"]
    assert said.startswith("The login can't be refreshed: the authorization server answered with HTTP 503")


@pytest.mark.promise("WAT-1")
def test_a_bridge_names_the_authorization_server_if_that_cannot_be_reached() -> None:
    with OAuthServer().running() as server:
        login = stored_login(server)
        assert login.authorization_server is not None
        login.authorization_server["token_endpoint"] = "http://127.0.0.1:1/token"
        assert Logins(Paths.from_environment().logins).write(login) is None
        line = json.dumps(call_of(1)) + "\n"
        command = [PROGRAM, "watch", "--url", server.url]
        done = subprocess.run(command, check=False, input=line, capture_output=True, text=True, timeout=60)
    said = json.loads(done.stdout)["error"]["message"]
    assert said.startswith("The authorization server can't be reached at http://127.0.0.1:1/token: ")


class Storage:
    """A client's login, which is never complete."""

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        raise AssertionError(tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        raise AssertionError(client_info)


@pytest.mark.promise("WAT-1")
async def test_the_official_client_works_through_the_bridge() -> None:
    with sdk_server() as url:
        async with Client(stdio_client(_watched("--url", url))) as client:
            assert "add" in {tool.name for tool in (await client.list_tools()).tools}
            result = await client.call_tool("add", {"a": 2, "b": 3})
            assert result.structured_content == {"total": 5}
    found = recorded(1)[0]
    assert (found.tool, found.ok) == ("far.add", True)


@pytest.mark.promise("WAT-4")
@pytest.mark.parametrize("version", MODES)
@pytest.mark.parametrize("way", ["stdio", "bridge", "http"])
async def test_the_official_client_receives_a_rejection_as_a_result_in_every_protocol_version(
    way: str, version: str, home: Path
) -> None:
    (home / "config.toml").write_text("[brake]\nwait = 0\n")
    (home / "approvals.toml").write_text('[[rule]]\ndeny = "far.add"\n')
    with ExitStack() as stack:
        if way == "stdio":
            target: Any = stdio_client(_watched("--", *start_of(SDK_SERVER)))
        else:
            url = stack.enter_context(sdk_server())
            is_bridge = way == "bridge"
            target = stdio_client(_watched("--url", url)) if is_bridge else stack.enter_context(http_proxy(url, "far"))
        async with Client(target, mode=MODES[version]) as client:
            assert client.protocol_version == version

            async def rejected() -> str:
                result = await client.call_tool("add", {"a": 2, "b": 3})
                assert result.is_error
                return str(getattr(result.content[0], "text", ""))

            assert "A rule of approvals.toml denies far.add" in await rejected()
            (home / "approvals.toml").write_text('[[rule]]\nask = "far.add"\n')
            assert "No Pegboard app is open" in await rejected()
            (home / "approvals.toml").unlink()
            assert commands.pegboard("stop").returncode == 0
            assert "All calls from agents are stopped" in await rejected()
            assert commands.pegboard("resume").returncode == 0
            assert (await client.call_tool("add", {"a": 2, "b": 3})).structured_content == {"total": 5}


@pytest.mark.parametrize(("number", "code"), [(None, 0), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_bridge_ends_with_its_client_after_the_last_response_or_with_a_signal(number: int | None, code: int) -> None:
    with sdk_server() as url:
        bridge = subprocess.Popen([PROGRAM, "watch", "--url", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert bridge.stdin is not None
        assert bridge.stdout is not None
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tester", "version": "7"}}
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
        began = time.monotonic()
        bridge.stdin.write(line.encode() + b"\n")
        bridge.stdin.flush()
        if number is not None:
            assert json.loads(bridge.stdout.readline())["id"] == 1
            bridge.send_signal(number)
        out, _ = bridge.communicate(timeout=30)
        assert number is not None or json.loads(out)["id"] == 1
        assert bridge.returncode == code
        assert time.monotonic() - began < 5


@contextmanager
def mute_server(*methods: str) -> Iterator[tuple[str, threading.Event]]:
    """Run a server that doesn't respond to some methods; yield its address and whether it received one."""
    arrived, released = threading.Event(), threading.Event()

    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            if body["method"] in methods:
                arrived.set()
                released.wait(60)
                return
            respond(self, {"jsonrpc": "2.0", "id": body.get("id"), "result": {"content": []}})

    with echo_server(Server) as url:
        try:
            yield url, arrived
        finally:
            released.set()


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize(("number", "code"), [(None, 0), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("message", [{"id": 1, "method": "initialize"}, {"method": "notifications/initialized"}])
def test_a_bridge_ends_while_the_server_does_not_respond(
    message: dict[str, Any], number: int | None, code: int
) -> None:
    with ExitStack() as stack:
        url, arrived = stack.enter_context(mute_server(message["method"]))
        started = stack.enter_context(Watched(PROGRAM, "watch", "--url", url, direct=True))
        started.send({"jsonrpc": "2.0", **message})
        started.call(2, "say")
        assert arrived.wait(20)
        if number is None:
            assert started.close() == code
        else:
            started.process.send_signal(number)
            assert started.process.wait(20) == code


@pytest.mark.promise("WAT-1")
def test_a_notification_without_a_response_delays_the_requests_after_it_only_briefly() -> None:
    with ExitStack() as stack:
        url, arrived = stack.enter_context(mute_server("notifications/initialized"))
        started = stack.enter_context(Watched(PROGRAM, "watch", "--url", url, direct=True))
        started.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert arrived.wait(20)
        for id_ in range(20):
            started.call(id_, "say")
        assert {started.receive()["id"] for _ in range(20)} == {*range(20)}


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ([], "Add a command after `--`, or an address with --url."),
        (["--url", "http://127.0.0.1:9/mcp", "--", "cat"], "A command and --url can't be combined"),
        (["--http", "0", "--", "cat"], "--http needs the address of a server. Add it with --url."),
    ],
)
def test_either_a_command_or_an_address_is_watched(line: list[str], message: str) -> None:
    done = commands.pegboard("watch", *line)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(message)


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize("kind", ["plain", "stream"])
def test_bodies_and_headers_pass_the_http_proxy_unchanged(kind: str) -> None:
    with echo_server() as url, http_proxy(url) as address:
        bodies = [b"{}", b"\xff\x00 no JSON", b'{"method":"tools\\/call"', json.dumps({"x": "é" * 300_000}).encode()]
        for body in bodies:
            headers = {"x-kind": kind, "X-Odd": "a, b", "mcp-session-id": "s1", "connection": "x-gone", "x-gone": "1"}
            got = httpx2.post(address, content=body, headers=headers)
            assert got.content == (body if kind == "plain" else b"id: 1\ndata: " + body + b"\n\n: end\n\n")
            if kind == "plain":
                seen = {name.lower(): value for name, value in json.loads(got.headers["x-seen"])}
                assert seen["x-odd"] == "a, b"
                assert seen["host"] == url.split("/")[2]
                assert "x-gone" not in seen
        assert httpx2.post(address, content=b"{}", headers={"x-status": "418"}).status_code == 418


@pytest.mark.promise("WAT-1")
def test_an_event_that_arrives_in_parts_is_read_whole() -> None:
    reader = EventReader()
    parts = [b"data: ", b"x", b"y\r", b"\ndata: z\r", b"\n", b"\r", b"\ndata: 2\n", b"\n"]
    assert [data for part in parts for data in reader.feed(part)] == [b"xy\nz", b"2"]


@pytest.mark.promise("WAT-4")
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_the_note_on_an_edit_is_in_the_event_of_its_response_however_the_stream_is_divided(end: str) -> None:
    def fed(size: int) -> bytes:
        notes = EditNotes()
        notes.expect(1, b'{"id":1}', "Edited.")
        body = NotedBody(notes, 1, is_stream=True)
        return b"".join(body.feed(events[at : at + size]) for at in range(0, len(events), size)) + body.rest()

    other, response = '{"id":2,"result":{"content":[]}}', '{"id":1,"result":{"content":[]}}'
    parts = ("id: 7", f"data: {other}", "", "", f"data: {response}", "", f"data: {other}", "", "data: x")
    events = end.join(parts).encode()
    whole = fed(len(events))
    assert whole.count(b"Edited.") == 1
    assert {fed(size) for size in range(1, 6)} == {whole}
    if end == "\n":  # A search of everything for each part would take minutes.
        text = b"y" * (LONGEST_PARSED - 2**20)
        events = b'data: {"id":1,"result":{"content":[{"type":"text","text":"%s"}]}}\n\n' % text
        assert fed(2**14).count(b"Edited.") == 1


@pytest.mark.promise("WAT-1", "STO-2")
def test_the_password_of_the_address_is_sent_only_as_authorization() -> None:
    with echo_server() as url, http_proxy(url.replace("//", "//ada:pass-1234@")) as address:
        got = httpx2.post(address, content=b"{}", headers={"x-kind": "plain", "origin": address.removesuffix("/mcp")})
        seen = {name.lower(): value for name, value in json.loads(got.headers["x-seen"])}
        assert (seen["host"], seen["origin"]) == (url.split("/")[2], url.removesuffix("/mcp"))
        assert b64decode(seen["authorization"].removeprefix("Basic ")) == b"ada:pass-1234"


@pytest.mark.promise("WAT-1")
def test_the_query_of_the_address_reaches_the_server_before_that_of_a_request() -> None:
    with echo_server() as url, http_proxy(f"{url}?api_key=K%20x&b") as address:
        assert "?" not in address
        assert httpx2.post(address, content=b"{}").headers["x-target"] == "/mcp?api_key=K%20x&b"
        assert httpx2.post(f"{address}?c=1", content=b"{}").headers["x-target"] == "/mcp?api_key=K%20x&b&c=1"
    with echo_server() as url, http_proxy(url) as address:
        assert httpx2.post(f"{address}?c=1", content=b"{}").headers["x-target"] == "/mcp?c=1"


@pytest.mark.promise("WAT-1")
def test_calls_without_a_response_of_the_server_are_recorded_as_failed() -> None:
    with echo_server() as url, http_proxy(url) as address:
        failed = httpx2.post(address, json=call_of(1), headers={"x-status": "404", "mcp-session-id": "gone"})
        assert failed.status_code == 404
    with http_proxy(f"http://127.0.0.1:{free_port()}/mcp") as address:
        assert httpx2.post(address, json=call_of(1)).status_code == 502
    unreachable, unknown = (record.error.message if record.error else "" for record in recorded(2))
    assert unreachable.startswith("The server can't be reached")
    assert unknown == "The server responded with HTTP 404."


@pytest.mark.promise("WAT-1")
def test_a_client_that_disconnects_within_its_request_leaves_no_message() -> None:
    with echo_server() as url, http_proxy(url) as address:
        parts = httpx2.URL(address)
        with socket.create_connection((parts.host, parts.port or 0)) as client:
            client.sendall(f"POST {parts.path} HTTP/1.1\r\nhost: {parts.netloc.decode()}\r\n".encode())
            client.sendall(b"content-length: 9\r\n\r\n{")
        assert httpx2.post(address, content=b"{}").content == b"{}"


class _Unfinished(Echo):
    """A server that begins a response of events and doesn't finish it."""

    ended = threading.Event()

    def do_POST(self) -> None:  # noqa: N802 - the base class calls it
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"id: 1\ndata:\n\n" if b"resumable" in body else b": working\n\n")
        self.wfile.flush()
        self.ended.wait(60)


@pytest.mark.promise("WAT-1")
def test_a_call_whose_client_disconnects_is_recorded_as_failed_unless_its_response_can_still_be_requested() -> None:
    with echo_server(_Unfinished) as url, http_proxy(url) as address:
        try:
            for number, name in enumerate(("resumable", "lost")):
                message, session = call_of(number, name=name), {"mcp-session-id": "one"}
                with httpx2.stream("POST", address, json=message, headers=session, timeout=30) as response:
                    next(response.iter_raw())
            eventually(lambda: [record for record in records() if record.error is not None])
            [lost] = records()  # a running call has no record
        finally:
            _Unfinished.ended.set()
    assert lost.args == {"name": "lost"}
    assert lost.error is not None
    assert lost.error.message == "The client disconnected before the response, so its outcome is unknown."


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}])
def test_a_web_page_cannot_use_the_http_proxy(headers: dict[str, str]) -> None:
    with echo_server() as url, http_proxy(url) as address:
        assert httpx2.post(address, content=b"{}", headers=headers).status_code == 403


@pytest.mark.promise("WAT-1", "SEC-3")
def test_the_http_proxy_forwards_only_paths_of_its_server() -> None:
    seen: list[str] = []

    class Other(Echo):
        def do_POST(self) -> None:  # noqa: N802 - the library's name
            seen.append(self.path)
            super().do_POST()

    with (
        echo_server() as url,
        echo_server(Other) as other,
        http_proxy(url.replace("//", "//ada:pass-1234@")) as address,
    ):
        host, away = (one.split("/")[2] for one in (address, other))
        for target in (f"@{away}/mcp", other, ".example/x", "*", "/" + "a" * 70_000):
            with closing(HTTPConnection(host, timeout=30)) as client:
                client.request("POST", target, b"{}", {"host": host})
                assert client.getresponse().status == 400, target[:40]
        with closing(HTTPConnection(host, timeout=30)) as client:
            client.request("POST", f"//{away}/x", b"{}")
            assert client.getresponse().headers["x-target"].endswith(f"/{away}/x")
    assert seen == []


@pytest.mark.promise("WAT-4")
def test_the_brake_holds_calls_over_http(home: Path) -> None:
    (home / "approvals.toml").write_text('[[rule]]\nask = "remote.*"\n')
    questions = Questions(home / "state")
    call = call_of(1, a=1)
    with echo_server() as url, http_proxy(url) as address:
        assert "No Pegboard app is open" in httpx2.post(address, json=call).text
        with questions.announce():
            answers: list[Any] = []
            asking = threading.Thread(target=lambda: answers.append(httpx2.post(address, json=call, timeout=30).json()))
            asking.start()
            (question,) = eventually(questions.pending)
            questions.answer(question.id, Answer("approve", args={"a": 2}))
            asking.join(20)
            assert answers[0]["params"] == {"name": "x", "arguments": {"a": 2}}
            with pytest.raises(httpx2.TimeoutException):
                httpx2.post(address, json=call, timeout=1)
            eventually(lambda: not questions.pending())
    last = recorded(3)[0]
    assert last.error is not None
    assert last.error.detail == "cancelled"


class _Kinds(JsonServer):
    """A server whose tool `x` returns its arguments, as JSON or as an event."""

    def answer(self, body: Any) -> None:
        args = body["params"].get("arguments")
        content = [{"type": "text", "text": json.dumps(args)}]
        message = {"jsonrpc": "2.0", "id": body.get("id"), "result": {"content": content}}
        if "stream" not in args["kind"]:
            respond(self, message)
            return
        data = b"event: message\r\ndata: %s\r\nid: 7\r\n\r\n" % json.dumps(message).encode()
        respond_with(self, data)


@pytest.mark.promise("WAT-4")
@pytest.mark.parametrize("kind", ["json", "stream"])
@pytest.mark.parametrize("is_bridge", [False, True], ids=["proxy", "bridge"])
def test_the_response_to_a_call_that_was_edited_over_http_says_so(home: Path, kind: str, is_bridge: bool) -> None:
    (home / "approvals.toml").write_text('[[rule]]\nask = "remote.*"\n')
    questions = Questions(home / "state")
    call = call_of(1, kind=kind)

    def answer() -> None:
        (question,) = eventually(questions.pending)
        questions.answer(question.id, Answer("approve", args={"kind": f"{kind}!"}))

    with echo_server(_Kinds) as url, questions.announce():
        answering = threading.Thread(target=answer)
        answering.start()
        if is_bridge:
            with Watched(PROGRAM, "watch", "--name", "remote", "--url", url, direct=True) as bridge:
                bridge.send(call)
                received = bridge.line().decode()
        else:
            with http_proxy(url) as address:
                received = httpx2.post(address, json=call, timeout=30).text
        answering.join(20)
    if kind == "stream" and not is_bridge:
        assert received.startswith("event: message\nid: 7\ndata: ")
        received = received.partition("data: ")[2]
    assert [block["text"] for block in json.loads(received)["result"]["content"]] == [
        json.dumps({"kind": f"{kind}!"}),
        f'The user edited the arguments. The call ran with {{"kind": "{kind}!"}}.',
    ]


@pytest.mark.promise("WAT-4", "SEC-4")
def test_a_deny_rule_knows_the_defaults_of_a_server_without_sessions_over_http(home: Path) -> None:
    called: list[Any] = []

    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            result: dict[str, Any] = {"content": []}
            if body["method"] == "tools/list":
                forced: dict[str, Any] = {"type": "object", "properties": {"force": {"default": True}}}
                result = {"tools": [{"name": "x", "inputSchema": forced}, {"name": "y"}]}
            else:
                called.append(body["params"])
            respond(self, {"jsonrpc": "2.0", "id": body["id"], "result": result})

    (home / "approvals.toml").write_text('[[rule]]\ndeny = "remote.*"\nwhere = { force = true }\n')
    with echo_server(Server) as url, http_proxy(url) as address:

        def passes(tool: str, **arguments: Any) -> bool:
            params = {"name": tool, "arguments": arguments}
            sent = httpx2.post(address, json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            return "isError" not in sent.json()["result"]

        assert not passes("x")
        assert not passes("y")
        assert passes("x", force=False)
        assert httpx2.post(address, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).is_success
        eventually(lambda: passes("y"))
        assert not passes("x")
        assert passes("x", force=False)
    assert [one["name"] for one in called] == ["x", "y", "x"]


@pytest.mark.promise("WAT-1")
def test_a_task_over_http_without_a_session_is_recorded_with_the_result_that_a_later_request_returns() -> None:
    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            params = body["params"]
            name = str(params.get("name"))
            results: dict[str, Any] = {
                "initialize": {"protocolVersion": "2025-11-25", "capabilities": {}},
                "tools/call": {"task": {"taskId": name, "status": "working"}},
                "tasks/get": {"taskId": str(params.get("taskId")), "status": "completed"},
                "tasks/result": {"content": [{"type": "text", "text": f"late {params.get('taskId')}"}]},
            }
            message = {"jsonrpc": "2.0", "id": body["id"], "result": results[body["method"]]}
            if body["method"] == "initialize":
                respond(self, message, Mcp_Session_Id="1")
            else:
                respond(self, message)

    with echo_server(Server) as url:
        with http_proxy(url) as address:

            def send(method: str, headers: dict[str, str] | None = None, **params: Any) -> None:
                message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                assert httpx2.post(address, json=message, headers=headers).is_success

            session = {"Mcp-Session-Id": "1"}
            for tool in ("first", "second", "done", "lost"):
                send("tools/call", name=tool, arguments={"text": tool}, task={})
            send("initialize", clientInfo={"name": "tester", "version": "1"})
            send("tools/call", session, name="own", arguments={}, task={})
            for tool in ("second", "first"):
                send("tasks/result", taskId=tool)
            send("tasks/get", taskId="done")
        by_tool = {record.tool: record for record in recorded(5)}
    for tool in ("first", "second"):
        assert (by_tool[f"remote.{tool}"].args, result_of(by_tool[f"remote.{tool}"]).data) == (
            {"text": tool},
            f"late {tool}",
        )
    assert by_tool["remote.done"].ok
    for tool in ("lost", "own"):
        error = by_tool[f"remote.{tool}"].error
        assert error is not None
        assert "outcome is unknown" in error.message


@pytest.mark.promise("WAT-1")
def test_the_http_proxy_forgets_the_session_that_was_idle_for_the_longest_time_after_a_thousand_others() -> None:
    class Server(JsonServer):
        disable_nagle_algorithm = True  # It would delay each response.
        started = 0

        def answer(self, body: Any) -> None:
            params = body.get("params", {})
            headers: dict[str, Any] = {}
            result: dict[str, Any] = {"task": {"taskId": params.get("name"), "status": "working"}}
            if body["method"] == "initialize":
                result = {"protocolVersion": "2025-11-25", "capabilities": {}}
                Server.started += 1
                headers = {"Mcp_Session_Id": str(Server.started)}
            elif body["method"] == "tasks/result":
                result = {"content": [{"type": "text", "text": "late"}]}
            respond(self, {"jsonrpc": "2.0", "id": body["id"], "result": result}, **headers)

    with echo_server(Server) as url, http_proxy(url) as address, httpx2.Client() as client:

        def send(method: str, session: str | None = None, **params: Any) -> str:
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            headers = {} if session is None else {"Mcp-Session-Id": session}
            return client.post(address, json=message, headers=headers).headers.get("mcp-session-id", "")

        idle, used = send("initialize"), send("initialize")
        send("tools/call", idle, name="idle", arguments={}, task={})
        send("tools/call", used, name="used", arguments={}, task={})
        for number in range(1000):
            send("initialize")
            if number == 500:
                send("ping", used)
        error = recorded(1)[0].error
        assert error is not None
        assert "outcome is unknown" in error.message
        send("tasks/result", used, taskId="used")
        by_tool = {record.tool: record for record in recorded(2)}
    assert by_tool["remote.idle"].error is not None
    assert result_of(by_tool["remote.used"]).data == "late"


@pytest.mark.promise("WAT-4")
def test_a_call_that_is_cancelled_over_http_without_a_session_is_never_forwarded(home: Path) -> None:
    (home / "approvals.toml").write_text('[[rule]]\nask = "remote.*"\n')
    questions = Questions(home / "state")
    responses: dict[int, Any] = {}

    def call(address: str, id_: int, session: dict[str, str]) -> None:
        responses[id_] = httpx2.post(address, json=call_of(id_), headers=session, timeout=30)

    with echo_server() as url, http_proxy(url) as address, questions.announce():
        asking = [
            threading.Thread(target=call, args=(address, id_, {"mcp-session-id": "s"} if id_ == 3 else {}))
            for id_ in (1, 2, 3)
        ]
        for thread in asking:
            thread.start()
        eventually(lambda: len(questions.pending()) == 3)
        for id_ in (1, 3):  # The call with this id has a session.
            cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}}
            assert httpx2.post(address, json=cancelled).is_success
        pending = eventually(lambda: len(found := questions.pending()) == 2 and found)
        for question in pending:
            questions.answer(question.id, Answer("approve"))
        for thread in asking:
            thread.join(20)
    assert responses[1].content == b""
    assert [responses[id_].json()["id"] for id_ in (2, 3)] == [2, 3]


@pytest.mark.promise("WAT-4")
def test_no_encoding_of_a_body_passes_a_deny_rule(home: Path) -> None:
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}})
    compressed, packed = {"content-encoding": "gzip"}, gzip.compress(call.encode())
    with echo_server() as url, http_proxy(url) as address:
        assert httpx2.post(address, content=packed, headers=compressed).content == packed
        (home / "approvals.toml").write_text('[[rule]]\ndeny = "remote.*"\n')
        assert httpx2.post(address, content=packed, headers=compressed).status_code == 415
        for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32-be"):
            answer = httpx2.post(address, content=call.encode(encoding))
            assert answer.json()["result"]["isError"], encoding


@pytest.mark.promise("WAT-1", "WAT-4")
@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("status", [200, 500])
def test_a_call_that_is_too_long_to_be_recorded_passes_the_http_proxy_only_without_rules(
    home: Path, status: int, is_chunked: bool
) -> None:
    sizes: list[int] = []

    class Server(Echo):
        def do_POST(self) -> None:  # noqa: N802 - the name that the library calls
            sizes.append(len(self.read_body()))
            respond(self, {"jsonrpc": "2.0", "id": 1, "result": {"content": []}} if status == 200 else {}, status)

    call = json.dumps(call_of(1, text="x" * (LONGEST_PARSED + 2**20))).encode()
    with echo_server(Server) as url, http_proxy(url) as address:

        def post() -> httpx2.Response:
            pieces = (call[at : at + 2**20] for at in range(0, len(call), 2**20))
            return httpx2.post(address, content=pieces if is_chunked else call, timeout=30)

        assert post().status_code == status
        record = recorded(1)[0]
        assert (record.tool, record.ok) == ("remote.unknown", status == 200)
        assert "too long" in str(result_of(record).meta.warnings)
        (home / "approvals.toml").write_text('[[rule]]\ndeny = "remote.x"\n')
        assert post().status_code == 413
    assert sizes == [len(call)]


@pytest.mark.promise("WAT-1", "WAT-2")
def test_headers_and_address_of_a_bridge_come_from_the_environment_and_are_not_in_the_process_list() -> None:
    seen: list[dict[str, str]] = []

    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            seen.append({name.lower(): value for name, value in self.headers.items()})
            respond(self, {"jsonrpc": "2.0", "id": body["id"], "result": {"content": []}})

    with echo_server(Server) as url:
        env = {**os.environ, "PEGBOARD_WATCH_URL": url + "?key=sesame-1", "PEGBOARD_WATCH_HEADER_0": "X-Key: sesame-2"}
        env |= {"PEGBOARD_WATCH_FILLED_HEADER_0": "Authorization: Bearer ${FAR_TOKEN}", "FAR_TOKEN": "sesame-3"}
        with Watched(PROGRAM, "watch", "--name", "far", "--url", "env", env=env, direct=True) as started:
            started.call(1, "say")
            assert started.receive() == {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}
            processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
            assert "sesame" not in processes
            assert started.close() == 0
    assert (seen[0]["x-key"], seen[0]["authorization"]) == ("sesame-2", "Bearer sesame-3")
    assert len(recorded(1)) == 1


@pytest.mark.promise("WAT-1", "WAT-2")
def test_a_bridge_whose_header_needs_a_missing_variable_ends_and_names_it() -> None:
    env = {**os.environ, "PEGBOARD_WATCH_FILLED_HEADER_0": "Authorization: Bearer ${FAR_TOKEN}"}
    done = commands.pegboard("watch", "--url", "https://localhost/mcp", env=env)
    assert done.returncode == 1
    assert "The environment variable FAR_TOKEN, which the header Authorization contains, is not set." in done.stderr


@pytest.mark.promise("WAT-1")
def test_a_bridge_reports_that_the_server_ended_the_session_and_initialize_starts_a_new_one() -> None:
    sessions: list[str] = []
    listening: list[str | None] = []

    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            session = self.headers.get("mcp-session-id")
            if session is not None and session not in sessions:
                error = {"code": -32600, "message": "Session not found"}
                respond(self, {"jsonrpc": "2.0", "id": None, "error": error}, 404)
            elif body["method"] == "initialize":
                sessions.append(f"s{body['id']}")
                result = {"protocolVersion": f"of {body['id']}"}
                respond(self, {"jsonrpc": "2.0", "id": body["id"], "result": result}, Mcp_Session_Id=sessions[-1])
            elif "id" in body:
                seen = [session, self.headers.get("mcp-protocol-version")]
                respond(self, {"jsonrpc": "2.0", "id": body["id"], "result": {"content": seen}})
            else:
                respond(self, {}, 202)

        def do_GET(self) -> None:  # noqa: N802 - the name that the library calls
            listening.append(self.headers.get("mcp-session-id"))
            respond(self, {}, 405)

    with echo_server(Server) as url, Watched(PROGRAM, "watch", "--name", "far", "--url", url, direct=True) as started:
        for id_ in (1, 3):
            started.send({"jsonrpc": "2.0", "id": id_, "method": "initialize"})
            assert started.receive()["id"] == id_
            started.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            eventually(lambda: listening[-1:] == sessions)
            started.call(id_, "say")
            assert started.receive()["result"]["content"] == [f"s{id_}", f"of {id_}"]
            sessions.clear()
            started.call(id_ + 1, "say")
            ended = started.receive()
            assert ended["id"] == id_ + 1
            assert "The server has ended the session" in ended["error"]["message"]
    assert [record.ok for record in recorded(4)] == [False, True, False, True]


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize("status", [200, 400])
def test_a_bridge_responds_to_a_request_that_the_server_only_answers_without_its_id(status: int) -> None:
    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            respond(self, {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Not so"}}, status)

    with echo_server(Server) as url, Watched(PROGRAM, "watch", "--name", "far", "--url", url, direct=True) as started:
        started.call(1, "say")
        received = started.receive()
        if status == 200:
            assert received["id"] is None
            received = started.receive()
        assert received["id"] == 1
        assert "Not so" in received["error"]["message"]


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/sse", "The server accepts no messages (HTTP 405: “Not here”); it seems to use the old HTTP+SSE transport."),
        ("/mcp", "The server responded with HTTP 405: “Not here”."),
    ],
)
def test_a_bridge_names_the_old_transport_and_of_a_page_only_its_title(path: str, reason: str) -> None:
    class Page(JsonServer):
        def answer(self, body: Any) -> None:
            page = b"<!doctype html><html><head><title>Not here</title></head></html>"
            self.send_response(405)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

    with echo_server(Page) as url:
        address = url.removesuffix("/mcp") + path
        with Watched(PROGRAM, "watch", "--name", "far", "--url", address, direct=True) as started:
            started.call(1, "say")
            assert started.receive()["error"]["message"].startswith(reason)
            assert started.close() == 0


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize(
    ("location", "outcome"),
    [
        ("/mcp/", "redirected"),
        ("/mcp", "redirects without an end"),
        ("https://example.org/mcp", "The server redirects to another address (HTTP 307). Use that address instead."),
    ],
)
def test_a_bridge_follows_redirections_within_the_origin_only(location: str, outcome: str) -> None:
    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            if self.path == "/mcp":
                respond(self, {}, 307, Location=location)
            else:
                content = [{"type": "text", "text": "redirected"}]
                respond(self, {"jsonrpc": "2.0", "id": body["id"], "result": {"content": content}})

    with echo_server(Server) as url, Watched(PROGRAM, "watch", "--name", "far", "--url", url, direct=True) as started:
        for id_ in (1, 2):
            started.call(id_, "say")
            assert outcome in json.dumps(started.receive())
        assert started.close() == 0


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize(
    ("challenge", "text"),
    [
        (
            'Bearer error="insufficient_scope", scope="files:write"',
            "The server requires more permissions (HTTP 403): “files:write”. Log in again with `pegboard mcp login`.",
        ),
        ("Basic", "The server refuses access (HTTP 403: “your plan has no API”). Check your account, or the headers"),
    ],
)
def test_a_bridge_says_why_the_server_refuses_access(challenge: str, text: str) -> None:
    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            data = b"your plan has no API"
            self.send_response(403)
            for name, value in {"WWW-Authenticate": challenge, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    with echo_server(Server) as url, Watched(PROGRAM, "watch", "--name", "far", "--url", url, direct=True) as started:
        started.call(1, "say")
        assert text in started.receive()["error"]["message"]
        assert started.close() == 0


@pytest.mark.promise("WAT-1")
def test_a_bridge_responds_to_a_request_that_cannot_be_sent() -> None:
    with echo_server() as url, Watched(PROGRAM, "watch", "--name", "far", "--url", url, direct=True) as started:
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
        started.send({"jsonrpc": "2.0", "id": 1, "method": "\ud800", "params": {"_meta": meta}})
        assert "The message was not sent: UnicodeEncodeError: " in started.receive()["error"]["message"]
        assert started.close() == 0


@pytest.mark.promise("WAT-1")
def test_a_bridge_closes_the_stream_of_a_cancelled_call_as_the_newest_protocol_requires() -> None:
    left, received = threading.Event(), []

    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            received.append(body["method"])
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
            self.wfile.write(b"data: %s\n\n" % json.dumps(progress).encode())
            self.connection.settimeout(30)
            if not self.connection.recv(1):
                left.set()

    with echo_server(Server) as url, Watched(PROGRAM, "watch", "--name", "far", "--url", url, direct=True) as started:
        call = call_of(1)
        call["params"]["_meta"] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
        started.send(call)
        assert started.receive()["method"] == "notifications/progress"
        started.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        assert left.wait(30)
        assert started.close() == 0
    assert received == ["tools/call"]
    eventually(lambda: [one.error.detail for one in records() if one.error] == ["cancelled"])


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_events_arrive_before_the_stream_ends_whatever_ends_their_lines(end: str) -> None:
    received, in_time = threading.Event(), []
    result = {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}

    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            stream_by_bytes(self, f": a comment{end}{end}data: {json.dumps(result)}{end}{end}")
            in_time.append(received.wait(10))

    with echo_server(Server) as url, Watched(PROGRAM, "watch", "--name", "far", "--url", url, direct=True) as started:
        started.call(1, "say")
        assert started.receive() == result
        received.set()
        assert started.close() == 0
    assert in_time == [True]


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_a_response_in_a_batch_of_an_older_protocol_is_the_only_one_of_a_bridge(kind: str) -> None:
    log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "one"}}

    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            batch = [log, {"jsonrpc": "2.0", "id": body["id"], "result": {"content": []}}]
            text = json.dumps(batch) if kind == "application/json" else f"data: {json.dumps(batch)}\n\n"
            respond_with(self, text.encode(), kind)

    with echo_server(Server) as url, Watched(PROGRAM, "watch", "--name", "far", "--url", url, direct=True) as started:
        for number in (1, 2):
            started.call(number, "say")
            assert started.receive()[1] == {"jsonrpc": "2.0", "id": number, "result": {"content": []}}
        assert started.close() == 0
        eventually(lambda: [one.ok for one in recorded(2)] == [True, True])


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize("option", [(), ("--http", "0")])
@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        (
            "SSL_CERT_FILE",
            "/dev/null/x.pem",
            "The file of certificates /dev/null/x.pem can't be used: Not a directory.",
        ),
        (
            "ALL_PROXY",
            "ftp://ada:secret@a:1",
            "The proxy has the scheme ftp, which isn't http, https, socks5 or socks5h.",
        ),
    ],
)
def test_an_invalid_variable_of_http_clients_is_named(
    option: tuple[str, ...], variable: str, value: str, says: str
) -> None:
    with Watched(
        PROGRAM, "watch", "--url", "http://127.0.0.1:9/mcp", *option, env={**os.environ, variable: value}, direct=True
    ) as started:
        assert started.process.stderr is not None
        said = " ".join(started.process.stderr.read().decode().split())
        assert said.startswith(f"The server can't be watched. {says} Correct the variable {variable}")
        assert said.endswith((f"{variable}.", "or unset it."))
        assert started.close() == 1


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize(("last", "outcome"), [(12, '"done"'), (0, "ended the connection before it responded")])
def test_a_bridge_resumes_a_stream_as_long_as_the_server_sends_events(last: int, outcome: str) -> None:
    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            respond_with(self, b"id: 0\nretry: 1\ndata:\n\n")

        def do_GET(self) -> None:  # noqa: N802 - the library's name
            number = min(last, int(self.headers["last-event-id"]) + 1)
            is_last = number == last > 0
            data = b'{"jsonrpc": "2.0", "id": 1, "result": {"content": "done"}}' if is_last else b""
            respond_with(self, b"id: %d\ndata:%s\n\n" % (number, data))

    with echo_server(Server) as url, Watched(PROGRAM, "watch", "--name", "far", "--url", url, direct=True) as started:
        started.call(1, "say")
        assert outcome in json.dumps(started.receive())
        assert started.close() == 0


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize("end", ["id", ": 1\n", "\nda", "log", '"data": "one"}}', "}}\n"])
def test_a_stream_that_ends_within_an_event_loses_and_garbles_none_when_it_is_resumed(end: str) -> None:
    log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "log", "data": "one"}}
    result = {"jsonrpc": "2.0", "id": 1, "result": {"content": "done"}}
    events = [
        "id: 0\nretry: 1\ndata:\n\n",
        *(f"id: {n + 1}\ndata: {json.dumps(m)}\n\n" for n, m in enumerate((log, result))),
    ]

    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            start = f"{events[0]}{events[1]}"
            respond_with(self, start[: start.index(end, len(events[0])) + len(end)].encode())

        def do_GET(self) -> None:  # noqa: N802 - the library's name
            respond_with(self, "".join(events[int(self.headers["last-event-id"]) + 1 :]).encode())

    with echo_server(Server) as url, Watched(PROGRAM, "watch", "--name", "far", "--url", url, direct=True) as started:
        started.call(1, "say")
        assert [started.receive(), started.receive()] == [log, result]
        assert started.close() == 0


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize(("failures", "outcome"), [(2, '"done"'), (9, "can't be reached: Server disconnected without")])
def test_a_bridge_resumes_a_stream_when_the_server_is_back_and_never_repeats_the_call(
    failures: int, outcome: str
) -> None:
    calls, resumed = [], []

    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            calls.append(body["id"])
            respond_with(self, b"id: 0\nretry: 1\ndata:\n\n")

        def do_GET(self) -> None:  # noqa: N802 - the library's name
            resumed.append(self.path)
            if len(resumed) == 1:
                respond(self, {}, 307, Location="/mcp/events")
            elif len(resumed) <= failures:
                self.close_connection = True
            else:
                respond_with(self, b'data: {"jsonrpc": "2.0", "id": 1, "result": {"content": "done"}}\n\n')

    with echo_server(Server) as url, Watched(PROGRAM, "watch", "--name", "far", "--url", url, direct=True) as started:
        started.call(1, "say")
        response = started.receive()
        assert outcome in json.dumps(response)
        assert ".." not in json.dumps(response)
        assert started.close() == 0
    assert calls == [1]
    assert resumed[:2] == ["/mcp", "/mcp/events"]


@pytest.mark.promise("WAT-1", "WAT-4")
@pytest.mark.parametrize(("status", "away"), [(307, "localhost"), (308, "127.0.0.1")])
def test_redirections_lead_no_client_past_the_http_proxy(status: int, away: str, home: Path) -> None:
    (home / "approvals.toml").write_text('[[rule]]\ndeny = "remote.drop"\n')

    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            origin = f"http://{self.headers['host']}"
            if self.path.startswith("/mcp/"):
                text = f"{body['params']['name']} at {self.path} {self.headers['authorization']}"
                content = [{"type": "text", "text": text}]
                respond(self, {"jsonrpc": "2.0", "id": body["id"], "result": {"content": content}})
            elif self.path.startswith("/mcp"):
                respond(self, {}, status, Location=f"{origin}/mcp/{self.path.removeprefix('/mcp')}")
            elif self.path.startswith("/made"):
                respond(self, {"jsonrpc": "2.0", "id": body["id"], "result": {}}, 201, Location=f"{origin}/mcp")
            else:
                respond(
                    self, {}, status, Location="http://[" if self.path.startswith("/odd") else f"http://{away}:9/mcp"
                )

        def do_GET(self) -> None:  # noqa: N802 - the library's name
            respond(self, {}, 302, Location=f"http://{self.headers['host']}/.well-known/x?key=K&a=1")

    with echo_server(Server) as url, http_proxy(f"{url}?key=K".replace("//", "//ada:x@")) as address:
        assert "x at /mcp/?key=K Basic YWRhOng=" in httpx2.post(address, json=call_of(1)).text
        lost = httpx2.post(address.replace("/mcp", "/away"), json=call_of(2))
        assert (lost.status_code, lost.headers.get("location")) == (502, None)
        assert lost.text == f"The server redirects to another address (HTTP {status}). Use that address instead."
        assert httpx2.post(address.replace("/mcp", "/odd"), json=call_of(3)).status_code == 502
        assert httpx2.get(address).headers["location"] == "/.well-known/x?a=1"
        assert httpx2.post(address.replace("/mcp", "/made"), json={**call_of(5), "method": "ping"}).status_code == 201
        denied = httpx2.post(address, json={**call_of(4), "params": {"name": "drop", "arguments": {}}})
        assert "denies remote.drop" in denied.text
        eventually(lambda: sorted(one.ok for one in recorded(4)) == [False, False, False, True])


@pytest.mark.promise("WAT-4")
def test_a_bridge_responds_to_a_request_that_is_too_long_to_be_checked(home: Path) -> None:
    (home / "approvals.toml").write_text('[[rule]]\ndeny = "far.*"\n')
    with echo_server() as url, Watched(PROGRAM, "watch", "--name", "far", "--url", url, direct=True) as started:
        started.call(1, "say", text="x" * LONGEST_PARSED)
        assert "too long" in started.receive()["error"]["message"]
        assert started.close() == 0


@pytest.mark.promise("WAT-1")
def test_a_server_that_cannot_be_reached_is_an_error_and_not_an_end() -> None:
    url = f"http://127.0.0.1:{free_port()}/mcp"
    with Watched(PROGRAM, "watch", "--url", url, direct=True) as started:
        for id_ in (1, 2):
            started.call(id_, "say")
            assert "can't be reached" in started.receive()["error"]["message"]
        assert started.close() == 0
    eventually(lambda: len(records()) == 2)
