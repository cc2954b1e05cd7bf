"""Snapshots of the checks of a tool: results, differences, and calls that a change of the schema breaks."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from stage import GivenRuntime, Stage, as_runtime
from test_health_pictures import SIZES, Compare, after

from pegboard.checks.compatibility import BrokenCall, ToolCompatibility
from pegboard.checks.schema_changes import SchemaChange
from pegboard.models import ResultMeta, ToolResult
from pegboard.tui.app import PegboardApp
from pegboard.tui.tools.checks import ChecksScreen

pytestmark = pytest.mark.slow

CHANGED = ToolCompatibility(
    tool="fs.read_file",
    status="breaking",
    since="2026-01-01T00:00:00+00:00",
    changes=(
        SchemaChange(side="input", path="/limit", message="`limit` is now required", breaking=True),
        SchemaChange(side="input", path="/kind", message="`kind` was added", breaking=False),
    ),
    calls=214,
    broken=3,
    broken_calls=tuple(
        BrokenCall(
            id=f"{number}" * 32, at=datetime(2026, 1, 2, 3, number).astimezone(), reason="`limit` is now required"
        )
        for number in (3, 2, 1)
    ),
)


@pytest.fixture
def given(tmp_path: Path) -> GivenRuntime:
    """Return a tool with three checks, of which one fails and one can't be read."""
    runtime = GivenRuntime(tmp_path)
    folder = runtime.paths.checks
    folder.mkdir(parents=True)
    start = 'tool = "fs.read_file"\narguments.path = "a.txt"\n'
    (folder / "lines.toml").write_text(
        f'{start}expect.snapshot.ignore = ["/at"]\n'
        'expect.snapshot.data = {at = 1, "[b]title[/b]" = "old", text = "one\\ntwo\\nthree", size = 3}\n'
    )
    (folder / "size.toml").write_text(f"{start}expect.subset.size = 4\n")
    (folder / "typo.toml").write_text(f"{start}\nexpect.outcom = 1\n")
    data = {"at": 2, "[b]title[/b]": "\x1b[31mnew", "text": "one\n2\nthree", "size": 4}
    runtime.answer = lambda call: ToolResult(ok=True, data=data, meta=ResultMeta(duration_ms=12.0))
    return runtime


@SIZES
@pytest.mark.promise("BAT-3")
def test_results_and_differences(given: GivenRuntime, snap_compare: Compare, size: tuple[int, int]) -> None:
    async def steps(stage: Stage) -> None:
        await stage.type("read")
        await stage.until(lambda: stage.screen.settled and stage.marked == "fs.read_file", "the tool is shown")
        await stage.press("alt+c")
        await stage.until_seen("not run")
        await stage.press("ctrl+r")
        await stage.until_seen("✓ size")

    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=after(steps), each_size=True)


@SIZES
@pytest.mark.promise("BAT-4")
def test_a_change_of_the_schema_with_the_calls(
    given: GivenRuntime, snap_compare: Compare, size: tuple[int, int]
) -> None:
    async def steps(stage: Stage) -> None:
        await stage.until(lambda: stage.screen.settled, "the app is ready")
        spec = next(spec for spec in given.found if spec.name == "fs.read_file")
        await stage.app.push_screen(ChecksScreen(as_runtime(given), spec, CHANGED))
        await stage.until_seen("typo.toml")

    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=after(steps))
