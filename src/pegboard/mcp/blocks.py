"""Parts of a result that the SDK would reject, and with them the whole result: blocks, prompt messages and contents."""

from __future__ import annotations

from typing import Any, Final  # Any: blocks before they are read

from mcp_types import BlobResourceContents, ContentBlock, PromptMessage, TextResourceContents
from pydantic import JsonValue, TypeAdapter, ValidationError

from pegboard.data.json_text import write

_BLOCK: Final[TypeAdapter[Any]] = TypeAdapter(ContentBlock)
_MESSAGE: Final[TypeAdapter[Any]] = TypeAdapter(PromptMessage)
_CONTENTS: Final[TypeAdapter[Any]] = TypeAdapter(TextResourceContents | BlobResourceContents)
_KINDS: Final = frozenset({"text", "image", "audio", "resource_link", "resource"})


def readable_block(block: JsonValue) -> JsonValue:
    """Return a block; one of an unknown kind, or that is invalid, as a text with its JSON and a remark."""
    if isinstance(block, dict) and block.keys() == {"type", "text"} and block["type"] == "text":
        if isinstance(block["text"], str):
            return block  # nearly all
    elif _is_valid(_BLOCK, block):
        return block
    kind = block.get("type") if isinstance(block, dict) else None
    what = "an invalid block" if kind in _KINDS or not isinstance(kind, str) else "a block of an unknown kind"
    return {"type": "text", "text": f"[{what}] {write(block)}"}


def readable_prompt_message(message: JsonValue) -> JsonValue:
    """Return a message of a prompt; one whose content can't be read, or that is invalid, with a text instead."""
    if _is_valid(_MESSAGE, message):
        return message
    if isinstance(message, dict) and message.get("role") in ("user", "assistant") and "content" in message:
        repaired: JsonValue = {**message, "content": readable_block(message["content"])}
        if _is_valid(_MESSAGE, repaired):
            return repaired
    return {"role": "user", "content": {"type": "text", "text": f"[an invalid message] {write(message)}"}}


def readable_contents(contents: JsonValue) -> JsonValue:
    """Return one part of a resource; one that is neither valid text nor valid binary content as its JSON."""
    if _is_valid(_CONTENTS, contents):
        return contents
    uri = contents.get("uri") if isinstance(contents, dict) else None
    return {"uri": uri if isinstance(uri, str) else "", "text": f"[invalid contents] {write(contents)}"}


def _is_valid(kind: TypeAdapter[Any], value: JsonValue) -> bool:
    try:
        kind.validate_python(value)
    except ValidationError:
        return False
    return True
