"""Trusted folders, whose `pegboard.toml` and `.env` take effect.

The author of a cloned folder is not the user. Trust is recorded with the folder's resolved path and the SHA-256 of
both files, so that any change requires a new review. The hashed bytes are the parsed bytes: both come from one
`FolderFiles`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self
from urllib.parse import unquote_to_bytes

from pydantic import BaseModel, ConfigDict, ValidationError

from pegboard import storage
from pegboard.config.files import read_bytes, shown, write_private
from pegboard.config.paths import OVERLAY, absolute
from pegboard.errors import PegboardError
from pegboard.models import Problem

if TYPE_CHECKING:
    from pegboard.config.paths import Paths
    from pegboard.config.settings import TrustState

DOTENV: Final = ".env"
"""The file of secrets, in the working directory and beside the user's configuration."""

CHECKS: Final = "checks"
"""The folder of checks in the working directory and in the data folder."""

REVIEW: Final = "Run `pegboard trust` to review the folder and trust it."
"""How to trust a folder, for problems."""

_UNREADABLE: Final = "unreadable"


class TrustRecord(BaseModel):
    """One trusted folder: the hashes of its files, None for a file that didn't exist."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    config: str | None
    dotenv: str | None
    restricts: bool
    """Whether the folder limits tools. Then no tool runs there while a file differs from its trusted version."""

    @property
    def is_empty(self) -> bool:
        """Whether the folder had none of the files when it was trusted, only checks."""
        return self.config is None and self.dotenv is None


class _Records(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    version: Literal[1] = 1
    folders: dict[str, TrustRecord] = {}


@dataclass(frozen=True)
class FolderFiles:
    """The files of a folder that need trust, read once.

    A file that is the user's own, because `PEGBOARD_CONFIG` selects it or because it is beside the selected file,
    needs no trust and counts as missing.
    """

    folder: Path
    """Resolved."""
    config: bytes | Problem | None
    dotenv: bytes | Problem | None
    config_is_own: bool = False
    """Whether `pegboard.toml` is the configuration file that the user selected."""

    @classmethod
    def read(cls, folder: Path | None, paths: Paths) -> Self:
        """Read the files.

        Args:
            folder: The working directory if None.
            paths: The user's own files.
        """
        overlay, dotenv = absolute(OVERLAY, folder), absolute(DOTENV, folder)
        config_is_own = _is_same(overlay, paths.config_file)
        dotenv_is_own = _is_same(dotenv, paths.config_file.parent / DOTENV)
        return cls(
            Path(os.path.realpath(overlay.parent)),
            None if config_is_own else read_bytes(overlay),
            None if dotenv_is_own else read_bytes(dotenv),
            config_is_own,
        )

    @property
    def config_file(self) -> Path:
        """The path of `pegboard.toml`."""
        return self.folder / OVERLAY

    @property
    def dotenv_file(self) -> Path:
        """The path of `.env`."""
        return self.folder / DOTENV

    @property
    def exist(self) -> bool:
        """Whether any file needs trust."""
        return self.config is not None or self.dotenv is not None

    @property
    def has_checks(self) -> bool:
        """Whether the folder has checks, which run only if it is trusted; read the disk."""
        try:
            with os.scandir(self.folder / CHECKS) as entries:
                return any(entry.name.endswith(".toml") for entry in entries)
        except OSError:
            return False

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Why files can't be read."""
        return tuple(file for file in (self.config, self.dotenv) if isinstance(file, Problem))

    def record(self, *, restricts: bool) -> TrustRecord:
        """Return the record that trusts exactly these bytes."""
        return TrustRecord(config=_hash(self.config), dotenv=_hash(self.dotenv), restricts=restricts)


@dataclass(frozen=True)
class Trust:
    """Trust of one folder, as recorded."""

    state: TrustState
    restricts: bool = False
    """Whether the trusted version limited tools."""
    problem: Problem | None = None
    """Why the record can't be read. Then nothing is trusted."""


