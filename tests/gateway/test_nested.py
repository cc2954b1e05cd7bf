"""Tools that call tools: through a real runtime, each in its own process."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any  # Results may be any JSON value.

import pytest
from processes import is_alive, until, workers

from pegboard.models import CallRecord, CallSource, Started, ToolCall, ToolResult
from pegboard.runtime import Runtime

SOURCE = (Path(__file__).parents[1] / "packs" / "nesting.py").read_text()


@pytest.fixture
def runtime(write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]) -> Runtime:
    return open_runtime(write_pack("nesting.py", SOURCE))


@pytest.fixture
def narrow(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> Runtime:
    """Return a runtime with one worker, so that a call must not wait for another worker while it holds one."""
    monkeypatch.setenv("PEGBOARD_TOOLS__WORKERS", "1")
    return open_runtime(write_pack("nesting.py", SOURCE))


async def _result(runtime: Runtime, tool: str, source: CallSource = "form", /, **args: object) -> ToolResult:
    call = ToolCall.model_validate({"name": f"nesting.{tool}", "args": args, "source": source, "timeout": 60})
    return (await runtime.result(call))[1]


async def _data(runtime: Runtime, tool: str, source: CallSource = "form", /, **args: object) -> Any:
    result = await _result(runtime, tool, source, **args)
    assert result.ok, result.error
    return result.data


async def _through(runtime: Runtime, tool: str, source: CallSource = "form", /, **arguments: object) -> Any:
    return await _data(runtime, "through", source, tool=tool, arguments=arguments)


def _record(runtime: Runtime, tool: str) -> CallRecord:
    [record] = runtime.history.records(tool=f"nesting.{tool}")
    return record


def _text(file: str) -> str:
    return Path(file).read_text()


def _is_written(file: Path) -> bool:
    return file.exists() and bool(file.read_text())


@pytest.mark.promise("SDK-2", "EXE-7", "STO-1")
async def test_a_nested_call_is_recorded_with_its_source_session_and_parent(runtime: Runtime) -> None:
    call = ToolCall(
        name="nesting.through", args={"tool": "nesting.echo", "arguments": {"value": [1]}}, source="cli", session="s"
    )
    _, result = await runtime.result(call)
    assert result.data == {"data": [1]}
    record = _record(runtime, "echo")
    assert (record.parent, record.source, record.session, record.args) == (call.id, "cli", "s", {"value": [1]})


@pytest.mark.promise("SDK-2", "EXE-4")
async def test_a_tool_that_is_called_by_another_has_a_process_of_its_own(runtime: Runtime) -> None:
    own, others = await _data(runtime, "both_pids")
    assert len({own, others, os.getpid()}) == 3


@pytest.mark.promise("SDK-2")
async def test_a_call_works_from_an_async_tool(runtime: Runtime) -> None:
    assert await _data(runtime, "through_async", value={"a": 1}) == [{"a": 1}, {"a": 1}]


@pytest.mark.promise("SDK-2")
async def test_calls_three_deep_each_have_the_one_above_as_parent(runtime: Runtime) -> None:
    assert await _data(runtime, "down", levels=3) == 3
    records = {record.args["levels"]: record for record in runtime.history.records(tool="nesting.down")}
    assert [records[level].parent for level in (0, 1, 2)] == [records[level].id for level in (1, 2, 3)]
    assert records[3].parent is None


@pytest.mark.promise("SDK-2", "SDK-3")
async def test_many_threads_call_concurrently_and_each_gets_its_own_result(runtime: Runtime) -> None:
    text = await _data(runtime, "many", count=40)
    assert text == "\n\n".join(f"=== {number} ===\n{number}" for number in range(40))
    assert await _data(runtime, "waves", count=20, width=8) == []


@pytest.mark.promise("SDK-1")
async def test_a_pack_offers_its_tools_as_attributes(runtime: Runtime) -> None:
    names, value = await _data(runtime, "through_pack", pack="nesting", value="a")
    assert {"echo", "through", "down"} <= set(names)
    assert value == "a"
    assert await _data(runtime, "through_pack", pack="nowhere", value="a") is None


@pytest.mark.promise("SDK-2")
@pytest.mark.parametrize(
    ("tool", "message"),
    [
        ("nowhere.echo", "Pack not found: nowhere"),
        ("nestign.echo", "Pack not found: nestign. Did you mean nesting?"),
        ("script.run", "Pack not found: script. It needs `offer = true` under `[scripts]`."),
        ("nesting.ehco", "Tool not found: nesting.ehco. Did you mean nesting.echo?"),
        ("echo", "Tool not found: echo. Write its full name, pack.tool. Did you mean nesting.echo"),
    ],
)
async def test_an_unknown_name_is_a_value_error(runtime: Runtime, tool: str, message: str) -> None:
    told = await _through(runtime, tool)
    assert told["type"] == "ValueError"
    assert told["message"].startswith(message)


@pytest.mark.promise("SDK-2", "EXE-2")
async def test_the_allow_list_applies_to_nested_calls(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    allowed = open_runtime(write_pack("nesting.py", SOURCE), tool_allow="nesting.through*")
    told = await _through(allowed, "nesting.write", text="a")
    assert told["type"] == "ValueError"
    assert "not on the allow list" in told["message"]
    assert await _data(allowed, "through_pack", pack="tools", value="a") is None


@pytest.mark.promise("EXE-7")
async def test_a_call_that_needs_approval_does_not_run_through_another_tool(runtime: Runtime) -> None:
    told = await _through(runtime, "nesting.write", "mcp", text="a")
    assert told["type"] == "RuntimeError"
    assert "this run can't ask for approval" in told["message"]
    assert await _through(runtime, "nesting.echo", "mcp", value="a") == {"data": "a"}


@pytest.mark.promise("BAT-3")
async def test_a_check_that_runs_without_a_person_needs_a_rule_for_nested_calls_too(runtime: Runtime) -> None:
    args = {"tool": "nesting.write", "arguments": {"text": "a"}}
    messages = []
    for unattended in (False, True):
        call = ToolCall.model_validate(
            {"name": "nesting.through", "args": args, "source": "check", "unattended": unattended}
        )
        messages.append((await runtime.result(call))[1].data)
    assert messages[0] == {"data": "a"}
    assert "this run can't ask for approval" in str(messages[1])


@pytest.mark.promise("SDK-2", "SDK-13")
async def test_the_failure_of_a_nested_call_reaches_its_caller(runtime: Runtime) -> None:
    said = await _through(runtime, "nesting.fail", how="said")
    assert said == {"failed": "No such dataset.", "code": "not_found", "data": {"id": 7}}
    raised = await _through(runtime, "nesting.fail", how="otherwise")
    assert raised == {"type": "RuntimeError", "message": "nesting.fail failed: LookupError: lost"}
    unfit = await _through(runtime, "nesting.fail", where=1)
    assert unfit["type"] == "TypeError"
    assert "where" in unfit["message"]
    assert "value" in await _data(runtime, "not_json")


@pytest.mark.promise("SDK-2", "EXE-6")
async def test_a_large_result_reaches_the_calling_tool_in_full(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, open_runtime: Callable[..., Runtime]
) -> None:
    monkeypatch.setenv("PEGBOARD_TOOLS__RESULT_LIMIT", "1000")
    small = open_runtime(*runtime.folders)
    told = await _result(small, "through", tool="nesting.big", arguments={"items": 5000})
    assert told.meta.truncated is not None
    assert json.loads(_text(told.meta.truncated.file)) == {"data": list(range(5000))}


@pytest.mark.promise("SDK-2")
async def test_calls_go_sixteen_deep_with_a_single_worker_and_no_deeper(narrow: Runtime) -> None:
    assert await _data(narrow, "down", levels=16) == 16
    result = await _result(narrow, "down", levels=17)
    assert result.error is not None
    assert "calls can be nested at most 16 levels deep" in result.error.message
    await until(lambda: len(workers()) <= 1)


@pytest.mark.promise("SDK-2", "EXE-5")
async def test_calls_that_all_wait_for_others_get_through_a_single_worker(narrow: Runtime) -> None:
    deep = [_data(narrow, "down", levels=level % 4) for level in range(12)]
    wide = [_data(narrow, "many", count=6) for _ in range(2)]
    answers = await asyncio.gather(*deep, *wide)
    assert answers[:12] == [level % 4 for level in range(12)]
    assert len(workers()) <= 1 + 3


@pytest.mark.promise("EXE-4")
@pytest.mark.parametrize("how", ["timeout", "cancelled"])
async def test_the_end_of_a_call_ends_its_nested_calls(runtime: Runtime, tmp_path: Path, how: str) -> None:
    file = tmp_path / "pid"
    call = ToolCall(name="nesting.hang_within", args={"file": str(file)}, source="form")
    if how == "timeout":
        call = call.model_copy(update={"timeout": 3.0})
    running = asyncio.ensure_future(runtime.result(call))
    await until(lambda: _is_written(file))
    if how == "cancelled":
        assert await runtime.cancel(call.id)
    _, result = await running
    assert result.error is not None
    assert result.error.detail == how
    await until(lambda: not is_alive(int(file.read_text())))
    within = _record(runtime, "hang")
    assert within.error is not None
    assert (within.parent, within.error.detail) == (call.id, "cancelled")


@pytest.mark.promise("EXE-4")
async def test_closing_the_iterator_cancels_nested_calls_too(runtime: Runtime, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    events = runtime.call(ToolCall(name="nesting.hang_within", args={"file": str(file)}, source="form"))
    assert isinstance(await anext(events), Started)
    await until(lambda: _is_written(file))
    await events.aclose()
    await until(lambda: not is_alive(int(file.read_text())))


@pytest.mark.promise("EXE-4")
async def test_a_nested_call_can_be_cancelled_alone(runtime: Runtime, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    running = asyncio.ensure_future(_through(runtime, "nesting.hang", file=str(file)))
    await until(lambda: _is_written(file))
    [within] = [call for call in runtime._parts.executor._running if runtime._parts.executor._running[call].depth == 1]
    assert await runtime.cancel(within)
    assert await running == {"type": "RuntimeError", "message": "nesting.hang failed: The call was cancelled."}


@pytest.mark.promise("EXE-4")
async def test_an_abandoned_nested_call_ends_with_its_caller(narrow: Runtime, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    assert await _data(narrow, "leave", file=str(file)) == "left"
    await until(lambda: not is_alive(int(file.read_text())))
    assert await _data(narrow, "echo", value="after") == "after"


@pytest.mark.promise("EXE-5")
async def test_a_tool_that_stopped_waiting_gets_the_right_result_of_its_next_call(
    runtime: Runtime, tmp_path: Path
) -> None:
    assert await _data(runtime, "interrupted", file=str(tmp_path / "pid")) == ["interrupted", "after"]


@pytest.mark.promise("EXE-4")
async def test_a_forked_child_can_call_nothing(runtime: Runtime) -> None:
    assert "forked" in await _data(runtime, "forked")


@pytest.mark.promise("EXE-4")
async def test_closing_cancels_nested_calls_immediately(runtime: Runtime, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    call = ToolCall(name="nesting.hang_within", args={"file": str(file)}, source="form", timeout=60)
    running = asyncio.ensure_future(runtime.result(call))
    await until(lambda: _is_written(file))
    async with asyncio.timeout(30):
        await runtime.close()
        _, result = await running
    assert result.error is not None
    assert result.error.detail == "cancelled"
    await until(lambda: not is_alive(int(file.read_text())))
