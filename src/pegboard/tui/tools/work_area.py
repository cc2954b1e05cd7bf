"""Form and result of a tool, stacked or side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual import events
from textual.containers import Container
from textual.reactive import var

from pegboard.models import Fault
from pegboard.results.sizes import count
from pegboard.tui.form import FormPane
from pegboard.tui.form.messages import Rejected
from pegboard.tui.result import ResultPane
from pegboard.tui.state.remembered import Remembered

_BESIDE_COLUMNS: Final = 112
"""Minimum width at which form and result are side by side: that of a terminal with 150 columns and the tool list."""
_LEAST_LINES: Final = 4
_LEAST_COLUMNS: Final = 30
"""Minimum size of the form and of the result."""
_UNTRIED, _TRIED = 2 / 3, 1 / 2
"""Maximum share of the form above the result, before and after the first run, unless the user has chosen another."""
_BESIDE = 0.45
"""Share of the form beside the result, unless the user has chosen another."""
_STEP_LINES, _STEP_COLUMNS = 2, 4


class WorkArea(Container):
    """Form and result with a movable divider.

    Stacked, the form is as high as its fields, and the result gets the rest. The mouse drags the border between them.

    Args:
        form: The form.
        result: The result.
        remembered: State that keeps the position of the divider.
    """

    DEFAULT_CSS = """
    WorkArea { height: 1fr; width: 1fr; layout: vertical; }
    """

    was_tried: var[bool] = var(False, init=False)
    """Whether the tool was run, so that the result needs space."""
    has_fields: var[bool] = var(True, init=False)
    """Whether the form has fields; without any, it needs one line and is above the result."""

    def __init__(self, form: FormPane, result: ResultPane, remembered: Remembered) -> None:
        super().__init__()
        self._form = form
        self._result = result
        self._remembered = remembered
        self._is_dragging = False
        self._not_run = ""
        """The hint that the tool was not run."""
        self._columns = 0
        """Width of the form beside the result."""

    def on_rejected(self, event: Rejected) -> None:
        """Say that the tool was not run."""
        event.stop()
        self._show_not_run(event.faults)

    def on_form_pane_changed(self, event: FormPane.Changed) -> None:
        """Update the hint about invalid arguments."""
        if self._not_run and self._result.hint == self._not_run:
            self._show_not_run(event.faults)

    def _show_not_run(self, faults: Sequence[Fault]) -> None:
        number = len({fault.path for fault in faults})
        reason = f"{count(number, 'argument')} {'is' if number == 1 else 'are'} invalid"
        if self._form.form is not None and self._form.form.has_text_fault:
            reason = "the JSON is invalid"
        self._not_run = self._result.hint = f"Not run: {reason}." if faults else ""

    async def on_mount(self) -> None:
        """Mount the panes one by one, so that keys are processed in between."""
        await self.mount(self._form)
        await self.mount(self._result)
        self.place_panes()

    def on_resize(self) -> None:
        """Arrange the panes for the new size."""
        self.place_panes()

    def watch_was_tried(self) -> None:
        """Enlarge the result."""
        self.place_panes()

    def watch_has_fields(self) -> None:
        """Use the space of a form without fields for the result."""
        self.place_panes()

    @property
    def is_beside(self) -> bool:
        """Whether form and result are side by side."""
        return self.has_fields and self.size.width >= _BESIDE_COLUMNS

    def place_panes(self) -> None:
        """Set the sizes of the panes."""
        width, height = self.size
        if not width or not height:
            return
        remembered = self._remembered
        if self.screen.maximized is self._form:
            self._form.styles.width = "1fr"
            self._form.most = 0
        elif self.is_beside:
            self.styles.layout = "horizontal"
            share = _BESIDE if remembered.beside is None else remembered.beside
            self._columns = _within(round(share * width), _LEAST_COLUMNS, width - _LEAST_COLUMNS)
            self._form.styles.width = self._columns
            self._form.most, self._form.fixed = 0, False
        else:
            self.styles.layout = "vertical"
            self._form.styles.width = "1fr"
            share = (_TRIED if self.was_tried else _UNTRIED) if remembered.stacked is None else remembered.stacked
            self._form.most = _within(round(share * height), _LEAST_LINES, height - _LEAST_LINES)
            self._form.fixed = remembered.stacked is not None

    def move_divider(self, steps: int) -> None:
        """Make the form larger or smaller.

        Args:
            steps: Number of steps; negative to make it smaller.
        """
        if self.is_beside:
            self._divide_at(self._columns + steps * _STEP_COLUMNS)
        else:
            lines = self._form.most if self._form.fixed else self._form.outer_size.height
            self._divide_at(lines + steps * _STEP_LINES)

    def fit(self) -> None:
        """Fit the panes to their content again."""
        if self.is_beside:
            self._remembered.beside = None
        else:
            self._remembered.stacked = None
        self.place_panes()

    def _divide_at(self, size: int) -> None:
        """Move the divider.

        Args:
            size: Width or height of the form.
        """
        if self.is_beside:
            columns = _within(size, _LEAST_COLUMNS, self.size.width - _LEAST_COLUMNS)
            self._remembered.beside = _share(columns, self.size.width)
        else:
            lines = _within(size, _LEAST_LINES, self.size.height - _LEAST_LINES)
            self._remembered.stacked = _share(lines, self.size.height)
        self.place_panes()

    # Mouse

    def _is_divider(self, event: events.MouseEvent) -> bool:
        region = self._result.region
        if self.is_beside:
            return event.screen_x in {region.x - 1, region.x}
        return event.screen_y == region.y and self.has_fields

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Start to drag the divider."""
        if self._is_divider(event):
            event.stop()
            self._is_dragging = True
            self.capture_mouse()
            self.screen.clear_selection()  # which would follow the mouse

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Move the divider."""
        if self._is_dragging:
            event.stop()
            offset = event.screen_offset - self.region.offset
            self._divide_at(round(offset.x if self.is_beside else offset.y))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Drop the divider."""
        if self._is_dragging:
            event.stop()
            self.release_mouse()

    def on_mouse_release(self) -> None:
        """End the drag, also when a dialog opens, which gets the release of the button."""
        self._is_dragging = False

    def on_click(self, event: events.Click) -> None:
        """Fit the panes to their content on a double click on the divider."""
        if event.chain == 2 and self._is_divider(event):
            self.fit()


def _within(size: int, least: int, most: int) -> int:
    return max(min(size, most), least)


def _share(size: int, whole: int) -> float:
    return _within(round(1000 * size / max(whole, 1)), 50, 950) / 1000
