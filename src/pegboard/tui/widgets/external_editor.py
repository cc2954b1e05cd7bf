"""Opening a file in the user's editor."""

from __future__ import annotations

import asyncio
import os
from contextlib import nullcontext
from typing import TYPE_CHECKING

from pegboard.config.editor import editor_command
from pegboard.tui.state.app_state import AppState
from pegboard.tui.widgets.suspension import environment, suspended

if TYPE_CHECKING:
    from textual.app import App


async def open_in_editor(app: App[object], file: str, line: int | None = None) -> None:
    """Suspend the app and run the editor; show a toast if it fails.

    Args:
        app: The running app.
        file: Path of the file.
        line: Line to open, from 1, or None.
    """
    from textual.app import SuspendNotSupported

    if not await asyncio.to_thread(os.path.exists, file):
        app.notify(f"{file} can't be opened because it no longer exists.", severity="error", markup=False)
        return
    command = editor_command(file, line, os.environ)
    error_text = ""
    try:
        # A change of a tool must not replace a form that is edited.
        held = app.hold_scans() if isinstance(app, AppState) else nullcontext()
        with held, suspended(app):
            try:
                process = await asyncio.create_subprocess_exec(*command, env=environment(app))
                code = await process.wait()
                error_text = f"{command[0]} exited with code {code}." if code else ""
            except OSError as error:
                error_text = (
                    f"{command[0]} could not be started: {error.strerror}. Set $VISUAL or $EDITOR to your editor."
                )
    except SuspendNotSupported:
        error_text = f"This terminal can't run an editor from here. Open {file} yourself."
    if error_text:
        app.notify(error_text, severity="error", markup=False)
