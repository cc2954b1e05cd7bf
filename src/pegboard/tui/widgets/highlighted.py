"""Source text as content: highlighted unless it is very long."""

from __future__ import annotations

from textual.content import Content

from pegboard.results.clean import clean
from pegboard.results.sizes import count


def highlighted(text: str, language: str, most: int) -> Content:
    """Return a text with highlighting and without control characters; plain and shortened if it is too long.

    Args:
        text: Untrusted text.
        language: Name of its language, such as `bash`.
        most: Number of characters up to which it is shown completely.
    """
    text = clean(text)
    if len(text) > most:
        return Content(f"{text[:most]}\n… {count(len(text) - most, 'more character')}")
    from textual.highlight import highlight

    return highlight(text, language=language)
