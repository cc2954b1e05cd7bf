"""The result pane: follows one call from its start to its result."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import ClassVar, Literal, Self, TypeAlias

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

from pegboard.models import (
    ApprovalRequested,
    CallEvent,
    Finished,
    Log,
    Progress,
    Started,
    ToolCall,
    ToolResult,
)
from pegboard.results.clean import clean_line
from pegboard.results.file_type import code_file
from pegboard.results.links import ResultLink, link_at
from pegboard.results.log import LogLine
from pegboard.results.paths import jq_path
from pegboard.results.stored.values import size_in_file
from pegboard.results.text import as_text
from pegboard.tui import result as result_views
from pegboard.tui.commands import Command, bindings, key_or_title
from pegboard.tui.messages import OpenFile, OpenResource, TalkAbout
from pegboard.tui.result.call_log import CallLog
from pegboard.tui.result.pane_commands import PANE_COMMANDS
from pegboard.tui.result.prompt import ResultPrompt
from pegboard.tui.result.status import ProgressLine, StatusLine, ViewBar, elapsed, outcome
from pegboard.tui.result.views import TITLES, CursorView, ResultViews, ViewName
from pegboard.tui.result.whole import WholeResult
from pegboard.tui.widgets.clipboard import copy

PaneState: TypeAlias = Literal["empty", "waiting", "running", "finished"]
"""State of the call: none yet, requested, running in a worker, finished."""

_TICK = 0.1


class ResultPane(Widget):
    """State of one call: waiting, running with its log, or finished with its result in every suitable view.

    Its screen feeds it the events of the call.

    Args:
        folder: Folder of Pegboard's state: for a copied text if no clipboard is available, and with saved images.
        run_key: Key that runs a tool, for hints.
        cancel_key: Key that cancels a call, for hints.
    """

    PAGE = "Result"
    ACTIONS: ClassVar[tuple[Command, ...]] = PANE_COMMANDS
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    TITLES: ClassVar[Mapping[ViewName, str]] = TITLES
    SHOWS_TOOL: ClassVar[bool] = True
    """Whether the status names the tool."""
    EMPTY = "Press {key} to run the tool. Its result appears here."
    DEFAULT_CSS = """
    ResultPane {
        layout: vertical;
        height: 1fr;
        width: 1fr;
    }
    """

    state: reactive[PaneState] = reactive[PaneState]("empty")
    """State of the call."""
    run_key: reactive[str] = reactive("")
    """Key that runs a tool."""
    cancel_key: reactive[str] = reactive("")
    """Key that cancels a call."""
    hint: reactive[str] = reactive("", init=False)
    """Text instead of `EMPTY`."""

    def __init__(
        self,
        *,
        folder: Path | None = None,
        run_key: str = "ctrl+r",
        cancel_key: str = "esc",
    ) -> None:
        super().__init__()
        self.set_reactive(ResultPane.run_key, run_key)
        self.set_reactive(ResultPane.cancel_key, cancel_key)
        self._folder = folder or Path(tempfile.gettempdir())
        self._status = StatusLine()
        self._progress = ProgressLine()
        self._bar = ViewBar()
        self._views = ResultViews(self._view_changed)
        self._prompt = ResultPrompt()
        self._call: ToolCall | None = None
        self._since = monotonic()
        self._worker = ""
        self._approval = ""
        self.call_log = CallLog()
        self._clock: Timer | None = None
        self._whole = WholeResult(self._views, self._prompt, self._fitting_views, self._update)
        self._unsaved: tuple[ToolResult | None, str] = (None, "")  # result that was not saved, and the file name

    # For the screen

    @property
    def call(self) -> ToolCall | None:
        """The call that is shown."""
        return self._call

    @property
    def result(self) -> ToolResult | None:
        """The whole result of the call, once it has finished."""
        return self._whole.original

    @property
    def running(self) -> bool:
        """Whether the call is waiting or running."""
        return self.state in {"waiting", "running"}

    def start(self, call: ToolCall) -> None:
        """Follow a requested call."""
        self._reset(call)
        self.state = "waiting"
        self._offer(("log",))

    def feed(self, event: CallEvent) -> None:
        """Process an event; events of other calls are ignored."""
        match event:
            case ApprovalRequested(call=call, reason=reason) if self._follows(call.id):
                self._approval = clean_line(reason) or "needs approval"
            case Started(call=call, worker=worker) if self._follows(call.id):
                self._call = call
                self._worker = clean_line(worker or "")
                self._since = monotonic()
                self.state = "running"
            case Log(call_id=call_id, stream=stream, text=text) if self._follows(call_id):
                self.call_log.feed(stream, text)
            case Progress(call_id=call_id) if self._follows(call_id):
                self._progress.progress = event
                self._progress.display = True
            case Finished(call=call, result=result) if self._follows(call.id):
                self._finish(call, result)
            case _:
                pass

    def show(self, call: ToolCall, result: ToolResult, log: Iterable[LogLine] = ()) -> None:
        """Show a finished call, and the lines of its log; without any, the output that its record has."""
        self._reset(call)
        self.call_log.restore(log, result.meta.log)
        self._finish(call, result)

    def clear(self) -> None:
        """Show no call."""
        self._reset(None)
        self.state = "empty"
        self._offer(())

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the visible view."""
        if self._views.current is not None:
            self._views.current.focus(scroll_visible)
        return self

    # For subclasses

    def fitting(self, result: ToolResult, *, has_log: bool) -> Iterator[ViewName]:
        """Yield the views that suit a result, best first."""
        from pegboard.results.views import views

        if result.error is not None:
            yield "error"
        if result.ok or result.data is not None:
            yield from views(result.data, code_file(self._call.args) if self._call else "", result.meta.beside_data)
        if has_log:
            yield "log"

    def outcome(self, result: ToolResult) -> list[tuple[str, str]]:
        """Return the outcome of the call as styled texts for the status line."""
        return outcome(result)

    # State

    def _follows(self, call_id: str) -> bool:
        return self.running and self._call is not None and self._call.id == call_id

    def _reset(self, call: ToolCall | None) -> None:
        self._prompt.display = False
        self._progress.display = False
        self._call = call
        self._whole.reset()
        self._since = monotonic()
        self._worker = self._approval = ""
        self.call_log = CallLog()
        self._views.reset(call.name if call else "", self.call_log.view, code_file(call.args) if call else "")

    def _finish(self, call: ToolCall, result: ToolResult) -> None:
        self._call = call
        self._whole.reset(result, code_file(call.args))
        self._progress.display = False
        self.call_log.finish()
        self.state = "finished"
        self._offer(self._fitting_views(result))
        self._whole.open()

    @property
    def _result(self) -> ToolResult | None:
        """The result that is shown; it may be a filtered one."""
        return self._whole.result

    def _fitting_views(self, result: ToolResult) -> tuple[ViewName, ...]:
        return tuple(self.fitting(result, has_log=self.call_log.count > 0))

    def _offer(self, offered: tuple[ViewName, ...]) -> None:
        self._views.offer(offered, self._result)
        self._update()

    # Widgets

    def compose(self) -> ComposeResult:
        """Yield the lines above the views, the views and the prompt."""
        yield self._status
        yield self._progress
        yield self._whole
        yield self._bar
        yield self._views
        yield self._prompt

    def on_mount(self) -> None:
        """Start the timer, which runs only during a call."""
        self._clock = self.set_interval(_TICK, self._tick, pause=not self.running)
        self._progress.display = False
        self._update()

    def _tick(self) -> None:
        self._update_status()
        if (first := self.call_log.update_view()) is not None:
            self._views.search.extend(self.call_log.view, first)
        self._update_titles()

    def _update(self) -> None:
        self._tick()
        self._view_changed()
        self._views.set_empty_text(self.hint or self.EMPTY.format(key=self.run_key))

    def _update_status(self) -> None:
        self._status.display = self.state != "empty"
        worker = clean_line(self._result.meta.worker or "") if self._result else self._worker
        self._status.tooltip = Content(f"Worker process: {worker}") if worker else None
        tool = [(clean_line(self._call.name), "dim")] if self._call and self.SHOWS_TOOL else []
        time = (elapsed(monotonic() - self._since), "bold")
        hint = (f"{self.cancel_key} cancels", "dim")
        match self.state:
            case "waiting" if self._approval:
                self._status.pieces = [("… waiting", "bold $text-warning"), (self._approval, ""), time, hint, *tool]
            case "waiting":
                self._status.pieces = [("… waiting", "bold $text-warning"), time, hint, *tool]
            case "running":
                self._status.pieces = [("▶ running", "bold $text-primary"), time, hint, *tool]
            case "finished" if self.result:
                self._status.pieces = [*self.outcome(self.result), *tool]
            case _:
                self._status.pieces = []

    def _update_titles(self) -> None:
        self._bar.display = bool(self._views.offered)
        self._bar.shown = self._views.shown or ""
        self._bar.titles = [
            (name, f"{self.TITLES[name]} {self.call_log.count:,}" if name == "log" else self.TITLES[name])
            for name in self._views.offered
        ]

    def _update_bar(self) -> None:
        self._update_titles()
        self._bar.note, self._bar.keeps_start = self._views.note, self._views.leaves_out
        self.refresh_bindings()

    def _view_changed(self) -> None:
        self._whole.update()
        self._update_bar()

    def watch_state(self) -> None:
        """Run the timer only during a call."""
        if self._clock is None:
            return
        if self.running:
            self._clock.resume()
        else:
            self._clock.pause()

    def watch_run_key(self) -> None:
        """Update the hint."""
        self._update()

    watch_hint = watch_cancel_key = watch_run_key

    def on_view_bar_chosen(self, event: ViewBar.Chosen) -> None:
        """Show the clicked view."""
        event.stop()
        for name in self._views.offered:
            if name == event.name:
                self._views.choose(name)

    def on_result_prompt_typed(self, event: ResultPrompt.Typed) -> None:
        """Search or filter as the user types."""
        event.stop()
        match event.kind:
            case "search":
                self._views.search_for(event.text)
            case "jq":
                self._whole.type_filter(event.text)
            case "rows" if isinstance(view := self._views.capable, result_views.TableView):
                view.filter_rows(event.text)

    def on_result_prompt_answered(self, event: ResultPrompt.Answered) -> None:
        """Return to the view with the matches or the filtered result, or save the result. Keep a wrong filter."""
        event.stop()
        if event.kind == "jq" and not self._whole.accept_filter(event.text):
            return
        self._prompt.display = False
        self.focus()
        if event.kind == "save" and event.text.strip() and self._result is not None:
            from pegboard.tui.result.export import save_result

            async def save(result: ToolResult, name: str) -> None:
                is_saved = await save_result(self, result, name, self._folder / "results", self._views.current)
                self._unsaved = (None, "") if is_saved else (result, name)

            self.run_worker(save(self._result, event.text.strip()), group="save")
        self._update()

    def on_result_prompt_closed(self, event: ResultPrompt.Closed) -> None:
        """Return to the view without matches or filter."""
        event.stop()
        self._views.search.leave()
        if event.kind == "jq":
            self._whole.remove_filter()
        elif event.kind == "rows" and isinstance(view := self._views.capable, result_views.TableView):
            view.filter_rows("")
        self._update()
        self.focus()

    # Commands

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the commands that apply to the visible view."""
        del parameters
        match action:
            case "view":
                return len(self._views.offered) > 1
            case "search":
                return self._views.can_search
            case "search_whole":
                return self._views.is_whole and bool(self._views.search.wanted)
            case "jq":
                return self.result is not None and self.result.data is not None
            case "filter_rows":
                return self._views.shown == "table"
            case "whole":
                return bool(self._whole.filter or self._views.row_filter)
            case "match":
                return self._views.search.found
            case "copy":
                return self._views.shown is not None
            case "open":
                return self._link is not None
            case "copy_path":
                return isinstance(self._views.capable, CursorView)
            case "copy_all" | "save" | "pager" | "talk":
                return self._result is not None
            case _:
                return True

    def action_view(self, step: int) -> None:
        """Show the next or previous view."""
        self._views.choose_next(step)

    def action_search(self) -> None:
        """Prompt for a search text; rendered Markdown is searched as plain text."""
        if self._views.shown == "markdown":
            self._views.choose("text")
        wanted = self._views.search.wanted
        self._prompt.ask("search", "Search", wanted)
        self._views.search_for(wanted)

    def action_search_whole(self) -> None:
        """Search the whole of a truncated result."""
        self._whole.search()

    def action_jq(self) -> None:
        """Prompt for a jq filter."""
        self._whole.ask_for_filter()
        self._update()

    def action_filter_rows(self) -> None:
        """Prompt for a filter for the rows of the table."""
        if isinstance(view := self._views.capable, result_views.TableView):
            self._prompt.ask("rows", "Filter rows", view.wanted)

    def action_whole(self) -> None:
        """Remove the filter of the rows, or else the jq filter."""
        if self._views.row_filter and isinstance(view := self._views.capable, result_views.TableView):
            view.filter_rows("")
        else:
            self._whole.remove_filter()

    def action_match(self, step: int) -> None:
        """Go to another match."""
        self._views.search.step(step)

    def action_copy(self) -> None:
        """Copy the value at the cursor, or the text of the view."""
        view = self._views.capable
        if isinstance(view, CursorView) and size_in_file(value := view.here):
            from pegboard.tui.result.export import copy_stored

            self.run_worker(copy_stored(self, value, self._folder), group="copy")
        elif isinstance(view, CursorView):
            self.copy_text(as_text(view.here))
        elif self._views.shown in {"error", "log", "output"}:
            self.copy_text(self._views.text)
        else:
            self.action_copy_all()

    def action_copy_path(self) -> None:
        """Copy the path of the value at the cursor."""
        view = self._views.capable
        if isinstance(view, CursorView):
            self.copy_text(jq_path(view.path))

    def action_copy_all(self) -> None:
        """Copy the whole result as shown."""
        result = self._result
        if result is None:
            return
        view, has_data = self._views.capable, result.ok or result.data is not None
        part = view.part if isinstance(view, result_views.SegmentView) else ""
        self.copy_text(part or (as_text(result.data) if has_data else self._views.text))
        if result.meta.truncated:
            copied = "part that is shown" if part else "beginning"
            message = (
                f"Copied only the {copied}. Press {key_or_title(self, 'result.save')} to save the complete result."
            )
            self.notify(message, severity="warning", markup=False)

    def action_save(self) -> None:
        """Prompt for a file name to save the result; the last one, for correction, if it was not saved."""
        from pegboard.tui.result.export import suggested_path

        if self._call is not None and self._result is not None:
            name = self._unsaved[1] if self._unsaved[0] is self._result else ""
            name = name or suggested_path(self._call, self._result, self._views.capable)
            self._prompt.ask("save", "Save as", name)

    def action_talk(self) -> None:
        """Quote call and result in the message to the model."""
        from pegboard.results.quotation import quoted

        if self._call is not None and self._result is not None:
            self.post_message(TalkAbout(quoted(self._call, self._result)))

    def action_pager(self) -> None:
        """Open the complete data, or the text of the error or log, in the pager."""
        from pegboard.tui.result.export import page_result

        if self._result is not None:
            text = self._views.text if self._views.shown in {"error", "log"} else None
            self.run_worker(page_result(self, self._result, text), group="pager", exclusive=True)

    @property
    def _link(self) -> ResultLink | None:
        """The saved file or the resource at the cursor, or the file of the image that is shown."""
        if self._result is None:
            return None
        view = self._views.capable
        if self._views.shown == "image" and isinstance(view, result_views.ImageView):
            return ResultLink(file=view.image.file) if view.image.file else None
        return link_at(self._result.data, view.path if isinstance(view, CursorView) else ())

    def action_open(self) -> None:
        """Open the saved file or the resource at the cursor."""
        match self._link:
            case ResultLink(file=str(file)):
                self.post_message(OpenFile(file))
            case ResultLink(uri=str(uri)) if self._call is not None:
                self.post_message(OpenResource(self._call.name.partition(".")[0], uri))

    def copy_text(self, text: str) -> None:
        """Copy a text to the clipboard."""
        self.run_worker(copy(self.app, text, self._folder), group="copy")
