"""An app with Pegboard's and the user's themes, which remembers the chosen one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.app import App

from pegboard import models
from pegboard.config import Appearance
from pegboard.config.theme_choice import ThemeChoice
from pegboard.tui.shell import terminal_colors, themes
from pegboard.tui.shell.input_app import InputApp

if TYPE_CHECKING:
    from textual.filter import LineFilter

    from pegboard.models import Problem

_CHECK_SECONDS = 1.0
"""Interval at which theme files are checked for changes."""
_PARSED_STYLES = 1024
"""Size of the cache of parsed styles: more than the number of widget classes."""


class ThemedApp(InputApp):
    """An app that loads themes from folders, reloads changed files and remembers the chosen theme.

    Args:
        folders: Folders with theme files; of two themes with one name, the later folder's wins.
        choice: File that stores the chosen theme.
        theme: The configured theme.
    """

    # Reversed default colors differ in every terminal; Textual's are black on white, reversed.
    CSS = """
    Input:ansi > .input--cursor { color: ansi_default; background: ansi_default; text-style: reverse; }
    """

    def __init__(self, folders: Sequence[Path], choice: Path, theme: str) -> None:
        if not os.environ.get("NO_COLOR"):  # Textual paints without color even if it is empty
            os.environ.pop("NO_COLOR", None)
        super().__init__()
        # Textual caches 64 parsed styles and parses all of them again for each further widget class.
        self.stylesheet._parse_cache.grow(_PARSED_STYLES)  # noqa: SLF001 - nothing public sets the size
        self._themes = themes.Themes(folders)
        self._choice_file = choice
        self._choice = ThemeChoice(choice, theme)
        self._missing: dict[str, Problem] = {}
        self._register_themes()
        self._filters_of_terminal = terminal_colors.filters_of(self.console)
        self._default_theme = terminal_colors.default_theme(self.console)
        unchosen = self._default_theme if theme == Appearance.theme else theme
        self._apply_first(self._choice.chosen() or unchosen, theme)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the filters of Textual and those that the terminal needs."""
        return [*super().get_line_filters(), *self._filters_of_terminal]

    @property
    def theme_problems(self) -> tuple[Problem, ...]:
        """Problems with theme files and with the configured theme."""
        return (*self._themes.problems, *self._missing.values())

    def missing_theme(self, name: str, *, is_configured: bool) -> Problem:
        """Return the problem of a theme that was not found."""
        return models.Problem(message=f"The theme `{name}` was not found.", severity="warning")

    def show_problems(self) -> None:
        """Handle a change of `theme_problems`; does nothing by default."""

    def _register_themes(self) -> None:
        for theme in self._themes.themes:
            self.register_theme(theme)

    def _apply_first(self, name: str, configured: str) -> None:
        """Set the first theme without the watchers of `theme`, which would apply all styles a second time."""
        if name not in self.available_themes:
            self._missing[name] = self.missing_theme(name, is_configured=name == configured)
            name = self._default_theme
        self.set_reactive(App.theme, name)
        dark = self.current_theme.dark
        self.set_class(dark, "-dark-mode", update=False)
        self.set_class(not dark, "-light-mode", update=False)
        self.stylesheet.set_variables(self.get_css_variables())
        self._refresh_truecolor_filter(self.ansi_theme)

    @work(group="themes")
    async def follow_themes(self) -> None:
        """Reload theme files whenever they change; never return."""
        self.show_problems()
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            if await asyncio.to_thread(self._themes.refresh):
                self._register_themes()
                self._apply_found()
                self.show_problems()
                self._watch_theme(self.theme)

    def apply_configured_theme(self, name: str) -> None:
        """Apply a theme that was configured while the app runs.

        Args:
            name: The theme.
        """
        self._choice = ThemeChoice(self._choice_file, name)
        self._missing.clear()
        if name in self.available_themes:
            self.theme = name
        else:
            self._missing[name] = self.missing_theme(name, is_configured=True)
        self.show_problems()

    def _apply_found(self) -> None:
        """Apply the configured theme once its file exists, unless the user has chosen another theme meanwhile."""
        for name in self._missing.keys() & self.available_themes.keys():
            del self._missing[name]
            if self.theme == self._default_theme:
                self.theme = name

    def watch_theme(self, theme: str) -> None:
        """Store the chosen theme once Textual has applied it: one that ends the app must not be the next start's."""
        self.call_next(self._store_theme, theme)

    @work(exclusive=True, group="theme-choice")
    async def _store_theme(self, theme: str) -> None:
        try:
            if theme != await asyncio.to_thread(self._choice.get):
                await asyncio.to_thread(self._choice.save, theme)
        except OSError as error:
            self.notify(f"The chosen theme could not be saved: {error.strerror}.", severity="warning", markup=False)

    def search_themes(self) -> None:
        """Open a palette of themes."""
        from pegboard.tui.shell.palette import Palette, ThemeProvider

        self.push_screen(Palette([ThemeProvider], "Choose a theme…"))
