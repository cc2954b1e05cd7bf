"""The index and the working tree of a git repository, read by descriptors and never changed."""

import os
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from hashlib import sha1
from typing import NamedTuple

import pygit2

from pegboard.sdk import ToolFailed

from ._git_objects import write_tree
from ._git_repository import Opened, nested
from ._roots import FOLDER, PASSAGE, ResolvedPath, opened, opened_file, read_all

LARGEST_TEXT = 50_000_000
"""Size in bytes up to which a file of the working tree is compared line by line; a larger one counts as binary."""
_CHUNK = 2**20
_LARGEST_RULES = 2**20
_DEEPEST = 400
_FIXED = struct.Struct(">10I20sH")
_EXTENDED, _ASSUME_VALID = 0x4000, 0x8000
_INTENT_TO_ADD, _SKIP_WORKTREE = 0x2000, 0x4000
_LINK, _SUBMODULE, _FOLDER = 0o120000, 0o160000, 0o040000

File = tuple[int, bytes]
"""Mode and id."""


class _Entry(NamedTuple):
    path: bytes
    mode: int
    oid: bytes
    stage: int
    stamp: tuple[int, ...]
    """ctime and mtime in seconds and nanoseconds, inode, size."""
    is_planned: bool
    is_fixed: bool


class GitIndex:
    """The index, which contains the staged files.

    Args:
        repository: The repository.
    """

    def __init__(self, repository: Opened) -> None:
        self.files: dict[bytes, File] = {}
        """The staged files."""
        self.planned: set[bytes] = set()
        """Files that are marked to be added later, with no content yet."""
        self.conflicts: dict[bytes, dict[int, File]] = {}
        """Files in conflict: base (1), ours (2), theirs (3), as far as they exist."""
        self._repository = repository
        self._entries: dict[bytes, _Entry] = {}
        content = repository.read("index")
        for entry in _parsed(content) if content else ():
            if entry.stage:
                self.conflicts.setdefault(entry.path, {})[entry.stage] = entry.mode, entry.oid
                continue
            self._entries[entry.path] = entry
            if entry.is_planned:
                self.planned.add(entry.path)
            else:
                self.files[entry.path] = entry.mode, entry.oid
        self._written = _written_at(repository)

    def copy_attributes(self) -> None:
        """Copy git's attribute files, which mark text and binary files, into the private copy."""
        for path in {b".gitattributes", *self._entries}:
            if path.endswith(b".gitattributes"):
                _copy(self._repository, path)

    def ours(self) -> dict[bytes, File]:
        """Return our side of the files in conflict."""
        return {path: sides[2] for path, sides in self.conflicts.items() if 2 in sides}

    def changed(self) -> dict[bytes, File | None]:
        """Return the files whose content or mode in the working tree differs from the index; None for deleted ones."""
        repository, found = self._repository, dict[bytes, File | None]()
        paths: dict[bytes, list[bytes]] = {}
        for path in [*self._entries, *self.conflicts]:
            folder, _, name = path.rpartition(b"/")
            paths.setdefault(folder, []).append(name)
        top = repository.top
        for folder, names in paths.items():
            prefix = folder + b"/" if folder else b""
            parts = os.fsdecode(folder).split("/") if folder else []
            with ExitStack() as closing:
                try:
                    descriptor = closing.enter_context(opened(top.root, (*top.parts, *parts), PASSAGE))
                except OSError:  # the folder was deleted, or is a link, which contains no files of the repository
                    found |= {prefix + name: None for name in names if not self._is_fixed(prefix + name)}
                    continue
                for name in names:
                    self._compare(prefix + name, name, descriptor, found)
        return found

    def untracked(self) -> Iterator[bytes]:
        """Yield the files that are neither tracked nor ignored; a folder without tracked files ends with `/`."""
        known = {*self._entries, *self.conflicts}
        folders = {path[:at] for path in known for at in range(len(path)) if path[at : at + 1] == b"/"}
        waiting = [b""]
        while waiting:
            here = waiting.pop()
            _copy(self._repository, here + b".gitignore")
            for name, mode in _listed(self._repository, here):
                path = here + name
                if path in known or name.lower() == b".git":
                    continue
                if not stat.S_ISDIR(mode):
                    if (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) and not self._is_ignored(path):
                        yield path
                elif path in folders:
                    waiting.append(path + b"/")
                elif not self._is_ignored(path + b"/") and self._has_files(path + b"/"):
                    yield path + b"/"

    def _has_files(self, folder: bytes) -> bool:
        """Return whether a folder contains a file that isn't ignored, or is a separate repository."""
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            _copy(self._repository, here + b".gitignore")
            for name, mode in _listed(self._repository, here):
                path = here + name
                if name == b".git":
                    return True
                if stat.S_ISDIR(mode):
                    if not self._is_ignored(path + b"/"):
                        waiting.append(path + b"/")
                elif (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) and not self._is_ignored(path):
                    return True
        return False

    def _is_ignored(self, path: bytes) -> bool:
        try:
            text = path.decode()
        except UnicodeDecodeError:  # pygit2 can't check such paths
            return False
        if path.endswith(b"/"):  # rules for folders apply only to folders
            (self._repository.scratch / text).mkdir(parents=True, exist_ok=True)
        return self._repository.git.path_is_ignored(text.removesuffix("/"))

    def _is_fixed(self, path: bytes) -> bool:
        return path in self._entries and self._entries[path].is_fixed

    def _compare(self, path: bytes, name: bytes, folder: int, found: dict[bytes, File | None]) -> None:
        entry = self._entries.get(path)
        if entry is not None and (entry.is_fixed or entry.mode == _FOLDER):
            return
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            found[path] = None
            return
        mode, staged = status.st_mode, entry.mode if entry else 0o100644
        if stat.S_ISDIR(mode):
            if staged != _SUBMODULE:
                found[path] = None
            elif entry and (head := _changed_head(self._place(path), entry.oid)) is not None:
                found[path] = _SUBMODULE, head
            return
        now: File
        if stat.S_ISLNK(mode):
            now = _LINK, self._repository.git.create_blob(os.readlink(name, dir_fd=folder)).raw
        elif stat.S_ISREG(mode):
            now_mode = 0o100755 if mode & 0o100 else 0o100644
            if stat.S_ISREG(staged) and not self._repository.config.is_true("core", "filemode", default=True):
                now_mode = staged
            if entry and not entry.is_planned and now_mode == staged and self._is_unchanged(entry, status):
                return
            now = now_mode, self._hashed(path, entry.oid if entry else b"")
        else:
            found[path] = None
            return
        if entry is None or entry.is_planned or now != (entry.mode, entry.oid):
            found[path] = now

    def _is_unchanged(self, entry: _Entry, status: os.stat_result) -> bool:
        """Return whether a file is certainly unchanged since it was staged."""
        times = (*divmod(status.st_ctime_ns, 10**9), *divmod(status.st_mtime_ns, 10**9))
        stamp = tuple(number & 0xFFFFFFFF for number in (*times, status.st_ino, status.st_size))
        return stamp == entry.stamp and status.st_mtime_ns < self._written

    def _place(self, path: bytes) -> ResolvedPath:
        return self._repository.top.below(*os.fsdecode(path).split("/"))

    def _hashed(self, path: bytes, staged: bytes) -> bytes:
        """Return the id of a file's content, and store the content in memory."""
        git, shown = self._repository.git, os.fsdecode(path)
        with opened_file(self._place(path), shown) as file:
            size = os.fstat(file).st_size
            if size > LARGEST_TEXT:
                oid = _streamed(file, size)
                # A NUL makes libgit2 treat it as binary.
                return oid if oid == staged else git.create_blob(b"\0" + oid).raw
            content = read_all(file, shown, LARGEST_TEXT)
        if b"\r\n" not in content and b"$Id" not in content:
            return git.create_blob(content).raw
        # Line ends and keywords are converted as git does, by the attributes of the file's path.
        copy = self._repository.scratch / shown
        try:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
            oid = git.create_blob_fromworkdir(shown).raw
            copy.unlink()
        except (OSError, ValueError):  # a file and a folder of one name, or a path that is not UTF-8
            oid = git.create_blob(content).raw
        return oid


