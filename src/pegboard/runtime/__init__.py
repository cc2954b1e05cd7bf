"""The entry point of the core: `Runtime` builds everything and offers every operation."""

from typing import TYPE_CHECKING

from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.runtime.details import ToolDetails
    from pegboard.runtime.runtime import Runtime

__all__ = ["Runtime", "ToolDetails"]

__getattr__, __dir__ = on_demand(__name__, {"Runtime": "runtime", "ToolDetails": "details"})
