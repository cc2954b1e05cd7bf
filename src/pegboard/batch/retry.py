"""Failures worth repeating, and the pauses between attempts."""

from __future__ import annotations

import random
import re
from typing import Final

from pegboard.models import ToolResult, ToolSpec

_LOST: Final = frozenset({"timeout", "crashed", "out_of_memory", "worker_lost"})
"""Details of calls that ended without the tool's answer. Such a call may have had its effect."""
_PASSING: Final = frozenset({
    "429", "503", "busy", "connection_error", "http_429", "http_503", "locked", "network_error", "no_connection",
    "overloaded", "rate_limited", "temporary", "too_many_requests", "unavailable",
})  # fmt: skip
"""Codes of `ToolFailed` for failures that pass."""
_UNCERTAIN: Final = frozenset({"500", "502", "504", "http_502", "http_504", "request_failed"})
"""Such codes after which a server may have acted on the request."""
_UNCONNECTED_EXCEPTION: Final = re.compile(
    r"\s*([\w.]*\.)?(ConnectionRefusedError|Connect(Error|Timeout)|ConnectionTimeout|PoolTimeout|TemporaryFailure|gaierror"
    r"|ConnectionError\b.*(NewConnectionError|NameResolutionError|refused))\b",
    re.DOTALL,
)
"""Exceptions before a connection was made. Those of the name `ConnectionError` have further causes in `requests`."""
_UNCERTAIN_EXCEPTION: Final = re.compile(
    r"\s*([\w.]*\.)?(ConnectionError|Connection\w+Error|BrokenPipeError|ReadTimeout|WriteTimeout|ReadError|WriteError"
    r"|RemoteProtocolError|TimeoutError|TimeoutException|IncompleteRead)\b"
)
"""Exceptions after which a request may have been sent."""
_FIRST_SECONDS: Final = 0.5
_LONGEST_SECONDS: Final = 30.0


def can_repeat(spec: ToolSpec) -> bool:
    """Return whether a second call has no second effect: the tool is marked read-only or idempotent."""
    return bool(spec.hints.read_only or spec.hints.idempotent)


def is_worth_repeating(spec: ToolSpec, result: ToolResult) -> bool:
    """Return whether the same call may succeed later.

    That are failures of a connection, by the code or the exception that the tool failed with. After a timeout, a lost
    connection, a crash or a lost worker, the call may have had its effect: these count only for tools that are marked
    read-only or idempotent.
    """
    error = result.error
    if error is None or error.code != "execution_error":
        return False
    code = (error.detail or "").lower()
    if code in _PASSING or _UNCONNECTED_EXCEPTION.match(error.message):
        return True
    is_passing = error.detail in _LOST or code in _UNCERTAIN or bool(_UNCERTAIN_EXCEPTION.match(error.message))
    return is_passing and can_repeat(spec)


def pause(attempt: int) -> float:
    """Return the seconds to wait after a failed attempt: doubled each time, with jitter, at most 30 s."""
    longest = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2 ** (attempt - 1))
    return float(longest * random.uniform(0.5, 1.0))  # noqa: S311 - no secret depends on it
