"""The pipeline of a call, through a real runtime with real workers and a real history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.executor import Executor
from pegboard.gateway import Gateway, Timeouts
from pegboard.history import History
from pegboard.models import (
    ApprovalRequested,
    CallEvent,
    CallRecord,
    CallSource,
    Finished,
    JsonObject,
    Started,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from pegboard.models.approval import Approval, ApprovalAnswer
from pegboard.registry import AllowList, Registry
from pegboard.runtime import Runtime

PACK = '''
import itertools
from pegboard.sdk import aliases, hints

_count = itertools.count(1)

@hints(read_only=True, cache_seconds=60)
def counted(*, step: int = 1) -> int:
    """Counts its own runs in this process."""
    return next(_count)

@hints(read_only=True)
def fresh() -> int:
    """Counts its own runs, and may not be cached."""
    return next(_count)

def write(*, text: str) -> str:
    """Says that it changes things by saying nothing."""
    return text

@aliases("readPage", max_bytes="maxBytes")
@hints(read_only=True)
def read(*, max_bytes: int) -> int:
    """Answers with its argument."""
    return max_bytes

@hints(timeout=0.2)
def hang() -> None:
    """Never ends."""
    while True:
        pass

def patient() -> None:
    """Never ends either, and says nothing of its time."""
    while True:
        pass
'''


async def _result(runtime: Runtime, name: str, source: CallSource = "cli", **args: object) -> ToolResult:
    call = ToolCall.model_validate({"name": name, "args": args, "source": source})
    return (await runtime.result(call))[1]


async def _events(runtime: Runtime, call: ToolCall) -> list[CallEvent]:
    return [event async for event in runtime.call(call)]


@pytest.fixture
def runtime(write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]) -> Runtime:
    return open_runtime(write_pack("road.py", PACK))


@pytest.mark.promise("EXE-1", "EXE-3", "EXE-7")
async def test_a_call_starts_finishes_with_its_result_and_is_recorded(runtime: Runtime) -> None:
    call = ToolCall(name="road.write", args={"text": "hello"}, source="form")
    events = await _events(runtime, call)
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Finished)
    assert events[-1].result.ok
    assert events[-1].result.data == "hello"
    [record] = runtime.history.records()
    assert (record.id, record.tool, record.args, record.ok, record.source) == (
        call.id,
        "road.write",
        {"text": "hello"},
        True,
        "form",
    )


@pytest.mark.promise("EXE-3")
async def test_an_unknown_tool_is_not_found_and_the_nearest_are_named(runtime: Runtime) -> None:
    result = await _result(runtime, "road.wriet", text="x")
    assert result.error is not None
    assert result.error.code == "tool_not_found"
    assert "road.write" in result.error.message


@pytest.mark.promise("EXE-2")
async def test_a_tool_outside_the_allow_list_is_reported_as_such(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    runtime = open_runtime(write_pack("road.py", PACK), tool_allow="road.read,fs.*")
    assert runtime.tools.get("road.write") is None
    result = await _result(runtime, "road.write", text="x")
    assert result.error is not None
    assert (result.error.code, result.error.detail) == ("tool_not_found", "not_allowed")
    assert "not on the allow list" in result.error.message
    assert (await _result(runtime, "road.read", max_bytes=1)).ok


async def test_an_empty_allow_list_admits_nothing(open_runtime: Callable[..., Runtime]) -> None:
    runtime = open_runtime(tool_allow="")
    assert runtime.tools.all() == ()
    result = await _result(runtime, "time.now")
    assert result.error is not None
    assert result.error.code == "tool_not_found"


@pytest.mark.promise("EXE-3")
async def test_all_validation_errors_are_reported_together_with_their_paths(runtime: Runtime) -> None:
    result = await _result(runtime, "road.read", max_bytes="ten", other=1)
    assert result.error is not None
    assert result.error.code == "invalid_args"
    assert {fault.path for fault in result.error.faults} == {"/max_bytes", "/other"}
    [record] = runtime.history.records()
    assert not record.ok


@pytest.mark.promise("ACT-4")
@pytest.mark.parametrize(
    ("source", "where"),
    [("form", "the form"), ("cli", "the preset"), ("batch", "the row of the file"), ("check", "the check")],
)
async def test_stored_arguments_without_a_redacted_value_are_rejected_before_the_tool_runs(
    runtime: Runtime, source: CallSource, where: str
) -> None:
    result = await _result(runtime, "road.write", source, text="a «redacted» b")
    assert result.error is not None
    assert result.error.code == "invalid_args"
    assert f"text: contains «redacted» in place of a value; enter it in {where}" in result.error.message
    assert [fault.path for fault in result.error.faults] == ["/text"]


@pytest.mark.promise("ACT-4")
async def test_a_tool_that_calls_another_may_pass_on_a_text_with_the_mark_of_redaction(runtime: Runtime) -> None:
    assert (await _result(runtime, "road.write", "sdk", text="a «redacted» b")).data == "a «redacted» b"


@pytest.mark.promise("SDK-14", "EXE-7")
async def test_other_names_of_a_tool_and_its_parameters_are_resolved_before_validation(runtime: Runtime) -> None:
    result = await _result(runtime, "readPage", maxBytes=7)
    assert result.data == 7
    [record] = runtime.history.records()
    assert (record.tool, record.args) == ("road.read", {"max_bytes": 7})


@pytest.mark.promise("SDK-14")
async def test_both_spellings_of_one_parameter_are_a_validation_error(runtime: Runtime) -> None:
    result = await _result(runtime, "road.read", maxBytes=7, max_bytes=7)
    assert result.error is not None
    assert result.error.code == "invalid_args"


@pytest.mark.promise("SDK-11", "EXE-4")
async def test_a_tool_that_hangs_is_ended_at_its_own_timeout(runtime: Runtime) -> None:
    result = await _result(runtime, "road.hang")
    assert result.error is not None
    assert (result.error.code, result.error.detail) == ("execution_error", "timeout")
    assert (await _result(runtime, "road.write", text="next")).data == "next"


@pytest.mark.promise("EXE-4")
async def test_the_caller_may_set_the_timeout(runtime: Runtime) -> None:
    _, result = await runtime.result(ToolCall(name="road.patient", source="cli", timeout=0.1))
    assert result.error is not None
    assert result.error.detail == "timeout"


def test_the_timeout_is_that_of_the_caller_the_configuration_the_tool_or_the_default(runtime: Runtime) -> None:
    hang, write = runtime.tools.get("road.hang"), runtime.tools.get("road.write")
    assert hang is not None
    assert write is not None
    timeouts = Timeouts(8, {"road.h*": 3})
    assert timeouts.of(hang, ToolCall(name="road.hang", source="cli", timeout=1)) == 1
    assert timeouts.of(hang) == 3
    assert Timeouts().of(hang) == 0.2
    assert Timeouts().of(write) == 8


@pytest.mark.promise("EXE-4")
async def test_a_running_call_can_be_cancelled_and_is_recorded_as_such(runtime: Runtime) -> None:
    call = ToolCall(name="road.patient", source="form")
    seen: list[CallEvent] = []
    async for event in runtime.call(call):
        seen.append(event)
        if isinstance(event, Started):
            assert await runtime.cancel(call.id)
    assert isinstance(seen[-1], Finished)
    assert seen[-1].result.error is not None
    assert seen[-1].result.error.detail == "cancelled"
    assert not await runtime.cancel(call.id)
    [record] = runtime.history.records()
    assert record.error is not None
    assert record.error.detail == "cancelled"


@pytest.mark.promise("EXE-7")
async def test_a_caller_that_disconnects_cancels_its_call_and_leaves_a_record(runtime: Runtime) -> None:
    call = ToolCall(name="road.patient", source="form")
    events = runtime.call(call)
    await anext(events)
    await events.aclose()
    [record] = runtime.history.records()
    assert record.error is not None
    assert record.error.detail == "cancelled"
    assert not await runtime.cancel(call.id)


async def test_a_caller_whose_task_is_cancelled_leaves_a_record_too(runtime: Runtime) -> None:
    started = asyncio.Event()

    async def watch() -> None:
        async for event in runtime.call(ToolCall(name="road.patient", source="form")):
            if isinstance(event, Started):
                started.set()

    task = asyncio.create_task(watch())
    await asyncio.wait_for(started.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [record] = runtime.history.records()
    assert record.error is not None
    assert record.error.detail == "cancelled"
    assert record.duration_ms > 0


@pytest.mark.promise("DSC-6")
async def test_a_changed_file_is_seen_at_the_next_call(
    runtime: Runtime, write_pack: Callable[[str, str], Path]
) -> None:
    assert (await _result(runtime, "road.write", text="x")).ok
    write_pack("road.py", 'def write(*, text: str, times: int) -> str:\n    """Repeats."""\n    return text * times\n')
    assert (await _result(runtime, "road.write", text="x", times=3)).data == "xxx"


@pytest.mark.promise("DSC-6")
async def test_a_new_file_is_seen_at_the_next_call(runtime: Runtime, write_pack: Callable[[str, str], Path]) -> None:
    write_pack("later.py", 'def hello() -> str:\n    """Greets."""\n    return "hi"\n')
    assert (await _result(runtime, "later.hello")).data == "hi"


class _Person:
    """An approver that always answers the same; simulates a person at the keyboard."""

    def __init__(self, answer: ApprovalAnswer) -> None:
        self.answer = answer

    async def decide(self, spec: ToolSpec, call: ToolCall) -> Approval:
        return Approval(answer=self.answer)


@pytest.mark.promise("EXE-7")
@pytest.mark.parametrize(("answer", "runs"), [("once", True), ("reject", False), (None, False)])
async def test_calls_of_a_model_need_approval_unless_the_tool_is_read_only(
    runtime: Runtime, tmp_path: Path, answer: ApprovalAnswer | None, runs: bool
) -> None:
    registry = Registry([_Tools(runtime)])
    executor = Executor(results=tmp_path / "results")
    history = History(tmp_path / "history.db", tmp_path / "results")
    gateway = Gateway(
        registry, {"pack": executor}, history, allow=AllowList(), approver=None if answer is None else _Person(answer)
    )
    try:
        write = [event async for event in gateway.call(ToolCall(name="road.write", args={"text": "x"}, source="ask"))]
        read = [event async for event in gateway.call(ToolCall(name="road.read", args={"max_bytes": 1}, source="mcp"))]
    finally:
        await executor.close()
        history.close()
    assert isinstance(write[0], ApprovalRequested)
    assert isinstance(write[-1], Finished)
    assert write[-1].result.ok is runs
    if not runs:
        assert write[-1].result.error is not None
        assert write[-1].result.error.detail == "denied"
    assert not any(isinstance(event, ApprovalRequested) for event in read)
    assert isinstance(read[-1], Finished)
    assert read[-1].result.ok


class _Tools:
    """The tools of a runtime as a source."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def scan(self) -> tuple[tuple[ToolSpec, ...], tuple[()]]:
        return self._runtime.tools.all(), ()


