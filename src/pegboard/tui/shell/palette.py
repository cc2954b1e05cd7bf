"""The command palette: the available commands, and every tool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial

from textual import events, on
from textual.app import App, ComposeResult
from textual.await_complete import AwaitComplete
from textual.command import (
    CommandInput,
    CommandList,
    CommandPalette,
    DiscoveryHit,
    Hit,
    Hits,
    Provider,
    ProviderSource,
    SearchIcon,
)
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen
from textual.style import Style
from textual.widgets import LoadingIndicator

from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, help_now, in_reach, is_possible
from pegboard.tui.messages import OpenTool
from pegboard.tui.shell.help import help_title, shown_keys
from pegboard.tui.state.app_state import AppState
from pegboard.tui.state.fuzzy import FuzzyQuery, match_positions
from pegboard.tui.widgets.control_pictures import ControlPictures
from pegboard.tui.widgets.dialog import is_topmost
from pegboard.tui.widgets.keymap_screen import KeymapScreen

_TOOLS_SHOWN = 50
_LONGEST_QUERY = 200
_BREADTH: tuple[type[DOMNode], ...] = (Screen, App, DOMNode)


class Palette(CommandPalette, KeymapScreen[None]):
    """Textual's palette with Pegboard's styles.

    Args:
        providers: Sources of the entries.
        placeholder: Text of the empty input.
    """

    DEFAULT_CSS = """
    Palette {
        & > Vertical {
            margin-top: 2; max-width: 90; background: $surface;
            #--input { border: round $border; height: 3; padding: 0 1; background: $surface; }
            #--input.--list-visible { border: round $border; }
            SearchIcon { margin: 0; color: $text-primary; }
            CommandInput, CommandInput:focus { border: none; height: 1; }
            #--results { background: $surface; }
            CommandList { border: none; padding: 0 1; min-width: 8; background: $surface; scrollbar-size-vertical: 1; }
            CommandList > .option-list--option { padding: 0 1; }
        }
    }
    """

    def __init__(self, providers: ProviderSource, placeholder: str) -> None:
        super().__init__(providers, placeholder=placeholder, id="--command-palette")

    def compose(self) -> ComposeResult:
        """Compose Textual's palette with a list that ignores stale clicks."""
        with Vertical(id="--container"):
            with Horizontal(id="--input"):
                icon = SearchIcon()
                icon.icon = "›"  # a character of every font
                yield icon
                yield CommandInput(placeholder=self._placeholder, highlighter=ControlPictures(), select_on_focus=False)
            with Vertical(id="--results"):
                yield _Commands()
                yield LoadingIndicator()

    # The page may be switched before the palette is mounted; its screen is then on the stack of the page before.

    def _on_mount(self, event: events.Mount) -> None:
        """Search nothing if another page is shown."""
        if self not in self.app.screen_stack:
            event.prevent_default()

    def on_screen_resume(self) -> None:
        """Close if the palette never searched."""
        if self._calling_screen is None and self.is_mounted:
            self.call_later(self._close)

    def _close(self) -> None:
        self.dismiss()

    # Input waits until the chosen command has run: typed text belongs to what that opens, not to the palette.

    @on(CommandInput.Submitted)
    def _choose(self) -> None:
        commands = self.query_one(CommandList)
        _state(self.app).is_choosing = self._list_visible and (
            commands.highlighted is not None or commands.option_count == 1
        )

    def on_unmount(self) -> None:
        """Let input continue after the messages that the command posts, which is the next callback of the app."""
        self.app.call_later(self.app.call_later, self._end_choice)

    def _end_choice(self) -> None:
        _state(self.app).is_choosing = False

    # A search may start, and end, while the palette closes, after its list was removed.

    def _gather_commands(self, search_value: str) -> None:  # type: ignore[override]  # its worker is not used
        """Search for the beginning of a long text, as lists do, unless the palette is closing."""
        if self._has_list:
            super()._gather_commands(search_value[:_LONGEST_QUERY])

    def _watch__list_visible(self) -> None:
        """Show or hide the list, unless the palette is closing."""
        if self._has_list:
            super()._watch__list_visible()

    def _watch__show_busy(self) -> Coroutine[object, object, None] | None:  # type: ignore[override]  # may be None
        """Show or hide the loading indicator, unless the palette is closing."""
        return super()._watch__show_busy() if self._has_list else None

    @property
    def _has_list(self) -> bool:
        return bool(self.query(CommandList) and self.query(LoadingIndicator))

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close the palette if it is the topmost screen; see `Dialog`."""
        return super().dismiss(result) if is_topmost(self) else AwaitComplete()


class _Commands(CommandList):
    """Textual's list; the original fails on clicks and pages while its commands change."""

    def action_page_up(self) -> None:
        """Move up one page, unless new commands have no lines yet."""
        with suppress(KeyError):
            super().action_page_up()  # type: ignore[no-untyped-call]  # Textual has no types here

    def action_page_down(self) -> None:
        """Move down one page, unless new commands have no lines yet."""
        with suppress(KeyError):
            super().action_page_down()  # type: ignore[no-untyped-call]  # as above

    def _on_click(self, event: events.Click) -> None:  # type: ignore[override]  # Textual calls both handlers
        """Ignore a click on a removed command."""
        option = event.style.meta.get("option")
        if option is not None and option >= self.option_count:
            event.prevent_default()


