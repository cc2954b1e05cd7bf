"""Calls and results quoted in a conversation."""

from __future__ import annotations

import re

from pegboard.models import ToolCall, ToolResult
from pegboard.results.sizes import count, size
from pegboard.results.text import as_text, json_bytes

LONGEST = 8_000
"""Maximum number of quoted characters of a result."""


def quoted(call: ToolCall, result: ToolResult | None) -> str:
    """Return a call and its result as Markdown, truncated if it is long.

    Args:
        call: The call.
        result: Its result; None while it runs or if it is not stored.
    """
    head = f"`{call.name}` with `{json_bytes(call.args).decode()}`"
    if result is None:
        return f"{head} has no result.\n\n"
    if result.error is not None and result.data is None:
        return f"{head} failed: {result.error.message}\n\n"
    text = as_text(result.data)
    more = f"\n… {count(len(text) - LONGEST, 'more character')}" if len(text) > LONGEST else ""
    if result.meta.truncated is not None:  # the data lacks the end of the result
        more = f"\n… the whole result has {size(result.meta.truncated.total_bytes)} as JSON"
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text[:LONGEST])), default=0))
    failed = f" failed ({result.error.message}) and" if result.error is not None else ""
    return f"{head}{failed} returned:\n\n{fence}\n{text[:LONGEST]}{more}\n{fence}\n\n"
