"""Dialog that runs a tool over a file."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input, Static

from pegboard.batch.engines.embedded import EmbeddedEngine
from pegboard.batch.errors import BatchError
from pegboard.batch.export import merge_results
from pegboard.batch.journal import journal_file
from pegboard.batch.plan import BatchPlan
from pegboard.batch.preview import preview
from pegboard.batch.result_folder import ResultFolder, can_continue
from pegboard.batch.results import RowResult
from pegboard.batch.run import Batch
from pegboard.config.paths import expanded
from pegboard.data.json_text import write
from pegboard.models import ScriptHandler, ToolCall, ToolSpec
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count
from pegboard.tui.commands import Command, bindings, key_of
from pegboard.tui.tools.batch_results import LatestResults, readable_results
from pegboard.tui.tools.batch_text import described, row_line
from pegboard.tui.widgets.control_pictures import ControlPictures
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.filter_line import FilterLine
from pegboard.tui.widgets.pick_list import PickList
from pegboard.tui.widgets.text_input import TextInput

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_REFRESH_SECONDS = 0.25
_STOPPED = "Stopped. "
_LONGEST = 200
"""Characters of the arguments in a title."""


class _RowList(PickList):
    """Results of rows."""

    PAGE = "Rows"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        *(command for command in PickList.ACTIONS if command.id != "pick.choose"),
        Command("batch.open", "enter", "choose", "Open", "Show the result of the selected row.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)


class BatchScreen(Dialog[None]):
    """Rows of a file, the mapping of their columns with the first calls, and the results as they come.

    Args:
        runtime: Runtime that runs the calls.
        spec: The tool.
    """

    PAGE = "Run over a file"
    AUTO_FOCUS = "#file"

    DEFAULT_CSS = """
    BatchScreen {
        & > #box { width: 110; height: 36; }
        Input, Input:focus { border: none; border-left: outer $border; height: 1; padding: 0 1; background: $panel; }
        #maps { margin-top: 1; }
        #preview { height: auto; max-height: 40%; padding: 0 1; color: $text-muted; }
        #status { height: auto; min-height: 1; max-height: 4; padding: 0 1; background: $panel; }
        PickList { height: 1fr; }
    }
    """
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("batch.run", "ctrl+r", "run", "Run", "Call the tool with every row.", footer=True),
        Command("batch.resume", "alt+g", "resume", "Resume", "Continue the interrupted batch.", footer=True),
        Command("batch.failures", "f3", "failures", "Failed", "Show only failed rows, or all.", footer=True),
        Command("batch.retry", "f6", "retry", "Retry", "Call the tool again with the failed rows.", footer=True),
        Command("batch.export", "ctrl+s", "export", "Export", "Write all results to a new file.", footer=True),
        Command("batch.stop", "escape", "stop", "Stop", "Stop the running batch.", footer=True),
        Command("batch.close", "escape", "close", "Close", "Close this dialog if no batch is running.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, spec: ToolSpec) -> None:
        super().__init__(f"Run {clean_line(spec.name)} over a file")
        self._runtime = runtime
        self._spec = spec
        self._file = TextInput(placeholder="JSON Lines or CSV file", id="file", highlighter=ControlPictures())
        self._maps = TextInput(
            placeholder="mapping, if names differ: PARAMETER=COLUMN …", id="maps", highlighter=ControlPictures()
        )
        self._preview = Static(id="preview")
        self._status = Static(id="status")
        self._filter = FilterLine("")
        self._list = _RowList()
        self._batch: Batch | None = None
        self._folder: ResultFolder | None = None
        """Folder of the results of the last run."""
        self._is_unfinished = False
        """Whether an earlier run with these inputs was interrupted."""
        self._parts: list[Path] = []
        """Files of results; a later one has the retried rows of the earlier ones."""
        self._results = LatestResults()
        self._shown: list[RowResult] = []
        self._only_failures = False
        self._has_news = False

    def compose_body(self) -> ComposeResult:
        """Compose the inputs, the preview, the progress and the results."""
        yield self._file
        yield self._maps
        yield self._preview
        yield self._status
        yield self._filter
        yield self._list

    def on_mount(self) -> None:
        """Refresh the results while the batch runs."""
        self._filter.display = False
        self._list.empty = "No results yet."
        self._list.show([])
        self.set_interval(_REFRESH_SECONDS, self._refresh)
        self.watch(self.app, "tool_scan", self._follow_tool, init=False)

    def _follow_tool(self) -> None:
        """Preview the calls with the schema of the changed tool."""
        found = self._runtime.tools.get(self._spec.name)
        if found is not None and found != self._spec:
            self._spec = found
            self._show_preview()

    def on_unmount(self) -> None:
        """Delete the results that were not exported, except those of an interrupted batch."""
        if self._batch is not None:
            self._batch.stop()
        elif self._folder is not None:
            self._folder.release()

    def _plan(self) -> BatchPlan:
        """Return the plan of the inputs.

        Raises:
            BatchError: The mapping can't be read.
        """
        try:
            maps = tuple(shlex.split(self._maps.value))
        except ValueError as error:
            raise BatchError(f"The mapping can't be read: {error}.") from error
        return BatchPlan(spec=self._spec, source=str(_path(self._file.value)), maps=maps)

    # Preview

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self._show_preview()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.input is self._file:
            self._maps.focus()
        else:  # Nothing runs before the preview was shown.
            self.notify(f"Press {self._run_key} to run the tool with every row.", markup=False)

    @work(exclusive=True, group="preview")
    async def _show_preview(self) -> None:
        if self._batch is None:
            self._status.update("")
        self._is_unfinished = False
        self.refresh_bindings()
        if not self._file.value.strip():
            self._preview.update("")
            return
        await asyncio.sleep(0.1)  # for the next key
        try:
            plan = self._plan()
            found = await asyncio.to_thread(preview, plan)
            is_unfinished = await asyncio.to_thread(self._can_continue, plan)
        except (BatchError, OSError) as error:
            self._preview.update(Content.styled(clean_line(str(error)), "$text-warning"))
            return
        self._preview.update(described(found, self._spec))
        self._set_unfinished(is_unfinished)

    def _set_unfinished(self, is_unfinished: bool) -> None:
        self._is_unfinished = is_unfinished
        self.refresh_bindings()
        if is_unfinished and self._batch is None:
            text = f"This batch was interrupted. {self._resume_key} resumes it; {self._run_key} starts again."
            self._status.update(Content(text))

    @property
    def _run_key(self) -> str:
        return key_of(self, "batch.run") or "“Run”"

    @property
    def _resume_key(self) -> str:
        return key_of(self, "batch.resume") or "“Resume”"

    @property
    def _folders(self) -> Path:
        """The folder with those of all results."""
        return self._runtime.paths.state / "batches"

    def _can_continue(self, plan: BatchPlan) -> bool:
        """Return whether a batch was interrupted, here or in an earlier dialog; read the disk."""
        if self._folder is not None and self._folder.has_inputs(plan):
            return self._folder.is_interrupted()
        return can_continue(self._folders, plan)

    # Running

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable only the actions that apply now."""
        is_running = self._batch is not None
        match action:
            case "run" | "close":
                return not is_running
            case "stop":
                return is_running
            case "resume":
                return not is_running and self._is_unfinished
            case "retry":
                return not is_running and bool(self._failed)
            case "export":
                return not is_running and bool(self._parts)
        return True

    def action_run(self) -> None:
        """Call the tool with every row."""
        if not self._file.value.strip():
            self.notify("Enter a file first.", severity="warning")
            self._file.focus()
            return
        self._run(None)

    def action_resume(self) -> None:
        """Continue the interrupted batch."""
        self._run(None, resume=True)

    def action_retry(self) -> None:
        """Call the tool again with the failed rows."""
        if self._check_inputs():
            self._run(frozenset(self._failed))

    def _has_run_inputs(self) -> bool:
        """Return whether the inputs are those of the last run."""
        with suppress(BatchError):
            return self._folder is not None and self._folder.has_inputs(self._plan())
        return False

    def _check_inputs(self) -> bool:
        """Return whether the inputs are those of the results; if not, say so."""
        if self._has_run_inputs():
            return True
        folder = self._folder
        assert folder is not None, "there are results"
        mapping = f" with the mapping {shlex.join(folder.plan.maps)}" if folder.plan.maps else " without a mapping"
        self.notify(
            f"The results are those of {clean_line(folder.plan.source + mapping)}. Enter these again to retry or export"
            f" them, or press {self._run_key} to run with the new inputs.",
            title="The inputs have changed",
            severity="warning",
            markup=False,
        )
        return False

    @work(exclusive=True, group="batch")
    async def _run(self, only: frozenset[int] | None, *, resume: bool = False) -> None:
        """Run the batch, the rest of an interrupted one, or the rows that failed."""
        self._spec = await asyncio.to_thread(self._runtime.tools.current, self._spec)
        if why := self._runtime.tools.why_missing(self._spec.name):
            self._status.update(Content.styled(clean_line(f"Nothing was run. {why}"), "$text-error"))
            return
        if not await self._is_confirmed():
            return
        try:
            plan = self._plan()
            await asyncio.to_thread(preview, plan, 0)  # nothing is discarded for inputs that can't be used
            # Synchronously, so that a dialog that is closed meanwhile leaves no lock.
            earlier, folder = self._folder, self._folder_for(plan)
        except (BatchError, OSError) as error:
            self._clear_repeated(error)
            self._status.update(Content.styled(clean_line(str(error)), "$text-error"))
            return
        self._folder = folder
        is_new = folder is not earlier
        if only is None and (is_new or not resume):
            self._parts.clear()
            self._results = LatestResults()
        part = folder.part(0 if only is None else len(self._parts))
        if part not in self._parts:
            self._parts.append(part)
        plan = replace(plan, out=part, replace=not resume, resume=resume, only=only)
        batch = self._batch = Batch(plan, EmbeddedEngine(self._runtime), self._runtime.pipelines.recorder)
        self.refresh_bindings()
        message = ""
        try:
            if earlier is not None and is_new:
                await asyncio.to_thread(earlier.release)
            if only is None and not resume:
                await asyncio.to_thread(folder.discard_retries)
            ended = await batch.run(self._add)
            message = _STOPPED if ended == "stopped" else ""
            if ended == "complete" or only is not None:
                await asyncio.to_thread(journal_file(part).unlink, missing_ok=True)
            if resume and is_new:
                self._parts, self._results = await asyncio.to_thread(readable_results, folder.parts())
                self._has_news = True
        except (BatchError, OSError) as error:
            message = f"{error} "
            self._clear_repeated(error)
        finally:
            self._batch = None
            if not self.is_attached:
                folder.release()
        await self._show_end(batch, folder, message, is_retry=only is not None)

    def _clear_repeated(self, error: Exception) -> None:
        """Clear the preview if it has the message that the status is about to show."""
        if str(self._preview.content) == clean_line(str(error)):
            self._preview.update("")

    def _folder_for(self, plan: BatchPlan) -> ResultFolder:
        """Return the folder for the results of a batch: that of the last run if its inputs were the same.

        Raises:
            OSError: The folder can't be created or locked.
        """
        folder = self._folder
        return folder if folder is not None and folder.has_inputs(plan) else ResultFolder.claim(self._folders, plan)

    async def _is_confirmed(self) -> bool:
        """Return whether the tool isn't destructive and runs no scripts, or the user confirms to run it."""
        spec = await asyncio.to_thread(self._runtime.tools.current, self._spec)
        is_script = isinstance(spec.handler, ScriptHandler)
        if not (spec.hints.destructive or is_script):
            return True
        from pegboard.tui.dialogs.confirm import Confirm

        name = clean_line(spec.name)
        effect = "runs scripts, which may delete or overwrite data" if is_script else "may delete or overwrite data"
        question = f"{name} {effect}, and is called for every row."
        dialog = Confirm(f"Run {name} over the file?", question, "Run")
        return await self.app.push_screen_wait(dialog) is True

    async def _show_end(self, batch: Batch, folder: ResultFolder, message: str, *, is_retry: bool) -> None:
        """Show how a batch or a retry of failed rows ended."""
        progress = batch.progress
        self._refresh()
        is_interrupted = await asyncio.to_thread(folder.is_interrupted)
        if self._has_run_inputs():
            self._is_unfinished = is_interrupted
        before, failed_before = (0, 0) if is_retry else (progress.before, progress.failed_before)
        rows = f"{count(progress.done + before, 'row')}{' retried' if is_retry else ''}"
        summary = f"{rows}, {progress.failed + failed_before:,} failed, in {progress.seconds:.1f} s"
        if not progress.done and message and message != _STOPPED:
            summary = ""  # it never ran
        elif is_interrupted and self._is_unfinished:
            summary += f". {self._resume_key} resumes."
        self._status.update(Content(clean_line(f"{message}{summary}")))
        if progress.done:
            self._list.focus()
        self.refresh_bindings()

    def _add(self, result: RowResult) -> None:
        """Show a result instead of an earlier one of the same row."""
        self._results.add(result)
        self._has_news = True

    @property
    def _recent(self) -> dict[int, RowResult]:
        """The latest results by row."""
        return self._results.recent

    @property
    def _failed(self) -> set[int]:
        """The rows that failed and that no retry fixed."""
        return self._results.failed

    def _refresh(self) -> None:
        """Show the progress and the latest results."""
        if self._batch is not None:
            self._status.update(Content(self._batch.progress.line()))
        if self._has_news:
            self._has_news = False
            self._show_results()

    @property
    def _marked(self) -> RowResult | None:
        """The selected result; None if there are none."""
        marked = self._list.marked
        return self._shown[marked] if marked is not None and marked < len(self._shown) else None

    def _show_results(self) -> None:
        found = self._results.failures if self._only_failures else self._recent
        result = self._marked
        marked = result.row if result is not None else None
        self._shown = [found[row] for row in sorted(found)]
        rows = [result.row for result in self._shown]
        none = "No failures." if self._only_failures else "No results yet."
        self._list.empty = "No matches." if rows else none
        lines = [row_line(result) for result in self._shown]
        # From the top: continuing a batch lists its earlier rows above the selected one.
        self._list.renew(lines, rows.index(marked) if marked in rows else 0, keeps_offset=False)

    def action_failures(self) -> None:
        """Show only failed rows, or all."""
        self._only_failures = not self._only_failures
        self._show_results()

    # Results

    @on(PickList.Filtered)
    def _show_filter(self, event: PickList.Filtered) -> None:
        """Show the filter of the rows while there is one."""
        event.stop()
        self._filter.display = bool(event.query)
        self._filter.show(event.query, f"{event.found:,} of {event.total:,}")

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        """Show the result of a row."""
        event.stop()
        if self._marked is not None:
            self._open(self._marked)

    @work(exclusive=True, group="open")
    async def _open(self, result: RowResult) -> None:
        from pegboard.models import ToolResult
        from pegboard.tui.dialogs.result import ResultScreen

        stored = await asyncio.to_thread(self._runtime.history.result, result.call) if result.call else None
        record = await asyncio.to_thread(self._runtime.activity.get, result.call) if result.call else None
        args = record.args if record is not None else {}
        call = ToolCall(id=result.call or "", name=self._spec.name, args=args, source="batch")
        shown = stored or ToolResult(ok=result.ok, data=result.data, error=result.error)
        title = clean_line(f"Row {result.row} of {self._spec.name} {write(args)[:_LONGEST] if args else ''}".rstrip())
        self.app.push_screen(ResultScreen(call, shown, self._runtime.paths.state, title))

    @work(exclusive=True, group="export")
    async def action_export(self) -> None:
        """Write all results to a new file."""
        from pegboard.tui.dialogs.ask_name import ask_file

        if not self._check_inputs():
            return
        source, parts = _path(self._file.value), tuple(self._parts)
        suggested = str(source.with_name(f"{source.stem}.results.csv"))
        target = await ask_file(
            self.app, "Export the results to", suggested, lambda target: merge_results(parts, target)
        )
        if target is not None:
            self.notify(f"Results written to {clean_line(str(target))}.", markup=False)

    def action_stop(self) -> None:
        """Stop the running batch."""
        if self._batch is not None:
            self._batch.stop()
            self._status.update("Stopping when the running calls have finished …")


def _path(text: str) -> Path:
    """Return the path that a user typed."""
    return expanded(text.strip())
