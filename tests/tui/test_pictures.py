"""Snapshots of the Tools page at two sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest
from headless import TIMEOUT_SECONDS
from pydantic import JsonValue
from stage import GivenRuntime, as_runtime
from textual.pilot import Pilot

from pegboard.config import Settings
from pegboard.config.settings import UiSettings
from pegboard.models import Problem, ToolResult
from pegboard.tui.app import PegboardApp
from pegboard.tui.result import ResultPane
from pegboard.tui.tools.screen import ToolsScreen

pytestmark = pytest.mark.slow

Compare = Callable[..., bool]
SIZES = pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])
PROBLEMS = (
    Problem(message="It can't be parsed: expected ':'.", file="/packs/broken.py", line=3),
    Problem(
        message="`read_file` takes positional arguments.",
        fix="Write `def read_file(*, path)`.",
        file="/packs/fs.py",
        line=12,
        pack="fs",
        severity="warning",
    ),
)


@pytest.fixture
def given(tmp_path: Path) -> GivenRuntime:
    """Return five tools, a broken pack, a warning, and states of every kind."""
    runtime = GivenRuntime(tmp_path, problems=PROBLEMS)
    runtime.states = {"fs.remove": "degraded", "time.now": "blocked"}
    return runtime


def presses(*keys: str, until: Callable[[ToolsScreen], bool] = lambda screen: screen.settled) -> object:
    """Return a function that presses keys one after the other."""

    async def settle(pilot: Pilot[None], true: Callable[[ToolsScreen], bool]) -> None:
        app = pilot.app
        assert isinstance(app, PegboardApp)
        screen = app.screen_stack[0]
        assert isinstance(screen, ToolsScreen)
        end = monotonic() + TIMEOUT_SECONDS
        while app.tool_scan.scanning or not screen.settled or not true(screen):
            assert monotonic() < end, "the screen never came to rest"
            await pilot.pause(0.01)
        # forms are mounted in pieces
        before = -1
        while before != (before := len(screen.focus_chain)):
            await pilot.pause(0.05)

    async def run(pilot: Pilot[None]) -> None:
        await settle(pilot, lambda _: True)
        for key in keys:
            if key in {"enter", "ctrl+r", "ctrl+o"}:
                await settle(pilot, lambda _: True)
            await pilot.press(key)
            if key == "enter":
                await settle(pilot, lambda screen: screen.focused is not None)
        await settle(pilot, until)

    return run


def something_is_over_it(screen: ToolsScreen) -> bool:
    return screen.app.screen is not screen


def result_is_there(screen: ToolsScreen) -> bool:
    return screen.query_one(ResultPane).result is not None


@SIZES
def test_the_tool_list(snap_compare: Compare, given: GivenRuntime, size: tuple[int, int]) -> None:
    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=presses("down"))


@SIZES
def test_a_filter(snap_compare: Compare, given: GivenRuntime, size: tuple[int, int]) -> None:
    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=presses("f", "i", "l"))


@SIZES
def test_a_filter_to_which_the_focus_has_returned(
    snap_compare: Compare, given: GivenRuntime, size: tuple[int, int]
) -> None:
    run = presses("f", "i", "l", "enter", "f5")
    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=run)


@SIZES
def test_a_broken_pack(snap_compare: Compare, given: GivenRuntime, size: tuple[int, int]) -> None:
    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=presses("home"))


@SIZES
def test_a_result(snap_compare: Compare, given: GivenRuntime, size: tuple[int, int]) -> None:
    run = presses("down", "enter", "a", "ctrl+r", until=result_is_there)
    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=run)


@SIZES
def test_a_failure(snap_compare: Compare, given: GivenRuntime, size: tuple[int, int]) -> None:
    given.answer = lambda _: ToolResult.failed("execution_error", "ValueError: it broke", "raised")
    run = presses("end", "ctrl+r", until=result_is_there)
    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=run)


@SIZES
def test_the_confirmation_of_a_destructive_tool(
    snap_compare: Compare, given: GivenRuntime, size: tuple[int, int]
) -> None:
    run = presses("r", "e", "m", "enter", "a", "ctrl+r", until=something_is_over_it)
    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=run)


@SIZES
@pytest.mark.parametrize("key", ["f1", "ctrl+g", "f2", "ctrl+o"], ids=["help", "problems", "schema", "jump"])
def test_the_dialogs_over_the_tool_list(
    snap_compare: Compare, given: GivenRuntime, size: tuple[int, int], key: str
) -> None:
    run = presses("down", key, until=something_is_over_it)
    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=run)


@pytest.mark.parametrize("theme", ["pegboard-light", "pegboard-16"])
def test_the_other_themes(snap_compare: Compare, given: GivenRuntime, theme: str) -> None:
    given.settings = Settings(ui=UiSettings(theme=theme))
    run = presses("down", "enter", "a", "ctrl+r", until=result_is_there)
    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=(120, 40), run_before=run)


def test_an_empty_tool_list(snap_compare: Compare, given: GivenRuntime) -> None:
    given.found, given.wrong = [], []
    app = PegboardApp(as_runtime(given))

    async def run(pilot: Pilot[None]) -> None:
        run_keys = presses()
        assert callable(run_keys)
        await run_keys(pilot)
        # the folder of the test differs each time
        empty = app.tool_scan.empty.replace(str(given.paths.packs), "~/packs")
        app.tool_scan = dataclasses.replace(app.tool_scan, empty=empty)
        await pilot.pause()

    assert snap_compare(app, terminal_size=(80, 24), run_before=run)


def test_a_terminal_too_small(snap_compare: Compare, given: GivenRuntime) -> None:
    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=(50, 12), run_before=presses())


FILES: JsonValue = [
    {"name": f"part {number}.py", "size": number * 3571 % 9973, "kind": "file", "owner": {"name": "you"}}
    for number in range(40)
]


def views_are_ready(screen: ToolsScreen) -> bool:
    pane = screen.query_one(ResultPane)
    return pane.result is not None and not [worker for worker in pane.workers if worker.group in {"jq", "arrange"}]


@SIZES
@pytest.mark.parametrize(
    "keys",
    [
        ("right", "o", "f", *"part 1", "enter", "right", "h"),
        ("vertical_line", *"[] | select(.size > 9000) | {name, size}"),
        ("vertical_line", *"["),
        ("vertical_line", *"[:12] | map({name, size})", "enter", "V", "V"),
    ],
    ids=["table", "filter", "error", "chart"],
)
def test_the_views_of_a_result(
    snap_compare: Compare, given: GivenRuntime, size: tuple[int, int], keys: tuple[str, ...]
) -> None:
    given.answer = lambda _: ToolResult(ok=True, data=FILES)
    start = presses("down", "enter", "a", "ctrl+r", until=result_is_there)
    assert callable(start)

    async def run(pilot: Pilot[None]) -> None:
        await start(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, ToolsScreen)
        screen.query_one(ResultPane).focus()
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
            if key in {"o", "f", "enter", "vertical_line"}:
                end = monotonic() + TIMEOUT_SECONDS
                while not views_are_ready(screen):
                    assert monotonic() < end, "the result was never filtered"
                    await pilot.pause(0.05)
        wait = presses(until=views_are_ready)
        assert callable(wait)
        await wait(pilot)

    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=run)
