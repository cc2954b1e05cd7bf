"""Live output and exit status of a script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import JsonValue

from pegboard.models import CallEvent, Finished, ToolResult
from pegboard.results.clean import clean_line
from pegboard.results.sizes import duration, size
from pegboard.results.views import views
from pegboard.tui.result.call_log import LOG_LINES
from pegboard.tui.result.pane import ResultPane
from pegboard.tui.result.status import outcome
from pegboard.tui.result.views import TITLES, CursorView, ViewName
from pegboard.tui.script.calls import exit_code

_NOTE = "pegboard: "
"""Prefix of stderr lines in which Pegboard explains how a script ended."""


class OutputPane(ResultPane):
    """Output of one script as a log, followed by the exit status. JSON output is also shown as a tree."""

    PAGE = "Output"
    TITLES: ClassVar[Mapping[ViewName, str]] = {**TITLES, "log": "Output"}
    SHOWS_TOOL = False
    EMPTY = "Press {key} to run the script. Its output appears here."
    DEFAULT_CSS = """
    OutputPane StatusLine { height: auto; max-height: 3; }
    """

    _code: int | None = None
    _notes: tuple[str, ...] = ()
    _out = ""

    def feed(self, event: CallEvent) -> None:
        """Apply an event; the result becomes stdout, parsed as JSON if possible."""
        if isinstance(event, Finished) and self.call is not None and event.call.id == self.call.id:
            self._code = exit_code(event.result)
            event = event.model_copy(update={"result": self._printed(event.result)})
        super().feed(event)

    def _printed(self, result: ToolResult) -> ToolResult:
        if self._code is None or not isinstance(result.data, dict):
            self._notes, self._out = (), ""
            return result
        self._out = str(result.data.get("stdout", ""))
        self._notes = tuple(_notes(str(result.data.get("stderr", ""))))
        meta = result.meta.model_copy(update={"size": len(self._out.encode("utf-8", "replace"))})
        return ToolResult(ok=self._code == 0, data=_read(self._out), meta=meta)

    def fitting(self, result: ToolResult, *, has_log: bool) -> Iterator[ViewName]:
        """Yield the fitting views, the log first if it has lines; for a filtered result, those of the data first."""
        if result is not self.result:
            yield from super().fitting(result, has_log=has_log)
            return
        if has_log:
            yield "log"
        if result.error is not None:
            yield "error"
        if result.data is not None:
            views_of_data = (view for view in views(result.data) if view != "output")
            yield from (view for view in views_of_data if view != "markdown" or not has_log)
        if not has_log and result.data is None and result.error is None:
            yield "log"

    def outcome(self, result: ToolResult) -> list[tuple[str, str]]:
        """Return exit code, duration, size and notes about the script's end."""
        if self._code is None:
            return outcome(result)
        pieces = [
            ("✓ exit 0", "bold $text-success") if self._code == 0 else (f"✗ exit {self._code}", "bold $text-error"),
            (duration(result.meta.duration_ms), ""),
            *((clean_line(note), "$text-warning") for note in self._notes),
        ]
        if result.meta.size:
            pieces.append((size(result.meta.size), ""))
        if self.call_log.count > LOG_LINES:
            pieces.append((f"showing the last {LOG_LINES:,} lines; the Text view has all of stdout", "dim"))
        return pieces

    def action_copy(self) -> None:
        """Copy the value at the cursor, or all of stdout if the view has no cursor."""
        if self._shown_out and not isinstance(self._views.capable, CursorView):
            self.copy_text(self._shown_out)
        else:
            super().action_copy()

    def action_copy_all(self) -> None:
        """Copy stdout, or the filtered result."""
        if self._shown_out:
            self.copy_text(self._shown_out)
        else:
            super().action_copy_all()

    @property
    def _shown_out(self) -> str:
        """Stdout of the finished script, unless it is filtered."""
        return self._out if self.result is not None and self._result is self.result else ""


def _notes(err: str) -> Iterator[str]:
    """Yield Pegboard's notes about the script's end."""
    for line in err.splitlines():
        if line.startswith(_NOTE):
            yield line.removeprefix(_NOTE)


def _read(out: str) -> JsonValue:
    """Return the output parsed as JSON or as JSON Lines, or else unchanged."""
    text = out.strip()
    if not text.startswith(("{", "[")):
        return out
    for parse in (_JSON.decode, _lines):
        try:
            return parse(text)
        except (ValueError, RecursionError):
            continue
    return out


def _lines(text: str) -> list[JsonValue]:
    """Parse each line as a JSON value.

    Raises:
        ValueError: A line is not JSON.
    """
    values: list[JsonValue] = []
    # Only a newline ends a line: a JSON string may contain U+2028, at which `splitlines` splits too.
    for line in text.split("\n"):
        stripped = line.strip()
        value, end = _JSON.raw_decode(stripped)
        if end != len(stripped):
            raise ValueError("more than one value in a line")
        values.append(value)
    return values


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


_JSON = json.JSONDecoder(parse_constant=_refuse)
