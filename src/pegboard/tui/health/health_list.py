"""The report on health, line by line: signs, names, states; typing filters."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.reactive import reactive

from pegboard.tui.commands import Command, bindings
from pegboard.tui.health.report import Key, Report, ReportLine, ThingLine, sift
from pegboard.tui.widgets.pick_list import PickLine, PickList

SIGNS = {"bad": "✖", "doubtful": "!", "unknown": "…", "good": "✓"}
"""What a line wears for how it is with it."""

GRADE_STYLES = {
    "bad": "$text-error bold",
    "doubtful": "$text-warning bold",
    "unknown": "$text-muted",
    "good": "$text-success",
}

LEGEND = (
    ("✓", "there, and new enough"),
    ("✖", "missing or too old: it blocks tools; or a pack that can't be read"),
    ("!", "missing, but tools do without it; or it can't be told whether it will do"),
    ("…", "being looked for"),
)
"""The signs and what they mean, for the help screen."""

_KIND, _STATUS, _VERSION, _NOTE = 9, 11, 12, 17
_NAME_AT_LEAST = 20
_OWN_KEYS = "/?!"
_DRAWN_HERE = PickLine("")


class HealthList(PickList):
    """Lines of the report, one of them marked.

    Args:
        vim_keys: Whether j, k, g and G move; then only `/` filters.
    """

    PAGE = "Report"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        *(command for command in PickList.ACTIONS if command.id not in {"pick.choose", "pick.erase"}),
        Command("report.open", "enter", "choose", "Open", "Go to what is marked: tool, tools, or file.", footer=True),
        Command("report.filter", "slash", "filter", "Filter", "Type part of a name, a kind or a state."),
        Command("report.erase", "backspace", "erase", "Erase", "Take back a character of the filter."),
        Command("report.clear", "escape", "clear", "Clear filter", "Show the whole report again."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    typing: reactive[bool] = reactive(False, init=False)
    """With vim keys: whether letters go to the filter now."""

    def __init__(self, *, vim_keys: bool = False) -> None:
        super().__init__(own_keys=_OWN_KEYS)
        self._vim_keys = vim_keys
        self._report = Report()
        self._was_moved = False

    @property
    def line(self) -> ReportLine | None:
        """The marked line."""
        return None if self.marked is None else self._report[self.marked]

    def renew(self, report: Report) -> None:
        """Shows the report as it is now; once somebody has moved the mark, it stays on its line."""
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
        """Gives the place of the line of that key among those that are shown, or the nearest to the mark."""
        index = None if key is None else self._report.place_of(key)
        if index is not None and index in self._shown:
            return self._shown.index(index)
        return max(0, min(self.cursor, len(self._shown) - 1))

    def start_over(self) -> None:
        """Marks the first line whatever it will be, until somebody moves the mark."""
        self._was_moved = False
        self.set_reactive(PickList.cursor, 0)

    def sift(self, query: str) -> list[int]:
        """Gives the indexes of the lines that a filter lets through, in the order of the report."""
        return sift(self._report, query)

    def watch_cursor(self) -> None:
        """Remembers that somebody moved the mark."""
        self._was_moved = True
        super().watch_cursor()

    def watch_typing(self) -> None:
        """Tells whether the filter takes letters."""
        self.post_message(self.Filtered(self.sought, len(self._shown), len(self._lines)))

    # What the user does

    def action_choose(self) -> None:
        """Takes the marked line; letters move again."""
        self.typing = False
        super().action_choose()

    def action_filter(self) -> None:
        """Begins to filter."""
        self.typing = True

    def action_clear(self) -> None:
        """Ends filtering, the mark where it is."""
        self.typing = False
        self._was_moved = True
        self.erase_filter()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Lets `escape` pass where there is nothing to take back."""
        return bool(self.sought) or self.typing if action == "clear" else True

    def on_key(self, event: events.Key) -> None:
        """Moves by letters with vim keys, unless the filter takes them."""
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
        """Marks a line; a second click takes it."""
        line = event.y + round(self.scroll_y)
        event.stop()
        event.prevent_default()
        if line >= len(self._shown):
            return
        again = line == self.cursor and event.chain > 1
        self.cursor = line
        if again:
            self.action_choose()

    # What is seen

    def draw(self, index: int, width: int, *, is_marked: bool) -> Content:
        """Gives a line in columns; where there is little room, those that matter less are left out."""
        line = self._report[index]
        indent = "  " if isinstance(line, ThingLine) and line.tool else ""
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
    """Gives the columns beside the name that there is room for, with their widths."""
    columns = {"kind": _KIND, "status": _STATUS, "version": _VERSION, "note": _NOTE}
    for least in ("version", "kind", "note"):
        if width - sum(columns.values()) >= _NAME_AT_LEAST:
            break
        del columns[least]
    return columns


def _cell(content: Content, width: int) -> Content:
    """Fits a text into a column, with a space after it."""
    return content.truncate(max(0, width - 1), ellipsis=True, pad=True) + Content(" ")
