"""Themes as TOML files, and the chosen theme."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from textual.theme import Theme

from pegboard import models
from pegboard.data.toml import TomlError, parse_toml

if TYPE_CHECKING:
    from pegboard.models import Problem


_INSTALLED = Path(__file__).parents[2] / "themes"
_CHECKOUT = Path(__file__).parents[4] / "themes"


Fingerprint: TypeAlias = tuple[tuple[str, int, int], ...]
"""Path, modification time and size of every theme file."""


def shipped() -> Path:
    """Return the folder of the built-in themes, in a wheel or a checkout."""
    return _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT


def load(folders: Iterable[Path]) -> tuple[list[Theme], list[Problem]]:
    """Read every theme of the folders; of two themes with one name, the later folder's wins.

    Args:
        folders: Folders of `*.toml` files; missing folders are ignored.

    Returns:
        The themes, and a problem for each file that isn't a valid theme.
    """
    themes: dict[str, Theme] = {}
    problems: list[Problem] = []
    for file in _files(folders):
        try:
            theme = read(file)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            message = f"The theme {file.name} can't be used: {reason}."
            problems.append(
                models.Problem(message=message, file=str(file), line=_line(file, error), severity="warning")
            )
        else:
            themes[theme.name] = theme
    return list(themes.values()), problems


def read(file: Path) -> Theme:
    """Read one theme.

    Raises:
        OSError: The file can't be read.
        ValueError: The file isn't a valid theme; the message contains the reason.
    """
    if file.is_fifo():  # reading one waits for a writer
        raise ValueError("it is not a regular file")
    content = {"name": file.stem} | parse_toml(file.read_bytes().decode())
    if file.parent == shipped():
        return Theme(**content)  # Tests validate these, and building the validator would delay every start.
    from pegboard.tui.shell.theme_file import validated

    return Theme(**validated(content))


def _line(file: Path, error: Exception) -> int | None:
    """Return the line of an error in a theme file; None if it has none, such as a missing key."""
    if isinstance(error, TomlError):
        return error.line
    from pegboard.config.lines import key_lines
    from pegboard.tui.shell.theme_file import InvalidThemeError

    if isinstance(error, InvalidThemeError):
        with suppress(OSError, ValueError):  # the file was changed meanwhile
            return key_lines(file.read_text(encoding="utf-8")).get(error.key)
    return None


def fingerprint(folders: Iterable[Path]) -> Fingerprint:
    """Return a value that changes when a theme file is added, removed or changed; reads the disk."""
    stats: list[tuple[str, int, int]] = []
    for file in _files(folders):
        try:
            stat = file.stat()
        except OSError:
            continue
        stats.append((str(file), stat.st_mtime_ns, stat.st_size))
    return tuple(stats)


class Themes:
    """The themes of some folders as of the last `refresh`.

    Args:
        folders: Folders with theme files; of two themes with one name, the later folder's wins.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._fingerprint: Fingerprint = ()
        self.themes: Sequence[Theme] = ()
        self.problems: tuple[Problem, ...] = ()
        self.refresh()

    def refresh(self) -> bool:
        """Read the folders again if a file changed; return whether one did."""
        seen = fingerprint(self._folders)
        if seen == self._fingerprint:
            return False
        self._fingerprint = seen
        themes, problems = load(self._folders)
        self.themes, self.problems = themes, tuple(problems)
        return True


def _files(folders: Iterable[Path]) -> Sequence[Path]:
    found: list[Path] = []
    for folder in folders:
        try:
            found += sorted(path for path in folder.iterdir() if path.suffix == ".toml")
        except OSError:
            continue
    return found
