"""One declaration per command: its key, its place in the footer, the palette and the help.

A screen, pane or widget lists its commands in `ACTIONS` and gives them to Textual with
`BINDINGS = bindings(ACTIONS)`. The footer and Textual's keymap read the bindings; the palette and the help screen
read `ACTIONS` of everything from the focused widget up to the app (`in_reach`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.keys import format_key


@dataclass(frozen=True)
class Command:
    """Something a user can ask for."""

    id: str
    """`place.verb`, stable: what `[keys]` in the config remaps."""
    keys: str
    """Textual key names, separated by commas; the first is shown. Empty: palette and mouse only."""
    action: str
    """The Textual action to run on the widget that declares it, such as `run` or `mode('tools')`."""
    title: str
    """Two or three words, for the footer and the palette."""
    help: str
    """A sentence: what it does, for the palette, the tooltip and the help screen."""
    footer: bool = False
    """Whether the footer shows it."""
    priority: bool = False
    """Whether its keys win over the focused widget's own."""

    @property
    def binding(self) -> Binding:
        """The command as Textual's binding."""
        return Binding(
            self.keys,
            self.action,
            self.title,
            show=self.footer,
            priority=self.priority,
            tooltip=self.help,
            id=self.id,
        )


def bindings(commands: Iterable[Command]) -> list[BindingType]:
    """Gives the Textual bindings of the commands that have keys."""
    return [command.binding for command in commands if command.keys]


def key_of(node: DOMNode, command_id: str) -> str:
    """Gives the first key of a command that `node` declares, as the user remapped it and as people write it.

    Args:
        node: A part of a screen.
        command_id: One of its own `ACTIONS`.

    Returns:
        Such as `ctrl+s` or `/`; empty if it has no key.
    """
    for key, binding in node._bindings:  # noqa: SLF001 - Textual gives the remapped ones of one node nowhere else
        if binding.id == command_id:
            *modifiers, last = key.split("+")
            return "+".join([*modifiers, format_key(last)])
    return ""


def key_in_reach(node: DOMNode, command_ids: Collection[str]) -> str:
    """Gives the first key of the first of some commands that works from `node`; empty if none of them does."""
    for owner, command in in_reach(node):
        if command.id in command_ids:
            return key_of(owner, command.id)
    return ""


def in_reach(node: DOMNode | None) -> Iterator[tuple[DOMNode, Command]]:
    """Gives every command that works from `node`: its own first, then those of each ancestor up to the app.

    Args:
        node: Usually the focused widget, or the screen.
    """
    while node is not None:
        for command in getattr(type(node), "ACTIONS", ()):
            yield node, command
        node = node.parent
