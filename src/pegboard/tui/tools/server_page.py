"""The page of an MCP server: its state, and its resources and prompts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.getters import query_one
from textual.widget import Widget
from textual.widgets import Button, Static

from pegboard.models import Problem, ServerState, ServerStatus
from pegboard.models.server_content import PromptInfo, ResourceInfo, ResourceTemplate
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count
from pegboard.tui.state.catalogue import PackEntry
from pegboard.tui.widgets.filter_line import FilterLine
from pegboard.tui.widgets.long_text import LongText
from pegboard.tui.widgets.pick_list import PickLine, PickList
from pegboard.tui.widgets.problem_text import problem_line
from pegboard.tui.widgets.server_text import instruction_lines, server_label, server_lines

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_UPDATE_SECONDS = 1.0
"""Interval at which the last lines of stderr are read while the page is visible."""
_PROBLEMS_SHOWN = 5
_USABLE = (ServerState.READY, ServerState.DEGRADED)

_ServerItem: TypeAlias = ResourceInfo | ResourceTemplate | PromptInfo


class ServerPage(Vertical):
    """State of an MCP server with actions, above a list of its resources, templates and prompts.

    Args:
        runtime: Runtime with the servers.
        reconnect_key: Key that reconnects, for the button.
        login_key: Key that logs in, for the button.
    """

    DEFAULT_CSS = """
    ServerPage {
        width: 1fr;
        #server, #contents {
            border: round $border-blurred;
            border-title-color: $text-muted;
            &:focus-within { border: round $border; border-title-color: $text-primary; border-title-style: bold; }
        }
        #server { height: auto; max-height: 60%; border-title-color: $foreground; border-title-style: bold; }
        #facts { max-height: 100%; padding: 0 1; }
        #actions { dock: bottom; height: auto; padding: 0 1; overflow-x: auto; scrollbar-size-horizontal: 0; }
        #actions Button { margin-right: 2; min-width: 12; }
        #contents { height: 1fr; }
        &.-alone #contents { display: none; }
        &.-alone #server { max-height: 100%; }
        #note { height: auto; padding: 0 1; color: $text-muted; }
    }
    """

    _text = query_one("#text", Static)
    _note = query_one("#note", Static)
    _login = query_one("#login", Button)
    _logout = query_one("#logout", Button)
    _reconnect = query_one("#reconnect", Button)
    _remove = query_one("#remove", Button)
    _list = query_one(PickList)
    _filter = query_one(FilterLine)

    def __init__(self, runtime: Runtime, reconnect_key: str, login_key: str) -> None:
        super().__init__()
        self._runtime = runtime
        self._keys = (reconnect_key, login_key)
        self._pack: PackEntry | None = None
        self._is_ready = False
        self._read: tuple[str, bool] | None = None
        """The server whose contents are listed, and whether it offers any now."""
        self._read_changes = 0
        """Number of changes of its contents that it had announced then."""
        self._items: list[_ServerItem] = []

    def compose(self) -> ComposeResult:
        """Yield the facts, the buttons and the list."""
        with Vertical(id="server"):
            with LongText(id="facts"):
                yield Static(id="text")
            with Horizontal(id="actions"):
                yield Button(Content(f"Reconnect {self._keys[0]}"), id="reconnect", compact=True)
                yield Button(Content(f"Log in {self._keys[1]}"), id="login", variant="warning", compact=True)
                yield Button("Log out", id="logout", compact=True)
                yield Button("Remove…", id="remove", compact=True)
                yield Button("Messages", id="messages", compact=True)
        with Vertical(id="contents") as contents:
            contents.border_title = "Resources and prompts"
            yield FilterLine("type to filter")
            yield PickList()
            yield Static(id="note")

    def on_mount(self) -> None:
        """Show the server, and update the last lines of stderr while the page is visible."""
        self._is_ready = True
        self.set_interval(_UPDATE_SECONDS, self._update)
        if self._pack is not None:
            self.show(self._pack)

    @property
    def panes(self) -> tuple[Widget, ...]:
        """Panes that can be maximized."""
        return ()

    @property
    def server(self) -> ServerStatus | None:
        """The status of the server."""
        if self._pack is None or self._pack.server is None:
            return None
        return self._runtime.servers.status(self._pack.server.name) or self._pack.server

    @property
    def is_enabled(self) -> bool:
        """Whether the server isn't disabled."""
        return self.server is not None and self.server.state is not ServerState.DISABLED

    @property
    def needs_login(self) -> bool:
        """Whether the user must log in to the server."""
        return self.server is not None and self.server.state is ServerState.NEEDS_LOGIN

    @property
    def has_login(self) -> bool:
        """Whether there is a login to the server."""
        return self.server is not None and self.server.has_login

    @property
    def _configured(self) -> str:
        """The name of the server in the configuration; empty if it was given for this run."""
        config = None if self.server is None else self._runtime.servers.config(self.server.name)
        return config.name if config is not None and config.saved else ""

    async def place(self) -> tuple[str, int | None] | None:
        """Return the file with the server and the line where it begins; None if no file has it."""
        name = self._configured
        return await asyncio.to_thread(self._runtime.servers.configured.place, name) if name else None

    @property
    def is_removable(self) -> bool:
        """Whether the user's configuration file has the server."""
        return bool(self._configured) and self._runtime.servers.configured.is_removable(self._configured)

    def show(self, pack: PackEntry) -> None:
        """Show a server, or its new state."""
        self._pack = pack
        self._update()
        server = self.server
        if server is None or not self._is_ready:
            return
        offers = {name.partition(".")[0] for name in server.capabilities} & {"resources", "prompts"}
        read = (server.name, server.state in _USABLE and bool(offers))
        self.set_class(not read[1], "-alone")
        is_same, changes = read == self._read, server.content_changes
        if is_same and changes == self._read_changes:
            return
        self._read, self._read_changes = read, changes
        if not is_same:
            self._show_items([], "Reading resources and prompts…" if read[1] else "")
        if read[1]:
            self._read_items(server.name)

    def focus_first(self) -> None:
        """Focus the list, or else the first button."""
        (self._list if self._items else self._reconnect).focus()

    def reread(self) -> None:
        """List resources and prompts again with the next `show`."""
        self._read = None

    def _update(self) -> None:
        server = self.server
        if server is None or self._pack is None or not self._is_ready or not self.display:
            return
        self.query_one("#server").border_title = Content(f"MCP server {server_label(server)}")
        lines = server_lines(server)
        problems = [one for one in self._pack.problems if not server.reason or server.reason not in one.message]
        lines += [problem_line(problem) for problem in problems[:_PROBLEMS_SHOWN]]
        if len(problems) > _PROBLEMS_SHOWN:
            lines.append(Content.styled(f"and {count(len(problems) - _PROBLEMS_SHOWN, 'more problem')}", "$text-muted"))
        text = Content("\n").join([*lines, *instruction_lines(server)])
        if text != self._text.content:
            self._text.update(text)
        self._login.display = server.state is ServerState.NEEDS_LOGIN
        self._logout.display = server.has_login and not self._login.display
        self._reconnect.display = server.state is not ServerState.DISABLED
        self._remove.display = self.is_removable

    # Resources and prompts

    @work(exclusive=True, group="server contents")
    async def _read_items(self, name: str) -> None:
        """List the resources, templates and prompts of a server."""
        servers = self._runtime.servers
        found = await asyncio.gather(servers.resources(name), servers.templates(name), servers.prompts(name))
        problems = [str(one) for one in found if isinstance(one, Problem)]
        items: list[_ServerItem] = [item for one in found if not isinstance(one, Problem) for item in one]
        if self._read is not None and self._read[0] == name:
            self._show_items(items, "\n".join(map(clean_line, problems)), is_update=True)

    def _show_items(self, items: list[_ServerItem], note: str, *, is_update: bool = False) -> None:
        """Show a list; a newer version of the shown one keeps the filter and the selected line."""
        marked = self._list.marked
        title = None if marked is None else _title(self._items[marked])
        titles = [_title(item) for item in items]
        lines = [PickLine(clean_line(line), clean_line(_about(item))) for line, item in zip(titles, items, strict=True)]
        self._items = items
        none = "" if note else "The server has no resources and no prompts."
        self._list.empty = "No matches." if items else none
        if is_update:
            self._list.renew(lines, titles.index(title) if title in titles else None)
        else:
            self._list.show(lines)
        self._note.display = bool(note)
        self._note.update(Content(note))

    @on(PickList.Filtered)
    def _filtered(self, event: PickList.Filtered) -> None:
        event.stop()
        self._filter.show(event.query, f"{event.found:,} of {event.total:,}")

    @on(PickList.Marked)
    def _marked(self, event: PickList.Marked) -> None:
        event.stop()

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        server = self.server
        if server is not None and event.index < len(self._items):  # the list may have changed meanwhile
            from pegboard.tui.dialogs.server_contents import open_item

            self.run_worker(open_item(self.app, self._runtime, server.name, self._items[event.index]), group="open")

    # Actions

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        match event.button.id:
            case "login":
                self.log_in()
            case "logout":
                self.log_out()
            case "remove":
                self.remove_server()
            case "messages":
                self.show_messages()
            case _:
                self.reconnect()

    def show_messages(self) -> None:
        """Show the last messages to and from the server."""
        from pegboard.tui.dialogs.server_messages import MessagesScreen

        if self.server is not None:
            self.app.push_screen(MessagesScreen(self._runtime, self.server.name))

    @work(exclusive=True, group="server connection")
    async def reconnect(self) -> None:
        """Connect to the server again."""
        server = self.server
        if server is None or server.state is ServerState.DISABLED:
            text = "The server is disabled. Remove `enabled = false` from its entry."
            self.notify(text, severity="warning")
            return
        self.reread()
        await self._runtime.servers.reconnect(server.name)

    @work(exclusive=True, group="server connection")
    async def remove_server(self) -> None:
        """Remove the server from the configuration file if the user confirms it."""
        from pegboard.tui.dialogs.configured_servers import remove_server

        if self.is_removable:
            await remove_server(self.app, self._runtime, self._configured)

    @work(exclusive=True, group="server connection")
    async def log_in(self) -> None:
        """Log in to the server in the browser, then connect again."""
        server = self.server
        if server is None or server.state is not ServerState.NEEDS_LOGIN:
            self.notify("The server doesn't need a login.", severity="warning")
            return
        problem = await self._runtime.servers.log_in(server.name)
        if problem is not None:
            self.notify(clean_line(str(problem)), severity="error", markup=False)
            return
        self.notify(f"You are logged in to {server_label(server)}.", markup=False)
        self.reread()
        await self._runtime.servers.reconnect(server.name)

    @work(exclusive=True, group="server connection")
    async def log_out(self) -> None:
        """Delete the login to the server, and connect again without it."""
        server = self.server
        if server is None:
            return
        ended = await self._runtime.servers.log_out(server.name)
        if isinstance(ended, Problem):
            self.notify(clean_line(str(ended)), severity="error", markup=False)
            return
        label = server_label(server)
        text = f"You are logged out of {label}." if ended.was_logged_in else f"You were not logged in to {label}."
        if ended.note:
            text = f"{text} The tokens may stay valid until they expire. {ended.note}"
        self.notify(clean_line(text), severity="warning" if ended.note else "information", markup=False)
        self.reread()
        await self._runtime.servers.reconnect(server.name)


def _title(item: _ServerItem) -> str:
    match item:
        case ResourceInfo(uri=uri):
            return f"resource  {item.title or item.name}  {uri}"
        case ResourceTemplate(uri_template=uri):
            return f"template  {item.title or item.name}  {uri}"
        case PromptInfo():
            names = ", ".join(f"{one.name}{'' if one.required else '?'}" for one in item.arguments)
            return f"prompt    {item.title or item.name}({names})"


def _about(item: _ServerItem) -> str:
    return item.description or ("" if isinstance(item, PromptInfo) else item.mime_type)
