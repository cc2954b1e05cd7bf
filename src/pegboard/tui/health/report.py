"""Lines of the Health page, by requirement or by tool. Independent of Textual."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, overload

from pegboard.models import HealthRow, Problem, Requirement, RequirementKey, ServerState, ServerStatus, ToolSpec
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count
from pegboard.tui.state.catalogue import Catalogue, ToolEntry
from pegboard.tui.state.fuzzy import in_order
from pegboard.tui.state.health_checks import HealthState
from pegboard.tui.widgets.problem_text import place
from pegboard.tui.widgets.server_text import server_label

Status = Literal["ok", "missing", "outdated", "error", "checking…", "warning", "hint", "ready", "degraded", "blocked"]
"""Status label of a report line."""

KINDS = {"cli": "program", "lib": "library", "secret": "secret", "server": "server", "pack": "pack", "tool": "tool"}
"""Label of each kind of line."""

Grade = Literal["bad", "doubtful", "unknown", "good"]
"""Severity of a report line, worst first."""

_RANKS: dict[Grade, int] = {"bad": 0, "doubtful": 1, "unknown": 2, "good": 3}
_STATES: dict[Grade, Status] = {"bad": "blocked", "doubtful": "degraded", "unknown": "checking…", "good": "ready"}

Key: TypeAlias = tuple[str | RequirementKey, ...]


@dataclass(frozen=True, slots=True)
class ToolRequirement:
    """A tool that has a requirement."""

    tool: str
    """Qualified name of the tool."""
    requirement: Requirement


@dataclass(frozen=True, slots=True, eq=False)
class RequirementState:
    """State of a requirement, shared by all lines that show it."""

    key: RequirementKey
    name: str
    """Name and minimum version, cleaned."""
    tools: tuple[ToolRequirement, ...]
    """Tools that have the requirement."""
    found: HealthRow | None
    """Result of the last check; None before the first."""
    is_looking: bool
    blocked: frozenset[str]
    """Names of the tools that can't run without it."""

    @classmethod
    def of(
        cls, key: RequirementKey, name: str, tools: tuple[ToolRequirement, ...], known: HealthState
    ) -> RequirementState:
        """Look up the results for a requirement."""
        found = known.found.get(key)
        is_missing = found is not None and found.status in ("missing", "outdated")
        blocked = frozenset(one.tool for one in tools if not one.requirement.optional) if is_missing else frozenset()
        return cls(key, name, tools, found, key in known.checking, blocked)

    @property
    def status(self) -> Status:
        """Status label."""
        return "checking…" if self.is_looking or self.found is None else self.found.status

    @property
    def grade(self) -> Grade:
        """Severity."""
        if self.is_looking or self.found is None:
            return "unknown"
        if self.found.status == "ok":
            return "good"
        return "bad" if self.blocked else "doubtful"


@dataclass(frozen=True, slots=True, eq=False)
class RequirementLine:
    """Line for a requirement."""

    state: RequirementState
    tool: str = ""
    """Tool above the line; empty in the list by requirement."""

    @property
    def key(self) -> Key:
        """Identity of the line when the report changes."""
        return ("requirement", self.tool, self.state.key)

    @property
    def name(self) -> str:
        """Name and minimum version, cleaned."""
        return self.state.name

    @property
    def kind(self) -> str:
        """Label of the kind."""
        return KINDS[self.state.key.kind]

    @property
    def status(self) -> Status:
        """Status label."""
        return self.state.status

    @property
    def grade(self) -> Grade:
        """Severity."""
        return self.state.grade

    @property
    def version(self) -> str:
        """Installed version; for a secret, its source."""
        found = self.state.found
        if found is None:
            return ""
        return clean_line(Path(found.path or "").name if found.kind == "secret" else found.version or "")

    @property
    def note(self) -> str:
        """Number of tools that are blocked, or that have the requirement."""
        blocked, total = len(self.state.blocked), len(self.state.tools)
        if blocked and blocked < total:
            return f"blocks {blocked:,} of {total:,}"
        if blocked:
            return f"blocks {count(blocked, 'tool')}"
        if all(one.requirement.optional for one in self.state.tools):
            return "optional"
        return count(total, "tool")


