"""Results as a model reads them: short, honest about what is missing, and with a way to ask for more."""

from __future__ import annotations

from typing import Final

from pydantic import JsonValue

from pegboard.data.json_text import write
from pegboard.models import JsonObject, ToolResult
from pegboard.models.conversation import OfferedTool

MORE: Final = "more_of_result"
"""The tool that a model is offered as soon as a result was shortened."""

MORE_TOOL: Final = OfferedTool(
    name=MORE,
    description="Gives more of a result that was shortened: the next characters from `start`.",
    parameters={
        "type": "object",
        "properties": {
            "call": {"type": "string", "description": "The id that the mark of the shortened result names."},
            "start": {"type": "integer", "minimum": 0, "description": "The first character wanted, from 0."},
        },
        "required": ["call", "start"],
        "additionalProperties": False,
    },
)


def told(result: ToolResult, whole: str | None, call: str, limit: int) -> str:
    """Gives the text of a result for the model.

    Args:
        result: What came of the call.
        whole: The text of all of its data, where the result has only its beginning.
        call: The id by which the model may ask for more.
        limit: Bytes.
    """
    error = result.error
    head = "" if error is None else f"The call failed: {error.code}{f' ({error.detail})' if error.detail else ''}. "
    if error is not None:
        head += error.message
        if result.data is None:
            return excerpt(head, 0, limit, call)
        head += "\n"
    return head + excerpt(text_of(result.data) if whole is None else whole, 0, limit, call)


def text_of(data: JsonValue) -> str:
    """Gives a result's data as text: text as it is, anything else as JSON in one line."""
    return data if isinstance(data, str) else write(data)


def is_shortened(text: str) -> bool:
    """Tells whether a text that the model was told has a mark of what is missing."""
    return text.endswith("]") and f" {MORE} with call=" in text[-300:]


def excerpt(text: str, start: int, limit: int, call: str) -> str:
    """Gives as much of a text as fits, with a mark of what is missing.

    Args:
        text: All of it.
        start: The first character.
        limit: Bytes.
        call: The id by which the model may ask for more.
    """
    # no character has less than a byte
    piece = text[start : start + limit].encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
    end = start + len(piece)
    if end >= len(text):
        return piece
    return (
        f"{piece}\n[Shortened: these are the characters {start:,} to {end:,} of {len(text):,}."
        f' For the next ones call {MORE} with call="{call}" and start={end}.]'
    )


def wanted(args: JsonObject) -> tuple[str, int] | str:
    """Gives which result is wanted and from where, or what is wrong with the arguments."""
    call, start = args.get("call"), args.get("start", 0)
    if not isinstance(call, str):
        return "call: must be the id that the mark of the shortened result names"
    if isinstance(start, bool) or not isinstance(start, int) or start < 0:
        return "start: must be an integer from 0"
    return call, start
