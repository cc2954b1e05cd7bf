"""Opening a file in the user's editor."""

from __future__ import annotations

import asyncio
import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard import storage
from pegboard.config.editor import editor_command
from pegboard.results.clean import clean_line
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
    if await asyncio.to_thread(os.path.exists, file):
        await _run_editor(app, file, line)
    else:
        message = clean_line(f"{file} can't be opened because it no longer exists.")
        app.notify(message, severity="error", markup=False)


async def open_or_create(app: App[object], file: str) -> None:
    """Open a file of the user's configuration; the editor creates it if it's missing.

    A new file is readable by its owner only.

    Args:
        app: The running app.
        file: Path of the file. Its folder may be missing too.
    """
    if await asyncio.to_thread(os.path.exists, file):
        await open_in_editor(app, file)
        return
    try:
        await asyncio.to_thread(storage.make_folder, Path(file).parent)
    except OSError as error:
        message = f"{file} was not opened because its folder can't be created: {error.strerror or error}."
        app.notify(clean_line(message), severity="error", markup=False)
        return
    await _run_editor(app, file, None)
    await asyncio.to_thread(storage.tighten, file)


async def _run_editor(app: App[object], file: str, line: int | None) -> None:
    from textual.app import SuspendNotSupported

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
        app.notify(clean_line(error_text), severity="error", markup=False)
