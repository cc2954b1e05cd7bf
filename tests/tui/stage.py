"""The app on a stage: a runtime whose tools, problems and answers are given, and somebody who presses keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal, cast

from pegboard.config import Paths, Settings
from pegboard.errors import PresetError
from pegboard.models import (
    CallEvent,
    Finished,
    HealthRow,
    Hints,
    JsonObject,
    Log,
    PackHandler,
    Preset,
    Problem,
    Progress,
    Requirement,
    ResultMeta,
    Started,
    Thing,
    ToolCall,
    ToolResult,
    ToolSpec,
    ToolState,
    ToolUses,
)
from pegboard.tui.app import PegboardApp
from pegboard.tui.form import FormPane
from pegboard.tui.result import ResultPane
from pegboard.tui.tools.screen import ToolsScreen
from pegboard.tui.tools.tool_list import ToolList

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from pegboard.runtime import Runtime

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def tool(name: str, description: str = "", hints: Hints | None = None, **properties: JsonObject) -> ToolSpec:
    """Builds a spec whose parameters are given as schemas; one without a default is required."""
    pack, _, function = name.partition(".")
    required = [key for key, schema in properties.items() if "default" not in schema]
    return ToolSpec(
        name=name,
        pack=pack,
        description=description,
        input_schema={"type": "object", "properties": dict(properties), "required": list(required)},
        handler=PackHandler(pack=pack, function=function, file=f"/packs/{pack}.py", line=12),
        signature=f"{name}({', '.join(['*', *properties]) if properties else ''}) -> object",
        hints=hints or Hints(),
    )


READ_ONLY = Hints(read_only=True)

WALL = (
    tool(
        "fs.list_dir",
        "Lists a folder, file by file.\n\nNames end in `/` where they are folders.",
        READ_ONLY,
        path={"type": "string", "default": ".", "description": "The folder."},
        recursive={"type": "boolean", "default": False, "description": "Whether to go into folders."},
    ),
    tool(
        "fs.read_file",
        "Reads a text file.",
        READ_ONLY,
        path={"type": "string", "description": "The file to read."},
        max_bytes={"type": "integer", "default": 204800, "minimum": 1},
    ),
    tool("fs.remove", "Deletes a file for good.", Hints(destructive=True), path={"type": "string"}),
    tool("shell.pwd", "Says where it is run.", READ_ONLY),
    tool("time.now", "Tells the time.", READ_ONLY),
)


class GivenRuntime:
    """Stands in for `Runtime` where a test must say what there is: as many tools as it likes, answers that wait.

    Args:
        folder: Where its paths are.
        tools: What a scan finds.
        problems: What it finds wrong.
        settings: The configuration.
    """

    def __init__(
        self,
        folder: Path,
        tools: Sequence[ToolSpec] = WALL,
        problems: Sequence[Problem] = (),
        settings: Settings | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.paths = Paths(folder / "config.toml", folder / "data", folder / "state", folder / "cache")
        self.found: Sequence[ToolSpec] = tools
        self.wrong: Sequence[Problem] = problems
        self.shut_out = 0
        """How many tools the allow list keeps out."""
        self.states: dict[str, ToolState] = {}
        self.calls: list[ToolCall] = []
        self.closed = False
        self.go_on = asyncio.Event()
        """Set: calls answer at once. Cleared: they run until it is set, or they are cancelled."""
        self.go_on.set()
        self.answer: Callable[[ToolCall], ToolResult] = lambda call: ToolResult(
            ok=True, data={"you": call.args}, meta=ResultMeta(duration_ms=12.0, worker="pid 4711", size=42)
        )
        self.kept: dict[str, dict[str, JsonObject]] = {}
        """Presets by tool and name."""
        self.there: dict[str, str] = {}
        """What is there of the things that tools need, by name: the version, or where a secret comes from."""
        self.slow: set[str] = set()
        """What isn't found before `found_slow` is set."""
        self.found_slow = asyncio.Event()
        self.asked: list[str] = []
        """What was looked for, by name."""
        self._known: dict[Thing, HealthRow] = {}
        self._changed = asyncio.Event()
        self._cancelled: set[str] = set()

    def scan(self) -> bool:
        """Looks at nothing."""
        return True

    def tools(self) -> Sequence[ToolSpec]:
        """Gives what it was given."""
        return self.found

    def hidden(self) -> int:
        """Gives what it was given."""
        return self.shut_out

    def packs_option(self, spec: ToolSpec) -> str:
        """Gives nothing: all are found anyway."""
        return ""

    def problems(self) -> Sequence[Problem]:
        """Gives what it was given."""
        return self.wrong

    def state(self, spec: ToolSpec) -> ToolState:
        """Gives what it was given, else what became of what the tool needs."""
        rows = self.health(spec.name) if spec.requirements else ()
        known: ToolState = "degraded" if any(row.problem for row in rows) else "ready"
        return self.states.get(spec.name, "blocked" if any(row.blocks for row in rows) else known)

    def health(self, tool: str | None = None) -> Sequence[HealthRow]:
        """Gives what was found so far."""
        return [
            self._known[need.thing].model_copy(update={"tool": spec.name, "requirement": need})
            for spec in self.found
            if tool in {None, spec.name}
            for need in spec.requirements
            if need.thing in self._known
        ]

    async def recheck(self, requirements: Iterable[Requirement]) -> AsyncGenerator[HealthRow]:
        """Finds what is `there`; what is `slow` later than all others."""
        wanted = {need.thing: need for need in requirements}
        self.asked += [thing.name for thing in wanted]
        for thing in sorted(wanted, key=lambda thing: thing.name in self.slow):
            if thing.name in self.slow:
                await self.found_slow.wait()
            self._known[thing] = self._look(wanted[thing])
            for row in self.health():
                if row.requirement.thing == thing:
                    yield row

    def _look(self, need: Requirement) -> HealthRow:
        found = self.there.get(need.name)
        is_old = found is not None and need.min_version is not None and found < need.min_version
        status: Literal["ok", "missing", "outdated"] = "missing" if found is None else "outdated" if is_old else "ok"
        errors = {
            "ok": None,
            "missing": f"`{need.name}` is not there.",
            "outdated": f"`{need.name}` is {found}; {need.min_version} or later is required.",
        }
        return HealthRow(
            tool="",
            kind=need.kind,
            name=need.name,
            status=status,
            version=None if need.kind == "secret" else found,
            min_version=need.min_version,
            path=found if need.kind == "secret" else f"/usr/bin/{need.name}" if found else None,
            install=need.install or f"Install {need.name}.",
            error=errors[status],
            requirement=need,
        )

    def change(self, tools: Sequence[ToolSpec], problems: Sequence[Problem] = ()) -> None:
        """Makes the next live rescan find something else."""
        self.found, self.wrong = tools, problems
        self._changed.set()

    async def watch(self) -> AsyncIterator[None]:
        """Tells of the first scan and of each `change`."""
        await asyncio.to_thread(self.scan)
        yield
        while True:
            await self._changed.wait()
            self._changed.clear()
            yield

    def watch_record(self, changed: Callable[[], object]) -> None:
        """Has no record to watch."""

    def unrecorded(self) -> Problem | None:
        """Return None: nothing is lost."""

    def sweep(self) -> None:
        """Has nothing to delete."""

    async def call(self, call: ToolCall) -> AsyncIterator[CallEvent]:
        """Answers with `answer`, after a line of log and a step of progress."""
        self.calls.append(call)
        yield Started(call=call, at=STARTED, worker="pid 4711")
        yield Log(call_id=call.id, stream="stdout", text="working\n")
        yield Progress(call_id=call.id, done=1, total=2, message="half way")
        await self.go_on.wait()
        if call.id in self._cancelled:
            yield Finished(call=call, result=ToolResult.failed("execution_error", "Cancelled.", "cancelled"))
        else:
            yield Finished(call=call, result=self.answer(call))

    async def cancel(self, call_id: str) -> bool:
        """Ends the waiting call."""
        self._cancelled.add(call_id)
        self.go_on.set()
        return True

    def tool(self, name: str) -> ToolSpec | None:
        """Gives the tool of that name or alias."""
        return next((spec for spec in self.found if name in {spec.name, *spec.aliases}), None)

    def uses(self, tool: str) -> ToolUses:
        """Counts the calls of this run."""
        return ToolUses(calls=sum(call.name == tool for call in self.calls))

    def last_arguments(self, tool: str) -> JsonObject | None:
        """Gives those of the last call of this run."""
        return next((call.args for call in reversed(self.calls) if call.name == tool), None)

    def presets(self, tool: str) -> Sequence[Preset]:
        """Gives what is kept for a tool."""
        kept = self.kept.get(tool, {})
        return [Preset(tool=tool, name=name, arguments=kept[name]) for name in sorted(kept)]

    def save_preset(self, tool: str, name: str, arguments: JsonObject) -> Preset:
        """Keeps it till the end of the test; a name with a slash is refused."""
        if "/" in name:
            raise PresetError("A name can't have a slash.")
        self.kept.setdefault(tool, {})[name] = arguments
        return Preset(tool=tool, name=name, arguments=arguments)

    def delete_preset(self, tool: str, name: str) -> None:
        """Forgets it."""
        del self.kept[tool][name]

    def rename_preset(self, tool: str, old: str, new: str) -> None:
        """Gives it another name, unless that is taken."""
        if new in self.kept[tool]:
            raise PresetError(f"There is a preset {new} already.")
        self.kept[tool][new] = self.kept[tool].pop(old)

    async def close(self) -> None:
        """Remembers that it was closed."""
        self.closed = True


