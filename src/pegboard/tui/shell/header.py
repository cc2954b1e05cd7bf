"""The header: the pages with their counts, pending approvals and problems."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from pegboard.results.sizes import count
from pegboard.tui.commands import key_of
from pegboard.tui.state.app_state import AppState
from pegboard.tui.state.health_checks import HealthState
from pegboard.tui.state.remembered import PAGES
from pegboard.tui.state.tool_scan import ToolScan

if TYPE_CHECKING:
    from pegboard.models import Problem

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
        #approvals, #brake { display: none; color: $text-warning; text-style: bold; text-wrap: nowrap; }
        #packs {
            width: 1fr; padding: 0 1; color: $text-muted; text-align: right;
            text-wrap: nowrap; text-overflow: ellipsis;
            &.-without-space { padding: 0; visibility: hidden; }
        }
        #problems.-error { color: $text-error; text-style: bold; }
        #problems.-warning { color: $text-warning; }
        #problems.-none { color: $text-success; }
        #unrecorded { color: $text-error; text-style: bold; display: none; }
        .-here { background: $surface; }
    }
    Screen.-narrow HeaderLine #name { width: 3; text-overflow: clip; }
    HeaderLine.-dense HeaderItem { padding: 0 1 0 0; }
    """

    def __init__(self, mode: str) -> None:
        super().__init__()
        self._mode = mode
        self._badges: dict[str, tuple[str, str]] = {}
        """Count or state of each page, with its style."""
        self._will_fit = False

    def compose(self) -> ComposeResult:
        """Compose the name, the pages, the packs and the problems."""
        yield Static("▦ Pegboard", id="name", markup=False)
        for mode in PAGES:
            yield HeaderItem(f"app.mode('{mode}')", id=mode).set_class(mode == self._mode, "-here")
        yield HeaderItem("app.to_asking", id="approvals")
        yield HeaderItem("app.ask_to_resume_agents", id="brake")
        yield Static(id="packs")
        yield HeaderItem("app.show_problems", id="unrecorded")
        yield HeaderItem("app.show_problems", id="problems")

    def on_mount(self) -> None:
        """Update the header whenever a count changes."""
        self.watch(self.app, "tool_scan", self._show_scan)
        self.watch(self.app, "health", self._show_health)
        self.watch(self.app, "requests", self._show_chat)
        self.watch(self.app, "agent_calls", self._fit)
        self.watch(self.app, "brake", self._fit)
        self.watch(self.app, "asking", self._show_chat)
        self.watch(self.app, "scripting", self._show_script)
        self.watch(self.app, "unrecorded", self._fit)

    def on_resize(self) -> None:
        """Fit the texts to the width."""
        self._fit()

    def _show_scan(self, scan: ToolScan) -> None:
        self._show_badge("tools", "…" if scan.scanning else f"{len(scan.catalogue.entries):,}")
        self._show_health(getattr(self.app, "health", HealthState()))

    def _show_chat(self) -> None:
        waiting: tuple[object, ...] = getattr(self.app, "requests", ())
        if waiting:
            self._show_badge("chat", f"? {len(waiting)}", "$text-warning bold")
        else:
            self._show_badge("chat", "▶" if getattr(self.app, "asking", False) else "", "$text-primary bold")

    def _show_script(self, running: bool) -> None:
        self._show_badge("script", "▶" if running else "", "$text-primary bold")

    def _show_health(self, health: HealthState) -> None:
        app = self.app
        servers = isinstance(app, AppState) and any(pack.has_unusable_server for pack in app.tool_scan.catalogue.packs)
        if health.failing or servers:
            self._show_badge("health", "!", "$text-warning bold")
        elif health.is_complete:
            self._show_badge("health", "✓", "$text-success")
        else:
            self._show_badge("health", "…")

    def _show_badge(self, mode: str, badge: str, style: str = "") -> None:
        self._badges[mode] = (badge, style)
        self._fit()

    # Texts

    def _fit(self) -> None:
        """Show all texts after the current message, once for everything that changes until then."""
        if not self._will_fit:
            self._will_fit = True
            self.call_next(self._fit_now)

    def _fit_now(self) -> None:
        """Show all texts, shortened step by step until they fit."""
        self._will_fit = False
        width = self.app.size.width
        step, texts, left = _Step.FULL, self._texts(_Step.FULL), 0
        for step in _Step:
            texts = self._texts(step)
            gap = 1 if step >= _Step.DENSE else 2
            left = width - _name_width(width, step) - sum(text.cell_length + gap for text in texts.values() if text)
            if left >= 0:
                break
        self.set_class(step >= _Step.DENSE, "-dense")
        self.query_one("#name").display = step < _Step.NO_NAME
        for name, text in texts.items():
            self._show_text(name, text)
        self._show_problem_style()
        self._show_packs(left)

    def _show_text(self, name: str, text: Content) -> None:
        item = self.query_one(f"#{name}", Static)
        if not (isinstance(item.content, Content) and text.is_same(item.content)):
            item.display = bool(text)
            item.update(text, layout=item.content_size.width != text.cell_length)

    def _texts(self, step: _Step) -> dict[str, Content]:
        """Return the texts of a step by the ids of their items."""
        texts = {mode: self._page(mode, step) for mode in PAGES}
        texts["approvals"] = self._approvals(step)
        texts["brake"] = self._brake(is_short=step >= _Step.DENSE)
        unrecorded: Problem | None = getattr(self.app, "unrecorded", None)
        short = step >= _Step.SHORT
        texts["unrecorded"] = Content(("✖ rec" if short else "✖ not recorded") if unrecorded is not None else "")
        texts["problems"] = self._problems(is_short=short)
        return texts

    def _page(self, mode: str, step: _Step) -> Content:
        """Return the key, title and count of a page; the current page is bold."""
        key = key_of(self.app, f"mode.{mode}")
        badge, style = self._badges.get(mode, ("", ""))
        is_here = mode == self._mode
        title = f" {PAGES[mode]}" if is_here or step < _Step.KEYS else ""
        weight = "bold" if is_here else ""
        return Content.assemble((key, "$text-primary"), (title, weight), (f" {badge}" if badge else "", style))

    def _approvals(self, step: _Step) -> Content:
        waiting = getattr(self.app, "awaiting", 0)
        if not waiting:
            return Content()
        key = key_of(self.app, "chat.asking")
        way = f": {key}" if key else ""
        if step >= _Step.SHORT_APPROVALS:
            return Content(f"?{way}")
        if self.app.size.width >= _WIDE and step < _Step.SHORT:
            return Content(f"{waiting:,} {'call awaits' if waiting == 1 else 'calls await'} approval{way}")
        return Content(f"{count(waiting, 'approval')}{way}")

    def _brake(self, *, is_short: bool) -> Content:
        state = getattr(self.app, "brake", "running")
        if state == "running":
            return Content()
        held = sum(question.kind == "paused" for question in getattr(self.app, "agent_calls", ()))
        return Content(f"{'' if is_short else 'agents '}{state}{f': {held:,}' if held else ''}")

    def _problems(self, *, is_short: bool) -> Content:
        """Count every problem that needs an action, including the requirements that are not met."""
        app = self.app
        assert isinstance(app, AppState)
        total = sum(problem.needs_action for problem in app.problems)
        if app.tool_scan.scanning and not total:
            return Content()
        if is_short:
            return Content(f"{self._problem_kind[1]} {total:,}" if total else "✓")
        return Content(f"{self._problem_kind[1]} {count(total, 'problem')}" if total else "✓ no problems")

    @property
    def _problem_kind(self) -> tuple[str, str]:
        """Class and symbol of the worst problem."""
        problems = [problem for problem in getattr(self.app, "problems", ()) if problem.needs_action]
        if any(problem.severity == "error" for problem in problems):
            return "-error", "✖"
        return ("-warning", "!") if problems else ("-none", "✓")

    def _show_problem_style(self) -> None:
        item = self.query_one("#problems", Static)
        kind = self._problem_kind[0]
        for one in ("-error", "-warning", "-none"):
            item.set_class(one == kind, one)

    def _show_packs(self, space: int) -> None:
        app = self.app
        assert isinstance(app, AppState)
        scan = app.tool_scan
        packs = sum(1 for pack in scan.catalogue.packs if pack.entries)
        found = f"{scan.hidden:,} not allowed" if scan.hidden else count(packs, "pack")
        text = Content("looking for tools…" if scan.scanning else found)
        packs_item = self.query_one("#packs", Static)
        packs_item.set_class(text.cell_length + 2 > space, "-without-space")
        packs_item.update(text)


class _Step(IntEnum):
    """Steps of shortening the texts."""

    FULL = 0
    SHORT = 1
    """Problems as a number."""
    NO_NAME = 2
    DENSE = 3
    """One column between the items."""
    SHORT_APPROVALS = 4
    KEYS = 5
    """Other pages without their titles."""


def _name_width(width: int, step: _Step) -> int:
    return 0 if step >= _Step.NO_NAME else len(" ▦ Pegboard ") if width >= _WIDE else 3
