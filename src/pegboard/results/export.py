"""Results as files: saved by a user, or opened in a pager."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO

from pydantic import JsonValue
from pydantic_core import from_json

from pegboard.models import ToolCall, ToolResult
from pegboard.results.clean import clean
from pegboard.results.table import Table
from pegboard.results.text import as_text, json_bytes
from pegboard.storage import replacing

_PRETTY_LIMIT = 20_000_000
_CHUNK = 1_000_000
_UNFINISHED_ESCAPE = re.compile(
    r"(?<!\\)(?:\\\\)*(\\(?:u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?))?)\Z"
)
"""Escape of a JSON text, or first half of one for two UTF-16 units, that the end of a piece cuts."""


def suggested_name(call: ToolCall, result: ToolResult, at: datetime) -> str:
    """Return a file name for a result, such as `fs.read_file-20260731-140259.txt`. Data other than text is JSON."""
    kind = "txt" if isinstance(result.data, str) else "json"
    name = "".join(sign if sign.isalnum() or sign in "._-" else "_" for sign in call.name)[:80]
    return f"{name.strip('.') or 'result'}-{at:%Y%m%d-%H%M%S}.{kind}"


def whole(result: ToolResult) -> JsonValue:
    """Return the complete data of a result, read from its file if it was shortened.

    Raises:
        OSError: The file can't be read.
        ValueError: The file is not valid JSON.
    """
    if result.meta.truncated is None:
        return result.data
    value: JsonValue = from_json(Path(result.meta.truncated.file).read_bytes())
    return value


def completed(result: ToolResult) -> ToolResult:
    """Return a result with its complete data instead of the part that was kept of it, unless it is complete.

    Raises:
        OSError: The file can't be read.
        ValueError: The file is not valid JSON.
    """
    if result.meta.truncated is None:
        return result
    meta = result.meta.model_copy(update={"truncated": None})
    return result.model_copy(update={"data": whole(result), "meta": meta})


def save(result: ToolResult, file: Path, table: Table | None = None) -> int:
    """Write the complete data of a result to a new file and return the file's size in bytes.

    The suffix selects the format: `.csv` or `.md` for a table, `.json` for JSON, and text otherwise (JSON for other
    data). The data is not sanitized.

    Args:
        result: The result.
        file: New file in an existing folder.
        table: Table in the result; if its rows are sorted or filtered or columns are hidden, these rows are saved.

    Raises:
        FileExistsError: The file exists.
        FileNotFoundError: The folder does not exist.
        ValueError: The data has no table to save as CSV or Markdown.
        OSError: The file can't be written, or that of a shortened result can't be read.
    """
    if file.exists():
        raise FileExistsError(f"{file} already exists")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"the folder {file.parent} does not exist")
    with replacing(file, replace=False) as out:
        _write(result, file.suffix.lower(), out, table)
    return file.stat().st_size


def _write(result: ToolResult, suffix: str, out: IO[bytes], table: Table | None) -> None:
    if suffix in {".csv", ".md"} and (table is not None or not isinstance(result.data, str)):
        table = table or Table.of(whole(result))
        if table is None:
            raise ValueError("only a list of objects can be saved as CSV or Markdown")
        if suffix == ".csv" and not all(map(str.isascii, table.csv())):
            out.write(b"\xef\xbb\xbf")  # without this mark, Excel reads the file in the system's old encoding
        lines = table.csv() if suffix == ".csv" else table.markdown()
        out.writelines(line.encode(errors="backslashreplace") for line in lines)
    elif table is not None and table.is_arranged:
        out.writelines(json_lines(table.rows()))
    elif suffix == ".json" and result.meta.truncated:
        with Path(result.meta.truncated.file).open("rb") as source:
            shutil.copyfileobj(source, out)
    elif suffix == ".json":
        out.write(json_bytes(whole(result), indent=2) + b"\n")
    else:
        out.write(as_text(whole(result)).encode(errors="backslashreplace"))


def json_lines(rows: Iterable[JsonValue]) -> Iterator[bytes]:
    """Yield a list as JSON with one item per line."""
    yield b"["
    for number, row in enumerate(rows):
        yield (b",\n" if number else b"\n") + json_bytes(row)
    yield b"\n]\n"


def pager_command() -> list[str]:
    """Return the command of `$PAGER` and its arguments; `less` by default."""
    try:
        return shlex.split(os.environ.get("PAGER", "")) or ["less"]
    except ValueError:  # unbalanced quotes
        return ["less"]


def paged(result: ToolResult, folder: Path) -> Path:
    """Write the complete data of a result to a new file for a pager, formatted and sanitized, and return the file.

    Text is shown as it is. Other results over 20 MB are copied without formatting, to limit memory.

    Args:
        result: The result.
        folder: Existing folder for the file.

    Raises:
        OSError: The file can't be written, or that of a shortened result can't be read.
        ValueError: The file of the shortened result is not valid JSON.
    """
    cut = result.meta.truncated
    if cut is None or cut.total_bytes <= _PRETTY_LIMIT:
        return paged_text(as_text(whole(result)), folder)
    with Path(cut.file).open(encoding="utf-8", errors="backslashreplace") as source:
        chunks = iter(lambda: source.read(_CHUNK), "")
        return _paged(_text_pieces(chunks) if isinstance(result.data, str) else chunks, folder)


def _text_pieces(chunks: Iterator[str]) -> Iterator[str]:
    """Yield the text that is one string of JSON in pieces, to limit memory.

    Args:
        chunks: The JSON, in chunks.
    """
    rest = next(chunks, "").lstrip().removeprefix('"')
    for chunk in chunks:
        rest += chunk
        piece = rest[:-1]  # the last character may be the closing quotation mark
        if cut := _UNFINISHED_ESCAPE.search(piece):
            piece = piece[: cut.start(1)]
        yield json.loads(f'"{piece}"', strict=False)
        rest = rest[len(piece) :]
    yield json.loads(f'"{rest}', strict=False)


def paged_text(text: str, folder: Path) -> Path:
    """Write sanitized text to a new file for a pager and return the file.

    Raises:
        OSError: The file can't be written.
    """
    return _paged((text,), folder)


def _paged(pieces: Iterable[str], folder: Path) -> Path:
    descriptor, name = tempfile.mkstemp(dir=folder, prefix="result-", suffix=".txt")
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.writelines(clean(piece) for piece in pieces)
    return Path(name)