@pytest.mark.promise("EXE-7")
@pytest.mark.parametrize(
    ("tool", "first", "second", "session", "cached"),
    [
        ("road.counted", {}, {}, "s1", True),
        ("road.counted", {"step": 1}, {"step": 2}, "s1", False),
        ("road.counted", {}, {}, None, False),
        ("road.fresh", {}, {}, "s1", False),
    ],
)
async def test_only_an_equal_call_of_a_cacheable_tool_in_one_session_is_answered_from_the_cache(
    runtime: Runtime, tool: str, first: JsonObject, second: JsonObject, session: str | None, cached: bool
) -> None:
    await runtime.result(ToolCall(name=tool, args=first, source="ask", session=session))
    _, result = await runtime.result(ToolCall(name=tool, args=second, source="ask", session=session))
    assert result.ok
    assert result.meta.cached is cached
    records: list[CallRecord] = list(runtime.history.records())
    assert len(records) == 2


@pytest.mark.slow
@pytest.mark.promise("EXE-5")
async def test_a_thousand_interleaved_calls_get_their_own_answers_through_the_gateway(runtime: Runtime) -> None:
    async def ask(number: int) -> object:
        return (await _result(runtime, "road.write", text=str(number))).data

    answers = await asyncio.wait_for(asyncio.gather(*(ask(number) for number in range(1000))), 100)
    assert answers == [str(number) for number in range(1000)]
    assert len(runtime.history.records(limit=2000)) == 1000
