"""Copying that also works over SSH and in tmux: with the terminal, the system clipboard or a file."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import TypeVar

from textual.app import App

from pegboard.results.sizes import size
from pegboard.storage import make_folder

AppResultT = TypeVar("AppResultT")

_SYSTEM_SECONDS = 3.0
# Bytes of base64 in one escape sequence: tmux and screen drop longer ones.
_MULTIPLEXER_LIMIT = 74_994
_TERMINAL_LIMIT = 1_000_000
_TERMINALS_WITHOUT_CLIPBOARD = {"linux", "dumb"}


async def copy(app: App[AppResultT], text: str, folder: Path) -> str:
    """Copy a text and show a toast that names the clipboard.

    The text is sent to the terminal (OSC 52) and to the system clipboard. If the system has none and the terminal is
    unlikely to support the text, it is also written to a file.

    Args:
        app: The running app.
        text: A text of any length.
        folder: Folder of the file; created when necessary.

    Returns:
        The text of the toast.
    """
    encoded = text.encode(errors="backslashreplace")
    text = encoded.decode()
    targets: list[str] = []
    App.copy_to_clipboard(app, text)
    if terminal_accepts(len(encoded), os.environ):
        targets.append("the terminal (OSC 52)")
    if await copy_by_system(text):
        targets.append("the system clipboard")
    if targets:
        return _notify(app, f"Copied {size(len(encoded))} to {' and '.join(targets)}.")
    try:
        file = await asyncio.to_thread(write_file, encoded, folder)
    except OSError as error:
        return _notify(
            app,
            f"{size(len(encoded))} was not copied: there is no clipboard, and {folder} is not writable: {error}",
            failed=True,
        )
    return _notify(app, f"No clipboard accepts {size(len(encoded))} here. The text is in {file}")


def terminal_accepts(count: int, environ: Mapping[str, str]) -> bool:
    """Return whether the terminal is expected to copy a text of some length in bytes, judging by the environment."""
    terminal = environ.get("TERM", "")
    if terminal in _TERMINALS_WITHOUT_CLIPBOARD or environ.get("TERM_PROGRAM") == "Apple_Terminal":
        return False
    multiplexed = "TMUX" in environ or "STY" in environ or terminal.startswith(("tmux", "screen"))
    return (count + 2) // 3 * 4 <= (_MULTIPLEXER_LIMIT if multiplexed else _TERMINAL_LIMIT)


async def copy_by_system(text: str) -> bool:
    """Copy a text to the system clipboard; return False if that fails."""
    import pyperclip

    loop = asyncio.get_running_loop()
    done: asyncio.Future[bool] = loop.create_future()

    def copy_now() -> None:
        is_copied = False
        try:
            pyperclip.copy(text)
            is_copied = True
        except (pyperclip.PyperclipException, OSError):
            pass
        finally:
            with suppress(RuntimeError):  # the app has ended
                loop.call_soon_threadsafe(_set, done, is_copied)

    # Some clipboard programs wait for a display that never responds. A thread of asyncio's pool would then delay the
    # end of the app, and leave less of the pool for everything else.
    Thread(target=copy_now, name="pegboard-clipboard", daemon=True).start()
    try:
        async with asyncio.timeout(_SYSTEM_SECONDS):
            return await done
    except TimeoutError:
        return False


def _set(future: asyncio.Future[bool], value: bool) -> None:
    if not future.done():
        future.set_result(value)


def write_file(encoded: bytes, folder: Path) -> Path:
    """Write a new file that only its owner can read, and return it."""
    make_folder(folder)
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=f"copied-{datetime.now():%Y%m%d-%H%M%S}-", suffix=".txt")
    with os.fdopen(descriptor, "wb") as out:
        out.write(encoded)
    return Path(name)


def _notify(app: App[AppResultT], message: str, *, failed: bool = False) -> str:
    app.notify(message, severity="error" if failed else "information", markup=False)
    return message
