"""`pegboard serve --http`: clients, and who is kept out."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import shlex
import socket
import stat
import subprocess
import tomllib
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from commands import Done, pegboard
from processes import until
from serving import HttpServer, records

from pegboard.brake import Answer, Questions
from pegboard.config import Paths
from pegboard.models import Agent
from pegboard.serve.http import Address


def holders(folder: Path, pattern: str, text: str) -> list[Path]:
    """Return the files that contain a text."""
    found = []
    for file in folder.glob(pattern):
        with suppress(OSError):  # a folder, or a process that has ended
            if text.encode() in file.read_bytes():
                found.append(file)
    return found


def post(server: HttpServer, headers: dict[str, str], path: str = "/mcp", body: bytes = b"{}") -> int:
    """Send a request with exactly these headers and return its status."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
    connection.putrequest("POST", path, skip_host=True, skip_accept_encoding=True)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    return connection.getresponse().status


@pytest.mark.promise("MCP-2")
async def test_clients_of_both_versions_call_tools_over_http(http_server: HttpServer, version: str) -> None:
    async with http_server.client(version) as client:
        assert "kit_add" in {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("kit_add", {"a": 2, "b": 3})
    assert result.structured_content == {"result": 5}
    await until(lambda: records("kit.add"))
    (record,) = records("kit.add")
    assert record.source == "serve"
    assert Agent.of_session(record.session)


async def test_the_address_may_end_in_a_slash(http_server: HttpServer, version: str) -> None:
    http_server.url += "/"
    async with http_server.client(version) as client:
        assert (await client.call_tool("kit_add", {"a": 2, "b": 3})).structured_content == {"result": 5}


@pytest.mark.promise("MCP-2")
async def test_small_responses_are_sent_without_waiting_for_an_acknowledgment() -> None:
    is_immediate: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_immediate.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with closing(Address("127.0.0.1", 0).socket) as listener:
        async with await asyncio.start_server(accept, sock=listener) as server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            async with asyncio.timeout(30):
                assert await is_immediate
            writer.close()


async def test_a_client_that_disconnects_cancels_its_call(
    http_server: HttpServer, version: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    arguments = {"file": str(file)}
    headers = {
        "Authorization": f"Bearer {http_server.token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
    }
    params: dict[str, object] = {"name": "kit.wait", "arguments": arguments}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as client:
        if version == "2025-11-25":
            hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
            request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
            response = await client.post(http_server.url, json=request)
            client.headers["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
            await client.post(http_server.url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        else:
            client.headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "kit.wait"}
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        calling = asyncio.create_task(client.post(http_server.url, json=call))
        await until(file.exists)
        calling.cancel()
    await until(lambda: records("kit.wait"))
    (record,) = records("kit.wait")
    assert record.error is not None
    assert record.error.detail == "cancelled"


async def test_a_server_that_ends_sends_the_results_of_the_calls_that_it_cancels(
    http_server: HttpServer, version: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    async with http_server.client(version) as client:
        call = asyncio.create_task(client.call_tool("kit_wait", {"file": str(file)}))
        await until(file.exists)
        http_server.process.terminate()
        async with asyncio.timeout(30):
            result = await call
    assert result.is_error
    assert "cancelled" in str(result.content)


def test_host_origin_and_token_are_checked_in_this_order(http_server: HttpServer) -> None:
    authority = urlsplit(http_server.url).netloc
    port = authority.rpartition(":")[2]
    token = {"Authorization": f"Bearer {http_server.token}"}
    good = {"Host": authority, **token}
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{int(port) + 1}", ""):
        assert post(http_server, {"Host": host, **token}) == 421
    for origin in ("http://evil.example", f"https://{authority}", "http://127.0.0.1:1", "null", ""):
        assert post(http_server, {**good, "Origin": origin}) == 403
        assert post(http_server, {"Host": authority, "Origin": origin}) == 403
        assert post(http_server, {**good, "Origin": f"http://{authority}", "origin": origin}) == 403, "two of them"
    for wrong in (
        {},
        {"Authorization": "Bearer x"},
        {"Authorization": http_server.token},
        {"Authorization": "Basic eA=="},
    ):
        assert post(http_server, {"Host": authority, **wrong}) == 401
        assert post(http_server, {"Host": authority, **wrong}, "/elsewhere") == 401
    assert post(http_server, good, "/elsewhere") == 404
    accepted = {**good, "Origin": f"http://localhost:{port}", "Content-Type": "application/json"}
    assert post(http_server, accepted) in (400, 406)


@pytest.mark.promise("MCP-2")
async def test_a_client_that_connects_its_stream_again_gets_a_new_one(http_server: HttpServer) -> None:
    version = "2025-11-25"
    headers = {"Authorization": f"Bearer {http_server.token}", "Accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as client:
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        response = await client.post(http_server.url, json=request)
        client.headers |= {"Mcp-Session-Id": response.headers["Mcp-Session-Id"], "MCP-Protocol-Version": version}
        await client.post(http_server.url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        async with client.stream("GET", http_server.url, headers={"Last-Event-ID": "7"}) as stream:
            assert stream.status_code == 200
            assert stream.headers["Content-Type"].startswith("text/event-stream")


@pytest.mark.promise("ASK-7", "WAT-4")
async def test_an_answer_for_the_session_does_not_apply_to_the_next_client_of_the_same_name(
    http_server: HttpServer, version: str, home: Path, tmp_path: Path
) -> None:
    questions = Questions(home / "state")
    with questions.announce():
        async with http_server.client(version) as client:
            call = asyncio.create_task(client.call_tool("kit_write", {"file": str(tmp_path / "a")}))
            await until(questions.pending)
            (question,) = questions.pending()
            done = await asyncio.to_thread(pegboard, "approve", question.id, "--session")
            if version == "2026-07-28":
                assert done.returncode == 2
                assert "because its client has no session" in done.stderr
                questions.answer(question.id, Answer("approve", lasts="session"))  # of a process that doesn't know
            assert not (await call).is_error
            outcome = questions.rule_outcome(question)
            assert outcome is not None
            assert ("has no session" in outcome.problem) is (version == "2026-07-28")
        async with http_server.client(version) as other:
            call = asyncio.create_task(other.call_tool("kit_write", {"file": str(tmp_path / "b")}))
            await until(questions.pending)
            (question,) = questions.pending()
            questions.answer(question.id, Answer("reject"))
            assert (await call).is_error
    assert not (tmp_path / "b").exists()


async def test_the_token_is_nowhere_but_in_its_file(http_server: HttpServer, home: Path) -> None:
    file = Paths.from_environment().serve_token
    assert file.read_text() == http_server.token
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    async with http_server.client("2026-07-28") as client:
        shown = await client.call_tool("kit_describe", {"name": http_server.token})
    assert http_server.token not in str(shown)
    assert records("kit.describe")
    assert not holders(Path("/proc"), "[0-9]*/cmdline", http_server.token)
    http_server.process.terminate()
    http_server.process.wait(20)
    assert holders(home, "**/*", http_server.token) == [file]
    assert http_server.log.read_text().count(http_server.token) == 1


def serve(*options: str, **environment: str) -> Done:
    """Run `pegboard serve` with options that end it."""
    return pegboard("serve", *options, env={**os.environ, **environment})


def test_a_kept_token_is_shown_only_when_it_is_created(http_server: HttpServer) -> None:
    port = urlsplit(http_server.url).port
    done = serve("--http", str(port))
    assert done.returncode == 1
    assert f"Port {port} on 127.0.0.1 can't be used" in done.stderr
    assert http_server.token not in done.stderr + done.stdout


def test_other_machines_are_served_only_with_an_explicit_token(tmp_path: Path) -> None:
    done = serve("--http", "0", "--host", "192.0.2.1")
    assert done.returncode == 1
    assert "PEGBOARD_SERVE_TOKEN" in done.stderr
    wild = serve("--http", "0", "--host", "0.0.0.0", PEGBOARD_SERVE_TOKEN="x" * 32)
    assert wild.returncode == 1
    assert "Name the host or address that clients use" in wild.stderr
    short = serve("--http", "0", PEGBOARD_SERVE_TOKEN="short")
    assert "can't be used" in short.stderr
    file = tmp_path / "token"
    file.write_text("y" * 32)
    file.chmod(0o644)
    open_ = serve("--http", "0", "--token-file", str(file))
    assert f"chmod 600 {file}" in open_.stderr


CLIENTS = ["claude-code", "claude-desktop", "codex", "cursor", "gemini", "opencode", "vscode", "windsurf", "copilot"]
HOLDERS = {"codex": "mcp_servers", "opencode": "mcp", "vscode": "servers"}


def entry_of(client: str, printed: str) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the environment of a printed entry."""
    content = tomllib.loads(printed) if client == "codex" else json.loads(printed)
    entry = content[HOLDERS.get(client, "mcpServers")]["pegboard"]
    if client == "opencode":
        return entry["command"], entry.get("environment", {})
    return [entry["command"], *entry["args"]], entry.get("env", {})


@pytest.mark.parametrize("client", CLIENTS)
def test_the_entry_for_a_client_starts_this_pegboard(client: str) -> None:
    command, _ = entry_of(client, serve("--print-config", client, "--tool-allow", "fs.*").stdout)
    listed = subprocess.run([command[0], "--version"], capture_output=True, text=True, timeout=60, check=True)
    assert listed.stdout.startswith("pegboard ")
    assert command[-2:] == ["--tool-allow", "fs.*"]
    over_http = serve("--print-config", client, "--http")
    assert over_http.returncode == (2 if client == "claude-desktop" else 0)
    if client != "claude-desktop":
        assert "http://127.0.0.1:8768/mcp" in over_http.stdout
        assert "PEGBOARD_SERVE_TOKEN" in over_http.stdout + over_http.stderr or client == "vscode"


def test_options_that_an_entry_with_an_address_cannot_have_are_named(tmp_path: Path) -> None:
    done = serve("--print-config", "cursor", "--http", "--packs", str(tmp_path), "--tool-allow", "fs.*")
    assert (done.returncode, "fs.*" in done.stdout) == (0, False)
    given = shlex.join(["--packs", str(tmp_path), "--tool-allow", "fs.*"])
    assert f"because the client doesn't start the server: {given}. Pass it to `pegboard serve`." in done.stderr
    assert "doesn't start" not in serve("--print-config", "cursor", "--http").stderr
    assert "doesn't start" not in serve("--print-config", "cursor", "--tool-allow", "fs.*").stderr


def test_relative_paths_in_the_command_of_a_server_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.py").touch()

    def hint(command: str) -> str:
        lines = serve("--print-config", "cursor", "--mcp", command).stderr.splitlines()
        return "".join(line.rpartition(": ")[2] for line in lines if line.startswith("Write absolute paths in --mcp"))

    assert hint("python server.py") == hint("notes=server.py --quick") == "server.py."
    assert hint(f"python {tmp_path}/server.py") == hint("https://example.org/mcp") == hint("python 'server.py") == ""


def test_the_entry_for_codex_can_be_added_to_a_file_that_has_others() -> None:
    others = '[mcp_servers.files]\ncommand = "files"\n\n'
    servers = tomllib.loads(others + serve("--print-config", "codex").stdout)["mcp_servers"]
    assert servers.keys() == {"files", "pegboard"}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_entry_for_a_client_has_this_configuration_and_no_secrets(client: str, home: Path, tmp_path: Path) -> None:
    packs = os.pathsep.join([str(tmp_path / "one"), "two"])
    secrets = {"PEGBOARD_SERVE_TOKEN": "t0ken-" * 5, "PEGBOARD_MODELS__HUB__KEY": "k3y-4711", "HUB_API_KEY": "k3y-4712"}
    done = serve("--print-config", client, PEGBOARD_PACKS=packs, PEGBOARD_CACHE_DIR="", **secrets)
    command, env = entry_of(client, done.stdout)
    assert env == {
        "PEGBOARD_CONFIG": str(home / "config.toml"),
        "PEGBOARD_DATA_DIR": str(home / "data"),
        "PEGBOARD_STATE_DIR": str(home / "state"),
        "PEGBOARD_PACKS": os.pathsep.join([str(tmp_path / "one"), str(Path("two").absolute())]),
    }
    assert "Not in the entry, because they may be secret: PEGBOARD_MODELS__HUB__KEY." in done.stderr
    assert not [value for value in secrets.values() if value in done.stdout + done.stderr]
    started = subprocess.run(
        [command[0], "paths", "--json"], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    assert str(home / "state") in started.stdout


def test_wrong_options_are_explained() -> None:
    assert "needs --http" in serve("9000").stderr
    assert "need --http" in serve("--host", "localhost").stderr
    chosen = serve("--print-config", "cursor", "--http", "0")
    assert (chosen.returncode, chosen.stdout, "needs the port itself" in chosen.stderr) == (2, "", True)
    unknown = serve("--print-config", "emacs")
    assert unknown.returncode == 2
    assert "claude-code, claude-desktop, codex, cursor, gemini, opencode, vscode, windsurf" in unknown.stderr
