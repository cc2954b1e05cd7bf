"""The files of saved scripts: bash, one a file, `NAME.sh`, in one folder and nowhere else."""

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
"""Bytes that the name of a file may have."""
_UNSAFE: Final = frozenset('/\\:*?"<>|')
_DEVICES: Final = frozenset({
    "AUX", "CON", "NUL", "PRN", *(f"COM{number}" for number in range(10)), *(f"LPT{number}" for number in range(10)),
})  # fmt: skip


class SavedScripts:
    """The scripts that the user keeps.

    Every method reads or writes the disk, and may be called from any thread and in any number of processes. A name is
    that of the file, with or without its `.sh`; a new one must be legal on every system. Links are not followed.

    Args:
        root: The folder they are kept in; it needn't exist.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def list(self) -> tuple[SavedScript, ...]:
        """Gives the scripts by name.

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
        """Gives the text of a script.

        Raises:
            SavedScriptError: There is none of that name, or its file can't be read.
        """
        file = self._existing(name)
        try:
            return file.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SavedScriptError(f"The script `{file.stem}` is not UTF-8.") from error
        except OSError as error:
            raise _failure(file.stem, "read", error) from error

    def write(self, name: str, text: str) -> None:
        """Keeps a script under a name, in the place of what was there.

        Raises:
            SavedScriptError: The name won't do, or the file can't be written.
        """
        name = _checked(name)
        file = self._place(name)
        try:
            make_folder(self._root)
            write(file, text.encode())
        except UnicodeEncodeError as error:
            raise SavedScriptError(f"The script `{name}` has a character that no file can have.") from error
        except OSError as error:
            raise _failure(name, "written", error) from error

    def rename(self, old: str, new: str) -> None:
        """Gives a script another name, but never that of another script.

        Raises:
            SavedScriptError: There is none of the old name, there is one of the new, the new one won't do, or the file
                can't be renamed.
        """
        file, new = self._existing(old), _checked(new)
        if normal(file.stem) == new:
            return
        target = self._place(new, instead_of=normal(file.stem))
        try:
            rename(file, target)
        except FileExistsError as error:
            raise SavedScriptError(f"There is a script `{new}` already.") from error
        except OSError as error:
            raise _failure(file.stem, "renamed", error) from error

    def delete(self, name: str) -> None:
        """Throws a script away.

        Raises:
            SavedScriptError: There is none of that name, or its file can't be deleted.
        """
        file = self._existing(name)
        try:
            file.unlink()
        except OSError as error:
            raise _failure(file.stem, "deleted", error) from error

    def _place(self, name: str, instead_of: str | None = None) -> Path:
        """Gives the file of a script that may not exist yet."""
        files = self._files()
        if name in files and instead_of is None:
            return files[name]
        for other in files:
            if other.casefold() == name.casefold() and other != instead_of:
                difference = "" if other == name else ", whose name differs only in upper and lower case"
                raise SavedScriptError(f"There is a script `{other}` already{difference}.")
        file = self._root / (name + _SUFFIX)
        if file.is_symlink():
            raise SavedScriptError(f"There is a link of the name {file.name}, which is not followed.")
        return file

    def _existing(self, name: str) -> Path:
        files = self._files()
        found = files.get(_named(name))
        if found is None:
            raise SavedScriptError(f"There is no saved script `{name}`{_others(files)}.")
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
    return f"; there are: {', '.join(known[:10])}{', …' if len(known) > 10 else ''}" if known else ""


def _named(name: str) -> str:
    return normal(normal(name).removesuffix(_SUFFIX))


def _checked(name: str) -> str:
    """Gives a name as that of a new file.

    Raises:
        SavedScriptError: There is a system on which no file can have it.
    """
    name = _named(name)
    if not name:
        raise SavedScriptError("A script needs a name.")
    unsafe = next((sign for sign in name if sign in _UNSAFE or not sign.isprintable()), None)
    if unsafe is not None:
        raise SavedScriptError(f"The name of a script can't have {unsafe!r} in it, as it is that of a file.")
    if name[0] in ".-" or name[-1] == ".":
        raise SavedScriptError("The name of a script can't begin with a dot or a dash, nor end with a dot.")
    if name.partition(".")[0].rstrip().upper() in _DEVICES:
        raise SavedScriptError(f"`{name}` is no name for a file on every system: Windows has a device of that name.")
    if len(os.fsencode(name + _SUFFIX)) > _LONGEST:
        raise SavedScriptError("The name of the script is too long for a file.")
    return name
