"""The Tools page: find, fill in and run tools."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.getters import query_one
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker, WorkerCancelled, WorkerFailed

from pegboard.results.clean import clean_line
from pegboard.tui.commands import CHOOSE_MODEL, Command, assigned_key, bindings, key_of
from pegboard.tui.messages import KeepCall
from pegboard.tui.shell.header import HeaderLine
from pegboard.tui.shell.page import PageScreen
from pegboard.tui.shell.too_small import TooSmall
from pegboard.tui.state.app_state import AppState
from pegboard.tui.state.catalogue import CatalogueRow, PackEntry, ToolEntry
from pegboard.tui.state.remembered import Remembered
from pegboard.tui.tools.lost_tool import leave_lost_tool
from pegboard.tui.tools.tool_list import LEGEND, ToolList
from pegboard.tui.tools.tool_pane import ListAndPage, ToolListPane
from pegboard.tui.tools.tool_server import SelectedServer, ServerStep
from pegboard.tui.tools.tools_commands import TOOLS_COMMANDS
from pegboard.tui.widgets.keys_line import KeysLine

if TYPE_CHECKING:
    from pegboard.models import JsonObject, ServerStatus
    from pegboard.runtime import Runtime
    from pegboard.tui.tools.server_page import ServerPage
    from pegboard.tui.tools.tool_page import ToolPage

_SETTLE_SECONDS = 0.2
"""Delay before the form of the selected tool is built, so that moving through the list stays fast."""


class ToolsScreen(PageScreen):
    """Tool list on the left, tool page on the right.

    Args:
        runtime: Runtime with the tools.
        remembered: State that is kept between starts.
        vim_keys: Whether letters move in the tool list.
    """

    PAGE = "Tools"
    LEGEND = LEGEND
    AUTO_FOCUS = "ToolList"

    DEFAULT_CSS = """
    ToolsScreen {
        #body { height: 1fr; }
        ToolListPane {
            width: 34;
            border: round $border-blurred;
            border-title-color: $text-muted;
            &:focus-within { border: round $border; border-title-color: $text-primary; border-title-style: bold; }
        }
        &.-narrow ToolListPane {
            width: 26;
            border: none;
            border-top: solid $border-blurred;
            &:focus-within { border: none; border-top: solid $border; }
        }
        &.-maximized-view ToolListPane.-maximized { width: 1fr; }
        &.-sidebar-hidden ToolListPane { display: none; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = TOOLS_COMMANDS
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    tool_list = query_one(ToolListPane)

    def __init__(self, runtime: Runtime, remembered: Remembered, *, vim_keys: bool) -> None:
        super().__init__()
        self._vim_keys = vim_keys
        self._runtime = runtime
        self._remembered = remembered
        self._page: ToolPage | None = None
        self.built = asyncio.Event()
        """Set when the tool page is mounted."""
        self._server_page: ServerPage | None = None
        self._settled: CatalogueRow | None = None
        self._settling: Timer | None = None

    def compose(self) -> ComposeResult:
        """Yield the tool list; the tool page is added after the first frame."""
        yield HeaderLine("tools")
        with ListAndPage(id="body"):
            yield ToolListPane(self._remembered, vim_keys=self._vim_keys)
        yield TooSmall()
        yield KeysLine()

    def on_mount(self) -> None:
        """Build the tool page after the first frame."""
        self.call_after_refresh(self._build)

    def on_screen_resume(self) -> None:
        """Show what another page or a dialog has changed: how often the tool was used, and its presets."""
        if self._page is not None:
            self._page.read_history()

    @work(group="build")
    async def _build(self) -> None:
        """Import the tool page in a thread, then mount it."""
        if isinstance(self.app, AppState):
            await self.app.has_settings.wait()
        await asyncio.to_thread(_load_panes)
        self.call_next(self._mount_panes)

    async def _mount_panes(self) -> None:
        from pegboard.tui.tools.tool_page import ToolPage

        page = ToolPage(self._runtime, self._remembered, self._key)
        body = self.query_one("#body")
        # Here rather than after the first layout: other borders take as long as several layouts.
        page.choose_borders(body.size - (self.tool_list.outer_size.width, 0))
        await body.mount(page)
        # Everything imported by now lives until the end, so the garbage collector need not visit it.
        gc.freeze()
        self._page = page
        self._settle()
        self.built.set()

    # Selection

    def open_tool(self, name: str) -> None:
        """Select a tool and focus its form.

        Args:
            name: Qualified name of the tool.
        """
        if self.tool_list.list.select(name):
            self._focus_form()

    def open_server(self, name: str) -> None:
        """Select an MCP server.

        Args:
            name: Name of its pack.
        """
        if self.tool_list.list.select_pack(name):
            self.action_show_tools()

    def open_call(self, name: str, arguments: JsonObject) -> None:
        """Select a tool and load the arguments of a call into its form.

        Args:
            name: Qualified name or alias of the tool.
            arguments: Arguments to load.
        """
        spec = self._runtime.tools.get(name)
        if spec is None or not self.tool_list.list.select(spec.name) or self._page is None:
            self.notify(
                f"The call was not opened because no tool is named {clean_line(name)}.",
                severity="warning",
                markup=False,
            )
            return
        self._settle()
        self._page.fill(arguments, "from the selected call")

    @on(ToolList.Moved)
    def _moved(self, event: ToolList.Moved) -> None:
        event.stop()
        if isinstance(event.row, ToolEntry):
            self._remembered.tool = event.row.spec.name
        self.call_after_refresh(self._show_row)
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(_SETTLE_SECONDS, self._settle)

    @property
    def settled(self) -> bool:
        """Whether the form and the result belong to the selected row."""
        return self._page is not None and self._settling is None and self._settled is self.tool_list.list.row

    @on(ToolList.Filtered)
    def _filtered(self, event: ToolList.Filtered) -> None:
        """Restart the delay while the user types, even if the selection stays the same."""
        event.stop()
        self._remembered.query = event.query
        if self._settling is not None:
            self._settling.reset()

    def _show_row(self) -> None:
        """Show the selected row after the list was painted."""
        if self._page is not None:
            self._page.look(self.tool_list.list.row)
            self._show_server()

    @property
    def _server(self) -> ServerStatus | None:
        """The selected MCP server."""
        row = self.tool_list.list.row
        return row.server if isinstance(row, PackEntry) else None

    def _show_server(self) -> None:
        """Show the page of the selected MCP server, or else the tool page."""
        row = self.tool_list.list.row
        if self._page is None:
            return
        if self._server is None and self._server_page is None:
            if self._runtime.servers.all():
                self.refresh_bindings()
            return
        if self._server_page is None:
            from pegboard.tui.tools.server_page import ServerPage

            keys = (self._key("tools.reconnect"), self._key("tools.log_in"))
            self._server_page = ServerPage(self._runtime, *keys)
            self.query_one("#body").mount(self._server_page)
        is_server = self._server is not None
        if is_server and self._page.panes[1].has_focus_within:
            self._settle()  # while the form has the focus, which it loses when the page is hidden
        self._server_page.display, self._page.display = is_server, not is_server
        if isinstance(row, PackEntry) and is_server:
            self._server_page.show(row)
        self.refresh_bindings()

    @on(ToolList.Opened)
    def _opened(self, event: ToolList.Opened) -> None:
        event.stop()
        self._focus_form()

    @on(ToolList.ServerOpened)
    def _server_opened(self, event: ToolList.ServerOpened) -> None:
        event.stop()
        if self._server_page is not None and self._server_page.display:
            self._server_page.focus_first()

    @property
    def _selected_server(self) -> SelectedServer:
        return SelectedServer.of(self.tool_list.list.row, self._server, self._server_page)

    def action_server(self, step: ServerStep) -> None:
        """Take a step with the selected MCP server, or with that of the selected tool."""
        self._selected_server.take(step, self, self._runtime)

    def _settle(self) -> None:
        """Show the form, the last result and the use of the selected tool."""
        if self._settling is not None:
            self._settling.stop()
            self._settling = None
        row = self.tool_list.list.row
        if self._page is not None and (row is None or row is not self._settled):
            leave_lost_tool(self._page.panes[1], self._settled, row, self._runtime)
            self._settled = row
            self._page.show(row)

    # Tool page

    @property
    def is_filling(self) -> bool:
        """Whether arguments for the form are being read: of the last call, of a preset or of a pasted call."""
        return self._page is not None and bool(_filling(self._page))

    async def action_run(self) -> None:
        """Run the selected tool, with the text typed before the key."""
        if self._page is None:
            self._run_once_built(self.tool_list.list.row)
        else:
            self._settle()
            editor, run = self.focused, self._page.run
            if self.is_filling:
                self._run_once_filled(self._page, self.tool_list.list.row)
            elif editor is None:
                run()
            else:  # The key arrives before the editor has handled the keys before it, and its own message about them.
                editor.call_later(lambda: editor.call_later(run))

    @work(exclusive=True, group="run")
    async def _run_once_built(self, row: CatalogueRow | None) -> None:
        """Run the tool that was selected when the user asked to run it, before the tool page was built."""
        await self.built.wait()
        now = self.tool_list.list.row
        if isinstance(row, ToolEntry) and isinstance(now, ToolEntry) and now.spec.name == row.spec.name:
            await self.action_run()
        else:
            self.notify("Nothing was run because the tools were still loading.", severity="warning")

    @work(exclusive=True, group="run")
    async def _run_once_filled(self, page: ToolPage, row: CatalogueRow | None) -> None:
        """Run the tool with the arguments that are being read for its form."""
        self.notify("The tool runs when the arguments are loaded.")
        with suppress(WorkerFailed, WorkerCancelled):
            await self.app.workers.wait_for_complete(_filling(page))
        now = self.tool_list.list.row
        if row is not None and now is not None and now.key == row.key:
            page.run()

    async def action_cancel(self) -> None:
        """Cancel the running call."""
        if self._page is not None:
            await self._page.cancel()

    def action_last_arguments(self) -> None:
        """Load the arguments of the tool's last call."""
        if self._page is not None:
            self._settle()
            self._page.fill_with_last()

    def action_presets(self) -> None:
        """Open the presets of the selected tool."""
        if self._page is not None:
            self._settle()
            self._page.show_presets()

    def action_save_preset(self) -> None:
        """Save the arguments of the form as a preset."""
        if self._page is not None:
            self._settle()
            self._page.save_preset()

    def action_batch(self) -> None:
        """Open the dialog that calls the tool with every row of a file."""
        if self._page is not None:
            self._settle()
            self._page.run_over_file()

    def action_copy_as(self) -> None:
        """Open the dialog that copies the call in several formats."""
        if self._page is not None:
            self._settle()
            self._page.copy_as()

    def action_checks(self) -> None:
        """Open the checks of the selected tool."""
        row = self.tool_list.list.row
        if isinstance(row, ToolEntry):
            from pegboard.tui.tools.checks import ChecksScreen

            changed = self.app.tool_scan.schema_changes.get(row.spec.name) if isinstance(self.app, AppState) else None
            self.app.push_screen(ChecksScreen(self._runtime, row.spec, changed))
        else:
            self.notify("Select a tool first.", severity="warning")

    def action_keep(self) -> None:
        """Keep the call that is shown as a check."""
        self._settle()
        call = self._page.finished_call if self._page is not None else None
        if call is None:
            self.notify("Run the tool first; then its call can be kept as a check.", severity="warning")
        else:
            self.post_message(KeepCall(call.id))

    def on_paste(self, event: events.Paste) -> None:
        """Load a call that is pasted outside an editor."""
        event.stop()
        if self._page is not None:
            self._settle()
            self._page.paste(event.text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable `cancel` only during a call, and the commands of servers only for those to which they apply."""
        match action:
            case "cancel":
                return self._page is not None and self._page.running is not None
            case "run" | "definition" | "checks" | "keep" | "result":
                return self._server is None
            case "server":
                return self._selected_server.may_take(cast("ServerStep", parameters[0]))
            case _:
                return True

    def on_tool_page_other_tool_pasted(self, event: ToolPage.OtherToolPasted) -> None:
        """Select another tool for pasted arguments."""
        event.stop()
        if self.tool_list.list.select(event.tool) and self._page is not None:
            self._settle()
            self._page.fill(event.arguments, event.source)

    # Result

    @property
    def has_result_focus(self) -> bool:
        """Whether the focus is in the result."""
        return self._page is not None and self._page.has_result_focus

    def focus_result(self) -> bool:
        """Focus the result of the selected tool; return False and say so if it has none."""
        self._settle()
        return self._page is not None and self._page.focus_result()

    def focus_next(self, selector: str | type[Widget] = "*") -> Widget | None:
        """Focus the next widget; from the list, it belongs to the selected tool, even right after it was selected."""
        if self.tool_list.list.has_focus and not self.settled:
            self._settle()
            if self._page is not None and self._page.has_fields:
                self._page.focus_form()
                return self.focused
        return super().focus_next(selector)

    def focus_work(self) -> None:
        """Focus the form, or the list of tools."""
        if self._page is not None and self._page.has_fields:
            self._page.focus_form()
        else:
            self.action_show_tools()

    # Views

    def action_definition(self) -> None:
        """Show the tool's definition."""
        row = self.tool_list.list.row
        if isinstance(row, ToolEntry):
            from pegboard.tui.dialogs.definition import DefinitionScreen

            self.app.push_screen(DefinitionScreen(row.spec))
        else:
            self.notify("Select a tool first.", severity="warning")

    @work(exclusive=True, group="editor")
    async def action_source(self) -> None:
        """Open the file of the selected tool or pack, or the configuration of the selected MCP server."""
        match self.tool_list.list.row:
            case ToolEntry(spec=spec) if spec.file:
                await self._edit(spec.file, spec.location.line)
            case PackEntry(file=str(file), problems=problems):
                await self._edit(file, next((problem.line for problem in problems if problem.line), None))
            case PackEntry() if self._server_page is not None and (place := await self._server_page.place()):
                await self._edit(*place)
            case _:
                self.notify("The selection has no source file.", severity="warning")

    async def _edit(self, file: str, line: int | None) -> None:
        from pegboard.tui.widgets.external_editor import open_in_editor

        await open_in_editor(self.app, file, line)

    def action_show_tools(self) -> None:
        """Show and focus the tool list."""
        self.remove_class("-sidebar-hidden")
        self.tool_list.list.focus()

    focus_start = action_show_tools

    def action_sidebar(self) -> None:
        """Hide or show the tool list."""
        self.toggle_class("-sidebar-hidden")
        if self.has_class("-sidebar-hidden") and self.focused is self.tool_list.list:
            self._focus_form()
        elif not self.has_class("-sidebar-hidden"):
            self.tool_list.list.focus()

    def action_divide(self, steps: int) -> None:
        """Make the form larger, or smaller if negative."""
        if self._page is not None:
            self._page.move_divider(steps)

    def action_fit(self) -> None:
        """Fit form and result to their content."""
        if self._page is not None:
            self._page.fit()

    def watch_maximized(self) -> None:
        """Show which pane is maximized and how to leave."""
        leave = f" · {self._key('tools.maximise')} restores"
        self.tool_list.border_title = Content("Tools" + (leave if self.maximized is self.tool_list else ""))
        if self._page is not None:
            self._page.update_panes()

    @property
    def panes(self) -> Sequence[Widget]:
        """Panes that can be maximized."""
        pages = [page for page in (self._page, self._server_page) if page is not None and page.display]
        return (self.tool_list, *(pane for page in pages for pane in page.panes))

    def _key(self, command_id: str) -> str:
        """Return the first key of a command of this page or of `CHOOSE_MODEL`, else how to run it in the palette."""
        command = next(command for command in (*self.ACTIONS, CHOOSE_MODEL) if command.id == command_id)
        return assigned_key(self, command) or f"{key_of(self.app, 'app.palette')} “{command.title}”".strip()

    def _focus_form(self) -> None:
        """Focus the first field of the selected tool."""
        self._settle()
        if self._page is not None:
            self._page.focus_form()


def _filling(page: ToolPage) -> list[Worker[object]]:
    """Return the workers that read arguments for the form of a tool page."""
    groups = ("arguments", "paste")
    return [one for one in page.app.workers if one.node is page and one.group in groups and not one.is_finished]


def _load_panes() -> None:
    import pegboard.tui.tools.tool_page  # noqa: F401 - imported early, in a thread
