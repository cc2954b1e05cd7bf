"""Results of a server's tools as Pegboard's results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import JsonValue

from pegboard import storage
from pegboard.data.json_text import JsonTextError, comparable, parse, write
from pegboard.models import OF_CLIENTS, JsonObject, ResultMeta, ToolCall, ToolError, ToolResult, ToolSpec, Truncation
from pegboard.models.call import file_stem
from pegboard.models.model import as_json
from pegboard.results.media import MediaFiles, media_line
from pegboard.results.shorten import shorten
from pegboard.results.sizes import size
from pegboard.schema.validation import validator
from pegboard.sdk.values import NotSerializableError, encode


class ResultReader:
    """Reader of the results of one call.

    Args:
        folder: Folder for large results, images and audio.
        limit: Size of a result's JSON that is passed on in full.
        call_id: Id of the call, part of the names of files.
    """

    def __init__(self, folder: Path, limit: int, call_id: str) -> None:
        self._folder = folder
        self._limit = limit
        self._stem = file_stem(call_id)
        self._media = MediaFiles(folder, self._stem)

    def tool_result(
        self, result: CallToolResult, spec: ToolSpec, call: ToolCall, *, milliseconds: float, dropped: int
    ) -> ToolResult:
        """Return the result of a call. Blocks while it writes files.

        Args:
            result: What the server answered.
            spec: The tool.
            call: The call.
            milliseconds: Duration of the call.
            dropped: Amount of output beyond the limit.
        """
        warnings: tuple[str, ...] = ()
        has_structure = "structured_content" in result.model_fields_set and result.structured_content is not None
        others: list[ContentBlock] = [block for block in result.content if not isinstance(block, TextContent)]
        beside = others if result.is_error or not has_structure else _beside(result.content, result.structured_content)
        data = result.structured_content if has_structure else self.data(others if result.is_error else result.content)
        if not result.is_error:
            warnings = tuple(_mismatches(spec, data if has_structure else None, has_structure=has_structure))
        meta = ResultMeta(
            duration_ms=milliseconds,
            worker=f"MCP server {spec.pack}",
            log_bytes_dropped=dropped,
            warnings=warnings,
            server_meta=_plain(result.meta) if result.meta else None,
            content=self._content(beside) if has_structure else (),
        )
        error = None
        if result.is_error:
            said = "\n".join(block.text for block in result.content if isinstance(block, TextContent)).strip()
            message = said or f"The server reported that {call.name} failed, without a message."
            error = ToolError(code="execution_error", message=message, said=bool(said))
        shown = self._bounded(data, error, meta)
        if call.source not in OF_CLIENTS:
            return shown
        return shown.model_copy(update={"original": as_json(result)})

    def data(self, blocks: list[ContentBlock]) -> JsonValue:
        """Return content as data: one text that is JSON as its value, several blocks as a list."""
        if not blocks:
            return None
        if len(blocks) == 1 and isinstance(blocks[0], TextContent):
            return text_data(blocks[0].text)
        shown = [self.block(block) for block in blocks]
        return shown[0] if len(shown) == 1 else shown

    def resource(self, contents: TextResourceContents | BlobResourceContents) -> JsonObject:
        """Return the contents of a resource; binary ones are saved to a file."""
        shown: JsonObject = {"uri": str(contents.uri)}
        if contents.mime_type:
            shown["mimeType"] = contents.mime_type
        if isinstance(contents, TextResourceContents):
            return {**shown, "text": contents.text}
        return {**shown, **self._media.save(contents.blob, contents.mime_type or "")}

    def block(self, block: ContentBlock) -> JsonValue:
        """Return one block of content: text as it is, an image or audio as a line with its file."""
        match block:
            case TextContent(text=text):
                return text
            case ImageContent(data=encoded, mime_type=kind) | AudioContent(data=encoded, mime_type=kind):
                return media_line(kind, self._media.save(encoded, kind))
            case ResourceLink():
                return {"resource": _plain(as_json(block))}
            case EmbeddedResource(resource=resource):
                return {"resource": self.resource(resource)}

    def _content(self, blocks: list[ContentBlock]) -> tuple[JsonValue, ...]:
        """Return blocks beside structured content; if they are large, a file with all of them."""
        shown = [self.block(block) for block in blocks]
        encoded = encode(shown)
        return tuple(shown) if len(encoded) <= self._limit else (self._media.write(encoded, ".txt"),)

    def _bounded(self, data: JsonValue, error: ToolError | None, meta: ResultMeta) -> ToolResult:
        """Return the result; write large data to a file and pass on only its beginning."""
        try:
            encoded = encode(data)
        except NotSerializableError as unfit:
            return ToolResult.failed("execution_error", str(unfit), "not_serialisable")
        if len(encoded) > self._limit:
            file = self._folder / f"{self._stem}.json"
            try:
                storage.make_folder(self._folder)
                storage.write(file, encoded)
            except OSError as problem:
                message = f"The result of {size(len(encoded))} could not be written to {file}: {problem.strerror}."
                return ToolResult.failed("execution_error", message, "not_kept")
            shown, shown_bytes = shorten(json.loads(encoded), self._limit)
            data = shown  # type: ignore[assignment] # a part of JSON
            cut = Truncation(shown_bytes=shown_bytes, total_bytes=len(encoded), file=str(file))
            meta = meta.model_copy(update={"truncated": cut})
        meta = meta.model_copy(update={"size": len(encoded)})
        # Skips validation: the data was parsed from JSON.
        return ToolResult.model_construct(ok=error is None, data=data, error=error, meta=meta)


def text_data(text: str) -> JsonValue:
    """Return the value of a text that is JSON, otherwise the text.

    A number that would look different stays text: a version `1.10` isn't 1.1.
    """
    value = _value(text)
    return text if isinstance(value, int | float) and write(value) != text.strip() else value


def _value(text: str) -> JsonValue:
    try:
        return parse(text)
    except JsonTextError:
        return text


def _beside(blocks: list[ContentBlock], structure: JsonValue) -> list[ContentBlock]:
    """Return the blocks that add something to structured content: all but texts that repeat it, or a part of it.

    SDKs wrap a return value that isn't an object in an object, and repeat a list as one text per item.
    """
    others = [block for block in blocks if not (isinstance(block, TextContent) and _says(block.text, structure))]
    if not any(isinstance(block, TextContent) for block in others):
        return others  # as of most servers; the rest is slow for much content
    parts: list[JsonValue] = [structure]
    for _ in range(2):
        parts += [inner for part in parts for inner in _inner(part)]
    known = {comparable(part) for part in parts}

    def is_repeated(text: str) -> bool:
        return text in known or comparable(_value(text)) in known

    return [block for block in others if not (isinstance(block, TextContent) and is_repeated(block.text))]


def _says(text: str, structure: JsonValue) -> bool:
    return not text.strip() or _value(text) == structure


def _inner(part: JsonValue) -> Iterable[JsonValue]:
    return part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()


def _mismatches(spec: ToolSpec, data: JsonValue, *, has_structure: bool) -> list[str]:
    if spec.output_schema is None:
        return []
    if not has_structure:
        return [f"{spec.name} has an output schema, but the server sent no structured content."]
    faults = validator(spec.output_schema).faults(data)
    if not faults:
        return []
    shown = "; ".join(f"{fault.path or 'the result'} {fault.message}" for fault in faults[:3])
    more = f" ({len(faults) - 3} more)" if len(faults) > 3 else ""
    return [f"The result of {spec.name} doesn't match its output schema: {shown}{more}."]


def _plain(value: object) -> JsonObject | None:
    """Return a server's metadata as plain JSON; None if it has no JSON form."""
    try:
        plain: JsonObject = json.loads(encode(value))
    except (NotSerializableError, ValueError, RecursionError):
        return None
    return plain
