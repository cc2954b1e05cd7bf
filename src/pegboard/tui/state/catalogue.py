"""The tools as the registry pane lists them: by pack, or the best matches of a search. Headless."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

from pegboard.models import Problem, ToolSpec, ToolState
from pegboard.results.clean import clean_line

_PLACE = attrgetter("place")
_WORD_START = re.compile(r"(?<![^\W_])[^\W_]")


@dataclass(frozen=True, slots=True, eq=False)
class ToolEntry:
    """A tool, ready to be listed and searched."""

    spec: ToolSpec
    state: ToolState
    name: str
    """The qualified name, safe to show."""
    function: str
    """The name without its pack, safe to show."""
    folded: str
    """The name in lower case."""
    initials: str
    """The first letters of the name's words, in lower case."""
    text: str
    """What else a search looks at, in lower case: description and aliases."""
    place: int
    """Where it stands among all."""

    @property
    def key(self) -> tuple[str, str]:
        """What the row is known by across scans."""
        return "tool", self.spec.name


@dataclass(frozen=True, slots=True, eq=False)
class PackEntry:
    """A pack with its tools; one that can't be read has problems and no tools."""

    name: str
    entries: tuple[ToolEntry, ...]
    problems: tuple[Problem, ...]
    file: str | None

    @property
    def key(self) -> tuple[str, str]:
        """What the row is known by across scans."""
        return "pack", self.name

    @property
    def broken(self) -> bool:
        """Whether something of it is missing for a problem's sake."""
        return any(problem.severity == "error" for problem in self.problems)


CatalogueRow: TypeAlias = PackEntry | ToolEntry
"""A line of the list."""


@dataclass(frozen=True, slots=True)
class Hits:
    """What a search found."""

    by_name: tuple[ToolEntry, ...]
    """Best first."""
    by_text: tuple[ToolEntry, ...]
    """Those whose description has the words; by name."""

    def __iter__(self) -> Iterator[ToolEntry]:
        yield from self.by_name
        yield from self.by_text

    def __len__(self) -> int:
        return len(self.by_name) + len(self.by_text)


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue:
    """Every tool and pack of one scan; never changes, and equals only itself: comparing all of it takes too long."""

    packs: tuple[PackEntry, ...] = ()
    entries: tuple[ToolEntry, ...] = ()

    @classmethod
    def of(
        cls, specs: Iterable[ToolSpec], problems: Iterable[Problem], state: Callable[[ToolSpec], ToolState]
    ) -> Catalogue:
        """Sorts tools and problems into packs.

        Args:
            specs: The tools.
            problems: What is wrong, of packs and of anything else; a Python file that gave no tool becomes a pack too.
            state: Says whether a tool can do its work.
        """
        tools: defaultdict[str, list[ToolSpec]] = defaultdict(list)
        files: dict[str, str | None] = {}
        for spec in specs:
            tools[spec.pack].append(spec)
            files.setdefault(spec.pack, spec.location.file)
        packs_of_files = {file: pack for pack, file in files.items() if file is not None}
        troubles: defaultdict[str, list[Problem]] = defaultdict(list)
        for problem in problems:
            pack = _pack_of(problem, packs_of_files)
            if pack is not None:
                troubles[pack].append(problem)
                files.setdefault(pack, problem.file)
        packs: list[PackEntry] = []
        entries: list[ToolEntry] = []
        for name in sorted(files):
            own = tuple(
                _entry(spec, state(spec), place) for place, spec in enumerate(tools.get(name, ()), len(entries))
            )
            entries += own
            packs.append(PackEntry(name, own, tuple(troubles.get(name, ())), files[name]))
        return cls(tuple(packs), tuple(entries))

    def rows(self, folded: frozenset[str]) -> list[CatalogueRow]:
        """Gives the lines of the tree.

        Args:
            folded: The names of the packs whose tools are hidden.
        """
        rows: list[CatalogueRow] = []
        for pack in self.packs:
            rows.append(pack)
            if pack.name not in folded:
                rows.extend(pack.entries)
        return rows

    def search(self, query: str, within: Hits | None = None) -> Hits:
        """Finds the tools whose name has the query's letters in order, then those whose description has its words.

        Args:
            query: As typed; case doesn't matter.
            within: The hits of a beginning of this query, which saves looking at everything again.
        """
        words = query.lower().split()
        letters = "".join(words)
        if not letters:
            return Hits(self.entries, ())
        entries = self.entries if within is None else (*within.by_name, *within.by_text)
        fits = in_order(letters)
        by_name = [entry for entry in entries if fits(entry.folded)]
        named = {entry.place for entry in by_name}
        by_text = [entry for entry in entries if entry.place not in named and words[0] in entry.text]
        for word in words[1:]:
            by_text = [entry for entry in by_text if word in entry.text]
        by_name.sort(key=_rank(letters))
        by_text.sort(key=_PLACE)
        return Hits(tuple(by_name), tuple(by_text))


def match_positions(query: str, name: str) -> Sequence[int]:
    """Gives the offsets in `name` of the query's letters: in one piece, else from the starts of words, else in order.

    Args:
        query: As typed; case doesn't matter.
        name: The name to mark.
    """
    letters, name = "".join(query.lower().split()), name.lower()
    if not letters:
        return ()
    start = _whole(letters, name)
    if start >= 0:
        return range(start, start + len(letters))
    starts = [start.start() for start in _WORD_START.finditer(name)]
    return _offsets(letters, name, starts) or _offsets(letters, name, range(len(name)))


def _rank(letters: str) -> Callable[[ToolEntry], int]:
    """Ranks names: the whole name, its beginning, a word's beginning, any piece, the words' initials, any order.

    Of two in one rank the shorter wins, then the earlier.
    """
    fits = in_order(letters)

    def rank(entry: ToolEntry) -> int:
        name = entry.folded
        at = name.rfind(letters)
        if at < 0:
            level = 4 if fits(entry.initials) else 5
        elif name.endswith(letters) and (at == 0 or name[at - 1] == "."):
            level = 0
        elif name.rfind("." + letters) >= 0:
            level = 1
        elif at == 0 or not name[at - 1].isalnum():
            level = 2
        else:
            level = 3
        return level << 60 | len(name) << 30 | entry.place

    return rank


def _whole(letters: str, name: str) -> int:
    after_dot = name.rfind("." + letters)
    return after_dot + 1 if after_dot >= 0 else name.rfind(letters)


def _offsets(letters: str, name: str, places: Iterable[int]) -> list[int]:
    """Finds the letters in order at some of the places; empty unless all are there."""
    found: list[int] = []
    for place in places:
        if name[place] == letters[len(found)]:
            found.append(place)
            if len(found) == len(letters):
                return found
    return []


def in_order(letters: str) -> Callable[[str], object]:
    """Tests whether a text has the letters in order; each class shuts out its letter, so nothing is tried twice."""
    return re.compile("".join(f"[^{re.escape(letter)}]*{re.escape(letter)}" for letter in letters)).match


def _entry(spec: ToolSpec, state: ToolState, place: int) -> ToolEntry:
    text = " ".join((spec.description, *spec.aliases)).lower()
    folded = spec.name.lower()
    initials = "".join(_WORD_START.findall(folded))
    return ToolEntry(spec, state, clean_line(spec.name), clean_line(spec.function), folded, initials, text, place)


def _pack_of(problem: Problem, packs_of_files: dict[str, str]) -> str | None:
    if problem.file in packs_of_files:
        return packs_of_files[problem.file]
    if problem.pack is not None:
        return problem.pack
    if problem.file is not None and problem.file.endswith(".py"):
        return Path(problem.file).stem
    return None
