"""List folders and read text files, inside the working directory only."""

# This module uses descriptors and single system calls, which pathlib hides.
# ruff: noqa: PTH116, PTH118

import os
import stat
from collections.abc import Sequence
from typing import Literal, NotRequired, TypeAlias, TypedDict

from pegboard.sdk import ToolFailed, aliases, hints

from ._roots import explained, is_inside, opened, printable, read_text, reason, resolve, roots

Kind: TypeAlias = Literal["file", "directory", "symlink", "other"]
Target: TypeAlias = Literal["file", "directory", "other", "outside", "broken"]


class FolderEntry(TypedDict):
    """One entry of a folder."""

    name: str
    path: str
    """Starts like the path of the listed folder, so that other tools accept it."""
    kind: Kind
    size: NotRequired[int]
    """Size in bytes; files only."""
    target: NotRequired[Target]
    """Kind of a symlink's target; `outside`: a path outside the allowed folders, `broken`: a missing file."""
    error: NotRequired[str]
    """Why it can't be read; other fields are set as far as they are known."""


@hints(read_only=True, destructive=False, idempotent=True, open_world=False)
@aliases(max_depth="maxDepth")
def list_dir(*, path: str = ".", recursive: bool = False, max_depth: int = 4) -> list[FolderEntry]:
    """List a folder.

    Symlinks are listed and never followed. A folder that can't be read is an entry with an error.

    Args:
        path: Folder, inside the working directory.
        recursive: Whether to list its subfolders too, each before its content.
        max_depth: Number of levels to list if `recursive` is set; 1 is the folder itself.

    Returns:
        Entries, sorted by name.
    """
    if max_depth < 1:
        raise ToolFailed(f"max_depth must be at least 1, not {max_depth}.", code="invalid_depth")
    root, parts = resolve(path)
    prefix = "" if path == "." else path
    with explained(path):
        found = _children(root, parts, prefix)
    depth = max_depth if recursive else 1
    waiting = [(1, (*parts, entry["name"]), entry) for entry in reversed(found)]
    listed: list[FolderEntry] = []
    while waiting:
        level, place, entry = waiting.pop()
        listed.append(entry)
        if entry["kind"] != "directory" or level >= depth:
            continue
        try:
            below = _children(root, place, entry["path"])
        except OSError as error:
            entry["error"] = reason(error)
        else:
            waiting += [(level + 1, (*place, child["name"]), child) for child in reversed(below)]
    return [_printable(entry) for entry in listed]


@hints(read_only=True, destructive=False, idempotent=True, open_world=False)
@aliases(max_bytes="maxBytes")
def read_file(*, path: str, max_bytes: int = 204800) -> str:
    """Read a text file.

    Args:
        path: File, inside the working directory.
        max_bytes: Maximum size of the file, in bytes.

    Returns:
        The text.
    """
    return read_text(path, max_bytes)


def _children(root: str, parts: Sequence[str], prefix: str) -> list[FolderEntry]:
    with opened(root, parts) as folder, os.scandir(folder) as found:
        entries = [_entry(item, os.path.join(root, *parts, item.name), prefix) for item in found]
    return sorted(entries, key=lambda entry: entry["name"])


def _entry(item: os.DirEntry[str], full: str, prefix: str) -> FolderEntry:
    entry: FolderEntry = {"name": item.name, "path": os.path.join(prefix, item.name), "kind": "other"}
    try:
        status = item.stat(follow_symlinks=False)
    except OSError as error:
        entry["error"] = reason(error)
        return entry
    entry["kind"] = "symlink" if stat.S_ISLNK(status.st_mode) else _kind(status.st_mode)
    if entry["kind"] == "file":
        entry["size"] = status.st_size
    if entry["kind"] == "symlink":
        entry["target"] = _target(full)
    return entry


def _kind(mode: int) -> Literal["file", "directory", "other"]:
    return "directory" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def _target(link: str) -> Target:
    try:
        real = os.path.realpath(link)
        if not any(is_inside(real, root) for root in roots()):
            return "outside"
        return _kind(os.stat(real).st_mode)
    except OSError:
        return "broken"


def _printable(entry: FolderEntry) -> FolderEntry:
    entry["name"], entry["path"] = printable(entry["name"]), printable(entry["path"])
    return entry
