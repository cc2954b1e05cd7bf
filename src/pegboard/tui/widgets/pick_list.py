"""A list of texts that filters as you type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from textual.binding import BindingType
from textual.content import Content
from textual.message import Message

from pegboard.tui.commands import Command, bindings
from pegboard.tui.state.fuzzy import FuzzyQuery
from pegboard.tui.widgets.filter_list import FilterList, fitted, navigation


class PickLine(NamedTuple):
    """One line of a `PickList`."""

    text: str
    """Text that is shown and searched: one line, safe to display."""
    note: str = ""
    """Muted text at the right end."""
    pinned: bool = False
    """Whether no filter hides the line."""


def ranked(query: str, lines: Sequence[PickLine]) -> list[int]:
    """Return the indexes of the lines that match a query: pinned lines first, then the best matches.

    Args:
        query: The text as typed; case and spaces are ignored.
        lines: The lines to search.
    """
    fuzzy = FuzzyQuery(query)
    if not fuzzy.letters:
        return list(range(len(lines)))
    ranks: list[tuple[int, int]] = []
    for index, line in enumerate(lines):
        folded = line.text.lower()
        if line.pinned:
            ranks.append((-1, index))
        elif fuzzy.matches(folded):
            ranks.append((fuzzy.level(folded), index))
    return [index for _, index in sorted(ranks)]


class PickList(FilterList):
    """Lines of text, one of them selected.

    Args:
        sign: Function that returns a prefix of a line, such as a check mark; called whenever the line is rendered.
        own_keys: Printable characters that don't filter because they are keys of commands.
        vim_keys: See `FilterList`.
    """

    PAGE = "List"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        *navigation("pick"),
        Command("pick.choose", "enter", "choose", "Choose", "Choose the selected line.", footer=True),
        Command("pick.erase", "backspace", "erase", "Erase", "Delete the last character of the filter."),
        Command("pick.erase_all", "ctrl+u", "erase_all", "Erase all", "Clear the filter."),
        Command("pick.erase_word", "ctrl+w", "erase_word", "Erase word", "Delete the last word."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    @dataclass
    class Chosen(Message):
        """A line was chosen."""

        index: int

    @dataclass
    class Marked(Message):
        """The selected line changed; `index` is None if no line is left."""

        index: int | None

    def __init__(self, *, sign: Callable[[int], str] | None = None, own_keys: str = "", vim_keys: bool = False) -> None:
        super().__init__(own_keys=own_keys, vim_keys=vim_keys)
        self._sign = sign
        self._lines: Sequence[PickLine] = ()
        self._shown: Sequence[int] = ()

    @property
    def row_count(self) -> int:
        """Number of shown lines."""
        return len(self._shown)

    @property
    def total(self) -> int:
        """Number of lines."""
        return len(self._lines)

    @property
    def marked(self) -> int | None:
        """Index of the selected line, or None."""
        return self._shown[self.cursor] if 0 <= self.cursor < len(self._shown) else None

    def show(self, lines: Sequence[PickLine], marked: int = 0, *, sought: str = "") -> None:
        """Replace the lines.

        Args:
            lines: The new lines.
            marked: Index of the line to select if the filter is empty; otherwise the best match is selected.
            sought: The filter.
        """
        self._lines = lines
        self.set_reactive(PickList.sought, sought)
        self._list(marked if not sought else None)

    def renew(self, lines: Sequence[PickLine], marked: int | None, *, keeps_offset: bool = True) -> None:
        """Replace the lines by a newer version of them; keep the filter.

        Args:
            lines: The new lines.
            marked: Index of the line to select, if the filter shows it.
            keeps_offset: Whether the selected line keeps its position on the screen; otherwise the list starts at its
                top.
        """
        self._lines = lines
        self._list(marked, keeps_offset=keeps_offset)

    def erase_filter(self) -> None:
        """Clear the filter and keep the selected line."""
        marked = self.marked
        self.set_reactive(PickList.sought, "")
        self._list(marked)

    def watch_sought(self) -> None:
        """Show the matches of the filter."""
        self._list(None)

    def sift(self, query: str) -> Sequence[int]:
        """Return the indexes of the lines that match a filter, in display order."""
        return ranked(query, self._lines)

    def _list(self, marked: int | None, *, keeps_offset: bool = False) -> None:
        self._shown = self.sift(self.sought)
        if marked is None:
            cursor = next((at for at, index in enumerate(self._shown) if not self._lines[index].pinned), 0)
        else:
            cursor = next((at for at, index in enumerate(self._shown) if index == marked), 0)
        self.rows_changed(cursor, keeps_offset=keeps_offset)

    def post_filtered(self) -> None:
        """Post the filter and the number of its matches; no filter hides a pinned line, so they don't count."""
        found = sum(not self._lines[index].pinned for index in self._shown)
        total = sum(not line.pinned for line in self._lines)
        self.post_message(self.Filtered(self.sought, found, total, self.typing, self.renews))

    def post_selected(self) -> None:
        """Post the selected line."""
        self.post_message(self.Marked(self.marked))

    def action_choose(self) -> None:
        """Choose the selected line."""
        if self.marked is not None:
            self.post_message(self.Chosen(self.marked))

    def chooses_on_click(self, *, is_second: bool) -> bool:
        """Choose on every click."""
        del is_second
        return True

    def draw(self, row: int, width: int, *, is_selected: bool) -> Content:
        """Return a line with its sign and its note."""
        index = self._shown[row]
        line = self._lines[index]
        sign = self._sign(index) if self._sign else ""
        left = Content.assemble(" ", sign, self.highlighted(line.text, is_selected=is_selected))
        note = Content(f" {line.note}" if line.note else "")
        note = note.truncate(max(width // 2, width - left.cell_length) - 1, ellipsis=True) + " "
        if not is_selected:
            note = note.stylize(self.part_style("filter-list--note"))
        return fitted(left, note, width)
