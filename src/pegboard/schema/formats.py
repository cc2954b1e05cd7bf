"""Checks for the values of `format`, with descriptions for error messages."""

from __future__ import annotations

import ipaddress
import re
from calendar import month_name, monthrange
from collections.abc import Callable
from datetime import date, time
from uuid import UUID

from pegboard.schema.patterns import is_javascript

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(r"(\d{2}:\d{2}):(\d{2})(\.\d+)?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?", re.ASCII | re.IGNORECASE)
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\s<>\"{}|\\^`]+")
_MONTHS = 12
_HOST_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")
_DURATION = re.compile(
    r"P(?:\d+W|(?=\d|T\d)(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?)", re.ASCII
)


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    # Without an offset, it is a local time. RFC 3339 has none, but Python's type for a time has the same format in a
    # schema, and servers and packs accept and return both.
    parts = _TIME.fullmatch(text)
    if not parts:
        return False
    minutes, seconds, _, offset = parts.groups()
    second = "59" if seconds == "60" else seconds  # leap seconds are valid, but not supported by Python
    try:
        time.fromisoformat(f"{minutes}:{second}{(offset or '').upper().replace('Z', '+00:00')}")
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    return text[10:11] in {"T", "t", " "} and _is_date(text[:10]) and _is_time(text[11:])


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def _is_hostname(text: str) -> bool:
    return len(text) <= 253 and all(_HOST_LABEL.fullmatch(label) for label in text.split("."))


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def impossible_date(name: str, text: str) -> str:
    """Return why a well-formed date does not exist; empty for everything else.

    Args:
        name: The format: `date` or `date-time`.
        text: The value.
    """
    if name not in {"date", "date-time"} or not _DATE.fullmatch(text[:10]) or _is_date(text[:10]):
        return ""
    year, month, day = map(int, text[:10].split("-"))
    if not year:
        return "years start at 0001"
    if not 1 <= month <= _MONTHS:
        return f"months are 01 to 12, not {month:02}"
    return f"{month_name[month]} {year:04} has the days 1 to {monthrange(year, month)[1]}, not {day}"


FORMATS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "date": ("a date like 2024-05-31", _is_date),
    "date-time": ("a date and time like 2024-05-31T08:30:00Z", _is_date_time),
    "time": ("a time like 08:30:00Z", _is_time),
    "duration": ("a duration like PT1H30M", _matches(_DURATION)),
    "email": ("an email address", _matches(_EMAIL)),
    "idn-email": ("an email address", _matches(_EMAIL)),
    "hostname": ("a host name", _is_hostname),
    "ipv4": ("an IPv4 address like 192.0.2.1", _is_ipv4),
    "ipv6": ("an IPv6 address like 2001:db8::1", _is_ipv6),
    "regex": ("a regular expression", is_javascript),
    "uri": ("a URI like https://example.org/", _matches(_URI)),
    "uuid": ("a UUID like 123e4567-e89b-12d3-a456-426614174000", _is_uuid),
}
"""Format → description with its article, and check. Other formats are not checked."""
