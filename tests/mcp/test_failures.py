"""Servers that can't be used: one clear message with the next step, as status and as a problem."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from oauth_server import OAuthServer
from remotes import JsonServer, echo_server, respond, stream_by_bytes
from servers import HOSTILE_SERVER, SDK_SERVER, Open, call, run
from socks_proxy import socks_proxy
from web import CERTIFICATE

from pegboard.models import ServerConfig, ServerState
from pegboard.models.server_content import ForwardedError
from pegboard.results.clean import clean
from pegboard.runtime import Runtime

pytestmark = pytest.mark.promise("MCP-1")


def explanation(runtime: Runtime) -> tuple[ServerState, str, str]:
    """Return state, reason and fix of the server, after checking that the registry has the same problem."""
    (status,) = runtime.servers.all()
    problems = [problem for problem in runtime.problems() if status.reason in problem.message]
    assert [problem.fix for problem in problems] == [status.fix]
    assert clean(status.reason) == status.reason
    return status.state, status.reason, status.fix


async def test_a_command_that_does_not_exist(open_server: Open) -> None:
    runtime = await open_server(HOSTILE_SERVER, command="no-such-command", args=())
    state, reason, fix = explanation(runtime)
    assert state is ServerState.FAILED
    assert reason == "The command 'no-such-command' was not found on the PATH."
    assert fix == "Install it, or correct `command` in `[mcp.servers.peer]`."


@pytest.mark.parametrize("command", ["localhost:8000/mcp", "example.com/mcp", "http:/example.com", "127.0.0.1:8000"])
async def test_an_address_that_was_given_as_a_command(open_server: Open, command: str) -> None:
    runtime = await open_server(HOSTILE_SERVER, command=command, args=(), saved=False)
    _, reason, fix = explanation(runtime)
    assert reason.startswith(f"The command '{command}' ")
    assert fix == "If it is an address, write it in full, starting with http:// or https://."


async def test_a_file_that_can_not_be_executed_and_a_missing_folder(open_server: Open, tmp_path: Path) -> None:
    runtime = await open_server(HOSTILE_SERVER, command=str(tmp_path / "none"))
    assert "doesn't exist or can't be executed" in explanation(runtime)[1]
    other = await open_server(HOSTILE_SERVER, cwd=str(tmp_path / "none"))
    assert explanation(other)[1:] == (
        f"The working directory {tmp_path / 'none'} doesn't exist.",
        "Correct `cwd` in `[mcp.servers.peer]`.",
    )
    text = tmp_path / "script"
    text.write_text("no program")
    text.chmod(0o755)
    third = await open_server(HOSTILE_SERVER, command=str(text))
    assert "Exec format error" in explanation(third)[1]


@pytest.mark.parametrize("ignored", [0, 2])
async def test_a_command_that_ends_with_a_message(
    open_server: Open, monkeypatch: pytest.MonkeyPatch, ignored: int
) -> None:
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 0.1)
    code = f"import sys; [sys.stdin.readline() for _ in range({ignored})]; sys.exit('No module named server')"
    runtime = await open_server(HOSTILE_SERVER, command=sys.executable, args=("-c", code))
    _, reason, fix = explanation(runtime)
    assert reason == "The server ended with exit code 1. Its last line on stderr: “No module named server”."
    assert fix.startswith(f"Run the command in a terminal to see more: {sys.executable}")


async def test_a_command_that_the_system_cannot_start(open_server: Open) -> None:
    runtime = await open_server(HOSTILE_SERVER, command=sys.executable, args=("-c", "x" * 200_000))
    assert explanation(runtime)[1] == "The server can't be started: “Argument list too long”."


@pytest.mark.promise("STO-2")
async def test_a_secret_that_a_server_prints_is_not_shown(open_server: Open) -> None:
    code = "import os, sys; print('no', os.environ['API_TOKEN']); sys.exit(f'Rejected {os.environ[\"API_TOKEN\"]}.')"
    secret = {"API_TOKEN": "s3cr3t-0123456789"}
    runtime = await open_server(HOSTILE_SERVER, command=sys.executable, args=("-c", code), env=secret)
    (status,) = runtime.servers.all()
    kept = (status, *runtime.problems(), *runtime.servers.messages("peer"), *runtime.servers.stderr("peer"))
    assert "Rejected «secret API_TOKEN of peer»" in status.reason
    assert "s3cr3t" not in repr(kept)


async def test_a_disabled_server_is_named_as_such(open_server: Open) -> None:
    runtime = await open_server(HOSTILE_SERVER, enabled=False)
    found = await runtime.servers.resources("peer")
    assert str(found) == "The server peer is disabled. Remove `enabled = false` from `[mcp.servers.peer]`."


async def test_a_command_to_try_in_a_terminal_names_the_folder_that_it_needs(open_server: Open, tmp_path: Path) -> None:
    runtime = await open_server(HOSTILE_SERVER, command=sys.executable, args=("lost.py",), cwd=str(tmp_path))
    fix = explanation(runtime)[2]
    assert fix == f"Run the command in a terminal in the folder {tmp_path} to see more: {sys.executable} lost.py"


NODE = """file:///srv/index.mjs:3
  throw new Error("ACME_API_KEY is required");
        ^

