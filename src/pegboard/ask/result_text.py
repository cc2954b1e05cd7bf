"""Results as the model reads them: short, with a note about omitted text and a way to read more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pydantic import JsonValue

from pegboard.data.json_text import write
from pegboard.models import JsonObject, ToolResult
from pegboard.models.conversation import OfferedTool
from pegboard.results.failure_text import failure_text

MORE: Final = "more_of_result"
"""Name of the tool that a model is offered after a result was shortened."""

MORE_TOOL: Final = OfferedTool(
    name=MORE,
    description="Return more of a shortened result: the characters from `start` on.",
    parameters={
        "type": "object",
        "properties": {
            "call": {"type": "string", "description": "Id in the note at the end of the shortened result."},
            "start": {"type": "integer", "minimum": 0, "description": "Index of the first character, from 0."},
        },
        "required": ["call", "start"],
        "additionalProperties": False,
    },
)


def result_text(result: ToolResult, whole: str | None, call: str, limit: int) -> str:
    """Return the text of a result for the model.

    Args:
        result: The result.
        whole: The complete text, if the result contains only the beginning.
        call: The id with which the model may read more.
        limit: Size in bytes.
    """
    return excerpt(whole_text(result, result.data) if whole is None else whole, 0, limit, call)


def whole_text(result: ToolResult, data: JsonValue) -> str:
    """Return the complete text of a result: its error, its data and what came beside them.

    Args:
        result: The result.
        data: The complete data, of which the result may contain only the beginning.
    """
    if result.error is None:
        return text_of(data, result.meta.content)
    failure = failure_text(result.error)
    return failure if data is None else f"{failure}\n{text_of(data, result.meta.content)}"


def text_of(data: JsonValue, content: Iterable[JsonValue] = ()) -> str:
    """Return a result's data and what came beside it as text: strings unchanged, anything else as a line of JSON."""
    return "\n".join(part if isinstance(part, str) else write(part) for part in (data, *content))


def is_shortened(text: str) -> bool:
    """Return whether a text ends with the note about omitted text."""
    return text.endswith("]") and f" {MORE} with call=" in text[-300:]


def excerpt(text: str, start: int, limit: int, call: str) -> str:
    """Return as much of a text as fits, with a note about omitted text.

    Args:
        text: The complete text.
        start: Index of the first character.
        limit: Size in bytes.
        call: The id with which the model may read more.
    """
    # A character has at least one byte, so this many characters are enough.
    piece = text[start : start + limit].encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
    end = start + len(piece)
    if end >= len(text):
        return piece
    return (
        f"{piece}\n[Shortened: these are the characters {start:,} to {end:,} of {len(text):,}."
        f' To read on, call {MORE} with call="{call}" and start={end}.]'
    )


def parse_more(args: JsonObject) -> tuple[str, int] | str:
    """Return the call's id and the start index, or the validation error of the arguments."""
    call, start = args.get("call"), args.get("start", 0)
    if not isinstance(call, str):
        return "`call` must be the id in the note at the end of the shortened result"
    if isinstance(start, bool) or not isinstance(start, int) or start < 0:
        return "`start` must be an integer from 0"
    return call, start
