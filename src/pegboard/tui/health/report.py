"""The report on health as the Health place lists it: by requirement or by tool. Headless."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, overload

from pegboard.models import HealthRow, Problem, Requirement, Thing, ToolSpec
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count
from pegboard.tui.state.catalogue import Catalogue, ToolEntry, in_order
from pegboard.tui.state.health_checks import HealthState
from pegboard.tui.widgets.problem_text import place

Status = Literal["ok", "missing", "outdated", "error", "checking…", "warning", "hint", "ready", "degraded", "blocked"]
"""The word for how it is with a line: of a requirement, a pack with a problem, a tool."""

KINDS = {"cli": "program", "lib": "library", "secret": "secret", "server": "server", "pack": "pack", "tool": "tool"}
"""What each kind of line is called."""

Grade = Literal["bad", "doubtful", "unknown", "good"]
"""How bad it is with a line; the worst stand first."""

_RANKS: dict[Grade, int] = {"bad": 0, "doubtful": 1, "unknown": 2, "good": 3}
_STATES: dict[Grade, Status] = {"bad": "blocked", "doubtful": "degraded", "unknown": "checking…", "good": "ready"}

Key: TypeAlias = "tuple[str | Thing, ...]"


@dataclass(frozen=True, slots=True)
class Need:
    """A tool that needs something."""

    tool: str
    """The qualified name."""
    requirement: Requirement


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """Something that tools need, and how it is with it: the same for all lines that name it."""

    thing: Thing
    name: str
    """The name with the least version, safe to show."""
    needs: tuple[Need, ...]
    """Every tool that needs it."""
    found: HealthRow | None
    """None until it was looked for."""
    is_looking: bool
    blocked: frozenset[str]
    """The tools that can't work for want of it."""

    @classmethod
    def of(cls, thing: Thing, name: str, needs: tuple[Need, ...], known: HealthState) -> Facts:
        """Puts together what is known of a thing."""
        found = known.found.get(thing)
        is_missing = found is not None and found.status in ("missing", "outdated")
        blocked = frozenset(need.tool for need in needs if not need.requirement.optional) if is_missing else frozenset()
        return cls(thing, name, needs, found, thing in known.looking, blocked)

    @property
    def status(self) -> Status:
        """The word for how it is with it."""
        return "checking…" if self.is_looking or self.found is None else self.found.status

    @property
    def grade(self) -> Grade:
        """How bad that is."""
        if self.is_looking or self.found is None:
            return "unknown"
        if self.found.status == "ok":
            return "good"
        return "bad" if self.blocked else "doubtful"


@dataclass(frozen=True, slots=True, eq=False)
class ThingLine:
    """A line that names something that tools need."""

    facts: Facts
    tool: str = ""
    """The tool below which the line stands; empty where it stands for itself."""

    @property
    def key(self) -> Key:
        """What the line is known by as the report changes."""
        return ("thing", self.tool, self.facts.thing)

    @property
    def name(self) -> str:
        """The name with the least version, safe to show."""
        return self.facts.name

    @property
    def kind(self) -> str:
        """The word for what it is."""
        return KINDS[self.facts.thing.kind]

    @property
    def status(self) -> Status:
        """The word for how it is with it."""
        return self.facts.status

    @property
    def grade(self) -> Grade:
        """How bad that is."""
        return self.facts.grade

    @property
    def version(self) -> str:
        """The version that was found; of a secret, where it comes from."""
        found = self.facts.found
        if found is None:
            return ""
        return clean_line(Path(found.path or "").name if found.kind == "secret" else found.version or "")

    @property
    def note(self) -> str:
        """How many tools it blocks, or how many need it."""
        blocked, needy = len(self.facts.blocked), len(self.facts.needs)
        if blocked and blocked < needy:
            return f"blocks {blocked:,} of {needy:,}"
        if blocked:
            return f"blocks {count(blocked, 'tool')}"
        if all(need.requirement.optional for need in self.facts.needs):
            return "optional"
        return count(needy, "tool")


@dataclass(frozen=True, slots=True, eq=False)
class ToolLine:
    """A tool that needs something, above what it needs."""

    spec: ToolSpec
    name: str
    """The qualified name, safe to show."""
    things: tuple[ThingLine, ...]
    grade: Grade
    """How bad it is with it: as bad as what is worst of what it needs."""

    @classmethod
    def of(cls, entry: ToolEntry, things: Sequence[ThingLine]) -> ToolLine:
        """Puts a tool above what it needs."""
        grades: list[Grade] = [
            "doubtful" if line.grade == "bad" and entry.spec.name not in line.facts.blocked else line.grade
            for line in things
        ]
        return cls(entry.spec, entry.name, tuple(things), min(grades, key=_RANKS.__getitem__))

    @property
    def key(self) -> Key:
        """What the line is known by as the report changes."""
        return ("tool", self.spec.name)

    @property
    def kind(self) -> str:
        """The word for what it is."""
        return KINDS["tool"]

    @property
    def status(self) -> Status:
        """The word for how it is with it."""
        return _STATES[self.grade]

    @property
    def version(self) -> str:
        """Nothing."""
        return ""

    @property
    def note(self) -> str:
        """How many things it needs."""
        return f"needs {len(self.things):,}"


@dataclass(frozen=True, slots=True, eq=False)
class ProblemLine:
    """A pack with a problem."""

    name: str
    """The pack's name, safe to show."""
    problem: Problem

    @property
    def key(self) -> Key:
        """What the line is known by as the report changes."""
        return ("problem", self.name, str(self.problem))

    @property
    def kind(self) -> str:
        """The word for what it is."""
        return KINDS["pack"]

    @property
    def status(self) -> Status:
        """The word for how bad it is."""
        return self.problem.severity

    @property
    def grade(self) -> Grade:
        """How bad that is."""
        return "bad" if self.problem.severity == "error" else "doubtful"

    @property
    def version(self) -> str:
        """Nothing."""
        return ""

    @property
    def note(self) -> str:
        """Where it is."""
        return place(self.problem)


