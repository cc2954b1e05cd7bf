"""Blocks of a tool's result that the SDK would reject, and with them the whole result."""

from __future__ import annotations

from typing import Any, Final  # Any: blocks before they are read

from mcp_types import ContentBlock
from pydantic import JsonValue, TypeAdapter, ValidationError

from pegboard.data.json_text import write

_BLOCK: Final[TypeAdapter[Any]] = TypeAdapter(ContentBlock)
_KINDS: Final = frozenset({"text", "image", "audio", "resource_link", "resource"})


def readable_block(block: JsonValue) -> JsonValue:
    """Return a block; one of an unknown kind, or that is invalid, as a text with its JSON and a remark."""
    if isinstance(block, dict) and block.keys() == {"type", "text"} and block["type"] == "text":
        if isinstance(block["text"], str):
            return block  # nearly all
    else:
        try:
            _BLOCK.validate_python(block)
        except ValidationError:
            pass
        else:
            return block
    kind = block.get("type") if isinstance(block, dict) else None
    what = "an invalid block" if kind in _KINDS or not isinstance(kind, str) else "a block of an unknown kind"
    return {"type": "text", "text": f"[{what}] {write(block)}"}
