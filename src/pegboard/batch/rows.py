"""Rows of JSON Lines and CSV files, read as a stream.

A row has a number, counted from 1 without the header and without blank lines. Two kinds of errors are kept apart. A row
that can be skipped safely, such as a line that isn't JSON or a CSV row with another number of values, becomes a `Row`
with a problem. After an error that makes all further rows uncertain, such as an open quote or another encoding, reading
ends with a `RowsError`.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pegboard.batch.errors import RowsError
from pegboard.data.json_text import JsonTextError, parse
from pegboard.models import JsonObject

RowsFormat = Literal["csv", "jsonl"]

LONGEST: Final = 16_000_000
"""Highest number of bytes of a line and of characters of a CSV value. It bounds the memory that a row takes."""
STDIN: Final = "-"

_DELIMITERS: Final = ",;\t|"
_DELIMITER_LINE: Final = re.compile(r'"?sep=([^\w"\r\n])"?[\r\n]*', re.IGNORECASE)
"""First line that names the delimiter, for Excel: `sep=;`."""
_FORMATS: Final[dict[str, RowsFormat]] = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
}  # fmt: skip
_BOMS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before that of UTF-16, with which it starts
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MOST_READ: Final = 1_000_000
"""Characters of values after which `read_some` stops."""
_WIDE: Final = ("utf-16", "utf-32")
"""Encodings in which a byte 10 may be part of another character."""


class Row(NamedTuple):
    """One row of a file."""

    number: int
    line: int
    """Line of the file on which the row starts, from 1."""
    values: JsonObject
    """Values by column; those of a CSV file are text."""
    digest: str
    """Hash of the row's content."""
    problem: str = ""
    """Why the row can't be used, as the end of a sentence; empty if it can."""
    size: int = 0
    """Number of characters."""


