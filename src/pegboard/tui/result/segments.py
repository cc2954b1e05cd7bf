"""View of a large text in a file, one part at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message

from pegboard.results.clean import clean
from pegboard.results.sizes import count
from pegboard.results.stored.values import StoredText
from pegboard.tui.commands import Command, bindings
from pegboard.tui.result.text import TextHit, TextView


class SegmentView(TextView):
    """One part of a text, with commands for the next and previous one.

    Args:
        stored: The text.
    """

    PAGE = "Large text"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("result.text.next", "right", "turn(1)", "Next part", "Show the next part of a large text.", True),
        Command(
            "result.text.previous", "left", "turn(-1)", "Previous part", "Show the previous part of a large text.", True
        ),
        Command(
            "result.text.first", "ctrl+home", "edge(-1)", "First part", "Show the beginning of the text.", meaning="Top"
        ),
        Command("result.text.last", "ctrl+end", "edge(1)", "Last part", "Show the end of the text.", meaning="Bottom"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    class Turned(Message):
        """Another part is shown."""

    def __init__(self, stored: StoredText) -> None:
        super().__init__()
        self._stored = stored
        self._number = 0
        self._raw = ""
        self._load(0)

    @property
    def note(self) -> str:
        """Number of the part."""
        return f"part {self._number + 1:,} of {self._stored.count:,} · {count(len(self._stored), 'character')}"

    @property
    def part(self) -> str:
        """The part of the text that is shown, not sanitized."""
        return self._raw

    def _load(self, number: int) -> None:
        self._number = self.content = number
        self._raw = self._stored.segment(number)
        self.replace_text(clean(self._raw))
        if self.is_attached:
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the commands for parts that exist."""
        if action == "turn" and isinstance(step := parameters[0], int):
            return 0 <= self._number + step < self._stored.count
        return super().check_action(action, parameters)

    def go_to(self, start: int, end: int) -> None:
        """Show the part with a range of characters, and mark the range."""
        number = self._stored.segment_at(start)
        if number != self._number:
            self._load(number)
            self.post_message(self.Turned())
        first = self._stored.start(number)
        # Cleaning changes the number of characters.
        before, found = clean(self._raw[: start - first]), clean(self._raw[start - first : end - first])
        line = before.count("\n")
        column = len(before) - (before.rfind("\n") + 1)
        self.go(TextHit(line, column, column + len(found)))

    def action_turn(self, step: int) -> None:
        """Show another part; at the ends, stay."""
        number = min(max(self._number + step, 0), self._stored.count - 1)
        if number != self._number:
            self._load(number)
            if step < 0:
                self.scroll_end(animate=False, immediate=True, x_axis=False)
            self.post_message(self.Turned())

    def action_edge(self, direction: int) -> None:
        """Show the first or last part."""
        self._load(0 if direction < 0 else self._stored.count - 1)
        if direction > 0:
            self.scroll_end(animate=False, immediate=True, x_axis=False)
        self.post_message(self.Turned())


class WholeTextHits:
    """Matches in a whole text, for `Search`.

    Args:
        view: View of the text.
    """

    content: object = None
    """Always the same: the matches apply to every part."""

    def __init__(self, view: SegmentView) -> None:
        self._view = view

    def find(self, wanted: re.Pattern[str]) -> Iterator[tuple[int, int]]:
        """Return no hits: they are found elsewhere."""
        del wanted
        return iter(())

    def go(self, hit: tuple[int, int]) -> None:
        """Show a match."""
        self._view.go_to(*hit)

    def nearest(self, hits: list[tuple[int, int]]) -> int:
        """Return the first hit."""
        del hits
        return 0

    def mark(self, wanted: re.Pattern[str] | None) -> None:
        """Highlight the matches."""
        self._view.mark(wanted)
