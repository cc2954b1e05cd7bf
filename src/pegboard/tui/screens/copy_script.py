"""A script as text to be pasted elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.screen import ModalScreen
from textual.widgets import Static

from pegboard.results.clean import clean
from pegboard.results.sizes import size
from pegboard.tui.commands import Command, bindings
from pegboard.tui.messages import Copy
from pegboard.tui.script.copies import CopyKind, copied_as
from pegboard.tui.widgets.footer import KeysLine
from pegboard.tui.widgets.pick_list import Line, PickList

_LONGEST: Final = 20_000


class Way(NamedTuple):
    """A way to write a script."""

    kind: CopyKind
    title: str
    about: str
    language: str


WAYS: Final = (
    Way("script", "Script", "as it is", "bash"),
    Way("cli", "Command line", "for a shell", "bash"),
    Way("json", "JSON", "the call of script.run, as a model makes it", "json"),
    Way("python", "Python", "a program", "python"),
)


class CopyScriptScreen(ModalScreen[None]):
    """Shows a script in several ways; enter copies the marked one.

    Args:
        script: The script.
        packs: The folders that must be named elsewhere to find its tools.
    """

    PLACE = "Copy as"
    AUTO_FOCUS = "PickList"

    DEFAULT_CSS = """
    CopyScriptScreen {
        align: center middle;
        background: $background 60%;
        #box {
            width: 90; max-width: 94%; height: 24; max-height: 90%; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            PickList { height: 4; }
            #about { height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
            #preview { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
            #preview Static { height: auto; }
        }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("copy_script.page_down", "pagedown", "page(1)", "Page down", "Scroll down.", True, priority=True),
        Command("copy_script.page_up", "pageup", "page(-1)", "Page up", "Scroll up.", priority=True),
        Command("copy_script.close", "escape", "close", "Close", "Go back without copying.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    _list = query_one(PickList)
    _preview = query_one("#preview", VerticalScroll)

    def __init__(self, script: str, packs: Sequence[str]) -> None:
        super().__init__()
        self._texts = [copied_as(way.kind, script, packs) for way in WAYS]

    def compose(self) -> ComposeResult:
        """The ways over the text."""
        with Vertical(id="box") as box:
            box.border_title = "Copy the script as"
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
        if event.index is None:
            self.query_one("#text", Static).update("")
            return
        way, text = WAYS[event.index], self._texts[event.index]
        length = size(len(text.encode(errors="surrogatepass")))
        self.query_one("#about", Static).update(Content.assemble((way.title, "bold"), (f"  {length}", "$text-muted")))
        self.query_one("#text", Static).update(_shown(text, way.language))
        self._preview.scroll_home(animate=False)

    @on(PickList.Filtered)
    def _filtered(self, event: PickList.Filtered) -> None:
        event.stop()

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        self.app.post_message(Copy(self._texts[event.index]))
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


def _shown(text: str, language: str) -> Content:
    from textual.highlight import highlight

    text = clean(text)
    if len(text) > _LONGEST:
        return Content(f"{text[:_LONGEST]}\n… {len(text) - _LONGEST:,} more characters")
    return highlight(text, language=language)
