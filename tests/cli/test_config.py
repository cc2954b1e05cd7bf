"""`pegboard config show`: every value, its origin, and no secret."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands
import pytest

from pegboard.config import Redactor, Settings, shown_settings

Command = Callable[..., commands.Done]

MASK = "••••••••"


@pytest.fixture
def pegboard(home: Path, tmp_path: Path) -> Command:
    """Return a function that runs `pegboard` in `tmp_path` and returns the finished process."""

    def run(*arguments: str, **env: str) -> commands.Done:
        return commands.pegboard(*arguments, cwd=tmp_path, env={**os.environ, **env})

    return run


def rows(done: commands.Done) -> dict[str, dict[str, Any]]:
    """Return the rows of `--json` by key."""
    assert done.returncode == 0, done.stderr
    listed: list[dict[str, Any]] = json.loads(done.stdout)
    assert all(set(row) == {"key", "value", "origin", "masked", "status"} for row in listed)
    found = {row["key"]: row for row in listed}
    assert len(found) == len(listed)
    return found


def shown(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the printed values of settings written in TOML."""
    return {row.key: row.value for row in shown_settings(Settings.model_validate(settings), Redactor({}))}


@pytest.mark.promise("CFG-3", "CLI-4")
def test_each_value_is_shown_with_its_origin(
    pegboard: Command, home: Path, tmp_path: Path, trust: Callable[[Path], None]
) -> None:
    (home / "config.toml").write_text('[tools]\ntimeout = 20\n\n[packs.web]\nurl = "https://x"\ndepth.most = 3\n')
    (tmp_path / "pegboard.toml").write_text('[ui]\nvim_keys = true\n[keys]\ntools.run = "ctrl+x"\n')
    trust(tmp_path)
    done = pegboard("config", "show", "--json", PEGBOARD_UI__THEME="pegboard-light")
    assert done.stderr == ""
    found = {key: (row["value"], row["origin"]) for key, row in rows(done).items()}
    user, overlay = home / "config.toml", tmp_path / "pegboard.toml"
    assert {key: item for key, item in found.items() if item[1] != "default"} == {
        "tools.timeout": (20, f"{user}:2"),
        "packs.web.url": ("https://x", f"{user}:5"),
        "packs.web.depth.most": (3, f"{user}:6"),
        "ui.vim_keys": (True, f"{overlay}:2"),
        "keys.tools.run": ("ctrl+x", f"{overlay}:4"),
        "ui.theme": ("pegboard-light", "PEGBOARD_UI__THEME"),
    }
    assert found["tools.allow"] == (None, "default")
    assert found["tools.timeouts"] == ({}, "default")
    assert found["packs.folders"] == ([], "default")
    lines = pegboard("config", "show", PEGBOARD_UI__THEME="pegboard-light").stdout.splitlines()
    assert len(lines) == len(found)
    assert f'keys.tools.run = "ctrl+x"  # {overlay}:4 (trusted folder)' in lines
    assert f"tools.timeout = 20.0  # {user}:2" in lines
    assert 'ui.theme = "pegboard-light"  # PEGBOARD_UI__THEME' in lines
    assert "tools.allow = null  # default" in lines


@pytest.mark.promise("CFG-3", "CFG-1")
def test_problems_of_the_configuration_are_printed_on_stderr(pegboard: Command, home: Path) -> None:
    (home / "config.toml").write_text('[ui]\nthemes = "x"\n')
    done = pegboard("config", "show", "--json")
    assert (done.returncode, done.stderr) == (
        0,
        f"error: {home / 'config.toml'}:2: Unknown setting `ui.themes`. Did you mean `ui.theme`?\n",
    )
    assert rows(done)["ui.theme"]["origin"] == "default"
    assert (rows(done)["ui.themes"]["status"], rows(done)["ui.themes"]["value"]) == ("unknown", MASK)


