"""The guide: its sections, a search over them, and the text of the selected one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.widgets import Input, Markdown, OptionList
from textual.widgets.option_list import Option

from pegboard.guide import GuidePage, pages
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.control_pictures import ControlPictures
from pegboard.tui.widgets.dialog import Dialog

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class GuideSection:
    """A part of the guide: a whole page, or the text below one of its headings.

    Attributes:
        page: Name of the page.
        heading: The heading; empty for the whole page.
        text: The text as Markdown.
        searched: The text that a search looks at, in lower case: for a page, only the part before its first heading.
    """

    page: str
    heading: str
    text: str
    searched: str

    @property
    def title(self) -> str:
        """The heading, or the title of the whole page, without markup."""
        return self.heading.replace("`", "") or self.text.partition("\n")[0].removeprefix("# ")


class GuideScreen(Dialog[None]):
    """A dialog that shows the guide; typing searches all pages."""

    PAGE = "Guide"
    AUTO_FOCUS = "Input"
    HAS_FOOTER = False

    DEFAULT_CSS = """
    GuideScreen {
        & > #box { width: 130; height: 90%; padding: 0 1; }
        #contents { width: 34; height: 1fr; margin-right: 1; }
        Input, Input:focus { height: 1; border: none; padding: 0 1; background: $panel; }
        OptionList, OptionList:focus {
            min-width: 8;
            height: 1fr; border: none; background: transparent; background-tint: transparent; padding: 0;
            scrollbar-size-vertical: 1;
        }
        #text { height: 1fr; scrollbar-size-vertical: 1; }
        Markdown { padding: 0 1 0 0; background: transparent; }
        MarkdownH1 { margin: 0 0 1 0; content-align: left middle; }
        MarkdownH2 { margin: 0 0 1 0; }
        &.-narrow, &.-tiny {
            #columns { layout: vertical; }
            #contents { width: 1fr; height: 40%; margin: 0; }
        }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("guide.next", "down", "move(1)", "Next section", "Show the section below."),
        Command("guide.previous", "up", "move(-1)", "Previous section", "Show the section above."),
        Command("guide.page_down", "pagedown", "scroll_text(1)", "Page down", "Scroll the text down."),
        Command("guide.page_up", "pageup", "scroll_text(-1)", "Page up", "Scroll the text up."),
        Command("guide.close", "escape,f1", "close", "Close", "Close this dialog."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    _list = query_one(OptionList)
    _text = query_one("#text", VerticalScroll)
    _markdown = query_one(Markdown)

    def __init__(self) -> None:
        super().__init__(
            "Guide",
            "type to search · {guide.previous} {guide.next} sections · {guide.page_up} {guide.page_down} scroll"
            " · {guide.close} closes",
        )
        self._sections = [section for page in pages() for section in _sections_of(page)]
        self._found = self._sections

    def compose_body(self) -> ComposeResult:
        """Compose the search, the sections and the text."""
        with Horizontal(id="columns"):
            with Vertical(id="contents"):
                yield Input(placeholder="type to search", id="search", highlighter=ControlPictures())
                yield OptionList(markup=False)
            with VerticalScroll(id="text", can_focus=False):
                yield Markdown(open_links=False)

    def on_mount(self) -> None:
        """List all sections."""
        self._show(self._sections)

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        event.stop()
        words = dict.fromkeys(event.value.casefold().split())  # a pasted text can repeat a word ten thousand times
        found = [one for one in self._sections if all(word in one.searched for word in words)]
        self._show(sorted(found, key=lambda one: sum(word not in one.title.casefold() for word in words)))

    def _show(self, sections: list[GuideSection]) -> None:
        self._found = sections
        self._list.clear_options()
        self._list.add_options(map(_option, sections))
        if sections:
            self._list.highlighted = 0
        else:
            self._list.add_option(Option("No section contains this.", disabled=True))
            self._markdown.update("")

    @on(OptionList.OptionHighlighted)
    async def _show_text(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        if event.option_index < len(self._found):
            await self._markdown.update(self._found[event.option_index].text)
            self._text.scroll_home(animate=False)

    @on(Markdown.LinkClicked)
    def _follow(self, event: Markdown.LinkClicked) -> None:
        event.stop()
        name = event.href.removesuffix(".md")
        target = next((one for one in self._sections if one.page == name and not one.heading), None)
        if target is not None:
            with self.prevent(Input.Changed):
                self.query_one(Input).value = ""
            self._show(self._sections)
            self._list.highlighted = self._sections.index(target)

    def action_move(self, rows: int) -> None:
        """Select another section.

        Args:
            rows: Number of rows, negative for up.
        """
        if self._found:
            self._list.highlighted = max(0, min(len(self._found) - 1, (self._list.highlighted or 0) + rows))

    def action_scroll_text(self, direction: int) -> None:
        """Scroll the text by a page.

        Args:
            direction: 1 for down, -1 for up.
        """
        if direction > 0:
            self._text.scroll_page_down(animate=False)
        else:
            self._text.scroll_page_up(animate=False)


def _sections_of(page: GuidePage) -> Iterable[GuideSection]:
    """Yield a page, then each of its sections."""
    headings = list(_HEADING.finditer(page.text))
    ends = [*(heading.start() for heading in headings), len(page.text)]
    yield GuideSection(page.name, "", page.text, page.text[: ends[0]].casefold())
    for heading, end in zip(headings, ends[1:], strict=True):
        text = page.text[heading.start() : end]
        yield GuideSection(page.name, heading[1], text, f"{page.title}\n{text}".casefold())


def _option(section: GuideSection) -> Option:
    return Option(Content(f"  {section.title}") if section.heading else Content.styled(section.title, "bold"))
