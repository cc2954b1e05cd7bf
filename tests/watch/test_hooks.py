"""`pegboard watch --hook`: the tools of agents themselves, which call no MCP server."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import commands
import pytest
from hooked import Hooked, answer_of
from hypothesis import given
from hypothesis import strategies as st
from processes import command_of
from watched import PROGRAM, SECONDS, eventually, recorded, records, result_of

from pegboard.brake import Answer, Question, Questions
from pegboard.data.json_edit import with_value, without
from pegboard.data.json_spans import spans
from pegboard.history.notify import SocketAddresses
from pegboard.models import Agent, CallRecord, JsonObject
from pegboard.watch.hooks.hook import QWEN_SECONDS

PRE = "PreToolUse"


@pytest.fixture
def agent() -> Iterator[Hooked]:
    """Yield a session of an agent, which ends with the test."""
    session = Hooked()
    yield session
    session.end()


@pytest.fixture
def questions(home: Path) -> Questions:
    """Return the pending calls."""
    return Questions(home / "state")


def write_rules(home: Path, text: str) -> None:
    """Replace the rules."""
    (home / "approvals.toml").write_text(text)


def waiting(questions: Questions) -> Question:
    """Return the one pending call."""
    (question,) = eventually(questions.pending)
    return question  # type: ignore[no-any-return]


def running(count: int) -> list[Any]:
    """Return the running calls, as soon as there are so many."""

    def found() -> list[Any] | None:
        calls = json.loads(commands.pegboard("history", "list", "--json").stdout)
        found = [call for call in calls if call["state"] == "running"]
        return found if len(found) == count else None

    return eventually(found)  # type: ignore[no-any-return]


def finished(count: int) -> dict[str, CallRecord]:
    """Return the finished calls by name, as soon as there are so many."""
    eventually(lambda: len(records()) == count)
    return {record.tool: record for record in records()}


def detail(record: CallRecord) -> str | None:
    """Return the detail of the error of a call."""
    return record.error.detail if record.error else None


def decision(output: Any) -> dict[str, Any]:
    """Return the decision in the output of a hook before a call."""
    assert set(output) == {"hookSpecificOutput"}
    assert output["hookSpecificOutput"].pop("hookEventName") == PRE
    return output["hookSpecificOutput"]  # type: ignore[no-any-return]


def observers(home: Path) -> list[int]:
    """Return the processes that observe sessions of this test."""
    return [
        int(entry)
        for entry in os.listdir("/proc")  # noqa: PTH208 - names suffice
        if entry.isdecimal() and os.fsencode(home / "state/hooks") in command_of(int(entry))
    ]


@pytest.mark.promise("WAT-1", "WAT-3", "WAT-5")
def test_a_call_of_an_agents_own_tool_is_running_and_then_done(agent: Hooked) -> None:
    assert agent.before("Bash", command="ls", timeout=5) == (0, None, "")
    (call,) = running(1)
    assert (call["tool"], call["source"], call["agent"]) == ("claude-code.Bash", "watch", "claude-code")
    assert call["args"] == {"command": "ls", "timeout": 5}
    response = {"stdout": "a\nb", "stderr": "", "interrupted": False}
    assert agent.after("Bash", response, command="ls", timeout=5) == (0, None, "")
    record = finished(1)["claude-code.Bash"]
    assert (record.id, record.ok, record.args) == (call["id"], True, call["args"])
    assert record.duration_ms > 0
    result = result_of(record)
    assert (result.data, result.meta.worker) == (response, "claude-code")
    again = commands.pegboard("history", "rerun", record.id)
    assert (again.returncode, "a tool of claude-code itself, which Pegboard can't run" in again.stderr) == (1, True)
    by = Agent.of_session(record.session)
    assert by is not None
    assert (by.name, by.process, by.key) == ("claude-code", os.getpid(), "s-1")


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize(
    ("event", "fields", "ok", "shown"),
    [
        ("PostToolUse", {"tool_response": "two\nlines"}, True, "two\nlines"),
        ("PostToolUse", {"tool_response": [{"type": "text", "text": "from MCP"}]}, True, "from MCP"),
        ("PostToolUse", {"tool_response": {"content": [{"type": "text", "text": "no"}], "isError": True}}, False, "no"),
        ("PostToolUse", {"tool_response": {"content": "a file"}}, True, {"content": "a file"}),
        ("PostToolUse", {}, True, None),
        ("PostToolUseFailure", {"error": "Exit code 3", "is_interrupt": False}, False, "Exit code 3"),
    ],
    ids=["text", "content", "an error of a server", "an object", "nothing", "a failure"],
)  # fmt: skip
def test_every_form_of_a_result_is_recorded(
    agent: Hooked, event: str, fields: dict[str, Any], ok: bool, shown: Any
) -> None:
    agent.before("Tool", x=1)
    agent.run(event, tool_name="Tool", tool_input={"x": 1}, tool_use_id="t-1", **fields)
    record = finished(1)["claude-code.Tool"]
    result = result_of(record)
    assert (record.ok, result.data if ok else result.error and result.error.message) == (ok, shown)


@pytest.mark.promise("WAT-1")
def test_calls_without_a_result_are_interrupted_by_the_next_turn_and_those_of_subagents_are_not(
    agent: Hooked,
) -> None:
    agent.before("Bash", "t-1", command="rm x")
    agent.run(PRE, tool_name="Read", tool_input={}, tool_use_id="t-2", agent_id="sub", agent_type="Explore")
    agent.run("UserPromptSubmit", prompt="Never mind.")
    record = finished(1)["claude-code.Bash"]
    error = result_of(record).error
    assert error is not None
    assert (error.detail, "reported no result" in error.message) == ("interrupted", True)
    agent.run("SubagentStop", agent_id="sub")
    assert detail(finished(2)["claude-code.Read"]) == "interrupted"


@pytest.mark.promise("WAT-1")
def test_a_result_without_its_call_is_one_call_with_its_duration(agent: Hooked) -> None:
    agent.run(
        "PostToolUse", tool_name="Bash", tool_input={"a": 1}, tool_use_id="t", tool_response="ok", duration_ms=500
    )
    record = finished(1)["claude-code.Bash"]
    assert record.args == {"a": 1}
    assert record.duration_ms == pytest.approx(500, abs=1)


@pytest.mark.promise("WAT-1")
def test_the_duration_is_that_of_the_tool_and_a_call_that_the_user_interrupts_is_cancelled(agent: Hooked) -> None:
    agent.before("Bash", "t-1", command="ls")
    result = {"tool_response": "", "duration_ms": 50_000}
    agent.run("PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t-1", **result)
    agent.before("Read", "t-2")
    failure = {"error": "[Request interrupted by user for tool use]", "is_interrupt": True}
    agent.run("PostToolUseFailure", tool_name="Read", tool_input={}, tool_use_id="t-2", **failure)
    calls = finished(2)
    assert calls["claude-code.Bash"].duration_ms == pytest.approx(50_000, abs=1)
    assert detail(calls["claude-code.Read"]) == "cancelled"


@pytest.mark.promise("WAT-1")
def test_answers_to_calls_without_an_own_event_are_recorded_and_no_call_twice(agent: Hooked) -> None:
    agent.before("Read", "t-1", path="a")
    agent.after("Read", "text", "t-1", path="a")
    agent.before("Bash", "t-2", command="rm a")
    said = [("Read", "t-1", {"path": "a"}, "text"), ("Bash", "t-2", {"command": "rm a"}, "The user doesn't want that.")]
    said += [("Bsh", "t-3", {}, "<tool_use_error>Error: No such tool available: Bsh</tool_use_error>")]
    names = ("tool_name", "tool_use_id", "tool_input", "tool_response")
    agent.run("PostToolBatch", tool_calls=[dict(zip(names, call, strict=True)) for call in said])
    calls = finished(3)
    assert {name: (one.ok, one.error and one.error.message) for name, one in calls.items()} == {
        "claude-code.Read": (True, None),
        "claude-code.Bash": (False, "The user doesn't want that."),
        "claude-code.Bsh": (False, "Error: No such tool available: Bsh"),
    }


@pytest.mark.promise("WAT-1")
def test_a_result_that_comes_after_its_turn_replaces_the_interruption(agent: Hooked) -> None:
    agent.before("Bash", "t-1", command="sleep 60 &")
    agent.run("Stop")
    interrupted = finished(1)["claude-code.Bash"]
    agent.after("Bash", "later", "t-1", command="sleep 60 &")
    record = eventually(lambda: (found := finished(1)["claude-code.Bash"]).ok and found)
    assert (record.id, result_of(record).data) == (interrupted.id, "later")


@pytest.mark.promise("WAT-1")
def test_equal_calls_without_ids_have_a_result_each() -> None:
    agent = Hooked(agent="gemini")
    call = {"tool_name": "run_shell_command", "tool_input": {"command": "date"}}
    assert agent.run("BeforeTool", **call) == agent.run("BeforeTool", **call) == (0, None, "")
    agent.run("AfterTool", **call, tool_response={"llmContent": "Monday", "returnDisplay": "Monday"})
    agent.run("AfterTool", **call, tool_response={"llmContent": "", "error": {"message": "No such command."}})
    agent.end()
    found = recorded(2)
    assert sorted(one.ok for one in found) == [False, True]
    assert {one.tool for one in found} == {"gemini.run_shell_command"}


@pytest.mark.promise("WAT-5")
def test_a_session_has_one_observer_which_ends_with_it(agent: Hooked, home: Path) -> None:
    hooks = [agent.start(PRE, tool_name="Read", tool_input={"n": n}, tool_use_id=f"t-{n}") for n in range(8)]
    assert [answer_of(hook).code for hook in hooks] == [0] * 8
    assert len(observers(home)) == 1
    running(8)
    assert agent.end().code == 0
    eventually(lambda: not observers(home))
    assert [detail(one) for one in records()] == ["interrupted"] * 8
    assert [file.name for file in (home / "state/hooks").iterdir()] == []
    assert agent.before("Read", "next").code == 0
    running(1)


@pytest.mark.promise("WAT-1")
def test_the_observer_ends_with_a_killed_agent(home: Path) -> None:
    event = {"hook_event_name": PRE, "session_id": "s", "tool_name": "Bash", "tool_input": {}, "tool_use_id": "t"}
    code = (
        "import subprocess, sys, time; subprocess.run(sys.argv[1], shell=True, input=sys.argv[2].encode(), check=True);"
        " print('done', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code, f"'{PROGRAM}' watch --hook claude-code", json.dumps(event)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        running(1)
        process.kill()
    eventually(lambda: not observers(home))
    assert detail(finished(1)["claude-code.Bash"]) == "interrupted"


@pytest.mark.promise("WAT-1")
def test_a_script_that_the_agent_runs_as_its_hook_is_not_taken_for_the_agent(agent: Hooked, home: Path) -> None:
    script = home / "my-hook"
    script.write_text(f"#!/bin/bash\n'{PROGRAM}' watch --hook claude-code\nexit 0\n")
    script.chmod(0o755)
    event = {**agent.common, "hook_event_name": PRE, "tool_name": "Bash", "tool_use_id": "t", "tool_input": {}}
    subprocess.run([str(script)], input=json.dumps(event).encode(), check=True, timeout=SECONDS)
    (call,) = running(1)
    by = Agent.of_session(call["session"])
    assert by is not None
    assert by.process == os.getpid()


@pytest.mark.promise("WAT-1")
def test_the_shell_of_a_hook_is_not_taken_for_the_agent_without_proc_too(agent: Hooked, home: Path) -> None:
    code = "import pegboard.watch.hooks.hook as hook; hook._PROC = '/nowhere'; hook.run('claude-code')"  # as on macOS
    event = {**agent.common, "hook_event_name": PRE, "tool_name": "Bash", "tool_use_id": "t", "tool_input": {}}
    command = ["bash", "-c", f'"{sys.executable}" -c "{code}"; true']
    subprocess.run(command, input=json.dumps(event).encode(), check=True, timeout=SECONDS)
    (call,) = running(1)
    by = Agent.of_session(call["session"])
    assert by is not None
    assert by.process == os.getpid()


@pytest.mark.promise("WAT-1")
def test_the_observer_of_an_agent_that_has_already_ended_ends(home: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    code = (
        "import sys, pegboard.watch.hooks.hook as hook; hook.agent_process = lambda: int(sys.argv[1]);"
        " hook.run('claude-code')"
    )
    event = {"session_id": "s", "hook_event_name": PRE, "tool_name": "Bash", "tool_use_id": "t", "tool_input": {}}
    command = [sys.executable, "-c", code, str(ended.pid)]
    subprocess.run(command, input=json.dumps(event).encode(), check=True, timeout=SECONDS)
    assert detail(finished(1)["claude-code.Bash"]) == "interrupted"
    eventually(lambda: not observers(home))


@pytest.mark.promise("STO-2")
def test_secrets_are_redacted(agent: Hooked, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "tok-4711-abcdef-secret")
    agent.before("Bash", command="deploy tok-4711-abcdef-secret")
    agent.after("Bash", "used tok-4711-abcdef-secret", command="deploy tok-4711-abcdef-secret")
    record = finished(1)["claude-code.Bash"]
    assert "4711" not in json.dumps([record.args, result_of(record).data])


def add_line(file: Path, **line: Any) -> None:
    """Add a line to a transcript."""
    with file.open("a") as opened:
        opened.write(json.dumps(line) + "\n")


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize("mark", [{"toolDenialKind": "interrupted"}, {"toolUseResult": "User rejected tool use"}])
def test_a_call_that_the_user_of_claude_code_interrupts_ends_and_other_calls_do_not(
    home: Path, mark: dict[str, str]
) -> None:
    file = home / "transcript.jsonl"
    result = {"type": "tool_result", "is_error": True}
    add_line(file, type="user", message={"content": [{**result, "tool_use_id": "t-2"}]}, **mark)  # Of an older session.
    agent = Hooked(transcript_path=str(file))
    agent.before("Bash", "t-1", command="make")
    agent.before("Read", "t-2")
    add_line(file, type="user", message={"content": [{**result, "tool_use_id": "t-2"}]}, toolUseResult="Error: x")
    add_line(file, type="user", message={"content": [{**result, "tool_use_id": "t-1"}]}, **mark)
    assert detail(finished(1)["claude-code.Bash"]) == "cancelled"
    running(1)
    agent.after("Read", "text", "t-2")
    agent.end()
    assert sorted(one.ok for one in records()) == [False, True]


@pytest.mark.promise("WAT-1")
def test_a_prompt_that_claude_code_queues_ends_no_call(home: Path) -> None:
    file = home / "transcript.jsonl"
    file.touch()
    agent = Hooked(transcript_path=str(file))
    agent.before("Bash", "t-1", command="make")
    agent.run("UserPromptSubmit", prompt="Then test it.")
    running(1)
    agent.run("Stop")
    assert detail(finished(1)["claude-code.Bash"]) == "interrupted"
    agent.end()


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize("folder", [".copilot", "elsewhere"])
def test_a_turn_that_the_user_of_copilot_aborts_ends_its_calls(
    home: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if folder == "elsewhere":
        monkeypatch.setenv("COPILOT_HOME", str(home / folder))
    file = home / folder / "session-state/s-1/events.jsonl"
    file.parent.mkdir(parents=True)
    file.touch()
    copilot = Hooked(agent="copilot", sessionId="s-1")
    del copilot.common["session_id"]
    copilot.run(None, toolName="bash", toolArgs={"command": "make"})
    add_line(file, type="abort", data={"reason": "user_abort"})
    assert detail(finished(1)["copilot.bash"]) == "cancelled"
    copilot.run(None, reason="complete")


@pytest.mark.promise("SEC-4", "WAT-1")
def test_a_transcript_that_is_written_anew_or_becomes_a_pipe_stops_no_call(home: Path) -> None:
    file = home / "transcript.jsonl"
    file.write_text('{"type": "user"}\n' * 100)
    agent = Hooked(transcript_path=str(file))
    agent.before("Bash", "t-1", command="make")
    file.write_text("")
    agent.after("Bash", "done", "t-1")
    agent.before("Read", "t-2")
    result = {"type": "tool_result", "tool_use_id": "t-2"}
    add_line(file, message={"content": [result]}, toolDenialKind="user-rejected")
    eventually(lambda: [one.ok for one in records()] == [False, True])
    file.unlink()
    os.mkfifo(file)
    agent.before("Read", "t-3")
    agent.after("Read", "text", "t-3")
    agent.end()
    assert sorted(one.ok for one in recorded(3)) == [False, True, True]


@pytest.mark.promise("SEC-4")
def test_only_a_file_is_read_as_a_transcript(home: Path) -> None:
    pipe = home / "pipe"
    os.mkfifo(pipe)
    for path in (str(pipe), str(home), "/dev/zero", "a\0b", "", 7):
        agent = Hooked(transcript_path=path)
        agent.before("Bash", "t-1")
        agent.after("Bash", "done", "t-1")
    Hooked().end()
    assert [one.ok for one in recorded(6)] == [True] * 6


def rows(*lines: str) -> list[list[dict[str, Any]]]:
    """Return lines as Gemini CLI displays them in its terminal."""
    return [[{"text": line.ljust(20), "bold": False}] for line in lines]


def of_gemini(text: str, display: Any) -> dict[str, Any]:
    """Return the response of a shell command of Gemini CLI."""
    return {"llmContent": f"<untrusted_context>\n{text}\n</untrusted_context>", "returnDisplay": display}


FAILED = "Exit Code: 3\nProcess Group PGID: 7"


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize(
    ("text", "display", "state"),
    [
        ("Output: boo\nProcess Group PGID: 7", rows("boo", " "), "ok"),
        (f"Output: boo\n{FAILED}", rows("boo", " "), "failed"),
        (f"Output: boo\n{FAILED}", "boo", "failed"),
        (f"Output: (empty)\n{FAILED}", "Command exited with code: 3", "failed"),
        ("Output: (empty)\nSignal: 9\nProcess Group PGID: 7", rows(" "), "failed"),
        (f"Output: a\n{FAILED}", rows("a", "Exit Code: 3", " "), "ok"),
        (f"Output: a\n{FAILED}", "a\nExit Code: 3\n", "ok"),
        (f"Output: (empty)\n{FAILED}", rows(*" " * 2000), "ok"),
        (f"Output: a\nExit Code: 3\nExit Code: 3\n{FAILED[13:]}", f"a\n{FAILED}", "ok"),
        (f"Output: a\n{FAILED}", f"Output: a\n{FAILED}", "ok"),
        (f"Output: a\n{FAILED}", None, "ok"),
        ("Output: Command was cancelled by user before it could complete.", "x", "ok"),
        ("Command was cancelled by user before it could complete. There was no output.", "x", "cancelled"),
        ("Command was automatically cancelled because it exceeded the timeout of 5.0 minutes.", "x", "failed"),
        ("Command moved to background (PID: 7).", "x", "ok"),
    ],
)  # fmt: skip
def test_a_command_of_gemini_failed_only_if_gemini_says_so_and_not_its_output(
    text: str, display: Any, state: str
) -> None:
    gemini = Hooked(agent="gemini")
    call = {"tool_name": "run_shell_command", "tool_input": {"command": "make"}}
    gemini.run("BeforeTool", **call)
    gemini.run("AfterTool", **call, tool_response=of_gemini(text, display))
    gemini.end()
    record = finished(1)["gemini.run_shell_command"]
    assert ("ok" if record.ok else "cancelled" if detail(record) == "cancelled" else "failed") == state
    if state != "cancelled" and display is not None:
        result = result_of(record)
        assert (result.data if record.ok else result.error and result.error.message) == text


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize(
    ("tool", "text", "ok"),
    [
        ("bash", "boo\n<shellId: 1 completed with exit code 3>", False),
        ("bash", "\n<shellId: 1 completed with exit code -1>", False),
        ("bash", "<shellId: 1 completed with exit code 3>\n<shellId: 1 completed with exit code 0>", True),
        ("bash", "<shellId: 1 completed with exit code 3>\n<command with shellId: 1 is still running>", True),
        ("view", "<shellId: 1 completed with exit code 3>", True),
    ],
)
def test_a_command_of_copilot_failed_only_if_the_last_line_says_so(tool: str, text: str, ok: bool) -> None:
    copilot = Hooked(agent="copilot", sessionId="s-1")
    del copilot.common["session_id"]
    call = {"toolName": tool, "toolArgs": {"command": "make"}}
    copilot.run(None, **call)
    copilot.run(None, **call, toolResult={"resultType": "success", "textResultForLlm": text})
    copilot.run(None, reason="complete")
    assert finished(1)[f"copilot.{tool}"].ok == ok


# Decisions


@pytest.mark.promise("WAT-4")
def test_a_deny_rule_blocks_a_call_and_other_calls_are_left_to_the_agent(agent: Hooked, home: Path) -> None:
    write_rules(home, '[[rule]]\ndeny = "claude-code.Bash"\n[rule.where]\ncommand = "rm *"\n')
    assert agent.before("Bash", "t-1", command="ls").output is None
    found = decision(agent.before("Bash", "t-2", command="rm -r /").output)
    reason = "claude-code.Bash was not called. A rule of approvals.toml denies claude-code.Bash."
    assert found == {"permissionDecision": "deny", "permissionDecisionReason": reason}
    assert detail(finished(1)["claude-code.Bash"]) == "denied"


@pytest.mark.promise("SEC-4", "WAT-4")
def test_a_rejection_says_that_a_rule_applies_because_the_call_omits_its_argument(agent: Hooked, home: Path) -> None:
    write_rules(home, '[[rule]]\ndeny = "claude-code.*"\nwhere = { command = "rm *" }\n')
    denied = agent.before("Read", file_path="/x").output["hookSpecificOutput"]["permissionDecisionReason"]
    assert denied.endswith("denies claude-code.Read. The call omits command, whose default is unknown.")
    denied = agent.before("Bash", "t-2", command="rm x").output["hookSpecificOutput"]["permissionDecisionReason"]
    assert denied.endswith("denies claude-code.Bash.")
    assert agent.before("Bash", "t-3", command="ls").output is None
    agent.end()


@pytest.mark.promise("WAT-4", "SEC-4")
def test_rules_that_cannot_be_read_block_every_call(agent: Hooked, home: Path) -> None:
    write_rules(home, "[[rule]\n")
    found = decision(agent.before("Read").output)
    assert found["permissionDecision"] == "deny"
    assert "The rules can't be read" in found["permissionDecisionReason"]


@pytest.mark.promise("WAT-4")
def test_without_an_open_app_a_call_that_asks_is_rejected(agent: Hooked, home: Path) -> None:
    write_rules(home, '[[rule]]\nask = "claude-code.*"\n')
    found = decision(agent.before("Bash").output)
    assert found["permissionDecision"] == "deny"
    assert "No Pegboard app is open" in found["permissionDecisionReason"]


@pytest.mark.promise("WAT-4")
def test_a_person_approves_edits_and_rejects(agent: Hooked, home: Path, questions: Questions) -> None:
    write_rules(home, '[[rule]]\nask = "claude-code.Bash"\n')
    with questions.announce():
        call = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
        hook = agent.start(PRE, **call, tool_use_id="t-1")
        question = waiting(questions)
        assert (question.tool, question.args, question.server) == ("claude-code.Bash", {"command": "ls"}, "")
        assert question.agent == f"claude-code (process {os.getpid()})"
        assert agent.before("Read", "other").output is None  # Other calls don't wait.
        questions.answer(question.id, Answer("approve"))
        approved = {"permissionDecision": "allow", "permissionDecisionReason": "Approved in Pegboard."}
        assert decision(answer_of(hook).output) == approved

        hook = agent.start(PRE, **call, tool_use_id="t-2")
        questions.answer(waiting(questions).id, Answer("approve", args={"command": "ls -l"}))
        assert decision(answer_of(hook).output) == {
            **approved,
            "updatedInput": {"command": "ls -l"},
            "additionalContext": 'The user edited the arguments. The call ran with {"command": "ls -l"}.',
        }
        agent.after("Bash", "total 0", "t-2", command="ls -l")

        hook = agent.start(PRE, **call, tool_use_id="t-3")
        assert commands.pegboard("approve", waiting(questions).id, "--no", "not today").returncode == 0
        found = decision(answer_of(hook).output)
        assert found["permissionDecision"] == "deny"
        assert found["permissionDecisionReason"].endswith("The user rejected this call. They said: not today")
    calls = recorded(2)
    assert {json.dumps(one.args): one.ok for one in calls} == {'{"command": "ls -l"}': True, '{"command": "ls"}': False}


@pytest.mark.promise("WAT-4")
def test_codex_gets_only_edits_because_it_rejects_other_approvals(home: Path, questions: Questions) -> None:
    write_rules(home, '[[rule]]\nask = "codex.*"\n')
    codex = Hooked(agent="codex", turn_id="turn-1")
    call = {"tool_name": "Bash", "tool_input": {"command": "make"}}
    with questions.announce():
        hook = codex.start(PRE, **call, tool_use_id="t-1")
        questions.answer(waiting(questions).id, Answer("approve"))
        assert answer_of(hook) == (0, None, "")
        hook = codex.start(PRE, **call, tool_use_id="t-2")
        questions.answer(waiting(questions).id, Answer("approve", args={"command": "make test"}))
        found = decision(answer_of(hook).output)
    codex.end()
    assert (found["permissionDecision"], found["updatedInput"]) == ("allow", {"command": "make test"})


@pytest.mark.promise("WAT-4")
def test_gemini_gets_decisions_in_its_own_form(home: Path, questions: Questions) -> None:
    write_rules(home, '[[rule]]\ndeny = "gemini.write_file"\n[[rule]]\nask = "gemini.run_*"\n')
    gemini = Hooked(agent="gemini")
    denied = gemini.run("BeforeTool", tool_name="write_file", tool_input={"file_path": "x"}).output
    assert denied["decision"] == "deny"
    assert "A rule of approvals.toml denies gemini.write_file" in denied["reason"]
    call = {"tool_name": "run_shell_command", "tool_input": {"command": "date", "dir": "/"}}
    with questions.announce():
        hook = gemini.start("BeforeTool", **call)
        questions.answer(waiting(questions).id, Answer("approve"))
        assert answer_of(hook).output is None
        gemini.run("AfterTool", **call, tool_response={"llmContent": "Monday"})
        hook = gemini.start("BeforeTool", **call)
        edited: JsonObject = {"command": "date -u", "dir": "/"}
        questions.answer(waiting(questions).id, Answer("approve", args=edited))
        assert answer_of(hook).output == {"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": edited}}
        gemini.run("AfterTool", **{**call, "tool_input": edited}, tool_response={"llmContent": "Tuesday"})
        hook = gemini.start("BeforeTool", **call)
        questions.answer(waiting(questions).id, Answer("approve", args={"command": "date"}))
        reason = "The edit removes dir, but hooks of Gemini CLI can only change arguments."
        assert answer_of(hook).output == {"decision": "deny", "reason": reason}
    gemini.end()
    calls = recorded(4)
    assert [(one.ok, one.args.get("command")) for one in reversed(calls)] == [
        (False, None),
        (True, "date"),
        (True, "date -u"),
        (False, "date"),
    ]
    assert detail(calls[0]) != "interrupted"


@pytest.mark.promise("WAT-1", "WAT-4")
def test_copilot_leaves_out_the_names_of_its_events(home: Path, questions: Questions) -> None:
    copilot = Hooked(agent="copilot", session_id=None, sessionId="s-1")
    del copilot.common["session_id"]

    def run(**fields: Any) -> Any:
        return copilot.run(None, **fields).output

    ran = {"toolName": "bash", "toolArgs": {"command": "ls"}}
    assert run(**ran) is None
    run(**ran, toolResult={"resultType": "success", "textResultForLlm": "a"})
    run(toolName="view", toolArgs={"path": "x"})
    run(toolName="view", toolArgs={"path": "x"}, error="Path does not exist")
    run(toolName="bash", toolArgs={"command": "sleep 9"})
    run(stopReason="end_turn")
    assert [(one.tool, one.ok, one.error and one.error.message[:20]) for one in reversed(recorded(3))] == [
        ("copilot.bash", True, None),
        ("copilot.view", False, "Path does not exist"),
        ("copilot.bash", False, "The agent reported n"),
    ]
    rules = '[[rule]]\ndeny = "copilot.bash"\nwhere = { command = "rm *" }\n[[rule]]\nask = "copilot.view"\n'
    write_rules(home, rules)
    denied = run(toolName="bash", toolArgs={"command": "rm x"}, toolResult=None, error=None)
    assert denied["permissionDecision"] == "deny"
    assert "A rule of approvals.toml denies copilot.bash" in denied["permissionDecisionReason"]
    with questions.announce():
        edits: tuple[JsonObject | None, ...] = ({"path": "y"}, None)
        for edited in edits:
            hook = copilot.start(None, toolName="view", toolArgs={"path": "x"})
            questions.answer(waiting(questions).id, Answer("approve", args=edited))
            expected = {} if edited is None else {"modifiedArgs": edited}
            assert answer_of(hook).output == {"permissionDecision": "allow", **expected}
    run(reason="complete")
    eventually(lambda: not observers(home))
    (home / "approvals.toml").unlink()
    (home / "state/hooks").rmdir()
    (home / "state/hooks").write_text("not a folder")
    assert copilot.run(None, **ran).code == 0  # Copilot would block the call at any other.
    (home / "state/hooks").unlink()


@pytest.mark.promise("WAT-1")
def test_a_subagent_of_copilot_belongs_to_the_session_of_its_agent_and_ends_only_its_own_calls(home: Path) -> None:
    copilot = Hooked(agent="copilot", sessionId="s-1")
    del copilot.common["session_id"]
    subagent = {"sessionId": "sub", "agentId": "sub", "agentType": "general-purpose", "parentAgentId": "s-1"}
    copilot.run(None, toolName="task", toolArgs={"prompt": "look"})
    copilot.run(None, toolName="bash", toolArgs={"command": "ls"}, **subagent)
    assert len({call["session"] for call in running(2)}) == 1
    assert len(observers(home)) == 1
    copilot.run(None, stopReason="end_turn", **subagent)
    assert detail(finished(1)["copilot.bash"]) == "interrupted"
    assert [call["tool"] for call in running(1)] == ["copilot.task"]
    copilot.run(None, reason="complete")
    eventually(lambda: not observers(home))


@pytest.mark.promise("WAT-4")
def test_an_edit_that_an_agent_would_ignore_rejects_the_call(home: Path, questions: Questions) -> None:
    write_rules(home, '[[rule]]\nask = "qwen.*"\n')
    qwen = Hooked(agent="qwen", tool_call_id="call_0")
    with questions.announce():
        call = {"tool_name": "run_shell_command", "tool_input": {"command": "ls"}}
        hook = qwen.start(PRE, **call, tool_use_id="t-0")
        questions.answer(waiting(questions).id, Answer("approve", args={"command": "ls"}))
        assert answer_of(hook) == (0, None, "")  # Nothing was changed in the editor.
        qwen.run("PostToolUse", **call, tool_use_id="t-0", tool_response="a")
        hook = qwen.start(PRE, **call, tool_use_id="t-1")
        questions.answer(waiting(questions).id, Answer("approve", args={"command": "ls -l"}))
        found = decision(answer_of(hook).output)
    qwen.end()
    reason = "Hooks of Qwen Code can't change arguments."
    assert found == {"permissionDecision": "deny", "permissionDecisionReason": reason}
    assert [one.ok for one in recorded(2)] == [False, True]


@pytest.mark.promise("WAT-4")
def test_the_command_line_refuses_an_edit_that_an_agent_would_ignore(home: Path, questions: Questions) -> None:
    write_rules(home, '[[rule]]\nask = "qwen.*"\n')
    qwen = Hooked(agent="qwen", tool_call_id="call_0")
    with questions.announce():
        hook = qwen.start(PRE, tool_name="run_shell_command", tool_input={"command": "ls"}, tool_use_id="t-0")
        call = waiting(questions).id
        refused = commands.pegboard("approve", call, "--yes", "--args", '{"command": "ls -l"}')
        assert refused.returncode == 2
        assert "not answered because hooks of Qwen Code can't change arguments" in refused.stderr
        assert waiting(questions).id == call
        assert commands.pegboard("approve", call, "--yes").returncode == 0
        assert answer_of(hook) == (0, None, "")
    qwen.end()


@pytest.mark.promise("WAT-1")
def test_the_arguments_of_a_call_are_those_that_the_agent_used_in_the_end(agent: Hooked) -> None:
    agent.before("Bash", command="ls")
    agent.after("Bash", "a", command="ls -l")
    assert finished(1)["claude-code.Bash"].args == {"command": "ls -l"}


@pytest.mark.promise("WAT-4")
def test_calls_wait_during_a_pause_and_are_then_left_to_the_agent(agent: Hooked, questions: Questions) -> None:
    questions.brake.pause()
    hook = agent.start(PRE, tool_name="Bash", tool_input={}, tool_use_id="t-1")
    assert waiting(questions).kind == "paused"
    questions.brake.resume()
    assert answer_of(hook) == (0, None, "")
    questions.brake.stop()
    assert decision(agent.before("Bash", "t-2").output)["permissionDecision"] == "deny"


@pytest.mark.promise("WAT-4")
def test_a_question_is_closed_when_the_agent_no_longer_waits(agent: Hooked, home: Path, questions: Questions) -> None:
    write_rules(home, '[[rule]]\nask = "claude-code.*"\n')
    with questions.announce():
        hook = agent.start(PRE, tool_name="Bash", tool_input={}, tool_use_id="t-1")
        waiting(questions)
        hook.kill()
        hook.communicate(timeout=SECONDS)
        eventually(lambda: not questions.pending())
    assert detail(finished(1)["claude-code.Bash"]) == "cancelled"


@pytest.mark.promise("WAT-4")
@pytest.mark.parametrize(
    ("name", "event"), [("claude-code", "SessionEnd"), ("gemini", "BeforeAgent")], ids=["the session", "the turn"]
)
def test_a_question_is_closed_when_the_agent_ends_what_it_belongs_to_but_not_the_hook(
    home: Path, questions: Questions, name: str, event: str
) -> None:
    write_rules(home, f'[[rule]]\nask = "{name}.*"\n')
    agent = Hooked(agent=name)
    with questions.announce():
        before = "BeforeTool" if name == "gemini" else PRE
        hook = agent.start(before, tool_name="Bash", tool_input={}, tool_use_id="t-1")
        waiting(questions)
        assert agent.run(event).code == 0
        assert "The agent no longer waits for this call." in json.dumps(answer_of(hook).output)
        assert not questions.pending()
    agent.end()
    assert detail(finished(1)[f"{name}.Bash"]) == "cancelled"


@pytest.mark.promise("WAT-1", "WAT-4")
def test_the_observer_continues_if_a_waiting_hook_ends_in_the_moment_of_the_next_prompt(
    home: Path, questions: Questions
) -> None:
    write_rules(home, '[[rule]]\nask = "gemini.*"\n')
    agent = Hooked(agent="gemini")
    with questions.announce(), socket.socket(socket.AF_UNIX) as link:
        hook = agent.start("BeforeTool", tool_name="Bash", tool_input={}, tool_use_id="t-1")
        waiting(questions)
        (observer,) = observers(home)
        (file,) = (home / "state/hooks").glob("*.sock")
        descriptors = Path(f"/proc/{observer}/fd")
        before = len([*descriptors.iterdir()])
        with SocketAddresses(file.parent) as addresses:
            link.connect(addresses.of(file.name))
        eventually(lambda: len([*descriptors.iterdir()]) > before)
        os.kill(observer, signal.SIGSTOP)
        try:
            event = json.dumps({**agent.common, "hook_event_name": "BeforeAgent"}).encode()
            about = {"name": "gemini", "process": os.getpid(), "size": len(event)}
            link.sendall(json.dumps(about).encode() + b"\n" + event)
            hook.kill()
            hook.communicate(timeout=SECONDS)
        finally:
            os.kill(observer, signal.SIGCONT)
        link.settimeout(SECONDS)
        assert json.loads(link.recv(2**16))["failure"] == ""
        eventually(lambda: not questions.pending())
    assert agent.run("BeforeAgent").code == 0
    assert observers(home) == [observer]
    agent.end()
    eventually(lambda: not observers(home))


@pytest.mark.promise("WAT-4")
def test_a_question_is_closed_when_the_agent_is_killed_and_its_hook_is_not(home: Path, questions: Questions) -> None:
    write_rules(home, '[[rule]]\nask = "claude-code.*"\n')
    event = {"hook_event_name": PRE, "session_id": "s", "tool_name": "Bash", "tool_input": {}, "tool_use_id": "t"}
    code = "import subprocess, sys; subprocess.run(sys.argv[2:], input=sys.argv[1].encode())"
    command = [sys.executable, "-c", code, json.dumps(event), PROGRAM, "watch", "--hook", "claude-code"]
    with questions.announce():
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            waiting(questions)
            process.kill()
        eventually(lambda: not questions.pending())
    assert detail(finished(1)["claude-code.Bash"]) == "cancelled"


@pytest.mark.promise("WAT-4", "SEC-4")
def test_a_hook_that_ctrl_c_interrupts_while_its_call_waits_blocks_the_call(
    agent: Hooked, home: Path, questions: Questions
) -> None:
    write_rules(home, '[[rule]]\nask = "claude-code.*"\n')
    with questions.announce():
        hook = agent.start(PRE, tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t-1")
        waiting(questions)
        hook.send_signal(signal.SIGINT)
        answer = answer_of(hook)
        eventually(lambda: not questions.pending())
    assert (answer.code, answer.output) == (2, None)
    assert answer.error == "pegboard watch: ctrl+c interrupted the hook. The call was not made.\n"
    assert detail(finished(1)["claude-code.Bash"]) == "cancelled"


# Failures


@pytest.mark.promise("SEC-4")
def test_without_an_observer_calls_pass_unless_rules_exist(agent: Hooked, home: Path) -> None:
    (home / "state").mkdir(exist_ok=True)
    (home / "state/hooks").write_text("not a folder")
    failed = agent.before("Bash")
    assert (failed.code, failed.output) == (1, None)
    assert failed.error.startswith("pegboard watch: ")
    write_rules(home, '[[rule]]\ndeny = "x.y"\n')
    blocked = agent.before("Bash")
    assert (blocked.code, blocked.error.endswith("The call was not made.\n")) == (2, True)
    assert agent.after("Bash", "done").code == 1
    (home / "state/hooks").unlink()


@pytest.mark.promise("WAT-1", "WAT-4")
@pytest.mark.parametrize(
    "given", ['["a"]', '"text"', '{"x":%s}' % ("[" * 300 + "]" * 300)], ids=["list", "text", "deep"]
)
def test_arguments_that_cannot_be_read_pass_unless_rules_exist(agent: Hooked, home: Path, given: str) -> None:
    assert agent.run(PRE, tool_name="Bash", tool_input=json.loads(given), tool_use_id="t-1").output is None
    agent.run("PostToolUse", tool_name="Bash", tool_input=json.loads(given), tool_use_id="t-1", tool_response="done")
    record = finished(1)["claude-code.Bash"]
    assert (record.ok, record.args) == (True, {})
    write_rules(home, '[[rule]]\ndeny = "x.y"\n')
    found = agent.run(PRE, tool_name="Bash", tool_input=json.loads(given), tool_use_id="t-2").output
    assert decision(found)["permissionDecision"] == "deny"


@pytest.mark.promise("SEC-4", "WAT-1", "WAT-5")
def test_arguments_at_the_limit_of_nesting_are_rejected_and_the_calls_of_the_session_end(home: Path) -> None:
    event = {"hook_event_name": PRE, "session_id": "s", "tool_name": "Bash", "tool_use_id": "t"}
    start = json.dumps(event).removesuffix("}")
    depths = range(980, 992)  # About the deepest nesting that Python reads and writes.
    deep = [f'{start}, "tool_input": {{"a": {"[" * depth}{"]" * depth}}}}}' for depth in depths]
    code = (
        "import subprocess, sys, time\n"
        "for event in sys.argv[2:]:\n"
        "    hook = [sys.argv[1], 'watch', '--hook', 'claude-code']\n"
        "    done = subprocess.run(hook, input=event.encode(), stdout=subprocess.PIPE)\n"
        "    print(done.returncode == 2 or b'deny' in done.stdout, flush=True)\n"
        "time.sleep(600)\n"
    )
    write_rules(home, '[[rule]]\ndeny = "x.y"\n')
    command = [sys.executable, "-c", code, PROGRAM, f'{start}, "tool_input": {{}}}}', *deep]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(len(deep) + 1)] == [b"False\n", *[b"True\n"] * len(deep)]
        process.kill()
    eventually(lambda: not observers(home))
    assert "interrupted" in {detail(record) for record in records()}
    assert not [*(home / "state/hooks").glob("*.sock")]


@pytest.mark.promise("WAT-4", "WAT-5")
def test_a_call_is_decided_although_the_observer_ends_while_its_hook_connects(agent: Hooked, home: Path) -> None:
    write_rules(home, '[[rule]]\ndeny = "claude-code.Bash"\n')
    folder = home / "state" / "hooks"
    folder.mkdir(parents=True)
    name = f"{hashlib.sha256(agent.common['session_id'].encode()).hexdigest()[:24]}.sock"
    with SocketAddresses(folder) as addresses, socket.socket(socket.AF_UNIX) as ending:
        ending.bind(addresses.of(name))
        ending.listen()
        ending.settimeout(SECONDS)
        hook = agent.start(PRE, tool_name="Bash", tool_input={}, tool_use_id="t-1")
        link, _ = ending.accept()
        assert link.recv(1) == b"{"  # it leaves the rest unread
        (folder / name).unlink()
        ending.close()
        link.close()
    assert decision(answer_of(hook).output)["permissionDecision"] == "deny"


@pytest.mark.promise("WAT-5")
def test_an_observer_that_was_killed_is_replaced(agent: Hooked, home: Path) -> None:
    agent.before("Bash")
    (killed,) = observers(home)
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: not observers(home))
    assert agent.before("Bash", "t-2").code == 0
    assert len(observers(home)) == 1


@pytest.mark.promise("SEC-4")
def test_an_observer_that_does_not_answer_delays_no_call_without_rules_for_long(
    agent: Hooked, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.before("Bash")
    (observer,) = observers(home)
    os.kill(observer, signal.SIGSTOP)
    try:
        code = (
            "import pegboard.watch.hooks.hook as hook; hook.SHORT_SECONDS = 0.2; hook.ANSWER_SECONDS = 0.4;"
            " hook.run('claude-code')"
        )
        event = {"session_id": "s-1", "hook_event_name": PRE, "tool_name": "Bash", "tool_use_id": "t", "tool_input": {}}
        command = [sys.executable, "-c", code]
        for rules, expected in (("", 1), ('[[rule]]\ndeny = "x.y"\n', 2)):
            if rules:
                write_rules(home, rules)
            given = json.dumps(event).encode()
            done = subprocess.run(command, input=given, capture_output=True, timeout=SECONDS, check=False)
            assert (done.returncode, b"no one answered in time" in done.stderr) == (expected, True)
    finally:
        os.kill(observer, signal.SIGCONT)


@pytest.mark.promise("SEC-4", "WAT-4")
def test_a_call_of_qwen_is_blocked_before_qwen_makes_it_without_an_answer(home: Path, questions: Questions) -> None:
    write_rules(home, '[[rule]]\nask = "qwen.*"\n')
    assert QWEN_SECONDS < 60  # Qwen Code waits no longer.
    code = "import sys, pegboard.watch.hooks.hook as hook; hook.QWEN_SECONDS = 2.0; hook.run('qwen')"
    qwen = Hooked(agent="qwen", tool_call_id="call_0")
    call = {"tool_name": "run_shell_command", "tool_input": {"command": "ls"}, "tool_use_id": "t"}
    given = json.dumps({**qwen.common, **call, "hook_event_name": PRE}).encode()
    with questions.announce():
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, input=given, capture_output=True, timeout=SECONDS, check=False)
        assert (done.returncode, b"no one answered in time. The call was not made." in done.stderr) == (2, True)
        assert detail(finished(1)["qwen.run_shell_command"]) == "cancelled"
        assert not questions.pending()
    qwen.end()


@pytest.mark.promise("SEC-4")
def test_an_event_that_cannot_be_read_is_an_error(home: Path) -> None:
    for text in ("", "hello", "[]", '{"a": ' * 10_000):
        done = commands.pegboard("watch", "--hook", "claude-code", stdin=text)
        assert done.returncode == 1
        assert "stdin has no event" in done.stderr


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hook", "../x"], "can't be the name of an agent"),
        (["--hook", "claude-code", "--name", "x"], "accepts only the name of the agent"),
        (["--hook", "claude-code", "--", "npx"], "accepts only the name of the agent"),
    ],
)
def test_a_hook_needs_exactly_the_name_of_an_agent(arguments: list[str], message: str) -> None:
    done = commands.pegboard("watch", *arguments)
    assert (done.returncode, message in done.stderr) == (2, True)


# MCP servers


@pytest.mark.promise("WAT-1", "WAT-2")
def test_calls_of_a_server_are_recorded_unless_the_agent_runs_it_behind_watch(agent: Hooked, home: Path) -> None:
    config = home / ".claude.json"
    config.write_text(json.dumps({"mcpServers": {"git hub": {"command": "npx", "args": ["server-github"]}}}))
    assert agent.before("mcp__git_hub__create_issue", "t-1", title="x").code == 0
    assert [call["tool"] for call in running(1)] == ["git_hub.create_issue"]
    assert commands.pegboard("adopt", "claude-code").returncode == 0
    write_rules(home, '[[rule]]\ndeny = "git_hub.*"\n')
    assert agent.before("mcp__git_hub__create_issue", "t-2", title="x").output is None
    agent.after("mcp__git_hub__create_issue", "made", "t-2", title="x")
    assert commands.pegboard("adopt", "claude-code", "--undo").returncode == 0
    assert decision(agent.before("mcp__git_hub__create_issue", "t-3", title="x").output)["permissionDecision"] == "deny"
    assert [record.tool for record in recorded(1)] == ["git_hub.create_issue"]


@pytest.mark.promise("WAT-1", "WAT-2")
@pytest.mark.parametrize("folder", ["", "project"])
def test_a_call_of_a_server_that_qwen_runs_behind_watch_is_left_to_it(home: Path, folder: str) -> None:
    settings = home / folder / ".qwen/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"mcpServers": {"hub": {"command": "npx", "args": ["server-hub"]}}}))
    write_rules(home, '[[rule]]\ndeny = "hub.*"\n')
    qwen = Hooked(agent="qwen", tool_call_id="call_0", cwd=str(home / folder))
    assert decision(qwen.before("mcp__hub__list", "t-1").output)["permissionDecision"] == "deny"
    assert commands.pegboard("adopt", str(settings)).returncode == 0
    assert qwen.before("mcp__hub__list", "t-2").output is None
    qwen.after("mcp__hub__list", "all", "t-2")
    qwen.end()
    assert [record.tool for record in recorded(1)] == ["hub.list"]


@pytest.mark.promise("WAT-1", "WAT-4")
def test_a_call_of_pegboards_own_server_is_left_to_it_unless_a_project_changes_the_server(home: Path) -> None:
    write_rules(home, '[[rule]]\ndeny = "pegboard.*"\n')
    printed = commands.pegboard("serve", "--print-config", "claude-code").stdout
    agent = Hooked(cwd=str(home / "project"))
    (home / "project").mkdir()
    config, file = home / ".claude.json", home / "project/.mcp.json"

    def is_denied(id_: str) -> bool:
        return agent.before("mcp__pegboard__fs_list_dir", id_, path=".").output is not None

    assert is_denied("t-1")
    own = json.loads(printed)["mcpServers"]["pegboard"]
    config.write_text(json.dumps({"mcpServers": {"pegboard": {**own, "args": ["--packs", "x", "serve"]}}}))
    assert not is_denied("t-2")
    config.write_text(json.dumps({"mcpServers": {"pegboard": {"command": "uvx", "args": ["pegboard", "serve"]}}}))
    assert is_denied("t-3")
    config.unlink()
    file.write_text(printed)
    assert not is_denied("t-4")
    changes: list[dict[str, Any]] = [
        {"command": "./pegboard"},
        {"args": ["serve", "--packs", "x"]},
        {"env": {**own["env"], "PEGBOARD_CONFIG": "/other.toml"}},
        {"env": {**own["env"], "PYTHONPATH": "x"}},
        {"env": ["PATH"]},
        {"url": "https://example.com"},
    ]
    for number, change in enumerate(changes):
        file.write_text(json.dumps({"mcpServers": {"pegboard": {**own, **change}}}))
        assert is_denied(f"t-5-{number}")
    agent.end()


@pytest.mark.promise("WAT-4")
def test_a_server_of_the_project_with_the_name_of_a_watched_one_is_not_taken_for_it(home: Path) -> None:
    entry = {"command": "npx", "args": ["server-github"]}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"github": entry}}))
    assert commands.pegboard("adopt", "claude-code").returncode == 0
    write_rules(home, '[[rule]]\ndeny = "github.*"\n')
    project = home / "project"
    project.mkdir()
    agent = Hooked(cwd=str(project))
    assert agent.before("mcp__github__create_issue", "t-1").output is None
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"github": entry}}))
    assert decision(agent.before("mcp__github__create_issue", "t-2").output)["permissionDecision"] == "deny"
    agent.end()


@pytest.mark.promise("WAT-4", "SEC-3")
def test_a_project_can_not_exempt_its_server_from_rules_and_adopting_it_does(home: Path) -> None:
    write_rules(home, '[[rule]]\ndeny = "evil.*"\n')
    project = home / "project"
    project.mkdir()
    file = project / ".mcp.json"
    agent = Hooked(cwd=str(project))
    disguised = {"command": "./pegboard", "args": ["watch", "--name", "harmless", "--", "evil"]}
    file.write_text(json.dumps({"mcpServers": {"evil": disguised}}))
    assert decision(agent.before("mcp__evil__run", "t-1").output)["permissionDecision"] == "deny"
    file.write_text(json.dumps({"mcpServers": {"evil": {"command": "npx", "args": ["evil"]}}}))
    assert decision(agent.before("mcp__evil__run", "t-2").output)["permissionDecision"] == "deny"
    assert commands.pegboard("adopt", str(file)).returncode == 0
    assert agent.before("mcp__evil__run", "t-3").output is None
    file.write_text(file.read_text().replace('"evil"]', '"worse"]'))
    assert decision(agent.before("mcp__evil__run", "t-4").output)["permissionDecision"] == "deny"
    agent.end()


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize(
    ("fields", "tool"),
    [
        ({"tool_name": "mcp__git_hub__read__file"}, "git_hub.read__file"),
        ({"tool_name": "mcp__git_hub__read", "mcp_server": {"name": "git hub", "source": "user"}}, "git_hub.read"),
        ({"tool_name": "mcp__git__hub__read", "mcp_server": {"name": "git__hub"}}, "git__hub.read"),
        ({"tool_name": "mcp_hub_read", "mcp_context": {"server_name": "hub", "tool_name": "read"}}, "hub.read"),
        ({"tool_name": "mcp__"}, "claude-code.mcp__"),
        ({}, "claude-code.unnamed"),
    ],
)
def test_a_tool_of_a_server_has_the_name_of_the_server(agent: Hooked, fields: dict[str, Any], tool: str) -> None:
    agent.run(PRE, tool_input={}, tool_use_id="t-1", **fields)
    assert [call["tool"] for call in running(1)] == [tool]


# Adoption

SETTINGS = """\
{
    // mine
    "model": "opus",
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]},
        ],
        "Stop": []
    },
    "env": {"GITHUB_TOKEN": "ghp_abcdefabcdef0123456789abcdef01234567"}
}
"""


@pytest.fixture
def settings(home: Path) -> Path:
    """Return the settings of Claude Code, with comments and another hook."""
    file = home / ".claude/settings.json"
    file.parent.mkdir()
    file.write_text(SETTINGS)
    return file


def adopted_command(file: Path, event: str) -> str:
    """Return the command that an agent runs for an event."""
    hooks: Any = spans(file.read_text(), comments=True).json()
    return hooks["hooks"][event][-1]["hooks"][-1]["command"]  # type: ignore[no-any-return]


@pytest.mark.promise("WAT-2")
def test_adopted_hooks_record_calls_and_undo_restores_the_file(settings: Path, home: Path) -> None:
    done = commands.pegboard("adopt", "claude-code", "--hooks")
    assert (done.returncode, "8 entries adopted" in done.stderr) == (0, True)
    assert "ghp_" not in done.stdout + done.stderr
    assert "// mine" in settings.read_text()
    call = {"session_id": "s", "cwd": "/", "tool_name": "Bash", "tool_input": {"x": 1}, "tool_use_id": "t"}
    for event in (PRE, "PostToolUse", "SessionEnd"):
        command = adopted_command(settings, event)
        given = json.dumps({**call, "hook_event_name": event, "tool_response": "fine"}).encode()
        # The agent doesn't pass on Pegboard's own variables.
        env = {name: value for name, value in os.environ.items() if not name.startswith("PEGBOARD_")}
        subprocess.run(command, shell=True, input=given, env=env, check=True, timeout=SECONDS)
    assert [(one.tool, result_of(one).data) for one in recorded(1)] == [("claude-code.Bash", "fine")]
    again = commands.pegboard("adopt", "claude-code", "--hooks")
    assert "0 entries adopted" in again.stderr
    assert "8 entries restored" in commands.pegboard("adopt", "claude-code", "--hooks", "--undo").stderr
    assert settings.read_text() == SETTINGS


@pytest.mark.promise("WAT-2")
def test_undo_keeps_later_changes_and_removes_a_new_file(settings: Path) -> None:
    commands.pegboard("adopt", "claude-code", "--hooks")
    settings.write_text(settings.read_text().replace('"opus"', '"haiku"'))
    commands.pegboard("adopt", "claude-code", "--hooks", "--undo")
    assert "watch --hook" not in settings.read_text()
    kept = spans(settings.read_text(), comments=True).json()
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}]}
    assert kept == {**spans(SETTINGS, comments=True).json(), "model": "haiku", "hooks": hooks}  # type: ignore[dict-item]
    settings.unlink()
    commands.pegboard("adopt", "claude-code", "--hooks")
    assert commands.pegboard("adopt", "claude-code", "--hooks", "--undo").returncode == 0
    assert not settings.exists()


@pytest.mark.promise("WAT-2")
def test_undo_leaves_no_hook_if_the_file_changed_between_two_adoptions(settings: Path) -> None:
    commands.pegboard("adopt", "claude-code", "--hooks")
    content: Any = spans(settings.read_text(), comments=True).json()
    del content["hooks"]["SessionEnd"]
    settings.write_text(json.dumps(content))
    assert "1 entry adopted" in commands.pegboard("adopt", "claude-code", "--hooks").stderr
    assert "8 entries restored" in commands.pegboard("adopt", "claude-code", "--hooks", "--undo").stderr
    assert "watch --hook" not in settings.read_text()


@pytest.mark.promise("WAT-2")
@pytest.mark.parametrize("agent", ["claude-code", "copilot"])
def test_hooks_of_a_pegboard_that_was_moved_run_this_one_and_stay_where_they_are(home: Path, agent: str) -> None:
    file = home / {"claude-code": ".claude/settings.json", "copilot": ".copilot/hooks/pegboard.json"}[agent]
    file.parents[agent == "copilot"].mkdir()
    commands.pegboard("adopt", agent, "--hooks")
    adopted = file.read_text()
    file.write_text(adopted.replace(PROGRAM, "/removed/bin/pegboard"))
    done = commands.pegboard("adopt", agent, "--hooks")
    assert (done.returncode, "0 entries" in done.stderr, file.read_text()) == (0, False, adopted)
    assert "Skipped" not in done.stderr


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
GROUPS = st.dictionaries(st.sampled_from(["Stop", PRE]), st.lists(JSON, min_size=1, max_size=2), max_size=2)


@pytest.mark.promise("WAT-2")
@given(others=st.dictionaries(st.text(), JSON, max_size=3), hooks=GROUPS, indent=st.sampled_from([None, 1, 4, "\t"]))
def test_a_value_added_to_settings_of_any_layout_changes_nothing_else_and_can_be_removed(
    others: dict[str, Any], hooks: dict[str, Any], indent: Any
) -> None:
    content = {**others, **({"hooks": hooks} if hooks else {})}
    text = json.dumps(content, indent=indent)
    added = with_value(text, ("hooks", PRE), {"new": 1})
    assert json.loads(added) == {**content, "hooks": {**hooks, PRE: [*hooks.get(PRE, []), {"new": 1}]}}
    assert json.loads(without(added, ("hooks", PRE, len(hooks.get(PRE, []))))) == content


@pytest.mark.promise("WAT-2")
@pytest.mark.parametrize(
    ("text", "message"),
    [('{"hooks": []}', "it has `hooks`, which is not an object"), ("{", "is not JSON"), ("[]", "it is not an object")],
)
def test_settings_that_cannot_have_hooks_stay_as_they_are(settings: Path, text: str, message: str) -> None:
    settings.write_text(text)
    done = commands.pegboard("adopt", "claude-code", "--hooks")
    assert (done.returncode, message in done.stderr, settings.read_text()) == (1, True, text)


@pytest.mark.promise("WAT-2")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["vscode"], 1, "Pass one of claude-code, codex, copilot, gemini, opencode, qwen."),
        (["codex"], 1, "codex has no configuration"),
        (["claude-code", "--server", "x"], 2, "can't be combined"),
    ],
)
def test_hooks_that_cannot_be_adopted_are_an_error(arguments: list[str], code: int, message: str) -> None:
    done = commands.pegboard("adopt", *arguments, "--hooks")
    assert (done.returncode, message in done.stderr) == (code, True)


@pytest.mark.promise("WAT-2")
@pytest.mark.parametrize(
    ("agent", "file", "event", "timeout"),
    [
        ("codex", ".codex/hooks.json", PRE, {"timeout": 3600}),
        ("copilot", ".copilot/hooks/pegboard.json", "preToolUse", {"timeoutSec": 3600}),
        ("gemini", ".gemini/settings.json", "BeforeTool", {"timeout": 3_600_000}),
        ("qwen", ".qwen/settings.json", PRE, {"timeout": 3_600_000}),
    ],
)
def test_each_agent_gets_hooks_in_its_own_form(
    home: Path, monkeypatch: pytest.MonkeyPatch, agent: str, file: str, event: str, timeout: dict[str, int]
) -> None:
    monkeypatch.delenv("CODEX_HOME", raising=False)
    (home / file.split("/", maxsplit=1)[0]).mkdir()
    done = commands.pegboard("adopt", agent, "--hooks")
    assert done.returncode == 0
    assert ("enter /hooks" in done.stderr) == (agent == "codex")
    content = json.loads((home / file).read_text())
    (group,) = content["hooks"][event]
    (hook,) = group.get("hooks", [group])
    assert timeout.items() <= hook.items()
    assert hook.get("command", hook.get("bash")).endswith(f"pegboard watch --hook {agent}")
    assert content.get("version") == (1 if agent == "copilot" else None)
    assert "0 entries adopted" in commands.pegboard("adopt", agent, "--hooks").stderr
    commands.pegboard("adopt", agent, "--hooks", "--undo")
    assert not (home / file).exists()


@pytest.mark.promise("WAT-2")
@pytest.mark.parametrize(
    ("variable", "agent", "place"),
    [
        ("CLAUDE_CONFIG_DIR", "claude-code", "settings.json"),
        ("CODEX_HOME", "codex", "hooks.json"),
        ("COPILOT_HOME", "copilot", "hooks/pegboard.json"),
        ("GEMINI_CLI_HOME", "gemini", ".gemini/settings.json"),
        ("QWEN_HOME", "qwen", "settings.json"),
    ],
)
def test_hooks_are_written_where_the_agent_keeps_its_settings(
    variable: str, agent: str, place: str, tmp_path: Path
) -> None:
    elsewhere = dict(os.environ) | {variable: str(tmp_path / "elsewhere")}
    file = tmp_path / "elsewhere" / place
    file.parent.mkdir(parents=True)
    assert commands.pegboard("adopt", agent, "--hooks", env=elsewhere).returncode == 0
    assert f"--hook {agent}" in file.read_text()


@pytest.mark.promise("WAT-2")
def test_a_dry_run_shows_the_hooks_and_writes_nothing(settings: Path) -> None:
    done = commands.pegboard("adopt", "claude-code", "--hooks", "--dry-run", "--json")
    (change,) = json.loads(done.stdout)
    assert change["entries"][0] == {"event": PRE, "action": "adopted", "reason": "", "note": ""}
    assert settings.read_text() == SETTINGS
