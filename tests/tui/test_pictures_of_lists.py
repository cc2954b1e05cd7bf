"""Snapshots of dialogs over a form: choices, presets, copy formats."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage import TOOLS, GivenRuntime, Stage, as_runtime, tool
from test_health_pictures import SIZES, Compare, Steps, after

from pegboard.tui.app import PegboardApp

pytestmark = pytest.mark.slow

PICKY = tool(
    "web.login",
    "Logs in.",
    country={"enum": [f"country {number}" for number in range(200)], "description": "Where to."},
    colours={"type": "array", "items": {"enum": ["red", "green", "blue"]}},
    roles={"type": "array", "items": {"enum": [f"role {number}" for number in range(90)]}},
    word={"type": "string", "examples": ["alpha", "[b]beta[/b]"], "default": "omega"},
    api_key={"type": "string"},
)


@pytest.fixture
def given(tmp_path: Path) -> GivenRuntime:
    """Six tools, and presets of two of them."""
    runtime = GivenRuntime(tmp_path, tools=[*TOOLS, PICKY])
    runtime.kept = {
        "fs.read_file": {"small": {"path": "small.txt", "max_bytes": 10}, "odd": {"path": 5}},
        "web.login": {"as root": {"api_key": "hush", "country": "country 7"}},
    }
    return runtime


async def choices(stage: Stage) -> None:
    """Filter many choices."""
    await stage.open("login")
    await stage.type("19")
    await stage.until_seen("20 of 200")


async def several(stage: Stage) -> None:
    """Tick some of a few values, then some of many."""
    await stage.open("login")
    await stage.press("tab", "g", "space", "r", "space", "tab", "space")
    await stage.press("down", "space", "plus", "down", "space")
    await stage.until_seen("3 of 90")


async def examples(stage: Stage) -> None:
    """Open the examples of a text field."""
    await stage.open("login")
    await stage.press("tab", "tab", "tab", "ctrl+f")
    await stage.until_seen("enter chooses")


async def presets(stage: Stage) -> None:
    """Open the presets of a tool."""
    await stage.open("read")
    await stage.press("ctrl+l")
    await stage.until_seen('"path": 5')


async def name(stage: Stage) -> None:
    """Open the dialog for a name."""
    await stage.open("login")
    await stage.press("tab", "tab", "tab", "tab")
    await stage.type("hush")
    await stage.press("ctrl+l")
    await stage.until_seen("country 7")
    await stage.press("ctrl+s")
    await stage.until_seen("Save current arguments as")


async def copy(stage: Stage) -> None:
    """Open the copy formats of a call with a secret."""
    await stage.open("login")
    stage.form.load({"api_key": "hush", "country": "country 7", "roles": ["role 1", "role 2"]})
    await stage.press("ctrl+right_square_bracket")
    await stage.until_seen("••••")


@SIZES
@pytest.mark.parametrize("steps", [choices, several, examples, presets, name, copy])
def test_what_opens_over_a_form(
    snap_compare: Compare, given: GivenRuntime, steps: Steps, size: tuple[int, int]
) -> None:
    alone = steps is name  # a page below two dialogs keeps its old layout after a change of the size
    app = PegboardApp(as_runtime(given))
    assert snap_compare(app, terminal_size=size, run_before=after(steps), each_size=alone)
