"""Output of the command line: data to stdout, messages to stderr.

No text can control the terminal: `guard_terminals` replaces each standard stream that is a terminal by one that
removes control characters. Files and pipes receive the text unchanged.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING

from pegboard.results.clean import clean, clean_line, escaped_json, without_halves
from pegboard.results.sizes import count

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.models import Problem

_COLORS = {"red": 31, "green": 32, "yellow": 33}
_MOST_OF_FILE = 3
"""Warnings and hints about the tools of a file that are printed."""
_LEAST_FIRST, _LEAST_LAST = 16, 20
"""Cells to which the first column of a table is cut, so that the last one has as many."""


class _Terminal(TextIOWrapper):
    """A standard stream that is a terminal and cleans every text.

    Args:
        stream: The stream that it replaces.
    """

    def __init__(self, stream: TextIOWrapper) -> None:
        super().__init__(stream.buffer, stream.encoding, "backslashreplace", line_buffering=True)
        self._before = ""

    def write(self, text: str, /) -> int:
        """Write a text, cleaned as the continuation of the previous one."""
        cleaned = clean(self._before + text)[len(clean(self._before)) :]
        # A joiner is judged by the two characters before it, which may be in the previous text.
        before = (self._before + text)[-2:]
        self._before = "" if before.endswith("\r") else before
        super().write(cleaned)
        return len(text)

    def write_status(self, text: str) -> None:
        """Replace the current line by a cleaned text, without ending it."""
        super().write(f"\r\x1b[K{text}")
        self.flush()

    def write_color(self, code: int) -> None:
        """Change the color of the text that follows; 0 is the default color."""
        super().write(f"\x1b[{code}m")


def guard_terminals() -> None:
    """Guard stdout and stderr, if they are terminals, against control sequences in text."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper) and not isinstance(stream, _Terminal) and stream.isatty():
            stream.flush()
            setattr(sys, name, _Terminal(stream))


_printed: set[str] = set()
"""The problems that this command has printed."""


def print_json(value: object) -> None:
    """Print models, JSON values or containers of them to stdout, indented by two.

    On a terminal, control characters and invisible ones are written as escapes.
    """
    from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

    sys.stdout.flush()
    try:
        text = to_json(value, indent=2, by_alias=True, inf_nan_mode="strings")
    except PydanticSerializationError:
        # Half a surrogate pair is not valid UTF-8, and other programs reject its escape.
        import json

        plain = to_jsonable_python(value, by_alias=True, inf_nan_mode="strings")
        text = without_halves(json.dumps(plain, indent=2, ensure_ascii=False)).encode()
    _write_json(text)


def print_json_text(json: str) -> None:
    """Print JSON text to stdout, as `print_json` does."""
    sys.stdout.flush()
    _write_json(without_halves(json).encode())


def print_line_of_json(line: bytes) -> None:
    """Print one line of JSON to stdout; on a terminal, control characters and invisible ones are escapes."""
    _write_json(line)


def print_json_pieces(pieces: Iterable[str]) -> None:
    """Print JSON text that comes in pieces, as `print_line_of_json` does."""
    is_terminal = sys.stdout.isatty()
    sys.stdout.flush()
    for piece in pieces:
        sys.stdout.buffer.write((escaped_json(piece) if is_terminal else piece).encode())
    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


def write_status(text: str) -> None:
    """Show a text as the last line on stderr, in place of the previous one; do nothing if it isn't a terminal."""
    import shutil

    if isinstance(sys.stderr, _Terminal):
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.write_status(clean_line(text)[: max(1, shutil.get_terminal_size().columns - 1)])


def _write_json(text: bytes) -> None:
    if sys.stdout.isatty():
        text = escaped_json(text.decode()).encode()
    sys.stdout.buffer.write(text.removesuffix(b"\n") + b"\n")
    sys.stdout.buffer.flush()


def print_data(data: JsonValue) -> None:
    """Print only a result: text unchanged, anything else as JSON."""
    if isinstance(data, str):
        print_text(data, end="\n")
    else:
        print_json(data)


