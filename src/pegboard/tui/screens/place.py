"""What the places of the app have in common."""

from __future__ import annotations

from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget


class PlaceScreen(Screen[None]):
    """A place of the app, in which the focus moves at little cost."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """Textual's own, which draws the whole screen again whenever the focus moves."""

    def _update_focus_styles(self, focused: Widget | None = None, blurred: Widget | None = None) -> None:
        """Gives the panes that the focus comes into or leaves their other look.

        Textual does so too, with everything that is in them; nothing in ours looks otherwise for that, and a form has
        hundreds of parts.
        """
        moved = [widget for widget in (focused, blurred) if widget is not None]
        panes = {node for widget in moved for node in widget.ancestors_with_self if node._has_focus_within}  # noqa: SLF001
        self.app.stylesheet.update_nodes(panes, animate=True)
