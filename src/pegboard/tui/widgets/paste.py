"""What a paste may be."""

from __future__ import annotations

_BEGINNINGS = ("{", "pegboard ", "$ ", "call_tool(", "await call_tool(")


def may_be_call(text: str) -> bool:
    """Whether a text is worth reading as a call or its arguments: `pegboard.forms.pasted` says whether it is one."""
    return text.lstrip().startswith(_BEGINNINGS)
