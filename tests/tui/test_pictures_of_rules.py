"""Pictures of the rules, and of the form of one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from stage import GivenRuntime, Stage, as_runtime
from textual.pilot import Pilot
from textual.widgets import Input

from pegboard.gateway import Rules, Verdict
from pegboard.models import JsonObject, ToolCall, ToolSpec
from pegboard.models.rule import RuleFile
from pegboard.tui.app import PegboardApp
from pegboard.tui.dialogs.rules import RuleDialog, RulesScreen
from pegboard.tui.result import ResultPane

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


class _Ruled(GivenRuntime):
    """Has rules as well, in a file that a picture can name.

    Args:
        folder: Where they are.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.file = folder / "approvals.toml"
        self.file.write_text(MINE, encoding="utf-8")
        self._rules = Rules(self.file)

    def rules(self) -> RuleFile:
        """Gives the rules."""
        return self._rules.read().model_copy(update={"file": "/home/you/.config/pegboard/approvals.toml"})

    def would(self, call: ToolCall) -> Verdict | None:
        """Says what they say."""
        spec = self.tool(call.name)
        return None if spec is None else self._rules.verdict(spec, call)

    def prepared(self, spec: ToolSpec, arguments: JsonObject) -> JsonObject:
        """Takes them as they are."""
        return arguments


@pytest.fixture
def given(tmp_path: Path) -> _Ruled:
    """A runtime with four rules."""
    return _Ruled(tmp_path)


def after(steps: Steps, call: ToolCall | None = None) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Gives what opens the rules and takes these steps, and holds still what moves by itself."""

    async def run(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, PegboardApp)
        stage = Stage(pilot.app, pilot)
        await stage.until(lambda: stage.screen.query(ResultPane) and stage.screen.settled, "the app is ready")
        screen = RulesScreen(stage.app.runtime, call)
        await stage.app.push_screen(screen)
        await stage.until_seen("approvals.toml")
        await steps(stage, screen)
        await pilot.pause(0.4)
        for one in pilot.app.screen_stack:
            for line in one.query(Input):
                line.cursor_blink = False
        await pilot.pause()

    return run


async def look(stage: Stage, screen: RulesScreen) -> None:
    """Does nothing."""
    await stage.until_seen("(rule 4)")


async def edit(stage: Stage, screen: RulesScreen) -> None:
    """Opens the second rule."""
    await stage.press("down", "enter")
    await stage.until(lambda: isinstance(stage.app.screen, RuleDialog), "the form is open")
    await stage.until(lambda: isinstance(stage.app.focused, Input), "a tool is focused")


async def broken(stage: Stage, screen: RulesScreen) -> None:
    """Looks at a file with a fault."""
    await stage.until_seen("not valid TOML")


CALL = ToolCall(name="fs.remove", args={"path": "src/.git/config"}, source="ask")


@SIZES
@pytest.mark.parametrize("steps", [look, edit])
def test_the_rules(snap_compare: Compare, given: _Ruled, size: tuple[int, int], steps: Steps) -> None:
    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=after(steps, CALL))


def test_rules_that_cant_be_read(snap_compare: Compare, given: _Ruled) -> None:
    given.file.write_text("[[rule]\n", encoding="utf-8")
    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=(80, 24), run_before=after(broken))