def print_text(text: str, end: str = "", *, to_stderr: bool = False) -> None:
    """Print data text unchanged, except for halves of surrogate pairs."""
    print(without_halves(text), end=end, file=sys.stderr if to_stderr else sys.stdout, flush=True)


class _Log:
    """State of streamed logs on stderr."""

    line_is_open = False
    """Whether the last log ended within a line."""


def narrate(text: str, end: str = "\n") -> None:
    """Print a message on a line of its own on stderr, after all data printed so far.

    Ignore errors, so that the data is still printed.
    """
    end_log_line()
    _print_message(text, end)


def narrate_log(text: str) -> None:
    """Print a piece of a tool's log on stderr as it is; the next message starts on a new line."""
    if text:
        _print_message(text, "")
        _Log.line_is_open = not text.endswith("\n")


def end_log_line() -> None:
    """End the line on stderr that a log left open."""
    if _Log.line_is_open:
        _Log.line_is_open = False
        _print_message("", "\n")


def _print_message(text: str, end: str) -> None:
    with suppress(OSError):
        sys.stdout.flush()  # Otherwise data in the buffer would appear after later messages.
    with suppress(OSError):
        print(clean(text), end=end, file=sys.stderr, flush=True)


def narrate_problems(problems: Iterable[Problem]) -> None:
    """Print problems to stderr, a line each; skip those that this command has printed.

    Of the warnings and hints about the tools of a file, only the first ones are printed, and the number of the others.
    """
    omitted: Counter[str] = Counter()
    of_file: Counter[str] = Counter()
    for problem in problems:
        line = clean_line(f"{problem.severity}: {problem}")
        if line in _printed:
            continue
        _printed.add(line)
        if problem.file is not None and problem.tool is not None and problem.severity != "error":
            of_file[problem.file] += 1
            if of_file[problem.file] > _MOST_OF_FILE:
                omitted[problem.file] += 1
                continue
        narrate(line)
    for file, number in omitted.items():
        more = count(number, "more problem")
        narrate(clean_line(f"warning: {file}: {more}; `pegboard tools info` lists those of a tool."))


def is_printed(problem: str) -> bool:
    """Return whether this command has printed the error with this text."""
    return clean_line(f"error: {problem}") in _printed


def begin_command() -> None:
    """Forget which problems were printed, because another command starts."""
    _printed.clear()
    _Log.line_is_open = False


def print_table(rows: list[tuple[str, ...]], headings: tuple[str, ...] = (), empty: str = "") -> None:
    """Print rows of untrusted text as aligned columns, cut at the terminal's width.

    The last column is cut, and the first one if the others would not be visible otherwise.

    Args:
        rows: The rows.
        headings: Titles of the columns, printed above the rows.
        empty: Message for stderr if there are no rows. Nothing goes to stdout then.
    """
    import shutil

    if not rows:
        if empty:
            narrate(empty)
        return
    cleaned = [*([headings] if headings else []), *(tuple(clean_line(cell) for cell in row) for row in rows)]
    widths = [max(_width(row[column]) for row in cleaned) for column in range(len(cleaned[0]))]
    limit = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if limit is not None:
        left = limit - sum(width + 2 for width in widths[1:-1]) - 2 - min(widths[-1], _LEAST_LAST)
        widths[0] = min(widths[0], max(left, _LEAST_FIRST)) if len(widths) > 1 else widths[0]
    for first, *others in cleaned:
        row = [_truncate(first, widths[0]), *others]
        cells = [cell + " " * (width - _width(cell)) for cell, width in zip(row[:-1], widths, strict=False)]
        print(_truncate("  ".join([*cells, row[-1]]).rstrip(), limit))


def _width(text: str) -> int:
    """Return the width of a text in cells."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _truncate(line: str, limit: int | None) -> str:
    """Return a line of at most `limit` cells."""
    if limit is None or _width(line) <= limit:
        return line
    from pegboard.results.wrap import truncate

    return truncate(line, limit)


def print_colored(word: str, color: str) -> None:
    """Print a word without a line break, in color if stdout is a terminal."""
    stream = sys.stdout
    if not isinstance(stream, _Terminal):
        print(word, end="")
        return
    stream.write_color(_COLORS[color])
    stream.write(word)
    stream.write_color(0)
