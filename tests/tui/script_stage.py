"""Driver for tests of the Script page, with a real runtime and a pack for tests."""

from __future__ import annotations

import os
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from headless import compose_at_end
from stage import Stage, open_on
from textual.content import Content
from textual.widgets import Static

from pegboard.models import CallRecord
from pegboard.runtime import Runtime
from pegboard.tui.app import PegboardApp
from pegboard.tui.result.text import TextView
from pegboard.tui.script.calls import CallsTree
from pegboard.tui.script.commands import CommandsPane
from pegboard.tui.script.editor import ScriptEditor
from pegboard.tui.script.output import OutputPane
from pegboard.tui.script.screen import ScriptScreen

PACK = '''
"""Tools for tests."""
import time
from pathlib import Path
from pegboard.sdk import ToolFailed, call_tool, hints, log, progress

@hints(read_only=True)
def look(*, where: str, often: int = 1) -> dict:
    """Look somewhere.

    Args:
        where: Where to look.
    """
    return {"seen": where, "often": often}

@hints(destructive=True)
def remove(*, path: str) -> str:
    """Remove something permanently."""
    return f"removed {path}\\n"

@hints(read_only=True)
def outer(*, where: str) -> object:
    """Look with another tool."""
    return call_tool("work.look", where=where)

@hints(read_only=True)
def wait(*, gate: str, word: str = "open") -> str:
    """Wait until a file exists."""
    for number in range(8):
        log(f"line {number}")
    progress(1, 3, "one of three")
    while not Path(gate).exists():
        time.sleep(0.01)
    return f"{word}\\n"

@hints(read_only=True)
def fail(*, message: str = "No such thing.") -> str:
    """Fail."""
    raise ToolFailed(message, code="not_found")

@hints(read_only=True)
def big(*, size: int) -> str:
    """Return a text of a length."""
    return "x" * size

@hints(read_only=True)
def say(*, text: str) -> str:
    """Return a text."""
    return text
'''


class ScriptStage(Stage):
    """The Script page, driven by keys and mouse."""

    @property
    def place(self) -> ScriptScreen:
        """The page, even below a dialog."""
        screen = self.app.get_screen_stack("script")[0]
        assert isinstance(screen, ScriptScreen)
        return screen

    @property
    def editor(self) -> ScriptEditor:
        """The editor."""
        return self.place.query_one(ScriptEditor)

    @property
    def commands(self) -> CommandsPane:
        """The sidebar with the commands."""
        return self.place.query_one(CommandsPane)

    @property
    def tree(self) -> CallsTree:
        """The tree of calls."""
        return self.place.query_one(CallsTree)

    @property
    def output(self) -> OutputPane:
        """The output pane."""
        return self.place.query_one(OutputPane)

    @property
    def runtime(self) -> Runtime:
        """The runtime of the app."""
        return self.app.runtime

    @property
    def findings(self) -> str:
        """Text of the findings below the editor."""
        findings = self.place.query_one("#findings", Static)
        return str(findings.content) if findings.display else ""

    @property
    def title(self) -> str:
        """Title of the editor."""
        return Content.from_markup(str(self.place.query_one("#writing").border_title)).plain

    @property
    def calls(self) -> list[str]:
        """Rows of the tree with single spaces."""
        return [" ".join(self.tree.row(number)[0].split()) for number in range(self.tree.row_count)]

    @property
    def printed(self) -> list[str]:
        """Rows of the output."""
        view = next(view for view in self.output.query(TextView) if view.display)
        return [view.row(number)[0].rstrip() for number in range(view.row_count)]

    @property
    def records(self) -> list[CallRecord]:
        """Recorded calls, newest first."""
        return [*self.runtime.history.records()]

    async def write(self, script: str) -> None:
        """Put a script into the editor."""
        self.editor.load_text(textwrap.dedent(script))
        await self.pilot.pause()

    async def looked_at(self, part: str) -> None:
        """Wait until the findings contain a text."""
        await self.until(lambda: part in self.findings, f"{part!r} in the findings {self.findings!r}")

    async def idle(self) -> None:
        """Wait until no script is running and the screen is drawn."""
        await self.until(lambda: not self.place.running and not self.place.runner.is_starting, "the script has ended")
        await self.drawn()

    async def drawn(self) -> None:
        """Wait until all changes are drawn."""
        await self.until(lambda: self.tree._frame is None, "the next frame is drawn")
        await self.pilot.pause()

    async def run(self, script: str) -> None:
        """Run a script to its end."""
        await self.write(script)
        await self.press("ctrl+r")
        await self.idle()


def write_work(folder: Path) -> Path:
    """Write the pack `work` and return its folder."""
    packs = folder / "packs"
    packs.mkdir(exist_ok=True)
    (packs / "work.py").write_text(textwrap.dedent(PACK), encoding="utf-8")
    return packs


def script_app(folder: Path, *, config: str = "", allow: str | None = None) -> PegboardApp:
    """Return the app with its runtime; see `on_script`."""
    Path(os.environ["PEGBOARD_CONFIG"]).write_text(config, encoding="utf-8")
    runtime = Runtime.from_environment(packs=[write_work(folder)], tool_allow=allow)
    open_on("script", runtime)
    return PegboardApp(runtime)


async def entered(stage: ScriptStage) -> None:
    """Wait for the Script page, the commands and the draft."""
    await stage.until(lambda: "work.say" in stage.place.analyzer.names, "the commands are known")
    await stage.until(lambda: stage.place.document.is_restored, "the draft is read")
    await stage.pilot.pause()


@asynccontextmanager
async def on_script(
    folder: Path, *, size: tuple[int, int] = (120, 40), config: str = "", allow: str | None = None
) -> AsyncIterator[ScriptStage]:
    """Open the Script page.

    Args:
        folder: Folder for the pack.
        size: Size of the terminal.
        config: Text of the configuration file.
        allow: Patterns of allowed tools.
    """
    app = script_app(folder, config=config, allow=allow)
    async with app.run_test(size=size, notifications=True) as pilot:
        stage = ScriptStage(app, pilot)
        await entered(stage)
        yield stage
        compose_at_end(app)
