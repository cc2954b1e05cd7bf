"""Read the clock."""

from datetime import UTC, datetime, timedelta
from typing import TypedDict

from pegboard.sdk import hints

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Now(TypedDict):
    """A point in time in two formats."""

    timestamp: int
    """Milliseconds since 1970-01-01 00:00 UTC."""
    iso: str
    """ISO 8601, UTC."""


@hints(read_only=True, destructive=False, open_world=False)
def now() -> Now:
    """Return the current time.

    Returns:
        The time of the call, to the millisecond.
    """
    moment = datetime.now(UTC)
    return {
        "timestamp": (moment - _EPOCH) // timedelta(milliseconds=1),
        "iso": moment.isoformat(timespec="milliseconds"),
    }
