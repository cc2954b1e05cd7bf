"""Helper modules in the folder of a pack (`_models.py`), parsed for the types that the pack imports from them."""

from __future__ import annotations

import ast
import hashlib
import os

from pegboard.discovery.files import Stamp, content
from pegboard.sdk.scope import Scope
from pegboard.signatures.expressions import PARSED_AS

Seen = tuple[str, tuple[int, ...] | None, bytes | None]
"""Path, stamp and digest of a helper's file when it was read; the last two are None if it was missing.

A plain tuple, because child processes send it and the index stores it.
"""


class Helpers:
    """Helper modules of one pack, each parsed when first needed.

    Args:
        folder: Absolute path of the pack's folder.

    Attributes:
        seen: Files of the requested helpers, including missing ones; the pack's tools depend on them.
    """

    def __init__(self, folder: str) -> None:
        self.seen: list[Seen] = []
        self._folder = folder
        self._scopes: dict[str, Scope | None] = {}

    def scope(self, name: str) -> Scope | None:
        """Return the scope of a helper by its name (`_models`), or None if it can't be read."""
        if name not in self._scopes:
            self._scopes[name] = self._read(f"{self._folder}{os.sep}{name}.py")
        return self._scopes[name]

    def _read(self, file: str) -> Scope | None:
        stamp = stamp_of(file)  # before the content, so that the next scan detects a change in between
        source = _source(file)
        self.seen.append((file, stamp and tuple(stamp), None if source is None else digest(source)))
        if source is None:
            return None
        try:
            return Scope(ast.parse(source, PARSED_AS), file, self.scope)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def digest(source: bytes) -> bytes:
    """Return the hash of a file's content."""
    return hashlib.blake2b(source, digest_size=16).digest()


def stamp_of(file: str) -> Stamp | None:
    """Return the stamp of a file, or None if it is missing."""
    try:
        return Stamp.of(os.stat(file))  # noqa: PTH116 - called for every helper of every pack in a scan
    except OSError:
        return None


def is_unchanged(seen: Seen) -> bool:
    """Return whether a helper's file still has the same content, by reading it."""
    source = _source(seen[0])
    return (None if source is None else digest(source)) == seen[2]


def _source(file: str) -> bytes | None:
    try:
        source = content(file)
    except OSError:
        return None
    return source if isinstance(source, bytes) else None
