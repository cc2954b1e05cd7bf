"""The rules that say which calls of models and MCP clients run, ask first, or are refused; and what one call would do.

The list is in the order of the file. Below it stands a call to try: what the rules say of it is told as it is typed.
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
from pegboard.models import JsonObject, PackHandler, ToolCall, ToolSpec
from pegboard.models.rule import Rule, RuleAction, RuleFile
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings, key_of
from pegboard.tui.form import FormPane
from pegboard.tui.shell.footer import KeysLine
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.pick_list import Line, PickList

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_NONE_YET = "There are no rules yet: tools that only read run, all others ask.\n{key} makes the first rule."
_SAID: dict[RuleAction, tuple[str, str]] = {
    "allow": ("✓ It runs.", "$text-success bold"),
    "ask": ("? It asks first.", "$text-warning bold"),
    "deny": ("✗ It is refused.", "$text-error bold"),
}
_WHOSE: dict[Literal["ask", "mcp"], str] = {"ask": "a model", "mcp": "an MCP client"}
_NAMES_OFFERED = 2_000


@dataclass(frozen=True)
class _Judged:
    """What the rules say of a call."""

    rules: RuleFile
    """As they were then."""
    action: RuleAction | None = None
    """None where nothing can be said of it."""
    reason: str = ""
    rule: int | None = None
    fault: str = ""
    """What is wrong with the arguments."""


class RulesScreen(Dialog[None]):
    """Lists the rules, changes them, and tells which of them decides on a call.

    Args:
        runtime: Where they are kept.
        call: The call to try first.
    """

    PLACE = "Rules"
    AUTO_FOCUS = "PickList"

    DEFAULT_CSS = """
    RulesScreen {
        align: center middle;
        background: $background 60%;
        #box {
            width: 120; max-width: 96%; height: 90%; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            border-subtitle-color: $text-muted;
        }
        #sought, #file { height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
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
        Command("rules.new", "insert,ctrl+n", "new", "New", "Write a rule; it becomes the last.", footer=True),
        Command("rules.edit", "f2", "edit", "Edit", "Change the marked rule, as enter does."),
        Command("rules.delete", "delete", "delete", "Delete", "Throw the marked rule away.", footer=True),
        Command(
            "rules.up", "ctrl+up", "shift(-1)", "Up", "Put the marked rule one place up: later rules win.", footer=True
        ),
        Command("rules.down", "ctrl+down", "shift(1)", "Down", "Put the marked rule one place down."),
        Command("rules.whose", "ctrl+t", "whose", "Whose", "Try the call as a model's or as an MCP client's.", True),
        Command("rules.open", "f4", "open", "File", "Open the file of the rules in your editor.", footer=True),
        Command("rules.close", "escape", "close", "Close", "Go back to where you were.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    _list = query_one(PickList)
    _tool = query_one("#tool", Input)
    _arguments = query_one("#arguments", Input)
    _trial = query_one("#trial", Vertical)

    def __init__(self, runtime: Runtime, call: ToolCall | None = None) -> None:
        super().__init__()
        self._runtime = runtime
        self._call = call
        self._source: Literal["ask", "mcp"] = "mcp" if call is not None and call.source == "mcp" else "ask"
        self._rules: RuleFile | None = None
        self._shifting = asyncio.Lock()
        self._deciding: int | None = None
        """Which rule decides on the call."""

    def compose(self) -> ComposeResult:
        """The rules over the call to try."""
        call = self._call
        names = [spec.name for spec in self._runtime.tools.all()]
        with Vertical(id="box") as box:
            box.border_title = "Rules for calls of models and MCP clients"
            box.border_subtitle = "the last rule that fits wins · a deny that fits always holds"
            yield Static(id="sought")
            yield PickList(sign=lambda index: "▸ " if index == self._deciding else "  ")
            yield Static(id="file")
            with Vertical(id="trial"):
                with Horizontal():
                    yield Label("Tool")
                    suggester = SuggestFromList(names, case_sensitive=False)
                    yield Input(clean_line(call.name) if call else "", id="tool", suggester=suggester)
                with Horizontal():
                    yield Label("Arguments")
                    given = write(call.args) if call and call.args else ""
                    yield Input(given, placeholder='name=value …, or JSON: {"name": …}', id="arguments")
                yield Static(id="answer")
            yield KeysLine()

    def on_mount(self) -> None:
        """Reads the rules."""
        self._list.empty = "Reading…"
        self._try()

    # What is seen

    @property
    def _is_whole(self) -> bool:
        """Whether the app isn't closing: the innermost parts go first."""
        return bool(self.query("#arguments"))

    def _show(self, rules: RuleFile, marked: int | None = None) -> None:
        """Lists the rules, one of them marked."""
        if rules == self._rules and marked is None:
            return
        self._rules = rules
        lines = [Line(clean_line(str(rule)), f"rule {number}") for number, rule in enumerate(rules.rules, 1)]
        if rules.problem is None:
            self._list.empty = _NONE_YET.format(key=key_of(self, "rules.new"))
        else:
            self._list.empty = f"{clean_line(rules.problem.message)}\n{clean_line(rules.problem.fix)}"
        self._list.show(lines, (self._list.marked or 0) if marked is None else marked, sought=self._list.sought)
        self.query_one("#file", Static).update(Content(clean_line(rules.file)))

    @on(PickList.Filtered)
    def _filtered(self, event: PickList.Filtered) -> None:
        event.stop()
        said = Content.assemble((clean_line(event.query), "$foreground bold"), ("▏", "$text-primary"))
        self.query_one("#sought", Static).update(said if event.query else "type to filter", layout=False)

    @on(PickList.Marked)
    def _marked(self, event: PickList.Marked) -> None:
        event.stop()
        self.refresh_bindings()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._try()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        (self._arguments if event.input is self._tool else self._list).focus()

    @work(exclusive=True, group="try")
    async def _try(self) -> None:
        """Tells what the call would do, and lists the rules that say so."""
        self._trial.border_title = Content(f"Would this call of {_WHOSE[self._source]} ask?")
        session = self._call.session if self._call is not None else None
        judged = await asyncio.to_thread(
            _judged, self._runtime, self._tool.value.strip(), self._arguments.value, self._source, session
        )
        if not self._is_whole:
            return
        self._deciding = judged.rule
        is_free = self._rules is None or not self._list.has_focus
        self._show(judged.rules, judged.rule if is_free else None)
        self._list.refresh()
        self.query_one("#answer", Static).update(_answer(judged))

    # What the user does

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        self.action_edit()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers only what can be done to the marked rule."""
        if action in {"edit", "delete", "shift"}:
            return self._list.marked is not None
        return self._rules is not None and self._rules.problem is None if action == "new" else True

    @work(exclusive=True, group="change")
    async def action_new(self) -> None:
        """Asks what a new rule shall say, and adds it."""
        begin: JsonObject = {"action": "allow", "tools": [self._tool.value.strip()]}
        rule = await self.app.push_screen_wait(RuleDialog(self._names(), begin))
        if rule is not None and self._rules is not None:
            await self._changed(self._runtime.rules.add, rule, marked=len(self._rules.rules))

    @work(exclusive=True, group="change")
    async def action_edit(self) -> None:
        """Asks what the marked rule shall say instead."""
        at = self._list.marked
        if at is None or self._rules is None:
            return
        old = self._rules.rules[at]
        rule = await self.app.push_screen_wait(RuleDialog(self._names(), _as_arguments(old), is_new=False))
        if rule is not None and rule != old:
            await self._changed(self._runtime.rules.change, at, rule, marked=at)

    @work(exclusive=True, group="change")
    async def action_delete(self) -> None:
        """Throws the marked rule away, once that is confirmed."""
        from pegboard.tui.dialogs.confirm import Confirm

        at = self._list.marked
        if at is None or self._rules is None:
            return
        question = f"{clean_line(str(self._rules.rules[at]))}\n\nThe comments right above and below it go with it."
        if await self.app.push_screen_wait(Confirm(f"Delete rule {at + 1}?", question, "Delete")):
            await self._changed(self._runtime.rules.remove, at, marked=max(at - 1, 0))

    @work(group="shift")
    async def action_shift(self, by: int) -> None:
        """Puts the marked rule some places up or down."""
        async with self._shifting:  # where it is now is known only once the last move is done
            at = self._list.marked if self._is_whole else None
            if at is not None and self._rules is not None and 0 <= at + by < len(self._rules.rules):
                await self._changed(self._runtime.rules.move, at, at + by, marked=at + by)

    def action_whose(self) -> None:
        """Tries the call as one of the other kind."""
        self._source = "mcp" if self._source == "ask" else "ask"
        self._try()

    @work(exclusive=True, group="editor")
    async def action_open(self) -> None:
        """Opens the file of the rules in the user's editor, and reads it again after that."""
        from pegboard.tui.widgets.external_editor import open_in_editor

        if self._rules is not None:
            await open_in_editor(self.app, self._rules.file)
            self._try()

    def action_close(self) -> None:
        """Goes back."""
        self.dismiss()

    def _names(self) -> list[str]:
        return [spec.name for spec in self._runtime.tools.all()[:_NAMES_OFFERED]]

    async def _changed(self, change: Callable[..., RuleFile], *words: object, marked: int) -> None:
        """Changes the file, beside the loop; says so where that can't be done."""
        try:
            rules = await asyncio.to_thread(change, self._rules, *words)
        except RulesError as error:
            self.notify(clean_line(str(error)), severity="error", markup=False)
        else:
            if self._is_whole:
                self._show(rules, marked)
        if self._is_whole:
            self._try()


class RuleDialog(Dialog[Rule | None]):
    """Asks what a rule shall say; closes with it, or with None.

    Args:
        names: Tools to offer.
        begin: What stands in the form at first.
        is_new: Whether it is a rule that isn't there yet.
    """

    PLACE = "Rule"

    DEFAULT_CSS = """
    RuleDialog {
        align: center middle;
        background: $background 60%;
        #box {
            width: 84; max-width: 94%; height: 30; max-height: 94%; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
        }
        FormPane { height: 1fr; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("rule.save", "ctrl+s", "save", "Save", "Write the rule into the file.", footer=True, priority=True),
        Command("rule.close", "escape", "close", "Close", "Leave the rules as they are.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    _form = query_one(FormPane)

    def __init__(self, names: Iterable[str], begin: JsonObject, *, is_new: bool = True) -> None:
        super().__init__()
        self._names = names
        self._begin = begin
        self._is_new = is_new

    def compose(self) -> ComposeResult:
        """The form."""
        with Vertical(id="box") as box:
            box.border_title = "New rule" if self._is_new else "Change the rule"
            yield FormPane()
            yield KeysLine()

    def on_mount(self) -> None:
        """Fills the form."""
        self._form.show(_form_of(self._names), self._begin)
        self._form.focus_field("/tools/0")

    def action_save(self) -> None:
        """Close with the rule if it is valid."""
        said = self._form.submit()
        if said is None:
            return
        action, tools = str(said.pop("action")), said.pop("tools")
        try:
            rule = Rule.model_validate({action: tools, **said})
        except ValidationError as error:
            why = "; ".join(one["msg"].removeprefix("Value error, ") for one in error.errors())
            self.notify(clean_line(f"The rule was not saved: {why}."), severity="error", markup=False)
        else:
            self.dismiss(rule)

    def action_close(self) -> None:
        """Closes without a rule."""
        self.dismiss(None)


def _form_of(names: Iterable[str]) -> ToolSpec:
    """Gives what the form of a rule is made of, in the shape that it takes."""
    patterns: JsonObject = {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}
    of_tools: JsonObject = {"type": "string", "minLength": 1, "examples": [*names]}
    properties: dict[str, JsonObject] = {
        "action": {
            "enum": ["allow", "ask", "deny"],
            "description": "Whether the call runs, asks first, or is refused.",
        },
        "tools": {**patterns, "items": of_tools, "description": "Names of tools, or patterns such as `fs.*`."},
        "where": {
            "type": "object",
            "additionalProperties": patterns,
            "description": "Patterns of arguments, one of which must fit, of each argument named here: "
            "`*` is anything within a folder, `**` goes across. None: whatever the arguments are.",
        },
        "exactly": {
            "type": "string",
            "minLength": 2,
            "description": "Instead of where, and only for allow: all arguments of the call, as a JSON object.",
        },
        "scope": {
            "enum": ["ask", "mcp"],
            "description": "Only calls of models (ask), or of MCP clients (mcp). Neither: both.",
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
    """Gives a rule as its form has it."""
    where: JsonObject = {name: [*patterns] for name, patterns in rule.where.items()}
    return {
        "action": rule.action,
        "tools": [*rule.tools],
        **({"where": where} if where else {}),
        **({"exactly": rule.exactly} if rule.exactly is not None else {}),
        **({"scope": rule.scope} if rule.scope else {}),
    }


def _judged(runtime: Runtime, name: str, text: str, source: Literal["ask", "mcp"], session: str | None) -> _Judged:
    """Gives the rules, and what they say of a call; reads the disk.

    Args:
        runtime: What knows tools and rules.
        name: The tool's.
        text: Its arguments as somebody types them.
        source: Whose call it is.
        session: The session that it belongs to.
    """
    rules = runtime.rules.read()
    spec = runtime.tools.get(name) if name else None
    if spec is None:
        why = runtime.tools.why_not(name) if name else None
        return _Judged(rules, fault=why.error.message if why and why.error else "")
    arguments, fault = _read(text, spec)
    try:
        arguments = runtime.tools.prepare(spec, arguments)
    except FormFaults as error:
        fault = fault or str(error)
    call = ToolCall(name=spec.name, args=arguments, source=source, session=session)
    verdict = runtime.rules.verdict(call)
    if verdict is None:
        return _Judged(rules)
    return _Judged(rules, verdict.action, verdict.reason, verdict.rule, fault)


def _read(text: str, spec: ToolSpec) -> tuple[JsonObject, str]:
    """Reads arguments that are typed as JSON or as `name=value` words; gives them and what is wrong."""
    text = text.strip()
    if text.startswith("{"):
        try:
            value = parse(text)
        except JsonTextError as error:
            return {}, f"The arguments {error}."
        return (value, "") if isinstance(value, dict) else ({}, "The arguments are no object.")
    try:
        words = shlex.split(text)
    except ValueError:  # a quote isn't closed yet
        words = text.split()
    arguments, faults = read_pairs(spec.input_schema, words, aliases=spec.parameter_aliases)
    return arguments, "; ".join(map(str, faults))


def _answer(judged: _Judged) -> Content:
    if judged.action is None:
        return Content.styled(clean_line(judged.fault) or "Type the name of a tool.", "$text-muted")
    said, style = _SAID[judged.action]
    number = f" (rule {judged.rule + 1})" if judged.rule is not None else ""
    fault = f"\nAs it stands it would not even be called: {clean_line(judged.fault)}" if judged.fault else ""
    return Content.assemble((said, style), f" {clean_line(judged.reason)}{number}", (fault, "$text-muted"))
