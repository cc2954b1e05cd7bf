"""A dialog with all problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.getters import query_one
from textual.widgets import OptionList, Static

from pegboard.models import Problem
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count
from pegboard.tui.commands import Command, bindings
from pegboard.tui.messages import Copy
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.external_editor import open_in_editor
from pegboard.tui.widgets.problem_text import place, problem_heading


class ProblemsScreen(Dialog[Problem | None]):
    """A list that returns the problem whose file to open, or None.

    Args:
        problems: The problems, in any order.
    """

    PAGE = "Problems"
    HAS_FOOTER = False

    DEFAULT_CSS = """
    ProblemsScreen {
        & > #box { width: 100; height: auto; padding: 0 1; }
        OptionList, OptionList:focus {
            min-width: 8;
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
        Command("problems.copy", "c", "copy", "Copy", "Copy the problem with its location."),
        Command("problems.close", "escape,q", "close", "Close", "Close this dialog."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    _list = query_one(OptionList)

    def __init__(self, problems: Sequence[Problem]) -> None:
        hints = sum(not problem.needs_action for problem in problems)
        title = count(len(problems) - hints, "problem") + (f", {count(hints, 'hint')}" if hints else "")
        super().__init__(title, "enter opens the file · c copies · esc closes")
        self._problems = sorted(problems, key=lambda problem: problem.rank)

    def compose_body(self) -> ComposeResult:
        """Compose one entry per problem, errors first."""
        if self._problems:
            yield OptionList(*map(_entry, self._problems), markup=False)
        else:
            yield Static("✓ No problems with packs, requirements, themes or settings.", id="none")

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._problems[event.option_index])

    def action_open(self) -> None:
        """Close with the selected problem."""
        if self._problems and self._list.highlighted is not None:
            self.dismiss(self._problems[self._list.highlighted])

    def action_copy(self) -> None:
        """Copy the selected problem."""
        if self._problems and self._list.highlighted is not None:
            self.post_message(Copy(str(self._problems[self._list.highlighted])))


async def show_problems(app: App[object], problems: Sequence[Problem]) -> None:
    """List problems, and open the file of the chosen one in the user's editor."""
    problem = await app.push_screen_wait(ProblemsScreen(problems))
    if problem is not None and problem.file is not None:
        await open_in_editor(app, problem.file, problem.line)


def _entry(problem: Problem) -> Content:
    lines = [problem_heading(problem)]
    if problem.fix:
        lines.append(Content.assemble("  ", (clean_line(problem.fix), "$text-muted")))
    if problem.file:
        lines.append(Content.assemble("  ", (place(problem), "$text-secondary")))
    return Content("\n").join(lines)
