"""Main module of a process that a tool starts by `multiprocessing` with the method `spawn` or `forkserver`.

Such a process imports the modules of the functions and classes that it receives, such as the pack, whose private name
only a worker knows. Before that, it imports the main module of the process that started it. The main module of a worker
is `pegboard.worker.spawned.FOLDERS`: an empty module whose import makes the packages of these folders available.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec

from pegboard.worker.loader import LoadedPacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

__path__: list[str] = []  # a package, so that Python looks for modules inside


class _Main:
    """Finder and loader of the main module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the main module by its name; part of Python's import protocol."""
        del path, target
        return ModuleSpec(fullname, self) if fullname.startswith(f"{__name__}.") else None  # type: ignore[arg-type]

    def get_code(self, fullname: str) -> CodeType:
        """Create the packages of the folders that the name contains, and return an empty module."""
        LoadedPacks(os.fsdecode(bytes.fromhex(fullname.rpartition(".")[2])).split("\0"))
        return compile("", __file__, "exec")


sys.meta_path.append(_Main())
