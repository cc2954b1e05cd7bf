"""Registry of the tools of all sources, and allow lists that restrict their use."""

from typing import TYPE_CHECKING

from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.registry.allow import AllowList
    from pegboard.registry.registry import Registry

__all__ = ["AllowList", "Registry"]

_ON_DEMAND = {
    "AllowList": "allow",
    "Registry": "registry",
}
"""Name → module, imported on first use."""

__getattr__, __dir__ = on_demand(__name__, _ON_DEMAND)
