"""Savings for apps that run without a terminal; they change nothing that a test can observe.

- Apps of one process share parsed CSS.
- A key has the character that a terminal sends with it; Textual's pilot omits it for keys with a modifier.
- A frame that no terminal displays isn't composed. Tests compose the screen when they read it, unless nothing was
  painted since: `compose_frame`.
- A pilot waits until every widget has handled its messages and the screen is up to date. Textual's own pilot sends
  every widget a message and sleeps several times per key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

import pytest
import textual.app
import textual.pilot
from rich.console import RenderableType
from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._compositor import Compositor  # nothing public skips a frame
from textual._context import active_app, visible_screen_stack
from textual._queue import Queue
from textual._wait import wait_for_idle
from textual.app import App, ScreenStackError
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.driver import Driver
from textual.message import Message
from textual.message_pump import MessagePump
from textual.pilot import Pilot, WaitForScreenTimeout
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, TextArea

_parse_rules = Stylesheet._parse_rules
_render_update = Compositor.render_update
_send_message = Driver.send_message
TIMEOUT_SECONDS = 60.0
"""Seconds that a test waits for a condition; a machine under load is several times slower."""
_SOON = 0.06
"""Seconds; a timer with at most this interval is waited for."""
_TURNS = 50
"""Turns of the event loop after which a wait starts to sleep."""

_CONTROL_CHARACTERS = {
    keys[0].value: sequence
    for sequence, keys in ANSI_SEQUENCES_KEYS.items()
    if isinstance(keys, tuple) and len(sequence) == len(keys) == 1
}
"""Control characters by the names of their keys."""

_parsed: dict[object, list[RuleSet]] = {}
_variables: dict[object, int] = {}
"""Numbers of all sets of variables, which are long keys."""


def _number_of_variables(sheet: Stylesheet) -> int:
    """Return the same number for stylesheets with equal variables."""
    values, number = getattr(sheet, "numbered_variables", (None, 0))
    if values is not sheet._variables:
        number = _variables.setdefault(tuple(sheet._variables.items()), len(_variables))
        sheet.numbered_variables = sheet._variables, number  # type: ignore[attr-defined]
    return number


def _parse_once(sheet: Stylesheet, css: str, *source: Any, **more: Any) -> list[RuleSet]:
    """Parse CSS, unless an app of this process has parsed it with the same variables."""
    key = (css, source, tuple(more.items()), _number_of_variables(sheet))
    if key not in _parsed:
        _parsed[key] = _parse_rules(sheet, css, *source, **more)
    return _parsed[key]


def _send_as_terminal(driver: Driver, message: Message) -> None:
    """Send a message; a key gets the character that a terminal sends with it."""
    if isinstance(message, events.Key) and message.character is None:
        *modifiers, name = message.key.split("+")
        if len(name) == 1 and modifiers in (["alt"], ["alt", "shift"]):
            message.character = name.upper() if "shift" in modifiers else name
        else:
            message.character = _CONTROL_CHARACTERS.get(message.key)
    _send_message(driver, message)


def _skip_invisible(
    compositor: Compositor,
    full: bool = False,
    screen_stack: list[Screen[Any]] | None = None,
    simplify: bool = False,
) -> RenderableType | None:
    """Compose a frame for a terminal or a screenshot; forget the changed regions if it is for neither."""
    if compositor.root is not None and (full or compositor._dirty_regions):
        _outdated.add(compositor.root.app)
    if full or compositor.root is None or not compositor.root.app.is_headless:
        return _render_update(compositor, full, screen_stack, simplify)
    visible_screen_stack.set(screen_stack or [])
    compositor._dirty_regions.clear()
    return None


def _pumps(app: App[Any]) -> Iterator[MessagePump]:
    """Yield the app, its screen and the widgets on it."""
    yield app
    try:
        yield from app.screen.walk_children(with_self=True)
    except ScreenStackError:
        return


def _is_busy(pump: MessagePump) -> bool:
    """Return whether a widget has messages or handles one."""
    if not pump._running or pump._closing or pump._closed:
        return False
    queue: Queue[Message | None] = pump._message_queue
    return not (queue.empty() and queue.ready_event._waiters) or bool(pump._next_callbacks)


def _is_on_screen(pump: MessagePump, app: App[Any]) -> bool:
    """Return whether a message pump is the app, its screen or a widget on it."""
    try:
        return pump is app or (isinstance(pump, Widget) and app.screen in pump.ancestors_with_self)
    except ScreenStackError:
        return False


def _update(app: App[Any]) -> bool:
    """Update the screen if it is outdated; return whether it was."""
    try:
        screen = app.screen
    except ScreenStackError:
        return False
    outdated = (
        screen._layout_required
        or screen._scroll_required
        or screen._repaint_required
        or screen._recompose_required
        or screen._dirty_widgets
        or screen._callbacks
    )
    if outdated and screen.is_current and not app._batch_count:
        screen._on_timer_update()
        return True
    return False


async def _handled(pilot: Pilot[Any], timeout: float = TIMEOUT_SECONDS) -> bool:  # noqa: ASYNC109 - as in Textual
    """Wait until every widget has handled its messages; return whether the app still runs."""
    app: App[Any] = pilot.app
    crashed: asyncio.Event = app._exception_event
    end, turns = monotonic() + timeout, 0
    busy: MessagePump | None = None
    while True:
        # Mostly, the widget that was busy still is; walking all of them takes long.
        if busy is None or not (_is_on_screen(busy, app) and _is_busy(busy)):
            busy = next(filter(_is_busy, _pumps(app)), None)
            if busy is None:
                break
        if crashed.is_set():
            return False
        if monotonic() > end:
            raise WaitForScreenTimeout("Widgets didn't handle their messages in time.")
        turns += 1
        await asyncio.sleep(0 if turns < _TURNS else 0.002)
    return not crashed.is_set()


def _is_working() -> bool:
    """Return whether a thread works for the app."""
    executor = asyncio.get_running_loop()._default_executor  # type: ignore[attr-defined]
    return isinstance(executor, ThreadPoolExecutor) and executor._idle_semaphore._value < len(executor._threads)


def _has_quick_timer(app: App[Any]) -> bool:
    """Return whether a timer fires soon."""
    timers = (timer for pump in _pumps(app) for timer in pump._timers)
    return any(timer._interval <= _SOON and timer._active.is_set() for timer in timers)


async def _idle(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Wait until the app is idle: no messages, an updated screen, no working thread and no timer that fires soon."""
    app, end = active_app.get(), monotonic() + max_sleep
    is_working = False
    await asyncio.sleep(0)
    while monotonic() < end:
        await _handled(Pilot(app))
        is_working = _is_working()  # before the rest: a thread that ends now has added a callback by then
        if not _update(app) and not asyncio.get_running_loop()._ready:  # type: ignore[attr-defined]
            break
        await asyncio.sleep(0)
    if is_working or _has_quick_timer(app):
        await wait_for_idle(min_sleep, max_sleep)


