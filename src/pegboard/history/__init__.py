"""History of calls and sessions: one SQLite database shared by all running Pegboard processes."""

from pegboard.history.history import History
from pegboard.history.sessions import Sessions

__all__ = ["History", "Sessions"]
