"""Styles of pieces of text."""

from __future__ import annotations

from typing import Literal

Mark = Literal[
    "plain",
    "heading",
    "strong",
    "emphasis",
    "code",
    "link",
    "muted",
    "key",
    "string",
    "number",
    "constant",
    "warning",
    "error",
    "ok",
    "running",
]
"""Style of a piece of text."""
Piece = tuple[int, int, Mark]
"""Start, end (exclusive) and style of a piece of a row."""
