"""The scope of an approval: which arguments a rule allows, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Label, RadioButton, RadioSet, Static

from pegboard.data.mask import masked_secret
from pegboard.models import ToolCall, ToolSpec
from pegboard.models.approval import Approval
from pegboard.models.rule import Rule
from pegboard.models.rule_scope import ANYTHING, any_rule, exact_rule, pattern_rule, suggested_patterns
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.widgets.control_pictures import ControlPictures
from pegboard.tui.widgets.cut_text import CutText
from pegboard.tui.widgets.question import QuestionScreen
from pegboard.tui.widgets.text_input import TextInput

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_Arguments = Literal["exactly", "pattern", "any"]
_ARGUMENTS: tuple[tuple[_Arguments, str], ...] = (
    ("exactly", "Exactly these arguments"),
    ("pattern", "Arguments that match a pattern"),
    ("any", "Any arguments"),
)
_LONGEST_PREVIEW = 1_000


class _Option(RadioButton):
    """Radio button whose shape shows whether it is chosen; Textual's differs only by color."""

    @property
    def BUTTON_INNER(self) -> str:  # type: ignore[override]  # noqa: N802 - Textual's class variable
        """Character of the button."""
        return "●" if self.value else "○"


class _Options(RadioSet):
    """Options of which the arrow keys choose one; in Textual's set they move a highlight, which looks like a choice."""

    def action_previous_button(self) -> None:
        """Choose the previous option, unless the first one is chosen."""
        if self.pressed_index > 0:
            super().action_previous_button()
            self.action_toggle_button()

    def action_next_button(self) -> None:
        """Choose the next option, unless the last one is chosen."""
        if self.pressed_index < len(self.children) - 1:
            super().action_next_button()
            self.action_toggle_button()


