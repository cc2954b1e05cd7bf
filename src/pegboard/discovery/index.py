"""Cache on disk of the parsed packs, so that unchanged files are not parsed again.

The entries of each packs folder are distributed over `_SHARDS` files, so that a changed pack rewrites only a small
file. A file consists of a header, a checksum and `marshal` data, and is replaced atomically. Damaged files are
ignored. The modification time of a file is the day of its last use; `sweep` deletes files unused for two weeks.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import re
import sys
import time
import zlib
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pegboard import __version__, storage
from pegboard.discovery.files import Candidate, Stamp, content, stamp_of
from pegboard.discovery.project_modules import Seen, digest, is_unchanged

_FORMAT = 3
_SHARDS = 16
_SETTLED_AFTER = 2_000_000_000
"""Resolution of file times in nanoseconds; the coarsest file systems have two seconds."""

_DAY = 86_400.0
_UNUSED_AFTER = 14 * _DAY
_NAME = re.compile(r"\.?[0-9a-f]{16}-[0-9a-f]{2}(\.([0-9]+-)?[0-9a-f]{8})?\Z")
"""Names of index files and their temporary files. `sweep` deletes no others."""
_MAX_SWEPT = 10_000
"""Maximum number of files checked by one sweep."""


class IndexEntry(NamedTuple):
    """Cached content of one pack's file."""

    stamp: Stamp
    digest: bytes
    read_at: int
    """Time of the read in nanoseconds since 1970."""
    packed: bytes
    """Parsed content, as packed by `pegboard.discovery.reader`."""
    helpers: tuple[Seen, ...]
    """Helper modules that the content depends on."""

    def is_current(self, stamp: Stamp) -> bool:
        """Return whether stamps prove that the file and its helpers are unchanged.

        They don't prove it if the file was read within the resolution of file times after its last change.
        """
        if self.stamp != stamp or not self._is_settled(stamp):
            return False
        stamps = ((seen, stamp_of(file)) for file, seen, _ in self.helpers)
        return all(now == then and (now is None or self._is_settled(now)) for then, now in stamps)

    def verify(self, candidate: Candidate, now: int) -> IndexEntry | None:
        """Return an updated entry if the contents of the file and its helpers are unchanged, or None.

        Args:
            candidate: File with its current stamp.
            now: Time of the stamp in nanoseconds since 1970.
        """
        helpers = tuple((file, (stamp := stamp_of(file)) and tuple(stamp), known) for file, _, known in self.helpers)
        try:
            source = content(candidate.file)
        except OSError:
            return None
        if isinstance(source, str) or digest(source) != self.digest or not all(map(is_unchanged, helpers)):
            return None
        return self._replace(stamp=candidate.stamp, read_at=now, helpers=helpers)

    def _is_settled(self, stamp: Stamp) -> bool:
        return self.read_at - max(stamp.modified, stamp.changed) > _SETTLED_AFTER


class Index:
    """Index of one packs folder.

    Args:
        root: Folder of all index files.
        folder: Packs folder.
    """

    def __init__(self, root: Path, folder: str) -> None:
        self._root = root
        self._name = hashlib.blake2b(os.fsencode(folder), digest_size=8).hexdigest()

    def load(self) -> dict[str, IndexEntry]:
        """Return the entries of the folder by file; empty without a valid index."""
        entries: dict[str, IndexEntry] = {}
        for shard in range(_SHARDS):
            entries.update(self._load(shard))
        return entries

    def save(self, entries: dict[str, IndexEntry], changed: set[str]) -> None:
        """Write the shards that contain the changed files.

        Args:
            entries: All entries of the folder.
            changed: Files whose entries were added, replaced or removed.

        Raises:
            OSError: The index can't be written.
        """
        shards = {_shard(file) for file in changed}
        if not shards:
            return
        storage.make_folder(self._root)
        for shard in shards:
            mine = {file: entry for file, entry in entries.items() if _shard(file) == shard}
            self._save(shard, mine)

    def _path(self, shard: int) -> str:
        return f"{self._root}{os.sep}{self._name}-{shard:02x}"

    def _load(self, shard: int) -> dict[str, IndexEntry]:
        try:
            with open(self._path(shard), "rb") as file:  # noqa: PTH123 - sixteen files per folder, and `Path` is slower
                if time.time() - os.fstat(file.fileno()).st_mtime > _DAY:
                    with suppress(OSError):  # owned by another user
                        os.utime(file.fileno())
                content = file.read()
        except OSError:
            return {}
        start = len(_HEADER)
        if not content.startswith(_HEADER):
            return {}
        payload = memoryview(content)[start + 4 :]
        if zlib.crc32(payload).to_bytes(4, "big") != content[start : start + 4]:
            return {}
        try:
            rows = marshal.loads(payload)  # noqa: S302 - the user's own cache, checked above; `marshal` runs no code
        except (ValueError, EOFError, TypeError):
            return {}
        return {file: IndexEntry(Stamp(*stamp), *rest) for file, stamp, *rest in rows}

    def _save(self, shard: int, entries: dict[str, IndexEntry]) -> None:
        rows = [(file, tuple(entry.stamp), *entry[1:]) for file, entry in entries.items()]
        payload = marshal.dumps(rows)
        with storage.replacing(self._path(shard), durable=False) as file:  # the checksum detects a partial file
            file.write(_HEADER)
            file.write(zlib.crc32(payload).to_bytes(4, "big"))
            file.write(payload)


def sweep(root: Path) -> None:
    """Delete index files unused for two weeks, and temporary files of killed processes.

    This needs no lock: a process that still needs a deleted file parses the packs again.

    Args:
        root: Folder of all index files; it may be missing.
    """
    now = time.time()
    with suppress(OSError), os.scandir(root) as entries:
        for entry in islice(entries, _MAX_SWEPT):
            if _NAME.match(entry.name) and now - entry.stat(follow_symlinks=False).st_mtime > _UNUSED_AFTER:
                Path(entry.path).unlink(missing_ok=True)


def _shard(file: str) -> int:
    return zlib.crc32(file.encode()) % _SHARDS


def _header() -> bytes:
    """Return the header of valid index files; it identifies the code, as other versions may parse differently."""
    code = hashlib.blake2b(digest_size=8)
    package = Path(__file__).parent.parent
    for name in ("discovery", "signatures", "sdk"):
        for path in sorted((package / name).glob("*.py")):
            status = path.stat()
            code.update(f"{path.name} {status.st_size} {status.st_mtime_ns};".encode())
    system = f"{sys.platform} {sys.implementation.cache_tag}"  # conditions about both are evaluated
    return f"pegboard index {_FORMAT} {__version__} {system} {code.hexdigest()}\n".encode()


_HEADER = _header()
