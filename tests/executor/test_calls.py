"""Calls from start to end: events, waiting, cancelling, many at once, the end of everything."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from typing import Any  # a bench is a fixture's, and data is a tool's

import pytest

from pegboard.executor import Executor
from pegboard.models import Finished, Log, McpHandler, PackHandler, Progress, Started, ToolCall, ToolResult, ToolSpec

WILD = Path(__file__).parents[1] / "packs" / "executor_wild.py"


@pytest.mark.promise("EXE-3")
async def test_a_call_starts_speaks_and_finishes(bench: Any) -> None:
    events = await bench.events("speak")
    started, *between, finished = events
    assert isinstance(started, Started)
    assert isinstance(finished, Finished)
    assert all(isinstance(event, (Log, Progress)) for event in between)
    assert finished.call == started.call
    assert started.worker == finished.result.meta.worker
    assert str(finished.result.meta.worker).startswith("pid ")
    assert finished.result.meta.size == len('"said"')
    assert 0 < finished.result.meta.duration_ms < 10_000


@pytest.mark.promise("SDK-12")
async def test_everything_a_tool_says_is_told_apart(bench: Any) -> None:
    events = await bench.events("speak")
    assert bench.text(events, "stdout") == "to stdout\nno newline"
    assert bench.text(events, "stderr") == "to stderr\n"
    assert bench.text(events, "log") == "to whoever watches\n"
    last = [event for event in events if isinstance(event, Progress)][-1]
    assert (last.done, last.total, last.message) == (3.0, 3.0, "three")


@pytest.mark.promise("SDK-12")
async def test_what_is_printed_just_before_the_end_is_told_before_it(bench: Any) -> None:
    for _ in range(200):
        assert bench.text(await bench.events("log_then_print"), "stdout") == "printed\n"


@pytest.mark.promise("SDK-12")
@pytest.mark.parametrize(("function", "lines"), [("speak_from_threads", 400), ("speak_async", 1)])
async def test_threads_and_coroutines_are_heard_as_well(bench: Any, function: str, lines: int) -> None:
    events = await bench.events(function)
    assert bench.result(events).data == "said"
    assert bench.text(events, "log").count("\n") == lines
    assert any(isinstance(event, Progress) for event in events)


@pytest.mark.promise("SDK-12")
async def test_what_a_tool_says_is_heard_while_it_runs(bench: Any, tmp_path: Path) -> None:
    sign, heard = tmp_path / "sign", set[str]()
    async with aclosing(bench.stream("speak_then_wait", sign=str(sign))) as events:
        async for event in events:
            heard.add(event.kind)
            if {"log", "progress"} <= heard and not sign.exists():
                sign.touch()
    assert event.result.data == "waited"


@pytest.mark.promise("SDK-12")
async def test_what_native_code_prints_belongs_to_its_call(bench: Any) -> None:
    assert bench.text(await bench.events("print_natively")) == "from C"


async def test_what_a_process_prints_that_a_call_left_belongs_to_no_other_call(bench: Any, tmp_path: Path) -> None:
    go, done = tmp_path / "go", tmp_path / "done"
    assert (await bench.run("leave_printer", go=str(go), done=str(done))).ok
    go.touch()
    assert bench.text(await bench.events("echo")) == ""


@pytest.mark.promise("SDK-13")
async def test_tool_failed_ends_a_call_in_the_authors_words(bench: Any) -> None:
    result = await bench.run("fail", data={"success": False})
    assert (result.ok, result.data) == (False, {"success": False})
    assert (result.error.code, result.error.detail) == ("execution_error", "not_found")
    assert result.error.message == "no such dataset"
    assert result.meta.traceback is None


@pytest.mark.promise("SDK-13")
async def test_tool_failed_with_data_that_cant_be_written_says_both(bench: Any) -> None:
    strange = await bench.run("fail_strangely")
    assert strange.error.message == "LookupError: no second item"
    unfit = await bench.run("fail_with_object")
    assert unfit.error.message.startswith("failed (The result can't be written as JSON: an object of type object")
    assert unfit.error.detail == "404"
    assert await bench.still_works()


@pytest.mark.promise("SDK-13")
@pytest.mark.parametrize("function", ["raise_deeper", "raise_async"])
async def test_another_exception_has_its_type_message_and_the_tools_own_frames(bench: Any, function: str) -> None:
    result = await bench.run(function)
    assert result.error.message == "ValueError: 3 is not to my taste"
    assert result.error.detail is None
    lines = [line.strip() for line in result.meta.traceback.splitlines()]
    files = [line for line in lines if line.startswith("File ")]
    assert [line.rpartition(" in ")[2] for line in files] == [function, "_inner"]
    assert all(str(WILD) in line for line in files)


async def test_a_library_that_is_missing_is_named_with_how_to_install_it(bench: Any) -> None:
    result = await bench.run("need_library")
    assert result.error.detail == "dependency_missing"
    assert f"{sys.executable} -m pip install yaml_that_nobody_has" in result.error.message


@pytest.mark.promise("EXE-4")
async def test_a_running_call_can_be_cancelled(bench: Any, tmp_path: Path, is_gone: Callable[[int], bool]) -> None:
    sign = tmp_path / "sign"
    call = asyncio.ensure_future(bench.events("hang_in_c", call_id="mine", sign=str(sign)))
    await bench.until(lambda: sign.exists() and sign.read_text().endswith("}"))
    assert await bench.executor.cancel("mine")
    result = bench.result(await call)
    assert (result.error.code, result.error.detail) == ("execution_error", "cancelled")
    await bench.until(lambda: is_gone(bench.read(sign)["group"]))
    assert not await bench.executor.cancel("mine")
    assert await bench.still_works()


@pytest.mark.promise("EXE-4")
async def test_a_waiting_call_can_be_cancelled_and_never_starts(bench: Any) -> None:
    first = asyncio.ensure_future(bench.events("loop_for_ever", call_id="first"))
    second = asyncio.ensure_future(bench.events("loop_for_ever", call_id="second"))
    third = asyncio.ensure_future(bench.run("echo", value=3))
    await asyncio.sleep(0)
    assert await bench.executor.cancel("second")
    [finished] = await second
    assert finished.result.error.detail == "cancelled"
    assert await bench.executor.cancel("first")
    assert bench.result(await first).error.detail == "cancelled"
    assert (await third).data == 3


@pytest.mark.promise("EXE-4")
async def test_waiting_for_a_worker_does_not_count_as_time_of_the_tool(bench: Any) -> None:
    slow = asyncio.ensure_future(bench.run("wait", seconds=2.1, value="slow"))
    quick = asyncio.ensure_future(bench.run("wait", limit=2.0, seconds=0.0, value="quick"))
    assert [(await slow).data, (await quick).data] == ["slow", "quick"]


@pytest.mark.promise("EXE-4")
async def test_who_stops_listening_ends_the_tool(bench: Any, tmp_path: Path, is_gone: Callable[[int], bool]) -> None:
    sign = tmp_path / "sign"
    call = asyncio.ensure_future(bench.events("hang_in_c", sign=str(sign)))
    await bench.until(lambda: sign.exists() and sign.read_text().endswith("}"))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await bench.until(lambda: is_gone(bench.read(sign)["group"]))
    assert await bench.still_works()


async def test_who_stops_waiting_for_a_worker_leaves_the_others_in_order(bench: Any) -> None:
    calls = [asyncio.ensure_future(bench.run("wait", seconds=0.05, value=number)) for number in range(5)]
    await asyncio.sleep(0)
    calls[2].cancel()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [getattr(answer, "data", None) for answer in answers] == [0, 1, None, 3, 4]
    assert isinstance(answers[2], asyncio.CancelledError)


@pytest.mark.promise("EXE-5")
async def test_of_a_thousand_interleaved_calls_each_gets_its_own_answer(open_bench: Callable[..., Any]) -> None:
    bench = open_bench(workers=4)

    async def one(number: int) -> tuple[object, str]:
        events = await (
            bench.events("wait", seconds=number % 7 / 2000, value={"number": number})
            if number % 2
            else bench.events("echo", value={"number": number})
        )
        return bench.result(events).data, bench.result(events).meta.worker

    answers = await asyncio.gather(*map(one, range(1000)))
    assert [data for data, _ in answers] == [{"number": number} for number in range(1000)]
    assert len({worker for _, worker in answers}) == 4


@pytest.mark.promise("EXE-5")
async def test_output_goes_to_the_call_that_made_it(open_bench: Callable[..., Any], tmp_path: Path) -> None:
    pack = tmp_path / "printer.py"
    pack.write_text("def say(*, number):\n    for _ in range(50):\n        print(number)\n    return number\n")
    bench = open_bench(workers=3)
    calls = await asyncio.gather(*(bench.events("say", pack, number=number) for number in range(100)))
    for number, events in enumerate(calls):
        assert bench.result(events).data == number
        assert bench.text(events) == f"{number}\n" * 50


@pytest.mark.promise("EXE-4")
async def test_calls_that_end_badly_all_at_once_leave_the_others_unharmed(open_bench: Callable[..., Any]) -> None:
    bench = open_bench(workers=3)
    wild = ["segfault", "exit_hard", "exit_soft", "raise_deeper", "echo"] * 6
    results = await asyncio.gather(*(bench.run(function) for function in wild))
    for function, result in zip(wild, results, strict=True):
        assert result.ok == (function == "echo")
        assert function == "echo" or result.error.detail in {"crashed", None}
    assert await bench.still_works()


async def test_no_more_workers_run_than_may(open_bench: Callable[..., Any]) -> None:
    bench = open_bench(workers=2)
    workers = await asyncio.gather(*(bench.run("where") for _ in range(30)))
    assert len({result.data["pid"] for result in workers}) <= 2


async def test_a_large_argument_arrives_whole(bench: Any) -> None:
    text = "é\u2028" * 1_000_000
    result = await bench.run("echo", value=text)
    assert result.meta.size > 4_000_000
    assert result.data == text[: len(result.data) - 1] + "…"
    assert len(result.data) > 100_000


@pytest.mark.parametrize("value", [{"a": float("inf")}, object(), 10**5000], ids=["infinite", "object", "huge"])
async def test_an_argument_that_is_no_json_is_refused(bench: Any, value: Any) -> None:
    spec = bench.spec(WILD, "echo")
    call = ToolCall.model_construct(id="x", name=spec.name, args={"value": value}, source="sdk")
    events = [event async for event in bench.executor.run(spec, call, timeout=10)]
    result = bench.result(events)
    if isinstance(value, dict):
        assert result.data == {"a": "Infinity"}
    else:
        assert result.error.code == "invalid_args"
    assert await bench.still_works()


async def test_a_tool_of_a_server_is_not_run_here(bench: Any) -> None:
    spec = ToolSpec(name="s.t", pack="s", input_schema={}, handler=McpHandler(server="s", tool="t"))
    call = ToolCall(name="s.t", source="cli")
    [finished] = [event async for event in bench.executor.run(spec, call, timeout=10)]
    assert finished.result.error.code == "execution_error"


async def test_one_id_runs_once_at_a_time(bench: Any) -> None:
    first = asyncio.ensure_future(bench.events("wait", call_id="same", seconds=0.2, value=1))
    await asyncio.sleep(0)
    second = await bench.events("wait", call_id="same", value=2)
    assert bench.result(second).error.message.endswith("is running already.")
    assert bench.result(await first).data == 1


@pytest.mark.promise("EXE-4")
async def test_closing_ends_running_and_waiting_calls_and_every_process(
    bench: Any, tmp_path: Path, is_gone: Callable[[int], bool]
) -> None:
    before = bench.descriptors()
    sign = tmp_path / "sign"
    running = asyncio.ensure_future(bench.events("hang_in_c", sign=str(sign)))
    waiting = asyncio.ensure_future(bench.events("echo"))
    await bench.until(lambda: sign.exists() and sign.read_text().endswith("}"))
    await bench.executor.close()
    assert bench.result(await running).error.detail == "cancelled"
    assert bench.result(await waiting).error.detail == "cancelled"
    await bench.until(lambda: is_gone(bench.read(sign)["group"]))
    assert bench.result(await bench.events("echo")).error.detail == "cancelled"
    assert bench.descriptors() == before


async def test_a_worker_that_is_killed_from_outside_is_replaced(bench: Any, is_gone: Callable[[int], bool]) -> None:
    pid = (await bench.run("where")).data["pid"]
    os.kill(pid, signal.SIGKILL)
    await bench.until(lambda: is_gone(pid))
    result = await bench.run("where")
    # it may have been asked before its end was known; then that call says so, and the next is fine
    assert result.ok or result.error.detail == "crashed"
    assert (await bench.run("where")).data["pid"] != pid


async def test_a_python_that_cant_be_started_is_said_so(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    for result in await asyncio.gather(bench.run("echo"), bench.run("echo")):
        assert "A worker process can't be started" in result.error.message
        assert result.error.detail == "crashed"
    monkeypatch.undo()
    assert await bench.still_works()


async def test_a_worker_that_ends_before_it_is_ready_is_said_so(
    bench: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho some context >&2\necho no pegboard here >&2\nexit 7\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    for result in await asyncio.gather(bench.run("echo"), bench.run("echo")):
        assert "ended before it could run anything (exit code 7: no pegboard here)" in result.error.message
    monkeypatch.undo()
    assert await bench.still_works()


async def test_a_deleted_working_directory_stops_no_tool(
    bench: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert await bench.still_works()


async def test_while_a_worker_is_busy_another_is_kept_warm(open_bench: Callable[..., Any]) -> None:
    bench = open_bench(workers=3)
    call = asyncio.ensure_future(bench.events("loop_for_ever", call_id="busy"))
    await bench.until(lambda: len(bench.workers()) == 2)
    assert await bench.executor.cancel("busy")
    await call
    assert await bench.still_works()


async def test_workers_that_are_idle_for_long_are_ended_but_one(
    open_bench: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.executor.pool._IDLE_SECONDS", 0.05)
    bench = open_bench(workers=4)
    await asyncio.gather(*(bench.run("wait", seconds=0.3) for _ in range(4)))
    await bench.until(lambda: len(bench.workers()) == 1)
    assert await bench.still_works()


async def test_a_warm_process_is_there_before_the_first_call(bench: Any) -> None:
    await bench.executor.prewarm()
    await bench.executor.prewarm()
    assert await bench.still_works()


def test_an_executor_serves_one_event_loop_after_another(tmp_path: Path, is_gone: Callable[[int], bool]) -> None:
    executor = Executor(results=tmp_path)
    pids: list[int] = []

    handler = PackHandler(pack="executor_wild", function="where", file=str(WILD), line=1)
    spec = ToolSpec(name="executor_wild.where", pack="executor_wild", input_schema={}, handler=handler)

    async def where() -> None:
        events = [event async for event in executor.run(spec, ToolCall(name=spec.name, source="cli"), timeout=10)]
        assert isinstance(events[-1], Finished)
        data: Any = events[-1].result.data
        pids.append(data["pid"])

    asyncio.run(where())
    asyncio.run(where())
    asyncio.run(executor.close())
    assert len(set(pids)) == 2
    assert all(map(is_gone, pids))  # they had no children that could die a moment later


@pytest.mark.promise("EXE-5")
def test_an_executor_serves_several_event_loops_at_once(tmp_path: Path, is_gone: Callable[[int], bool]) -> None:
    executor = Executor(results=tmp_path)
    handler = PackHandler(pack="executor_wild", function="where", file=str(WILD), line=1)
    where = ToolSpec(name="executor_wild.where", pack="executor_wild", input_schema={}, handler=handler)
    faults: list[object] = []
    together = threading.Barrier(3, timeout=30)
    pids: set[int] = set()

    async def call_often() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        for _ in range(20):
            async for event in executor.run(where, ToolCall(name=where.name, source="cli"), timeout=20):
                if isinstance(event, Finished):
                    data: Any = event.result.data
                    pids.add(data["pid"])
            await asyncio.to_thread(together.wait)

    with ThreadPoolExecutor(3) as threads:
        for calls in [threads.submit(lambda: asyncio.run(call_often())) for _ in range(3)]:
            calls.result(timeout=60)
    asyncio.run(executor.close())
    assert not faults
    assert len(pids) == 3
    assert all(map(is_gone, pids))


def test_closing_in_one_event_loop_ends_the_calls_of_another(
    tmp_path: Path, is_gone: Callable[[int], bool], wait_for: Callable[[Callable[[], bool]], None]
) -> None:
    executor = Executor(results=tmp_path)
    sign = tmp_path / "sign"
    handler = PackHandler(pack="executor_wild", function="hang_in_c", file=str(WILD), line=1)
    hang = ToolSpec(name="executor_wild.hang_in_c", pack="executor_wild", input_schema={}, handler=handler)

    async def call(number: int) -> ToolResult:
        request = ToolCall(id=f"call{number}", name=hang.name, args={"sign": f"{sign}{number}"}, source="cli")
        *_, last = [event async for event in executor.run(hang, request, timeout=60)]
        assert isinstance(last, Finished)
        return last.result

    async def end() -> None:
        async with asyncio.timeout(20):
            for number in (1, 2):
                while not Path(f"{sign}{number}").exists():  # noqa: ASYNC110, ASYNC240 - files raise no event here
                    await asyncio.sleep(0.01)
        assert await executor.cancel("call1")
        await executor.close()

    with ThreadPoolExecutor(2) as threads:
        calls = [threads.submit(asyncio.run, call(number)) for number in (1, 2)]
        asyncio.run(end())
        for ended in calls:
            error = ended.result(timeout=30).error
            assert error is not None
            assert error.detail == "cancelled"
    groups = [json.loads(Path(f"{sign}{number}").read_text())["group"] for number in (1, 2)]
    wait_for(lambda: all(map(is_gone, groups)))


FORKING_PARENT = """
import asyncio, os, sys, time
from pathlib import Path
from pegboard.executor import Executor
from pegboard.models import PackHandler, ToolCall, ToolSpec

