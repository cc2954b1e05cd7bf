"""Card of a tool call in a conversation, drawn as rows of text. Independent of Textual."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from rich.cells import cell_len, set_cell_size

from pegboard.models import Finished, JsonObject, Progress, ScriptAnalysis, Started, ToolCall, ToolError, ToolResult
from pegboard.models.conversation import ProposedCall
from pegboard.models.events import ApprovalRequested, CallEvent, Log
from pegboard.results.advice import advice
from pegboard.results.arguments import arguments_text
from pegboard.results.clean import clean_line
from pegboard.results.log import LogLine, LogLines
from pegboard.results.markdown_lines import MarkdownLine, MarkdownRow, rows_of
from pegboard.results.marks import Mark, Piece
from pegboard.results.printed import printed
from pegboard.results.sizes import count, duration, share, size
from pegboard.results.text import as_text, json_parts, preview
from pegboard.results.wrap import truncate
from pegboard.tui.chat.blocks import Background, Block, BlockRow, fold_sign
from pegboard.tui.chat.call_lines import LINE_CHARACTERS, argument_lines, expected_lines, script_lines, text_line

Unfold = Literal["never", "failed", "always"]
"""Which finished calls are expanded, unless the user expanded or collapsed one."""
BlockState = Literal["writing", "waiting", "asking", "running", "done"]
"""Stages of a call: the model writes it, it is queued, it awaits approval, it runs, it has a result."""

ARGUMENT_LINES: Final = 12
RESULT_LINES: Final = 20
FAULT_LINES: Final = 20
LOG_LINES: Final = 8
INNER_LINES: Final = 20
_WRITTEN_CHARACTERS: Final = 2_000
"""Characters of the arguments shown while the model writes them."""

ANSWERS: Final = (
    ("once", "talk.approve_once", "once"),
    ("session", "talk.approve_session", "session"),
    ("always", "talk.approve_always", "always…"),
    ("reject", "talk.reject", "reject"),
    ("reject_why", "talk.reject_why", "reject with reason"),
    ("edit", "talk.edit_call", "edit"),
)
"""Answers to a call awaiting approval: answer, command, label."""
_OF_RULES: Final = {"session", "always"}
"""Answers that add a rule."""


class CardKeys(NamedTuple):
    """Keys that the card of a call awaiting approval shows."""

    select: str = ""
    """Key that selects the card."""
    answers: Mapping[str, str] = MappingProxyType({})
    """Keys of the answers."""


NO_KEYS: Final = CardKeys()


@dataclass
class NestedCall:
    """A call made by another call."""

    call: ToolCall
    result: ToolResult | None = None
    asks: str = ""


@dataclass(eq=False)
class CallBlock(Block):
    """Card of a tool call, from the first characters of its name to its result."""

    name: str = ""
    """Name as the model writes it; later the name of the tool."""
    written: str = ""
    """JSON text of the arguments so far."""
    state: BlockState = "writing"
    call: ToolCall | None = None
    result: ToolResult | None = None
    model_text: str = ""
    """Result as the model reads it."""
    from_text: bool = False
    unfolded: bool | None = None
    """Whether the user expanded or collapsed the card; None if neither."""
    unfold: Unfold = "never"
    reason: str = ""
    """Why the call needs approval."""
    server: str = ""
    """Name of the MCP server whose tool awaits approval; empty for other tools."""
    asked_for: ToolCall | None = None
    """The call awaiting approval: this one, or one that it makes."""
    is_edited: bool = False
    is_destructive: bool = False
    """Whether the call awaiting approval is destructive."""
    keys: CardKeys = NO_KEYS
    is_old: bool = False
    """Whether it was loaded from a session, and has its result only as the model reads it."""

    def __post_init__(self) -> None:
        """Start without events."""
        super().__post_init__()
        self.inner: dict[str, NestedCall] = {}
        self._requests: dict[str, ApprovalRequested] = {}
        self._selected = ""
        self._expected: dict[str, ScriptAnalysis] = {}
        self._since = monotonic()
        self._lines = LogLines()
        self._log: list[LogLine] = []
        self._log_lines = 0
        self._progress: Progress | None = None
        self._text_args: JsonObject | None = None
        self._args_text = ""
        """The text of `_text_args`."""

    # Events

    def set_call(self, call: ToolCall, proposed: ProposedCall) -> None:
        """Set the parsed call."""
        self.call, self.name, self.from_text = call, call.name, proposed.from_text
        self.written = proposed.arguments
        self.state = "waiting"
        self._since = monotonic()
        self.changed()

    def apply(self, event: CallEvent) -> None:
        """Apply an event of this call or of one that it makes."""
        own = self.call.id if self.call is not None else ""
        match event:
            case ApprovalRequested(call=call):
                self._requests[call.id] = event
                # one at a time: an answer must not reach another call than the one on the screen
                if self.asked_for is None or self.asked_for.id == call.id:
                    self.ask(call)
            case Started(call=call) if call.id == own:
                self.call, self.state = call, "running"
                self._since = monotonic()
            case Started(call=call):
                self.inner[call.id] = NestedCall(call)
            case Finished(call=call, result=result) if call.id == own:
                self.finish(call, result)
            case Finished(call=call, result=result):
                # a script may make thousands of calls; their results are in the history
                self.inner[call.id] = NestedCall(call, result.model_copy(update={"data": None}))
                if self.asked_for is not None and self.asked_for.id == call.id:
                    self.answered()
            case Log(call_id=call_id, stream=stream, text=text) if call_id == own:
                lines = self._lines.feed(stream, text)
                self._log_lines += len(lines)
                self._log = [*self._log, *lines][-LOG_LINES:]
            case Progress(call_id=call_id) if call_id == own:
                self._progress = event
            case _:
                pass
        self.changed()

    def ask(self, call: ToolCall) -> None:
        """Ask for approval of a call."""
        request = self._requests[call.id]
        self.reason = request.reason
        self.asked_for = request.call  # without secrets
        self.state = "asking"
        self.changed()

    def knows(self, call: ToolCall) -> bool:
        """Return whether the event has arrived that a call awaits approval, which contains no secrets."""
        return call.id in self._requests

    @property
    def asks_about(self) -> str:
        """ID of the call awaiting approval; empty if none is."""
        return self.asked_for.id if self.state == "asking" and self.asked_for is not None else ""

    @property
    def answers(self) -> tuple[tuple[str, str, str], ...]:
        """The `ANSWERS` to the call awaiting approval: no rule applies to a call that the model wrote as text."""
        is_text = self.asked_for is not None and self.asked_for.from_text
        return tuple(one for one in ANSWERS if not (is_text and one[0] in _OF_RULES))

    def accepts(self, answer: str) -> bool:
        """Return whether the call awaiting approval can be answered so."""
        return any(known == answer for known, _, _ in self.answers)

    @property
    def is_selected(self) -> bool:
        """Whether the user selected the call awaiting approval."""
        return bool(self._selected) and self._selected == self.asks_about

    def select(self, call_id: str) -> None:
        """Show which call the user selected; empty for none."""
        if call_id != self._selected:
            self._selected = call_id
            self.changed()

    def expect(self, call: ToolCall, analysis: ScriptAnalysis) -> None:
        """Set the analysis of a script call."""
        self._expected[call.id] = analysis
        self.changed()

    def answered(self) -> None:
        """Leave the approval state after an answer."""
        if self.state == "asking":
            is_inner = self.asked_for is not None and self.call is not None and self.asked_for.id != self.call.id
            self.state = "running" if is_inner else "waiting"
        self.asked_for, self.reason = None, ""
        self.changed()

    def finish(self, call: ToolCall | None, result: ToolResult, model_text: str = "") -> None:
        """Set the result, and how the model reads it."""
        self.call, self.result, self.state = call or self.call, result, "done"
        self.model_text = model_text or self.model_text
        self.asked_for, self.reason = None, ""
        self._progress = None
        self.changed()

    # Appearance

    @property
    def is_running(self) -> bool:
        """Whether the elapsed time is running."""
        return self.state == "running"

    @property
    def is_unfolded(self) -> bool:
        """Whether the card is expanded."""
        if self.state == "asking":
            return True
        if self.unfolded is not None:
            return self.unfolded
        if self.state != "done" or self.unfold == "always":
            return self.state != "waiting"
        return self.unfold == "failed" and self.result is not None and _has_failed(self.result)

    @property
    def text(self) -> str:
        """Call and result for the clipboard."""
        args = self.written if self.call is None else json.dumps(self.call.args, ensure_ascii=False, indent=2)
        return f"{self.name} {args}\n\n{self._result_text()}".rstrip()

    def draw(self, width: int) -> Iterator[BlockRow]:
        """Yield the title row and, when expanded, arguments, log and result."""
        under: Background = "asking" if self.state == "asking" else "card"
        yield BlockRow(self._head(width), under)
        if not self.is_unfolded:
            return
        for line in self._body():
            for row in rows_of(line, width):
                yield BlockRow(row, under)
        if self.state == "asking":
            yield BlockRow(self._hint_row(width), under)
            yield self._answer_row(width)

    def _head(self, width: int) -> MarkdownRow:
        sign, mark = self._sign()
        right = self._facts()
        name = clean_line(self.name) or "…"
        most = max(width - cell_len(right) - 8, 8)
        name = truncate(name, most)
        left = f"{fold_sign(self.is_unfolded)} {sign} {name}"
        pieces: list[Piece] = [(0, 1, "muted"), (2, 2 + len(sign), mark), (len(left) - len(name), len(left), "strong")]
        space = width - cell_len(left) - cell_len(right) - 4
        if self.is_unfolded and self.state != "writing":
            arguments = ""
        elif self.call is not None:
            arguments = preview(self.call.args, max(space, 10)) if self.call.args else ""
        else:
            arguments = clean_line(self.written[:_WRITTEN_CHARACTERS])
        if cell_len(arguments) > space:
            arguments = truncate(arguments, space) if space > 4 else ""
        text = f"{left}  {arguments}"
        gap = max(width - cell_len(text) - cell_len(right), 1)
        text += " " * gap
        pieces += [(len(left), len(text), "muted"), (len(text), len(text) + len(right), self._mark_of_facts())]
        return MarkdownRow(text + right, tuple(pieces))

    def _sign(self) -> tuple[str, Mark]:
        match self.state:
            case "writing" | "waiting":
                return "…", "muted"
            case "asking":
                return "?", "warning"
            case "running":
                return "▶", "running"
        if self.result is None or not _has_failed(self.result):
            return "✓", "ok"
        return ("⊘", "warning") if self.result.was_stopped else ("✗", "error")

    def _mark_of_facts(self) -> Mark:
        if self.state == "asking":
            return "warning"
        if self.state == "running":
            return "running"
        if self.result is None or not _has_failed(self.result):
            return "muted"
        return "warning" if self.result.was_stopped else "error"

    def _facts(self) -> str:
        """Return the status at the right of the title row."""
        marks = ["from text"] if self.from_text else []
        marks += ["edited"] if self.is_edited else []
        match self.state:
            case "writing":
                marks.append("writing")
            case "waiting":
                marks.append("waiting")
            case "asking":
                marks.append("awaiting approval")
            case "running":
                marks.append(f"{monotonic() - self._since:.1f} s")
            case _ if self.result is not None:
                marks += _result_facts(self.result)
        return " · ".join(marks)

    def _body(self) -> Iterator[MarkdownLine]:
        yield from self._arguments()
        if len(self.inner) > INNER_LINES:
            yield text_line(f"  … {count(len(self.inner) - INNER_LINES, 'earlier call')} within", "muted")
        for inner in [*self.inner.values()][-INNER_LINES:]:
            yield _inner_line(inner)
        if self.state == "asking":
            server = f"MCP server {clean_line(self.server)}"
            if self.server and server not in self.reason:
                yield text_line(f"  A tool of the {server}.", "warning")
            yield text_line(f"  {clean_line(self.reason)}", "warning")
            return
        if self._progress is not None:
            yield text_line(f"  {_progress(self._progress)}", "running")
        log = [*self._log, *self._lines.begun()]
        output = self._printed()
        if log and not output:
            earlier = self._log_lines - len(self._log)
            if earlier:
                yield text_line(f"  … {count(earlier, 'earlier line')}", "muted")
            for entry in log[-LOG_LINES:]:
                yield MarkdownLine(entry.text, ((0, len(entry.text), "muted"),), "  │ ", "  │ ")
        yield from self._outcome_lines(output)

    def _arguments(self) -> Iterator[MarkdownLine]:
        call = self.asked_for if self.asked_for is not None else self.call
        if call is None:
            yield from argument_lines(self.written[:_WRITTEN_CHARACTERS], LOG_LINES)
            return
        if self.asked_for is not None and self.call is not None and self.asked_for.id != self.call.id:
            yield text_line(f"  It calls {clean_line(call.name)}:", "warning")
        script = script_in(call)
        if script is not None:
            if self.state == "asking":
                yield from expected_lines(self._expected.get(call.id))
            yield from script_lines(script, None if self.state == "asking" else ARGUMENT_LINES)
        elif call.args:
            text = self._text_of(call)
            # show all arguments of a call awaiting approval: the decision depends on them
            yield from argument_lines(text, None if self.state == "asking" else ARGUMENT_LINES)
        else:
            yield text_line("  no arguments", "muted")

    def _text_of(self, call: ToolCall) -> str:
        """Return the arguments as text, written once: a running card is drawn ten times a second."""
        if self._text_args is not call.args:
            self._text_args, self._args_text = call.args, arguments_text(call.args)
        return self._args_text

    def _outcome_lines(self, output: str) -> Iterator[MarkdownLine]:
        if self.state != "done" or self.result is None:
            return
        error = self.result.error
        if error is not None:
            yield from _error_lines(error)
            if self.result.data is None:
                return
        yield text_line("  " + "─" * 8, "muted")
        text = output or self._result_text()
        is_text = self.is_old or isinstance(self.result.data, str) or bool(output)
        yield from _first_lines(
            text, lambda line: MarkdownLine(line, () if is_text else tuple(json_parts(line)), "  ", "  ")
        )

    def _printed(self) -> str:
        """Return what a program or script has printed; empty if there is no such result."""
        output = None if self.is_old or self.result is None else printed(self.result.data)
        return "" if output is None else "\n".join(output[0])

    def _result_text(self) -> str:
        if self.result is None:
            return ""
        if self.is_old:
            return self.model_text
        if self.result.data is None and self.result.error is not None:
            return self.result.error.message
        return as_text(self.result.data)

    def _hint_row(self, width: int) -> MarkdownRow:
        """Return the row above the answers: how to select the card, or the scope of `s`."""
        if not self.is_selected:
            way = f"{self.keys.select} or a click" if self.keys.select else "a click"
            text = f"  Not selected: {way} selects this call, then:"
        elif not self.accepts("session"):
            text = "  Selected. No rule applies to calls written as text: each one asks."
        else:
            what = "exactly these arguments" if self.is_destructive else "any arguments"
            text = f"  Selected. {self.keys.answers.get('session') or 'session'} allows {what} in this session."
        text = set_cell_size(text, width).rstrip() if cell_len(text) > width else text
        return MarkdownRow(text, ((2, len(text), "warning" if self.is_selected else "muted"),))

    def _answer_row(self, width: int) -> BlockRow:
        keys = self.keys.answers
        labels = {one: f"{keys.get(one, '')} {words}".lstrip() for one, _, words in self.answers}
        if _length(labels.values(), "  ") > width:
            labels.pop("reject_why", None)  # its key stays
        gap = "   " if _length(labels.values(), "   ") <= width else "  "
        text, pieces, spans = "  ", list[Piece](), list[tuple[int, int, str]]()
        for answer, label in labels.items():
            key_end = len(text) + len(keys.get(answer, ""))
            pieces.append((len(text), key_end, "key" if self.is_selected else "muted"))
            spans.append((len(text), len(text) + len(label), answer))
            text += label + gap
        return BlockRow(MarkdownRow(text.rstrip(), tuple(pieces)), "asking", tuple(spans))


def _length(labels: Iterable[str], gap: str) -> int:
    """Return the number of columns of a row of answers."""
    return 2 + len(gap.join(labels))


def script_in(call: ToolCall) -> str | None:
    """Return the script that a call runs, or None."""
    script = call.args.get("commands")
    return script if call.name == "script.run" and isinstance(script, str) else None


def _error_lines(error: ToolError) -> Iterator[MarkdownLine]:
    yield from _first_lines(error.message, lambda line: text_line(f"  {line}", "error"))
    for fault in error.faults[:FAULT_LINES]:
        yield text_line(f"  • {clean_line(fault.where or 'arguments')}  {clean_line(fault.message)}", "error")
    if (left := len(error.faults) - FAULT_LINES) > 0:
        yield text_line(f"  … {count(left, 'more error')}", "muted")
    if hint := advice(error):
        yield text_line(f"  {hint}", "muted")


def _first_lines(text: str, styled: Callable[[str], MarkdownLine]) -> Iterator[MarkdownLine]:
    """Yield the first lines of a text, and how much follows."""
    lines = text.split("\n", RESULT_LINES)[:RESULT_LINES]
    for line in lines:
        yield styled(clean_line(line[:LINE_CHARACTERS]))
        if len(line) > LINE_CHARACTERS:
            yield text_line(f"  … {count(len(line) - LINE_CHARACTERS, 'more character')}", "muted")
    left = text.count("\n") + 1 - len(lines)
    if left > 0:
        yield text_line(f"  … {count(left, 'more line')}", "muted")


def _inner_line(inner: NestedCall) -> MarkdownLine:
    result = inner.result
    sign = "▶" if result is None else "✓" if result.ok else "⊘" if result.was_stopped else "✗"
    facts = "" if result is None else " · ".join(_result_facts(result))
    text = f"{sign} {clean_line(inner.call.name)}  {preview(inner.call.args, 60)}  {facts}".rstrip()
    return MarkdownLine(text, ((0, len(text), "muted"),), "  ├ ", "  │ ")


def _has_failed(result: ToolResult) -> bool:
    return not result.ok or bool(result.meta.exit_code)


def _result_facts(result: ToolResult) -> list[str]:
    facts = [f"exit {result.meta.exit_code}"] if result.meta.exit_code else []
    if result.error is not None:
        facts.append(clean_line(result.error.detail or result.error.code))
    elif not result.ok:
        facts.append("failed")
    if result.meta.cached:
        facts.append("cached")
    elif result.meta.duration_ms:
        facts.append(duration(result.meta.duration_ms))
    if result.meta.size and (result.ok or result.data is not None):
        facts.append(size(result.meta.size))
    if result.meta.truncated is not None:
        facts.append("truncated")
    return facts


def _progress(progress: Progress) -> str:
    message = clean_line(progress.message[:500])
    return f"{share(progress.done, progress.total)}{' · ' + message if message else ''}"
