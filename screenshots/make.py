"""Screenshots of the running app: `python screenshots/make.py [--font FILE]`.

The app runs with the built-in packs and demo packs in a temporary folder, and with a fake portal on a local server.
Process ids and durations of calls are replaced by fixed values, so that a screenshot changes only when the interface
does. PNGs need a monospace font file; without one, only SVGs are written.
"""

# ruff: noqa: INP001, T201 - a script: not part of a package; prints the written files

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fakes"))
from portal import FakePortal
from web import Web

from pegboard.ask import Ask
from pegboard.models import CallEvent, Finished, Started, ToolCall, ToolSpec
from pegboard.ports import Calls
from pegboard.runtime import Runtime
from pegboard.tui.app import PegboardApp
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

NOTES = '''"""Notes, kept in a text file."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from pegboard.sdk import ToolFailed, hints, log, progress


@hints(read_only=True)
def find(*, words: str, kind: Literal["idea", "task", "quote"] | None = None, limit: int = 10) -> list[dict]:
    """Find notes that contain all the words.

    Case is ignored. The **newest** come first.

    Args:
        words: Words to search for.
        kind: Kind of the notes.
        limit: Maximum number of notes.
    """
    found = [
        {"id": 7, "kind": "task", "text": "Hang the new saw on the pegboard", "tags": ["shop"]},
        {"id": 5, "kind": "idea", "text": "A pegboard for tools that agents use", "tags": ["agents", "tools"]},
        {"id": 2, "kind": "quote", "text": "A place for every peg, and every peg in its place", "tags": []},
    ]
    for number, note in enumerate(found, 1):
        log(f"reading note {note['id']}")
        progress(number, len(found))
    return found[:limit]


@hints(destructive=True)
def clear(*, before: str) -> int:
    """Delete notes older than a day.

    Args:
        before: The day, as `2026-01-31`.
    """
    raise ToolFailed(f"There are no notes older than {before}.", code="not_found")


@hints(read_only=True)
def overview() -> str:
    """Summarize the notes in Markdown."""
    return "# Three notes\\n\\n- one *task*, for the shop\\n- one *idea*, on **agents**\\n- one *quote*\\n"


class Place(TypedDict):
    room: str
    shelf: NotRequired[int]


class Step(TypedDict):
    what: str
    minutes: NotRequired[int]


class Mail(TypedDict):
    by: Literal["mail"]
    address: str


class Sign(TypedDict):
    by: Literal["sign"]
    wall: str


def plan(
    *,
    title: str,
    place: Place,
    steps: list[Step],
    tell: Mail | Sign,
    tags: list[Literal["shop", "home", "loud"]] | None = None,
    labels: dict[str, str] | None = None,
) -> str:
    """Plan some work.

    Args:
        title: Title of the plan.
        place: Location of the work.
        steps: The steps, in order.
        tell: How to notify the others.
        tags: Topics.
        labels: Further notes by name.
    """
    return f"{title}, in {place['room']}: {len(steps)} steps"
'''


FILMS = '''"""Films from a camera."""

from pegboard.sdk import hints, requires_cli, requires_lib, requires_secret


@requires_cli("ffmpeg", version_flag="-version", min_version="6", install="apt install ffmpeg")
@hints(read_only=True)
def length(*, file: str) -> float:
    """Return the length of a film in seconds."""


@requires_cli("ffmpeg", version_flag="-version", min_version="6", install="apt install ffmpeg")
@requires_lib("whisper", install="pip install openai-whisper")
def subtitles(*, file: str) -> str:
    """Transcribe a film."""


@requires_secret("FILMS_KEY", hint="https://example.org/account")
def upload(*, file: str) -> str:
    """Publish a film."""
'''


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


class FixedRuntime(Runtime):
    """A runtime whose calls have fixed durations and process ids."""

    async def call(self, call: ToolCall) -> AsyncGenerator[CallEvent]:
        """Run the call and fix its events."""
        async for event in super().call(call):
            yield fixed(event)

    async def run_script(self, commands: str, **how: Any) -> AsyncGenerator[CallEvent]:  # noqa: ANN401 - see below
        """Run the script and fix its events."""
        async for event in super().run_script(commands, **how):
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
            meta = result.meta.model_copy(update={"worker": "pid 4711", "duration_ms": 1.8})
            return event.model_copy(update={"result": result.model_copy(update={"meta": meta})})
        case _:
            return event


