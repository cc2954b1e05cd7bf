"""The footer: the keys that are available from the focused widget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.app import App
from textual.binding import Binding
from textual.content import Content
from textual.dom import DOMNode
from textual.geometry import Offset
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

from pegboard.tui.commands import first_key
from pegboard.tui.widgets import answer_guard

_EVERYWHERE = 2


@dataclass(frozen=True)
class _FooterKey:
    """One key in the footer."""

    key: str
    """Textual's name for the key."""
    label: str
    """The key as users write it."""
    title: str
    tooltip: str
    enabled: bool
    rank: tuple[int, int]
    """0 for what the page is for, such as to run, in declared order; 1 for other keys; 2 for keys of every page."""

    @property
    def columns(self) -> int:
        """Width in columns."""
        return cell_len(f" {self.label}  {self.title}")


class KeysLine(Widget, can_focus=False):
    """The keys that are available from the focused widget, rendered as one line.

    Those that are available everywhere are at the right end and always visible.

    In a form, the focus moves with almost every key. Textual's footer has a widget per key, and mounting those takes
    longer than updating the form.
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
    """Index of the key under the mouse."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: tuple[_FooterKey, ...] = ()
        self._pressed: tuple[Offset | None, float, str] = (None, 0.0, "")
        """Place, time and key of the last press of the mouse button."""
        self._is_outdated = False

    def on_mount(self) -> None:
        """Subscribe to changes of the available keys."""
        self.screen.bindings_updated_signal.subscribe(self, self._change)

    def on_unmount(self) -> None:
        """Unsubscribe."""
        self.screen.bindings_updated_signal.unsubscribe(self)

    def _change(self, screen: Screen[object]) -> None:
        # The keys are read when the next frame is rendered, because they change several times before it.
        if screen.app.app_focus and self.is_attached and screen is self.screen:
            self._is_outdated = True
            self.refresh()

    def _current(self) -> tuple[_FooterKey, ...]:
        """Return the available keys, each action once: with the first declared one, as another may come first here."""
        if not self._is_outdated or not self.app.app_focus:
            return self._keys
        self._is_outdated = False
        found: dict[str, _FooterKey] = {}
        owners: dict[str, DOMNode] = {}
        declared = [command.id for command in getattr(type(self.screen), "ACTIONS", ())]
        for node, binding, enabled, tooltip in self.screen.active_bindings.values():
            if not binding.show:
                continue
            owner = owners.setdefault(binding.action, node)
            if binding.action not in found or (owner is node and binding.key == first_key(node, binding.id)):
                label = self.app.get_key_display(binding)
                found[binding.action] = _FooterKey(
                    binding.key, label, binding.description, tooltip, enabled, _rank(node, binding, declared)
                )
        keys = tuple(sorted(found.values(), key=lambda key: key.rank))
        if keys != self._keys:
            self._keys = keys
            self.set_reactive(KeysLine.hovered, None)  # it is read while the line is rendered
        return self._keys

    def _visible(self) -> Iterator[tuple[int, int, _FooterKey]]:
        """Yield the keys that fit into the line, each with its index and column."""
        keys = self._current()
        everywhere = sum(key.columns for key in keys if key.rank[0] == _EVERYWHERE)
        column, right = 0, max(0, self.size.width - everywhere)
        for index, key in enumerate(keys):
            column = max(column, right) if key.rank[0] == _EVERYWHERE else column
            end = column + key.columns
            if right and key.rank[0] != _EVERYWHERE and end > right:
                column = right  # nothing less important is shown in the gap
            elif end - 1 > self.size.width:
                return
            else:
                yield index, column, key
                column = end

    def render(self) -> Content:
        """Render the keys and their titles."""
        pieces: list[Content] = []
        end = 0
        for index, column, key in self._visible():
            pieces.append(Content(" " * (column - end)))
            end = column + key.columns
            kinds = ("hover", "hover") if index == self.hovered else ("key", "title")
            texts = (f" {key.label} ", f"{key.title} ")
            for kind, text in zip(kinds, texts, strict=True):
                piece = Content.styled(text, self.get_visual_style(f"keys-line--{kind}"))
                dim = self.get_visual_style("keys-line--disabled")
                pieces.append(piece if key.enabled else piece.stylize(dim))
        return Content("").join(pieces)

    # The mouse

    def _index_at(self, x: int) -> int | None:
        return next((index for index, column, key in self._visible() if column <= x < column + key.columns), None)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Show the help line of the key under the mouse."""
        index = self._index_at(event.x)
        if index != self.hovered:
            self.hovered = index
            self.tooltip = Content(self._keys[index].tooltip) if index is not None else None

    def on_leave(self) -> None:
        """Remove the highlight."""
        self.hovered = None

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Simulate the key that was clicked; a double click doesn't press the key that the first click brought here."""
        event.stop()
        index = self._index_at(event.x)
        if index is None:
            return
        place, (last_place, last_time, last_key) = event.screen_offset, self._pressed
        key, at = self._keys[index].key, answer_guard.clock.of(event)
        is_second = place == last_place and at - last_time <= self.app.CLICK_CHAIN_TIME_THRESHOLD
        self._pressed = place, at, last_key if is_second else key
        if is_second and key != last_key:
            return
        if self._keys[index].enabled:
            self.app.simulate_key(self._keys[index].key)
        else:
            self.app.bell()


def _rank(node: DOMNode, binding: Binding, declared: Sequence[str]) -> tuple[int, int]:
    """Return the rank of a key by the node that declares it."""
    if isinstance(node, App):
        return _EVERYWHERE, 0
    if binding.priority and isinstance(node, Screen) and binding.id in declared:
        return 0, declared.index(binding.id)
    return 1, 0
