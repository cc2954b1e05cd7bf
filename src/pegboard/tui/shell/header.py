"""The header: the pages with their counts, pending approvals and problems."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from pegboard.models import Problem
from pegboard.results.sizes import count
from pegboard.tui.commands import key_of
from pegboard.tui.state.app_state import AppState
from pegboard.tui.state.health_checks import HealthState
from pegboard.tui.state.tool_scan import ToolScan

_WIDE = 100
"""Columns from which the header names the calls awaiting approval in full."""


class HeaderItem(Static):
    """A part of the header that runs an action when it is clicked."""

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
        """Run the action."""
        await self.run_action(self._action)


class HeaderLine(Horizontal):
    """The header of a page.

    Args:
        mode: Mode of the page, as registered with the app.
    """

    SCOPED_CSS = False  # the screen has the class
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
        """Compose the name, the pages, the packs and the problems."""
        yield Static("▦ Pegboard", id="name", markup=False)
        for mode in ("tools", "chat", "script", "health"):
            yield HeaderItem(f"app.mode('{mode}')", id=mode).set_class(mode == self._mode, "-here")
        yield HeaderItem("app.to_asking", id="approvals")
        yield Static(id="packs")
        yield HeaderItem("app.show_problems", id="unrecorded")
        yield HeaderItem("app.show_problems", id="problems")

    def on_mount(self) -> None:
        """Update the header whenever a count changes."""
        self.watch(self.app, "tool_scan", self._show_scan)
        self.watch(self.app, "health", self._show_health)
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

    def _show_scan(self, scan: ToolScan) -> None:
        tools, packs = scan.catalogue.entries, sum(1 for pack in scan.catalogue.packs if pack.entries)
        self._show_mode("tools", "Tools", "…" if scan.scanning else f"{len(tools):,}")
        found = f"{scan.hidden:,} not allowed" if scan.hidden else count(packs, "pack")
        found = "looking for tools…" if scan.scanning else found
        self.query_one("#packs", Static).update(Content(found))
        self._show_health(getattr(self.app, "health", HealthState()))

    def _show_problems(self) -> None:
        """Count every problem, including the requirements that are not met."""
        app = self.app
        assert isinstance(app, AppState)
        problems = app.problems
        total = len(problems)
        has_error = any(problem.severity == "error" for problem in problems)
        kind = "-error" if has_error else "-warning" if total else "-none"
        item = self.query_one("#problems", Static)
        item.set_classes(kind)
        symbol = {"-error": "✖", "-warning": "!", "-none": "✓"}[kind]
        item.update(Content(f"{symbol} {count(total, 'problem')}" if total else "✓ no problems"))
        item.display = not app.tool_scan.scanning or bool(total)

    def _show_chat(self) -> None:
        waiting: tuple[object, ...] = getattr(self.app, "requests", ())
        badge = self.query_one("#approvals", Static)
        badge.display = bool(waiting)
        self.query_one("#packs").display = not waiting or self.app.size.width >= _WIDE
        if waiting:
            awaits = "call awaits" if len(waiting) == 1 else "calls await"
            text = (
                f"{len(waiting):,} {awaits} approval"
                if self.app.size.width >= _WIDE
                else count(len(waiting), "approval")
            )
            badge.update(Content(f"{text}: {key_of(self.app, 'chat.asking')}"))
            self._show_mode("chat", "Chat", f"? {len(waiting)}", "$text-warning bold")
        else:
            self._show_mode("chat", "Chat", "▶" if getattr(self.app, "asking", False) else "", "$text-primary bold")

    def _show_script(self, running: bool) -> None:
        self._show_mode("script", "Script", "▶" if running else "", "$text-primary bold")

    def _show_health(self, health: HealthState) -> None:
        self._show_problems()
        app = self.app
        servers = isinstance(app, AppState) and any(pack.has_unusable_server for pack in app.tool_scan.catalogue.packs)
        if health.failing or servers:
            self._show_mode("health", "Health", "!", "$text-warning bold")
        elif health.is_complete:
            self._show_mode("health", "Health", "✓", "$text-success")
        else:
            self._show_mode("health", "Health", "…")

    def _show_mode(self, mode: str, title: str, badge: str, style: str = "") -> None:
        """Show the key, title and count of a page; the current page is bold."""
        weight = "bold" if mode == self._mode else ""
        key = key_of(self.app, f"mode.{mode}")
        shown = Content.assemble((key, "$text-primary"), (f" {title}", weight), (f" {badge}" if badge else "", style))
        item = self.query_one(f"#{mode}", Static)
        item.update(shown, layout=item.content_size.width != shown.cell_length)
