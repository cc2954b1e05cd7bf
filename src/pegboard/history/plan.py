"""Translation of a history query to SQL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from pegboard.history.schema import (
    A_TURN,
    CANCELLED,
    DENIED,
    DURATION_STEPS,
    FAILED,
    IN_TURN,
    INTERRUPTED,
    NOT_A_TURN,
    OK,
    RUNNING,
    TOP,
)
from pegboard.models import UNFINISHED, CallState, HistoryQuery

if TYPE_CHECKING:
    from pegboard.history.rows import Column

STATUS: Final[dict[CallState, int]] = {
    "waiting": RUNNING,
    "running": RUNNING,
    "ok": OK,
    "failed": FAILED,
    "cancelled": CANCELLED,
    "denied": DENIED,
    "interrupted": INTERRUPTED,
}
_UNFINISHED: Final[dict[CallState, str]] = {"waiting": "error IS NOT NULL", "running": "error IS NULL"}
_INNER: Final = (
    "SELECT n FROM calls WHERE parent = ?"
    " UNION ALL SELECT n FROM calls WHERE turn = ? AND turn <> id AND parent IS NULL"
)
"""Positions of the calls that a call or a turn made itself."""
_REJECTIONS: Final = ("invalid_args", "tool_not_found")
NOT_RUN: Final = f"status = {DENIED} OR " + " OR ".join(
    f"""coalesce(error, '') GLOB '{{"code":"{code}"*'""" for code in _REJECTIONS
)
"""Condition on a row of `calls`: its arguments were invalid, or it was denied or not allowed, so that it didn't run."""
_SHORTEST_BEGINNING: Final = 3
"""Minimum length of a word that also finds words that begin with it. Shorter ones occur in too many words."""


@dataclass
class Plan:
    """A query as conditions on the table of calls and on the full-text index.

    The index has only finished calls. Running ones are few, and are searched by the conditions alone.
    """

    match: str = ""
    """Expression for the full-text index; empty if the conditions on the table suffice."""
    rest: list[str] = field(default_factory=list)
    """Conditions that the index can't decide."""
    rest_values: list[Column] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)
    """Conditions that decide the query without the index."""
    alone_values: list[Column] = field(default_factory=list)
    with_running: bool = True
    with_finished: bool = True


def may_be_beginning(word: str) -> bool:
    """Return whether a word of a query also finds words that begin with it."""
    return len(word) >= _SHORTEST_BEGINNING


def tools_of(patterns: Sequence[str], known: Iterable[str]) -> list[str]:
    """Return the tools that match a pattern: a name, the name of a pack, or a pattern with `*`."""
    return [
        tool
        for tool in known
        if any(
            fnmatchcase(tool, pattern) if "*" in pattern else tool == pattern or tool.startswith(f"{pattern}.")
            for pattern in patterns
        )
    ]


def plan(query: HistoryQuery, tools: Iterable[str], terms: Mapping[str, Sequence[str]] | None = None) -> Plan:
    """Translate a query.

    Args:
        query: The query.
        tools: Names of all tools that the history contains.
        terms: For some words of the query, the words of the index that they match. The index merges the calls of all
            words with one beginning before it returns the first one, but not those of words that are listed.
    """
    known = terms or {}
    made = Plan()
    if query.tools:
        names = tools_of(query.tools, tools)
        _facet(made, "t", names)
        _alone(made, "tool IN (SELECT value FROM json_each(?))", json.dumps(names))
    if query.sources:
        _facet(made, "o", query.sources)
        _alone(made, "source IN (SELECT value FROM json_each(?))", json.dumps(query.sources))
    if query.agents:
        _facet(made, "a", query.agents)
        _alone(made, "agent IN (SELECT value FROM json_each(?))", json.dumps(query.agents))
    if query.sessions:
        _and(made, "facets : (" + " OR ".join(f'"s{hex_text(one)}" *' for one in query.sessions) + ")")
        starts = " OR ".join("substr(session, 1, length(?)) = ?" for _ in query.sessions)
        _alone(made, f"({starts})", *(part for one in query.sessions for part in (one, one)))
    if query.states:
        finished = [STATUS[state] for state in query.states if state not in UNFINISHED]
        unfinished = [f"status = {RUNNING} AND {_UNFINISHED[one]}" for one in query.states if one in UNFINISHED]
        made.with_running, made.with_finished = bool(unfinished), bool(finished)
        _and(made, "facets : (" + " OR ".join(f'"r{status}"' for status in finished or [RUNNING]) + ")")
        either = " OR ".join(["status IN (SELECT value FROM json_each(?))", *unfinished])
        _alone(made, f"({either})", json.dumps(finished))
    if query.pinned:
        _and(made, 'facets : "k1"')
        _alone(made, "pinned")
    if query.parent is not None:
        _parent(made, query.parent, turns=query.turns)
    _times(made, query)
    for word in query.words:
        if word in known:
            _and(made, f"words : ({' OR '.join(map(quoted, known[word]))})")
        else:
            _and(made, f"words : {quoted(word)}{' *' if may_be_beginning(word) else ''}")
        _alone(made, "instr(lower(tool || ' ' || args), lower(?))", word)
    for phrase in query.phrases:
        _and(made, f"words : {quoted(phrase)}")
        _alone(made, "instr(lower(tool || ' ' || args), lower(?))", phrase)
    if not query.turns or query.tools:
        made.match = f'({made.match}) NOT facets : "{A_TURN}"' if made.match else ""
        _alone(made, NOT_A_TURN)
    return made


