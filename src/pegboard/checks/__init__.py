"""Checks: calls kept with the result that is expected of them, and the comparison of schemas.

Everything here is a client of `Runtime`: calls pass the gateway, with the source `check`.
"""

from typing import TYPE_CHECKING

from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.checks.file import CheckError, Checks
    from pegboard.checks.model import Check, CheckReport, FailedExpectation

__all__ = ["Check", "CheckError", "CheckReport", "Checks", "FailedExpectation"]

_ON_DEMAND = {
    "Check": "model",
    "CheckError": "file",
    "CheckReport": "model",
    "Checks": "file",
    "FailedExpectation": "model",
}
"""Name → module, imported on first use: an idle app needs none of them."""

__getattr__, __dir__ = on_demand(__name__, _ON_DEMAND)
