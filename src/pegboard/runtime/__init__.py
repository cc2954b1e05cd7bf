"""The one page to read: `Runtime` builds everything and offers the verbs. The screen and the command line use it."""

from pegboard.runtime.runtime import Runtime
from pegboard.runtime.tools import ToolDetails

__all__ = ["Runtime", "ToolDetails"]
