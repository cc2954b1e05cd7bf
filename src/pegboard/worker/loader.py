"""Import of packs in the worker process."""

from __future__ import annotations

import builtins
import os
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

from pegboard.sdk.arguments import Parameters
from pegboard.sdk.host import log
from pegboard.sdk.tool_function import tool_function
from pegboard.worker.isolation import ImportScope

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import CodeType
    from typing import Any  # functions of packs accept and return any value

    Stamp = tuple[int, int, int, int]

_PREFIX = "_packs_"


def public_name(module: str) -> str:
    """Return the name of a module without the private package of its packs folder."""
    package, _, name = module.partition(".")
    return name if package.startswith(_PREFIX) else module


class ToolMissingError(Exception):
    """The pack has no function with this name.

    Args:
        replaced_by: Type of the object that has its name; empty if there is none.
    """

    def __init__(self, replaced_by: str) -> None:
        super().__init__(replaced_by)
        self.replaced_by = replaced_by


class LoadedTool:
    """Function of a loaded pack.

    Args:
        function: Function of the tool.
        name: Its name in the pack.
        scope: Environment after the pack was loaded.
    """

    def __init__(self, function: Callable[..., Any], name: str, scope: ImportScope) -> None:
        self.function = function
        self.parameters = Parameters(function, name, log)
        self.scope = scope


class LoadedPack:
    """Loaded pack."""

    def __init__(self, module: ModuleType, scope: ImportScope) -> None:
        self._module = module
        self._scope = scope
        self._tools: dict[str, LoadedTool] = {}

    def tool(self, function: str) -> LoadedTool:
        """Return a tool of the pack.

        Raises:
            ToolMissingError: The pack has no function with this name.
        """
        if function not in self._tools:
            found = tool_function(vars(self._module), function)
            if found is None:
                now = vars(self._module).get(function, self)
                raise ToolMissingError("" if now is self else type(now).__name__)
            self._tools[function] = LoadedTool(found, function, self._scope)
        return self._tools[function]


