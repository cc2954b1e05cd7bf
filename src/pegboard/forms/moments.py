"""Dates, times and durations as people write them, converted to the form of their `format`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import pairwise

from pegboard.schema.formats import FORMATS

_DATE = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})", re.ASCII)
_TIME = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?P<fraction>\.\d+)?)?)?"
    r"(?: ?(?P<half>[ap])\.?m\.?)?"
    r"(?: ?(?P<offset>z|utc|gmt|[+-]\d{2}(?::?\d{2})?))?",
    re.ASCII | re.IGNORECASE,
)
_NOON = 12
_CLOCK = re.compile(r"(?:(\d{1,9}) ?(?:d|days?),? ?)?(\d{1,2}):([0-5]\d):([0-5]\d(?:\.\d{1,9})?)", re.ASCII)
_AMOUNT = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?([a-z]+)", re.ASCII)
_AMOUNTS = re.compile(rf"{_AMOUNT.pattern}(?:,? ?(?:and )?{_AMOUNT.pattern})*", re.ASCII)
_MINUTES_OR_MONTHS = re.compile(r"\d ?M(?![A-Za-z])", re.ASCII)
_DAY = 86_400
_UNITS = {
    7 * _DAY: ("w", "week", "weeks"),
    _DAY: ("d", "day", "days"),
    3_600: ("h", "hr", "hrs", "hour", "hours"),
    60: ("m", "min", "mins", "minute", "minutes"),
    1: ("s", "sec", "secs", "second", "seconds"),
}
"""Seconds of a unit → its names, the longest unit first."""
_SECONDS = {name: seconds for seconds, names in _UNITS.items() for name in names}
_MOST_CHARACTERS = 100
"""Longer texts are neither a time nor a duration."""


def canonical(formats: Iterable[str], text: str) -> str:
    """Return a text in the form of RFC 3339 or ISO 8601 if it has only one meaning, else unchanged.

    Args:
        formats: `date`, `time`, `date-time` or `duration`; the first that fits decides, others change nothing.
        text: The text as typed, such as `8:30` or `90 min`.
    """
    typed = " ".join(text.split()) if len(text) <= _MOST_CHARACTERS else ""
    for name in formats:
        found = _CONVERSIONS[name](typed) if name in _CONVERSIONS else ""
        if found and FORMATS[name][1](found):
            return found
    return text


def _date(text: str) -> str:
    # Only with the year first is the order of month and day clear.
    parts = _DATE.fullmatch(text)
    return f"{parts[1]}-{int(parts[3]):02}-{int(parts[4]):02}" if parts else text


def _time(text: str) -> str:
    parts = _TIME.fullmatch(text)
    if parts is None or not (parts["minute"] or parts["half"]):
        return text
    hour = int(parts["hour"])
    if parts["half"]:
        if not 1 <= hour <= _NOON:
            return text
        hour = hour % _NOON + (_NOON if parts["half"].lower() == "p" else 0)
    clock = f"{hour:02}:{parts['minute'] or '00'}:{parts['second'] or '00'}{parts['fraction'] or ''}"
    return clock + _offset(parts["offset"] or "")


def _offset(text: str) -> str:
    if text[:1] not in ("+", "-"):
        return "Z" if text else ""
    digits = text[1:].replace(":", "").ljust(4, "0")
    return f"{text[0]}{digits[:2]}:{digits[2:]}"


def _date_time(text: str) -> str:
    day, between, clock = re.sub(r"(?<=\d)[tT](?=\d)", " ", text, count=1).partition(" ")
    return f"{_date(day)}T{_time(clock)}" if between else text


def _duration(text: str) -> str:
    # `1:30` can be hours and minutes or minutes and seconds; `90` has no unit.
    if _MINUTES_OR_MONTHS.search(text):
        return text
    lower = text.lower()
    clock = _CLOCK.fullmatch(lower)
    if clock:
        hours, minutes, seconds = Decimal(clock[2]), Decimal(clock[3]), Decimal(clock[4])
        return _written(int(clock[1] or 0), hours * 3_600 + minutes * 60 + seconds)
    if not _AMOUNTS.fullmatch(lower):
        return text
    amounts = [(Decimal(number), _SECONDS.get(unit, 0)) for number, unit in _AMOUNT.findall(lower)]
    if any(not unit for _, unit in amounts) or any(one <= next_one for (_, one), (_, next_one) in pairwise(amounts)):
        return text
    days = sum(int(number * unit) // _DAY for number, unit in amounts if unit >= _DAY)
    rest = sum((number * unit for number, unit in amounts), Decimal(0)) - days * _DAY
    return _written(days, rest)


def _written(days: int, seconds: Decimal) -> str:
    hours, rest = divmod(seconds, 3_600)
    minutes, rest = divmod(rest, 60)
    shown = f"{rest.normalize():f}" if rest else ""
    clock = "".join((f"{hours}H" if hours else "", f"{minutes}M" if minutes else "", f"{shown}S" if shown else ""))
    day = f"{days}D" if days else ""
    return f"P{day}T{clock}" if clock else f"P{day}" if day else "PT0S"


_CONVERSIONS: dict[str, Callable[[str], str]] = {
    "date": _date,
    "date-time": _date_time,
    "duration": _duration,
    "time": _time,
}
