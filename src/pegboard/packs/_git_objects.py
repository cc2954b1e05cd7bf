"""The objects of a git repository: packs, single files, alternates, and objects in memory."""

import errno
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import pygit2
from pygit2.enums import ObjectType

from pegboard.sdk import ToolFailed

from ._roots import PASSAGE, ResolvedPath, descriptor_path, opened, opened_file, read_all, resolve

_KINDS = {b"commit": ObjectType.COMMIT, b"tree": ObjectType.TREE, b"blob": ObjectType.BLOB, b"tag": ObjectType.TAG}
_HEAD_BYTES = 64
_LARGEST_OBJECT = 2**28
_LARGEST_LIST = 2**16
_MOST_FOLDERS = 20
"""Object folders of one repository, its alternates included."""


class Objects(pygit2.OdbBackend):
    """Loose objects, each opened below its folder without following links, and objects in memory.

    Writing changes only the memory.

    Args:
        folders: The object folders.
    """

    def __init__(self, folders: Sequence[ResolvedPath]) -> None:
        super().__init__()
        self._folders = folders
        self._memory: dict[pygit2.Oid, tuple[int, bytes]] = {}

    def read_cb(self, oid: pygit2.Oid) -> tuple[int, bytes]:
        """Read an object."""
        return self._memory.get(oid) or self._loose(str(oid))

    def read_header_cb(self, oid: pygit2.Oid) -> tuple[int, int]:
        """Read the type and the size of an object."""
        if oid in self._memory:
            kind, data = self._memory[oid]
            return kind, len(data)
        kind, size, _, _ = _begun(self._compressed(str(oid)))
        return kind, size

    def read_prefix_cb(self, prefix: str) -> tuple[int, bytes, pygit2.Oid]:
        """Read the object whose id starts with a prefix."""
        oid = self.exists_prefix_cb(prefix)
        return *self.read_cb(oid), oid

    def write_cb(self, oid: pygit2.Oid, data: bytes, kind: int) -> None:
        """Store an object in memory."""
        self._memory[oid] = kind, bytes(data)

    def exists_cb(self, oid: pygit2.Oid) -> bool:
        """Return whether an object with this id exists."""
        if oid in self._memory:
            return True
        name = str(oid)
        for folder in self._folders:
            with suppress(OSError), opened(folder.root, (*folder.parts, name[:2]), PASSAGE) as inner:
                os.stat(name[2:], dir_fd=inner, follow_symlinks=False)
                return True
        return False

    def exists_prefix_cb(self, prefix: str) -> pygit2.Oid:
        """Return the only id that starts with a prefix."""
        found = {str(oid) for oid in self._memory if str(oid).startswith(prefix)}
        for folder in self._folders:
            names = (prefix[:2] + name for name in _names(folder.below(prefix[:2])))
            found |= {name for name in names if name.startswith(prefix) and len(name) == 40}
        if len(found) != 1:
            raise KeyError(prefix)
        return pygit2.Oid(hex=found.pop())

    def refresh_cb(self) -> None:
        """Do nothing, as nothing is cached."""

    def __iter__(self) -> Iterator[pygit2.Oid]:
        return iter([*self._memory])

    def _loose(self, name: str) -> tuple[int, bytes]:
        kind, size, content, rest = _begun(self._compressed(name))
        data = content + rest.decompress(rest.unconsumed_tail, max(size - len(content), 0) + 1)
        if len(data) != size:
            raise ValueError(f"object {name} is damaged")
        return kind, data

    def _compressed(self, name: str) -> bytes:
        for folder in self._folders:
            try:
                with opened_file(folder.below(name[:2], name[2:]), name) as file:
                    return read_all(file, name, _LARGEST_OBJECT)
            except (OSError, ToolFailed):
                continue
        raise KeyError(name)


