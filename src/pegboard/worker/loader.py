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
from pegboard.sdk.module_files import find_local, module_file, package_of
from pegboard.sdk.tool_function import tool_function
from pegboard.worker.isolation import ImportScope
from pegboard.worker.named_imports import NamedImports

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import CodeType
    from typing import Any  # functions of packs accept and return any value

    Stamp = tuple[int, int, int, int]

_PREFIX = "_packs_"
_SPAWNED = "pegboard.worker.spawned"


def public_name(module: str) -> str:
    """Return the name of a module without the private package of its packs folder."""
    package, _, name = module.partition(".")
    return name if package.startswith(_PREFIX) else module


def without_private_names(text: str) -> str:
    """Return a text with the names of modules as their authors know them."""
    if _PREFIX not in text:
        return text
    import re

    return re.sub(rf"\b{_PREFIX}\d+\.", "", text)


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

    Each folder that contains a pack, or the top-level package of one, becomes a package with a private name, so that a
    pack called `json` shadows nothing and two folders may contain modules with the same name. If neither a library nor
    the standard library has a module that a pack imports, it is looked for in the pack's folder, package and project;
    a helper `_helper.py` beside the pack comes first.

    Args:
        roots: Folders of the packages in the process that started this one, in their order.
    """

    def __init__(self, roots: Sequence[str] = ()) -> None:
        self.main = ModuleSpec(_SPAWNED, None)
        """Main module for the processes that tools start, which makes the same packages available there."""
        self._packages: dict[str, str] = {}  # root folder → package
        self._roots: dict[str, str] = {}  # package → root folder
        self._homes: dict[str, str] = {}  # folder → package
        self._places: dict[tuple[str, str, tuple[str, ...]], str | None] = {}  # import → module name
        self._packs: dict[str, LoadedPack] = {}  # by module name, like all below
        self._stamps: dict[str, tuple[str, Stamp | None]] = {}
        self._imports: dict[str, set[str]] = {}
        self._named = NamedImports(_PREFIX, self._named_by, self._private_spec)
        for root in roots:
            self._package(root)
        sys.meta_path.insert(0, self)
        sys.meta_path.append(self._named)

    def pack(self, file: str) -> LoadedPack:
        """Return the pack in a file, reloaded if the file or a module beside it that it imports has changed.

        Raises:
            BaseException: Any exception raised at the top level of the pack; `FileNotFoundError` if it was deleted.
        """
        name = self._module_name(file)
        # after a failure, the modules that the pack had imported before may have changed
        self._forget_changed([name] if name in self._packs else [*self._stamps])
        if name in self._packs:
            return self._packs[name]
        _forget_folders()
        self.forget_places()
        before = ImportScope()
        try:
            module = self._load(name, file)
            self._packs[name] = LoadedPack(module, ImportScope())
        except BaseException:
            self._homes.clear()  # the author may add an `__init__.py`
            raise
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
        """Find modules by their private name; part of Python's import protocol."""
        del path, target
        return self._private_spec(fullname) or self._named.submodule(fullname)

    def home(self, folder: str) -> str:
        """Return the private package of a folder."""
        if folder not in self._homes:
            root, package = package_of(folder)
            if package.partition(".")[0] == "pegboard":  # Pegboard itself isn't loaded twice
                root, package = folder, ""
            self._homes[folder] = f"{self._package(root)}.{package}".rstrip(".")
        return self._homes[folder]

    def local(self, module: str, names: Sequence[str], importer: str, file: str) -> str | None:
        """Return the private name of a module of the pack's folder, package or project; None if it is a library.

        Args:
            module: Dotted name that is imported.
            names: Names that are imported from it.
            importer: Private name of the importing module.
            file: Its file.
        """
        key = module, file, tuple(names)
        if key not in self._places:
            folder = os.path.dirname(file)  # noqa: PTH120 - pathlib is too heavy for a worker
            found = find_local(file, module, names, self._roots.get(importer.partition(".")[0], ""))
            package = found and (self.home(folder) if found[0] == folder else self._package(found[0]))
            self._places[key] = f"{package}.{module}" if package else None
        return self._places[key]

    def _named_by(self, module: str, importer: str, file: str) -> str | None:
        """Return the private name of a module that a pack names as text, or None if it isn't of its project."""
        private = self.local(module, (), importer, file)
        if private:
            self.imported(importer, private, ())
        return private

    def forget_places(self) -> None:
        """Look for each module again when it is imported the next time."""
        self._places.clear()

    def imported(self, by: str, module: str, names: Sequence[str]) -> None:
        """Note that a module was imported, and perhaps submodules of these names; all by their private names."""
        self._imports.setdefault(by, set()).update((module, *(f"{module}.{name}" for name in names)))

    def _private_spec(self, fullname: str) -> ModuleSpec | None:
        """Return the specification of a module by its private name, or None if there is no such file or folder."""
        package, _, module = fullname.partition(".")
        root = self._roots.get(package)
        if root is None:
            return None
        file = module_file(root, module)
        if file is not None:
            return self._spec(fullname, file)
        folder = _folder(root, module)
        if not os.path.isdir(folder):  # noqa: PTH112 - pathlib is too heavy for a worker
            return None
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [folder]
        return spec

    def _package(self, root: str) -> str:
        if root not in self._packages:
            package = f"{_PREFIX}{len(self._packages) + 1}"
            module = ModuleType(package)
            module.__path__ = []
            module.__spec__ = ModuleSpec(package, None, is_package=True)
            sys.modules[package] = module
            self._packages[root] = package
            self._roots[package] = root
            self.main.name = f"{_SPAWNED}.{os.fsencode(chr(0).join(self._packages)).hex()}"
        return self._packages[root]

    def _module_name(self, file: str) -> str:
        folder, _, base = file.rpartition(os.sep)
        return f"{self.home(folder)}.{base.removesuffix('.py').replace('.', '_')}"

    def _load(self, name: str, file: str) -> ModuleType:
        if self._load_package(name, file):
            return sys.modules[name]
        spec = self._spec(name, file)
        module = module_from_spec(spec)
        sys.modules[name] = module  # dataclasses and type hints look modules up by name
        try:
            spec.loader.exec_module(module)  # type: ignore[union-attr] # set by `_spec`
        except BaseException:
            self._forget(name)
            raise
        return module

    def _load_package(self, name: str, file: str) -> bool:
        """Load the package of a pack if the pack seems to import from it; return whether this loaded the pack, too."""
        package = name.rpartition(".")[0]
        if "." not in package or package in sys.modules:
            return False
        with open(file, "rb") as stream:  # noqa: PTH123 - pathlib is too heavy for a worker
            source = stream.read()
        if b"from ." not in source and package.split(".")[1].encode() not in source:
            return False
        builtins.__import__(package)
        return name in sys.modules

    def _spec(self, name: str, file: str) -> ModuleSpec:
        self._stamps[name] = (file, _stamp(file))
        self._imports[name] = set()
        loader = _Loader(name, file, {**vars(builtins), "__import__": _Importer(self, file)})
        spec = spec_from_file_location(name, file, loader=loader)
        assert spec is not None, "it has a loader"
        return spec

    def _forget_changed(self, names: Sequence[str]) -> None:
        """Forget all modules that depend on a changed file, if one of these does."""
        changed = {module for name in names for module in self._dependencies(name) if self._has_changed(module)}
        for module in [*self._stamps] if changed else ():
            if changed & self._dependencies(module):
                self._forget(module)

    def _dependencies(self, name: str) -> set[str]:
        """Return the module itself, its packages and all modules beside it that it imports, directly or indirectly."""
        needs, unseen = {name}, [name]
        while unseen:
            module = unseen.pop()
            further = {*self._imports.get(module, ()), module.rpartition(".")[0]} - needs
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
        module = sys.modules.pop(name, None)
        if sys.modules.get(public_name(name), self) is module:
            del sys.modules[public_name(name)]
        package, _, stem = name.rpartition(".")
        if package in sys.modules:
            vars(sys.modules[package]).pop(stem, None)  # otherwise `from . import` would find it


