"""Import of pack files in plain scripts."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def load(file: str) -> ModuleType:
    """Import a pack.

    The pack's folder becomes a package with a private name, so that a pack called `json` shadows nothing. Inside it,
    `import _helper` imports the helper module of the same folder.

    Args:
        file: Absolute path of the pack.

    Raises:
        BaseException: Any exception raised at the top level of the pack.
    """
    folder = Path(file).parent
    return _load(_package(folder), folder, Path(file).stem)


def unload(file: str) -> None:
    """Forget a pack that `load` imported, so that the next `load` imports it again."""
    path = Path(file)
    sys.modules.pop(f"{_package(path.parent)}.{path.stem}", None)


def _package(folder: Path) -> str:
    packages = [name for name in sys.modules if name.startswith("_pegboard_packs_") and "." not in name]
    for name in packages:
        if sys.modules[name].__path__ == [str(folder)]:
            return name
    module = ModuleType(f"_pegboard_packs_{len(packages) + 1}")
    module.__path__ = [str(folder)]
    sys.modules[module.__name__] = module
    return module.__name__


def _load(package: str, folder: Path, stem: str) -> ModuleType:
    name = f"{package}.{stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, folder / f"{stem}.py")
    assert spec is not None, "its name ends with .py"
    assert spec.loader is not None, "its name ends with .py"
    module = module_from_spec(spec)
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": _Importer(package, folder)}
    sys.modules[name] = module  # dataclasses and type hints look modules up by name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class _Importer:
    """Import function of packs: finds helper modules of the same folder first."""

    def __init__(self, package: str, folder: Path) -> None:
        self._package = package
        self._folder = folder

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
                    setattr(sys.modules[self._package], each, helper)
        return builtins.__import__(name, globals, locals, fromlist or (), level)

    def _is_helper(self, name: str) -> bool:
        return name.startswith("_") and "." not in name and (self._folder / f"{name}.py").is_file()
