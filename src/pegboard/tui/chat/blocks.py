"""The parts of a conversation as they are shown, each as rows of text. Knows nothing of Textual."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Final, Literal

from rich.cells import cell_len
from rich.cells import set_cell_size as fitted

from pegboard.models import Finished, Progress, ScriptAnalysis, Started, ToolCall, ToolResult
from pegboard.models.conversation import ProposedCall
from pegboard.models.events import ApprovalRequested, CallEvent, Log
from pegboard.results.advice import advice
from pegboard.results.clean import clean, clean_line
from pegboard.results.log import LogLine, LogLines
from pegboard.results.markdown_lines import Mark, Marked, Piece, rows_of
from pegboard.results.markdown_lines import MarkdownLine as Line
from pegboard.results.markdown_lines import MarkdownRow as Row
from pegboard.results.sizes import count, duration, size
from pegboard.results.text import as_text, json_parts, preview

Unfold = Literal["never", "failed", "always"]
"""Which calls are shown in full once they are done, unless the user says so of one."""
CallState = Literal["writing", "waiting", "asking", "running", "done"]
"""The model writes it; it is about to run; the user is asked; it runs; it has a result."""
Under = Literal["", "user", "card", "asking", "code"]
"""What lies under a row."""

ARGUMENT_LINES: Final = 12
RESULT_LINES: Final = 20
LOG_LINES: Final = 8
SAID_LINES: Final = 200
EXPECTED_LINES: Final = 50
INNER_LINES: Final = 20
_MOST_SAID: Final = 20_000
"""Characters of a message of the user's that are shown before it is unfolded."""
_MOST_WRITTEN: Final = 2_000
"""Characters of arguments that are shown while the model writes them."""
_LONGEST_LINE: Final = 2_000

ANSWERS: Final = (
    ("once", "a", "once"),
    ("session", "s", "session"),
    ("always", "A", "always…"),
    ("reject", "r", "reject"),
    ("reject_why", "R", "reject with reason"),
    ("edit", "e", "edit"),
)
"""The answers to a call that asks: which, its key, its label."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A row of the conversation."""

    row: Row
    under: Under = ""
    answers: tuple[tuple[int, int, str], ...] = ()
    """Where a click answers a call, and with what."""


@dataclass(eq=False)
class Block:
    """A part of the conversation, as rows that are kept as long as nothing changes."""

    def __post_init__(self) -> None:
        """Nothing is drawn yet."""
        self._drawn: tuple[int, list[Shown]] | None = None

    def changed(self) -> None:
        """Notes that the rows aren't right any more."""
        self._drawn = None

    @property
    def is_drawn(self) -> bool:
        """Whether the rows that were given last are still right."""
        return self._drawn is not None

    def rows(self, width: int) -> list[Shown]:
        """Gives the rows, the last of them empty.

        Args:
            width: Cells that a row may take.
        """
        if self._drawn is None or self._drawn[0] != width:
            self._drawn = width, [*self.draw(width), Shown(Row(""))]
        return self._drawn[1]

    def draw(self, width: int) -> Iterator[Shown]:
        """Yields the rows as they are now."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """What is copied."""
        raise NotImplementedError


@dataclass(eq=False)
class UserBlock(Block):
    """What the user said, as typed."""

    said: str
    unfolded: bool = False
    """Whether all of a very long message is to be seen."""

    @property
    def text(self) -> str:
        """The user's words."""
        return self.said

    def draw(self, width: int) -> Iterator[Shown]:
        """Yields the words as they are, for they are no Markdown."""
        said = self.said.rstrip("\n")
        shown = said if self.unfolded else "\n".join(said[:_MOST_SAID].split("\n", SAID_LINES)[:SAID_LINES])
        for line in clean(shown).split("\n"):
            for row in rows_of(Line(line, ((0, len(line), "strong"),), "❯ " if line else "", "  "), width):
                yield Shown(row, "user")
        if len(shown) < len(said):
            left = f"  … {count(len(said) - len(shown), 'more character')}"
            yield Shown(Row(left, ((0, len(left), "muted"),)), "user")


