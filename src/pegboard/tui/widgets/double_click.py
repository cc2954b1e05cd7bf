"""Selection of a word by a double click, and of a line by a triple click."""

from __future__ import annotations

import re

from textual import events
from textual.widgets import Input, TextArea
from textual.widgets.input import Selection as InputSelection
from textual.widgets.text_area import Selection as TextSelection

_WORD = re.compile(r"\w+")
_CONNECTED = re.compile(r"(?<![~/.])[~/.]*\w+(?:[-.@:/+~%#?&=]+\w+)*/?")
"""A word, path, address, number or id, without the punctuation around it."""


def word_at(text: str, index: int, word: re.Pattern[str] = _CONNECTED) -> tuple[int, int]:
    """Return the start and end of the word at an index of a text; both are the index if there is none."""
    return next((found.span() for found in word.finditer(text) if found.start() <= index < found.end()), (index, index))


def select_in_field(field: Input | TextArea, event: events.Click) -> None:
    """Select the word under a double click in a text field, or the line under a triple click."""
    column = field.cursor_position if isinstance(field, Input) else field.cursor_location[1]
    text = field.value if isinstance(field, Input) else field.document.get_line(field.cursor_location[0])
    is_whole = event.chain > 2 or (isinstance(field, Input) and field.password)
    start, end = (0, len(text)) if is_whole else word_at(text, column, _WORD)
    if start == end:
        return
    if isinstance(field, Input):
        field.selection = InputSelection(start, end)
    else:
        row = field.cursor_location[0]
        field.selection = TextSelection((row, start), (row, end))
