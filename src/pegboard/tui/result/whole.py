"""The whole of a result: its jq filter, and the file of a result that is too large for the screen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from pegboard.models import ToolResult, Truncation
from pegboard.results.clean import clean_line
from pegboard.results.sizes import size
from pegboard.results.stored.client import StoredResultError, open_stored, search_whole
from pegboard.tui.commands import key_of
from pegboard.tui.result.jq import JqFilter
from pegboard.tui.result.prompt import ResultPrompt
from pegboard.tui.result.views import ResultViews, ViewName


class WholeResult(Vertical):
    """Lines about the part of a result that is shown; opens, filters and searches the whole.

    Args:
        views: Views of the result.
        prompt: Input line of the jq filter.
        offer: Returns the names of the views that suit a result.
        changed: Called when another result is shown, or its whole has been opened.
    """

    DEFAULT_CSS = """
    WholeResult {
        height: auto;
        width: 1fr;
        & > Static {
            height: 1;
            width: 1fr;
            padding: 0 1;
            text-wrap: nowrap;
            text-overflow: ellipsis;
            display: none;
        }
        & > .banner { color: $text-warning; text-style: bold; &.-whole { color: $text-muted; text-style: none; } }
        & > .filter { color: $text-accent; }
    }
    """

    def __init__(
        self,
        views: ResultViews,
        prompt: ResultPrompt,
        offer: Callable[[ToolResult], tuple[ViewName, ...]],
        changed: Callable[[], None],
    ) -> None:
        super().__init__()
        self.original: ToolResult | None = None
        """The result of the call."""
        self.result: ToolResult | None = None
        """The result that is shown: the original, or a filtered one."""
        self._views, self._prompt = views, prompt
        self._offer, self._changed = offer, changed
        self._file = ""
        self._jq = JqFilter(self, prompt, self._show)
        self._banner = Static(classes="banner")
        self._banner_text = ""
        self._filter = Static(classes="filter")

    def compose(self) -> ComposeResult:
        """Yield the two lines."""
        yield self._banner
        yield self._filter

    @property
    def filter(self) -> str:
        """The jq filter; empty if there is none."""
        return self._jq.text

    def accept_filter(self, text: str) -> bool:
        """Accept a jq filter; see `JqFilter.accept`."""
        return self._jq.accept(text.strip())

    @property
    def cut(self) -> Truncation | None:
        """The file of the shown result, if it is too large."""
        return self.result.meta.truncated if self.result else None

    def reset(self, result: ToolResult | None = None, file: str = "") -> None:
        """Follow another result.

        Args:
            result: The result, or None.
            file: Name of the file that a text is the content of.
        """
        self._jq.reset()
        self.workers.cancel_node(self)
        self.original = self.result = result
        self._file = file

    def open(self) -> None:
        """Open the file of a truncated result in the background, so that all of it can be shown."""
        if self.result is not None and self.cut is not None and self.is_mounted:
            self.run_worker(self._open(self.result, self.cut), group="open", exclusive=True)

    async def _open(self, result: ToolResult, cut: Truncation) -> None:
        try:
            stored = await open_stored(result)
        except StoredResultError:
            return  # the banner says how to reach the rest
        if result is self.result:
            self._views.set_stored(stored, f"{self._key('result.search_whole')} searches all {size(cut.total_bytes)}")
            self._changed()

    def ask_for_filter(self) -> None:
        """Prompt for a jq filter, beginning with the last one; a wrong one is explained again."""
        from pegboard.results.jq_paths import completions, first_filter

        if self.original is None:
            return
        begun = self._jq.failed or self.filter or first_filter(self.original.data)
        self._prompt.ask("jq", "jq", begun, complete=partial(completions, self.original.data))
        if begun not in {self.filter, "."}:
            self.type_filter(begun)

    def type_filter(self, text: str) -> None:
        """Filter the original result."""
        if self.original is not None:
            self._jq.run(self.original, text)

    def remove_filter(self) -> None:
        """Show the original result."""
        self._jq.reset()
        self._show(None)

    def _show(self, filtered: ToolResult | None) -> None:
        shown = filtered or self.original
        if shown is not None and self.original is not None and shown is not self.result:
            self.result = shown
            is_parsed = isinstance(self.original.data, str) and not isinstance(shown.data, str)
            is_filtered = filtered is not None
            file = "" if is_filtered else self._file
            self._views.replace(self._offer(shown), shown, file, is_parsed=is_parsed, is_filtered=is_filtered)
            self.open()
        self._changed()

    def search(self) -> None:
        """Search the whole of a truncated result."""
        if self.result is not None and self.cut is not None:
            self.run_worker(self._search(self.result, self.cut), group="search", exclusive=True)

    async def _search(self, result: ToolResult, cut: Truncation) -> None:
        where, wanted = f"all {size(cut.total_bytes)}", self._views.search.wanted
        self._views.search.announce(f"searching {where}…")
        try:
            hits = await search_whole(result, wanted)
        except StoredResultError as error:
            self._views.search.announce(clean_line(str(error)))
            return
        if result is self.result:
            self._views.show_whole_hits(wanted, hits, where)

    def update(self) -> None:
        """Update the lines."""
        cut = self.cut
        self._banner.display = cut is not None
        if cut is not None:
            shown = f"! Only {size(cut.shown_bytes)} of {size(cut.total_bytes)} shown"
            part = self._views.view_of_part
            is_whole = self._views.is_whole and not part
            if is_whole:
                shown = f"{size(cut.total_bytes)}, read from the file as you scroll"
            elif part:
                other = "tree" if "tree" in self._views.offered else "text"
                shown = f"{shown} as {part}, all as {other} ({self._key('result.next_view')})"
            keys = f"{self._key('result.pager')} opens, {self._key('result.save')} saves all"
            self._banner.set_class(is_whole, "-whole")
            line = f"{shown} · {keys} · {clean_line(cut.file)}"
            if line != self._banner_text:  # each update is a layout
                self._banner_text = line
                self._banner.update(Content(line))
        self._filter.display = bool(self._jq.note) and not self._prompt.display
        if self._filter.display:
            keys = f"{self._key('result.whole')} shows all · {self._key('result.jq')} edits"
            self._filter.update(Content(f"jq: {self._jq.note} · {keys} · {clean_line(self._jq.text)}"))

    def _key(self, command: str) -> str:
        return key_of(self.parent, command) if self.parent is not None else ""