class CommandProvider(Provider):
    """The commands available from the focused widget."""

    async def discover(self) -> Hits:
        """Yield every command, those that were run last first."""
        recent = await asyncio.to_thread(_state(self.app).recent_commands.read)
        found = self._commands()
        position = {command_id: index for index, command_id in enumerate(recent)}
        found.sort(key=lambda pair: (not is_possible(*pair), position.get(pair[1].id, len(recent))))
        for node, command in found:
            shown, help_ = Content(_title(node, command)), self._help(node, command)
            yield DiscoveryHit(shown, self._runner(node, command), command.title, help_)  # type: ignore[arg-type]

    async def search(self, query: str) -> Hits:
        """Yield the commands whose title or help matches."""
        for node, command in self._commands():
            title = _title(node, command)
            score = _score(query, title, command)
            if score:
                run, help_ = self._runner(node, command), self._help(node, command)
                yield Hit(score, _highlighted(title, query, self.match_style), run, title, help_)  # type: ignore[arg-type]

    def _commands(self) -> list[tuple[DOMNode, Command]]:
        seen: dict[str, tuple[DOMNode, Command]] = {}
        for node, command in in_reach(self.focused or self.screen):
            seen.setdefault(command.id, (node, command))
        # Actions of the focused widget and the page come before those of the app.
        return sorted(seen.values(), key=lambda pair: _BREADTH.index(_kind(pair[0])))

    def _runner(self, node: DOMNode, command: Command) -> Callable[[], object]:
        async def run() -> None:
            if not await self.app.run_action(command.action, node):
                text = f"“{command.title.removesuffix('…')}” is not possible now."
                self.app.notify(text, severity="warning", markup=False)
                return
            await asyncio.to_thread(_state(self.app).recent_commands.add, command.id)

        return run

    def _help(self, node: DOMNode, command: Command) -> Content:
        # Content instead of the declared str, which Textual would parse as markup
        keys = shown_keys(_state(self.app).appearance.keys.get(command.id, command.keys))
        help_ = help_now(node, command)
        return Content(clean_line(f"{help_} ({keys})" if keys else help_))


class ToolProvider(Provider):
    """Every tool, ranked by name, then by description."""

    async def search(self, query: str) -> Hits:
        """Yield the best matches; choosing one opens the tool."""
        for rank, entry in enumerate(list(_state(self.app).tool_scan.catalogue.search(query))[:_TOOLS_SHOWN]):
            shown = _highlighted(clean_line(entry.name), query, self.match_style)
            help_ = Content(clean_line(entry.spec.summary))
            go = partial(self.app.post_message, OpenTool(entry.spec.name))
            yield Hit(2.0 - rank / _TOOLS_SHOWN, shown, go, entry.name, help_)  # type: ignore[arg-type]


class ThemeProvider(Provider):
    """Every theme by name."""

    async def discover(self) -> Hits:
        """Yield every theme, the current one first."""
        for name in sorted(self.app.available_themes, key=lambda name: (name != self.app.theme, name)):
            yield DiscoveryHit(Content(self._shown(name)), self._chooser(name), name)

    async def search(self, query: str) -> Hits:
        """Yield the themes whose name matches."""
        fuzzy = FuzzyQuery(query)
        for name in sorted(self.app.available_themes):
            found = clean_line(name).lower()
            if fuzzy.matches(found):
                score = 1 / (1 + fuzzy.level(found))
                shown = _highlighted(self._shown(name), query, self.match_style)
                yield Hit(score, shown, self._chooser(name), name)

    def _shown(self, name: str) -> str:
        return clean_line(f"{'●' if name == self.app.theme else ' '} {name}")

    def _chooser(self, name: str) -> Callable[[], None]:
        return partial(setattr, self.app, "theme", name)


def open_palette(app: App[object]) -> None:
    """Open the palette of commands and tools, unless a palette is open."""
    if not Palette.is_open(app):
        app.push_screen(Palette([CommandProvider, ToolProvider], "Find a command or a tool…"))


def _state(app: App[object]) -> AppState:
    assert isinstance(app, AppState)
    return app


def _kind(node: DOMNode) -> type[DOMNode]:
    return next(kind for kind in _BREADTH if isinstance(node, kind))


def _score(query: str, title: str, command: Command) -> float:
    """Return the score of a command.

    Words of the title and synonyms rank before every tool; letters of the title and words of the help line after.
    """
    words = query.lower().split()
    if all(word in title.lower() for word in words):
        return 3.0
    synonyms = command.words.split()
    if all(word in title.lower() or any(one.startswith(word) for one in synonyms) for word in words):
        return 2.5
    if match_positions(query, command.title):
        return 0.6
    return 0.4 if all(word in command.help.lower() for word in words) else 0.0


def _title(node: DOMNode, command: Command) -> str:
    return f"{help_title(node)}: {command.title}"


def _highlighted(text: str, query: str, style: Style | None) -> Content:
    shown = Content(text)
    for offset in match_positions(query, text):
        shown = shown.stylize(style or "bold", offset, offset + 1)
    return shown
