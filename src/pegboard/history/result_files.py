"""Results that are too large for the database, each in a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pegboard import storage
from pegboard.history.cleanup import call_of
from pegboard.models import ToolCall, ToolResult
from pegboard.models.call import file_stem

if TYPE_CHECKING:
    from pegboard.history.rows import StoredCall

INLINE_LIMIT: Final = 64_000
"""Maximum size of a result in the database, in bytes of JSON. Larger results get a file."""
EXCERPT: Final = 8_000
"""Characters at the start of such a result that full-text search covers."""


class RemovedCall(NamedTuple):
    """A call that was removed from the database, and the name of the file with its result."""

    id: str
    file: str | None


class ResultFiles:
    """The folder of large results, and of images and other files in results.

    Args:
        folder: It is created when the first result is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        """Return the path of a result file, confined to the folder whatever the database contains."""
        return self.folder / Path(name).name

    def delete(self, calls: Collection[RemovedCall]) -> None:
        """Delete the files of calls, as far as they exist and can be deleted."""
        if not calls:
            return
        stems = {file_stem(call.id) for call in calls}
        names = [call.file for call in calls if call.file]
        with suppress(OSError):
            names += [file.name for file in self.folder.iterdir() if call_of(file.name) in stems]
        for name in names:
            with suppress(OSError, ValueError):
                self.path(name).unlink()

    def row(
        self,
        call: ToolCall,
        result: ToolResult,
        at: datetime,
        failed: Callable[[OSError], object],
        *,
        has_files: bool,
    ) -> StoredCall:
        """Return the row of a finished call, after writing a large result to a file.

        Args:
            call: The call.
            result: Its result.
            at: When it was requested.
            failed: Called if the file can't be written; the row then contains the result.
            has_files: Whether the history stores files; one in memory doesn't.
        """
        from pegboard.history.rows import json_of, row_of

        data = json_of(result.data)
        make = partial(row_of, call, result, at, media=self._size_of_media(call, data) if has_files else 0)
        truncated = result.meta.truncated
        if truncated is not None:
            # The complete result is already on disk; keep the excerpt that the caller received.
            whole = Path(truncated.file)
            file = whole.name if whole.parent == self.folder else None
            return make(data, file, truncated.total_bytes if file else 0)
        if len(data) <= INLINE_LIMIT or not has_files:
            return make(data, None, 0)
        name = f"{file_stem(call.id)}.json"
        content = data.encode()
        try:
            storage.make_folder(self.folder)
            storage.write(self.folder / name, content)
        except OSError as error:
            failed(error)
            return make(data, None, 0)
        row = make(None, name, len(content))
        return replace(row, excerpt=data[:EXCERPT], bytes=row.bytes + EXCERPT)

    def _size_of_media(self, call: ToolCall, data: str) -> int:
        """Return the size of the files of a call that its result names."""
        size, stem = 0, file_stem(call.id)
        # Compiling a pattern takes longer than the rest of most records.
        names = re.findall(rf"{stem}-[0-9]{{1,6}}\.[a-z0-9]{{1,5}}", data) if f"{stem}-" in data else []
        for name in {*names}:
            with suppress(OSError):
                size += self.path(name).lstat().st_size
        return size
