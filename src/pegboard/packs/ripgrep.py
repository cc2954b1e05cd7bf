"""Searching in files with ripgrep: what lines match, how often, and what files there are."""

import base64
import json
import os
import stat
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict  # Any: what rg prints is outside data

from annotated_types import Ge, Le

from pegboard.sdk import ToolFailed, aliases, hints, requires_cli

from ._programs import Program, started
from ._roots import PASSAGE, Place, descriptor_path, explained, opened, opened_file, resolve

requires_cli(
    "rg", min_version="13", install="apt install ripgrep, brew install ripgrep, or cargo install ripgrep --locked"
)

_LONGEST_LINE = 500
"""Characters of a line that are shown; of a longer one, those around its first match."""
_LONGEST_EVENT = 20_000_000
_MOST_AT_ONCE = 50
"""Files that one rg searches: each is an open descriptor."""
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
    matching = _pattern(pattern, fixed=fixed, case=case, word=word) + (["--multiline"] if multiline else [])
    more = [f"--context={context}", f"--max-count={max_matches + 1}"]
    choice = _choice(globs, hidden=hidden, ignored=ignored)
    asked = _Search(matching, choice, more, {"match", "context", "end"}, path, {})
    found: list[Match] = []
    with _searched(asked) as events:
        for match in _matches(events, context):
            if len(found) == max_matches:
                return {"matches": found, "truncated": True}
            found.append(match)
        return {"matches": found, "truncated": False, **asked.left_out}


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
    matching, choice = (
        _pattern(pattern, fixed=fixed, case=case, word=word),
        _choice(globs, hidden=hidden, ignored=ignored),
    )
    asked = _Search(matching, choice, (), {"end"}, path, {})
    counts: list[Count] = []
    with _searched(asked) as events:
        for event in events:
            number = event["data"]["stats"]["matches"]
            if number and len(counts) == max_files:
                return {"files": counts, "matches": sum(each["matches"] for each in counts), "truncated": True}
            if number:
                counts.append({"path": event["shown"], "matches": number})
        total = sum(each["matches"] for each in counts)
        return {"files": counts, "matches": total, "truncated": False, **asked.left_out}


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
    left_out: _Unread = {}
    choice = _choice(globs, hidden=hidden, ignored=ignored)
    place = resolve(path)
    with explained(path):
        is_folder = stat.S_ISDIR(Path(place.path).stat().st_mode)
    if not is_folder:
        with explained(path), opened_file(place, path):
            return {"paths": [path], "truncated": False}
    with closing(_listed(["--files", *choice], place, path, left_out)) as listed:
        for name, file in listed:
            if len(paths) == max_files:
                return {"paths": paths, "truncated": True}
            if _is_there(file):
                paths.append(_shown(path, name))
    return {"paths": paths, "truncated": False, **left_out}


def _shown(asked: str, name: bytes) -> str:
    """Return a path below the folder that was asked for, so that it begins like that one."""
    below = name.decode("utf-8", "backslashreplace")
    return below if asked in {"", "."} else f"{asked.rstrip('/')}/{below}"


def _listed(options: Sequence[str], place: Place, path: str, left_out: _Unread) -> Generator[tuple[bytes, Place]]:
    """Have rg list files below a folder: yield the name of each from there on, and where it is.

    rg follows a link that is swapped in while it looks. So its list says only where to look: what is shown comes from
    files that are opened below the root without following links.
    """
    # One thread in the order of paths: what a limit leaves out is the same each time.
    command = ["rg", "--no-config", "--color=never", "--null", "--sort=path", *options, "--", "./"]
    with ExitStack() as closing_folder:
        with explained(path):
            folder = closing_folder.enter_context(opened(place.root, place.parts, PASSAGE))
        with started(command, folder) as program:
            for printed in _parted(program):
                name = printed.removeprefix(b"./")
                yield name, place.below(*os.fsdecode(name).split("/"))
            left_out.update(_left_out(program))


def _is_there(file: Place) -> bool:
    try:
        with opened(file.root, file.parts[:-1], PASSAGE) as folder:
            os.stat(file.parts[-1], dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


class _Search(NamedTuple):
    """What to search for."""

    matching: Sequence[str]
    """The options of rg that say which lines match."""
    choice: Sequence[str]
    """Those that say which files are searched."""
    more: Sequence[str]
    """Those for what is shown."""
    kinds: AbstractSet[str]
    """The kinds of events that are needed."""
    path: str
    left_out: _Unread
    """Gets what could not be read."""


@contextmanager
def _searched(search: _Search) -> Iterator[Iterator[dict[str, Any]]]:
    """Search a file or a folder: yield the events of rg, each with the path to show as `shown`."""
    place = resolve(search.path)
    with explained(search.path):
        is_folder = stat.S_ISDIR(Path(place.path).stat().st_mode)
    if is_folder:
        names = ["--files-with-matches", *search.matching, *search.choice]
        with (
            closing(_listed(names, place, search.path, search.left_out)) as listed,
            closing(_in_files(search, listed)) as events,
        ):
            yield events
        return
    with ExitStack() as files:
        with explained(search.path):
            file = files.enter_context(opened_file(place, search.path))
        with closing(_in_open_files(search, {file: search.path}, keeps_binary=True)) as events:
            yield events


def _in_files(search: _Search, listed: Iterator[tuple[bytes, Place]]) -> Generator[dict[str, Any]]:
    """Search listed files, some at a time."""
    while batch := list(islice(listed, _MOST_AT_ONCE)):
        with ExitStack() as files:
            shown: dict[int, str] = {}
            for name, file in batch:
                with suppress(OSError, ToolFailed):  # it is gone, or a link by now
                    shown[files.enter_context(opened_file(file, search.path))] = _shown(search.path, name)
            if shown:
                yield from _in_open_files(search, shown, keeps_binary=False)


def _in_open_files(search: _Search, files: Mapping[int, str], *, keeps_binary: bool) -> Generator[dict[str, Any]]:
    """Search open files.

    Args:
        search: What to search for.
        files: The path to show for each descriptor.
        keeps_binary: Whether to show matches in binary files.
    """
    names = {descriptor_path(file): shown for file, shown in files.items()}
    options = ["--json", "--threads=1", *search.matching, *search.more]
    with started(["rg", "--no-config", "--color=never", *options, "--", *names], files=[*files]) as program:
        held: list[dict[str, Any]] = []
        for event in _events(program):
            if event["type"] in search.kinds:
                held.append({**event, "shown": names[_bytes(event["data"]["path"]).decode()]})
            if event["type"] == "end":
                if keeps_binary or event["data"]["binary_offset"] is None:
                    yield from held
                held.clear()
        unread = _left_out(program)
        for name, shown in names.items():
            if "unread" in unread:
                unread["unread"] = unread["unread"].replace(f"{name}:", f"{shown}:")
        search.left_out.update(unread)


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


def _matches(events: Iterable[Mapping[str, Any]], context: int) -> Iterator[Match]:
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
                found.append((_match(event["shown"], data), max(numbered)))
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
