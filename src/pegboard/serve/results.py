"""Results of calls as MCP clients receive them."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from pydantic import JsonValue
from pydantic_core import to_json

from pegboard.models import JsonObject, ToolResult, ToolSpec
from pegboard.results.export import whole
from pegboard.results.images import ResultImage, images
from pegboard.serve.offer import RESULT, output_schema, wraps_result


def call_result(
    spec: ToolSpec,
    result: ToolResult,
    folder: Path,
    hint: str = "",
    mismatch: str = "",
    structured: JsonValue = None,
) -> JsonObject:
    """Return the result of `tools/call`. Reads the files of a large result and of its images.

    Args:
        spec: The tool.
        result: The result of the call.
        folder: Folder of results; files of images elsewhere aren't read.
        hint: What the caller can do about an error.
        mismatch: Why the data doesn't match the output schema; empty if it does.
        structured: The data as it matches the output schema; None if that is the data of the result.
    """
    if result.original is not None:
        return _passed_on(spec, result.original)
    try:
        data = whole(result)
    except (OSError, ValueError) as error:
        return _failure(f"The complete result of {spec.name} can't be read: {error}", None, folder)
    if result.error is not None:
        failure = _failure("\n\n".join(text for text in (result.error.message, hint) if text), data, folder)
        # Clients reject structured content that doesn't match the output schema, even of failures.
        if isinstance(data, dict) and output_schema(spec) is None:
            failure["structuredContent"] = data
        return failure
    if mismatch:
        # Clients reject a successful result that doesn't match, and would lose it.
        message = f"The result of {spec.name} doesn't match its output schema: {mismatch} The result is:\n{_text(data)}"
        return _failure(message, None, folder)
    answer: JsonObject = {"content": _content(data, folder)}
    data = data if structured is None else structured
    if wraps_result(spec):
        answer["structuredContent"] = {RESULT: data}
    elif isinstance(data, dict):
        answer["structuredContent"] = data
    return answer


def with_note(answer: JsonObject, note: str) -> JsonObject:
    """Return a result with a note for the agent as the last block of its content.

    Args:
        answer: The result of `tools/call`.
        note: The note; empty for none.
    """
    content = answer.get("content")
    if not note or not isinstance(content, list):
        return answer
    return {**answer, "content": [*content, {"type": "text", "text": note}]}


def _passed_on(spec: ToolSpec, original: JsonObject) -> JsonObject:
    """Return a server's result, whose structured content gets a key if it isn't an object."""
    answer = dict(original)
    structured = answer.get("structuredContent")
    is_wrapped = wraps_result(spec) and "structuredContent" in answer
    if is_wrapped or (structured is not None and not isinstance(structured, dict)):
        answer["structuredContent"] = {RESULT: structured}
    return answer


def _failure(message: str, data: JsonValue, folder: Path) -> JsonObject:
    content: list[JsonValue] = [{"type": "text", "text": message}]
    if data is not None:
        content += _content(data, folder)
    return {"content": content, "isError": True}


def _content(data: JsonValue, folder: Path) -> list[JsonValue]:
    """Return data as blocks: a saved image as such, and anything else as text, followed by the images in it."""
    text = _text(data)
    if "image/" not in text:
        return [{"type": "text", "text": text}]
    items = data if isinstance(data, list) else [data]
    parts = [_image(item, folder) for item in items]
    if not any(parts):  # as one text
        items, parts = [data], [None]
    content: list[JsonValue] = []
    for item, part in zip(items, parts, strict=True):
        if part is not None:
            content.append(part)
            continue
        content.append({"type": "text", "text": _text(item)})
        content += [block for image in images(item) if (block := _block(image, folder)) is not None]
    return content


def _image(item: JsonValue, folder: Path) -> JsonObject | None:
    """Return the block for an item that is the line of a saved image, or None."""
    found = images(item) if isinstance(item, str) else []
    return _block(found[0], folder) if found else None


def _block(image: ResultImage, folder: Path) -> JsonObject | None:
    raw = image.saved(folder)
    if raw is None:
        return None
    kind = "jpeg" if image.kind == "jpg" else image.kind
    return {"type": "image", "mimeType": f"image/{kind}", "data": base64.b64encode(raw).decode()}


def _text(data: JsonValue) -> str:
    if isinstance(data, str):
        return data
    try:
        return to_json(data, inf_nan_mode="constants").decode()
    except ValueError:  # half a surrogate pair
        return json.dumps(data)
