"""What the command line prints: data to stdout, narration to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from pegboard.models import Problem
from pegboard.results.clean import clean, clean_line

_printed: set[str] = set()
"""The problems that this command has printed."""


def print_json(value: object) -> None:
    """Prints models, JSON values or containers of them to stdout, indented by two."""
    sys.stdout.flush()
    try:
        text = to_json(value, indent=2, by_alias=True, inf_nan_mode="strings")
    except PydanticSerializationError:
        # a lone surrogate is a legal JSON escape but no UTF-8
        import json

        text = json.dumps(to_jsonable_python(value, by_alias=True), indent=2).encode()
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def print_data(data: JsonValue) -> None:
    """Prints a result alone: text as it is, anything else as JSON; cleaned where a terminal would interpret it."""
    if not isinstance(data, str):
        print_json(data)
        return
    print(clean(data) if sys.stdout.isatty() else data)


def narrate(text: str, end: str = "\n") -> None:
    """Tells the user something on stderr; where nobody can be told, the data still comes."""
    with suppress(OSError):
        print(clean(text), end=end, file=sys.stderr, flush=True)


def narrate_problems(problems: Iterable[Problem]) -> None:
    """Print problems to stderr, a line each; one that this command has printed before is left out."""
    for problem in problems:
        line = clean_line(f"{problem.severity}: {problem}")
        if line not in _printed:
            _printed.add(line)
            narrate(line)


def begin_command() -> None:
    """Forget which problems were printed: another command begins."""
    _printed.clear()


def print_table(rows: list[tuple[str, ...]]) -> None:
    """Prints rows of untrusted text as aligned columns, the last one cut at a terminal's width."""
    import shutil

    cleaned = [tuple(clean_line(cell) for cell in row) for row in rows]
    widths = [max(len(row[column]) for row in cleaned) for column in range(len(cleaned[0]))] if cleaned else []
    limit = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for row in cleaned:
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        print("  ".join([*cells, row[-1]])[:limit].rstrip())
