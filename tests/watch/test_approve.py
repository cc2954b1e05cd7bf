"""`pegboard approve` on a terminal: calls are shown as they arrive, and answered with y, n or e."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import commands
import pytest
from terminals import Terminal, pegboard
from watched import PLAIN_SERVER, Watched, eventually, records, result_of

from pegboard.brake import Answer, Questions


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the file of the calls that the server received."""
    return tmp_path / "calls.jsonl"


@pytest.fixture
def watched(log: Path, home: Path) -> Iterator[Watched]:
    """Yield a proxy whose tool `delete` needs approval."""
    (home / "approvals.toml").write_text('[[rule]]\nask = "plain.delete"\nscope = "mcp"\n')
    with Watched(sys.executable, "-S", PLAIN_SERVER, str(log)) as started:
        started.initialize()
        yield started


@pytest.fixture
def terminal(watched: Watched) -> Iterator[Terminal]:
    """Yield a terminal with `pegboard approve`, which has no editor."""
    with pegboard("approve", environ={"EDITOR": "", "VISUAL": ""}) as started:
        started.read_until("No call is waiting. Waiting for calls; press ctrl+c to end.")
        yield started


def answer(terminal: Terminal, *lines: tuple[str, str]) -> None:
    """Wait for each text, and answer the question that follows it."""
    for question, text in lines:
        terminal.read_until(question)
        terminal.output = terminal.output.partition(question)[2]
        if not question.startswith(("Run", "Arg", "Reason")):
            terminal.read_until(RUN)
            terminal.output = terminal.output.partition(RUN)[2]
        terminal.type(f"{text}\n")


RUN = "Run plain.delete? [y/n/e]"


@pytest.mark.promise("WAT-4")
def test_a_terminal_approves_edits_and_rejects_calls_as_they_arrive(
    watched: Watched, terminal: Terminal, log: Path
) -> None:
    watched.call(1, "delete", path="a\x1b[2J")
    terminal.read_until(RUN)
    assert "tester 7" in terminal.output
    assert "calls plain.delete" in terminal.output
    assert "The agent's client may time out while the call waits." in terminal.output
    assert "\x1b[2J" not in terminal.output
    answer(terminal, (RUN, "y"))
    assert watched.receive()["id"] == 1

    watched.call(2, "delete", path="b")
    answer(terminal, (RUN, "e"), ("Arguments as JSON", '["no object"]'))
    terminal.read_until("The arguments are unchanged because they must be a JSON object")
    answer(terminal, (RUN, "e"), ("Arguments as JSON", '{"path": "c"}'), ("Edited arguments:", ""))
    terminal.read_until("Left unanswered. Answer it later with: pegboard approve ")
    commands.pegboard("approve", terminal.output.partition("pegboard approve ")[2].split()[0], "--yes")
    assert watched.receive()["id"] == 2

    watched.call(3, "delete", path="d")
    answer(terminal, (RUN, "e"), ("Arguments as JSON", '{"path": "e"}'), ("Edited arguments:", "y"))
    assert watched.receive()["id"] == 3

    watched.call(4, "delete", path="f")
    answer(terminal, (RUN, "n"), ("Reason for the agent", "not today"))
    assert "The user rejected this call. They said: not today" in str(watched.receive())
    received = [json.loads(line)[1]["path"] for line in log.read_text().splitlines()]
    assert received == ["a\x1b[2J", "b", "e"]


@pytest.mark.promise("WAT-4")
def test_a_call_is_asked_again_after_an_answer_that_it_does_not_have(watched: Watched, terminal: Terminal) -> None:
    watched.call(1, "delete", path="a")
    terminal.read_until("y: run it · n: reject it · e: edit the arguments · enter: leave it unanswered")
    answer(terminal, (RUN, "s"))
    terminal.read_until("The call still waits: 's' isn't an answer.")
    answer(terminal, (RUN, ""))
    terminal.read_until("Left unanswered. Answer it later with: pegboard approve ")
    terminal.read_until("1 call left unanswered. Waiting for calls; press ctrl+c to end.")
    watched.call(2, "delete", path="b")
    answer(terminal, (RUN, "y"))
    assert watched.receive()["id"] == 2


@pytest.mark.promise("WAT-4")
def test_a_call_that_is_answered_elsewhere_is_no_longer_asked(
    watched: Watched, terminal: Terminal, log: Path, home: Path
) -> None:
    questions = Questions(home / "state")
    watched.call(1, "delete", path="a")
    terminal.read_until(RUN)
    (question,) = questions.pending()
    questions.answer(question.id, Answer("reject", "not today"))
    terminal.read_until("The call is no longer waiting: it was answered, or it ended.")
    assert "not today" in str(watched.receive())
    terminal.read_until("Press enter to continue.")
    watched.call(2, "delete", path="b")
    eventually(questions.pending)
    terminal.output = ""
    terminal.type("y\n")  # meant for the first call
    terminal.read_until(RUN)
    (second,) = questions.pending()
    terminal.type("n\n")
    terminal.read_until("Reason for the agent")
    terminal.type("\n")
    assert "rejected" in str(watched.receive())
    assert not questions.is_pending(second)
    terminal.read_until("No call is waiting.")
    terminal.type("\x03")
    assert terminal.read_all() == 130
    assert not log.exists()


