"""The pane that follows a call from its start to its result."""

from __future__ import annotations

import asyncio
import tempfile
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import ClassVar, Literal, Protocol, Self, runtime_checkable

from pydantic import JsonValue
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import BindingType
from textual.containers import Container
from textual.content import Content
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from pegboard.models import ApprovalRequested, CallEvent, Finished, Log, Progress, Started, ToolCall, ToolResult
from pegboard.results.clean import clean, clean_line
from pegboard.results.export import paged, paged_text, save, suggested_name
from pegboard.results.log import LogLine, LogLines
from pegboard.results.paths import Path as JsonPath
from pegboard.results.paths import jq_path
from pegboard.results.quotation import quoted
from pegboard.results.sizes import duration, size
from pegboard.results.table import Table
from pegboard.results.text import as_text, json_parts
from pegboard.results.views import View, views
from pegboard.tui.commands import Command, bindings, key_of
from pegboard.tui.messages import TalkAbout
from pegboard.tui.result.error import ErrorView
from pegboard.tui.result.pager import open_in_pager, pager_command
from pegboard.tui.result.search import Search, Searchable
from pegboard.tui.result.status import ProgressLine, Prompt, StatusLine, ViewBar, outcome
from pegboard.tui.result.table import TableView
from pegboard.tui.result.text import TextView
from pegboard.tui.result.tree import TreeView
from pegboard.tui.widgets.clipboard import copy
from pegboard.tui.widgets.line_view import Span

State = Literal["empty", "waiting", "running", "finished"]
"""Nothing yet; asked for; the tool runs; there is a result."""
Shown = View | Literal["error", "log"]
"""A view of the pane: of the value, of the error, of what the tool printed."""

LOG_LINES = 5_000
"""Lines of a log that are kept; the oldest go."""
_TICK = 0.1
_SIGNS = {"stdout": "  ", "stderr": "! ", "log": "· "}


@runtime_checkable
class Pointing(Protocol):
    """A view whose cursor is at a value."""

    @property
    def path(self) -> JsonPath:
        """The path of that value."""
        ...

    @property
    def here(self) -> JsonValue:
        """That value, whole."""
        ...


