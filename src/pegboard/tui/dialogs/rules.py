"""The dialog of the approval rules, which decide whether calls of models and MCP clients run, ask or are rejected.

The list has the order of the file. Below it is a call to test: the decision updates while the user types.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import ValidationError
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.getters import query_one
from textual.suggester import SuggestFromList
from textual.widgets import Input, Label, Static

from pegboard.data.json_text import JsonTextError, parse, write
from pegboard.errors import FormFaults, RulesError
from pegboard.forms.pairs import read_pairs
from pegboard.models import OF_CLIENTS, JsonObject, PackHandler, ToolCall, ToolSpec
from pegboard.models.rule import Rule, RuleAction, RuleFile
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings, key_or_title
from pegboard.tui.dialogs.form_dialog import FormDialog
from pegboard.tui.widgets.control_pictures import ControlPictures
from pegboard.tui.widgets.dialog import ListDialog
from pegboard.tui.widgets.pick_list import PickLine, PickList
from pegboard.tui.widgets.text_input import TextInput

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_NONE_YET = "No rules yet: read-only tools run, all others ask for approval.\nPress {key} to add the first rule."
_VERDICTS: dict[RuleAction, tuple[str, str]] = {
    "allow": ("✓ Runs.", "$text-success bold"),
    "ask": ("? Asks first.", "$text-warning bold"),
    "deny": ("✗ Is rejected.", "$text-error bold"),
}
_CALLERS: dict[Literal["ask", "mcp"], str] = {"ask": "a model", "mcp": "an MCP client"}
_NAMES_OFFERED = 2_000


@dataclass(frozen=True)
class _Decision:
    """The decision of the rules on a call."""

    rules: RuleFile
    """The rules at that time."""
    action: RuleAction | None = None
    """None if the call doesn't name a tool."""
    reason: str = ""
    rule: int | None = None
    error: str = ""
    """The validation errors of the arguments."""


