"""Comparing and renaming saved files without overwriting a file that another process has just written."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path


def normal(name: str) -> str:
    """Return a name in the form used for comparison: file systems differ in how they normalize Unicode."""
    return unicodedata.normalize("NFC", name.strip())


def rename(file: Path, target: Path) -> None:
    """Rename a file within its folder.

    Raises:
        FileExistsError: The target exists.
        OSError: The file can't be renamed.
    """
    if normal(file.name).casefold() == normal(target.name).casefold():
        file.rename(target)
    else:
        # Unlike `rename`, `link` fails if another process has just created the target.
        os.link(file, target)
        file.unlink()
