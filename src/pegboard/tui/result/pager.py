"""A file in the user's pager."""

from __future__ import annotations

import asyncio
import os
import shlex
from pathlib import Path

from textual.app import App


def pager_command() -> list[str]:
    """Gives the user's pager, by `$PAGER`, as a command and its arguments; `less` where there is none."""
    try:
        return shlex.split(os.environ.get("PAGER", "")) or ["less"]
    except ValueError:  # a quote without its fellow
        return ["less"]


async def open_in_pager(app: App[object], file: Path) -> None:
    """Gives the terminal to the pager until it ends; calls and timers run on meanwhile.

    Args:
        app: The running app.
        file: Clean text: what is in it reaches the terminal by way of the pager.

    Raises:
        OSError: The pager can't be started.
        textual.app.SuspendNotSupported: There is no terminal to give.
    """
    # Nothing may be painted over the pager while calls go on.
    with app.suspend(), app.batch_update():
        process = await asyncio.create_subprocess_exec(*pager_command(), str(file))
        await process.wait()