@pytest.fixture(autouse=True, scope="package")
def no_invisible_work() -> Iterator[None]:
    """Save work in every headless app."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", _parse_once)
        for widget in (Input, TextArea):
            patch.setattr(widget.cursor_blink, "_default", False)  # a picture would show it or not
        patch.setattr(RuleSet, "__hash__", object.__hash__)  # the same hash, computed in C
        patch.setattr(Compositor, "render_update", _skip_invisible)
        patch.setattr(Driver, "send_message", _send_as_terminal)
        patch.setattr(Pilot, "_wait_for_screen", _handled)
        patch.setattr(textual.app, "wait_for_idle", _idle)
        patch.setattr(textual.pilot, "wait_for_idle", _idle)
        yield


_composed: WeakKeyDictionary[App[Any], tuple[ref[Screen[Any]] | None, Sequence[Strip]]] = WeakKeyDictionary()
"""What the terminals of the apps display, and the screen that it shows."""
_outdated: WeakSet[App[Any]] = WeakSet()
"""The apps that have painted since."""


def compose_strips(app: App[Any]) -> Sequence[Strip]:
    """Compose the screen and return its lines with their styles, as a terminal would display them.

    While the layout that follows the removal of a widget is still to come, a terminal displays the previous frame.
    """
    screen, compositor = app.screen, app.screen._compositor
    shown, strips = _composed.get(app, (None, ()))
    if shown is not None and shown() is screen and len(strips) == app.size.height and app not in _outdated:
        return strips
    if shown is None or all(widget.is_attached for widget in compositor.visible_widgets):
        visible_screen_stack.set(app._background_screens)  # a dialog draws them behind itself
        strips = compositor.render_strips(app.size)
        _composed[app] = ref(screen), strips
        _outdated.discard(app)
    return strips


def compose_frame(app: App[Any]) -> Sequence[str]:
    """Compose the screen and return the text of its lines."""
    return ["".join(segment.text for segment in strip) for strip in compose_strips(app)]


def compose_at_end(app: App[Any]) -> None:
    """Compose the screen if the test never read it, so that the test fails if the screen can't be drawn."""
    if app not in _composed:
        compose_strips(app)
