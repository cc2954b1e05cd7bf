"""The tools and packs of one scan, grouped by pack or ranked by a search. Independent of Textual."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pegboard.built_in import is_built_in
from pegboard.models import ServerState
from pegboard.results.clean import clean_line
from pegboard.tui.state.fuzzy import FuzzyQuery, initials_of

if TYPE_CHECKING:
    from pegboard.models import Problem, ServerStatus, ToolSpec, ToolState

_POSITION = attrgetter("position")


@dataclass(frozen=True, slots=True, eq=False)
class ToolEntry:
    """A tool in the catalogue, prepared for lists and search."""

    spec: ToolSpec
    state: ToolState
    name: str
    """Qualified name, safe to display."""
    function: str
    """Name without its pack, safe to display."""
    folded: str
    """Qualified name in lower case."""
    initials: str
    """Initials of the words of the name, in lower case."""
    text: str
    """Description and aliases in lower case."""
    position: int
    """Index among all tools."""

    @property
    def key(self) -> tuple[str, str]:
        """Identity of the row across scans."""
        return "tool", self.spec.name

    @property
    def is_built_in(self) -> bool:
        """Whether the tool comes with Pegboard."""
        return is_built_in(self.spec.file)


@dataclass(frozen=True, slots=True, eq=False)
class PackEntry:
    """A pack with its tools; an unreadable pack has problems and no tools."""

    name: str
    entries: tuple[ToolEntry, ...]
    problems: tuple[Problem, ...]
    file: str | None
    server: ServerStatus | None = None
    """The MCP server that the pack is; None for a Python file."""

    @property
    def key(self) -> tuple[str, str]:
        """Identity of the row across scans."""
        return "pack", self.name

    @property
    def broken(self) -> bool:
        """Whether an error hides some of its tools."""
        return any(problem.severity == "error" for problem in self.problems)

    @property
    def has_unusable_server(self) -> bool:
        """Whether it is an MCP server that failed or needs a login."""
        return self.server is not None and self.server.state in {ServerState.FAILED, ServerState.NEEDS_LOGIN}


CatalogueRow: TypeAlias = PackEntry | ToolEntry
"""A row of the tool list."""


@dataclass(frozen=True, slots=True)
class Hits:
    """Result of a search."""

    by_name: tuple[ToolEntry, ...]
    """Matches by name, the best first."""
    by_text: tuple[ToolEntry, ...]
    """Matches by description or alias, ordered by name."""

    def __iter__(self) -> Iterator[ToolEntry]:
        yield from self.by_name
        yield from self.by_text

    def __len__(self) -> int:
        return len(self.by_name) + len(self.by_text)


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue:
    """Every tool and pack of one scan. Immutable, compared by identity because a full comparison is slow."""

    packs: tuple[PackEntry, ...] = ()
    entries: tuple[ToolEntry, ...] = ()

    @classmethod
    def of(
        cls, specs: Iterable[ToolSpec], problems: Iterable[Problem], state: Callable[[ToolSpec], ToolState]
    ) -> Catalogue:
        """Return a catalogue of tools and problems, grouped by pack; the user's packs precede the built-in ones.

        Args:
            specs: The tools.
            problems: All problems; a Python file with problems and without tools becomes a pack.
            state: Function that returns the state of a tool.
        """
        tools: defaultdict[str, list[ToolSpec]] = defaultdict(list)
        files: dict[str, str | None] = {}
        for spec in specs:
            tools[spec.pack].append(spec)
            files.setdefault(spec.pack, spec.file)
        packs_of_files = {file: pack for pack, file in files.items() if file is not None}
        troubles: defaultdict[str, list[Problem]] = defaultdict(list)
        for problem in problems:
            pack = _pack_of(problem, packs_of_files)
            if pack is not None:
                troubles[pack].append(problem)
                files.setdefault(pack, problem.file)
        packs: list[PackEntry] = []
        entries: list[ToolEntry] = []
        for name in sorted(files, key=lambda name: (is_built_in(files[name]), name)):
            own = tuple(
                _entry(spec, state(spec), position) for position, spec in enumerate(tools.get(name, ()), len(entries))
            )
            entries += own
            packs.append(PackEntry(name, own, tuple(troubles.get(name, ())), files[name]))
        return cls(tuple(packs), tuple(entries))

    def with_servers(self, servers: Sequence[ServerStatus]) -> Catalogue:
        """Return the same tools with other states of the MCP servers; a server without tools is a pack too.

        Args:
            servers: The status of every server.
        """
        known = {server.name: server for server in servers if server.name}
        packs: list[PackEntry] = []
        for pack in self.packs:
            server = known.pop(pack.name, None) if pack.file is None else None
            if server is not None or pack.entries or pack.problems:
                packs.append(pack if server == pack.server else replace(pack, server=server))
        others = [*known.values(), *(server for server in servers if not server.name)]
        packs += [PackEntry(server.name, (), (), None, server) for server in others]
        packs.sort(key=_order)
        return Catalogue(tuple(packs), self.entries)

    def rows(self, folded: frozenset[str]) -> list[CatalogueRow]:
        """Return the rows of the tree.

        Args:
            folded: Names of the collapsed packs.
        """
        rows: list[CatalogueRow] = []
        for pack in self.packs:
            rows.append(pack)
            if pack.name not in folded:
                rows.extend(pack.entries)
        return rows

    def search(self, query: str, within: Hits | None = None) -> Hits:
        """Return the tools whose name matches the query, then those whose description contains its words.

        Of two names with the same rank, the shorter one comes first.

        Args:
            query: The text as typed; case is ignored.
            within: Hits of a prefix of this query; only these are searched.
        """
        words = query.lower().split()
        if not words:
            return Hits(self.entries, ())
        entries = self.entries if within is None else (*within.by_name, *within.by_text)
        fuzzy = FuzzyQuery(query, dotted=True)
        level = fuzzy.level

        def rank(entry: ToolEntry) -> int:
            """Return level, length and position in one number, which sorts faster than a tuple."""
            return level(entry.folded, entry.initials) << 60 | len(entry.folded) << 30 | entry.position

        by_name = [entry for entry in entries if fuzzy.matches(entry.folded)]
        named = {entry.position for entry in by_name}
        by_text = [entry for entry in entries if entry.position not in named and words[0] in entry.text]
        for word in words[1:]:
            by_text = [entry for entry in by_text if word in entry.text]
        by_name.sort(key=rank)
        by_text.sort(key=_POSITION)
        return Hits(tuple(by_name), tuple(by_text))


def _order(pack: PackEntry) -> tuple[bool, str]:
    return is_built_in(pack.file), pack.name


def _entry(spec: ToolSpec, state: ToolState, position: int) -> ToolEntry:
    text = " ".join((spec.description, *spec.aliases)).lower()
    folded = spec.name.lower()
    name, function = clean_line(spec.name), clean_line(spec.function)
    return ToolEntry(spec, state, name, function, folded, initials_of(folded), text, position)


def _pack_of(problem: Problem, packs_of_files: dict[str, str]) -> str | None:
    if problem.file in packs_of_files:
        return packs_of_files[problem.file]
    if problem.pack is not None:
        return problem.pack
    if problem.file is not None and problem.file.endswith(".py"):
        return Path(problem.file).stem
    return None
