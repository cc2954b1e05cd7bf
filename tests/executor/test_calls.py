"""Calls from start to end: events, waiting, cancellation, concurrency, closing."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from typing import Any  # fixtures, and data of tools

import pytest
from processes import until

from pegboard.executor import Executor
from pegboard.models import Finished, Log, McpHandler, PackHandler, Progress, Started, ToolCall, ToolResult, ToolSpec

WILD = Path(__file__).parents[1] / "packs" / "executor_wild.py"


@pytest.mark.promise("EXE-3")
async def test_a_call_yields_started_logs_and_finished(harness: Any) -> None:
    events = await harness.events("speak")
    started, *between, finished = events
    assert isinstance(started, Started)
    assert isinstance(finished, Finished)
    assert all(isinstance(event, (Log, Progress)) for event in between)
    assert finished.call == started.call
    assert started.worker == finished.result.meta.worker
    assert str(finished.result.meta.worker).startswith("pid ")
    assert finished.result.meta.size == len('"said"')
    assert 0 < finished.result.meta.duration_ms < 10_000


@pytest.mark.promise("EXE-3")
async def test_arguments_of_100_mb_reach_the_tool(harness: Any) -> None:
    [*_, finished] = await harness.events("measure", value="x" * 100_000_000)
    assert finished.result.data == 100_000_000


def open_files() -> int:
    """Return the number of files that this process has open."""
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.mark.promise("EXE-4")
async def test_a_worker_that_cannot_start_leaves_no_file_open(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket, "socketpair", fail)
    before = open_files()
    [*_, finished] = await harness.events("speak")
    assert "Too many open files" in finished.result.error.message
    assert open_files() == before


@pytest.mark.promise("SDK-12")
async def test_output_logs_and_progress_are_distinguished(harness: Any) -> None:
    events = await harness.events("speak")
    assert harness.text(events, "stdout") == "to stdout\nno newline"
    assert harness.text(events, "stderr") == "to stderr\n"
    assert harness.text(events, "log") == "a line for the log\n"
    last = [event for event in events if isinstance(event, Progress)][-1]
    assert (last.done, last.total, last.message) == (3.0, 3.0, "three")


@pytest.mark.promise("SDK-12", "EXE-4")
async def test_progress_that_is_not_a_number_or_has_no_end_is_ignored(harness: Any) -> None:
    events = await harness.events("report_no_number")
    assert harness.result(events).data == "said"
    assert [(event.done, event.total) for event in events if isinstance(event, Progress)] == [(1.0, 4.0)]


@pytest.mark.promise("SDK-12")
async def test_the_last_output_comes_before_the_result(harness: Any) -> None:
    for _ in range(200):
        assert harness.text(await harness.events("log_then_print"), "stdout") == "printed\n"


@pytest.mark.promise("SDK-12")
@pytest.mark.parametrize(("function", "lines"), [("speak_from_threads", 400), ("speak_async", 1)])
async def test_output_of_threads_and_coroutines_is_included(harness: Any, function: str, lines: int) -> None:
    events = await harness.events(function)
    assert harness.result(events).data == "said"
    assert harness.text(events, "log").count("\n") == lines
    assert any(isinstance(event, Progress) for event in events)


@pytest.mark.promise("SDK-12")
async def test_events_arrive_while_the_tool_runs(harness: Any, tmp_path: Path) -> None:
    sign, heard = tmp_path / "sign", set[str]()
    async with aclosing(harness.stream("speak_then_wait", sign=str(sign))) as events:
        async for event in events:
            heard.add(event.kind)
            if {"log", "progress"} <= heard and not sign.exists():
                sign.touch()
    assert event.result.data == "waited"


@pytest.mark.promise("SDK-12")
async def test_the_last_of_several_quick_reports_arrives_while_the_tool_runs(harness: Any, tmp_path: Path) -> None:
    processes = set()
    for number in range(20):
        sign = tmp_path / f"sign{number}"
        async with aclosing(harness.stream("report_quickly", sign=str(sign))) as events:
            async for event in events:
                if isinstance(event, Progress) and event.done == 5:
                    sign.touch()
        assert event.result.data == "said"
        processes.add(event.result.meta.worker)
    assert len(processes) == 1, "no thread of a report is a leftover of the call"


@pytest.mark.promise("SDK-12")
async def test_output_of_native_code_belongs_to_its_call(harness: Any) -> None:
    assert harness.text(await harness.events("print_natively")) == "from C"


async def test_output_of_remaining_processes_belongs_to_no_other_call(harness: Any, tmp_path: Path) -> None:
    go, done = tmp_path / "go", tmp_path / "done"
    assert (await harness.run("leave_printer", go=str(go), done=str(done))).ok
    go.touch()
    assert harness.text(await harness.events("echo")) == ""


@pytest.mark.promise("SDK-13")
async def test_tool_failed_ends_a_call_with_its_message(harness: Any) -> None:
    result = await harness.run("fail", data={"success": False})
    assert (result.ok, result.data) == (False, {"success": False})
    assert (result.error.code, result.error.detail) == ("execution_error", "not_found")
    assert result.error.message == "no such dataset"
    assert result.meta.traceback is None
    assert result.meta.size == len('{"success":false}')


@pytest.mark.promise("SDK-13")
async def test_tool_failed_with_data_without_json_form_reports_both(harness: Any) -> None:
    strange = await harness.run("fail_strangely")
    assert strange.error.message == "LookupError: no second item"
    unfit = await harness.run("fail_with_object")
    assert unfit.error.message.startswith("failed (The result can't be converted to JSON: an object of type object")
    assert unfit.error.detail == "404"
    assert await harness.still_works()


@pytest.mark.promise("SDK-13")
@pytest.mark.parametrize("function", ["raise_deeper", "raise_async"])
async def test_an_exception_is_reported_with_type_message_and_the_frames_of_the_tool(
    harness: Any, function: str
) -> None:
    result = await harness.run(function)
    assert result.error.message == "ValueError: 3 is not to my taste"
    assert result.error.detail is None
    lines = [line.strip() for line in result.meta.traceback.splitlines()]
    files = [line for line in lines if line.startswith("File ")]
    assert [line.rpartition(" in ")[2] for line in files] == [function, "_inner"]
    assert all(str(WILD) in line for line in files)
    assert result.meta.size == 0


async def test_a_missing_library_is_reported_with_an_install_command(harness: Any) -> None:
    result = await harness.run("need_library")
    assert result.error.detail == "dependency_missing"
    assert f"{sys.executable} -P -m pip install yaml_that_nobody_has" in result.error.message


async def test_no_install_command_is_guessed_for_a_module_of_python(harness: Any, tmp_path: Path) -> None:
    file = tmp_path / "registry.py"
    file.write_text('def read() -> None:\n    "Read the registry."\n    import winreg\n')
    result = await harness.run("read", file)
    assert result.error.detail == "dependency_missing"
    assert result.error.message == (
        "ModuleNotFoundError: No module named 'winreg'. "
        "It is a module of Python that this build lacks. Use a Python that has it"
    )


async def test_no_install_command_is_guessed_for_a_name_that_many_libraries_share(harness: Any) -> None:
    result = await harness.run("need_part_of_namespace")
    assert result.error.detail == "dependency_missing"
    assert result.error.message == (
        "ModuleNotFoundError: No module named 'azure'. Many libraries are parts of `azure`. "
        "Install the one that the import needs"
    )


@pytest.mark.promise("EXE-4")
async def test_a_running_call_can_be_cancelled(harness: Any, tmp_path: Path, is_gone: Callable[[int], bool]) -> None:
    sign = tmp_path / "sign"
    call = asyncio.ensure_future(harness.events("hang_in_c", call_id="mine", sign=str(sign)))
    await until(lambda: sign.exists() and sign.read_text().endswith("}"))
    assert await harness.executor.cancel("mine")
    result = harness.result(await call)
    assert (result.error.code, result.error.detail) == ("execution_error", "cancelled")
    await until(lambda: is_gone(harness.read(sign)["group"]))
    assert not await harness.executor.cancel("mine")
    assert await harness.still_works()


@pytest.mark.promise("EXE-4")
async def test_a_waiting_call_can_be_cancelled_and_never_starts(harness: Any) -> None:
    first = asyncio.ensure_future(harness.events("loop_for_ever", call_id="first"))
    second = asyncio.ensure_future(harness.events("loop_for_ever", call_id="second"))
    third = asyncio.ensure_future(harness.run("echo", value=3))
    await asyncio.sleep(0)
    assert await harness.executor.cancel("second")
    [finished] = await second
    assert finished.result.error.detail == "cancelled"
    assert await harness.executor.cancel("first")
    assert harness.result(await first).error.detail == "cancelled"
    assert (await third).data == 3


@pytest.mark.promise("EXE-4")
async def test_waiting_for_a_worker_does_not_count_towards_the_timeout(harness: Any) -> None:
    slow = asyncio.ensure_future(harness.run("wait", seconds=2.1, value="slow"))
    quick = asyncio.ensure_future(harness.run("wait", limit=2.0, seconds=0.0, value="quick"))
    assert [(await slow).data, (await quick).data] == ["slow", "quick"]


@pytest.mark.promise("EXE-4")
async def test_closing_the_events_ends_the_tool(harness: Any, tmp_path: Path, is_gone: Callable[[int], bool]) -> None:
    sign = tmp_path / "sign"
    call = asyncio.ensure_future(harness.events("hang_in_c", sign=str(sign)))
    await until(lambda: sign.exists() and sign.read_text().endswith("}"))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: is_gone(harness.read(sign)["group"]))
    assert await harness.still_works()


async def test_cancelling_a_waiting_call_keeps_the_order_of_the_others(harness: Any) -> None:
    calls = [asyncio.ensure_future(harness.run("wait", seconds=0.05, value=number)) for number in range(5)]
    await asyncio.sleep(0)
    calls[2].cancel()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [getattr(answer, "data", None) for answer in answers] == [0, 1, None, 3, 4]
    assert isinstance(answers[2], asyncio.CancelledError)


@pytest.mark.promise("EXE-5")
async def test_a_thousand_interleaved_calls_get_their_own_results(open_harness: Callable[..., Any]) -> None:
    harness = open_harness(workers=4)

    async def one(number: int) -> tuple[object, str]:
        events = await (
            harness.events("wait", seconds=number % 7 / 2000, value={"number": number})
            if number % 2
            else harness.events("echo", value={"number": number})
        )
        return harness.result(events).data, harness.result(events).meta.worker

    answers = await asyncio.gather(*map(one, range(1000)))
    assert [data for data, _ in answers] == [{"number": number} for number in range(1000)]
    assert len({worker for _, worker in answers}) == 4


@pytest.mark.promise("EXE-5")
async def test_output_goes_to_the_call_that_made_it(open_harness: Callable[..., Any], tmp_path: Path) -> None:
    pack = tmp_path / "printer.py"
    pack.write_text("def say(*, number):\n    for _ in range(50):\n        print(number)\n    return number\n")
    harness = open_harness(workers=3)
    calls = await asyncio.gather(*(harness.events("say", pack, number=number) for number in range(100)))
    for number, events in enumerate(calls):
        assert harness.result(events).data == number
        assert harness.text(events) == f"{number}\n" * 50


@pytest.mark.promise("EXE-4")
async def test_concurrent_crashes_do_not_affect_other_calls(open_harness: Callable[..., Any]) -> None:
    harness = open_harness(workers=3)
    wild = ["segfault", "exit_hard", "exit_soft", "raise_deeper", "echo"] * 6
    results = await asyncio.gather(*(harness.run(function) for function in wild))
    for function, result in zip(wild, results, strict=True):
        assert result.ok == (function == "echo")
        assert function == "echo" or result.error.detail in {"crashed", None}
    assert await harness.still_works()


async def test_the_number_of_workers_is_limited(open_harness: Callable[..., Any]) -> None:
    harness = open_harness(workers=2)
    workers = await asyncio.gather(*(harness.run("where") for _ in range(30)))
    assert len({result.data["pid"] for result in workers}) <= 2


async def test_a_large_argument_arrives_completely(harness: Any) -> None:
    text = "é\u2028" * 1_000_000
    result = await harness.run("echo", value=text)
    assert result.meta.size > 4_000_000
    assert result.data == text[: len(result.data) - 1] + "…"
    assert len(result.data) > 100_000


@pytest.mark.parametrize("value", [{"a": float("inf")}, object(), 10**5000], ids=["infinite", "object", "huge"])
async def test_an_argument_without_a_json_form_is_rejected(harness: Any, value: Any) -> None:
    spec = harness.spec(WILD, "echo")
    call = ToolCall.model_construct(id="x", name=spec.name, args={"value": value}, source="sdk")
    events = [event async for event in harness.executor.run(spec, call, timeout=10)]
    result = harness.result(events)
    if isinstance(value, dict):
        assert result.data == {"a": "Infinity"}
    else:
        assert result.error.code == "invalid_args"
    assert await harness.still_works()


async def test_a_tool_of_a_server_is_rejected(harness: Any) -> None:
    spec = ToolSpec(name="s.t", pack="s", input_schema={}, handler=McpHandler(server="s", tool="t"))
    call = ToolCall(name="s.t", source="cli")
    [finished] = [event async for event in harness.executor.run(spec, call, timeout=10)]
    assert finished.result.error.code == "execution_error"


async def test_a_call_id_that_is_already_running_is_rejected(harness: Any) -> None:
    first = asyncio.ensure_future(harness.events("wait", call_id="same", seconds=0.2, value=1))
    await asyncio.sleep(0)
    second = await harness.events("wait", call_id="same", value=2)
    assert harness.result(second).error.message.endswith("is already running.")
    assert harness.result(await first).data == 1


@pytest.mark.promise("EXE-4")
async def test_closing_ends_running_and_waiting_calls_and_every_process(
    harness: Any, tmp_path: Path, is_gone: Callable[[int], bool]
) -> None:
    before = harness.descriptors()
    sign = tmp_path / "sign"
    running = asyncio.ensure_future(harness.events("hang_in_c", sign=str(sign)))
    waiting = asyncio.ensure_future(harness.events("echo"))
    await until(lambda: sign.exists() and sign.read_text().endswith("}"))
    await harness.executor.close()
    assert harness.result(await running).error.detail == "cancelled"
    assert harness.result(await waiting).error.detail == "cancelled"
    await until(lambda: is_gone(harness.read(sign)["group"]))
    assert harness.result(await harness.events("echo")).error.detail == "cancelled"
    assert harness.descriptors() == before


async def test_a_worker_that_is_killed_from_outside_is_replaced(harness: Any, is_gone: Callable[[int], bool]) -> None:
    pid = (await harness.run("where")).data["pid"]
    os.kill(pid, signal.SIGKILL)
    await until(lambda: is_gone(pid))
    result = await harness.run("where")
    # the call fails if it reached the worker before its end was known; the next one succeeds
    assert result.ok or result.error.detail == "crashed"
    assert (await harness.run("where")).data["pid"] != pid


async def test_a_missing_interpreter_is_reported(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    for result in await asyncio.gather(harness.run("echo"), harness.run("echo")):
        assert "No worker process could be started" in result.error.message
        assert result.error.detail == "crashed"
    monkeypatch.undo()
    assert await harness.still_works()


async def test_a_worker_that_ends_before_it_is_ready_is_reported(
    harness: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho some context >&2\necho no pegboard here >&2\nexit 7\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    for result in await asyncio.gather(harness.run("echo"), harness.run("echo")):
        assert "ended before the call started (exit code 7: no pegboard here)" in result.error.message
    monkeypatch.undo()
    assert await harness.still_works()


async def test_a_deleted_working_directory_does_not_affect_tools(
    harness: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert await harness.still_works()


async def test_a_spare_worker_starts_while_one_is_busy(open_harness: Callable[..., Any]) -> None:
    harness = open_harness(workers=3)
    call = asyncio.ensure_future(harness.events("loop_for_ever", call_id="busy"))
    await until(lambda: len(harness.workers()) == 2)
    assert await harness.executor.cancel("busy")
    await call
    assert await harness.still_works()


async def test_long_idle_workers_end_except_one(
    open_harness: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.executor.pool._IDLE_SECONDS", 0.05)
    harness = open_harness(workers=4)
    await asyncio.gather(*(harness.run("wait", seconds=0.3) for _ in range(4)))
    await until(lambda: len(harness.workers()) == 1)
    assert await harness.still_works()


async def test_prewarm_starts_a_process_before_the_first_call(harness: Any) -> None:
    await harness.executor.prewarm()
    await harness.executor.prewarm()
    assert await harness.still_works()


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
    assert all(map(is_gone, pids))  # they had no children that could end later


@pytest.mark.promise("EXE-5")
def test_an_executor_serves_several_event_loops_concurrently(tmp_path: Path, is_gone: Callable[[int], bool]) -> None:
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
def test_no_worker_process_remains_when_only_a_fork_of_the_app_survives(
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
def test_no_worker_process_remains_when_the_app_is_killed(
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
