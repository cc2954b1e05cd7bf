"""Imports in which a pack names a module of its project as text, such as `importlib.import_module("app.data")`."""

from __future__ import annotations

import builtins
import sys
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    Finder = Callable[[str], ModuleSpec | None]
    Locator = Callable[[str, str, str], str | None]

_BETWEEN = {"importlib", "pkgutil", "functools"}
"""Modules whose functions can be between the pack and the finder."""


class NamedImports:
    """Finder of such modules. It also finds their submodules, before Python finds their files a second time.

    A pack's own import statements don't need it. Libraries come first, and modules that a library imports aren't looked
    for in the project of a pack.

    Args:
        prefix: Beginning of the private names of modules.
        locate: Function that returns the private name of a module, or None; called with the name that is imported, and
            with the private name and the file of the importing module.
        find: Function that returns the specification of a module by its private name, or None.
    """

    def __init__(self, prefix: str, locate: Locator, find: Finder) -> None:
        self._prefix = prefix
        self._locate = locate
        self._find = find
        self._packages: dict[str, str] = {}  # top-level module → its private package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a top-level module that Python itself doesn't find; part of Python's import protocol."""
        del path, target
        if "." in fullname:
            return None
        importer, wanted = self._request(fullname)
        private = importer and self._locate(wanted, *importer)
        if not private:
            return None
        self._packages[fullname] = private.removesuffix(f".{wanted}")
        return self._spec(fullname)

    def submodule(self, fullname: str) -> ModuleSpec | None:
        """Find a submodule of a module that was found here."""
        top, _, rest = fullname.partition(".")
        if not rest or top not in self._packages:
            return None
        is_current = sys.modules.get(top) is sys.modules.get(f"{self._packages[top]}.{top}", self)
        return self._spec(fullname) if is_current else None

    def _spec(self, fullname: str) -> ModuleSpec | None:
        private = f"{self._packages[fullname.partition('.')[0]]}.{fullname}"
        loaded = sys.modules.get(private)
        found = loaded.__spec__ if loaded else self._find(private)
        if found is None:
            return None
        loader = _Alias(private)
        spec = ModuleSpec(fullname, loader, origin=found.origin)  # type: ignore[arg-type] # importlib.abc is too heavy
        spec.submodule_search_locations = found.submodule_search_locations
        return spec

    def _request(self, fullname: str) -> tuple[tuple[str, str] | None, str]:
        """Return the private name and file of the pack that imports a module, or None, and the name that it uses."""
        wanted, frame = fullname, sys._getframe(2)  # noqa: SLF001 - the only way to identify the importing code
        while frame is not None:
            name = str(frame.f_globals.get("__name__"))
            if name.startswith(self._prefix):
                return (name, str(frame.f_globals.get("__file__"))), wanted
            if name.partition(".")[0] not in _BETWEEN:
                break
            asked = frame.f_locals.get("name")
            if isinstance(asked, str) and asked.startswith(f"{wanted}."):
                wanted = asked
            frame = frame.f_back  # type: ignore[assignment] # None is the end
        return None, wanted


class _Alias:
    """Loader that returns the module with the private name.

    Args:
        name: Private name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._own: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module; part of Python's import protocol."""
        del spec
        module = builtins.__import__(self._name, fromlist=("__name__",))
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore what the import system has changed; part of Python's import protocol."""
        module.__spec__ = self._own

    def get_data(self, path: str) -> bytes:
        """Read a file beside the module; `pkgutil.get_data` requires it."""
        with open(path, "rb") as stream:  # noqa: PTH123 - pathlib is too heavy for a worker
            return stream.read()