def _changed_head(top: ResolvedPath, recorded: bytes) -> bytes | None:
    """Return the commit of a submodule that was changed, inside or by another commit; None if it wasn't."""
    with suppress(ToolFailed), nested(top) as found:
        if found is not None:
            index, head = GitIndex(found), found.git.revparse_single("HEAD").peel(pygit2.Commit)
            index.copy_attributes()
            is_staged = write_tree(found.git, index.files | index.ours()).id != head.tree_id
            if head.id.raw != recorded or is_staged or index.changed() or any(index.untracked()):
                return head.id.raw
    return None


def _streamed(file: int, size: int) -> bytes:
    digest = sha1(b"blob %d\0" % size, usedforsecurity=False)
    while chunk := os.read(file, _CHUNK):
        digest.update(chunk)
    return digest.digest()


def _written_at(repository: Opened) -> int:
    """Return when the index was written: a file that changed then or later may have its old stamp by accident."""
    try:
        with opened_file(repository.folder.below("index"), "index") as file:
            return os.fstat(file).st_mtime_ns
    except OSError:
        return 0


def _copy(repository: Opened, path: bytes) -> None:
    """Copy a file with rules for paths to the same path in the private copy."""
    copy = repository.scratch / os.fsdecode(path)
    with suppress(OSError, ToolFailed):
        place = repository.top.below(*os.fsdecode(path).split("/"))
        with opened_file(place, "") as file:
            content = read_all(file, "", _LARGEST_RULES)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)