@pytest.mark.promise("CFG-3", "STO-2")
def test_no_secret_of_any_source_is_shown(
    pegboard: Command, home: Path, tmp_path: Path, trust: Callable[[Path], None]
) -> None:
    (home / "config.toml").write_text(
        """
        [packs.web]
        api_key = "hunter2-a"
        login = { user = "me", password = "hunter2-b" }
        keys = ["hunter2-c", { pin = "hunter2-d" }]
        accounts = [{ name = "me", token = "hunter2-e" }]
        pin-token = 123456789
        proxy = "https://me:hunter2-f@host/?q=1&api_key=hunter2-g"
        header = "Bearer hunter2-hhhh"
        note = "it is hunter2-known, and hunter2-dotenv"
        url = "${URL}"
        secret = "${SECRET}"
        secrets = ["SEARCH_KEY"]
        [model]
        base_url = "http://me:hunter2-i@localhost/v1"
        [mcp.servers.s]
        command = "server"
        args = ["--token", "hunter2-j", "--api-key=hunter2-k", "--root", "."]
        env = { LEVEL = "hunter2-l", KEY = "${KEY}" }
        headers = { X-Own = "hunter2-m", Authorization = "Bearer ${TOKEN}" }
        """
    )
    (tmp_path / ".env").write_text("DOT_TOKEN=hunter2-dotenv\n")
    trust(tmp_path)
    env = {"SHELL_TOKEN": "hunter2-known", "PEGBOARD_PACKS__WEB__OTHER_KEY": "hunter2-n"}
    plain, as_json = pegboard("config", "show", **env), pegboard("config", "show", "--json", **env)
    for done in (plain, as_json):
        assert done.returncode == 0
        assert "hunter2" not in done.stdout + done.stderr
    found = rows(as_json)
    values = {key: row["value"] for key, row in found.items() if row["origin"] != "default"}
    assert values == {
        "packs.web.api_key": MASK,
        "packs.web.login.user": "me",
        "packs.web.login.password": MASK,
        "packs.web.keys": [MASK, {"pin": MASK}],
        "packs.web.accounts": [{"name": "me", "token": MASK}],
        "packs.web.pin-token": MASK,
        "packs.web.proxy": f"https://me:{MASK}@host/?q=1&api_key={MASK}",
        "packs.web.header": f"Bearer {MASK}",
        "packs.web.note": "it is «secret SHELL_TOKEN», and «secret DOT_TOKEN»",
        "packs.web.url": "${URL}",
        "packs.web.secret": "${SECRET}",
        "packs.web.secrets": ["SEARCH_KEY"],
        "packs.web.other_key": MASK,
        "model.base_url": f"http://me:{MASK}@localhost/v1",
        "mcp.servers.s.command": "server",
        "mcp.servers.s.args": ["--token", MASK, f"--api-key={MASK}", "--root", "."],
        "mcp.servers.s.env.LEVEL": MASK,
        "mcp.servers.s.env.KEY": "${KEY}",
        "mcp.servers.s.headers.X-Own": MASK,
        "mcp.servers.s.headers.Authorization": "Bearer ${TOKEN}",
    }
    unmasked = {key for key in values if not found[key]["masked"]}
    assert unmasked == {key for key, value in values.items() if MASK not in str(value) and "«" not in str(value)}


@pytest.mark.promise("CFG-3")
@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop",
        "ghp_abcdefghijklmnopqrst",
        "github_pat_11ABCDEFG0abcdef",
        "glpat-abcdefghijklmnop",
        "xoxb-1234567890-abcdef",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA-abcdefghijklmnop",
        "hf_abcdefghijklmnopqrs",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def_ghi",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_a_value_that_looks_like_a_secret_is_masked_everywhere(secret: str) -> None:
    found = shown({"packs": {"web": {"note": f"so: {secret}"}}, "model": {"name": secret}, "ui": {"theme": secret}})
    assert found["packs.web.note"] == f"so: {MASK}"
    assert (found["model.name"], found["ui.theme"]) == (MASK, MASK)


