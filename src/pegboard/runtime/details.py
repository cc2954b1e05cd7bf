"""The details of a tool."""

from __future__ import annotations

from pegboard.models import ToolInfo, ToolUses


class ToolDetails(ToolInfo):
    """Details of `pegboard tools info` beyond the listing."""

    timeout: float
    """Timeout of a call in seconds."""
    signature: str
    uses: ToolUses
