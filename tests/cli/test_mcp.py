"""`pegboard mcp` and `--mcp`: servers are added, imported, tested and used without a screen."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import commands
import pytest
from servers import HOSTILE_SERVER, SDK_SERVER, start_of
from terminals import pegboard as in_terminal

from pegboard.models import JsonObject

Command = Callable[..., commands.Done]

TOKEN = "ghp_abcdefghijklmnopqrstuvwx"


@pytest.fixture
def pegboard(tmp_path: Path) -> Command:
    """Return a function that runs `pegboard` in `tmp_path` and returns the finished process."""

    def run(*arguments: str, **env: str) -> commands.Done:
        done = commands.pegboard(*arguments, cwd=tmp_path, env={**os.environ, **env}, timeout=90)
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def page() -> Iterator[str]:
    """Serve an HTML page for every request, and return its address."""

    class Page(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = b"<!doctype html><title>Sign in</title>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/mcp"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def start() -> str:
    """Return the command line of a server."""
    return shlex.join(start_of(SDK_SERVER))


@pytest.mark.promise("CLI-1", "MCP-3")
def test_a_description_is_shown_without_the_indentation_of_its_source(pegboard: Command, start: str) -> None:
    done = pegboard("tools", "info", "fixture.find", "--mcp", start)
    assert "\n\nFind notes.\n\n- One per line\n\nstate " in done.stdout


@pytest.mark.promise("CLI-1", "MCP-3")
@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        ({"file": "a", "second": 2}, "note: fixture.sleep has no parameter 'second'. Did you mean 'seconds'?"),
        ({"file": "a", "second": 2, "seconds": 1}, ""),
        ({"file": "a", "other": 2}, ""),
        ({"file": "a", "seconds": 2}, ""),
    ],
)
def test_an_argument_that_a_server_ignores_because_it_is_misspelled_is_reported(
    pegboard: Command, arguments: dict[str, object], note: str, start: str
) -> None:
    done = pegboard(
        "tools", "invoke", "fixture.sleep", "--args", json.dumps(arguments), "--print", "json", "--mcp", start
    )
    assert (done.returncode, json.loads(done.stdout)) == (0, arguments)
    notes = [line for line in done.stderr.splitlines() if line.startswith("note:")]
    assert notes == ([f"{note} It is passed on as it is."] if note else [])


def config(home: Path) -> str:
    """Return the text of the configuration file."""
    return (home / "config.toml").read_text()


@pytest.mark.promise("MCP-3")
def test_a_server_is_added_tested_used_and_removed(pegboard: Command, home: Path) -> None:
    (home / "config.toml").write_text("# mine\n[ui]\nvim_keys = true  # as in vim\n")
    before = config(home)
    done = pegboard("mcp", "add", "memo", "--env", "LEVEL=info", "--", sys.executable, str(SDK_SERVER))
    assert (done.returncode, done.stdout) == (0, "")
    assert config(home).startswith(before)
    assert tomllib.loads(config(home))["mcp"]["servers"]["memo"] == {
        "command": sys.executable,
        "args": [str(SDK_SERVER)],
        "env": {"LEVEL": "info"},
    }
    done = pegboard("mcp", "test", "memo", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["state"], report["serverName"], report["protocol"]) == ("ready", "example/fixture", "2026-07-28")
    assert "resources" in report["capabilities"]
    assert report["latencyMs"] > 0
    done = pegboard("tools", "invoke", "memo.add", "--arg", "a=1", "--arg", "b=2", "--data")
    assert json.loads(done.stdout) == {"total": 3}
    assert pegboard("mcp", "remove", "memo").returncode == 0
    assert config(home) == before


@pytest.mark.promise("MCP-3")
@pytest.mark.parametrize(
    "line",
    ["--mcp {} tools list --json", "tools --mcp {} list --json", "tools list --json --mcp {}"],
    ids=["before the group", "between", "after"],
)
def test_a_server_of_one_run_is_named_after_what_it_reports(pegboard: Command, line: str, start: str) -> None:
    done = pegboard(*shlex.split(line.format(shlex.quote(start))))
    assert done.returncode == 0, done.stderr
    names = {tool["name"] for tool in json.loads(done.stdout)}
    assert {"fixture.add", "fixture.echo", "time.now"} <= names


@pytest.mark.promise("MCP-3")
def test_the_tokens_that_the_tools_of_a_server_use_in_each_turn_of_a_model_are_estimated(
    pegboard: Command, start: str
) -> None:
    given = ("--mcp", start)
    tools = [one for one in json.loads(pegboard("tools", "list", "--json", *given).stdout) if one["pack"] == "fixture"]
    sent = [{key: one[key] for key in ("name", "description", "inputSchema")} for one in tools]
    expected = sum(len(json.dumps(one, ensure_ascii=False, separators=(",", ":"))) / 4 for one in sent)
    found = json.loads(pegboard("mcp", "list", "--json", *given).stdout)[0]["tokens"]
    assert abs(found - expected) <= len(tools) / 2  # each is rounded
    shown = f"{len(tools)}, ≈ {found:,} tokens in each turn of a model"
    assert shown in pegboard("mcp", "test", "fixture", *given).stdout
    assert f"{len(tools)} tools, ≈ {found:,} tokens" in pegboard("mcp", "list", *given).stdout
    assert " tokens in each turn of a model" in pegboard("tools", "info", "fixture.add", *given).stdout


@pytest.mark.promise("MCP-3", "SEC-5")
def test_the_instructions_of_a_tested_server_are_printed_without_control_characters(pegboard: Command) -> None:
    start = shlex.join(start_of(HOSTILE_SERVER, "escapes"))
    done = pegboard("mcp", "test", "--mcp", start)
    assert "\nInstructions:\n  ␛]0;owned␇␛[2J[bold red]x[/]\\u202e␀Rule 0 of the server.\n  Rule 1 of" in done.stdout
    report = json.loads(pegboard("mcp", "test", "--mcp", start, "--json").stdout)
    assert report["instructions"].splitlines()[1] == "Rule 1 of the server."


@pytest.mark.promise("MCP-3")
def test_the_app_opens_with_a_server_of_one_run(start: str) -> None:
    with in_terminal("--mcp", f"zebra={start}", size=(120, 60)) as screen:
        screen.read_until("zebra")
        screen.type("\x11")  # ctrl+q
        assert screen.read_all() == 0, screen.output[-5_000:]


@pytest.mark.promise("MCP-3")
def test_a_given_name_that_exists_gets_a_suffix(pegboard: Command, start: str) -> None:
    done = pegboard("tools", "list", "--json", "--mcp", f"time={start}", "--mcp", start, "--mcp", start)
    packs = {tool["pack"] for tool in json.loads(done.stdout)}
    assert {"time", "time_2", "fixture", "fixture_2"} <= packs


@pytest.mark.promise("MCP-3", "SEC-4")
def test_a_given_server_never_changes_the_name_of_a_configured_one(pegboard: Command, home: Path, start: str) -> None:
    command, *args = shlex.split(start)
    (home / "config.toml").write_text(
        f"[mcp.servers.memo]\ncommand = {json.dumps(command)}\nargs = {json.dumps(args)}\n"
    )
    done = pegboard("tools", "list", "--json", "--mcp", f"memo={start}")
    assert {"memo", "memo_2"} <= {tool["pack"] for tool in json.loads(done.stdout)}
    assert "memo_3" not in done.stdout
    assert "The server memo is listed as memo_2 because another pack has its name." in done.stderr


@pytest.mark.promise("MCP-3", "MCP-6")
def test_resources_and_prompts_of_a_server_are_printed(pegboard: Command, start: str) -> None:
    done = pegboard("mcp", "resources", "--mcp", start, "--json")
    listed = json.loads(done.stdout)
    assert {one["uri"] for one in listed["resources"]} == {"memo://one", "memo://dot"}
    assert listed["templates"][0]["variables"] == ["name"]
    assert pegboard("mcp", "read", "fixture", "memo://of/Ada", "--mcp", start).stdout == "memo Ada\n"
    saved = pegboard("mcp", "read", "memo://dot", "--mcp", start).stdout.strip()
    assert Path(saved).read_bytes().startswith(b"\x89PNG")
    done = pegboard("mcp", "prompts", "--mcp", start)
    assert done.stdout.split()[:2] == ["review", "topic*"]
    done = pegboard("mcp", "prompt", "review", "--arg", "topic=tests", "--mcp", start)
    assert done.stdout == "user:\nReview tests.\n"
    done = pegboard("mcp", "prompt", "gone", "--mcp", start)
    assert (done.returncode, "no prompt gone. Known prompts: review." in done.stderr) == (2, True)
    done = pegboard("mcp", "prompt", "review", "--arg", "tpoic=tests", "--mcp", start)
    assert done.returncode == 2
    assert "The prompt requires --arg topic=VALUE." in done.stderr
    assert "no argument tpoic. Known arguments: topic." in done.stderr


FAILING = """
import logging, sys
from mcp.server import MCPServer

