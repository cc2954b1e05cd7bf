"""Results as files: saved by a user, or opened in a pager."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
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


def suggested_name(call: ToolCall, result: ToolResult, at: datetime) -> str:
    """Gives a file name for a result, such as `fs.read_file-20260731-140259.txt`: text for text, else JSON."""
    kind = "txt" if isinstance(result.data, str) else "json"
    name = "".join(sign if sign.isalnum() or sign in "._-" else "_" for sign in call.name)[:80]
    return f"{name.strip('.') or 'result'}-{at:%Y%m%d-%H%M%S}.{kind}"


def whole(result: ToolResult) -> JsonValue:
    """Gives all of a result's data, read from its file if it was shortened.

    Raises:
        OSError: The file can't be read.
        ValueError: It is no JSON.
    """
    if result.meta.truncated is None:
        return result.data
    value: JsonValue = from_json(Path(result.meta.truncated.file).read_bytes())
    return value


def save(result: ToolResult, file: Path) -> int:
    """Writes all of a result's data to a file that does not exist yet, and gives its size in bytes.

    The suffix decides: `.csv` a table where there is one, `.json` JSON, anything else text (which for data that
    is no text is JSON as well). Nothing is cleaned: the file has what the tool gave.

    Args:
        result: The result.
        file: Where to; its folder must exist.

    Raises:
        FileExistsError: There is such a file.
        FileNotFoundError: There is no such folder.
        ValueError: There is no table to be written as CSV.
        OSError: It can't be written, or the file of a shortened result can't be read.
    """
    if file.exists():
        raise FileExistsError(f"{file} exists already")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {file.parent}")
    with replacing(file, replace=False) as out:
        _write(result, file.suffix.lower(), out)
    return file.stat().st_size


def _write(result: ToolResult, suffix: str, out: IO[bytes]) -> None:
    if suffix == ".json" and result.meta.truncated:
        with Path(result.meta.truncated.file).open("rb") as source:
            shutil.copyfileobj(source, out)
        return
    data = whole(result)
    match suffix:
        case ".json":
            out.write(json_bytes(data, indent=2) + b"\n")
        case ".csv":
            table = Table.of(data)
            if table is None:
                raise ValueError("only a list of objects can be saved as CSV")
            out.write(table.csv().encode(errors="backslashreplace"))
        case _:
            out.write(as_text(data).encode(errors="backslashreplace"))


def paged(result: ToolResult, folder: Path) -> Path:
    """Writes all of a result's data, clean and readable, to a file of its own for a pager, and gives the file.

    Very large results (over 20 MB) are copied without being laid out anew, so that memory stays bounded.

    Args:
        result: The result.
        folder: Where to write; it must exist.

    Raises:
        OSError: It can't be written, or the file of a shortened result can't be read.
        ValueError: That file is no JSON.
    """
    cut = result.meta.truncated
    if cut is None or cut.total_bytes <= _PRETTY_LIMIT:
        return paged_text(as_text(whole(result)), folder)
    with Path(cut.file).open(encoding="utf-8", errors="backslashreplace") as source:
        return _paged(iter(lambda: source.read(_CHUNK), ""), folder)


def paged_text(text: str, folder: Path) -> Path:
    """Writes a text, clean, to a file of its own for a pager, and gives the file.

    Raises:
        OSError: It can't be written.
    """
    return _paged((text,), folder)


def _paged(pieces: Iterable[str], folder: Path) -> Path:
    descriptor, name = tempfile.mkstemp(dir=folder, prefix="result-", suffix=".txt")
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.writelines(clean(piece) for piece in pieces)
    return Path(name)