class TrustError(PegboardError):
    """The trust of a folder can't be recorded; the message says why."""


class TrustFile:
    """The record of trusted folders, a private JSON file that is replaced atomically.

    Args:
        file: Its path; it needn't exist.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def of(self, files: FolderFiles) -> Trust:
        """Return whether the folder is trusted with exactly these files; read the disk only if that matters."""
        records = self.read()
        if isinstance(records, Problem):
            return Trust("untrusted", problem=records) if files.exist else Trust("nothing")
        record = records.get(files.folder)
        if record is None:
            return Trust("untrusted" if files.exist else "nothing")
        if (files.exist or record.is_empty) and files.record(restricts=record.restricts) == record:
            return Trust("trusted", record.restricts)
        return Trust("changed" if files.exist or not files.config_is_own else "nothing", record.restricts)

    def read(self) -> Mapping[Path, TrustRecord] | Problem:
        """Return the records by resolved folder, or why they can't be read."""
        raw = read_bytes(self._file, private=True)
        if isinstance(raw, Problem):
            return raw.model_copy(update={"fix": _not_trusted(self._file)})
        if raw is None:
            return {}
        try:
            folders = _Records.model_validate_json(raw).folders
        except ValidationError:
            message = "The record of trusted folders is damaged."
            return Problem(message=message, fix=_not_trusted(self._file), file=shown(self._file))
        return {_folder(name): record for name, record in folders.items()}

    def add(self, files: FolderFiles, *, restricts: bool) -> None:
        """Trust a folder with exactly the bytes that were read.

        Args:
            files: The files that the user reviewed.
            restricts: Whether the folder limits tools.

        Raises:
            TrustError: A file can't be read, or the record can't be written.
        """
        if files.problems:
            raise TrustError(f"{files.folder} was not trusted because a file can't be read. {files.problems[0]}")
        if not (files.exist or files.has_checks):
            raise TrustError(f"{files.folder} was not trusted because it contains no {OVERLAY}, {DOTENV} or check.")
        with self._locked_records() as records:
            records[files.folder] = files.record(restricts=restricts)

    def remove(self, folder: Path) -> bool:
        """Forget a folder; return whether it was trusted.

        Raises:
            TrustError: The record can't be written.
        """
        with self._locked_records() as records:
            return records.pop(Path(os.path.realpath(folder)), None) is not None

    @contextmanager
    def _locked_records(self) -> Iterator[dict[Path, TrustRecord]]:
        """Yield the records to change and then write them; lock out other processes meanwhile."""
        try:
            with storage.locked(self._file):
                known = self.read()
                if isinstance(known, Problem):
                    self._file.replace(self._file.with_name(f"{self._file.name}.damaged"))
                    known = {}
                records = dict(known)
                yield records
                if records != known:
                    folders = {folder.as_uri(): record for folder, record in records.items()}
                    write_private(self._file, _Records(folders=folders).model_dump_json(indent=2).encode())
        except OSError as error:
            message = f"{shown(self._file)} can't be written: {error.strerror or error}."
            raise TrustError(f"The trusted folders were not changed. {message}") from error


def _hash(content: bytes | Problem | None) -> str | None:
    if content is None:
        return None
    if isinstance(content, Problem):
        return _UNREADABLE
    from hashlib import sha256  # only folders with such files need it

    return sha256(content).hexdigest()


def _is_same(file: Path, own: Path) -> bool:
    try:
        return file == own or file.samefile(own)
    except (OSError, ValueError):  # one of them doesn't exist
        return False


def _folder(uri: str) -> Path:
    # As a URI, a path whose bytes are not UTF-8 can be kept in JSON.
    return Path(os.fsdecode(unquote_to_bytes(uri.removeprefix("file://"))))


def _not_trusted(file: Path) -> str:
    return f"No folder is trusted until you delete or repair {shown(file)}, or run `pegboard trust` again."