async def fork_once(sign, forked):
    while not Path(sign).exists():
        await asyncio.sleep(0.01)
    if os.fork() == 0:
        Path(forked).write_text(f"{os.getpid()}.")
        time.sleep(1000)
        os._exit(0)

async def main(file, results, sign, forked):
    executor = Executor(results=Path(results))
    handler = PackHandler(pack="wild", function="hang_in_c", file=file, line=1)
    spec = ToolSpec(name="wild.hang_in_c", pack="wild", input_schema={}, handler=handler)
    forking = asyncio.create_task(fork_once(sign, forked))
    async for event in executor.run(spec, ToolCall(name=spec.name, args={"sign": sign}, source="cli"), timeout=1000):
        pass

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.promise("EXE-4")
def test_no_process_of_a_worker_is_left_when_only_a_fork_of_the_app_lives_on(
    tmp_path: Path, is_gone: Callable[[int], bool], wait_for: Callable[[Callable[[], bool]], None]
) -> None:
    sign, forked = tmp_path / "sign", tmp_path / "forked"
    app = subprocess.Popen([sys.executable, "-c", FORKING_PARENT, *map(str, (WILD, tmp_path, sign, forked))])
    try:
        wait_for(lambda: forked.exists() and forked.read_text().endswith("."))
    finally:
        app.kill()
    app.wait(timeout=20)
    try:
        group = json.loads(sign.read_text())["group"]
        wait_for(lambda: is_gone(group))
    finally:
        os.kill(int(forked.read_text()[:-1]), signal.SIGKILL)