def _begun(compressed: bytes) -> tuple[int, int, bytes, "zlib._Decompress"]:
    """Read the head of an object; return its type, size, the beginning of its content and the rest to decompress."""
    rest = zlib.decompressobj()
    try:
        head, _, content = rest.decompress(compressed, _HEAD_BYTES).partition(b"\0")
        kind, _, size = head.partition(b" ")
        found = _KINDS[kind], int(size)
    except (zlib.error, ValueError, KeyError):
        raise ValueError("object is damaged") from None
    if not 0 <= found[1] <= _LARGEST_OBJECT:
        raise ValueError(f"object has {found[1]:,} bytes; the limit is {_LARGEST_OBJECT:,}")
    return *found, content, rest


def object_folders(first: ResolvedPath) -> list[ResolvedPath]:
    """Return the object folders of a repository: its own, then its alternates and theirs.

    Raises:
        ToolFailed: One of them is outside the roots, or there are too many.
    """
    folders = [first]
    for folder in folders:
        try:
            with opened_file(folder.below("info", "alternates"), "objects/info/alternates") as file:
                listed = read_all(file, "objects/info/alternates", _LARGEST_LIST)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ENOTDIR}:
                continue
            raise
        for line in listed.splitlines():
            if line and not line.startswith(b"#"):
                place = resolve(str(Path(folder.path, os.fsdecode(line))))
                folders += [place] if place not in folders else []
        if len(folders) > _MOST_FOLDERS:
            raise ToolFailed(
                f"The repository was not opened because it uses more than {_MOST_FOLDERS} alternate object folders.",
                code="git_failed",
            )
    return folders


def link_packs(folders: Sequence[ResolvedPath], target: Path, files: ExitStack) -> None:
    """Open all packs and link them into a folder by their descriptors.

    Args:
        folders: The object folders with packs.
        target: The folder for the links.
        files: Stack that closes the packs.
    """
    for folder in folders:
        names = set(_names(folder.below("pack")))
        for index in sorted(names):
            pack = index.removesuffix(".idx") + ".pack"
            if not index.endswith(".idx") or pack not in names or (target / index).is_symlink():
                continue
            for name in (index, pack):
                descriptor = files.enter_context(opened_file(folder.below("pack", name), name))
                (target / name).symlink_to(descriptor_path(descriptor))


def write_tree(repository: pygit2.Repository, files: Mapping[bytes, tuple[int, bytes]]) -> pygit2.Tree:
    """Write a tree with all its subtrees.

    Args:
        repository: The repository; the trees are stored in its memory.
        files: Mode and id of each file, by path.
    """
    top: dict[bytes, object] = {}
    for path, entry in files.items():
        *folders, name = path.split(b"/")
        node = top
        for folder in folders:
            inner = node.setdefault(folder, {})
            if not isinstance(inner, dict):  # a damaged index lists a file below another file
                inner = node[folder] = {}
            node = inner
        node[name] = entry
    tree = repository[_written(repository, top)]
    assert isinstance(tree, pygit2.Tree), "written as a tree"
    return tree


def _written(repository: pygit2.Repository, node: Mapping[bytes, object]) -> pygit2.Oid:
    lines: list[tuple[bytes, bytes]] = []
    for name, entry in node.items():
        match entry:
            case dict():
                mode, oid = 0o40000, _written(repository, entry).raw
            case (int(mode), bytes(oid)):
                pass
            case _:
                raise TypeError(entry)
        # git sorts a folder as if its name ended with a slash.
        lines.append((name + (b"/" if mode == 0o40000 else b""), b"%o %s\0%s" % (mode, name, oid)))
    return repository.odb.write(ObjectType.TREE, b"".join(line for _, line in sorted(lines)))


def tree_entries(data: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield the name, the mode and the id of each entry of a tree."""
    at = 0
    while at < len(data):
        end = data.index(b"\0", at)
        mode, _, name = data[at:end].partition(b" ")
        yield name, int(mode, 8), data[end + 1 : end + 21]
        at = end + 21


def _names(place: ResolvedPath) -> list[str]:
    try:
        with opened(place.root, place.parts) as folder:
            return os.listdir(folder)  # noqa: PTH208 - a descriptor
    except OSError:
        return []
