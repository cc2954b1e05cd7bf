"""What happens while a script runs, as a tree of calls. Knows nothing of Textual."""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import Final

from pegboard.models import CallEvent, Finished, Log, Progress, Started, ToolCall, ToolResult
from pegboard.results.log import LogLine, LogLines

_LOG_LINES: Final = 100
"""Lines of a call's log that are kept here; the result pane has them all."""
_HELD_BYTES: Final = 5_000
"""Of a result that is held; a larger one is read from the history when it is opened."""


class Node:
    """A call, or the script itself.

    Args:
        call: The call.
        within: What it was made in; None for the script.
    """

    def __init__(self, call: ToolCall, within: Node | None = None) -> None:
        self.call = call
        self.within = within
        self.depth: int = 0 if within is None else within.depth + 1
        self.is_over = False
        self.result: ToolResult | None = None
        """Without its data where that is large."""
        self.is_whole = True
        """Whether the result has its data."""
        self.since = monotonic()
        self.is_beside = False
        """Whether another call of the same one still ran when this one began."""
        self.progress: Progress | None = None
        self.log: deque[LogLine] = deque(maxlen=_LOG_LINES)
        self.log_count = 0
        self.open = 0
        """How many calls in it haven't ended."""
        self._lines: LogLines | None = None

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return monotonic() - self.since

    def heard(self, log: Log) -> None:
        """Takes a piece of what it printed."""
        self._lines = self._lines or LogLines()
        lines = self._lines.feed(log.stream, log.text)
        self.log += lines
        self.log_count += len(lines)

    def finish(self, call: ToolCall, result: ToolResult) -> None:
        """Takes its result."""
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
        call: The script's own call.
    """

    def __init__(self, call: ToolCall) -> None:
        self.script = Node(call)
        self.rows: list[Node] = [self.script]
        """The script and all calls in it, each after what it was made in, in the order in which they began."""
        self.failed = 0
        """How many calls failed."""
        self._nodes = {call.id: self.script}

    @property
    def is_over(self) -> bool:
        """Whether the script has ended."""
        return self.script.is_over

    @property
    def calls(self) -> int:
        """How many calls there were so far."""
        return len(self.rows) - 1

    def feed(self, event: CallEvent) -> None:
        """Takes what happened."""
        match event:
            case Started(call=call):
                node = self._node(call)
                node.call, node.since = call, monotonic()
            case Finished(call=call, result=result):
                node = self._node(call)
                if node is self.script:
                    self._stop_the_rest()
                node.finish(call, result)
                self.failed += not result.ok and node is not self.script
            case Log() if event.owner != self.script.call.id and event.owner in self._nodes:
                self._nodes[event.owner].heard(event)
            case Progress() if event.owner in self._nodes:
                self._nodes[event.owner].progress = event
            case _:
                pass

    def _stop_the_rest(self) -> None:
        """Notes of calls that still ran when the script ended that they were ended too: nobody tells of them."""
        gone = ToolResult.failed("execution_error", "It was ended with the script.", "cancelled")
        for node in self.rows[1:]:
            if not node.is_over:
                node.finish(node.call, gone)

    def _node(self, call: ToolCall) -> Node:
        """Gives the node of a call, which gets its place when it is first heard of."""
        known = self._nodes.get(call.id)
        if known is not None:
            return known
        within = self._nodes.get(call.parent or "", self.script)
        node = self._nodes[call.id] = Node(call, within)
        node.is_beside = within.open > 0
        within.open += 1
        self.rows.insert(self._end_of(within), node)
        return node

    def _end_of(self, node: Node) -> int:
        """Gives where the calls within a node end."""
        if node is self.script:
            return len(self.rows)
        # what still calls others has mostly begun not long ago
        at = next(index for index in range(len(self.rows) - 1, -1, -1) if self.rows[index] is node) + 1
        while at < len(self.rows) and self.rows[at].depth > node.depth:
            at += 1
        return at
