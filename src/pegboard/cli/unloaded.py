"""Advice on a pack in the working directory that no packs folder contains."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.runtime import Runtime


def unloaded_pack(runtime: Runtime, name: str) -> str:
    """Return the sentence to add to the message of an unknown tool whose pack is a file of the working directory.

    Args:
        runtime: The runtime, scanned.
        name: Name of a tool or of a pack, as the user wrote it.

    Returns:
        How to load the file; an empty text if there is none, or if its folder is loaded.
    """
    pack = name.partition(".")[0]
    file = Path(f"{pack}.py")
    # `Path.is_file` raises if the user may not enter the working directory.
    if not pack.isidentifier() or pack.startswith("_") or not os.path.isfile(file):  # noqa: PTH113
        return ""
    found = file.resolve()
    folders = (Path(os.path.realpath(folder)) for folder in runtime.folders)  # `resolve` raises if links form a loop
    if not {found, found.parent, Path.cwd()}.isdisjoint(folders):
        return ""
    return f" {file} in this folder is not loaded: add `--packs .`, or copy it to a folder that `pegboard paths` lists."
