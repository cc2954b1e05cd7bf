"""List of the Health page, with symbols and a filter."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.reactive import reactive

from pegboard.tui.commands import Command, bindings
from pegboard.tui.health.report import Key, Report, ReportLine, RequirementLine, sift
from pegboard.tui.widgets.pick_list import PickLine, PickList

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
    ("…", "being checked"),
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
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        *(command for command in PickList.ACTIONS if command.id not in {"pick.choose", "pick.erase"}),
        Command("report.open", "enter", "choose", "Open", "Go to the selected tool, tools or file.", footer=True),
        Command("report.filter", "slash", "filter", "Filter", "Type part of a name, a kind or a status."),
        Command("report.erase", "backspace", "erase", "Erase", "Delete the last character of the filter."),
        Command("report.clear", "escape", "clear", "Clear filter", "Show the whole report again."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    typing: reactive[bool] = reactive(False, init=False)
    """With vim keys: whether letters are added to the filter."""

    def __init__(self, *, vim_keys: bool = False) -> None:
        super().__init__(own_keys=_OWN_KEYS)
        self._vim_keys = vim_keys
        self._report = Report()
        self._was_moved = False

    @property
    def line(self) -> ReportLine | None:
        """The selected line."""
        return None if self.marked is None else self._report[self.marked]

    def show_report(self, report: Report) -> None:
        """Show a new report. After the user has moved the selection, it stays on its line."""
        marked = self.line.key if self.line is not None and self._was_moved else None
        offset = self.cursor - round(self.scroll_y)
        self._report = report
        self._lines = [_DRAWN_HERE] * len(report)
        self._shown = self.sift(self.sought)
        self._resize()
        self.set_reactive(PickList.cursor, self._place_of(marked) if self._was_moved else 0)
        self.scroll_to(y=max(0, self.cursor - offset), animate=False, force=True, immediate=True)
        self._reveal()
        self.refresh()
        self.post_message(self.Filtered(self.sought, len(self._shown), len(self._lines)))
        self.post_message(self.Marked(self.marked))

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

    def watch_typing(self) -> None:
        """Post whether the filter accepts letters."""
        self.post_message(self.Filtered(self.sought, len(self._shown), len(self._lines)))

    # Actions

    def action_choose(self) -> None:
        """Open the selected line; letters move the selection again."""
        self.typing = False
        super().action_choose()

    def action_filter(self) -> None:
        """Start filtering."""
        self.typing = True

    def action_clear(self) -> None:
        """Clear the filter and keep the selection."""
        self.typing = False
        self._was_moved = True
        self.erase_filter()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let `escape` pass if the filter is empty."""
        return bool(self.sought) or self.typing if action == "clear" else True

    def on_key(self, event: events.Key) -> None:
        """Move by letters with vim keys, unless the filter accepts them."""
        character = event.character
        if not self._vim_keys or self.typing or not event.is_printable or character is None or character in _OWN_KEYS:
            return
        event.stop()
        event.prevent_default()
        match character:
            case "j" | "k":
                self.action_move(1 if character == "j" else -1)
            case "g" | "G":
                self.action_move_to(0 if character == "g" else -1)

    def on_click(self, event: events.Click) -> None:
        """Select a line; open it on a second click."""
        line = event.y + round(self.scroll_y)
        event.stop()
        event.prevent_default()
        if line >= len(self._shown):
            return
        again = line == self.cursor and event.chain > 1
        self.cursor = line
        if again:
            self.action_choose()

    # Rendering

    def draw(self, index: int, width: int, *, is_marked: bool) -> Content:
        """Return a line in columns; less important columns are omitted if space is short."""
        line = self._report[index]
        indent = "  " if isinstance(line, RequirementLine) and line.tool else ""
        style = "" if is_marked else GRADE_STYLES[line.grade]
        muted = "" if is_marked else "$text-muted"
        columns = _columns(width)
        cells = {
            "kind": Content.styled(line.kind, muted),
            "status": Content.styled(line.status, style),
            "version": Content.styled(line.version, muted),
            "note": Content.styled(line.note, muted),
        }
        left = Content.assemble(" ", indent, (SIGNS[line.grade] + " ", style), self.highlighted(line.name))
        parts = [_cell(left, width - sum(columns.values()))]
        parts += [_cell(cells[name], room) for name, room in columns.items()]
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
