"""`pegboard ask` with unusable models and failing providers: exit code 4, and the provider's own message."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import commands
import pytest
from provider import Answer, FakeProvider, delta, fails, says

KEY = "sk-verysecret0123456789"
Command = Callable[..., commands.Done]


@pytest.fixture
def pegboard(tmp_path: Path, home: Path) -> Command:
    """Return a function that runs `pegboard` with keys in its environment and returns the finished process."""

    def run(*arguments: str, **environ: str) -> commands.Done:
        keys = dict.fromkeys(("OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"), KEY)
        return commands.pegboard(*arguments, cwd=tmp_path, env={**os.environ, **keys, **environ}, timeout=90)

    return run


def assert_is_model_error(done: commands.Done) -> None:
    assert done.returncode == 4, done.stderr
    assert json.loads(done.stdout)["modelError"]["message"]
    assert "Traceback" not in done.stderr
    assert KEY[3:] not in done.stdout + done.stderr


@pytest.mark.promise("ASK-5", "CLI-2")
@pytest.mark.parametrize(
    ("name", "base_url"),
    [
        ("openrouter:gpt-4o", None),
        ("bedrock:x", None),
        ("azure:gpt", None),
        ("openai:", None),
        ("openai:x", "http://["),
        ("openai:x", "http://a b/"),
        ("openai:x", "http://é..x"),
        ("openai:x", f"http://u:{KEY}@["),
    ],
)
def test_a_model_that_cannot_be_used_exits_with_4(pegboard: Command, name: str, base_url: str | None) -> None:
    where = [] if base_url is None else ["--base-url", base_url]
    assert_is_model_error(pegboard("ask", "Hello?", "--json", "--model", name, *where))


@pytest.mark.promise("SEC-4", "CLI-2")
def test_no_model_is_asked_while_the_configuration_cannot_be_read_even_at_a_given_server(
    pegboard: Command, tmp_path: Path
) -> None:
    with FakeProvider(says("Hello.")).running() as fake:
        reach = ["--model", "openai:x", "--base-url", fake.url]
        done = pegboard("ask", "Hello?", "--json", *reach, PEGBOARD_CONFIG=str(tmp_path))
        assert_is_model_error(done)
        assert "No model is used until this is fixed." in done.stderr
        assert not fake.asked


@pytest.mark.promise("ASK-5", "CLI-2")
@pytest.mark.parametrize("name", ["openai:x", "anthropic:x", "google:x"])
def test_a_client_that_cannot_be_built_exits_with_4(pegboard: Command, name: str) -> None:
    assert_is_model_error(pegboard("ask", "Hello?", "--json", "--model", name, ALL_PROXY="socks9://x"))


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize("status", [400, 401, 422, 429, 500, 503])
def test_the_providers_own_message_is_shown_with_the_next_step(pegboard: Command, status: int) -> None:
    with FakeProvider(fails(status, f"Own words of \x1b[31m{status}.")).running() as fake:
        done = pegboard("ask", "Hello?", "--model", "openai:x", "--base-url", fake.url)
    assert done.returncode == 4
    [line] = done.stderr.splitlines()
    assert f": Own words of ␛[31m{status}." in line
    assert status in (401, 422) or f"(HTTP {status})" in line
    assert not line.endswith(f"{status}.") or status in (400, 422)


@pytest.mark.promise("SEC-8")
def test_an_endless_answer_is_cut_and_its_start_printed(pegboard: Command) -> None:
    def endless() -> object:
        while True:
            yield delta(content="word ")

    with FakeProvider(Answer(endless())).running() as fake:  # type: ignore[arg-type]  # it has no end
        done = pegboard("ask", "Hello?", "--model", "openai:x", "--base-url", fake.url, PEGBOARD_ASK__TURN_BYTES="5000")
    assert (done.returncode, done.stdout) == (0, "word " * 1000 + "\n")
    assert "stopped by: size" in done.stderr


@pytest.mark.promise("SEC-6", "CLI-2")
def test_a_quoted_call_is_part_of_the_answer(pegboard: Command) -> None:
    quoted = 'The file says: {"name": "tools_echo", "arguments": {"value": 1}}'
    with FakeProvider(says(quoted)).running() as fake:
        done = pegboard("ask", "Hello?", "--json", "--model", "openai:x", "--base-url", fake.url)
    told = json.loads(done.stdout)
    assert (told["answer"], told["toolCalls"]) == (quoted, [])


@pytest.mark.promise("CLI-3", "EXE-2")
@pytest.mark.parametrize(
    "command",
    [["tools", "list"], ["tools", "info", "time.now"], ["tools", "invoke", "time.now"], ["ask", "time.now"], ["deps"]],
)
def test_an_allow_pattern_that_matches_nothing_is_a_warning(pegboard: Command, command: list[str]) -> None:
    done = pegboard(*command, "--tool-allow", "time.now,tiem.*", "--tool-allow", "nothing.at_all")
    warnings = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert [line.split('"')[1] for line in warnings] == ["tiem.*", "nothing.at_all"]


@pytest.mark.promise("EXE-2")
def test_the_option_may_be_repeated_and_take_commas(pegboard: Command) -> None:
    allow = ["--tool-allow", "time.now, tools.echo", "--tool-allow", "shell.*"]
    for arguments in ([*allow, "tools", "list", "--json"], ["tools", "list", "--json", *allow]):
        done = pegboard(*arguments)
        assert {tool["name"] for tool in json.loads(done.stdout)} == {"time.now", "tools.echo", "shell.pwd"}
        assert "warning" not in done.stderr
    assert json.loads(pegboard("tools", "list", "--json", "--tool-allow", "").stdout) == []


def test_a_configured_pattern_that_matches_nothing_is_a_warning_with_its_line(pegboard: Command, home: Path) -> None:
    (home / "config.toml").write_text('[tools]\nallow = ["time.now", "tiem.*"]\n')
    done = pegboard("tools", "list")
    [warning] = [line for line in done.stderr.splitlines() if "tiem" in line]
    assert "config.toml:2" in warning
