"""The views of one result: which ones exist, which one is visible, and the search in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

from pydantic import JsonValue
from textual import work
from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from pegboard.models import ToolResult
from pegboard.results.clean import clean
from pegboard.results.paths import JsonPath, jq_path, value_at
from pegboard.results.text import as_text, json_parts
from pegboard.tui import result as result_views
from pegboard.tui.result.search import Search, Searchable
from pegboard.tui.result.text import TextView

if TYPE_CHECKING:
    from pegboard.results.stored.client import WholeHits
    from pegboard.results.stored.values import StoredText
    from pegboard.results.table import Table
    from pegboard.results.views import View
    from pegboard.tui.result.segments import SegmentView
    from pegboard.tui.result.table import Arrangement, TableView
    from pegboard.tui.result.tree import TreeView

_MOST_COLORED = 300_000
"""Length up to which code is colored."""

_V = TypeVar("_V", bound=Widget)
ViewName: TypeAlias = "View | Literal['error', 'log']"
"""Name of a view: of the value, the error or the log."""

TITLES: Final[Mapping[ViewName, str]] = {
    "error": "Error",
    "image": "Image",
    "output": "Output",
    "tree": "Tree",
    "table": "Table",
    "markdown": "Markdown",
    "text": "Text",
    "chart": "Chart",
    "log": "Log",
}


@runtime_checkable
class CursorView(Protocol):
    """View with a cursor on a value."""

    @property
    def path(self) -> JsonPath:
        """Path of the value at the cursor."""
        ...

    @property
    def here(self) -> JsonValue:
        """The complete value at the cursor."""
        ...


class ResultViews(Container):
    """Container of the views of one call, created when first shown.

    Args:
        changed: Called when another view is shown, or when `note` has changed.
    """

    DEFAULT_CSS = """
    ResultViews {
        height: 1fr;
        width: 1fr;
        & > .empty { height: 1fr; width: 1fr; content-align: center middle; color: $text-muted; }
    }
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        super().__init__()
        self._changed = changed
        self.search = Search(changed)
        """Search in the visible view."""
        self.offered: tuple[ViewName, ...] = ()
        """Names of the views of the current call."""
        self.shown: ViewName | None = None
        """Name of the visible view."""
        self._tool = ""
        self._result: ToolResult | None = None
        self._log = TextView()
        self._views: dict[ViewName, Widget] = {}
        self._outdated: list[tuple[ViewName, Widget]] = []
        self._preferred: tuple[str, ViewName] | None = None
        self._empty = Static(classes="empty")
        self._is_ready = False
        self._stored: JsonValue | StoredText = None
        self._file = ""
        self._table_of_part: TableView | None = None
        """A table that can't show the whole of a large result, because not all items of its list are objects."""
        self._unresumed = ""
        """Text of a search that the visible view doesn't support, but another one may."""
        self._unfiltered: ViewName | None = None
        """The view that was shown before a filter, because a filtered result may not have it."""

    def compose(self) -> ComposeResult:
        """Yield the text that is shown without a call."""
        yield self._empty

    def on_mount(self) -> None:
        """Show the view that was chosen before the container was mounted."""
        self._is_ready = True
        self.show(self._best())

    @property
    def current(self) -> Widget | None:
        """The visible view."""
        return self._views.get(self.shown) if self.shown else None

    @property
    def capable(self) -> object:
        """The visible view, typed so that it can be checked against a protocol."""
        return self.current

    @property
    def text(self) -> str:
        """Text of the visible view; empty for views of data."""
        view = self.current
        if view is None:
            return ""
        return view.text if isinstance(view, result_views.ErrorView | TextView) else ""

    @property
    def note(self) -> str:
        """Result of the search, or the path at the cursor."""
        if self.search.note:
            return self.search.note
        view = self.capable
        if view is None:
            return ""
        if isinstance(view, result_views.SegmentView):
            return view.note
        beside = f"{view.beside} · " if isinstance(view, result_views.TableView) and view.beside else ""
        return f"{beside}{jq_path(view.path)}" if isinstance(view, CursorView) else ""

    @property
    def leaves_out(self) -> bool:
        """Whether the note starts with what filters or hides rows or columns."""
        if self.shown != "table" or self.search.note:  # before the import that the table needs
            return False
        view = self.capable
        return isinstance(view, result_views.TableView) and view.is_part

    @property
    def row_filter(self) -> str:
        """Text that filters the rows of the visible table; empty if there is none."""
        if self.shown != "table":
            return ""
        view = self.capable
        return view.wanted if isinstance(view, result_views.TableView) else ""

    def reset(self, tool: str, log: TextView, file: str = "") -> None:
        """Drop the views of the previous call.

        Args:
            tool: Name of the tool of the new call; empty if there is none.
            log: The log view of the new call.
            file: Name of the file that a text is the content of, for its colors.
        """
        self.search.leave()
        self.search.rest = ""
        self._tool, self._file = tool, file
        self._result = self._stored = self._unfiltered = None
        self._unresumed = ""
        self._log = log
        self._outdated += self._views.items()
        self._views = {}
        self.shown = None

    def offer(self, offered: tuple[ViewName, ...], result: ToolResult | None) -> None:
        """Set the views, and show the one last chosen for this tool, or the first.

        Args:
            offered: Names of the views, best first.
            result: The result, once the call has finished.
        """
        self._result = result
        self.offered = offered
        self.show(self._best())

    def replace(
        self, offered: tuple[ViewName, ...], result: ToolResult, file: str, *, is_parsed: bool, is_filtered: bool
    ) -> None:
        """Show another result of the same call, such as a filtered one, in the current view if it suits.

        Args:
            offered: Names of the views, best first.
            result: The result.
            file: As for `reset`.
            is_parsed: Whether it is the value of a text, which has better views than that of the text.
            is_filtered: Whether the log, which isn't filtered, can't show it.
        """
        shown = self._unfiltered = self._unfiltered or self.shown
        self._drop_views({"log"})
        self._result, self._stored, self._file = result, None, file
        self.search.rest = ""
        self.offered = offered
        best = shown if shown in offered and shown != "error" and not is_parsed else self._best()
        self.show(offered[0] if best == "log" and is_filtered else best)

    def set_stored(self, stored: JsonValue | StoredText, size: str) -> None:
        """Show the whole of a truncated result, which is read from its file on demand.

        Args:
            stored: The whole value.
            size: Size of the whole result, for display.
        """
        self._stored = stored
        from pegboard.results.stored.values import StoredText

        outdated: set[ViewName] = {"text"} if isinstance(stored, StoredText) else {"tree", "table"}
        old = self.capable if self.shown in outdated else None
        at = old.path if isinstance(old, CursorView) else None
        self._drop_views(set(self._views) - outdated)
        self.search.rest = size
        note = self.search.wanted if self.search.note else ""
        self.show(self.shown)
        view = self.capable
        if isinstance(view, result_views.TreeView) and at:
            view.call_after_refresh(self._go_to, self._result, at)
        elif isinstance(view, result_views.TableView) and isinstance(old, result_views.TableView):
            view.adopt(old)
        if note:
            self.search_for(note)

    @property
    def is_whole(self) -> bool:
        """Whether the whole of a truncated result can be shown."""
        return self._stored is not None

    @property
    def view_of_part(self) -> str:
        """Name of the visible view if it shows only the beginning of the result, although other views show all."""
        if self._stored is None or self.shown in {None, "error", "log", "image"}:
            return ""
        view = self.current
        is_whole = (
            isinstance(view, result_views.SegmentView | result_views.TreeView | result_views.TableView)
            and view is not self._table_of_part
        )
        return "" if is_whole else str(self.shown)

    def show_whole_hits(self, wanted: str, hits: WholeHits, where: str) -> None:
        """Show the matches in a whole result."""
        view = self.capable
        if hits.ranges and isinstance(view, result_views.SegmentView):
            self.search.show_hits(
                result_views.WholeTextHits(view), wanted, list(hits.ranges), where, is_cut=hits.is_cut
            )
        elif isinstance(view, result_views.TableView):
            where = f"{view.searched_part} of {where}" if view.searched_part else where
            self.search.show_hits(view, wanted, view.cells_of(hits.paths), where, is_cut=hits.is_cut)
        else:
            if self.shown != "tree" and "tree" in self.offered:
                self.show("tree")
            if isinstance(self.capable, result_views.TreeView):
                self.search.show_hits(self.capable, wanted, list(hits.paths), where, is_cut=hits.is_cut)
            else:
                self.search.announce(f"no match in {where}: {wanted}")

    def _drop_views(self, kept: set[ViewName]) -> None:
        self.search.leave()
        for name in self._views.keys() - kept:
            self._outdated.append((name, self._views.pop(name)))

    def choose(self, name: ViewName) -> None:
        """Show a view and remember it for the tool; search it for what the view before was searched for."""
        self._unfiltered = None
        if self._tool:
            self._preferred = (self._tool, name)
        wanted = self.search.wanted if self.search.note else self._unresumed
        self.show(name)
        self._unresumed = "" if isinstance(self.capable, Searchable) else wanted
        if wanted:
            self.search_for(wanted)

    def choose_next(self, step: int) -> None:
        """Choose the view `step` titles further, wrapping around at the ends."""
        if self.shown in self.offered:
            self.choose(self.offered[(self.offered.index(self.shown) + step) % len(self.offered)])

    @property
    def can_search(self) -> bool:
        """Whether the visible view can be searched; rendered Markdown and a large text have a search elsewhere."""
        return self.shown in {"markdown", "text"} or isinstance(self.current, Searchable)

    def search_for(self, text: str, *, moves: bool = True) -> None:
        """Search the visible view; see `Search.run`."""
        view = self.capable
        if isinstance(view, Searchable):
            part = view.searched_part if isinstance(view, result_views.TableView) else ""
            self._search(view, text, part, moves=moves)

    @work(exclusive=True, group="search")
    async def _search(self, view: Searchable, text: str, part: str, *, moves: bool) -> None:
        await self.search.run(view, text, part, moves=moves)

    def set_empty_text(self, text: str) -> None:
        """Set the text that is shown without a call."""
        self._empty.update(Content(text))

    def show(self, name: ViewName | None) -> None:
        """Make a view visible, creating it if necessary; None shows the empty text."""
        if not self._is_ready:
            return
        is_focused = self.has_focus_within
        self.search.leave()
        self.shown = name
        if name is not None and name not in self._views:
            self._add(name, self._create(name))
        # Move the focus first: a view that is hidden or removed while it has the focus takes it along.
        if is_focused and self.current is not None:
            self.current.display = True
            self.screen.set_focus(self.current)
        for other, view in self._views.items():
            view.display = other == name
        self._empty.display = name is None
        for _, outdated in self._outdated:
            outdated.remove()
        self._outdated = []
        self._changed()

    def _best(self) -> ViewName | None:
        preferred = self._preferred[1] if self._preferred and self._preferred[0] == self._tool else None
        if preferred in self.offered and "error" not in self.offered:
            return preferred
        return next(iter(self.offered), None)

    def _add(self, name: ViewName, view: Widget) -> None:
        self._views[name] = view
        if not view.is_attached:
            self.mount(view)

    def _take(self, name: ViewName, kind: type[_V]) -> _V | None:
        """Return a view of the previous call for the new one: mounting another one takes many times as long."""
        for outdated in self._outdated:
            view = outdated[1]
            if outdated[0] == name and type(view) is kind and view.is_attached:
                self._outdated.remove(outdated)
                if view.text_selection is not None:
                    self.screen.clear_selection()
                return view
        return None

    def _create(self, name: ViewName) -> Widget:
        if name == "log" or self._result is None:
            return self._log
        from pegboard.results.chart import chart
        from pegboard.results.images import images
        from pegboard.results.printed import printed
        from pegboard.results.stored.values import StoredText
        from pegboard.results.table import Table

        data = self._result.data
        match name:
            case "error" if self._result.error is not None:
                return result_views.ErrorView(self._result.error, self._result.meta.traceback)
            case "tree" if isinstance(self._stored, dict | list):
                return self._create_tree(self._stored, data)
            case "tree":
                return self._create_tree(data, data)
            case "table" if (table := Table.of(data)) is not None:
                return self._create_table(table)
            case "markdown" if isinstance(data, str):
                from pegboard.tui.result.markdown import MarkdownView

                return MarkdownView(data)
            case "output" if (output := printed(data)) is not None:
                return _create_output(*output)
            case "chart" if (found := chart(data)) is not None:
                return result_views.ChartView(found)
            case "image" if found_images := images(data) or images(self._result.meta.beside_data):
                return result_views.ImageView(found_images)
            case _ if isinstance(self._stored, StoredText):
                return result_views.SegmentView(self._stored)
            case _:
                return self._create_text(data)

    def _create_table(self, table: Table) -> TableView:
        from pegboard.results.stored.client import arrange
        from pegboard.results.stored.values import StoredList
        from pegboard.results.table import Table

        rows = value_at(self._stored, table.path)
        if not isinstance(rows, list) or self._result is None:
            return result_views.TableView(table)
        if not isinstance(rows, StoredList):
            return result_views.TableView(Table(rows, table.path, table.beside))
        if not rows.columns:
            self._table_of_part = result_views.TableView(table)
            return self._table_of_part
        result = self._result

        async def arrange_file(table: Table, wished: Arrangement) -> Sequence[int]:
            return await arrange(
                result, table.path, column=wished.column, descending=wished.descending, wanted=wished.wanted
            )

        whole = Table.of_rows(rows, table.path, table.beside)
        return result_views.TableView(whole, arrange=arrange_file, searched=len(table))

    def _create_tree(self, value: JsonValue, searched: JsonValue) -> TreeView:
        if (view := self._take("tree", result_views.TreeView)) is None:
            return result_views.TreeView(value, searched=searched)
        view.replace_value(value, searched=searched)
        return view

    def _create_text(self, data: JsonValue) -> TextView:
        text = clean(as_text(data))
        self.workers.cancel_group(self, "colors")
        if (view := self._take("text", TextView)) is None:
            view = TextView()
        view.highlight = None if isinstance(data, str) else json_parts
        view.replace_text(text)
        if isinstance(data, str) and self._file and len(text) <= _MOST_COLORED:
            self._color(view, text, self._file)
        return view

    @work(exclusive=True, group="colors")
    async def _color(self, view: TextView, text: str, file: str) -> None:
        from pegboard.results.stored.client import StoredResultError, highlighted

        with suppress(StoredResultError):  # the text is readable without colors
            view.set_spans(await highlighted(text, file))

    def on_segment_view_turned(self, event: SegmentView.Turned) -> None:
        """Update the note, and search the other part."""
        event.stop()
        self._content_changed()

    def on_tree_view_cursor_moved(self, event: TreeView.CursorMoved) -> None:
        """Update the note."""
        event.stop()
        self._changed()

    def on_table_view_cursor_moved(self, event: TableView.CursorMoved) -> None:
        """Update the note, and search the rows and columns again if they have changed."""
        event.stop()
        self._content_changed()

    def _content_changed(self) -> None:
        if self.search.is_outdated:
            self.search_for(self.search.wanted, moves=False)
        self._changed()

    def on_tree_view_table_chosen(self, event: TreeView.TableChosen) -> None:
        """Show a list of the tree as a table."""
        event.stop()
        if self.shown != "tree":  # the next call has begun
            return
        if "table" in self._views:
            self._outdated.append(("table", self._views.pop("table")))
        if "table" not in self.offered:
            at = self.offered.index("tree") + 1
            self.offered = (*self.offered[:at], "table", *self.offered[at:])
        self._add("table", result_views.TableView(event.table))
        self.show("table")

    def on_table_view_cell_chosen(self, event: TableView.CellChosen) -> None:
        """Show a cell of the table in the tree."""
        event.stop()
        if self.shown != "table":  # the next call has begun
            return
        self.show("tree")
        self.call_after_refresh(self._go_to, self._result, event.path)

    def _go_to(self, result: ToolResult | None, path: JsonPath) -> None:
        """Move the cursor of the tree, unless another call is shown by now."""
        if self._result is result and isinstance(self.capable, result_views.TreeView):
            with suppress(LookupError):  # a key was meant for the call before
                self.capable.go(path)


def _create_output(lines: Sequence[str], errors: int) -> TextView:
    view = TextView("\n".join(lines))
    view.set_spans([*[()] * errors, *[[(0, len(line), "warning")] for line in lines[errors:]]])
    return view
