"""Everything that is wrong, in one list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.getters import query_one
from textual.widgets import OptionList, Static

from pegboard.models import Problem
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.messages import Copy
from pegboard.tui.shell.header import plural
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.problem_text import place, problem_heading


class ProblemsScreen(Dialog[Problem | None]):
    """The problems; closes with the one whose file shall be opened.

    Args:
        problems: Errors and warnings, in any order.
    """

    PAGE = "Problems"

    DEFAULT_CSS = """
    ProblemsScreen {
        align: center middle;
        background: $background 60%;
        #box {
            width: 100; max-width: 94%; height: auto; max-height: 90%;
            padding: 0 1; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            border-subtitle-color: $text-muted;
        }
        OptionList, OptionList:focus {
            height: auto; max-height: 100%; border: none; background: transparent; padding: 0;
            background-tint: transparent; scrollbar-size-vertical: 1;
            & > .option-list--option-highlighted {
                color: $block-cursor-blurred-foreground;
                background: $block-cursor-blurred-background;
                text-style: $block-cursor-blurred-text-style;
            }
        }
        #none { padding: 1 0; color: $text-success; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("problems.open", "enter", "open", "Open", "Open the file in your editor, at the line."),
        Command("problems.copy", "c", "copy", "Copy", "Copy the problem with its place."),
        Command("problems.close", "escape,q", "close", "Close", "Go back to where you were."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    _list = query_one(OptionList)

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__()
        self._problems = sorted(problems, key=lambda problem: problem.rank)

    def compose(self) -> ComposeResult:
        """One entry per problem, errors first."""
        with Vertical(id="box") as box:
            box.border_title = Content(plural(len(self._problems), "problem"))
            box.border_subtitle = "enter opens the file · c copies · esc closes"
            if self._problems:
                yield OptionList(*map(_entry, self._problems), markup=False)
            else:
                yield Static("✓ Every file was read and every setting understood.", id="none")

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._problems[event.option_index])

    def action_open(self) -> None:
        """Closes with the marked problem; without a list there is none."""
        if self._problems and self._list.highlighted is not None:
            self.dismiss(self._problems[self._list.highlighted])

    def action_copy(self) -> None:
        """Asks for the marked problem to be copied."""
        if self._problems and self._list.highlighted is not None:
            self.post_message(Copy(str(self._problems[self._list.highlighted])))

    def action_close(self) -> None:
        """Closes without opening anything."""
        self.dismiss(None)


def _entry(problem: Problem) -> Content:
    lines = [problem_heading(problem)]
    if problem.fix:
        lines.append(Content.assemble("  ", (clean_line(problem.fix), "$text-muted")))
    if problem.file:
        lines.append(Content.assemble("  ", (place(problem), "$text-secondary")))
    return Content("\n").join(lines)
