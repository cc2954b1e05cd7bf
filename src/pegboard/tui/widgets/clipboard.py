"""Copying that works over SSH and in tmux: by the terminal, by the system, or into a file."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from textual.app import App

from pegboard.results.sizes import size
from pegboard.storage import make_folder

Answer = TypeVar("Answer")
"""What an app gives back at its end."""

_SYSTEM_SECONDS = 3.0
# Of base64 in one sequence: tmux and screen drop longer ones.
_MULTIPLEXER_LIMIT = 74_994
_TERMINAL_LIMIT = 1_000_000
_DEAF_TERMINALS = {"linux", "dumb"}


async def copy(app: App[Answer], text: str, folder: Path) -> str:
    """Copies `text` and tells the user by a notification which way it went.

    It is always offered to the terminal (OSC 52), then to the system's clipboard. If the system has none and the
    terminal can't be relied on for it, it is written to a file too.

    Args:
        app: The running app.
        text: What to copy, any length.
        folder: Where the file is made if it comes to that; it is created if need be.

    Returns:
        The sentence that the user was shown.
    """
    encoded = text.encode(errors="backslashreplace")
    text = encoded.decode()
    ways: list[str] = []
    app.copy_to_clipboard(text)
    trusted = terminal_takes(len(encoded), os.environ)
    if trusted:
        ways.append("the terminal (OSC 52)")
    if await _copy_by_system(text):
        ways.append("the system clipboard")
    if ways:
        return _tell(app, f"Copied {size(len(encoded))} to {' and '.join(ways)}.")
    try:
        file = await asyncio.to_thread(write_file, encoded, folder)
    except OSError as error:
        return _tell(
            app, f"Could not copy {size(len(encoded))}: no clipboard, and no file in {folder}: {error}", failed=True
        )
    return _tell(app, f"No clipboard takes {size(len(encoded))} here; wrote {file}")


def terminal_takes(count: int, environ: Mapping[str, str]) -> bool:
    """Says whether the terminal can be relied on to copy `count` bytes, going by what `environ` tells of it."""
    terminal = environ.get("TERM", "")
    if terminal in _DEAF_TERMINALS or environ.get("TERM_PROGRAM") == "Apple_Terminal":
        return False
    multiplexed = "TMUX" in environ or "STY" in environ or terminal.startswith(("tmux", "screen"))
    return (count + 2) // 3 * 4 <= (_MULTIPLEXER_LIMIT if multiplexed else _TERMINAL_LIMIT)


async def _copy_by_system(text: str) -> bool:
    import pyperclip

    try:
        # Some of the programs that it calls wait for a display that never answers.
        await asyncio.wait_for(asyncio.to_thread(pyperclip.copy, text), _SYSTEM_SECONDS)
    except (pyperclip.PyperclipException, OSError, TimeoutError):
        return False
    return True


def write_file(encoded: bytes, folder: Path) -> Path:
    """Write a new file that only its owner can read, and return it."""
    make_folder(folder)
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=f"copied-{datetime.now():%Y%m%d-%H%M%S}-", suffix=".txt")
    with os.fdopen(descriptor, "wb") as out:
        out.write(encoded)
    return Path(name)


def _tell(app: App[Answer], message: str, *, failed: bool = False) -> str:
    app.notify(message, severity="error" if failed else "information", markup=False)
    return message
