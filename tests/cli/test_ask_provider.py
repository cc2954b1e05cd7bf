"""`pegboard ask` with a provider: a server on this machine, over real connections."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import commands
import pytest
from dialects import candidate, google
from provider import Answer, FakeProvider, delta, fails, proposes, says

KEY = "sk-verysecret0123456789"
Command = Callable[..., commands.Done]


@pytest.fixture
def pegboard(tmp_path: Path, home: Path) -> Command:
    """Return a function that runs `pegboard` with a key in its environment and returns the finished process."""

    def run(*arguments: str) -> commands.Done:
        return commands.pegboard(*arguments, cwd=tmp_path, env={**os.environ, "OPENAI_API_KEY": KEY})

    return run


@pytest.mark.promise("CLI-3", "ASK-1", "ASK-5")
def test_a_provider_is_asked_its_calls_run_and_the_next_failure_keeps_the_session(pegboard: Command) -> None:
    refusal = fails(401, f"Incorrect API key provided: {KEY}")
    with FakeProvider(proposes("tools_echo", {"value": 3}), says("It is ", "3."), refusal).running() as fake:
        reach = ["--model", "openai:fake", "--base-url", fake.url, "--session", "s", "--json"]
        done = pegboard("ask", "Echo 3.", *reach)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert (told["answer"], told["steps"], told["stoppedBy"]) == ("It is 3.", 2, "answer")
        assert [result["data"] for result in told["toolResults"]] == [3]
        assert told["usage"]["outputTokens"] > 0
        failed = pegboard("ask", "Again.", *reach)
    assert failed.returncode == 4
    told = json.loads(failed.stdout)
    assert (told["modelError"]["code"], told["answer"]) == ("auth", "")
    assert KEY not in done.stdout + done.stderr + failed.stdout + failed.stderr
    kept = json.loads(pegboard("sessions", "show", "s", "--json").stdout)
    assert [entry["message"]["role"] for entry in kept["entries"]] == ["user", "model", "tool", "model", "user"]
    assert kept["model"] == "openai:fake"


@pytest.mark.promise("CLI-3")
def test_without_tools_a_provider_is_sent_none(pegboard: Command) -> None:
    with FakeProvider(says("Hello.")).running() as fake:
        done = pegboard("ask", "Hello?", "--model", "openai:fake", "--base-url", fake.url, "--with-tools=false")
        assert (done.returncode, done.stdout) == (0, "Hello.\n")
        assert "tools" not in fake.asked[0].body
        assert done.stderr.endswith(' --model openai:fake --base-url "…" "…"\n')


@pytest.mark.promise("ASK-5", "CLI-2")
def test_token_counts_that_cannot_be_read_add_no_warning_of_a_library_to_the_answer(pegboard: Command) -> None:
    unknown = delta("stop") | {"usage": {"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}}
    with FakeProvider(Answer([delta(content="Hello."), unknown])).running() as fake:
        done = pegboard("ask", "Hello?", "--model", "openai:fake", "--base-url", fake.url, "--session", "s")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello.\n", "")


@pytest.mark.promise("ASK-5", "CLI-2")
def test_an_unknown_finish_reason_of_google_adds_no_warning_of_a_library_to_the_answer(pegboard: Command) -> None:
    with FakeProvider(google(candidate({"text": "Hello."}, finish="ODD"))).running() as fake:
        url = fake.url.removesuffix("/v1")
        done = pegboard("ask", "Hello?", "--model", "google:fake", "--base-url", url, "--session", "s")
    assert "Hello." in done.stdout
    assert "Warning" not in done.stderr


@pytest.mark.promise("ASK-5", "CLI-2")
def test_an_answer_that_ended_for_an_unknown_reason_is_followed_by_a_note(pegboard: Command) -> None:
    with FakeProvider(Answer([delta(content="Once upon"), delta("abort")])).running() as fake:
        done = pegboard("ask", "Hello?", "--model", "openai:fake", "--base-url", fake.url, "--session", "s")
    assert (done.returncode, done.stdout) == (0, "Once upon\n")
    assert "The answer may be incomplete: the provider ended it for an unknown reason." in done.stderr
