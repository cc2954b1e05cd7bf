"""Whatever a tool does costs its own call and nothing else."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any  # a bench is a fixture's

import pytest

pytestmark = pytest.mark.promise("EXE-3", "EXE-4")


async def test_a_tool_that_loops_for_ever_is_ended_at_its_timeout(bench: Any) -> None:
    assert await bench.still_works()
    events = await bench.events("loop_for_ever", limit=1.5)
    result = bench.result(events)
    assert (result.ok, result.error.code, result.error.detail) == (False, "execution_error", "timeout")
    assert "1.5 s" in result.error.message
    assert result.meta.duration_ms >= 1500
    assert bench.text(events) == "looping\n"
    assert await bench.still_works()


async def test_a_tool_that_hangs_in_c_is_ended_with_its_children(
    bench: Any, tmp_path: Path, is_gone: Callable[[int], bool]
) -> None:
    sign = tmp_path / "sign"
    assert await bench.still_works()
    result = await bench.run("hang_in_c", limit=3.0, sign=str(sign))
    assert result.error.detail == "timeout"
    group = bench.read(sign)["group"]
    await bench.until(lambda: is_gone(group))
    assert await bench.still_works()


@pytest.mark.parametrize("code", [0, 3])
async def test_a_tool_that_exits_hard_has_crashed_and_its_output_is_kept(bench: Any, code: int) -> None:
    events = await bench.events("exit_hard", code=code)
    result = bench.result(events)
    assert (result.error.code, result.error.detail) == ("execution_error", "crashed")
    assert f"exit code {code}" in result.error.message
    assert bench.text(events) == "last words\n"
    assert await bench.still_works()


async def test_a_tool_that_segfaults_has_crashed(bench: Any) -> None:
    result = await bench.run("segfault")
    assert result.error.detail == "crashed"
    assert "SIGSEGV" in result.error.message
    assert await bench.still_works()


@pytest.mark.parametrize(
    ("function", "message"),
    [("exit_soft", "SystemExit: 4"), ("exit_in_async", "SystemExit: 5"), ("interrupt", "KeyboardInterrupt")],
)
async def test_a_tool_that_asks_the_process_to_end_only_fails(bench: Any, function: str, message: str) -> None:
    result = await bench.run(function)
    assert (result.error.code, result.error.detail, result.error.message) == ("execution_error", "crashed", message)
    assert function in result.meta.traceback
    assert await bench.still_works()


async def test_binary_rubbish_becomes_text_with_replacements(bench: Any) -> None:
    events = await bench.events("rubbish")
    assert bench.result(events).data == "printed"
    assert "\ufffd" in bench.text(events, "stdout")
    assert "\\ud800 alone" in bench.text(events, "stdout")
    assert bench.text(events, "stderr").startswith("\ufffd\ufffd\x00\x1b[31m")
    bench.text(events).encode()
    assert await bench.still_works()


async def test_standard_input_is_empty(bench: Any) -> None:
    assert (await bench.run("read_stdin")).data == ""


@pytest.mark.parametrize("function", ["leave_child", "leave_orphan"])
async def test_a_call_does_not_wait_for_a_process_that_it_leaves(
    open_bench: Callable[..., Any], tmp_path: Path, is_gone: Callable[[int], bool], function: str
) -> None:
    bench = open_bench(workers=1)
    sign = tmp_path / "sign"
    result = await bench.run(function, limit=20, sign=str(sign))
    assert result.ok
    assert await bench.still_works()
    await bench.executor.close()
    await bench.until(lambda: is_gone(bench.read(sign)["group"]))


async def test_of_a_tool_that_forks_only_the_parent_answers(bench: Any) -> None:
    assert (await bench.run("fork_and_return")).data == "parent"
    assert await bench.still_works()


@pytest.mark.parametrize(
    ("function", "where"),
    [
        ("no_json", "_thread.lock at .results[1].lock"),
        ("cycle", "contains itself at .value[1]"),
        ("deep", "nested"),
    ],
)
async def test_a_result_that_has_no_json_form_is_refused_by_type_and_place(
    bench: Any, function: str, where: str
) -> None:
    result = await bench.run(function)
    assert (result.error.code, result.error.detail) == ("execution_error", "not_serialisable")
    assert where in result.error.message
    assert await bench.still_works()


async def test_an_exception_whose_text_cant_be_had_is_named(bench: Any) -> None:
    result = await bench.run("raise_unspeakable")
    assert result.error.message.startswith("Unspeakable: ")
    assert "raise Unspeakable" in result.meta.traceback
    assert await bench.still_works()


async def test_an_exception_with_a_long_text_is_cut(bench: Any) -> None:
    result = await bench.run("raise_long")
    assert result.error.message.startswith("ValueError: long long")
    assert len(result.error.message) < 5_000
    assert len(result.meta.traceback) < 25_000


async def test_an_exception_group_and_a_recursion_error_are_reported(bench: Any) -> None:
    group = await bench.run("raise_group")
    assert group.error.message == "ExceptionGroup: several (2 sub-exceptions)"
    assert "KeyError: 'two'" in group.meta.traceback
    recursion = await bench.run("recurse")
    assert recursion.error.message.startswith("RecursionError: ")
    assert "more times" in recursion.meta.traceback
    assert await bench.still_works()


async def test_text_that_has_no_utf8_form_is_mended(bench: Any) -> None:
    events = await bench.events("raise_surrogate")
    assert bench.result(events).error.message == "ValueError: a\ufffdb"
    assert bench.text(events) == "\ufffd said\n"
    assert (await bench.run("echo", value="\ud83d\ude00 \ud800")).data == "😀 \ufffd"


@pytest.mark.parametrize("function", ["hog", "hog_globally", "hog_linked"])
async def test_a_tool_that_exhausts_its_memory_fails_and_the_next_call_works(
    open_bench: Callable[..., Any], function: str
) -> None:
    bench = open_bench(workers=1, memory_limit=150_000_000)
    result = await bench.run(function, limit=60)
    assert (result.error.code, result.error.detail) == ("execution_error", "out_of_memory")
    assert result.error.message == "MemoryError"
    assert f"in {function}" in result.meta.traceback
    assert await bench.still_works()


async def test_a_tool_that_fills_shared_memory_is_ended(open_bench: Callable[..., Any]) -> None:
    bench = open_bench(workers=1, memory_limit=100_000_000)
    events = await bench.events("hog_shared", limit=60, megabytes=200)
    error = bench.result(events).error
    assert (error.code, error.detail) == ("execution_error", "out_of_memory")
    assert "more memory than a tool may have" in error.message
    assert bench.text(events) == "filling\n"
    assert await bench.still_works()


async def test_what_a_tool_changes_around_it_is_put_back(bench: Any, tmp_path: Path) -> None:
    before = (await bench.run("where")).data
    assert (await bench.run("make_a_mess", folder=str(tmp_path))).data == "made"
    events = await bench.events("find_a_mess")
    assert bench.result(events).data == {
        "home": os.environ["HOME"],
        "path": True,
        "sys.path": bench.result(events).data["sys.path"],
        "sigterm": True,
        "alarm": 0,
        "recursion": 1000,
        "pid": before["pid"],
    }
    assert bench.result(events).data["sys.path"] != str(tmp_path)
    assert bench.text(events) == "seen\n"
    assert (await bench.run("where")).data == before


async def test_a_pack_is_loaded_in_surroundings_that_no_other_has_changed(bench: Any, tmp_path: Path) -> None:
    pack = tmp_path / "later.py"
    pack.write_text("import os, sys\nSEEN = [dict(os.environ), list(sys.path)]\ndef seen():\n    return SEEN\n")
    assert (await bench.run("make_a_mess", folder=str(tmp_path))).ok
    environment, path = (await bench.run("seen", pack)).data
    assert environment["HOME"] == os.environ["HOME"]
    assert str(tmp_path) not in path


@pytest.mark.parametrize("function", ["close_descriptors", "close_stdout", "redirect_stdout", "forge_answers"])
async def test_a_tool_that_meddles_with_the_descriptors_costs_its_own_call(bench: Any, function: str) -> None:
    result = await bench.run(function)
    assert result.ok or result.error.detail == "crashed"
    events = await bench.events("speak")
    assert bench.result(events).ok
    assert "to stdout" in bench.text(events)


@pytest.mark.promise("EXE-5")
@pytest.mark.parametrize("line", ['{"data": 1}', '{"id": 0, "data": 1}', '{"id": -1, "log": "x"}'])
async def test_an_answer_that_is_not_the_calls_own_is_dropped(bench: Any, line: str) -> None:
    events = await bench.events("forge", lines=[line] * 3)
    assert bench.result(events).data == "honest"
    assert bench.text(events) == ""
    assert await bench.still_works()


@pytest.mark.promise("EXE-5")
async def test_a_worker_that_says_again_that_it_is_ready_gets_no_second_call(bench: Any) -> None:
    assert await bench.still_works()
    forging = asyncio.ensure_future(bench.run("forge", lines=['{"ready": true}']))
    waiting = asyncio.ensure_future(bench.run("echo", value="waited"))
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
async def test_a_forged_answer_that_makes_no_sense_ends_its_call_at_once(bench: Any, rest: str) -> None:
    result = await bench.run("forge", lines=[f'{{"id": 1, {rest}}}'])
    assert result.error.detail == "crashed"
    assert "something else than answers" in result.error.message
    assert await bench.still_works()


async def test_a_tool_may_run_an_event_loop_of_its_own(bench: Any) -> None:
    assert (await bench.run("run_own_loop")).data == "inner"
    assert (await bench.run("wait", value="own")).data == "own"
    assert (await bench.run("run_own_loop")).data == "inner"


async def test_asynchronous_tools_share_one_loop_of_their_worker(bench: Any) -> None:
    assert (await bench.run("which_loop")).data == (await bench.run("which_loop")).data


@pytest.mark.parametrize(
    ("function", "data"), [("coroutine", "awaited"), ("generate", [0, 1, 2]), ("generate_async", [0, 1, 2])]
)
async def test_what_comes_later_or_bit_by_bit_is_collected(bench: Any, function: str, data: object) -> None:
    assert (await bench.run(function)).data == data


async def test_a_flood_of_output_is_kept_to_the_limit_and_the_rest_counted(bench: Any) -> None:
    events = await bench.events("flood", megabytes=200)
    result = bench.result(events)
    assert result.data == "done"
    assert len(bench.text(events)) == 10_000_000
    assert result.meta.log_bytes_dropped == 190_000_000
    assert await bench.still_works()


@pytest.mark.promise("SDK-12")
async def test_one_long_logged_line_arrives_to_the_limit(bench: Any) -> None:
    events = await bench.events("log_at_length", characters=12_000_000)
    result = bench.result(events)
    assert result.data == "said"
    assert bench.text(events) == "y" * 10_000_000
    assert result.meta.log_bytes_dropped == 2_000_001
    assert await bench.still_works()


async def test_no_core_files_and_no_arguments_of_ours(bench: Any) -> None:
    assert (await bench.run("limits")).data == {"core": 0, "argv": 1, "group": True}


async def test_a_worker_sees_what_programs_need_and_no_secret(
    open_bench: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("PEGBOARD_DATA_DIR", "/secret")
    monkeypatch.setenv("https_proxy", "http://proxy")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    seen = (await open_bench(environment={"GIVEN": "1"}).run("show_environment")).data
    assert {"PATH", "HOME", "https_proxy", "LC_ALL"} <= seen.keys()
    assert seen["GIVEN"] == "1"
    assert not {"OPENAI_API_KEY", "PEGBOARD_DATA_DIR"} & seen.keys()