logging.disable()
server = MCPServer("failing")
print("starting", file=sys.stderr)

@server.resource("note://lost")
@server.prompt()
def lost() -> str:
    print("the disk is full", *range(200), sep=chr(10), file=sys.stderr)
    raise OSError

server.run()
"""


@pytest.mark.promise("CLI-1", "MCP-3")
@pytest.mark.parametrize("command", [("read", "note://lost"), ("prompt", "lost")], ids=lambda command: command[0])
def test_a_request_that_fails_shows_what_the_server_wrote_to_stderr_meanwhile(
    pegboard: Command, tmp_path: Path, command: tuple[str, str]
) -> None:
    script = tmp_path / "failing.py"
    script.write_text(FAILING)
    done = pegboard("mcp", *command, "--mcp", shlex.join([sys.executable, str(script)]))
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert "the disk is full" in lines
    assert "starting" not in lines
    assert lines[-1].startswith("error: The server failing answered with an error: ")


@pytest.mark.promise("MCP-5")
@pytest.mark.parametrize(
    ("answer", "data", "said"),
    [
        (["--elicit", '{"name": "Ada"}'], "Ada is 30", "Answered by --elicit: accept."),
        (["--elicit", "cancel"], "cancel", "Answered by --elicit: cancel."),
        ([], "decline", "Declined, because there is no terminal to ask on."),
    ],
    ids=["a form, defaults filled in", "cancelled", "no terminal"],
)
def test_questions_of_servers_are_answered_in_advance_or_declined(
    pegboard: Command, answer: list[str], data: str, said: str, start: str
) -> None:
    done = pegboard("tools", "invoke", "fixture.greet", "--data", *answer, "--mcp", start)
    assert (done.returncode, done.stdout) == (0, f"{data}\n"), done.stderr
    assert "The MCP server fixture asks during fixture.greet:\nWho are you?" in done.stderr
    assert said in done.stderr


@pytest.mark.promise("MCP-5")
def test_on_a_terminal_a_form_is_filled_in_field_by_field(start: str) -> None:
    with in_terminal("tools", "invoke", "fixture.order", "--data", "--mcp", start) as screen:
        screen.read_until("Answer? [y/N/c] ")
        assert "Who are you?" in screen.output
        screen.type("y\n")
        screen.read_until("name (Name; string; required): ")
        screen.type("Ada\n")
        screen.read_until("default 30): ")
        screen.type("old\n")
        screen.read_until("size (Size; s (Small), l (Large); required): ")
        screen.type("l\n")
        screen.read_until("Correct it? [Y/n] ")
        screen.type("\n")
        screen.until(lambda: screen.output.count("default 30): ") == 2, "the wrong field is asked again")
        screen.type("36\n")
        assert screen.read_all() == 0
    assert "Ada is 36 and orders l" in screen.output


@pytest.mark.promise("MCP-3")
def test_a_wrong_answer_in_advance_is_rejected(pegboard: Command, start: str) -> None:
    for text in ("[1]", "{"):
        done = pegboard("tools", "invoke", "fixture.greet", "--elicit", text, "--mcp", start)
        assert (done.returncode, done.stdout) == (2, "")
        assert "--elicit" in done.stderr


@pytest.mark.promise("MCP-3", "CLI-2")
def test_an_answer_in_advance_that_does_not_match_its_question_is_wrong_usage(
    pegboard: Command, tmp_path: Path, start: str
) -> None:
    done = pegboard("tools", "invoke", "fixture.greet", "--data", "--elicit", '{"name": 5}', "--mcp", start)
    assert (done.returncode, done.stdout) == (2, "cancel\n")
    assert "The answer of --elicit is invalid, so the question is cancelled: name: must be text, not 5" in done.stderr
    assert "Answered by --elicit" not in done.stderr
    for code, expected in ((0, 2), (7, 7)):
        (tmp_path / "ask.sh").write_text(f"fixture.greet; exit {code}")
        done = pegboard("script", "run", "ask.sh", "--elicit", '{"age": 3}', "--mcp", start)
        assert done.returncode == expected


def _closed_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/mcp"


BAD = {
    "a command that doesn't exist": ("no-such-program --x", 0, "was not found on the PATH"),
    "an empty value": ("", 2, "needs a command or a URL"),
    "a quote that isn't closed": ("npx 'a", 2, "Check its quotes"),
    "another scheme": ("ws://localhost/mcp", 2, "doesn't start with http:// or https://"),
    "a URL without a host": ("https:///mcp", 2, "has no host"),
    "a password in the URL": ("https://me:hunter22@localhost/mcp", 2, "use `headers` instead"),
    "a port that is closed": ("CLOSED", 1, "connection refused"),
    "a page": ("PAGE", 1, "an HTML page"),
    "a program that isn't a server": (f"{sys.executable} -c 'print(1)'", 0, "ended with exit code 0"),
}


@pytest.mark.promise("MCP-3")
@pytest.mark.parametrize(("target", "code", "message"), BAD.values(), ids=BAD)
def test_a_server_that_cannot_be_used_gets_one_message_with_the_next_step(
    pegboard: Command, page: str, target: str, code: int, message: str
) -> None:
    target = {"CLOSED": _closed_port(), "PAGE": page}.get(target, target)
    command = ["mcp", "test"] if target.startswith("http") else ["tools", "list", "fs", "--json"]
    done = pegboard(*command, "--mcp", target)
    assert (done.returncode, bool(done.stdout)) == (code, code == 0)
    assert message in done.stderr
    assert "hunter22" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.promise("MCP-3", "CLI-2")
def test_a_server_that_cannot_be_used_fails_only_calls_of_its_own_tools(pegboard: Command) -> None:
    done = pegboard("tools", "invoke", "tools.echo", "--arg", "value=1", "--data", "--mcp", "x=no-such-program")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "The MCP server x is not connected. The command 'no-such-program' was not found" in done.stderr
    done = pegboard("tools", "invoke", "x.echo", "--mcp", "x=no-such-program")
    assert (done.returncode, json.loads(done.stdout)["result"]["error"]["code"]) == (3, "tool_not_found")
    assert done.stderr.count("The MCP server x is not connected.") == 1


@pytest.mark.promise("MCP-3", "CLI-2")
def test_a_call_printed_as_a_command_line_starts_its_server_again(pegboard: Command, start: str) -> None:
    done = pegboard("tools", "invoke", "fixture.add", "--arg", "a=1", "--arg", "b=2", "--print", "cli", "--mcp", start)
    words = shlex.split(done.stdout)
    assert words[:6] == ["pegboard", "tools", "invoke", "fixture.add", "--mcp", f"fixture={start}"]
    assert json.loads(pegboard(*words[1:], "--data").stdout) == {"total": 3}


@pytest.mark.promise("MCP-3")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x"], "Add a command after `--`"),
        (["a.b", "--", "x"], "A name has letters"),
        (["git", "--", "x"], "A pack named git exists"),
        (["x", "--url", "ftp://host"], "doesn't start with http"),
        (["x", "--url", "http://host", "--", "y"], "both `command` and `url`"),
        (["x", "--url", "http://host", "--header", "NoColon"], "separated by `:`"),
        (["x", "--protocol", "1999-01-01", "--", "y"], "`protocol`: Input should be '2025-11-25'"),
        (["there", "--", "x"], "it exists"),
    ],
)
def test_a_server_that_cannot_be_added_changes_nothing(
    pegboard: Command, home: Path, arguments: list[str], message: str
) -> None:
    (home / "config.toml").write_text('[mcp.servers.there]\ncommand = "x"\n')
    before = config(home)
    done = pegboard("mcp", "add", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert config(home) == before


@pytest.mark.promise("MCP-2", "CLI-2")
def test_an_option_that_would_have_no_effect_on_the_added_server_is_refused(pegboard: Command, home: Path) -> None:
    url = ("--url", "http://127.0.0.1:1/mcp")
    for options, reason in (
        ((*url, "--env", "A=b"), "--env has no effect on a server with a URL."),
        ((*url, "--cwd", "."), "--cwd has no effect on a server with a URL."),
        ((*url, "--client-secret", "KEY"), "--client-secret needs --client-id."),
        (("--header", "A: b", "--", "python"), "--header has no effect on a server with a command."),
        (("--client-id", "one", "--", "python"), "--client-id has no effect on a server with a command."),
        (("--client-secret", "KEY", "--", "python"), "--client-secret has no effect on a server with a command."),
    ):
        done = pegboard("mcp", "add", "one", *options)
        assert (done.returncode, reason in done.stderr) == (2, True), options
    assert not (home / "config.toml").exists()


@pytest.mark.promise("MCP-3", "MCP-5")
def test_a_server_is_added_with_the_newest_protocol_version_to_use(pegboard: Command, home: Path) -> None:
    start = ["--", sys.executable, str(SDK_SERVER)]
    done = pegboard("mcp", "add", "memo", "--protocol", "2025-11-25", *start)
    assert done.returncode == 0, done.stderr
    assert tomllib.loads(config(home))["mcp"]["servers"]["memo"]["protocol"] == "2025-11-25"
    assert json.loads(pegboard("mcp", "test", "memo", "--json").stdout)["protocol"] == "2025-11-25"


def test_adding_a_file_of_the_working_directory_names_the_option_that_starts_it_anywhere(
    pegboard: Command, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "server.py").write_text("")
    done = pegboard("mcp", "add", "memo", "--", "python", "server.py")
    assert (done.returncode, "note: server.py is found only if Pegboard starts in this folder" in done.stderr) == (
        0,
        True,
    )
    done = pegboard("mcp", "add", "other", "--cwd", ".", "--", "python", "server.py")
    assert (done.returncode, "note:" in done.stderr) == (0, False)
    assert tomllib.loads(config(home))["mcp"]["servers"]["other"]["cwd"] == str(tmp_path)
    assert pegboard("mcp", "add", "third", "--cwd=~/x", "--", "python", "server.py").returncode == 0
    assert tomllib.loads(config(home))["mcp"]["servers"]["third"]["cwd"] == str(Path.home() / "x")


@pytest.mark.promise("MCP-3", "MCP-7")
def test_credentials_become_secrets_unless_the_user_keeps_them(pegboard: Command, home: Path) -> None:
    header = f"Authorization: Bearer {TOKEN}"
    done = pegboard("mcp", "add", "hub", "--url", "https://localhost/mcp", "--header", header)
    assert done.returncode == 0
    assert "stored as the secret HUB_TOKEN" in done.stderr
    assert tomllib.loads(config(home))["mcp"]["servers"]["hub"]["headers"] == {"Authorization": "Bearer ${HUB_TOKEN}"}
    assert TOKEN not in config(home) + done.stdout + done.stderr
    dotenv = home / ".env"  # this machine has no keyring
    assert dotenv.read_text() == f"HUB_TOKEN='{TOKEN}'\n"
    assert dotenv.stat().st_mode & 0o777 == 0o600
    assert pegboard("mcp", "add", "other", "--env", "NOWHERE", "--env", "HUB_TOKEN", "--", "x").returncode == 0
    assert f"its secrets stay: HUB_TOKEN ({dotenv}). Delete" in pegboard("mcp", "remove", "other").stderr
    done = pegboard("mcp", "add", "plain", "--env", f"API_KEY={TOKEN}", "--keep-literals", "--", "x")
    assert TOKEN in config(home)
    assert "plain text" in done.stderr


@pytest.mark.parametrize("line", [("mcp", "import", "claude-code"), ("adopt", "codex")])
def test_without_a_home_folder_a_message_names_what_to_set(home: Path, line: tuple[str, ...]) -> None:
    code = (
        "import os, pwd; del os.environ['HOME']; pwd.getpwuid = {}.__getitem__;"
        " from pegboard.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code, *line], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert done.stderr == "pegboard: The home folder is unknown. Set HOME to an absolute path.\n"


@pytest.mark.promise("MCP-3", "MCP-7")
def test_a_key_that_starts_like_a_path_becomes_a_secret_and_a_path_stays(pegboard: Command, home: Path) -> None:
    key, path = "/8Hd0wZrQxKq3vT1nB5yLmP7sF2gJ9cR4uA6eW0i", "/home/ada/keys/Deploy2.pem"
    done = pegboard("mcp", "add", "aws", "--env", f"SECRET_KEY={key}", "--env", f"KEY_FILE={path}", "--", "x")
    assert done.returncode == 0
    assert tomllib.loads(config(home))["mcp"]["servers"]["aws"]["env"] == {
        "SECRET_KEY": "${SECRET_KEY}",
        "KEY_FILE": path,
    }


@pytest.mark.promise("MCP-3", "MCP-7")
def test_a_credential_in_the_command_line_of_a_server_is_named(pegboard: Command) -> None:
    done = pegboard("mcp", "add", "hub", "--", "docker", "run", "-e", "API_KEY=0123456789", "image")
    assert "warning: the arguments of hub may contain a credential, which is now in plain text." in done.stderr


@pytest.mark.promise("MCP-3")
@pytest.mark.parametrize(
    "url", ["https://localhost/mcp?api_key=0123456789", "https://localhost/mcp?page=2&token=0123456789"]
)
def test_a_credential_in_a_url_and_rules_for_the_same_name_are_named(pegboard: Command, home: Path, url: str) -> None:
    (home / "approvals.toml").write_text('[[rule]]\nallow = "hub.*"\nwhere = { path = "a/**" }\n')
    done = pegboard("mcp", "add", "hub", "--url", url)
    assert done.returncode == 0
    assert "warning: the URL of hub may contain a credential, which is now in plain text." in done.stderr
    assert "warning: approvals.toml has rules that cover hub: allow hub.* where path = a/**." in done.stderr
    assert "0123456789" not in done.stdout + done.stderr
    assert "warning" not in pegboard("mcp", "add", "open", "--url", "https://localhost/mcp?page=2").stderr


@pytest.mark.promise("MCP-3")
def test_an_import_leaves_out_pegboard_itself_and_unwraps_watched_servers(
    pegboard: Command, home: Path, tmp_path: Path
) -> None:
    program = str(Path(sys.executable).with_name("pegboard"))
    servers = {
        "tools": {"command": program, "args": ["serve", "--tool-allow", "fs.*"]},
        "module": {"command": sys.executable, "args": ["-m", "pegboard", "--packs", "x", "serve"]},
        "safe": {"command": sys.executable, "args": ["-Pm", "pegboard", "serve"]},
        "files": {"command": program, "args": ["watch", "--name", "files", "--", "npx", "-y", "files", "--", "."]},
        "hub": {"command": program, "args": ["watch", "--name", "hub", "--url", "https://localhost/mcp"]},
        "other": {"command": "uvx", "args": ["pegboards", "serve"]},
    }
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    done = pegboard("mcp", "import", "servers.json")
    assert tomllib.loads(config(home))["mcp"]["servers"] == {
        "files": {"command": "npx", "args": ["-y", "files", "--", "."]},
        "other": {"command": "uvx", "args": ["pegboards", "serve"]},
    }
    assert done.stdout.count("it is Pegboard itself") == 3
    assert "skipped hub: it runs behind `pegboard watch`; `pegboard adopt FILE --undo` restores it" in done.stdout


@pytest.mark.promise("MCP-3")
def test_a_server_that_could_not_be_used_is_not_imported(pegboard: Command, home: Path, tmp_path: Path) -> None:
    servers = {
        "broken": {"url": "http://[bad/mcp"},
        "local": {"url": "localhost:8000/mcp"},
        "header": {"url": "https://example.org/mcp", "headers": {"a b": "c"}},
        "good": {"url": "https://example.org/mcp"},
    }
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    done = pegboard("mcp", "import", "servers.json")
    assert [line.partition(": ")[2] for line in done.stdout.splitlines() if line.startswith("skipped")] == [
        "its URL is invalid: Invalid IPv6 URL",
        "its URL doesn't start with http:// or https://. Write it in full, such as http://localhost:8000/mcp",
        "the header 'a b' is invalid",
    ]
    assert [*tomllib.loads(config(home))["mcp"]["servers"]] == ["good"]


@pytest.mark.promise("WAT-1")
def test_an_invalid_address_is_not_watched(pegboard: Command) -> None:
    done = pegboard("watch", "--url", "http://[bad/mcp")
    assert (done.returncode, "can't be watched because its URL is invalid" in done.stderr) == (1, True)


@pytest.mark.promise("MCP-3")
def test_servers_of_other_clients_are_imported_and_the_reasons_for_the_others_shown(
    pegboard: Command, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "servers.json").write_text("""{
      // of my editor
      "mcpServers": {
        "every thing": {"command": "npx", "args": ["-y", "everything"],
                        "env": {"KEY": "${env:MY_KEY}", "A": "${B:-c}"}},
        "git": {"type": "http", "url": "https://localhost/mcp", "disabled": true,},
        "old": {"type": "sse", "url": "https://localhost/sse"},
        "older": {"url": "https://localhost/sse"},
        "secret": {"command": "x", "args": ["${API_TOKEN}"]},
        "empty": {}
      }, /* the end */
    }""")
    dry = pegboard("mcp", "import", "servers.json", "--dry-run")
    assert not (home / "config.toml").exists()
    assert dry.stdout.startswith("would add every_thing: npx -y everything; env: KEY, A\n")
    done = pegboard("mcp", "import", "servers.json")
    assert done.returncode == 0
    assert tomllib.loads(config(home))["mcp"]["servers"] == {
        "every_thing": {"command": "npx", "args": ["-y", "everything"], "env": {"KEY": "${MY_KEY}", "A": "c"}},
        "git_2": {"url": "https://localhost/mcp", "enabled": False},
        "older": {"url": "https://localhost/sse"},
    }
    for line in (
        "  set the secret MY_KEY with `pegboard auth set MY_KEY`",
        "skipped old: it uses the old HTTP+SSE transport",
        "  its URL seems to be of the old HTTP+SSE transport, which is not supported",
        "skipped secret: its command or URL uses ${API_TOKEN}",
        "skipped empty: it has neither a command nor a URL",
    ):
        assert line in done.stdout
    again = pegboard("mcp", "import", "servers.json", "--json")
    assert [one["added"] for one in json.loads(again.stdout)] == [None] * 6


@pytest.mark.promise("MCP-3")
def test_an_import_adds_servers_that_differ_only_in_their_account(pegboard: Command, tmp_path: Path) -> None:
    def program(account: str) -> JsonObject:
        return {"command": "hub", "env": {"API_KEY": f"sk-{account}-4f9a1c7e2b8d4f9a1c7e2b8d"}}

    def page(account: str) -> JsonObject:
        return {"url": "https://localhost/mcp", "headers": {"X-User": account}}

    def added(**entries: JsonObject) -> list[str | None]:
        (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": entries}))
        done = pegboard("mcp", "import", "servers.json", "--json")
        return [one["added"] for one in json.loads(done.stdout)]

    assert added(work=program("work"), work_page=page("work")) == ["work", "work_page"]
    assert added(home=program("home"), home_page=page("home")) == ["home", "home_page"]
    assert added(office=program("work"), office_page=page("work")) == [None, None], "the same with another name"


@pytest.mark.promise("MCP-3")
def test_servers_of_codex_opencode_and_gemini_are_imported(pegboard: Command, home: Path, tmp_path: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("""\
model = "gpt"
[mcp_servers.local]
command = "npx"
args = ["local"]
cwd = "/srv"
env_vars = ["MY_KEY", { name = "FAR_KEY", source = "remote" }]
startup_timeout_sec = 20
[mcp_servers.local.env]
MODE = "fast"
[mcp_servers.hub]
url = "https://localhost/mcp"
bearer_token_env_var = "HUB_TOKEN"
http_headers = { "X-Region" = "eu" }
env_http_headers = { "X-Team" = "HUB_TEAM" }
enabled = false
""")
    done = pegboard("mcp", "import", "codex", "--keep-literals")
    assert done.returncode == 0, done.stderr
    assert "`startup_timeout_sec`: timeouts are not imported" in done.stdout
    (tmp_path / "opencode.json").write_text("""{
      "mcp": {
        "one": {"type": "local", "command": ["bun", "one"], "environment": {"KEY": "{env:ONE_KEY}"}},
        "far": {"type": "remote", "url": "https://localhost/far", "headers": {"X-A": "{env:FAR_KEY}"}, "oauth": false},
        "held": {"type": "local", "command": ["held"], "environment": {"KEY": "{file:~/key}"}},
        "servers": {"two": {"type": "local", "command": ["bun", "two"], "disabled": true}}
      }
    }""")
    done = pegboard("mcp", "import", "opencode.json")
    assert "skipped held: it uses the content of a file" in done.stdout
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(
        '{"mcp": {"allowed": ["g"]},'
        ' "mcpServers": {"g": {"httpUrl": "https://localhost/g", "headers": {"A": "$G_KEY"}}}}'
    )
    assert pegboard("mcp", "import", "gemini").returncode == 0
    assert tomllib.loads(config(home))["mcp"]["servers"] == {
        "local": {
            "command": "npx",
            "args": ["local"],
            "env": {"MY_KEY": "${MY_KEY}", "FAR_KEY": "${FAR_KEY}", "MODE": "fast"},
            "cwd": "/srv",
        },
        "hub": {
            "url": "https://localhost/mcp",
            "headers": {"X-Region": "eu", "X-Team": "${HUB_TEAM}", "Authorization": "Bearer ${HUB_TOKEN}"},
            "enabled": False,
        },
        "one": {"command": "bun", "args": ["one"], "env": {"KEY": "${ONE_KEY}"}},
        "far": {"url": "https://localhost/far", "headers": {"X-A": "${FAR_KEY}"}},
        "two": {"command": "bun", "args": ["two"], "enabled": False},
        "g": {"url": "https://localhost/g", "headers": {"A": "${G_KEY}"}},
    }


@pytest.mark.promise("MCP-3")
def test_variables_in_a_file_of_copilot_become_references(
    pegboard: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"command": "npx", "args": ["one"], "env": {"A": "$A_KEY", "B": "${B_KEY}"}, "tools": ["*"]}
    for name, folder in ((".github/mcp.json", tmp_path), ("mcp-config.json", tmp_path / "elsewhere")):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps({"mcpServers": {folder.name: {**entry, "args": [folder.name]}}}))
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path / "elsewhere"))
    done = pegboard("mcp", "import", "copilot")
    assert "tools" not in done.stdout
    assert "import it with `pegboard mcp import .github/mcp.json`" in done.stderr
    pegboard("mcp", "import", ".github/mcp.json")
    found = {name: entry["env"] for name, entry in tomllib.loads(config(home))["mcp"]["servers"].items()}
    references = {"A": "${A_KEY}", "B": "${B_KEY}"}
    (tmp_path / "some.json").write_text('{"mcpServers": {"some": {"command": "x", "tools": ["a"]}}}')
    assert "`tools`: all its tools are listed" in pegboard("mcp", "import", "some.json").stdout
    assert found == {"elsewhere": references, tmp_path.name: references}


@pytest.mark.promise("MCP-3")
def test_a_clients_file_in_the_working_directory_is_not_read_by_the_clients_name(
    pegboard: Command, home: Path, tmp_path: Path
) -> None:
    entry = '{"mcpServers": {"%s": {"command": "x"}}}'
    (home / ".claude.json").write_text(entry % "mine")
    (tmp_path / ".mcp.json").write_text(entry % "evil")
    done = pegboard("mcp", "import", "claude-code")
    assert "mine" in done.stdout
    assert "evil" not in config(home)
    assert "import it with `pegboard mcp import .mcp.json`" in done.stderr


@pytest.mark.promise("MCP-3")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"mcpServers": ', "not JSON"),
        ('{"other": {}}', "no server in `mcpServers`, `servers` or `mcp`. Expected JSON such as"),
        ('{"mcpServers": {}}', "no server in `mcpServers`, `servers` or `mcp`. Expected JSON such as"),
        (None, "doesn't exist. Pass a file, or one of claude-code"),
    ],
)
def test_a_broken_client_file_is_named_with_the_reason(
    pegboard: Command, tmp_path: Path, text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / "servers.json").write_text(text)
    done = pegboard("mcp", "import", "servers.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.promise("MCP-3")
def test_the_list_shows_each_server_with_its_state_and_no_credential(pegboard: Command, home: Path) -> None:
    (home / "config.toml").write_text(
        f"[mcp.servers.good]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(SDK_SERVER))}]\n"
        f'[mcp.servers.bad]\ncommand = "no-such-program"\nargs = ["--token", "{TOKEN}"]\n'
        '[mcp.servers.off]\ncommand = "x"\nenabled = false\n'
        '[mcp.servers.lacks]\nurl = "https://localhost/mcp"\nheaders = { Authorization = "Bearer ${NOT_SET}" }\n'
        '[mcp.servers.wrong]\ncommand = "x"\ntool = ["a"]\n'
    )
    done = pegboard("mcp", "list", "--json")
    assert done.returncode == 0
    states = {one["name"]: (one["state"], one["reason"]) for one in json.loads(done.stdout)}
    assert states["good"] == ("ready", "")
    assert states["bad"] == ("failed", "The command 'no-such-program' was not found on the PATH.")
    assert states["off"] == ("disabled", "")
    assert states["lacks"] == ("failed", "NOT_SET is not set. This machine has no keyring.")
    assert states["wrong"] == ("failed", "Unknown setting `mcp.servers.wrong.tool`.")
    assert TOKEN not in done.stdout + done.stderr
