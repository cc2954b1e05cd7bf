"""The registry: merge the tools of all sources and look them up by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from pegboard import models
from pegboard.discovery.files import FileMark, mark_of

if TYPE_CHECKING:
    from pegboard.models import Problem, ToolResult, ToolSpec
    from pegboard.ports import ToolSource
    from pegboard.registry.allow import AllowList


@dataclass(frozen=True)
class _Snapshot:
    """Result of one scan. Replaced atomically, so that readers on other threads need no lock."""

    specs: dict[str, ToolSpec] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    files: dict[str, FileMark | None] = field(default_factory=dict)
    began_ns: int = 0


class Registry:
    """All tools of all sources, by name and alias.

    Reading is safe from any thread, also during a scan.

    Args:
        sources: Sources of tools. If two tools have the same name, the one from the earlier source is kept.
        is_outdated: Returns whether a tool that has no file has changed since it was scanned.
        unavailable: Returns why the server of a tool with this name lists no tools; empty if there is no such server.
    """

    def __init__(
        self,
        sources: Sequence[ToolSource],
        is_outdated: Callable[[ToolSpec], bool] = lambda _: False,
        unavailable: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._sources = tuple(sources)
        self._is_outdated = is_outdated
        self._unavailable = unavailable
        self._snapshot = _Snapshot()
        self._scanning = Lock()
        self.scanned = False
        self.changes = 0
        """Number of scans that found other tools or problems than the previous scan."""

    def scan(self) -> bool:
        """Scan every source. Block until all are read.

        Returns:
            Whether tools or problems differ from the previous scan.
        """
        with self._scanning:
            began_ns = time.time_ns()
            specs: list[ToolSpec] = []
            problems: list[Problem] = []
            for source in self._sources:
                found, wrong = source.scan()
                specs += found
                problems += wrong
            before = self._snapshot
            self._snapshot = _merge(specs, problems, began_ns)
            self.scanned = True
            is_changed = before.specs != self._snapshot.specs or before.problems != self._snapshot.problems
            self.changes += is_changed
            return is_changed

    def tools(self) -> tuple[ToolSpec, ...]:
        """Return all tools, sorted by name."""
        return tuple(self._snapshot.specs.values())

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems of files, packs and tools."""
        return self._snapshot.problems

    def files(self) -> Mapping[str, FileMark | None]:
        """Return all files that tools were read from by their absolute paths, each with its mark at the last scan."""
        return self._snapshot.files

    def get(self, name: str) -> ToolSpec | None:
        """Return the tool with this name or alias, or None."""
        snapshot = self._snapshot
        return snapshot.specs.get(name) or snapshot.specs.get(snapshot.aliases.get(name, ""))

    def find(self, name: str, allow: AllowList) -> ToolSpec | ToolResult:
        """Return the tool with this name or alias if it is allowed, otherwise the failed result of calling it.

        Args:
            name: Name or alias, as the caller wrote it.
            allow: Allow list of the caller.
        """
        spec = self.get(name)
        if spec is not None and allow.admits(spec):
            return spec
        if spec is not None:
            return models.ToolResult.failed("tool_not_found", allow.refusal(spec), "not_allowed")
        if allow.may_admit(name) and (why := self._unavailable(name)):
            return models.ToolResult.failed("tool_not_found", f"{name} can't be used. {why}", "not_connected")
        nearest = self.nearest(name, (known for known in self.tools() if allow.admits(known)))
        message = f"No tool is named {name!r}." + (f" Nearest: {', '.join(nearest)}." if nearest else "")
        return models.ToolResult.failed("tool_not_found", message)

    def nearest(self, name: str, among: Iterable[ToolSpec]) -> list[str]:
        """Return up to three names that resemble an unknown name, best match first.

        Args:
            name: The unknown name.
            among: Tools to choose from.
        """
        from difflib import get_close_matches

        names: dict[str, list[str]] = {}
        for spec in among:
            names.setdefault(spec.name.casefold(), []).append(spec.name)
        wanted = name.casefold()
        same_function = [known for known in names if known.rpartition(".")[2] == wanted.rpartition(".")[2]]
        # difflib needs a second for 10,000 names, and typos rarely change the first letter.
        likely = names if len(names) < 500 else [known for known in names if known[:1] == wanted[:1]]
        found = dict.fromkeys([*get_close_matches(wanted, likely, n=3, cutoff=0.6), *same_function])
        return [known for folded in found for known in names[folded]][:3]

    def stale(self, spec: ToolSpec) -> bool:
        """Return whether the tool, or a file that it was read from, has changed since the last scan.

        This takes one `stat` per file.
        """
        snapshot = self._snapshot
        if not spec.files:
            return self._is_outdated(spec)
        for file in spec.files:
            mark = mark_of(file)
            if mark != snapshot.files.get(file, mark):
                return True
            # Written during the scan, which may have read the old content. A time in the future proves nothing.
            if mark is not None and file in snapshot.files and snapshot.began_ns <= mark[0] <= time.time_ns():
                return True
        return False


def _merge(specs: Iterable[ToolSpec], problems: list[Problem], began_ns: int) -> _Snapshot:
    by_name: dict[str, ToolSpec] = {}
    for spec in specs:
        first = by_name.setdefault(spec.name, spec)
        if first is not spec:
            problems.append(_twice(first, spec))
    by_name = dict(sorted(by_name.items()))
    aliases: dict[str, str] = {}
    for spec in [*by_name.values()]:
        taken = {alias: aliases.get(alias, alias) for alias in spec.aliases if alias in by_name or alias in aliases}
        aliases.update({alias: spec.name for alias in spec.aliases if alias not in taken})
        if taken:
            # A name that belongs to another tool must not get this one past an allow list.
            kept = tuple(alias for alias in spec.aliases if alias not in taken)
            by_name[spec.name] = spec.model_copy(update={"aliases": kept})
            problems += [_alias_taken(spec, alias, owner) for alias, owner in taken.items()]
    files = {file: mark_of(file) for file in {file for spec in by_name.values() for file in spec.files}}
    return _Snapshot(by_name, aliases, tuple(problems), files, began_ns)


def _alias_taken(spec: ToolSpec, alias: str, owner: str) -> Problem:
    return models.Problem(
        message=f"The alias {alias!r} of {spec.name} is already a name of {owner}.",
        fix="Choose another alias.",
        severity="warning",
        file=spec.file,
        line=spec.location.line,
        pack=spec.pack,
        tool=spec.name,
    )


def _twice(kept: ToolSpec, other: ToolSpec) -> Problem:
    where = kept.file or kept.location.server
    return models.Problem(
        message=f"Two tools are named {other.name}; Pegboard uses the one from {where}.",
        fix="Rename one of them.",
        file=other.file,
        line=other.location.line,
        pack=other.pack,
        tool=other.name,
    )
