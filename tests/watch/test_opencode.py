"""`pegboard watch --hook opencode`: the plugin of opencode, which has no hooks that are programs."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import commands
import pytest
from opencode import Opencode
from provider import Answer as Response
from provider import FakeProvider, call, delta
from watched import PROGRAM, SECONDS, eventually, recorded, records, result_of

from pegboard.brake import Answer, Question, Questions
from pegboard.models import Agent, CallRecord
from pegboard.watch.hooks import observer

REAL = Path.home() / ".cache" / "pegboard-opencode" / "node_modules" / ".bin" / "opencode"
PACKAGE = "opencode-ai@1.18.33"


@pytest.fixture
def plugin(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the adopted plugin."""
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (home / ".config/opencode").mkdir(parents=True)
    done = commands.pegboard("adopt", "opencode", "--hooks")
    assert (done.returncode, "restart it" in done.stderr) == (0, True), done.stderr
    return home / ".config/opencode/plugins/pegboard.js"


@pytest.fixture
def agent(plugin: Path) -> Iterator[Opencode]:
    """Yield a process of opencode with an MCP server and a subagent."""
    with Opencode(plugin, {"s-2": "s-1"}, ("apply", "my server", "read")) as process:
        yield process


@pytest.fixture
def questions(home: Path) -> Questions:
    """Return the pending calls."""
    return Questions(home / "state")


def write_rules(home: Path, text: str) -> None:
    """Replace the rules."""
    (home / "approvals.toml").write_text(text)


def finished(count: int) -> tuple[CallRecord, ...]:
    """Return the record as soon as it has that many calls, and all have ended."""
    return eventually(lambda: found if len(found := records()) == count else ())  # type: ignore[no-any-return]


def waiting(questions: Questions) -> Question:
    """Return the one pending call."""
    (question,) = eventually(questions.pending)
    return question  # type: ignore[no-any-return]


IMAGE = {"type": "image", "mimeType": "image/png", "data": "QQ=="}
ABORTED = "\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>"
CANCELLED = "The client cancelled the call."
ENDS: list[tuple[dict[str, Any], str, object]] = [
    ({"output": "hi", "metadata": {"exit": 0}}, "", "hi"),
    ({"output": "hi"}, "", "hi"),
    ({"output": "", "attachments": [{"mime": "image/png", "url": "data:image/png;base64,QQ=="}]}, "", IMAGE),
    ({"output": "hi", "metadata": {"exit": 3}}, "Exit code 3\nhi", None),
    ({"output": "too slow", "metadata": {"exit": None}}, "too slow", None),
    ({"output": ABORTED, "metadata": {"exit": None}}, CANCELLED, None),
    ({"output": ABORTED, "metadata": {"exit": 0}}, "", ABORTED),
    ({"status": "error", "error": "File not found"}, "File not found", None),
    ({"status": "error", "error": "…", "metadata": {"interrupted": True}}, CANCELLED, None),
]
"""States of calls that have ended, with the error and the data in the record."""


@pytest.mark.promise("WAT-1", "WAT-5")
def test_a_call_of_opencode_is_recorded_with_its_result(agent: Opencode) -> None:
    for number, (state, _, _) in enumerate(ENDS):
        id_ = f"c-{number}"
        assert agent.end(agent.before("bash", id_, command="make")).error == ""
        agent.update("running", id_, input={"command": "make"})
        agent.update(id_=id_, **{"status": "completed", **state})
    for (_, error, data), record in zip(ENDS, reversed(finished(len(ENDS))), strict=True):
        assert (record.tool, record.args, record.ok) == ("opencode.bash", {"command": "make"}, not error)
        assert (record.error.message if record.error else "") == error
        assert result_of(record).data == data
        session = Agent.of_session(record.session)
        assert session is not None
        assert (session.name, session.process, session.key) == ("opencode", agent.process.pid, "s-1")


@pytest.mark.promise("WAT-1", "WAT-5")
def test_calls_of_servers_and_subagents_of_opencode_have_their_server_and_session(agent: Opencode) -> None:
    result = {"content": [{"type": "text", "text": "3"}], "structuredContent": {"words": 3}, "isError": False}
    agent.end(agent.before("my_server_count_words", session="s-2", text="a b c"))
    agent.after("my_server_count_words", result, session="s-2")
    agent.update("completed", session="s-2", output="3")
    agent.end(agent.before("apply_patch", "c-2"))
    agent.end(agent.before("read_mcp_resource", "c-3"))
    agent.update("completed", "c-3", output="read")
    agent.end(agent.before("bash", "c-2", session="s-2"))
    agent.update("completed", "c-2", output="patched")
    agent.idle("s-2")
    calls = {one.tool: one for one in recorded(4)}
    assert result_of(calls["my_server.count_words"]).data == {"words": 3}
    assert result_of(calls["opencode.apply_patch"]).data == "patched"
    assert result_of(calls["opencode.read_mcp_resource"]).data == "read"
    assert calls["opencode.bash"].ok is False  # It has no result at the end of its turn.
    assert len({one.session for one in calls.values()}) == 1


