"""Validation of the user's theme files; a start without such files loads neither this nor pydantic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from rich.errors import StyleSyntaxError
from rich.style import Style
from textual.color import Color, ColorParseError

_TEXT_STYLES = frozenset(
    {"none", "not", "bold", "dim", "italic", "underline", "reverse", "strike", "blink", "overline"}
)

_ANSI_VARIABLES = {"ansi-background": "ansi_default", "ansi-foreground": "ansi_default"}
"""Variables that Textual's styles require of a theme with `ansi`, and derives for no theme."""


def _color(value: str) -> str:
    try:
        Color.parse(value)
    except ColorParseError as error:
        raise ValueError(f"{value!r} is not a color") from error
    return value


class InvalidThemeError(ValueError):
    """A value of a theme file is invalid.

    Args:
        key: Its key in the file.
        reason: The reason.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"`{key}`: {reason}")
        self.key = key


def _check_variable(name: str, value: str) -> None:
    """Reject a variable that would make Textual's CSS fail only when it is used."""
    words = value.split()
    if not words or not re.fullmatch(r"[a-z0-9-]+", name):
        raise ValueError(f"`{name}` should be the name of a variable, with a value")
    if "style" in name:
        unknown = sorted(set(words) - _TEXT_STYLES)
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not a text style")
        try:
            Style.parse(" ".join(words))
        except StyleSyntaxError:
            raise ValueError(f"{value!r} can't be combined: `none` is used alone, `not` before a style") from None
        return
    if words[0] != "auto":
        _color(words[0])
    if len(words) > 2 or (len(words) == 2 and not re.fullmatch(r"\d+(\.\d+)?%", words[1])):
        raise ValueError(f"{value!r} should be a color, perhaps with a percentage")


ColorText: TypeAlias = Annotated[str, AfterValidator(_color)]
"""A color in Textual's notation: `#e2a457`, `rgb(…)`, a name, `ansi_yellow`."""


Number: TypeAlias = Annotated[float, Field(ge=-100, le=100)]
"""A number from which Textual can derive colors: not infinite, and not too large for its calculations."""


class ThemeFile(BaseModel):
    """Content of a theme file. Textual derives the missing colors from the others."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    name: Annotated[str, Field(min_length=1)]
    primary: ColorText
    secondary: ColorText = ""
    warning: ColorText = ""
    error: ColorText = ""
    success: ColorText = ""
    accent: ColorText = ""
    foreground: ColorText = ""
    background: ColorText = ""
    surface: ColorText = ""
    panel: ColorText = ""
    boost: ColorText = ""
    dark: bool = True
    ansi: bool = False
    """Whether the theme uses the terminal's own colors."""
    luminosity_spread: Number = 0.15
    text_alpha: Number = 0.95
    variables: dict[str, str] = Field(default_factory=dict)
    """Textual's variables, such as `text-muted` or `footer-background`."""


def validated(content: Mapping[str, object]) -> dict[str, Any]:
    """Return the values of a theme file.

    Raises:
        InvalidThemeError: One is invalid.
    """
    try:
        described = ThemeFile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidThemeError(where, first["msg"].removeprefix("Value error, ")) from error
    for name, value in described.variables.items():
        try:
            _check_variable(name, value)
        except ValueError as error:
            raise InvalidThemeError(f"variables.{name}", str(error)) from error
    if described.ansi:
        described.variables = _ANSI_VARIABLES | described.variables
    return described.model_dump(exclude_unset=True)
