"""The place where tools are found, filled in, run and their results read."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.getters import query_one
from textual.message import Message
from textual.reactive import reactive, var
from textual.timer import Timer
from textual.widget import Widget

from pegboard.models import JsonObject, Problem
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.shell.footer import KeysLine
from pegboard.tui.shell.header import HeaderLine, plural
from pegboard.tui.shell.help import shown_key
from pegboard.tui.shell.page import PageScreen
from pegboard.tui.shell.too_small import TooSmall
from pegboard.tui.state.catalogue import Catalogue, CatalogueRow, PackEntry, ToolEntry
from pegboard.tui.state.tool_scan import ToolScan
from pegboard.tui.tools.tool_list import LEGEND, ToolList
from pegboard.tui.tools.tool_pane import RegistryPane

if TYPE_CHECKING:
    from pegboard.runtime import Runtime
    from pegboard.tui.tools.tool_page import Bench

_SETTLE_SECONDS = 0.2
"""How long the mark rests on a tool before its form is built, so that moving on costs nothing."""
_FREED_AT_ONCE = 100


class ToolsScreen(PageScreen):
    """Left the registry, right the tool: detail, form, result.

    Args:
        runtime: What finds and calls the tools.
    """

    PAGE = "Tools"
    LEGEND = LEGEND
    AUTO_FOCUS = "ToolList"
    ALLOW_IN_MAXIMIZED_VIEW = "HeaderLine, KeysLine"

    DEFAULT_CSS = """
    ToolsScreen {
        #body { height: 1fr; }
        RegistryPane {
            width: 34;
            border: round $border-blurred;
            border-title-color: $text-muted;
            &:focus-within { border: round $border; border-title-color: $text-primary; border-title-style: bold; }
        }
        &.-narrow RegistryPane {
            width: 26;
            border: none;
            border-top: solid $border-blurred;
            &:focus-within { border: none; border-top: solid $border; }
        }
        &.-maximized-view RegistryPane.-maximized { width: 1fr; }
        &.-sidebar-hidden RegistryPane { display: none; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command(
            "tools.run", "ctrl+r,ctrl+j", "run", "Run", "Run the tool with what its form says.", True, priority=True
        ),
        Command("tools.cancel", "escape", "cancel", "Cancel", "End the running call.", footer=True, priority=True),
        Command("tools.back", "escape", "show_tools", "Back", "Go back to the list, where no call runs."),
        Command("tools.last_arguments", "ctrl+l", "last_arguments", "Last arguments", "Fill the form as at last call."),
        Command("tools.presets", "ctrl+s", "presets", "Presets", "Load, save, rename or delete named arguments."),
        Command(
            "tools.copy_as",
            "ctrl+right_square_bracket",
            "copy_as",
            "Copy as",
            "Copy the call as command line, JSON, Python, MCP.",
        ),
        Command("tools.definition", "f2", "definition", "Schema", "Show the raw schema, as a model gets it.", True),
        Command("tools.source", "f4", "source", "Source", "Open the tool's file in your editor, at its line."),
        Command("tools.sidebar", "ctrl+b,ctrl+backslash", "sidebar", "Sidebar", "Hide or show the list of tools."),
        Command(
            "tools.maximise", "f10", "maximise", "Maximise", "Give the focused pane the whole screen; esc restores."
        ),
        Command("tools.rescan", "", "rescan", "Rescan", "Look for tools again, in every packs folder."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    catalogue: reactive[Catalogue] = reactive(Catalogue, init=False)
    """Every tool and pack of the last scan."""
    own_problems: var[tuple[Problem, ...]] = var(())
    """What is wrong with themes and keys; the app's to say."""
    problems: reactive[tuple[Problem, ...]] = reactive((), init=False)
    """All that is wrong."""
    scanning: reactive[bool] = reactive(True, init=False)
    """Whether the first scan is still under way."""
    empty: reactive[str] = reactive("Looking for tools…")

    registry = query_one(RegistryPane)

    class Listed(Message):
        """Something else was found, or is wrong."""

        def __init__(self, scan: ToolScan) -> None:
            super().__init__()
            self.scan = scan

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self._runtime = runtime
        self._found: tuple[Problem, ...] = ()
        self._hidden = 0
        self._listing = asyncio.Lock()
        self._bench: Bench | None = None
        self._settled: CatalogueRow | None = None
        self._settling: Timer | None = None

    def compose(self) -> ComposeResult:
        """The wall and the bench; what the bench is made of comes after the first frame."""
        yield HeaderLine("tools")
        with Horizontal(id="body"):
            yield RegistryPane(vim_keys=self._runtime.settings.ui.vim_keys).data_bind(
                ToolsScreen.catalogue, ToolsScreen.empty
            )
        yield TooSmall()
        yield KeysLine()

    def on_mount(self) -> None:
        """Begins to look for tools once the first frame is on the screen."""
        self.call_after_refresh(self._begin)
        self.watch(self.app, "health", self._wear_soon, init=False)

    def _begin(self) -> None:
        self._build()
        self._follow()

    @work(group="build")
    async def _build(self) -> None:
        """Loads what the bench is made of beside the loop, then puts it in place."""
        await asyncio.to_thread(_load_panes)
        self.call_next(self._mount_panes)

    async def _mount_panes(self) -> None:
        from pegboard.tui.tools.tool_page import Bench

        bench = Bench(self._runtime, lambda command: shown_key(self._key(command)))
        await self.query_one("#body").mount(bench)
        # What is loaded by now stays to the end, and need not be looked at by every collection.
        gc.freeze()
        self._bench = bench
        self._settle()

    # Finding

    @work(group="scan")
    async def _follow(self) -> None:
        """Scans, then follows the packs folders."""
        async for _ in self._runtime.tools.watch():
            await self._list()
            self.scanning = False

    def _wear_soon(self) -> None:
        self._wear()

    @work(exclusive=True, group="states")
    async def _wear(self) -> None:
        """Lists the tools again if any is in another state by now."""
        if await asyncio.to_thread(self._has_other_states):
            await self._list()

    def _has_other_states(self) -> bool:
        return any(self._runtime.health.state(entry.spec) != entry.state for entry in self.catalogue.entries)

    async def _list(self) -> None:
        """Takes over what the last scan found."""
        async with self._listing:
            earlier = list(self.catalogue.entries)
            self.catalogue, self._found = await asyncio.to_thread(self._read_catalogue)
            self._hidden = await asyncio.to_thread(self._runtime.tools.hidden)
            self.empty = self._why_empty()
            self.problems = (*self.own_problems, *self._found)
            self._tell()
            await asyncio.to_thread(_let_go, earlier)

    def _tell(self) -> None:
        """Tells the other places what there is."""
        scan = ToolScan(self.catalogue, self.problems, self._hidden, self.empty, self.scanning)
        self.post_message(self.Listed(scan))

    def _why_empty(self) -> str:
        if self._hidden:
            kept_out = plural(self._hidden, "tool")
            return f"No tools: the allow list keeps out {kept_out}.\n\nIt is in [tools] of the config, or --tool-allow."
        return f"No tools yet.\n\nPut a Python file with a documented function into\n{self._runtime.paths.packs}"

    def _read_catalogue(self) -> tuple[Catalogue, tuple[Problem, ...]]:
        # Ten thousand specs are a million objects: were they not set aside, each full collection would keep a key
        # waiting for a tenth of a second. They hold no cycles, so those of earlier scans are freed all the same.
        gc.freeze()
        problems = tuple(self._runtime.problems())
        catalogue = Catalogue.of(self._runtime.tools.all(), problems, self._runtime.health.state)
        gc.freeze()
        return catalogue, problems

    def watch_own_problems(self) -> None:
        """Lists the problems of themes and keys before those of packs."""
        self.problems = (*self.own_problems, *self._found)
        self._tell()

    def watch_scanning(self) -> None:
        """Tells that the first scan is done."""
        self._tell()

    def open_tool(self, name: str) -> None:
        """Marks a tool and goes to its form.

        Args:
            name: The qualified name.
        """
        if self.registry.list.select(name):
            self._focus_form()

    def open_call(self, name: str, arguments: JsonObject) -> None:
        """Marks a tool and puts the arguments of a call into its form.

        Args:
            name: One of its names.
            arguments: What to put in.
        """
        spec = self._runtime.tools.get(name)
        if spec is None or not self.registry.list.select(spec.name) or self._bench is None:
            self.notify(f"There is no tool {clean_line(name)} here.", severity="warning", markup=False)
            return
        self._settle()
        self._bench.fill(arguments, "those of the call")

    @on(ToolList.Moved)
    def _moved(self, event: ToolList.Moved) -> None:
        event.stop()
        self.call_after_refresh(self._show_row)
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(_SETTLE_SECONDS, self._settle)

    @property
    def settled(self) -> bool:
        """Whether form and result are those of the marked row."""
        return self._bench is not None and self._settling is None and self._settled is self.registry.list.row

    @on(ToolList.Filtered)
    def _filtered(self, event: ToolList.Filtered) -> None:
        """Waits on while somebody types, even if the mark stays where it is."""
        event.stop()
        if self._settling is not None:
            self._settling.reset()

    def _show_row(self) -> None:
        """Shows the marked row, once the list itself has been painted."""
        if self._bench is not None:
            self._bench.look(self.registry.list.row)

    @on(ToolList.Opened)
    def _opened(self, event: ToolList.Opened) -> None:
        event.stop()
        self._focus_form()

    def _settle(self) -> None:
        """Shows the form of the marked tool, the result it gave last, and what the history says of it."""
        if self._settling is not None:
            self._settling.stop()
            self._settling = None
        row = self.registry.list.row
        if self._bench is not None and (row is None or row is not self._settled):
            self._settled = row
            self._bench.show(row)

    # What the bench does

    async def action_run(self) -> None:
        """Runs the marked tool, unless its form has faults or a call is still under way."""
        if self._bench is not None:
            self._settle()
            self._bench.run()

    async def action_cancel(self) -> None:
        """Cancels the running call."""
        if self._bench is not None:
            await self._bench.cancel()

    def action_last_arguments(self) -> None:
        """Fills the form with the arguments of the tool's last call."""
        if self._bench is not None:
            self._settle()
            self._bench.fill_with_last()

    def action_presets(self) -> None:
        """Lists the presets of the marked tool; the one that is chosen fills the form."""
        if self._bench is not None:
            self._settle()
            self._bench.show_presets()

    def action_copy_as(self) -> None:
        """Shows the call that the form makes in several ways, to be copied."""
        if self._bench is not None:
            self._settle()
            self._bench.copy_as()

    def on_paste(self, event: events.Paste) -> None:
        """Fills the form with a call that is pasted where nothing takes text."""
        event.stop()
        if self._bench is not None:
            self._settle()
            self._bench.paste(event.text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers to cancel only what runs."""
        return self._bench is not None and self._bench.running is not None if action == "cancel" else True

    def on_bench_recalled(self) -> None:
        """Lists what was found wrong on the way."""
        self.read_problems()

    def on_bench_asked(self, event: Bench.Asked) -> None:
        """Goes to another tool, with the arguments that were pasted."""
        event.stop()
        if self.registry.list.select(event.tool) and self._bench is not None:
            self._settle()
            self._bench.fill(event.arguments, event.said)

    @work(exclusive=True, group="problems read")
    async def read_problems(self) -> None:
        """Read the problems again and show them."""
        found = await asyncio.to_thread(lambda: tuple(self._runtime.problems()))
        if found != self._found:
            self._found = found
            self.watch_own_problems()

    # Looking around

    def action_definition(self) -> None:
        """Shows the tool's definition."""
        row = self.registry.list.row
        if isinstance(row, ToolEntry):
            from pegboard.tui.dialogs.definition import DefinitionScreen

            self.app.push_screen(DefinitionScreen(row.spec))

    @work(exclusive=True, group="editor")
    async def action_source(self) -> None:
        """Opens the file of the marked tool or pack."""
        match self.registry.list.row:
            case ToolEntry(spec=spec) if spec.location.file:
                await self._edit(spec.location.file, spec.location.line)
            case PackEntry(file=str(file), problems=problems):
                await self._edit(file, next((problem.line for problem in problems if problem.line), None))
            case _:
                self.notify("It has no file.", severity="warning")

    async def _edit(self, file: str, line: int | None) -> None:
        from pegboard.tui.widgets.external_editor import open_in_editor

        await open_in_editor(self.app, file, line)

    def action_show_tools(self) -> None:
        """Goes to the list of tools."""
        self.remove_class("-sidebar-hidden")
        self.registry.list.focus()

    def action_sidebar(self) -> None:
        """Hides or shows the list of tools."""
        self.toggle_class("-sidebar-hidden")
        if self.has_class("-sidebar-hidden") and self.focused is self.registry.list:
            self._focus_form()
        elif not self.has_class("-sidebar-hidden"):
            self.registry.list.focus()

    @property
    def panes(self) -> Sequence[Widget]:
        """What may have the whole screen."""
        return (self.registry, *(self._bench.panes if self._bench is not None else ()))

    @work(exclusive=True, group="rescan")
    async def action_rescan(self) -> None:
        """Looks for tools again."""
        await asyncio.to_thread(self._runtime.tools.scan)
        await self._list()
        self.notify(f"{len(self.catalogue.entries):,} tools.", markup=False)

    @property
    def keymap(self) -> Mapping[str, str]:
        """Keys as the user remapped them, by command id."""
        return self._runtime.settings.keys

    def _key(self, command_id: str) -> str:
        """Gives the first key of a command of this screen, as the user may have remapped it."""
        declared = next(command.keys for command in self.ACTIONS if command.id == command_id)
        return self.keymap.get(command_id, declared).split(",")[0].strip()

    def _focus_form(self) -> None:
        """Goes to the first field of the marked tool."""
        self._settle()
        if self._bench is not None:
            self._bench.focus_form()


def _let_go(entries: list[ToolEntry]) -> None:
    """Frees tools of an earlier scan a few at a time: all at once they would keep the loop waiting, whatever thread."""
    while entries:
        del entries[-_FREED_AT_ONCE:]


def _load_panes() -> None:
    import pegboard.tui.tools.tool_page  # noqa: F401 - loaded for the one who asks for it next
    from pegboard.results.markdown_lines import Marked

    Marked("*").read()  # loads what reads Markdown
