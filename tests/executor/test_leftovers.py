"""Leftovers of a call in its process, which must not affect other calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any  # fixtures

import pytest

pytestmark = pytest.mark.promise("EXE-4")

LEAVING = Path(__file__).parents[1] / "packs" / "executor_leaving.py"

REPLACED = [
    "thread_that_exits", "busy_pool", "forked_child_that_kills", "unburied_child", "task", "descriptors",
    "all_descriptors", "limit_descriptors", "limit_processor", "limit_files", "patch_getcwd", "patch_write",
    "patch_json", "patch_len", "patch_environ", "forget_modules", "lower_priority",
]  # fmt: skip
KEPT = [
    "timer_of_processor_time", "timer_of_own_time", "block_signals", "trace", "add_builtin", "idle_pool", "own_pool",
    "ended_thread", "ended_child",
]  # fmt: skip


@pytest.mark.parametrize("function", REPLACED)
async def test_a_process_with_leftovers_is_not_reused(harness: Any, function: str) -> None:
    left = await harness.run(function, LEAVING)
    assert left.ok, left.error
    events = await harness.events("whole", LEAVING)
    assert harness.result(events).ok, harness.result(events).error
    assert harness.result(events).data != left.data
    assert harness.text(events) == "whole\n"


@pytest.mark.parametrize("function", ["forked_child_that_kills", "unburied_child"])
async def test_children_that_remain_are_found_without_waitid_too(
    open_harness: Callable[..., Any], function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # on macOS, Python has it only since 3.13
    (tmp_path / "sitecustomize.py").write_text("import os\nif hasattr(os, 'waitid'):\n    del os.waitid\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    harness = open_harness(workers=1)
    left = await harness.run(function, LEAVING)
    assert left.ok, left.error
    after = await harness.run("whole", LEAVING)
    assert after.ok, after.error
    assert after.data != left.data
    assert (await harness.run("ended_child", LEAVING)).data == after.data


@pytest.mark.parametrize("function", KEPT)
async def test_a_process_with_reversible_changes_is_reused(harness: Any, function: str) -> None:
    left = await harness.run(function, LEAVING)
    assert left.ok, left.error
    after = await harness.run("whole", LEAVING)
    assert after.data == left.data
    assert (await harness.run("what_is_blocked", LEAVING)).data == []


@pytest.mark.parametrize("function", ["set_precision", "set_variable", "set_zone", "set_encoding"])
async def test_the_settings_of_a_call_end_with_it(harness: Any, function: str) -> None:
    before = await harness.run("surroundings", LEAVING)
    assert (await harness.run(function, LEAVING)).ok
    assert (await harness.run("surroundings", LEAVING)).data == before.data


async def test_later_output_of_a_thread_is_in_no_other_log(harness: Any, tmp_path: Path) -> None:
    go = tmp_path / "go"
    assert (await harness.run("thread_that_prints", LEAVING, go=str(go))).ok
    go.touch()
    assert harness.text(await harness.events("whole", LEAVING)) == "whole\n"


async def test_a_task_of_a_library_may_continue_in_the_next_call(harness: Any, tmp_path: Path) -> None:
    library = tmp_path / "site-packages" / "client_of_a_library.py"
    library.parent.mkdir()
    library.write_text(
        "import asyncio\n"
        "class Client:\n"
        "    def __init__(self):\n"
        "        self.asked, self.task = asyncio.Queue(), asyncio.create_task(self.serve())\n"
        "    async def serve(self):\n"
        "        count = 0\n"
        "        while True:\n"
        "            count += 1\n"
        "            (await self.asked.get()).set_result(count)\n"
        "    async def ask(self):\n"
        "        answer = asyncio.get_running_loop().create_future()\n"
        "        self.asked.put_nowait(answer)\n"
        "        return await answer\n"
    )
    pack = tmp_path / "pooled.py"
    pack.write_text(
        f"import sys\nsys.path.append({str(library.parent)!r})\n"
        "from client_of_a_library import Client\n"
        "clients = []\n"
        "async def ask():\n"
        "    clients or clients.append(Client())\n"
        "    return await clients[0].ask()\n"
    )
    assert [(await harness.run("ask", pack)).data for _ in range(3)] == [1, 2, 3]
