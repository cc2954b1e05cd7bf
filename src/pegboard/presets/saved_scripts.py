"""Saved scripts: bash files `NAME.sh` in one folder."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pegboard.errors import SavedScriptError
from pegboard.models import SavedScript
from pegboard.presets.files import normal, rename
from pegboard.storage import make_folder, write

_SUFFIX: Final = ".sh"
_LONGEST: Final = 240
"""Maximum length of a file name, in bytes."""
_UNSAFE: Final = frozenset('/\\:*?"<>|')
_DEVICES: Final = frozenset({
    "AUX", "CON", "NUL", "PRN", *(f"COM{number}" for number in range(10)), *(f"LPT{number}" for number in range(10)),
})  # fmt: skip


class SavedScripts:
    """The user's saved scripts.

    Every method does blocking I/O and may be called from any thread or process. A script's name is its file name,
    with or without `.sh`. A new name must be valid on every operating system. Symbolic links are not followed.

    Args:
        root: Folder of the scripts; it is created when needed.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @staticmethod
    def name_of(typed: str) -> str:
        """Return the name of the script that a text names: normalized, without `.sh`, even if it is repeated."""
        return _named(typed)

    def list(self) -> tuple[SavedScript, ...]:
        """Return all scripts, sorted by name.

        Raises:
            SavedScriptError: The folder can't be read.
        """
        found = []
        for name, file in self._files().items():
            try:
                changed = file.stat(follow_symlinks=False).st_mtime
            except FileNotFoundError:  # another process has just deleted it
                continue
            found.append(SavedScript(name=name, changed=datetime.fromtimestamp(changed, UTC)))
        return tuple(sorted(found, key=lambda script: (script.name.casefold(), script.name)))

    def read(self, name: str) -> str:
        """Return the text of a script.

        Raises:
            SavedScriptError: No script has this name, or its file can't be read.
        """
        file = self._existing(name)
        try:
            return file.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SavedScriptError(f"The script `{file.stem}` is not UTF-8.") from error
        except OSError as error:
            raise _failure(file.stem, "read", error) from error

    def write(self, name: str, text: str, *, replace: bool = True) -> None:
        """Save a script.

        Args:
            name: Its name.
            text: The script.
            replace: Whether to replace an existing one.

        Raises:
            SavedScriptError: The name is invalid or, without `replace`, taken, or the file can't be written.
        """
        name = _checked(name)
        file = self._place(name)
        try:
            make_folder(self._root)
            write(file, text.encode(), replace=replace)
        except UnicodeEncodeError as error:
            raise SavedScriptError(
                f"The script `{name}` was not saved because it contains an invalid character (a lone surrogate)."
            ) from error
        except OSError as error:
            if isinstance(error, FileExistsError) and file.exists():
                raise SavedScriptError(f"A script named `{name}` already exists. Choose another name.") from error
            raise _failure(name, "written", error) from error

    def rename(self, old: str, new: str) -> None:
        """Rename a script without replacing another one.

        Raises:
            SavedScriptError: No script has the old name, the new name is taken or invalid, or renaming fails.
        """
        file, new = self._existing(old), _checked(new)
        if normal(file.stem) == new:
            return
        target = self._place(new, instead_of=normal(file.stem))
        try:
            rename(file, target)
        except FileExistsError as error:
            raise SavedScriptError(f"A script named `{new}` already exists. Choose another name.") from error
        except OSError as error:
            raise _failure(file.stem, "renamed", error) from error

    def delete(self, name: str) -> None:
        """Delete a script.

        Raises:
            SavedScriptError: No script has this name, or its file can't be deleted.
        """
        file = self._existing(name)
        try:
            file.unlink()
        except OSError as error:
            raise _failure(file.stem, "deleted", error) from error

    def _place(self, name: str, instead_of: str | None = None) -> Path:
        """Return the file of a script that may not exist yet.

        Raises:
            SavedScriptError: The name differs from another script's (except `instead_of`) only in case.
        """
        files = self._files()
        if name in files and instead_of is None:
            return files[name]
        for other in files:
            if other.casefold() == name.casefold() and other != instead_of:
                difference = "" if other == name else "; the names differ only in case"
                raise SavedScriptError(f"A script named `{other}` already exists{difference}. Choose another name.")
        file = self._root / (name + _SUFFIX)
        if file.is_symlink():
            raise SavedScriptError(
                f"{file.name} is a symbolic link, which Pegboard does not follow. Choose another name."
            )
        return file

    def _existing(self, name: str) -> Path:
        files = self._files()
        found = files.get(_named(name))
        if found is None:
            raise SavedScriptError(f"No saved script is named `{name}`.{_others(files)}")
        return found

    def _files(self) -> dict[str, Path]:
        try:
            with os.scandir(self._root) as entries:
                names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SavedScriptError(f"The scripts can't be read: {error.strerror or error}.") from error
        return {
            _named(name): self._root / name
            for name in sorted(names, reverse=True)
            if name.endswith(_SUFFIX) and not name.startswith(".")
        }


def _failure(name: str, done: str, error: OSError) -> SavedScriptError:
    return SavedScriptError(f"The script `{name}` can't be {done}: {error.strerror or error}.")


def _others(names: Iterable[str]) -> str:
    known = sorted(names, key=str.casefold)
    return f" Saved scripts: {', '.join(known[:10])}{', …' if len(known) > 10 else ''}." if known else ""


def _named(typed: str) -> str:
    name = normal(typed)
    while name.endswith(_SUFFIX):
        name = normal(name.removesuffix(_SUFFIX))
    return name


def _checked(name: str) -> str:
    """Return the normalized name of a new script.

    Raises:
        SavedScriptError: The name is not a valid file name on every operating system.
    """
    name = _named(name)
    if not name:
        raise SavedScriptError("Enter a name for the script.")
    unsafe = next((sign for sign in name if sign in _UNSAFE or not sign.isprintable()), None)
    if unsafe is not None:
        raise SavedScriptError(f"The name contains {unsafe!r}, which file names can't contain. Choose another name.")
    if name[0] in ".-" or name[-1] == ".":
        raise SavedScriptError("The name must not start with a dot or a dash or end with a dot. Choose another name.")
    if name.partition(".")[0].rstrip().upper() in _DEVICES:
        raise SavedScriptError(f"`{name}` is a reserved device name on Windows. Choose another name.")
    if len(os.fsencode(name + _SUFFIX)) > _LONGEST:
        raise SavedScriptError("The name is too long for a file. Choose a shorter one.")
    return name