Error: ACME_API_KEY is required
    at file:///srv/index.mjs:3:9
    at async asyncRunEntryPointWithESMLoader (node:internal/modules/run_main:117:5) {
  code: 'NO_KEY'
}

Node.js v20.20.2
"""
NODE_WITHOUT_STACK = """node:internal/process/promises:394
      triggerUncaughtException(err, true /* fromPromise */);
      ^

[Error: ENOENT: no such file or directory, open '/srv/key'] {
  errno: -2
}

Node.js v22.1.0
"""
NODE_LOGGED = """Fatal error in main(): TypeError: fetch failed
    at node:internal/deps/undici/undici:14976:13 {
  [cause]: Error: bad port
      at makeNetworkError (node:internal/deps/undici/undici:9495:35)
      at file:///srv/index.mjs:1:1
}
"""
NODE_LOGGED_PLAINLY = """Starting
Error: ACME_API_KEY is required
    at main (file:///srv/index.mjs:3:9)
    at async asyncRunEntryPointWithESMLoader (node:internal/modules/run_main:117:5)
"""
NODE_PROPERTIES = """Error: ACME_API_KEY is required
    at main (file:///srv/index.mjs:3:9) {
  code: 'NO_KEY',
  details: { a: 1 }
}
"""
JAVA = """Exception in thread "main" java.lang.IllegalStateException: not started
\tat com.acme.Server.main(Server.java:7)
Caused by: java.io.IOException: ACME_API_KEY is required
\tat com.acme.Server.open(Server.java:9)
\t... 1 more
"""
INDENTED = """Usage:
  server --key KEY
"""
NPM = """npm error code E404
npm error 404 Not Found - GET https://registry.example.org/acme-mcp
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm notice
npm error A complete log of this run can be found in: /home/me/.npm/_logs/debug-0.log
"""
NPM_NETWORK = """npm ERR! code ENOTFOUND
npm ERR! syscall getaddrinfo
npm ERR! errno ENOTFOUND
npm ERR! network request to https://registry.example.org/acme-mcp failed
npm ERR! A complete log of this run can be found in: /home/me/.npm/_logs/debug-0.log
"""
GROUP = """  + Exception Group Traceback (most recent call last):
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    | ValueError: ACME_API_KEY is required
    +------------------------------------
"""
PYDANTIC = """pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings
acme_api_key
  Field required [type=missing, input_value={}, input_type=dict]
    For further information visit https://errors.pydantic.dev/2.11/v/missing
"""
DOCKER = """docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.

Run 'docker run --help' for more information
"""


@pytest.mark.parametrize(
    ("stderr", "line"),
    [
        (NODE, "Error: ACME_API_KEY is required"),
        (NODE_WITHOUT_STACK, "[Error: ENOENT: no such file or directory, open '/srv/key']"),
        ("Node.js v20.20.2\n", "Node.js v20.20.2"),
        (NODE_LOGGED, "Fatal error in main(): TypeError: fetch failed"),
        (NODE_LOGGED_PLAINLY, "Error: ACME_API_KEY is required"),
        (NODE_PROPERTIES, "Error: ACME_API_KEY is required"),
        (JAVA, "Caused by: java.io.IOException: ACME_API_KEY is required"),
        (INDENTED, "server --key KEY"),
        ("    at main (index.mjs:3:9)\n", "at main (index.mjs:3:9)"),
        (NPM, "404 Not Found - GET https://registry.example.org/acme-mcp"),
        (NPM_NETWORK, "network request to https://registry.example.org/acme-mcp failed"),
        (GROUP, "ValueError: ACME_API_KEY is required"),
        (PYDANTIC, "acme_api_key: Field required [type=missing, input_value={}, input_type=dict]"),
        (DOCKER, "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock"),
        ("----\n", "----"),
    ],
    ids=[
        *("node", "no stack", "node version"),
        *("logged", "logged plainly", "properties", "java", "indented", "only a stack"),
        *("npm", "npm network", "group", "pydantic", "docker", "no word"),
    ],
)
async def test_the_message_of_an_uncaught_error_is_found_above_the_last_lines_of_its_report(
    open_server: Open, stderr: str, line: str
) -> None:
    code = f"import sys; sys.stderr.write({stderr!r}); sys.exit(1)"
    runtime = await open_server(HOSTILE_SERVER, command=sys.executable, args=("-c", code))
    _, reason, _ = explanation(runtime)
    where = "Its last line on stderr" if line in stderr.splitlines()[-1] else "It wrote to stderr"
    assert reason == f"The server ended with exit code 1. {where}: “{line}”."


async def test_a_message_whose_characters_arrive_in_parts(open_server: Open) -> None:
    code = (
        "import sys, time; [(sys.stderr.buffer.write(bytes([byte])), sys.stderr.flush(), time.sleep(0.02))"
        " for byte in 'Größe'.encode()]; sys.exit(1)"
    )
    runtime = await open_server(HOSTILE_SERVER, command=sys.executable, args=("-c", code))
    assert "“Größe”" in explanation(runtime)[1]


async def test_a_missing_secret(open_server: Open) -> None:
    runtime = await open_server(SDK_SERVER, env={"KEY": "${NO_SUCH_SECRET}"})
    _, reason, fix = explanation(runtime)
    assert reason.startswith("NO_SUCH_SECRET is not set.")
    assert "in the environment or in a `.env` file" in fix


@pytest.mark.parametrize(
    ("mode", "reason", "fix"),
    [
        (
            "html",
            "answered with an HTML page (HTTP 200), not with MCP messages. It said: “Welcome”",
            "often end in /mcp",
        ),
        ("missing", "answered with an HTML page (HTTP 404)", "often end in /mcp"),
        ("broken", "failed (HTTP 503). It said: “The database is down.␛]0;owned␇", "Try again later."),
        ("no-tenant", "rejected the connection (HTTP 404). It said: “Unknown tenant (acme)”.", "Check `url` in"),
        ("no-tenant-400", "rejected the connection (HTTP 400). It said: “Unknown tenant (acme)”.", "Check `url` in"),
        ("no-route", "is not an MCP endpoint (HTTP 404). It said: “", "Check `url`"),
        ("moved", "redirects to another address", "Use that address"),
        ("login", "requires a login", "Run `pegboard mcp login peer`."),
        ("gzip", "compressed response", "Check `url`"),
        ("version", "speaks MCP protocol version “1999-01-01”; Pegboard speaks 2024-11-05 to 2026-07-28", "Update"),
        ("silent", "didn't answer within 2 s", "set a longer `timeout`"),
    ],
)
async def test_an_address_without_a_usable_server(
    open_server: Open, serve_http: Callable[..., str], mode: str, reason: str, fix: str
) -> None:
    runtime = await open_server(serve_http(HOSTILE_SERVER, mode), timeout=2.0 if mode == "silent" else 30.0)
    state, why, what = explanation(runtime)
    assert state is (ServerState.NEEDS_LOGIN if mode == "login" else ServerState.FAILED)
    assert reason in why
    assert fix in what


@pytest.mark.parametrize(("mode", "status"), [("missing", 404), ("get-only", 405)])
async def test_an_address_of_the_old_transport(
    open_server: Open, serve_http: Callable[..., str], mode: str, status: int
) -> None:
    url = serve_http(HOSTILE_SERVER, mode).removesuffix("/mcp") + "/sse"
    runtime = await open_server(url)
    state, reason, fix = explanation(runtime)
    assert state is ServerState.FAILED
    assert reason.startswith(f"{url} accepts no messages (HTTP {status}); it seems to use the old HTTP+SSE transport.")
    assert fix == "Use the URL of its streamable HTTP endpoint in `url` in `[mcp.servers.peer]`; it often ends in /mcp."


async def test_a_closed_port_and_an_unknown_host(open_server: Open) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/mcp"
    runtime = await open_server(url)
    assert explanation(runtime)[1:] == (
        f"Nothing listens at {url} (connection refused).",
        "Start the server, or check `url` in `[mcp.servers.peer]`.",
    )
    other = await open_server("http://no-such-host.invalid/mcp")
    assert explanation(other)[1] == "The host no-such-host.invalid can't be found."


class _Gatekeeper(BaseHTTPRequestHandler):
    """A proxy that requires a login."""

    def do_POST(self) -> None:
        self.send_response(407)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_CONNECT(self) -> None:
        self.do_POST()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.mark.parametrize(
    ("scheme", "is_open", "said"),
    [
        ("http", False, "can't be reached (connection refused)."),
        ("https", False, "can't be reached (connection refused)."),
        ("http", True, "requires a login (HTTP 407)."),
        ("https", True, "refused the connection: “407 Proxy Authentication Required”."),
    ],
)
async def test_a_proxy_that_can_not_be_used_is_named_without_its_password(
    open_server: Open, monkeypatch: pytest.MonkeyPatch, scheme: str, is_open: bool, said: str
) -> None:
    with HTTPServer(("127.0.0.1", 0), _Gatekeeper) as proxy:
        address = f"127.0.0.1:{proxy.server_port}"
        if is_open:
            threading.Thread(target=proxy.serve_forever, daemon=True).start()
        else:
            proxy.server_close()
        for name in ("NO_PROXY", "no_proxy", f"{scheme.upper()}_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(f"{scheme}_proxy", f"http://me:hidden-word@{address}")
        runtime = await open_server(f"{scheme}://mcp.example/mcp")
        _, reason, fix = explanation(runtime)  # before the next attempt to connect
        await runtime.close()
        if is_open:
            proxy.shutdown()
    assert reason == f"The proxy {address} {said}"
    assert fix == f"Correct the variable {scheme}_proxy, or add mcp.example to the variable NO_PROXY."


async def test_an_invalid_address_of_a_proxy_is_named_by_its_variable(
    open_server: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://[bad")
    runtime = await open_server("http://mcp.example/mcp")
    assert explanation(runtime)[1:] == (
        "The address of the proxy is invalid.",
        "Correct the variable http_proxy, or add mcp.example to the variable NO_PROXY.",
    )


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
async def test_a_server_is_reached_through_a_socks_proxy(
    open_server: Open, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    with OAuthServer().running() as server, socks_proxy() as (port, reached):
        server.requires_login = False
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("all_proxy", f"{scheme}://127.0.0.1:{port}")
        runtime = await open_server(server.url)
        [status] = runtime.servers.all()
        assert (status.state, status.reason) == ("ready", "")
        assert {f"http://{host}:{port}/mcp" for host, port in reached} == {server.url}
        await runtime.close()


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("place", ["/mcp/", "http://{host}/v2/mcp"])
async def test_a_server_that_redirects_to_another_path_of_its_own_is_used(
    open_server: Open, status: int, place: str
) -> None:
    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            method = body["method"]
            result: dict[str, Any] = {}
            if self.path == "/mcp":
                return respond(self, {}, status, Location=place.format(host=self.headers["host"]))
            if method == "initialize":
                about = {"name": "moved", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
            elif method == "tools/list":
                result = {"tools": [{"name": "ok", "inputSchema": {"type": "object"}}]}
            elif method == "tools/call":
                result = {"content": [{"type": "text", "text": self.headers["authorization"]}]}
            elif "id" in body:
                error = {"code": -32601, "message": "Method not found"}
                return respond(self, {"jsonrpc": "2.0", "id": body["id"], "error": error})
            else:
                return respond(self, {}, 202)
            return respond(self, {"jsonrpc": "2.0", "id": body["id"], "result": result})

    with echo_server(Server) as url:
        runtime = await open_server(url, headers={"Authorization": "Bearer x"})
        [server] = runtime.servers.all()
        assert (server.state, server.reason) == ("ready", "")
        assert (await run(runtime, "peer.ok")).data == "Bearer x"
        await runtime.close()


@pytest.mark.parametrize("end", ["\r", "\r\n"])
async def test_a_result_arrives_before_its_stream_ends_whatever_ends_the_lines(open_server: Open, end: str) -> None:
    received, in_time = threading.Event(), []

    class Server(JsonServer):
        def answer(self, body: Any) -> None:
            if "id" not in body:
                return respond(self, {}, 202)
            about = {"name": "lines", "version": "1"}
            results: dict[str, Any] = {
                "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about},
                "tools/list": {"tools": [{"name": "ok", "inputSchema": {"type": "object"}}]},
                "tools/call": {"content": [{"type": "text", "text": "fine"}]},
            }
            answer: dict[str, Any] = {"error": {"code": -32601, "message": "Method not found"}}
            if body["method"] in results:
                answer = {"result": results[body["method"]]}
            answer |= {"jsonrpc": "2.0", "id": body["id"]}
            if body["method"] != "tools/call":
                return respond(self, answer)
            stream_by_bytes(self, f"event: message{end}data: {json.dumps(answer)}{end}{end}")
            in_time.append(received.wait(10))
            return None

    with echo_server(Server) as url:
        runtime = await open_server(url)
        assert (await run(runtime, "peer.ok")).data == "fine"
        received.set()
        await runtime.close()
    assert in_time == [True]


@pytest.mark.parametrize(
    ("variable", "value", "reason", "fix"),
    [
        (
            "SSL_CERT_FILE",
            "{folder}/none.pem",
            "The file of certificates {folder}/none.pem can't be used: No such file or directory.",
            "Correct the variable SSL_CERT_FILE, or unset it.",
        ),
        (
            "SSL_CERT_FILE",
            __file__,
            f"The file of certificates {__file__} can't be used: it has no certificate in the PEM format.",
            "Correct the variable SSL_CERT_FILE, or unset it.",
        ),
        (
            "HTTPS_PROXY",
            "ftp://ada:secret@127.0.0.1:1",
            "The proxy has the scheme ftp, which isn't http, https, socks5 or socks5h.",
            "Correct the variable HTTPS_PROXY.",
        ),
    ],
)
async def test_an_invalid_variable_of_http_clients_is_named(
    open_server: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, value: str, reason: str, fix: str
) -> None:
    monkeypatch.setenv(variable, value.format(folder=tmp_path))
    with OAuthServer().running() as server:
        runtime = await open_server(server.url)
        assert explanation(runtime) == (ServerState.FAILED, reason.format(folder=tmp_path), fix)
        await runtime.close()


async def test_a_certificate_that_is_not_trusted(open_server: Open) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                    context.wrap_socket(connection, server_side=True).close()
                except ssl.SSLError:
                    continue
                except OSError:  # the listening socket was closed
                    return

        threading.Thread(target=serve, daemon=True).start()
        runtime = await open_server(f"https://127.0.0.1:{listening.getsockname()[1]}/mcp")
        listening.shutdown(socket.SHUT_RDWR)
    _, reason, fix = explanation(runtime)
    assert reason.startswith("The TLS connection to 127.0.0.1 failed: self-signed certificate")
    assert "SSL_CERT_FILE" in fix


async def test_a_server_without_tls(open_server: Open, serve_http: Callable[..., str]) -> None:
    url = serve_http(HOSTILE_SERVER, "ok").replace("http://", "https://")
    runtime = await open_server(url)
    assert explanation(runtime)[1:] == (
        "127.0.0.1 didn't answer with TLS.",
        "If it has no TLS, use http:// instead of https:// in `url` in `[mcp.servers.peer]`.",
    )


async def test_a_call_of_a_server_that_is_gone_says_why(open_server: Open, tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.symlink_to(sys.executable)
    runtime = await open_server(HOSTILE_SERVER, "third", command=str(program))
    await run(runtime, "peer.ok")
    await run(runtime, "peer.ok")
    program.unlink()
    await run(runtime, "peer.ok")
    _, result = await runtime.result(call("peer.ok"))
    assert result.error is not None
    assert result.error.detail == "not_connected"
    assert "peer.ok was not called. The server peer is not connected. The command" in result.error.message


async def test_an_error_of_http_during_a_call_has_its_status_and_the_servers_words(
    open_server: Open, serve_http: Callable[..., str]
) -> None:
    runtime = await open_server(serve_http(HOSTILE_SERVER, "broken-calls"))
    result = await run(runtime, "peer.ok")
    assert result.error is not None
    assert "answered with an error: HTTP 503: “The database is down.␛]0;owned␇" in result.error.message


@pytest.mark.parametrize("mode", ["forgets", "forgets-400"])
async def test_requests_in_a_session_that_the_server_has_forgotten_are_repeated_in_a_new_one(
    open_server: Open, serve_http: Callable[..., str], mode: str
) -> None:
    runtime = await open_server(serve_http(HOSTILE_SERVER, mode))
    assert (await run(runtime, "peer.ok")).data == "fine"  # it ends the session
    *results, prompts, forwarded = await asyncio.gather(
        run(runtime, "peer.ok"),
        run(runtime, "peer.ok"),
        runtime.servers.prompts("peer"),
        runtime.servers.forward("peer", "prompts/get", {"name": "hello"}),
    )
    assert [result.data for result in results] == ["fine", "fine"]
    assert isinstance(prompts, tuple)
    assert isinstance(forwarded, ForwardedError)
    assert forwarded.message == "Method not found"


async def test_a_server_that_knows_no_session_is_quoted_once(open_server: Open, serve_http: Callable[..., str]) -> None:
    runtime = await open_server(serve_http(HOSTILE_SERVER, "no-session"))
    result = await run(runtime, "peer.ok")
    assert result.error is not None
    assert result.error.message == "The server peer answered with an error: Session not found"


@pytest.mark.promise("MCP-1")
async def test_an_error_without_an_id_is_quoted(open_server: Open, serve_http: Callable[..., str]) -> None:
    runtime = await open_server(serve_http(HOSTILE_SERVER, "no-tenant-for-calls"))
    result = await run(runtime, "peer.ok")
    assert result.error is not None
    assert result.error.message == "The server peer answered with an error: HTTP 404: “Unknown tenant (acme)”"


@pytest.mark.promise("MCP-1", "SEC-2")
@pytest.mark.parametrize("mode", ["fails-404", "fails-400"])
async def test_a_call_that_the_server_answered_with_an_error_is_not_repeated(
    open_server: Open, serve_http: Callable[..., str], mode: str
) -> None:
    runtime = await open_server(serve_http(HOSTILE_SERVER, mode))
    for number in (1, 2):
        result = await run(runtime, "peer.ok")
        assert result.error is not None
        assert f"No such browser session, call {number}" in result.error.message


async def test_a_failed_server_is_connected_on_request(open_server: Open, tmp_path: Path) -> None:
    program = tmp_path / "server"
    runtime = await open_server(SDK_SERVER, command=str(program))
    assert runtime.servers.all()[0].state is ServerState.FAILED
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    await runtime.servers.connect("peer")
    assert runtime.servers.all()[0].state is ServerState.READY
    assert (await run(runtime, "peer.echo", message="again")).data == "again"


async def test_a_disabled_server_is_not_started(open_server: Open) -> None:
    runtime = await open_server(SDK_SERVER, enabled=False)
    (status,) = runtime.servers.all()
    assert (status.state, status.tools) == (ServerState.DISABLED, 0)


async def test_servers_connect_in_parallel(open_server: Open) -> None:
    runtime = await open_server(HOSTILE_SERVER, "silent", timeout=4.0)
    for number in range(5):
        config = {"name": f"silent{number}", "command": sys.executable, "args": (str(HOSTILE_SERVER), "silent")}
        runtime.servers.add(ServerConfig.model_validate({**config, "timeout": 4.0}))
    import time

    began = time.monotonic()
    await runtime.servers.connect()
    assert time.monotonic() - began < 4 * 4
    assert {status.state for status in runtime.servers.all()} == {ServerState.FAILED}