@pytest.mark.promise("CFG-3")
@pytest.mark.parametrize(
    ("argument", "masked"),
    [
        ("API_KEY=plain-value", f"API_KEY={MASK}"),
        ("--env=API_KEY=plain-value", f"--env=API_KEY={MASK}"),
        ("X-Api-Key: plain-value", f"X-Api-Key: {MASK}"),
        ("--header=X-Api-Key:plain-value", f"--header=X-Api-Key:{MASK}"),
        ("Authorization: Bearer plain-value", f"Authorization: Bearer {MASK}"),
        ("API_KEY=${API_KEY}", "API_KEY=${API_KEY}"),
        ("LEVEL=info", "LEVEL=info"),
        ("Accept: text/html", "Accept: text/html"),
    ],
)
def test_the_value_of_a_variable_or_header_in_a_command_line_is_masked(argument: str, masked: str) -> None:
    found = shown({"mcp": {"servers": {"s": {"command": "docker", "args": ["run", "-e", argument, "image"]}}}})
    assert found["mcp.servers.s.args"] == ["run", "-e", masked, "image"]


@pytest.mark.promise("CFG-3")
def test_a_long_text_of_words_for_secrets_is_shown() -> None:
    text = f"?{'key' * 300_000}"
    assert shown({"packs": {"web": {"note": text}}})["packs.web.note"] == text


@pytest.mark.promise("CFG-3")
@pytest.mark.parametrize(
    "value",
    [
        "https://example.org/a?page=2&sort=name",
        "ssh://git@example.org/x",
        "http://localhost:8000/v1",
        "openai:gpt-5",
        "desk-lamp-and-a-long-name",
        "a token of thanks",
        "2020-01-01",
        True,
        7,
        1.5,
    ],
)
def test_other_values_are_shown(value: object) -> None:
    assert shown({"packs": {"token": {"note": value}}})["packs.token.note"] == value


@pytest.mark.promise("CFG-3")
def test_tools_and_keys_may_be_called_like_secrets() -> None:
    found = shown({"tools": {"timeouts": {"auth.token": 20.0}}, "keys": {"field.secret": "ctrl+x"}})
    assert found["tools.timeouts.auth.token"] == 20
    assert found["keys.field.secret"] == "ctrl+x"


@pytest.mark.promise("CFG-3")
def test_values_that_json_lacks_and_deep_tables_are_shown(pegboard: Command, home: Path) -> None:
    # from Python 3.14 on, a key has at most 1,000 parts
    deep = ".".join(["a"] * (3000 if sys.version_info < (3, 14) else 900))
    (home / "config.toml").write_text(
        f"[packs.x]\nwhen = 2020-01-02T03:04:05Z\nday = 2020-01-02\nhour = 03:04:05\nmost = inf\n{deep} = 1\n"
    )
    values = {key: row["value"] for key, row in rows(pegboard("config", "show", "--json")).items()}
    assert values["packs.x.when"] == "2020-01-02T03:04:05+00:00"
    assert (values["packs.x.day"], values["packs.x.hour"]) == ("2020-01-02", "03:04:05")
    assert values["packs.x.most"] == "inf"
    assert values[f"packs.x.{deep}"] == 1


@pytest.mark.promise("TUI-4")
def test_no_escape_sequence_of_the_configuration_reaches_the_terminal(pegboard: Command, home: Path) -> None:
    (home / "config.toml").write_text('[packs.x]\n"a\\u001b[31m" = "b\\u001b[31m"\n')
    assert "\x1b" not in pegboard("config", "show").stdout


@pytest.mark.promise("CLI-4", "CFG-1")
def test_a_value_is_set_and_removed_in_the_configuration_file_which_keeps_its_comments(
    pegboard: Command, home: Path
) -> None:
    file = home / "config.toml"
    file.write_text("# mine\n[tools]\ntimeout = 8.0  # seconds\n")
    for key, value in (
        ("tools.timeout", "30"),
        ("model.name", "openai:7"),
        ("packs.folders", '["~/a"]'),
        ("tools.timeouts.fs.*", "3"),
    ):
        done = pegboard("config", "set", key, value)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert file.read_text().startswith("# mine\n[tools]\ntimeout = 30  # seconds\n")
    shown = rows(pegboard("config", "show", "--json"))
    assert (shown["tools.timeout"]["value"], shown["model.name"]["value"]) == (30.0, "openai:7")
    assert shown["tools.timeouts.fs.*"]["value"] == 3.0
    pegboard("config", "set", 'tools.timeouts."fs.*"', "4")
    assert rows(pegboard("config", "show", "--json"))["tools.timeouts.fs.*"]["value"] == 4.0
    assert pegboard("config", "unset", 'tools.timeouts."fs.*"').returncode == 0
    assert "tools.timeouts.fs.*" not in rows(pegboard("config", "show", "--json"))
    assert pegboard("config", "unset", "model.name").returncode == 0
    assert rows(pegboard("config", "show", "--json"))["model.name"]["origin"] == "default"
    again = pegboard("config", "unset", "model.name")
    assert (again.returncode, "doesn't set 'model.name'" in again.stderr) == (2, True)


