"""The note in place of a form without fields."""

from __future__ import annotations

from textual.widgets import Static


class Note(Static, can_focus=True):
    """Note in place of the fields; it can be focused, so that arguments can still be written as JSON."""

    DEFAULT_CSS = """
    Note {
        color: $text-muted;
        height: auto;
        &:focus { background: $block-cursor-blurred-background; text-style: bold; }
        &:focus:nocolor, &:focus:ansi { text-style: reverse; }
    }
    """
