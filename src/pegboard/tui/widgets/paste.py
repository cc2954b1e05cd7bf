"""Recognition of pasted calls."""

from __future__ import annotations

_BEGINNINGS = ("{", "pegboard ", "$ ", "call_tool(", "await call_tool(")


def may_be_call(text: str) -> bool:
    """Return whether a text looks like a call or its arguments; `pegboard.forms.pasted` parses it."""
    return text.lstrip().startswith(_BEGINNINGS)
