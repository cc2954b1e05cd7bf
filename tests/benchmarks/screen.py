"""Cost of the screen: CPU until the first frame, a key in the filter, and how long the event loop is blocked."""

from __future__ import annotations

import asyncio
import fcntl
import importlib
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

_RUNS = 7
_IDLE_SECONDS = 15.0
_BLOCK_RUNS = 5
_TICK_SECONDS = 0.002
_REST_SECONDS = 1.0
_TOOLS = 10_000
_PER_PACK = 10
_TYPING_SECONDS = 0.1
"""Seconds between two keys of a fast typist."""
_QUERIES = ("read", "delete row", "usfile", "pack12", "sbq", "commit")
_WORDS = (
    *("read", "write", "list", "make", "delete", "file", "dir", "user", "issue", "repo"),
    *("branch", "commit", "search", "get", "set", "update", "query", "table"),
)

_BARE = """
from textual.app import App
from textual.widgets import Footer, Header, Label

class Bare(App):
    TITLE = "Pegboard"

    def compose(self):
        yield Header()
        yield Label("Hello")
        yield Footer()

Bare().run()
"""


def measure() -> list[tuple[str, float, float, str]]:
    """Return the figures of the screen."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as home:
        for name in ("DATA", "STATE", "CACHE"):
            os.environ[f"PEGBOARD_{name}_DIR"] = f"{home}/{name.lower()}"
        os.environ["PEGBOARD_CONFIG"] = f"{home}/config.toml"
        bare = _first_frame_seconds([sys.executable, "-c", _BARE])
        ours = _first_frame_seconds([sys.executable, "-m", "pegboard"])
        idle = _idle_megabytes([sys.executable, "-m", "pegboard"])
        keys = asyncio.run(_filter_seconds(Path(home)))
        blocks = [row for tools in (1_000, _TOOLS) for row in _block_rows(tools, Path(home) / str(tools))]
    p95 = statistics.quantiles(keys, n=20)[-1]
    return [
        ("start to first frame: CPU against a bare Textual app", ours / bare, 1.6, f"{ours:.3f} s / {bare:.3f} s"),
        (f"resident memory after {_IDLE_SECONDS:g} s: MB", idle, 60.0, "without workers"),
        (f"a key in the filter at {_TOOLS:,} tools, painted: p95 ms", p95 * 1000, 50.0, f"{len(keys)} keys"),
        *blocks,
    ]


def _block_rows(tools: int, home: Path) -> Iterator[tuple[str, float, float, str]]:
    """Return how long the loop is blocked in the first seconds, with unread packs and with indexed ones."""
    importlib.import_module("scan").write_packs(home / "packs", tools // _PER_PACK)
    blocks = list(_blocks(home / "packs", home))
    for was_known, which in ((False, "never read"), (True, "known")):
        longest = [seconds * 1000 for seconds, is_known in blocks if is_known == was_known]
        comment = f"median of {len(longest)} starts, {min(longest):.0f} to {max(longest):.0f}"
        yield f"longest block after the start, {tools:,} tools {which}: ms", statistics.median(longest), 50.0, comment


def _first_frame_seconds(command: list[str]) -> float:
    """Return the median CPU seconds of a program until its first frame is on the terminal."""
    cpu_to_first_frame(command)
    return statistics.median(cpu_to_first_frame(command) for _ in range(_RUNS))


def _idle_megabytes(command: list[str]) -> float:
    """Run a program on its own terminal without touching it; return its resident memory."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    end = time.monotonic() + _IDLE_SECONDS
    try:
        while (left := end - time.monotonic()) > 0:
            if select.select([terminal], [], [], left)[0]:
                os.read(terminal, 65536)
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def cpu_to_first_frame(command: list[str]) -> float:
    """Run a program on its own terminal until it has painted its title; return its CPU seconds."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    seen = b""
    try:
        while b"Pegboard" not in seen.replace(b"\x1b]0;Pegboard", b""):
            if not select.select([terminal], [], [], 20.0)[0]:
                raise RuntimeError(f"{command} painted nothing: {seen[-500:]!r}")
            seen += os.read(terminal, 65536)
        return sum(_nanoseconds(task) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def _nanoseconds(task: Path) -> int:
    return int((task / "schedstat").read_text().split()[0])


async def _filter_seconds(home: Path) -> list[float]:
    """Type and erase queries over many tools; return the seconds from each key until its frame is painted."""
    from textual import events
    from textual._compositor import CompositorUpdate  # what `App._display` is given

    from pegboard.runtime import Runtime
    from pegboard.tui.app import PegboardApp
    from pegboard.tui.tools.tool_list import ToolList

    painted: list[float] = []

    class Painted(PegboardApp):
        """App that records when a frame is done, rendered to bytes as for a terminal."""

        def _display(self, screen: object, renderable: object) -> None:
            if isinstance(renderable, CompositorUpdate):
                renderable.render_segments(self.console)
            painted.append(time.perf_counter())

    packs = home / "named"
    packs.mkdir()
    for pack in range(_TOOLS // _PER_PACK):
        functions = (
            f"def {'_'.join(_pick(pack + number * 7, 3))}_{number}() -> None:\n"
            f'    """Works on the {" ".join(_pick(pack * number + 1, 20))}."""\n'
            for number in range(_PER_PACK)
        )
        (packs / f"pack{pack}.py").write_text("\n\n".join(functions))
    app = Painted(Runtime.from_environment(packs=[packs]))
    took: list[float] = []
    async with app.run_test(size=(120, 40)) as pilot:
        tools = app.screen.query_one(ToolList)
        while app.tool_scan.scanning or len(tools.catalogue.entries) < _TOOLS:
            await pilot.pause(0.01)
        await pilot.pause(0.5)
        for query in _QUERIES:
            for key in [*(("space" if letter == " " else letter) for letter in query), *["backspace"] * len(query)]:
                before = tools.sought
                painted.clear()
                start = time.perf_counter()
                app.post_message(events.Key(key, " " if key == "space" else key if len(key) == 1 else None))
                while tools.sought == before or not painted:  # noqa: ASYNC110 - the loop itself is measured
                    await asyncio.sleep(0)
                took.append(painted[0] - start)
                await asyncio.sleep(_TYPING_SECONDS)
    return took


def _pick(seed: int, count: int) -> list[str]:
    return [_WORDS[(seed * 31 + place * (seed % 5 + 3)) % len(_WORDS)] for place in range(count)]


def _blocks(folder: Path, home: Path) -> Iterator[tuple[float, bool]]:
    """Open the app on packs repeatedly; yield the longest block of the loop, and whether the packs were indexed.

    Each run has its own process, because a second app in one process finds everything imported and compiled.
    """
    for run in range(_BLOCK_RUNS):
        for is_known in (False, True):
            places = {f"PEGBOARD_{name}_DIR": f"{home}/{run}/{name.lower()}" for name in ("DATA", "STATE", "CACHE")}
            command = [sys.executable, __file__, str(folder)]
            ran = subprocess.run(command, env=os.environ | places, check=True, capture_output=True, text=True)
            yield float(ran.stdout), is_known


async def _longest_block(folder: Path) -> float:
    """Open the app on a folder of packs; return the longest that a task waited for the loop after the first frame."""
    from textual import events

    from pegboard.config import simple_appearance
    from pegboard.runtime import Runtime
    from pegboard.tui.app import PegboardApp
    from pegboard.tui.tools.screen import ToolsScreen

    late: list[float] = []

    class Ticking(PegboardApp):
        """App that records the delay of each tick."""

        def on_ready(self, _event: events.Ready) -> None:
            self.run_worker(self._tick())

        async def _tick(self) -> None:
            while True:
                due = time.perf_counter() + _TICK_SECONDS
                await asyncio.sleep(_TICK_SECONDS)
                late.append(time.perf_counter() - due)

    app = Ticking(Runtime.from_environment(packs=[folder]), simple_appearance())
    async with app.run_test(size=(120, 40)):
        screen = app.screen
        assert isinstance(screen, ToolsScreen)
        while app.tool_scan.scanning or not screen.settled:  # noqa: ASYNC110 - a notification would be work on the loop
            await asyncio.sleep(0.05)
        await asyncio.sleep(_REST_SECONDS)
    return max(late)


if __name__ == "__main__":
    print(asyncio.run(_longest_block(Path(sys.argv[1]))))