def _listed(repository: Opened, folder: bytes) -> Sequence[tuple[bytes, int]]:
    """Return the names in a folder with their modes; an empty list if it can't be read."""
    parts = [part for part in os.fsdecode(folder).split("/") if part]
    if len(parts) > _DEEPEST:
        return ()
    try:
        with opened(repository.top.root, (*repository.top.parts, *parts), FOLDER) as inner, os.scandir(inner) as found:
            return sorted((os.fsencode(entry.name), _mode(entry)) for entry in found)
    except OSError:
        return ()


def _mode(entry: os.DirEntry[str]) -> int:
    if entry.is_symlink():
        return stat.S_IFLNK
    if entry.is_dir(follow_symlinks=False):
        return stat.S_IFDIR
    return stat.S_IFREG if entry.is_file(follow_symlinks=False) else stat.S_IFIFO


def _parsed(content: bytes) -> Iterator[_Entry]:
    """Yield the entries of an index, in versions 2 to 4.

    Raises:
        ToolFailed: It is damaged, or split into several files.
    """
    try:
        signature, version, count = struct.unpack_from(">4sII", content)
        if signature != b"DIRC" or version not in {2, 3, 4}:
            raise _damaged()
        at, path = 12, b""
        for _ in range(count):
            begin = at
            *numbers, oid, flags = _FIXED.unpack_from(content, at)
            at += _FIXED.size
            extended = 0
            if flags & _EXTENDED:
                (extended,) = struct.unpack_from(">H", content, at)
                at += 2
            if version == 4:
                dropped, at = _offset(content, at)
                path = path[: len(path) - dropped]
            else:
                path = b""
            end = content.index(b"\0", at)
            path += content[at:end]
            at = end + 1 if version == 4 else begin + ((end - begin + 8) & ~7)
            name = path.removesuffix(b"/")
            if not _is_proper(name):
                raise _damaged()
            yield _Entry(
                name, numbers[6], oid, flags >> 12 & 3, (*numbers[:4], numbers[5], numbers[9]),
                bool(extended & _INTENT_TO_ADD), bool(flags & _ASSUME_VALID or extended & _SKIP_WORKTREE),
            )  # fmt: skip
        while at + 8 <= len(content) - 20:
            kind, size = struct.unpack_from(">4sI", content, at)
            if kind == b"link":
                raise ToolFailed("The repository can't be read: a split index is not supported.", code="git_failed")
            at += 8 + size
    except (struct.error, ValueError, IndexError):
        raise _damaged() from None


def _offset(content: bytes, at: int) -> tuple[int, int]:
    """Parse a number of variable length; return it and the index of its end."""
    number = content[at] & 0x7F
    while content[at] & 0x80:
        at += 1
        number = (number + 1 << 7) | content[at] & 0x7F
    return number, at + 1


def _is_proper(path: bytes) -> bool:
    parts = path.split(b"/")
    return len(parts) <= _DEEPEST and not any(part.lower() in {b"", b".", b"..", b".git"} for part in parts)


def _damaged() -> ToolFailed:
    return ToolFailed("The repository can't be read: its index is damaged.", code="git_failed")
