"""The record of a call has the end of the output of its tool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.models import CallEvent, Finished, Log, LogPart, ToolCall, ToolResult
from pegboard.runtime import Runtime

PACK = '''
import sys
from pegboard.sdk import log

def talk(*, lines: int = 1, fails: bool = False) -> str:
    """Print lines."""
    for number in range(lines):
        print(f"line {number}")
    print("to stderr", file=sys.stderr)
    log("a note")
    if fails:
        raise ValueError("it failed")
    return "done"

'''


@pytest.fixture
def runtime(write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]) -> Runtime:
    """Return a runtime with a pack whose tools print."""
    return open_runtime(write_pack("noisy.py", PACK))


async def run(runtime: Runtime, tool: str, **args: object) -> tuple[ToolResult, ToolResult]:
    """Return the result of a call, and the recorded one."""
    call = ToolCall.model_validate({"name": tool, "args": args, "source": "form", "session": "one"})
    events: list[CallEvent] = [event async for event in runtime.call(call)]
    assert isinstance(events[-1], Finished)
    recorded = runtime.activity.result(call.id)
    assert recorded is not None
    return events[-1].result, recorded


@pytest.mark.promise("STO-1", "ACT-1")
@pytest.mark.parametrize("fails", [False, True])
async def test_the_record_has_the_output_of_each_stream_and_the_result_for_the_caller_does_not(
    runtime: Runtime, *, fails: bool
) -> None:
    result, recorded = await run(runtime, "noisy.talk", fails=fails)
    assert recorded.ok is not fails
    assert recorded.meta.log == (
        LogPart(stream="stdout", text="line 0\n"),
        LogPart(stream="stderr", text="to stderr\n"),
        LogPart(stream="log", text="a note\n"),
    )
    assert result.meta.log == ()
    assert "log" not in result.model_dump(by_alias=True)["meta"]


@pytest.mark.promise("STO-1")
async def test_of_long_output_the_record_has_the_end(runtime: Runtime) -> None:
    _, recorded = await run(runtime, "noisy.talk", lines=30_000)
    [printed, *_] = recorded.meta.log
    assert printed.text.startswith("…")
    assert printed.text.endswith("\nline 29998\nline 29999\n")
    assert sum(len(part.text) for part in recorded.meta.log) == 20_001


@pytest.mark.promise("STO-1")
async def test_a_script_has_its_output_only_in_its_result(runtime: Runtime) -> None:
    events = [event async for event in runtime.scripts.run("noisy.talk; echo printed", call_id="the-script")]
    assert any(isinstance(event, Log) for event in events)
    recorded = runtime.activity.result("the-script")
    assert recorded is not None
    assert recorded.meta.log == ()
    [inner] = (record for record in runtime.history.records() if record.parent == "the-script")
    assert (kept := runtime.activity.result(inner.id)) is not None
    assert [part.text for part in kept.meta.log] == ["line 0\n", "to stderr\n", "a note\n"]
