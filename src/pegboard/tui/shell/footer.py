"""The line of keys at the bottom of a screen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget


@dataclass(frozen=True)
class _Shown:
    """A key as the line shows it."""

    key: str
    """The name that Textual has for it."""
    said: str
    """As people write it."""
    title: str
    tooltip: str
    enabled: bool

    @property
    def columns(self) -> int:
        """How many columns it takes."""
        return cell_len(f" {self.said}  {self.title}")


class KeysLine(Widget, can_focus=False):
    """The keys that work where the focus is, drawn in one piece.

    The focus moves at every key that somebody presses in a form. A widget for each key, as Textual's own footer has
    them, would cost more to put there than the form itself.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "keys-line--key",
        "keys-line--title",
        "keys-line--hover",
        "keys-line--disabled",
    }
    DEFAULT_CSS = """
    KeysLine {
        dock: bottom;
        height: 1;
        color: $footer-foreground;
        background: $footer-background;
        text-wrap: nowrap;
        text-overflow: clip;
        .keys-line--key {
            color: $footer-key-foreground; background: $footer-key-background; text-style: bold;
        }
        .keys-line--title { color: $footer-description-foreground; background: $footer-description-background; }
        .keys-line--hover { color: $footer-key-foreground; background: $block-hover-background; }
        .keys-line--disabled { text-style: dim; }
    }
    """

    hovered: reactive[int | None] = reactive(None)
    """Which of the keys the mouse is over."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: tuple[_Shown, ...] = ()

    def on_mount(self) -> None:
        """Follows the keys that work."""
        self.screen.bindings_updated_signal.subscribe(self, self._change)

    def on_unmount(self) -> None:
        """Follows them no longer."""
        self.screen.bindings_updated_signal.unsubscribe(self)

    def _change(self, screen: Screen[object]) -> None:
        """Shows the keys that work now, each action once."""
        if not screen.app.app_focus or not self.is_attached or screen is not self.screen:
            return
        found: dict[str, _Shown] = {}
        for _, binding, enabled, tooltip in screen.active_bindings.values():
            if binding.show and binding.action not in found:
                said = self.app.get_key_display(binding)
                found[binding.action] = _Shown(binding.key, said, binding.description, tooltip, enabled)
        keys = tuple(found.values())
        if keys != self._keys:
            self._keys, self.hovered = keys, None
            self.refresh()

    def _in_sight(self) -> Iterator[tuple[int, _Shown]]:
        """Gives the keys that there is room for, each with its column."""
        column = 0
        for shown in self._keys:
            if column + shown.columns - 1 > self.size.width:
                return
            yield column, shown
            column += shown.columns

    def render(self) -> Content:
        """Draws the keys with what they do."""
        pieces: list[Content] = []
        for place, (_, shown) in enumerate(self._in_sight()):
            kinds = ("hover", "hover") if place == self.hovered else ("key", "title")
            texts = (f" {shown.said} ", f"{shown.title} ")
            for kind, text in zip(kinds, texts, strict=True):
                piece = Content.styled(text, self.get_visual_style(f"keys-line--{kind}"))
                dim = self.get_visual_style("keys-line--disabled")
                pieces.append(piece if shown.enabled else piece.stylize(dim))
        return Content("").join(pieces)

    # The mouse

    def _at(self, x: int) -> int | None:
        places = enumerate(self._in_sight())
        return next((place for place, (column, key) in places if column <= x < column + key.columns), None)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Tells what the key does that the mouse is over."""
        place = self._at(event.x)
        if place != self.hovered:
            self.hovered = place
            self.tooltip = Content(self._keys[place].tooltip) if place is not None else None

    def on_leave(self) -> None:
        """Marks no key."""
        self.hovered = None

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Does what the key would do."""
        event.stop()
        place = self._at(event.x)
        if place is None:
            return
        if self._keys[place].enabled:
            self.app.simulate_key(self._keys[place].key)
        else:
            self.app.bell()
