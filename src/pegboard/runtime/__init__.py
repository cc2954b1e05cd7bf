"""The entry point of the core: `Runtime` builds everything and offers every operation."""

from typing import TYPE_CHECKING

from pegboard.runtime.runtime import Runtime

if TYPE_CHECKING:
    from pegboard.runtime.details import ToolDetails

__all__ = ["Runtime", "ToolDetails"]


def __getattr__(name: str) -> object:
    if name != "ToolDetails":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pegboard.runtime.details import ToolDetails

    return ToolDetails
