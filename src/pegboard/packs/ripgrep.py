"""Searching in files with ripgrep: what lines match, how often, and what files there are."""

import base64
import json
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict  # Any: what rg prints is outside data

from annotated_types import Ge, Le

from pegboard.sdk import ToolFailed, aliases, hints, requires_cli

from ._programs import Program, started
from ._roots import explained, require_file, resolve

requires_cli(
    "rg", min_version="13", install="apt install ripgrep, brew install ripgrep, or cargo install ripgrep --locked"
)

_LONGEST_LINE = 500
"""Characters of a line that are shown; of a longer one, those around its first match."""
_LONGEST_EVENT = 20_000_000
_LONGEST_PATH = 10_000
_CHUNK = 2**16

Case = Literal["smart", "sensitive", "ignore"]


class Match(TypedDict):
    """One line that matches."""

    path: str
    """Begins like the path that was searched, so that it can be passed on."""
    line: int
    """Counted from 1."""
    column: int
    """Where the first match in the line begins, in characters, counted from 1."""
    text: str
    """The line; a long one is cut, which `…` shows."""
    before: NotRequired[list[str]]
    """The lines before it, if context was asked for."""
    after: NotRequired[list[str]]
    """The lines after it, if context was asked for."""


class _Unread(TypedDict):
    unread: NotRequired[str]
    """What could not be read, and why."""


class Matches(_Unread):
    """What a search found."""

    matches: list[Match]
    truncated: bool
    """Whether there are more."""


class Count(TypedDict):
    """How often a file matches."""

    path: str
    matches: int


class Counts(_Unread):
    """How often the pattern was found."""

    files: list[Count]
    """The files that match."""
    matches: int
    """In all these files together."""
    truncated: bool
    """Whether there are more files."""


