"""Visible replacements of control and invisible characters in text that is edited."""

from __future__ import annotations

from rich.highlighter import Highlighter
from rich.text import Text

_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if code not in {0x09, 0x0A}} | {0x7F: "␡"}
_PICTURES |= dict.fromkeys([*range(0x80, 0xA0), 0x00AD, 0x061C, 0x180E, 0x200B, *range(0x200E, 0x2010)], "\ufffd")
_PICTURES |= dict.fromkeys(range(0x2028, 0x202F), "\ufffd")
_PICTURES |= dict.fromkeys([*range(0x2060, 0x2070), 0xFEFF, *range(0xD800, 0xE000)], "\ufffd")


def with_control_pictures(text: str) -> str:
    """Replace control characters by visible ones; the length, on which cursors depend, stays the same."""
    return text.translate(_PICTURES)


class ControlPictures(Highlighter):
    """Highlighter that makes control characters visible, so that they never reach the terminal."""

    def highlight(self, text: Text) -> None:
        """Replace control characters by visible ones."""
        plain = with_control_pictures(text.plain).replace("\t", "␉").replace("\n", "⏎")
        if plain != text.plain:
            text.plain = plain
