"""Nested calls of a model's calls that await approval: through a real runtime and real workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import pytest

from pegboard.models import (
    ApprovalRequested,
    CallEvent,
    Finished,
    JsonObject,
    Log,
    Progress,
    Started,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from pegboard.models.approval import Approval
from pegboard.runtime import Runtime

PACK = '''
import time

from pegboard.sdk import call_tool, hints, log

def write(*, text: str = "") -> str:
    """Says nothing of its manners."""
    log("written")
    return text

@hints(read_only=True)
def through(*, levels: int = 1) -> str:
    """Writes by way of others, as many as it is told."""
    return call_tool("book.through", levels=levels - 1) if levels > 1 else call_tool("book.write", text="a")

@hints(read_only=True)
def hang_after(*, levels: int = 1) -> str:
    """Writes by way of others, and whatever comes of it, never ends."""
    try:
        call_tool("book.through", levels=levels)
    except RuntimeError as error:
        log(str(error))
    time.sleep(1000)
'''
BRIEF = 2.0
"""Timeout of a call in seconds: more than it needs, and less than the user needs."""


class _Person:
    """An approver that answers when the test says so; simulates a person who thinks about it."""

    def __init__(self, *, seconds: float | None = None) -> None:
        self._seconds = seconds
        self.is_asked = asyncio.Event()
        self.is_left_alone = asyncio.Event()
        self.call = ToolCall(name="", source="ask")
        """The last call to decide on."""
        self.answer: asyncio.Future[Approval] = asyncio.get_running_loop().create_future()

    async def decide(self, spec: ToolSpec, call: ToolCall) -> Approval:
        self.call = call
        self.is_asked.set()
        if self._seconds is not None and not self.answer.done():
            asyncio.get_running_loop().call_later(self._seconds, self.answer.set_result, Approval(answer="once"))
        try:
            return await self.answer
        except asyncio.CancelledError:
            self.is_left_alone.set()
            raise


@pytest.fixture
async def runtime(write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]) -> Runtime:
    runtime = open_runtime(write_pack("book.py", PACK))
    await runtime.prewarm()
    return runtime


@contextmanager
def _watched(runtime: Runtime, call: ToolCall) -> Iterator[tuple[asyncio.Task[None], list[CallEvent]]]:
    """Run a call concurrently with the test; yield the task and the list of events so far."""
    seen: list[CallEvent] = []

    async def watch() -> None:
        async with asyncio.timeout(30), aclosing(runtime.call(call)) as events:
            async for event in events:
                seen.append(event)  # noqa: PERF401 - the test looks at them meanwhile

    task = asyncio.create_task(watch())
    try:
        yield task, seen
    finally:
        task.cancel()


def _call(tool: str, args: JsonObject | None = None, *, timeout: float = 30) -> ToolCall:
    return ToolCall(name=f"book.{tool}", args=args or {}, source="ask", session="s", timeout=timeout)


def _result(seen: list[CallEvent]) -> ToolResult:
    assert isinstance(seen[-1], Finished)
    return seen[-1].result


async def _soon(happens: asyncio.Event) -> None:
    async with asyncio.timeout(30):
        await happens.wait()


async def _all(events: AsyncGenerator[CallEvent]) -> list[CallEvent]:
    async with asyncio.timeout(30):
        return [event async for event in events]


@pytest.mark.promise("ASK-7")
@pytest.mark.parametrize("levels", [1, 2])
async def test_the_timeout_of_a_call_pauses_while_a_nested_call_awaits_approval(runtime: Runtime, levels: int) -> None:
    runtime.rules.approve_with(_Person(seconds=BRIEF + 0.5))
    seen = await _all(runtime.call(_call("through", {"levels": levels}, timeout=BRIEF)))
    assert (_result(seen).error, _result(seen).data) == (None, "a")


@pytest.mark.promise("ASK-7", "EXE-4")
@pytest.mark.parametrize("answer", ["once", "reject"])
async def test_the_timeout_of_a_call_resumes_after_the_answer(runtime: Runtime, answer: str) -> None:
    person = _Person()
    person.answer.set_result(Approval.model_validate({"answer": answer}))
    runtime.rules.approve_with(person)
    error = _result(await _all(runtime.call(_call("hang_after", timeout=BRIEF)))).error
    assert error is not None
    assert (error.detail, person.is_asked.is_set()) == ("timeout", True)


@pytest.mark.promise("ASK-7", "EXE-4")
async def test_the_timeout_of_a_call_resumes_when_the_nested_call_stops_waiting_for_approval(runtime: Runtime) -> None:
    person = _Person()
    runtime.rules.approve_with(person)
    with _watched(runtime, _call("hang_after", timeout=BRIEF)) as (task, seen):
        await _soon(person.is_asked)
        assert await runtime.cancel(person.call.parent or "")
        await task
    error = _result(seen).error
    assert error is not None
    assert (error.detail, person.is_left_alone.is_set()) == ("timeout", True)


@pytest.mark.promise("ASK-7", "EXE-7")
async def test_the_events_of_a_call_include_its_nested_calls(runtime: Runtime) -> None:
    runtime.rules.approve_with(_Person(seconds=0))
    call = _call("through", {"levels": 2})
    seen = await _all(runtime.call(call))
    told = [(event.kind, event.call.name, event.call.parent) for event in seen if not isinstance(event, Log | Progress)]
    inner = next(event.call for event in seen if isinstance(event, Started) and event.call.parent == call.id)
    assert told == [
        ("started", "book.through", None),
        ("started", "book.through", call.id),
        ("approval_requested", "book.write", inner.id),
        ("started", "book.write", inner.id),
        ("finished", "book.write", inner.id),
        ("finished", "book.through", call.id),
        ("finished", "book.through", None),
    ]
    assert not any(isinstance(event, Log) for event in seen), "what they print is in their own record"
    assert {record.id: record.parent for record in runtime.history.records()} == {
        event.call.id: event.call.parent for event in seen if isinstance(event, Finished)
    }
    _, result = await runtime.result(call.model_copy(update={"id": "again"}))
    assert result.data == "a"


@pytest.mark.promise("ASK-7", "EXE-4")
@pytest.mark.parametrize("tool", ["write", "through"])
async def test_cancelling_a_call_ends_its_approval_request(runtime: Runtime, tool: str) -> None:
    person = _Person()
    runtime.rules.approve_with(person)
    call = _call(tool)
    with _watched(runtime, call) as (task, seen):
        await _soon(person.is_asked)
        assert await runtime.cancel(call.id)
        await task
    error = _result(seen).error
    assert error is not None
    assert (error.detail, person.is_left_alone.is_set()) == ("cancelled", True)
    assert not await runtime.cancel(call.id), "it is over"


@pytest.mark.promise("ASK-7", "EXE-4")
async def test_a_nested_call_that_awaits_approval_can_be_cancelled_alone(runtime: Runtime) -> None:
    person = _Person()
    runtime.rules.approve_with(person)
    with _watched(runtime, _call("through")) as (task, seen):
        await _soon(person.is_asked)
        assert await runtime.cancel(person.call.id)
        await task
    error = _result(seen).error
    assert error is not None
    assert "book.write failed: The call was cancelled." in error.message


@pytest.mark.promise("ASK-7", "EXE-4")
async def test_closing_the_iterator_cancels_the_question_too(runtime: Runtime) -> None:
    person = _Person()
    runtime.rules.approve_with(person)
    events = runtime.call(_call("through"))
    async with asyncio.timeout(30):
        while not isinstance(await anext(events), ApprovalRequested):
            pass
        await _soon(person.is_asked)
        await events.aclose()
    assert person.is_left_alone.is_set()