def as_runtime(given: GivenRuntime) -> Runtime:
    """Passes the stand-in for what it stands in for."""
    return cast("Runtime", given)  # it has what the screen uses


class Stage:
    """The app on a terminal of some size, driven by keys and mouse.

    Args:
        app: The app.
        pilot: Who presses the keys.
    """

    def __init__(self, app: PegboardApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def screen(self) -> ToolsScreen:
        """The Tools place, be there a question over it or not."""
        screen = self.app.get_screen_stack("tools")[0]
        assert isinstance(screen, ToolsScreen)
        return screen

    @property
    def list(self) -> ToolList:
        """The list of tools."""
        return self.screen.query_one(ToolList)

    @property
    def form(self) -> FormPane:
        """The arguments."""
        return self.screen.query_one(FormPane)

    @property
    def result(self) -> ResultPane:
        """The result."""
        return self.screen.query_one(ResultPane)

    @property
    def marked(self) -> str | None:
        """The name of the marked tool or pack."""
        return self.list.row.name if self.list.row is not None else None

    @property
    def wall(self) -> Sequence[str]:
        """What the list of tools shows, line by line."""
        region = self.list.region
        return [self.list.render_line(line).text for line in range(region.height)]

    async def press(self, *keys: str) -> None:
        """Presses keys and waits until what they did is on the screen."""
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def open(self, query: str) -> None:
        """Filters, and goes to the form of the best match."""
        await self.type(query)
        await self.press("enter")
        await self.until(lambda: self.form.has_focus_within, "the form has the focus")

    async def type(self, text: str) -> None:
        """Types a text."""
        await self.press(*("space" if letter == " " else letter for letter in text))

    async def until(self, true: Callable[[], object], what: str) -> None:
        """Waits until something is so, at most twenty seconds."""
        end = monotonic() + 20
        while not true():
            assert monotonic() < end, f"not so within twenty seconds: {what}; on the screen:\n{self.text}"
            await self.pilot.pause(0.01)

    async def until_seen(self, text: str) -> None:
        """Waits until a text is on the screen."""
        await self.until(lambda: text in self.text, f"{text!r} is seen")

    @property
    def lines(self) -> Sequence[str]:
        """What is on the screen, line by line."""
        size = self.app.size
        strips = self.app.screen._compositor.render_strips(size)  # the only way to what is really seen
        return ["".join(segment.text for segment in strip) for strip in strips]

    @property
    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(self.lines)


@asynccontextmanager
async def on_stage(runtime: GivenRuntime | Runtime, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Stage]:
    """Opens the app on a runtime and waits until the first tool is shown."""
    app = PegboardApp(as_runtime(runtime) if isinstance(runtime, GivenRuntime) else runtime)
    async with app.run_test(size=size, notifications=True) as pilot:
        stage = Stage(app, pilot)
        await stage.until(lambda: not stage.screen.scanning, "the scan is done")
        await stage.until(lambda: stage.screen.query(ResultPane), "form and result are there")
        await stage.until(lambda: stage.screen.settled, "the marked tool is shown")
        await pilot.pause()
        yield stage
