"""JSON-RPC messages as Pegboard's calls and results. All of them are untrusted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic import JsonValue
from pydantic_core import from_json

from pegboard.data.json_text import JsonTextError, parse
from pegboard.models import JsonObject, ResultMeta, ToolResult
from pegboard.results.sizes import size

_LONGEST_CONTENT: Final = 2**20
"""Bytes of content beside structured content; more would make lists of calls slow."""
_FIELDS: Final = ("jsonrpc", "id", "method", "params")
_FIELDS_OF_CALL: Final = ("name", "arguments")
_JSON_START: Final = re.compile(r"\s*[\[{\"\d\-tfn]")
"""Start of a text that may be JSON; looking for the first error in a long text takes time."""


def read(line: bytes) -> Any:  # noqa: ANN401 - any JSON
    """Return a message; None if it is not JSON."""
    try:
        return from_json(line)
    except ValueError:
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            return None


def ambiguity(line: bytes) -> str:
    """Return, as a sentence, why programs may read a message differently; empty if they read the same."""
    try:
        message = json.loads(line, object_pairs_hook=_unique)
    except _RepeatedError:
        return "A key occurs twice in it, so rules can't be applied."
    except (ValueError, RecursionError):  # It may be read nevertheless: this check needs one more level of nesting.
        return "Rules can't be applied to it. It is not a message in JSON, or is nested too deeply."
    for item in items(message):
        params = item.get("params")
        call = params if isinstance(params, dict) else {}
        for key, field in (*_other_spellings(item, _FIELDS), *_other_spellings(call, _FIELDS_OF_CALL)):
            return f"Rules can't be applied to it: some servers read its key `{key}` as `{field}`."
    return ""


def _other_spellings(given: Mapping[str, object], fields: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the keys that differ from a field only in case, which servers written in Go ignore, and the field."""
    return ((key, field) for key in given for field in fields if key != field and key.casefold() == field)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _RepeatedError
    return found


class _RepeatedError(Exception):
    """A key occurs twice."""


def items(message: object) -> list[dict[str, Any]]:
    """Return the messages of a batch, or the one message."""
    return [item for item in (message if isinstance(message, list) else [message]) if isinstance(item, dict)]


def key_of(id_: object) -> str:
    """Return a key for an id: `1` and `"1"` differ."""
    return json.dumps(id_)


def call_of(message: dict[str, Any]) -> tuple[str, JsonObject | None] | None:
    """Return the tool and the arguments of a call, or None for arguments that aren't an object; None for no call."""
    if message.get("method") != "tools/call":
        return None
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    args = params.get("arguments")
    args = {} if args is None else args
    return str(params.get("name", "")), args if isinstance(args, dict) else None


def result_of(message: dict[str, Any], milliseconds: float, length: int, worker: str) -> ToolResult:
    """Return the result in a response to a call.

    Args:
        message: The response.
        milliseconds: Duration of the call.
        length: Size of the response in bytes.
        worker: The server, for people.
    """
    meta = ResultMeta(duration_ms=milliseconds, worker=worker, size=length)
    if "error" in message:
        error = message["error"]
        text = error.get("message") if isinstance(error, dict) else None
        failed = ToolResult.failed("execution_error", str(text or "The server returned an error without a message."))
        return failed.model_copy(update={"meta": meta})
    result = message.get("result")
    result = result if isinstance(result, dict) else {}
    own = result.get("_meta")
    if isinstance(own, dict):
        meta = meta.model_copy(update={"server_meta": own})
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [block for block in items(blocks) if block.get("type") == "text"]
    others = [block for block in blocks if not (isinstance(block, dict) and block.get("type") == "text")]
    is_error = result.get("isError") is True
    structure = result.get("structuredContent")
    data: JsonValue = structure if structure is not None else _data(others if is_error else blocks)
    if "content" not in result and structure is None and not is_error:
        data = result  # such as a task, or a request for input
    if structure is not None and others:
        meta = meta.model_copy(update=_beside(others))
    if is_error:
        said = "\n".join(str(block.get("text", "")) for block in texts).strip()
        failed = ToolResult.failed("execution_error", said or "The tool failed without a message.")
        return failed.model_copy(update={"data": data, "meta": meta})
    return ToolResult.model_construct(ok=True, data=data, error=None, meta=meta)


def _beside(others: list[JsonValue]) -> dict[str, Any]:
    """Return the fields for images, audio and resources beside structured content."""
    length = len(json.dumps(others))
    if length <= _LONGEST_CONTENT:
        return {"content": tuple(others)}
    what = "The images, audio or resources beside the structured content are not recorded because they are too large"
    return {"warnings": (f"{what} ({size(length)}).",)}


def clipped_result(total: int, milliseconds: float, worker: str) -> ToolResult:
    """Return the result of a call whose response is too long to be recorded."""
    meta = ResultMeta(
        duration_ms=milliseconds,
        worker=worker,
        size=total,
        warnings=(f"The result is not recorded because its message is too long ({size(total)}).",),
    )
    return ToolResult(ok=True, data=None, meta=meta)


def failed_result(message: str, detail: str, milliseconds: float = 0.0) -> ToolResult:
    """Return the result of a call without a response."""
    return ToolResult.failed("execution_error", message, detail).timed(milliseconds)


def _data(blocks: list[Any]) -> JsonValue:
    shown: list[JsonValue] = [
        block["text"] if isinstance(block, dict) and block.get("type") == "text" and "text" in block else block
        for block in blocks
    ]
    if len(shown) == 1 and isinstance(shown[0], str) and _JSON_START.match(shown[0]):
        try:
            return parse(shown[0])
        except JsonTextError:
            return shown[0]
    return shown[0] if len(shown) == 1 else shown or None
