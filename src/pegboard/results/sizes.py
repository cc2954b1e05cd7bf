"""Sizes, durations, times and counts for display."""

from __future__ import annotations

from datetime import datetime

_UNITS = ("kB", "MB", "GB", "TB")
_CHARACTERS_PER_TOKEN = 4
_EXACT = 1e15
"""Number from which the last digits of a float may be wrong."""


def size(count: int) -> str:
    """Return a number of bytes as `340 B`, `1.2 kB` or `60 MB`, in powers of 1,000."""
    if count < 1000:
        return f"{count} B"
    value, units = count / 1000, iter(_UNITS)
    unit = next(units)
    while value >= 999.5 and (larger := next(units, None)):
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:,.0f} {unit}"


def duration(milliseconds: float) -> str:
    """Return a duration as `<0.1 ms`, `0.4 ms`, `340 ms`, `1.2 s`, `2 min 5 s` or `1 h 3 min`."""
    if 0 < milliseconds < 0.05:
        return "<0.1 ms"
    if milliseconds < 9.95:
        return f"{milliseconds:.1f} ms"
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def count(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 line`, `12,345 lines`.

    Args:
        number: The number.
        one: Noun in the singular.
        many: Noun in the plural, if it is not formed with an "s".
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def amount(number: float) -> str:
    """Return a number in any unit with separators and up to six digits, or as many as its integer part has."""
    return f"{number:,.0f}" if 999_999 <= abs(number) < _EXACT else f"{number:,g}"


def share(done: float, total: float | None) -> str:
    """Return how much of a total is done: `3 of 10`; `3` without a total above zero."""
    return f"{amount(done)} of {amount(total)}" if total is not None and total > 0 else amount(done)


def thousands(number: int) -> str:
    """Return a short number: `340`, `5.7k`, `1,200.0k`."""
    return f"{number:,}" if number < 1_000 else f"{number / 1_000:,.1f}k"


def tokens(length: int) -> int:
    """Return an estimate of the tokens that a model reads for a text.

    Args:
        length: Length of the text in characters or, for JSON, bytes.
    """
    return max(bool(length), round(length / _CHARACTERS_PER_TOKEN))


def local_time(at: datetime) -> str:
    """Return a time in the local time zone as `2026-07-14 09:30:00`."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def short_time(at: datetime) -> str:
    """Return a local time of today as `09:30:00`, one of this year as `07-14 09:30`, else the date `2025-07-14`."""
    local, now = at.astimezone(), datetime.now().astimezone()
    if local.date() == now.date():
        return f"{local:%H:%M:%S}"
    return f"{local:%m-%d %H:%M}" if local.year == now.year else f"{local:%Y-%m-%d}"


def age(now: datetime, then: datetime) -> str:
    """Return the time since `then` as `now`, `5 min`, `3 h` or `2 d`, or as a date after a month."""
    minutes = int((now - then).total_seconds() // 60)
    if minutes < 1:
        return "now"
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    if hours < 24:
        return f"{hours} h"
    return f"{hours // 24} d" if hours < 24 * 31 else f"{then.astimezone():%Y-%m-%d}"
