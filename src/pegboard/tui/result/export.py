"""Saving a result and opening it in the pager, with a toast for the outcome."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import datetime
from pathlib import Path

from pydantic import JsonValue
from textual.app import SuspendNotSupported
from textual.widget import Widget

from pegboard.config.paths import expanded, working_directory
from pegboard.models import ToolCall, ToolResult
from pegboard.results.clean import clean
from pegboard.results.export import paged, paged_text, pager_command, save, suggested_name
from pegboard.results.sizes import size
from pegboard.results.stored.values import in_memory, size_in_file
from pegboard.results.text import as_text
from pegboard.storage import no_temporary_file
from pegboard.tui.commands import key_of
from pegboard.tui.result.image import ImageView, save_image
from pegboard.tui.result.pager import open_in_pager
from pegboard.tui.result.table import TableView
from pegboard.tui.widgets.clipboard import copy

NOTICE_SECONDS = 1.0
"""Time after which a toast says that a result is still being saved."""
_MOST_COPIED = 10_000_000
"""Size in bytes up to which a value in a file is copied."""


def suggested_path(call: ToolCall, result: ToolResult, view: object) -> str:
    """Return a path in the working directory for a result, or for the image that its view shows."""
    name = suggested_name(call, result, datetime.now().astimezone())
    if isinstance(view, ImageView):
        name = str(Path(name).with_suffix(view.image.suffix))
    return str(working_directory() / name)


async def save_result(widget: Widget, result: ToolResult, name: str, folder: Path, view: Widget | None = None) -> bool:
    """Save a complete result. Return whether that succeeded.

    Args:
        widget: Widget that shows the toast.
        result: The result.
        name: Path of the file, as the user typed it.
        folder: Folder of results, with the files of images.
        view: View of the result. Of a table, the rows and columns that are shown are saved; of images, the image,
            unless the suffix is that of another format.
    """
    table = view.table if isinstance(view, TableView) else None
    image = view.image if isinstance(view, ImageView) else None
    try:
        file = await asyncio.to_thread(expanded, name)
        if image is not None and file.suffix.lower() not in {".json", ".txt"}:
            written = await asyncio.to_thread(save_image, image, file, folder)
        else:
            saving = asyncio.ensure_future(asyncio.to_thread(save, result, file, table))
            _, unfinished = await asyncio.wait({saving}, timeout=NOTICE_SECONDS)
            if unfinished:
                widget.notify(clean(f"Saving to {file}…"), markup=False)
            written = await saving
    except (OSError, ValueError) as error:
        widget.notify(clean(f"The result was not saved: {error}"), severity="error", markup=False)
        return False
    widget.notify(clean(f"Saved {size(written)} to {file}"), markup=False)
    return True


async def copy_stored(widget: Widget, value: JsonValue, folder: Path) -> None:
    """Copy a value that is read from the file of a large result, unless it is too large for a clipboard.

    Args:
        widget: Widget that shows a toast.
        value: The value.
        folder: Folder for the text if no clipboard is available.
    """
    if (length := size_in_file(value)) > _MOST_COPIED:
        save = key_of(widget, "result.save")
        message = f"{size(length)} are too much to copy. Press {save} to save the complete result."
        widget.notify(message, severity="warning", markup=False)
        return
    text = await asyncio.to_thread(lambda: as_text(in_memory(value)))
    await copy(widget.app, text, folder)


async def page_result(widget: Widget, result: ToolResult, text: str | None) -> None:
    """Open a result in the pager.

    Args:
        widget: Widget that shows a toast if that fails.
        result: The result.
        text: Text to open instead of the result's data.
    """
    try:
        # A folder, which is deleted also if this is cancelled while a thread writes the file.
        folder = tempfile.TemporaryDirectory(prefix="pegboard-", ignore_cleanup_errors=True)
    except OSError as error:
        message = no_temporary_file("The pager was not opened", error)
        widget.notify(clean(message), severity="error", markup=False)
        return
    try:
        within = Path(folder.name)
        file = await asyncio.to_thread(paged, result, within) if text is None else paged_text(text, within)
        await open_in_pager(widget.app, file)
    except SuspendNotSupported:
        widget.notify("The pager can't be opened because this terminal does not support suspending.", severity="error")
    except (OSError, ValueError) as error:
        message = f"{pager_command()[0]} was not opened: {error}. Set PAGER to an installed pager."
        widget.notify(clean(message), severity="error", markup=False)
    finally:
        folder.cleanup()
