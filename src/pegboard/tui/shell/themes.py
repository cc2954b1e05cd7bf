"""Themes as TOML files, and the chosen theme."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from textual.color import Color, ColorParseError
from textual.theme import Theme

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
        raise ValueError(f"{value!r} is not a colour") from error
    return value


def _variables(variables: dict[str, str]) -> dict[str, str]:
    """Reject variables that would make Textual's CSS fail only when they are used."""
    for name, value in variables.items():
        words = value.split()
        if not words or not re.fullmatch(r"[a-z0-9-]+", name):
            raise ValueError(f"`{name}` should be the name of a variable, with a value")
        if "style" in name:
            unknown = sorted(set(words) - _TEXT_STYLES)
            if unknown:
                raise ValueError(f"`{name}`: {unknown[0]!r} is not a text style")
            continue
        if words[0] != "auto":
            _colour(words[0])
        if len(words) > 2 or (len(words) == 2 and not re.fullmatch(r"\d+(\.\d+)?%", words[1])):
            raise ValueError(f"`{name}` should be a colour, perhaps with a percentage: {value!r}")
    return variables


Colour: TypeAlias = Annotated[str, AfterValidator(_colour)]
"""A colour in Textual's notation: `#e2a457`, `rgb(…)`, a name, `ansi_yellow`."""

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
            problems.append(
                Problem(message=f"The theme {file.name} can't be used: {reason}.", file=str(file), severity="warning")
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
    content = {"name": file.stem} | tomllib.loads(file.read_bytes().decode())
    if file.parent == shipped():
        return Theme(**content)  # Tests validate these, and building the validator would delay every start.
    try:
        described = ThemeFile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"`{where}`: {first['msg'].removeprefix('Value error, ')}") from error
    return Theme(**described.model_dump(exclude_unset=True))


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


class ThemeFile(BaseModel):
    """Content of a theme file. Textual derives the missing colours from the others."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

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
    """Whether the theme uses the terminal's own colours."""
    luminosity_spread: float = 0.15
    text_alpha: float = 0.95
    variables: Annotated[dict[str, str], AfterValidator(_variables)] = Field(default_factory=dict)
    """Textual's variables, such as `text-muted` or `footer-background`."""


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
