"""Calls of MCP clients that wait for a person in another process."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import commands
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult
from servers import SDK_SERVER, start_of
from serving import Connect
from terminals import pegboard

from pegboard.brake import Answer, Question, Questions
from pegboard.models import JsonObject
from pegboard.models.rule import Rule

SECONDS = 30.0
FATAL = """
import os, signal, subprocess
from pegboard.sdk import hints

@hints(read_only=True)
def server() -> int:
    \"\"\"Return the process that started the one that starts workers.\"\"\"
    return int(subprocess.check_output(["ps", "-o", "ppid=", "-p", str(os.getppid())]))

def end(*, process: int) -> None:
    \"\"\"Kill a process.\"\"\"
    os.kill(process, signal.SIGKILL)
"""


@pytest.fixture
def questions(home: Path) -> Questions:
    """Return the pending calls."""
    return Questions(home / "state")


async def eventually(check: Callable[[], Any]) -> Any:
    """Return the first true value of a function."""
    end = monotonic() + SECONDS
    while not (found := check()):
        assert monotonic() < end, "it didn't happen in time"
        await asyncio.sleep(0.02)
    return found


async def waiting(questions: Questions) -> Question:
    """Return the one pending call."""
    (question,) = await eventually(questions.pending)
    return question  # type: ignore[no-any-return]


def text(result: CallToolResult) -> str:
    """Return the text of a result."""
    return "\n".join(str(getattr(part, "text", "")) for part in result.content)


@pytest.mark.promise("WAT-4", "ASK-7")
async def test_a_person_in_another_process_approves_edits_and_rejects(
    connect: Connect, questions: Questions, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    async with connect(is_child=True) as client:
        with questions.announce():
            call = asyncio.create_task(client.call_tool("kit_write", {"file": str(first)}))
            question = await waiting(questions)
            assert (question.tool, question.server, question.via) == ("kit.write", "kit", "serve")
            assert f"(process {os.getpid()})" in question.agent
            assert not first.exists()
            await eventually(lambda: json.loads(commands.pegboard("history", "status:waiting", "--json").stdout))
            assert json.loads(commands.pegboard("history", "status:running", "--json").stdout) == []
            [call_id] = [one["id"] for one in json.loads(commands.pegboard("history", "--json").stdout)]
            rerun = commands.pegboard("history", "rerun", call_id)
            assert (rerun.returncode, "It waits for approval, and hasn't run." in rerun.stderr) == (1, True)
            questions.answer(question.id, Answer("approve", args={"file": str(second)}))
            result = await call
            assert not result.is_error
            note = f"The user edited the arguments. The call ran with {json.dumps({'file': str(second)})}."
            assert [getattr(part, "text", "") for part in result.content][1:] == [note]
            assert note not in str(result.structured_content)
            assert second.exists()
            assert not first.exists()

            call = asyncio.create_task(client.call_tool("kit_write", {"file": str(first)}))
            questions.answer((await waiting(questions)).id, Answer("reject", "not today"))
            rejected = await call
            assert rejected.is_error
            assert text(rejected) == "kit.write was not called. The user rejected this call. They said: not today"
            newest, *_ = json.loads(commands.pegboard("history", "--json").stdout)
            meta = json.loads(commands.pegboard("history", "show", newest["id"], "--json").stdout)["result"]["meta"]
            assert (meta["durationMs"], meta["waitedMs"] > 0) == (0, True)
        alone = await client.call_tool("kit_write", {"file": str(first)})
    assert "kit.write was not called. No Pegboard app is open" in text(alone)
    assert "[[rule]]" in text(alone)
    assert not first.exists()


@pytest.mark.promise("WAT-4", "ASK-7")
async def test_another_type_of_an_equal_value_is_an_edit(
    connect: Connect, questions: Questions, write_pack: Callable[[str, str], Path]
) -> None:
    write_pack("box.py", "def put(*, item) -> str:\n    'Put something in.'\n    return repr(item)\n")
    async with connect() as client:
        with questions.announce():
            call = asyncio.create_task(client.call_tool("box_put", {"item": 1}))
            questions.answer((await waiting(questions)).id, Answer("approve", args={"item": True}))
            assert 'The user edited the arguments. The call ran with {"item": true}.' in text(await call)


@pytest.mark.promise("WAT-4", "STO-2")
async def test_a_call_that_ends_its_server_right_after_its_approval_is_recorded_as_interrupted(
    write_pack: Callable[[str, str], Path], questions: Questions
) -> None:
    packs = write_pack("fatal.py", FATAL)
    arguments = ["-m", "pegboard", "--packs", str(packs), "serve"]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
    with questions.announce(), suppress(Exception):
        async with Client(stdio_client(parameters)) as client:
            server = int(text(await client.call_tool("fatal_server", {})))
            call = asyncio.create_task(client.call_tool("fatal_end", {"process": server}))
            questions.answer((await waiting(questions)).id, Answer("approve"))
            await asyncio.wait({call}, timeout=30)
    listed = json.loads(commands.pegboard("history", "--json", "tool:fatal.end").stdout)
    assert [one["state"] for one in listed] == ["interrupted"]


@pytest.mark.promise("ASK-7", "SDK-11")
@pytest.mark.parametrize("condition", ["sys.platform == 'other'", "not sys.argv"])
async def test_a_hint_of_a_definition_that_does_not_apply_approves_no_call(
    connect: Connect, write_pack: Callable[[str, str], Path], tmp_path: Path, condition: str
) -> None:
    write_pack(
        "branched.py",
        f'''
        import sys
        from pathlib import Path
        from pegboard.sdk import hints

        if {condition}:
            @hints(read_only=True)
            def tidy(*, file: str):
                """Show what could be deleted."""
        else:
            @hints(destructive=True)
            def tidy(*, file: str):
                """Delete a file."""
                Path(file).unlink()
        ''',
    )
    file = tmp_path / "file"
    file.touch()
    async with connect() as client:
        assert "branched.tidy was not called" in text(await client.call_tool("branched_tidy", {"file": str(file)}))
    assert file.exists()


@pytest.mark.promise("ASK-7")
async def test_the_advice_for_a_rejected_call_works(connect: Connect, home: Path, tmp_path: Path) -> None:
    (home / "config.toml").write_text("[brake]\nwait = 0\n")
    async with connect("--mcp", f"given={shlex.join(start_of(SDK_SERVER))}") as client:
        of_server = text(await client.call_tool("given_add", {"a": 1, "b": 2}))
        assert "given.add was not called." in of_server
        assert "[[rule]]" not in of_server
        assert "`pegboard mcp add`" in of_server

        (home / "approvals.toml").write_text('[[rule]]\nallow = "kit.write"\nscope = "mpc"\n')
        for tool, args in (("kit.write", {"file": str(tmp_path / "file")}), ("given.add", {"a": 1, "b": 2})):
            unreadable = text(await client.call_tool(tool, args))
            assert "approvals.toml:3: In rule 1, `scope` should be 'ask' or 'mcp'. Until it is fixed" in unreadable
            assert "this rule" not in unreadable


@pytest.mark.promise("WAT-4")
async def test_a_pause_holds_every_call_and_a_stop_rejects_it(connect: Connect, questions: Questions) -> None:
    async with connect() as client:
        commands.pegboard("pause")
        call = asyncio.create_task(client.call_tool("kit_add", {"a": 1, "b": 2}))
        assert (await waiting(questions)).kind == "paused"
        assert not call.done()
        commands.pegboard("resume")
        assert (await call).structured_content == {"result": 3}

        commands.pegboard("pause")
        call = asyncio.create_task(client.call_tool("kit_add", {"a": 1, "b": 2}))
        await waiting(questions)
        commands.pegboard("stop")
        assert "All calls from agents are stopped" in text(await call)
        assert "stopped" in text(await client.call_tool("kit_add", {"a": 1, "b": 2}))
        commands.pegboard("resume")
        assert (await client.call_tool("kit_add", {"a": 1, "b": 2})).structured_content == {"result": 3}


@pytest.mark.promise("WAT-4", "ASK-7")
async def test_a_paused_call_that_a_rule_meanwhile_asks_about_still_waits_after_the_pause(
    connect: Connect, questions: Questions, home: Path
) -> None:
    with questions.announce():
        async with connect() as client:
            commands.pegboard("pause")
            call = asyncio.create_task(client.call_tool("kit_add", {"a": 1, "b": 2}))
            assert (await waiting(questions)).kind == "paused"
            (home / "approvals.toml").write_text('[[rule]]\nask = "kit.add"\n')
            commands.pegboard("resume")
            asked = await eventually(lambda: [one for one in questions.pending() if one.kind == "ask"])
            assert "A rule of approvals.toml requires approval for kit.add" in asked[0].reason
            questions.answer(asked[0].id, Answer("reject"))
            assert "The user rejected this call" in text(await call)


@pytest.mark.promise("WAT-4", "ASK-7")
async def test_a_call_that_a_rule_denies_is_rejected_at_a_pause_too_and_asks_no_one(
    connect: Connect, questions: Questions, home: Path
) -> None:
    (home / "approvals.toml").write_text('[[rule]]\ndeny = "kit.add"\n')
    with questions.announce():
        async with connect() as client:
            commands.pegboard("pause")
            async with asyncio.timeout(SECONDS):
                denied = await client.call_tool("kit_add", {"a": 1, "b": 2})
    assert "kit.add was not called. A rule of approvals.toml denies kit.add." in text(denied)


@pytest.mark.promise("WAT-4")
async def test_the_question_of_a_client_that_leaves_closes(
    connect: Connect, questions: Questions, tmp_path: Path
) -> None:
    with questions.announce():
        async with connect() as client:
            call = asyncio.create_task(client.call_tool("kit_write", {"file": str(tmp_path / "file")}))
            question = await waiting(questions)
            call.cancel()
        await eventually(lambda: not questions.pending())
        answer = questions.read_answer(question.id)
        assert answer is not None
        assert answer.kind == "closed"
    assert not (tmp_path / "file").exists()


RULE = {"allow": ["kit.write"]}
DAMAGED: tuple[dict[str, Any], ...] = (
    {"lasts": "always", "rule": {"allow": ["kit.write"], "where": {"file": []}}},
    {"lasts": "always", "rule": {"allow": ["kit.write"], "where": {"file": [[]]}}},
    {"lasts": "always", "rule": {"allow": ["kit.write"], "exactly": "[1]"}},
    {"lasts": "always", "rule": {"deny": ["kit.write"]}},
    {"lasts": "always", "rule": {"allow": ["kit.write", "\ud800"]}},
    {"lasts": "always", "rule": ["kit.write"]},
    {"lasts": "always", "rule": "kit.write"},
    {"lasts": "always", "rule": None},
    {"lasts": "always"},
    {"lasts": "once", "rule": RULE},
    {"lasts": ["always"], "rule": RULE},
    {"lasts": "forever", "rule": RULE},
    {"lasts": "session", "rule": RULE, "args": {"file": "b"}},
    {"lasts": "session", "rule": RULE, "kind": "reject"},
    {"kind": ["approve"]},
    {"kind": "reject", "reason": 5},
    {"by_person": "yes"},
)
"""Changes of an approval that make it invalid."""


def put(home: Path, question: Question, changed: dict[str, Any]) -> None:
    """Write the file of an approval as earlier versions did, with changes."""
    content = {"kind": "approve", "reason": "", "args": None, "by": "", "by_person": True, **changed}
    draft = home / "draft"
    draft.write_text(json.dumps(content))
    draft.replace(home / "state" / "questions" / f"{question.id}.answer")


@pytest.mark.promise("ASK-7", "SEC-2", "WAT-4")
async def test_a_damaged_approval_rejects_the_call(
    connect: Connect, questions: Questions, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    async with connect() as client:
        with questions.announce():
            for changed in DAMAGED:
                call = asyncio.create_task(client.call_tool("kit_write", {"file": str(file)}))
                put(home, await waiting(questions), changed)
                result = await call
                assert text(result).startswith("kit.write was not called. The "), changed
                assert "answer" in text(result), changed
            assert not file.exists()
            call = asyncio.create_task(client.call_tool("kit_write", {"file": str(file)}))
            put(home, await waiting(questions), {})
            assert not (await call).is_error
    assert file.exists()
    assert not (home / "approvals.toml").exists()


@pytest.mark.promise("ASK-7", "STO-2")
async def test_answers_and_outcomes_keep_no_arguments(
    connect: Connect, questions: Questions, home: Path, tmp_path: Path
) -> None:
    file = str(tmp_path / "private")
    rule = Rule(allow=("kit.write",), exactly=json.dumps({"file": file}), scope="mcp")
    async with connect() as client:
        with questions.announce():
            call = asyncio.create_task(client.call_tool("kit_write", {"file": file}))
            question = await waiting(questions)
            questions.answer(question.id, Answer("approve", lasts="session", rule=rule))
            assert not (await call).is_error
        assert not (await client.call_tool("kit_write", {"file": file})).is_error
    outcome = questions.rule_outcome(question)
    assert outcome is not None
    assert (outcome.problem, outcome.is_exact) == ("", True)
    files = [one for one in (home / "state" / "questions").iterdir() if one.is_file()]
    assert {one.suffix for one in files} == {".answer", ".rule"}
    assert "private" not in "".join(one.read_text() for one in files)
    answer = questions.read_answer(question.id)
    assert answer is not None
    assert (answer.kind, answer.lasts) == ("approve", "session")


@pytest.mark.promise("SEC-2", "STO-2", "WAT-4")
async def test_secrets_of_a_waiting_call_stay_in_the_memory_of_the_process_that_asks(
    connect: Connect, questions: Questions, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-1234567890abcdef"
    monkeypatch.setenv("SEARCH_API_KEY", secret)
    file = tmp_path / secret
    args: JsonObject = {"file": str(file)}
    masked: JsonObject = {"file": str(tmp_path / "«secret SEARCH_API_KEY»")}
    rule = Rule(allow=("kit.write",), exactly=json.dumps(masked), scope="mcp")
    moved = Answer("approve", args={"file": f"{masked['file']}/other"})
    answers = (moved, Answer("approve", args=masked), Answer("approve", lasts="session", rule=rule))
    results = []
    async with connect() as client:
        with questions.announce():
            for answer in answers:
                call = asyncio.create_task(client.call_tool("kit_write", args))
                question = await waiting(questions)
                assert question.args == masked
                written = [one for one in (home / "state").rglob("*") if one.is_file()]
                assert not any(secret.encode() in one.read_bytes() for one in written)
                questions.answer(question.id, answer)
                results.append(await call)
                assert file.exists() is not results[-1].is_error
                file.unlink(missing_ok=True)
        results.append(await client.call_tool("kit_write", args))
    assert [one.is_error for one in results] == [True, False, False, False]
    assert "The edited arguments can't be used. «secret SEARCH_API_KEY» hides a value that was moved" in text(
        results[0]
    )


@pytest.mark.promise("ASK-7", "WAT-4")
async def test_the_command_line_approves_for_the_session(
    connect: Connect, questions: Questions, tmp_path: Path
) -> None:
    async with connect() as client:
        with questions.announce():
            call = asyncio.create_task(client.call_tool("kit_write", {"file": str(tmp_path / "a")}))
            question = await waiting(questions)
            for options in (("--yes", "--session"), ("--session", "--args", "{}"), ("--session", "--no", "why")):
                assert commands.pegboard("approve", question.id, *options).returncode == 2
            done = commands.pegboard("approve", question.id, "--session")
            assert "Approved for this session." in done.stderr
            assert not (await call).is_error
            assert not (await client.call_tool("kit_write", {"file": str(tmp_path / "b")})).is_error

            for changed, why in (
                ({"via": "watch"}, "the answer for a session works only for calls of `pegboard serve`"),
                ({"via": "serve", "kind": "paused"}, "it only waits until calls are resumed"),
            ):
                asked = Question("kit.write", {}, "agent", "kit", "Why.", **changed)  # type: ignore[arg-type]
                held = questions.open(asked)
                refused = commands.pegboard("approve", asked.id, "--session")
                assert refused.returncode == 2
                assert f"The call was not answered because {why}. Use --yes." in refused.stderr
                assert questions.is_pending(asked)
                held.close("The test ends.")


@pytest.mark.promise("ASK-7", "WAT-4")
async def test_a_new_rule_releases_the_waiting_calls_that_it_allows_and_no_others(
    connect: Connect, questions: Questions, home: Path, tmp_path: Path
) -> None:
    (home / "approvals.toml").write_text('[[rule]]\nask = "kit.add"\n')

    def write(client: Client, name: str) -> asyncio.Task[CallToolResult]:
        return asyncio.create_task(client.call_tool("kit_write", {"file": str(tmp_path / name)}))

    with questions.announce():
        async with connect() as client, connect() as other:
            writes = [write(client, name) for name in "abc"]
            addition = asyncio.create_task(client.call_tool("kit_add", {"a": 1, "b": 2}))
            elsewhere = write(other, "d")
            asked = await eventually(lambda: found if len(found := questions.pending()) == 5 else ())
            first = next(one for one in asked if one.args == {"file": str(tmp_path / "b")})
            questions.answer(first.id, Answer("approve", lasts="session"))
            assert not any(result.is_error for result in await asyncio.gather(*writes))
            assert [(tmp_path / name).exists() for name in "abcd"] == [True, True, True, False]
            assert sorted(one.tool for one in questions.pending()) == ["kit.add", "kit.write"]
            for one in questions.pending():
                questions.answer(one.id, Answer("reject"))
            assert (await addition).is_error
            assert (await elsewhere).is_error


@pytest.mark.promise("ASK-7", "WAT-4")
async def test_s_on_a_terminal_approves_for_the_session(connect: Connect, questions: Questions, tmp_path: Path) -> None:
    async with connect() as client:
        with pegboard("approve") as terminal:
            await asyncio.to_thread(terminal.read_until, "Waiting for calls")
            call = asyncio.create_task(client.call_tool("kit_write", {"file": str(tmp_path / "a")}))
            await asyncio.to_thread(terminal.read_until, "Run kit.write? [y/s/n/e]")
            terminal.type("s\n")
            assert not (await call).is_error
            await asyncio.to_thread(terminal.read_until, "Approved for this session.")
            assert not (await client.call_tool("kit_write", {"file": str(tmp_path / "b")})).is_error
