"""Text that can be encoded as UTF-8, and the beginnings of long texts."""

from __future__ import annotations


def encodable(text: str) -> str:
    """Return a text with a question mark for each lone surrogate, which tools may print and which has no UTF-8 form."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def beginning(text: str, most: int) -> str:
    """Return a text of at most `most` characters; an ellipsis is the last one if the text is longer."""
    return text if len(text) <= most else text[: max(most - 1, 0)].rstrip() + "…"
