"""Selection of views for a value."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import JsonValue

from pegboard.results.chart import can_chart
from pegboard.results.images import images
from pegboard.results.printed import is_printed
from pegboard.results.table import Table, is_wrapped

View = Literal["image", "output", "tree", "table", "markdown", "text", "chart"]
"""Way of displaying a value."""

_JUDGED = 5_000
_TITLE = re.compile(r"#{1,6} \S.*\n\s*\n")
_SIGNS = (
    re.compile(r"^#{1,6} \S.*\n\s*\n", re.MULTILINE),
    re.compile(r"^(```|~~~)", re.MULTILINE),
    re.compile(r"^ {0,3}[-*+] \S.*\n {0,3}[-*+] \S", re.MULTILINE),
    re.compile(r"^ {0,3}\d{1,3}[.)] \S.*\n {0,3}\d{1,3}[.)] \S", re.MULTILINE),
    re.compile(r"\[[^\]\n]{1,200}\]\([^)\s]{1,500}\)"),
    re.compile(r"\*\*[^\s*][^*\n]{0,200}\*\*"),
    re.compile(r"^\|?[ :]*-{3,}[ :]*\|", re.MULTILINE),
)
_SIGNS_NEEDED = 2


def views(value: JsonValue, file: str = "", meta: JsonValue = None) -> tuple[View, ...]:
    """Return the views that fit a value, best first, at least one.

    Args:
        value: The value.
        file: Name of the file that a text is the content of; see `code_file`.
        meta: Further data in which images may be.
    """
    pictures: tuple[View, ...] = ("image",) if images(value) or images(meta) else ()
    return (*pictures, *_views(value, file))


def _views(value: JsonValue, file: str) -> tuple[View, ...]:
    match value:
        case str():
            if not value.strip() or (file and not file.endswith(".md")):
                return ("text",)
            return ("markdown", "text") if file or is_markdown(value) else ("text", "markdown")
        case dict() | list() if value:
            if is_printed(value):
                return "output", "tree", "text"
            table = Table.of(value)
            charts: tuple[View, ...] = ("chart",) if can_chart(value, table) else ()
            if table is None:
                return "tree", "text", *charts
            is_first = table.path == () or is_wrapped(value)
            return ("table", "tree", "text", *charts) if is_first else ("tree", "table", "text", *charts)
        case _:
            return ("text",)


def is_markdown(text: str) -> bool:
    """Return True if the text starts with a Markdown title or its beginning has two kinds of Markdown syntax."""
    beginning = text[:_JUDGED].lstrip()
    if _TITLE.match(beginning):
        return True
    return sum(1 for sign in _SIGNS if sign.search(beginning)) >= _SIGNS_NEEDED
