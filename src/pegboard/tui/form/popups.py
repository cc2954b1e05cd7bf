"""Lists that open beside an editor: one of many choices, several of many, an example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.getters import query_one
from textual.widgets import Static

from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.pick_list import PickLine, PickList

Answer = TypeVar("Answer")
"""What a list closes with."""

_MOST_LINES = 12
_NARROWEST, _WIDEST = 36, 100
_LONGEST_LABEL = 300
_EDGES = 3
"""Lines of the box that list nothing: its border and what is typed."""


def label(text: str) -> str:
    """Gives an untrusted text as a line of a list shows it."""
    return clean_line(text[:_LONGEST_LABEL] + ("…" if len(text) > _LONGEST_LABEL else ""))


class Popup(Dialog[Answer]):
    """A list to pick from, beside what asked for it; what is typed filters it.

    Args:
        beside: Where on the screen what asked for it stands.
        title: What is picked.
        hint: What the keys do.
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

    def __init__(self, beside: Region, title: str, hint: str) -> None:
        super().__init__()
        self._beside = beside
        self._title = title
        self._hint = hint
        self._wanted = 0

    def compose(self) -> ComposeResult:
        """What is typed, above the list."""
        with Vertical(id="box") as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content(self._hint)
            yield Static(id="sought", markup=False)
            yield self.make_list()

    def make_list(self) -> PickList:
        """Builds the list."""
        return PickList()

    def show(self, lines: Sequence[PickLine], marked: int = 0, *, sought: str = "") -> None:
        """Lists these lines, in a box that has room for them as far as the screen has."""
        self._wanted = max(self._wanted, len(lines))
        self._place()
        self.list.show(lines, marked, sought=sought)

    def on_resize(self) -> None:
        """Stays on the screen."""
        self._place()

    def on_click(self, event: events.Click) -> None:
        """Closes where something beside the box is clicked."""
        if event.widget is self:
            self.close()

    def close(self) -> None:
        """Leaves everything as it is."""
        self.dismiss(None)

    def action_close(self) -> None:
        """Closes."""
        self.close()

    @on(PickList.Filtered)
    def _filtered(self, event: PickList.Filtered) -> None:
        event.stop()
        if not event.query:
            said = Content(f"type to filter · {event.total:,}")
        else:
            said = Content.assemble(
                (clean_line(event.query), "$foreground bold"),
                ("▏", "$text-primary"),
                f" {event.found:,} of {event.total:,}",
            )
        self.query_one("#sought", Static).update(said, layout=False)

    def _place(self) -> None:
        """Puts the box below what asked for it, or above where there is more room."""
        screen, beside = self.size, self._beside
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
    """Closes with the index of the line that was picked, or None.

    Args:
        beside: Where on the screen what asked for it stands.
        title: What is picked.
        lines: What there is to pick.
        marked: The line that is marked at first.
        sought: What is typed already.
    """

    PAGE = "Choices"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("choice.close", "escape", "close", "Close", "Close the list and keep what was chosen."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(
        self, beside: Region, title: str, lines: Sequence[PickLine], marked: int = 0, sought: str = ""
    ) -> None:
        super().__init__(beside, title, "enter chooses · esc closes")
        self._lines = lines
        self._marked = marked
        self._sought = sought

    def on_mount(self) -> None:
        """Lists what there is."""
        self.show(self._lines, self._marked, sought=self._sought)

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        self.dismiss(event.index)


class PickSeveral(Popup[None]):
    """Ticks lines, each as soon as it is asked for.

    Args:
        beside: Where on the screen what asked for it stands.
        title: What is picked.
        lines: What there is to pick.
        sign: Says how often a line is picked, as it stands before the line.
        change: Called with the index of a line: 0 to tick it or to take the tick away, 1 for once more, -1 for less.
        twice: Whether a line can be picked more than once.
        sought: What is typed already.
    """

    PAGE = "Several choices"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("several.toggle", "space", "change(0)", "Tick", "Pick the marked line, or no longer."),
        Command("several.more", "plus", "change(1)", "Once more", "Pick the marked line once more."),
        Command("several.less", "minus", "change(-1)", "Once less", "Take the line's last pick back."),
        Command("several.close", "escape", "close", "Close", "Close the list; what is ticked stays."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(
        self,
        beside: Region,
        title: str,
        lines: Sequence[PickLine],
        *,
        sign: Callable[[int], str],
        change: Callable[[int, int], None],
        twice: bool,
        sought: str = "",
    ) -> None:
        super().__init__(beside, title, f"space ticks{' · + more · - less' if twice else ''} · esc closes")
        self._lines = lines
        self._sign = sign
        self._change = change
        self._twice = twice
        self._sought = sought

    def make_list(self) -> PickList:
        """Builds the list."""
        return PickList(sign=self._sign, own_keys=" +-" if self._twice else " ")

    def on_mount(self) -> None:
        """Lists what there is."""
        self.show(self._lines, sought=self._sought)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers to pick once more only where that may be."""
        return self._twice or action != "change" or parameters == (0,)

    def action_change(self, by: int) -> None:
        """Picks the marked line, or no longer."""
        if self.list.marked is not None:
            self._change(self.list.marked, by)
            self.list.refresh()

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        self._change(event.index, 0)
        self.list.refresh()
