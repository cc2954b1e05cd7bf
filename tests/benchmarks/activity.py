"""The Activity page: calls of another process until they are on the screen, and the page with 1,000,000 calls.

Set `PEGBOARD_ACTIVITY_HISTORY` to a folder to keep the large history there between runs; filling it takes minutes.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from pegboard.tui.activity.call_list import CallList
    from pegboard.tui.activity.screen import ActivityScreen
    from pegboard.tui.app import PegboardApp

Row = tuple[str, float, float, str]
_LIVE_CALLS = 60
_HOLD_SECONDS = 0.5
_CALLS = 1_000_000
_TIMEOUT_SECONDS = 60.0
_TICK_SECONDS = 0.002
_SCROLLS = 150
_OPENINGS = 5
_FILTERS = ("order", "tool:ckan.* status:failed", "cus", "source:ask slower:1s")
_PACK = f'''"""A tool that takes a while."""
import time

def hold(*, n: int) -> int:
    """Wait, then return a number.

    Args:
        n: The number.
    """
    time.sleep({_HOLD_SECONDS})
    return n
'''


def measure() -> list[Row]:
    """Return the figures of calls of another process and of a large history."""
    with tempfile.TemporaryDirectory() as home:
        _move_to(Path(home))
        live = asyncio.run(_live())
    with tempfile.TemporaryDirectory() as home:
        _move_to(Path(home))
        folder = Path(os.environ.get("PEGBOARD_ACTIVITY_HISTORY", home))
        file = folder / "history.db"
        if not file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            importlib.import_module("history")._fill(file, _CALLS)
        state = Path(home) / "state"
        state.mkdir(exist_ok=True)
        if not (state / "history.db").exists():
            (state / "history.db").symlink_to(file)
        return [*live, _opening(), *asyncio.run(_large())]


def _move_to(home: Path) -> None:
    for name in ("DATA", "STATE", "CACHE"):
        os.environ[f"PEGBOARD_{name}_DIR"] = f"{home}/{name.lower()}"
    os.environ["PEGBOARD_CONFIG"] = f"{home}/config.toml"
    packs = home / "data" / "packs"
    packs.mkdir(parents=True)
    (packs / "bench.py").write_text(_PACK)


async def _until(true: Callable[[], object], what: str) -> None:
    end = time.monotonic() + _TIMEOUT_SECONDS
    while not true():
        assert time.monotonic() < end, f"not in time: {what}"
        await asyncio.sleep(0.002)


@asynccontextmanager
async def _app(painted: Callable[[str], object] | None = None) -> AsyncIterator[tuple[PegboardApp, Pilot[None]]]:
    """Run the app; report each frame as the text that a terminal would get."""
    from textual._compositor import CompositorUpdate  # what `App._display` is given

    from pegboard.runtime import Runtime
    from pegboard.tui.app import PegboardApp

    class Painted(PegboardApp):
        """App that reports its frames."""

        def _display(self, screen: object, renderable: object) -> None:
            del screen
            if isinstance(renderable, CompositorUpdate):
                text = renderable.render_segments(self.console)
                if painted is not None:
                    painted(text)

    app = Painted(Runtime.from_environment())
    async with app.run_test(size=(120, 40)) as pilot:
        await _until(lambda: not app.tool_scan.scanning, "the scan is done")
        yield app, pilot


async def _open(app: PegboardApp) -> tuple[ActivityScreen, CallList]:
    from pegboard.tui.activity.call_list import CallList
    from pegboard.tui.activity.screen import ActivityScreen

    app.simulate_key("f9")
    await _until(lambda: isinstance(app.screen, ActivityScreen), "the page is shown")
    screen = app.screen
    assert isinstance(screen, ActivityScreen)
    await _until(lambda: screen.settled, "the calls are shown")
    return screen, screen.query_one(CallList)


def _opening() -> Row:
    """Return how long processes whose first key opens the page take until calls are painted and all is shown."""
    command = [sys.executable, __file__, "open"]
    opened = [
        float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout) for _ in range(_OPENINGS)
    ]
    comment = f"longest {max(opened):.0f}, {_OPENINGS} processes whose first key opens it"
    return ("activity: the page opens with 1,000,000 calls: median ms", statistics.median(opened), 300.0, comment)


async def _first_opening() -> float:
    """Return the milliseconds from the first key until the page is on the screen."""
    from pegboard.config import Paths

    Paths.from_environment().interface.unlink(missing_ok=True)  # it may say that the app starts on this page
    frames: list[str] = []
    async with _app(frames.append) as (app, pilot):
        await pilot.pause()  # the start has its own figures
        frames.clear()
        began = time.perf_counter()
        await _open(app)
        await _until(lambda: any("✓ ok" in frame for frame in frames), "the calls are painted")
        return (time.perf_counter() - began) * 1000


async def _live() -> list[Row]:
    """Return how long calls of another process take to be on the screen."""
    seen: dict[tuple[int, str], float] = {}

    def painted(text: str) -> None:
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
        now = time.monotonic()
        for number, state in re.findall(r"bench\.hold\s+\{n: (\d+)\}[^\n]*?(running|✓ ok)", plain):
            seen.setdefault((int(number), state), now)

    waits: dict[str, list[float]] = {"running": [], "done": []}
    async with _app(painted) as (app, pilot):
        screen, _ = await _open(app)
        caller = await asyncio.create_subprocess_exec(
            *(sys.executable, __file__, "call"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert caller.stdin is not None
        assert caller.stdout is not None
        for number in range(_LIVE_CALLS):
            caller.stdin.write(f"{number}\n".encode())
            began, ended = json.loads(await asyncio.wait_for(caller.stdout.readline(), _TIMEOUT_SECONDS))
            await _until(lambda number=number: (number, "✓ ok") in seen, "the call is done")  # type: ignore[misc]
            await pilot.press("home")  # the selected call stays visible, and newer ones would be above
            await _until(lambda: screen.settled, "the call is selected")
            waits["running"].append(seen[number, "running"] - began)
            waits["done"].append(seen[number, "✓ ok"] - ended)
        caller.stdin.close()
        await asyncio.wait_for(caller.wait(), _TIMEOUT_SECONDS)
    return [
        (
            f"activity: a call of another process until its row shows it as {state}: p95 ms",
            statistics.quantiles(times, n=20)[-1] * 1000,
            300.0,
            f"median {statistics.median(times) * 1000:.0f}, longest {max(times) * 1000:.0f}, {len(times)} calls",
        )
        for state, times in waits.items()
    ]


async def _call_on_request() -> None:
    """Make the calls that stdin requests; print when each was requested and when it finished."""
    from pegboard.models import Finished, ToolCall
    from pegboard.runtime import Runtime

    runtime = Runtime.from_environment()
    runtime.tools.scan()
    while line := await asyncio.to_thread(sys.stdin.readline):
        call = ToolCall(name="bench.hold", args={"n": int(line)}, source="cli")
        began = time.monotonic()  # one clock for all processes
        async for event in runtime.call(call):
            if isinstance(event, Finished):
                assert event.result.ok, event.result
        print(json.dumps([began, time.monotonic()]), flush=True)
    await runtime.close()


async def _large() -> list[Row]:
    """Return the figures of the page with a large history."""
    busy: list[float] = []

    async def tick() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(_TICK_SECONDS)
            busy.append(time.thread_time() - before)

    rows: list[Row] = []
    async with _app() as (app, pilot):
        screen, calls = await _open(app)
        await _until(lambda: screen._feed.count is not None, "the calls are counted")
        assert screen._feed.count is not None
        assert screen._feed.count.calls >= _CALLS
        app.run_worker(tick())
        for key, what in (("pagedown", "page down"), ("down", "down")):
            busy.clear()
            for _ in range(_SCROLLS):
                await pilot.press(key)
            await _until(lambda: screen.settled, "all is shown")
            comment = f"{calls.row_count:,} calls loaded"
            rows.append((f"activity: longest block while scrolling ({what}): CPU ms", max(busy) * 1000, 50.0, comment))
        for key, what in (("end", "the oldest"), ("home", "the newest")):
            generation = screen._feed.generation
            began = time.perf_counter()
            app.simulate_key(key)  # a pilot would wait until the process is idle
            await _until(lambda before=generation: screen._feed.generation > before, what)  # type: ignore[misc]
            took = time.perf_counter() - began
            rows.append((f"activity: {key} shows {what} of 1,000,000 calls: ms", took * 1000, 300.0, ""))
        for text in _FILTERS:
            took = min([await _filter(screen, calls, text) for _ in range(3)])
            rows.append((f"activity: filter {text}: ms until the calls are listed", took * 1000, 100.0, ""))
        return rows


async def _filter(screen: ActivityScreen, calls: CallList, text: str) -> float:
    """Apply a filter and remove it; return the seconds until its first calls were listed."""
    feed = screen._feed
    began = time.perf_counter()
    calls.sought = text
    await _until(lambda: feed.text == text, "the calls are listed")
    took = time.perf_counter() - began
    await _until(lambda: feed.is_idle and feed.count is not None, "the calls are counted")
    calls.sought = ""
    await _until(lambda: feed.text == "" and feed.is_idle, "all calls are listed")
    return took


if __name__ == "__main__" and sys.argv[1:2] == ["call"]:
    asyncio.run(_call_on_request())
if __name__ == "__main__" and sys.argv[1:2] == ["open"]:
    print(asyncio.run(_first_opening()))
