"""The report on requirements, with real programs, real libraries and secrets of the test."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, aclosing, closing
from pathlib import Path

import pytest
from processes import is_alive

from pegboard.health import Health
from pegboard.health.prober import Prober
from pegboard.models import Requirement, ToolSpec, ToolState
from pegboard.sdk.requirements import DeclaredRequirement

Program = Callable[[str, str], Path]
Needs = Callable[[str], None]


@pytest.mark.promise("CLI-5", "SDK-9")
def test_the_report_has_a_row_for_each_requirement_of_each_tool(
    health: Health, needs: Needs, program: Program, secrets: dict[str, str]
) -> None:
    file = program("needy", "echo needy 1.9")
    secrets["KEY"] = ".env"
    needs("""
        first: requires_cli("needy",min_version="2",install="make_needy") requires_secret("KEY")
        second: requires_lib("no_such_library") requires_cli("needy")
        third:
    """)
    assert {row.tool for row in health.check()} == {"needy.first", "needy.second"}
    rows = [row.model_dump(mode="json", by_alias=True) for row in health.rows()]
    assert rows[0] == {
        "tool": "needy.first",
        "kind": "cli",
        "name": "needy",
        "status": "outdated",
        "version": "1.9",
        "minVersion": "2",
        "path": str(file),
        "install": "make_needy",
        "error": "`needy` is 1.9; 2 or later is required.",
    }
    assert [(row["tool"], row["kind"], row["status"], row["path"]) for row in rows[1:]] == [
        ("needy.first", "secret", "ok", ".env"),
        ("needy.second", "lib", "missing", None),
        ("needy.second", "cli", "ok", str(file)),
    ]


def test_an_unchecked_requirement_has_no_row_and_its_tool_is_ready(
    health: Health, needs: Needs, tools: list[ToolSpec]
) -> None:
    needs('first: requires_cli("no-such-program")')
    assert health.rows() == ()
    assert health.state(tools[0]) == "ready"


def test_a_shared_requirement_is_checked_once(health: Health, needs: Needs, program: Program, tmp_path: Path) -> None:
    program("needy", f"echo x >> {tmp_path}/runs; echo needy 2.0")
    needs("""
        first: requires_cli("needy")
        second: requires_cli("needy",install="otherwise")
    """)
    assert [(row.tool, row.install) for row in health.check()] == [
        ("needy.first", "Install needy and add it to the PATH."),
        ("needy.second", "otherwise"),
    ]
    assert (tmp_path / "runs").read_text() == "x\n"


def test_known_results_are_reused_unless_a_new_check_is_requested(
    health: Health, needs: Needs, program: Program, tmp_path: Path, tools: list[ToolSpec]
) -> None:
    program("one", f"echo one >> {tmp_path}/runs; echo one 1.0")
    program("two", f"echo two >> {tmp_path}/runs; echo two 1.0")
    needs('first: requires_cli("one")\nsecond: requires_cli("two")')
    assert len([*health.check()]) == len([*health.check()]) == 2
    assert sorted((tmp_path / "runs").read_text().split()) == ["one", "two"]
    program("one", f"echo one >> {tmp_path}/runs; echo one 2.0")
    assert [row.version for row in health.check(tools[:1])] == ["1.0"]
    assert [row.version for row in health.check(tools[:1], again=True)] == ["2.0"]
    assert [row.version for row in health.rows()] == ["2.0", "1.0"]
    assert len([*health.check(again=True)]) == 2
    assert sorted((tmp_path / "runs").read_text().split()) == ["one", "one", "one", "two", "two"]


async def test_selected_requirements_are_checked_again_for_all_their_tools_and_no_others(
    health: Health, needs: Needs, program: Program, tools: list[ToolSpec], tmp_path: Path
) -> None:
    program("one", "echo one 1.0")
    program("two", f"echo two >> {tmp_path}/runs; echo two 1.0")
    needs("""
        first: requires_cli("one") requires_cli("two")
        second: requires_cli("one",install="otherwise")
        third: requires_cli("one",min_version="3")
    """)
    assert len([*health.check()]) == 4
    program("one", "echo one 2.0")
    async with aclosing(health.check_async(again=True, only=[tools[1].requirements[0]])) as rows:
        assert [(row.tool, row.version) async for row in rows] == [("needy.first", "2.0"), ("needy.second", "2.0")]
    assert [row.version for row in health.rows()] == ["2.0", "1.0", "2.0", "1.0"]
    assert (tmp_path / "runs").read_text() == "two\n"


async def test_a_slow_result_does_not_replace_that_of_a_later_check(
    health: Health, needs: Needs, program: Program, tmp_path: Path
) -> None:
    waits = f"echo $$ > {tmp_path}/pid; until test -e {tmp_path}/go; do sleep 0.05; done"
    old = program("needy", f"{waits}; echo needy 1.0")
    needs('first: requires_cli("needy")')
    early = asyncio.create_task(_versions(health))
    await asyncio.to_thread(_pid_in, tmp_path / "pid")
    old.unlink()  # a running shell keeps reading the old file
    program("needy", "echo needy 2.0")
    assert await _versions(health) == ["2.0"]
    (tmp_path / "go").touch()
    assert await early == ["2.0"]
    assert [row.version for row in health.rows()] == ["2.0"]


async def _versions(health: Health) -> list[str | None]:
    async with aclosing(health.check_async(again=True)) as rows:
        return [row.version async for row in rows]


def test_only_a_changed_requirement_is_checked(
    health: Health, needs: Needs, program: Program, tmp_path: Path, tools: list[ToolSpec]
) -> None:
    program("one", "echo one 1.0")
    program("two", f"echo two >> {tmp_path}/runs; echo two 1.0")
    needs('first: requires_cli("one") requires_cli("two")')
    assert {row.status for row in health.check()} == {"ok"}
    needs('first: requires_cli("one",min_version="3") requires_cli("two")')
    assert health.state(tools[0]) == "ready"
    assert {row.name: row.status for row in health.check()} == {"one": "outdated", "two": "ok"}
    assert health.state(tools[0]) == "blocked"
    assert (tmp_path / "runs").read_text() == "two\n"


@pytest.mark.promise("SDK-9", "TUI-2")
async def test_rows_arrive_one_by_one_without_blocking_the_event_loop(
    health: Health, needs: Needs, program: Program, tmp_path: Path
) -> None:
    program("slow", f"until test -e {tmp_path}/go; do sleep 0.05; done; echo slow 1.0")
    program("quick", "echo quick 2.0")
    needs('first: requires_cli("slow")\nsecond: requires_cli("quick")')
    async with aclosing(health.check_async()) as rows:
        assert (await anext(rows)).name == "quick"
        assert [row.name for row in health.rows()] == ["quick"]
        (tmp_path / "go").touch()  # reached only if the event loop is not blocked
        assert [row.name async for row in rows] == ["slow"]


@pytest.mark.slow
@pytest.mark.promise("SDK-9")
def test_two_hundred_requirements_are_checked_concurrently(
    health: Health, needs: Needs, program: Program, tmp_path: Path
) -> None:
    gate, here = tmp_path / "gate", tmp_path / "here"
    os.mkfifo(gate)
    here.mkdir()
    names = [f"tool{number}" for number in range(200)]
    for name in names:
        program(name, f": > {here}/{name}; : < {gate}; echo {name} 1.0")  # all wait until the gate is opened
    needs("\n".join(f'{name}: requires_cli("{name}")' for name in names))
    seen: list[int] = []

    def open_gate() -> None:
        bound = time.monotonic() + 50
        while len(list(here.iterdir())) < len(names) and time.monotonic() < bound:
            time.sleep(0.02)
        seen.append(len(list(here.iterdir())))
        os.close(os.open(gate, os.O_WRONLY))

    opener = threading.Thread(target=open_gate)
    opener.start()
    rows = [*health.check()]
    opener.join()
    assert seen == [len(names)]
    assert {row.tool for row in rows} == {f"needy.{name}" for name in names}
    assert {row.status for row in rows} == {"ok"}


async def test_a_locked_keyring_delays_neither_other_checks_nor_the_end(
    tools: list[ToolSpec], needs: Needs, program: Program, tmp_path: Path
) -> None:
    unlocked = threading.Event()

    def find_secret(name: str) -> tuple[str | None, str]:
        unlocked.wait(600)
        return "keyring", ""

    program("needy", "echo needy 1.0")
    needs('first: requires_secret("KEY") requires_cli("needy")')
    health = Health(
        lambda: tools, find_secret=find_secret, environ={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}, timeout=600
    )
    try:
        async with aclosing(health.check_async()) as rows:
            assert (await anext(rows)).name == "needy"
        assert not unlocked.is_set()
        assert [row.name for row in health.rows()] == ["needy"]
    finally:
        unlocked.set()


@pytest.mark.promise("SDK-9")
@pytest.mark.parametrize("way", ["blocking", "loop", "cancelled"])
async def test_programs_still_running_are_killed_when_the_check_is_closed(
    health: Health, needs: Needs, program: Program, tmp_path: Path, way: str
) -> None:
    program("slow", f"echo $$ > {tmp_path}/pid; sleep 600")
    needs('first: requires_lib("json")\nsecond: requires_cli("slow")')
    if way == "blocking":
        with closing(health.check()) as found:
            assert next(found).name == "json"
            pid = await asyncio.to_thread(_pid_in, tmp_path / "pid")
    elif way == "loop":
        async with aclosing(health.check_async()) as rows:
            assert (await anext(rows)).name == "json"
            pid = await asyncio.to_thread(_pid_in, tmp_path / "pid")
    else:
        task = asyncio.create_task(_all(health))
        pid = await asyncio.to_thread(_pid_in, tmp_path / "pid")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not is_alive(pid)


@pytest.mark.promise("SDK-9")
async def test_programs_are_killed_even_if_the_check_is_cancelled_repeatedly_while_no_thread_is_free(
    health: Health,
    needs: Needs,
    program: Program,
    tmp_path: Path,
    no_thread: Callable[[], AbstractContextManager[None]],
) -> None:
    program("slow", f"echo $$ > {tmp_path}/pid; sleep 600")
    needs('second: requires_cli("slow")')
    task = asyncio.create_task(_all(health))
    pid = await asyncio.to_thread(_pid_in, tmp_path / "pid")
    with no_thread():
        for _ in range(2):
            task.cancel()
            for _ in range(10):
                await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_alive(pid)


async def _all(health: Health) -> None:
    async with aclosing(health.check_async()) as rows:
        async for _ in rows:
            pass


def _pid_in(file: Path) -> int:
    bound = time.monotonic() + 60
    while not (file.exists() and file.read_text().strip()) and time.monotonic() < bound:
        time.sleep(0.02)
    return int(file.read_text())


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ('requires_lib("json")', "ready"),
        ('requires_lib("json") requires_cli("no-such-program")', "blocked"),
        ('requires_cli("fails") requires_cli("no-such-program")', "blocked"),
        ('requires_cli("fails")', "degraded"),
        ('requires_cli("old",min_version="2")', "blocked"),
        ('requires_secret("KEY")', "blocked"),
        ("", "ready"),
    ],
)
def test_a_missing_requirement_blocks_a_tool_and_an_unknown_version_degrades_it(
    health: Health, needs: Needs, tools: list[ToolSpec], program: Program, said: str, state: ToolState
) -> None:
    program("old", "echo old 1.0")
    program("fails", "exit 3")
    needs(f"first: {said}")
    for _ in health.check():
        pass
    assert health.state(tools[0]) == state


@pytest.mark.promise("SDK-10")
def test_a_missing_optional_secret_degrades_its_tool(
    health: Health, needs: Needs, tools: list[ToolSpec], secrets: dict[str, str]
) -> None:
    needs('first:\nsecond: requires_secret("OTHER")')
    optional = Requirement(kind="secret", name="KEY", optional=True)
    tools[0] = tools[0].model_copy(update={"requirements": (optional,)})
    [row] = health.check(tools[:1])
    assert (row.status, row.blocks, health.state(tools[0])) == ("missing", False, "degraded")
    secrets["KEY"] = "environment"
    [row] = health.check(tools[:1], again=True)
    assert (row.status, row.path, health.state(tools[0])) == ("ok", "environment", "ready")


def test_a_server_is_not_checked_here(health: Health, needs: Needs, tools: list[ToolSpec]) -> None:
    needs("first:")
    server = Requirement(kind="server", name="files")
    tools[0] = tools[0].model_copy(update={"requirements": (server,)})
    assert [*health.check()] == []
    assert health.state(tools[0]) == "ready"


def test_nothing_is_reported_after_the_end_even_if_a_keyring_answers_late() -> None:
    answers, reports = threading.Event(), list[object]()

    def find_secret(name: str) -> tuple[str | None, str]:
        answers.wait(20)
        return None, f"{name} is not set."

    wanted = [DeclaredRequirement("secret", "KEY")]
    prober = Prober(wanted, reports.append, find_secret=find_secret, environ={}, timeout=5)
    prober.stop()
    answers.set()
    for thread in threading.enumerate():
        if thread.name == "health-secrets":
            thread.join(20)
    assert reports == []