@pytest.mark.promise("WAT-4")
def test_rules_and_people_decide_on_calls_of_opencode(agent: Opencode, home: Path, questions: Questions) -> None:
    write_rules(home, '[[rule]]\nask = "opencode.write"\n[[rule]]\ndeny = "opencode.bash"\n')
    denied = agent.end(agent.before("bash", command="make"))
    assert "A rule of approvals.toml denies opencode.bash." in denied.error
    agent.update("error", error=denied.error)
    with questions.announce():
        number = agent.before("write", "c-2", path="a", text="x")
        questions.answer(waiting(questions).id, Answer("approve", args={"path": "b"}))
        assert agent.end(number) == (
            [{"tool": "write", "sessionID": "s-1", "callID": "c-2"}, {"args": {"path": "b"}}],
            "",
        )
        for_model = agent.after("write", {"output": "Written."}, "c-2")["output"]
        assert for_model == 'Written.\n\nThe user edited the arguments. The call ran with {"path": "b"}.'
        agent.update("completed", "c-2", output=for_model, input={"path": "a", "text": "x"})
        number = agent.before("write", "c-3", path="c")
        questions.answer(waiting(questions).id, Answer("reject", "not there"))
        assert agent.end(number).error.endswith("They said: not there")
    agent.idle()
    calls = [(one.tool, one.args, one.ok) for one in recorded(3)]
    assert calls[1:] == [("opencode.write", {"path": "b"}, True), ("opencode.bash", {"command": "make"}, False)]
    assert result_of(recorded(3)[1]).data == "Written."


@pytest.mark.promise("WAT-4")
def test_a_server_of_a_project_is_not_taken_for_a_watched_one_of_opencode(
    plugin: Path, home: Path, tmp_path: Path
) -> None:
    entry = {"type": "local", "command": ["npx", "server-github"]}
    (home / ".config/opencode/opencode.json").write_text(json.dumps({"mcp": {"github": entry}}))
    assert commands.pegboard("adopt", "opencode").returncode == 0
    write_rules(home, '[[rule]]\ndeny = "github.*"\n')
    with Opencode(plugin, servers=("github",), folder=tmp_path / "folder") as agent:
        assert agent.end(agent.before("github_create_issue")).error == ""
        for name in ("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"):
            file = tmp_path / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps({"mcp": {"github": entry}}))
            assert "denies github.create_issue." in agent.end(agent.before("github_create_issue", name)).error
            file.unlink()
        assert agent.end(agent.before("github_create_issue", "last")).error == ""


@pytest.mark.promise("WAT-4")
def test_a_call_of_opencode_that_the_user_interrupts_while_it_waits_is_closed(
    agent: Opencode, home: Path, questions: Questions
) -> None:
    write_rules(home, '[[rule]]\nask = "opencode.*"\n')
    with questions.announce():
        number = agent.before("bash")
        waiting(questions)
        agent.update("error", error="Tool execution aborted")
        assert agent.end(number).error == "Tool execution aborted"
        eventually(lambda: not questions.pending())


@pytest.mark.promise("SEC-4")
def test_the_plugin_of_a_pegboard_that_was_removed_blocks_calls_and_says_what_to_do(plugin: Path) -> None:
    plugin.write_text(plugin.read_text().replace(PROGRAM, "/removed/pegboard"))
    with Opencode(plugin) as process:
        error = process.end(process.before("bash")).error
    assert "/removed/pegboard" in error
    assert "Repeat `pegboard adopt opencode --hooks`, or remove the plugin." in error


