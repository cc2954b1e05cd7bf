"""How what is kept under a name gets into files: as a whole, and never over what another process has just written."""

from __future__ import annotations

import os
import tempfile
import unicodedata
from pathlib import Path


def normal(name: str) -> str:
    """Gives a name as it is compared: file systems differ in whether they tell two spellings of `é` apart."""
    return unicodedata.normalize("NFC", name.strip())


def write(file: Path, data: bytes, *, replace: bool) -> None:
    """Writes a file that is there as a whole or not at all, readable by its owner only: it may hold secrets.

    Args:
        file: Where to.
        data: What is in it.
        replace: Whether it may take the place of another.

    Raises:
        FileExistsError: There is one, and it may not.
        OSError: It can't be written.
    """
    descriptor, draft = tempfile.mkstemp(dir=file.parent, prefix=".draft-")
    try:
        with open(descriptor, "wb") as out:  # noqa: PTH123 - a descriptor is no path
            out.write(data)
            out.flush()
            os.fsync(descriptor)
        if replace:
            os.replace(draft, file)  # noqa: PTH105 - the draft is a name, not a path
        else:
            os.link(draft, file)
    finally:
        Path(draft).unlink(missing_ok=True)


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