@pytest.mark.promise("CLI-2", "CFG-1")
@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("tools.timeout", "soon", "`tools.timeout` should be a number, but is text."),
        ("modle.name", "x", "Unknown setting `modle`. Did you mean `model`?"),
        ("tools", "3", "`tools` should be a table, but is a number."),
    ],
)
def test_a_value_that_is_invalid_is_not_written(
    pegboard: Command, home: Path, key: str, value: str, message: str
) -> None:
    done = pegboard("config", "set", key, value)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"The configuration was not changed: {message}\n"
    assert not (home / "config.toml").exists()


@pytest.mark.promise("CLI-4", "CFG-1")
def test_null_is_not_written_and_the_message_names_the_command_that_removes_a_value(
    pegboard: Command, home: Path
) -> None:
    (home / "config.toml").write_text("[tools]\ntimeout = 20\n")
    for key in ("tools.timeout", "tools.workers"):
        done = pegboard("config", "set", key, "null")
        assert (done.returncode, done.stdout) == (2, "")
        assert "run `pegboard config unset`" in done.stderr
    done = pegboard("config", "set", "packs.web", '{"a": [null]}')
    assert (done.returncode, "TOML has no null." in done.stderr) == (2, True)
    assert (home / "config.toml").read_text() == "[tools]\ntimeout = 20\n"


@pytest.mark.promise("CLI-4", "CFG-1")
def test_a_note_says_what_overrides_a_value_that_was_set(pegboard: Command) -> None:
    done = pegboard("config", "set", "model.name", "openai:a", PEGBOARD_MODEL__NAME="openai:b")
    assert (done.returncode, done.stderr) == (0, "note: PEGBOARD_MODEL__NAME overrides it.\n")


@pytest.mark.promise("CLI-4", "CFG-1")
@pytest.mark.parametrize(
    "key", ["model.nmae", "tools.timeout", "other", "other.a", "mcp.servers.b", "keys", "ui.theme"]
)
def test_everything_in_the_file_can_be_removed_whether_it_is_used_or_not(
    pegboard: Command, home: Path, key: str
) -> None:
    lines = {
        "model.nmae": 'model.nmae = "x"',
        "tools.timeout": 'tools.timeout = "abc"',
        "other.a": "other.a = 1",
        "mcp.servers.b": 'mcp.servers.b = {command = "x", args = ["-y"]}',
        "keys": 'keys = {"tools.run" = "f5"}',
        "ui.theme": 'ui.theme = "pegboard-light"',
    }
    (home / "config.toml").write_text("# mine\n" + "".join(f"{line}\n" for line in lines.values()))
    done = pegboard("config", "unset", key, PEGBOARD_UI__THEME="pegboard-dark")
    note = "note: PEGBOARD_UI__THEME still sets it.\n" if key == "ui.theme" else ""
    assert (done.returncode, done.stdout, done.stderr) == (0, "", note)
    kept = (home / "config.toml").read_text()
    assert kept.startswith("# mine\n")
    assert [name for name, line in lines.items() if line not in kept] == ["other.a" if key == "other" else key]


@pytest.mark.promise("SEC-4")
def test_a_value_of_a_file_that_is_not_toml_is_not_removed_and_the_message_says_why(
    pegboard: Command, home: Path
) -> None:
    (home / "config.toml").write_text("[model\n")
    done = pegboard("config", "unset", "model.name")
    assert (done.returncode, "The configuration was not changed: " in done.stderr) == (1, True)
    (home / "config.toml").write_text(f"[model]\nname = {'1' * 5000}\n")
    done = pegboard("config", "unset", "model.name")
    assert (done.returncode, "The configuration was not changed: " in done.stderr) == (1, True)


