"""History of calls and sessions: one SQLite database shared by all running Pegboard processes."""

from typing import TYPE_CHECKING

from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.history.history import History
    from pegboard.history.sessions import Sessions

__all__ = ["History", "Sessions"]

__getattr__, __dir__ = on_demand(__name__, {"History": "history", "Sessions": "sessions"})