@dataclass(frozen=True, slots=True, eq=False)
class ToolLine:
    """Line for a tool, above the lines for its requirements."""

    spec: ToolSpec
    name: str
    """Qualified name, cleaned."""
    requirements: tuple[RequirementLine, ...]
    grade: Grade
    """Severity of the tool's worst requirement."""

    @classmethod
    def of(cls, entry: ToolEntry, requirements: Sequence[RequirementLine]) -> ToolLine:
        """Build the line from the tool's requirements."""
        grades: list[Grade] = [
            "doubtful" if line.grade == "bad" and entry.spec.name not in line.state.blocked else line.grade
            for line in requirements
        ]
        return cls(entry.spec, entry.name, tuple(requirements), min(grades, key=_RANKS.__getitem__))

    @property
    def key(self) -> Key:
        """Identity of the line when the report changes."""
        return ("tool", self.spec.name)

    @property
    def kind(self) -> str:
        """Label of the kind."""
        return KINDS["tool"]

    @property
    def status(self) -> Status:
        """Status label."""
        return _STATES[self.grade]

    @property
    def version(self) -> str:
        """Empty."""
        return ""

    @property
    def note(self) -> str:
        """Number of requirements."""
        return f"requires {len(self.requirements):,}"


@dataclass(frozen=True, slots=True, eq=False)
class ProblemLine:
    """Line for a problem of a pack."""

    name: str
    """Name of the pack, cleaned."""
    problem: Problem

    @property
    def key(self) -> Key:
        """Identity of the line when the report changes."""
        return ("problem", self.name, str(self.problem))

    @property
    def kind(self) -> str:
        """Label of the kind."""
        return KINDS["pack"]

    @property
    def status(self) -> Status:
        """Severity label."""
        return self.problem.severity

    @property
    def grade(self) -> Grade:
        """Severity."""
        return "bad" if self.problem.severity == "error" else "doubtful"

    @property
    def version(self) -> str:
        """Empty."""
        return ""

    @property
    def note(self) -> str:
        """File and line."""
        return place(self.problem)


_SERVER_GRADES: dict[ServerState, Grade] = {
    ServerState.FAILED: "bad",
    ServerState.NEEDS_LOGIN: "bad",
    ServerState.DEGRADED: "doubtful",
    ServerState.CONNECTING: "unknown",
    ServerState.READY: "good",
    ServerState.DISABLED: "good",
}


@dataclass(frozen=True, slots=True, eq=False)
class ServerLine:
    """Line for an MCP server."""

    server: ServerStatus

    @property
    def key(self) -> Key:
        """Identity of the line when the report changes."""
        return ("server", self.server.name)

    @property
    def name(self) -> str:
        """Name of the pack, cleaned."""
        return server_label(self.server)

    @property
    def kind(self) -> str:
        """Label of the kind."""
        return KINDS["server"]

    @property
    def status(self) -> str:
        """Name of the state."""
        return self.server.state

    @property
    def grade(self) -> Grade:
        """Severity."""
        return _SERVER_GRADES[self.server.state]

    @property
    def version(self) -> str:
        """Version that the server reports."""
        return clean_line(self.server.server_version)

    @property
    def note(self) -> str:
        """Number of tools."""
        return count(self.server.tools, "tool") if self.server.protocol else ""


ReportLine: TypeAlias = RequirementLine | ToolLine | ProblemLine | ServerLine


@dataclass(frozen=True, slots=True, eq=False)
class Requirements:
    """Requirements of the tools of one scan. Immutable.

    Attributes:
        requirements: Each requirement with its tools.
        names: Name of each requirement, cleaned.
        tools: Tools with requirements.
        problems: Problems of packs.
        servers: The MCP servers.
    """

    requirements: Mapping[RequirementKey, tuple[ToolRequirement, ...]]
    names: Mapping[RequirementKey, str]
    tools: tuple[ToolEntry, ...]
    problems: tuple[ProblemLine, ...]
    servers: tuple[ServerLine, ...]

    @classmethod
    def of(cls, catalogue: Catalogue) -> Requirements:
        """Collect the requirements of all tools."""
        requirements: defaultdict[RequirementKey, list[ToolRequirement]] = defaultdict(list)
        tools = tuple(entry for entry in catalogue.entries if entry.spec.requirements)
        for entry in tools:
            for requirement in entry.spec.requirements:
                requirements[requirement.key].append(ToolRequirement(entry.spec.name, requirement))
        return cls(
            {key: tuple(found) for key, found in requirements.items()},
            {key: clean_line(str(key)) for key in requirements},
            tools,
            tuple(
                ProblemLine(clean_line(pack.name), one)
                for pack in catalogue.packs
                for one in pack.problems
                if pack.server is None or not pack.server.reason or pack.server.reason not in one.message
            ),
            tuple(ServerLine(pack.server) for pack in catalogue.packs if pack.server is not None),
        )

    @property
    def total(self) -> int:
        """Number of requirements, MCP servers included."""
        return len(self.requirements) + len(self.servers)

    @property
    def unusable(self) -> int:
        """Number of MCP servers that can't be used."""
        return sum(line.grade == "bad" for line in self.servers)

    def states(self, known: HealthState) -> dict[RequirementKey, RequirementState]:
        """Return the state of each requirement."""
        return {
            key: RequirementState.of(key, self.names[key], tools, known) for key, tools in self.requirements.items()
        }


