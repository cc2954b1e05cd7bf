"""The Python files of a folder in a commit, for comparisons of packs."""

import stat

from ._git_changes import FOLDER_MODE, entry_at, parts_of, read_object, shown, size_of
from ._git_objects import tree_entries
from ._git_repository import repository as opened_repository


def python_files(*, repository: str, folder: str, revision: str, max_bytes: int) -> dict[str, str | None]:
    """Return the text of each Python file directly in a folder of a commit, by name; empty if the folder is missing.

    Args:
        repository: Any folder of the repository.
        folder: The folder, relative to the top of the repository.
        revision: The commit: a branch, a tag, `HEAD~3`.
        max_bytes: Maximum size of a file, in bytes. Larger files, and those that aren't UTF-8, have None as their text.
    """
    with opened_repository(repository) as found:
        git, commit = found.git, found.revisions.commit(revision)
        entry = entry_at(git, commit, parts_of(folder))
        if entry is None or entry[0] != FOLDER_MODE:
            return {}
        texts: dict[str, str | None] = {}
        for name, mode, oid in tree_entries(read_object(git, entry[1])):
            # A damaged tree may contain names with slashes, which would lead out of the folder.
            if stat.S_ISREG(mode) and name.endswith(b".py") and b"/" not in name:
                is_too_large = size_of(git, oid) > max_bytes
                texts[shown(name)] = None if is_too_large else _text(read_object(git, oid))
        return texts


def _text(content: bytes) -> str | None:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
