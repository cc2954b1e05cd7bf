"""Access of packs to their own configuration and to the secrets that they are granted."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from pegboard.config import PacksSettings, Secrets
from pegboard.models import PackHandler, Problem
from pegboard.ports import Granted
from pegboard.runtime.redaction import SecretRedaction
from pegboard.sdk.secret_checks import not_granted_message

_SPEAKS_OF_SECRETS = re.compile(rb"secret|api_headers|lazy_client", re.IGNORECASE)
_MOST_REFUSED = 200
"""Limit on remembered names, since a pack may ask for any number."""

_Stamp = tuple[int, int, int]


class _Reading(NamedTuple):
    """The secrets that a file names, and the version of the file."""

    stamp: _Stamp | None
    names: tuple[str, ...]


class _Refusal(NamedTuple):
    file: str
    pack: str
    name: str


class PackGrants:
    """The configuration of each pack, and the secrets that its file names or the configuration lists for it.

    Stores no secret, only the names that each file contains. A `pegboard.ports.Grants`.

    Args:
        settings: `[packs]`.
        secrets: The user's secrets.
        redaction: Receives every secret before a pack does.
        of_folder: Packs that the working directory's `pegboard.toml` configures. They get secrets only from its
            `.env` file, since the configuration may name the host that they are sent to.
    """

    def __init__(
        self, settings: PacksSettings, secrets: Secrets, redaction: SecretRedaction, *, of_folder: Collection[str] = ()
    ) -> None:
        self._of_folder = of_folder
        self._settings = settings
        self._redaction = redaction
        self._secrets = secrets
        self._readings: dict[str, _Reading] = {}
        self._without_secrets: dict[tuple[str, str], tuple[_Stamp | None, Granted]] = {}  # By file and pack.
        self._refused: dict[_Refusal, None] = {}
        self._refusing = Lock()

    def known(self, handler: PackHandler) -> Granted | None:
        """Return the configuration and secrets of a pack if that takes no time; None if `look_up` is required."""
        known = self._without_secrets.get((handler.file, handler.pack))
        return None if known is None or known[0] != _stamp(handler.file) else known[1]

    async def look_up(self, handler: PackHandler) -> Granted:
        """Return the configuration and secrets of a pack; read its file and the stores of secrets."""
        return await asyncio.to_thread(self._look_up, handler)

    def refuse(self, handler: PackHandler, name: str) -> None:
        """Record that a pack asked for a secret that it wasn't granted."""
        if self._secrets.check(name) is None:
            with self._refusing:
                if len(self._refused) < _MOST_REFUSED:
                    self._refused[_Refusal(handler.file, handler.pack, name)] = None

    def where(self, name: str) -> tuple[str | None, str]:
        """Return where a secret comes from, or None and why it is missing. Blocks."""
        return self._secrets.where(name)

    def problems(self) -> tuple[Problem, ...]:
        """Return a problem for each secret that a pack asked for and still isn't granted."""
        with self._refusing:
            refused = [*self._refused]
        return tuple(
            _problem(refusal) for refusal in refused if refusal.name not in self._names(refusal.file, refusal.pack)
        )

    def _look_up(self, handler: PackHandler) -> Granted:
        stamp = _stamp(handler.file)
        names = self._names(handler.file, handler.pack)
        if not names:
            granted = Granted(self._config(handler.pack), {})
            self._without_secrets[handler.file, handler.pack] = stamp, granted
            return granted
        of_folder = handler.pack in self._of_folder
        found = {name: self._secrets.find(name, of_folder=of_folder) for name in names}
        secrets = {name: secret.reveal() if secret else None for name, secret in found.items()}
        self._redaction.add({name: value for name, value in secrets.items() if value})
        return Granted(self._config(handler.pack), secrets)

    def _names(self, file: str, pack: str) -> tuple[str, ...]:
        stamp = _stamp(file)
        reading = self._readings.get(file)
        if reading is None or reading.stamp != stamp:
            reading = self._readings[file] = _Reading(stamp, _named_in(file))
        return tuple(dict.fromkeys((*reading.names, *self._settings.secrets(pack))))

    def _config(self, pack: str) -> Mapping[str, object]:
        return {key: value for key, value in self._settings.of(pack).items() if key != "secrets"}


def _problem(refusal: _Refusal) -> Problem:
    message, _, fix = not_granted_message(refusal.pack, refusal.name).partition(". ")
    return Problem(message=f"{message}.", fix=fix, file=refusal.file, pack=refusal.pack)


def _named_in(file: str) -> tuple[str, ...]:
    try:
        if not _SPEAKS_OF_SECRETS.search(Path(file).read_bytes()):
            return ()
    except OSError:
        return ()
    from pegboard.sdk.source import parse_file, read_requirements

    tree = parse_file(file)
    return tuple(read_requirements(tree).secrets) if tree else ()


def _stamp(file: str) -> _Stamp | None:
    try:
        status = os.stat(file)  # noqa: PTH116 - asked at every call, and `Path` costs three times as much
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size