class Files(_Unread):
    """The files that there are."""

    paths: list[str]
    truncated: bool
    """Whether there are more."""


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
@aliases(max_matches="maxMatches")
def search(
    *,
    pattern: str,
    path: str = ".",
    fixed: bool = False,
    case: Case = "smart",
    word: bool = False,
    multiline: bool = False,
    globs: Sequence[str] = (),
    hidden: bool = False,
    ignored: bool = False,
    context: Annotated[int, Ge(0), Le(20)] = 0,
    max_matches: Annotated[int, Ge(1), Le(10_000)] = 200,
) -> Matches:
    """Searches files for a pattern, and gives the lines that match.

    Binary files are left out, and symlinks are not followed. The order is that of the paths.

    Args:
        pattern: A regular expression of Rust's kind, or the text itself if `fixed`.
        path: The folder or file to search, inside the working directory.
        fixed: Whether the pattern is text to be found as it stands.
        case: `smart` minds upper and lower case if the pattern has an upper-case letter.
        word: Whether only whole words match.
        multiline: Whether a match may span lines; `.` then still stops at line ends, unless the pattern has `(?s)`.
        globs: Only files that one of these fits, ignored and hidden ones too: `*.py`, `src/**`; `!*.min.js` leaves
            files out.
        hidden: Whether to search hidden files and folders too.
        ignored: Whether to search files that .gitignore and the like leave out, too.
        context: How many lines before and after each match to give.
        max_matches: How many matching lines to give at most.
    """
    options = [
        "--json", f"--context={context}", f"--max-count={max_matches + 1}", *(["--multiline"] if multiline else []),
        *_pattern(pattern, fixed=fixed, case=case, word=word), *_choice(globs, hidden=hidden, ignored=ignored),
    ]  # fmt: skip
    found: list[Match] = []
    with _ripgrep(options, path) as (program, shown):
        for match in _matches(_events(program), shown, context):
            if len(found) == max_matches:
                program.stop()
                return {"matches": found, "truncated": True}
            found.append(match)
        return {"matches": found, "truncated": False, **_left_out(program)}


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
@aliases(max_files="maxFiles")
def count(
    *,
    pattern: str,
    path: str = ".",
    fixed: bool = False,
    case: Case = "smart",
    word: bool = False,
    globs: Sequence[str] = (),
    hidden: bool = False,
    ignored: bool = False,
    max_files: Annotated[int, Ge(1), Le(100_000)] = 1000,
) -> Counts:
    """Counts how often a pattern is found in each file; files without a match are left out.

    Args:
        pattern: A regular expression of Rust's kind, or the text itself if `fixed`.
        path: The folder or file to search, inside the working directory.
        fixed: Whether the pattern is text to be found as it stands.
        case: `smart` minds upper and lower case if the pattern has an upper-case letter.
        word: Whether only whole words match.
        globs: Only files that one of these fits, ignored and hidden ones too: `*.py`, `src/**`; `!*.min.js` leaves
            files out.
        hidden: Whether to search hidden files and folders too.
        ignored: Whether to search files that .gitignore and the like leave out, too.
        max_files: How many files to give at most.
    """
    options = [
        "--count-matches", "--with-filename", "--null", *_pattern(pattern, fixed=fixed, case=case, word=word),
        *_choice(globs, hidden=hidden, ignored=ignored),
    ]  # fmt: skip
    counts: list[Count] = []
    truncated = False
    with _ripgrep(options, path) as (program, shown):
        while line := program.output.readline(_LONGEST_PATH):
            if truncated := len(counts) == max_files:
                program.stop()
                break
            name, _, number = line.partition(b"\0")
            counts.append({"path": shown.path(name), "matches": int(number)})
        total = sum(each["matches"] for each in counts)
        if truncated:
            return {"files": counts, "matches": total, "truncated": True}
        return {"files": counts, "matches": total, "truncated": False, **_left_out(program)}


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
@aliases(max_files="maxFiles")
def files(
    *,
    path: str = ".",
    globs: Sequence[str] = (),
    hidden: bool = False,
    ignored: bool = False,
    max_files: Annotated[int, Ge(1), Le(100_000)] = 1000,
) -> Files:
    """Finds files by their names, in a folder and all those below it.

    Args:
        path: The folder, inside the working directory.
        globs: Only files that one of these fits, ignored and hidden ones too: `*.py`, `src/**`; `!*.min.js` leaves
            files out.
        hidden: Whether to list hidden files, and those in hidden folders, too.
        ignored: Whether to list files that .gitignore and the like leave out, too.
        max_files: How many files to give at most.
    """
    paths: list[str] = []
    with _ripgrep(["--files", "--null", *_choice(globs, hidden=hidden, ignored=ignored)], path) as (program, shown):
        for name in _parted(program):
            if len(paths) == max_files:
                program.stop()
                return {"paths": paths, "truncated": True}
            paths.append(shown.path(name))
        return {"paths": paths, "truncated": False, **_left_out(program)}


class _Shown:
    """How paths are shown: so that they begin like the one that was asked for."""

    def __init__(self, asked: str, *, is_file: bool) -> None:
        self._asked = asked
        self._is_file = is_file

    def path(self, name: bytes) -> str:
        """Gives a path that rg printed, seen from where the tool was asked."""
        if self._is_file:
            return self._asked
        below = name.decode("utf-8", "backslashreplace").removeprefix("./")
        return below if self._asked in {"", "."} else f"{self._asked.rstrip('/')}/{below}"


@contextmanager
def _ripgrep(options: Sequence[str], path: str) -> Iterator[tuple[Program, _Shown]]:
    """Starts rg on a file or a folder."""
    place = resolve(path)
    with explained(path):
        status = Path(place.path).stat()
    is_file = not stat.S_ISDIR(status.st_mode)
    if is_file:
        require_file(status, path)
    folder, name = (str(Path(place.path).parent), place.parts[-1]) if is_file else (place.path, "")
    # One thread in the order of paths: what a limit leaves out is the same each time.
    command = ["rg", "--no-config", "--color=never", "--sort=path", *options, "--", f"./{name}"]
    with started(command, folder) as program:
        yield program, _Shown(path, is_file=is_file)


