"""Import of pack files in plain scripts."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from pegboard.sdk.module_files import find_local, import_folders, package_of


class _Loaded(NamedTuple):
    """An imported pack or helper.

    Attributes:
        name: Name of its module.
        stamp: Stamp of its file.
        helpers: Files of the helpers that it has imported.
    """

    name: str
    stamp: tuple[int, int] | None
    helpers: set[str]


_loaded: dict[str, _Loaded] = {}
"""Imported packs and helpers by file, including those whose import failed."""


def load(file: str) -> ModuleType:
    """Import a pack.

    The pack's folder, or the one that contains its top-level package, becomes a package with a private name, so that a
    pack called `json` shadows nothing. Inside it, `import _helper` imports the helper module of the same folder. Other
    modules of the folder, the package and the project are found after all libraries.

    Args:
        file: Absolute path of the pack.

    Raises:
        BaseException: Any exception raised at the top level of the pack.
    """
    folder = Path(file).parent
    sys.path += [each for each in import_folders(str(folder))[1:] if each not in sys.path]
    return _load(_package(folder), folder, Path(file).stem)


def unload_changed() -> None:
    """Forget the packs that have changed since `load` imported them, or whose helpers have."""
    changed = {file for file, loaded in [*_loaded.items()] if loaded.stamp != stamp_of(file)}
    for file in [file for file in [*_loaded] if not changed.isdisjoint(_with_helpers(file))] if changed else ():
        sys.modules.pop(_loaded.pop(file).name, None)


def _with_helpers(file: str) -> set[str]:
    """Return a file, and the helpers that it has imported, also through others."""
    found: set[str] = set()
    waiting = {file}
    while waiting:
        each = waiting.pop()
        found.add(each)
        if each in _loaded:
            waiting |= _loaded[each].helpers - found
    return found


def stamp_of(file: str) -> tuple[int, int] | None:
    """Return the time of a file's last change in nanoseconds, and its size in bytes; None if it can't be found."""
    try:
        status = os.stat(file)  # noqa: PTH116 - called for every pack at every call
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _package(folder: Path) -> str:
    """Return the private name of a folder, and create the private package that contains it."""
    root, package = package_of(str(folder))
    packages = [name for name in sys.modules if name.startswith("_pegboard_packs_") and "." not in name]
    private = next((name for name in packages if sys.modules[name].__path__ == [root]), None)
    if private is None:
        private = f"_pegboard_packs_{len(packages) + 1}"
        sys.modules[private] = ModuleType(private)
        sys.modules[private].__path__ = [root]
    return f"{private}.{package}".rstrip(".")


def _load(package: str, folder: Path, stem: str) -> ModuleType:
    name = f"{package}.{stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, folder / f"{stem}.py")
    assert spec is not None, "its name ends with .py"
    assert spec.loader is not None, "its name ends with .py"
    module = module_from_spec(spec)
    file = str(folder / f"{stem}.py")
    loaded = _loaded[file] = _Loaded(name, stamp_of(file), set())
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": _Importer(package, file, loaded.helpers)}
    sys.modules[name] = module  # dataclasses and type hints look modules up by name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class _Importer:
    """Import function of packs: finds helper modules of the same folder first, other modules of the project last."""

    def __init__(self, package: str, file: str, helpers: set[str]) -> None:
        self._package = package
        self._folder = Path(file).parent
        self._file = file
        self._helpers = helpers

    def __call__(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - Python calls it by these names
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if level == 0 and self._is_helper(name):
            return self._helper(name)
        if level == 1:
            for each in [name] if name else fromlist or ():
                if self._is_helper(each):  # loaded here so that it can import helpers too
                    setattr(import_module(self._package), each, self._helper(each))
        if level == 0:
            found = find_local(self._file, name, fromlist or ())
            if found is not None and found[0] not in sys.path:
                sys.path.append(found[0])  # not before, so that a missing library isn't a pack of its name
        return builtins.__import__(name, globals, locals, fromlist or (), level)

    def _helper(self, name: str) -> ModuleType:
        self._helpers.add(str(self._folder / f"{name}.py"))
        return _load(self._package, self._folder, name)

    def _is_helper(self, name: str) -> bool:
        return name.startswith("_") and "." not in name and (self._folder / f"{name}.py").is_file()
