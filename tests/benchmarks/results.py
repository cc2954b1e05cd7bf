"""Large results: time to the first content, blocks of the event loop, memory, and time of a search."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import JsonValue

_RUNS = 3
_TICK_SECONDS = 0.002
_WANTED = "needle 7"
_ROWS = 1_000_000
_TEXT_BYTES = 50_000_000
_TIMEOUT_SECONDS = 60.0


def measure() -> list[tuple[str, float, float, str]]:
    """Return the figures of three large results, each the best of several runs in processes of their own."""
    rows: list[tuple[str, float, float, str]] = []
    with tempfile.TemporaryDirectory() as home:
        for name, write in (
            ("50 MB of JSON", _write_json),
            ("50 MB of text in a line", _write_text),
            ("a table of 1,000,000 rows", _write_table),
        ):
            file = Path(home) / "result.json"
            write(file)
            found = [_run(file) for _ in range(_RUNS)]
            best = {figure: min(run[figure] for run in found) for figure in found[0]}
            size = file.stat().st_size / 1e6
            rows += [
                (
                    f"{name}: CPU ms to the first content",
                    best["first"] * 1000,
                    300.0,
                    f"{size:.0f} MB, {best['wall'] * 1000:.0f} ms on the clock",
                ),
                (f"{name}: longest block of the event loop: CPU ms", best["block"] * 1000, 50.0, ""),
                (f"{name}: memory of the app against the file", best["memory"] / size, 2.0, f"{best['memory']:.0f} MB"),
                (
                    f"{name}: memory of its process against the file",
                    best["child"] / size,
                    24.0,
                    f"{best['child']:.0f} MB",
                ),
                (f"{name}: search of the part shown: ms", best["search"] * 1000, 1000.0, ""),
                (
                    f"{name}: search of the whole against reading it as JSON",
                    best["whole"] / best["read"],
                    5.0,
                    f"{best['whole']:.2f} s",
                ),
                (
                    f"{name}: until the end is reached, against reading it as JSON",
                    best["end"] / best["read"],
                    5.0,
                    f"{best['end']:.2f} s",
                ),
            ]
    return rows


def _write_json(file: Path) -> None:
    items = [
        {
            "id": number,
            "tags": ["one", "two"],
            "owner": {"name": f"name {number}", "mail": "x" * 60},
            "text": "word " * 10,
        }
        for number in range(260_000)
    ]
    items[200_000]["text"] = _WANTED
    _write(file, {"success": True, "groups": {"all": items}})


def _write_text(file: Path) -> None:
    text = "A long line without an end. " * (_TEXT_BYTES // 28)
    _write(file, text[:40_000_000] + _WANTED + text[40_000_000:])


def _write_table(file: Path) -> None:
    table = [{"id": number, "name": f"name {number}", "value": number * 7 % 1000 / 10} for number in range(_ROWS)]
    table[900_000]["name"] = _WANTED
    _write(file, table)


def _write(file: Path, value: object) -> None:
    file.write_text(json.dumps(value, separators=(",", ":")))


def _run(file: Path) -> dict[str, float]:
    """Show a result in a process of its own and return its figures."""
    command = [sys.executable, __file__, str(file)]
    ran = subprocess.run(command, env=os.environ, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(ran.stdout)
    return figures


def _shown_part(file: Path) -> tuple[JsonValue, int, float]:
    """Return the part of a result that the app gets, its size, and the seconds for reading the whole as JSON."""
    from pegboard.results.shorten import shorten

    began = time.perf_counter()
    whole = json.loads(file.read_bytes())
    read = time.perf_counter() - began
    data, shown = shorten(whole, 1_000_000)
    return json.loads(json.dumps(data)), shown, read  # a copy: nothing of the whole stays in memory


async def _show(file: Path, size: int, data: JsonValue, shown: int, read: float) -> dict[str, float]:
    from textual.app import App, ComposeResult

    from pegboard.models import ResultMeta, ToolCall, ToolResult, Truncation
    from pegboard.tui.result import ResultPane

    cut = Truncation(shown_bytes=shown, total_bytes=size, file=str(file))
    gc.freeze()  # as the app does with what stays
    result = ToolResult.model_construct(ok=True, data=data, error=None, meta=ResultMeta(size=size, truncated=cut))
    late: list[float] = []

    class Ticking(App[None]):
        """App with a result pane that records the work of its thread between two ticks."""

        def compose(self) -> ComposeResult:
            yield ResultPane(folder=file.parent)

        async def tick(self) -> None:
            while True:
                before = time.thread_time()
                await asyncio.sleep(_TICK_SECONDS)
                late.append(time.thread_time() - before)

    async def until(true: Callable[[], object]) -> float:
        started = time.perf_counter()
        while not true():
            assert time.perf_counter() - started < _TIMEOUT_SECONDS, "it took too long"
            await asyncio.sleep(0.002)
        return time.perf_counter() - started

    app = Ticking()
    async with app.run_test(size=(120, 40)) as pilot:
        pane = app.query_one(ResultPane)
        await pilot.pause(0.5)
        memory = _resident()
        app.run_worker(app.tick())
        await pilot.pause(0.1)
        late.clear()
        began, worked = time.perf_counter(), time.process_time()
        pane.show(ToolCall(name="demo.tool", source="form"), result)
        pane.focus()
        views = pane._views
        await until(lambda: views.current is not None and views.current.size.height > 0)
        await pilot.pause()
        figures = {"first": time.process_time() - worked, "wall": time.perf_counter() - began, "read": read}
        began = time.perf_counter()
        await until(lambda: views.is_whole)
        await pilot.pause()
        await pilot.press("ctrl+end" if isinstance(result.data, str) else "end")
        figures["end"] = time.perf_counter() - began
        began = time.perf_counter()
        views.search_for(_WANTED)
        await until(lambda: "in the part shown" in views.search.note)
        figures["search"] = time.perf_counter() - began
        began = time.perf_counter()
        pane.action_search_whole()
        await until(lambda: "1 of 1 in all" in views.search.note)
        figures["whole"] = time.perf_counter() - began
        await pilot.pause(0.2)
        figures["block"] = max(late)
        figures["memory"] = max(_resident() - memory, 0)
    figures["child"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
    return figures


def _resident() -> float:
    """Return the resident memory of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    result_file = Path(sys.argv[1])
    print(json.dumps(asyncio.run(_show(result_file, result_file.stat().st_size, *_shown_part(result_file)))))
