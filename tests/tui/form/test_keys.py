"""The keys of the form and the result, as terminals send them."""

from __future__ import annotations

import pytest
from textual import events
from textual._xterm_parser import XTermParser
from textual.dom import DOMNode

from pegboard.tui.form import FormPane
from pegboard.tui.form.choices import Choices
from pegboard.tui.form.editors import JsonBox, TextBox, TextLine
from pegboard.tui.form.field_view import FieldView, RowView
from pegboard.tui.form.files import FilePicker
from pegboard.tui.form.multi import MultiChoices
from pegboard.tui.form.popups import PickOne, PickSeveral
from pegboard.tui.form.rows import AddLine, Fold
from pegboard.tui.result import ResultPane
from pegboard.tui.result.error import ErrorView
from pegboard.tui.result.markdown import MarkdownView
from pegboard.tui.result.prompt import ResultPrompt
from pegboard.tui.result.table import TableView
from pegboard.tui.result.tree import TreeView
from pegboard.tui.widgets.pick_list import PickList

AROUND_TEXT: list[type[DOMNode]] = [
    FormPane,
    FieldView,
    JsonBox,
    TextLine,
    TextBox,
    RowView,
    ResultPrompt,
    PickList,
    PickOne,
    FilePicker,
]
"""Widgets into which text is typed, and the commands around them."""
OTHERS: list[type[DOMNode]] = [
    *(AddLine, Fold, Choices, MultiChoices, PickSeveral),
    *(ResultPane, TreeView, TableView, ErrorView, MarkdownView),
]

SENT = {f"ctrl+{chr(96 + code)}": chr(code) for code in range(1, 27)}
"""What xterm and tmux send, by Textual's name of the key. Alt with a letter is not among them: it comes as an escape
and a letter, which is the same as the two keys in sequence."""
SENT |= {character: character for character in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"}
SENT |= {"plus": "+", "minus": "-", "backspace": "\x7f"}
SENT |= {
    "slash": "/",
    "vertical_line": "|",
    "asterisk": "*",
    "space": " ",
    "enter": "\r",
    "tab": "\t",
    "escape": "\x1b",
}
SENT |= {"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F"}
SENT |= {"pageup": "\x1b[5~", "pagedown": "\x1b[6~", "delete": "\x1b[3~", "ctrl+delete": "\x1b[3;5~"}
SENT |= {"ctrl+up": "\x1b[1;5A", "ctrl+down": "\x1b[1;5B", "alt+up": "\x1b[1;3A", "alt+down": "\x1b[1;3B"}
SENT |= {"ctrl+home": "\x1b[1;5H", "ctrl+end": "\x1b[1;5F", "shift+tab": "\x1b[Z"}
SENT |= {"f3": "\x1bOR", "f4": "\x1bOS"}


def keys_of(place: type[DOMNode]) -> list[str]:
    """Return every key that a widget declares."""
    return [key for command in getattr(place, "ACTIONS", ()) for key in command.keys.split(",") if key]


def parsed(sent: str) -> list[events.Key]:
    """Return the keys that Textual parses from terminal input."""
    parser = XTermParser()
    found = [*parser.feed(sent), *parser.feed("")]
    return [event for event in found if isinstance(event, events.Key)]


@pytest.mark.promise("TUI-7")
@pytest.mark.parametrize("place", [*AROUND_TEXT, *OTHERS])
def test_every_key_is_one_that_terminals_send(place: type[DOMNode]) -> None:
    keys = keys_of(place)
    assert keys
    assert [[event.key for event in parsed(SENT[key])] for key in keys] == [[key] for key in keys]


@pytest.mark.promise("TUI-7")
@pytest.mark.parametrize("place", AROUND_TEXT)
def test_no_command_around_a_text_editor_has_a_printable_key(place: type[DOMNode]) -> None:
    assert not [key for key in keys_of(place) if any(event.is_printable for event in parsed(SENT[key]))]
