"""The folder of the built-in packs."""

from __future__ import annotations

import os
from pathlib import Path

BUILT_IN_PACKS = Path(__file__).with_name("packs")

_BEGINNINGS = (f"{os.path.abspath(BUILT_IN_PACKS)}{os.sep}", f"{os.path.realpath(BUILT_IN_PACKS)}{os.sep}")  # noqa: PTH100
"""Both paths of the folder: that of the import, whose parents may be links, and the one without links."""


def is_built_in(path: Path | str | None) -> bool:
    """Return whether an absolute path is the folder of built-in packs, or inside it; False for None.

    Links aren't followed: the files of a pack may be links into a package manager's cache.
    """
    return f"{path}{os.sep}".startswith(_BEGINNINGS)
