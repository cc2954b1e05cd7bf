"""The jq filter of the result pane."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from textual.widget import Widget

from pegboard.models import ToolResult
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count
from pegboard.results.stored.client import StoredResultError, run_filter
from pegboard.tui.result.prompt import ResultPrompt

_PAUSE = 0.15
"""Seconds without a key before the filter runs."""
_EVERYTHING = {"", "."}


class JqFilter:
    """The filter that is applied to a result.

    Args:
        pane: Widget whose workers run the filter.
        prompt: Input line for hints.
        show: Shows a filtered result, or the whole one if it is None.
    """

    def __init__(self, pane: Widget, prompt: ResultPrompt, show: Callable[[ToolResult | None], None]) -> None:
        self._pane = pane
        self._prompt = prompt
        self._show = show
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.text = ""
        """The filter of the result that is shown; empty if it is whole."""
        self.note = ""
        """The number of its results, for the line about the filter."""
        self.failed: str | None = None
        """The last filter, if it failed."""
        self._running: str | None = None
        self._accepted = False
        """Whether the user accepted the running filter."""

    def reset(self) -> None:
        """Forget the filter and delete the files of filtered results."""
        self._pane.workers.cancel_group(self._pane, "jq")
        self.text = self.note = ""
        self.failed = self._running = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def run(self, original: ToolResult, text: str) -> None:
        """Filter a result after a short pause, unless the user types on."""
        self.failed, self._running, self._accepted = None, text.strip(), False
        self._pane.run_worker(self._run_and_answer(original, text.strip()), group="jq", exclusive=True)

    def accept(self, text: str) -> bool:
        """Accept a filter; return False if it is wrong, or if it is still running, after which the line asks again."""
        self._accepted = self._running == text
        return not self._accepted and self.failed != text

    async def _run_and_answer(self, original: ToolResult, text: str) -> None:
        await asyncio.sleep(_PAUSE)
        await self._run(original, text)
        self._running = None
        if self._accepted:
            self._prompt.post_message(ResultPrompt.Answered("jq", text))

    async def _run(self, original: ToolResult, text: str) -> None:
        if text in _EVERYTHING:
            self.text = self.note = ""
            self._hint("")
            self._show(None)
            return
        try:
            self._folder = self._folder or tempfile.TemporaryDirectory(prefix="pegboard-", ignore_cleanup_errors=True)
        except OSError:
            self.failed = text
            self._report("no temporary file can be written: free space on the disk, or set TMPDIR")  # in one line
            return
        if original.meta.truncated is not None:
            self._hint("filtering the whole result…")
        try:
            result, found = await run_filter(original, text, Path(self._folder.name))
        except StoredResultError as error:
            self.failed = text
            self._report(str(error))
            return
        self.text = text
        results = count(found, "result")
        self.note = results
        self._hint(results if found != 1 else "")
        self._show(result)
        await asyncio.to_thread(_delete_others, Path(self._folder.name), result)

    @property
    def _is_asking(self) -> bool:
        """Whether the line asks for the filter, and not for something else meanwhile."""
        return self._prompt.display and self._prompt.kind == "jq"

    def _hint(self, text: str) -> None:
        if self._is_asking:
            self._prompt.hint(text)

    def _report(self, message: str) -> None:
        if self._is_asking:
            self._prompt.hint(message, is_error=True)
        else:
            self._pane.notify(clean_line(f"The jq filter failed: {message}"), severity="error", markup=False)


def _delete_others(folder: Path, result: ToolResult) -> None:
    """Delete the files of earlier filters."""
    shown = "" if result.meta.truncated is None else result.meta.truncated.file
    with suppress(OSError):
        for file in folder.iterdir():
            if str(file) != shown:
                file.unlink()
