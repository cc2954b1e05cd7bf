"""The checks of a tool: run them, see what differs, and see what a change of its schema breaks."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from pydantic import JsonValue
from textual import on, work
from textual.binding import BindingType
from textual.content import Content

from pegboard.checks import Check, CheckError, CheckReport, Checks, FailedExpectation
from pegboard.checks.compatibility import BrokenCall, Compatibility, ToolCompatibility
from pegboard.checks.file import read_check
from pegboard.checks.model import QuestionReport
from pegboard.data.json_text import write
from pegboard.errors import SessionError, StoreError
from pegboard.models import Problem, ScriptHandler, ToolSpec
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import count, duration
from pegboard.tui.commands import Command, as_word, bindings, first_key, key_or_title
from pegboard.tui.messages import OpenCall, SchemaAccepted
from pegboard.tui.widgets.dialog import CHANGED_ELSEWHERE, ListDialog
from pegboard.tui.widgets.external_editor import open_in_editor
from pegboard.tui.widgets.pick_list import PickLine, PickList
from pegboard.until_done import until_done

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_Row: TypeAlias = ToolCompatibility | BrokenCall | Check | Problem

_MOST_LINES: Final = 12
"""Lines of one value in a diff."""
_COMPARED_LINES: Final = 200
"""Lines from the first difference on that are aligned; thousands would take seconds."""
_SIGNS: Final = {"passed": "✓", "failed": "✗", "error": "!", "skipped": "⊘"}
_SEVERITY: Final = ("passed", "skipped", "failed", "error")
_STYLES: Final = {"passed": "$text-success", "failed": "$text-error", "error": "$text-error", "skipped": "$text-muted"}


class ChecksScreen(ListDialog[None]):
    """Checks of a tool with their last results, and the recorded calls that a change of its schema breaks.

    Args:
        runtime: Runtime with the tool.
        spec: The tool.
        changed: Comparison with the schema that callers rely on, if it breaks them.
    """

    PAGE = "Checks"
    FILTER_HINT = "type to filter"

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("checks.run", "ctrl+r", "run", "Run all", "Run all checks of the tool.", footer=True),
        Command(
            "checks.store", "ctrl+s", "store", "Store result", "Store the new result as the snapshot.", footer=True
        ),
        Command("checks.ask", "alt+a", "ask", "Ask model", "Ask the model the questions of the check.", footer=True),
        Command("checks.edit", "f4", "edit", "Editor", "Open the file of the check in your editor.", footer=True),
        Command("checks.accept", "f2", "accept", "Accept schema", "Accept the changes of the schema.", footer=True),
        Command("checks.delete", "delete", "delete", "Delete", "Delete the selected check.", footer=True),
        Command("checks.close", "escape", "close", "Close", "Close this dialog.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, spec: ToolSpec, changed: ToolCompatibility | None = None) -> None:
        super().__init__(f"Checks of {clean_line(spec.name)}", pick_list=PickList(sign=self._sign))
        self._runtime = runtime
        self._spec = spec
        self._files = Checks(runtime.paths)
        self._changed = changed
        self._rows: tuple[_Row, ...] = ()
        self._reports: dict[str, CheckReport] = {}
        self._checking = ""
        """File of the check that runs."""
        self._asked: dict[str, tuple[QuestionReport, ...]] = {}
        """Answers to the questions of each check, by file."""
        self._asking = ""
        """File of the check whose questions are asked."""

    def on_mount(self) -> None:
        """Read the checks, again whenever they change."""
        self.list.empty = "Loading…"
        self._read()
        self.follow(self._update)

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        """List the checks of the tool."""
        self._rows = self._rows_of(*await asyncio.to_thread(self._files.list))
        self._show_rows(0)

    @work(exclusive=True, group="update")
    async def _update(self) -> None:
        """Show what other programs have changed; keep the selected row, and no result of a check that is another."""
        seen = self._rows
        rows = self._rows_of(*await asyncio.to_thread(self._files.list))
        if rows == seen or self._rows is not seen or self._checking or self._asking:
            return
        at, marked = self.list.marked or 0, self._marked
        for check in seen:
            if isinstance(check, Check) and check not in rows:
                self._reports.pop(check.file, None)
                self._asked.pop(check.file, None)
        self._rows = rows
        self.list.empty = _empty_text(rows)
        keys = [_key(row) for row in rows]
        key = _key(marked) if marked is not None else ""
        self.list.renew([self._line(row) for row in rows], keys.index(key) if key in keys else min(at, len(rows) - 1))

    def _rows_of(self, found: Sequence[Check], invalid: Sequence[Problem]) -> tuple[_Row, ...]:
        """Return the rows: changes of the schema, checks of the tool and of tools that don't exist, invalid files."""
        checks = [one for one in found if self._is_of_tool(one)]
        # They have no other dialog.
        orphans = [one for one in found if self._runtime.tools.get(one.tool) is None and one not in checks]
        of_schema: list[_Row] = [] if self._changed is None else [self._changed, *self._changed.broken_calls]
        return (*of_schema, *checks, *orphans, *invalid)

    def _is_of_tool(self, check: Check) -> bool:
        return check.tool in {self._spec.name, *self._spec.aliases}

    def _show_rows(self, marked: int) -> None:
        self.list.empty = _empty_text(self._rows)
        self.list.renew([self._line(row) for row in self._rows], marked)

    def _line(self, row: _Row) -> PickLine:
        match row:
            case ToolCompatibility():
                return PickLine(f"Schema: {clean_line(row.summary)}", f"{key_or_title(self, 'checks.accept')} accepts")
            case BrokenCall():
                at = row.at.astimezone().strftime("%Y-%m-%d %H:%M")
                choose = as_word(first_key(self.list, "pick.choose")) or "Choose"
                return PickLine(f"Call of {at}: {clean_line(row.reason)}", f"{choose} opens")
            case Check():
                return PickLine(clean_line(row.name), self._note(row))
            case Problem():
                return PickLine(clean_line(Path(row.file or "").name), "invalid")

    def _note(self, check: Check) -> str:
        if not self._is_of_tool(check):
            return f"no tool {clean_line(check.tool)}"
        if self._checking == check.file:
            return "running…"
        if self._asking == check.file:
            return "asking…"
        report = self._reports.get(check.file)
        if report is None and (asked := self._asked.get(check.file)):
            return f"{sum(one.status == 'passed' for one in asked)} of {count(len(asked), 'question')}"
        if report is None:
            return "not run"
        failed = f"{count(len(report.differences), 'difference')} · " if report.differences else ""
        return f"{failed}{'stored · ' if report.updated else ''}{duration(report.duration_ms)}"

    def _sign(self, index: int) -> str:
        row = self._rows[index]
        if isinstance(row, ToolCompatibility | Problem) or (isinstance(row, Check) and not self._is_of_tool(row)):
            return "! "
        if not isinstance(row, Check):
            return "· "
        report = self._reports.get(row.file)
        statuses = [report.status] if report is not None else [one.status for one in self._asked.get(row.file, ())]
        return f"{_SIGNS[max(statuses, key=_SEVERITY.index)]} " if statuses else "· "

    @property
    def _marked(self) -> _Row | None:
        at = self.list.marked
        return self._rows[at] if at is not None and at < len(self._rows) else None

    @property
    def _runnable(self) -> list[Check]:
        return [row for row in self._rows if isinstance(row, Check) and self._is_of_tool(row)]

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable only the actions that apply to the selected line."""
        del parameters
        match action:
            case "run":
                return bool(self._runnable)
            case "store":
                marked = self._marked
                return isinstance(marked, Check) and self._is_of_tool(marked) and marked.expect.snapshot is not None
            case "ask":
                marked = self._marked
                is_asked = isinstance(marked, Check) and self._is_of_tool(marked) and bool(marked.questions)
                return is_asked and not self._asking
            case "edit":
                return isinstance(self._marked, Check | Problem)
            case "delete":
                return isinstance(self._marked, Check)
            case "accept":
                return self._changed is not None
            case _:
                return True

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        """Run the chosen check, or open the chosen call in the form."""
        event.stop()
        match self._marked:
            case Check() as check if self._is_of_tool(check):
                self._run([check])
            case BrokenCall(id=call_id):
                self._open_call(call_id)

    def action_run(self) -> None:
        """Run all checks of the tool."""
        self._run(self._runnable)

    def action_store(self) -> None:
        """Run the selected check and store its result as snapshot."""
        if isinstance(self._marked, Check) and self._is_of_tool(self._marked):
            self._run([self._marked], update=True)

    @work(exclusive=True, group="run")
    async def _run(self, checks: Sequence[Check], *, update: bool = False) -> None:
        """Run checks one after the other and show each result."""
        from pegboard.checks.run import CheckRunner

        self._end_running()
        if not await self._is_confirmed(checks):
            return
        runner = CheckRunner(self._runtime, self._files)
        for check in checks:
            self._checking = check.file
            self._refresh()
            # The file may have changed since the list was read, such as by storing a result.
            current = await asyncio.to_thread(read_check, Path(check.file))
            self._rows = tuple(current if row is check else row for row in self._rows)
            async with aclosing(runner.run([current] if isinstance(current, Check) else [], update=update)) as reports:
                async for report in reports:
                    self._reports[check.file] = report
            if update:
                stored = await asyncio.to_thread(read_check, Path(check.file))
                self._rows = tuple(stored if row is current else row for row in self._rows)
            self._checking = ""
            self._refresh()

    @work(exclusive=True, group="run")
    async def action_ask(self) -> None:
        """Ask the configured model the questions of the selected check; the expected calls are not run."""
        from pegboard.checks.questions import QuestionRunner

        self._end_running()
        check = self._marked
        if not isinstance(check, Check):
            return
        if await asyncio.to_thread(self._runtime.models.is_offline):
            text = "The offline model can't be asked such questions. Connect a model on the Chat page."
            self.notify(text, severity="warning", markup=False)
            return
        current = await asyncio.to_thread(read_check, Path(check.file))
        self._rows = tuple(current if row is check else row for row in self._rows)
        self._asked.pop(check.file, None)
        self._asking = check.file
        self._refresh()
        runner = QuestionRunner(self._runtime, self._files)
        try:
            async with aclosing(runner.run([current] if isinstance(current, Check) else [], [None])) as reports:
                async for report in reports:
                    self._asked[check.file] = (*self._asked.get(check.file, ()), report)
                    self._show_row()
        except (SessionError, StoreError) as error:
            text = f"The sessions of the questions can't be saved: {clean_line(str(error))}"
            self.notify(text, severity="error", markup=False)
        finally:
            self._asking = ""
            if self.is_attached:
                self._refresh()

    def _end_running(self) -> None:
        """Show that no check runs: checks and questions end those that were started before."""
        if self._checking:
            self._checking = ""
            self._refresh()

    async def _is_confirmed(self, checks: Sequence[Check]) -> bool:
        """Return whether the checks call no destructive tool, or the user confirms to run them."""
        from pegboard.tui.dialogs.confirm import Confirm

        question = await asyncio.to_thread(self._risk_of, checks)
        title = f"Run {count(len(checks), 'check')}?"
        return not question or await self.app.push_screen_wait(Confirm(title, question, "Run")) is True

    def _risk_of(self, checks: Sequence[Check]) -> str:
        """Return why to ask before checks run; empty if nothing speaks against it. Blocks."""
        spec = self._runtime.tools.current(self._spec)
        name = clean_line(spec.name)
        if spec.hints.destructive:
            return f"{name} may delete or overwrite data."
        is_script = isinstance(spec.handler, ScriptHandler)
        tools = self._runtime.scripts.destructive_tools(one.arguments for one in checks) if is_script else ()
        return f"{name} calls tools that may delete or overwrite data: {clean_line(', '.join(tools))}." if tools else ""

    def _refresh(self) -> None:
        """Show the states of the checks; keep the selected line."""
        self._show_rows(self.list.marked or 0)
        self._show_row()

    @work(exclusive=True, group="open")
    async def _open_call(self, call_id: str) -> None:
        """Open a recorded call in the form of the tool, to correct it."""
        from pegboard.checks.keep import recorded

        try:
            record, _ = await asyncio.to_thread(recorded, self._runtime, call_id)
        except (StoreError, CheckError) as error:
            self.notify(clean_line(str(error)), severity="error", markup=False)
            return
        self.app.post_message(OpenCall(record.tool, record.args))
        self.dismiss(None)

    @work(exclusive=True, group="editor")
    async def action_edit(self) -> None:
        """Open the file of the selected check."""
        match self._marked:
            case Check(file=str(file)):
                await open_in_editor(self.app, file, None)
            case Problem(file=str(file), line=line):
                await open_in_editor(self.app, file, line)
        self._update()

    @work(exclusive=True, group="change")
    async def action_delete(self) -> None:
        """Delete the selected check after confirmation."""
        from pegboard.tui.dialogs.confirm import Confirm

        check = self._marked
        if not isinstance(check, Check):
            return
        title = f"Delete the check {clean_line(check.name)}?"
        question = f"{clean_line(check.file)}\n\nThis can't be undone."
        if not await self.app.push_screen_wait(Confirm(title, question, "Delete")):
            return

        def delete() -> None:
            if read_check(Path(check.file)) != check:
                raise CheckError(f"The check `{check.name}` was not deleted. {CHANGED_ELSEWHERE}")
            self._files.delete(Path(check.file))

        try:
            await asyncio.to_thread(delete)
        except CheckError as error:
            self.notify(clean_line(str(error)), severity="error", markup=False)
        self._update()

    @work(exclusive=True, group="change")
    async def action_accept(self) -> None:
        """Make the current schema the one that callers rely on, unless it breaks them otherwise than shown."""
        try:
            changed = await until_done(self._accept())
        except OSError as error:
            self.notify(f"The schema was not accepted: {error.strerror or error}.", severity="error", markup=False)
            return
        if changed is not None:
            self.notify("The schema was not accepted because it changed again. Check its changes.", severity="warning")
        self._changed = changed
        self._update()

    async def _accept(self) -> ToolCompatibility | None:
        """Accept the schema, and report it even if the dialog is closed meanwhile; return other changes than shown."""
        shown, compatibility = self._changed, Compatibility(self._runtime)

        def accept() -> ToolCompatibility | None:
            spec = self._runtime.tools.get(self._spec.name) or self._spec
            for found in compatibility.changed([spec]):
                if shown is not None and found.changes != shown.changes:
                    return found
            compatibility.accept([spec])
            return None

        changed = await asyncio.to_thread(accept)
        if changed is None:
            self.app.post_message(SchemaAccepted(self._spec.name))
        return changed

    # Preview

    @on(PickList.Marked)
    def _show_marked(self, event: PickList.Marked) -> None:
        event.stop()
        self._show_row()

    def _show_row(self) -> None:
        self.refresh_bindings()
        match self._marked:
            case ToolCompatibility() as changed:
                self.show_preview(Content.styled("Changes of the schema", "bold"), _changes(changed))
            case BrokenCall() as call:
                self.show_preview(Content.styled(f"Call {call.id[:8]}", "bold"), Content(clean(call.reason)))
            case Check() as check:
                self.show_preview(*self._described(check))
            case Problem() as problem:
                self.show_preview(Content.styled("This check can't be read", "bold"), Content(clean(str(problem))))
            case None:
                self.show_preview(Content(), Content())

    def _described(self, check: Check) -> tuple[Content, Content]:
        """Return the heading and the text about a check: its last result, or else its content."""
        report = self._reports.get(check.file)
        name = clean_line(check.name)
        if not self._is_of_tool(check):
            key = key_or_title(self, "checks.delete")
            text = f"No tool is named {check.tool}. Press {key} to delete the check, or connect the server of the tool."
            return Content.styled(name, "bold"), Content(clean(text))
        answers = [line for one in self._asked.get(check.file, ()) for line in _answer(one)]
        if report is None:
            key = key_or_title(self.list, "pick.choose")
            asks = f" · {key_or_title(self, 'checks.ask')} asks the model" if check.questions else ""
            heading = Content.assemble((name, "bold"), (f"  {key} runs it{asks}", "$text-muted"))
            content = check.model_dump(mode="json", include={"arguments", "questions", "expect"}, exclude_unset=True)
            return heading, Content("\n").join([*answers, Content(clean(write(content, indent=2)))])
        status = (f"  {_SIGNS[report.status]} {report.status}", _STYLES[report.status])
        heading = Content.assemble((name, "bold"), status)
        if report.problem is not None:
            return heading, Content("\n").join([*answers, Content(clean(str(report.problem)))])
        if not report.differences:
            met = Content("The snapshot was stored." if report.updated else "Every expectation is met.")
            return heading, Content("\n").join([*answers, met])
        differences = [line for one in report.differences for line in _difference(one)]
        advice = [Content.styled(clean_line(report.advice), "$text-muted")] if report.advice else []
        return heading, Content("\n").join([*answers, *differences, *advice])


def _empty_text(rows: Sequence[_Row]) -> str:
    """Return the text of a list that shows none of these rows."""
    if rows:
        return "No matching checks."
    return "No checks yet. Run the tool, then choose “Keep as check” in the palette, or use `pegboard check keep`."


def _key(row: _Row) -> str:
    """Return what stays the same when a row changes: its file, or the id of its call."""
    match row:
        case Check(file=file) | Problem(file=str(file)):
            return file
        case BrokenCall(id=call_id):
            return call_id
    return ""


def _changes(changed: ToolCompatibility) -> Content:
    lines = [
        Content.assemble(
            ("✗ " if change.breaking else "· ", "$text-error" if change.breaking else "$text-muted"),
            (f"{change.side}: ", "$text-muted"),
            clean_line(change.message),
        )
        for change in changed.changes
    ]
    return Content("\n").join(lines) if lines else Content(clean(changed.summary))


def _answer(report: QuestionReport) -> Iterator[Content]:
    """Yield the lines about a question that a model was asked."""
    sign = (f"{_SIGNS[report.status]} ", _STYLES[report.status])
    yield Content.assemble(sign, (f"{clean_line(report.model)}: ", "$text-muted"), clean_line(report.question))
    if report.problem is not None:
        yield Content(f"  {clean(str(report.problem))}")
    for one in report.differences:
        yield Content(f"  {clean_line(one.message)}")
    if report.session is not None:
        yield Content.styled("  Its session can be opened on the Chat page.", "$text-muted")
    yield Content()


def _difference(one: FailedExpectation) -> Iterator[Content]:
    """Yield the lines about one difference: its message, and the values if they need more than that."""
    yield Content.assemble(("✗ ", "$text-error"), (f"{one.expectation}: ", "$text-muted"), clean_line(one.message))
    if one.expectation not in {"exact", "subset", "snapshot"}:
        return
    old, new = _lines(one.expected), _lines(one.got)
    if len(old) + len(new) <= 2 and isinstance(one.expected, str | int | float | bool):
        return
    equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    window = slice(max(equal - 1, 0), equal + _COMPARED_LINES)
    for line in list(difflib.unified_diff(old[window], new[window], lineterm="", n=1))[3 : 3 + 2 * _MOST_LINES]:
        style = {"-": "$text-error", "+": "$text-success"}.get(line[:1], "$text-muted")
        text = "…" if line.startswith("@@") else f"{line[:1]} {line[1:]}"
        yield Content.styled(f"    {clean_line(text)}", style)


def _lines(value: JsonValue) -> list[str]:
    if value is None:
        return []
    return value.splitlines() if isinstance(value, str) else write(value, indent=2).splitlines()
