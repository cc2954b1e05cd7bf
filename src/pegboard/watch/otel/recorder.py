"""The record of other agents' spans, written to the history on a thread of its own."""

from __future__ import annotations

import queue
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeVar

from pegboard.history import History
from pegboard.models import ToolCall, ToolResult
from pegboard.watch.history_problems import HistoryProblems
from pegboard.watch.otel.conventions import (
    call_of,
    calls_same_tool,
    conversation_of,
    id_of,
    is_request,
    kind_of,
    session_of,
    tool_of,
    turn_of,
)
from pegboard.watch.otel.spans import TelemetrySpan

if TYPE_CHECKING:
    from pegboard.runtime.redaction import SecretRedaction

MOST_WAITING: Final = 1_000
"""Requests in the queue beyond which the sender must try again."""
MOST_IN_SESSION: Final = 10_000
"""Spans of a session beyond which they are no longer recorded."""
_MOST_TRACES: Final = 10_000
_MOST_KNOWN: Final = 100_000
_MOST_TURNS: Final = 100
"""Turns of a session that calls are linked to; agents send a call soon after its turn."""
_REPORT_SECONDS: Final = 60.0
_HOLD_SECONDS: Final = 10.0
"""Seconds to wait for the span that contains an MCP request; exporters send every 5 seconds."""
_MOST_HELD: Final = 1_000
_LONGEST_TOOL: Final = 200


_Value = TypeVar("_Value")


@dataclass(frozen=True)
class _Request:
    """An MCP request that waits for the span that contains it."""

    tool: str
    record: tuple[ToolCall, ToolResult, datetime]
    until: float


