"""Names of saved files: how they compare, and renames that never replace what another process has just written."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path


def normal(name: str) -> str:
    """Gives a name as it is compared: file systems differ in whether they tell two spellings of `é` apart."""
    return unicodedata.normalize("NFC", name.strip())


def rename(file: Path, target: Path) -> None:
    """Gives a file another name in its folder.

    Raises:
        FileExistsError: There is another of that name.
        OSError: It can't be renamed.
    """
    if normal(file.name).casefold() == normal(target.name).casefold():
        file.rename(target)
    else:
        # unlike a rename, a link never takes the place of a file that another process has just made
        os.link(file, target)
        file.unlink()
