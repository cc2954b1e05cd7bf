"""The helpers beside a pack (`_models.py`), read for the types that it takes from them."""

from __future__ import annotations

import ast
import hashlib
import os

from pegboard.discovery.files import Stamp, content
from pegboard.schema.source import PARSED_AS
from pegboard.sdk.scope import Scope

Seen = tuple[str, tuple[int, ...] | None, bytes | None]
"""A helper's file as it was when it was read: its path, its stamp and its digest; None and None where it wasn't there.

A plain tuple, as it crosses process borders and lies in the index.
"""


class Helpers:
    """The helpers beside one pack, each read when a name of it is first asked for.

    Attributes:
        seen: The files that were asked for, whether they are there or not: what the pack's tools are depends on them.

    Args:
        folder: The absolute path of the folder that the pack is in.
    """

    def __init__(self, folder: str) -> None:
        self.seen: list[Seen] = []
        self._folder = folder
        self._scopes: dict[str, Scope | None] = {}

    def scope(self, name: str) -> Scope | None:
        """Gives the names of a helper; None where there is none that can be read.

        Args:
            name: The helper's, such as `_models`.
        """
        if name not in self._scopes:
            self._scopes[name] = self._read(f"{self._folder}{os.sep}{name}.py")
        return self._scopes[name]

    def _read(self, file: str) -> Scope | None:
        stamp = stamp_of(file)  # before the content: what changes in between shows at the next look
        source = _source(file)
        self.seen.append((file, stamp and tuple(stamp), None if source is None else digest(source)))
        if source is None:
            return None
        try:
            return Scope(ast.parse(source, PARSED_AS), file, self.scope)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def digest(source: bytes) -> bytes:
    """Gives what tells one content from another."""
    return hashlib.blake2b(source, digest_size=16).digest()


def stamp_of(file: str) -> Stamp | None:
    """Gives how a file looks from outside; None where it isn't there."""
    try:
        return Stamp.of(os.stat(file))  # noqa: PTH116 - called for every helper of every pack in a scan
    except OSError:
        return None


def is_unchanged(seen: Seen) -> bool:
    """Tells whether a helper's file still has the content that was seen, by reading it."""
    source = _source(seen[0])
    return (None if source is None else digest(source)) == seen[2]


def _source(file: str) -> bytes | None:
    try:
        source = content(file)
    except OSError:
        return None
    return source if isinstance(source, bytes) else None
