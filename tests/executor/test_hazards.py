"""Defective tools, which must affect only their own call."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any  # fixtures

import pytest
from processes import is_alive, until

pytestmark = pytest.mark.promise("EXE-3", "EXE-4")


async def test_an_endless_loop_ends_at_the_timeout(harness: Any) -> None:
    assert await harness.still_works()
    events = await harness.events("loop_for_ever", limit=1.5)
    result = harness.result(events)
    assert (result.ok, result.error.code, result.error.detail) == (False, "execution_error", "timeout")
    assert "1.5 s" in result.error.message
    assert result.meta.duration_ms >= 1500
    assert harness.text(events) == "looping\n"
    assert await harness.still_works()


async def test_a_tool_that_hangs_in_c_is_ended_with_its_children(
    harness: Any, tmp_path: Path, is_gone: Callable[[int], bool]
) -> None:
    sign = tmp_path / "sign"
    assert await harness.still_works()
    result = await harness.run("hang_in_c", limit=3.0, sign=str(sign))
    assert result.error.detail == "timeout"
    group = harness.read(sign)["group"]
    await until(lambda: is_gone(group))
    assert await harness.still_works()


@pytest.mark.parametrize("code", [0, 3])
async def test_a_tool_that_ends_its_process_has_crashed_and_its_output_is_kept(harness: Any, code: int) -> None:
    events = await harness.events("exit_hard", code=code)
    result = harness.result(events)
    assert (result.error.code, result.error.detail) == ("execution_error", "crashed")
    assert f"exit code {code}" in result.error.message
    assert harness.text(events) == "last words\n"
    assert await harness.still_works()


async def test_a_tool_that_segfaults_has_crashed(harness: Any) -> None:
    result = await harness.run("segfault")
    assert result.error.detail == "crashed"
    assert "SIGSEGV" in result.error.message
    assert await harness.still_works()


@pytest.mark.parametrize(
    ("function", "message"),
    [("exit_soft", "SystemExit: 4"), ("exit_in_async", "SystemExit: 5"), ("interrupt", "KeyboardInterrupt")],
)
async def test_a_tool_that_raises_system_exit_only_fails(harness: Any, function: str, message: str) -> None:
    result = await harness.run(function)
    assert (result.error.code, result.error.detail, result.error.message) == ("execution_error", "crashed", message)
    assert function in result.meta.traceback
    assert await harness.still_works()


async def test_binary_output_becomes_text_with_replacement_characters(harness: Any) -> None:
    events = await harness.events("rubbish")
    assert harness.result(events).data == "printed"
    assert "\ufffd" in harness.text(events, "stdout")
    assert "\\ud800 alone" in harness.text(events, "stdout")
    assert harness.text(events, "stderr").startswith("\ufffd\ufffd\x00\x1b[31m")
    harness.text(events).encode()
    assert await harness.still_works()


async def test_standard_input_is_empty(harness: Any) -> None:
    assert (await harness.run("read_stdin")).data == ""


@pytest.mark.parametrize("function", ["leave_child", "leave_orphan"])
async def test_a_call_does_not_wait_for_its_background_processes(
    open_harness: Callable[..., Any], tmp_path: Path, is_gone: Callable[[int], bool], function: str
) -> None:
    harness = open_harness(workers=1)
    sign = tmp_path / "sign"
    result = await harness.run(function, limit=20, sign=str(sign))
    assert result.ok
    assert await harness.still_works()
    await harness.executor.close()
    await until(lambda: is_gone(harness.read(sign)["group"]))


async def test_only_the_parent_of_a_forking_tool_answers(harness: Any) -> None:
    assert (await harness.run("fork_and_return")).data == "parent"
    assert await harness.still_works()


@pytest.mark.parametrize(
    ("function", "where"),
    [
        ("no_json", "_thread.lock at .results[1].lock"),
        ("cycle", "contains itself at .value[1]"),
        ("deep", "nested"),
    ],
)
async def test_a_result_without_a_json_form_is_reported_with_type_and_path(
    harness: Any, function: str, where: str
) -> None:
    result = await harness.run(function)
    assert (result.error.code, result.error.detail) == ("execution_error", "not_serialisable")
    assert where in result.error.message
    assert await harness.still_works()


async def test_an_exception_with_a_failing_str_is_reported_by_type(harness: Any) -> None:
    result = await harness.run("raise_unspeakable")
    assert result.error.message.startswith("Unspeakable: ")
    assert "raise Unspeakable" in result.meta.traceback
    assert await harness.still_works()


async def test_a_long_exception_message_is_truncated(harness: Any) -> None:
    result = await harness.run("raise_long")
    assert result.error.message.startswith("ValueError: long long")
    assert len(result.error.message) < 5_000
    assert len(result.meta.traceback) < 25_000


async def test_an_exception_group_and_a_recursion_error_are_reported(harness: Any) -> None:
    group = await harness.run("raise_group")
    assert group.error.message == "ExceptionGroup: several (2 sub-exceptions)"
    assert "KeyError: 'two'" in group.meta.traceback
    recursion = await harness.run("recurse")
    assert recursion.error.message.startswith("RecursionError: ")
    assert "more times" in recursion.meta.traceback
    assert await harness.still_works()


@pytest.mark.promise("SDK-13")
async def test_the_only_exception_of_a_task_group_is_reported_instead_of_the_group(harness: Any) -> None:
    raised = await harness.run("fail_in_task", author=False)
    assert raised.error.message == "KeyError: 'two'"
    assert raised.meta.traceback.rstrip().endswith("\nKeyError: 'two'")
    assert "ExceptionGroup" not in raised.meta.traceback
    failed = await harness.run("fail_in_task", author=True)
    assert (failed.error.message, failed.error.detail) == ("no such dataset", "not_found")
    assert failed.data == {"known": [1]}
    assert failed.meta.traceback is None


async def test_text_without_a_utf8_form_is_repaired(harness: Any) -> None:
    events = await harness.events("raise_surrogate")
    assert harness.result(events).error.message == "ValueError: a\ufffdb"
    assert harness.text(events) == "\ufffd said\n"
    assert (await harness.run("echo", value="\ud83d\ude00 \ud800")).data == "😀 \ufffd"


@pytest.mark.parametrize("function", ["hog", "hog_globally", "hog_linked"])
async def test_a_tool_that_exhausts_its_memory_fails_and_the_next_call_works(
    open_harness: Callable[..., Any], function: str
) -> None:
    harness = open_harness(workers=1, memory_limit=150_000_000)
    result = await harness.run(function, limit=60)
    assert (result.error.code, result.error.detail) == ("execution_error", "out_of_memory")
    assert result.error.message == "MemoryError"
    # From Python 3.14 on, nothing is left to make the traceback with if even the smallest objects filled the memory.
    if sys.version_info < (3, 14) or function != "hog_linked":
        assert f"in {function}" in result.meta.traceback
    assert await harness.still_works()


async def test_a_tool_that_fills_shared_memory_is_ended(open_harness: Callable[..., Any]) -> None:
    harness = open_harness(workers=1, memory_limit=100_000_000)
    events = await harness.events("hog_shared", limit=60, megabytes=200)
    error = harness.result(events).error
    assert (error.code, error.detail) == ("execution_error", "out_of_memory")
    assert "exceeded the memory limit" in error.message
    assert harness.text(events) == "filling\n"
    assert await harness.still_works()


def as_on_macos(folder: Path, patch: pytest.MonkeyPatch, code: str) -> None:
    """Hide `/proc` from the parents of workers, and run some code first in every interpreter that starts."""
    code += "from pegboard.worker import keeper\nkeeper._PROC = '/none'\n"
    (folder / "sitecustomize.py").write_text(code)
    patch.setenv("PYTHONPATH", str(folder))


async def test_a_tool_that_fills_memory_is_ended_without_proc_too(
    open_harness: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_on_macos(tmp_path, monkeypatch, "")
    harness = open_harness(workers=1, memory_limit=100_000_000)
    error = (await harness.run("hog_shared", limit=60, megabytes=200)).error
    assert (error.code, error.detail) == ("execution_error", "out_of_memory")
    assert await harness.still_works()


async def test_a_process_of_its_own_session_ends_with_a_cancelled_call_without_proc_and_prctl_too(
    open_harness: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_on_macos(tmp_path, monkeypatch, "import sys\nsys.platform = 'darwin'\n")
    pack = tmp_path / "sessions.py"
    pack.write_text(
        "import subprocess\n\ndef start():\n    command = ['sleep', '600']\n"
        "    print(subprocess.Popen(command, start_new_session=True).pid, flush=True)\n    while True: pass\n"
    )
    harness = open_harness(workers=1)
    events = await harness.events("start", pack, limit=2)
    assert harness.result(events).error.detail == "timeout"
    started = int(harness.text(events))
    await until(lambda: not is_alive(started))


async def test_changes_of_the_process_state_are_undone(harness: Any, tmp_path: Path) -> None:
    before = (await harness.run("where")).data
    assert (await harness.run("make_a_mess", folder=str(tmp_path))).data == "made"
    events = await harness.events("find_a_mess")
    assert harness.result(events).data == {
        "home": os.environ["HOME"],
        "path": True,
        "sys.path": harness.result(events).data["sys.path"],
        "sigterm": True,
        "alarm": 0,
        "recursion": 1000,
        "pid": before["pid"],
    }
    assert harness.result(events).data["sys.path"] != str(tmp_path)
    assert harness.text(events) == "seen\n"
    assert (await harness.run("where")).data == before


async def test_a_pack_is_loaded_without_the_changes_of_other_packs(harness: Any, tmp_path: Path) -> None:
    pack = tmp_path / "later.py"
    pack.write_text("import os, sys\nSEEN = [dict(os.environ), list(sys.path)]\ndef seen():\n    return SEEN\n")
    assert (await harness.run("make_a_mess", folder=str(tmp_path))).ok
    environment, path = (await harness.run("seen", pack)).data
    assert environment["HOME"] == os.environ["HOME"]
    assert str(tmp_path) not in path


@pytest.mark.parametrize("function", ["close_descriptors", "close_stdout", "redirect_stdout", "forge_answers"])
async def test_a_tool_that_closes_descriptors_affects_only_its_own_call(harness: Any, function: str) -> None:
    result = await harness.run(function)
    assert result.ok or result.error.detail == "crashed"
    events = await harness.events("speak")
    assert harness.result(events).ok
    assert "to stdout" in harness.text(events)


@pytest.mark.promise("EXE-5")
@pytest.mark.parametrize("line", ['{"data": 1}', '{"id": 0, "data": 1}', '{"id": -1, "log": "x"}'])
async def test_a_forged_answer_with_another_id_is_ignored(harness: Any, line: str) -> None:
    events = await harness.events("forge", lines=[line] * 3)
    assert harness.result(events).data == "honest"
    assert harness.text(events) == ""
    assert await harness.still_works()


@pytest.mark.promise("EXE-5")
async def test_a_repeated_ready_message_is_ignored(harness: Any) -> None:
    assert await harness.still_works()
    forging = asyncio.ensure_future(harness.run("forge", lines=['{"ready": true}']))
    waiting = asyncio.ensure_future(harness.run("echo", value="waited"))
    assert [(await forging).data, (await waiting).data] == ["honest", "waited"]


@pytest.mark.promise("EXE-5")
@pytest.mark.parametrize(
    "rest",
    [
        '"data": 1',
        '"data": 1, "spent": false, "size": 1, "error": {"code": "odd"}',
        '"done": "much"',
        '"log": 1',
        '"ask": "x", "packs": 1',
        '"ask": 1',
        '"ask": 1, "call": 5, "args": {}',
        '"ask": 1, "call": "a.b", "args": []',
    ],
)
async def test_an_invalid_forged_answer_ends_its_call_immediately(harness: Any, rest: str) -> None:
    result = await harness.run("forge", lines=[f'{{"id": 1, {rest}}}'])
    assert result.error.detail == "crashed"
    assert "invalid data to the pipe of answers" in result.error.message
    assert await harness.still_works()


async def test_a_tool_can_run_its_own_event_loop(harness: Any) -> None:
    assert (await harness.run("run_own_loop")).data == "inner"
    assert (await harness.run("wait", value="own")).data == "own"
    assert (await harness.run("run_own_loop")).data == "inner"


async def test_asynchronous_tools_share_one_loop_of_their_worker(harness: Any) -> None:
    assert (await harness.run("which_loop")).data == (await harness.run("which_loop")).data


@pytest.mark.parametrize(
    ("function", "data"), [("coroutine", "awaited"), ("generate", [0, 1, 2]), ("generate_async", [0, 1, 2])]
)
async def test_awaitables_and_generators_are_resolved(harness: Any, function: str, data: object) -> None:
    assert (await harness.run(function)).data == data


async def test_output_is_kept_up_to_the_limit_and_the_rest_is_counted(harness: Any) -> None:
    events = await harness.events("flood", megabytes=200)
    result = harness.result(events)
    assert result.data == "done"
    assert len(harness.text(events)) == 10_000_000
    assert result.meta.log_bytes_dropped == 190_000_000
    assert await harness.still_works()


@pytest.mark.promise("SDK-12")
async def test_a_long_log_message_is_kept_up_to_the_limit(harness: Any) -> None:
    events = await harness.events("log_at_length", characters=12_000_000)
    result = harness.result(events)
    assert result.data == "said"
    assert harness.text(events) == "y" * 10_000_000
    assert result.meta.log_bytes_dropped == 2_000_001
    assert await harness.still_works()


async def test_a_worker_writes_no_core_files_and_hides_its_arguments(harness: Any) -> None:
    assert (await harness.run("limits")).data == {"core": 0, "argv": 1, "group": True}


async def test_a_worker_receives_no_secrets_in_its_environment(
    open_harness: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("PEGBOARD_DATA_DIR", "/secret")
    monkeypatch.setenv("https_proxy", "http://proxy")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    seen = (await open_harness(environment={"GIVEN": "1"}).run("show_environment")).data
    assert {"PATH", "HOME", "https_proxy", "LC_ALL"} <= seen.keys()
    assert seen["GIVEN"] == "1"
    assert not {"OPENAI_API_KEY", "PEGBOARD_DATA_DIR"} & seen.keys()


async def test_libraries_of_homebrew_are_found_in_a_worker_as_in_the_shell(
    open_harness: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DYLD_FALLBACK_LIBRARY_PATH", "/opt/homebrew/lib")
    seen = (await open_harness().run("show_environment")).data
    assert seen["DYLD_FALLBACK_LIBRARY_PATH"] == "/opt/homebrew/lib"


async def test_on_macos_a_worker_starts_anew_because_frameworks_may_crash_in_a_fork(
    open_harness: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.platform = 'darwin'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    pack = tmp_path / "started.py"
    pack.write_text("import os, sys\n\ndef how():\n    return [sys.orig_argv, os.getpid() == os.getsid(0)]\n")
    (command, leads_session) = (await open_harness().run("how", pack)).data
    assert "pegboard.worker.serve" in command[3]
    assert "pegboard.worker.keeper" not in command[3]
    assert leads_session