class RulesScreen(ListDialog[None]):
    """A list of rules that can be edited, with a test of which rule decides on a call.

    Args:
        runtime: The runtime with the rules.
        call: The call to test first.
    """

    PAGE = "Rules"

    DEFAULT_CSS = """
    RulesScreen {
        & > #box { width: 120; max-width: 96%; height: 90%; }
        #file { height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        #trial { height: auto; padding: 0 1; border-top: solid $border-blurred; border-title-color: $text-muted; }
        #trial Horizontal { height: 1; }
        #trial Label { width: 11; color: $text-muted; }
        Input, Input:focus { border: none; height: 1; padding: 0 1; background: $panel; width: 1fr; }
        Input:focus { background: $block-cursor-blurred-background; }
        #answer { height: 3; margin-top: 1; }
    }
    RulesScreen.-flat #answer { margin-top: 0; }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("rules.new", "insert,ctrl+n", "new", "New", "Add a rule at the end.", footer=True),
        Command("rules.edit", "f2", "edit", "Edit", "Edit the selected rule, as enter does."),
        Command("rules.delete", "delete", "delete", "Delete", "Delete the selected rule.", footer=True),
        Command(
            "rules.up", "ctrl+up,alt+up", "shift(-1)", "Up", "Move the selected rule up: later rules win.", footer=True
        ),
        Command("rules.down", "ctrl+down,alt+down", "shift(1)", "Down", "Move the selected rule down."),
        Command("rules.whose", "ctrl+t", "whose", "Caller", "Test a call from a model or from an MCP client.", True),
        Command("rules.open", "f4", "open", "File", "Open the rules file in your editor.", footer=True),
        Command("rules.close", "escape", "close", "Close", "Close this dialog.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    _tool = query_one("#tool", Input)
    _arguments = query_one("#arguments", Input)
    _trial = query_one("#trial", Vertical)

    def __init__(self, runtime: Runtime, call: ToolCall | None = None) -> None:
        super().__init__(
            "Rules for calls of models and MCP clients",
            "the last matching rule wins · a matching deny always applies",
            pick_list=PickList(sign=lambda index: "▸ " if index == self._deciding else "  "),
        )
        self._runtime = runtime
        self._call = call
        self._source: Literal["ask", "mcp"] = "mcp" if call is not None and call.source in OF_CLIENTS else "ask"
        self._rules: RuleFile | None = None
        self._shifting = asyncio.Lock()
        self._deciding: int | None = None
        """Index of the rule that decides on the call."""

    def compose_body(self) -> ComposeResult:
        """Compose the rules and the call to test."""
        call = self._call
        names = [spec.name for spec in self._runtime.tools.all()]
        yield from self.compose_list()
        yield Static(id="file")
        with Vertical(id="trial"):
            with Horizontal():
                yield Label("Tool")
                suggester = SuggestFromList(names, case_sensitive=False)
                name = clean_line(call.name) if call else ""
                yield TextInput(name, highlighter=ControlPictures(), id="tool", suggester=suggester)
            with Horizontal():
                yield Label("Arguments")
                arguments = write(call.args) if call and call.args else ""
                yield TextInput(arguments, 'name=value …, or JSON: {"name": …}', ControlPictures(), id="arguments")
            yield Static(id="answer")

    def on_mount(self) -> None:
        """Read the rules, again whenever their file changes."""
        self.list.empty = "Loading…"
        self.watch(self.app, "rules_version", self._follow, init=False)

    def on_screen_resume(self) -> None:
        """Read the rules, which may have changed below another dialog."""
        self._test()

    def _follow(self) -> None:
        if self.is_current:
            self._test()

    # Display

    @property
    def _has_widgets(self) -> bool:
        """Whether the widgets still exist: while the app closes, inner widgets are removed first."""
        return bool(self.query("#arguments"))

    def _show(self, rules: RuleFile, marked: int | None = None) -> None:
        """Show the rules and select one."""
        if rules == self._rules and marked is None:
            return
        at = self.list.marked if marked is None and self._rules is not None else None
        if self._rules is not None and at is not None and self._rules.rules[at] in rules.rules:
            marked = rules.rules.index(self._rules.rules[at])
        self._rules = rules
        lines = [PickLine(clean_line(str(rule)), f"rule {number}") for number, rule in enumerate(rules.rules, 1)]
        if lines:
            self.list.empty = "No matching rules."
        elif rules.problem is None:
            self.list.empty = _NONE_YET.format(key=key_or_title(self, "rules.new"))
        else:
            self.list.empty = f"{clean_line(rules.problem.message)}\n{clean_line(rules.problem.fix)}"
        self.list.renew(lines, (self.list.marked or 0) if marked is None else marked)
        self.query_one("#file", Static).update(Content(clean_line(rules.file)))

    @on(PickList.Marked)
    def _marked(self, event: PickList.Marked) -> None:
        event.stop()
        self.refresh_bindings()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._test()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        (self._arguments if event.input is self._tool else self.list).focus()

    @work(exclusive=True, group="test")
    async def _test(self) -> None:
        """Show the decision on the call, and the current rules."""
        self._trial.border_title = Content(f"Would this call from {_CALLERS[self._source]} need approval?")
        session = self._call.session if self._call is not None else None
        decision = await asyncio.to_thread(
            _decide, self._runtime, self._tool.value.strip(), self._arguments.value, self._source, session
        )
        if not self._has_widgets:
            return
        self._deciding = decision.rule
        is_free = self._rules is None or not self.list.has_focus
        self._show(decision.rules, decision.rule if is_free else None)
        self.list.refresh()
        self.query_one("#answer", Static).update(_answer(decision))

    # Actions

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        self.action_edit()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the actions that need a selected rule or a readable file."""
        if action in {"edit", "delete", "shift"}:
            return self.list.marked is not None
        return self._rules is not None and self._rules.problem is None if action == "new" else True

    @work(exclusive=True, group="change")
    async def action_new(self) -> None:
        """Ask for a new rule and add it."""
        if self._rules is not None:
            await self._enter(self._rules, {"action": "allow", "tools": [self._tool.value.strip()]})

    @work(exclusive=True, group="change")
    async def action_edit(self) -> None:
        """Edit the selected rule."""
        at, rules = self.list.marked, self._rules
        if at is not None and rules is not None:
            await self._enter(rules, _as_arguments(rules.rules[at]), at)

    async def _enter(self, rules: RuleFile, values: JsonObject, at: int | None = None) -> None:
        """Ask for a rule and write it; if another program has changed the file, ask again with the entered values.

        Args:
            rules: The rules that the user saw.
            values: Initial values of the form.
            at: Index of the rule to replace; None to add one.
        """
        while True:
            old = None if at is None else rules.rules[at]
            rule = await self.app.push_screen_wait(RuleDialog(self._names(), values, is_new=old is None))
            if rule is None or rule == old:
                return
            if at is None:
                is_written = await self._changed(self._runtime.rules.add, rules, rule, marked=len(rules.rules))
            else:
                is_written = await self._changed(self._runtime.rules.change, rules, at, rule, marked=at)
            if is_written or not self._has_widgets:
                return
            values = _as_arguments(rule)
            now = await asyncio.to_thread(self._runtime.rules.read)
            if now.problem is None:
                rules, at = now, now.rules.index(old) if old in now.rules else None

    @work(exclusive=True, group="change")
    async def action_delete(self) -> None:
        """Delete the selected rule after confirmation."""
        from pegboard.tui.dialogs.confirm import Confirm

        at, rules = self.list.marked, self._rules
        if at is None or rules is None:
            return
        question = f"{clean_line(str(rules.rules[at]))}\n\nThe comments directly above and below it are deleted too."
        if await self.app.push_screen_wait(Confirm(f"Delete rule {at + 1}?", question, "Delete")):
            await self._changed(self._runtime.rules.remove, rules, at, marked=max(at - 1, 0))

    @work(group="shift")
    async def action_shift(self, by: int) -> None:
        """Move the selected rule up or down."""
        async with self._shifting:  # its position is known only after the previous move
            at = self.list.marked if self._has_widgets else None
            if at is not None and self._rules is not None and 0 <= at + by < len(self._rules.rules):
                await self._changed(self._runtime.rules.move, self._rules, at, at + by, marked=at + by)

    def action_whose(self) -> None:
        """Test the call of the other kind of caller."""
        self._source = "mcp" if self._source == "ask" else "ask"
        self._test()

    @work(exclusive=True, group="editor")
    async def action_open(self) -> None:
        """Open the rules file in the user's editor, then read it again."""
        from pegboard.tui.widgets.external_editor import open_or_create

        if self._rules is not None:
            await open_or_create(self.app, self._rules.file)
            self._test()

    def _names(self) -> list[str]:
        return [spec.name for spec in self._runtime.tools.all()[:_NAMES_OFFERED]]

    async def _changed(self, change: Callable[..., RuleFile], seen: RuleFile, *arguments: object, marked: int) -> bool:
        """Change the file in a thread if it is as the user saw it; show a toast and return False if that fails."""
        try:
            rules = await asyncio.to_thread(change, seen, *arguments)
        except RulesError as error:
            self.notify(clean_line(str(error)), severity="error", markup=False)
            rules = None
        if self._has_widgets:
            if rules is not None:
                self._show(rules, marked)
            self._test()
        return rules is not None


