"""An app that wears our themes and the user's, and keeps the one that was chosen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from textual import work
from textual.app import App

from pegboard.config import Settings
from pegboard.models import Problem
from pegboard.tui.shell import themes
from pegboard.tui.shell.signals import EndingApp

DEFAULT_THEME = "pegboard-dark"
_LOOK_SECONDS = 1.0
"""How often the themes folders are looked at."""
_STYLES_READ = 1024
"""More than there are kinds of widgets."""


class ThemedApp(EndingApp):
    """Registers the themes of some folders, follows their files, and remembers the choice.

    Args:
        folders: Of two themes with one name the later folder's counts.
        choice: The file that keeps the choice.
        settings: For the theme of the config, and where it was set.
    """

    def __init__(self, folders: Sequence[Path], choice: Path, settings: Settings) -> None:
        super().__init__()
        # Textual remembers how it read 64 styles, and reads all of them again for each widget of a further kind.
        self.stylesheet._parse_cache.grow(_STYLES_READ)  # noqa: SLF001 - nothing public sets it
        self._themes = themes.Themes(folders)
        self._choice = themes.ThemeChoice(choice, settings.ui.theme)
        self._missing: dict[str, Problem] = {}
        self._register_themes()
        self._wear_first(self._choice.get(), settings)

    @property
    def theme_problems(self) -> tuple[Problem, ...]:
        """What is wrong with the files of themes, and with the one that was asked for."""
        return (*self._themes.problems, *self._missing.values())

    def tell_problems(self) -> None:
        """Is called when `theme_problems` may have changed."""

    def _register_themes(self) -> None:
        for theme in self._themes.themes:
            self.register_theme(theme)

    def _wear_first(self, name: str, settings: Settings) -> None:
        """Puts a theme on before anything is styled: setting `theme` would style all that there is a second time."""
        if name not in self.available_themes:
            message = f"There is no theme `{name}`."
            configured = name == settings.ui.theme
            self._missing[name] = (
                settings.warning("ui.theme", message) if configured else Problem(message=message, severity="warning")
            )
            name = DEFAULT_THEME
        self.set_reactive(App.theme, name)
        dark = self.current_theme.dark
        self.set_class(dark, "-dark-mode", update=False)
        self.set_class(not dark, "-light-mode", update=False)
        self.stylesheet.set_variables(self.get_css_variables())
        self._refresh_truecolor_filter(self.ansi_theme)

    @work(group="themes")
    async def follow_themes(self) -> None:
        """Wears a theme's file again whenever it changes; never ends."""
        self.tell_problems()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if await asyncio.to_thread(self._themes.refresh):
                self._register_themes()
                self._wear_found()
                self.tell_problems()
                self._watch_theme(self.theme)

    def _wear_found(self) -> None:
        """Puts the theme on that was asked for, once its file is there, unless another has been chosen meanwhile."""
        for name in self._missing.keys() & self.available_themes.keys():
            del self._missing[name]
            if self.theme == DEFAULT_THEME:
                self.theme = name

    @work(exclusive=True, group="theme-choice")
    async def watch_theme(self, theme: str) -> None:
        """Keeps the choice of a theme."""
        try:
            if theme != await asyncio.to_thread(self._choice.get):
                await asyncio.to_thread(self._choice.keep, theme)
        except OSError as error:
            self.notify(f"The choice of theme can't be kept: {error.strerror}.", severity="warning", markup=False)

    def search_themes(self) -> None:
        """Opens a palette of themes."""
        from pegboard.tui.shell.palette import Palette, ThemeProvider

        self.push_screen(Palette([ThemeProvider], "Choose a theme…"))
