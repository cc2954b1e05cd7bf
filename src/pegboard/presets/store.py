"""Preset files: one folder per tool, one TOML file per preset.

Files are replaced atomically. A file that can't be read is reported as a problem and kept; saving a preset of the same
name sets it aside.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from pegboard.errors import PresetError
from pegboard.models import JsonObject, Preset, Problem
from pegboard.presets.files import file_name, normal, plain_name, rename
from pegboard.presets.toml_text import TomlTextError, read_toml, write_toml
from pegboard.storage import make_folder, rename_to_new, write

_SUFFIX = ".toml"
_LONGEST = 240
"""Maximum length of a file name, in bytes; leaves space for a longer suffix."""


class Presets:
    """The presets of all tools.

    Every method does blocking I/O and may be called from any thread or process.

    Args:
        root: Folder of the presets; it is created when needed.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._problems: dict[Path, Problem] = {}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems found when the files were last read."""
        return tuple(dict(self._problems).values())

    def of(self, tool: str) -> tuple[Preset, ...]:
        """Return the presets of a tool, sorted by name. Unreadable files are in `problems` instead."""
        return tuple(preset for name, file in self._files(tool) if (preset := self._read(tool, name, file)))

    def has(self, tool: str, name: str) -> bool:
        """Return whether a tool has a preset, even a damaged one."""
        return normal(name) in dict(self._files(tool))

    def tools(self) -> tuple[str, ...]:
        """Return the names of all tools that have presets."""
        names = sorted(plain_name(folder.name) for folder in self._list(self._root) if os.path.isdir(folder))  # noqa: PTH112
        return tuple(name for name in names if next(self._files(name), None) is not None)

    def save(self, tool: str, name: str, arguments: JsonObject, *, replace: bool = True) -> Preset:
        """Save arguments as a preset.

        Args:
            tool: Qualified name of the tool.
            name: Name of the preset; surrounding white space is removed.
            arguments: Arguments to save, valid or not.
            replace: Whether to replace an existing preset.

        Raises:
            PresetError: The name or the arguments are invalid, the name is taken, or the file can't be written.
        """
        name = _checked(name)
        file = self._place(tool, name)
        try:
            text = write_toml(arguments)
        except TomlTextError as error:
            raise PresetError(
                f"The preset was not saved because its arguments can't be written as TOML: {error}."
            ) from error
        try:
            make_folder(file.parent)
            if replace:
                self._set_aside(tool, name, file)
            write(file, text.encode(), replace=replace)
        except FileExistsError as error:
            raise PresetError(f"A preset named `{name}` already exists. Choose another name.") from error
        except OSError as error:
            raise PresetError(f"The preset `{name}` can't be written: {error.strerror or error}.") from error
        return Preset(tool=tool, name=name, arguments=arguments)

    def delete(self, tool: str, name: str) -> None:
        """Delete a preset, even a damaged one.

        Raises:
            PresetError: No preset has this name, or its file can't be deleted.
        """
        file = self._existing(tool, name)
        try:
            file.unlink()
        except OSError as error:
            raise PresetError(f"The preset `{name}` can't be deleted: {error.strerror or error}.") from error
        self._problems.pop(file, None)

    def rename(self, tool: str, old: str, new: str) -> None:
        """Rename a preset without replacing another one.

        Raises:
            PresetError: No preset has the old name, the new name is taken, or the file can't be renamed.
        """
        file, new = self._existing(tool, old), _checked(new)
        if new == normal(old):
            return
        target = self._place(tool, new, instead_of=normal(old))
        try:
            rename(file, target)
        except FileExistsError as error:
            raise PresetError(f"A preset named `{new}` already exists. Choose another name.") from error
        except OSError as error:
            raise PresetError(f"The preset `{old}` can't be renamed: {error.strerror or error}.") from error
        self._problems.pop(file, None)

    def _place(self, tool: str, name: str, instead_of: str | None = None) -> Path:
        """Return the file of a preset that may not exist yet.

        Raises:
            PresetError: The name is too long, differs from another preset's (except `instead_of`) only in case, which
                some file systems ignore, or is taken although it is to replace `instead_of`.
        """
        for other, file in self._files(tool):
            if other == name and instead_of is None:
                return file
            if other.casefold() == name.casefold() and other != instead_of:
                difference = "" if other == name else "; the names differ only in case"
                raise PresetError(f"A preset named `{other}` already exists{difference}. Choose another name.")
        folder = self._folder(tool)
        for label, part in (("tool", folder.name), ("preset", file_name(name) + _SUFFIX)):
            if len(os.fsencode(part)) > _LONGEST:
                raise PresetError(f"The name of the {label} is too long for a file.")
        return folder / (file_name(name) + _SUFFIX)

    def _existing(self, tool: str, name: str) -> Path:
        found = dict(self._files(tool)).get(normal(name))
        if found is None:
            raise PresetError(f"{tool} has no preset `{name}`.")
        return found

    def _files(self, tool: str) -> Iterator[tuple[str, Path]]:
        folder = self._folder(tool)
        listed = self._list(folder)
        files = {
            normal(plain_name(file.stem)): file
            for file in sorted(listed, reverse=True)
            if file.suffix == _SUFFIX and not file.name.startswith(".")
        }
        for file in [*self._problems]:
            if file.parent == folder and file not in listed:  # it was deleted
                self._problems.pop(file, None)
        yield from sorted(files.items(), key=lambda item: (item[0].casefold(), item[0]))

    def _folder(self, tool: str) -> Path:
        return self._root / file_name(tool)

    def _list(self, folder: Path) -> list[Path]:
        try:
            found = list(folder.iterdir())
        except FileNotFoundError:
            found = []
        except OSError as error:
            self._report(folder, f"The presets can't be read: {error.strerror or error}.")
            return []
        self._problems.pop(folder, None)
        return found

    def _read(self, tool: str, name: str, file: Path) -> Preset | None:
        line: int | None = None
        try:
            arguments = read_toml(file.read_bytes().decode("utf-8-sig"))
        except FileNotFoundError:  # deleted by another process
            return None
        except OSError as error:
            reason = f"can't be read: {error.strerror or error}"
        except UnicodeDecodeError:
            reason = "is not UTF-8"
        except TomlTextError as error:
            reason, line = str(error), error.line
        else:
            self._problems.pop(file, None)
            return Preset(tool=tool, name=name, arguments=arguments)
        self._report(file, f"The preset `{name}` {reason}.", "Fix or delete it.", tool=tool, line=line)
        return None

    def _set_aside(self, tool: str, name: str, file: Path) -> None:
        """Rename an unreadable file that is about to be replaced."""
        if not file.exists() or self._read(tool, name, file) is not None:
            return
        for number in itertools.count(1):
            kept = file.with_name(f"{file.stem}.damaged-{number}")
            try:
                rename_to_new(file, kept)
            except FileExistsError:
                continue
            self._problems.pop(file, None)
            self._report(kept, f"The preset `{name}` could not be read and was set aside as this file.", tool=tool)
            return

    def _report(
        self, file: Path, message: str, fix: str = "", *, tool: str | None = None, line: int | None = None
    ) -> None:
        self._problems[file] = Problem(message=message, fix=fix, file=str(file), line=line, tool=tool)


def _checked(name: str) -> str:
    name = normal(name)
    if not name:
        raise PresetError("Enter a name for the preset.")
    return name