PARENT = """
import asyncio, sys
from pathlib import Path
from pegboard.executor import Executor
from pegboard.models import PackHandler, ToolCall, ToolSpec

async def main():
    executor = Executor(results=Path(sys.argv[2]))
    file = sys.argv[1]

    async def call(function, **args):
        handler = PackHandler(pack="wild", function=function, file=file, line=1)
        spec = ToolSpec(name="wild." + function, pack="wild", input_schema={}, handler=handler)
        async for event in executor.run(spec, ToolCall(name=spec.name, args=args, source="cli"), timeout=1000):
            pass

    await call("where")
    await asyncio.gather(
        call("hang_in_c", sign=sys.argv[3]),
        call("detach", sign=sys.argv[4], then="hang"),
        call("detach", sign=sys.argv[5], then="hang"),
    )

asyncio.run(main())
"""


@pytest.mark.promise("EXE-4")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_of_a_worker_is_left_when_the_app_is_killed(
    tmp_path: Path,
    is_gone: Callable[[int], bool],
    wait_for: Callable[[Callable[[], bool]], None],
    end: signal.Signals,
) -> None:
    signs = [tmp_path / name for name in ("hanging", "detached", "detached too")]
    script = [sys.executable, "-c", textwrap.dedent(PARENT), str(WILD), str(tmp_path), *map(str, signs)]
    app = subprocess.Popen(script, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: all(sign.exists() and sign.read_text().endswith("}") for sign in signs))
        groups = {json.loads(sign.read_text())["group"] for sign in signs}
        assert not any(map(is_gone, groups))
    finally:
        app.send_signal(end)
    app.wait(timeout=20)
    wait_for(lambda: all(map(is_gone, groups)))
