"""The Script place on a stage: the real runtime over a pack of the test's own."""

from __future__ import annotations

import os
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from stage import Stage
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
"""Does things."""
import time
from pathlib import Path
from pegboard.sdk import ToolFailed, call_tool, hints, log, progress

@hints(read_only=True)
def look(*, where: str, often: int = 1) -> dict:
    """Looks somewhere.

    Args:
        where: The place to look at.
    """
    return {"seen": where, "often": often}

@hints(destructive=True)
def remove(*, path: str) -> str:
    """Removes something for good."""
    return f"removed {path}\\n"

@hints(read_only=True)
def outer(*, where: str) -> object:
    """Has somebody else look."""
    return call_tool("work.look", where=where)

@hints(read_only=True)
def wait(*, gate: str, word: str = "open") -> str:
    """Waits until a file is there."""
    for number in range(8):
        log(f"line {number}")
    progress(1, 3, "one of three")
    while not Path(gate).exists():
        time.sleep(0.01)
    return f"{word}\\n"

@hints(read_only=True)
def fail(*, message: str = "No such thing.") -> str:
    """Fails."""
    raise ToolFailed(message, code="not_found")

@hints(read_only=True)
def big(*, size: int) -> str:
    """Gives a text of that many characters."""
    return "x" * size

@hints(read_only=True)
def say(*, text: str) -> str:
    """Says it back."""
    return text
'''


class ScriptStage(Stage):
    """The Script place, driven by keys and mouse."""

    @property
    def place(self) -> ScriptScreen:
        """The place, be there a question over it or not."""
        screen = self.app.get_screen_stack("script")[0]
        assert isinstance(screen, ScriptScreen)
        return screen

    @property
    def editor(self) -> ScriptEditor:
        """Where the script is written."""
        return self.place.query_one(ScriptEditor)

    @property
    def commands(self) -> CommandsPane:
        """What may be called."""
        return self.place.query_one(CommandsPane)

    @property
    def tree(self) -> CallsTree:
        """The calls."""
        return self.place.query_one(CallsTree)

    @property
    def output(self) -> OutputPane:
        """What was printed."""
        return self.place.query_one(OutputPane)

    @property
    def runtime(self) -> Runtime:
        """What it shows."""
        return self.app.runtime

    @property
    def said(self) -> str:
        """What is said of the script before it runs."""
        findings = self.place.query_one("#findings", Static)
        return str(findings.content) if findings.display else ""

    @property
    def title(self) -> str:
        """What stands over the editor."""
        return Content.from_markup(str(self.place.query_one("#writing").border_title)).plain

    @property
    def calls(self) -> list[str]:
        """The rows of the tree, without what is empty at their ends."""
        return [" ".join(self.tree.row(number)[0].split()) for number in range(self.tree.row_count)]

    @property
    def printed(self) -> list[str]:
        """The rows of the output."""
        view = next(view for view in self.output.query(TextView) if view.display)
        return [view.row(number)[0].rstrip() for number in range(view.row_count)]

    @property
    def records(self) -> list[CallRecord]:
        """The calls that are recorded, newest first."""
        return [*self.runtime.history.records()]

    async def write(self, script: str) -> None:
        """Puts a script into the editor."""
        self.editor.load_text(textwrap.dedent(script))
        await self.pilot.pause()

    async def looked_at(self, part: str) -> None:
        """Waits until something is said of the script."""
        await self.until(lambda: part in self.said, f"{part!r} is said; it is {self.said!r}")

    async def idle(self) -> None:
        """Waits until nothing runs any more and all of it is on the screen."""
        await self.until(lambda: not self.place.running and not self.place._is_starting, "the script has ended")
        await self.drawn()

    async def drawn(self) -> None:
        """Waits until what has changed is on the screen."""
        await self.until(lambda: self.tree._frame is None, "the next frame is there")
        await self.pilot.pause()

    async def run(self, script: str) -> None:
        """Runs a script to its end."""
        await self.write(script)
        await self.press("ctrl+r")
        await self.idle()


def write_work(folder: Path) -> Path:
    """Writes the pack `work`, and gives its folder."""
    packs = folder / "packs"
    packs.mkdir(exist_ok=True)
    (packs / "work.py").write_text(textwrap.dedent(PACK), encoding="utf-8")
    return packs


def script_app(folder: Path, *, config: str = "", allow: str | None = None) -> PegboardApp:
    """Builds the app on its runtime; see `on_script`."""
    Path(os.environ["PEGBOARD_CONFIG"]).write_text(config, encoding="utf-8")
    return PegboardApp(Runtime.from_environment(packs=[write_work(folder)], tool_allow=allow))


async def entered(stage: ScriptStage) -> None:
    """Goes to the Script place."""
    await stage.pilot.press("f7")
    await stage.until(lambda: "work.say" in stage.place._names, "the commands are known")
    await stage.until(lambda: stage.place._is_restored, "the draft is read")
    await stage.pilot.pause()


@asynccontextmanager
async def on_script(
    folder: Path, *, size: tuple[int, int] = (120, 40), config: str = "", allow: str | None = None
) -> AsyncIterator[ScriptStage]:
    """Opens the Script place.

    Args:
        folder: Where the pack is written to.
        size: Of the terminal.
        config: The configuration.
        allow: Which tools may be used.
    """
    app = script_app(folder, config=config, allow=allow)
    async with app.run_test(size=size, notifications=True) as pilot:
        stage = ScriptStage(app, pilot)
        await entered(stage)
        yield stage
