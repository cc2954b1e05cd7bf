"""Requests to the process that works on a whole result."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic import JsonValue
from pydantic_core import from_json

from pegboard.models import ResultMeta, ToolResult, Truncation
from pegboard.results.images import ResultImage
from pegboard.results.paths import JsonPath
from pegboard.results.sizes import size
from pegboard.results.stored.values import StoredText, stored_value
from pegboard.results.text import TokenKind, json_bytes
from pegboard.storage import make_folder

FILTER_SECONDS = 2.0
"""Time limit of a jq filter, in addition to the time for reading a large result."""
_SECONDS_PER_MEGABYTE = 0.2
_SECONDS = 20.0
_LEAST_MEMORY = 256 * 2**20
_MOST_MEMORY = 2 * 2**30
_MEMORY_PER_BYTE = 40
_IMAGE_MEMORY = 2**30
_SHOWN = 1_000_000
_CODE = "from pegboard.results.stored.process import main; main()"


class StoredResultError(Exception):
    """A whole result can't be read, filtered or searched. The message says why, for users."""


@dataclass(frozen=True, slots=True)
class WholeHits:
    """Matches in a whole result.

    Attributes:
        paths: Paths of the matching values.
        ranges: Start and end of each match, if the result is a text.
        is_cut: Whether there are more.
    """

    paths: tuple[JsonPath, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    is_cut: bool = False

    def __len__(self) -> int:
        return len(self.paths) or len(self.ranges)


async def run_filter(result: ToolResult, filter: str, folder: Path) -> tuple[ToolResult, int]:  # noqa: A002 - jq's own word
    """Run a jq filter on the whole data of a result; return the filtered result and the number of jq's results.

    Several results become a list.

    Args:
        result: The result.
        filter: The filter.
        folder: Folder for a filtered result that is too large for the screen.

    Raises:
        StoredResultError: The filter is invalid, or it failed or exceeded a limit.
    """
    keep = folder / f"filtered-{uuid4().hex}.json"
    with contextlib.suppress(OSError):
        await asyncio.to_thread(make_folder, folder)
    request = {"filter": filter, "limit": _SHOWN, "keep": str(keep)}
    total = result.meta.truncated.total_bytes if result.meta.truncated else 0
    head, data = await _ask("filter", request, result, FILTER_SECONDS + total / 1e6 * _SECONDS_PER_MEGABYTE)
    value: JsonValue = await asyncio.to_thread(from_json, data)
    cut = Truncation(**head["truncated"]) if head["truncated"] else None
    meta = ResultMeta(size=head["size"], truncated=cut)
    return ToolResult.model_construct(ok=True, data=value, error=None, meta=meta), head["count"]


async def open_stored(result: ToolResult) -> JsonValue | StoredText:
    """Return the whole data of a truncated result as a value that reads its parts on demand.

    Raises:
        StoredResultError: The file can't be read.
    """
    assert result.meta.truncated is not None, "only a truncated result has a file"
    head, data = await _ask("index", {}, result, _SECONDS)
    file = Path(result.meta.truncated.file)
    return await asyncio.to_thread(stored_value, file, head, data)


async def arrange(
    result: ToolResult, path: JsonPath, *, column: str | None, descending: bool = False, wanted: str = ""
) -> array[int]:
    """Return the numbers of the rows of a list that match a text, in the order of a column.

    Args:
        result: A truncated result.
        path: Path of the list.
        column: Key of the column; None keeps the order.
        descending: Whether the largest value comes first.
        wanted: Text that a row must contain; an empty text matches all.

    Raises:
        StoredResultError: The file can't be read.
    """
    request = {"path": list(path), "column": column, "descending": descending, "wanted": wanted}
    _, data = await _ask("arrange", request, result, _SECONDS)
    numbers: array[int] = array("Q")
    numbers.frombytes(data)
    return numbers


async def search_whole(result: ToolResult, wanted: str) -> WholeHits:
    """Search the whole data of a truncated result.

    Raises:
        StoredResultError: The file can't be read.
    """
    head, _ = await _ask("search", {"wanted": wanted}, result, _SECONDS)
    hits = head["hits"]
    if hits and head.get("is_text"):
        return WholeHits(ranges=tuple((start, end) for start, end in hits), is_cut=head["more"])
    return WholeHits(paths=tuple(tuple(hit) for hit in hits), is_cut=head["more"])


async def picture(image: ResultImage, width: int, height: int) -> tuple[dict[str, Any], bytes]:
    """Return an image as RGBA pixels within a size in pixels, and its properties.

    Raises:
        StoredResultError: The image can't be read or is not valid.
    """
    data = b""
    if not image.file:
        try:
            data = await asyncio.to_thread(image.decoded)
        except ValueError as error:
            raise StoredResultError(str(error)) from None
    request = {"operation": "image", "file": image.file or None, "width": width, "height": height}
    return await _run(request, data, _SECONDS / 2, _IMAGE_MEMORY)


async def highlighted(text: str, name: str) -> list[list[tuple[int, int, TokenKind]]]:
    """Return the start, end and kind of the tokens in each line of code.

    Args:
        text: The code.
        name: Name of its file, which selects the language.

    Raises:
        StoredResultError: It took too long, or the language is unknown.
    """
    data = await asyncio.to_thread(text.encode, "utf-8", "replace")
    head, _ = await _run({"operation": "highlight", "name": name}, data, _SECONDS / 4, _LEAST_MEMORY)
    lines: list[list[tuple[int, int, TokenKind]]] = head["lines"]
    return lines


async def _ask(operation: str, request: dict[str, Any], result: ToolResult, seconds: float) -> tuple[Any, bytes]:
    cut = result.meta.truncated
    data = b"" if cut else await asyncio.to_thread(json_bytes, result.data)
    total = cut.total_bytes if cut else len(data)
    memory = min(max(_LEAST_MEMORY, total * _MEMORY_PER_BYTE), _MOST_MEMORY)
    return await _run({**request, "operation": operation, "file": cut.file if cut else None}, data, seconds, memory)


async def _run(request: dict[str, Any], data: bytes, seconds: float, memory: int) -> tuple[Any, bytes]:
    """Run one request in its own process, which is killed at the time limit and if the task is cancelled."""
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", _CODE),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise StoredResultError(f"The process for large results was not started: {error.strerror}.") from None
    try:
        line = json.dumps({**request, "memory": memory}).encode() + b"\n"
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate(line + data)
    except TimeoutError:
        raise StoredResultError(f"It took longer than {seconds:.0f} s and was stopped.") from None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    head, _, rest = output.partition(b"\n")
    if not head:
        raise StoredResultError(f"It needs more than {size(memory)} of memory.")
    answer = await asyncio.to_thread(from_json, head)
    if "error" in answer:
        raise StoredResultError(answer["error"])
    return answer, rest
