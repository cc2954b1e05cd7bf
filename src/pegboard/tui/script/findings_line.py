"""Findings of the analysis, shown below the editor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from pegboard.tui.script.findings import ScriptFinding

_SHOWN, _SHOWN_NARROW = 3, 2
"""Findings shown on a wide and on a narrow screen."""
_IN_TOOLTIP: Final = 12
"""Findings in the tooltip, which shows them in full if they don't fit."""
_MINIMUM_CELLS: Final = 20
_SIGNS: Final = {"error": ("✗", "$text-error"), "unknown": ("?", "$text-warning"), "calls": ("→", "$text-muted")}


class FindingsLine(Static):
    """The first findings of a script, one per line, or the one that the user moved to. Hidden without findings.

    Args:
        editor: Widget above, which determines the width.
    """

    class Clicked(Message):
        """The user clicked a finding."""

        def __init__(self, row: int) -> None:
            super().__init__()
            self.row = row

    def __init__(self, editor: Widget) -> None:
        super().__init__(id="findings")
        self._editor = editor
        self._found: Sequence[ScriptFinding] = ()
        self._lines_shown = 0
        self._placed: Sequence[ScriptFinding] = ()
        """Findings with a line, in its order."""
        self._reached: int | None = None
        """Index of that of them that the user moved to by key."""

    @property
    def has_places(self) -> bool:
        """Whether the line of any finding is known."""
        return bool(self._placed)

    @property
    def marks(self) -> Sequence[tuple[int, int, int]]:
        """Line and columns, from 0, of each error with a known place."""
        return [
            (one.line - 1, *one.columns)
            for one in self._found
            if one.line is not None and one.columns is not None and one.kind == "error"
        ]

    def place_at(self, row: int) -> tuple[int, int] | None:
        """Return line and column, from 0, of the finding in a row of the widget, or of the first with a line."""
        if self._reached is not None:
            return self._placed[self._reached].place
        shown = self._found[row : row + 1] if 0 <= row < self._lines_shown else ()
        return next((one.place for one in (*shown, *self._placed) if one.place is not None), None)

    def reach_next(self, cursor: tuple[int, int]) -> tuple[int, int] | None:
        """Show the next finding at or after the cursor, or the first one, in full; return its place."""
        if not self._placed:
            return None
        if self._reached is not None and self._placed[self._reached].place == cursor:
            self._reached = (self._reached + 1) % len(self._placed)
        else:
            places = [one.place or cursor for one in self._placed]
            self._reached = next((index for index, place in enumerate(places) if place >= cursor), 0)
        self._fit()
        return self._placed[self._reached].place

    def show(self, found: Sequence[ScriptFinding]) -> None:
        """Show findings."""
        self._found = found
        self._placed = sorted((one for one in found if one.place is not None), key=lambda one: one.place or (0, 0))
        self._reached = None
        self._fit()

    def _fit(self) -> None:
        """Fit the findings to the width of the screen."""
        found = self._found
        if not self.is_attached:
            return
        if self._reached is not None:
            reached, count = self._placed[self._reached], len(self._placed)
            sign, style = _SIGNS[reached.kind]
            at = f"  {self._reached + 1} of {count}" if count > 1 else ""
            self.update(Content.assemble((f"{sign} ", f"bold {style}"), (reached.text, style), (at, "$text-muted")))
            return
        most = _SHOWN_NARROW if self.screen.has_class("-narrow") else _SHOWN
        self._lines_shown = min(most, len(found))
        lines = []
        is_cut = len(found) > most
        for number, finding in enumerate(found[:most], 1):
            sign, style = _SIGNS[finding.kind]
            more = f"  and {len(found) - most} more" if number == most < len(found) else ""
            width = max(self._editor.size.width - len(more) - 5, _MINIMUM_CELLS)
            text = Content(finding.text).truncate(width, ellipsis=True)
            is_cut = is_cut or text.plain != finding.text
            lines.append(Content.assemble((f"{sign} ", f"bold {style}"), (text.plain, style), (more, "$text-muted")))
        full = "\n".join(f"{_SIGNS[finding.kind][0]} {finding.text}" for finding in found[:_IN_TOOLTIP])
        self.tooltip = Content(full) if is_cut else None
        self.display = bool(lines)
        self.update(Content("\n").join(lines))

    def on_resize(self) -> None:
        """Fit the findings to a new width."""
        self._fit()

    def on_click(self, event: events.Click) -> None:
        """Report the click to the page."""
        self.post_message(self.Clicked(event.y))
