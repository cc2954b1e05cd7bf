"""Results of calls as MCP clients receive them."""

from __future__ import annotations

import json

from pydantic import JsonValue
from pydantic_core import to_json

from pegboard.models import JsonObject, ToolResult, ToolSpec
from pegboard.results.export import whole
from pegboard.serve.offer import RESULT, wraps_result


def call_result(spec: ToolSpec, result: ToolResult, hint: str = "", mismatch: str = "") -> JsonObject:
    """Return the result of `tools/call`. Reads the file of a large result.

    Args:
        spec: The tool.
        result: The result of the call.
        hint: What the caller can do about an error.
        mismatch: Why the data doesn't match the output schema; empty if it does.
    """
    if result.original is not None:
        return _passed_on(spec, result.original)
    try:
        data = whole(result)
    except (OSError, ValueError) as error:
        return _failure(f"The complete result of {spec.name} can't be read: {error}", None)
    if result.error is not None:
        return _failure("\n\n".join(text for text in (result.error.message, hint) if text), data)
    if mismatch:
        # Clients reject a successful result that doesn't match, and would lose it.
        message = f"The result of {spec.name} doesn't match its output schema: {mismatch} The result is:\n{_text(data)}"
        return _failure(message, None)
    answer: JsonObject = {"content": [{"type": "text", "text": _text(data)}]}
    if wraps_result(spec):
        answer["structuredContent"] = {RESULT: data}
    elif isinstance(data, dict):
        answer["structuredContent"] = data
    return answer


def _passed_on(spec: ToolSpec, original: JsonObject) -> JsonObject:
    """Return a server's result, whose structured content gets a key if it isn't an object."""
    answer = dict(original)
    structured = answer.get("structuredContent")
    is_wrapped = wraps_result(spec) and "structuredContent" in answer
    if is_wrapped or (structured is not None and not isinstance(structured, dict)):
        answer["structuredContent"] = {RESULT: structured}
    return answer


def _failure(message: str, data: JsonValue) -> JsonObject:
    content: list[JsonValue] = [{"type": "text", "text": message}]
    if data is not None:
        content.append({"type": "text", "text": _text(data)})
    answer: JsonObject = {"content": content, "isError": True}
    if isinstance(data, dict):
        answer["structuredContent"] = data
    return answer


def _text(data: JsonValue) -> str:
    if isinstance(data, str):
        return data
    try:
        return to_json(data, inf_nan_mode="constants").decode()
    except ValueError:  # half a surrogate pair
        return json.dumps(data)
