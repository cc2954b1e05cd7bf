"""Calls and conversations that could not be recorded, as one problem with reason and remedy."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Final

from pegboard.errors import StoreError
from pegboard.models import Problem

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN: Final = {errno.EACCES, errno.EPERM, errno.EROFS}


@dataclass
class Losses:
    """Unrecorded calls and conversations of one history.

    Args:
        file: Path of the database.
    """

    file: str
    calls: int = 0
    """Number of calls dropped, or kept only in memory."""
    conversation: bool = False
    """Whether part of a conversation is kept only in memory."""
    wanted: str = ""
    """The failed operation: `kept` or `written`."""
    why: Exception | None = None

    def recover(self) -> bool:
        """Note that writing works again; return whether it failed before. Dropped calls stay lost."""
        failed, self.why = self.why is not None, self.why if self.calls or self.conversation else None
        return failed

    def problem(self, waiting: int) -> Problem | None:
        """Return the problem to report, or None if nothing is lost.

        Args:
            waiting: Number of calls in the queue.
        """
        if self.why is None:
            return None
        reason = str(getattr(self.why, "strerror", None) or self.why).rstrip(".")
        message = f"The history can't be {self.wanted}: {reason}. {self._what(waiting)} not recorded."
        return Problem(message=message, fix=self._remedy(reason), file=self.file)

    def _what(self, waiting: int) -> str:
        count = self.calls + waiting
        calls = "1 call" if count == 1 else f"{count:,} calls"
        if self.conversation:
            return f"The conversation and {calls} are" if count else "The conversation is"
        return f"{calls} {'is' if count == 1 else 'are'}" if count else "Calls are"

    def _remedy(self, reason: str) -> str:
        number = getattr(self.why, "errno", None)
        if number in _FULL or "full" in reason:
            return "Free space on the disk."
        if "disk I/O" in reason:  # SQLite says this on a full disk, too, if it can't create its other files
            return "Check that the disk has free space and that its folder is writable."
        if number in _FORBIDDEN or "readonly" in reason:
            return "Make its folder writable, or set PEGBOARD_STATE_DIR to another folder."
        if isinstance(self.why, StoreError) and ("locked" in reason or "another process" in reason):
            return "End the process that uses it, then try again."
        if self.wanted == "kept complete":
            return "Report this as a bug of the tool."
        return "Make sure that it is a file in a writable folder, or set PEGBOARD_STATE_DIR to another folder."
