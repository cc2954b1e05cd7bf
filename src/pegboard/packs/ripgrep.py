"""Search files with ripgrep: matching lines, numbers of matches, and names of files."""

import base64
import json
import os
import stat
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict  # Any: rg's output is untrusted data

from annotated_types import Ge, Le

from pegboard.sdk import ToolFailed, aliases, hints, requires_cli

from ._programs import Program, started
from ._roots import PASSAGE, ResolvedPath, descriptor_path, explained, opened, opened_file, resolve

requires_cli(
    "rg", min_version="13", install="apt install ripgrep, brew install ripgrep, or cargo install ripgrep --locked"
)

_LONGEST_LINE = 500
"""Characters that are returned of a line; of a longer one, those around its first match."""
_LONGEST_EVENT = 20_000_000
_MOST_AT_ONCE = 50
"""Files that one rg process searches: each is an open descriptor."""
_CHUNK = 2**16
_REJECTED = (
    "regex parse error", "the literal", "compiled regex exceeds", "found invalid utf-8 in pattern",
    "error parsing glob",
)  # fmt: skip
"""How rg's messages about its arguments begin. Those about an ignore file begin with its path."""

Case = Literal["smart", "sensitive", "ignore"]


class Match(TypedDict):
    """A matching line."""

    path: str
    """Starts like the searched path, so that other tools accept it."""
    line: int
    """Counted from 1."""
    column: int
    """Column of the first match in the line, in characters, counted from 1."""
    text: str
    """The line; `…` marks a long one that is shortened."""
    before: NotRequired[list[str]]
    """The lines before it, if context was asked for."""
    after: NotRequired[list[str]]
    """The lines after it, if context was asked for."""


class _Unread(TypedDict):
    unread: NotRequired[str]
    """Files that could not be read, and why."""


class Matches(_Unread):
    """Result of a search."""

    matches: list[Match]
    truncated: bool
    """Whether there are more matches."""


class Count(TypedDict):
    """Number of matches in a file."""

    path: str
    matches: int


class Counts(_Unread):
    """Numbers of matches."""

    files: list[Count]
    """The files that match."""
    matches: int
    """Number of matches in all these files together."""
    truncated: bool
    """Whether there are more files."""


class Files(_Unread):
    """Names of files."""

    paths: list[str]
    truncated: bool
    """Whether there are more files."""


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
    """Search files for a pattern and return the matching lines.

    Binary files are skipped, and symlinks are not followed. Results are sorted by path.

    Args:
        pattern: Regular expression in Rust's syntax, or plain text if `fixed` is set.
        path: Folder or file to search, inside the working directory.
        fixed: Whether the pattern is plain text.
        case: `smart` is case-sensitive if the pattern contains an upper-case letter.
        word: Whether to match only whole words.
        multiline: Whether a match may span lines; `.` matches line ends only if the pattern contains `(?s)`.
        globs: Only files that match one of these, ignored and hidden ones too: `*.py`, `src/**`; `!*.min.js` excludes
            files.
        hidden: Whether to include hidden files and folders.
        ignored: Whether to include files that .gitignore and similar files exclude.
        context: Number of lines to return before and after each match.
        max_matches: Maximum number of matching lines to return.
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
    """Count the matches of a pattern in each file; files without a match are omitted.

    Args:
        pattern: Regular expression in Rust's syntax, or plain text if `fixed` is set.
        path: Folder or file to search, inside the working directory.
        fixed: Whether the pattern is plain text.
        case: `smart` is case-sensitive if the pattern contains an upper-case letter.
        word: Whether to match only whole words.
        globs: Only files that match one of these, ignored and hidden ones too: `*.py`, `src/**`; `!*.min.js` excludes
            files.
        hidden: Whether to include hidden files and folders.
        ignored: Whether to include files that .gitignore and similar files exclude.
        max_files: Maximum number of files to return.
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
    """Find files by name, in a folder and its subfolders.

    Args:
        path: Folder, inside the working directory.
        globs: Only files that match one of these, ignored and hidden ones too: `*.py`, `src/**`; `!*.min.js` excludes
            files.
        hidden: Whether to include hidden files, and files in hidden folders.
        ignored: Whether to include files that .gitignore and similar files exclude.
        max_files: Maximum number of files to return.
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
    """Return a path below the requested folder that starts like that one."""
    below = name.decode("utf-8", "backslashreplace")
    return below if asked in {"", "."} else f"{asked.rstrip('/')}/{below}"


def _listed(
    options: Sequence[str], place: ResolvedPath, path: str, left_out: _Unread
) -> Generator[tuple[bytes, ResolvedPath]]:
    """Have rg list the files below a folder; yield the relative name and the resolved path of each.

    rg follows a link that is swapped in meanwhile. So its list is only a list of candidates: results come from files
    that are opened below the root without following links.
    """
    # One thread, sorted by path, so that limited results are the same each time.
    command = ["rg", "--no-config", "--color=never", "--null", "--sort=path", *options, "--", "./"]
    with ExitStack() as closing_folder:
        with explained(path):
            folder = closing_folder.enter_context(opened(place.root, place.parts, PASSAGE))
        with started(command, folder) as program:
            for printed in _parted(program):
                name = printed.removeprefix(b"./")
                yield name, place.below(*os.fsdecode(name).split("/"))
            unread = _left_out(program).get("unread", "")
        # Its errors name files behind such a link too.
        if lines := [line for line in unread.splitlines() if _names_a_file(line, place)]:
            left_out["unread"] = "\n".join(lines)


def _names_a_file(error: str, place: ResolvedPath) -> bool:
    """Return whether a line of rg's errors begins with the path of a file below a folder."""
    parts = error.removeprefix("rg: ").removeprefix("./").split(": ")
    paths = (": ".join(parts[:end]) for end in range(1, len(parts)))
    return any(_is_there(place.below(*path.split("/"))) for path in paths)