ReportLine: TypeAlias = ThingLine | ToolLine | ProblemLine


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """What the tools of one scan need; never changes.

    Attributes:
        things: Who needs each thing.
        names: What each is called, safe to show.
        tools: The tools that need something.
        problems: What is wrong with packs.
    """

    things: Mapping[Thing, tuple[Need, ...]]
    names: Mapping[Thing, str]
    tools: tuple[ToolEntry, ...]
    problems: tuple[ProblemLine, ...]

    @classmethod
    def of(cls, catalogue: Catalogue) -> Needs:
        """Collects them."""
        things: defaultdict[Thing, list[Need]] = defaultdict(list)
        tools = tuple(entry for entry in catalogue.entries if entry.spec.requirements)
        for entry in tools:
            for requirement in entry.spec.requirements:
                things[requirement.thing].append(Need(entry.spec.name, requirement))
        return cls(
            {thing: tuple(needs) for thing, needs in things.items()},
            {thing: clean_line(str(thing)) for thing in things},
            tools,
            tuple(ProblemLine(clean_line(pack.name), one) for pack in catalogue.packs for one in pack.problems),
        )

    def facts(self, known: HealthState) -> dict[Thing, Facts]:
        """Puts together what is known of each thing."""
        return {thing: Facts.of(thing, self.names[thing], who, known) for thing, who in self.things.items()}


class Report(Sequence[ReportLine]):
    """Lines in their order, found by their keys too; never changes.

    Args:
        lines: The lines.
    """

    def __init__(self, lines: Sequence[ReportLine] = ()) -> None:
        self._lines = lines
        self._places = {line.key: place for place, line in enumerate(lines)}

    def place_of(self, key: Key) -> int | None:
        """Gives the place of the line of that key; None if there is none."""
        return self._places.get(key)

    @overload
    def __getitem__(self, index: int) -> ReportLine: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ReportLine]: ...

    def __getitem__(self, index: int | slice) -> ReportLine | Sequence[ReportLine]:
        return self._lines[index]

    def __len__(self) -> int:
        return len(self._lines)


def by_requirement(needs: Needs, known: HealthState, ranks: dict[Key, int]) -> Report:
    """Lists each thing once, and what is wrong with packs; what isn't well comes first.

    Args:
        needs: What is needed.
        known: What was found.
        ranks: Remembers where lines stand, so that one that is looked for again stays there.
    """
    lines: list[ReportLine] = [*needs.problems, *(ThingLine(facts) for facts in needs.facts(known).values())]
    return Report(sorted(lines, key=lambda line: _order(line, ranks)))


def by_tool(needs: Needs, known: HealthState, ranks: dict[Key, int]) -> Report:
    """Lists each tool that needs something, with what it needs below; see `by_requirement`."""
    groups: list[ToolLine | ProblemLine] = [*needs.problems]
    facts = needs.facts(known)
    for entry in needs.tools:
        things = dict.fromkeys(requirement.thing for requirement in entry.spec.requirements)
        lines = [ThingLine(facts[thing], entry.spec.name) for thing in things]
        groups.append(ToolLine.of(entry, sorted(lines, key=lambda line: _rank(line, ranks))))
    groups.sort(key=lambda line: _order(line, ranks))
    return Report([line for group in groups for line in _with_things(group)])


def sift(lines: Sequence[ReportLine], query: str) -> list[int]:
    """Gives the indexes of the lines whose name has the query's letters in order, or whose words the query begins.

    What a tool needs is found with its tool, and a tool with what it needs.

    Args:
        lines: Of one of the two lists.
        query: As typed; case and spaces don't matter.
    """
    letters = "".join(query.lower().split())
    if not letters:
        return list(range(len(lines)))
    fits = in_order(letters)
    named: dict[Thing, bool] = {}

    def is_hit(line: ReportLine) -> bool:
        if not isinstance(line, ThingLine):
            return _says(line, letters, fits)
        thing = line.facts.thing
        if thing not in named:
            named[thing] = _says(line, letters, fits)
        return named[thing]

    hits = {index for index, line in enumerate(lines) if is_hit(line)}
    tools = {line.spec.name for index, line in enumerate(lines) if index in hits and isinstance(line, ToolLine)}
    heads = {line.tool for index, line in enumerate(lines) if index in hits and isinstance(line, ThingLine)}
    return [
        index
        for index, line in enumerate(lines)
        if index in hits
        or (isinstance(line, ThingLine) and line.tool in tools)
        or (isinstance(line, ToolLine) and line.spec.name in heads)
    ]


def _says(line: ReportLine, letters: str, fits: Callable[[str], object]) -> bool:
    return bool(fits(line.name.lower())) or line.status.startswith(letters) or line.kind.startswith(letters)


def _with_things(line: ToolLine | ProblemLine) -> Iterator[ReportLine]:
    yield line
    if isinstance(line, ToolLine):
        yield from line.things


def _order(line: ReportLine, ranks: dict[Key, int]) -> tuple[int, bool, str]:
    return _rank(line, ranks), isinstance(line, ProblemLine), line.name.lower()


def _rank(line: ReportLine, ranks: dict[Key, int]) -> int:
    if line.key in ranks:
        return ranks[line.key]
    if line.grade == "unknown":
        return _RANKS["unknown"]
    ranks[line.key] = _RANKS[line.grade]
    return ranks[line.key]
