"""Colors of themes in terminals that don't have all of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import product
from typing import TYPE_CHECKING, Final

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color, Lab, rgb_to_lab
from textual.filter import LineFilter

from pegboard.config import Appearance

if TYPE_CHECKING:
    from rich.console import Console

_CUBE: Final = 16
"""Number of the first color of the cube of 6 × 6 × 6 colors."""
_LEVELS: Final = (0, 95, 135, 175, 215, 255)
"""Levels of each component in the cube, in xterm and the terminals that follow it."""
_GRAYS: Final = 232
"""Number of the first of 24 grays."""


class NearestColors(LineFilter):
    """Replacement of all colors by the nearest ones of a terminal with 256 colors.

    Rich would round each component, which makes the dark, slightly blue colors of a theme navy.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return segments with only colors that the terminal has."""
        del background
        return [Segment(text, _nearest_style(style) if style else style, control) for text, style, control in segments]


def filters_of(console: Console) -> tuple[LineFilter, ...]:
    """Return the filters that a terminal needs to show all colors of a theme: none if it has them."""
    return (NearestColors(),) if console.color_system == "256" else ()


def default_theme(console: Console) -> str:
    """Return the name of the theme for users who didn't choose one: in 16 colors, no other can be read."""
    return "pegboard-16" if console.color_system in {"standard", "windows"} else Appearance.theme


@lru_cache(4096)
def _nearest_style(style: Style) -> Style:
    return style + Style.from_color(_nearest(style.color), _nearest(style.bgcolor))


@lru_cache(16_384)  # an image has thousands
def _nearest(color: RichColor | None) -> RichColor | None:
    """Return the nearest of the colors, by the distance in the CIELAB color space; a color of the terminal itself."""
    if color is None or color.triplet is None:
        return color
    wanted = rgb_to_lab(Color(*color.triplet))
    return RichColor.from_ansi(min(_around(*color.triplet), key=lambda number: _distance(_lab(number), wanted)))


def _around(red: int, green: int, blue: int) -> Iterator[int]:
    """Yield the corners of the part of the color cube that contains a color, and the grays of about its brightness."""
    ends = [
        (above - (above > 0 and _LEVELS[above] != level), above)
        for level in (red, green, blue)
        for above in (bisect_left(_LEVELS, level),)
    ]
    for of_red, of_green, of_blue in product(*ends):
        yield _CUBE + 36 * of_red + 6 * of_green + of_blue
    gray = min(max((red + green + blue) // 30, 1), 22)
    yield from range(_GRAYS + gray - 1, _GRAYS + gray + 2)


@cache
def _lab(number: int) -> Lab:
    return rgb_to_lab(Color(*RichColor.from_ansi(number).get_truecolor()))


def _distance(one: Lab, other: Lab) -> float:
    """Return the square of the distance of two colors."""
    return (one.L - other.L) ** 2 + (one.a - other.a) ** 2 + (one.b - other.b) ** 2