SECRET = "sk-1234567890abcdef"
MASKED = "«secret SEARCH_API_KEY»"


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize("by", ["approve", "edit", "resume"])
def test_the_duration_of_a_call_excludes_the_time_for_which_it_waited(home: Path, by: str) -> None:
    (home / "config.toml").write_text("[brake]\nwait = 30\n")
    if by == "resume":
        commands.pegboard("pause")
    else:
        (home / "approvals.toml").write_text('[[rule]]\nask = "plain.delete"\n')
    questions = Questions(home / "state")
    with Watched() as started:
        started.initialize()
        started.call(1, "delete", path="a")
        (question,) = eventually(questions.pending)
        for _ in range(5):  # A person looks at it for a while.
            assert '"path": "a"' in commands.pegboard("approve", "--json").stdout
        answered = time.time()
        if by == "resume":
            commands.pegboard("resume")
        else:
            questions.answer(question.id, Answer("approve", args={"path": "b"} if by == "edit" else None))
        (record,) = eventually(lambda: [one for one in records() if one.ok])
    assert record.duration_ms <= (time.time() - answered) * 1000
    assert result_of(record).meta.waited_ms > 0


@pytest.mark.promise("WAT-4", "ACT-1")
def test_a_rejected_call_has_no_duration_and_the_time_for_which_it_waited(home: Path) -> None:
    (home / "approvals.toml").write_text('[[rule]]\nask = "plain.delete"\n')
    questions = Questions(home / "state")
    with Watched() as started, questions.announce():
        started.initialize()
        started.call(1, "delete", path="a")
        (question,) = eventually(questions.pending)
        asked = time.time()
        commands.pegboard("approve", "--json")  # A person looks at it for a while.
        answered = time.time()
        questions.answer(question.id, Answer("reject", "no"))
        (record,) = eventually(lambda: [one for one in records() if one.error])
    assert record.duration_ms == 0
    assert result_of(record).meta.waited_ms >= (answered - asked) * 1000
    assert " ms" not in commands.pegboard("history").stdout
    shown = json.loads(commands.pegboard("history", "show", record.id, "--json").stdout)
    assert shown["result"]["meta"]["waitedMs"] == result_of(record).meta.waited_ms


@pytest.mark.promise("WAT-4", "STO-2")
@pytest.mark.parametrize("is_known_to_proxy", [False, True], ids=["known to approve", "known to both"])
def test_secrets_are_masked_and_edited_arguments_keep_them(
    watched: Watched, log: Path, home: Path, monkeypatch: pytest.MonkeyPatch, *, is_known_to_proxy: bool
) -> None:
    if is_known_to_proxy:
        (home / ".env").write_text(f"SEARCH_API_KEY={SECRET}\n")
    else:
        monkeypatch.setenv("SEARCH_API_KEY", SECRET)
    questions = Questions(home / "state")
    with questions.announce():
        watched.call(1, "delete", path="a", key=SECRET, all=1)
        (question,) = eventually(questions.pending)
        assert question.args == {"path": "a", "key": MASKED if is_known_to_proxy else SECRET, "all": 1}
        listed, printed = commands.pegboard("approve"), commands.pegboard("approve", "--json")
        for done in (listed, printed):
            assert MASKED in done.stdout
            assert SECRET not in done.stdout + done.stderr
        moved = commands.pegboard("approve", question.id, "--yes", "--args", json.dumps({"path": MASKED + "/b"}))
        assert moved.returncode == 2
        assert f"{MASKED} hides a value that was moved or changed." in moved.stderr
        args = json.dumps({"path": "b", "key": MASKED, "all": True})
        assert commands.pegboard("approve", question.id, "--yes", "--args", args).returncode == 0
        assert watched.receive()["id"] == 1
    with pegboard("approve", environ={"EDITOR": "", "VISUAL": ""}) as terminal:
        terminal.read_until("Waiting for calls")
        watched.call(2, "delete", path="c", key=SECRET)
        terminal.read_until(RUN)
        assert MASKED in terminal.output
        assert SECRET not in terminal.output
        moved_args, args = json.dumps({"path": MASKED, "key": ""}), json.dumps({"path": "d", "key": MASKED})
        answer(terminal, (RUN, "e"), ("Arguments as JSON", moved_args))
        terminal.read_until("The arguments are unchanged: ")
        answer(terminal, (RUN, "e"), ("Arguments as JSON", args), ("Edited arguments:", "y"))
        assert watched.receive()["id"] == 2
        assert SECRET not in terminal.output
    first, second = [json.loads(line)[1] for line in log.read_text().splitlines()]
    assert first == {"path": "b", "key": SECRET, "all": True}
    assert first["all"] is True
    assert second == {"path": "d", "key": SECRET}


def test_without_a_waiting_call_the_list_says_so(home: Path) -> None:
    done = commands.pegboard("approve")
    assert done.returncode == 0
    assert "No call is waiting for approval." in done.stdout + done.stderr
    assert json.loads(commands.pegboard("approve", "--json").stdout) == []
    unknown = commands.pegboard("approve", "1f0c3a5b7d9e2468", "--yes")
    assert "no longer waiting" in unknown.stderr
