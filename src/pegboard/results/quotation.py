"""A call with its result as words for a conversation."""

from __future__ import annotations

import re

from pegboard.models import ToolCall, ToolResult
from pegboard.results.sizes import count
from pegboard.results.text import as_text, json_bytes

LONGEST = 8_000
"""Characters of a result that are quoted."""


def quoted(call: ToolCall, result: ToolResult) -> str:
    """Gives a call and what came of it as Markdown, its beginning where it is long.

    Args:
        call: The call.
        result: Its result.
    """
    head = f"`{call.name}` with `{json_bytes(call.args).decode()}`"
    if result.error is not None and result.data is None:
        return f"{head} failed: {result.error.message}\n\n"
    text = as_text(result.data)
    more = f"\n… {count(len(text) - LONGEST, 'more character')}" if len(text) > LONGEST else ""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text[:LONGEST])), default=0))
    failed = f" failed ({result.error.message}) and" if result.error is not None else ""
    return f"{head}{failed} gave:\n\n{fence}\n{text[:LONGEST]}{more}\n{fence}\n\n"