@pytest.mark.promise("WAT-2")
def test_a_plugin_is_renewed_and_removed_and_another_with_its_name_stays(plugin: Path) -> None:
    adopted = plugin.read_text()
    assert PROGRAM in adopted
    plugin.write_text(adopted.replace(PROGRAM, "/removed/pegboard"))
    done = commands.pegboard("adopt", "opencode", "--hooks", "--dry-run")
    assert "/removed/pegboard" in done.stdout
    commands.pegboard("adopt", "opencode", "--hooks")
    assert plugin.read_text() == adopted
    assert "it exists already" in commands.pegboard("adopt", "opencode", "--hooks").stderr
    assert "1 entry restored" in commands.pegboard("adopt", "opencode", "--hooks", "--undo").stderr
    assert not plugin.exists()
    assert "0 entries restored" in commands.pegboard("adopt", "opencode", "--hooks", "--undo").stderr
    plugin.write_text("// mine\n")
    for option in ((), ("--undo",)):
        done = commands.pegboard("adopt", "opencode", "--hooks", *option)
        assert (done.returncode, "Pegboard didn't write it" in done.stderr) == (1, True)
    assert plugin.read_text() == "// mine\n"


@pytest.mark.promise("WAT-2")
@pytest.mark.parametrize("version", ["opencode v2.0.14", "10.1"])
def test_a_version_that_would_ignore_the_plugin_is_not_adopted_but_the_plugin_can_be_removed(
    plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    program = tmp_path / "opencode"
    program.write_text(f"#!/bin/sh\necho {version}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    plugin.write_text(plugin.read_text().replace(PROGRAM, "/removed/pegboard"))
    done = commands.pegboard("adopt", "opencode", "--hooks")
    assert (done.returncode, "runs no plugins of opencode 1" in done.stderr) == (1, True)
    assert "/removed/pegboard" in plugin.read_text()
    assert commands.pegboard("adopt", "opencode", "--hooks", "--undo").returncode == 0
    assert not plugin.exists()


@pytest.mark.promise("WAT-1", "WAT-4")
def test_a_real_opencode_works_with_the_plugin(plugin: Path, home: Path, tmp_path: Path) -> None:
    program = str(REAL) if REAL.exists() else shutil.which("opencode")
    if program is None:
        pytest.skip(f"opencode is not installed; npm install --prefix {REAL.parents[2]} {PACKAGE}")
    write_rules(home, '[[rule]]\ndeny = "opencode.bash"\n[rule.where]\ncommand = "git push*"\n')

    def proposes(id_: str, command: str) -> Response:
        given = json.dumps({"command": command, "description": "It runs."})
        return Response([call(id=id_, name="bash", arguments=given), delta("tool_calls")])

    answers = [proposes("c1", "git push"), proposes("c2", "echo hi"), Response([delta(content="Done."), delta("stop")])]
    with FakeProvider(*answers).running() as fake:
        model = {"name": "M", "tool_call": True, "limit": {"context": 100_000, "output": 4_000}}
        options = {"baseURL": fake.url, "apiKey": "x"}
        local = {"npm": "@ai-sdk/openai-compatible", "name": "Local", "options": options, "models": {"m": model}}
        settings = {"model": "local/m", "small_model": "local/m", "autoupdate": False, "provider": {"local": local}}
        (tmp_path / "opencode.json").write_text(json.dumps({**settings, "agent": {"title": {"disable": True}}}))
        done = subprocess.run(
            [program, "run", "--dir", str(tmp_path), "--title", "t", "go"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
    assert "Done." in done.stdout + done.stderr
    ran, denied = recorded(2)
    assert (ran.tool, ran.args["command"], result_of(ran).data) == ("opencode.bash", "echo hi", "hi\n")
    assert (denied.args["command"], denied.ok) == ("git push", False)


@pytest.mark.promise("WAT-5")
def test_an_observer_without_a_running_call_ends_after_a_while_and_others_do_not(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer, "_IDLE_SECONDS", 0.1)
    monkeypatch.setattr(observer, "_LOOK_SECONDS", 0.1)
    file = home / "o.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(file))
        listener.listen()
        thread = threading.Thread(target=observer.HookObserver(listener, file).run)
        thread.start()
        event = {"session_id": "s", "tool_name": "bash", "tool_input": {}, "tool_use_id": "t"}

        def send(name: str) -> None:
            body = json.dumps({**event, "hook_event_name": name, "tool_response": "hi"}).encode()
            header = json.dumps({"name": "opencode", "process": os.getpid(), "size": len(body)}).encode()
            with socket.socket(socket.AF_UNIX) as hook:
                hook.connect(str(file))
                hook.sendall(header + b"\n" + body)
                assert hook.recv(2**16)

        send("PreToolUse")
        thread.join(1)
        assert thread.is_alive()
        send("PostToolUse")
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert [one.tool for one in recorded(1)] == ["opencode.bash"]
