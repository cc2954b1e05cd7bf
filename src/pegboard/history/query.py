"""The query language of the history: `tool:ckan.* status:failed since:2h "free text"`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, get_args

from pegboard.models import CallSource, CallState, HistoryQuery, ParsedQuery, QueryProblem

KEYS: Final = ("agent", "before", "parent", "pinned", "session", "since", "slower", "source", "status", "tool")
"""Keys of structured filters."""
SOURCES: Final[tuple[str, ...]] = get_args(CallSource)
STATES: Final[tuple[CallState, ...]] = get_args(CallState)
_TIMES: Final = ("30m", "2h", "7d", "YYYY-MM-DD")
EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "before": _TIMES,
    "since": _TIMES,
    "slower": ("500ms", "1s", "2m"),
    "source": SOURCES,
    "status": STATES,
}
"""Values of filters that are offered, by key."""
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_LONGEST: Final = 1000 * _UNITS["w"]
"""Longest duration of the filter `slower:`, in seconds. Python has no dates before the year 1."""
_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(ms|s|min|m|h|d|w)?")
_WORD: Final = re.compile(r"\w")
_KEY: Final = re.compile(r"([A-Za-z]+):(?!//)")
_NAME: Final = r"""(?:"[^"]*"?|[^\s,"][^\s,]*)?"""
_NAMES: Final = re.compile(rf"{_NAME}(?:,{_NAME})*")
"""Value of a filter: names separated by commas, some of them quoted. A quotation that is still being typed extends to
the end."""
_QUOTATION: Final = re.compile(r"""(?:^|(?<=,))"([^"]*)"?""")


@dataclass(frozen=True)
class _Term:
    start: int
    end: int
    key: str
    """Empty for free text."""
    value: str
    is_quoted: bool = False


class _InvalidError(ValueError):
    """A value that its key doesn't accept."""

    def __init__(self, message: str, *allowed: str) -> None:
        super().__init__(message)
        self.allowed = allowed


def parse_query(text: str) -> ParsedQuery:
    """Parse a query.

    Invalid parts become problems and have no effect, so that a query can be applied while it is typed.

    Args:
        text: Words, phrases in double quotes, and filters `key:value`. Several names of a key are separated by commas
            or given by repeating the key; one of them must match. A time, a duration or a parent is given once.
    """
    found: dict[str, Any] = {}
    problems: list[QueryProblem] = []
    now = datetime.now(UTC)
    for term in _terms(text):
        try:
            _add(term, found, now)
        except _InvalidError as error:
            problems.append(QueryProblem(start=term.start, end=term.end, message=str(error), allowed=error.allowed))
    return ParsedQuery(query=HistoryQuery.model_validate(found), problems=tuple(problems))


def _terms(text: str) -> Iterator[_Term]:
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        start = at
        key = ""
        if match := _KEY.match(text, at):
            key, at = match[1].lower(), match.end()
        if key:
            names = _NAMES.match(text, at)
            assert names is not None, "the pattern matches every text"
            at = names.end()
            yield _Term(start, at, key, _QUOTATION.sub(r"\1", names[0]))
        elif text.startswith('"', at):
            # A quotation that is still being typed extends to the end.
            end = text.find('"', at + 1)
            value, after = (text[at + 1 :], len(text)) if end < 0 else (text[at + 1 : end], end + 1)
            yield _Term(start, after, key, value, is_quoted=True)
            at = after
        else:
            while at < len(text) and not text[at].isspace():
                at += 1
            yield _Term(start, at, key, text[start:at])


def _add(term: _Term, found: dict[str, Any], now: datetime) -> None:
    if not term.key:
        if not _WORD.search(term.value):
            raise _InvalidError(f"{term.value!r} contains no letters or digits to search for.")
        found["phrases" if term.is_quoted else "words"] = (
            *found.get("phrases" if term.is_quoted else "words", ()),
            term.value,
        )
        return
    add = _FILTERS.get(term.key)
    if add is None:
        raise _InvalidError(
            f'{term.key}: is not a filter. To search for the text, put it in double quotes: "{term.key}:{term.value}".',
            *(f"{key}:" for key in KEYS),
        )
    if not term.value.strip(" ,") and term.key != "pinned":
        raise _InvalidError(f"{term.key}: has no value.", *EXAMPLES.get(term.key, ()))
    name, value = add(term.value.strip(), now)
    if isinstance(value, tuple):
        found[name] = (*found.get(name, ()), *value)
    elif found.setdefault(name, value) != value:
        raise _InvalidError(f"{term.key}: can have only one value.")


def _names(name: str) -> Callable[[str, datetime], tuple[str, object]]:
    return lambda value, _now: (name, tuple(part.strip() for part in value.split(",") if part.strip()))


def _choices(name: str, key: str, allowed: tuple[str, ...]) -> Callable[[str, datetime], tuple[str, object]]:
    def choose(value: str, _now: datetime) -> tuple[str, object]:
        chosen = tuple(part.strip().lower() for part in value.split(",") if part.strip())
        for one in chosen:
            if one not in allowed:
                raise _InvalidError(f"{one!r} is not a {key}. Use one of: {', '.join(allowed)}.", *allowed)
        return name, chosen

    return choose


def _time(name: str) -> Callable[[str, datetime], tuple[str, object]]:
    def read(value: str, now: datetime) -> tuple[str, object]:
        try:
            if (match := _DURATION.fullmatch(value)) and match[2]:
                return name, now - timedelta(seconds=float(match[1]) * _UNITS[match[2]])
            return name, datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError):
            raise _InvalidError(
                f"{value!r} is not a time. Use a duration such as 30m, 2h or 7d, or a date such as 2026-01-31.",
                *EXAMPLES[name],
            ) from None

    return read


def _duration(value: str, _now: datetime) -> tuple[str, object]:
    match = _DURATION.fullmatch(value)
    if match is None:
        raise _InvalidError(f"{value!r} is not a duration. Use one such as 500ms, 1s or 2m.", *EXAMPLES["slower"])
    seconds = float(match[1]) * _UNITS[match[2] or "s"]
    if seconds > _LONGEST:
        raise _InvalidError(f"{value!r} is too long. Use at most 1000w.", *EXAMPLES["slower"])
    return "slower", seconds


def _parent(value: str, _now: datetime) -> tuple[str, object]:
    return "parent", value


def _pinned(value: str, _now: datetime) -> tuple[str, object]:
    if value.lower() not in {"", "yes", "true"}:
        raise _InvalidError("pinned: has no value. It lists pinned calls.", "pinned:")
    return "pinned", True


_FILTERS: Final[dict[str, Callable[[str, datetime], tuple[str, object]]]] = {
    "agent": _names("agents"),
    "before": _time("before"),
    "parent": _parent,
    "pinned": _pinned,
    "session": _names("sessions"),
    "since": _time("since"),
    "slower": _duration,
    "source": _choices("sources", "source", SOURCES),
    "status": _choices("states", "status", STATES),
    "tool": _names("tools"),
}
