"""Differences between commits, the index and the working tree of a git repository."""

import re
from collections.abc import Mapping, Sequence

import pygit2
from pygit2.enums import DeltaStatus, DiffFind, DiffOption

from ._git_models import Change, Changed, FileChange, State
from ._git_objects import tree_entries, write_tree
from ._git_worktree import File, GitIndex

FOLDER_MODE, SUBMODULE_MODE = 0o040000, 0o160000

STATES: Mapping[int, State] = {
    DeltaStatus.ADDED: "added", DeltaStatus.DELETED: "deleted", DeltaStatus.MODIFIED: "modified",
    DeltaStatus.RENAMED: "renamed", DeltaStatus.COPIED: "copied", DeltaStatus.TYPECHANGE: "type_changed",
}  # fmt: skip
CONFLICTS: Mapping[frozenset[int], tuple[State, State]] = {
    frozenset({1}): ("deleted", "deleted"), frozenset({2}): ("added", "unmerged"),
    frozenset({3}): ("unmerged", "added"), frozenset({1, 2}): ("unmerged", "deleted"),
    frozenset({1, 3}): ("deleted", "unmerged"), frozenset({2, 3}): ("added", "added"),
    frozenset({1, 2, 3}): ("unmerged", "unmerged"),
}  # fmt: skip
"""States of a file in conflict, staged and unstaged, by the sides that exist: base (1), ours (2), theirs (3)."""


def shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")


def parts_of(path: str) -> list[bytes]:
    """Return the names in a path from the top; an absolute path starts with an empty name, which matches no file."""
    names = path.encode("utf-8", "surrogateescape").rstrip(b"/").split(b"/")
    return [name for place, name in enumerate(names) if name not in {b"", b"."} or (place == 0 and len(names) > 1)]


def read_object(git: pygit2.Repository, oid: bytes) -> bytes:
    return git.odb.read(pygit2.Oid(raw=oid))[1]


def size_of(git: pygit2.Repository, oid: bytes) -> int:
    """Return the size of an object in bytes."""
    return git.odb.read_header(pygit2.Oid(raw=oid))[1]


def entry_at(git: pygit2.Repository, commit: pygit2.Commit, parts: Sequence[bytes]) -> File | None:
    """Return the entry at a path of a commit, or None."""
    found: File = FOLDER_MODE, commit.tree_id.raw
    for part in parts:
        if found[0] != FOLDER_MODE:
            return None
        entries = {name: (mode, oid) for name, mode, oid in tree_entries(read_object(git, found[1]))}
        if part not in entries:
            return None
        found = entries[part]
    return found


def tree_of(git: pygit2.Repository, commit: pygit2.Commit | None, paths: Sequence[str]) -> pygit2.Tree:
    """Return the tree of a commit, reduced to some paths; an empty one without a commit."""
    if commit is not None and not paths:
        return commit.tree
    found = {b"/".join(parts): entry_at(git, commit, parts) for parts in map(parts_of, paths)} if commit else {}
    if b"" in found and commit is not None:
        return commit.tree
    shortest: dict[bytes, File] = {}
    for path, entry in sorted(found.items()):
        if entry is not None and not any(path.startswith(known + b"/") for known in shortest):
            shortest[path] = entry
    return write_tree(git, shortest)


def chosen(files: Mapping[bytes, File], paths: Sequence[str]) -> Mapping[bytes, File]:
    """Return the files at and below some paths; all without paths."""
    wanted = [b"/".join(parts_of(path)) for path in paths]
    if not wanted or b"" in wanted:
        return files
    folders = tuple(path + b"/" for path in wanted)
    return {path: file for path, file in files.items() if path in wanted or path.startswith(folders)}


def compared(old: pygit2.Tree, new: pygit2.Tree, context: int = 3) -> pygit2.Diff:
    flags = DiffOption.INCLUDE_TYPECHANGE
    found = old.diff_to_tree(new, flags=flags, context_lines=context, interhunk_lines=0)
    found.find_similar(flags=DiffFind.FIND_RENAMES)
    return found


def changed_file(delta: pygit2.DiffDelta) -> Changed:
    state = STATES.get(delta.status, "modified")
    changed: Changed = {"path": shown(delta.new_file.raw_path), "staged": state, "unstaged": "unmodified"}
    if state in {"renamed", "copied"}:
        changed["old_path"] = shown(delta.old_file.raw_path)
    return changed


def unstaged_state(index: GitIndex, path: bytes, now: File | None) -> State:
    if now is None:
        return "deleted"
    if path in index.planned:
        return "added"
    return "modified" if now[0] >> 12 == index.files[path][0] >> 12 else "type_changed"


def change_of(compared: pygit2.Diff, max_bytes: int, conflicts: frozenset[bytes] = frozenset()) -> Change:
    files: list[FileChange] = []
    text, size = bytearray(), 0
    for patch in compared:
        if patch is None:
            continue
        delta, (_, added, removed) = patch.delta, patch.line_stats
        path = delta.new_file.raw_path
        change: FileChange = {
            "path": shown(path),
            "state": "unmerged" if path in conflicts else STATES.get(delta.status, "modified"),
            "added": None if delta.is_binary else added,
            "removed": None if delta.is_binary else removed,
        }
        if delta.status in {DeltaStatus.RENAMED, DeltaStatus.COPIED}:
            change["old_path"] = shown(delta.old_file.raw_path)
        files.append(change)
        data = _unquoted(patch.data)
        size += len(data)
        if len(text) <= max_bytes:
            text += data
    if size > max_bytes:
        del text[text.rfind(b"\n", 0, max_bytes) + 1 :]
    return {"files": files, "patch": text.decode("utf-8", "replace"), "truncated": size > max_bytes}


def _unquoted(patch: bytes) -> bytes:
    """Decode names that aren't ASCII, which git writes as octal numbers."""
    head, mark, rest = patch.partition(b"\n@@ ")

    def plain(found: re.Match[bytes]) -> bytes:
        name = re.sub(rb"\\([23]\d\d)", lambda each: bytes([int(each[1], 8)]), found[1])
        return b'"' + name + b'"' if b"\\" in name else name

    return re.sub(rb'"((?:[^"\\]|\\.)*)"', plain, head) + mark + rest
