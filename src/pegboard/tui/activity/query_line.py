"""The filter of the Activity page, with its problems, completions and the number of matching calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from textual.content import Content

from pegboard.models import CallCount, HistoryQuery, QueryProblem
from pegboard.results.sizes import count as number_of
from pegboard.tui.widgets.control_pictures import with_control_pictures
from pegboard.tui.widgets.filter_line import ClickableFilter

_HINT: Final = "words, or tool: source: status: session: agent: since: before: slower: pinned:"
_MOST_LINES: Final = 3
"""Lines of a problem; a longer one is cut."""


class QueryLine(ClickableFilter):
    """A line with the filter, and below it a line with a problem or with completions, if there are any.

    Args:
        start: How to start filtering, such as `type to filter`.
    """

    DEFAULT_CSS = """
    QueryLine { height: auto; padding: 0 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, start: str) -> None:
        super().__init__()
        self._hint = f"{start}: {_HINT}"
        self._state: tuple[str, Sequence[QueryProblem], Sequence[str], str, bool] = ("", (), (), "", False)

    def on_mount(self) -> None:
        """Show the hint."""
        self._show()

    def on_resize(self) -> None:
        """Fit the texts to the new width."""
        self.call_after_refresh(self._show)

    def show(
        self, text: str, problems: Sequence[QueryProblem], completions: Sequence[str], count: str, *, typing: bool
    ) -> None:
        """Show a filter.

        Args:
            text: The filter.
            problems: Its invalid parts.
            completions: What completes its last word, best first.
            count: Number of matching calls.
            typing: Whether the filter is being typed.
        """
        self._state = (text, problems, completions, count, typing)
        self._show()

    def _show(self) -> None:
        text, problems, _, count, typing = self._state
        if not text and not typing:
            self.update(Content.styled(self._hint, "$text-muted"))
            return
        width = max(10, self.content_size.width)
        shown, start = with_control_pictures(text), 0
        space = max(4, width - len(count) - 5)
        if cell_len(shown) > space:
            start = max(0, len(shown) - space)
            while cell_len(shown[start:]) > space:
                start += 1
        filter_ = Content.styled(shown, "$foreground bold")
        for problem in problems:
            filter_ = filter_.stylize("$text-error underline", problem.start, problem.end)
        line = Content.assemble(("/ ", "$text-primary bold"), filter_[start:], ("▏", "$text-primary" if typing else ""))
        line = Content.assemble(line, " " * max(1, width - line.cell_length - len(count)), (count, "$text-muted"))
        below = self._below(width)
        self.update(Content("\n").join([line, below]) if below else line)

    def _below(self, width: int) -> Content:
        text, problems, completions, _, typing = self._state
        words = Content(" ").join(
            Content.styled(word, "$text-primary bold" if index == 0 else "$text-muted")
            for index, word in enumerate(completions)
        )
        if problems:
            problem = problems[-1]
            message = with_control_pictures(problem.message)
            shown = Content.assemble((f"✗ column {problem.start + 1}: {message}", "$text-error"))
            lines = shown.wrap(width)
            return Content("\n").join(lines) if len(lines) <= _MOST_LINES else shown.truncate(width, ellipsis=True)
        if typing and completions:
            # A key completes only a word that was begun.
            key = "" if not text or text.endswith(" ") else "tab "
            return Content.assemble((key, "$text-primary"), words).truncate(width, ellipsis=True)
        return Content()


def count_text(count: CallCount | None) -> str:
    """Return the number of calls, marked if it is a minimum, and of turns."""
    if count is None:
        return "…"
    turns = f", {number_of(count.turns, 'turn')}" if count.turns else ""
    return (
        f"{count.calls:,}{'' if count.is_exact else '+'} {'call' if count.calls == 1 and count.is_exact else 'calls'}"
        f"{turns}"
    )


def highlighted_words(query: HistoryQuery) -> re.Pattern[str] | None:
    """Return what to highlight for the words and phrases of a query; None without any."""
    # The search finds words and their beginnings.
    words = [rf"(?<![^\W_]){re.escape(word)}" for word in (*query.words, *query.phrases) if word.strip()]
    return re.compile("|".join(words), re.IGNORECASE) if words else None
