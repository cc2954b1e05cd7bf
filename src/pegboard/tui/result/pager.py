"""The user's pager."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.app import App

from pegboard.results.export import pager_command
from pegboard.tui.widgets.suspension import environment, suspended


async def open_in_pager(app: App[object], file: Path) -> None:
    """Suspend the app and run the pager until it exits. Calls and timers continue.

    Args:
        app: The running app.
        file: File with cleaned text, as the pager writes it to the terminal.

    Raises:
        OSError: The pager can't be started.
        textual.app.SuspendNotSupported: The terminal can't be handed over.
    """
    with suspended(app):
        process = await asyncio.create_subprocess_exec(*pager_command(), str(file), env=environment(app))
        await process.wait()