class HealthReport(Sequence[ReportLine]):
    """Lines in order, also by key. Immutable.

    Args:
        lines: Lines of the report.
    """

    def __init__(self, lines: Sequence[ReportLine] = ()) -> None:
        self._lines = lines
        self._places = {line.key: place for place, line in enumerate(lines)}

    def place_of(self, key: Key) -> int | None:
        """Return the index of the line with this key, or None."""
        return self._places.get(key)

    @overload
    def __getitem__(self, index: int) -> ReportLine: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ReportLine]: ...

    def __getitem__(self, index: int | slice) -> ReportLine | Sequence[ReportLine]:
        return self._lines[index]

    def __len__(self) -> int:
        return len(self._lines)


def by_requirement(requirements: Requirements, known: HealthState, ranks: dict[Key, int]) -> HealthReport:
    """Return one line per requirement and per problem of a pack, worst first.

    Args:
        requirements: Requirements of the tools.
        known: Results of the checks.
        ranks: Ranks of the lines. A line keeps its rank while it is checked again.
    """
    lines: list[ReportLine] = [
        *requirements.problems,
        *requirements.servers,
        *(RequirementLine(state) for state in requirements.states(known).values()),
    ]
    return HealthReport(sorted(lines, key=lambda line: _order(line, ranks)))


def by_tool(requirements: Requirements, known: HealthState, ranks: dict[Key, int]) -> HealthReport:
    """Return each tool with requirements, followed by its requirements; see `by_requirement`."""
    groups: list[ToolLine | ProblemLine | ServerLine] = [*requirements.problems, *requirements.servers]
    states = requirements.states(known)
    for entry in requirements.tools:
        own = dict.fromkeys(requirement.key for requirement in entry.spec.requirements)
        lines = [RequirementLine(states[key], entry.spec.name) for key in own]
        groups.append(ToolLine.of(entry, sorted(lines, key=lambda line: _rank(line, ranks))))
    groups.sort(key=lambda line: _order(line, ranks))
    return HealthReport([line for group in groups for line in _with_requirements(group)])


def sift(lines: Sequence[ReportLine], query: str) -> list[int]:
    """Return the indexes of the lines that match a query: letters of the name in order, or start of kind or status.

    A match of a tool includes its requirements, and a match of a requirement its tools.

    Args:
        lines: Lines of a report.
        query: Query as typed; case and spaces are ignored.
    """
    letters = "".join(query.lower().split())
    if not letters:
        return list(range(len(lines)))
    fits = in_order(letters).match
    named: dict[RequirementKey, bool] = {}

    def is_hit(line: ReportLine) -> bool:
        if not isinstance(line, RequirementLine):
            return _matches(line, letters, fits)
        key = line.state.key
        if key not in named:
            named[key] = _matches(line, letters, fits)
        return named[key]

    hits = {index for index, line in enumerate(lines) if is_hit(line)}
    tools = {line.spec.name for index, line in enumerate(lines) if index in hits and isinstance(line, ToolLine)}
    heads = {line.tool for index, line in enumerate(lines) if index in hits and isinstance(line, RequirementLine)}
    return [
        index
        for index, line in enumerate(lines)
        if index in hits
        or (isinstance(line, RequirementLine) and line.tool in tools)
        or (isinstance(line, ToolLine) and line.spec.name in heads)
    ]


def _matches(line: ReportLine, letters: str, fits: Callable[[str], object]) -> bool:
    return bool(fits(line.name.lower())) or line.status.startswith(letters) or line.kind.startswith(letters)


def _with_requirements(line: ToolLine | ProblemLine | ServerLine) -> Iterator[ReportLine]:
    yield line
    if isinstance(line, ToolLine):
        yield from line.requirements


def _order(line: ReportLine, ranks: dict[Key, int]) -> tuple[int, bool, str]:
    return _rank(line, ranks), isinstance(line, ProblemLine), line.name.lower()


def _rank(line: ReportLine, ranks: dict[Key, int]) -> int:
    if line.key in ranks:
        return ranks[line.key]
    if line.grade == "unknown":
        return _RANKS["unknown"]
    ranks[line.key] = _RANKS[line.grade]
    return ranks[line.key]
