"""Actions on recorded calls, with their dialogs and toasts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.notifications import SeverityLevel
from textual.screen import Screen

from pegboard import storage
from pegboard.config.paths import working_directory
from pegboard.data.mask import unrecorded_secret
from pegboard.errors import StoreError, explained
from pegboard.models import UNFINISHED, Finished, JsonObject, RecordedCall, ToolSpec
from pegboard.models.call import new_call_id
from pegboard.models.turn import ModelTurn
from pegboard.results.arguments import arguments_text
from pegboard.results.clean import clean, clean_line
from pegboard.results.quotation import quoted
from pegboard.results.sizes import count, duration, local_time
from pegboard.tui.activity.detail import call_of
from pegboard.tui.activity.rows import CallRow
from pegboard.tui.commands import key_of
from pegboard.tui.messages import Called, OpenCall, OpenScript, OpenTurn, OpenWaitingCall, TalkAbout
from pegboard.tui.widgets.toasts import dismiss

if TYPE_CHECKING:
    from pegboard.runtime import Runtime
    from pegboard.tui.activity.call_list import CallList

_TOAST_SECONDS: Final = 10.0
_ARGUMENT_LINES: Final = 8
_SCRIPT: Final = "script.run"
_MOST_TALKED: Final = 20
"""Calls that can be added to a message to the model together."""


class CallActions:
    """Actions on recorded calls, with their dialogs and toasts.

    Args:
        page: Screen that shows dialogs and toasts.
        runtime: Runs calls and changes the history.
    """

    def __init__(self, page: Screen[None], runtime: Runtime) -> None:
        self._page = page
        self._runtime = runtime
        self._activity = runtime.activity
        self._deleted: list[tuple[tuple[str, ...], str]] = []
        """The ids of each deletion that can be undone, and the text of its toast."""

    async def find(self, ids: Sequence[str]) -> tuple[RecordedCall, ...]:
        """Return calls, the oldest first; empty with a toast if they are gone or can't be read."""
        try:
            calls = await asyncio.to_thread(self._activity.find, ids)
        except StoreError as error:
            self._fail(error)
            return ()
        if not calls:
            self._notify("The call is no longer in the history.", "warning")
        return tuple(reversed(calls))

    def is_call(self, call: RecordedCall | CallRow, deed: str) -> bool:
        """Return whether a line is a call of a tool; if it is a turn or a batch, say that this can't be done with it.

        Args:
            call: The line.
            deed: What only calls can be, such as `copied`.
        """
        if call.is_turn or call.is_batch:
            kind = "turn" if call.is_turn else "batch"
            self._notify(f"A {kind} can't be {deed}. Select one of its calls.", "warning")
            return False
        return True

    async def _without_turns(self, calls: Sequence[RecordedCall]) -> Sequence[RecordedCall]:
        """Return calls, and of each turn the calls that it made, without duplicates; say so if there are none."""
        found: dict[str, RecordedCall] = {}
        try:
            for call in calls:
                made = await asyncio.to_thread(self._activity.calls_of, call.id) if call.is_turn else None
                found |= {one.id: one for one in ((call,) if made is None else reversed(made.calls))}
        except StoreError as error:
            self._fail(error)
            return ()
        if not found:
            self._notify("The turn made no calls.", "warning")
        return [*found.values()]

    # Look

    async def _open_turn(self, call: RecordedCall) -> None:
        """Open the chat session of a turn at its message, or say why that can't be done."""
        message = ModelTurn.of(call).message
        if call.source != "ask" or call.session is None:
            self._notify("The turn was not opened because it belongs to another agent and has no chat.", "warning")
            return
        try:
            known = await asyncio.to_thread(self._runtime.sessions.get, call.session)
        except StoreError as error:
            self._fail(error)
            return
        if known is None or message is None:
            gone = "session" if known is None else "message"
            self._notify(f"The turn was not opened because its {gone} was deleted.", "warning")
        else:
            self._page.post_message(OpenTurn(call.session, message))

    async def open_result(self, call: RecordedCall) -> None:
        """Open the full result; of a turn, its chat; of a call that waits for approval, its card."""
        from pegboard.tui.dialogs.result import ResultScreen

        if call.is_turn:
            await self._open_turn(call)
            return
        if call.state == "waiting":
            self._page.post_message(OpenWaitingCall(call.id))
            return
        try:
            result = await asyncio.to_thread(self._activity.result, call.id)
        except StoreError as error:
            self._fail(error)
            return
        if result is None:
            reason = "it is still running" if call.state == "running" else "its result is not stored"
            self._notify(f"The result of {clean_line(call.tool)} was not opened because {reason}.", "warning")
            return
        title = f"Result of {clean_line(call.tool)} · {local_time(call.at)}"
        await self._page.app.push_screen_wait(ResultScreen(call_of(call), result, self._runtime.paths.state, title))

    async def show_details(self, call: RecordedCall) -> None:
        """Show everything that is recorded of a call, except its result, as JSON."""
        from pegboard.tui.dialogs.definition import JsonScreen

        shown = call.model_dump(mode="json", exclude={"position"})
        await self._page.app.push_screen_wait(
            JsonScreen("Turn" if call.is_turn else f"Call of {clean_line(call.tool)}", shown)
        )

    async def copy_as(self, call: RecordedCall) -> None:
        """Copy a call in one of several formats."""
        if not self.is_call(call, "copied"):
            return
        from pegboard.tui.dialogs.copy_as import copy_recorded

        await self._page.app.push_screen_wait(copy_recorded(call, lambda kind: self._activity.copied_as(kind, call)))

    async def add_to_chat(self, calls: Sequence[RecordedCall]) -> None:
        """Quote calls and results in the message to the model; of turns, those of their calls."""
        calls = await self._without_turns(calls)
        if not calls:
            return
        if len(calls) > _MOST_TALKED:
            self._notify(f"Select at most {_MOST_TALKED} calls to add to the chat.", "warning")
            return
        texts = []
        for call in calls:
            try:
                result = await asyncio.to_thread(self._activity.result, call.id)
            except StoreError as error:
                self._fail(error)
                return
            texts.append(await asyncio.to_thread(quoted, call_of(call), result))
        self._page.post_message(TalkAbout("".join(texts)))

    async def make_script(self, calls: Sequence[RecordedCall]) -> None:
        """Open a script that repeats the calls, and those of turns, in the order of time."""
        calls = await self._without_turns(calls)
        if not calls:
            return
        script = await asyncio.to_thread(self._runtime.scripts.from_records, calls)
        self._page.post_message(OpenScript(script))

    async def export(self, calls: Sequence[RecordedCall]) -> None:
        """Write calls, and those of turns, with their results to a file, one line of JSON each."""
        ids = [call.id for call in await self._without_turns(calls)]
        if ids:
            await self.export_lines(count(len(ids), "call"), "calls", partial(self._activity.export, ids), len(ids))

    async def export_lines(
        self, subject: str, name: str, lines: Callable[[Callable[[str], object]], Iterable[str]], calls: int = 0
    ) -> None:
        """Ask for the name of a file and write lines to it; say which calls and results it lacks.

        Args:
            subject: Name of the exported data, such as `2 calls`.
            name: Start of the suggested file name.
            lines: Returns the lines; called and read in a thread, with a function for the reason why a result is
                incomplete.
            calls: Number of calls that the user selected.
        """
        from pegboard.tui.dialogs.ask_name import ask_file

        folder = await asyncio.to_thread(working_directory)
        suggested = str(folder / f"{name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}.jsonl")
        title = f"Export {subject} as JSON Lines"
        incomplete: list[str] = []
        written = 0

        def write(file: Path) -> None:
            nonlocal written
            incomplete.clear()
            written = _write(file, lines(incomplete.append), may_be_empty=not calls)

        file = await ask_file(self._page.app, title, suggested, write)
        if file is None:
            return
        if written < calls:
            text = f"Exported {written:,} of {subject} to {file}. The others were deleted in the meantime."
            self._notify(text, "warning")
        else:
            self._notify(f"Exported {subject} to {file}")
        if incomplete:
            verb = "is" if len(incomplete) == 1 else "are"
            text = (
                f"{count(len(incomplete), 'result')} {verb} incomplete because a file can't be read: {incomplete[0]}."
            )
            self._notify(text, "warning")

    # Run again

    async def open_in_form(self, call: RecordedCall) -> None:
        """Open a call in the form of its tool; a script on the Script page."""
        commands = call.args.get("commands")
        if call.tool == "script.run" and isinstance(commands, str):
            self._page.post_message(OpenScript(commands))
        elif await self._is_usable(call):
            self._page.post_message(OpenCall(call.tool, call.args))

    async def edit(self, call: RecordedCall, run: Callable[[RecordedCall, JsonObject], object]) -> None:
        """Edit the arguments of a call; then run it again.

        Args:
            call: The call.
            run: Called with the edited arguments.
        """
        if not await self._is_usable(call):
            return
        spec = await asyncio.to_thread(self._activity.tool_of, call)
        if spec is None:
            await self.open_in_form(call)
            return
        from pegboard.tui.dialogs.edit_call import EditCallScreen

        arguments = await self._page.app.push_screen_wait(
            EditCallScreen(spec, call.args, title=f"Edit {clean_line(spec.name)} and run it again", note="")
        )
        if arguments is not None:
            run(call, arguments)

    async def run_again(self, calls: Sequence[RecordedCall], arguments: JsonObject | None = None) -> None:
        """Run calls again, one after the other, in the order of time; ask first if that may destroy data.

        Args:
            calls: The calls.
            arguments: Other arguments of a single call.
        """
        for call in calls:
            if not await self._is_usable(call):
                return
            if hidden := unrecorded_secret(call.args if arguments is None else arguments):
                way = key_of(self._page, "activity.edit") or "Edit and run"
                self._notify(f"{call.tool} can't be run again: {hidden} Enter it with {way}.", "warning")
                return
        specs = {call.tool: await asyncio.to_thread(self._activity.tool_of, call) for call in calls}
        if not await self._confirm(calls, specs, arguments):
            return
        for call in calls:
            await self._run(call, specs[call.tool], arguments)

    async def _run(self, call: RecordedCall, spec: ToolSpec | None, arguments: JsonObject | None) -> None:
        call_id = new_call_id()
        async for event in self._activity.run_again(call, "form", arguments, call_id=call_id):
            if isinstance(event, Finished) and event.call.id == call_id:
                result = event.result
                sign = "✓ succeeded" if result.ok else "✗ failed"
                reason = f": {result.error.message}" if result.error is not None else ""
                took = duration(result.meta.duration_ms)
                severity: SeverityLevel = "information" if result.ok else "warning"
                self._notify(f"{call.tool} {sign} in {took}{reason}"[:300], severity)
        if spec is not None and spec.requirements:
            self._page.post_message(Called(spec.name))

    async def cancel(self, call: RecordedCall) -> None:
        """Cancel a running call of this process."""
        if call.state not in UNFINISHED:
            self._notify(f"{call.tool} has already finished.", "warning")
        elif call.is_turn:
            self._notify("The turn was not cancelled. Interrupt it on the Chat page or where it started.", "warning")
        elif not await self._runtime.cancel(call.id):
            self._notify(f"{call.tool} was not cancelled because another process runs it.", "warning")

    async def _is_usable(self, call: RecordedCall) -> bool:
        reason = await asyncio.to_thread(self._activity.unusable, call)
        if reason:
            self._notify(f"{'The turn' if call.is_turn else call.tool} can't be run again: {reason}", "warning")
        return not reason

    async def _confirm(
        self, calls: Sequence[RecordedCall], specs: dict[str, ToolSpec | None], arguments: JsonObject | None
    ) -> bool:
        destructive = [call for call in calls if (spec := specs[call.tool]) is not None and spec.hints.destructive]
        reasons = []
        if len(calls) > 1:
            reasons.append(f"{count(len(calls), 'call')} will run one after the other, the oldest first.")
        for call in destructive[:3]:
            text = clean(arguments_text(call.args if arguments is None else arguments)).splitlines()
            more = [f"… {count(len(text) - _ARGUMENT_LINES, 'more line')}"] if len(text) > _ARGUMENT_LINES else []
            reasons.append(f"{clean_line(call.tool)} may delete or overwrite data.")
            reasons.append("\n".join([*text[:_ARGUMENT_LINES], *more]))
        if len(destructive) > 3:
            reasons.append(f"{count(len(destructive) - 3, 'more call')} may delete or overwrite data.")
        scripts = [call.args if arguments is None else arguments for call in calls if call.tool == _SCRIPT]
        if tools := await asyncio.to_thread(self._runtime.scripts.destructive_tools, scripts):
            reasons.append(f"{_SCRIPT} calls tools that may delete or overwrite data: {clean_line(', '.join(tools))}.")
        if not reasons:
            return True
        from pegboard.tui.dialogs.confirm import Confirm

        title = f"Run {clean_line(calls[0].tool) if len(calls) == 1 else count(len(calls), 'call')} again?"
        agreed: bool | None = await self._page.app.push_screen_wait(Confirm(title, "\n\n".join(reasons), "Run"))
        return agreed is True

    # Change

    async def delete(self, ids: Sequence[str], undo_key: str) -> None:
        """Delete finished calls with the calls that they made."""
        try:
            deleted = await asyncio.to_thread(self._activity.delete, ids)
        except StoreError as error:
            self._fail(error, "Nothing was deleted")
            return
        if not deleted:
            self._notify("Nothing was deleted because the call is still running or was deleted already.", "warning")
            return
        left: Sequence[RecordedCall] = ()
        with suppress(StoreError):  # reading the list reports it
            left = await asyncio.to_thread(self._activity.find, [*(set(ids) - set(deleted))])
        more = f" {count(len(left), 'call')} still running." if left else ""
        them = "it" if len(deleted) == 1 else "them"
        restore = f"You can restore {them} within an hour: {undo_key or 'Undo'}."
        text = f"Deleted {count(len(deleted), 'call')}. {restore}{more}"
        self._deleted.append((deleted, text))
        self._notify(text)

    async def deselect_deleted(self, listed: CallList) -> None:
        """Deselect the calls that were deleted meanwhile, also by other programs."""
        ticked = listed.ticked
        if not ticked:
            return
        with suppress(StoreError):  # reading the list reports it
            found = await asyncio.to_thread(self._activity.find, [*ticked])
            listed.ticked -= ticked - {call.id for call in found}

    async def undo(self) -> None:
        """Restore the calls that were deleted last."""
        if not self._deleted:
            self._notify("No calls were deleted since Pegboard started, or all are restored.")
            return
        deleted, text = self._deleted.pop()
        try:
            restored = await asyncio.to_thread(self._activity.restore, deleted)
        except StoreError as error:
            self._deleted.append((deleted, text))
            self._fail(error, "Nothing was restored")
            return
        dismiss(self._page.app, clean_line(text))
        self._notify(
            f"Restored {count(len(restored), 'call')}."
            if restored
            else "The calls were not restored because they were deleted for good after an hour."
        )

    async def redact(self) -> str | None:
        """Ask for a value and replace it in everything that is stored; return it if that was done."""
        from pegboard.tui.activity.redact import RedactScreen

        value: str | None = await self._page.app.push_screen_wait(RedactScreen())
        if value is None:
            return None
        self._notify("Redacting… This may take a while if the history is large.")
        try:
            report = await asyncio.to_thread(self._activity.redact, value)
        except StoreError as error:
            self._fail(error, "The value was not redacted")
            return None
        done = f"{count(report.calls, 'call')}, {count(report.messages, 'chat message')}"
        self._notify(f"Redacted in {done} and {count(len(report.files), 'file')}.")
        for place in report.remaining[:5]:
            self._notify(place, "warning")
        return value

    async def pin(self, calls: Sequence[RecordedCall]) -> None:
        """Pin calls, or unpin them if all are pinned."""
        pinned = not all(call.pinned for call in calls)
        try:
            changed = await asyncio.to_thread(self._activity.pin, [call.id for call in calls], pinned=pinned)
        except StoreError as error:
            self._fail(error, "Nothing was changed")
            return
        them = "it" if len(changed) == 1 else "them"
        kept = f"The size limit {'never removes' if pinned else 'may remove'} {them}."
        self._notify(f"{'Pinned' if pinned else 'Unpinned'} {count(len(changed), 'call')}. {kept}")

    def _fail(self, error: StoreError, failed: str = "The history can't be read") -> None:
        self._notify(explained(error, failed), "error")

    def _notify(self, text: str, severity: SeverityLevel = "information") -> None:
        self._page.notify(clean_line(text), severity=severity, timeout=_TOAST_SECONDS, markup=False)


def _write(file: Path, lines: Iterable[str], *, may_be_empty: bool) -> int:
    """Write lines to a new file and return their number.

    Raises:
        OSError: The file can't be written.
        StoreError: The history can't be read, or there are no lines.
    """
    number = 0
    with storage.replacing(file, replace=False) as out:
        for line in lines:
            number += 1
            out.write(f"{line}\n".encode(errors="backslashreplace"))
        if not number and not may_be_empty:
            raise StoreError("The file was not written because the calls were deleted in the meantime.")
    return number
