"""The brake: rules, questions, answers, the pause, and what happens to calls whose client leaves."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import commands
import pytest
from processes import command_of
from watched import PLAIN_SERVER, Watched, eventually, records

from pegboard.brake import Answer, AnsweredError, Question, Questions
from pegboard.models import Agent, JsonObject
from pegboard.runtime import Runtime


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the file of the calls that the server received."""
    return tmp_path / "calls.jsonl"


@pytest.fixture
def watched(log: Path, home: Path) -> Iterator[Watched]:
    """Yield a proxy whose server logs its calls."""
    with Watched(sys.executable, "-S", PLAIN_SERVER, str(log)) as started:
        started.initialize()
        yield started


@pytest.fixture
def questions(home: Path) -> Questions:
    """Return the pending calls."""
    return Questions(home / "state")


def calls(log: Path) -> list[Any]:
    """Return the calls that the server received."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def write_rules(home: Path, text: str) -> None:
    """Replace the rules."""
    (home / "approvals.toml").write_text(text)


def text_of(response: Any) -> str:
    """Return the text of a failed result."""
    assert response["result"]["isError"] is True
    return str(response["result"]["content"][0]["text"])


def waiting(questions: Questions) -> Question:
    """Return the one pending call."""
    (question,) = eventually(questions.pending)
    return question  # type: ignore[no-any-return]


ASK = '[[rule]]\nask = "plain.delete"\nscope = "mcp"\n'


@pytest.mark.promise("WAT-4")
def test_without_a_matching_rule_calls_pass_and_a_deny_rule_rejects(watched: Watched, home: Path, log: Path) -> None:
    watched.call(1, "delete")
    assert watched.receive()["id"] == 1
    write_rules(home, '[[rule]]\ndeny = "plain.delete"\n[rule.where]\npath = "/etc/**"\n')
    watched.call(2, "delete", path="/etc/passwd")
    assert "A rule of approvals.toml denies plain.delete" in text_of(watched.receive())
    watched.call(3, "delete", path="/tmp/x")
    assert watched.receive()["id"] == 3
    write_rules(home, '[[rule]]\ndeny = "plain.delete"\nscope = "ask"\n')
    watched.call(4, "delete", path="/etc/passwd")
    assert "isError" not in watched.receive()["result"] or calls(log)[-1][1] == {"path": "/etc/passwd"}
    assert [one[1] for one in calls(log)] == [{}, {"path": "/tmp/x"}, {"path": "/etc/passwd"}]
    found = eventually(lambda: len(found := records()) == 4 and found)
    assert [one.error.detail if one.error else None for one in found] == [None, None, "denied", None]


@pytest.mark.promise("WAT-4", "SEC-4")
@pytest.mark.parametrize(
    ("where", "omitting", "other"),
    [
        ('path = "/etc/**"', {}, {"path": "/tmp/x"}),
        ('"files.path" = "/etc/**"', {"files": [{"path": "a"}, {}]}, {"files": [{"path": "a"}]}),
    ],
)
def test_until_a_tool_is_listed_its_defaults_are_unknown_and_a_deny_rule_matches(
    watched: Watched, home: Path, log: Path, where: str, omitting: dict[str, Any], other: dict[str, Any]
) -> None:
    write_rules(home, f'[[rule]]\ndeny = "plain.delete"\nwhere = {{ {where} }}\n')
    watched.call(1, "delete", **omitting)
    assert "A rule of approvals.toml denies plain.delete" in text_of(watched.receive())
    watched.call(2, "delete", **other)
    assert watched.receive()["result"]["isError"] is False
    watched.send({"jsonrpc": "2.0", "id": 3, "method": "tools/list"})
    assert watched.receive()["result"]["tools"]

    def is_forwarded() -> bool:
        watched.call(4, "delete", **omitting)
        return watched.receive()["result"]["isError"] is False

    eventually(is_forwarded)
    assert calls(log) == [["delete", other], ["delete", omitting]]


@pytest.mark.promise("WAT-4", "SEC-4")
@pytest.mark.parametrize("is_link", [False, True], ids=["invalid", "a link to a missing file"])
def test_rules_that_cannot_be_read_reject_every_call(watched: Watched, home: Path, log: Path, is_link: bool) -> None:
    if is_link:
        (home / "approvals.toml").symlink_to(home / "missing.toml")
    else:
        write_rules(home, "[[rule]\n")
    watched.call(1, "say")
    assert "The rules can't be read" in text_of(watched.receive())
    watched.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    assert watched.receive()["result"]["tools"]
    assert calls(log) == []


@pytest.mark.promise("WAT-4")
@pytest.mark.parametrize(
    "line",
    [
        rb'{"id":1,"method":"tools\/call","params":{"name":"delete"}}',
        rb'{"id":1,"method":"\u0074ools/call","params":{"name":"delete"}}',
        rb'{"id":1,"method":"tools/call","params":{"name":"d\u0065lete"}}',
        rb'{"id":1,"method":"tools/call","method":"ping","params":{"name":"delete"}}',
        rb'{"id":1,"method":"ping","method":"tools/call","params":{"name":"say","name":"delete"}}',
        rb'[{"id":1,"method":"tools/call"},{"id":2,"method":"tools/call","params":{"name":"delete"}}]',
        rb'{"id":1,"method":"tools/call","params":{"name":"delete","arguments":{"x":"' + b"y" * 17_000_000 + b'"}}}',
        b'{"id":1,"method":"ping","x":\r{"id":2,"method":"tools/call","params":{"name":"delete"}}\r}',
    ],
    ids=["slash", "escape", "name", "two methods", "two names", "batch", "long", "within another message"],
)
def test_no_spelling_of_a_call_passes_a_deny_rule(watched: Watched, home: Path, log: Path, line: bytes) -> None:
    write_rules(home, '[[rule]]\ndeny = "plain.delete"\n')
    watched.send(line + b"\n")
    watched.send({"jsonrpc": "2.0", "id": "last", "method": "tools/list"})
    while (received := watched.receive()) and not (isinstance(received, dict) and received.get("id") == "last"):
        pass
    assert calls(log) == []


@pytest.mark.promise("WAT-4")
def test_a_call_on_several_lines_does_not_reach_a_server_that_accepts_it(home: Path, log: Path) -> None:
    write_rules(home, '[[rule]]\ndeny = "plain.delete"\n')
    with Watched("sh", "-c", 'cat > "$0"', str(log)) as watched:
        watched.send(b'{"id":1,"method":\n"tools/call"\n,"params":{"name":"delete"}}\n')
        watched.close()
    assert b"tools/call" not in log.read_bytes()


@pytest.mark.promise("WAT-1", "WAT-4")
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (b'{"x":%s}' % (b"[" * 300 + b"]" * 300), "nested too deeply"),
        (b'{"x":%s}' % (b"[" * 5000 + b"]" * 5000), "nested too deeply"),
        (b'{"x":%s}' % (b"9" * 5000), "nested too deeply"),
        (b'"{}"', "not an object"),
    ],
    ids=["deep", "deeper", "many digits", "text"],
)
def test_while_rules_exist_a_call_that_cannot_be_read_is_rejected_and_the_next_one_passes(
    watched: Watched, home: Path, log: Path, arguments: bytes, reason: str
) -> None:
    write_rules(home, '[[rule]]\ndeny = "plain.delete"\n')
    watched.send(
        b'{"method":"tools/call","params":{"name":"say","arguments":%s},"jsonrpc":"2.0","id":"a"}\n' % arguments
    )
    rejected = watched.receive()
    assert rejected["id"] == "a"
    assert reason in json.dumps(rejected)
    watched.call(2, "say")
    assert watched.receive()["id"] == 2
    assert calls(log) == [["say", {}]]


@pytest.mark.promise("WAT-4")
def test_a_request_without_a_call_that_cannot_be_checked_is_answered_with_an_error(
    watched: Watched, home: Path
) -> None:
    write_rules(home, '[[rule]]\ndeny = "plain.delete"\n')
    watched.send(b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"a":"tools/call","a":1}}\n')
    answer = watched.receive()
    assert (answer["id"], "result" in answer) == (7, False)
    assert "A key occurs twice in it" in answer["error"]["message"]


@pytest.mark.promise("WAT-4", "SEC-4")
def test_a_repeated_key_passes_no_rule_at_any_depth_of_nesting(watched: Watched, home: Path, log: Path) -> None:
    write_rules(home, '[[rule]]\ndeny = "plain.say"\nwhere = { path = "/etc/**" }\n')
    depths = range(970, 1000)  # About the deepest nesting that Python reads.
    for depth in depths:
        meta, arguments = b'{"a":' * depth + b"1" + b"}" * depth, b'{"path":"/etc/passwd","path":"/tmp/x"}'
        params = b'{"_meta":%s,"name":"say","arguments":%s}' % (meta, arguments)
        watched.send(b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}\n' % (depth, params))
        answer = watched.receive()
        assert answer["id"] == depth
        assert "was not called" in json.dumps(answer), depth
    assert calls(log) == []


@pytest.mark.promise("WAT-4", "SEC-4")
@pytest.mark.parametrize(
    ("message", "key"),
    [
        ('{"id":1,"method":"ping","Method":"tools/call","params":{"name":"delete"}}', "Method"),
        ('{"id":1,"method":"tools/call","params":{"name":"say"},"PARAMS":{"name":"delete"}}', "PARAMS"),
        ('{"id":1,"method":"tools/call","params":{"name":"say","Name":"delete"}}', "Name"),
        ('{"id":1,"method":"tools/call","params":{"name":"say"},"param\u017f":{"name":"delete"}}', "param\u017f"),
        ('[{"id":1,"method":"tools/call","params":{"name":"say","argumentS":{}}}]', "argumentS"),
    ],
)
def test_a_key_that_differs_from_a_field_only_in_case_passes_no_rule(
    watched: Watched, home: Path, log: Path, message: str, key: str
) -> None:
    write_rules(home, '[[rule]]\ndeny = "plain.delete"\n')
    watched.send(message.encode() + b"\n")
    answer = watched.receive()
    text = json.dumps(answer, ensure_ascii=False)
    assert f"some servers read its key `{key}` as `{key.casefold()}`" in text
    assert calls(log) == []


@pytest.mark.promise("WAT-4")
def test_an_argument_may_have_the_name_of_a_field_in_another_case(watched: Watched, home: Path, log: Path) -> None:
    write_rules(home, '[[rule]]\ndeny = "plain.delete"\n')
    watched.call(1, "say", Name="x", ID=1)
    assert watched.receive()["result"]["isError"] is False
    assert calls(log) == [["say", {"Name": "x", "ID": 1}]]


@pytest.mark.promise("WAT-4")
def test_without_an_open_app_a_call_that_asks_is_rejected(watched: Watched, home: Path, log: Path) -> None:
    write_rules(home, ASK)
    watched.call(1, "delete")
    assert "No Pegboard app is open" in text_of(watched.receive())
    assert calls(log) == []


@pytest.mark.promise("WAT-4")
def test_a_person_approves_edits_and_rejects(watched: Watched, home: Path, log: Path, questions: Questions) -> None:
    write_rules(home, ASK)
    with questions.announce():
        watched.call(1, "delete", path="a")
        watched.call(2, "say")
        assert watched.receive()["id"] == 2  # Other calls don't wait.
        question = waiting(questions)
        assert (question.agent, question.tool, question.args) == (
            f"tester 7 (process {os.getpid()})",
            "plain.delete",
            {"path": "a"},
        )
        questions.answer(question.id, Answer("approve"))
        assert watched.receive()["id"] == 1

        params = b'{"arguments":{"path":"b"},"name":"delete"}'
        watched.send(b'{"jsonrpc" : "2.0","id":3,"x":1e400,"method":"tools/call","params":' + params + b"}\n")
        questions.answer(waiting(questions).id, Answer("approve", args={"path": "c"}))
        assert [block["text"] for block in watched.receive()["result"]["content"]] == [
            "hi",
            'The user edited the arguments. The call ran with {"path": "c"}.',
        ]

        watched.call(4, "delete", path="d")
        done = commands.pegboard("approve", waiting(questions).id, "--no", "not today")
        assert done.returncode == 0
        assert (
            text_of(watched.receive())
            == "plain.delete was not called. The user rejected this call. They said: not today"
        )
    assert calls(log) == [["say", {}], ["delete", {"path": "a"}], ["delete", {"path": "c"}]]
    found = eventually(lambda: len(found := records()) == 4 and found)
    assert {json.dumps(one.args): one.ok for one in found} == {
        "{}": True,
        '{"path": "a"}': True,
        '{"path": "c"}': True,
        '{"path": "d"}': False,
    }


RESPONSES = {
    "data": '{"id": %s, "jsonrpc":"2.0","result":{"content": [ ], "structuredContent":{"n":1e400}}}\r',
    "error": '{"error" : {"code":-32000,"message":"No file \\"b\\"."},"id":%s}',
    "task": '{"id":%s,"result":{"task":{"taskId":"7"}}}',
    "mark": '\ufeff{"id":%s,"result":{"content":[]}}',
}
"""Responses of a server by the names of its tools."""
ECHO = f"""
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    sys.stdout.buffer.write(({RESPONSES!r}[message["params"]["name"]] % message["id"] + "\\n").encode())
    sys.stdout.flush()
