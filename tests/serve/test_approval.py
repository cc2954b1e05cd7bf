"""Calls of MCP clients that wait for a person in another process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import commands
import pytest
from mcp.types import CallToolResult
from serving import Connect

from pegboard.brake import Answer, Question, Questions

SECONDS = 30.0


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
            call = asyncio.create_task(client.call_tool("kit.write", {"file": str(first)}))
            question = await waiting(questions)
            assert (question.tool, question.server, question.via) == ("kit.write", "kit", "serve")
            assert f"(process {os.getpid()})" in question.agent
            assert not first.exists()
            questions.answer(question.id, Answer("approve", args={"file": str(second)}))
            assert not (await call).is_error
            assert second.exists()
            assert not first.exists()

            call = asyncio.create_task(client.call_tool("kit.write", {"file": str(first)}))
            questions.answer((await waiting(questions)).id, Answer("reject", "not today"))
            rejected = await call
            assert rejected.is_error
            assert text(rejected) == "kit.write was not called. The user rejected this call. They said: not today"
        alone = await client.call_tool("kit.write", {"file": str(first)})
    assert "kit.write was not called. No Pegboard app is open" in text(alone)
    assert "[[rule]]" in text(alone)
    assert not first.exists()


@pytest.mark.promise("WAT-4")
async def test_a_pause_holds_every_call_and_a_stop_rejects_it(connect: Connect, questions: Questions) -> None:
    async with connect() as client:
        commands.pegboard("pause")
        call = asyncio.create_task(client.call_tool("kit.add", {"a": 1, "b": 2}))
        assert (await waiting(questions)).kind == "paused"
        assert not call.done()
        commands.pegboard("resume")
        assert (await call).structured_content == {"result": 3}

        commands.pegboard("pause")
        call = asyncio.create_task(client.call_tool("kit.add", {"a": 1, "b": 2}))
        await waiting(questions)
        commands.pegboard("stop")
        assert "All calls of agents are stopped" in text(await call)
        assert "stopped" in text(await client.call_tool("kit.add", {"a": 1, "b": 2}))
        commands.pegboard("resume")
        assert (await client.call_tool("kit.add", {"a": 1, "b": 2})).structured_content == {"result": 3}


@pytest.mark.promise("WAT-4")
async def test_the_question_of_a_client_that_leaves_closes(
    connect: Connect, questions: Questions, tmp_path: Path
) -> None:
    with questions.announce():
        async with connect() as client:
            call = asyncio.create_task(client.call_tool("kit.write", {"file": str(tmp_path / "file")}))
            question = await waiting(questions)
            call.cancel()
        await eventually(lambda: not questions.pending())
        answer = questions.read_answer(question.id)
        assert answer is not None
        assert answer.kind == "closed"
    assert not (tmp_path / "file").exists()