class InputRows:
    """The rows of one file. Iterate once, and close it.

    Args:
        source: Path of the file, or `-` for standard input.
        encoding: Name of its encoding; by default that of its byte order mark, or else UTF-8.

    Attributes:
        format: Format of the file, by its suffix or else its first character.
        columns: Names of the columns of a CSV file; empty for JSON Lines, whose rows may differ.
        size: Size of the file in bytes; None if it isn't known.

    Raises:
        RowsError: The file can't be opened or has no usable header, or the encoding is unknown.
    """

    def __init__(self, source: str, *, encoding: str | None = None) -> None:
        self._name = "standard input" if source == STDIN else source
        self._was_encoding_given = encoding is not None
        self._number = 0
        self._line = 0
        self.size: int | None = None
        try:
            self._file = _open(source)
            status = os.fstat(self._file.fileno())
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise RowsError(f"{self._name} can't be read: {reason}.") from error
        self.is_regular = os.path.isfile(self._file.fileno())  # noqa: PTH113 - a descriptor
        if self.is_regular:
            self.size = status.st_size
        try:
            start = self._file.peek(4)
            self._encoding = self._find_encoding(encoding, start)
        except BaseException:
            self.close()
            raise
        for mark, name in _BOMS:
            if start.startswith(mark) and name == "utf-8" and self._encoding == "utf-8":
                self._file.read(len(mark))
        self.format: RowsFormat = _FORMATS.get(Path(source).suffix.lower()) or self._guess()
        self._lines = self._read_lines()
        self.columns: tuple[str, ...] = ()
        self._csv: Iterator[list[str]] = iter(())
        try:
            if self.format == "csv":
                self._read_header()
        except BaseException:
            self.close()
            raise

    @property
    def position(self) -> int:
        """Bytes of the file that its rows took so far, about; 0 if it isn't a regular file."""
        return self._file.tell() if self.is_regular else 0

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows.

        Raises:
            RowsError: The rest of the file can't be read.
        """
        return self._csv_rows() if self.format == "csv" else self._json_rows()

    def close(self) -> None:
        """Close the file."""
        if self._file.fileno() != 0:
            self._file.close()

    def _find_encoding(self, given: str | None, start: bytes) -> str:
        marked = next((name for mark, name in _BOMS if start.startswith(mark)), "")
        if not given and not marked and b"\0" in start[:4]:
            raise RowsError(
                f"{self._name} can't be read at row 1 (line 1): it contains zero bytes, so it is not UTF-8. If it is"
                " UTF-16 or UTF-32 text without a byte order mark, pass --encoding, such as utf-16-le."
            )
        try:
            name = codecs.lookup(given or marked or "utf-8").name
            bytes(4).decode(name)  # some encodings, such as hex, are of bytes
        except (LookupError, ValueError) as error:
            raise RowsError(f"The encoding {given!r} is unknown. Examples: utf-8, utf-16, latin-1, cp1252.") from error
        return "utf-8" if name == "utf-8-sig" else name

    def _guess(self) -> RowsFormat:
        """Return the format of a file whose suffix is unknown."""
        start = self._file.peek(64)[:64].decode(self._encoding, "ignore").lstrip("\ufeff \t\r\n")
        return "jsonl" if start[:1] in {"{", "["} else "csv"

    def _fail(self, reason: str, number: int | None = None, line: int | None = None) -> RowsError:
        row = self._number + 1 if number is None else number
        where = f"row {row}" if row else "the header"
        return RowsError(f"{self._name} can't be read at {where} (line {line or self._line}): {reason}")

    def _read_lines(self) -> Iterator[str]:
        """Yield the lines with their ends."""
        if self._encoding.startswith(_WIDE) or self._ends_lines_with_cr():
            yield from self._read_text_lines()
            return
        while True:
            self._line += 1
            try:
                line = self._file.readline(LONGEST + 1)
            except OSError as error:
                raise self._fail(f"{error.strerror or error}.") from error
            if not line:
                return
            if len(line) > LONGEST:
                raise self._fail(f"the line is longer than {LONGEST:,} bytes.")
            try:
                yield line.decode(self._encoding)
            except UnicodeError as error:
                raise self._undecodable(error) from error

    def _ends_lines_with_cr(self) -> bool:
        """Return whether only carriage returns end the lines of a CSV file, as in files of some spreadsheets."""
        start = self._file.peek(1) if self.format == "csv" else b""
        return b"\n" not in start and b"\r" in start[:-1]

    def _read_text_lines(self) -> Iterator[str]:
        text = io.TextIOWrapper(self._file, self._encoding, newline="")
        try:
            while True:
                self._line += 1
                line = text.readline(LONGEST + 1)
                if not line:
                    return
                if len(line) > LONGEST:
                    raise self._fail(f"the line is longer than {LONGEST:,} characters.")
                yield line.removeprefix("\ufeff") if self._line == 1 else line
        except UnicodeError as error:
            raise self._undecodable(error) from error
        except OSError as error:
            raise self._fail(f"{error.strerror or error}.") from error
        finally:
            with suppress(ValueError):  # the file was closed before its end
                text.detach()

    def _undecodable(self, error: UnicodeError) -> RowsError:
        lacks_mark = self._encoding in _WIDE and "BOM" in str(error)
        if lacks_mark or not isinstance(error, UnicodeDecodeError):
            return self._fail(f"it is not {self._encoding.upper()}. Pass another --encoding, such as utf-16-le.")
        bad = f"0x{error.object[error.start]:02x}"
        fix = "" if self._was_encoding_given else " Pass --encoding, such as latin-1 or cp1252."
        return self._fail(f"byte {bad} is not valid {self._encoding.upper()}.{fix}")

    # CSV

    def _read_header(self) -> None:
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST))  # of the whole process; others don't rely on less
        self._number = -1
        lines = (line for line in self._lines if line.strip("\r\n"))
        first = next(lines, "")
        if named := _DELIMITER_LINE.fullmatch(first):
            delimiter, first = named[1], next(lines, "")
        else:
            delimiter = max(_DELIMITERS, key=lambda sign: (_unquoted(first).count(sign), -_DELIMITERS.index(sign)))
        header = self._line
        self._csv = csv.reader(_chain(first, self._lines), delimiter=delimiter, strict=True)
        try:
            names = next(self._csv, [])
        except csv.Error as error:
            raise self._fail(_csv_reason(error), line=header) from error
        columns = tuple(name.strip() for name in names)
        if not any(columns):
            raise self._fail("a CSV file needs a first line with the names of its columns.", line=header)
        twice = next((name for name in columns if columns.count(name) > 1), None)
        if twice is not None:
            what = f"the column {twice!r} occurs twice" if twice else "more than one column has no name"
            raise self._fail(f"{what}.", line=header)
        self.columns, self._number = columns, 0

    def _csv_rows(self) -> Iterator[Row]:
        while True:
            line = self._line + 1
            try:
                cells = next(self._csv, None)
            except csv.Error as error:
                raise self._fail(_csv_reason(error), line=line) from error
            if cells is None:
                return
            if not cells:  # a blank line
                continue
            self._number += 1
            digest = _digest("\x1f".join(cells).encode("utf-8", "surrogatepass"))
            problem = ""
            if len(cells) != len(self.columns):
                values = "1 value" if len(cells) == 1 else f"{len(cells)} values"
                names = "1 column" if len(self.columns) == 1 else f"{len(self.columns)} columns"
                problem = f"has {values}, but the header has {names}"
            cell_values: JsonObject = dict(zip(self.columns, cells, strict=False))
            yield Row(self._number, line, cell_values, digest, problem, sum(map(len, cells)))

    # JSON Lines

    def _json_rows(self) -> Iterator[Row]:
        for line in self._lines:
            text = line.strip()
            if not text:
                continue
            self._number += 1
            values, problem = _parsed(text)
            if self._number == 1 and problem and text.startswith("["):
                raise self._fail(
                    "the file must have one JSON object per line, not one array. Convert it with `jq -c '.[]'`.", 1
                )
            digest = _digest(text.encode("utf-8", "surrogatepass"))
            yield Row(self._number, self._line, values, digest, problem, len(text))


def _open(source: str) -> io.BufferedReader:
    if source == STDIN:
        return io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
    return Path(source).open("rb")


def _parsed(text: str) -> tuple[JsonObject, str]:
    """Return the object in a line and an empty text, or an empty object and the problem."""
    try:
        value = parse(text)
    except JsonTextError as error:
        return {}, str(error).replace("(line 1, ", "(")  # the message names the line of the file
    if not isinstance(value, dict):
        return {}, "must be a JSON object"
    return value, ""


def _chain(first: str, lines: Iterable[str]) -> Iterator[str]:
    yield first
    yield from lines


def _unquoted(line: str) -> str:
    """Return the parts of a CSV line outside of quotes."""
    return "".join(line.split('"')[::2])


def _csv_reason(error: csv.Error) -> str:
    text = str(error)
    if "unexpected end" in text or "field larger" in text:
        return "a quoted value starts here and doesn't end. Close the quote, or double a quote inside a value."
    if "expected after" in text:
        return "text follows a closing quote. Double the quotes inside a quoted value."
    return f"{text}."


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=8).hexdigest()


def read_some(rows: Iterator[Row], most: int) -> tuple[list[Row], RowsError | None]:
    """Return the next rows, and the error that ended reading.

    Args:
        rows: The rows.
        most: Highest number of rows.
    """
    found: list[Row] = []
    left = _MOST_READ
    while len(found) < most and left > 0:
        try:
            row = next(rows, None)
        except RowsError as error:
            return found, error
        if row is None:
            break
        found.append(row)
        left -= row.size
    return found, None
