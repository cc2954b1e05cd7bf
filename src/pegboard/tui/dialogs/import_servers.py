"""MCP servers of other clients, which the user adds to the configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import App
from textual.binding import BindingType
from textual.content import Content

from pegboard.config.client_files import CLIENTS
from pegboard.models import Problem
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.dialogs.configured_servers import ServerChangesScreen, show_notes
from pegboard.tui.widgets.dialog import ListDialog
from pegboard.tui.widgets.pick_list import PickLine, PickList

if TYPE_CHECKING:
    from pegboard.runtime import Runtime
    from pegboard.runtime.configured_servers import ClientServer


class ImportServersScreen(ListDialog["tuple[ClientServer, ...] | None"]):
    """A dialog that returns the servers to add.

    Args:
        servers: The servers of all clients.
        targets: The command line or URL of each, secrets masked.
    """

    PAGE = "Import MCP servers"
    FILTER_HINT = "type to filter; space selects several"

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("import.tick", "space", "tick", "Select", "Select or deselect the highlighted server.", True),
        Command("import.close", "escape", "close", "Close", "Close without adding a server.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, servers: Sequence[ClientServer], targets: Sequence[str]) -> None:
        super().__init__("Import MCP servers", pick_list=PickList(sign=self._sign, own_keys=" "))
        self._servers = servers
        self._targets = targets
        self._ticked: set[int] = set()

    def on_mount(self) -> None:
        """List the servers."""
        self.list.empty = "No matching servers."
        self.list.show([PickLine(clean_line(one.found.name), _state(one)) for one in self._servers])

    def _sign(self, index: int) -> str:
        if self._servers[index].skipped:
            return "  "
        return "☑ " if index in self._ticked else "☐ "

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        """Return the selected servers, or the chosen one if none is selected."""
        event.stop()
        chosen = sorted(self._ticked) or [event.index]
        if self._can_be_added(chosen[0]):
            self.dismiss(tuple(self._servers[index] for index in chosen))

    def action_tick(self) -> None:
        """Select or deselect the highlighted server and move to the next one."""
        if self.list.marked is not None and self._can_be_added(self.list.marked):
            self._ticked ^= {self.list.marked}
            self.list.action_move(1)
            self.list.refresh()
            self.query_one("#box").border_subtitle = Content(f"{len(self._ticked):,} selected" if self._ticked else "")

    def _can_be_added(self, index: int) -> bool:
        one = self._servers[index]
        if one.skipped:
            text = clean_line(f"{one.found.name} can't be added: {one.skipped.rstrip('.')}.")
            self.notify(text, severity="warning", markup=False)
        return not one.skipped

    @on(PickList.Marked)
    def _marked(self, event: PickList.Marked) -> None:
        event.stop()
        if event.index is None:
            self.show_preview(Content(), Content())
            return
        one = self._servers[event.index]
        lines = [
            self._targets[event.index],
            *_variables(one),
            *one.found.notes,
            *([f"Not possible: {one.skipped}"] if one.skipped else []),
        ]
        text = Content("\n").join(Content(clean_line(line)) for line in lines if line)
        self.show_preview(Content(clean_line(str(one.found.file))), text)


async def import_servers(app: App[None], runtime: Runtime) -> str | None:
    """Add those servers of other clients that the user selects and confirms.

    Args:
        app: The running app.
        runtime: Runtime with the servers.

    Returns:
        Name of the last added server, or None.
    """
    configured = runtime.servers.configured

    def target(one: ClientServer) -> str:
        entry = one.found.entry
        return configured.target(entry.get("command"), entry.get("args"), entry.get("url"))

    servers = await asyncio.to_thread(configured.of_clients)
    if not servers:
        app.notify(f"No MCP servers were found in the files of {', '.join(CLIENTS)}.", markup=False)
        return None
    targets = await asyncio.to_thread(lambda: [target(one) for one in servers])
    chosen = await app.push_screen_wait(ImportServersScreen(servers, targets))
    if not chosen:
        return None
    lines: list[str] = []
    for one in chosen:
        rules = await asyncio.to_thread(runtime.rules.existing, one.found.new_name)
        start = f"Start {one.found.new_name}: {targets[servers.index(one)]}"
        about = (start, *_variables(one), *one.found.notes, rules)
        lines.append("\n".join(clean_line(line) for line in about if line))
    if not await app.push_screen_wait(ServerChangesScreen(lines, "Add these MCP servers?")):
        return None
    last: str | None = None
    for one in chosen:
        added = await configured.add(one.found.new_name, one.found.entry)
        if isinstance(added, Problem):
            app.notify(clean_line(str(added)), severity="error", markup=False)
        else:
            show_notes(app, added)
            last = one.found.new_name
    return last


def _state(one: ClientServer) -> str:
    return f"{one.client} · {'not possible' if one.skipped else 'new'}"


def _variables(one: ClientServer) -> list[str]:
    """Return the names of the variables and headers of a server, a line for each kind."""
    listed = {key: one.found.entry.get(key) for key in ("env", "headers")}
    return [f"{key}: {', '.join(names)}" for key, names in listed.items() if isinstance(names, Mapping)]
