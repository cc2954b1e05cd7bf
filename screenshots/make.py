"""Screenshots of the running app: `python screenshots/make.py [--font FILE] [NAME ...]`.

The app runs with the built-in packs and demo packs in a temporary folder, and with a fake portal on a local server.
Process ids and durations of calls are replaced by fixed values, so that a screenshot changes only when the interface
does. PNGs need a monospace font file; without one, only SVGs are written. `tour` is an animated SVG of several pages.

Keys such as `@tools.run` are those of a command, so that pictures don't depend on the key. Every wait is bounded: a
picture that can't be taken fails with its name and the text of the screen.
"""

# ruff: noqa: INP001, T201 - a script: not part of a package; prints the written files

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Input, TextArea

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fakes"))
from demo_packs import FILMS, LIBRARY, NOTES
from portal import FakePortal
from web import Web

from pegboard.ask import Ask
from pegboard.brake import Question, Questions
from pegboard.models import (
    CallEvent,
    Finished,
    HistoryPage,
    RecordedCall,
    ServerStatus,
    Started,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from pegboard.models.statistics import ToolStatistics
from pegboard.ports import Calls
from pegboard.runtime import Runtime
from pegboard.runtime.activity import Activity
from pegboard.runtime.scripts import Scripts
from pegboard.runtime.servers import Servers
from pegboard.tui.app import PegboardApp
from pegboard.tui.commands import in_reach
from pegboard.tui.result import ResultPane
from pegboard.tui.script.screen import ScriptScreen
from pegboard.tui.tools.screen import ToolsScreen

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "src" / "pegboard" / "examples"
SIZES = ((120, 40), (80, 24))
FONTS = {
    "DejaVuSansMono": "DejaVu Sans Mono",
    "NotoSansMono-Regular": "Noto Sans Mono",
    "LiberationMono-Regular": "Liberation Mono",
    "Menlo": "Menlo",
}
"""Font file → font family."""
FONT_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "/Library/Fonts", "/System/Library/Fonts", "~/.fonts")


