"""Visible replacements of control and invisible characters in text that is edited."""

from __future__ import annotations

import re

from rich.highlighter import Highlighter
from rich.text import Text

from pegboard.results.clean import INVISIBLE

_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if code not in {0x09, 0x0A}} | {0x7F: "␡"}
_OTHERS = re.compile(f"[{INVISIBLE}]")
"""Control, format and surrogate characters that have no picture of their own."""


def with_control_pictures(text: str) -> str:
    """Replace control characters by visible ones; the length, on which cursors depend, stays the same."""
    return _OTHERS.sub("\ufffd", text.translate(_PICTURES))


class ControlPictures(Highlighter):
    """Highlighter that makes control characters visible, so that they never reach the terminal."""

    def highlight(self, text: Text) -> None:
        """Replace control characters by visible ones."""
        plain = with_control_pictures(text.plain).replace("\t", "␉").replace("\n", "⏎")
        if plain != text.plain:
            text.plain = plain