@dataclass(eq=False)
class TextBlock(Block):
    """What the model said between two calls."""

    marked: Marked = field(default_factory=Marked)

    def __post_init__(self) -> None:
        """Nothing is drawn yet."""
        super().__post_init__()
        self._settled: list[Shown] = []
        self._settled_lines = 0
        self._settled_width = 0

    @property
    def text(self) -> str:
        """The Markdown as it was written."""
        return self.marked.text

    def draw(self, width: int) -> Iterator[Shown]:
        """Yields the rows; those that can't change any more are broken to the width once."""
        settled, last = self.marked.read()
        if width != self._settled_width:
            self._settled, self._settled_lines, self._settled_width = [], 0, width
        self._settled += _shown(settled[self._settled_lines :], width)
        self._settled_lines = len(settled)
        yield from self._settled
        yield from _shown(last, width)


@dataclass(eq=False)
class ThoughtBlock(Block):
    """What the model thought aloud, folded to a line."""

    said: list[str] = field(default_factory=list)
    unfolded: bool = False

    @property
    def text(self) -> str:
        """The thoughts."""
        return "".join(self.said)

    def draw(self, width: int) -> Iterator[Shown]:
        """Yields how much it was, and unfolded all of it."""
        text = self.text
        head = f"{_fold(self.unfolded)} Thought: {count(len(text), 'character')}"
        yield Shown(Row(head, ((0, len(head), "muted"),)))
        if self.unfolded:
            for line in clean(text).split("\n"):
                yield from map(Shown, rows_of(Line(line, ((0, len(line), "muted"),), "  ", "  "), width))


@dataclass(eq=False)
class NoteBlock(Block):
    """What we have to say: why it ended, what went wrong."""

    said: str
    kind: Literal["note", "warning", "error"] = "note"
    more: str = ""
    """What to do about it."""

    @property
    def text(self) -> str:
        """The words."""
        return f"{self.said}\n{self.more}".strip()

    def draw(self, width: int) -> Iterator[Shown]:
        """Yields the words with a sign."""
        signs: dict[str, tuple[str, Mark]] = {"note": ("· ", "muted"), "warning": ("! ", "warning")}
        sign, mark = signs.get(self.kind, ("✗ ", "error"))
        for number, line in enumerate(clean(self.said).split("\n")):
            for row in rows_of(Line(line, (), "  " if number else sign, "  "), width):
                yield Shown(Row(row.text, ((0, len(row.text), mark),)))
        for line in clean(self.more).split("\n") if self.more else ():
            yield from map(Shown, rows_of(Line(line, ((0, len(line), "muted"),), "  ", "  "), width))


@dataclass
class Inner:
    """A call that was made within another one."""

    call: ToolCall
    result: ToolResult | None = None
    asks: str = ""


