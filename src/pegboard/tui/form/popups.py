"""Popup lists next to an editor, from which users pick one or several entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import NULL_REGION, Region
from textual.getters import query_one
from textual.screen import Screen
from textual.widgets import Static

from pegboard.data.unicode import beginning
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.dialog import Overlay, key_hints
from pegboard.tui.widgets.pick_list import PickLine, PickList

ResultT = TypeVar("ResultT")
"""Result of a popup."""

_MOST_LINES = 12
_NARROWEST, _WIDEST = 36, 100
_LONGEST_LABEL = 300
_EDGES = 3
"""Lines of the box besides the list: its border and the filter."""


def label(text: str) -> str:
    """Return an untrusted text cleaned and shortened for a line of a list."""
    return clean_line(beginning(text, _LONGEST_LABEL))


class Anchor(Protocol):
    """Widget next to which a popup opens."""

    @property
    def region(self) -> Region:
        """Its region on the screen; empty while it isn't displayed."""

    @property
    def screen(self) -> Screen[Any]:
        """Its screen."""


class Popup(Overlay[ResultT]):
    """List to pick from, next to the widget that opened it; typing filters it.

    Args:
        beside: The widget that opened it.
        title: Title of the box.
        hint: Keys shown at the bottom of the box.
    """

    AUTO_FOCUS = "PickList"

    DEFAULT_CSS = """
    Popup {
        background: transparent;
        & > #box {
            position: absolute; height: auto; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            border-subtitle-color: $text-muted;
            #sought { height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        }
    }
    """

    list = query_one(PickList)

    def __init__(self, beside: Anchor, title: str, hint: str) -> None:
        super().__init__()
        self._beside = beside
        self.region_beside = NULL_REGION
        """Region of the widget that opened it; the last one while that isn't displayed."""
        self._title = title
        self._hint = hint
        self._wanted = 0

    def compose(self) -> ComposeResult:
        """Compose the filter and the list."""
        with Vertical(id="box") as box:
            box.border_title = Content(self._title)
            pick_list = self.make_list()
            box.border_subtitle = key_hints(self._hint, (self, pick_list))
            yield Static(id="sought", markup=False)
            yield pick_list

    def make_list(self) -> PickList:
        """Return a new list."""
        return PickList()

    def show(self, lines: Sequence[PickLine], marked: int = 0, *, sought: str = "") -> None:
        """Show lines, in a box that is as high as they need and the screen allows."""
        self._wanted = max(self._wanted, len(lines))
        self.place_box()
        self.list.show(lines, marked, sought=sought)

    def on_mount(self) -> None:
        """Follow the widget when the page below is laid out again."""
        self._beside.screen.screen_layout_refresh_signal.subscribe(self, lambda _: self.place_box())

    def on_resize(self) -> None:
        """Keep the box on the screen."""
        self.place_box()

    def on_click(self, event: events.Click) -> None:
        """Close on a click outside the box."""
        if event.widget is self:
            self.close()

    def close(self) -> None:
        """Close without a result."""
        self.dismiss(None)

    def action_close(self) -> None:
        """Close without a result."""
        self.close()

    @on(PickList.Filtered)
    def _show_filter(self, event: PickList.Filtered) -> None:
        event.stop()
        if not event.query:
            text = Content(f"type to filter · {event.total:,}")
        else:
            text = Content.assemble(
                (clean_line(event.query), "$foreground bold reverse" if event.renews else "$foreground bold"),
                ("▏", "$text-primary"),
                f" {event.found:,} of {event.total:,}",
            )
        self.query_one("#sought", Static).update(text, layout=False)

    def place_box(self) -> None:
        """Place the box below the widget that opened it, or above if more lines are free there."""
        self.region_beside = self._beside.region or self.region_beside
        screen, beside = self.size, self.region_beside
        box = self.query_one("#box", Vertical)
        width = min(max(beside.width, _NARROWEST), _WIDEST, screen.width)
        wanted = min(max(self._wanted, 1), _MOST_LINES) + _EDGES
        below, above = screen.height - beside.bottom, beside.y
        if wanted <= below or below >= above:
            height = min(wanted, max(below, _EDGES + 3), screen.height)
            y = min(beside.bottom, screen.height - height)
        else:
            height = min(wanted, above)
            y = above - height
        box.styles.width, box.styles.height = width, height
        box.styles.offset = (max(0, min(beside.x, screen.width - width)), max(0, y))


class PickOne(Popup[int | None]):
    """List that closes with the index of the chosen line, or None.

    Args:
        beside: The widget that opened it.
        title: Title of the box.
        lines: The lines to pick from.
        marked: Index of the line that is selected at first.
        sought: Initial filter.
    """

    PAGE = "Choices"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("choice.close", "escape", "close", "Close", "Close the list without a change."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(
        self, beside: Anchor, title: str, lines: Sequence[PickLine], marked: int = 0, sought: str = ""
    ) -> None:
        super().__init__(beside, title, "{pick.choose} chooses · {choice.close} closes")
        self._lines = lines
        self._marked = marked
        self._sought = sought

    def on_mount(self) -> None:
        """Show the lines."""
        self.show(self._lines, self._marked, sought=self._sought)

    @on(PickList.Chosen)
    def _choose(self, event: PickList.Chosen) -> None:
        event.stop()
        self.dismiss(event.index)


class PickSeveral(Popup[None]):
    """List whose lines can be checked off; every change takes effect immediately.

    Args:
        beside: The widget that opened it.
        title: Title of the box.
        lines: The lines to tick.
        sign: Return the checkbox of a line, given its index.
        change: Called with the index of a line and 0 to select or deselect it, 1 to add it again, -1 to remove it once.
        twice: Whether a line can be picked more than once.
        sought: Initial filter.
    """

    PAGE = "Several choices"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("several.toggle", "space", "change(0)", "Select", "Select or deselect the highlighted line."),
        Command("several.more", "plus", "change(1)", "Add again", "Add the highlighted line once more."),
        Command("several.less", "minus", "change(-1)", "Remove one", "Remove the highlighted line once."),
        Command("several.close", "escape", "close", "Close", "Close the list and keep the selection."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(
        self,
        beside: Anchor,
        title: str,
        lines: Sequence[PickLine],
        *,
        sign: Callable[[int], str],
        change: Callable[[int, int], None],
        twice: bool,
        sought: str = "",
    ) -> None:
        more = " · {several.more} more · {several.less} less" if twice else ""
        super().__init__(beside, title, f"{{several.toggle}} selects{more} · {{several.close}} closes")
        self._lines = lines
        self._sign = sign
        self._change = change
        self._twice = twice
        self._sought = sought

    def make_list(self) -> PickList:
        """Return a new list."""
        return PickList(sign=self._sign, own_keys=" +-" if self._twice else " ")

    def on_mount(self) -> None:
        """Show the lines."""
        self.show(self._lines, sought=self._sought)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable adding a line again where the schema allows duplicates."""
        return self._twice or action != "change" or parameters == (0,)

    def action_change(self, by: int) -> None:
        """Change the picks of the highlighted line."""
        if self.list.marked is not None:
            self._change_line(self.list.marked, by)

    @on(PickList.Chosen)
    def _tick(self, event: PickList.Chosen) -> None:
        event.stop()
        self._change_line(event.index, 0)

    def _change_line(self, index: int, by: int) -> None:
        self._change(index, by)
        # Text that is typed now looks for another line.
        self.list.renews = bool(self.list.sought)
        self.list.refresh()
