"""The base classes of dialogs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import ClassVar, Final, TypeVar

from textual import on
from textual.app import ComposeResult, ScreenStackError
from textual.await_complete import AwaitComplete
from textual.containers import Vertical
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import Worker

from pegboard.tui.commands import as_word, keys_of
from pegboard.tui.widgets.filter_line import FilterLine
from pegboard.tui.widgets.keys_line import KeysLine
from pegboard.tui.widgets.long_text import LongText
from pegboard.tui.widgets.mouse_guard import MouseGuard
from pegboard.tui.widgets.pick_list import PickList

ResultT = TypeVar("ResultT")

CHANGED_ELSEWHERE: Final = "Another program has changed it in the meantime. Look at it, then try again."
_FOLLOW_SECONDS: Final = 1.0
"""Interval at which a list is compared with what other programs have changed."""
_BETWEEN_HINTS = " · "
_ENTER = "enter "
_COMMAND_ID = re.compile(r"\{([a-z_]+\.[a-z_]+)\}")
_MOST_STACKED = 12
"""Screens on top of each other. Textual draws each one within the drawing of the one above, which has a limit."""


class Overlay(MouseGuard[ResultT], ModalScreen[ResultT]):
    """A modal screen that closes once.

    Textual's `dismiss` closes the topmost screen, whichever that is: of two quick clicks, the second would close the
    screen below, and end the app with an error where that is a page.
    """

    def dismiss(self, result: ResultT | None = None) -> AwaitComplete:
        """Close the screen if it is the topmost one."""
        return super().dismiss(result) if is_topmost(self) else AwaitComplete()

    def action_press(self, key: str) -> None:
        """Press the key of a hint that was clicked."""
        # From the app: a key that the frame sends doesn't bubble past it, and would not reach the dialog's commands.
        self.app.call_later(self.app.simulate_key, key)


class Dialog(Overlay[ResultT]):
    """A framed box over the page. Subclasses implement `compose_body`, and the styles of `#box` say how large it is.

    A key or click that is repeated while its dialog opens asks for the dialog again; only the first one stays.

    Args:
        title: Title of the frame; plain text.
        subtitle: Text at the lower edge of the frame; plain text or hints, see `key_hints`.
    """

    HAS_FOOTER: ClassVar[bool] = True
    """Whether the last line of the box shows the keys."""
    IS_OPENED_BY_USER: ClassVar[bool] = True
    """Whether a key or click opens it; the next question of a server may look like the one before."""

    DEFAULT_CSS = """
    Dialog {
        align: center middle;
        background: $background 60%;
        & > #box {
            max-width: 94%; max-height: 90%; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            border-subtitle-color: $text-muted;
        }
        /* Buttons at the bottom, above the keys; the rest of a dialog that is longer than the terminal scrolls. */
        #foot { dock: bottom; height: auto; margin: 1 0; align-horizontal: right; }
        #foot Horizontal { height: 1; align-horizontal: right; }
        & > ToastRack { dock: top; align: right top; margin: 0; } /* buttons and keys are at the bottom */
    }
    """

    def __init__(self, title: str = "", subtitle: str = "") -> None:
        super().__init__()
        self.frame = (Content(title), Content(subtitle))
        """Title and subtitle of the frame."""

    def on_mount(self) -> None:
        """Close if the same dialog is open right below, or too many others are."""
        stack = self.app.screen_stack
        below = stack[stack.index(self) - 1] if self in stack else None
        is_same = isinstance(below, Dialog) and type(below) is type(self) and below.frame == self.frame
        if is_same and self.IS_OPENED_BY_USER:
            self.dismiss(None)
        elif len(stack) > _MOST_STACKED:
            self.dismiss(None)
            self.app.notify("Close some dialogs first.", severity="warning")

    def compose(self) -> ComposeResult:
        """Compose the frame, the body and the footer."""
        with Vertical(id="box") as box:
            self._show_frame(box)
            yield from self.compose_body()
            if self.HAS_FOOTER:
                yield KeysLine()

    def set_frame(self, title: str, subtitle: str) -> None:
        """Replace title and subtitle, both plain text."""
        self.frame = (Content(title), Content(subtitle))
        self._show_frame(self.query_one("#box"))

    def _show_frame(self, box: Widget) -> None:
        box.border_title, box.border_subtitle = self.frame[0], key_hints(self.frame[1].plain, self.hinted)

    @property
    def hinted(self) -> Iterable[DOMNode]:
        """The screen and widgets whose commands the hints at the edge name."""
        return (self,)

    def compose_body(self) -> ComposeResult:
        """Compose the content of the frame."""
        return ()

    def action_close(self) -> None:
        """Close without a result."""
        self.dismiss(None)


class ListDialog(Dialog[ResultT]):
    """A dialog with a list and a preview of its selected line.

    Args:
        title: Title of the frame; plain text.
        subtitle: Text at the lower edge of the frame; plain text.
        pick_list: The list.
    """

    AUTO_FOCUS = "PickList"
    FILTER_HINT: ClassVar[str] = "type to filter"
    """Text of the empty filter line; empty to omit the line."""
    HAS_PREVIEW: ClassVar[bool] = True
    """Whether the list shares the box with a preview, below the line about the selected row."""

    DEFAULT_CSS = """
    ListDialog {
        & > #box {
            width: 90; height: 24;
            #about { height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
            #preview { height: 1fr; padding: 0 1; }
        }
    }
    """

    def __init__(self, title: str = "", subtitle: str = "", *, pick_list: PickList | None = None) -> None:
        super().__init__(title, subtitle)
        # Kept as attributes: results of workers may arrive while the screen is unmounted and queries fail.
        self.list = pick_list or PickList()
        self.filter_line = FilterLine(self.FILTER_HINT)
        self._about = Static(id="about")
        self._text = Static(id="text")
        self._preview = LongText(self._text, id="preview")

    def follow(self, read: Callable[[], Worker[None]]) -> None:
        """Read the list again regularly while the dialog is the topmost one: other programs may change what it shows.

        Args:
            read: Starts to read it; not called while it is still being read.
        """
        last: Worker[None] | None = None

        def read_again() -> None:
            nonlocal last
            if is_topmost(self) and (last is None or last.is_finished):
                last = read()

        self.set_interval(_FOLLOW_SECONDS, read_again)

    @property
    def hinted(self) -> Iterable[DOMNode]:
        """The dialog and its list."""
        return (self, self.list)

    def compose_body(self) -> ComposeResult:
        """Compose the filter, the list and the preview."""
        yield from self.compose_list()
        yield self._about
        if self.HAS_PREVIEW:
            yield self._preview

    def compose_list(self) -> ComposeResult:
        """Compose the filter and the list."""
        if self.FILTER_HINT:
            yield self.filter_line
        yield self.list

    def show_about(self, about: Content) -> None:
        """Show the line about the selected row."""
        self._about.update(about, layout=False)

    def show_preview(self, about: Content, text: Content, *, at_end: bool = False) -> None:
        """Show the preview of the selected row.

        Args:
            about: Its heading.
            text: Its text.
            at_end: Whether to show the end of the text rather than its beginning.
        """
        self._about.update(about)
        self._text.update(text)
        scroll = self._preview.scroll_end if at_end else self._preview.scroll_home
        scroll(animate=False)

    def describe_found(self, event: PickList.Filtered) -> str:
        """Return how many lines match the filter."""
        return f"{event.found:,} of {event.total:,}"

    @on(PickList.Filtered)
    def _show_filter(self, event: PickList.Filtered) -> None:
        event.stop()
        self.filter_line.show(event.query, self.describe_found(event))


def is_topmost(screen: Screen[ResultT]) -> bool:
    """Return whether a screen receives keys and clicks."""
    try:
        return screen.app.screen is screen
    except ScreenStackError:
        return False


def key_hints(text: str, owners: Iterable[DOMNode]) -> Content:
    """Return the hints at the lower edge of a frame; a click on one presses its key.

    Args:
        text: Hints such as "{definition.copy} copies · enter accepts": an id in braces is replaced by the key of its
            command; a hint whose command has no key is omitted.
        owners: The widgets that declare these commands.
    """
    hints = [_key_hint(hint, owners) for hint in text.split(_BETWEEN_HINTS)]
    return Content(_BETWEEN_HINTS).join(hint for hint in hints if hint is not None)


def _key_hint(text: str, owners: Iterable[DOMNode]) -> Content | None:
    if text.startswith(_ENTER):
        return _clickable(text, "enter")
    ids = _COMMAND_ID.findall(text)
    keys = {one: key for one in ids for owner in owners if (key := _hinted_key(owner, one))}
    if len(keys) < len(ids):
        return None
    shown = _COMMAND_ID.sub(lambda match: as_word(keys[match[1]]), text)
    return _clickable(shown, keys[ids[0]]) if len(ids) == 1 else Content(shown)


def _hinted_key(owner: DOMNode, command_id: str) -> str:
    """Return the first key of a command, or escape if that is one of its keys."""
    keys = keys_of(owner, command_id)
    return "escape" if "escape" in keys else next(iter(keys), "")


def _clickable(text: str, key: str) -> Content:
    return Content.styled(text, Style.from_meta({"@click": f"screen.press({key!r})"}))
