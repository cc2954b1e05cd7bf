"""Snapshots of the rules and of the form of a rule."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from stage import GivenRuntime, Stage, as_runtime
from textual.pilot import Pilot
from textual.widgets import Input

from pegboard.gateway import Rules, Verdict
from pegboard.models import ToolCall
from pegboard.models.rule import RuleFile
from pegboard.tui.app import PegboardApp
from pegboard.tui.dialogs.rules import RuleDialog, RulesScreen
from pegboard.tui.result import ResultPane

pytestmark = pytest.mark.slow

Compare = Callable[..., bool]
Steps = Callable[[Stage, RulesScreen], Awaitable[None]]
SIZES = pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])
MINE = """\
[[rule]]
allow = ["fs.list_dir", "fs.read_file"]
[[rule]]
allow = "fs.*"
where = { path = ["src/**", "docs/**"] }
[[rule]]
ask = "shell.*"
scope = "mcp"
[[rule]]
deny = "fs.remove"
where = { path = "**/.git/**" }
"""


class _RuledRuntime(GivenRuntime):
    """A given runtime with a rules facet.

    Args:
        folder: Folder of the rules file.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.rules = _GivenRules(self, folder / "approvals.toml")
        self.tools.prepare = lambda spec, arguments: arguments  # type: ignore[attr-defined]  # it validates nothing


class _GivenRules:
    """The rules facet: rules in a file whose path is the same in every snapshot."""

    def __init__(self, given: GivenRuntime, file: Path) -> None:
        self._given = given
        self.file = file
        self.file.write_text(MINE, encoding="utf-8")
        self._rules = Rules(file)

    def read(self) -> RuleFile:
        return self._rules.read().model_copy(update={"file": "/home/you/.config/pegboard/approvals.toml"})

    def verdict(self, call: ToolCall) -> Verdict | None:
        spec = self._given.tools.get(call.name)
        return None if spec is None else self._rules.verdict(spec, call)


@pytest.fixture
def given(tmp_path: Path) -> _RuledRuntime:
    """Return a runtime with four rules."""
    return _RuledRuntime(tmp_path)


def after(steps: Steps, call: ToolCall | None = None) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Return a function that opens the rules and runs steps."""

    async def run(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, PegboardApp)
        stage = Stage(pilot.app, pilot)
        await stage.until(lambda: stage.screen.query(ResultPane) and stage.screen.settled, "the app is ready")
        screen = RulesScreen(stage.app.runtime, call)
        await stage.app.push_screen(screen)
        await stage.until_seen("approvals.toml")
        await steps(stage, screen)

    return run


async def look(stage: Stage, screen: RulesScreen) -> None:
    """Do nothing."""
    await stage.until_seen("(rule 4)")


async def edit(stage: Stage, screen: RulesScreen) -> None:
    """Open the second rule."""
    await stage.press("down", "enter")
    await stage.until(lambda: isinstance(stage.app.screen, RuleDialog), "the form is open")
    await stage.until(lambda: isinstance(stage.app.focused, Input), "a tool is focused")


async def broken(stage: Stage, screen: RulesScreen) -> None:
    """Wait for the problem of an invalid file."""
    await stage.until_seen("is not valid TOML")


CALL = ToolCall(name="fs.remove", args={"path": "src/.git/config"}, source="ask")


@SIZES
@pytest.mark.parametrize("steps", [look, edit])
def test_the_rules(snap_compare: Compare, given: _RuledRuntime, size: tuple[int, int], steps: Steps) -> None:
    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=after(steps, CALL))


def test_rules_that_cant_be_read(snap_compare: Compare, given: _RuledRuntime) -> None:
    given.rules.file.write_text("[[rule]\n", encoding="utf-8")
    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=(80, 24), run_before=after(broken))
