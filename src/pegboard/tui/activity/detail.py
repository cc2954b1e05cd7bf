"""The selected call: its facts, arguments and result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from pegboard.models import Agent, RecordedCall, ToolCall, ToolResult
from pegboard.models.ask import StoppedBy
from pegboard.models.turn import ModelTurn
from pegboard.results.arguments import arguments_text
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import count, duration, local_time, thousands
from pegboard.results.text import as_text
from pegboard.tui.activity.call_list import sign_of
from pegboard.tui.activity.rows import CallRow
from pegboard.tui.result import ResultPane
from pegboard.tui.widgets.cut_text import CutText

if TYPE_CHECKING:
    from pegboard.runtime.activity import Activity

_ARGUMENTS: Final = 4_000
_STOPPED: Final[dict[StoppedBy, str]] = {
    "steps": "stopped at the limit of steps",
    "tokens": "stopped at the limit of tokens",
    "time": "stopped at the time limit",
    "size": "stopped at the limit of one turn",
    "invalid_args": "stopped after invalid calls",
    "length": "cut off at the model's limit of tokens",
    "filter": "ended by a content filter",
    "unknown": "perhaps incomplete",
}


def call_of(call: RecordedCall) -> ToolCall:
    """Return a recorded call as the call that was made."""
    return ToolCall(
        id=call.id,
        name=call.tool,
        args=call.args,
        source=call.source,
        session=call.session,
        parent=call.parent,
        agent=Agent(name=call.agent) if call.agent else None,
    )


@dataclass(frozen=True)
class CallDetail:
    """The parts of a call that the pane shows. Writing large arguments takes long, so this is made in a thread.

    Attributes:
        call: The call.
        result: Its result; None while it runs or if it is not stored.
        made: The call that was made.
        file: Version of the file that contains the whole result.
        compact: The arguments on one line.
        text: The arguments as text.
    """

    call: RecordedCall
    result: ToolResult | None
    made: ToolCall
    file: tuple[int, ...]
    compact: str
    text: str

    @classmethod
    def read(cls, activity: Activity, call_id: str) -> CallDetail | None:
        """Read a call and its result; return None if there is no such call. Block."""
        call = activity.get(call_id)
        if call is None:
            return None
        result = activity.result(call_id)
        line_break = "⏎" if call.tool == "script.run" else " "  # only JSON and prose mean the same without it
        compact = line_break.join(part.strip() for part in _text_of(call, as_text).splitlines())
        return cls(call, result, call_of(call), _file_version(result), compact, _text_of(call, arguments_text))


class CallResultPane(ResultPane):
    """The result of a recorded call."""

    EMPTY = "Select a call to see its result."


class CallDetailPane(Vertical):
    """Facts, arguments and result of a call.

    Args:
        folder: Folder for a copied text if no clipboard is available.
    """

    PAGE = "Selected call"
    SCOPED_CSS = False  # the screen has the classes
    DEFAULT_CSS = """
    CallDetailPane {
        #facts { height: auto; max-height: 3; padding: 0 1; color: $text-muted; }
        #arguments { height: auto; max-height: 8; padding: 0 1; }
        CallResultPane { height: 1fr; }
    }
    Screen.-narrow CallDetailPane, Screen.-short CallDetailPane {
        #facts { max-height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
        #arguments { max-height: 2; }
    }
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._facts = Static(id="facts")
        self._arguments = CutText(id="arguments")
        self.result = CallResultPane(folder=folder)
        """The pane with the result."""
        self.call: RecordedCall | None = None
        """The call whose result is shown."""
        self._file: tuple[int, ...] = ()
        """Version of the file that contains the whole of the shown result."""

    def compose(self) -> ComposeResult:
        """Yield facts, arguments and result."""
        yield self._facts
        yield self._arguments
        yield self.result

    def announce(self, row: CallRow | None) -> None:
        """Show what the list knows about a call, until its result is read."""
        if row is None:
            self.border_title = Content("Call")
            self._facts.update("")
            self._arguments.text = Content()
            self.call = None
            self.result.clear()
            self.result.hint = ""
            return
        sign, style = sign_of(row)
        name = Content.assemble(row.tool, (f"  {sign} {row.reason or row.state}", style))
        self.border_title = name
        if self.call is None or self.call.id != row.id:
            facts = [local_time(row.at), row.source, row.origin]
            self._facts.update(Content(" · ".join(filter(None, facts))), layout=False)
            self._arguments.text = Content.styled(row.arguments, "$text-muted")

    def forget(self) -> None:
        """Read the call and its result again when it is shown next."""
        self.call = None

    def _is_shown(self, detail: CallDetail) -> bool:
        """Return whether the pane shows exactly this call and result, so that what the user reads can stay."""
        try:
            is_equal = (self.result.call, self.result.result) == (detail.made, detail.result)
        except RecursionError:  # nested too deeply to be compared
            return False
        return is_equal and self._file == detail.file

    def show(self, detail: CallDetail) -> None:
        """Show a call and its result."""
        call, result = detail.call, detail.result
        is_same = (self.call is not None and self.call.id == call.id) or self._is_shown(detail)
        self.call, self._file = call, detail.file
        self._facts.update(Content(" · ".join(_facts(call, result))))
        if call.is_turn and result is not None and result.ok:
            result = None  # the answer is in the chat
        narrow = self.screen.has_class("-narrow") or self.screen.has_class("-short")
        is_compact = narrow or len(detail.compact) < self.size.width
        self._arguments.text = Content(detail.compact if is_compact else detail.text)
        if result is not None:
            if not is_same or self.result.result is None:
                self.result.show(detail.made, result)
            return
        self.result.clear()
        self.result.hint = (
            "A turn has no result of its own. Its calls do."
            if call.is_turn
            else "The call waits for approval, or for the end of a pause. Open it to answer it."
            if call.state == "waiting"
            else "The call is still running. Its result appears here."
            if call.state == "running"
            else clean_line(call.error.message)
            if call.state == "interrupted" and call.error is not None
            else "The result of this call is not stored."
        )


