"""A dialog with all problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.getters import query_one
from textual.reactive import reactive
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from pegboard.models import Problem
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count
from pegboard.tui.commands import Command, bindings, key_or_title
from pegboard.tui.messages import Copy
from pegboard.tui.state.app_state import AppState
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.external_editor import open_in_editor
from pegboard.tui.widgets.filter_line import FilterLine
from pegboard.tui.widgets.problem_text import place, problem_heading

_FEW = 5
"""Number of problems that need no line for the filter."""
_LONGEST_FILTER = 200


class ProblemsScreen(Dialog[Problem | None]):
    """A list that returns the problem whose file to open, or None; `/` filters it; it follows the app's problems.

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
            &:ansi > .option-list--option-highlighted { text-style: bold underline; }
        }
        #none { padding: 1 0; color: $text-success; display: none; }
        &.-empty { #none { display: block; } OptionList { display: none; } }
        FilterLine { display: none; padding: 0; }
        &.-filters FilterLine { display: block; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("problems.open", "enter", "open", "Open", "Open the file in your editor, at the line."),
        Command("problems.copy", "c", "copy", "Copy", "Copy the problem with its location."),
        Command("problems.filter", "slash", "filter", "Filter", "Type part of a message, fix, file or pack."),
        Command("problems.erase", "backspace", "erase", "Erase", "Delete the last character of the filter."),
        Command("problems.erase_all", "ctrl+u", "erase_all", "Erase all", "Clear the filter."),
        Command("problems.close", "escape,q", "close", "Close", "Clear the filter, or close this dialog."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    _list = query_one(OptionList)

    sought: reactive[str] = reactive("", init=False)
    """The filter."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(*_frame(problems))
        self._problems = _sorted(problems)
        self._shown = self._problems
        """The problems that match the filter."""
        self._typing = False
        """Whether printable keys go to the filter."""
        self._filter_line = FilterLine(f"{key_or_title(self, 'problems.filter')} to filter")

    def compose_body(self) -> ComposeResult:
        """Compose one entry per problem, errors first."""
        self.set_class(len(self._problems) > _FEW, "-filters")
        self.set_class(not self._problems, "-empty")
        yield self._filter_line
        yield OptionList(*map(_entry, self._problems), markup=False)
        yield Static("✓ No problems with packs, requirements, themes or settings.", id="none")

    def on_mount(self) -> None:
        """Follow the problems of the app."""
        for name in ("tool_scan", "health"):
            self.watch(self.app, name, self._follow, init=False)

    def _follow(self) -> None:
        if not isinstance(self.app, AppState) or self._problems == (found := _sorted(self.app.problems)):
            return
        selected, row = self._selected_problem, self._list.highlighted
        self._problems = found
        self.set_frame(*_frame(found))
        self.set_class(not found, "-empty")
        self.watch_sought()
        if self._shown:
            at = self._shown.index(selected) if selected in self._shown else min(row or 0, len(self._shown) - 1)
            self._list.highlighted = at

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_index < len(self._shown):  # the filter may have changed since
            self._close_with(self._shown[event.option_index])

    def action_open(self) -> None:
        """Close with the selected problem, if it has a file."""
        if (problem := self._selected_problem) is not None:
            self._close_with(problem)

    def _close_with(self, problem: Problem) -> None:
        if problem.file is not None:
            self.dismiss(problem)
            return
        self.notify("No file was opened because this problem is not about a file. Its text says how to fix it.")

    def action_copy(self) -> None:
        """Copy the selected problem."""
        if (problem := self._selected_problem) is not None:
            self.post_message(Copy(str(problem)))

    @property
    def _selected_problem(self) -> Problem | None:
        return self._shown[self._list.highlighted] if self._shown and self._list.highlighted is not None else None

    # The filter

    def on_key(self, event: events.Key) -> None:
        """Append printable keys to the filter after `/`."""
        if self._typing and event.is_printable and event.character is not None:
            event.stop()
            event.prevent_default()
            self.sought = (self.sought + event.character)[:_LONGEST_FILTER]

    def on_paste(self, event: events.Paste) -> None:
        """Append the first line of a pasted text to the filter."""
        if self._problems and (lines := event.text.strip().splitlines()):
            event.stop()
            self.action_filter()
            self.sought = (self.sought + "".join(filter(str.isprintable, lines[0])))[:_LONGEST_FILTER]

    def watch_sought(self) -> None:
        """List the problems that contain every word of the filter."""
        words = self.sought.lower().split()
        self._shown = [one for one in self._problems if all(word in f"{one} {one.pack}".lower() for word in words)]
        self._list.clear_options()
        self._list.add_options(map(_entry, self._shown) if self._shown else [Option("No matches.", disabled=True)])
        self._list.highlighted = 0 if self._shown else None
        self._show_filter()

    def _show_filter(self) -> None:
        self.set_class(self._typing or len(self._problems) > _FEW, "-filters")
        self._filter_line.show(self.sought, f"{len(self._shown):,} of {len(self._problems):,}", typing=self._typing)

    def action_filter(self) -> None:
        """Filter with the keys that follow."""
        self._typing = bool(self._problems)
        self._show_filter()

    def action_erase(self) -> None:
        """Delete the last character of the filter."""
        self.sought = self.sought[:-1]

    def action_erase_all(self) -> None:
        """Clear the filter."""
        self.sought = ""

    def action_close(self) -> None:
        """Clear the filter and stop filtering, or close."""
        if not self._typing:
            self.dismiss()
            return
        self._typing = False
        self.sought = ""
        self._show_filter()


async def show_problems(app: App[object], problems: Sequence[Problem]) -> None:
    """List problems, and open the file of the chosen one in the user's editor."""
    problem = await app.push_screen_wait(ProblemsScreen(problems))
    if problem is not None and problem.file is not None:
        await open_in_editor(app, problem.file, problem.line)


def _sorted(problems: Sequence[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: problem.rank)


def _frame(problems: Sequence[Problem]) -> tuple[str, str]:
    minor = sum(not problem.needs_action for problem in problems)
    title = count(len(problems) - minor, "problem") + (f", {count(minor, 'hint')}" if minor else "")
    hints = "{problems.open} opens the file · {problems.copy} copies · " if problems else ""
    return title, f"{hints}{{problems.close}} closes"


def _entry(problem: Problem) -> Content:
    lines = [problem_heading(problem)]
    if problem.fix:
        lines.append(Content.assemble("  ", (clean_line(problem.fix), "$text-muted")))
    if problem.file:
        lines.append(Content.assemble("  ", (place(problem), "$text-secondary")))
    return Content("\n").join(lines)