def not_run(tool: str) -> tuple[str, list[Column]]:
    """Return a query for how many calls of a tool didn't run, and how many of these failed, and its parameters.

    It searches the index, because they may be few of many.
    """
    words = " OR ".join(f'words : "code {code}"' for code in _REJECTIONS)
    query = (
        f"SELECT count(*), sum(status = {FAILED}) FROM calls_text CROSS JOIN calls ON calls.n = calls_text.rowid"  # noqa: S608 - our own text
        f" WHERE calls_text MATCH ? AND tool = ? AND {NOT_A_TURN} AND ({NOT_RUN})"
    )
    match = f'facets : "t{hex_text(tool)}" AND (facets : "r{DENIED}" OR facets : "r{FAILED}" AND ({words}))'
    return query, [match, tool]


def narrow_to_turns(made: Plan) -> None:
    """Leave only turns in the plan of a query that lists them too."""
    _and(made, f'facets : "{A_TURN}"')
    _alone(made, "turn = id")


def _parent(made: Plan, parent: str, *, turns: bool) -> None:
    if parent != "none":
        _both(made, f"n IN ({_INNER})", parent, parent)
        return
    _and(made, f'facets : ("{TOP}" OR "{A_TURN if turns else IN_TURN}")')
    _alone(made, "parent IS NULL AND (turn IS NULL OR turn = id)" if turns else "parent IS NULL")


def _times(made: Plan, query: HistoryQuery) -> None:
    from pegboard.history.rows import microseconds

    # Positions grow with time except for imported calls, so the first condition of each pair bounds the search.
    if query.since is not None:
        at = microseconds(query.since)
        _bound(made, ">= (SELECT min(+n) FROM calls WHERE at >= ?)", at)
        _both(made, "at >= ?", at)
    if query.before is not None:
        at = microseconds(query.before)
        _bound(made, "<= (SELECT max(+n) FROM calls WHERE at < ?)", at)
        _both(made, "at < ?", at)
    if query.slower is not None:
        shortest = query.slower * 1000
        first = sum(limit <= shortest for limit in DURATION_STEPS)
        _and(made, "facets : (" + " OR ".join(f'"d{step}"' for step in range(first, len(DURATION_STEPS) + 1)) + ")")
        made.rest.append("duration_ms >= ?")
        made.rest_values.append(shortest)
        # A running call lasts from its start until now.
        _alone(
            made,
            f"(duration_ms >= ? OR status = {RUNNING} AND at <= ?)",
            shortest,
            microseconds(datetime.now(UTC) - timedelta(seconds=query.slower)),
        )


def _facet(made: Plan, kind: str, values: Sequence[str]) -> None:
    words = [f'"{kind}{hex_text(value)}"' for value in values] or [f'"{kind}"']
    _and(made, f"facets : ({' OR '.join(words)})")


def _and(made: Plan, expression: str) -> None:
    made.match = f"{made.match} AND {expression}" if made.match else expression


def _alone(made: Plan, condition: str, *values: Column) -> None:
    made.alone.append(condition)
    made.alone_values += values


def _bound(made: Plan, condition: str, value: Column) -> None:
    made.rest.append(f"calls_text.rowid {condition}")
    made.rest_values.append(value)
    _alone(made, f"n {condition}", value)


def _both(made: Plan, condition: str, *values: Column) -> None:
    made.rest.append(condition)
    made.rest_values += values
    _alone(made, condition, *values)


def hex_text(text: str) -> str:
    """Return a text as a word of the index."""
    return text[:500].encode("utf-8", "replace").hex()


def quoted(text: str) -> str:
    """Return a text as a string of the full-text query language."""
    return '"' + text.replace('"', '""').replace("\0", " ") + '"'
