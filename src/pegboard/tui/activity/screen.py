"""The Activity page: every call of every process, live and past."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widget import Widget

from pegboard.errors import StoreError, explained
from pegboard.models import UNFINISHED, JsonObject, RecordedCall
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count, size
from pegboard.tui.activity.call_list import LEGEND, CallList, Headings
from pegboard.tui.activity.calls import CallActions
from pegboard.tui.activity.commands import ACTIVITY_COMMANDS
from pegboard.tui.activity.compare import compare
from pegboard.tui.activity.detail import CallDetail, CallDetailPane
from pegboard.tui.activity.feed import MOST_INNER, CallFeed
from pegboard.tui.activity.query_line import QueryLine, count_text, highlighted_words
from pegboard.tui.activity.settle import FirstAndLast
from pegboard.tui.activity.timeline import show_timeline
from pegboard.tui.commands import Command, bindings, key_of, key_or_title
from pegboard.tui.messages import KeepCall, ShowChecks
from pegboard.tui.shell.header import HeaderLine
from pegboard.tui.shell.page import PageScreen
from pegboard.tui.shell.too_small import TooSmall
from pegboard.tui.state.remembered import Remembered
from pegboard.tui.widgets.keys_line import KeysLine

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_SETTLE_SECONDS: Final = 0.1
"""Time after a move in which further moves don't read the result, so that moving through the list stays fast."""
_BESIDE: Final = 140
"""Columns from which the selected call is shown beside the list rather than below it."""
_SHORT: Final = 32
_NEED_CALLS: Final = frozenset({"run_again", "talk", "script", "export", "compare", "pin", "delete"})
"""Actions that apply to selected calls."""
_NEED_LINE: Final = frozenset({"edit", "form", "copy_as", "details", "timeline", "keep", "checks"})
"""Actions that apply to the call at the cursor."""
_NEED_TOOL: Final = frozenset({"run_again", "edit", "form", "copy_as", "script", "keep", "checks"})
"""Actions that apply to calls of a tool, not to the record of a batch."""
_EMPTY: Final = """\
No calls yet.

Every call appears here while it runs and afterwards: from the Tools page ({tools}), chats ({chat}), \
scripts ({script}), the command line (`pegboard tools invoke`) and other programs that use Pegboard."""