class FixedCalls:
    """Calls with fixed durations and process ids.

    Args:
        calls: The real calls.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def callable(self) -> Sequence[ToolSpec]:
        """Return the callable tools."""
        return self._calls.callable()

    async def call(self, call: ToolCall) -> AsyncGenerator[CallEvent]:
        """Run the call and fix its events."""
        async for event in self._calls.call(call):
            yield fixed(event)


class FixedScripts(Scripts):
    """Scripts whose calls have fixed durations and process ids."""

    async def run(self, commands: str, **how: Any) -> AsyncGenerator[CallEvent]:  # noqa: ANN401 - passed on
        """Run the script and fix its events."""
        async for event in super().run(commands, **how):
            yield fixed(event)


class FixedActivity(Activity):
    """Recorded calls with fixed times, durations and process ids."""

    def page(self, *query: Any, **how: Any) -> HistoryPage:  # noqa: ANN401 - passed on
        """Return a page and fix its calls."""
        return _fixed_page(super().page(*query, **how))

    def calls_of(self, *call: Any, **how: Any) -> HistoryPage:  # noqa: ANN401 - passed on
        """Return the calls that a call made, fixed; calls of one tool in the order of their arguments.

        The calls of `xargs -P` start in any order.
        """
        page = super().calls_of(*call, **how)
        first = {one.tool: one.position for one in page.calls}
        ordered = sorted(page.calls, key=lambda one: (first[one.tool], str(one.args)), reverse=True)
        positions = [one.position for one in page.calls]
        calls = [one.model_copy(update={"position": at}) for one, at in zip(ordered, positions, strict=True)]
        return _fixed_page(page.model_copy(update={"calls": tuple(calls)}))

    def find(self, ids: Sequence[str]) -> tuple[RecordedCall, ...]:
        """Return the calls and fix them."""
        return tuple(map(_fixed_call, super().find(ids)))

    def get(self, call_id: str) -> RecordedCall | None:
        """Return a call and fix it."""
        call = super().get(call_id)
        return None if call is None else _fixed_call(call)

    def result(self, call_id: str) -> ToolResult | None:
        """Return a result and fix it."""
        result = super().result(call_id)
        return None if result is None else _fixed_result(result)

    def statistics(self, tools: Sequence[str] | None = None) -> tuple[ToolStatistics, ...]:
        """Return the statistics and fix their durations."""
        durations = {"p50_ms": 1.8, "p95_ms": 1.8}
        return tuple(
            one.model_copy(update={**durations, "durations_ms": (1.8,) * len(one.durations_ms)})
            for one in super().statistics(tools)
        )


class FixedServers(Servers):
    """MCP servers with a fixed latency."""

    def status(self, name: str) -> ServerStatus | None:
        """Return the status of a server and fix its latency."""
        status = super().status(name)
        return None if status is None else status.model_copy(update={"latency_ms": 12.0})


class FixedRuntime(Runtime):
    """A runtime whose calls have fixed durations and process ids."""

    def __init__(self, *args: Any, **how: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(*args, **how)
        self.scripts = FixedScripts(self._parts)
        self.activity = FixedActivity(self._parts)
        self.servers = FixedServers(self._parts, self.models)

    async def call(self, call: ToolCall) -> AsyncGenerator[CallEvent]:
        """Run the call and fix its events."""
        async for event in super().call(call):
            yield fixed(event)

    def ask(self, session: str | None = None, **how: Any) -> Ask:  # noqa: ANN401 - passed on
        """Return an `Ask` with fixed calls."""
        ask = super().ask(session, **how)
        ask.calls = FixedCalls(ask.calls)
        return ask


def fixed(event: CallEvent) -> CallEvent:
    """Return an event with a fixed process id and duration."""
    match event:
        case Started():
            return event.model_copy(update={"worker": "pid 4711"})
        case Finished(result=result):
            return event.model_copy(update={"result": _fixed_result(result)})
        case _:
            return event


def _fixed_result(result: ToolResult) -> ToolResult:
    worker = "pid 4711" if result.meta.worker else None
    meta = result.meta.model_copy(update={"worker": worker, "duration_ms": 1.8})
    return result.model_copy(update={"meta": meta})


def _fixed_call(call: RecordedCall) -> RecordedCall:
    at = _DAY + timedelta(seconds=7 * call.position)
    return call.model_copy(update={"at": at, "duration_ms": 1.8, "session": call.session and "shop"})


def _fixed_picture(svg: str) -> str:
    """Replace ids and the date in an SVG, and the number in its style names, which is computed from the real texts."""
    fixed_texts = re.sub(r"(id|made&#160;by)&#160;[0-9a-f]{12}\b", r"\1&#160;01a206f300af", svg)
    fixed_texts = fixed_texts.replace(f"{_DAY:%Y-%m-%d}", "2026-11-23")
    if fixed_texts == svg:
        return svg
    unnamed = re.sub(r"\bterminal-\d+", "terminal-0", fixed_texts)
    return unnamed.replace("terminal-0", f"terminal-{zlib.crc32(unnamed.encode())}")


def _fixed_page(page: HistoryPage) -> HistoryPage:
    return page.model_copy(update={"calls": tuple(map(_fixed_call, page.calls))})


@dataclass(frozen=True)
class Picture:
    """A screenshot and the steps that lead to it.

    Attributes:
        name: File name without the size.
        keys: Textual key names to press, or `@` and the id of a command.
        result: Whether to wait for a result.
        png: Whether to write a PNG too, for the README.
        theme: Name of the theme.
        broken: Whether to add an unreadable pack.
        needy: Whether to add a pack with missing requirements.
        shop: Whether to add the shop example with its script.
        server: Whether to add an MCP server.
        agent: Whether a call of an agent waits for approval.
        pause: Seconds to wait after the last key.
    """

    name: str
    keys: Sequence[str]
    result: bool = False
    png: bool = False
    theme: str = "pegboard-dark"
    broken: bool = False
    needy: bool = False
    shop: bool = False
    server: bool = False
    agent: bool = False
    pause: float = 0.0


TO_FIND = ["@app.palette", *"notes.find", "enter"]
TO_PLAN = [*"plan", "enter", *"Bench", "tab", "tab", *"shop", "tab", *"2", "tab"]
STEPS = ["enter", *"Saw", "tab", *"20", "tab", "enter", *"Glue", "tab", *"soon"]
TO_CLEAR = [*"clear", "enter", *"2020-01-01", "@tools.run"]
FIND, CLEAR = "notes.find words=peg", "notes.clear before=2020-01-01"
TO_ACTIVITY = [*"overview", "enter", "@tools.run", "@mode.script", "@script.saved", "enter", "@script.run"]
TO_ACTIVITY += ["@mode.chat", *FIND, "enter", "@mode.activity", "right", "down", "down", "right"]
TO_CHART = [*"list_o", "enter", "@tools.run", "@tools.result", "|", *".orders[:12] | map({id, total})", "enter", "V"]
PICTURES = (
    Picture("tools", [*TO_FIND, *"peg", "@tools.run"], result=True, png=True),
    Picture("form", [*TO_PLAN, *STEPS], pause=0.5, png=True),
    Picture("filter", [*"file"]),
    Picture("failure", [*TO_CLEAR, "@confirm.yes"], result=True),
    Picture("bare", [*"overview", "enter", "@tools.run"], result=True),
    Picture("question", TO_CLEAR),
    Picture("problems", ["@tools.problems"], broken=True),
    Picture("health", ["@mode.health", "down"], broken=True, needy=True),
    Picture("server", ["home"], server=True),
    Picture("agent", ["f12"], agent=True),
    Picture("chat", ["@mode.chat", *FIND, "enter", *CLEAR, "enter"], png=True),
    Picture("script", ["@mode.script", "@script.saved", "enter", "@script.run"], shop=True, png=True),
    Picture("activity", TO_ACTIVITY, shop=True, png=True),
    Picture("chart", TO_CHART, result=True, shop=True, pause=1.0),
    Picture("ckan", [*"search_d", "enter", *"water", "@tools.run"], result=True),
    Picture("schema", [*"find", "@tools.definition"]),
    Picture("palette", ["@app.palette", *"re"]),
    Picture("help", ["@app.help"]),
    Picture("guide", ["@app.help", "@help.guide"]),
    Picture("light", [*TO_FIND, *"peg", "@tools.run"], result=True, theme="pegboard-light"),
    Picture("sixteen", [*TO_FIND, *"peg", "@tools.run"], result=True, theme="pegboard-16"),
)
AGENT_CALL = Question(
    tool="claude-code.Bash",
    args={
        "command": "set -e\nfor file in notes/*.md; do\n    sed -i 's/saw/plane/g' \"$file\"\ndone\n"
        'git commit --all --message "Rename the saw"\ngit push origin main',
        "description": "Rename the saw in all notes",
        "timeout": 60_000,
    },
    agent="claude-code 2.1 (process 4711)",
    server="",
    reason="A rule of approvals.toml requires approval for claude-code.Bash.",
)
TOUR_NAME, TOUR_SIZE = "tour", (100, 30)
TOUR = (
    ([], 1.2),
    ([*"not"], 0.5),
    ([*"es.f"], 0.7),
    (["enter"], 0.9),
    ([*"peg"], 0.9),
    (["@tools.run"], 2.4),
    (["@mode.tools", "escape", *TO_PLAN], 1.2),
    (STEPS, 2.4),
    (["@mode.chat", *FIND], 0.9),
    (["enter"], 1.6),
    ([*CLEAR, "enter"], 2.2),
    (["@chat.asking", "@talk.approve_once"], 1.8),
    (["@mode.script", "@script.saved", "enter"], 1.4),
    (["@script.run"], 2.2),
    (["@mode.health"], 1.6),
)
"""Scenes of the tour: the keys that lead to each one, and the seconds for which it is shown."""
ANSWERS, ANSWER_PAUSE = ("@confirm.yes", "@talk.approve_once"), 1.5
"""Commands that answer a question, and the seconds before them: the app ignores answers to a question not yet read."""
TIMEOUT_SECONDS = 60.0
_DAY = datetime.now().astimezone().replace(hour=9, minute=41, second=0, microsecond=0)
"""Time of the first recorded call; of today, because calls of other days are listed with a date."""


class StuckError(Exception):
    """A picture that can't be taken; the message has its name and the text of the screen."""


