"""Whole results on stdout, also those of which a call returns only a part."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pegboard.cli.output import narrate, print_data, print_json_pieces, print_text
from pegboard.results.sizes import size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pegboard.models import ToolResult

_LARGE: Final = 20_000_000
"""Size in bytes from which a result is copied from its file in pieces, to limit memory. JSON is then not indented."""
_PIECE: Final = 1_000_000


def print_whole_data(result: ToolResult) -> None:
    """Print the whole data of a result: text unchanged, anything else as JSON.

    If its file can't be read, print the part that the result contains, and the reason on stderr.
    """
    cut = result.meta.truncated
    if cut is None or cut.total_bytes <= _LARGE:
        print_data(complete_result(result).data)
        return
    from pegboard.results.stored.client import StoredResultError

    # A closed pipe must not look like an error of the file, so only the opening is in `try`.
    try:
        pieces = _text(result) if isinstance(result.data, str) else _json(cut.file)
    except (OSError, StoredResultError) as error:
        _report(result, error)
        print_data(result.data)
        return
    if isinstance(result.data, str):
        for piece in pieces:
            print_text(piece)
        print_text("\n")
    else:
        print_json_pieces(pieces)


def _text(result: ToolResult) -> Iterator[str]:
    import asyncio

    from pegboard.results.stored.client import StoredResultError, open_stored
    from pegboard.results.stored.values import StoredText

    text = asyncio.run(open_stored(result))
    if not isinstance(text, StoredText):
        raise StoredResultError("it is not text")
    return (text.segment(number) for number in range(text.count))


def _json(file: str) -> Iterator[str]:
    opened = Path(file).open(encoding="utf-8")  # noqa: SIM115 - opened now, so that the caller catches the error

    def pieces() -> Iterator[str]:
        with opened:
            while piece := opened.read(_PIECE):
                yield piece

    return pieces()


def complete_result(result: ToolResult) -> ToolResult:
    """Return a result with its whole data, or unchanged if its file can't be read; then report why on stderr."""
    if result.meta.truncated is None:
        return result
    from pegboard.results.export import completed

    try:
        return completed(result)
    except (OSError, ValueError) as error:
        _report(result, error)
        return result


def _report(result: ToolResult, error: Exception) -> None:
    cut = result.meta.truncated
    assert cut is not None, "only a truncated result has a file"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    narrate(
        f"Only {size(cut.shown_bytes)} of the result's {size(cut.total_bytes)} is printed because {cut.file} can't be"
        f" read: {reason}."
    )
