"""The pipeline of every call: allow list → arguments → readiness → approval → cache → runner → record."""

from typing import TYPE_CHECKING

from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.gateway.gateway import Gateway
    from pegboard.gateway.rules import Rules, Verdict
    from pegboard.gateway.timeouts import Timeouts

__all__ = ["Gateway", "Rules", "Timeouts", "Verdict"]

_ON_DEMAND = {
    "Gateway": "gateway",
    "Rules": "rules",
    "Timeouts": "timeouts",
    "Verdict": "rules",
}
"""Name → module, imported on first use: listing tools needs only the rules."""

__getattr__, __dir__ = on_demand(__name__, _ON_DEMAND)
