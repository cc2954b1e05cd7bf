"""A dialog with the last messages to and from an MCP server, and the lines that it wrote to stderr."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.binding import BindingType
from textual.content import Content

from pegboard.models.server_message import ServerMessage
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import count, duration, size
from pegboard.tui.commands import Command, bindings
from pegboard.tui.dialogs.definition import JsonScreen
from pegboard.tui.messages import Copy
from pegboard.tui.widgets.dialog import ListDialog
from pegboard.tui.widgets.highlighted import highlighted
from pegboard.tui.widgets.pick_list import PickLine, PickList

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_UPDATE_SECONDS: Final = 0.5
_MOST: Final = 1_000
"""Number of messages that are listed; a server may send thousands while the dialog is open."""
_LONGEST_PREVIEW: Final = 10_000
_LONGEST_LINE: Final = 200


class MessagesScreen(ListDialog[None]):
    """The last messages, oldest first, with a preview of the selected one. The list grows while it is open.

    Args:
        runtime: Runtime with the servers.
        server: Name of the server.
    """

    PAGE = "Messages"

    DEFAULT_CSS = """
    MessagesScreen > #box {
        width: 110; height: 34;
        PickList { height: 2fr; }
        #preview { height: 3fr; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("messages.copy", "ctrl+y", "copy", "Copy", "Copy the selected message.", footer=True),
        Command("messages.copy_all", "", "copy_all", "Copy all", "Copy all messages, each as a line."),
        Command("messages.close", "escape", "close", "Close", "Close this dialog.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, server: str) -> None:
        super().__init__(f"Messages of {clean_line(server)}")
        self._runtime = runtime
        self._server = server
        self._messages: list[ServerMessage] = []
        self._lines: list[PickLine] = []

    def on_mount(self) -> None:
        """Read the messages, and again while the dialog is open."""
        self.list.empty = "Reading…"
        self._read()
        self.set_interval(_UPDATE_SECONDS, self._read)

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        after = self._messages[-1].number if self._messages else 0
        new = await asyncio.to_thread(self._runtime.servers.messages, self._server, after)
        self.list.empty = "No matching messages." if self._messages or new else "No messages since Pegboard started."
        if not new:
            self.list.refresh()
            return
        marked = self.list.marked
        kept = None if marked == len(self._messages) - 1 else marked  # None follows the newest
        dropped = max(0, len(self._messages) + len(new) - _MOST)
        self._messages = [*self._messages, *new][dropped:]
        self._lines = [*self._lines, *map(_line, new)][dropped:]
        self.list.renew(self._lines, len(self._lines) - 1 if kept is None else max(0, kept - dropped))

    @on(PickList.Marked)
    def _marked(self, event: PickList.Marked) -> None:
        event.stop()
        if event.index is None:
            self.show_preview(Content(""), Content(""))
            return
        message = self._messages[event.index]
        text = _formatted(message)
        more = len(text) - _LONGEST_PREVIEW
        preview = highlighted(text[:_LONGEST_PREVIEW], "json", _LONGEST_PREVIEW)
        if more > 0:
            preview = Content.assemble(preview, "\n", (f"… {count(more, 'more character')}", "$text-muted"))
        self.show_preview(Content.styled(_about(message), "$text-muted"), preview)

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        message = self._messages[event.index]
        self.app.push_screen(JsonScreen(_title(message), _formatted(message), f"{_about(message)} · "))

    def action_copy(self) -> None:
        """Copy the selected message as it was sent."""
        if self.list.marked is not None:
            self.post_message(Copy(self._messages[self.list.marked].text))

    def action_copy_all(self) -> None:
        """Copy all messages as they were sent, with an arrow for their direction."""
        self.post_message(Copy("\n".join(f"{_arrow(one)} {one.text}" for one in self._messages)))


def _arrow(message: ServerMessage) -> str:
    return "!" if message.kind == "stderr" else "→" if message.sent else "←"


def _title(message: ServerMessage) -> str:
    """Return the method of a message, or that of the request to which it is the response."""
    name = clean_line(message.method) or {"other": "not a message"}.get(message.kind, message.kind)
    return (
        {"response": f"response to {name}", "error": f"error of {name}"}.get(message.kind, name)
        if message.method
        else name
    )


def _line(message: ServerMessage) -> PickLine:
    about = message.text if message.kind in {"other", "stderr"} else message.about
    number = f" #{message.id}" if message.id else ""
    text = f"{message.at.astimezone():%H:%M:%S} {_arrow(message)} {_title(message)}{number}  {about[:_LONGEST_LINE]}"
    return PickLine(
        clean_line(text).rstrip(), _time(message) or ("" if message.kind == "stderr" else size(message.size))
    )


def _time(message: ServerMessage) -> str:
    return "" if message.milliseconds is None else duration(message.milliseconds)


def _about(message: ServerMessage) -> str:
    """Return the direction, time, size and duration of a message."""
    to = "written to stderr" if message.kind == "stderr" else "sent" if message.sent else "received"
    at = f"{message.at.astimezone():%H:%M:%S.%f}"[:-3]
    parts = [f"{to} {at}", size(message.size) + (", only its beginning" if message.is_cut else ""), _time(message)]
    return " · ".join(filter(None, parts))


def _formatted(message: ServerMessage) -> str:
    """Return the indented JSON of a message, or its text if it isn't JSON."""
    try:
        text = json.dumps(json.loads(message.text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        text = message.text
    return clean(text)
