"""Failures worth repeating, and the pauses between attempts."""

from __future__ import annotations

import random
import re
from typing import Final

from pegboard.models import ToolResult, ToolSpec

_LOST: Final = frozenset({"timeout", "crashed", "out_of_memory", "worker_lost"})
"""Details of calls that ended without the tool's answer. Such a call may have had its effect."""
_PASSING: Final = frozenset({
    "429", "500", "502", "503", "504", "busy", "connection_error", "http_429", "http_502", "http_503", "http_504",
    "locked", "network_error", "no_connection", "overloaded", "rate_limited", "request_failed", "temporary",
    "too_many_requests", "unavailable",
})  # fmt: skip
"""Codes of `ToolFailed` for failures that pass."""
_PASSING_EXCEPTION: Final = re.compile(
    r"\s*([\w.]*\.)?(ConnectionError|Connection\w+Error|BrokenPipeError|Connect(ion)?(Error|Timeout)|ReadTimeout"
    r"|WriteTimeout|PoolTimeout|ReadError|WriteError|RemoteProtocolError|TimeoutError|TimeoutException|IncompleteRead"
    r"|TemporaryFailure|gaierror)\b"
)
_FIRST_SECONDS: Final = 0.5
_LONGEST_SECONDS: Final = 30.0


def can_repeat(spec: ToolSpec) -> bool:
    """Return whether a second call has no second effect: the tool is marked read-only or idempotent."""
    return bool(spec.hints.read_only or spec.hints.idempotent)


def is_worth_repeating(spec: ToolSpec, result: ToolResult) -> bool:
    """Return whether the same call may succeed later.

    That are failures of a connection, by the code or the exception that the tool failed with. Timeouts, crashes and
    lost workers count only for tools that are marked read-only or idempotent, since the call may have had its effect.
    """
    error = result.error
    if error is None or error.code != "execution_error":
        return False
    if error.detail in _LOST:
        return can_repeat(spec)
    return (error.detail or "").lower() in _PASSING or bool(_PASSING_EXCEPTION.match(error.message))


def pause(attempt: int) -> float:
    """Return the seconds to wait after a failed attempt: doubled each time, with jitter, at most 30 s."""
    longest = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2 ** (attempt - 1))
    return float(longest * random.uniform(0.5, 1.0))  # noqa: S311 - no secret depends on it
