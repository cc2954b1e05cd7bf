"""TOML parsed with one error for everything that a text can have wrong."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from pegboard.errors import PegboardError

_LINE = re.compile(r"\(at line (\d+), column \d+\)")


class TomlError(PegboardError, ValueError):
    """A text can't be parsed as TOML; the message is the reason.

    Attributes:
        line: Number of the wrong line, from 1, or None if unknown.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        TomlError: The text is not TOML, is nested too deeply, or has a number with too many digits.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _LINE.search(str(error))  # otherwise the error is at the end of the document
        raise TomlError(str(error), int(place[1]) if place else text.rstrip("\n").count("\n") + 1) from None
    except RecursionError:
        raise TomlError("it is nested too deeply") from None
    except ValueError:  # an integer of more digits than Python reads
        raise TomlError("it has a number with too many digits") from None