def _pattern(pattern: str, *, fixed: bool, case: Case, word: bool) -> list[str]:
    cases = {"smart": "--smart-case", "sensitive": "--case-sensitive", "ignore": "--ignore-case"}
    return [
        f"--regexp={pattern}",
        cases[case],
        *(["--fixed-strings"] if fixed else []),
        *(["--word-regexp"] if word else []),
    ]


def _choice(globs: Sequence[str], *, hidden: bool, ignored: bool) -> list[str]:
    return [
        *(f"--glob={glob}" for glob in globs),
        *(["--hidden"] if hidden else []),
        *(["--no-ignore"] if ignored else []),
    ]


def _left_out(program: Program) -> _Unread:
    """Tells what rg couldn't read; where it didn't search at all, that is a failure."""
    status, complaint = program.end(), program.complaint()
    if status < 2:
        return {}
    if "regex parse error" in complaint or "error parsing glob" in complaint or "the literal" in complaint:
        raise ToolFailed(f"rg does not take this: {complaint}", code="invalid_pattern")
    return {"unread": complaint}


def _parted(program: Program) -> Iterator[bytes]:
    """Gives what a program prints, parted by NUL characters."""
    rest = b""
    while chunk := program.output.read(_CHUNK):
        *names, rest = (rest + chunk).split(b"\0")
        yield from names


def _events(program: Program) -> Iterator[Mapping[str, Any]]:
    while line := program.output.readline(_LONGEST_EVENT):
        if line.endswith(b"\n"):
            yield json.loads(line)
            continue
        while line and not line.endswith(b"\n"):  # no line of a text is that long: it is passed over
            line = program.output.readline(_LONGEST_EVENT)


def _matches(events: Iterable[Mapping[str, Any]], shown: _Shown, context: int) -> Iterator[Match]:
    """Makes rows of what rg tells; those of a file when it is through with it, as lines after a match belong to it."""
    lines: dict[int, str] = {}
    found: list[tuple[Match, int]] = []
    for event in events:
        kind, data = event["type"], event["data"]
        if kind in {"match", "context"}:
            number, text = data["line_number"], _bytes(data["lines"]).decode("utf-8", "replace").removesuffix("\n")
            numbered = dict(enumerate(text.split("\n"), number))
            if context:
                lines |= {each: _cut(line, 1) for each, line in numbered.items()}
            if kind == "match":
                found.append((_match(shown.path(_bytes(data["path"])), data), max(numbered)))
        elif kind == "end":
            for row, last in found:
                if context:
                    row["before"] = _known(lines, range(row["line"] - context, row["line"]))
                    row["after"] = _known(lines, range(last + 1, last + 1 + context))
                yield row
            lines, found = {}, []


def _match(path: str, data: Mapping[str, Any]) -> Match:
    raw = _bytes(data["lines"])
    start = data["submatches"][0]["start"] if data["submatches"] else 0
    column = len(raw[:start].decode("utf-8", "replace")) + 1
    text = raw.decode("utf-8", "replace").removesuffix("\n")
    return {"path": path, "line": data["line_number"], "column": column, "text": _cut(text, column)}


def _known(lines: Mapping[int, str], numbers: Iterable[int]) -> list[str]:
    return [lines[number] for number in numbers if number in lines]


def _bytes(value: Mapping[str, str]) -> bytes:
    """Gives what rg tells as text, or in base64 where it is no UTF-8."""
    return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])


def _cut(line: str, column: int) -> str:
    """Cuts a long line to what stands around a column."""
    line = line.removesuffix("\r")
    if len(line) <= _LONGEST_LINE:
        return line
    begin = max(0, min(column - 1 - _LONGEST_LINE // 4, len(line) - _LONGEST_LINE))
    end = begin + _LONGEST_LINE
    return f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}"