@dataclass(frozen=True)
class Stage:
    """The app of one picture.

    Attributes:
        name: Name of the picture.
        app: The app.
        pilot: Presses its keys.
        tools: Its first page.
    """

    name: str
    app: PegboardApp
    pilot: Pilot[None]
    tools: ToolsScreen

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until a condition holds.

        Raises:
            StuckError: It doesn't hold within a minute.
        """
        end = time.monotonic() + TIMEOUT_SECONDS
        while not condition():
            if time.monotonic() > end:
                raise StuckError(f"{self.name}: {what} did not happen within {TIMEOUT_SECONDS:g} s.\n{self.text}")
            await self.pilot.pause(0.01)

    @property
    def text(self) -> str:
        """The text of the screen."""
        strips = self.app.screen._compositor.render_strips()  # noqa: SLF001 - Textual has no public way to the text
        return "\n".join(strip.text for strip in strips)

    async def press(self, keys: Sequence[str]) -> None:
        """Press keys one after the other; wait after each."""
        for key in keys:
            if key in ANSWERS:
                await self.pilot.pause(ANSWER_PAUSE)
            await self.pilot.press(self._key_of(key.removeprefix("@")) if key.startswith("@") else key)
            await self.at_rest()

    def _key_of(self, command_id: str) -> str:
        for _, command in in_reach(self.app.focused or self.app.screen):
            if command.id == command_id and command.keys:
                return command.keys.partition(",")[0]
        raise StuckError(f"{self.name}: the command {command_id} has no key here.\n{self.text}")

    async def at_rest(self) -> None:
        """Wait until the marked tool is shown and a widget has the focus."""
        app, tools = self.app, self.tools
        await self.until(
            lambda: not app.tool_scan.scanning and tools.settled and app.focused is not None,
            "a selected tool with a form",
        )
        await self.until(lambda: not app.asking or app.requests, "the end of the answer, or a question")
        await self.until(
            lambda: not isinstance(app.screen, ScriptScreen) or app.screen.settled, "the end of the script's analysis"
        )
        await self.pilot.pause(0.1)

    async def picture(self) -> str:
        """Return the screen as SVG when all requirements are checked and nothing runs."""
        await self.until(lambda: self.app.health.is_complete, "the check of the requirements")
        await self.until(lambda: not self.app.scripting, "the end of the script")
        await self.pilot.pause(0.5)
        if other := re.search(r"pid (?!4711\b)\d+", self.text):
            raise StuckError(f"{self.name}: the process id {other[0]!r} is not fixed.\n{self.text}")
        svg = self.app.export_screenshot(title="Pegboard", simplify=True)
        return _fixed_picture(svg)


@asynccontextmanager
async def on_stage(picture: Picture, size: tuple[int, int], folder: Path) -> AsyncIterator[Stage]:
    """Run the app of a picture in a new home folder below `folder`."""
    home = folder / f"{picture.name}-{size[0]}"
    packs = home / "data" / "packs"
    packs.mkdir(parents=True)
    (packs / "notes.py").write_text(NOTES, "utf-8")
    if picture.needy:
        (packs / "films.py").write_text(FILMS, "utf-8")
    if picture.shop:
        (packs / "shop.py").write_text((EXAMPLES / "shop.py").read_text("utf-8"), "utf-8")
        (home / "data" / "scripts").mkdir()
        script = (EXAMPLES / "late-orders.sh").read_text("utf-8")
        (home / "data" / "scripts" / "late-orders.sh").write_text(script, "utf-8")
    if picture.broken:
        (packs / "weather.py").write_text(
            '"""Weather."""\n\n\ndef forecast(*, city: str)\n    """Return a forecast."""\n', "utf-8"
        )
    if picture.server:
        (home / "library.py").write_text(LIBRARY, "utf-8")
        command = f'command = "{sys.executable}"\nargs = ["{home / "library.py"}"]\n'
        (home / "config.toml").write_text(f"[mcp.servers.library]\n{command}", "utf-8")
    for name in ("data", "state", "cache"):
        os.environ[f"PEGBOARD_{name.upper()}_DIR"] = str(home / name)
    os.environ["PEGBOARD_CONFIG"] = str(home / "config.toml")
    app = PegboardApp(FixedRuntime.from_environment())
    async with app.run_test(size=size) as pilot:
        tools = app.screen
        assert isinstance(tools, ToolsScreen)
        app.theme = picture.theme
        stage = Stage(f"{picture.name}-{size[0]}x{size[1]}", app, pilot, tools)
        await stage.at_rest()
        if picture.server:
            await stage.until(lambda: "● ready" in stage.text, "the connection to the server")
        if picture.agent:
            Questions(home / "state").open(AGENT_CALL)
            await stage.until(lambda: app.agent_calls, "the call that waits")
        yield stage


async def take(picture: Picture, size: tuple[int, int], folder: Path) -> str:
    """Press the keys of a picture and return the screenshot as SVG."""
    async with on_stage(picture, size, folder) as stage:
        await stage.press(picture.keys)
        if picture.result:
            await stage.until(lambda: stage.tools.query_one(ResultPane).result is not None, "a result")
        if picture.server:
            await stage.until(lambda: "prompt" in stage.text, "the list of the server's prompts")
        await stage.pilot.pause(picture.pause)
        return await stage.picture()


async def take_tour(folder: Path) -> str:
    """Take all scenes of the tour and return them as one animated SVG."""
    frames: list[tuple[str, float]] = []
    async with on_stage(Picture(TOUR_NAME, (), needy=True, shop=True), TOUR_SIZE, folder) as stage:
        for keys, seconds in TOUR:
            await stage.press(keys)
            if "@tools.run" in keys:
                await stage.until(lambda: stage.tools.query_one(ResultPane).result is not None, "a result")
            frames.append((await stage.picture(), seconds))
    return animated(frames)


def animated(frames: Sequence[tuple[str, float]]) -> str:
    """Return SVGs of the same size as one SVG that shows them one after the other, again and again.

    Args:
        frames: Each SVG with the seconds for which it is shown.
    """
    total = sum(seconds for _, seconds in frames)
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', frames[0][0])
    assert size is not None, "Rich writes it"
    rules, groups, start = [], [], 0.0
    for number, (svg, seconds) in enumerate(frames):
        body = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
        body = body[body.index(">") + 1 : body.rindex("</svg>")]
        begin, end = 100 * start / total, 100 * (start + seconds) / total
        before = "" if number == 0 else "0% { visibility: hidden } "
        # Where nothing moves, as in print, the first frame is shown.
        still = "hidden" if number else "visible"
        rules.append(
            f"@keyframes f{number} {{ {before}{begin:.3f}% {{ visibility: visible }}"
            f" {end:.3f}%, 100% {{ visibility: hidden }} }}\n"
            f".f{number} {{ visibility: {still}; animation: f{number} {total:g}s step-end infinite }}"
        )
        groups.append(f'<g class="f{number}">{body}</g>')
        start += seconds
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[1]} {size[2]}">\n<style>\n'
        + "\n".join(rules)
        + "\n@media (prefers-reduced-motion: reduce) { g[class^=f] { animation: none } }\n</style>\n"
        + "\n".join(groups)
        + "\n</svg>\n"
    )


def find_font() -> Path | None:
    """Return a monospace font file of the system, or None."""
    files = [file for folder in FONT_FOLDERS for file in Path(folder).expanduser().rglob("*.tt[fc]")]
    return next((file for name in FONTS for file in files if file.stem == name), None)


def to_png(svg: str, font: Path) -> bytes:
    """Render an SVG with a local font; its own font would have to be downloaded."""
    import resvg_py

    family = FONTS.get(font.stem, font.stem)
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"Fira Code|\barial\b", family, svg)  # the title has another font
    files = [file for file in (font, font.with_stem(f"{font.stem.removesuffix('-Regular')}-Bold")) if file.exists()]
    drawn = resvg_py.svg_to_bytes(
        svg_string=svg, font_files=[str(file) for file in files], font_family=family, monospace_family=family
    )
    return bytes(drawn)


async def main(font: Path | None, names: Sequence[str]) -> int:
    """Write the named pictures, or all, at every size."""
    known = [*(picture.name for picture in PICTURES), TOUR_NAME]
    if unknown := [name for name in names if name not in known]:
        print(f"Unknown picture {unknown[0]}. Known: {', '.join(known)}.", file=sys.stderr)
        return 2
    for field in (Input, TextArea):  # else cursors would be in the pictures or not, by chance
        field.cursor_blink._default = False  # noqa: SLF001 - nothing public switches it off before the first focus
    with tempfile.TemporaryDirectory(prefix="pegboard-") as name, Web(FakePortal()).running() as portal:
        os.environ["PEGBOARD_PACKS__CKAN__BASE_URL"] = portal.url
        os.environ["COLORTERM"] = "truecolor"  # whatever terminal this runs in
        folder = Path(name)
        demo = folder / "demo"
        demo.mkdir()
        os.chdir(demo)
        for picture in PICTURES:
            for size in SIZES if not names or picture.name in names else ():
                svg = await take(picture, size, folder)
                file = HERE / f"{picture.name}-{size[0]}x{size[1]}.svg"
                file.write_text(svg, "utf-8")
                if picture.png and size == SIZES[0] and font is not None:
                    file.with_suffix(".png").write_bytes(to_png(svg, font))
                print(file.name, flush=True)
        if not names or TOUR_NAME in names:
            file = HERE / f"{TOUR_NAME}.svg"
            file.write_text(await take_tour(folder), "utf-8")
            print(file.name, f"{file.stat().st_size:,} bytes")
        os.chdir(HERE)
    if font is None:
        print("No PNG was written because no monospace font was found. Pass one with --font FILE.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the screenshots.")
    parser.add_argument("--font", type=Path, default=None, help="a TrueType font for the PNGs, named as its family")
    parser.add_argument("names", nargs="*", metavar="NAME", help="pictures to write; all by default")
    chosen = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(chosen.font or find_font(), chosen.names)))
    except StuckError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