class RuleDialog(FormDialog[Rule | None]):
    """A form that returns a rule, or None.

    Args:
        names: Suggested tools.
        initial: Initial values of the form.
        is_new: Whether the rule is added rather than changed.
    """

    PAGE = "Rule"

    DEFAULT_CSS = """
    RuleDialog {
        & > #box { width: 84; height: 30; max-height: 94%; }
        FormPane { height: 1fr; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("rule.save", "ctrl+s", "save", "Save", "Save the rule.", footer=True, priority=True),
        Command("rule.close", "escape", "close", "Close", "Close without saving.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, names: Iterable[str], initial: JsonObject, *, is_new: bool = True) -> None:
        super().__init__("New rule" if is_new else "Edit rule")
        self._names = names
        self._initial = initial

    def compose_body(self) -> ComposeResult:
        """Compose the form."""
        yield self.form

    def on_mount(self) -> None:
        """Fill the form."""
        self.show_form(_form_of(self._names), self._initial, "/tools/0")

    def action_save(self) -> None:
        """Close with the rule if it is valid."""
        values = self.form.submit()
        if values is None:
            return
        action, tools = str(values.pop("action")), values.pop("tools")
        try:
            rule = Rule.model_validate({action: tools, **values})
        except ValidationError as error:
            why = "; ".join(one["msg"].removeprefix("Value error, ") for one in error.errors())
            self.notify(clean_line(f"The rule was not saved: {why}."), severity="error", markup=False)
        else:
            self.dismiss(rule)


def _form_of(names: Iterable[str]) -> ToolSpec:
    """Return the form of a rule as a tool spec."""
    patterns: JsonObject = {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}
    of_tools: JsonObject = {"type": "string", "minLength": 1, "examples": [*names]}
    properties: dict[str, JsonObject] = {
        "action": {
            "enum": ["allow", "ask", "deny"],
            "description": "Whether the call runs, asks first or is rejected.",
        },
        "tools": {**patterns, "items": of_tools, "description": "Names of tools, or patterns such as `fs.*`."},
        "where": {
            "type": "object",
            "additionalProperties": patterns,
            "description": "Patterns by argument; one pattern of each must match. "
            "`*` matches anything within a folder, `**` also across folders. Empty: any arguments.",
        },
        "exactly": {
            "type": "string",
            "minLength": 2,
            "description": "Instead of where, only for allow: all arguments of the call as a JSON object.",
        },
        "scope": {
            "enum": ["ask", "mcp"],
            "description": "Only calls of models (ask) or of MCP clients (mcp). Unset: both.",
        },
    }
    return ToolSpec(
        name="rule",
        pack="",
        description="",
        input_schema={
            "type": "object",
            "properties": {**properties},
            "required": ["action", "tools"],
            "additionalProperties": False,
        },
        handler=PackHandler(pack="", function="", file="", line=1),
        signature="",
    )


def _as_arguments(rule: Rule) -> JsonObject:
    """Return the form values of a rule."""
    where: JsonObject = {name: [*patterns] for name, patterns in rule.where.items()}
    return {
        "action": rule.action,
        "tools": [*rule.tools],
        **({"where": where} if where else {}),
        **({"exactly": rule.exactly} if rule.exactly is not None else {}),
        **({"scope": rule.scope} if rule.scope else {}),
    }


def _decide(runtime: Runtime, name: str, text: str, source: Literal["ask", "mcp"], session: str | None) -> _Decision:
    """Return the rules and their decision on a call; reads the disk.

    Args:
        runtime: The runtime with tools and rules.
        name: Name of the tool.
        text: The arguments as typed.
        source: The caller.
        session: The session of the call.
    """
    rules = runtime.rules.read()
    spec = runtime.tools.get(name) if name else None
    if spec is None:
        why = runtime.tools.why_not(name) if name else None
        return _Decision(rules, error=why.error.message if why and why.error else "")
    arguments, errors = _read(text, spec)
    try:
        arguments = runtime.tools.prepare(spec, arguments)
    except FormFaults as error:
        errors = errors or str(error)
    call = ToolCall(name=spec.name, args=arguments, source=source, session=session)
    verdict = runtime.rules.verdict(call)
    if verdict is None:
        return _Decision(rules)
    return _Decision(rules, verdict.action, verdict.reason, verdict.rule, errors)


def _read(text: str, spec: ToolSpec) -> tuple[JsonObject, str]:
    """Parse arguments typed as JSON or as `name=value` words; return them and their errors."""
    text = text.strip()
    if text.startswith("{"):
        try:
            value = parse(text)
        except JsonTextError as error:
            return {}, f"The arguments {error}."
        return (value, "") if isinstance(value, dict) else ({}, "The arguments are not a JSON object.")
    try:
        words = shlex.split(text)
    except ValueError:  # an unclosed quote
        words = text.split()
    arguments, faults = read_pairs(spec.input_schema, words, aliases=spec.parameter_aliases)
    return arguments, "; ".join(map(str, faults))


def _answer(decision: _Decision) -> Content:
    if decision.action is None:
        return Content.styled(clean_line(decision.error) or "Type the name of a tool.", "$text-muted")
    verdict, style = _VERDICTS[decision.action]
    number = f" (rule {decision.rule + 1})" if decision.rule is not None else ""
    errors = (
        f"\nThe call fails because its arguments are invalid: {clean_line(decision.error)}" if decision.error else ""
    )
    return Content.assemble((verdict, style), f" {clean_line(decision.reason)}{number}", (errors, "$text-muted"))
