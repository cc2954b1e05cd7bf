"""The record of every call and every session, in SQLite, shared by all running Pegboards."""

from pegboard.history.history import History
from pegboard.history.sessions import Sessions

__all__ = ["History", "Sessions"]
