"""Show where tools run."""

from pathlib import Path

from pegboard.sdk import ToolFailed, hints


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, cache_seconds=60)
def pwd() -> str:
    """Return the working directory.

    Returns:
        Its absolute path.
    """
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        raise ToolFailed("The working directory no longer exists.", code="not_found") from None