@dataclass(eq=False)
class CallBlock(Block):
    """A call of a tool, from the first letters of its name to its result."""

    name: str = ""
    """As the model writes it, later the tool's own."""
    written: str = ""
    """The arguments' JSON text so far."""
    state: CallState = "writing"
    call: ToolCall | None = None
    result: ToolResult | None = None
    told: str = ""
    """The result as the model reads it."""
    from_text: bool = False
    unfolded: bool | None = None
    """Whether the user wants to see all of it; None where they haven't said."""
    unfold: Unfold = "never"
    asks: str = ""
    """Why the user is asked."""
    asked_for: ToolCall | None = None
    """The call that the user is asked for: this one, or one that it makes."""
    is_edited: bool = False
    is_destructive: bool = False
    """Whether the call that it asks about is one of a destructive tool."""
    select_key: str = ""
    """The key that selects the card when it asks."""
    is_old: bool = False
    """Whether it was read from a session, where its result is only known as the model read it."""

    def __post_init__(self) -> None:
        """Nothing has happened yet."""
        super().__post_init__()
        self.inner: dict[str, Inner] = {}
        self._requests: dict[str, ApprovalRequested] = {}
        self._selected = ""
        self._expected: dict[str, ScriptAnalysis] = {}
        self._since = monotonic()
        self._lines = LogLines()
        self._log: list[LogLine] = []
        self._log_lines = 0
        self._progress: Progress | None = None

    # What happens

    def proposed(self, call: ToolCall, proposed: ProposedCall) -> None:
        """Takes the call as it was read."""
        self.call, self.name, self.from_text = call, call.name, proposed.from_text
        self.written = proposed.arguments
        self.state = "waiting"
        self._since = monotonic()
        self.changed()

    def happened(self, event: CallEvent) -> None:
        """Takes what happens to the call, or to one within it."""
        own = self.call.id if self.call is not None else ""
        match event:
            case ApprovalRequested(call=call):
                self._requests[call.id] = event
                # one at a time, so that nobody answers another call than the one that they read
                if self.asked_for is None or self.asked_for.id == call.id:
                    self.ask(call)
            case Started(call=call) if call.id == own:
                self.call, self.state = call, "running"
                self._since = monotonic()
            case Started(call=call):
                self.inner[call.id] = Inner(call)
            case Finished(call=call, result=result) if call.id == own:
                self.finish(call, result)
            case Finished(call=call, result=result):
                # a script may make thousands of calls; what came of each is in the history
                self.inner[call.id] = Inner(call, result.model_copy(update={"data": None}))
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
        """Ask the user whether a call may run."""
        request = self._requests.get(call.id)
        self.asks = request.reason if request is not None else "It asks first."
        self.asked_for = request.call if request is not None else call  # without secrets
        self.state = "asking"
        self.changed()

    @property
    def asks_about(self) -> str:
        """The id of the call that the user is asked about now; empty if they aren't asked."""
        return self.asked_for.id if self.state == "asking" and self.asked_for is not None else ""

    @property
    def is_selected(self) -> bool:
        """Whether the user selected the call that the card asks about now."""
        return bool(self._selected) and self._selected == self.asks_about

    def select(self, call_id: str) -> None:
        """Show that the user selected the call with this id, or none."""
        if call_id != self._selected:
            self._selected = call_id
            self.changed()

    def expects(self, call: ToolCall) -> bool:
        """Says whether it is known what a script will call."""
        return call.id in self._expected

    def expect(self, call: ToolCall, analysis: ScriptAnalysis) -> None:
        """Takes what a script will call."""
        self._expected[call.id] = analysis
        self.changed()

    def answered(self) -> None:
        """Notes that the user has said what is to become of it."""
        if self.state == "asking":
            is_inner = self.asked_for is not None and self.call is not None and self.asked_for.id != self.call.id
            self.state = "running" if is_inner else "waiting"
        self.asked_for, self.asks = None, ""
        self.changed()

    def finish(self, call: ToolCall | None, result: ToolResult, told: str = "") -> None:
        """Takes the result."""
        self.call, self.result, self.state = call or self.call, result, "done"
        self.told = told or self.told
        self.asked_for, self.asks = None, ""
        self._progress = None
        self.changed()

    # What is shown

    @property
    def is_running(self) -> bool:
        """Whether time goes on for it."""
        return self.state == "running"

    @property
    def is_unfolded(self) -> bool:
        """Whether it is shown in full."""
        if self.state == "asking":
            return True
        if self.unfolded is not None:
            return self.unfolded
        if self.state != "done" or self.unfold == "always":
            return self.state != "waiting"
        return self.unfold == "failed" and self.result is not None and not self.result.ok

    @property
    def text(self) -> str:
        """The call and its result."""
        args = self.written if self.call is None else json.dumps(self.call.args, ensure_ascii=False, indent=2)
        return f"{self.name} {args}\n\n{self._result_text()}".rstrip()

    def draw(self, width: int) -> Iterator[Shown]:
        """Yields the head, and unfolded the arguments, what it printed and what came of it."""
        under: Under = "asking" if self.state == "asking" else "card"
        yield Shown(self._head(width), under)
        if not self.is_unfolded:
            return
        for line in self._body():
            for row in rows_of(line, width):
                yield Shown(row, under)
        if self.state == "asking":
            yield Shown(self._how_to_answer(width), under)
            yield self._answers(width)

    def _head(self, width: int) -> Row:
        sign, mark = self._sign()
        right = self._facts()
        name = clean_line(self.name) or "…"
        most = max(width - cell_len(right) - 8, 8)
        if cell_len(name) > most:
            name = f"{fitted(name, most - 1).rstrip()}…"
        left = f"{_fold(self.is_unfolded)} {sign} {name}"
        pieces: list[Piece] = [(0, 1, "muted"), (2, 2 + len(sign), mark), (len(left) - len(name), len(left), "strong")]
        room = width - cell_len(left) - cell_len(right) - 4
        if self.is_unfolded and self.state != "writing":
            said = ""
        elif self.call is not None:
            said = preview(self.call.args, max(room, 10)) if self.call.args else ""
        else:
            said = clean_line(self.written[:_MOST_WRITTEN])
        if cell_len(said) > room:
            said = f"{fitted(said, max(room - 1, 0)).rstrip()}…" if room > 4 else ""
        text = f"{left}  {said}"
        gap = max(width - cell_len(text) - cell_len(right), 1)
        text += " " * gap
        pieces += [(len(left), len(text), "muted"), (len(text), len(text) + len(right), self._mark_of_facts())]
        return Row(text + right, tuple(pieces))

    def _sign(self) -> tuple[str, Mark]:
        match self.state:
            case "writing" | "waiting":
                return "…", "muted"
            case "asking":
                return "?", "warning"
            case "running":
                return "▶", "running"
        if self.result is None or self.result.ok:
            return "✓", "ok"
        return ("⊘", "warning") if _was_stopped(self.result) else ("✗", "error")

    def _mark_of_facts(self) -> Mark:
        if self.state == "asking":
            return "warning"
        if self.state == "running":
            return "running"
        failed = self.result is not None and not self.result.ok
        return "muted" if not failed else "warning" if _was_stopped(self.result) else "error"

    def _facts(self) -> str:
        """Says at the right how it goes."""
        marks = ["from text"] if self.from_text else []
        marks += ["edited"] if self.is_edited else []
        match self.state:
            case "writing":
                marks.append("writing")
            case "waiting":
                marks.append("waiting")
            case "asking":
                marks.append("asks you")
            case "running":
                marks.append(f"{monotonic() - self._since:.1f} s")
            case _ if self.result is not None:
                marks += _outcome(self.result)
        return " · ".join(marks)

    def _body(self) -> Iterator[Line]:
        yield from self._arguments()
        if len(self.inner) > INNER_LINES:
            yield _said(f"  … {count(len(self.inner) - INNER_LINES, 'earlier call')} within", "muted")
        for inner in [*self.inner.values()][-INNER_LINES:]:
            yield _inner_line(inner)
        if self.state == "asking":
            yield _said(f"  {clean_line(self.asks)}", "warning")
            return
        if self._progress is not None:
            yield _said(f"  {_progress(self._progress)}", "running")
        log = [*self._log, *self._lines.begun()]
        if log:
            earlier = self._log_lines - len(self._log)
            if earlier:
                yield _said(f"  … {count(earlier, 'earlier line')}", "muted")
            for entry in log[-LOG_LINES:]:
                yield Line(entry.text, ((0, len(entry.text), "muted"),), "  │ ", "  │ ")
        yield from self._outcome_lines()

    def _arguments(self) -> Iterator[Line]:
        call = self.asked_for if self.asked_for is not None else self.call
        if call is None:
            yield from _json_lines(self.written[:_MOST_WRITTEN], LOG_LINES)
            return
        if self.asked_for is not None and self.call is not None and self.asked_for.id != self.call.id:
            yield _said(f"  It calls {clean_line(call.name)}:", "warning")
        script = script_in(call)
        if script is not None:
            if self.state == "asking":
                yield from _expected_lines(self._expected.get(call.id))
            yield from _script_lines(script, None if self.state == "asking" else ARGUMENT_LINES)
        elif call.args:
            text = json.dumps(call.args, ensure_ascii=False, indent=2)
            # of a call that asks, everything: nobody may approve what they can't see
            yield from _json_lines(text, None if self.state == "asking" else ARGUMENT_LINES)
        else:
            yield _said("  no arguments", "muted")

    def _outcome_lines(self) -> Iterator[Line]:
        if self.state != "done" or self.result is None:
            return
        error = self.result.error
        if error is not None:
            for line in clean(error.message[: _LONGEST_LINE * 2]).split("\n"):
                yield _said(f"  {line}", "error")
            for fault in error.faults:
                yield _said(f"  • {clean_line(fault.path or '/')}  {clean_line(fault.message)}", "error")
            if hint := advice(error):
                yield _said(f"  {hint}", "muted")
            if self.result.data is None:
                return
        yield _said("  " + "─" * 8, "muted")
        text = self._result_text()
        is_text = self.is_old or isinstance(self.result.data, str)
        lines = text.split("\n", RESULT_LINES)[:RESULT_LINES]
        for line in lines:
            shown = clean_line(line[:_LONGEST_LINE])
            yield Line(shown, () if is_text else tuple(json_parts(shown)), "  ", "  ")
            if len(line) > _LONGEST_LINE:
                yield _said(f"  … {count(len(line) - _LONGEST_LINE, 'more character')}", "muted")
        left = text.count("\n") + 1 - len(lines)
        if left > 0:
            yield _said(f"  … {count(left, 'more line')}", "muted")

    def _result_text(self) -> str:
        if self.result is None:
            return ""
        if self.is_old:
            return self.told
        if self.result.data is None and self.result.error is not None:
            return self.result.error.message
        return as_text(self.result.data)

    def _how_to_answer(self, width: int) -> Row:
        """Return the line above the answers: how to select the card, or what the answers mean."""
        if not self.is_selected:
            way = f"{self.select_key} or a click" if self.select_key else "a click"
            text = f"  Not selected: {way} selects this call, then:"
        else:
            what = "exactly these arguments" if self.is_destructive else "any arguments"
            text = f"  Selected. s allows {what} in this session."
        text = fitted(text, width).rstrip() if cell_len(text) > width else text
        return Row(text, ((2, len(text), "warning" if self.is_selected else "muted"),))

    def _answers(self, width: int) -> Shown:
        said = [f"{key} {words}" for _, key, words in ANSWERS]
        gap = "   " if len("   ".join(said)) + 2 <= width else "  "
        text, pieces, places = "  ", list[Piece](), list[tuple[int, int, str]]()
        for (answer, key, _), words in zip(ANSWERS, said, strict=True):
            pieces.append((len(text), len(text) + len(key), "key" if self.is_selected else "muted"))
            places.append((len(text), len(text) + len(words), answer))
            text += words + gap
        return Shown(Row(text.rstrip(), tuple(pieces)), "asking", tuple(places))


