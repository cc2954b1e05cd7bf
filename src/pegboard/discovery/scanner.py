"""Scan of all packs folders: reads new and changed files, and uses the index for all others."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.discovery import specs
from pegboard.discovery.collector import collector_paused
from pegboard.discovery.files import Candidate, candidates
from pegboard.discovery.index import Index, IndexEntry
from pegboard.discovery.parsed import unpack
from pegboard.models import Problem, ToolSpec

if TYPE_CHECKING:
    from pegboard.discovery.parsed import ParsedFile
    from pegboard.discovery.reader import Read


def scan(paths: Sequence[Path | str], *, index: Path | None) -> tuple[tuple[ToolSpec, ...], tuple[Problem, ...]]:
    """Implement `pegboard.discovery.scan`."""
    found, unreadable = candidates(paths)
    problems = [specs.problem(plain) for plain in unreadable]
    if index is None:
        reads = _read(found)
        packed = {file: read.packed for file, read in reads.items()}
    else:
        packed, unwritten = _read_with_index(found, index)
        problems += unwritten
    with collector_paused():
        tools, more = _merged([unpack(packed[candidate.file]) for candidate in found], found)
    return tuple(tools), tuple(problems + more)


def read(source: str | bytes, file: str) -> tuple[tuple[ToolSpec, ...], tuple[Problem, ...]]:
    """Implement `pegboard.discovery.read`."""
    from pegboard.discovery.parser import read_source
    from pegboard.discovery.readers import silence

    silence()
    reading = read_source(source, file)
    problems = [specs.problem(plain) for plain in reading["problems"]]
    tools = specs.specs(reading)
    return tuple(tools), (*problems, *(problem for tool in tools for problem in tool.problems))


def _read_with_index(found: Sequence[Candidate], root: Path) -> tuple[dict[str, bytes], list[Problem]]:
    """Return the packed content of each file, parse those that the index doesn't know, and update the index."""
    now = time.time_ns()
    indexes = {folder: Index(root, folder) for folder in dict.fromkeys(candidate.folder for candidate in found)}
    known = {folder: index.load() for folder, index in indexes.items()}
    changed: dict[str, set[str]] = {folder: set() for folder in indexes}
    packed: dict[str, bytes] = {}
    unknown: list[Candidate] = []
    for candidate in found:
        file, folder, stamp = candidate
        entry = known[folder].get(file)
        if entry is not None and not entry.is_current(stamp):
            entry = entry.verify(candidate, now)
            if entry is not None:
                known[folder][file] = entry
                changed[folder].add(file)
        if entry is None:
            unknown.append(candidate)
        else:
            packed[file] = entry.packed
    reads = _read(unknown)
    for file, folder, stamp in unknown:
        read = reads[file]
        packed[file] = read.packed
        if read.digest is not None:
            known[folder][file] = IndexEntry(stamp, read.digest, now, read.packed, read.helpers)
            changed[folder].add(file)
        elif known[folder].pop(file, None):
            changed[folder].add(file)
    return packed, _save(indexes, known, changed)


def _read(unknown: Sequence[Candidate]) -> dict[str, Read]:
    if not unknown:
        return {}
    # slow to import, and unnecessary if no file changed
    from pegboard.discovery.readers import read_all

    return read_all([(candidate.file, candidate.stamp.size) for candidate in unknown])


def _save(
    indexes: dict[str, Index], known: dict[str, dict[str, IndexEntry]], changed: dict[str, set[str]]
) -> list[Problem]:
    for folder, index in indexes.items():
        if not changed[folder]:
            continue
        for file in [file for file in known[folder] if not os.path.exists(file)]:  # noqa: PTH110 - pathlib may raise
            del known[folder][file]
            changed[folder].add(file)
        try:
            index.save(known[folder], changed[folder])
        except OSError as error:
            return [
                Problem(
                    message=f"The index of packs could not be written: {error.strerror or error}. "
                    "Every start parses all packs again.",
                    fix="Set `PEGBOARD_CACHE_DIR` to a writable folder.",
                    severity="warning",
                    file=error.filename if isinstance(error.filename, str) else None,
                )
            ]
    return []


def _merged(readings: Sequence[ParsedFile], found: Sequence[Candidate]) -> tuple[list[ToolSpec], list[Problem]]:
    """Build the models. If two packs have the same name, use the first file."""
    tools: list[ToolSpec] = []
    problems: list[Problem] = []
    owners: dict[str, str] = {}
    for reading, candidate in zip(readings, found, strict=True):
        problems += map(specs.problem, reading["problems"])
        if not reading["tools"]:
            continue
        pack = reading["pack"]
        owner = owners.setdefault(pack, candidate.file)
        if owner != candidate.file:
            problems.append(
                Problem(
                    message=f"The tools of this file are ignored because {owner} already defines the pack `{pack}`.",
                    fix='Rename the file, or write `pack = "name"` in it.',
                    file=candidate.file,
                    pack=pack,
                )
            )
            continue
        for spec in specs.specs(reading):
            tools.append(spec)
            problems += spec.problems
    return tools, problems
