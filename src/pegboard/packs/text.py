"""Text: find and replace by regular expressions, compare, and count."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from annotated_types import Ge, Gt, Le

from pegboard.sdk import ToolFailed, aliases, hints, requires_lib

from ._roots import read_text

if TYPE_CHECKING:
    from regex import Pattern

requires_lib("regex", install="pip install regex")

_MAX_BYTES = 20_000_000

Flag = Literal["ignore_case", "multiline", "dot_all", "verbose", "ascii"]
Seconds = Annotated[float, Gt(0), Le(60)]


class Match(TypedDict):
    """One place where a pattern fits."""

    line: int
    """Counted from 1."""
    column: int
    """In characters, counted from 1."""
    match: str
    groups: list[str | None]
    """What each group of the pattern took, in order."""
    named: dict[str, str | None]
    """What the groups with names took."""


class Matches(TypedDict):
    """Where a pattern fits."""

    matches: list[Match]
    truncated: bool
    """Whether there are more."""


class Replaced(TypedDict):
    """A text in which something was put in the place of matches."""

    text: str
    replacements: int
    """How many there were."""


class Difference(TypedDict):
    """What makes one text another."""

    same: bool
    added: int
    """Lines."""
    removed: int
    """Lines."""
    diff: str
    """A unified diff; empty if the texts are the same."""


class Counts(TypedDict):
    """How long a text is."""

    lines: int
    """A last line without a line end counts too."""
    words: int
    """What stands between white space."""
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
) -> Matches:
    """Finds every place in a text where a regular expression fits.

    Args:
        pattern: In the language of Python's `regex` library, which is that of `re` and more.
        text: The text, unless there is a file.
        file: The file, inside the working directory.
        flags: How the pattern is meant.
        max_matches: How many matches to give at most.
        seconds: How long the pattern may take.
    """
    given = _given(text, file)
    found: list[Match] = []
    line, begin, seen = 1, 0, 0
    with _patience(seconds):
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
    r"""Gives a text in which every match of a regular expression is replaced; a file is not changed.

    Args:
        pattern: In the language of Python's `regex` library, which is that of `re` and more.
        replacement: What to put there; `\1` and `\g<name>` stand for what groups took.
        text: The text, unless there is a file.
        file: The file, inside the working directory.
        flags: How the pattern is meant.
        limit: How many matches to replace at most; 0 is all.
        seconds: How long the pattern may take.
    """
    import regex

    given = _given(text, file)
    compiled = _compiled(pattern, flags)
    with _patience(seconds):
        try:
            changed, count = compiled.subn(replacement, given, count=limit, timeout=seconds)
        except (regex.error, IndexError) as error:  # a bad escape, or a group that isn't there
            raise ToolFailed(f"The replacement won't do: {error}.", code="invalid_replacement") from None
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
    """Compares two texts line by line.

    Args:
        before: The one text, unless there is a file.
        after: The other text, unless there is a file.
        before_file: The file with the one text, inside the working directory.
        after_file: The file with the other text, inside the working directory.
        context: How many lines to show around each change.
    """
    from difflib import unified_diff

    old = _lines(_given(before, before_file, "before", "before_file"))
    new = _lines(_given(after, after_file, "after", "after_file"))
    lines = list(unified_diff(old, new, before_file or "before", after_file or "after", n=context))
    changes = lines[2:]  # what comes first names the two
    return {
        "same": old == new,
        "added": sum(line.startswith("+") for line in changes),
        "removed": sum(line.startswith("-") for line in changes),
        "diff": "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines),
    }


@hints(read_only=True, destructive=False, idempotent=True, open_world=False)
def count(*, text: str | None = None, file: str | None = None) -> Counts:
    """Counts the lines, words, characters and bytes of a text.

    Args:
        text: The text, unless there is a file.
        file: The file, inside the working directory.
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
    """Parts a text after each newline, and nowhere else."""
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
        raise ToolFailed(f"The pattern won't do: {error}.", code="invalid_pattern") from None


@contextmanager
def _patience(seconds: float) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise ToolFailed(f"The pattern took longer than {seconds:g} s on this text.", code="too_slow") from None
