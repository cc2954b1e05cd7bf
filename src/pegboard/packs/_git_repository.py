"""Access to a git repository without trusting it.

libgit2 works on a private copy: references, the index and a configuration reduced to harmless values are in a temporary
folder, objects are read by descriptors. Every file is resolved, checked to be inside the roots, and opened without
following links. So neither the configuration of the repository nor a link that is replaced meanwhile has any effect.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pygit2
from pygit2.enums import RepositoryOpenFlag

from pegboard.sdk import ToolFailed

from ._git_config import GitConfig
from ._git_objects import Objects, link_packs, object_folders
from ._roots import FOLDER, PASSAGE, ResolvedPath, explained, opened, opened_file, read_all, reason, resolve

_LARGEST_FILE = 2**28
"""Bytes of an index or of packed references."""
_LARGEST_SMALL_FILE = 2**20
_MOST_REFERENCES = 100_000
_HEADS = ("ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")
_OID = re.compile(r"[0-9a-f]{40}")
_REFERENCE = re.compile(r"refs/[^\x00-\x20~^:?*\[\\\x7f]+")
_COPIED = ("shallow", "info/exclude", "info/attributes")


class Opened(NamedTuple):
    """An opened repository."""

    top: ResolvedPath
    """Its working tree."""
    folder: ResolvedPath
    """Its git directory."""
    config: GitConfig
    git: pygit2.Repository
    """The private copy; its working tree is an empty temporary folder."""
    scratch: Path
    """The temporary folder."""
    revisions: "Revisions"

    def read(self, *names: str, max_bytes: int = _LARGEST_FILE) -> bytes | None:
        """Read a file of the git directory; return None if it does not exist."""
        return _content(self.folder.below(*names), max_bytes)


class Revisions:
    """Commits by the names that users type.

    Args:
        git: The private copy.
        logs: Function that copies the reference logs, called when a revision first needs them.
    """

    def __init__(self, git: pygit2.Repository, logs: Iterator[None]) -> None:
        self._git = git
        self._logs = logs

    def commit(self, revision: str) -> pygit2.Commit:
        """Return the commit that a revision names.

        Raises:
            ToolFailed: The revision is unknown.
        """
        if "@{" in revision:
            next(self._logs, None)
        try:
            if "\0" not in revision:
                return self._git.revparse_single(revision).peel(pygit2.Commit)
        except (KeyError, ValueError, pygit2.GitError):
            pass
        raise ToolFailed(f"The revision {revision} is unknown.", code="unknown_revision")


@contextmanager
def repository(folder: str) -> Iterator[Opened]:
    """Open the repository that contains a folder.

    Args:
        folder: The folder, inside the roots; the search for the repository ends at the root.

    Raises:
        ToolFailed: The folder is in no repository, or the repository reaches outside the roots or can't be read.
    """
    place = resolve(folder)
    with explained(folder), opened(place.root, place.parts, PASSAGE):
        pass
    for length in range(len(place.parts), -1, -1):
        top = ResolvedPath(place.root, place.parts[:length])
        if (git_folder := _git_folder(top)) is not None:
            break
    else:
        raise ToolFailed(f"{folder} is not in a git repository at or below {place.root}.", code="not_a_repository")
    with readable(), _open(top, git_folder) as found:
        yield found


@contextmanager
def nested(top: ResolvedPath) -> Iterator[Opened | None]:
    """Open the repository of a submodule by its working tree; yield None if it isn't checked out.

    Raises:
        ToolFailed: It can't be read.
    """
    git_folder = _git_folder(top)
    if git_folder is None:
        yield None
        return
    with readable(), _open(top, git_folder) as found:
        yield found


@contextmanager
def readable() -> Iterator[None]:
    """Turn errors of libgit2 and of the system into failures of the tool."""
    try:
        yield
    except OSError as error:
        raise ToolFailed(f"The repository can't be read: {reason(error)}.", code="git_failed") from None
    except (pygit2.GitError, KeyError, ValueError) as error:
        said = str(error).strip("'")
        raise ToolFailed(
            f"The repository can't be read; it may be damaged or incomplete: {said}.", code="git_failed"
        ) from None


def _git_folder(top: ResolvedPath) -> ResolvedPath | None:
    """Return the git directory of a working tree; None if it has none."""
    path = top.below(".git").path
    try:
        mode = os.stat(path, follow_symlinks=False).st_mode  # noqa: PTH116 - the path is already a string
    except OSError:
        return None
    if not stat.S_ISREG(mode):
        folder = resolve(path)
        return folder if _is_git_folder(folder) else None
    content = _content(top.below(".git"), _LARGEST_SMALL_FILE) or b""
    if not content.startswith(b"gitdir:"):
        return None
    target = os.fsdecode(content.removeprefix(b"gitdir:").strip())
    return resolve(os.path.join(top.path, target))  # noqa: PTH118 - the path is already a string


def _is_git_folder(folder: ResolvedPath) -> bool:
    try:
        with opened(folder.root, folder.parts, PASSAGE) as descriptor:
            os.stat("HEAD", dir_fd=descriptor, follow_symlinks=False)
    except OSError:
        return False
    return True


@contextmanager
def _open(top: ResolvedPath, folder: ResolvedPath) -> Iterator[Opened]:
    common = _pointed(folder, "commondir") or folder
    config = GitConfig(_text(_inside(common, "config")))
    if config.is_true("extensions", "worktreeconfig", default=False):
        config = GitConfig(_text(_inside(common, "config")), _text(_inside(folder, "config.worktree")))
    for key, only in (("objectformat", "sha1"), ("refstorage", "files")):
        if (config.get("extensions", key) or only).lower() != only:
            message = f"The repository was not opened because its extensions.{key} is not supported; only {only} is."
            raise ToolFailed(message, code="git_failed")
    if (worktree := config.get("core", "worktree")) is not None:
        top = _resolved(folder, worktree)
    with TemporaryDirectory(prefix="pegboard-git-") as scratch, ExitStack() as files:
        copy = Path(scratch, ".git")
        (copy / "refs").mkdir(parents=True)
        (copy / "objects" / "pack").mkdir(parents=True)
        (copy / "info").mkdir()
        (copy / "config").write_text(config.harmless(), "utf-8", "surrogateescape")
        _copy_references(folder, common, copy)
        for name in _COPIED:
            if (content := _content(_inside(common, *name.split("/")), _LARGEST_SMALL_FILE)) is not None:
                (copy / name).write_bytes(content)
        folders = object_folders(_inside(common, "objects"))
        link_packs(folders, copy / "objects" / "pack", files)
        git = pygit2.Repository(scratch, RepositoryOpenFlag.NO_SEARCH)
        odb = pygit2.Odb()
        odb.add_backend(pygit2.OdbBackendPack(str(copy / "objects")), 2)
        odb.add_backend(Objects(folders), 1)
        git.set_odb(odb)
        revisions = Revisions(git, _copy_logs(folder, common, copy))
        try:
            yield Opened(top, folder, config, git, Path(scratch), revisions)
        finally:
            git.free()


def _pointed(folder: ResolvedPath, name: str) -> ResolvedPath | None:
    """Return the folder that a file of a git directory names; None without such a file."""
    content = _content(folder.below(name), _LARGEST_SMALL_FILE)
    return None if content is None else _resolved(folder, os.fsdecode(content.strip()))


def _resolved(folder: ResolvedPath, path: str) -> ResolvedPath:
    return resolve(os.path.join(folder.path, path))  # noqa: PTH118 - the path is already a string


def _inside(folder: ResolvedPath, *names: str) -> ResolvedPath:
    """Return the resolved path of a file of a git directory, which may be a link to another file inside the roots."""
    return resolve(folder.below(*names).path)


def _content(place: ResolvedPath, max_bytes: int) -> bytes | None:
    try:
        with opened_file(place, place.path) as file:
            return read_all(file, place.path, max_bytes)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _text(place: ResolvedPath) -> str:
    return (_content(place, _LARGEST_SMALL_FILE) or b"").decode("utf-8", "surrogateescape")


def _copy_references(folder: ResolvedPath, common: ResolvedPath, copy: Path) -> None:
    """Copy HEAD and all well-formed references."""
    head = (_content(folder.below("HEAD"), _LARGEST_SMALL_FILE) or b"").decode("utf-8", "surrogateescape").strip()
    target = head.removeprefix("ref:").strip()
    if not (_OID.fullmatch(head) or (head.startswith("ref:") and _REFERENCE.fullmatch(target))):
        raise ToolFailed("The repository can't be read: its HEAD is damaged.", code="git_failed")
    (copy / "HEAD").write_bytes(os.fsencode(head + "\n"))
    for name in _HEADS:
        content = _content(folder.below(name), _LARGEST_SMALL_FILE) or b""
        if _OID.fullmatch(first := content[:40].decode("latin-1")):
            (copy / name).write_text(first + "\n")
    targets: dict[str, str] = {}
    packed = _content(_inside(common, "packed-refs"), _LARGEST_FILE) or b""
    for line in packed.decode("utf-8", "surrogateescape").splitlines():
        oid, _, name = line.partition(" ")
        if _OID.fullmatch(oid) and _REFERENCE.fullmatch(name):
            targets[name] = oid
    for source in dict.fromkeys((common, folder)):
        for name, content in _files(_inside(source, "refs"), "refs"):
            text = content.decode("utf-8", "surrogateescape").strip()
            if not _REFERENCE.fullmatch(name):
                continue
            if _OID.fullmatch(text):
                targets[name] = text
            elif text.startswith("ref:") and _REFERENCE.fullmatch(text.removeprefix("ref:").strip()):
                _write(copy, name, os.fsencode(text + "\n"))
    lines = [f"{oid} {name}\n" for name, oid in sorted(targets.items(), key=lambda item: os.fsencode(item[0]))]
    (copy / "packed-refs").write_bytes(os.fsencode("# pack-refs with: sorted \n" + "".join(lines)))


def _copy_logs(folder: ResolvedPath, common: ResolvedPath, copy: Path) -> Iterator[None]:
    (copy / "logs").mkdir()
    if (content := _content(_inside(folder, "logs", "HEAD"), _LARGEST_FILE)) is not None:
        (copy / "logs" / "HEAD").write_bytes(content)
    for name, content in _files(_inside(common, "logs", "refs"), "refs"):
        _write(copy / "logs", name, content)
    yield


def _write(folder: Path, name: str, content: bytes) -> None:
    with suppress(OSError):  # a damaged repository may have a file and a folder of one name
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _files(place: ResolvedPath, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each file in a folder and its subfolders; skip links."""
    waiting = [(place, name)]
    count = 0
    while waiting:
        here, prefix = waiting.pop()
        try:
            with opened(here.root, here.parts, FOLDER) as folder, os.scandir(folder) as found:
                entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
        except OSError:
            continue
        for entry, is_folder in sorted(entries):
            below, full = here.below(entry), f"{prefix}/{entry}"
            if is_folder:
                waiting.append((below, full))
                continue
            count += 1
            if count > _MOST_REFERENCES:
                message = f"The repository was not opened because it has more than {_MOST_REFERENCES:,} references."
                raise ToolFailed(message, code="git_failed")
            with suppress(OSError, ToolFailed):
                if (content := _content(below, _LARGEST_FILE)) is not None:
                    yield full, content
