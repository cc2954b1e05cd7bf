"""Opening of images, audio and documents that results of MCP servers were saved to."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

from textual.app import App

from pegboard.results.clean import clean_line
from pegboard.tui.messages import Copy

_PASSIVE = frozenset({".gif", ".jpg", ".mp3", ".ogg", ".pdf", ".png", ".txt", ".wav", ".webm", ".webp"})
"""Suffixes of files that run nothing when they are opened. A server chose the content."""


async def open_file(app: App[None], folder: Path, file: str) -> None:
    """Open a saved file in the desktop's program for it, or copy its path.

    Args:
        app: The running app.
        folder: The folder of saved files; no other file is opened, because a result can name any.
        file: Absolute path of the file.
    """
    reason = await asyncio.to_thread(_why_not, folder, file)
    if not reason and not await asyncio.to_thread(_opened, file):
        reason = "No program for it was found."
    if reason:
        app.post_message(Copy(file))
        app.notify(f"{clean_line(file)} was not opened. {reason} Its path is copied.", severity="warning", markup=False)


def _why_not(folder: Path, file: str) -> str:
    path = Path(file)
    try:
        resolved = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):  # ValueError: a null character
        return "The file doesn't exist."
    if resolved.parent != folder.resolve():
        return "It is not a file that Pegboard saved."
    return "" if resolved.suffix in _PASSIVE else "Files of this type may run code."


def _opened(file: str) -> bool:
    name = "open" if sys.platform == "darwin" else "xdg-open"
    program = shutil.which(name)
    has_desktop = name == "open" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if program is None or not has_desktop:
        return False
    quiet = subprocess.DEVNULL
    subprocess.Popen([program, file], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)  # noqa: S603 - the system's own program
    return True
