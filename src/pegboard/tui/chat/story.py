"""A conversation as blocks, built from the events of a running ask or from a stored session. Independent of Textual."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pegboard.data.json_text import same
from pegboard.models import JsonObject, ToolCall, ToolError, ToolResult
from pegboard.models.ask import (
    AskEvent,
    AskFinished,
    AskStarted,
    CallHappened,
    CallProposed,
    ModelSaid,
    Outcome,
    StoppedBy,
    ToolAnswered,
    TurnStarted,
    Waiting,
)
from pegboard.models.conversation import (
    CallDelta,
    ModelEvent,
    ModelMessage,
    ProposedCall,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolMessage,
    TurnEnded,
    Usage,
    UserMessage,
)
from pegboard.models.session import SessionEntry
from pegboard.results.edits import EDIT_NOTE
from pegboard.results.failure_text import failure_in
from pegboard.results.markdown_lines import Marked
from pegboard.tui.chat.blocks import Block, NoteBlock, TextBlock, ThoughtBlock, UserBlock
from pegboard.tui.chat.call_block import NO_KEYS, CallBlock, CardKeys, Unfold

_STOP_MESSAGES: dict[StoppedBy, str] = {
    "steps": "Stopped: the model reached the limit of steps.",
    "tokens": "Stopped: the model reached the limit of tokens.",
    "time": "Stopped: the model reached the time limit.",
    "interrupted": "You interrupted the model.",
    "size": "Stopped: the model reached the limit of one turn (turn_bytes and turn_calls under [ask]).",
    "invalid_args": "Stopped: the model's calls were invalid several times in a row.",
    "length": "The answer is incomplete: the model reached its own limit of tokens.",
    "filter": "The answer is incomplete: the provider's content filter ended it.",
    "unknown": "The answer may be incomplete: the provider ended it for an unknown reason.",
}
_PROCESS_ENDED = "The app or command that sent this message ended before the model finished."

Recorded = Callable[[str], tuple[JsonObject | None, ToolResult | None]]
"""Function that returns the arguments with which a call ran, and its result, given its id."""


class TurnEnd(NamedTuple):
    """Why a turn of a stored session ended."""

    error: ToolError | None
    stopped_by: StoppedBy


_HELD_BYTES = 50_000
"""Largest result of an earlier call that is kept in full, in bytes."""


class Story:
    """Blocks of a conversation, and the progress of its running ask.

    Args:
        changed: Callback for every block that has to be redrawn.
        unfold: Which finished calls are expanded.
        keys: Keys that the card of a call awaiting approval shows.
    """

    def __init__(
        self, changed: Callable[[Block], object], unfold: Unfold = "never", *, keys: CardKeys = NO_KEYS
    ) -> None:
        self.blocks: list[Block] = []
        self.usage = Usage()
        """Tokens used since this conversation was opened."""
        self.step = self.of = 0
        """Number of the current model turn, and the limit; 0 while nothing runs."""
        self.outcome: Outcome | None = None
        """Outcome of the last ask."""
        self.pending: dict[str, CallBlock] = {}
        """Stored calls without a result that another client may still run, by the provider's ID."""
        self._changed = changed
        self._unfold: Unfold = unfold
        self._keys = keys
        self._text: TextBlock | None = None
        self._thought: ThoughtBlock | None = None
        self._waiting: NoteBlock | None = None
        self._turn: list[CallBlock] = []
        self._proposed = 0
        self._calls: dict[str, CallBlock] = {}

    # Stored sessions

    def recall(
        self,
        entries: Sequence[SessionEntry],
        names: Mapping[str, str],
        recorded: Recorded,
        ends: Mapping[int, TurnEnd],
        *,
        is_in_use: bool = False,
    ) -> None:
        """Show the messages of a stored session.

        Args:
            entries: Messages in order; results without their call are skipped.
            names: Tool names by the names that the model uses.
            recorded: Returns the recorded arguments and result of a call ID, each None if it is unknown; may block.
            ends: Why turns ended, by the position of the user's message.
            is_in_use: Whether another client may add the results of calls that have none.
        """
        open_ = self.pending
        end: TurnEnd | None = None
        for entry in entries:
            match entry.message:
                case UserMessage(text=text):
                    self._recall_end(end)
                    end = ends.get(entry.position)
                    self.blocks.append(UserBlock(text))
                case ModelMessage(text=text, calls=calls):
                    if text.strip():
                        self.blocks.append(TextBlock(Marked(text)))
                    for proposed in calls:
                        block = _recalled(proposed, names.get(proposed.name, proposed.name), self._unfold)
                        open_[proposed.provider_id] = block
                        self.blocks.append(block)
                case ToolMessage(provider_id=id_, text=text, ok=ok) if id_ in open_:
                    block = open_.pop(id_)
                    known = _identify(block, entry.call, recorded, text) if entry.call is not None else None
                    _finish_recalled(block, known or ToolResult(ok=ok), text, is_whole=known is not None)
                case _:
                    pass
        while open_ and not is_in_use:
            missing = ToolResult.failed("execution_error", "The session ends before its result.", "cancelled")
            open_.popitem()[1].finish(None, missing)
        self._recall_end(end)

    def _recall_end(self, end: TurnEnd | None) -> None:
        """Show why a turn of a stored session failed or was stopped, after its messages."""
        if end is None:
            return
        if end.error is not None and end.error.detail != "cancelled":
            text = _PROCESS_ENDED if end.error.detail == "interrupted" else end.error.message
            self.blocks.append(NoteBlock(text, "error"))
        else:
            self.blocks += _stop_notes("interrupted" if end.error is not None else end.stopped_by)

    # Events

    def begin(self, text: str) -> None:
        """Show a user message that starts an ask."""
        self._add(UserBlock(text))
        self.outcome = None
        self.step = 0

    def feed(self, event: AskEvent) -> None:
        """Apply an event of the running ask."""
        match event:
            case ModelSaid(event=happened):
                self._apply_model_event(happened)
            case TurnStarted(step=step, of=of):
                self.step, self.of = step, of
                self._text = self._thought = None
                self._turn, self._proposed = [], 0
            case CallProposed(call=call, proposed=proposed):
                self._propose(call, proposed)
            case CallHappened(call_id=call_id, event=happened):
                block = self._calls.get(call_id)
                if block is not None:
                    block.apply(happened)
                    self._changed(block)
            case ToolAnswered(call=call, result=result, text=text):
                self._finish(call, result, text)
            case Waiting():
                self._waiting = NoteBlock("Another client uses this session. Your message is sent when it finishes.")
                self._add(self._waiting)
            case AskStarted():
                self._remove_waiting_note()
            case AskFinished(outcome=outcome):
                self._end(outcome)

    @property
    def is_waiting(self) -> bool:
        """Whether the last user message waits for another client of the session."""
        return self._waiting is not None

    def take_back(self) -> None:
        """Remove the last user message and everything after it."""
        self._waiting = None
        while self.blocks:
            block = self.blocks.pop()
            self._changed(block)
            if isinstance(block, UserBlock):
                return

    def insert(self, blocks: Sequence[Block]) -> None:
        """Insert the blocks of stored messages before the last user message."""
        last = next(at for at in reversed(range(len(self.blocks))) if isinstance(self.blocks[at], UserBlock))
        self.blocks[last:last] = blocks
        for block in blocks:
            self._changed(block)

    def note(self, block: NoteBlock) -> None:
        """Show a notice."""
        self._add(block)

    def block_of(self, call: ToolCall) -> CallBlock | None:
        """Return the card of a call or of the call that made it, or None."""
        for block in self._calls.values():
            ids = {block.call.id if block.call else "", *block.inner}
            if call.id in ids or call.parent in ids:
                return block
        return None

    def tick(self) -> None:
        """Update the elapsed time of running calls."""
        for block in self._calls.values():
            if block.is_running:
                block.changed()
                self._changed(block)

    def _remove_waiting_note(self) -> None:
        if self._waiting is not None:
            self.blocks.remove(self._waiting)
            self._changed(self._waiting)
            self._waiting = None

    def _apply_model_event(self, event: ModelEvent) -> None:
        match event:
            case TextDelta(text=text):
                if self._text is None:
                    if not text.strip():
                        return
                    self._text = TextBlock()
                    self._add(self._text)
                self._text.marked.append(text)
                self._mark_changed(self._text)
            case ThinkingDelta(text=text):
                if self._thought is None:
                    self._thought = ThoughtBlock()
                    self._add(self._thought)
                self._thought.pieces.append(text)
                self._mark_changed(self._thought)
            case ThinkingEnded():
                self._move_text_to_thought()
            case CallDelta(index=index, name=name, arguments=arguments):
                while len(self._turn) <= index:
                    self._turn.append(CallBlock(unfold=self._unfold, keys=self._keys))
                    self._add(self._turn[-1])
                self._turn[index].name += name
                self._turn[index].written += arguments
                self._mark_changed(self._turn[index])
            case TurnEnded(message=message, usage=usage):
                self.usage += usage
                if self._text is None and message.text.strip():
                    self._add(TextBlock(Marked(message.text)))
                for block in self._turn[len(message.calls) :]:
                    block.finish(None, ToolResult.failed("execution_error", "The tool was not called.", "cancelled"))
                    self._changed(block)

    def _move_text_to_thought(self) -> None:
        """Show the text of this turn so far as a thought."""
        if self._text is not None:
            thought = self._thought = ThoughtBlock([self._text.text])
            self.blocks[self.blocks.index(self._text)] = thought
            self._text = None
            self._changed(thought)

    def _propose(self, call: ToolCall, proposed: ProposedCall) -> None:
        if self._proposed >= len(self._turn):
            self._turn.append(CallBlock(unfold=self._unfold, keys=self._keys))
            self._add(self._turn[-1])
        block = self._turn[self._proposed]
        self._proposed += 1
        self._calls[call.id] = block
        block.set_call(call, proposed)
        self._changed(block)

    def _finish(self, call: ToolCall, result: ToolResult, text: str = "") -> None:
        block = self._calls.pop(call.id, None)
        if block is not None:
            block.finish(call, result, text)
            self._changed(block)

    def _end(self, outcome: Outcome) -> None:
        self._remove_waiting_note()
        self.outcome, self.step = outcome, 0
        for made, answered in zip(outcome.tool_calls, outcome.tool_results, strict=True):
            call = ToolCall(id=made.id, name=made.name, args=made.args, source="ask")
            self._finish(call, ToolResult(ok=answered.ok, data=answered.data, error=answered.error, meta=answered.meta))
        for block in self._turn:
            if block.state != "done":
                block.finish(None, ToolResult.failed("execution_error", "The tool was not called.", "cancelled"))
                self._changed(block)
        if outcome.model_error is not None:
            error = outcome.model_error
            self._add(NoteBlock(error.message, "error", error.fix))
        else:
            for note in _stop_notes(outcome.stopped_by):
                self._add(note)
        self._calls.clear()

    def _add(self, block: Block) -> None:
        self.blocks.append(block)
        self._changed(block)

    def _mark_changed(self, block: Block) -> None:
        if block.is_drawn:
            block.changed()
            self._changed(block)


