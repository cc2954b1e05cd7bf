"""Cost of opening a form: from selecting a tool to the painted form, over real schemas."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pegboard.tui.form import FormPane

_TESTS = Path(__file__).parents[1]
_SCHEMAS = _TESTS.parents[1] / "shared" / "data" / "schemas" / "open.jsonl"
_TICK_SECONDS = 0.005
_AFTER_SECONDS = 0.02
"""Seconds after a form is painted in which a blocked loop still counts as its cost."""
_REST_SECONDS = 0.6
"""Seconds between two tools, as for a user who looks at a form."""
_LONGEST_SECONDS = 30.0
_LARGE_RUNS = 9
_LEVELS = 16
_DESCRIPTION = "Does what a tool does. It takes its arguments, looks at them, and gives a result in a line or two."
_EVERY = 10
"""Share of the real schemas that are opened: every tenth. All of them are in the tool list."""


def measure() -> list[tuple[str, float, float, str]]:
    """Return the milliseconds from selecting a tool to its painted form, and how long the event loop was blocked."""
    large = {f"{name}-{run}": schema for run in range(_LARGE_RUNS) for name, schema in _large().items()}
    with tempfile.TemporaryDirectory() as home:
        os.environ["PEGBOARD_CONFIG"] = f"{home}/config.toml"
        corpus_names = [*_corpus()][::_EVERY]
        opened = asyncio.run(_opened(Path(home), {**_corpus(), **large}, [*corpus_names, *large]))
    rows = []
    corpus = [figures for name, figures in opened.items() if name not in large]
    for figure, place in (("select a tool to its form painted", 0), ("longest block while a form opens", 1)):
        times = [one[place] * 1000 for one in corpus]
        cuts = statistics.quantiles(times, n=100)
        comment = f"median {cuts[49]:.0f}, p99 {cuts[98]:.0f}, max {max(times):.0f}, {len(times):,} schemas"
        rows.append((f"{figure}: p95 ms", cuts[94], 100.0, comment))
    for name in _large():
        times = [opened[f"{name}-{run}"][0] * 1000 for run in range(_LARGE_RUNS)]
        comment = f"median of {len(times)}, {min(times):.0f} to {max(times):.0f}"
        rows.append((f"select a tool of {name} to its form painted: ms", statistics.median(times), 150.0, comment))
    return rows


def _corpus() -> dict[str, Any]:
    """Return the schemas by the names of their tools: real ones if available, and hard cases."""
    files = [file for file in (_SCHEMAS, _TESTS / "corpus" / "hardcases.jsonl") if file.is_file()]
    lines = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    # That of a tool is always an object.
    return {one["id"]: one["schema"] for one in lines if isinstance(one["schema"], dict)}


def _large() -> dict[str, Any]:
    """Return a schema of many fields and one of many levels."""
    text = {"type": "string", "description": "What it is, in a sentence that takes about a line."}
    nested: dict[str, Any] = {"type": "object", "properties": {"name": text}, "required": ["name"]}
    for _ in range(_LEVELS - 1):
        properties = {"name": text, "inner": nested}
        nested = {"type": "object", "properties": properties, "required": ["name", "inner"]}
    return {
        "205 fields": {"type": "object", "properties": {f"p{number}": text for number in range(205)}},
        f"{_LEVELS} levels": nested,
    }


async def _opened(home: Path, schemas: dict[str, Any], names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Open one tool after the other; return for each the seconds until its form was painted and the longest block.

    Args:
        home: Folder for the app's files.
        schemas: The schemas of all tools, by their names.
        names: The tools to open.
    """
    from textual._compositor import CompositorUpdate  # what `App._display` is given
    from textual.events import MouseMove

    from pegboard.models import PackHandler, ToolSpec
    from pegboard.tui.app import PegboardApp
    from pegboard.tui.form import FormPane
    from pegboard.tui.tools.screen import ToolsScreen

    painted = asyncio.Event()
    left: list[object] = []

    class Painted(PegboardApp):
        """App that detects when the awaited form is in a frame, rendered to bytes as for a terminal."""

        def _display(self, screen: object, renderable: object) -> None:
            if isinstance(renderable, CompositorUpdate):
                renderable.render_segments(self.console)
            if left and _is_painted(self.screen.query_one(FormPane), left[0]):
                painted.set()

    specs = [
        ToolSpec(
            name=f"pack.{name}",
            pack="pack",
            description=_DESCRIPTION,
            input_schema=schema,
            handler=PackHandler(pack="pack", function="tool", file="/packs/pack.py", line=1),
        )
        for name, schema in schemas.items()
    ]
    sys.path.insert(0, str(_TESTS / "tui"))
    stage = importlib.import_module("stage")  # a real runtime has no tools with given schemas
    app = Painted(stage.as_runtime(stage.GivenRuntime(home, specs)))
    found: dict[str, tuple[float, float]] = {}
    async with app.run_test(size=(120, 40)) as pilot:
        screen = app.screen
        assert isinstance(screen, ToolsScreen)
        while app.tool_scan.scanning or not screen.settled or not screen.query(FormPane):
            await pilot.pause(0.05)
        late: list[float] = []
        ticking = asyncio.create_task(_tick(late))
        # The first tool is shown from the start: the last one goes before it.
        for name in [*names[-1:], *names]:
            # Collect garbage while the simulated user rests, not while a form opens.
            app.post_message(MouseMove(None, 0, 0, 0, 0, 0, False, False, False))
            await asyncio.sleep(_REST_SECONDS)
            left[:] = [screen.query_one(FormPane).form]
            painted.clear()
            late.clear()
            start = time.perf_counter()
            screen.open_tool(f"pack.{name}")
            await asyncio.wait_for(painted.wait(), _LONGEST_SECONDS)
            seconds = time.perf_counter() - start
            await asyncio.sleep(_AFTER_SECONDS)
            found[name] = seconds, max(late, default=0.0)
        ticking.cancel()
        with suppress(asyncio.CancelledError):
            await ticking
    return found


def _is_painted(pane: FormPane, left: object) -> bool:
    """Return whether a form other than the previous one is mounted, with everything in the viewport."""
    if pane.form is left:
        return False
    if pane.body is None:
        return pane.form is not None
    sight, body = pane.scrollable_content_region, pane.body
    views = [view for view in body.views if body.lines_at(view).translate(body.region.offset).overlaps(sight)]
    filled = sum(view.region.intersection(sight).height for view in views)
    wanted = min(sight.height, body.measure())
    stand = all(view.region.y - body.region.y == body.lines_at(view).y for view in views)
    return body.is_filled and stand and all(view.is_mounted for view in views) and filled >= wanted


async def _tick(late: list[float]) -> None:
    while True:
        due = time.perf_counter() + _TICK_SECONDS
        await asyncio.sleep(_TICK_SECONDS)
        late.append(time.perf_counter() - due)


if __name__ == "__main__":
    figures: Sequence[object] = measure()
    sys.stdout.write("\n".join(map(str, figures)) + "\n")