@pytest.mark.promise("CLI-4", "CFG-1")
def test_a_number_is_text_where_text_is_expected(pegboard: Command, home: Path) -> None:
    for key, value in (("mcp.servers.a.command", "x"), ("mcp.servers.a.env.PORT", "8080"), ("keys.tools.run", "5")):
        done = pegboard("config", "set", key, value)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = (home / "config.toml").read_text()
    assert ('PORT = "8080"' in text, '"tools.run" = "5"' in text) == (True, True)


@pytest.mark.promise("STO-2")
def test_a_credential_of_a_server_in_plain_text_is_a_warning(pegboard: Command, home: Path) -> None:
    pegboard("config", "set", "mcp.servers.a.command", "x")
    done = pegboard("config", "set", "mcp.servers.a.env.API_TOKEN", "hunter2-hunter2")
    assert (done.returncode, done.stdout) == (0, "")
    assert f"{home / 'config.toml'} now contains the variable API_TOKEN in plain text." in done.stderr
    assert "`pegboard auth set API_TOKEN`, and write ${API_TOKEN} in its place." in done.stderr
    assert "hunter2" not in done.stderr
    assert pegboard("config", "set", "mcp.servers.a.env.API_TOKEN", "${API_TOKEN}").stderr == ""


@pytest.mark.promise("CFG-1", "TUI-6")
def test_a_theme_whose_file_is_invalid_is_not_called_unknown(pegboard: Command, home: Path) -> None:
    (home / "data" / "themes").mkdir(parents=True)
    (home / "data" / "themes" / "mine.toml").write_text('name = "mine"\n')
    done = pegboard("config", "set", "ui.theme", "mine")
    assert "The theme mine.toml can't be used: `primary`: Field required." in done.stderr
    assert "Unknown theme" not in done.stderr


@pytest.mark.promise("CFG-1", "TUI-6")
@pytest.mark.parametrize(
    ("key", "value", "warning"),
    [
        ("ui.theme", "pegboard-lihgt", "Unknown theme `pegboard-lihgt`. Did you mean `pegboard-light`?"),
        ("keys.tools.runn", "f5", "Unknown command `tools.runn` in [keys]. Did you mean `tools.run`?"),
        ("keys.tools.run", "esc", "No key is named `esc`; `tools.run` in [keys] needs one. Did you mean `escape`?"),
        ("keys.tools.run", "f1", "[keys] assigns `f1` to both `app.help` and `tools.run`."),
    ],
)
def test_a_theme_or_key_that_cannot_be_used_is_a_warning_when_it_is_set(
    pegboard: Command, home: Path, key: str, value: str, warning: str
) -> None:
    done = pegboard("config", "set", key, value)
    assert (done.returncode, done.stdout) == (0, "")
    assert f"{home / 'config.toml'}:2: {warning}" in done.stderr.replace("\n", " ")
    assert f'"{value}"' in (home / "config.toml").read_text()


def test_a_key_that_is_set_is_not_warned_about_because_of_other_keys(pegboard: Command, home: Path) -> None:
    (home / "config.toml").write_text('[keys]\n"tools.nothing" = "f5"\n')
    assert pegboard("config", "set", "keys.tools.run", "ctrl+y").stderr == ""


@pytest.mark.promise("CFG-1")
def test_a_negative_number_is_a_value_and_not_an_option(pegboard: Command, home: Path) -> None:
    assert pegboard("config", "set", "packs.shelf.offset", "-1.5").returncode == 0
    assert "offset = -1.5" in (home / "config.toml").read_text(encoding="utf-8")
    rejected = pegboard("config", "set", "tools.timeout", "-5")
    assert (rejected.returncode, "`tools.timeout` should be greater than 0." in rejected.stderr) == (2, True)
    unknown = pegboard("config", "set", "tools.timeout", "5", "--nope")
    assert (unknown.returncode, "--nope" in unknown.stderr) == (2, True)