def _file_version(result: ToolResult | None) -> tuple[int, ...]:
    """Return what distinguishes versions of the file that contains the whole of a large result; empty without one."""
    if result is None or result.meta.truncated is None:
        return ()
    try:
        status = Path(result.meta.truncated.file).stat()
    except (OSError, ValueError):
        return ()
    return status.st_mtime_ns, status.st_ino, status.st_size


def _text_of(call: RecordedCall, write: Callable[[JsonValue], str]) -> str:
    """Return the beginning of the arguments of a call, the commands of a script, or the text of a turn, sanitized.

    Args:
        call: The call.
        write: Returns arguments as text.
    """
    commands = call.args.get("commands")
    if call.is_turn:
        text = ModelTurn.of(call).text
    elif call.tool == "script.run" and isinstance(commands, str):
        text = commands
    else:
        text = write(call.args) if call.args else ""
    return clean(text) if len(text) <= _ARGUMENTS else f"{clean(text[:_ARGUMENTS])}…"


def _facts(call: RecordedCall, result: ToolResult | None) -> list[str]:
    facts = [local_time(call.at), call.source]
    agent = Agent.of_session(call.session)
    if agent is not None or call.agent:
        facts.append(f"agent {clean_line(str(agent or call.agent))}")
    if agent is None and call.session:
        facts.append(f"session {clean_line(call.session)[:12]}")
    if result is not None and result.meta.worker:
        facts.append(clean_line(result.meta.worker))
    if call.is_turn:
        turn = ModelTurn.of(call)
        facts += [_STOPPED[turn.stopped_by]] if turn.stopped_by in _STOPPED else []
        facts += [clean_line(turn.model)] if turn.model else []
        facts.append(count(call.calls, "call"))
        tokens = turn.usage.input_tokens + turn.usage.output_tokens
        facts += [f"{thousands(tokens)} tokens"] if tokens else []
        facts += [count(turn.steps, "response")] if turn.steps else []
    elif call.calls:
        facts.append(count(call.calls, "inner call"))
    if result is not None and result.meta.waited_ms:
        facts.append(f"waited {duration(result.meta.waited_ms)} for approval")
    if call.parent:
        facts.append(f"made by {clean_line(call.parent)[:12]}")
    if call.pinned:
        facts.append("pinned")
    facts.append(f"id {clean_line(call.id)[:12]}")
    return facts
