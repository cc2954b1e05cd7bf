"""A dialog with a resource of an MCP server, which is updated when the server changes it."""

from __future__ import annotations

from contextlib import aclosing
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING

from pydantic import JsonValue
from textual import work
from textual.app import App
from textual.containers import Vertical
from textual.content import Content
from textual.getters import query_one

from pegboard.data.json_text import JsonTextError, parse
from pegboard.models import Problem, ResultMeta, ToolCall, ToolResult
from pegboard.models.server_content import ResourceContents
from pegboard.results.clean import clean_line
from pegboard.tui.dialogs.result import ResultScreen

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_Contents = tuple[ResourceContents, ...]


async def open_resource(app: App[None], runtime: Runtime, server: str, uri: str) -> None:
    """Read a resource and show it in a result pane.

    Args:
        app: The running app.
        runtime: Runtime with the servers.
        server: Name of the server's pack.
        uri: The resource.
    """
    began = monotonic()
    read = await runtime.servers.read(server, uri)
    if isinstance(read, Problem):
        app.notify(clean_line(str(read)), severity="error", markup=False)
        return
    await app.push_screen(ResourceScreen(runtime, server, uri, read, 1000 * (monotonic() - began)))


class ResourceScreen(ResultScreen):
    """A resource in every suitable view. While it is open, it follows the server's changes.

    Args:
        runtime: Runtime with the servers.
        server: Name of the server's pack.
        uri: The resource.
        contents: Its contents.
        milliseconds: How long reading them took.
    """

    _box = query_one("#box", Vertical)

    def __init__(self, runtime: Runtime, server: str, uri: str, contents: _Contents, milliseconds: float) -> None:
        title = f"Resource {clean_line(uri)} of {clean_line(server)}"
        call = ToolCall(name=uri, source="form")
        super().__init__(call, _result(server, contents, milliseconds), runtime.paths.state, title)
        self._runtime = runtime
        self._server = server
        self._uri = uri
        self._contents = contents

    def on_mount(self) -> None:
        """Follow the resource."""
        self._follow()

    @work
    async def _follow(self) -> None:
        """Read the resource again whenever the server reports a change, until the dialog closes."""
        async with aclosing(self._runtime.servers.follow(self._server, self._uri)) as changes:
            is_first = True
            async for _ in changes:
                await self._update(is_first=is_first)
                is_first = False

    async def _update(self, *, is_first: bool) -> None:
        began = monotonic()
        read = await self._runtime.servers.read(self._server, self._uri)
        if isinstance(read, Problem):
            self._note(f"Changed on the server, but can't be read: {clean_line(str(read))}")
            return
        if is_first and _texts(read) == _texts(self._contents):
            self._note("Updated when the server changes it")
            return
        self._contents = read
        had_focus = self.focused is None or self._pane in self.focused.ancestors_with_self
        self.refill(ToolCall(name=self._uri, source="form"), _result(self._server, read, 1000 * (monotonic() - began)))
        if had_focus:
            self._pane.focus()
        self._note(f"Updated by the server at {datetime.now().astimezone():%H:%M:%S}")

    def _note(self, text: str) -> None:
        self._box.border_subtitle = Content(text)


def _result(server: str, contents: _Contents, milliseconds: float) -> ToolResult:
    meta = ResultMeta(duration_ms=milliseconds, worker=f"MCP server {server}")
    return ToolResult(ok=True, data=_data(contents), meta=meta)


def _texts(contents: _Contents) -> list[ResourceContents]:
    """Return contents without the files that binary ones were saved to; each reading saves another."""
    return [content.model_copy(update={"file": None}) for content in contents]


def _data(contents: _Contents) -> JsonValue:
    if len(contents) == 1:
        return _content(contents[0])
    return [{"uri": one.uri, "content": _content(one)} for one in contents]


def _content(content: ResourceContents) -> JsonValue:
    """Return a text, JSON as its value, or a line with the file of binary content."""
    kind = content.mime_type
    if content.text is None:
        return f"{kind}: {content.problem}" if content.problem else f"{kind}, {content.size}: {content.file}"
    if kind.partition(";")[0].endswith("json"):
        try:
            return parse(content.text)
        except JsonTextError:
            return content.text
    return content.text