def script_in(call: ToolCall) -> str | None:
    """Gives the script that a call runs, if it runs one."""
    script = call.args.get("commands")
    return script if call.name == "script.run" and isinstance(script, str) else None


def _shown(lines: Sequence[Line], width: int) -> Iterator[Shown]:
    for line in lines:
        for row in rows_of(line, width):
            yield Shown(row, "code" if row.is_code else "")


def _fold(unfolded: bool) -> str:
    return "▾" if unfolded else "▸"


def _said(text: str, mark: Mark) -> Line:
    indent = len(text) - len(text.lstrip())
    return Line(text[indent:], ((0, len(text) - indent, mark),), " " * indent, " " * indent)


def _json_lines(text: str, most: int | None) -> Iterator[Line]:
    lines = text.split("\n")
    for line in lines if most is None else lines[:most]:
        shown = clean_line(line if most is None else line[:_LONGEST_LINE])
        yield Line(shown, tuple(json_parts(shown)), "  ", "    ")
    if most is not None and len(lines) > most:
        yield _said(f"  … {count(len(lines) - most, 'more line')}", "muted")


def _script_lines(script: str, most: int | None) -> Iterator[Line]:
    lines = script.rstrip("\n").split("\n")
    for line in lines if most is None else lines[:most]:
        yield Line(clean_line(line if most is None else line[:_LONGEST_LINE]), (), "  │ ", "  │   ")
    if most is not None and len(lines) > most:
        yield _said(f"  … {count(len(lines) - most, 'more line')}", "muted")


