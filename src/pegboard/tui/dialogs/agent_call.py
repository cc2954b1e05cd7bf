"""The card of a call of another agent that awaits approval."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias, cast

from pydantic import JsonValue
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Button, Static

from pegboard.brake import RESUMED, RULE, Answer, AnsweredError, AnswerTerm, BrakeError, Question, Questions
from pegboard.data.json_text import JsonTextError, parse
from pegboard.data.mask import masked_secret, moved_secret, restored
from pegboard.models import JsonObject, ToolCall
from pegboard.results.arguments import argument_lead, argument_parts, arguments_text
from pegboard.results.clean import clean, clean_line
from pegboard.results.text import as_text
from pegboard.tui.commands import Command, bindings, key_or_title
from pegboard.tui.dialogs.approval_scope import ApprovalScope
from pegboard.tui.dialogs.ask_name import AskName
from pegboard.tui.dialogs.ask_text import AskText
from pegboard.tui.dialogs.edit_call import EditCallScreen
from pegboard.tui.result.text import TextView
from pegboard.tui.shell.too_small import is_too_small
from pegboard.tui.widgets.cut_text import CutText
from pegboard.tui.widgets.question import QuestionScreen

if TYPE_CHECKING:
    from pegboard.models.approval import Approval
    from pegboard.runtime import Runtime
    from pegboard.tui.state.rule_undo import RuleUndo

_TERMS: Final[dict[AnswerTerm, str]] = {"once": "", "session": " for its session", "always": " with a permanent rule"}
_Choice: TypeAlias = Literal["once", "session", "always", "reject", "reject_why", "edit"]
_ALL_BUTTONS: Final = 80
"""Columns of a terminal with space for all buttons."""
_LONGEST_NAME: Final = 120
"""Columns of a name beside other texts."""
_OF_SOME: Final = {"session": "agent.session", "always": "agent.always", "edit": "agent.edit"}
"""Answers that not all calls have, with their commands."""
_NOT_LISTED: Final = "This app doesn't list {tool}, so it can't build a permanent rule. Press {key} to allow it {term}."
_EDIT_OVER: Final = "{outcome} Your changes don't apply. Copy the text if you need it; {key} closes."
_NOT_SENT: Final = "Your answer was not used. {outcome}"
_NOT_WRITTEN: Final = "The rule was not added because the arguments contain a secret. Press {key} to allow it {term}."


@dataclass(frozen=True)
class AgentCall:
    """A waiting call as the card shows it."""

    question: Question
    args: JsonValue
    """Its arguments without known secrets."""
    text: str
    """These arguments as indented JSON; not sanitized."""
    lines: str
    """These arguments as the card shows them; sanitized."""

    @classmethod
    def read(cls, runtime: Runtime, question: Question) -> AgentCall:
        """Return the call of a question without secrets; read the disk."""
        args = runtime.redacted_args(question.args)
        return cls(question, args, as_text(args), clean(arguments_text(args)))

    def restored(self, edited: JsonValue) -> JsonValue:
        """Return edited arguments with the secrets that the user saw masked and left unchanged."""
        return restored(edited, self.args, self.question.args)

    @property
    def call(self) -> ToolCall:
        """The call as rules match it."""
        question = self.question
        return ToolCall(id=question.call, name=question.tool, args=question.args, source="serve")

    @property
    def shown(self) -> ToolCall:
        """The call without known secrets."""
        return self.call.model_copy(update={"args": self.args if isinstance(self.args, dict) else {}})


class _Arguments(TextView):
    """The arguments of a call; a message says when their rows have changed."""

    class RowsChanged(Message):
        """The rows were laid out."""

    def rows_changed(self) -> None:
        """Update the view after a change of the rows."""
        super().rows_changed()
        self.post_message(self.RowsChanged())


class AgentCallScreen(QuestionScreen[None]):
    """The card of a waiting call, with all its arguments. It closes when another process answers first.

    It never opens by itself, and the focus is on the arguments, which only scroll: no key or click that was meant for
    another pane answers the call.

    Args:
        runtime: Redacts the arguments.
        questions: Receives the answer.
        call: The call.
    """

    PAGE = "Call from an agent"
    AUTO_FOCUS = "TextView"
    ANSWERS = ("agent.approve", "agent.session", "agent.always", "agent.reject", "agent.reject_why", "agent.edit")

    DEFAULT_CSS = """
    AgentCallScreen {
        & > #box {
            width: 100; max-width: 96%; height: 24; max-height: 92%; padding: 0 1;
            border: round $warning; border-title-color: $text-warning;
        }
        #from { height: auto; max-height: 6; }
        TextView { height: 1fr; min-height: 3; padding: 0; }
        #note { height: auto; color: $text-muted; }
        #foot { margin: 0 0 1 0; }
        Button { margin-left: 2; min-width: 10; }
        #session, #always, #edit { display: none; }
        &.-slim #reject_why { display: none; }
        &.-rules Button { margin-left: 1; min-width: 6; }
        &.-session #session, &.-rules #always, &.-edit #edit { display: block; }
    }
    """
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("agent.approve", "a", "answer('once')", "Once", "Approve the call once.", footer=True),
        Command(
            "agent.session", "s", "answer('session')", "Session", "Approve the tool for this session.", footer=True
        ),
        Command(
            "agent.always", "A", "answer('always')", "Always", "Add a rule: choose which calls and for how long.", True
        ),
        Command("agent.reject", "r", "answer('reject')", "Reject", "Reject the call.", footer=True),
        Command(
            "agent.reject_why",
            "R",
            "answer('reject_why')",
            "Reject with reason",
            "Reject the call with a reason.",
            True,
        ),
        Command("agent.edit", "e", "answer('edit')", "Edit", "Edit the arguments, then run the call.", footer=True),
        Command("agent.close", "escape", "close", "Close", "Close; the call still awaits approval.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, questions: Questions, call: AgentCall) -> None:
        super().__init__()
        self._runtime = runtime
        self._questions = questions
        self._call = call
        self._is_over = False
        self._is_choosing = False
        """Whether a dialog of an answer is open, whose result is still wanted."""
        self._outcome = ""
        self._editor: AskText | None = None
        self._from = CutText(id="from")
        self._arguments = _Arguments(highlight=argument_parts, lead=argument_lead)
        self._note = Static(id="note")

    @property
    def question(self) -> Question:
        """The question that is shown."""
        return self._call.question

    def compose_body(self) -> ComposeResult:
        """Compose the origin, the arguments, the note and the buttons."""
        yield self._from
        yield self._arguments
        yield self._note
        with Horizontal(id="foot"):
            yield Button(Content("Reject"), id="reject", compact=True)
            yield Button(Content("Reject with reason"), id="reject_why", compact=True)
            yield Button(Content("Edit"), id="edit", compact=True)
            yield Button(Content("Always…"), id="always", compact=True)
            yield Button(Content("Session"), id="session", compact=True)
            yield Button(Content("Approve once"), id="once", variant="warning", compact=True)

    def on_mount(self) -> None:
        """Show the call, and close when it no longer waits."""
        self._show()
        self.watch(self.app, "agent_calls", self._update)

    def on_resize(self, event: events.Resize) -> None:
        """Leave out a button if not all of them fit; its key stays."""
        self.set_class(event.size.width < _ALL_BUTTONS, "-slim")

    def show(self, call: AgentCall) -> None:
        """Show another call; the delay starts again."""
        self._call = call
        self._is_over = False
        self._outcome = ""
        self._show()
        self._arguments.focus()
        self.on_screen_resume()

    @property
    def answers(self) -> Collection[str]:
        """The `ANSWERS` to this call; only those of `pegboard serve` can add a rule, and some agents accept no edit."""
        left_out = {command for choice, command in _OF_SOME.items() if not self._accepts(choice)}
        return [one for one in self.ANSWERS if one not in left_out]

    def _accepts(self, choice: object) -> bool:
        """Return whether this call can be answered so."""
        if choice == "session":
            return not self.question.session_problem
        if choice == "edit":
            return not self.question.edit_problem
        return choice != "always" or self.question.accepts_rule

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the answers that this call doesn't have."""
        is_possible = action != "answer" or self._accepts(parameters[0])
        return is_possible and super().check_action(action, parameters)

    def on_screen_resume(self) -> None:
        """Start the delay, or close if the call no longer waits."""
        super().on_screen_resume()
        if self._is_over and not self._is_choosing:
            self.call_later(self.action_close)  # Not `dismiss`, which may not be awaited here.

    @on(_Arguments.RowsChanged)
    def _await_drawing(self) -> None:
        """Start the delay again once the arguments are visible, which is later than the dialog on a busy machine."""
        self.call_after_refresh(self.start_delay)

    def start_delay(self) -> None:
        """Start the delay if the arguments are visible."""
        if self._arguments.row_count:
            super().start_delay()

    def _show(self) -> None:
        question = self.question
        # The tool is first: an agent's name may be long, and look like the name of another tool.
        title = f"{clean_line(question.tool)} · called by {clean_line(question.agent)}"
        self.query_one("#box").border_title = Content(title)
        rows = (("Agent", _cut(question.agent)), ("Server", _cut(question.server)), ("Tool", clean_line(question.tool)))
        lines = [Content.assemble((f"{name:8}", "$text-muted"), (text, "bold")) for name, text in rows if text]
        self._from.text = Content("\n").join([*lines, Content.styled(clean_line(question.reason), "$text-warning")])
        self._arguments.replace_text(self._call.lines)
        note = "The agent's client may time out while the call waits."
        if self._accepts("session"):
            scope = "exactly these" if question.is_session_exact else "any"
            note += f"\n{key_or_title(self, 'agent.session')} allows {scope} arguments in this session."
        if question.edit_problem:
            note += f"\nThe arguments can't be edited: {clean_line(question.edit_problem)}."
        self._note.update(Content(note))
        self.set_class(self._accepts("session"), "-session")
        self.set_class(question.accepts_rule, "-rules")
        self.set_class(self._accepts("edit"), "-edit")
        self.refresh_bindings()
        self._count()

    def _count(self) -> None:
        waiting: tuple[Question, ...] = getattr(self.app, "agent_calls", ())
        number = next((at for at, one in enumerate(waiting, 1) if one.id == self.question.id), 0)
        several = f"{number:,} of {len(waiting):,} calls" if number and len(waiting) > 1 else ""
        self.query_one("#box").border_subtitle = Content(several)

    def _update(self, waiting: tuple[Question, ...]) -> None:
        if any(one.id == self.question.id for one in waiting):
            self._count()
        elif not self._is_over:
            self._is_over = True
            self._report_other_answer(self._call)

    @work
    async def _report_other_answer(self, call: AgentCall) -> None:
        """Show who answered a call, and close unless another one is shown by now."""
        answer = await asyncio.to_thread(self._questions.read_answer, call.question.id)
        outcome = _outcome(call.question, answer)
        self.app.notify(outcome, markup=False)
        if self._call is not call:
            return
        self._outcome = outcome
        editor = self._editor
        if editor is not None and editor.is_attached:
            editor.end(_EDIT_OVER.format(outcome=outcome, key=key_or_title(editor, "text.close")))
        self.dismiss(None)

    # Answers

    def action_answer(self, choice: _Choice) -> None:
        """Answer the call, after the dialog that the answer requires."""
        if is_too_small(self.app.size):
            self.notify("Make the terminal larger to see the call before you answer it.", severity="warning")
        elif not self._is_over:
            self._answer(choice)

    def answer_by_button(self, button: str) -> None:
        """Answer the call by a button, after the dialog that the answer requires."""
        if button in {"once", "session", "always", "reject", "reject_why", "edit"}:
            self.action_answer(cast("_Choice", button))

    @work(exclusive=True, group="answer")
    async def _answer(self, choice: _Choice) -> None:
        call = self._call
        self._is_choosing = True
        try:
            answer = await self._chosen(choice, call)
        finally:
            self._is_choosing = False
        if self._call is not call:
            return
        if self._is_over:
            if self._outcome:  # answered by others while the dialog of this answer was open
                if answer is not None:
                    self.app.notify(_NOT_SENT.format(outcome=self._outcome), severity="warning", markup=False)
                self.dismiss(None)
            return
        if answer is None:
            return
        self._is_over = True  # The app learns of the own answer like of every other.
        self.app.run_worker(self._send(call, answer), group="agent-answers")  # Even if the card is closed meanwhile.

    async def _send(self, call: AgentCall, answer: Answer) -> None:
        """Write an answer and close."""
        try:
            await asyncio.to_thread(self._questions.answer, call.question.id, answer)
        except AnsweredError:
            self._report_other_answer(call)
            return
        except BrakeError as error:
            if self._call is call:
                self._is_over = False
            self.app.notify(clean_line(str(error)), severity="error", markup=False)
            return
        if answer.lasts != "once":
            undo: RuleUndo = self.app.rule_undo  # type: ignore[attr-defined]
            self.app.run_worker(undo.added_elsewhere(self._questions, call.question, answer), group="agent-rules")
        if self._call is call:
            self.dismiss(None)

    async def _always(self, call: AgentCall) -> Approval | None:
        """Return an approval with the rule that the user chooses; None if none was chosen or it can't be added."""
        spec = self._runtime.tools.get(call.question.tool)
        if spec is None:
            self._notify_instead(_NOT_LISTED, call)
            return None
        problem, is_waiting = call.question.session_problem, partial(self._is_waiting, call)
        dialog = ApprovalScope(self._runtime, spec, call.call, call.shown, is_waiting, session_problem=problem)
        approval: Approval | None = await self.app.push_screen_wait(dialog)
        if approval is None or approval.rule is None:
            return None
        has_arguments = approval.rule.exactly is not None or bool(approval.rule.where)
        if approval.answer == "always" and has_arguments and masked_secret(call.args) is not None:
            self._notify_instead(_NOT_WRITTEN, call)
            return None
        return approval

    def _is_waiting(self, call: AgentCall) -> bool:
        return any(one.id == call.question.id for one in getattr(self.app, "agent_calls", ()))

    def _notify_instead(self, text: str, call: AgentCall) -> None:
        """Show why no rule is added, with the key of the answer that lasts the longest without one."""
        is_once = bool(call.question.session_problem)
        key = key_or_title(self, "agent.approve" if is_once else "agent.session")
        term = "once" if is_once else "in this session"
        shown = text.format(tool=clean_line(call.question.tool), key=key, term=term)
        self.app.notify(shown, severity="warning", markup=False)

    async def _chosen(self, choice: _Choice, call: AgentCall) -> Answer | None:
        by = f"Pegboard (process {os.getpid()})"
        match choice:
            case "once":
                return Answer("approve", by=by)
            case "session":
                return Answer("approve", by=by, lasts="session")
            case "always":
                approval = await self._always(call)
                lasts: AnswerTerm = "always" if approval is not None and approval.answer == "always" else "session"
                return None if approval is None else Answer("approve", by=by, lasts=lasts, rule=approval.rule)
            case "reject":
                return Answer("reject", by=by)
            case "reject_why":
                title = f"Why are you rejecting {clean_line(call.question.tool)}?"
                reason: str | None = await self.app.push_screen_wait(AskName(title))
                return None if reason is None else Answer("reject", reason, by=by)
            case "edit":
                edited = await self._edited(call)
                return None if edited is None else Answer("approve", args=edited, by=by)

    async def _edited(self, call: AgentCall) -> JsonObject | None:
        """Return the edited arguments: from the form if `pegboard serve` asks for a tool that this app lists too."""
        question, note = call.question, "The call runs with these arguments."
        spec = self._runtime.tools.get(question.tool) if question.via == "serve" else None
        if spec is not None and isinstance(call.args, dict):
            form = EditCallScreen(spec, call.args, question.args, note=note, is_waiting=partial(self._is_waiting, call))
            filled: JsonObject | None = await self.app.push_screen_wait(form)
            return filled
        title = f"Edit the arguments of {clean_line(question.tool)}"
        editor = self._editor = AskText(title, call.text, f"JSON object. {note}", partial(_problem, call=call))
        text: str | None = await self.app.push_screen_wait(editor)
        edited = None if text is None else call.restored(parse(text))
        return edited if isinstance(edited, dict) else None


