"""The base class of all screens: it applies the keys that the user assigned, and copies selected text."""

from __future__ import annotations

from typing import TypeVar

from textual.actions import SkipAction
from textual.binding import BindingsMap
from textual.dom import DOMNode
from textual.keys import key_to_character
from textual.screen import Screen

from pegboard.tui.commands import bindings_of
from pegboard.tui.messages import Copy
from pegboard.tui.widgets.compositor import ReportingCompositor

ResultT = TypeVar("ResultT")


class KeymapScreen(Screen[ResultT]):
    """A screen that applies the keys of `[keys]` as `assign_keys` describes.

    Textual also decides before it assigns them which keys the focused widget takes as text.
    """

    def __init__(self, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(name, id, classes)
        self._compositor = ReportingCompositor()

    @property
    def _binding_chain(self) -> list[tuple[DOMNode, BindingsMap]]:
        if not self.app._keymap:  # noqa: SLF001 - nothing public returns it
            return super()._binding_chain
        focused = self.focused if self.focused is not None and not self.focused.loading else None
        nodes = [self, self.app] if focused is None else focused.ancestors_with_self
        chain: list[tuple[DOMNode, BindingsMap]] = []
        for node in nodes:
            free = {
                key: found
                for key, found in bindings_of(node).key_to_bindings.items()
                if not any(inner.check_consume_key(key, key_to_character(key)) for inner, _ in chain)
            }
            chain.append((node, BindingsMap.from_keys(free)))
        return chain

    def action_copy_text(self) -> None:
        """Copy the selected text; a toast names the clipboard."""
        text = self.get_selected_text()
        if not text:
            raise SkipAction
        self.post_message(Copy(text))
