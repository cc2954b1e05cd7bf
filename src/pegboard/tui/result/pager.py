"""The user's pager."""

from __future__ import annotations

import asyncio
import os
import shlex
from pathlib import Path

from textual.app import App


def pager_command() -> list[str]:
    """Return the command of `$PAGER` and its arguments; `less` by default."""
    try:
        return shlex.split(os.environ.get("PAGER", "")) or ["less"]
    except ValueError:  # unbalanced quotes
        return ["less"]


async def open_in_pager(app: App[object], file: Path) -> None:
    """Suspend the app and run the pager until it exits. Calls and timers continue.

    Args:
        app: The running app.
        file: File with cleaned text, as the pager writes it to the terminal.

    Raises:
        OSError: The pager can't be started.
        textual.app.SuspendNotSupported: The terminal can't be handed over.
    """
    # Nothing may be painted over the pager while calls continue.
    with app.suspend(), app.batch_update():
        process = await asyncio.create_subprocess_exec(*pager_command(), str(file))
        await process.wait()
