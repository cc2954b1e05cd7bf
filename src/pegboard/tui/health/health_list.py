"""List of the Health page, with symbols and a filter."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from pegboard.tui.commands import Command, bindings
from pegboard.tui.health.report import HealthReport, Key, ReportLine, RequirementLine, ServerLine, sift
from pegboard.tui.widgets.pick_list import PickLine, PickList
from pegboard.tui.widgets.server_text import SERVER_SIGNS

SIGNS = {"bad": "✖", "doubtful": "!", "unknown": "…", "good": "✓"}
"""Symbol of each severity."""

GRADE_STYLES = {
    "bad": "$text-error bold",
    "doubtful": "$text-warning bold",
    "unknown": "$text-muted",
    "good": "$text-success",
}

LEGEND = (
    ("✓", "available"),
    ("✖", "missing or outdated and blocks tools; or a pack that can't be read"),
    ("!", "an optional requirement is missing, or its version can't be determined"),
    ("…", "being checked, or MCP server that is connecting"),
    ("●", "MCP server that is ready"),
    ("◐", "MCP server with a problem"),
    ("?", "MCP server that needs a login"),
    ("◌", "MCP server that is disabled"),
)
"""The symbols and their meaning, for the help screen."""

_KIND, _STATUS, _VERSION, _NOTE = 9, 11, 12, 17
_NAME_AT_LEAST = 20
_OWN_KEYS = "/?!"
_DRAWN_HERE = PickLine("")


class HealthList(PickList):
    """Lines of a report, one of them selected.

    Args:
        vim_keys: Whether j, k, g and G move the selection; then only `/` starts filtering.
    """

    PAGE = "Report"
    RENEWS = True
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        *(command for command in PickList.ACTIONS if command.id not in {"pick.choose", "pick.erase"}),
        Command("report.open", "enter", "choose", "Open", "Go to the selected tool, tools or file.", footer=True),
        Command("report.filter", "slash", "filter", "Filter", "Type part of a name, a kind or a status."),
        Command("report.erase", "backspace", "erase", "Erase", "Delete the last character of the filter."),
        Command("report.clear", "escape", "clear", "Clear filter", "Show the whole report again."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, *, vim_keys: bool = False) -> None:
        super().__init__(own_keys=_OWN_KEYS, vim_keys=vim_keys)
        self._report = HealthReport()
        self._was_moved = False

    @property
    def line(self) -> ReportLine | None:
        """The selected line."""
        return None if self.marked is None else self._report[self.marked]

    def show_report(self, report: HealthReport) -> None:
        """Show a new report. After the user has moved the selection, it stays on its line."""
        marked = self.line.key if self.line is not None and self._was_moved else None
        self._report = report
        self._lines = [_DRAWN_HERE] * len(report)
        self._shown = self.sift(self.sought)
        self.rows_changed(self._place_of(marked) if self._was_moved else 0, keeps_offset=True)

    def _place_of(self, key: Key | None) -> int:
        """Return the row of the line with this key, or the row nearest to the selection."""
        index = None if key is None else self._report.place_of(key)
        if index is not None and index in self._shown:
            return self._shown.index(index)
        return max(0, min(self.cursor, len(self._shown) - 1))

    def start_over(self) -> None:
        """Select the first line, whatever it will be, until the user moves the selection."""
        self._was_moved = False
        self.set_reactive(PickList.cursor, 0)

    def sift(self, query: str) -> list[int]:
        """Return the indexes of the matching lines in the order of the report."""
        return sift(self._report, query)

    def watch_cursor(self) -> None:
        """Note that the user moved the selection."""
        self._was_moved = True
        super().watch_cursor()

    # Actions

    def action_choose(self) -> None:
        """Open the selected line; letters move the selection again."""
        self.typing = False
        super().action_choose()

    def action_clear(self) -> None:
        """Clear the filter and keep the selection."""
        self.typing = False
        self._was_moved = True
        self.erase_filter()

    def chooses_on_click(self, *, is_second: bool) -> bool:
        """Select on the first click, open on the second."""
        return is_second

    # Rendering

    def draw(self, row: int, width: int, *, is_selected: bool) -> Content:
        """Return a line in columns; less important columns are omitted if space is short."""
        line = self._report[self._shown[row]]
        indent = "  " if isinstance(line, RequirementLine) and line.tool else ""
        style = "" if is_selected else GRADE_STYLES[line.grade]
        muted = "" if is_selected else "$text-muted"
        columns = _columns(width)
        cells = {
            "kind": Content.styled(line.kind, muted),
            "status": Content.styled(line.status, style),
            "version": Content.styled(line.version, muted),
            "note": Content.styled(line.note, muted),
        }
        sign = SERVER_SIGNS[line.server.state] if isinstance(line, ServerLine) else SIGNS[line.grade]
        name = self.highlighted(line.name, is_selected=is_selected)
        left = Content.assemble(" ", indent, (sign + " ", style), name)
        parts = [_cell(left, width - sum(columns.values()))]
        parts += [_cell(cells[name], column) for name, column in columns.items()]
        return Content("").join(parts)


def _columns(width: int) -> dict[str, int]:
    """Return the widths of the columns that fit beside the name."""
    columns = {"kind": _KIND, "status": _STATUS, "version": _VERSION, "note": _NOTE}
    for least in ("version", "kind", "note"):
        if width - sum(columns.values()) >= _NAME_AT_LEAST:
            break
        del columns[least]
    return columns


def _cell(content: Content, width: int) -> Content:
    """Fit a text into a column with a trailing space."""
    return content.truncate(max(0, width - 1), ellipsis=True, pad=True) + Content(" ")
