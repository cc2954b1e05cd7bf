"""What the places of the app have in common."""

from __future__ import annotations

from collections.abc import Sequence

from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget


class PageScreen(Screen[None]):
    """A place of the app, in which the focus moves at little cost."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """Textual's own, which draws the whole screen again whenever the focus moves."""

    @property
    def panes(self) -> Sequence[Widget]:
        """What may have the whole screen."""
        return ()

    def action_maximise(self) -> None:
        """Gives the focused pane the whole screen, or gives it back."""
        pane = self.pane_of(self.focused)
        if self.maximized is not None or pane is None:
            self.minimize()
        else:
            self.maximized = pane

    def pane_of(self, widget: Widget | None) -> Widget | None:
        """Gives the pane that something is in."""
        while widget is not None and widget not in self.panes:
            widget = widget.parent if isinstance(widget.parent, Widget) else None
        return widget

    def _update_focus_styles(self, focused: Widget | None = None, blurred: Widget | None = None) -> None:
        """Gives the panes that the focus comes into or leaves their other look.

        Textual does so too, with everything that is in them; nothing in ours looks otherwise for that, and a form has
        hundreds of parts.
        """
        moved = [widget for widget in (focused, blurred) if widget is not None]
        panes = {node for widget in moved for node in widget.ancestors_with_self if node._has_focus_within}  # noqa: SLF001
        self.app.stylesheet.update_nodes(panes, animate=True)
