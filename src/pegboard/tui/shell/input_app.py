"""An app that handles input in its order, and ignores input for widgets that don't exist yet or no longer."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from weakref import WeakKeyDictionary

from textual import events, on
from textual._context import active_message_pump  # nothing public names the widget that calls
from textual.actions import ActionParseResult
from textual.app import ScreenStackError
from textual.await_remove import AwaitRemove
from textual.dom import DOMNode, NoScreen
from textual.errors import NoWidget
from textual.notifications import Notification, Notify
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, TextArea
from textual.widgets._toast import ToastRack
from textual.worker import active_worker

from pegboard.tui.shell.idle_collector import IdleCollector
from pegboard.tui.shell.input_order import InputOrder, InputPassed
from pegboard.tui.shell.sized_app import SizedApp
from pegboard.tui.shell.steady_clicks import SteadyClicks
from pegboard.tui.widgets.double_click import select_in_field

_MODIFIERS = ("alt+", "meta+", "super+", "hyper+")
"""Modifiers that terminals report together with the character of the key."""
_JOINERS = ("\u200c", "\u200d")
"""Characters without a width that Persian keyboards and emoji contain; Textual doesn't take them for text."""
_LONGEST_TOAST, _END_OF_TOAST = 400, 140
"""Characters of a toast, and of its end if the middle is left out: names may be long, and the end says what to do."""
_SHORTEST_TOAST = 0.05
"""Least seconds of a toast."""


class LateNotification(Notification):
    """A notification whose toast always has time left.

    A notification may expire between Textual's check and the start of its toast. Textual's timers never end, and block
    the app, if their time is negative.
    """

    @property
    def time_left(self) -> float:
        """Seconds until the toast is removed."""
        return max(super().time_left, _SHORTEST_TOAST)

    @property
    def has_expired(self) -> bool:
        """Whether every toast is gone."""
        return super().time_left <= 0


class InputApp(SizedApp):
    """Collect garbage only while there is no input; ignore clicks on widgets that are still painted but removed."""

    def __init__(self) -> None:
        super().__init__()
        self._collector = IdleCollector()
        self._order = InputOrder(self, self._handle, self.is_early)
        self._clicks = SteadyClicks(self)
        self._screens_of_keys: WeakKeyDictionary[events.Key, Screen[object]] = WeakKeyDictionary()
        """The screen that each key was for."""

    async def on_unmount(self) -> None:
        """Restore the garbage collector's settings."""
        self._collector.stop()

    def on_notify(self, event: Notify) -> None:
        """Keep the toast from starting with a negative time, and from covering the screen."""
        notification = LateNotification(**vars(event.notification))
        text = notification.message
        if len(text) > _LONGEST_TOAST and not notification.markup:
            notification.message = f"{text[: _LONGEST_TOAST - _END_OF_TOAST]} … {text[-_END_OF_TOAST:]}"
        event.notification = notification

    def _refresh_notifications(self) -> None:
        """Show the toasts on the current screen only: the page below a dialog stays visible."""
        super()._refresh_notifications()
        for screen in self.screen_stack[:-1]:
            for rack in screen.query_children(ToastRack):
                self.call_later(setattr, rack, "display", False)

    def is_early(self, event: events.Event) -> bool:
        """Return whether an event comes before the app can handle it, and waits a second at most."""
        del event
        return False

    def clear_selection(self) -> None:
        """Clear the selected text, unless a text field of a screen that is being opened asks for it.

        On Python 3.12 and later, Textual mounts the widgets of a screen before the app knows that screen, and its text
        fields clear the selection: of the screen below, or of none.
        """
        asking = active_message_pump.get(None)
        with suppress(ScreenStackError, NoScreen):
            if not isinstance(asking, DOMNode) or asking.screen is self.screen:
                super().clear_selection()

    async def on_event(self, event: events.Event) -> None:
        """Handle an event; input waits until the key or text before it was handled.

        Only the left mouse button clicks. A click of the middle one, which pastes in many terminals, presses nothing.
        """
        if isinstance(event, events.MouseDown | events.MouseUp) and event.button > 1:
            return
        if isinstance(event, events.InputEvent | events.Paste) and not event.is_forwarded:
            if isinstance(event, events.Key) and event.character in _JOINERS:
                event = events.Paste(event.character)
            elif isinstance(event, events.Key) and event.key.startswith(_MODIFIERS):
                event.character = None  # otherwise text fields insert it, and the key's command doesn't run
            elif isinstance(event, events.Paste):
                # A terminal sends the line breaks of a pasted text as the key Enter.
                event.text = event.text.replace("\r\n", "\n").replace("\r", "\n")
            self._collector.touch()
            await self._order.add(event)
            return
        await self._handle(event)
        await self._order.arrived(event)

    async def _handle(self, event: events.Event) -> None:
        """Handle an event, unless it is input after the last screen, or over a removed or unfinished widget."""
        if isinstance(event, events.InputEvent):
            try:
                screen = self.screen
            except ScreenStackError:  # the app is ending
                return
            if isinstance(event, events.Key) and not event.is_forwarded:
                self._screens_of_keys[event] = screen
            if isinstance(event, events.MouseEvent) and not event.is_forwarded:
                event = self._clicks.moved(event)
        if not (isinstance(event, events.MouseEvent) and self._is_on_removed(event)):
            await super().on_event(event)

    def on_click(self, event: events.Click) -> None:
        """Select the word or line under a double or triple click in a text field."""
        if event.chain > 1 and isinstance(event.widget, Input | TextArea):
            select_in_field(event.widget, event)

    def on_key(self, event: events.Key) -> None:
        """Run no command of a screen that has opened since the key was forwarded to the one before.

        Textual looks for the command when the key arrives at the app. The new screen has not seen the key, so it could
        not reject it as an accidental answer.
        """
        if self._screens_of_keys.get(event) is not self.screen:
            event.prevent_default()

    @on(InputPassed)
    async def _input_passed(self, message: InputPassed) -> None:
        await self._order.passed(message)

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action, unless it is one of a screen that has no widgets yet; return whether it was handled."""
        if isinstance(default_namespace, Screen) and not default_namespace.is_mounted:
            return False
        return await super().run_action(action, default_namespace, namespaces)

    def _is_on_removed(self, event: events.MouseEvent) -> bool:
        """Return whether the widget under the mouse was removed, such as an expired toast, or is being mounted.

        Textual raises an AttributeError when a selection starts there, and a KeyError when it looks for its styles.
        """
        try:
            widget, _ = self.get_widget_at(event.x, event.y)
        except (NoWidget, ScreenStackError):
            return False
        return not (widget.is_attached and widget.is_mounted) and widget is not self.screen

    def _prune(self, *nodes: Widget, parent: DOMNode | None = None) -> AwaitRemove:
        """Cancel the workers of widgets before they are removed.

        Textual cancels them after it removed the widget's children, so that they could fail to find those.
        """
        current = active_worker.get(None)
        removed = {child for node in nodes for child in node.walk_children(with_self=True)} if self.workers else set()
        for worker in list(self.workers):
            if worker.node in removed and worker is not current:
                worker.cancel()
        return super()._prune(*nodes, parent=parent)
