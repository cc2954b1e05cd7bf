"""What is wrong, said so that a user can mend it."""

from __future__ import annotations

from typing import Literal

from pegboard.models.model import Model


class Problem(Model):
    """Something wrong with a file, a pack, a tool, a setting: shown, never raised."""

    message: str
    """One sentence: what is wrong."""
    fix: str = ""
    """What to do about it; empty where the message says it already."""
    severity: Literal["error", "warning", "hint"] = "error"
    """An error hides or breaks something; a warning doesn't; a hint may be as intended."""
    file: str | None = None
    """The file it is in, as an absolute path."""
    line: int | None = None
    """The line in that file, from 1."""
    pack: str | None = None
    """The pack it belongs to, where known."""
    tool: str | None = None
    """The qualified tool it belongs to, where known."""

    @property
    def rank(self) -> int:
        """Place in a list of problems: errors first, hints last."""
        return ("error", "warning", "hint").index(self.severity)

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        return f"{where}{self.message}{' ' + self.fix if self.fix else ''}"


class Fault(Model):
    """One thing wrong with an argument object.

    `path` is a JSON Pointer (RFC 6901) into the arguments: for a missing property that of the absent property, for
    one too many its own, for a rule across fields that of the object.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path.removeprefix('/') or 'arguments'}: {self.message}"
