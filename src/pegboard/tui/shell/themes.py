"""Themes: TOML files, ours and the user's, and the one that was chosen."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from textual.color import Color, ColorParseError
from textual.theme import Theme

from pegboard import storage
from pegboard.models import Problem

_TEXT_STYLES = frozenset(
    {"none", "not", "bold", "dim", "italic", "underline", "reverse", "strike", "blink", "overline"}
)
_INSTALLED = Path(__file__).parents[2] / "themes"
_CHECKOUT = Path(__file__).parents[4] / "themes"


def _colour(value: str) -> str:
    try:
        Color.parse(value)
    except ColorParseError as error:
        raise ValueError(f"{value!r} is no colour") from error
    return value


def _variables(variables: dict[str, str]) -> dict[str, str]:
    """Refuses what Textual's CSS would trip over only when it is used."""
    for name, value in variables.items():
        words = value.split()
        if not words or not re.fullmatch(r"[a-z0-9-]+", name):
            raise ValueError(f"`{name}` should be the name of a variable, with a value")
        if "style" in name:
            unknown = sorted(set(words) - _TEXT_STYLES)
            if unknown:
                raise ValueError(f"`{name}`: {unknown[0]!r} is no text style")
            continue
        if words[0] != "auto":
            _colour(words[0])
        if len(words) > 2 or (len(words) == 2 and not re.fullmatch(r"\d+(\.\d+)?%", words[1])):
            raise ValueError(f"`{name}` should be a colour, perhaps with a percentage: {value!r}")
    return variables


Colour: TypeAlias = Annotated[str, AfterValidator(_colour)]
"""A colour as Textual reads it: `#e2a457`, `rgb(…)`, a name, `ansi_yellow`."""

Fingerprint: TypeAlias = tuple[tuple[str, int, int], ...]
"""What a change of any theme file changes."""


def shipped() -> Path:
    """Gives the folder of the themes that Pegboard brings along, of a wheel or of a checkout."""
    return _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT


def load(folders: Iterable[Path]) -> tuple[list[Theme], list[Problem]]:
    """Reads every theme of the folders; a later folder's theme replaces an earlier one's of the same name.

    Args:
        folders: Folders of `*.toml`; one that doesn't exist has none.

    Returns:
        The themes, and what is wrong with files that gave none.
    """
    themes: dict[str, Theme] = {}
    problems: list[Problem] = []
    for file in _files(folders):
        try:
            theme = read(file)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            problems.append(
                Problem(message=f"The theme {file.name} can't be used: {reason}.", file=str(file), severity="warning")
            )
        else:
            themes[theme.name] = theme
    return list(themes.values()), problems


def read(file: Path) -> Theme:
    """Reads one theme.

    Raises:
        OSError: The file can't be read.
        ValueError: It isn't a theme; the message says why.
    """
    try:
        described = ThemeFile.model_validate({"name": file.stem} | tomllib.loads(file.read_bytes().decode()))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"`{where}`: {first['msg'].removeprefix('Value error, ')}") from error
    return Theme(**described.model_dump(exclude_unset=True))


def fingerprint(folders: Iterable[Path]) -> Fingerprint:
    """Gives what tells whether a theme file came, went or changed; reads the disk."""
    stats: list[tuple[str, int, int]] = []
    for file in _files(folders):
        try:
            stat = file.stat()
        except OSError:
            continue
        stats.append((str(file), stat.st_mtime_ns, stat.st_size))
    return tuple(stats)


class ThemeFile(BaseModel):
    """A theme as its file has it; what is left out, Textual derives from the rest."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    primary: Colour
    secondary: Colour = ""
    warning: Colour = ""
    error: Colour = ""
    success: Colour = ""
    accent: Colour = ""
    foreground: Colour = ""
    background: Colour = ""
    surface: Colour = ""
    panel: Colour = ""
    boost: Colour = ""
    dark: bool = True
    ansi: bool = False
    """Whether the colours are the terminal's own."""
    luminosity_spread: float = 0.15
    text_alpha: float = 0.95
    variables: Annotated[dict[str, str], AfterValidator(_variables)] = Field(default_factory=dict)
    """Of Textual's, such as `text-muted` or `footer-background`."""


class Themes:
    """The themes of some folders as they were when last looked at.

    Args:
        folders: Of two themes with one name the later folder's counts.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._fingerprint: Fingerprint = ()
        self.themes: Sequence[Theme] = ()
        self.problems: tuple[Problem, ...] = ()
        self.refresh()

    def refresh(self) -> bool:
        """Reads the folders again if any file came, went or changed; says whether one did."""
        seen = fingerprint(self._folders)
        if seen == self._fingerprint:
            return False
        self._fingerprint = seen
        themes, problems = load(self._folders)
        self.themes, self.problems = themes, tuple(problems)
        return True


class ThemeChoice:
    """The theme that was chosen on the screen; a theme set in the config later than that wins.

    Args:
        file: Where the choice is kept.
        configured: The theme of the config.
    """

    def __init__(self, file: Path, configured: str) -> None:
        self._file = file
        self._configured = configured

    def get(self) -> str:
        """Gives the theme to begin with."""
        try:
            chosen, _, configured = self._file.read_text("utf-8").partition("\n")
        except (OSError, UnicodeDecodeError):
            return self._configured
        return chosen if chosen and configured.strip() == self._configured else self._configured

    def keep(self, theme: str) -> None:
        """Keeps a choice for the next start.

        Raises:
            OSError: It can't be written.
        """
        storage.make_folder(self._file.parent)
        storage.write(self._file, f"{theme}\n{self._configured}\n".encode())


def _files(folders: Iterable[Path]) -> Sequence[Path]:
    found: list[Path] = []
    for folder in folders:
        try:
            found += sorted(path for path in folder.iterdir() if path.suffix == ".toml")
        except OSError:
            continue
    return found
