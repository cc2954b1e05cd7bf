"""State of the programs, libraries and secrets that tools require.

`Health` holds the report on all tools; `prober` checks requirements in threads. The checks themselves are in the SDK.
"""

from typing import TYPE_CHECKING

from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.health.health import Health

__all__ = ["Health"]

_ON_DEMAND = {
    "Health": "health",
}
"""Name → module, imported on first use."""

__getattr__, __dir__ = on_demand(__name__, _ON_DEMAND)