def _stop_notes(stopped_by: StoppedBy) -> Iterator[NoteBlock]:
    """Yield a note if a turn ended without a complete answer."""
    if stopped_by in _STOP_MESSAGES:
        yield NoteBlock(_STOP_MESSAGES[stopped_by], "note" if stopped_by == "interrupted" else "warning")


def _identify(block: CallBlock, call_id: str, recorded: Recorded, text: str) -> ToolResult | None:
    """Set the id of a call and the arguments with which it ran, which the user may have edited; return its result."""
    args, result = recorded(call_id)
    if block.call is not None:
        block.is_edited = args is not None and not same(args, block.call.args) and EDIT_NOTE in text
        changed = {"id": call_id} if args is None else {"id": call_id, "args": args}
        block.call = block.call.model_copy(update=changed)
    return result


def _finish_recalled(block: CallBlock, result: ToolResult, text: str, *, is_whole: bool) -> None:
    """Set a call's result; of a large one keep only the model's text until the user opens it."""
    if not is_whole and not result.ok and (error := failure_in(text)) is not None:
        # A call that never ran has no record.
        result = result.model_copy(update={"error": error})
    elif not is_whole or result.meta.size > _HELD_BYTES:
        block.is_old = True
        result = result.model_copy(update={"data": text})
    block.finish(None, result, text)


def _recalled(proposed: ProposedCall, name: str, unfold: Unfold) -> CallBlock:
    from pegboard.data.json_text import JsonTextError, parse

    try:
        args = parse(proposed.arguments)
    except JsonTextError:
        args = None
    call = ToolCall(name=name, args=args if isinstance(args, dict) else {}, source="ask")
    return CallBlock(
        name=name,
        written=proposed.arguments,
        state="waiting",
        call=call,
        from_text=proposed.from_text,
        unfold=unfold,
    )