class SpanRecorder:
    """Recorder of spans. Secrets are removed before anything is written.

    Args:
        history: The history.
        redaction: The known secrets.
        on_message: Called, on another thread, with texts for the user.
    """

    def __init__(self, history: History, redaction: SecretRedaction, on_message: Callable[[str], None]) -> None:
        self._history = history
        self._redaction = redaction
        self._on_message = on_message
        self._queue: queue.Queue[tuple[Sequence[TelemetrySpan], Callable[[], object]] | None] = queue.Queue(
            MOST_WAITING
        )
        self._conversations: OrderedDict[str, str] = OrderedDict()
        """Conversations by trace: only some spans of a trace name theirs. A trace without one is its own."""
        self._known: OrderedDict[str, None] = OrderedDict()
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._turns: OrderedDict[str, deque[tuple[int, str]]] = OrderedDict()
        """Start and id of the latest turns by session."""
        self._tools: OrderedDict[str, str] = OrderedDict()
        """Tools of calls by trace and span."""
        self._requests: OrderedDict[str, _Request] = OrderedDict()
        """MCP requests that wait for the span that contains them, by trace and that span."""
        self._ignored = self._beyond = 0
        self._reported = time.monotonic()
        self._problems = HistoryProblems(history, on_message)
        self._thread = threading.Thread(target=self._run, name="pegboard-otel", daemon=True)
        self._thread.start()

    def offer(self, spans: Sequence[TelemetrySpan], on_written: Callable[[], object]) -> bool:
        """Queue spans; return False if the queue is full.

        Args:
            spans: The spans of a request.
            on_written: Called, on another thread, when they no longer take memory.
        """
        try:
            self._queue.put_nowait((spans, on_written))
        except queue.Full:
            return False
        return True

    def close(self) -> None:
        """Write the queue and report the ignored spans; return when it is written or can't be written."""
        self._queue.put(None)
        self._thread.join()
        self._problems.write_rest()
        self._report()
        self._history.close()

    def _run(self) -> None:
        while True:
            try:
                waiting = self._queue.get(timeout=1.0 if self._requests else _REPORT_SECONDS)
            except queue.Empty:
                self._release()
                self._history.flush()
            else:
                if waiting is None:
                    self._release(every=True)
                    return
                spans, on_written = waiting
                self._record(spans)
                on_written()
            if time.monotonic() - self._reported >= _REPORT_SECONDS:
                self._report()

    def _record(self, spans: Sequence[TelemetrySpan]) -> None:
        self._redaction.renew_now()
        for span in spans:
            conversation, kind = conversation_of(span), kind_of(span)
            # The span of an agent arrives after those in it, some of which may already be recorded without its name.
            if conversation and (kind in ("call", "turn") or self._conversations.get(span.trace) != span.trace):
                _keep(self._conversations, span.trace, conversation, _MOST_TRACES)
            if kind == "call":
                _keep(self._tools, span.trace + span.id, tool_of(span)[:_LONGEST_TOOL], _MOST_KNOWN)
        for span in sorted(spans, key=lambda span: span.start):  # a turn before its calls
            try:
                self._record_span(span)
            except (ValueError, TypeError, OverflowError, RecursionError) as error:
                self._problems.report(
                    f"a span was not recorded because its content can't be stored: {type(error).__name__}."
                )
        self._release()
        self._history.flush()

    def _record_span(self, span: TelemetrySpan) -> None:
        kind = kind_of(span)
        if kind is None:
            self._ignored += 1
            return
        key = id_of(span)
        if kind == "agent" or key in self._known or self._is_recorded_by_parent(span):
            return
        identity = conversation_of(span) or self._conversations.get(span.trace, span.trace)
        if identity == span.trace:
            _keep(self._conversations, span.trace, identity, _MOST_TRACES)
        session = session_of(self._redaction.text(identity))
        count = self._counts.get(session, 0) + 1
        if count > MOST_IN_SESSION:
            self._beyond += 1
            return
        if kind == "call":
            call, result, at = call_of(span, session, self._redaction)
            call = call.model_copy(update={"turn": self._turn_of(span, session)})
            if not self._hold(span, call, result, at):
                self._history.record(call, result, at)
        else:
            self._history.record(*turn_of(span, session, self._redaction))
            turns = self._turns.get(session) or deque(maxlen=_MOST_TURNS)
            turns.append((span.start, key))
            _keep(self._turns, session, turns, _MOST_TRACES)
        _keep(self._known, key, None, _MOST_KNOWN)
        _keep(self._counts, session, count, _MOST_TRACES)

    def _is_recorded_by_parent(self, span: TelemetrySpan) -> bool:
        tool = self._tools.get(span.trace + span.parent)
        return tool is not None and is_request(span) and calls_same_tool(tool_of(span), tool)

    def _hold(self, span: TelemetrySpan, call: ToolCall, result: ToolResult, at: datetime) -> bool:
        """Hold an MCP request until the span of the call that contains it arrives; agents send that later."""
        request = self._requests.pop(span.trace + span.id, None)
        if request is not None and not calls_same_tool(request.tool, tool_of(span)):
            self._history.record(*request.record)
        has_content = call.args or result.data is not None  # It would take memory, and is missing from such spans.
        if not span.parent or has_content or not is_request(span):
            return False
        until = time.monotonic() + _HOLD_SECONDS
        held = _Request(tool_of(span)[:_LONGEST_TOOL], (call, result, at), until)
        other = self._requests.pop(span.trace + span.parent, None)
        if other is not None:
            self._history.record(*other.record)
        self._requests[span.trace + span.parent] = held
        return True

    def _release(self, *, every: bool = False) -> None:
        """Record the requests that waited long enough, or all of them."""
        now = time.monotonic()
        while self._requests:
            key = next(iter(self._requests))
            if not (every or self._requests[key].until <= now or len(self._requests) > _MOST_HELD):
                return
            self._history.record(*self._requests.pop(key).record)

    def _turn_of(self, span: TelemetrySpan, session: str) -> str | None:
        """Return the last turn of the session that started before a call: spans don't name the turn of a call."""
        return next((turn for start, turn in reversed(self._turns.get(session, ())) if start <= span.start), None)

    def _report(self) -> None:
        """Report the spans that were ignored since the last report."""
        self._reported = time.monotonic()
        if self._ignored:
            spans = "1 span was" if self._ignored == 1 else f"{self._ignored:,} spans were"
            self._on_message(f"{spans} ignored: neither a tool call, a model turn nor an agent.")
        if self._beyond:
            spans = "1 span was" if self._beyond == 1 else f"{self._beyond:,} spans were"
            self._on_message(f"{spans} not recorded because a session has at most {MOST_IN_SESSION:,}.")
        self._ignored = self._beyond = 0


def _keep(kept: OrderedDict[str, _Value], key: str, value: _Value, most: int) -> None:
    """Store a value; forget the oldest ones."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
