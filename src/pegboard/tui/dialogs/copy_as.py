"""A call or a script as text to be copied, in one of several ways."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.widgets import Static

from pegboard.forms import CopyKind, Form, copied_as
from pegboard.models import ToolSpec
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import count, size
from pegboard.tui.commands import Command, bindings
from pegboard.tui.dialogs import script_texts
from pegboard.tui.messages import Copy
from pegboard.tui.shell.footer import KeysLine
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.pick_list import PickLine, PickList

_LONGEST = 20_000
_CALL: tuple[tuple[CopyKind, str, str, str], ...] = (
    ("cli", "Command line", "for a shell", "bash"),
    ("script", "Script line", "for a script over tools", "bash"),
    ("json", "JSON", "the arguments alone", "json"),
    ("python", "Python", "for a pack or a script", "python"),
    ("mcp", "MCP request", "tools/call", "json"),
)
_SCRIPT: tuple[tuple[script_texts.CopyKind, str, str, str], ...] = (
    ("script", "Script", "as it is", "bash"),
    ("cli", "Command line", "for a shell", "bash"),
    ("json", "JSON", "the call of script.run, as a model makes it", "json"),
    ("python", "Python", "a program", "python"),
)


class Way(NamedTuple):
    """A way to write something."""

    title: str
    about: str
    language: str
    copied: Callable[[], str]
    """Gives the text to copy."""
    shown: Callable[[], str]
    """Gives it as it may be shown."""


class CopyScreen(Dialog[None]):
    """Shows something in several ways; enter copies the marked one.

    Args:
        title: What it is.
        ways: The ways.
        note: What is to be known of all of them.
        trouble: What is wrong with it.
    """

    PAGE = "Copy as"
    AUTO_FOCUS = "PickList"

    DEFAULT_CSS = """
    CopyScreen {
        align: center middle;
        background: $background 60%;
        #box {
            width: 90; max-width: 94%; height: 24; max-height: 90%; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            border-subtitle-color: $text-warning;
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

    def __init__(self, title: str, ways: Sequence[Way], *, note: str = "", trouble: str = "") -> None:
        super().__init__()
        self._title = title
        self._ways = ways
        self._note = note
        self._trouble = f"  ✗ {trouble}" if trouble else ""

    def compose(self) -> ComposeResult:
        """The ways over the text."""
        with Vertical(id="box") as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content(self._note)
            yield PickList()
            yield Static(id="about")
            with VerticalScroll(id="preview", can_focus=False):
                yield Static(id="text")
            yield KeysLine()

    def on_mount(self) -> None:
        """Lists the ways."""
        self._list.styles.height = len(self._ways)
        self._list.show([PickLine(way.title, way.about) for way in self._ways])

    @on(PickList.Marked)
    def _marked(self, event: PickList.Marked) -> None:
        event.stop()
        self._show(None if event.index is None else self._ways[event.index])

    @on(PickList.Filtered)
    def _filtered(self, event: PickList.Filtered) -> None:
        event.stop()

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        self._copy(self._ways[event.index])

    @work(exclusive=True, group="copy")
    async def _copy(self, way: Way) -> None:
        """Copies the text and closes."""
        self.app.post_message(Copy(await asyncio.to_thread(way.copied)))
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
        shown: Content
        shown, length = await asyncio.to_thread(_written, way)
        about = Content.assemble(
            (way.title, "bold"), (f"  {size(length)}", "$text-muted"), (self._trouble, "$text-warning")
        )
        self.query_one("#about", Static).update(about)
        self.query_one("#text", Static).update(shown)
        self._preview.scroll_home(animate=False)


def copy_call(spec: ToolSpec, form: Form, packs: str = "") -> CopyScreen:
    """Shows the call that a form makes in several ways.

    Args:
        spec: The tool.
        form: Its form; what is in it is copied, and shown with secrets masked.
        packs: The folder that a command line must name to find the tool; empty where it needn't.
    """
    arguments, masked, faults = form.draft(), form.draft(masked=True), len(form.faults())
    ways = [
        Way(title, about, language, *(partial(copied_as, kind, spec, one, packs=packs) for one in (arguments, masked)))
        for kind, title, about, language in _CALL
    ]
    return CopyScreen(
        f"Copy the call of {clean_line(spec.name)} as",
        ways,
        note="secrets are masked here, and copied as they are" if masked != arguments else "",
        trouble=f"{count(faults, 'fault')}: it is copied as it is" if faults else "",
    )


def copy_script(script: str, packs: Sequence[str]) -> CopyScreen:
    """Shows a script in several ways.

    Args:
        script: The script.
        packs: The folders that must be named elsewhere to find its tools.
    """
    written = [(way, partial(script_texts.copied_as, way[0], script, packs)) for way in _SCRIPT]
    return CopyScreen("Copy the script as", [Way(*way[1:], copied, copied) for way, copied in written])


def _written(way: Way) -> tuple[Content, int]:
    """Gives the text to show and the size of the one to copy."""
    from textual.highlight import highlight

    text = clean(way.shown())
    length = len(way.copied().encode(errors="surrogatepass"))
    if len(text) > _LONGEST:
        return Content(f"{text[:_LONGEST]}\n… {len(text) - _LONGEST:,} more characters"), length
    return highlight(text, language=way.language), length
