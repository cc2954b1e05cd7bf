"""Changes of other clients' files: atomic, after a backup, and only while the client doesn't write the file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from pegboard import storage
from pegboard.config.client_formats import BOM, ClientFormatError, is_toml, parsed
from pegboard.config.files import shown
from pegboard.data.mask import MASK
from pegboard.errors import PegboardError
from pegboard.watch.client_json import JsonText
from pegboard.watch.client_text import ClientText

_ATTEMPTS: Final = 5


class AdoptionError(PegboardError):
    """A file can't be changed; the message says why."""


@dataclass(frozen=True)
class EntryChange:
    """Change of one entry."""

    server: str
    """Its name in the file."""
    path: tuple[str, ...]
    """The names that lead to it."""
    action: Literal["adopted", "restored", "skipped"]
    reason: str = ""
    """Why it is skipped."""
    before: str = ""
    """The text of the entry."""
    after: str = ""
    note: str = ""
    """Why it may not work behind `pegboard watch`."""


@dataclass(frozen=True)
class AdoptedFile:
    """The change of one file."""

    file: Path
    before: str
    after: str
    entries: tuple[EntryChange, ...]
    backup: Path | None = None
    """Copy of the file as it was; None if it wasn't written."""

    def diff(self) -> str:
        """Return the change as a unified diff, with secrets masked."""
        from difflib import unified_diff

        before, after = (masked(self.file.name, text).splitlines() for text in (self.before, self.after))
        return "\n".join(unified_diff(before, after, str(self.file), str(self.file), lineterm="", n=1))


class ChangedFiles:
    """Changes of files.

    Args:
        backups: Folder of the backups.
    """

    def __init__(self, backups: Path) -> None:
        self._backups = backups

    def apply(
        self,
        plan: Callable[[], AdoptedFile],
        on_write: Callable[[AdoptedFile], None] | None = None,
        on_written: Callable[[AdoptedFile], None] | None = None,
    ) -> AdoptedFile:
        """Change a file, and return the change with its backup. A missing file is empty, and an empty one is removed.

        Args:
            plan: Returns the change of the file as it is now; called again, as another program may write it meanwhile.
            on_write: Called with the change before the file is written.
            on_written: Called with the change afterwards. No other Pegboard process changes files meanwhile.

        Raises:
            AdoptionError: The file can't be changed.
        """
        change = plan()
        if change.after == change.before:
            return change
        try:
            with storage.locked(self._backups / change.file.name):
                return self._apply(plan, on_write, on_written)
        except OSError as error:
            raise AdoptionError(f"{shown(change.file)} was not changed: {error.strerror or error}.") from error

    def _apply(
        self,
        plan: Callable[[], AdoptedFile],
        on_write: Callable[[AdoptedFile], None] | None,
        on_written: Callable[[AdoptedFile], None] | None,
    ) -> AdoptedFile:
        for _ in range(_ATTEMPTS):
            change = plan()
            if change.after == change.before:
                return change
            file = change.file
            try:
                backup = self._back_up(change)
                if on_write is not None:
                    on_write(change)
                target = file.resolve()
                storage.make_folder(target.parent)
                with storage.rewriting(target) as out:
                    out.write(change.after.encode("utf-8", "surrogateescape"))
                    out.flush()
                    if (read(file) if file.exists() else "") != change.before:  # Begin again with the client's version.
                        raise _ChangedError  # noqa: TRY301 - it removes the draft
                if not change.after:
                    target.unlink()
            except _ChangedError:
                continue
            if on_written is not None:
                on_written(change)
            return replace(change, backup=backup if change.before else None)
        name = shown(plan().file)
        raise AdoptionError(f"{name} was not changed because another program keeps writing it. Close it first.")

    def _back_up(self, change: AdoptedFile) -> Path:
        storage.make_folder(self._backups)
        storage.tighten(self._backups)
        backup = self._backups / f"{change.file.name}.{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}.backup"
        storage.write(backup, change.before.encode("utf-8", "surrogateescape"))
        return backup


class _ChangedError(Exception):
    """The file changed while it was being replaced."""


def masked(name: str, text: str) -> str:
    """Return a client's file for display, with secrets masked.

    Args:
        name: Name of the file.
        text: Its text.
    """
    if not text or name.endswith(".js"):
        return text  # a plugin of Pegboard's, which has no secrets
    try:
        return client_text(name, text.removeprefix(BOM)).masked()
    except ClientFormatError:
        return MASK


def client_text(name: str, body: str) -> ClientText:
    """Return the text of a file in the format that its name indicates.

    Args:
        name: Name of the file.
        body: Its text, without a byte order mark.

    Raises:
        ClientFormatError: The text doesn't have this format.
    """
    if is_toml(name):
        from pegboard.watch.client_toml import TomlText

        return TomlText(body, parsed(name, body))
    return JsonText(body)


def read(file: Path) -> str:
    """Return the text of a file; bytes that aren't UTF-8 are surrogates.

    Raises:
        AdoptionError: It can't be read.
    """
    try:
        return file.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise AdoptionError(f"{shown(file)} can't be read: {error.strerror or error}.") from error
