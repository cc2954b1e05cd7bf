"""Looking at files: list folders and read text, inside the working directory only."""

# All of it is about descriptors and single system calls, which pathlib hides.
# ruff: noqa: PTH116, PTH118

import os
import stat
from collections.abc import Sequence
from typing import Literal, NotRequired, TypeAlias, TypedDict

from pegboard.sdk import ToolFailed, aliases, hints

from ._roots import explained, is_inside, opened, printable, read_text, reason, resolve, roots

Kind: TypeAlias = Literal["file", "directory", "symlink", "other"]
Target: TypeAlias = Literal["file", "directory", "other", "outside", "broken"]


class Entry(TypedDict):
    """One thing in a folder."""

    name: str
    path: str
    """Begins like the path of the listed folder, so that it can be passed on."""
    kind: Kind
    size: NotRequired[int]
    """Bytes; files only."""
    target: NotRequired[Target]
    """What a symlink leads to; `outside` is beyond the allowed folders, `broken` is nothing at all."""
    error: NotRequired[str]
    """Why it can't be looked at; what could be found out is there all the same."""


@hints(read_only=True, destructive=False, idempotent=True, open_world=False)
@aliases(max_depth="maxDepth")
def list_dir(*, path: str = ".", recursive: bool = False, max_depth: int = 4) -> list[Entry]:
    """Lists a folder.

    Symlinks are listed and never followed. A folder that can't be read is an entry with an error.

    Args:
        path: The folder, inside the working directory.
        recursive: Whether to list the folders below it too, each right before what is in it.
        max_depth: How many levels to list when recursive; 1 is the folder itself.

    Returns:
        What is there, sorted by name.
    """
    if max_depth < 1:
        raise ToolFailed(f"max_depth must be at least 1, not {max_depth}.", code="invalid_depth")
    root, parts = resolve(path)
    prefix = "" if path == "." else path
    with explained(path):
        found = _children(root, parts, prefix)
    depth = max_depth if recursive else 1
    waiting = [(1, (*parts, entry["name"]), entry) for entry in reversed(found)]
    listed: list[Entry] = []
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
    """Reads a text file.

    Args:
        path: The file, inside the working directory.
        max_bytes: The largest file to read, in bytes.

    Returns:
        The text.
    """
    return read_text(path, max_bytes)


def _children(root: str, parts: Sequence[str], prefix: str) -> list[Entry]:
    with opened(root, parts) as folder, os.scandir(folder) as found:
        entries = [_entry(item, os.path.join(root, *parts, item.name), prefix) for item in found]
    return sorted(entries, key=lambda entry: entry["name"])


def _entry(item: os.DirEntry[str], full: str, prefix: str) -> Entry:
    entry: Entry = {"name": item.name, "path": os.path.join(prefix, item.name), "kind": "other"}
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


def _printable(entry: Entry) -> Entry:
    entry["name"], entry["path"] = printable(entry["name"]), printable(entry["path"])
    return entry
