"""Results of rows: their shape, and the file that they are appended to."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, from_json, to_json

from pegboard import storage
from pegboard.batch.errors import JournalError
from pegboard.models import JsonObject, ToolError, ToolResult
from pegboard.results.table import inert

UNKNOWN: Final = "unknown"
"""Detail of the error of a row whose call was interrupted and can't be repeated safely."""
_UNKNOWN: Final = frozenset({UNKNOWN, "worker_lost"})
_COLUMNS: Final = ("row", "ok")
_LAST_COLUMNS: Final = ("error", "message", "detail", "durationMs", "attempts", "call")
_MOST_COLUMNS: Final = 1_000
_REST: Final = "rest"


@dataclass(frozen=True, slots=True)
class RowResult:
    """The result of one row.

    Attributes:
        row: Number of the row.
        ok: Whether its call succeeded.
        data: Result of the tool.
        error: Why the call failed; None if it succeeded.
        duration_ms: Duration of the last call in milliseconds.
        attempts: Number of calls.
        call: Id of the last call in the history; None if the tool wasn't called.
    """

    row: int
    ok: bool
    data: JsonValue = None
    error: ToolError | None = None
    duration_ms: float = 0.0
    attempts: int = 1
    call: str | None = None

    @classmethod
    def failed(cls, row: int, message: str, detail: str | None = None, *, attempts: int = 0) -> RowResult:
        """Return the result of a row without a finished call."""
        code = "execution_error" if detail == UNKNOWN else "invalid_args"
        error = ToolResult.failed(code, message, detail).error  # type: ignore[arg-type]  # both are codes
        return cls(row=row, ok=False, error=error, attempts=attempts)

    @classmethod
    def parsed(cls, line: JsonObject) -> RowResult:
        """Return the result of a line that `read_results` yields.

        Raises:
            KeyError: A value is missing.
            ValueError: A value is invalid.
        """
        call = line["call"]
        return cls(
            row=int(str(line["row"])),
            ok=bool(line["ok"]),
            data=line["data"],
            error=ToolError.model_validate(line["error"]) if line["error"] is not None else None,
            duration_ms=float(str(line["durationMs"])),
            attempts=int(str(line["attempts"])),
            call=str(call) if call is not None else None,
        )

    @property
    def is_unknown(self) -> bool:
        """Whether the call was interrupted, so that its outcome is unknown."""
        return self.error is not None and not self.error.said and self.error.detail in _UNKNOWN

    def line(self) -> bytes:
        """Return the result as one line of JSON: `{row, ok, data, error, durationMs, attempts, call}`."""
        shown = {
            "row": self.row,
            "ok": self.ok,
            "data": self.data,
            "error": self.error,
            "durationMs": round(self.duration_ms, 3),
            "attempts": self.attempts,
            "call": self.call,
        }
        try:
            return to_json(shown, by_alias=True, inf_nan_mode="strings") + b"\n"
        except PydanticSerializationError:  # half a surrogate pair
            shown["error"] = self.error.model_dump(mode="json", by_alias=True) if self.error else None
            text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
            return text.encode("utf-8", "replace") + b"\n"


class ResultLines:
    """File of results to which lines are appended.

    A killed process leaves at most one incomplete line, which `recover` removes.

    Args:
        file: The file.

    Raises:
        OSError: The file can't be opened.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, storage.PRIVATE_FILE)
        self.size = os.fstat(self._descriptor).st_size
        """Bytes written so far."""

    def append(self, lines: bytes) -> None:
        """Write whole lines, or none of them.

        Raises:
            OSError: The file can't be written.
        """
        storage.append(self._descriptor, lines)
        self.size += len(lines)

    def recover(self, known: int, rows: Iterable[int]) -> list[tuple[int, int, bool]]:
        """Return the row, the end and the success of each complete line after a position; remove what follows.

        Args:
            known: Size up to which every line is known to be complete.
            rows: The rows that may have a result after it.

        Raises:
            JournalError: The file has other results; it isn't changed.
            OSError: The file can't be read.
        """
        if self.size < known:
            raise JournalError(
                f"The results have {self.size:,} bytes, but the journal recorded {known:,}. Restore the file, or start"
                " again with --force."
            )
        if known and os.pread(self._descriptor, 1, known - 1) != b"\n":
            raise JournalError(
                f"{self._file} has other results than its journal recorded. Restore the file, or start again with"
                " --force."
            )
        found: list[tuple[int, int, bool]] = []
        end = known
        expected = set(rows)
        for line in _tail(self._descriptor, known):
            if not line.endswith(b"\n"):
                break
            try:
                value = from_json(line)
                row, ok = int(value["row"]), bool(value["ok"])
            except (ValueError, KeyError, TypeError):
                break
            if row not in expected:
                raise JournalError(f"{self._file} has a result of row {row} that its journal doesn't expect.")
            expected.remove(row)
            end += len(line)
            found.append((row, end, ok))
        os.ftruncate(self._descriptor, end)
        self.size = end
        return found

    def sync(self) -> None:
        """Make the lines survive a power failure."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _tail(descriptor: int, start: int) -> Iterator[bytes]:
    with open(os.dup(descriptor), "rb") as file:  # noqa: PTH123 - a descriptor
        file.seek(start)
        yield from file