def _problem(text: str, *, call: AgentCall) -> str:
    """Return why a text can't be the arguments of a call; empty if it can."""
    try:
        value = parse(text)
    except JsonTextError as error:
        return f"The text {error}."
    if not isinstance(value, dict):
        return 'The arguments must be a JSON object such as {"path": "."}.'
    return moved_secret(value, call.args)


def _cut(name: str) -> str:
    """Return the beginning of a name: a long one would push the rest out of sight."""
    return Content(clean_line(name)).truncate(_LONGEST_NAME, ellipsis=True).plain


def _outcome(question: Question, answer: Answer | None) -> str:
    """Return how a call ended that another process answered, or that no longer waits."""
    tool = _cut(question.tool)
    if answer is None:
        return f"{tool} no longer waits because the process that asked has ended."
    if answer.kind == "closed":
        return f"{tool} no longer waits. {clean_line(answer.reason)}"
    if answer.by == RESUMED:
        return f"{tool} no longer waits because calls were resumed."
    if answer.by == RULE:
        return f"{tool} no longer waits because a new rule allows it."
    if not answer.by_person:
        return f"{tool} was rejected. {clean_line(answer.reason)}"
    done = "approved" if answer.kind == "approve" else "rejected"
    return f"{_cut(answer.by) or 'Another process'} {done} {tool}{_TERMS[answer.lasts]}."