class ApprovalScope(QuestionScreen[Approval | None]):
    """A dialog that returns an approval with a rule, or None to leave the call awaiting approval.

    Args:
        runtime: The runtime that matches rules.
        spec: The tool.
        call: The call awaiting approval.
        shown: The call with secrets masked.
        is_waiting: Returns whether the call still awaits approval; called when the app's waiting calls change.
        session_problem: Why no rule can be added for the session, as a clause; empty if one can.
    """

    PAGE = "Scope of the rule"
    AUTO_FOCUS = "#arguments"
    ANSWERS = ("scope.allow",)

    DEFAULT_CSS = """
    ApprovalScope {
        & > #box {
            width: 90; max-width: 96%; height: auto; max-height: 96%; padding: 0 1;
            border: round $warning; border-title-color: $text-warning;
        }
        #choices { height: auto; }
        #choices Vertical { height: auto; }
        _Options, _Options:focus { border: none; padding: 0; background: transparent; width: 1fr; }
        RadioButton { background: transparent; padding: 0 1 0 0; }
        _Options > RadioButton > .toggle--button { color: $text-muted; background: $surface; }
        _Options > RadioButton.-on > .toggle--button { color: $text-success; }
        .title { color: $text-muted; }
        #patterns { height: auto; max-height: 7; display: none; scrollbar-size-vertical: 1; }
        &.-pattern #patterns { display: block; }
        #patterns Horizontal { height: 1; }
        #patterns Label { width: 20; color: $text-primary; text-wrap: nowrap; text-overflow: ellipsis; }
        #patterns Input, #patterns Input:focus {
            border: none; border-left: outer $border; height: 1; padding: 0 1; background: $panel; width: 1fr;
        }
        #preview { height: auto; max-height: 6; margin-top: 1; }
        #state { height: auto; color: $text-error; }
        #foot { margin: 0 0 1 0; }
        Button { margin-left: 2; min-width: 12; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("scope.allow", "ctrl+s", "allow", "Add rule", "Add the rule and run the call.", footer=True),
        Command("scope.close", "escape", "close", "Close", "Close; the call still awaits approval.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(
        self,
        runtime: Runtime,
        spec: ToolSpec,
        call: ToolCall,
        shown: ToolCall,
        is_waiting: Callable[[], bool],
        *,
        session_problem: str = "",
    ) -> None:
        super().__init__(f"Allow {clean_line(call.name)} without asking?")
        self._runtime = runtime
        self._spec = spec
        self._call = call
        self._shown = shown.model_copy(update={"name": call.name})
        self._is_waiting = is_waiting
        self._session_problem = session_problem
        self._suggested = [
            (name, pattern if masked_secret(shown.args.get(name)) is None else ANYTHING)
            for name, pattern in suggested_patterns(spec, call, _is_safe)
        ]
        self._is_over = False

    def compose_body(self) -> ComposeResult:
        """Compose the choices, the patterns, the preview and the buttons."""
        with Horizontal(id="choices"):
            with Vertical():
                yield Label("Which calls", classes="title")
                yield _Options(*(_Option(Content(text)) for _, text in _ARGUMENTS), id="arguments")
            with Vertical():
                yield Label("For how long", classes="title")
                yield _Options(_Option("This session"), _Option("Permanently"), id="duration")
        with VerticalScroll(id="patterns", can_focus=False):
            for name, pattern in self._suggested:
                with Horizontal():
                    yield Label(Content(clean_line(name)))
                    yield TextInput(pattern, "any value", ControlPictures(), select_on_focus=False)
        yield CutText(id="preview")
        with Vertical(id="foot"):
            yield Static(id="state")
            with Horizontal():
                yield Button(Content("Close"), id="close", compact=True)
                yield Button(Content("Add rule"), id="allow", variant="warning", compact=True)

    def on_mount(self) -> None:
        """Select the most specific scope, and watch whether the call still awaits approval."""
        for radio_set in self.query(RadioSet):
            radio_set.query(RadioButton).first().value = True
        for waiting in ("requests", "agent_calls"):
            self.watch(self.app, waiting, self._update)
        self._preview()

    def _update(self) -> None:
        self._is_over = not self._is_waiting()
        self._preview()

    # The rule

    @property
    def _arguments(self) -> _Arguments:
        return _ARGUMENTS[max(self.query_one("#arguments", RadioSet).pressed_index, 0)][0]

    @property
    def _is_permanent(self) -> bool:
        return self.query_one("#duration", RadioSet).pressed_index == 1

    def _rule_for(self, call: ToolCall) -> Rule:
        match self._arguments:
            case "exactly":
                return exact_rule(self._spec, call)
            case "pattern":
                patterns = [one.value for one in self.query("#patterns Input").results(Input)]
                return pattern_rule(call, zip((name for name, _ in self._suggested), patterns, strict=True))
            case "any":
                return any_rule(call)

    @property
    def _shown_rule(self) -> str:
        """The rule as text, without secrets; the widgets that show it cut it visibly."""
        rule = clean_line(str(self._rule_for(self._shown)))
        return rule if len(rule) <= _LONGEST_PREVIEW else f"{rule[:_LONGEST_PREVIEW]}…"

    @property
    def _problem(self) -> str:
        """Why the rule can't be added; empty if it can."""
        if self._is_over:
            return "This call can't be approved because it has already ended. Close this dialog."
        if self._session_problem and not self._is_permanent:
            return f"The rule can't be added for this session because {self._session_problem}."
        if not self._runtime.rules.matches(self._rule_for(self._call), self._call):
            return "The rule doesn't match this call. Change the patterns, or choose exactly these arguments."
        return ""

    @on(RadioSet.Changed)
    @on(Input.Changed)
    def _chosen(self) -> None:
        self.set_class(self._arguments == "pattern", "-pattern")
        self._preview()

    def _preview(self) -> None:
        if not self.query("#state"):
            return
        file = clean_line(str(self._runtime.paths.approvals))
        where = f"Written to {file}" if self._is_permanent else "In memory until the session or Pegboard ends"
        preview = Content.assemble((f"{where}:\n", "$text-muted"), (self._shown_rule, "bold"))
        self.query_one("#preview", CutText).text = preview
        problem = self._problem
        state = self.query_one("#state", Static)
        state.display = bool(problem)
        state.update(Content(problem))
        self.query_one("#allow", Button).disabled = bool(problem)

    # Answers

    def answer_by_button(self, button: str) -> None:
        """Close, or allow the calls."""
        if button == "close":
            self.action_close()
        else:
            self.action_allow()

    @work(exclusive=True, group="allow")
    async def action_allow(self) -> None:
        """Close with the approval; confirm a permanent rule for a destructive tool first."""
        if self._problem:
            self.app.bell()
            return
        rule = self._rule_for(self._call)
        if not self._is_permanent:
            self.dismiss(Approval(answer="session", rule=rule))
            return
        if not self._spec.hints.destructive or await self._confirmed():
            self._allow_permanently(rule)

    def _allow_permanently(self, rule: Rule) -> None:
        if not self._problem:  # the call may have ended meanwhile
            self.dismiss(Approval(answer="always", rule=rule))

    async def _confirmed(self) -> bool:
        name = clean_line(self._call.name)
        rule = self._shown_rule
        question = f"{name} may delete or overwrite. From now on such calls run without asking:\n\n{rule}"
        return await self.app.push_screen_wait(Confirm(f"Allow {name} permanently?", question, "Allow")) is True


def _is_safe(text: str) -> bool:
    return text == clean_line(text) and text.isprintable()
