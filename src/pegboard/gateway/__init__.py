"""The pipeline of every call: allow list → arguments → readiness → approval → cache → runner → record."""

from pegboard.gateway.gateway import Gateway
from pegboard.gateway.rules import Rules, Verdict
from pegboard.gateway.timeouts import Timeouts

__all__ = ["Gateway", "Rules", "Timeouts", "Verdict"]
