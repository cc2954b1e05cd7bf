"""`pegboard adopt`: the files of other clients."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import commands
import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st
from watched import PLAIN_SERVER, PROGRAM, Watched, recorded

from pegboard.config.client_files import CLIENTS
from pegboard.serve import entries
from pegboard.watch.adoption import Adoption
from pegboard.watch.hooks.adoption import agents

VSCODE = """\
// My servers
{
\t"inputs": [],   /* none */
\t"servers": {
\t\t"git hub": {
\t\t\t"type": "stdio",
\t\t\t"command": "npx", // node
\t\t\t"args": [
\t\t\t\t"-y",
\t\t\t\t"server-github",
\t\t\t\t"--token=ghp_abcdefghijklmnopqrstuvwxyz0123456789",
\t\t\t],
\t\t\t"env": {"GITHUB_TOKEN": "ghp_secret", },
\t\t},
\t\t"plain": {"command": "python"},
\t\t"remote": {
\t\t\t"type": "http",
\t\t\t"url": "https://example.com/mcp",
\t\t\t"headers": {"Authorization": "Bearer tok-en-4711"}
\t\t},
\t\t"old": {"type": "sse", "url": "https://example.com/sse"},
\t},
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of VS Code, with comments."""
    path = tmp_path / "mcp.json"
    path.write_text(VSCODE)
    path.chmod(0o640)
    return path


@pytest.mark.promise("WAT-2")
def test_entries_run_behind_watch_and_everything_else_stays(file: Path, home: Path) -> None:
    done = commands.pegboard("adopt", str(file))
    assert done.returncode == 0, done.stderr
    text = file.read_text()
    assert (
        '[\n\t\t\t\t"watch",\n\t\t\t\t"--name",\n\t\t\t\t"git_hub",\n\t\t\t\t"--",\n\t\t\t\t"npx",\n\t\t\t\t"-y"'
        in text
    )
    assert f'"command": "{PROGRAM}", // node' in text
    plain = f'"plain": {{"command": "{PROGRAM}", "args": ["watch", "--name", "plain", "--", "python"]'
    assert f'{plain}, "env": {{"PEGBOARD_CONFIG": ' in text
    assert (
        '[\n\t\t\t\t"watch",\n\t\t\t\t"--name",\n\t\t\t\t"remote",\n\t\t\t\t"--url",\n\t\t\t\t"https://example.com/mcp"\n'
        in text
    )
    assert '"PEGBOARD_WATCH_HEADER_0": "Authorization: Bearer tok-en-4711"' in text
    assert text.startswith('// My servers\n{\n\t"inputs": [],   /* none */\n')
    assert '"old": {"type": "sse"' in text
    assert "Skipped old: its transport 'sse' is not streamable HTTP." in done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    backups = [*(home / "state" / "adopted").glob("*.backup")]
    assert [backup.read_text() for backup in backups] == [VSCODE]
    assert {stat.S_IMODE(one.stat().st_mode) for one in (home / "state" / "adopted").iterdir()} == {0o600}
    for secret in ("ghp_secret", "ghp_abc", "tok-en"):
        assert secret not in done.stdout + done.stderr

    again = commands.pegboard("adopt", str(file), "--json")
    reasons = {one["server"]: one["reason"] for one in json.loads(again.stdout)[0]["entries"]}
    assert reasons["plain"] == "it already runs behind `pegboard watch`"
    assert file.read_text() == text

    assert commands.pegboard("adopt", str(file), "--undo").returncode == 0
    assert file.read_text() == VSCODE


@pytest.mark.promise("WAT-2")
def test_an_address_that_may_have_the_old_transport_is_adopted_with_a_remark(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    servers = {
        "old": {"url": "https://example.com/sse"},
        "typed": {"type": "http", "url": "https://example.com/sse"},
        "new": {"url": "https://example.com/mcp"},
    }
    file.write_text(json.dumps({"mcpServers": servers}))
    done = commands.pegboard("adopt", str(file), "--dry-run")
    assert (
        "note: old: its URL seems to be of the old HTTP+SSE transport, which `pegboard watch` doesn't support.\n"
        in done.stderr
    )
    assert done.stderr.count("note:") == 1
    done = commands.pegboard("adopt", str(file), "--json")
    notes = {one["server"]: bool(one["note"]) for one in json.loads(done.stdout)[0]["entries"]}
    assert notes == {"old": True, "typed": False, "new": False}


@pytest.mark.promise("WAT-2")
def test_arguments_and_variables_that_are_null_are_added_and_restored(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "mcp.json"
    text = '{"mcpServers": {"plain": {"command": "python", "args": null, "env": null}}}'
    file.write_text(text)
    assert commands.pegboard("adopt", str(file)).returncode == 0
    entry = json.loads(file.read_text())["mcpServers"]["plain"]
    assert entry["args"] == ["watch", "--name", "plain", "--", "python"]
    assert entry["env"]["PEGBOARD_STATE_DIR"] == str(home / "state")
    assert commands.pegboard("adopt", str(file), "--undo").returncode == 0
    assert file.read_text() == text


@pytest.mark.promise("WAT-2", "WAT-4")
def test_different_servers_of_a_file_have_different_names_in_rules(tmp_path: Path) -> None:
    file = tmp_path / "claude.json"
    one, two = {"command": "one"}, {"command": "two"}
    projects = {folder: {"mcpServers": {"db": entry}} for folder, entry in (("/a", one), ("/b", two), ("/c", two))}
    servers = {"my db": one, "my.db": two, "my_db": {"url": "https://example.com/mcp"}}
    file.write_text(json.dumps({"mcpServers": servers, "projects": projects}))

    def names(text: str) -> list[str]:
        return re.findall(r'"--name", ?"([^"]*)"', text)

    assert commands.pegboard("adopt", str(file)).returncode == 0
    assert names(re.sub(r"\s+", " ", file.read_text())) == ["my_db_2", "my_db_3", "my_db", "db", "db_2", "db_2"]
    now = json.loads(file.read_text())
    now["projects"] |= {"/d": {"mcpServers": {"db": two}}, "/e": {"mcpServers": {"db": {"command": "three"}}}}
    file.write_text(json.dumps(now))
    assert commands.pegboard("adopt", str(file)).returncode == 0
    assert names(re.sub(r"\s+", " ", file.read_text()))[-2:] == ["db_2", "db_3"]


@pytest.mark.promise("WAT-2")
def test_undo_restores_unchanged_entries_and_keeps_every_other_change(tmp_path: Path) -> None:
    file = tmp_path / "claude.json"
    servers: dict[str, Any] = {name: {"command": name, "args": ["1"]} for name in ("a", "b", "c")}
    before = {"numStartups": 1, "mcpServers": servers, "projects": {"/x": {"mcpServers": {"d": {"command": "d"}}}}}
    file.write_text(json.dumps(before, indent=2))
    assert commands.pegboard("adopt", str(file)).returncode == 0
    now = json.loads(file.read_text())
    assert now["projects"]["/x"]["mcpServers"]["d"]["args"][:1] == ["watch"]
    now["numStartups"] = 2
    now["mcpServers"]["b"]["args"].append("changed")
    del now["mcpServers"]["c"]
    now["mcpServers"]["e"] = {"command": "e"}
    file.write_text(json.dumps(now))  # As a client writes it, without the line breaks.
    done = commands.pegboard("adopt", str(file), "--undo")
    assert done.returncode == 0
    after = json.loads(file.read_text())
    assert after["numStartups"] == 2
    assert after["mcpServers"]["a"] == {"command": "a", "args": ["1"]}
    assert after["mcpServers"]["b"] == now["mcpServers"]["b"]
    assert after["mcpServers"]["e"] == {"command": "e"}
    assert after["projects"] == before["projects"]
    assert "Skipped b: it was changed since." in done.stderr
    assert "Skipped c: it was removed since." in done.stderr


def test_a_dry_run_and_an_unknown_name_change_nothing(file: Path, home: Path) -> None:
    done = commands.pegboard("adopt", str(file), "--server", "plain", "--dry-run")
    assert done.returncode == 0
    assert f'"plain": {{"command": "{PROGRAM}"' in done.stdout
    assert "git_hub" not in done.stdout
    assert commands.pegboard("adopt", str(file), "--server", "nope").returncode == 2
    assert commands.pegboard("adopt", str(home / "missing.json")).returncode == 1
    assert commands.pegboard("adopt", "~no-such-user/missing.json").returncode == 1
    assert commands.pegboard("adopt", "cursor").returncode == 1
    file.write_text("{")
    assert "is not JSON" in commands.pegboard("adopt", str(file)).stderr
    assert file.read_text() == "{"
    assert not (home / "state" / "adopted").exists()


@pytest.mark.promise("WAT-2")
@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("config", '[mcp_servers.a]\ncommand = "a"\n', "it is not JSON"),
        ("config.toml", '{"mcpServers": {"a": {"command": "a"}}}', "it is not TOML"),
        pytest.param("config.toml", f"a = {'1' * 5000}\n", "it has a number with too many digits", id="digits"),
        ("config.toml", 'model = "gpt"\n', "has no server in `mcp_servers`"),
        ("gemini.json", '{"mcp": {"allowed": ["a"]}}', "has no server in `mcpServers`, `servers` or `mcp`"),
        ("config.json", '{"mcpServers": {}}', "has no server in `mcpServers`, `servers` or `mcp`"),
    ],
)
@pytest.mark.parametrize("option", [(), ("--dry-run",), ("--json",), ("--server", "a")])
def test_a_file_without_servers_in_a_known_format_fails_and_says_how_to_watch_them(
    name: str, content: str, why: str, option: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_text(content)
    done = commands.pegboard("adopt", str(file), *option)
    assert done.returncode == 1
    assert why in done.stderr
    assert "put `pegboard watch --name NAME --` before the command" in done.stderr
    assert file.read_text() == content


CODEX = """\
model = "gpt"  # mine

[mcp_servers.files]
command = "npx" # node
args = [
    "-y",
    "server-files", # all
]
# secret
[mcp_servers.files.env]
TOKEN = "ghp_secret"

[mcp_servers."my docs"]
command = "uvx"

[mcp_servers.notes]
command = "uvx"
client_secret = "by-name"
args = ["notes"]
env = { KEY = "s-4711" }
[mcp_servers.notes.tools.write]
approval_mode = "approve"

# a remote one
[mcp_servers.figma]
url = "https://example.com/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
http_headers = { "X-Region" = "us" }
[mcp_servers.figma.env_http_headers]
X-Key = "FIGMA_KEY"

[profiles.fast]
experimental_bearer_token = "sk-profile"
"""


@pytest.mark.promise("WAT-2")
def test_servers_of_codex_run_behind_watch_until_undo(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(CODEX)
    done = commands.pegboard("adopt", str(file))
    assert done.returncode == 0, done.stderr
    text = file.read_text()
    assert f'command = "{PROGRAM}" # node\nargs = [\n    "watch",\n    "--name",\n    "files",\n    "--",\n' in text
    assert '"server-files", # all\n]\n# secret\n[mcp_servers.files.env]\nTOKEN = "ghp_secret"\n' in text
    assert text.startswith('model = "gpt"  # mine\n')
    servers = tomllib.loads(text)["mcp_servers"]
    assert servers["my docs"]["args"] == ["watch", "--name", "my_docs", "--", "uvx"]
    assert servers["notes"]["args"] == ["watch", "--name", "notes", "--", "uvx", "notes"]
    assert servers["notes"]["env"] == {"KEY": "s-4711", **servers["my docs"]["env"]}
    assert servers["notes"]["env"]["PEGBOARD_CONFIG"] == str(home / "config.toml")
    assert servers["notes"]["tools"] == {"write": {"approval_mode": "approve"}}
    figma = servers["figma"]
    assert figma["args"] == ["watch", "--name", "figma", "--url", "https://example.com/mcp"]
    assert figma["env_vars"] == ["FIGMA_KEY", "FIGMA_TOKEN"]
    assert {key: value for key, value in figma["env"].items() if key.startswith("PEGBOARD_WATCH")} == {
        "PEGBOARD_WATCH_HEADER_0": "X-Region: us",
        "PEGBOARD_WATCH_FILLED_HEADER_0": "X-Key: ${FIGMA_KEY}",
        "PEGBOARD_WATCH_FILLED_HEADER_1": "Authorization: Bearer ${FIGMA_TOKEN}",
    }
    assert figma.keys() == {"command", "args", "env", "env_vars"}
    for shown in (str(home / "config.toml"), 'bearer_token_env_var = "FIGMA_TOKEN"', 'X-Key = "FIGMA_KEY"'):
        assert shown in done.stdout
    for secret in ("ghp_secret", "by-name", "s-4711", "sk-profile"):
        assert secret not in done.stdout + done.stderr

    again = commands.pegboard("adopt", str(file), "--json")
    assert {one["reason"] for one in json.loads(again.stdout)[0]["entries"]} == {
        "it already runs behind `pegboard watch`"
    }
    # As a client writes it: another layout of one entry, and one more.
    layout = file.read_text().replace('[mcp_servers."my docs"]\ncommand', "[mcp_servers.'my docs']\ncommand ")
    file.write_text(layout + '\n[mcp_servers.new]\ncommand = "new"\n')
    assert commands.pegboard("adopt", str(file), "--undo").returncode == 0
    assert file.read_text() == CODEX + '\n[mcp_servers.new]\ncommand = "new"\n'


@pytest.mark.promise("WAT-2")
@pytest.mark.parametrize("client", ["claude-code", "codex", "cursor", "gemini", "opencode", "vscode", "windsurf"])
def test_the_entry_of_a_running_pegboard_serve_is_skipped(tmp_path: Path, client: str) -> None:
    printed = commands.pegboard("serve", "--print-config", client, "--http").stdout
    file = tmp_path / ("config.toml" if client == "codex" else "opencode.json" if client == "opencode" else "mcp.json")
    file.write_text(printed)
    done = commands.pegboard("adopt", str(file))
    assert "Skipped pegboard: it is Pegboard itself, which records its calls." in done.stderr
    assert file.read_text() == printed


@pytest.mark.promise("WAT-2")
@pytest.mark.parametrize("url", ["https://example.org:8768/mcp", "http://127.0.0.1:8768/mcp"])
def test_an_address_without_the_token_or_of_another_machine_is_adopted(tmp_path: Path, url: str) -> None:
    file = tmp_path / "mcp.json"
    headers = {} if "127" in url else {"Authorization": "Bearer ${PEGBOARD_SERVE_TOKEN}"}
    file.write_text(json.dumps({"mcpServers": {"other": {"url": url, "headers": headers}}}))
    commands.pegboard("adopt", str(file))
    assert "watch" in json.loads(file.read_text())["mcpServers"]["other"]["args"]


@pytest.mark.promise("WAT-2")
def test_an_invalid_address_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"other": {"url": "http://[bad/mcp"}}}')
    done = commands.pegboard("adopt", str(file))
    assert (done.returncode, "Skipped other: its URL is invalid." in done.stderr) == (0, True)


@pytest.mark.promise("WAT-2")
def test_adoptions_at_the_same_time_are_all_made_and_undone(tmp_path: Path) -> None:
    file, names = tmp_path / "mcp.json", "abcdefghij"
    file.write_text(before := json.dumps({"mcpServers": {name: {"command": name} for name in names}}, indent=1))
    for options in ((), ("--undo",)):
        running = [
            subprocess.Popen(commands.forked("pegboard", "adopt", str(file), "--server", name, *options))
            for name in names
        ]
        assert [one.wait(60) for one in running] == [0] * len(names)
        after = json.loads(file.read_text())["mcpServers"]
        assert {name for name in names if "watch" in after[name].get("args", ())} == (set() if options else {*names})
    assert file.read_text() == before


@pytest.mark.promise("WAT-2")
def test_a_server_behind_a_socket_is_skipped_and_an_address_in_a_variable_is_adopted(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    urls = {"socket": "unix:///tmp/server.sock#/mcp", "env": "${env:URL}", "input": "HTTPS://${input:host}/mcp"}
    servers = {name: {"type": "http", "url": url} for name, url in urls.items()}
    file.write_text(json.dumps({"servers": servers}))  # VS Code
    done = commands.pegboard("adopt", str(file))
    assert "Skipped socket: its URL has the scheme unix, which `pegboard watch` doesn't support." in done.stderr
    after = json.loads(file.read_text())["servers"]
    assert {name for name in servers if after[name] != servers[name]} == {"env", "input"}


@pytest.mark.promise("WAT-2")
@pytest.mark.parametrize(
    "login",
    [
        {"auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "${env:SECRET}", "scopes": ["read"]}},  # Cursor
        {"auth": "oauth"},  # FastMCP
        {"authProviderType": "service_account_impersonation", "targetAudience": "a"},  # Gemini CLI
        {"oauth": {"clientId": "me", "callbackPort": 8080}},  # Claude Code
        {"oauth": {}},  # opencode
    ],
)
def test_a_server_at_which_its_client_logs_in_itself_is_skipped(tmp_path: Path, login: dict[str, object]) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(before := json.dumps({"mcpServers": {"other": {"url": "https://localhost/mcp", **login}}}))
    done = commands.pegboard("adopt", str(file))
    assert "Skipped other: it logs in with its client; add it with `pegboard mcp add` and log in with" in done.stderr
    assert (done.returncode, file.read_text()) == (0, before)


@pytest.mark.promise("WAT-2")
def test_pegboards_own_server_is_skipped_because_it_records_its_calls(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    servers = {
        "pegboard": {"command": PROGRAM, "args": ["--packs", "x", "serve"]},
        "module": {"command": sys.executable, "args": ["-m", "pegboard", "serve"]},
        "serve": {"command": "npx", "args": ["pegboard", "serve"]},
    }
    file.write_text(json.dumps({"mcpServers": servers}))
    done = commands.pegboard("adopt", str(file))
    for name in ("pegboard", "module"):
        assert f"Skipped {name}: it is Pegboard itself, which records its calls." in done.stderr
    after = json.loads(file.read_text())["mcpServers"]
    assert {name for name in servers if after[name] != servers[name]} == {"serve"}


@pytest.mark.promise("WAT-2")
def test_pegboard_is_recognized_with_the_suffix_of_a_windows_program(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    servers = {
        "own": {"command": "/mnt/c/bin/pegboard.exe", "args": ["serve"]},
        "watched": {"command": "pegboard.exe", "args": ["watch", "--name", "watched", "--", "npx", "server"]},
    }
    file.write_text(json.dumps({"mcpServers": servers}))
    done = commands.pegboard("adopt", str(file))
    assert "Skipped own: it is Pegboard itself, which records its calls." in done.stderr
    assert "Skipped watched: it already runs behind `pegboard watch`." in done.stderr
    assert json.loads(file.read_text())["mcpServers"] == servers


@pytest.mark.promise("WAT-2", "SEC-1")
@pytest.mark.parametrize("argument", ["serve", "watch"])
def test_a_server_whose_program_only_resembles_pegboard_is_adopted(tmp_path: Path, argument: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"other": {"command": "./pegboard.sh", "args": [argument]}}}))
    commands.pegboard("adopt", str(file))
    assert "./pegboard.sh" in json.loads(file.read_text())["mcpServers"]["other"]["args"]


@pytest.mark.promise("WAT-2")
@pytest.mark.parametrize(
    "header",
    [
        '[projects."/home/ann/my project"]',
        "[projects.'C:\\Users\\ann']",
        '[ plugins . "git\\"hub@openai]" ] # with any character',
        '[[hooks."#/x".items]]',
    ],
)
def test_a_server_of_codex_before_a_table_whose_name_is_quoted_is_adopted(tmp_path: Path, header: str) -> None:
    file = tmp_path / "config.toml"
    content = f'[mcp_servers.files]\ncommand = "uvx"\n{header}\ntrust_level = "trusted"\n'
    file.write_text(content)
    done = commands.pegboard("adopt", str(file))
    assert "Skipped" not in done.stderr
    text = file.read_text()
    assert text.endswith(f'\n{header}\ntrust_level = "trusted"\n')
    assert tomllib.loads(text)["mcp_servers"]["files"]["args"] == ["watch", "--name", "files", "--", "uvx"]
    assert commands.pegboard("adopt", str(file), "--undo").returncode == 0
    assert file.read_text() == content


@pytest.mark.promise("WAT-2")
def test_a_server_of_codex_without_a_table_of_its_own_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    content = """\
text = '''
[mcp_servers.quoted]
command = "q"
'''
[mcp_servers]
inline = { command = "a" }
[mcp_servers.split]
command = "b"
[other]
x = 1
[mcp_servers.split.env]
A = "1"
[mcp_servers.good]
command = "c"
[mcp_servers.quoted]
command = "q"
[mcp_servers.odd]
command = "d"
args = ['''
[mcp_servers.fake]
''']
"""
    file.write_text(content)
    done = commands.pegboard("adopt", str(file))
    for name in ("inline", "split", "quoted", "odd"):
        assert f"Skipped {name}: it has no table [mcp_servers.{name}] of its own in one piece." in done.stderr
    servers = tomllib.loads(file.read_text())["mcp_servers"]
    assert servers["good"]["args"] == ["watch", "--name", "good", "--", "c"]
    assert servers["odd"]["args"] == ["[mcp_servers.fake]\n"]
    assert commands.pegboard("adopt", str(file), "--undo").returncode == 0
    assert file.read_text() == content


OPENCODE = """\
{
  "mcp": { // servers
    "files": {"type": "local", "command": ["npx", "files"], "environment": {"TOKEN": "{env:TOKEN}"}},
    "bare": {"type": "local", "command": ["bare"]},
    "far": {
      "type": "remote",
      "url": "https://example.com/mcp",
      "oauth": false,
      "headers": {"Authorization": "Bearer {env:FAR}"}
    },
    "default": {"enabled": false},
    "servers": {"new": {"type": "local", "command": ["bun", "new"]}},
  }
}
"""


@pytest.mark.promise("WAT-2")
def test_servers_of_opencode_run_behind_watch_until_undo(tmp_path: Path) -> None:
    file = tmp_path / "opencode.jsonc"
    file.write_text(OPENCODE)
    done = commands.pegboard("adopt", str(file), "--json")
    assert {one["server"]: one["action"] for one in json.loads(done.stdout)[0]["entries"]} == dict.fromkeys(
        ("files", "bare", "far", "new"), "adopted"
    )
    text = file.read_text()
    assert '"mcp": { // servers' in text
    servers = json.loads(text.replace(" // servers", "").replace("},\n  }", "}\n  }"))["mcp"]
    assert servers["files"]["command"] == [PROGRAM, "watch", "--name", "files", "--", "npx", "files"]
    variables = servers["bare"]["environment"]
    assert servers["files"]["environment"] == {**variables, "TOKEN": "{env:TOKEN}"}
    assert servers["far"] == {
        "type": "local",
        "command": [PROGRAM, "watch", "--name", "far", "--url", "https://example.com/mcp"],
        "environment": {**variables, "PEGBOARD_WATCH_HEADER_0": "Authorization: Bearer {env:FAR}"},
    }
    assert servers["servers"]["new"]["command"][1:] == ["watch", "--name", "new", "--", "bun", "new"]
    assert commands.pegboard("adopt", str(file), "--undo").returncode == 0
    assert file.read_text() == OPENCODE


@pytest.mark.promise("WAT-2")
def test_the_difference_masks_secrets_outside_of_entries(tmp_path: Path) -> None:
    file = tmp_path / "claude.json"
    servers = {"auth": {"command": "python", "oauth": {"clientSecret": "in-entry"}}}
    file.write_text(json.dumps({"primaryApiKey": "by-name", "log": ["Bearer by-content"], "mcpServers": servers}))
    shown = commands.pegboard("adopt", str(file), "--dry-run").stdout
    assert '"--name", "auth", "--", "python"' in shown
    for secret in ("by-name", "by-content", "in-entry"):
        assert secret not in shown


@pytest.mark.promise("WAT-2")
@pytest.mark.parametrize(
    ("client", "place", "content", "after"),
    [
        ("cursor", ".cursor/mcp.json", '{"mcpServers":{"x":{"command":"y"}}}', '"watch", "--name", "x", "--", "y"]'),
        ("gemini", ".gemini/settings.json", '{"mcpServers":{"x":{"command":"y"}}}', '"--name", "x", "--", "y"]'),
        ("codex", ".codex/config.toml", '[mcp_servers.x]\ncommand="y"\n', '"watch", "--name", "x", "--", "y"]'),
        (
            "opencode",
            ".config/opencode/opencode.json",
            '{"mcp":{"x":{"type":"local","command":["y"]}}}',
            '"watch", "--name", "x", "--", "y"]',
        ),
        ("copilot", ".copilot/mcp-config.json", '{"mcpServers":{"x":{"command":"y"}}}', '"--name", "x", "--", "y"]'),
        ("windsurf", ".codeium/windsurf/mcp_config.json", '{"mcpServers":{"x":{"command":"y"}}}', '"--", "y"]'),
    ],
)
def test_the_files_of_clients_are_found(
    client: str, place: str, content: str, after: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    file = home / place
    file.parent.mkdir(parents=True)
    file.write_text(content)
    assert commands.pegboard("adopt", client, env=dict(os.environ)).returncode == 0
    assert after in file.read_text()


@pytest.mark.promise("WAT-2")
@pytest.mark.parametrize(
    ("variable", "client", "place"),
    [
        ("CLAUDE_CONFIG_DIR", "claude-code", ".claude.json"),
        ("CODEX_HOME", "codex", "config.toml"),
        ("COPILOT_HOME", "copilot", "mcp-config.json"),
        ("GEMINI_CLI_HOME", "gemini", ".gemini/settings.json"),
    ],
)
def test_the_files_of_a_client_that_keeps_them_elsewhere_are_found(
    variable: str, client: str, place: str, tmp_path: Path
) -> None:
    file = tmp_path / "elsewhere" / place
    file.parent.mkdir(parents=True)
    codex = '[mcp_servers.x]\ncommand="y"\n'
    file.write_text(codex if client == "codex" else '{"mcpServers":{"x":{"command":"y"}}}')
    elsewhere = dict(os.environ) | {variable: str(tmp_path / "elsewhere")}
    assert commands.pegboard("adopt", client, env=elsewhere).returncode == 0
    assert '"watch", "--name", "x"' in file.read_text()


@pytest.mark.promise("WAT-2", "MCP-3")
def test_the_help_names_every_client_whose_files_are_found() -> None:
    for command in (["adopt"], ["mcp", "import"]):
        shown = " ".join(commands.pegboard(*command, "--help").stdout.replace("│", " ").split())
        assert [name for name in CLIENTS if name not in shown] == []


@pytest.mark.promise("WAT-2")
def test_a_file_that_its_client_writes_meanwhile_keeps_that_change(
    file: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adoption = Adoption(home / "state")
    plan = adoption.plan
    planned: list[Any] = []

    def plan_and_change(*args: Any, **options: Any) -> Any:
        found = plan(*args, **options)
        if not planned:
            planned.append(found)
            file.write_text(file.read_text().replace('"inputs": []', '"inputs": [1]'))
        return found

    monkeypatch.setattr(adoption, "plan", plan_and_change)
    adoption.apply(file)
    assert '"inputs": [1]' in file.read_text()
    assert '"watch"' in file.read_text()
    assert [one.name for one in file.parent.iterdir() if one.name.startswith(".mcp")] == []


@pytest.mark.promise("WAT-2", "WAT-1")
def test_an_adopted_entry_works(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"plain": {"command": sys.executable, "args": ["-S", PLAIN_SERVER]}}}))
    assert commands.pegboard("adopt", str(file)).returncode == 0
    entry = json.loads(file.read_text())["mcpServers"]["plain"]
    with Watched(entry["command"], *entry["args"], direct=True) as started:
        started.call(1, "say")
        assert started.receive()["id"] == 1


@pytest.mark.promise("WAT-2", "WAT-4")
@pytest.mark.parametrize("env", [None, {}, {"TOKEN": "t", "PEGBOARD_CACHE_DIR": "/own"}])
def test_an_adopted_entry_uses_the_users_rules_and_record_if_its_client_clears_the_environment(
    env: dict[str, str] | None, tmp_path: Path, home: Path
) -> None:
    (home / "approvals.toml").write_text('[[rule]]\ndeny = "plain.say"\n')
    file = tmp_path / "mcp.json"
    original = {"command": sys.executable, "args": ["-S", PLAIN_SERVER], **({} if env is None else {"env": env})}
    file.write_text(json.dumps({"mcpServers": {"plain": original}}, indent=2))
    assert commands.pegboard("adopt", str(file)).returncode == 0
    entry = json.loads(file.read_text())["mcpServers"]["plain"]
    assert {**entry["env"], **(env or {})} == entry["env"]
    cleared = {key: os.environ[key] for key in ("PATH", "HOME")} | entry["env"]
    with Watched(entry["command"], *entry["args"], direct=True, env=cleared) as started:
        started.call(1, "say")
        assert started.receive()["result"]["isError"] is True
    assert [one.tool for one in recorded(1)] == ["plain.say"]
    imported = commands.pegboard("mcp", "import", str(file))
    assert imported.returncode == 0, imported.stderr
    assert "PEGBOARD_CONFIG" not in (home / "config.toml").read_text()
    assert commands.pegboard("adopt", str(file), "--undo").returncode == 0
    assert json.loads(file.read_text())["mcpServers"]["plain"] == original


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
entry = st.fixed_dictionaries(
    {"command": words.filter(bool)},
    optional={"args": st.lists(words, max_size=3), "env": st.dictionaries(words, words)},
)


@pytest.mark.promise("WAT-2")
@given(
    servers=st.dictionaries(words, st.one_of(entry, st.integers(), st.just({"url": "https://a.example/x?key=1"}))),
    indent=st.sampled_from([None, 0, 2, "\t"]),
    bom=st.booleans(),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_any_file_is_the_same_after_undo(
    servers: dict[str, Any], indent: Any, bom: bool, end: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("client")
    file = folder / "x.json"
    text = json.dumps({"mcpServers": servers}, indent=indent, ensure_ascii=False).replace("\n", end)
    content = (b"\xef\xbb\xbf" if bom else b"") + text.encode()
    file.write_bytes(content)
    added = {"PEGBOARD_CONFIG": "/a/ü.toml"}
    adoption = Adoption(folder / "state", added)
    adoption.apply(file)
    after = json.loads(file.read_bytes().decode("utf-8-sig"))["mcpServers"]
    for name, one in servers.items():
        if isinstance(one, dict) and "command" in one:
            args = after[name]["args"]
            assert args[args.index("--") + 1 :] == [one["command"], *one.get("args", [])]
            assert after[name]["env"] == {**added, **one.get("env", {})}
    adoption.apply(file, undo=True)
    assert file.read_bytes() == content


@pytest.mark.promise("WAT-2")
@given(
    servers=st.dictionaries(words, st.one_of(entry, st.just({"url": "https://a.example/x?key=1"}))), end=st.booleans()
)
def test_any_toml_file_is_the_same_after_undo(
    servers: dict[str, Any], end: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("client")
    file = folder / "config.toml"
    content = tomlkit.dumps({"model": "gpt", "mcp_servers": servers, **({"profiles": {"a": {"b": 1}}} if end else {})})
    file.write_bytes(content.encode())
    adoption = Adoption(folder / "state", {"PEGBOARD_CONFIG": "/a/ü.toml"})
    change = adoption.apply(file)
    after = tomllib.loads(file.read_text("utf-8"))["mcp_servers"]
    adopted = {one.server for one in change.entries if one.action == "adopted"}
    for name, one in servers.items():
        if name in adopted and "command" in one:
            args = after[name]["args"]
            assert args[args.index("--") + 1 :] == [one["command"], *one.get("args", [])]
            assert after[name]["env"] == {"PEGBOARD_CONFIG": "/a/ü.toml", **one.get("env", {})}
        elif name not in adopted:
            assert after[name] == one
    adoption.apply(file, undo=True)
    assert file.read_bytes() == content.encode()


@pytest.mark.parametrize(
    ("command", "page", "before", "names"),
    [
        ("adopt", "watch", "A file, or", CLIENTS),
        ("mcp import", "mcp", "A file, or", CLIENTS),
        ("adopt", "watch", "such as its shell:", agents()),
        ("serve", "serve", "Print the entry for a client and exit:", entries.CLIENTS),
    ],
)
def test_help_and_guide_name_every_client(command: str, page: str, before: str, names: Collection[str]) -> None:
    words = " ".join(commands.pegboard(*command.split(), "--help").stdout.split())
    listed = re.split(r", | or | and ", re.split(r"[.:] | run ", words.partition(before)[2].strip())[0].rstrip("."))
    assert sorted(listed) == sorted(names)
    guide = commands.pegboard("guide", page).stdout
    assert [name for name in names if not re.search(rf"(?<![\w-]){name}(?![\w-])", guide)] == []
