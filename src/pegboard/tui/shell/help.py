"""What can be done here: the commands in reach of the focused widget, and what the marks mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from textwrap import wrap
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.keys import format_key
from textual.widgets import Static

from pegboard.tui.commands import Command, bindings, in_reach
from pegboard.tui.widgets.dialog import Dialog

_KEYS_WIDTH, _KEYS_WIDTH_NARROW, _NARROW = 19, 16, 75
_LEAST_HELP = 16
"""Columns that a sentence needs beside its keys and id; with fewer it goes below them."""
_WIDTH, _SHARE, _EDGES = 92, 0.94, 7
"""The width of the box, what it may take of the screen, and its border, padding and scrollbar."""


class HelpScreen(Dialog[None]):
    """A table of keys, place by place, the focused one first.

    Args:
        reach: The commands, as `in_reach` gives them.
        keymap: Keys as the user remapped them, by command id.
        legend: Marks and what they mean.
    """

    PAGE = "Help"
    AUTO_FOCUS = "#help"

    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        background: $background 60%;
        #box {
            width: 92; max-width: 94%; height: auto; max-height: 90%;
            padding: 0 1; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            border-subtitle-color: $text-muted;
        }
        #help { height: auto; max-height: 100%; scrollbar-size-vertical: 1; padding: 0 1; }
        #help Static { height: auto; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("help.close", "escape,f1,q,question_mark", "dismiss", "Close", "Go back to where you were."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(
        self,
        reach: Sequence[tuple[str, Command]],
        keymap: Mapping[str, str],
        legend: Iterable[tuple[str, str]] = (),
    ) -> None:
        super().__init__()
        self._reach = reach
        self._keymap = keymap
        self._legend = list(legend)

    @classmethod
    def of(cls, node: DOMNode, keymap: Mapping[str, str], legend: Iterable[tuple[str, str]] = ()) -> HelpScreen:
        """Builds the help for a focused widget or screen."""
        return cls([(place_name(owner), command) for owner, command in in_reach(node)], keymap, legend)

    def compose(self) -> ComposeResult:
        """One block of keys per place, then the marks."""
        with Vertical(id="box") as box:
            box.border_title = "Help"
            box.border_subtitle = Content("esc closes · [keys] in the config remaps by id")
            with VerticalScroll(id="help"):
                for place, commands in groupby(self._reach, key=lambda pair: pair[0]):
                    yield Static(self._block(place, [command for _, command in commands]))
                if self._legend:
                    yield Static(_marks(self._legend))

    def _block(self, place: str, commands: Sequence[Command]) -> Content:
        room = min(_WIDTH, int(self.app.size.width * _SHARE)) - _EDGES
        keys_width = _KEYS_WIDTH if room > _NARROW else _KEYS_WIDTH_NARROW
        lines = [Content.styled(f"\n{place}", "$text-primary bold")]
        for command in commands:
            keys = shown_keys(self._keymap.get(command.id, command.keys)) or "palette"
            rest = room - keys_width - len(command.id) - 2
            if rest < _LEAST_HELP:
                lines += _stacked(keys, command, max(room, 1))
                continue
            first, *others = wrap(command.help, rest) or [""]
            padded = f"{first:<{rest + 2}}"
            lines.append(
                Content.assemble((f"{keys:<{keys_width}}", "$text-secondary"), padded, (command.id, "$text-disabled"))
            )
            lines += [Content(" " * keys_width + line) for line in others]
        return Content("\n").join(lines)


def place_name(node: DOMNode) -> str:
    """Gives what a part of the screen is called in the help: its `PAGE`, else its class's name."""
    if isinstance(node, App):
        return "Everywhere"
    return str(getattr(type(node), "PAGE", type(node).__name__.removesuffix("Pane").removesuffix("Screen")))


def shown_keys(keys: str) -> str:
    """Gives Textual key names as people write them: `ctrl+r, ctrl+j`."""
    return ", ".join(shown_key(key.strip()) for key in keys.split(",") if key.strip())


def shown_key(key: str) -> str:
    """Gives one Textual key name as people write it: `escape` is `esc`, `question_mark` is `?`."""
    *modifiers, last = key.split("+")
    return "+".join([*modifiers, format_key(last)])


def _stacked(keys: str, command: Command, room: int) -> list[Content]:
    """Return the lines of a command for a narrow screen: keys and id, then the sentence."""
    head = Content.assemble((keys, "$text-secondary"), "  ", (command.id, "$text-disabled"))
    inset = "  " if room > _LEAST_HELP else ""
    return [head, *(Content(inset + line) for line in wrap(command.help, room - len(inset)))]


def _marks(legend: Iterable[tuple[str, str]]) -> Content:
    lines = [Content.styled("\nMarks", "$text-primary bold")]
    lines += [Content.assemble((f"{mark:<{_KEYS_WIDTH_NARROW}}", "bold"), meaning) for mark, meaning in legend]
    return Content("\n").join(lines)
