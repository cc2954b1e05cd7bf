"""Text that can be encoded as UTF-8."""

from __future__ import annotations


def encodable(text: str) -> str:
    """Return a text with a question mark for each lone surrogate, which tools may print and which has no UTF-8 form."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
