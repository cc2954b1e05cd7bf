"""Names of saved files, and renaming without overwriting a file that another process has just written."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from pegboard.storage import rename_to_new

_UNSAFE = frozenset('/\\%:*?"<>|')
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


def normal(name: str) -> str:
    """Return a name in the form used for comparison: file systems differ in how they normalize Unicode."""
    return unicodedata.normalize("NFC", name.strip())


def rename(file: Path, target: Path) -> None:
    """Rename a file within its folder.

    Raises:
        FileExistsError: The target exists.
        OSError: The file can't be renamed.
    """
    is_same_name = normal(file.name).casefold() == normal(target.name).casefold()
    if is_same_name and (not target.exists() or target.samefile(file)):
        file.rename(target)  # where case is ignored, the target is the file itself
    else:
        rename_to_new(file, target)


def file_name(name: str) -> str:
    """Return a valid file name: unsafe and unprintable characters are percent-encoded."""
    signs = [sign if sign.isprintable() and sign not in _UNSAFE else _escaped(sign) for sign in name]
    if signs and signs[0] == ".":
        signs[0] = _escaped(".")
    return "".join(signs)


def _escaped(sign: str) -> str:
    return "".join(f"%{byte:02X}" for byte in sign.encode("utf-8", "surrogatepass"))


def plain_name(name: str) -> str:
    """Return the name that `file_name` encoded."""

    def plain(match: re.Match[str]) -> str:
        try:
            return bytes.fromhex(match[0].replace("%", "")).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:  # a percent sign in the name of a file that Pegboard did not create
            return match[0]

    return _ESCAPES.sub(plain, name)
