"""Tree of calls of a running script. Independent of Textual."""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import Final

from pegboard.models import CallEvent, Finished, Log, Progress, Started, ToolCall, ToolResult
from pegboard.results.log import LogLine, LogLines

_LOG_LINES: Final = 100
"""Limit of log lines per call; the result dialog shows all of them."""
_HELD_BYTES: Final = 5_000
"""Largest result kept in memory, in bytes; larger ones are read from the history on demand."""


class CallNode:
    """Node of the tree: a call, or the script itself.

    Args:
        call: The call.
        within: The calling node; None for the script.
    """

    def __init__(self, call: ToolCall, within: CallNode | None = None) -> None:
        self.call = call
        self.within = within
        self.depth: int = 0 if within is None else within.depth + 1
        self.is_over = False
        self.result: ToolResult | None = None
        """Result, without its data if that is large."""
        self.is_whole = True
        """Whether the result includes its data."""
        self.since = monotonic()
        self.is_beside = False
        """Whether it started while another call of the same node was running."""
        self.progress: Progress | None = None
        self.log: deque[LogLine] = deque(maxlen=_LOG_LINES)
        self.log_count = 0
        self.open = 0
        """Number of its unfinished calls."""
        self._lines: LogLines | None = None

    @property
    def seconds(self) -> float:
        """Elapsed time in seconds."""
        return monotonic() - self.since

    @property
    def was_stopped(self) -> bool:
        """Whether the call was cancelled or rejected."""
        return self.result is not None and self.result.was_stopped

    @property
    def has_failed(self) -> bool:
        """Whether a tool was called and failed; false for the script itself."""
        return self.within is not None and self.result is not None and not self.result.ok and not self.was_stopped

    def add_log(self, log: Log) -> None:
        """Add output to the log."""
        self._lines = self._lines or LogLines()
        lines = self._lines.feed(log.stream, log.text)
        self.log += lines
        self.log_count += len(lines)

    def finish(self, call: ToolCall, result: ToolResult) -> None:
        """Set the result."""
        if self.within is not None and not self.is_over:
            self.within.open -= 1
        self.call, self.is_over, self.progress = call, True, None
        self.is_whole = self.within is None or result.meta.size <= _HELD_BYTES
        self.result = result if self.is_whole else result.model_copy(update={"data": None})
        begun = self._lines.begun() if self._lines is not None else []
        self.log += begun
        self.log_count += len(begun)
        self._lines = None


class ScriptRun:
    """One run of a script.

    Args:
        call: The call of the script itself.
    """

    def __init__(self, call: ToolCall) -> None:
        self.script = CallNode(call)
        self.rows: list[CallNode] = [self.script]
        """All nodes in display order: each after its calling node, siblings by start."""
        self.failed = 0
        """Number of failed calls, without cancelled and rejected ones."""
        self._nodes = {call.id: self.script}

    @property
    def is_over(self) -> bool:
        """Whether the script is finished."""
        return self.script.is_over

    @property
    def calls(self) -> int:
        """Number of calls so far."""
        return len(self.rows) - 1

    def feed(self, event: CallEvent) -> None:
        """Apply an event."""
        match event:
            case Started(call=call):
                node = self._node(call)
                node.call, node.since = call, monotonic()
            case Finished(call=call, result=result):
                node = self._node(call)
                if node is self.script:
                    self._finish_remaining()
                node.finish(call, result)
                self.failed += node.has_failed
            case Log(call_id=call_id) if call_id != self.script.call.id and call_id in self._nodes:
                self._nodes[call_id].add_log(event)
            case Progress(call_id=call_id) if call_id in self._nodes:
                self._nodes[call_id].progress = event
            case _:
                pass

    def _finish_remaining(self) -> None:
        """Finish calls that are still running when the script ends, since no event reports their end."""
        gone = ToolResult.failed("execution_error", "Cancelled because the script ended.", "cancelled")
        for node in self.rows[1:]:
            if not node.is_over:
                node.finish(node.call, gone)

    def _node(self, call: ToolCall) -> CallNode:
        """Return the node of a call; insert a new one for an unknown call."""
        known = self._nodes.get(call.id)
        if known is not None:
            return known
        within = self._nodes.get(call.parent or "", self.script)
        node = self._nodes[call.id] = CallNode(call, within)
        node.is_beside = within.open > 0
        within.open += 1
        self.rows.insert(self._end_of(within), node)
        return node

    def _end_of(self, node: CallNode) -> int:
        """Return the row index after a node's last descendant."""
        if node is self.script:
            return len(self.rows)
        # search from the end: a node that still makes calls usually started recently
        at = next(index for index in range(len(self.rows) - 1, -1, -1) if self.rows[index] is node) + 1
        while at < len(self.rows) and self.rows[at].depth > node.depth:
            at += 1
        return at