@dataclass(frozen=True)
class Picture:
    """A screenshot and the steps that lead to it.

    Attributes:
        name: File name without the size.
        keys: Textual key names to press.
        result: Whether to wait for a result.
        png: Whether to write a PNG too, for the README.
        theme: Name of the theme.
        broken: Whether to add an unreadable pack.
        needy: Whether to add a pack with missing requirements.
        shop: Whether to add the shop example with its script.
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
    pause: float = 0.0


TO_FIND = ["ctrl+p", *"notes.find", "enter"]
TO_PLAN = [*"plan", "enter", *"Bench", "tab", "tab", *"shop", "tab", *"2", "tab"]
STEPS = ["enter", *"Saw", "tab", *"20", "tab", "enter", *"Glue", "tab", *"soon"]
FIND, CLEAR = "notes.find words=peg", "notes.clear before=2020-01-01"
PICTURES = (
    Picture("tools", [*TO_FIND, *"peg", "ctrl+r"], result=True, png=True),
    Picture("form", [*TO_PLAN, *STEPS], pause=0.5, png=True),
    Picture("filter", [*"file"]),
    Picture("failure", [*"clear", "enter", *"2020-01-01", "ctrl+r", "ctrl+y"], result=True),
    Picture("bare", [*"overview", "enter", "ctrl+r"], result=True),
    Picture("question", [*"clear", "enter", *"2020-01-01", "ctrl+r"]),
    Picture("problems", ["ctrl+g"], broken=True),
    Picture("health", ["f8", "down"], broken=True, needy=True),
    Picture("chat", ["f6", *FIND, "enter", *CLEAR, "enter"], png=True),
    Picture("script", ["f7", "ctrl+l", "enter", "ctrl+r"], shop=True, png=True),
    Picture("ckan", [*"search_d", "enter", *"water", "ctrl+r"], result=True),
    Picture("schema", [*"find", "f2"]),
    Picture("palette", ["ctrl+p", *"re"]),
    Picture("help", ["f1"]),
    Picture("light", [*TO_FIND, *"peg", "ctrl+r"], result=True, theme="pegboard-light"),
    Picture("sixteen", [*TO_FIND, *"peg", "ctrl+r"], result=True, theme="pegboard-16"),
)


async def take(picture: Picture, size: tuple[int, int], folder: Path) -> str:
    """Run the app in a new home folder below `folder`, press the keys and return the screenshot as SVG."""
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
    for name in ("data", "state", "cache"):
        os.environ[f"PEGBOARD_{name.upper()}_DIR"] = str(home / name)
    os.environ["PEGBOARD_CONFIG"] = str(home / "config.toml")
    app = PegboardApp(FixedRuntime.from_environment())
    async with app.run_test(size=size) as pilot:
        screen = app.screen
        assert isinstance(screen, ToolsScreen)
        app.theme = picture.theme
        await at_rest(pilot, screen)
        for key in picture.keys:
            await pilot.press(key)
            await at_rest(pilot, screen)
        while picture.result and screen.query_one(ResultPane).result is None:
            await pilot.pause(0.01)
        while not app.health.is_complete:
            await pilot.pause(0.01)
        await pilot.pause(0.5 + picture.pause)
        return app.export_screenshot(title="Pegboard", simplify=True)


async def at_rest(pilot: Pilot[None], screen: ToolsScreen) -> None:
    """Wait until the marked tool is shown and a widget has the focus."""
    app = screen.app
    assert isinstance(app, PegboardApp)
    while app.tool_scan.scanning or not screen.settled or app.focused is None or (app.asking and not app.requests):
        await pilot.pause(0.01)
    while isinstance(app.screen, ScriptScreen) and not app.screen.settled:
        await pilot.pause(0.01)
    await pilot.pause(0.1)


def find_font() -> Path | None:
    """Return a monospace font file of the system, or None."""
    files = [file for folder in FONT_FOLDERS for file in Path(folder).expanduser().rglob("*.tt[fc]")]
    return next((file for name in FONTS for file in files if file.stem == name), None)


def to_png(svg: str, font: Path) -> bytes:
    """Render an SVG with a local font; its own font would have to be downloaded."""
    import resvg_py

    family = FONTS.get(font.stem, font.stem)
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code", family)
    files = [file for file in (font, font.with_stem(f"{font.stem.removesuffix('-Regular')}-Bold")) if file.exists()]
    drawn = resvg_py.svg_to_bytes(
        svg_string=svg, font_files=[str(file) for file in files], font_family=family, monospace_family=family
    )
    return bytes(drawn)


async def main(font: Path | None) -> int:
    """Write every screenshot at every size."""
    with tempfile.TemporaryDirectory(prefix="pegboard-") as name, Web(FakePortal()).running() as portal:
        os.environ["PEGBOARD_PACKS__CKAN__BASE_URL"] = portal.url
        folder = Path(name)
        demo = folder / "demo"
        demo.mkdir()
        os.chdir(demo)
        for picture in PICTURES:
            for size in SIZES:
                svg = await take(picture, size, folder)
                file = HERE / f"{picture.name}-{size[0]}x{size[1]}.svg"
                file.write_text(svg, "utf-8")
                if picture.png and size == SIZES[0] and font is not None:
                    file.with_suffix(".png").write_bytes(to_png(svg, font))
                print(file.name)
        os.chdir(HERE)
    if font is None:
        print("No PNG was written because no monospace font was found. Pass one with --font FILE.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the screenshots.")
    parser.add_argument("--font", type=Path, default=None, help="a TrueType font for the PNGs, named as its family")
    sys.exit(asyncio.run(main(parser.parse_args().font or find_font())))
