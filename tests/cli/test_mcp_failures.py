"""Servers that can't be used, and servers that ask the model, from the command line."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import commands
import pytest
from provider import FakeProvider, says
from servers import HOSTILE_SERVER, SDK_SERVER, start_of
from terminals import pegboard as in_terminal
from tls_page import self_signed
from watched import PLAIN_SERVER

from pegboard.cli import servers as cli_servers
from pegboard.runtime import Runtime

Command = Callable[..., commands.Done]
COMMANDS = pytest.mark.parametrize("command", [("mcp", "test"), ("tools", "list")], ids=" ".join)


@pytest.fixture
def pegboard(tmp_path: Path) -> Command:
    """Return a function that runs `pegboard` in `tmp_path` and returns the finished process."""

    def run(*arguments: str, **env: str) -> commands.Done:
        return commands.pegboard(*arguments, cwd=tmp_path, env={**os.environ, **env}, timeout=90)

    return run


def failed(done: commands.Done) -> str:
    """Return the only message of a command whose server failed. `tools list` lists the other tools."""
    is_list = "list" in done.args
    assert (done.returncode, bool(done.stdout)) == (0 if is_list else 1, is_list), done.stderr
    [line] = done.stderr.strip().splitlines()
    return line


@COMMANDS
@pytest.mark.promise("MCP-3")
def test_a_certificate_that_no_authority_signed_is_named_with_the_next_step(
    pegboard: Command, tmp_path: Path, command: tuple[str, ...]
) -> None:
    with self_signed(tmp_path) as url:
        said = failed(pegboard(*command, "--mcp", url))
        assert "The TLS connection to 127.0.0.1 failed: self-signed certificate." in said
        assert "set SSL_CERT_FILE to its certificate" in said
        said = failed(pegboard(*command, "--mcp", url, SSL_CERT_FILE=str(tmp_path / "certificate.pem")))
        assert "is not an MCP endpoint (HTTP 404)" in said, "the advice works"


@pytest.mark.promise("MCP-3")
def test_a_test_of_a_server_reports_the_invalid_parts_of_its_schemas(pegboard: Command) -> None:
    done = pegboard("mcp", "test", "peer", "--mcp", f"peer={shlex.join(start_of(HOSTILE_SERVER, 'schemas'))}")
    assert done.returncode == 0, "the other tools can be used"
    for said in (
        "The input schema of peer.dangling is invalid: `/properties/a/$ref`: the target of the reference #/$defs/x",
        "The input schema of peer.remote is invalid: `/$ref`: the target of the reference http://127.0.0.1:9/",
        "The input schema of peer.invalid is invalid: `/properties/a/type`: must name JSON types.",
    ):
        assert f"warning: {said}" in done.stderr
    for fine in ("peer.ok ", "peer.loop "):
        assert f"schema of {fine}" not in done.stderr


@pytest.mark.promise("MCP-3")
def test_a_test_of_a_server_reports_required_arguments_without_a_property(pegboard: Command) -> None:
    peer = f"peer={shlex.join(start_of(HOSTILE_SERVER, 'required'))}"
    done = pegboard("mcp", "test", "peer", "--mcp", peer, "--json")
    assert done.returncode == 0, "the other tools can be used"
    said = [
        "The input schema of peer.bad requires `file`, not listed in `properties`. No call is valid.",
        "The input schema of peer.ok requires `file`, not listed in `properties`.",
    ]
    assert [problem["message"] for problem in json.loads(done.stdout)["problems"]] == said
    assert done.stderr.splitlines() == [f"warning: {text} Correct `required` or `properties`." for text in said]


def test_a_title_that_only_repeats_the_name_of_a_tool_does_not_replace_its_description(pegboard: Command) -> None:
    done = pegboard("tools", "list", "--json", "--mcp", f"peer={shlex.join(start_of(HOSTILE_SERVER, 'titles'))}")
    assert {tool["name"]: tool["description"] for tool in json.loads(done.stdout) if tool["pack"] == "peer"} == {
        "peer.find": "Find a user\n\nFine.",
        "peer.getUser2": "Fine.",
        "peer.get_user": "Fine.",
        "peer.list_users": "List Users",
    }


def test_a_test_of_an_address_says_how_to_use_a_server_that_is_not_configured(pegboard: Command) -> None:
    done = pegboard("mcp", "test", "http://127.0.0.1:9/mcp")
    assert done.returncode == 2
    assert "To use a server that isn't configured, write `--mcp` before the address." in done.stderr


@pytest.mark.promise("MCP-3")
@pytest.mark.parametrize("command", [("mcp", "test", "peer"), ("tools", "info", "peer.ok")])
def test_each_invalid_part_of_a_schema_is_listed(pegboard: Command, command: tuple[str, ...]) -> None:
    done = pegboard(*command, "--mcp", f"peer={shlex.join(start_of(HOSTILE_SERVER, 'flaws'))}")
    said = done.stdout + done.stderr
    for number in range(10):
        assert f"The input schema of peer.ok is invalid: `/properties/p{number}/type`: must name JSON types." in said
    assert "The input schema of peer.ok has 2 more invalid parts." in said
    assert "/properties/p10/type`" not in said


@pytest.mark.promise("MCP-3")
def test_the_messages_of_a_server_are_printed_as_they_were_sent(pegboard: Command) -> None:
    peer = f"peer={shlex.join(start_of(SDK_SERVER))}"
    done = pegboard("mcp", "test", "peer", "--mcp", peer, "--messages")
    assert re.search(r'^[\d:.]{12} → {"jsonrpc":"2.0","id":1,"method":"server/discover"', done.stdout, re.MULTILINE)
    assert re.search(r'^[\d:.]{12} ← {"jsonrpc":"2.0","id":1,"result":', done.stdout, re.MULTILINE)
    done = pegboard("mcp", "test", "peer", "--mcp", peer, "--messages", "--json")
    assert [one["method"] for one in json.loads(done.stdout)["messages"] if one["kind"] == "response"] == [
        "server/discover",
        "tools/list",
    ]
    assert "messages" not in json.loads(pegboard("mcp", "test", "peer", "--mcp", peer, "--json").stdout)
    call = ("tools", "invoke", "peer.add", "--arg", "a=1", "--arg", "b=2", "--mcp", peer, "--data")
    done = pegboard(*call, "--messages")
    assert json.loads(done.stdout) == {"total": 3}
    assert '"method":"tools/call"' in done.stderr
    assert "tools/call" not in pegboard(*call).stderr
    broken = pegboard("mcp", "test", "peer", "--mcp", f"peer={sys.executable} -c 'print(5)'", "--messages")
    assert re.search(r"^[\d:.]{12} ← 5$", broken.stdout, re.MULTILINE)


@pytest.mark.promise("MCP-3")
def test_the_messages_of_a_server_that_could_not_be_used_are_printed_with_the_call(pegboard: Command) -> None:
    broken = f"peer={sys.executable} -c 'print(5)'"
    done = pegboard("tools", "invoke", "peer.add", "--messages", "--data", "--mcp", broken)
    assert done.returncode == 3
    assert re.search(r"^[\d:.]{12} ← 5$", done.stderr, re.MULTILINE)
    done = pegboard("tools", "invoke", "time.now", "--messages", "--data")
    assert done.stderr == "note: time.now isn't a tool of an MCP server, so no messages are printed.\n"


@pytest.mark.promise("MCP-3")
def test_a_test_of_a_server_that_prints_on_stdout_quotes_the_first_line(pegboard: Command, tmp_path: Path) -> None:
    script = tmp_path / "printing.py"
    script.write_text(
        f"import runpy\nprint('Loading notes', flush=True)\nrunpy.run_path({PLAIN_SERVER!r}, run_name='__main__')\n"
    )
    done = pegboard("mcp", "test", "peer", "--mcp", f"peer={shlex.join([sys.executable, str(script)])}")
    assert done.returncode == 0, done.stderr
    [warning] = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert "The server printed 1 line on stdout that isn't MCP, such as “Loading notes”." in warning
    assert "log to stderr" in warning


@pytest.mark.promise("MCP-3")
def test_a_test_of_a_server_names_its_output_on_stdout_beside_another_problem(
    pegboard: Command, tmp_path: Path
) -> None:
    script = tmp_path / "printing.py"
    script.write_text(
        "import runpy, sys\nprint('Loading notes', flush=True)\nsys.argv = ['', 'names']\n"
        f"runpy.run_path({str(HOSTILE_SERVER)!r}, run_name='__main__')\n"
    )
    peer = f"peer={shlex.join([sys.executable, str(script)])}"
    done = pegboard("mcp", "test", "peer", "--mcp", peer)
    assert "lists the tool “ok” more than once" in done.stderr
    assert "The server printed 1 line on stdout that isn't MCP, such as “Loading notes”." in done.stderr
    tested = json.loads(pegboard("mcp", "test", "peer", "--mcp", peer, "--json").stdout)
    assert tested["state"] == "degraded"
    assert [one["fix"] for one in tested["problems"] if "on stdout" in one["message"]] == [
        "Configure the server to log to stderr."
    ]


@pytest.mark.promise("MCP-3")
def test_an_error_in_the_entry_of_a_server_is_reported_once(pegboard: Command, home: Path) -> None:
    (home / "config.toml").write_text('[mcp.servers.files]\ncommand = "files-server"\nallow = 5\n')
    for command in (("mcp", "list"), ("tools", "list")):
        done = pegboard(*command)
        assert done.stdout
        [line] = done.stderr.splitlines()
        assert "config.toml:3: Unknown setting `mcp.servers.files.allow`." in line


@pytest.mark.promise("MCP-3", "CLI-2")
def test_a_tool_of_a_server_that_failed_is_reported_with_the_reason(pegboard: Command, home: Path) -> None:
    (home / "config.toml").write_text(
        f'[mcp.servers.gone]\ncommand = {json.dumps(sys.executable)}\nargs = ["-c", "raise SystemExit(7)"]\n'
        '[mcp.servers.off]\ncommand = "files-server"\nenabled = false\n'
    )
    done = pegboard("tools", "invoke", "gone.read")
    assert done.returncode == 3
    error = json.loads(done.stdout)["result"]["error"]
    assert (error["code"], error["detail"]) == ("tool_not_found", "not_connected")
    assert "can't be used. The MCP server gone is not connected. The server ended with exit code 7" in error["message"]
    limited = pegboard("tools", "invoke", "gone.read", "--tool-allow", "fs.*")
    assert json.loads(limited.stdout)["result"]["error"]["message"] == "No tool is named 'gone.read'."
    for tool, said in (("gone.read", "ended with exit code 7"), ("off.read", "The server off is disabled.")):
        info = pegboard("tools", "info", tool)
        assert info.returncode == 3
        assert f"{tool} can't be used." in info.stderr
        assert info.stderr.count(said) == 1


@COMMANDS
@pytest.mark.promise("MCP-3")
def test_a_server_of_another_protocol_version_is_named_with_the_next_step(
    pegboard: Command, command: tuple[str, ...]
) -> None:
    said = failed(pegboard(*command, "--mcp", shlex.join([sys.executable, str(HOSTILE_SERVER), "version"])))
    assert "speaks MCP protocol version “1999-01-01”; Pegboard speaks" in said
    assert "Update the server or Pegboard." in said


@pytest.mark.promise("MCP-6")
@pytest.mark.parametrize(
    ("what", "mode", "said"),
    [("resources", "cursor", "repeats a page of its list of resources"), ("prompts", "ok", "3 items that are invalid")],
)
def test_a_list_that_is_incomplete_says_so(pegboard: Command, what: str, mode: str, said: str) -> None:
    start = shlex.join([sys.executable, str(HOSTILE_SERVER), mode])
    done = pegboard("mcp", what, "--json", "--mcp", start)
    assert done.returncode == 0
    assert json.loads(done.stdout)
    assert said in done.stderr


@pytest.mark.promise("MCP-5")
def test_a_prompt_that_is_approved_on_the_terminal_is_answered_by_the_model() -> None:
    start = shlex.join(start_of(SDK_SERVER))
    with FakeProvider(says("4", "2")).running() as provider:
        model = {
            "PEGBOARD_MODEL__NAME": "openai:fake",
            "PEGBOARD_MODEL__BASE_URL": provider.url,
            "OPENAI_API_KEY": "sk-test",
        }
        with in_terminal("tools", "invoke", "fixture.ask_model", "--data", "--mcp", start, environ=model) as screen:
            screen.read_until("Send it to the model? [y/N] ")
            assert "system: Be brief." in screen.output
            assert "user: What is six times seven?" in screen.output
            assert provider.asked == [], "nothing is sent before it is approved"
            screen.type("y\n")
            assert screen.read_all() == 0
        assert "openai:fake said 42" in screen.output
        assert len(provider.asked) == 1


@pytest.mark.promise("SEC-4")
def test_a_rule_for_a_configured_server_that_is_not_connected_is_not_reported(pegboard: Command, home: Path) -> None:
    command = f"command = {json.dumps(sys.executable)}\nargs = ['-c', 'raise SystemExit(3)']\n"
    (home / "config.toml").write_text(f"[mcp.servers.gits]\n{command}")
    (home / "approvals.toml").write_text('[[rule]]\ndeny = "gits.*"\n')
    listed = pegboard("tools", "list")
    assert "The MCP server gits is not connected." in listed.stderr
    assert "In rule" not in listed.stderr, "its tools are unknown, and `git.*` isn't meant"
    assert "In rule" not in pegboard("tools", "invoke", "fs.nope").stderr, "no server was connected"


@pytest.mark.promise("MCP-3", "CLI-2")
@pytest.mark.slow
def test_a_server_that_hangs_at_its_start_is_named_and_does_not_hold_up_tools_of_others(
    pegboard: Command, home: Path
) -> None:
    hangs = shlex.join([sys.executable, "-c", "import signal; signal.pause()"])
    done = pegboard("tools", "invoke", "tools.echo", "--arg", "value=1", "--data", "--mcp", hangs)
    assert (done.returncode, done.stdout) == (0, "1\n")
    [line] = done.stderr.splitlines()
    assert line.startswith("No answer after 5 s from the server of --mcp ")
    assert "signal.pause()" in line
    (home / "config.toml").write_text(f"[mcp.servers.slow]\ncommand = {sys.executable!r}\n")
    with (home / "config.toml").open("a") as file:
        file.write("args = ['-c', 'import signal; signal.pause()']\ntimeout = 6.0\n")
    done = pegboard("tools", "list", "fs")
    assert done.stdout
    assert done.stderr.splitlines()[0] == "Still waiting after 5 s for slow …"


@pytest.mark.promise("MCP-3")
def test_servers_that_answer_at_the_last_moment_are_not_reported(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime.from_environment()
    connect_all = runtime.servers.connect

    async def connect_slowly() -> None:
        await connect_all()
        await asyncio.Event().wait()

    monkeypatch.setattr(runtime.servers, "connect", connect_slowly)
    monkeypatch.setattr(cli_servers, "_TIMEOUT_SECONDS", 0.5)
    cli_servers.connect(runtime, [shlex.join(start_of(SDK_SERVER))], ["fixture.add"])
    assert runtime.tools.get("fixture.add") is not None
    cli_servers.close(runtime)
    messages = capsys.readouterr().err.splitlines()
    assert all(message.startswith("Still waiting after 0.5 s for the server") for message in messages)


@pytest.mark.promise("EXE-4")
def test_a_timeout_of_a_servers_tool_says_how_to_allow_more_time(pegboard: Command, home: Path) -> None:
    line = ("tools", "invoke", "plain.never")
    command, *arguments = start_of(Path(PLAIN_SERVER))
    entry = f"[mcp.servers.plain]\ncommand = {json.dumps(command)}\nargs = {json.dumps(arguments)}\ntimeout = 5\n"
    (home / "config.toml").write_text(entry)
    said = pegboard(*line).stderr
    assert "timed out after 5 s. If it needs more time, set a longer `timeout` in `[mcp.servers.plain]`, or" in said
    assert "`--timeout`" in said
    chosen = pegboard(*line, "--timeout", "0.5").stderr
    assert "timed out after 0.5 s.\n" in chosen
    (home / "config.toml").write_text('[tools]\ntimeouts = { "plain.*" = 0.7 }\n' + entry)
    set_for_tools = pegboard(*line).stderr
    assert "timed out after 0.7 s. If it needs more time, set `timeouts` under `[tools]`" in set_for_tools


@pytest.mark.promise("MCP-3")
def test_a_program_that_does_not_answer_in_time_can_be_given_more_time_to_start(pegboard: Command, home: Path) -> None:
    command, *arguments = start_of(HOSTILE_SERVER)
    entry = f"command = {json.dumps(command)}\nargs = {json.dumps([*arguments, 'silent'])}\ntimeout = 1\n"
    (home / "config.toml").write_text(f"[mcp.servers.slow]\n{entry}")
    said = failed(pegboard("mcp", "test", "slow"))
    assert "within 1 s. If it needs more time to start, set a longer `timeout` in `[mcp.servers.slow]`." in said
    assert "Run the command in a terminal to see more: " in said
