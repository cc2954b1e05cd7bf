"""The entry point of the core: `Runtime` builds everything and offers every operation."""

from pegboard.runtime.runtime import Runtime
from pegboard.runtime.tools import ToolDetails

__all__ = ["Runtime", "ToolDetails"]