class _Importer:
    """Import function of the modules of packs.

    Args:
        packs: The loaded packs.
        file: File of the importing module.
    """

    def __init__(self, packs: LoadedPacks, file: str) -> None:
        self._packs = packs
        self._file = file
        self._folder = os.path.dirname(file)  # noqa: PTH120 - pathlib is too heavy for a worker

    def __call__(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - Python calls it by these names
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        names = fromlist or ()
        full = self._private_name(name, names, globals or {}, level)
        if full is None:
            try:
                return builtins.__import__(name, globals, locals, names, level)
            except ModuleNotFoundError:
                self._packs.forget_places()  # the author may write the module before the next call
                raise
        self._packs.imported(str((globals or {}).get("__name__")), full, names)
        if level:
            return builtins.__import__(name, globals, locals, names, level)
        module = builtins.__import__(full, globals, locals, names or ("__name__",))
        return module if names else sys.modules[full.removesuffix(name) + name.partition(".")[0]]

    def _private_name(self, name: str, names: Sequence[str], importer: Mapping[str, object], level: int) -> str | None:
        """Return the private name of an imported module, or None if it is a library."""
        if level:
            package = str(importer.get("__package__")).split(".")
            return ".".join([*package[: len(package) - level + 1], name]).rstrip(".")
        if name.startswith("_") and module_file(self._folder, name):
            return f"{self._packs.home(self._folder)}.{name}"
        return self._packs.local(name, names, str(importer.get("__name__")), self._file)


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


def _folder(root: str, package: str) -> str:
    return f"{root}{os.sep}{package.replace('.', os.sep)}"


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