class ResultPane(Widget):
    """Shows the state of one call: nothing, waiting, running with its log, and its result in every view that fits.

    Its screen feeds it with the events of the call. It asks for nothing and knows no other pane.

    Args:
        folder: Where a file goes when nothing else takes a copy.
        run_key: The key that runs a tool, as the user is told of it.
        cancel_key: The key that cancels a call, as the user is told of it.
    """

    PAGE = "Result"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("result.next_view", "v", "view(1)", "Next view", "Show the result in the next view.", footer=True),
        Command("result.previous_view", "V", "view(-1)", "Previous view", "Show the result in the view before."),
        Command("result.search", "slash", "search", "Search", "Search the result as you type.", footer=True),
        Command("result.next_match", "n", "match(1)", "Next match", "Go to the next place that was found."),
        Command("result.previous_match", "N", "match(-1)", "Previous match", "Go to the place found before."),
        Command("result.copy", "c", "copy", "Copy", "Copy the value at the cursor, or the whole text.", footer=True),
        Command("result.copy_path", "p", "copy_path", "Copy path", "Copy the path of the value, as jq takes it."),
        Command("result.copy_all", "C", "copy_all", "Copy all", "Copy the whole result as it is shown."),
        Command("result.save", "s", "save", "Save", "Save the whole result: .json, .txt or, of a table, .csv."),
        Command("result.talk", "a", "talk", "To the chat", "Put the result into the message to the model."),
        Command("result.pager", "f3", "pager", "Pager", "Open the whole result in $PAGER.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    TITLES: ClassVar[dict[Shown, str]] = {
        "error": "Error",
        "tree": "Tree",
        "table": "Table",
        "markdown": "Markdown",
        "text": "Text",
        "log": "Log",
    }
    EMPTY = "Run the tool with {key}; its result comes here."
    DEFAULT_CSS = """
    ResultPane {
        layout: vertical;
        height: 1fr;
        width: 1fr;
        & > .banner {
            height: 1;
            width: 1fr;
            padding: 0 1;
            color: $text-warning;
            text-style: bold;
            text-wrap: nowrap;
            text-overflow: ellipsis;
        }
        & > .body { height: 1fr; width: 1fr; }
        & .empty { height: 1fr; width: 1fr; content-align: center middle; color: $text-muted; }
    }
    """

    state: reactive[State] = reactive[State]("empty")
    """What is known of the call."""
    run_key: reactive[str] = reactive("")
    """The key that runs a tool."""
    cancel_key: reactive[str] = reactive("")
    """The key that cancels a call."""

    def __init__(
        self,
        *,
        folder: Path | None = None,
        run_key: str = "ctrl+r",
        cancel_key: str = "esc",
        name: str | None = None,
        id: str | None = None,  # noqa: A002 - Textual's own name for it
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.set_reactive(ResultPane.run_key, run_key)
        self.set_reactive(ResultPane.cancel_key, cancel_key)
        self._folder = folder or Path(tempfile.gettempdir())
        self._status = StatusLine()
        self._progress = ProgressLine()
        self._banner = Static(classes="banner")
        self._bar = ViewBar()
        self._empty = Static(classes="empty")
        self._body = Container(self._empty, classes="body")
        self._prompt = Prompt()
        self._search = Search(self._paint_note)
        self._call: ToolCall | None = None
        self._result: ToolResult | None = None
        self._since = monotonic()
        self._worker = ""
        self._approval = ""
        self._log = LogLines()
        self._log_unseen: deque[LogLine] = deque(maxlen=LOG_LINES)
        self._log_count = 0
        self._log_view = TextView()
        self._views: dict[Shown, Widget] = {}
        self._offered: tuple[Shown, ...] = ()
        self._shown: Shown | None = None
        self._preferred: tuple[str, Shown] | None = None
        self._left_over: list[Widget] = []
        self._clock: Timer | None = None

    # What a screen does with it.

    @property
    def call(self) -> ToolCall | None:
        """The call it shows."""
        return self._call

    @property
    def result(self) -> ToolResult | None:
        """Its result, once there is one."""
        return self._result

    @property
    def running(self) -> bool:
        """Whether the call is waiting or running."""
        return self.state in {"waiting", "running"}

    def start(self, call: ToolCall) -> None:
        """Begins to follow a call that has been asked for."""
        self._reset(call)
        self.state = "waiting"
        self._offer(("log",))

    def feed(self, event: CallEvent) -> None:
        """Takes an event; one of another call than the one it follows is left alone."""
        match event:
            case ApprovalRequested(call=call, reason=reason) if self._follows(call.id):
                self._approval = clean_line(reason) or "needs approval"
            case Started(call=call, worker=worker) if self._follows(call.id):
                self._call = call
                self._worker = clean_line(worker or "")
                self._since = monotonic()
                self.state = "running"
            case Log(call_id=call_id, stream=stream, text=text) if self._follows(call_id):
                lines = self._log.feed(stream, text)
                self._log_unseen += lines
                self._log_count += len(lines)
            case Progress(call_id=call_id) if self._follows(call_id):
                self._progress.progress = event
                self._progress.display = True
            case Finished(call=call, result=result) if self._follows(call.id):
                self._finish(call, result)
            case _:
                pass

    def show(self, call: ToolCall, result: ToolResult) -> None:
        """Shows a call that is over."""
        self._reset(call)
        self._finish(call, result)

    def clear(self) -> None:
        """Shows nothing."""
        self._reset(None)
        self.state = "empty"
        self._offer(())

    def focus(self, scroll_visible: bool = True) -> Self:
        """Gives the focus to the view that is shown."""
        if self._view is not None:
            self._view.focus(scroll_visible)
        return self

    # Its state.

    def _follows(self, call_id: str) -> bool:
        return self.running and self._call is not None and self._call.id == call_id

    def _reset(self, call: ToolCall | None) -> None:
        self._search.leave()
        self._prompt.display = False
        self._call = call
        self._result = None
        self._since = monotonic()
        self._worker = self._approval = ""
        self._log = LogLines()
        self._log_unseen.clear()
        self._log_count = 0
        self._log_view = TextView(highlight=_log_spans, keep=LOG_LINES, placeholder="No output yet.")
        self._left_over += self._views.values()
        self._views = {}
        self._shown = None
        self._progress.display = False

    def _finish(self, call: ToolCall, result: ToolResult) -> None:
        self._call = call
        self._result = result
        self._progress.display = False
        begun = self._log.begun()
        self._log_unseen += begun
        self._log_count += len(begun)
        self._log = LogLines()
        self.state = "finished"
        self._offer(tuple(self.fitting(result, has_log=self._log_count > 0)))

    def fitting(self, result: ToolResult, *, has_log: bool) -> Iterator[Shown]:
        """Gives the views that fit a result, the best first."""
        if result.error is not None:
            yield "error"
        if result.ok or result.data is not None:
            yield from views(result.data)
        if has_log:
            yield "log"

    def outcome(self, result: ToolResult) -> list[tuple[str, str]]:
        """Gives how the call went, piece by piece, each with its style."""
        return outcome(result)

    def _offer(self, offered: tuple[Shown, ...]) -> None:
        """Shows one of the views that there are: that which the user chose for this tool before, else the first."""
        self._offered = offered
        tool = self._call.name if self._call else ""
        liked = self._preferred[1] if self._preferred and self._preferred[0] == tool else None
        best = liked if liked in offered and "error" not in offered else next(iter(offered), None)
        self._show(best)
        self._paint()
        self.refresh_bindings()

    def _show(self, shown: Shown | None) -> None:
        """Brings a view to the front; it is made when it is first shown."""
        if self._clock is None:
            return
        focused = self.has_focus_within and not self._prompt.display
        self._search.leave()
        self._shown = shown
        if shown is not None and shown not in self._views:
            self._views[shown] = self._made(shown)
            self._body.mount(self._views[shown])
        # The focus first: a view that is hidden or removed while it has the focus takes it along.
        if focused and self._view is not None:
            self._view.display = True
            self.screen.set_focus(self._view)
        for name, view in self._views.items():
            view.display = name == shown
        self._empty.display = shown is None
        for view in self._left_over:
            view.remove()
        self._left_over = []

    def _made(self, shown: Shown) -> Widget:
        if shown == "log" or self._result is None:
            return self._log_view
        data = self._result.data
        match shown:
            case "error" if self._result.error is not None:
                return ErrorView(self._result.error, self._result.meta.traceback)
            case "tree":
                return TreeView(data)
            case "table" if (table := Table.of(data)) is not None:
                return TableView(table)
            case "markdown" if isinstance(data, str):
                from pegboard.tui.result.markdown import MarkdownView

                return MarkdownView(data)
            case _:
                return TextView(clean(as_text(data)), highlight=None if isinstance(data, str) else json_parts)

    # Its parts.

    def compose(self) -> ComposeResult:
        """Yields the lines above, the place of the views, and the prompt."""
        yield self._status
        yield self._progress
        yield self._banner
        yield self._bar
        yield self._body
        yield self._prompt

    def on_mount(self) -> None:
        """Starts the one clock, which runs only while a call does."""
        self._clock = self.set_interval(_TICK, self._tick, pause=not self.running)
        self._progress.display = False
        self._offer(self._offered)

    @property
    def _view(self) -> Widget | None:
        return self._views.get(self._shown) if self._shown else None

    @property
    def _any_view(self) -> object:
        """The same, to be asked what it can do: no type is both a widget and a protocol."""
        return self._view

    def _tick(self) -> None:
        self._paint_status()
        self._paint_log()
        self._paint_bar()

    def _paint(self) -> None:
        self._paint_status()
        self._paint_log()
        self._paint_bar()
        self._paint_banner()
        self._paint_note()
        self._empty.update(Content(self.EMPTY.format(key=self.run_key)))

    def _paint_status(self) -> None:
        self._status.display = self.state != "empty"
        tool = (clean_line(self._call.name) if self._call else "", "dim")
        elapsed = (_elapsed(monotonic() - self._since), "bold")
        hint = (f"{self.cancel_key} cancels", "dim")
        match self.state:
            case "waiting" if self._approval:
                self._status.pieces = [("… waiting", "bold $text-warning"), (self._approval, ""), elapsed, hint, tool]
            case "waiting":
                self._status.pieces = [("… waiting", "bold $text-warning"), elapsed, hint, tool]
            case "running":
                worker = [(self._worker, "dim")] if self._worker else []
                self._status.pieces = [("▶ running", "bold $text-primary"), elapsed, hint, *worker, tool]
            case "finished" if self._result:
                self._status.pieces = [*self.outcome(self._result), tool]
            case _:
                self._status.pieces = []

    def _paint_log(self) -> None:
        begun = self._log.begun()
        if self._log_unseen or begun:
            self._log_view.append([_log_text(line) for line in self._log_unseen], [_log_text(line) for line in begun])
            self._log_unseen.clear()

    def _paint_bar(self) -> None:
        self._bar.display = bool(self._offered)
        self._bar.shown = self._shown or ""
        self._bar.titles = [
            (name, f"{self.TITLES[name]} {self._log_count:,}" if name == "log" else self.TITLES[name])
            for name in self._offered
        ]

    def _paint_banner(self) -> None:
        cut = self._result.meta.truncated if self._result else None
        self._banner.display = cut is not None
        if cut is not None:
            shown = f"Only {size(cut.shown_bytes)} of {size(cut.total_bytes)} are shown"
            keys = f"{self._key('result.pager')} opens and {self._key('result.save')} saves all of it"
            self._banner.update(Content(f"! {shown} · {keys} · {clean_line(cut.file)}"))

    def _paint_note(self) -> None:
        view = self._any_view
        if self._search.note:
            self._bar.note = self._search.note
        else:
            beside = f"{view.beside} · " if isinstance(view, TableView) and view.beside else ""
            self._bar.note = f"{beside}{jq_path(view.path)}" if isinstance(view, Pointing) else ""
        self.refresh_bindings()

    def _key(self, command: str) -> str:
        """The key of a command as it is now, remapped or not."""
        return key_of(self, command)

    def watch_state(self, state: State) -> None:
        """Runs the clock while a call does."""
        del state
        if self._clock is None:
            return
        if self.running:
            self._clock.resume()
        else:
            self._clock.pause()

    def watch_run_key(self) -> None:
        """Names the key anew."""
        self._paint()

    def watch_cancel_key(self) -> None:
        """Names the key anew."""
        self._paint()

    # What its parts tell.

    def on_view_bar_chosen(self, event: ViewBar.Chosen) -> None:
        """Shows the view that was clicked."""
        event.stop()
        for name in self._offered:
            if name == event.name:
                self._choose(name)

    def on_tree_view_cursor_moved(self, event: TreeView.CursorMoved) -> None:
        """Names the place of the cursor."""
        event.stop()
        self._paint_note()

    def on_tree_view_table_chosen(self, event: TreeView.TableChosen) -> None:
        """Shows a list that is in the tree as the table."""
        event.stop()
        if "table" in self._views:
            self._left_over.append(self._views.pop("table"))
        if "table" not in self._offered:
            at = self._offered.index("tree") + 1
            self._offered = (*self._offered[:at], "table", *self._offered[at:])
        self._views["table"] = TableView(event.table)
        self._body.mount(self._views["table"])
        self._show("table")
        self._paint_bar()
        self._paint_note()

    def on_table_view_cursor_moved(self, event: TableView.CursorMoved) -> None:
        """Names the place of the cursor."""
        event.stop()
        self._paint_note()

    def on_table_view_cell_chosen(self, event: TableView.CellChosen) -> None:
        """Shows the cell in the tree."""
        event.stop()
        self._show("tree")
        self._paint_bar()
        tree = self._view
        if isinstance(tree, TreeView):
            tree.call_after_refresh(tree.go, event.path)

    def on_prompt_typed(self, event: Prompt.Typed) -> None:
        """Searches while it is typed."""
        event.stop()
        if event.kind == "search":
            self._search_for(event.text)

    def on_prompt_answered(self, event: Prompt.Answered) -> None:
        """Goes back to the view with what was found, or saves."""
        event.stop()
        self._prompt.display = False
        self.focus()
        if event.kind == "save" and event.text.strip():
            self.run_worker(self._save(event.text.strip()), group="save")

    def on_prompt_closed(self, event: Prompt.Closed) -> None:
        """Goes back to the view as it was."""
        event.stop()
        self._search.leave()
        self.focus()

    # What it can do.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Says which commands make sense now."""
        del parameters
        match action:
            case "view":
                return len(self._offered) > 1
            case "search":
                return self._shown not in {None, "error"}
            case "match":
                return self._search.found
            case "copy":
                return self._shown is not None
            case "copy_path":
                return isinstance(self._any_view, Pointing)
            case "copy_all" | "save" | "pager" | "talk":
                return self._result is not None
            case _:
                return True

    def action_view(self, step: int) -> None:
        """Shows the next view, or the one before."""
        if self._shown in self._offered:
            self._choose(self._offered[(self._offered.index(self._shown) + step) % len(self._offered)])

    def action_search(self) -> None:
        """Asks what to search for; a rendered text is searched as text."""
        if self._shown == "markdown":
            self._choose("text")
        self._prompt.ask("search", "Search", self._search.wanted)
        self._search_for(self._search.wanted)

    def action_match(self, step: int) -> None:
        """Goes to another place that was found."""
        self._search.step(step)

    def action_copy(self) -> None:
        """Copies the value at the cursor, or the text of the view."""
        view = self._any_view
        if isinstance(view, Pointing):
            self._copy(as_text(view.here))
        elif self._shown in {"error", "log"}:
            self._copy(self._text_of_view())
        else:
            self.action_copy_all()

    def action_copy_path(self) -> None:
        """Copies the path of the value at the cursor."""
        view = self._any_view
        if isinstance(view, Pointing):
            self._copy(jq_path(view.path))

    def action_copy_all(self) -> None:
        """Copies the whole result as it is shown."""
        if self._result is not None:
            self._copy(as_text(self._result.data) if self._has_data else self._text_of_view())
            if self._result.meta.truncated:
                save = self._key("result.save")
                self.notify(f"That is only what is shown: {save} saves all of it.", severity="warning", markup=False)

    def action_save(self) -> None:
        """Asks where to save the result."""
        if self._call is not None and self._result is not None:
            name = suggested_name(self._call, self._result, datetime.now().astimezone())
            self._prompt.ask("save", "Save as", str(Path.cwd() / name))

    def action_talk(self) -> None:
        """Puts call and result into the message to the model."""
        if self._call is not None and self._result is not None:
            self.post_message(TalkAbout(quoted(self._call, self._result)))

    def action_pager(self) -> None:
        """Opens the view's text, or for a view of the data all of the data, in the pager."""
        if self._result is not None:
            self.run_worker(self._page(self._result), group="pager", exclusive=True)

    @property
    def _has_data(self) -> bool:
        return self._result is not None and (self._result.ok or self._result.data is not None)

    def _choose(self, shown: Shown) -> None:
        if self._call is not None:
            self._preferred = (self._call.name, shown)
        self._show(shown)
        self._paint_bar()
        self._paint_note()

    def _text_of_view(self) -> str:
        view = self._view
        return view.text if isinstance(view, ErrorView | TextView) else ""

    def _search_for(self, wanted: str) -> None:
        view = self._any_view
        if isinstance(view, Searchable):
            self.run_worker(self._search.run(view, wanted), group="search", exclusive=True)

    def _copy(self, text: str) -> None:
        self.run_worker(copy(self.app, text, self._folder), group="copy")

    async def _save(self, name: str) -> None:
        if self._result is None:
            return
        try:
            file = await asyncio.to_thread(Path(name).expanduser)
            written = await asyncio.to_thread(save, self._result, file)
        except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: no such user's home
            self.notify(clean(f"Not saved: {error}"), severity="error", markup=False)
        else:
            self.notify(clean(f"Saved {size(written)} to {file}"), markup=False)

    async def _page(self, result: ToolResult) -> None:
        text = self._text_of_view() if self._shown in {"error", "log"} else None
        folder = Path(tempfile.gettempdir())
        file: Path | None = None
        try:
            file = await asyncio.to_thread(paged, result, folder) if text is None else paged_text(text, folder)
            await open_in_pager(self.app, file)
        except SuspendNotSupported:
            self.notify("This terminal can't be left to a pager.", severity="error")
        except (OSError, ValueError) as error:
            self.notify(clean(f"Could not open {pager_command()[0]}: {error}"), severity="error", markup=False)
        finally:
            if file is not None:
                file.unlink(missing_ok=True)


def _elapsed(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else duration(seconds * 1000)


def _log_text(line: LogLine) -> str:
    return _SIGNS[line.stream] + line.text


def _log_spans(line: str) -> list[Span]:
    return [(0, len(line), "warning")] if line.startswith(_SIGNS["stderr"]) else [(0, len(_SIGNS["log"]), "muted")]
