"""What was read of every file, kept on disk, so that an unchanged file isn't parsed again.

Each packs folder has a few files here (`_SHARDS`), each with the readings of a share of its packs: one changed pack
costs one small file. A file holds a header, a checksum and `marshal` data; it is replaced as a whole, so that readers
and other writers see the old or the new one. Whatever isn't sound counts as not there. A file's time of change tells
the day on which it was last used; one that nobody has used for long, as its packs folder is gone, is swept away.
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
from pegboard.discovery.files import Candidate, Stamp, content
from pegboard.discovery.sibling_modules import Seen, digest, is_unchanged, stamp_of

_FORMAT = 3
_SHARDS = 16
_SETTLED_AFTER = 2_000_000_000
"""Nanoseconds after which a change must show in a file's times: the coarsest file systems count in two seconds."""

_DAY = 86_400.0
"""Seconds."""
_UNUSED_AFTER = 14 * _DAY
_NAME = re.compile(r"\.?[0-9a-f]{16}-[0-9a-f]{2}(\.([0-9]+-)?[0-9a-f]{8})?\Z")
"""Of a file of an index, or of a draft of one: nothing else in the folder is ours to delete."""
_LOOKED_AT = 10_000
"""Files that one sweep looks at, at most."""


class Entry(NamedTuple):
    """What is kept of one pack's file."""

    stamp: Stamp
    digest: bytes
    read_at: int
    """When it was read, at the latest, in nanoseconds since 1970."""
    packed: bytes
    """What it holds, as `pegboard.discovery.reader` packs it."""
    helpers: tuple[Seen, ...]
    """What of it came from elsewhere."""

    def settles(self, stamp: Stamp) -> bool:
        """Tells whether a file that looks like `stamp`, and its helpers as they look now, must be those that were read.

        A file read right after it was written may have been written once more within the same tick of its clock.
        """
        if self.stamp != stamp or not self._is_settled(stamp):
            return False
        looks = ((seen, stamp_of(file)) for file, seen, _ in self.helpers)
        return all(now == then and (now is None or self._is_settled(now)) for then, now in looks)

    def verified(self, candidate: Candidate, now: int) -> Entry | None:
        """Gives the entry as of now if the contents of the file and its helpers are still those that were read.

        Args:
            candidate: The file as it looks now.
            now: When that was seen, at the latest, in nanoseconds since 1970.
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
    """The index of one packs folder."""

    def __init__(self, root: Path, folder: str) -> None:
        """Takes the folder that all indexes lie in, and the packs folder."""
        self._root = root
        self._name = hashlib.blake2b(os.fsencode(folder), digest_size=8).hexdigest()

    def load(self) -> dict[str, Entry]:
        """Gives all that is kept of the folder, by file; empty where nothing (sound) is."""
        entries: dict[str, Entry] = {}
        for shard in range(_SHARDS):
            entries.update(self._load(shard))
        return entries

    def save(self, entries: dict[str, Entry], changed: set[str]) -> None:
        """Writes anew what holds the changed files.

        Args:
            entries: All that is known of the folder's files.
            changed: The files whose entries are new or gone.

        Raises:
            OSError: It can't be written.
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

    def _load(self, shard: int) -> dict[str, Entry]:
        try:
            with open(self._path(shard), "rb") as file:  # noqa: PTH123 - sixteen opens a folder, and `Path` adds weight
                if time.time() - os.fstat(file.fileno()).st_mtime > _DAY:
                    with suppress(OSError):  # somebody else's
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
            rows = marshal.loads(payload)  # noqa: S302 - the user's own cache, checked above; it runs nothing
        except (ValueError, EOFError, TypeError):
            return {}
        return {file: Entry(Stamp(*stamp), *rest) for file, stamp, *rest in rows}

    def _save(self, shard: int, entries: dict[str, Entry]) -> None:
        rows = [(file, tuple(entry.stamp), *entry[1:]) for file, entry in entries.items()]
        payload = marshal.dumps(rows)
        with storage.replacing(self._path(shard), durable=False) as file:  # the checksum tells a part of it
            file.write(_HEADER)
            file.write(zlib.crc32(payload).to_bytes(4, "big"))
            file.write(payload)


def sweep(root: Path) -> None:
    """Deletes what nobody has used for two weeks: files of packs folders that are gone, drafts of killed processes.

    It needs no lock: whoever wants such a file after all reads the packs anew.

    Args:
        root: The folder that all indexes lie in; it needn't exist.
    """
    now = time.time()
    with suppress(OSError), os.scandir(root) as entries:
        for entry in islice(entries, _LOOKED_AT):
            if _NAME.match(entry.name) and now - entry.stat(follow_symlinks=False).st_mtime > _UNUSED_AFTER:
                Path(entry.path).unlink(missing_ok=True)


def _shard(file: str) -> int:
    return zlib.crc32(file.encode()) % _SHARDS


def _header() -> bytes:
    """Gives the line that an index must begin with: other code may have read the same file otherwise."""
    code = hashlib.blake2b(digest_size=8)
    package = Path(__file__).parent.parent
    for room in ("discovery", "schema", "sdk"):
        for path in sorted((package / room).glob("*.py")):
            status = path.stat()
            code.update(f"{path.name} {status.st_size} {status.st_mtime_ns};".encode())
    return f"pegboard index {_FORMAT} {__version__} {sys.implementation.cache_tag} {code.hexdigest()}\n".encode()


_HEADER = _header()
