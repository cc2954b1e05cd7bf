"""Checks: calls kept with the result that is expected of them, and the comparison of schemas.

Everything here is a client of `Runtime`: calls pass the gateway, with the source `check`.
"""

from pegboard.checks.file import CheckError, Checks
from pegboard.checks.model import Check, CheckReport, Expectations, FailedExpectation, StoredSnapshot

__all__ = ["Check", "CheckError", "CheckReport", "Checks", "Expectations", "FailedExpectation", "StoredSnapshot"]
