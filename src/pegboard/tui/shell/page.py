"""The base class of the pages."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.reactive import Reactive
from textual.widget import Widget

from pegboard.tui.shell.too_small import is_too_small
from pegboard.tui.widgets.mouse_guard import MouseGuard


class PageScreen(MouseGuard[None]):
    """A page of the app, with cheap focus changes."""

    ALLOW_IN_MAXIMIZED_VIEW = "HeaderLine, KeysLine"

    ESCAPE_TO_MINIMIZE = False  # before commands of the same key, such as the one that cancels a call

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """Textual's attribute without `repaint`, which would repaint the whole screen with every focus change."""

    _before_result: Widget | None = None
    """Widget that had the focus before the result."""

    _before_small: Widget | None = None
    """Widget that had the focus before the terminal became too small for the page."""

    _is_small = False
    """Whether the terminal is too small for the page."""

    def __init__(self) -> None:
        super().__init__()
        # The styles of a new screen are up to date. Unless it says so, Textual parses the whole stylesheet twice.
        self._css_update_count = self.app._css_update_count  # noqa: SLF001

    def on_resize(self, event: events.Resize) -> None:
        """Return the focus that was lost while the terminal was too small for the page."""
        was_small, self._is_small = self._is_small, is_too_small(event.size)
        if self._is_small:
            self._before_small = self.focused or self._before_small
        elif was_small:
            self._restore_focus()

    def _restore_focus(self) -> None:
        before, self._before_small = self._before_small, None
        if before is not None and before.is_attached and before.display and before.focusable:  # removed ones are hidden
            self.set_focus(before, scroll_visible=False)
            return
        if before is None:  # the terminal was too small from the start
            self._update_auto_focus()
        if self.focused is None:
            self.focus_work()

    def _update_auto_focus(self) -> None:
        """Focus a widget of a page without focus, but not one that is hidden as the terminal is too small."""
        if not is_too_small(self.app.size):
            super()._update_auto_focus()

    @property
    def panes(self) -> Sequence[Widget]:
        """Panes that can be maximized."""
        return ()

    def action_maximise(self) -> None:
        """Maximize the focused pane, or restore it."""
        pane = self.pane_of(self.focused)
        if self.maximized is not None or pane is None:
            self.minimize()
        else:
            self.maximized = pane

    def action_result(self) -> None:
        """Focus the result; if it has the focus, return to where the focus was before."""
        if not self.has_result_focus:
            before = self.focused
            if self.maximized is not None:
                self.minimize()
            if self.focus_result():
                self._before_result = before
        elif self._before_result is not None and self._before_result in self.focus_chain:
            self.set_focus(self._before_result)
        else:
            self.focus_work()

    @property
    def has_result_focus(self) -> bool:
        """Whether the focus is in the result."""
        return False

    def focus_result(self) -> bool:
        """Focus the result; return False if there is none."""
        return False

    def focus_work(self) -> None:
        """Focus what the user works in."""

    def action_back(self) -> None:
        """Restore a maximized pane, or go back to where the page begins."""
        if self.maximized is not None:
            self.minimize()
        else:
            self.focus_start()

    def focus_start(self) -> None:
        """Focus where the page begins: what the user works in."""
        self.focus_work()

    def pane_of(self, widget: Widget | None) -> Widget | None:
        """Return the pane that contains a widget, or None."""
        while widget is not None and widget not in self.panes:
            widget = widget.parent if isinstance(widget.parent, Widget) else None
        return widget

    def _compositor_refresh(self) -> None:
        """Render a frame, but not during a batch: Textual would discard it, and with it what needs painting."""
        if not self.app._batch_count:  # noqa: SLF001 - nothing public says whether a frame would be shown
            super()._compositor_refresh()

    def _update_focus_styles(self, focused: Widget | None = None, blurred: Widget | None = None) -> None:
        """Update the styles of the panes that gain or lose the focus.

        Textual also updates all their descendants. No style of Pegboard depends on that, and a form has hundreds of
        widgets.
        """
        moved = [widget for widget in (focused, blurred) if widget is not None]
        panes = {node for widget in moved for node in widget.ancestors_with_self if node._has_focus_within}  # noqa: SLF001
        self.app.stylesheet.update_nodes(panes, animate=True)
