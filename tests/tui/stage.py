"""The app in a test: a runtime whose tools, problems and results a test sets, and a pilot that presses keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal, cast

from given_activity import GivenActivity
from given_servers import GivenServers
from headless import TIMEOUT_SECONDS, compose_at_end, compose_frame

from pegboard.config import Paths, Settings
from pegboard.errors import PresetError
from pegboard.models import (
    CallEvent,
    CallRecord,
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
    RequirementKey,
    ResultMeta,
    Started,
    ToolCall,
    ToolResult,
    ToolSpec,
    ToolState,
    ToolUses,
)
from pegboard.tui.app import PegboardApp
from pegboard.tui.form import FormPane
from pegboard.tui.result import ResultPane
from pegboard.tui.state.remembered import Remembered
from pegboard.tui.tools.screen import ToolsScreen
from pegboard.tui.tools.tool_list import ToolList

if TYPE_CHECKING:
    from textual import events
    from textual.pilot import Pilot

    from pegboard.runtime import Runtime

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def tool(name: str, description: str = "", hints: Hints | None = None, **properties: JsonObject) -> ToolSpec:
    """Build a spec from the schemas of its parameters; one without a default is required."""
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

TOOLS = (
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
    """A `Runtime` with tools, problems and results set by a test: any number of tools, calls that wait.

    Args:
        folder: Folder of its paths.
        tools: Tools that a scan finds.
        problems: Problems that a scan finds.
        settings: The configuration.
        first_start: Whether no tool has ever been run, so that the welcome is shown.
    """

    def __init__(
        self,
        folder: Path,
        tools: Sequence[ToolSpec] = TOOLS,
        problems: Sequence[Problem] = (),
        settings: Settings | None = None,
        *,
        first_start: bool = False,
    ) -> None:
        self.settings = settings or Settings()
        self.paths = Paths(folder / "config.toml", folder / "data", folder / "state", folder / "cache")
        if not first_start:
            Remembered(has_run=True).write(self.paths.interface)
        self.found: Sequence[ToolSpec] = tools
        self.wrong: Sequence[Problem] = problems
        self.shut_out = 0
        """Number of tools that the allow list excludes."""
        self.states: dict[str, ToolState] = {}
        self.calls: list[ToolCall] = []
        self.closed = False
        self.go_on = asyncio.Event()
        """While set, calls return immediately; while cleared, they wait until it is set or they are cancelled."""
        self.go_on.set()
        self.answer: Callable[[ToolCall], ToolResult] = lambda call: ToolResult(
            ok=True, data={"you": call.args}, meta=ResultMeta(duration_ms=12.0, worker="pid 4711", size=42)
        )
        self.kept: dict[str, dict[str, JsonObject]] = {}
        """Presets by tool and name."""
        self.there: dict[str, str] = {}
        """Available requirements by name: the version, or the source of a secret."""
        self.slow: set[str] = set()
        """Names of requirements whose check waits for `found_slow`."""
        self.found_slow = asyncio.Event()
        self.asked: list[str] = []
        """Names of the checked requirements."""
        self._cancelled: set[str] = set()
        self.tools = _GivenTools(self)
        self.health = _GivenHealth(self)
        self.presets = _GivenPresets(self)
        self.history = _GivenHistory(self)
        self.activity = GivenActivity(STARTED, self.tools.get, lambda: self.calls)
        self.servers = GivenServers()

    def problems(self) -> Sequence[Problem]:
        """Return the problems of the test."""
        return self.wrong

    def change(self, tools: Sequence[ToolSpec], problems: Sequence[Problem] = ()) -> None:
        """Make the next live rescan find other tools and problems."""
        self.found, self.wrong = tools, problems
        self.tools.changed.set()

    def watch_record(self, changed: Callable[[], object]) -> None:
        """Do nothing: there is no history file."""

    def unrecorded(self) -> Problem | None:
        """Return None: every call is recorded."""

    def redacted_args(self, args: JsonObject) -> JsonObject:
        """Return the arguments: there are no secrets."""
        return args

    def sweep(self) -> None:
        """Do nothing: there are no old files."""

    async def call(self, call: ToolCall) -> AsyncIterator[CallEvent]:
        """Yield a line of log, a progress event and the result of `answer`."""
        self.calls.append(call)
        yield Started(call=call, at=STARTED, worker="pid 4711")
        yield Log(call_id=call.id, stream="stdout", text="working\n")
        yield Progress(call_id=call.id, done=1, total=2, message="half way")
        await self.go_on.wait()
        cancelled = ToolResult.failed("execution_error", "Cancelled.", "cancelled")
        result = cancelled if call.id in self._cancelled else self.answer(call)
        self.activity.record(call, result)
        yield Finished(call=call, result=result)

    async def result(self, call: ToolCall) -> tuple[ToolCall, ToolResult]:
        """Return the result of `answer`."""
        return call, self.answer(call)

    async def cancel(self, call_id: str) -> bool:
        """Cancel the waiting call."""
        self._cancelled.add(call_id)
        self.go_on.set()
        return True

    async def close(self) -> None:
        """Record that the runtime was closed."""
        self.closed = True


class _GivenTools:
    """The tools facet of a `GivenRuntime`."""

    def __init__(self, given: GivenRuntime) -> None:
        self._given = given
        self.changed = asyncio.Event()

    def scan(self) -> bool:
        return True

    def all(self) -> Sequence[ToolSpec]:
        return self._given.found

    def get(self, name: str) -> ToolSpec | None:
        return next((spec for spec in self._given.found if name in {spec.name, *spec.aliases}), None)

    def current(self, spec: ToolSpec) -> ToolSpec:
        return self.get(spec.name) or spec

    def hidden(self) -> int:
        return self._given.shut_out

    def options(self, spec: ToolSpec) -> tuple[str, ...]:
        return ()

    async def watch(self) -> AsyncIterator[None]:
        """Yield after the first scan and after each `change`."""
        await asyncio.to_thread(self.scan)
        yield
        while True:
            await self.changed.wait()
            self.changed.clear()
            yield


class _GivenHealth:
    """The health facet of a `GivenRuntime`."""

    def __init__(self, given: GivenRuntime) -> None:
        self._given = given
        self._known: dict[RequirementKey, HealthRow] = {}

    def state(self, spec: ToolSpec) -> ToolState:
        """Return the state set by the test, else the state that follows from the checks."""
        rows = self.rows(spec.name) if spec.requirements else ()
        known: ToolState = "degraded" if any(row.problem for row in rows) else "ready"
        return self._given.states.get(spec.name, "blocked" if any(row.blocks for row in rows) else known)

    def rows(self, tool: str | None = None) -> Sequence[HealthRow]:
        return [
            self._known[need.key].model_copy(
                update={"tool": spec.name, "requirement": need, "install": need.install or f"Install {need.name}."}
            )
            for spec in self._given.found
            if tool in {None, spec.name}
            for need in spec.requirements
            if need.key in self._known
        ]

    async def recheck(self, requirements: Iterable[Requirement]) -> AsyncGenerator[HealthRow]:
        """Check requirements against `there`, the `slow` ones last."""
        given = self._given
        wanted = {need.key: need for need in requirements}
        given.asked += [key.name for key in wanted]
        for key in sorted(wanted, key=lambda key: key.name in given.slow):
            if key.name in given.slow:
                await given.found_slow.wait()
            self._known[key] = self._check(wanted[key])
            for row in self.rows():
                if row.requirement.key == key:
                    yield row

    def _check(self, need: Requirement) -> HealthRow:
        found = self._given.there.get(need.name)
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


class _GivenPresets:
    """The presets facet of a `GivenRuntime`: presets live until the end of the test."""

    def __init__(self, given: GivenRuntime) -> None:
        self._given = given

    def list(self, tool: str) -> Sequence[Preset]:
        kept = self._given.kept.get(tool, {})
        return [Preset(tool=tool, name=name, arguments=kept[name]) for name in sorted(kept)]

    def save(self, tool: str, name: str, arguments: JsonObject) -> Preset:
        """Save a preset.

        Raises:
            PresetError: The name contains a slash.
        """
        if "/" in name:
            raise PresetError("A name can't have a slash.")
        self._given.kept.setdefault(tool, {})[name] = arguments
        return Preset(tool=tool, name=name, arguments=arguments)

    def delete(self, tool: str, name: str) -> None:
        del self._given.kept[tool][name]

    def rename(self, tool: str, old: str, new: str) -> None:
        """Rename a preset.

        Raises:
            PresetError: Another preset has the new name.
        """
        kept = self._given.kept[tool]
        if new in kept:
            raise PresetError(f"There is a preset {new} already.")
        kept[new] = kept.pop(old)


class _GivenHistory:
    """The history facet of a `GivenRuntime`: the calls of this run."""

    def __init__(self, given: GivenRuntime) -> None:
        self._given = given

    def records(self, *, tool: str, limit: int) -> tuple[CallRecord, ...]:
        """Return no record: results of this run aren't stored."""
        del tool, limit
        return ()

    def uses(self, tool: str) -> ToolUses:
        return ToolUses(calls=sum(call.name == tool for call in self._given.calls))

    def last_arguments(self, tool: str) -> JsonObject | None:
        return next((call.args for call in reversed(self._given.calls) if call.name == tool), None)

    def recent_arguments(self, tool: str) -> tuple[JsonObject, ...]:
        return tuple(call.args for call in reversed(self._given.calls) if call.name == tool)


