"""The top line: the name, the places with their counts, and how many problems there are."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from pegboard.models import Problem
from pegboard.tui.commands import key_of
from pegboard.tui.state.health_checks import HealthState
from pegboard.tui.state.tool_scan import ToolScan

_WIDE = 100
"""Columns from which the header says in words what awaits approval."""


class HeaderItem(Static):
    """A part of the header that a click runs an action of."""

    DEFAULT_CSS = """
    HeaderItem {
        width: auto;
        padding: 0 1;
        &:hover { background: $block-hover-background; pointer: pointer; }
    }
    """

    def __init__(self, action: str, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._action = action

    async def on_click(self) -> None:
        """Does what the part names."""
        await self.run_action(self._action)


class HeaderLine(Horizontal):
    """One line that says where one is and whether all is well.

    Args:
        mode: The place that it stands over, as the app calls it.
    """

    SCOPED_CSS = False  # the screen wears the class
    DEFAULT_CSS = """
    HeaderLine {
        dock: top;
        height: 1;
        background: $panel;
        #name { width: auto; padding: 0 1; text-style: bold; color: $text-primary; text-wrap: nowrap; }
        #approvals { display: none; color: $text-warning; text-style: bold; text-wrap: nowrap; }
        #packs {
            width: 1fr; padding: 0 1; color: $text-muted; text-align: right;
            text-wrap: nowrap; text-overflow: ellipsis;
        }
        #problems.-error { color: $text-error; text-style: bold; }
        #problems.-warning { color: $text-warning; }
        #problems.-none { color: $text-success; }
        #unrecorded { color: $text-error; text-style: bold; display: none; }
        .-here { background: $surface; }
    }
    Screen.-narrow HeaderLine #name { width: 3; text-overflow: clip; }
    """

    def __init__(self, mode: str) -> None:
        super().__init__()
        self._mode = mode

    def compose(self) -> ComposeResult:
        """Name, places, packs, problems."""
        yield Static("▦ Pegboard", id="name", markup=False)
        for mode in ("tools", "chat", "script", "health"):
            yield HeaderItem(f"app.mode('{mode}')", id=mode).set_class(mode == self._mode, "-here")
        yield HeaderItem("app.to_asking", id="approvals")
        yield Static(id="packs")
        yield HeaderItem("app.show_problems", id="unrecorded")
        yield HeaderItem("app.show_problems", id="problems")

    def on_mount(self) -> None:
        """Redraws whenever a count changes."""
        self.watch(self.app, "tool_scan", self._show_wall)
        self.watch(self.app, "health", self._show_known)
        self.watch(self.app, "requests", self._show_chat)
        self.watch(self.app, "asking", self._show_chat)
        self.watch(self.app, "scripting", self._show_script)
        self.watch(self.app, "unrecorded", self._show_unrecorded)

    def _show_unrecorded(self, unrecorded: Problem | None) -> None:
        marker = self.query_one("#unrecorded", Static)
        marker.display = unrecorded is not None
        marker.update(Content("✖ not recorded"))

    def on_resize(self) -> None:
        """Fit the count of calls awaiting approval to the width."""
        self._show_chat()

    def _show_wall(self, wall: ToolScan) -> None:
        tools, packs = wall.catalogue.entries, sum(1 for pack in wall.catalogue.packs if pack.entries)
        self._show_mode("tools", "Tools", "…" if wall.scanning else f"{len(tools):,}")
        found = f"{wall.hidden:,} not allowed" if wall.hidden else plural(packs, "pack")
        found = "looking for tools…" if wall.scanning else found
        self.query_one("#packs", Static).update(Content(found))
        problems = self.query_one("#problems", Static)
        count = len(wall.problems)
        kind = "-error" if wall.errors else "-warning" if count else "-none"
        problems.set_classes(kind)
        symbol = {"-error": "✖", "-warning": "!", "-none": "✓"}[kind]
        problems.update(Content(f"{symbol} {plural(count, 'problem')}" if count else "✓ no problems"))
        problems.display = not wall.scanning or bool(count)

    def _show_chat(self) -> None:
        waiting: tuple[object, ...] = getattr(self.app, "requests", ())
        badge = self.query_one("#approvals", Static)
        badge.display = bool(waiting)
        self.query_one("#packs").display = not waiting or self.app.size.width >= _WIDE
        if waiting:
            awaits = "call awaits" if len(waiting) == 1 else "calls await"
            what = (
                f"{len(waiting):,} {awaits} approval"
                if self.app.size.width >= _WIDE
                else plural(len(waiting), "approval")
            )
            badge.update(Content(f"{what}: {key_of(self.app, 'chat.asking')}"))
            self._show_mode("chat", "Chat", f"? {len(waiting)}", "$text-warning bold")
        else:
            self._show_mode("chat", "Chat", "▶" if getattr(self.app, "asking", False) else "", "$text-primary bold")

    def _show_script(self, running: bool) -> None:
        self._show_mode("script", "Script", "▶" if running else "", "$text-primary bold")

    def _show_known(self, known: HealthState) -> None:
        if known.unwell:
            self._show_mode("health", "Health", f"{known.unwell:,}", "$text-warning bold")
        elif known.is_complete:
            self._show_mode("health", "Health", "✓", "$text-success")
        else:
            self._show_mode("health", "Health", "…")

    def _show_mode(self, mode: str, title: str, count: str, style: str = "") -> None:
        """Names a place with its key and its count; the one where one is stands out."""
        weight = "bold" if mode == self._mode else ""
        key = key_of(self.app, f"mode.{mode}")
        shown = Content.assemble((key, "$text-primary"), (f" {title}", weight), (f" {count}" if count else "", style))
        item = self.query_one(f"#{mode}", Static)
        item.update(shown, layout=item.content_size.width != shown.cell_length)


def plural(count: int, noun: str) -> str:
    """Gives a count with its noun: `1 pack`, `2 packs`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
