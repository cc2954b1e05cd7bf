"""The list of completions at the cursor of the script editor."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.geometry import Offset
from textual.message import Message
from textual.widget import Widget

from pegboard.tui.script.completion import Suggestion, WordCompletion

_LINES = 8
_WIDEST = 70


class CompletionPopup(Widget, can_focus=False):
    """Suggestions below the cursor, one of them selected. The editor passes it the keys."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"completion-popup--marked", "completion-popup--note"}
    DEFAULT_CSS = """
    CompletionPopup {
        overlay: screen;
        constrain: none inflect;
        width: auto; height: auto;
        display: none;
        background: $panel;
        color: $foreground;
        & > .completion-popup--marked {
            color: $block-cursor-foreground; background: $block-cursor-background;
            text-style: $block-cursor-text-style;
        }
        & > .completion-popup--note { color: $text-muted; }
    }
    """

    class Accepted(Message):
        """A suggestion was clicked."""

    def __init__(self) -> None:
        super().__init__()
        self.completion: WordCompletion | None = None
        """The suggestions, or None while it is closed."""
        self._marked = 0
        self.is_moved = False
        """Whether the user has moved the selection."""

    def open(self, completion: WordCompletion, cursor: Offset) -> None:
        """Show suggestions below the cursor.

        Args:
            completion: The suggestions.
            cursor: Position of the cursor on the screen.
        """
        self.completion, self._marked, self.is_moved = completion, 0, False
        self.absolute_offset = Offset(max(0, cursor.x - len(completion.word) - 2), cursor.y + 1)
        self.display = True
        self.refresh(layout=True)

    def close(self) -> None:
        """Hide the list."""
        self.completion = None
        self.display = False

    def move(self, by: int) -> None:
        """Move the selection, from the last suggestion to the first."""
        if self.completion is not None:
            self._marked = (self._marked + by) % len(self.completion.suggestions)
            self.is_moved = True
            self.refresh()

    @property
    def marked(self) -> Suggestion | None:
        """The selected suggestion."""
        return self.completion.suggestions[self._marked] if self.completion is not None else None

    @property
    def _first(self) -> int:
        return max(0, self._marked - _LINES + 1)

    def render(self) -> Content:
        """Render the visible suggestions."""
        if self.completion is None:
            return Content("")
        shown = self.completion.suggestions[self._first : self._first + _LINES]
        names = max(cell_len(one.label) for one in shown)
        width = min(_WIDEST, max(names + 2 + cell_len(one.note) for one in shown) + 4, self.app.size.width - 1)
        marked = self.get_visual_style("completion-popup--marked")
        lines = []
        for index, one in enumerate(shown, self._first):
            sign = "▸ " if index == self._marked else "  "
            line = Content(f"{sign}{one.label}".ljust(min(names, width) + 4))
            note = Content.styled(one.note, "" if index == self._marked else "$text-muted")
            line = (line + note).truncate(width, ellipsis=True, pad=True)
            lines.append(line.stylize(marked) if index == self._marked else line)
        return Content("\n").join(lines)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Accept the clicked suggestion; the editor keeps the focus."""
        event.stop()
        if self.completion is not None and self._first + event.y < len(self.completion.suggestions):
            self._marked = self._first + event.y
            self.post_message(self.Accepted())
