"""Exit codes of all commands."""

from __future__ import annotations

OK, TOOL_FAILED, USAGE, NOT_FOUND, PROVIDER, INTERRUPTED = 0, 1, 2, 3, 4, 130


def failure_code(error: Exception) -> int:
    """Return the exit code for an error: of a failure if a file can't be read or written, otherwise of wrong usage."""
    cause = error.__cause__
    return TOOL_FAILED if isinstance(cause, OSError) and not isinstance(cause, FileExistsError) else USAGE
