"""The call that a form makes, as text to be copied."""

from __future__ import annotations

import asyncio
from typing import ClassVar, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.screen import ModalScreen
from textual.widgets import Static

from pegboard.forms import CopyKind, Form, copied_as
from pegboard.models import JsonObject, ToolSpec
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import count, size
from pegboard.tui.commands import Command, bindings
from pegboard.tui.messages import Copy
from pegboard.tui.widgets.footer import KeysLine
from pegboard.tui.widgets.pick_list import Line, PickList

_LONGEST = 20_000


class Way(NamedTuple):
    """A way to write a call."""

    kind: CopyKind
    title: str
    about: str
    language: str


WAYS = (
    Way("cli", "Command line", "for a shell", "bash"),
    Way("script", "Script line", "for a script over tools", "bash"),
    Way("json", "JSON", "the arguments alone", "json"),
    Way("python", "Python", "for a pack or a script", "python"),
    Way("mcp", "MCP request", "tools/call", "json"),
)


class CopyScreen(ModalScreen[None]):
    """Shows a call in several ways; enter copies the marked one.

    Args:
        spec: The tool.
        form: Its form; what is in it is copied, and shown with secrets masked.
        packs: The folder that a command line must name to find the tool; empty where it needn't.
    """

    PLACE = "Copy as"
    AUTO_FOCUS = "PickList"

    DEFAULT_CSS = """
    CopyScreen {
        align: center middle;
        background: $background 60%;
        #box {
            width: 90; max-width: 94%; height: 24; max-height: 90%; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            border-subtitle-color: $text-warning;
            PickList { height: 5; }
            #about { height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
            #preview { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
            #preview Static { height: auto; }
        }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command(
            "copy_as.page_down", "pagedown", "page(1)", "Page down", "Scroll the text down.", footer=True, priority=True
        ),
        Command("copy_as.page_up", "pageup", "page(-1)", "Page up", "Scroll the text up.", priority=True),
        Command("copy_as.close", "escape", "close", "Close", "Go back without copying.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    _list = query_one(PickList)
    _preview = query_one("#preview", VerticalScroll)

    def __init__(self, spec: ToolSpec, form: Form, packs: str = "") -> None:
        super().__init__()
        self._spec = spec
        self._packs = packs
        self._arguments = form.draft()
        self._masked = form.draft(masked=True)
        self._faults = len(form.faults())

    def compose(self) -> ComposeResult:
        """The ways over the text."""
        with Vertical(id="box") as box:
            box.border_title = Content(f"Copy the call of {clean_line(self._spec.name)} as")
            if self._masked != self._arguments:
                box.border_subtitle = "secrets are masked here, and copied as they are"
            yield PickList()
            yield Static(id="about")
            with VerticalScroll(id="preview", can_focus=False):
                yield Static(id="text")
            yield KeysLine()

    def on_mount(self) -> None:
        """Lists the ways."""
        self._list.show([Line(way.title, way.about) for way in WAYS])

    @on(PickList.Marked)
    def _marked(self, event: PickList.Marked) -> None:
        event.stop()
        self._show(None if event.index is None else WAYS[event.index])

    @on(PickList.Filtered)
    def _filtered(self, event: PickList.Filtered) -> None:
        event.stop()

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        self._copy(WAYS[event.index])

    @work(exclusive=True, group="copy")
    async def _copy(self, way: Way) -> None:
        """Copies the call and closes."""
        self.app.post_message(Copy(await asyncio.to_thread(self._text, way, self._arguments)))
        self.dismiss(None)

    def action_page(self, by: int) -> None:
        """Scrolls the text by a page."""
        if by > 0:
            self._preview.scroll_page_down(animate=False)
        else:
            self._preview.scroll_page_up(animate=False)

    def action_close(self) -> None:
        """Closes without copying."""
        self.dismiss(None)

    @work(exclusive=True, group="show")
    async def _show(self, way: Way | None) -> None:
        if way is None:
            self.query_one("#text", Static).update("")
            return
        shown, length = await asyncio.to_thread(self._written, way)
        trouble = f"  ✗ {count(self._faults, 'fault')}: it is copied as it is" if self._faults else ""
        about = Content.assemble((way.title, "bold"), (f"  {size(length)}", "$text-muted"), (trouble, "$text-warning"))
        self.query_one("#about", Static).update(about)
        self.query_one("#text", Static).update(shown)
        self._preview.scroll_home(animate=False)

    def _text(self, way: Way, arguments: JsonObject) -> str:
        return copied_as(way.kind, self._spec, arguments, packs=self._packs)

    def _written(self, way: Way) -> tuple[Content, int]:
        """Gives the text to show and the size of the one to copy."""
        from textual.highlight import highlight

        text = clean(self._text(way, self._masked))
        copied = text
        if self._masked != self._arguments:
            copied = self._text(way, self._arguments)
        length = len(copied.encode(errors="surrogatepass"))
        if len(text) > _LONGEST:
            return Content(f"{text[:_LONGEST]}\n… {len(text) - _LONGEST:,} more characters"), length
        return highlight(text, language=way.language), length
