"""Import of pack files in plain scripts."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from pegboard.sdk.module_files import find_local, import_folders, package_of


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


def unload(file: str) -> None:
    """Forget a pack that `load` imported, so that the next `load` imports it again."""
    path = Path(file)
    sys.modules.pop(f"{_package(path.parent)}.{path.stem}", None)


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
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": _Importer(package, folder, stem)}
    sys.modules[name] = module  # dataclasses and type hints look modules up by name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class _Importer:
    """Import function of packs: finds helper modules of the same folder first, other modules of the project last."""

    def __init__(self, package: str, folder: Path, stem: str) -> None:
        self._package = package
        self._folder = folder
        self._file = str(folder / f"{stem}.py")

    def __call__(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - Python calls it by these names
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if level == 0 and self._is_helper(name):
            return _load(self._package, self._folder, name)
        if level == 1:
            for each in [name] if name else fromlist or ():
                if self._is_helper(each):  # loaded here so that it can import helpers too
                    helper = _load(self._package, self._folder, each)
                    setattr(import_module(self._package), each, helper)
        if level == 0:
            found = find_local(self._file, name, fromlist or ())
            if found is not None and found[0] not in sys.path:
                sys.path.append(found[0])  # not before, so that a missing library isn't a pack of its name
        return builtins.__import__(name, globals, locals, fromlist or (), level)

    def _is_helper(self, name: str) -> bool:
        return name.startswith("_") and "." not in name and (self._folder / f"{name}.py").is_file()