"""


@pytest.mark.promise("WAT-4", "WAT-1")
@pytest.mark.parametrize("name", RESPONSES)
def test_the_response_to_an_edited_call_has_a_note_and_is_otherwise_unchanged(
    home: Path, questions: Questions, name: str
) -> None:
    write_rules(home, '[[rule]]\nask = "echo.*"\nwhere = { path = "a" }\n')
    note = r"The user edited the arguments. The call ran with {\"path\": \"b\"}."
    expected = {
        "data": RESPONSES["data"].replace("[ ]", f'[ {{"type": "text", "text": "{note}"}}]'),
        "error": RESPONSES["error"].replace('b\\"."', f'b\\". {note}"'),
    }
    with Watched(sys.executable, "-c", ECHO, name="echo") as watched, questions.announce():
        watched.call(1, name, path="a")
        questions.answer(waiting(questions).id, Answer("approve", args={"path": "b"}))
        assert watched.line().decode() == expected.get(name, RESPONSES[name]) % 1
        watched.call(2, name, path="b")
        assert watched.line().decode() == RESPONSES[name] % 2


@pytest.mark.promise("WAT-4")
def test_another_type_of_an_equal_value_is_an_edit(watched: Watched, home: Path, questions: Questions) -> None:
    write_rules(home, ASK)
    with questions.announce():
        watched.call(1, "delete", number=1)
        questions.answer(waiting(questions).id, Answer("approve", args={"number": True}))
        note = watched.receive()["result"]["content"][-1]["text"]
    assert note == 'The user edited the arguments. The call ran with {"number": true}.'


@pytest.mark.promise("WAT-4", "SEC-3")
def test_the_note_on_an_edited_call_contains_no_secret(
    home: Path, questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCH_API_KEY", "sk-1234567890abcdef")
    write_rules(home, ASK)
    with Watched() as watched, questions.announce():
        watched.call(1, "delete", path="a")
        questions.answer(waiting(questions).id, Answer("approve", args={"path": "sk-1234567890abcdef"}))
        note = watched.receive()["result"]["content"][-1]["text"]
    assert note == 'The user edited the arguments. The call ran with {"path": "«secret SEARCH_API_KEY»"}.'


@pytest.mark.promise("WAT-4", "SEC-8")
def test_the_note_on_an_edited_call_has_only_the_start_of_long_arguments(home: Path, questions: Questions) -> None:
    write_rules(home, ASK)
    with Watched() as watched, questions.announce():
        watched.call(1, "delete", path="a")
        questions.answer(waiting(questions).id, Answer("approve", args={"path": "x" * 100_000}))
        note = watched.receive()["result"]["content"][-1]["text"]
    assert note.startswith('The user edited the arguments. The call ran with {"path": "xxx')
    assert note.endswith("x… (96,012 more characters).")


@pytest.mark.promise("WAT-3", "WAT-5")
async def test_a_call_appears_as_waiting_and_then_as_done(watched: Watched, home: Path, questions: Questions) -> None:
    write_rules(home, ASK)
    runtime = Runtime.from_environment()
    seen: list[tuple[str, str, str | None, str | None]] = []
    async with runtime, asyncio.timeout(30):
        with questions.announce():
            async with aclosing(runtime.activity.changes()) as changes:
                watched.call(1, "delete", path="a")
                async for change in changes:
                    if change.ids:
                        (call,) = runtime.activity.find([*change.ids])
                        seen.append((call.tool, call.state, call.agent, call.session))
                    if seen and seen[-1][1] == "waiting":
                        for question in questions.pending():
                            questions.answer(question.id, Answer("approve"))
                    if seen and seen[-1][1] == "ok":
                        break
    assert {(tool, agent) for tool, _, agent, _ in seen} == {("plain.delete", "tester")}
    assert [state for _, state, *_ in seen if state != "running"] == ["waiting", "ok"]
    agent = Agent.of_session(seen[-1][3])
    assert agent is not None
    assert agent == Agent.connected(os.getpid(), name="tester", version="7")


@pytest.mark.promise("WAT-4", "SEC-4")
@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ('[[rule]]\ndeny = "plain.delete"\n', "A rule of approvals.toml denies plain.delete"),
        ("[[rule]\n", "The rules can't be read"),
    ],
)
@pytest.mark.parametrize("edit", [None, {"path": "b"}])
def test_an_approved_call_is_rejected_if_rules_deny_it_by_then(
    watched: Watched, home: Path, log: Path, questions: Questions, rules: str, reason: str, edit: dict[str, Any] | None
) -> None:
    write_rules(home, ASK)
    with questions.announce():
        watched.call(1, "delete", path="a")
        question = waiting(questions)
        write_rules(home, rules)
        questions.answer(question.id, Answer("approve", args=edit))
        assert reason in text_of(watched.receive())
    assert calls(log) == []


@pytest.mark.promise("WAT-4")
def test_of_simultaneous_answers_one_counts_and_the_call_runs_once(
    watched: Watched, home: Path, log: Path, questions: Questions
) -> None:
    write_rules(home, ASK)

    def answer(question: Question) -> bool:
        try:
            questions.answer(question.id, Answer("approve"))
        except AnsweredError:
            return False
        return True

    with questions.announce(), ThreadPoolExecutor(8) as pool:
        for id_ in range(10):
            watched.call(id_, "delete", number=id_)
            question = waiting(questions)
            assert sum(pool.map(answer, [question] * 8)) == 1
            assert watched.receive()["id"] == id_
            assert not answer(question)
    assert [one[1]["number"] for one in calls(log)] == list(range(10))


@pytest.mark.promise("WAT-4")
def test_a_cancelled_call_whose_id_is_a_text_is_never_forwarded(
    watched: Watched, home: Path, log: Path, questions: Questions
) -> None:
    write_rules(home, ASK)
    with questions.announce():
        watched.call("first", "delete", number=1)
        waiting(questions)
        watched.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "first"}})
        eventually(lambda: not questions.pending())
        watched.call("second", "say")
        assert watched.receive()["id"] == "second"
    assert calls(log) == [["say", {}]]


@pytest.mark.promise("WAT-4")
def test_a_cancelled_call_is_never_forwarded(watched: Watched, home: Path, log: Path, questions: Questions) -> None:
    write_rules(home, ASK)
    with questions.announce():
        watched.call(1, "delete", number=1)
        watched.call("1", "delete", number=2)
        eventually(lambda: len(questions.pending()) == 2)
        watched.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        question = eventually(lambda: len(found := questions.pending()) == 1 and found)[0]
        assert question.args == {"number": 2}
        questions.answer(question.id, Answer("approve"))
        assert watched.receive()["id"] == "1"
        watched.call(3, "delete", number=3)
        eventually(questions.pending)
        watched.close()
        eventually(lambda: not questions.pending())
    assert [one[1] for one in calls(log)] == [{"number": 2}]
    found = eventually(lambda: len(found := records()) == 3 and found)
    assert [one.error.detail if one.error else None for one in found] == ["cancelled", None, "cancelled"]


@pytest.mark.promise("WAT-4")
def test_the_question_of_a_killed_proxy_closes(watched: Watched, home: Path, log: Path, questions: Questions) -> None:
    write_rules(home, ASK)
    with questions.announce():
        watched.call(1, "delete")
        question = waiting(questions)
        watched.process.kill()
        eventually(lambda: not questions.pending())
        with pytest.raises(AnsweredError):
            questions.answer(question.id, Answer("approve"))
    assert calls(log) == []


@pytest.mark.promise("WAT-4")
def test_a_call_whose_server_ends_while_it_waits_is_recorded_with_that_reason(
    watched: Watched, home: Path, questions: Questions
) -> None:
    write_rules(home, ASK)
    with questions.announce():
        watched.call(1, "delete")
        waiting(questions)
        watched.call(2, "die")
        assert watched.process.wait(20) != 0
        eventually(lambda: not questions.pending())
        found = eventually(lambda: [one for one in records() if one.tool == "plain.delete" and one.error])
    assert [one.error.message for one in found] == ["The server or the proxy ended while the call waited."]


@pytest.mark.promise("WAT-4")
def test_a_pause_holds_calls_until_they_are_resumed_or_stopped(
    watched: Watched, home: Path, log: Path, questions: Questions
) -> None:
    assert commands.pegboard("pause").returncode == 0
    shown = json.loads(commands.pegboard("paths", "--json").stdout)
    assert shown["calls"] == "paused"
    assert Path(shown["brake"]).exists()
    watched.call(1, "say")
    watched.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    assert watched.receive()["id"] == 2
    assert waiting(questions).kind == "paused"
    assert watched.is_silent(0.3)
    assert calls(log) == []
    commands.pegboard("resume")
    assert watched.receive()["id"] == 1

    commands.pegboard("pause")
    watched.call(3, "say")
    waiting(questions)
    commands.pegboard("stop")
    assert "stopped" in text_of(watched.receive())
    watched.call(4, "say")
    assert "stopped" in text_of(watched.receive())
    commands.pegboard("resume")
    watched.call(5, "say")
    assert watched.receive()["id"] == 5
    assert len(calls(log)) == 2


@pytest.mark.promise("WAT-4")
@pytest.mark.parametrize("rules", ["", '[[rule]]\nask = "plain.*"\n'])
async def test_a_resumed_call_is_asked_about_by_the_rules_and_recorded_once(
    watched: Watched, home: Path, questions: Questions, rules: str
) -> None:
    assert commands.pegboard("pause").returncode == 0
    async with Runtime.from_environment() as runtime:

        def recorded() -> set[tuple[str, str]]:
            return {(call.id, call.state) for call in runtime.activity.page().calls}

        with questions.announce():
            watched.call(1, "say")
            held = waiting(questions)
            eventually(lambda: recorded() == {(held.call, "waiting")})
            write_rules(home, rules)
            commands.pegboard("resume")
            if rules:
                asked = eventually(lambda: [one for one in questions.pending() if one.kind == "ask"])[0]
                assert asked.call == held.call
                questions.answer(asked.id, Answer("approve"))
            assert watched.receive()["id"] == 1
            eventually(lambda: recorded() == {(held.call, "ok")})


@pytest.mark.promise("WAT-4", "SEC-4")
def test_if_the_observer_is_killed_calls_pass_only_without_rules_and_pause(watched: Watched, home: Path) -> None:
    watched.call(1, "say")
    watched.receive()
    os.kill(_observer(home), signal.SIGKILL)
    assert watched.process.stderr is not None
    assert b"the process that records calls has ended" in watched.process.stderr.readline()
    watched.call(2, "say")
    assert watched.receive()["result"]["isError"] is False
    write_rules(home, ASK)
    watched.call(3, "say")
    assert "rules can't be read" in text_of(watched.receive())


@pytest.mark.promise("WAT-4")
def test_a_call_that_waited_when_the_observer_was_killed_can_no_longer_be_approved(
    watched: Watched, home: Path, log: Path, questions: Questions
) -> None:
    write_rules(home, ASK)
    with questions.announce():
        watched.call(1, "delete")
        question = waiting(questions)
        os.kill(_observer(home), signal.SIGKILL)
        assert "rules can't be read" in text_of(watched.receive())
        eventually(lambda: not questions.pending())
        late = commands.pegboard("approve", question.id, "--yes")
        assert (late.returncode, "no longer waiting" in late.stderr) == (3, True)
    assert calls(log) == []


def _observer(home: Path) -> int:
    """Return the process that records the calls of the test."""
    return next(
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit()
        and b"watch.observer" in command_of(int(entry.name))
        and f"PEGBOARD_STATE_DIR={home}/state".encode() in _environment(entry)
    )


def _environment(entry: Path) -> bytes:
    try:
        return (entry / "environ").read_bytes()
    except OSError:
        return b""


@pytest.mark.promise("WAT-4")
def test_other_users_can_neither_read_nor_answer_questions(home: Path, questions: Questions) -> None:
    (home / "state" / "questions").mkdir(parents=True, mode=0o755)
    with questions.announce():
        asked = questions.open(Question("a.b", {"secret": 1}, "agent", "a", "Why."))
        folder = home / "state" / "questions"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir() if file.is_file()} == {0o600}
        questions.answer(asked.question.id, Answer("approve", args={"secret": 2}))
        assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir() if file.is_file()} == {0o600}
        answer = asked.poll()
        assert answer is not None
        assert answer.args == {"secret": 2}
        assert "secret" not in "".join(file.read_text() for file in folder.glob("*.answer"))


@pytest.mark.promise("WAT-4")
async def test_a_question_whose_call_is_cancelled_while_it_is_written_does_not_stay(
    home: Path, questions: Questions
) -> None:
    is_written, go = threading.Event(), threading.Event()

    def redact(args: JsonObject) -> JsonObject:
        is_written.set()
        assert go.wait(30)
        return args

    threads = ThreadPoolExecutor(2)
    asyncio.get_running_loop().set_default_executor(threads)
    question = Question("a.b", {}, "agent", "a", "Why.")
    task = asyncio.create_task(Questions(home / "state", redact).ask(question))
    assert await asyncio.to_thread(is_written.wait, 30)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    go.set()
    await asyncio.wait([task], timeout=30)
    threads.shutdown()
    assert task.cancelled()
    assert questions.pending() == ()


@pytest.mark.promise("WAT-4")
def test_answers_of_the_last_hour_are_not_looked_at_for_every_call(
    home: Path, questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject() -> None:
        assert questions.open(Question("a.b", {}, "agent", "a", "Why.")).poll() is not None

    folder = home / "state" / "questions"
    reject()
    for _ in range(20):
        reject()
    long_ago = time.time() - 7200
    [first, *_] = folder.glob("*.answer")
    os.utime(first, (long_ago, long_ago))
    looked_at: list[Path] = []
    stat_of = Path.stat

    def counted(path: Path, **more: bool) -> os.stat_result:
        looked_at.append(path)
        return stat_of(path, **more)

    monkeypatch.setattr(Path, "stat", counted)
    for _ in range(20):
        reject()
    assert not [path for path in looked_at if path.suffix == ".answer"]
    monkeypatch.undo()
    Questions(home / "state").open(Question("a.b", {}, "agent", "a", "Why.")).close("The test ends.")
    assert not first.exists()


@pytest.mark.promise("WAT-4", "STO-2")
@pytest.mark.parametrize("next_process", ["lists", "asks", "answers"])
def test_a_killed_process_leaves_no_arguments_and_its_call_cannot_be_approved(
    home: Path, questions: Questions, next_process: str
) -> None:
    code = (
        "import sys, time; from pathlib import Path; from pegboard.brake import Question, Questions\n"
        "asked = Questions(Path(sys.argv[1])).open(Question('a.b', {'key': 'sk-1234'}, 'agent', 'a', 'Why.'))\n"
        "print(asked.question.id, flush=True); time.sleep(60)"
    )
    ids = []
    for is_answered in (True, False):
        asking = subprocess.Popen([sys.executable, "-c", code, str(home / "state")], stdout=subprocess.PIPE, text=True)
        assert asking.stdout is not None
        ids.append(asking.stdout.readline().strip())
        if is_answered:
            questions.answer(ids[0], Answer("approve", args={"key": "sk-1234"}))
        asking.kill()
        asking.wait()
        asking.stdout.close()
    with pytest.raises(AnsweredError):  # an app that still shows it
        questions.answer(ids[1], Answer("approve", args={"key": "sk-1234"}))
    if next_process == "answers":
        late = commands.pegboard("approve", ids[1], "--yes")
        assert late.returncode == 3
        assert "no longer waiting" in late.stderr
    elif next_process == "asks":
        questions.open(Question("a.c", {}, "agent", "a", "Why.")).close("The test ends.")
    else:
        assert commands.pegboard("approve", "--json").stdout.strip() == "[]"
    left = "".join(file.read_text() for file in (home / "state" / "questions").iterdir() if file.is_file())
    assert "sk-1234" not in left


@pytest.mark.promise("WAT-4")
def test_questions_cross_processes_and_a_dead_app_does_not_count(home: Path, questions: Questions) -> None:
    code = (
        "import sys, time; from pathlib import Path; from pegboard.brake import Questions\n"
        "here = Questions(Path(sys.argv[1])).announce(); print('open', flush=True); time.sleep(60)"
    )
    app = subprocess.Popen([sys.executable, "-c", code, str(home / "state")], stdout=subprocess.PIPE)
    assert app.stdout is not None
    app.stdout.readline()
    assert questions.is_anyone_present()
    changes: list[float] = []
    end = questions.subscribe(lambda: changes.append(time.monotonic()))
    asked = questions.open(Question("a.b", {}, "agent", "a", "Why."), wait=0.2)
    assert asked.poll() is None
    eventually(lambda: changes)
    app.kill()
    app.wait()
    app.stdout.close()
    answer = eventually(asked.poll)
    assert answer.kind == "reject"
    assert "No Pegboard app is open" in answer.reason
    assert not questions.is_anyone_present()
    end()


@pytest.mark.promise("WAT-4")
def test_the_wait_for_an_app_starts_again_when_the_last_one_closes(
    questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("pegboard.brake.questions.time", SimpleNamespace(monotonic=lambda: now, time=time.time))
    asked = questions.open(Question("a.b", {}, "agent", "a", "Why."), wait=30)
    for seconds in (0, 20):
        now += seconds
        assert asked.poll() is None
    with questions.announce():
        now += 20
        assert asked.poll() is None
    for seconds in (1, 29):
        now += seconds
        assert asked.poll() is None
    now += 1
    answer = asked.poll()
    assert answer is not None
    assert (answer.kind, answer.by_person) == ("reject", False)


@pytest.mark.promise("WAT-4")
def test_pending_questions_are_listed_the_oldest_first(questions: Questions) -> None:
    ages = (3.0, 1.0, 5.0, 2.0, 4.0)
    with questions.announce():
        asked = [questions.open(Question(f"a.{age:.0f}", {}, "agent", "a", "Why.", asked_at=age)) for age in ages]
        assert [one.tool for one in questions.pending()] == ["a.1", "a.2", "a.3", "a.4", "a.5"]
        questions.answer(asked[1].question.id, Answer("reject", "No."))
        assert [one.tool for one in questions.pending()] == ["a.2", "a.3", "a.4", "a.5"]
        assert [questions.is_pending(one.question) for one in asked] == [True, False, True, True, True]
    for one in asked:
        one.close("The test ends.")
    assert questions.pending() == ()


@pytest.mark.promise("WAT-4")
def test_a_paused_call_waits_without_an_app_until_calls_are_resumed_or_stopped(questions: Questions) -> None:
    for act, kind, by in ((questions.brake.resume, "approve", "pegboard resume"), (questions.brake.stop, "reject", "")):
        questions.brake.pause()
        asked = questions.open(Question("a.b", {}, "agent", "a", "Why.", kind="paused"))
        assert [asked.poll(), asked.poll()] == [None, None]
        act()
        answer = asked.poll()
        assert answer is not None
        assert (answer.kind, answer.by_person) == (kind, False)
        assert answer.by == (by or "pegboard stop")
    questions.brake.resume()


@pytest.mark.promise("WAT-4", "SEC-4")
def test_a_pause_that_cannot_be_read_is_a_pause(questions: Questions) -> None:
    questions.brake.stop()
    assert questions.brake.state == "stopped"
    for content in ("{", "[]", '{"state": "running"}', '{"state": "stopped", "since": "yesterday"}', "[" * 100_000):
        questions.brake.file.write_text(content)
        assert questions.brake.read() == ("paused", None), content[:40]
    questions.brake.resume()
    assert questions.brake.read() == ("running", None)


@pytest.mark.promise("WAT-4")
def test_an_app_notices_that_the_process_that_asked_was_killed(home: Path, questions: Questions) -> None:
    code = (
        "import sys, time; from pathlib import Path; from pegboard.brake import Question, Questions\n"
        "Questions(Path(sys.argv[1])).open(Question('a.b', {}, 'agent', 'a', 'Why.'))\n"
        "print('asked', flush=True); time.sleep(60)"
    )
    asking = subprocess.Popen([sys.executable, "-c", code, str(home / "state")], stdout=subprocess.PIPE)
    assert asking.stdout is not None
    asking.stdout.readline()
    noticed = threading.Event()
    end = questions.subscribe(noticed.set, 0.01)
    asking.kill()
    asking.communicate()
    assert noticed.wait(30)
    assert questions.pending() == ()
    end()