def as_runtime(given: GivenRuntime) -> Runtime:
    """Return the fake as the type that it replaces."""
    return cast("Runtime", given)  # it has every member that the screen uses


class Stage:
    """A running app, driven by keys and mouse."""

    def __init__(self, app: PegboardApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def screen(self) -> ToolsScreen:
        """The Tools page, with or without a dialog over it."""
        screen = self.app.get_screen_stack("tools")[0]
        assert isinstance(screen, ToolsScreen)
        return screen

    @property
    def list(self) -> ToolList:
        """The tool list."""
        return self.screen.query_one(ToolList)

    @property
    def form(self) -> FormPane:
        """The argument form."""
        return self.screen.query_one(FormPane)

    @property
    def result(self) -> ResultPane:
        """The result pane."""
        return self.screen.query_one(ResultPane)

    @property
    def marked(self) -> str | None:
        """Name of the marked tool or pack."""
        return self.list.row.name if self.list.row is not None else None

    @property
    def tool_list(self) -> Sequence[str]:
        """Visible lines of the tool list."""
        region = self.list.region
        return [self.list.render_line(line).text for line in range(region.height)]

    async def press(self, *keys: str) -> None:
        """Press keys and wait until the screen is updated."""
        with self.app._context():  # a test may run two apps; a pilot updates the screen of the active one
            await self.pilot.press(*keys)
            await self.pilot.pause()

    async def mouse(self, kind: type[events.MouseDown | events.MouseUp], x: int, y: int) -> None:
        """Press or release the left mouse button at a cell, as a terminal reports it; a pilot makes no click of it."""
        self.app.post_message(kind(None, x, y, 0, 0, 1, False, False, False))
        await self.pilot.pause()

    async def open(self, query: str) -> None:
        """Filter the tool list and focus the form of the best match."""
        await self.type(query)
        await self.press("enter")
        await self.until(lambda: self.form.has_focus_within, "the form has the focus")

    async def type(self, text: str) -> None:
        """Type a text."""
        await self.press(*("space" if letter == " " else letter for letter in text))

    async def until(self, true: Callable[[], object], what: str) -> None:
        """Wait until a condition is true."""
        end, pause = monotonic() + TIMEOUT_SECONDS, 0.005
        while not true():
            assert monotonic() < end, f"not so in time: {what}; on the screen:\n{self.text}"
            with self.app._context():
                await self.pilot.pause(pause)
            pause = min(2 * pause, 0.04)

    async def until_seen(self, text: str) -> None:
        """Wait until a text is on the screen."""
        await self.until(lambda: text in self.text, f"{text!r} is seen")

    @property
    def lines(self) -> Sequence[str]:
        """Lines on the screen."""
        return compose_frame(self.app)

    @property
    def text(self) -> str:
        """Text on the screen."""
        return "\n".join(self.lines)


def open_on(page: str, runtime: Runtime) -> None:
    """Let the app open on a page, as after a run that ended there: without the widgets of another page."""
    file = runtime.paths.interface
    replace(Remembered.read(file), page=page).write(file)


@asynccontextmanager
async def on_stage(
    runtime: GivenRuntime | Runtime, size: tuple[int, int] = (120, 40), page: str | None = None
) -> AsyncIterator[Stage]:
    """Run the app on a runtime and wait until the tools are found, and the first one is shown if its page is.

    Args:
        runtime: The runtime.
        size: Columns and lines of the terminal.
        page: Page on which the app opens; the remembered one by default.
    """
    runtime = as_runtime(runtime) if isinstance(runtime, GivenRuntime) else runtime
    if page:
        open_on(page, runtime)
    app = PegboardApp(runtime)
    if hasattr(asyncio, "eager_task_factory"):  # Textual sets it for an app in a terminal, from Python 3.12 on
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    async with app.run_test(size=size, notifications=True) as pilot:
        stage = Stage(app, pilot)
        await stage.until(lambda: not stage.app.tool_scan.scanning, "the scan is done")
        if app.current_mode == "tools":
            await stage.until(lambda: stage.screen.query(ResultPane), "form and result are there")
            await stage.until(lambda: stage.screen.settled, "the marked tool is shown")
        await pilot.pause()
        yield stage
        compose_at_end(app)