def _expected_lines(analysis: ScriptAnalysis | None) -> Iterator[Line]:
    """Says what a script will call, as far as that can be known."""
    if analysis is None:
        yield _said("  What it calls is being looked for …", "muted")
        return
    if analysis.error is not None:
        yield _said(f"  It can't be read to its end: {clean_line(analysis.error)}", "error")
    said = Counter((call.tool, call.words, call.faults) for call in analysis.calls)
    yield _said("  It calls:" if said else "  No call of a tool stands in it.", "muted")
    for (tool, words, faults), times in list(said.items())[:EXPECTED_LINES]:
        name = clean_line(tool)
        text = clean_line(" ".join("…" if word is None else shlex.quote(word) for word in words))
        often = f"  ×{times}" if times > 1 else ""
        end = len(name) + len(text) + 1
        yield Line(
            f"{name} {text}{often}", ((0, len(name), "strong"), (end, end + len(often), "muted")), "  • ", "    "
        )
        for fault in faults:
            yield _said(f"    {clean_line(fault)}", "error")
    if len(said) > EXPECTED_LINES:
        yield _said(f"  … {count(len(said) - EXPECTED_LINES, 'more call')}, all in the script below", "muted")
    for sentence in analysis.unknown:
        yield _said(f"  ! {clean_line(sentence)}", "warning")
    if analysis.unknown:
        yield _said("  ! So it may call other tools, too.", "warning")


