"""A conversation as blocks, made of what happens while a model is asked, or of what a session kept. No Textual."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pegboard.models import ToolCall, ToolResult
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
    ToolMessage,
    TurnEnded,
    Usage,
    UserMessage,
)
from pegboard.models.session import SessionEntry
from pegboard.results.markdown_lines import Marked
from pegboard.tui.chat.blocks import Block, CallBlock, NoteBlock, TextBlock, ThoughtBlock, Unfold, UserBlock

_WHY: dict[StoppedBy, str] = {
    "steps": "It reached the limit of steps.",
    "tokens": "It reached the limit of tokens.",
    "time": "It reached the limit of time.",
    "interrupted": "You interrupted it.",
    "size": "It reached the limit of one turn (turn_bytes and turn_calls under [ask]).",
    "invalid_args": "Its calls could not be run, several times in a row.",
}

_HELD_BYTES = 50_000
"""Of a result of an earlier call that is held whole."""


class Story:
    """What is shown of a conversation, and how far it is.

    Args:
        changed: Is told of every block that looks otherwise now.
        unfold: Which calls are shown in full once they are done.
        select_key: The key that selects a card that asks.
    """

    def __init__(self, changed: Callable[[Block], object], unfold: Unfold = "never", *, select_key: str = "") -> None:
        self.blocks: list[Block] = []
        self.usage = Usage()
        """What the model took since this conversation was opened."""
        self.step = self.of = 0
        """Which turn of the model's this is, and how many it may have; 0 while none is asked."""
        self.outcome: Outcome | None = None
        """What came of asking last."""
        self._changed = changed
        self._unfold: Unfold = unfold
        self._select_key = select_key
        self._text: TextBlock | None = None
        self._thought: ThoughtBlock | None = None
        self._waiting: NoteBlock | None = None
        self._turn: list[CallBlock] = []
        self._proposed = 0
        self._calls: dict[str, CallBlock] = {}

    # What is kept of a session

    def recall(
        self,
        entries: Sequence[SessionEntry],
        names: Mapping[str, str],
        recorded: Callable[[str], ToolResult | None],
    ) -> None:
        """Shows what was said before.

        Args:
            entries: Of a session, in order; answers to calls that aren't among them are left out.
            names: Tools' own names by those that the model has for them.
            recorded: Gives the result of a call by its id, if it is kept; may block.
        """
        open_: dict[str, CallBlock] = {}
        for entry in entries:
            match entry.message:
                case UserMessage(text=text):
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
                    result = None
                    if entry.call is not None and block.call is not None:
                        block.call = block.call.model_copy(update={"id": entry.call})
                        result = recorded(entry.call)
                    _finish_recalled(block, result or ToolResult(ok=ok), text, is_whole=result is not None)
                case _:
                    pass
        for block in open_.values():
            block.finish(None, ToolResult.failed("execution_error", "It was cut off.", "cancelled"))

    # What happens

    def begin(self, text: str) -> None:
        """Shows what the user says."""
        self._add(UserBlock(text))
        self.outcome = None
        self.step = 0

    def feed(self, event: AskEvent) -> None:
        """Shows what happened."""
        match event:
            case ModelSaid(event=said):
                self._said(said)
            case TurnStarted(step=step, of=of):
                self.step, self.of = step, of
                self._text = self._thought = None
                self._turn, self._proposed = [], 0
            case CallProposed(call=call, proposed=proposed):
                self._propose(call, proposed)
            case CallHappened(call_id=call_id, event=happened):
                block = self._calls.get(call_id)
                if block is not None:
                    block.happened(happened)
                    self._changed(block)
            case ToolAnswered(call=call, result=result, text=text):
                self._finish(call, result, text)
            case Waiting():
                self._waiting = NoteBlock("Somebody else asks in this session; it goes on when they are done.")
                self._add(self._waiting)
            case AskStarted():
                self._waited()
            case AskFinished(outcome=outcome):
                self._end(outcome)

    @property
    def is_waiting(self) -> bool:
        """Whether what the user said last waits for somebody else who asks in the session."""
        return self._waiting is not None

    def take_back(self) -> None:
        """Takes away what the user said last, and what was said to that."""
        self._waiting = None
        while self.blocks:
            block = self.blocks.pop()
            self._changed(block)
            if isinstance(block, UserBlock):
                return

    def note(self, block: NoteBlock) -> None:
        """Shows something that we have to say."""
        self._add(block)

    def block_of(self, call: ToolCall) -> CallBlock | None:
        """Gives where a call is shown: itself, or the one that it was made within."""
        for block in self._calls.values():
            ids = {block.call.id if block.call else "", *block.inner}
            if call.id in ids or call.parent in ids:
                return block
        return None

    def tick(self) -> None:
        """Shows how much time has gone by for what runs."""
        for block in self._calls.values():
            if block.is_running:
                block.changed()
                self._changed(block)

    def _waited(self) -> None:
        if self._waiting is not None:
            self.blocks.remove(self._waiting)
            self._changed(self._waiting)
            self._waiting = None

    def _said(self, event: ModelEvent) -> None:
        match event:
            case TextDelta(text=text):
                if self._text is None:
                    if not text.strip():
                        return
                    self._text = TextBlock()
                    self._add(self._text)
                self._text.marked.append(text)
                self._touch(self._text)
            case ThinkingDelta(text=text):
                if self._thought is None:
                    self._thought = ThoughtBlock()
                    self._add(self._thought)
                self._thought.said.append(text)
                self._touch(self._thought)
            case CallDelta(index=index, name=name, arguments=arguments):
                while len(self._turn) <= index:
                    self._turn.append(CallBlock(unfold=self._unfold, select_key=self._select_key))
                    self._add(self._turn[-1])
                self._turn[index].name += name
                self._turn[index].written += arguments
                self._touch(self._turn[index])
            case TurnEnded(message=message, usage=usage):
                self.usage += usage
                if self._text is None and message.text.strip():
                    self._add(TextBlock(Marked(message.text)))
                for block in self._turn[len(message.calls) :]:
                    block.finish(None, ToolResult.failed("execution_error", "It was not called.", "cancelled"))
                    self._changed(block)

    def _propose(self, call: ToolCall, proposed: ProposedCall) -> None:
        if self._proposed >= len(self._turn):
            self._turn.append(CallBlock(unfold=self._unfold, select_key=self._select_key))
            self._add(self._turn[-1])
        block = self._turn[self._proposed]
        self._proposed += 1
        self._calls[call.id] = block
        block.proposed(call, proposed)
        self._changed(block)

    def _finish(self, call: ToolCall, result: ToolResult, text: str = "") -> None:
        block = self._calls.pop(call.id, None)
        if block is not None:
            block.finish(call, result, text)
            self._changed(block)

    def _end(self, outcome: Outcome) -> None:
        self._waited()
        self.outcome, self.step = outcome, 0
        for made, answered in zip(outcome.tool_calls, outcome.tool_results, strict=True):
            call = ToolCall(id=made.id, name=made.name, args=made.args, source="ask")
            self._finish(call, ToolResult(ok=answered.ok, data=answered.data, error=answered.error, meta=answered.meta))
        for block in self._turn:
            if block.state != "done":
                block.finish(None, ToolResult.failed("execution_error", "It was not called.", "cancelled"))
                self._changed(block)
        if outcome.model_error is not None:
            error = outcome.model_error
            self._add(NoteBlock(error.message, "error", error.fix))
        elif outcome.stopped_by in _WHY:
            was_wanted = outcome.stopped_by == "interrupted"
            self._add(NoteBlock(_WHY[outcome.stopped_by], "note" if was_wanted else "warning"))
        self._calls.clear()

    def _add(self, block: Block) -> None:
        self.blocks.append(block)
        self._changed(block)

    def _touch(self, block: Block) -> None:
        if block.is_drawn:
            block.changed()
            self._changed(block)


def _finish_recalled(block: CallBlock, result: ToolResult, text: str, *, is_whole: bool) -> None:
    """Gives a call its result; of a large one that of which the model read, until all of it is asked for."""
    if is_whole and result.meta.size <= _HELD_BYTES:
        block.is_old = False
    else:
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
        is_old=True,
    )
