"""The pipeline of every call: allow list → arguments → readiness → approval → cache → runner → record."""

from typing import TYPE_CHECKING

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


def __getattr__(name: str) -> object:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_DEMAND})