def _is_there(file: ResolvedPath) -> bool:
    try:
        with opened(file.root, file.parts[:-1], PASSAGE) as folder:
            os.stat(file.parts[-1], dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


class _Search(NamedTuple):
    """A search."""

    matching: Sequence[str]
    """Options of rg for matching lines."""
    choice: Sequence[str]
    """Options of rg for choosing files."""
    more: Sequence[str]
    """Options of rg for its output."""
    kinds: AbstractSet[str]
    """Kinds of events that are needed."""
    path: str
    left_out: _Unread
    """Collects the files that could not be read."""


@contextmanager
def _searched(search: _Search) -> Iterator[Iterator[dict[str, Any]]]:
    """Search a file or a folder; yield the events of rg, each with the path to show as `shown`."""
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


def _in_files(search: _Search, listed: Iterator[tuple[bytes, ResolvedPath]]) -> Generator[dict[str, Any]]:
    """Search listed files in batches."""
    while batch := list(islice(listed, _MOST_AT_ONCE)):
        with ExitStack() as files:
            shown: dict[int, str] = {}
            for name, file in batch:
                with suppress(OSError, ToolFailed):  # it was deleted or replaced by a link meanwhile
                    shown[files.enter_context(opened_file(file, search.path))] = _shown(search.path, name)
            if shown:
                yield from _in_open_files(search, shown, keeps_binary=False)


def _in_open_files(search: _Search, files: Mapping[int, str], *, keeps_binary: bool) -> Generator[dict[str, Any]]:
    """Search open files.

    Args:
        search: The search.
        files: The path to show for each descriptor.
        keeps_binary: Whether to return matches in binary files.
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
    try:
        pattern.encode()
    except UnicodeEncodeError:  # rg 15 accepts such a pattern, and searches for something else
        raise ToolFailed("A pattern can't contain lone surrogates.", code="invalid_pattern") from None
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
    """Return the files that rg couldn't read; raise a failure if it searched nothing."""
    status, complaint = program.end(), program.complaint()
    if status < 2:
        return {}
    if complaint.removeprefix("rg: ").lower().startswith(_REJECTED):
        raise ToolFailed(f"rg rejected the arguments: {complaint}", code="invalid_pattern")
    return {"unread": complaint}


def _parted(program: Program) -> Iterator[bytes]:
    """Yield a program's output, split at NUL characters."""
    rest = b""
    while chunk := program.output.read(_CHUNK):
        *names, rest = (rest + chunk).split(b"\0")
        yield from names


def _events(program: Program) -> Iterator[Mapping[str, Any]]:
    while line := program.output.readline(_LONGEST_EVENT):
        if line.endswith(b"\n"):
            yield json.loads(line)
            continue
        while line and not line.endswith(b"\n"):  # skip a line that is too long for text
            line = program.output.readline(_LONGEST_EVENT)


def _matches(events: Iterable[Mapping[str, Any]], context: int) -> Iterator[Match]:
    """Yield a row for each match; those of a file after its end, as following lines belong to a match."""
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
    """Return the bytes of a value, which rg writes as text or, if it isn't UTF-8, in base64."""
    return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])


def _cut(line: str, column: int) -> str:
    """Shorten a long line to the characters around a column."""
    line = line.removesuffix("\r")
    if len(line) <= _LONGEST_LINE:
        return line
    begin = max(0, min(column - 1 - _LONGEST_LINE // 4, len(line) - _LONGEST_LINE))
    end = begin + _LONGEST_LINE
    return f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}"
