"""Problems for the user to fix, and validation errors."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pegboard.models.model import DataModel
from pegboard.models.readable_path import readable


class Problem(DataModel):
    """An issue with a file, a pack, a tool or a setting: shown, never raised."""

    message: str
    """One sentence: what failed and why."""
    fix: str = ""
    """What to do about it; empty if the message says so."""
    severity: Literal["error", "warning", "hint"] = "error"
    """An error hides or breaks a feature, a warning doesn't, and a hint may be intended."""
    file: str | None = None
    """Absolute path of the file concerned."""
    line: int | None = None
    """Line in that file, from 1."""
    pack: str | None = None
    """The pack concerned, if known."""
    tool: str | None = None
    """The qualified name of the tool concerned, if known."""

    @property
    def needs_action(self) -> bool:
        """Whether it is counted. A hint about no pack, such as on a rule for a server of another client, may stay."""
        return self.severity != "hint" or self.pack is not None

    @property
    def rank(self) -> int:
        """Sort key in a list of problems: errors first, hints last."""
        return ("error", "warning", "hint").index(self.severity)

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        return f"{where}{self.message}{' ' + self.fix if self.fix else ''}"


class Fault(DataModel):
    """One validation error of an argument object.

    `path` is a JSON Pointer (RFC 6901) into the arguments. For a missing or an unexpected property it points to that
    property, for a rule across fields to the object.
    """

    path: str
    message: str
    keys: tuple[int, ...] = Field(default=(), exclude=True, repr=False)
    """Positions of steps in the path that are keys although they look like indexes."""

    @property
    def where(self) -> str:
        """The path as users read it, `steps #2.title`; empty for the whole arguments."""
        return readable(self.path, self.keys)

    def __str__(self) -> str:
        return f"{self.where or 'arguments'}: {self.message}"