def _inner_line(inner: Inner) -> Line:
    result = inner.result
    sign = "▶" if result is None else "✓" if result.ok else "⊘" if _was_stopped(result) else "✗"
    facts = "" if result is None else " · ".join(_outcome(result))
    text = f"{sign} {clean_line(inner.call.name)}  {preview(inner.call.args, 60)}  {facts}".rstrip()
    return Line(text, ((0, len(text), "muted"),), "  ├ ", "  │ ")


def _was_stopped(result: ToolResult | None) -> bool:
    return result is not None and result.error is not None and result.error.detail in {"cancelled", "denied"}


def _outcome(result: ToolResult) -> list[str]:
    said = []
    if result.error is not None:
        said.append(clean_line(result.error.detail or result.error.code))
    elif not result.ok:
        said.append("failed")
    if result.meta.cached:
        said.append("cached")
    elif result.meta.duration_ms:
        said.append(duration(result.meta.duration_ms))
    if result.meta.size and (result.ok or result.data is not None):
        said.append(size(result.meta.size))
    if result.meta.truncated is not None:
        said.append("truncated")
    return said


def _progress(progress: Progress) -> str:
    of = f" of {progress.total:,g}" if progress.total else ""
    message = clean_line(progress.message[:500])
    return f"{progress.done:,g}{of}{' · ' + message if message else ''}"
