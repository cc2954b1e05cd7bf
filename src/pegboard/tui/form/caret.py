"""Position of the cursor in an editor, kept while the editor is replaced."""

from __future__ import annotations

from dataclasses import dataclass

from textual.widget import Widget
from textual.widgets import Input, TextArea
from textual.widgets.input import Selection as LineSelection
from textual.widgets.text_area import Selection as BoxSelection


@dataclass(frozen=True)
class Caret:
    """The selection in a text.

    Args:
        text: The text.
        selection: The selection, whose end is the cursor.
    """

    text: str
    selection: LineSelection | BoxSelection

    @classmethod
    def of(cls, editor: Widget | None) -> Caret | None:
        """Return the caret of an editor, or None for another widget."""
        match editor:
            case Input():
                return cls(editor.value, editor.selection)
            case TextArea():
                return cls(editor.text, editor.selection)
        return None

    def restore(self, editor: Widget) -> None:
        """Select the same part of the same text."""
        match editor, self.selection:
            case Input(), LineSelection() if editor.value == self.text:
                editor.selection = self.selection
            case TextArea(), BoxSelection() if editor.text == self.text:
                editor.selection = self.selection