def read_results(file: Path) -> Iterator[JsonObject]:
    """Yield the results in a file of lines, in the order in which they finished.

    Raises:
        OSError: The file can't be read.
    """
    with file.open("rb") as lines:
        for line in lines:
            yield from_json(line)


def unknown_rows(file: Path) -> list[int]:
    """Return the rows of a file of lines whose outcome is unknown.

    Raises:
        OSError: The file can't be read.
    """
    with file.open("rb") as lines:
        return [row for line in lines if (row := _unknown_row(line)) is not None]


def size_without(file: Path, rows: Collection[int]) -> int:
    """Return the size of a file of lines without the unknown outcomes of some rows.

    Raises:
        OSError: The file can't be read.
    """
    with file.open("rb") as lines:
        return sum(len(line) for line in lines if _unknown_row(line) not in rows)


def remove_unknown(file: Path, rows: Collection[int]) -> None:
    """Remove the unknown outcomes of some rows from a file of lines, which is replaced as a whole.

    Raises:
        OSError: The file can't be read or written.
    """
    with file.open("rb") as lines, storage.replacing(file) as target:
        target.writelines(line for line in lines if _unknown_row(line) not in rows)


def _unknown_row(line: bytes) -> int | None:
    """Return the row of a line whose outcome is unknown, or None if it is known."""
    if not any(b'"detail":"%s"' % detail.encode() in line for detail in _UNKNOWN):  # quicker than to parse each line
        return None
    try:
        found = from_json(line)
        detail = found["error"]["detail"]
        is_unknown = detail == "worker_lost" or (detail == UNKNOWN and found["call"] is None)  # else it is the tool's
        return int(found["row"]) if is_unknown else None
    except (ValueError, KeyError, TypeError):  # an incomplete last line
        return None


def write_csv(source: Path, target: Path) -> None:
    """Write the results in a file of lines as CSV: nested data become columns such as `data.user.name`.

    The columns are those of all rows, so the file is written at the end of a batch, and replaced as a whole. If there
    are too many, the column `rest` has the other values of each row as JSON. Texts that a spreadsheet would run as a
    formula get an apostrophe in front.

    Raises:
        OSError: A file can't be read or written.
    """
    columns: dict[str, None] = {}
    has_rest = False
    for result in read_results(source):
        for name, _ in _flat("data", result.get("data")):
            if len(columns) < _MOST_COLUMNS:
                columns[name] = None
            has_rest = has_rest or name not in columns
    with storage.replacing(target) as raw:
        text = io.TextIOWrapper(raw, "utf-8", errors="backslashreplace", newline="", write_through=True)
        writer = csv.writer(text)
        writer.writerow([*_COLUMNS, *columns, *([_REST] if has_rest else []), *_LAST_COLUMNS])
        for result in read_results(source):
            cells = _cells(result, columns, has_rest=has_rest)
            writer.writerow([inert(cell) if isinstance(cell, str) else cell for cell in cells])
        text.detach()


def _cells(result: JsonObject, columns: Iterable[str], *, has_rest: bool) -> list[object]:
    error = result.get("error")
    error = error if isinstance(error, dict) else {}
    data = dict(_flat("data", result.get("data")))
    cells = [_cell(data.pop(name, "")) for name in columns]
    if has_rest:
        cells.append(_json(data) if data else "")
    return [
        result["row"],
        "true" if result["ok"] else "false",
        *cells,
        error.get("code", ""),
        error.get("message", ""),
        error.get("detail") or "",
        result.get("durationMs", ""),
        result.get("attempts", ""),
        result.get("call") or "",
    ]


def _flat(name: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield the column and the value of each cell: objects are flattened, null has none.

    A key that a column's name would make ambiguous is in quotation marks: `data."a.b"` isn't `data.a.b`.
    """
    match value:
        case None:
            return
        case dict() if value:
            for key, inner in value.items():
                is_clear = key and "." not in key and '"' not in key
                yield from _flat(f"{name}.{key if is_clear else _json(key)}", inner)
        case _:
            yield name, value


def _cell(value: JsonValue) -> str | int | float:
    """Return the cell of a value: lists are JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str | int | float) else _json(value)


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
