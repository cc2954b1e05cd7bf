"""The help dialog: the commands available from the focused widget, approvals, and a legend of the marks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby, zip_longest
from textwrap import wrap
from typing import Any, ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Static

from pegboard.tui.commands import Command, as_written, bindings, in_reach, is_possible
from pegboard.tui.keys import key_names
from pegboard.tui.shell.app_commands import APPROVAL_COMMANDS
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.filter_line import FilterLine

_KEYS_WIDTH, _KEYS_WIDTH_NARROW, _NARROW = 19, 16, 75
_LEAST_HELP = 16
"""Minimum columns for a help line beside its keys and id; with fewer, it goes below them."""
_WIDTH, _SHARE, _EDGES = 92, 0.94, 7
"""Width of the box, its maximum share of the screen, and its border, padding and scrollbar."""
_LONGEST_FILTER = 200
_MARK, _NOT_POSSIBLE = "–", "not possible now"
_PLAIN, _MARKED = ("$text-secondary", ""), ("$text-muted", "$text-muted")
"""Styles of keys and help line of a command that is possible, and of one that isn't."""


class HelpScreen(Dialog[None]):
    """A table of keys, widget by widget, the focused one first.

    Args:
        reach: The commands, each with the title of its widget.
        keymap: Remapped keys by command id.
        legend: Marks and their meanings.
        impossible: Ids of the commands that aren't possible now.
    """

    PAGE = "Help"
    AUTO_FOCUS = "#help"
    HAS_FOOTER = False

    DEFAULT_CSS = """
    HelpScreen {
        & > #box { width: 92; height: auto; padding: 0 1; }
        #help { height: auto; max-height: 100%; scrollbar-size-vertical: 1; padding: 0 1; }
        #help Static { height: auto; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("help.guide", "f2", "guide", "Guide", "Read the guide; type to search it."),
        Command("help.close", "f1,escape", "close", "Close", "Clear the filter, or close this dialog."),
        Command("help.erase", "backspace", "erase", "Erase", "Delete the last character of the filter."),
        Command("help.erase_all", "ctrl+u", "erase_all", "Erase all", "Clear the filter."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    sought: reactive[str] = reactive("", init=False)
    """The filter."""

    def __init__(
        self,
        reach: Sequence[tuple[str, Command]],
        keymap: Mapping[str, str],
        legend: Iterable[tuple[str, str]] = (),
        impossible: Collection[str] = (),
    ) -> None:
        super().__init__("Help", "{help.guide} guide · {help.close} closes · [keys] in the config remaps by id")
        self._reach = reach
        self._keymap = keymap
        self._legend = list(legend)
        self._impossible = impossible
        self._filter_line = FilterLine("type to filter")
        self._text = Static()

    @classmethod
    def of(cls, screen: Screen[Any], keymap: Mapping[str, str]) -> HelpScreen:
        """Return the help for the focused widget of a screen, and for calls awaiting approval."""
        commands = list(in_reach(screen.focused or screen))
        reach = [(help_title(owner), command) for owner, command in commands]
        impossible = {command.id for owner, command in commands if not is_possible(owner, command)}
        listed = {command.id for _, command in reach}
        reach += [("Selected call awaiting approval", one) for one in APPROVAL_COMMANDS if one.id not in listed]
        return cls(reach, keymap, getattr(screen, "LEGEND", ()), impossible)

    def compose_body(self) -> ComposeResult:
        """Compose the filter, one block of keys per widget, and the legend."""
        yield self._filter_line
        with VerticalScroll(id="help"):
            yield self._text

    def on_resize(self) -> None:
        """Show everything, in columns that fit the width; a screen that opens has been resized, too."""
        self._show()

    def watch_sought(self) -> None:
        """Show what contains every word of the filter."""
        self._show()
        self.query_one("#help", VerticalScroll).scroll_home(animate=False)

    def _show(self) -> None:
        words = self.sought.lower().split()
        keymap = self._keymap

        def matches(*texts: str) -> bool:
            return all(word in " ".join(texts).lower() for word in words)

        shown = [
            (title, one)
            for title, one in self._reach
            if matches(title, *self._texts(one), shown_keys(keymap.get(one.id, one.keys)))
        ]
        marks = [(mark, meaning) for mark, meaning in self._legend if matches("marks", mark, meaning)]
        blocks = [
            self._block(title, [command for _, command in commands])
            for title, commands in groupby(shown, key=lambda pair: pair[0])
        ]
        if any(one.id in self._impossible for _, one in shown):
            blocks.insert(0, Content.styled(f"{_MARK} {_NOT_POSSIBLE}", "$text-muted"))
        if marks:
            blocks.append(_marks(marks))
        self._text.update(Content("\n").join(blocks) if blocks else Content("No matches."))
        self._filter_line.show(self.sought, f"{len(shown):,} of {len(self._reach):,}")

    def _texts(self, command: Command) -> tuple[str, ...]:
        """Return the texts by which a command is found, in addition to its keys."""
        note = _NOT_POSSIBLE if command.id in self._impossible else ""
        return command.title, command.help, command.id, command.words, note

    def on_key(self, event: events.Key) -> None:
        """Append printable keys to the filter."""
        if event.is_printable and event.character is not None:
            event.stop()
            event.prevent_default()
            if self.sought or event.character != " ":
                self.sought = (self.sought + event.character)[:_LONGEST_FILTER]

    def action_erase(self) -> None:
        """Delete the last character of the filter."""
        self.sought = self.sought[:-1]

    def action_erase_all(self) -> None:
        """Clear the filter."""
        self.sought = ""

    def action_close(self) -> None:
        """Clear the filter, or close."""
        if self.sought:
            self.sought = ""
        else:
            self.dismiss()

    async def action_guide(self) -> None:
        """Close, and open the guide."""
        await self.dismiss()
        await self.app.run_action("guide", self.app)

    def _block(self, title: str, commands: Sequence[Command]) -> Content:
        width = min(_WIDTH, int(self.app.size.width * _SHARE)) - _EDGES
        keys_width = _KEYS_WIDTH if width > _NARROW else _KEYS_WIDTH_NARROW
        lines = [Content.styled(f"\n{title}", "$text-primary bold")]
        for command in commands:
            keys = shown_keys(self._keymap.get(command.id, command.keys)) or "palette"
            rest = width - keys_width - len(command.id) - 2
            is_marked = command.id in self._impossible
            mark, styles = (_MARK, _MARKED) if is_marked else ("", _PLAIN)
            if rest < _LEAST_HELP:
                lines += _stacked(keys, command.id, f"{mark} {command.help}".lstrip(), max(width, 1), styles)
                continue
            wrapped_keys = wrap(keys, keys_width - (3 if is_marked else 1), break_long_words=False)
            texts = wrapped_keys, [mark], wrap(command.help, rest), [command.id]
            for key, sign, help_, id_ in zip_longest(*texts, fillvalue=""):
                lines.append(
                    Content.assemble(
                        (f"{key:<{keys_width - 2}}{sign:<2}" if sign else f"{key:<{keys_width}}", styles[0]),
                        (f"{help_:<{rest + 2}}", styles[1]),
                        (id_, "$text-disabled"),
                    )
                )
        return Content("\n").join(lines)


def help_title(node: DOMNode) -> str:
    """Return the title of a widget in the help: its `PAGE`, else the name of its class."""
    if isinstance(node, App):
        return "Everywhere"
    return str(getattr(type(node), "PAGE", type(node).__name__.removesuffix("Pane").removesuffix("Screen")))


def shown_keys(keys: str) -> str:
    """Format Textual key names for users: `ctrl+r, ctrl+j`."""
    return ", ".join(as_written(key) for key in key_names(keys))


def _stacked(keys: str, command_id: str, text: str, width: int, styles: tuple[str, str]) -> list[Content]:
    """Return the lines of a command for a narrow screen: keys and id, then the help line."""
    head = Content.assemble((keys, styles[0]), "  ", (command_id, "$text-disabled"))
    inset = "  " if width > _LEAST_HELP else ""
    return [head, *(Content.styled(inset + line, styles[1]) for line in wrap(text, width - len(inset)))]


def _marks(legend: Iterable[tuple[str, str]]) -> Content:
    lines = [Content.styled("\nMarks", "$text-primary bold")]
    lines += [Content.assemble((f"{mark:<{_KEYS_WIDTH_NARROW}}", "bold"), meaning) for mark, meaning in legend]
    return Content("\n").join(lines)
