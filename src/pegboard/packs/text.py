"""Find and replace text with regular expressions, compare texts, and count words."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from annotated_types import Ge, Gt, Le

from pegboard.sdk import ToolFailed, aliases, hints, requires_lib

from ._roots import read_text

if TYPE_CHECKING:
    from regex import Pattern

requires_lib("regex")

_MAX_BYTES = 20_000_000

Flag = Literal["ignore_case", "multiline", "dot_all", "verbose", "ascii"]
Seconds = Annotated[float, Gt(0), Le(60)]


class TextMatch(TypedDict):
    """A match of a pattern."""

    line: int
    """Counted from 1."""
    column: int
    """In characters, counted from 1."""
    match: str
    groups: list[str | None]
    """Text of each group of the pattern, in order."""
    named: dict[str, str | None]
    """Text of each named group."""


class TextMatches(TypedDict):
    """Matches of a pattern."""

    matches: list[TextMatch]
    truncated: bool
    """Whether there are more matches."""


class Replaced(TypedDict):
    """A text after a replacement."""

    text: str
    replacements: int
    """Number of replaced matches."""


class Difference(TypedDict):
    """Difference between two texts."""

    same: bool
    added: int
    """Number of added lines."""
    removed: int
    """Number of removed lines."""
    diff: str
    """A unified diff; empty if the texts are equal."""


class TextCounts(TypedDict):
    """Length of a text."""

    lines: int
    """Includes a last line without a line end."""
    words: int
    """Separated by white space."""
    characters: int
    bytes: int
    """In UTF-8."""
    longest_line: int
    """In characters."""


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=70)
@aliases(max_matches="maxMatches")
def find(
    *,
    pattern: str,
    text: str | None = None,
    file: str | None = None,
    flags: Sequence[Flag] = (),
    max_matches: Annotated[int, Ge(1), Le(100_000)] = 1000,
    seconds: Seconds = 5.0,
) -> TextMatches:
    """Find all matches of a regular expression in a text.

    Args:
        pattern: Regular expression of Python's `regex` library, a superset of `re`.
        text: Text; set either this or `file`.
        file: File, inside the working directory.
        flags: Options of the regular expression.
        max_matches: Maximum number of matches to return.
        seconds: Time limit.
    """
    given = _given(text, file)
    found: list[TextMatch] = []
    line, begin, seen = 1, 0, 0
    with _time_limit(seconds):
        for match in _compiled(pattern, flags).finditer(given, timeout=seconds):
            if len(found) == max_matches:
                return {"matches": found, "truncated": True}
            start = match.start()
            if newlines := given.count("\n", seen, start):
                line += newlines
                begin = given.rindex("\n", seen, start) + 1
            seen = start
            found.append(
                {
                    "line": line,
                    "column": start - begin + 1,
                    "match": match.group(),
                    "groups": list(match.groups()),
                    "named": match.groupdict(),
                }
            )
    return {"matches": found, "truncated": False}


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=70)
def replace(
    *,
    pattern: str,
    replacement: str,
    text: str | None = None,
    file: str | None = None,
    flags: Sequence[Flag] = (),
    limit: Annotated[int, Ge(0)] = 0,
    seconds: Seconds = 5.0,
) -> Replaced:
    r"""Replace the matches of a regular expression in a text and return it; a file is not changed.

    Args:
        pattern: Regular expression of Python's `regex` library, a superset of `re`.
        replacement: Replacement; `\1` and `\g<name>` insert groups.
        text: Text; set either this or `file`.
        file: File, inside the working directory.
        flags: Options of the regular expression.
        limit: Maximum number of matches to replace; 0 for all.
        seconds: Time limit.
    """
    import regex

    given = _given(text, file)
    compiled = _compiled(pattern, flags)
    with _time_limit(seconds):
        try:
            changed, count = compiled.subn(replacement, given, count=limit, timeout=seconds)
        except (regex.error, IndexError) as error:  # an invalid escape, or a missing group
            raise ToolFailed(f"The replacement is invalid: {error}.", code="invalid_replacement") from None
    return {"text": changed, "replacements": count}


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
@aliases(before_file="beforeFile", after_file="afterFile")
def diff(
    *,
    before: str | None = None,
    after: str | None = None,
    before_file: str | None = None,
    after_file: str | None = None,
    context: Annotated[int, Ge(0), Le(1000)] = 3,
) -> Difference:
    """Compare two texts line by line.

    Args:
        before: First text; set either this or `before_file`.
        after: Second text; set either this or `after_file`.
        before_file: File with the first text, inside the working directory.
        after_file: File with the second text, inside the working directory.
        context: Number of lines around each change.
    """
    from difflib import unified_diff

    old = _lines(_given(before, before_file, "before", "before_file"))
    new = _lines(_given(after, after_file, "after", "after_file"))
    lines = list(unified_diff(old, new, before_file or "before", after_file or "after", n=context))
    changes = lines[2:]  # without the header
    return {
        "same": old == new,
        "added": sum(line.startswith("+") for line in changes),
        "removed": sum(line.startswith("-") for line in changes),
        "diff": "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines),
    }


@hints(read_only=True, destructive=False, idempotent=True, open_world=False)
def count(*, text: str | None = None, file: str | None = None) -> TextCounts:
    """Count the lines, words, characters and bytes of a text.

    Args:
        text: Text; set either this or `file`.
        file: File, inside the working directory.
    """
    given = _given(text, file)
    lines = given.split("\n")
    return {
        "lines": len(lines) - (lines[-1] == ""),
        "words": len(given.split()),
        "characters": len(given),
        "bytes": len(given.encode("utf-8", "surrogatepass")),
        "longest_line": max(len(line.removesuffix("\r")) for line in lines),
    }


def _lines(text: str) -> list[str]:
    """Split a text after each newline, and at no other character."""
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _given(text: str | None, file: str | None, as_text: str = "text", as_file: str = "file") -> str:
    if (text is None) == (file is None):
        raise ToolFailed(f"Give either `{as_text}` or `{as_file}`.", code="invalid_argument")
    return read_text(file, _MAX_BYTES) if file is not None else text or ""


def _compiled(pattern: str, flags: Sequence[Flag]) -> "Pattern[str]":
    import regex

    meant = {
        "ignore_case": regex.IGNORECASE,
        "multiline": regex.MULTILINE,
        "dot_all": regex.DOTALL,
        "verbose": regex.VERBOSE,
        "ascii": regex.ASCII,
    }
    try:
        return regex.compile(pattern, sum({meant[flag] for flag in flags}))
    except regex.error as error:
        raise ToolFailed(f"The pattern is invalid: {error}.", code="invalid_pattern") from None


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise ToolFailed(f"The pattern took longer than {seconds:g} s on this text.", code="too_slow") from None