class ActivityScreen(PageScreen):
    """List of recorded calls, with the selected one below or beside it.

    Args:
        runtime: Runtime with the history.
        remembered: State that is kept between starts.
    """

    PAGE = "Activity"
    LEGEND = LEGEND
    AUTO_FOCUS = "CallList"

    DEFAULT_CSS = """
    ActivityScreen {
        #body { height: 1fr; layout: vertical; }
        #calls, CallDetailPane {
            width: 1fr;
            height: 1fr;
            border: round $border-blurred;
            border-title-color: $text-muted;
            &:focus-within { border: round $border; border-title-color: $text-primary; border-title-style: bold; }
        }
        &.-beside {
            #body { layout: horizontal; }
            #calls { width: 5fr; }
            CallDetailPane { width: 3fr; }
        }
        &.-narrow #calls, &.-narrow CallDetailPane, &.-short #calls, &.-short CallDetailPane {
            border: none;
            border-top: solid $border-blurred;
            &:focus-within { border: none; border-top: solid $border; }
        }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = ACTIVITY_COMMANDS
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, remembered: Remembered) -> None:
        super().__init__()
        self._runtime = runtime
        self._remembered = remembered
        vim_keys = runtime.settings.ui.vim_keys
        self._list = CallList(self._complete, vim_keys=vim_keys)
        self._query = QueryLine(self._list.filter_hint("calls.filter"))
        self._detail = CallDetailPane(runtime.paths.state)
        self._pane = Vertical(self._query, Headings(), self._list, id="calls")
        self._feed = CallFeed(runtime.activity, self._show, self._list.needed)
        self._actions = CallActions(self, runtime)
        self._generation = self._edits = 0
        self._completions: Sequence[str] = ()
        self._completed_text: str | None = None
        """Filter that `_completions` complete."""
        self._is_completing = False
        """Whether to complete the filter as soon as its completions are known."""
        self._seen = 0
        """Position of the newest call that was visible."""
        self._moves = FirstAndLast(self, _SETTLE_SECONDS, self._settle)

    def compose(self) -> ComposeResult:
        """Yield the list and the selected call."""
        yield HeaderLine("activity")
        with Container(id="body"):
            yield self._pane
            yield self._detail
        yield TooSmall()
        yield KeysLine()

    def on_mount(self) -> None:
        """Start reading."""
        self._list.empty = "Reading the history…"
        self._list.set_reactive(CallList.sought, self._remembered.activity_query)
        self._feed.search(self._remembered.activity_query)
        read: Callable[[], Awaitable[None]] = self._feed.run
        follow: Callable[[], Awaitable[None]] = self._feed.follow
        self.run_worker(read, group="read")
        self.run_worker(follow, group="follow")
        self._detail.announce(None)

    def on_screen_resume(self) -> None:
        """Show what has changed meanwhile."""
        self._feed.pause(is_paused=False)

    def on_screen_suspend(self) -> None:
        """Don't read while another page or a dialog covers the list."""
        self._feed.pause(is_paused=self.app.current_mode != "activity")

    def on_resize(self, event: events.Resize) -> None:
        """Arrange the panes."""
        self.set_class(event.size.width >= _BESIDE, "-beside")
        self.set_class(event.size.height < _SHORT, "-short")
        self.call_after_refresh(self._show_title)

    @property
    def settled(self) -> bool:
        """Whether the calls and the result of the selected one are shown."""
        call = self._list.call
        is_shown = call is None or (self._detail.call is not None and self._detail.call.id == call.id)
        return self._feed.is_idle and not self._moves.is_due and is_shown

    # List

    def _show(self) -> None:
        """Show what the feed has read."""
        if not self.is_attached:
            return
        feed = self._feed
        starts_over = feed.generation != self._generation
        self._generation = feed.generation
        if feed.edits != self._edits:
            self._edits = feed.edits
            self._detail.forget()
            self._settle()
            self.run_worker(self._actions.deselect_deleted(self._list), group="ticked", exclusive=True)
        self._list.empty = self._why_empty()
        words = highlighted_words(feed.parsed.query)
        starts: Literal["first", "last"] = "last" if feed.starts_at_oldest else "first"
        self._list.show(
            feed.rows.listed, words, has_running=bool(feed.rows.running), starts=starts if starts_over else None
        )
        self._list.set_ends(has_newer=feed.rows.newer is not None, has_older=feed.rows.next is not None)
        if starts_over and not feed.starts_at_oldest:
            self._seen = feed.rows.newest
        self._show_query()
        self._show_title()

    def _why_empty(self) -> str:
        if self._feed.problem:
            return self._feed.problem
        if not self._feed.parsed.query.is_empty:
            return f"No call matches. {key_or_title(self._list, 'calls.clear')} clears the filter."
        keys = {name: key_or_title(self.app, f"mode.{name}") for name in ("tools", "chat", "script")}
        return _EMPTY.format(**keys)

    def _show_title(self) -> None:
        if self._list.is_at_top:
            self._seen = self._feed.rows.newest
        parts: list[str | tuple[str, str]] = ["Activity"]
        if self._feed.count is not None and (self._feed.count.calls or not self._feed.parsed.query.is_empty):
            parts.append((f" · {count_text(self._feed.count)}", "not bold"))
        if self._list.ticked:
            parts.append((f" · {len(self._list.ticked):,} selected", "$text-primary bold"))
        if self._feed.problem:
            parts.append((f" · ✖ {self._feed.problem}", "$text-error"))
        new = self._number_of_new()
        if self._feed.rows.newer is not None:
            parts.append((f" · ↑ newer, {key_or_title(self._list, 'calls.first')} to the newest", "not bold"))
        elif new:
            parts.append((f" · ↑ {new:,} new", "$text-warning bold"))
        if self._feed.dropped is not None:
            dropped = self._feed.dropped
            limit = f"{size(dropped.size_limit)} limit" if self._pane.size.width >= 100 else "size limit"
            text = f" · {count(dropped.calls, 'older call')} removed by the {limit}"
            parts.append((text, "not bold"))
        self._pane.border_title = Content.assemble(*parts)

    def _number_of_new(self) -> int:
        """Return the number of calls that are newer than those that the user has seen."""
        new = 0
        for row in self._feed.rows.top:
            if row.position <= self._seen:
                break
            new += 1
        return new

    def _show_query(self) -> None:
        text, parsed = self._list.sought, self._feed.parsed
        is_current = text == self._feed.text
        # A word that is still being typed is not a mistake yet.
        problems = [
            problem
            for problem in (parsed.problems if is_current else ())
            if not (self._list.typing and problem.end >= len(text) and self._completions)
        ]
        number = count_text(self._feed.count) if is_current else "…"
        self._query.show(text, problems, self._completions, number, typing=self._list.typing)

    @on(CallList.Sought)
    def _sought(self, event: CallList.Sought) -> None:
        event.stop()
        self._remembered.activity_query = event.text
        self._completions, self._completed_text, self._is_completing = (), None, False
        self._feed.search(event.text)
        self._show_query()
        self._find_completions()

    @work(exclusive=True, group="complete")
    async def _find_completions(self) -> None:
        """Find what completes the last word of the filter; complete it if that was requested meanwhile."""
        text = self._list.sought
        try:
            found = await asyncio.to_thread(self._runtime.activity.completions, text)
        except StoreError:  # the list shows it
            found = ()
        if text != self._list.sought:
            return
        self._completions, self._completed_text = tuple(clean_line(word) for word in found[:40]), text
        self._show_query()
        if self._is_completing:
            self._complete()

    def _complete(self) -> None:
        """Complete the last word of the filter, as soon as its completions are known."""
        text = self._list.sought
        if text.endswith(" "):
            return
        self._is_completing = text != self._completed_text
        if self._is_completing or not self._completions:
            return
        start = text[: len(text) - len(text.rpartition(" ")[2])]
        completed = self._completions[0]
        self._list.sought = f"{start}{completed}{'' if completed.endswith((':', '*')) else ' '}"

    @on(CallList.Filtered)
    def _filtered(self, event: CallList.Filtered) -> None:
        event.stop()
        if event.typing and self._completed_text != event.query:
            self._find_completions()
        self._show_query()
        self.refresh_bindings()

    @on(CallList.EndNear)
    @on(CallList.StartNear)
    @on(CallList.EndWanted)
    def _load(self, event: CallList.EndNear | CallList.StartNear | CallList.EndWanted) -> None:
        event.stop()
        match event:
            case CallList.EndNear():
                self._feed.load_more()
            case CallList.StartNear():
                self._feed.load_newer()
            case CallList.EndWanted(is_oldest=True):
                self._feed.go_to_oldest()
            case _:
                self._feed.go_to_newest()

    @on(CallList.Scrolled)
    def _scrolled(self, event: CallList.Scrolled) -> None:
        event.stop()
        self._show_title()

    @on(CallList.Ticked)
    def _ticked(self, event: CallList.Ticked) -> None:
        event.stop()
        self._show_title()
        self.refresh_bindings()

    @on(CallList.Folded)
    def _folded(self, event: CallList.Folded) -> None:
        event.stop()
        if not event.is_unfolded:
            self._feed.fold(event.call.id)
            return
        self._feed.unfold(event.call.id)
        if event.call.calls > MOST_INNER:
            last = f"Only the last {MOST_INNER:,} of {event.call.calls:,} calls are listed"
            self.notify(f"{last}. The filter parent:{event.call.id} lists all.", markup=False)

    # The selected call

    @on(CallList.Marked)
    def _marked(self, event: CallList.Marked) -> None:
        event.stop()
        self._detail.announce(event.call)
        self.refresh_bindings()
        self._moves.request()

    def _settle(self) -> None:
        if self._list.call is not None:
            self._read_call(self._list.call.id)

    @work(exclusive=True, group="detail")
    async def _read_call(self, call_id: str) -> None:
        try:
            detail = await asyncio.to_thread(lambda: CallDetail.read(self._runtime.activity, call_id))
        except StoreError as error:
            self.notify(clean_line(explained(error, "The history can't be read")), severity="error", markup=False)
            return
        if detail is not None and self._list.call is not None and self._list.call.id == call_id:
            self._detail.show(detail)

    # Commands

    @property
    def _targets(self) -> Sequence[str]:
        """Ids of the selected calls."""
        if self._list.ticked:
            return [*self._list.ticked]
        return [self._list.call.id] if self._list.call is not None else []

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the commands that have a call to apply to."""
        if action == "delete" and self._list.typing:
            return False
        call = self._list.call
        if action in _NEED_TOOL and call is not None and call.is_batch and not self._list.ticked:
            return False
        if action in _NEED_CALLS:
            return bool(self._targets)
        if action in _NEED_LINE:
            return call is not None
        if action == "cancel":
            return call is not None and call.state in UNFINISHED
        return True

    def _with_call(self, act: Callable[[RecordedCall], Awaitable[object]]) -> None:
        """Act on the call at the cursor."""
        if self._list.call is not None:
            self._with([self._list.call.id], lambda calls: act(calls[-1]))

    @work(group="act")
    async def _with(self, ids: Sequence[str], act: Callable[[Sequence[RecordedCall]], Awaitable[object]]) -> None:
        """Act on calls, the oldest first."""
        calls = await self._actions.find(ids)
        if calls:
            await act(calls)

    @on(CallList.Opened)
    def _opened(self, event: CallList.Opened) -> None:
        event.stop()
        self._with_call(self._actions.open_result)

    def action_details(self) -> None:
        """Show the record of the selected call."""
        self._with_call(self._actions.show_details)

    def action_copy_as(self) -> None:
        """Copy the selected call in one of several formats."""
        self._with_call(self._actions.copy_as)

    def action_keep(self) -> None:
        """Keep the selected call as a check."""
        if self._list.call is not None and self._actions.is_call(self._list.call, "kept as a check"):
            self.post_message(KeepCall(self._list.call.id))

    def action_checks(self) -> None:
        """Show the checks of the selected call's tool."""
        if self._list.call is not None and self._actions.is_call(self._list.call, "checked"):
            self.post_message(ShowChecks(self._list.call.tool))

    def action_form(self) -> None:
        """Open the selected call in the form."""
        self._with_call(self._actions.open_in_form)

    def action_edit(self) -> None:
        """Edit the selected call and run it again."""

        def run(call: RecordedCall, arguments: JsonObject) -> None:
            # A worker of the app, so that the call continues when this screen is left.
            self.app.run_worker(self._actions.run_again([call], arguments), group="calls")

        self._with_call(lambda call: self._actions.edit(call, run))

    def action_run_again(self) -> None:
        """Run the selected calls again."""
        self._run_again(self._targets)

    @work(group="act")
    async def _run_again(self, ids: Sequence[str]) -> None:
        calls = await self._actions.find(ids)
        if calls:
            self.app.run_worker(self._actions.run_again(calls), group="calls")

    def action_cancel(self) -> None:
        """Cancel the selected running call."""
        self._with_call(self._actions.cancel)

    def action_talk(self) -> None:
        """Quote the selected calls in the message to the model."""
        self._with(self._targets, self._actions.add_to_chat)

    def action_script(self) -> None:
        """Open the selected calls as a script."""
        self._with(self._targets, self._actions.make_script)

    def action_export(self) -> None:
        """Export the selected calls."""
        self._with(self._targets, self._actions.export)

    def action_compare(self) -> None:
        """Compare two calls."""
        self._with(self._targets, lambda calls: compare(self, self._runtime, calls))

    def action_timeline(self) -> None:
        """Show the session of the selected call."""
        self._with_call(lambda call: show_timeline(self, self._runtime, self._actions, call))

    def action_pin(self) -> None:
        """Pin or unpin the selected calls."""
        self._with(self._targets, self._actions.pin)

    @work(group="act")
    async def action_delete(self) -> None:
        """Delete the selected calls."""
        ids = self._targets
        self._list.ticked = frozenset()
        await self._actions.delete(ids, key_of(self, "activity.undo"))

    @work(group="act")
    async def action_undo(self) -> None:
        """Restore the calls that were deleted last."""
        await self._actions.undo()

    @work(group="act")
    async def action_redact(self) -> None:
        """Redact a value everywhere."""
        value = await self._actions.redact()
        if value is not None:
            if value in self._list.sought:
                self._list.sought = ""
            self._feed.refresh(everything=True)

    # Panes

    @property
    def has_result_focus(self) -> bool:
        """Whether the focus is in the result."""
        return self._detail.has_focus_within

    def focus_result(self) -> bool:
        """Focus the result of the selected call; return False and say so if it has none."""
        if self._detail.result.result is None:
            self.notify("The selected call has no result to show.")
            return False
        self._detail.result.focus()
        return True

    def focus_work(self) -> None:
        """Focus the list."""
        self._list.focus()

    @property
    def panes(self) -> Sequence[Widget]:
        """Panes that can be maximized."""
        return (self._pane, self._detail)
