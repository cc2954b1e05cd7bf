"""The line above a list with its filter and the number of matches."""

from __future__ import annotations

from rich.cells import cell_len
from textual.content import Content
from textual.widgets import Static

from pegboard.results.clean import clean_line
from pegboard.tui.widgets.filter_list import FilterList
from pegboard.tui.widgets.pick_list import PickList


class ClickableFilter(Static):
    """A line with the filter of the list beside it; a click starts filtering."""

    def on_click(self) -> None:
        """Focus the list; in a list whose keys may be commands, let them all be input for the filter."""
        for widget in self.siblings:
            if isinstance(widget, FilterList):
                widget.focus()
                if not isinstance(widget, PickList):
                    widget.action_filter()


class FilterLine(ClickableFilter):
    """The filter at the left end and the number of matches at the right end.

    Args:
        hint: Text of an empty filter.
    """

    DEFAULT_CSS = """
    FilterLine { height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, hint: str) -> None:
        super().__init__()
        self._hint = hint
        self._sought, self._count, self._typing, self._renews = "", "", False, False

    def on_mount(self) -> None:
        """Show the hint."""
        self._show()

    def on_resize(self) -> None:
        """Move the count to the new right end."""
        self.call_after_refresh(self._show)

    def show(self, sought: str, count: str, *, typing: bool = False, renews: bool = False) -> None:
        """Show a filter.

        Args:
            sought: The filter.
            count: Number of matches: `3 of 12`.
            typing: Whether to show an empty filter instead of the hint.
            renews: Whether to show it as a selected text, which the next character replaces.
        """
        self._sought, self._count, self._typing, self._renews = sought, count, typing, renews
        self._show()

    def _show(self) -> None:
        if not self._sought and not self._typing:
            self.update(Content.styled(self._hint, "$text-muted"), layout=False)
            return
        count = f" {self._count}" if self._sought.strip() else ""
        width = max(4, self.content_size.width - len(count) - 3)
        shown = clean_line(self._sought)[-width:]
        while cell_len(shown) > width:
            shown = shown[1:]
        self.update(
            Content.assemble(
                ("/ ", "$text-primary bold"),
                (shown, "$foreground bold reverse" if self._renews else "$foreground bold"),
                ("▏", "$text-primary"),
                " " * (width - cell_len(shown)),
                (count, "$text-muted"),
            ),
            layout=False,
        )
