"""Snapshots of a form with every kind of container."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest
from headless import TIMEOUT_SECONDS, compose_frame
from stage import TOOLS, GivenRuntime, as_runtime
from textual.pilot import Pilot

from pegboard.models import Hints, JsonObject, PackHandler, ToolSpec
from pegboard.tui.app import PegboardApp
from pegboard.tui.form import FormPane
from pegboard.tui.tools.screen import ToolsScreen

pytestmark = pytest.mark.slow

Compare = Callable[..., bool]
SIZES = pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])

SCHEMA: JsonObject = {
    "type": "object",
    "required": ["source", "filter"],
    "properties": {
        "source": {"type": "string", "description": "The table to export, as `schema.table`."},
        "filter": {
            "type": "object",
            "description": "Which rows to take.",
            "required": ["match"],
            "properties": {
                "match": {"enum": ["all", "any"]},
                "limit": {"type": "integer", "minimum": 1, "maximum": 10000, "default": 1000},
                "between": {
                    "type": "object",
                    "properties": {"from": {"type": "string", "format": "date"}, "to": {"type": "string"}},
                },
            },
        },
        "columns": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "as": {"enum": ["text", "number", "date"]}},
            },
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "target": {
            "description": "Where the rows go.",
            "oneOf": [
                {
                    "title": "File",
                    "description": "A file on this machine.",
                    "type": "object",
                    "required": ["kind", "path"],
                    "properties": {"kind": {"const": "file"}, "path": {"type": "string"}},
                },
                {
                    "title": "Bucket",
                    "type": "object",
                    "required": ["kind", "url"],
                    "properties": {"kind": {"const": "bucket"}, "url": {"type": "string", "format": "uri"}},
                },
            ],
        },
        "corner": {"type": "array", "prefixItems": [{"type": "number", "title": "Longitude"}, {"type": "number"}]},
        "formats": {"type": "array", "items": {"enum": ["csv", "json", "parquet"]}},
        "note": {"type": ["string", "integer", "null"]},
    },
}
ARGUMENTS: JsonObject = {
    "source": "sales.orders",
    "filter": {"match": "any", "limit": 0, "between": {"from": "2026-01-01"}},
    "columns": [{"name": "id", "as": "number"}, {"as": "date"}],
    "labels": {"team": "core", "tier": "one"},
    "target": {"kind": "file", "path": "out.csv"},
    "corner": [34.8, 32.1],
    "formats": ["parquet", "csv"],
    "note": None,
}


@pytest.fixture
def app(tmp_path: Path) -> PegboardApp:
    """App with one tool that has an argument of every kind."""
    tool = ToolSpec(
        name="data.export",
        pack="data",
        description="Exports rows of a table.",
        input_schema=SCHEMA,
        handler=PackHandler(pack="data", function="export", file="/packs/data.py", line=1),
        signature="data.export(*, source: str, filter: Filter) -> int",
        hints=Hints(read_only=True),
    )
    return PegboardApp(as_runtime(GivenRuntime(tmp_path, tools=(tool, *TOOLS))))


def filled(do: Callable[[FormPane], object], seen: str, top: int | None = None) -> object:
    """Return a function that fills the form, runs `do`, and waits until a text is visible.

    Args:
        do: The action.
        seen: The text to wait for.
        top: First visible line of the form; None to keep it where the action scrolls to.
    """

    async def run(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, PegboardApp)
        screen = app.screen_stack[0]
        assert isinstance(screen, ToolsScreen)
        await until(pilot, lambda: not app.tool_scan.scanning and screen.settled and screen.query(FormPane))
        form = screen.query_one(FormPane)
        screen.tool_list.list.select("data.export")
        await until(pilot, lambda: screen.settled and form.form is not None)
        form.load(ARGUMENTS)
        form.focus_field()
        await until(pilot, lambda: form.has_focus_within)
        do(form)
        await until(pilot, lambda: seen in text_of(pilot))
        await until(pilot, lambda: is_whole(form))
        if top is not None:
            # The focus is still scrolled into view while the rows above it are measured.
            while round(form.scroll_y) != top or not is_whole(form):
                form.scroll_to(y=top, animate=False, immediate=True)
                await pilot.pause(0.3)

    return run


def is_whole(form: FormPane) -> bool:
    """Return whether the viewport of the form is completely mounted."""
    assert form.body is not None
    sight = form.scrollable_content_region
    views = [view for view in form.body.views if view.region.overlaps(sight)]
    lines = sum(view.region.intersection(sight).height for view in views)
    wanted = min(sight.height, form.body.measure() - round(form.scroll_y))
    return lines >= wanted and all(view.is_mounted for view in form.body.views)


async def until(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    end = monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert monotonic() < end, f"the condition never held; on the screen:\n{text_of(pilot)}"
        await pilot.pause(0.01)


def text_of(pilot: Pilot[None]) -> str:
    """Return the text on the screen."""
    return "\n".join(compose_frame(pilot.app))


@SIZES
def test_a_filled_form(snap_compare: Compare, app: PegboardApp, size: tuple[int, int]) -> None:
    run = filled(lambda form: form.focus_field("/source"), "sales.orders")
    assert snap_compare(app, terminal_size=size, run_before=run)


@SIZES
def test_the_first_validation_error(snap_compare: Compare, app: PegboardApp, size: tuple[int, int]) -> None:
    run = filled(lambda form: form.submit(), "✗ must be at least 1", top=0)
    assert snap_compare(app, terminal_size=size, run_before=run)


@SIZES
def test_rows_and_entries(snap_compare: Compare, app: PegboardApp, size: tuple[int, int]) -> None:
    run = filled(lambda form: form.focus_field("/labels/tier"), "tier", top=17)
    assert snap_compare(app, terminal_size=size, run_before=run)


@SIZES
def test_a_variant(snap_compare: Compare, app: PegboardApp, size: tuple[int, int]) -> None:
    run = filled(lambda form: form.focus_field("/target/path"), "out.csv")
    assert snap_compare(app, terminal_size=size, run_before=run, each_size=True)  # a resized form scrolls


@SIZES
def test_every_container_folded(snap_compare: Compare, app: PegboardApp, size: tuple[int, int]) -> None:
    def fold(form: FormPane) -> None:
        form.submit()
        form.action_fold_all()

    run = filled(fold, "2 rows  ✗ 1 error")
    assert snap_compare(app, terminal_size=size, run_before=run)