class LoadedPacks:
    """Packs loaded in this process.

    Each packs folder becomes a package with a private name, so that a pack called `json` shadows nothing and two
    folders may contain helpers with the same name. If the folder contains `_helper.py`, `import _helper` in a pack
    works like `from . import _helper`.
    """

    def __init__(self) -> None:
        self._packages: dict[str, str] = {}  # folder → package
        self._packs: dict[str, LoadedPack] = {}  # by module name, like all below
        self._stamps: dict[str, tuple[str, Stamp | None]] = {}
        self._imports: dict[str, set[str]] = {}
        sys.meta_path.append(self)

    def pack(self, file: str) -> LoadedPack:
        """Return the pack in a file, reloaded if the file or a helper that it imports has changed.

        Raises:
            BaseException: Any exception raised at the top level of the pack; `FileNotFoundError` if it was deleted.
        """
        name = self._module_name(file)
        if name in self._packs and not self._forget_changed(name):
            return self._packs[name]
        _forget_folders()
        before = ImportScope()
        try:
            module = self._load(name, file)
            self._packs[name] = LoadedPack(module, ImportScope())
        finally:
            before.enter()
        return self._packs[name]

    def file_of(self, namespace: Mapping[str, object]) -> str | None:
        """Return the file of the module with these globals, or None if it was not loaded here."""
        name = namespace.get("__name__")
        module = sys.modules.get(name) if isinstance(name, str) else None
        if module is None or vars(module) is not namespace or name not in self._stamps:
            return None
        return self._stamps[name][0]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find helpers by their private name; part of Python's import protocol."""
        del path, target
        package, _, stem = fullname.partition(".")
        if not package.startswith(_PREFIX) or not stem.startswith("_"):
            return None
        folder = next((folder for folder, known in self._packages.items() if known == package), None)
        if folder is None or not os.path.isfile(file := _file(folder, stem)):  # noqa: PTH113 - pathlib is too heavy
            return None
        return self._spec(fullname, file)

    def _module_name(self, file: str) -> str:
        folder, _, base = file.rpartition(os.sep)
        if folder not in self._packages:
            package = f"{_PREFIX}{len(self._packages) + 1}"
            module = ModuleType(package)
            module.__path__ = []
            module.__spec__ = ModuleSpec(package, None, is_package=True)
            sys.modules[package] = module
            self._packages[folder] = package
        return f"{self._packages[folder]}.{base.removesuffix('.py').replace('.', '_')}"

    def _load(self, name: str, file: str) -> ModuleType:
        spec = self._spec(name, file)
        module = module_from_spec(spec)
        sys.modules[name] = module  # dataclasses and type hints look modules up by name
        try:
            spec.loader.exec_module(module)  # type: ignore[union-attr] # set by `_spec`
        except BaseException:
            self._forget(name)
            raise
        return module

    def _spec(self, name: str, file: str) -> ModuleSpec:
        self._stamps[name] = (file, _stamp(file))
        self._imports[name] = set()
        loader = _Loader(name, file, {**vars(builtins), "__import__": self._importer(name.partition(".")[0])})
        spec = spec_from_file_location(name, file, loader=loader)
        assert spec is not None, "it has a loader"
        return spec

    def _importer(self, package: str) -> Callable[..., ModuleType]:
        folder = next(folder for folder, known in self._packages.items() if known == package)

        def import_(
            name: str,
            globals: Mapping[str, object] | None = None,  # noqa: A002 - Python calls it by these names
            locals: Mapping[str, object] | None = None,  # noqa: A002
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> ModuleType:
            importer = str((globals or {}).get("__name__"))
            if level == 0 and name.startswith("_") and os.path.isfile(_file(folder, name)):  # noqa: PTH113
                helper = f"{package}.{name}"
                self._imports.setdefault(importer, set()).add(helper)
                builtins.__import__(helper)
                return sys.modules[helper]
            if level == 1:
                names = [name] if name else fromlist or ()
                self._imports.setdefault(importer, set()).update(f"{package}.{each}" for each in names)
            return builtins.__import__(name, globals, locals, fromlist or (), level)

        return import_

    def _forget_changed(self, name: str) -> bool:
        """If `name` depends on a changed file, forget all modules of the folder that do, and return True."""
        changed = {module for module in self._dependencies(name) if self._has_changed(module)}
        if not changed:
            return False
        package = name.partition(".")[0]
        for module in [known for known in self._stamps if known.startswith(package + ".")]:
            if changed & self._dependencies(module):
                self._forget(module)
        return True

    def _dependencies(self, name: str) -> set[str]:
        """Return the module itself and all helpers that it imports, directly or indirectly."""
        needs, unseen = {name}, [name]
        while unseen:
            further = self._imports.get(unseen.pop(), set()) - needs
            needs |= further
            unseen += further
        return needs

    def _has_changed(self, name: str) -> bool:
        known = self._stamps.get(name)
        return known is not None and _stamp(known[0]) != known[1]

    def _forget(self, name: str) -> None:
        self._packs.pop(name, None)
        self._stamps.pop(name, None)
        self._imports.pop(name, None)
        sys.modules.pop(name, None)
        package, _, stem = name.partition(".")
        vars(sys.modules[package]).pop(stem, None)  # otherwise `from . import` would find it


class _Loader(SourceFileLoader):
    """Loader without Python's cache of compiled files, which can't distinguish two edits within a second."""

    def __init__(self, name: str, file: str, builtin_names: dict[str, object]) -> None:
        super().__init__(name, file)
        self._builtins = builtin_names

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = compile(self.get_data(self.path), self.path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = self._builtins
        super().exec_module(module)


def _file(folder: str, stem: str) -> str:
    return f"{folder}{os.sep}{stem}.py"


def _stamp(file: str) -> Stamp | None:
    try:
        status = os.stat(file)  # noqa: PTH116 - pathlib is too heavy for a worker
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _forget_folders() -> None:
    """Invalidate the import system's cache of folders, in case a library was installed meanwhile."""
    # since Python 3.13, importlib.invalidate_caches also loads importlib.metadata, which is slow
    for finder in [*sys.path_importer_cache.values()]:
        if finder is not None and hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()
