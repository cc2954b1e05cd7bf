"""Findings of the analysis, shown below the editor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from pegboard.tui.script.findings import ScriptFinding

_SHOWN, _SHOWN_NARROW = 3, 2
"""Findings shown on a wide and on a narrow screen."""
_MINIMUM_CELLS: Final = 20
_SIGNS: Final = {"error": ("✗", "$text-error"), "unknown": ("?", "$text-warning"), "calls": ("→", "$text-muted")}


class FindingsLine(Static):
    """The first findings of a script, one per line. Hidden without findings.

    Args:
        editor: Widget above, which determines the width.
    """

    class Clicked(Message):
        """The user clicked the findings."""

    def __init__(self, editor: Widget) -> None:
        super().__init__(id="findings")
        self._editor = editor
        self._found: Sequence[ScriptFinding] = ()

    @property
    def first_line(self) -> int | None:
        """Number of the first line with a finding, or None."""
        return next((finding.line for finding in self._found if finding.line is not None), None)

    def show(self, found: Sequence[ScriptFinding]) -> None:
        """Show findings."""
        self._found = found
        self.fit()

    def fit(self) -> None:
        """Fit the findings to the width of the screen."""
        found = self._found
        if not self.is_attached:
            return
        most = _SHOWN_NARROW if self.screen.has_class("-narrow") else _SHOWN
        lines = []
        for number, finding in enumerate(found[:most], 1):
            sign, style = _SIGNS[finding.kind]
            more = f"  and {len(found) - most} more" if number == most < len(found) else ""
            width = max(self._editor.size.width - len(more) - 5, _MINIMUM_CELLS)
            text = Content(finding.text).truncate(width, ellipsis=True)
            lines.append(Content.assemble((f"{sign} ", f"bold {style}"), (text.plain, style), (more, "$text-muted")))
        self.display = bool(lines)
        self.update(Content("\n").join(lines))

    def on_click(self) -> None:
        """Report the click to the page."""
        self.post_message(self.Clicked())
