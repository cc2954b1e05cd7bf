"""Packs of a plain script: the imported ones, and those on the packs path."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from threading import RLock
from types import FunctionType, ModuleType
from typing import Any  # functions and configuration of packs have any type

from pegboard.built_in import BUILT_IN_PACKS
from pegboard.sdk import decorators, exports
from pegboard.sdk.failure import ToolFailed
from pegboard.sdk.invocation import run
from pegboard.sdk.names import not_found
from pegboard.sdk.pack_loader import load, stamp_of, unload_changed
from pegboard.sdk.scope import Scope
from pegboard.sdk.secret_checks import not_granted_message, secret_problem
from pegboard.sdk.source import parse_file, read_requirements
from pegboard.sdk.tool_function import tool_function

_SDK = __name__.rpartition(".")[0]
_PACK = re.compile(rb"\bpack\b")
_running: ContextVar[str | None] = ContextVar("running", default=None)


def _ignore(*problem: object, line: int | None = None) -> None:
    """Ignore a problem of a pack; Pegboard's discovery reports it."""
    del problem, line


class PackSource:
    """Facts about a pack, read from its file without running it.

    Args:
        file: Absolute path.
        tree: Syntax tree of the file.
    """

    def __init__(self, file: str, tree: ast.Module) -> None:
        self.file = file
        scope = Scope(tree, file)
        functions = exports.functions(scope, _ignore)
        self.name = exports.pack_name(scope, _ignore)
        self.tools = tuple(node.name for node in functions)
        self.aliases: dict[str, str] = {}
        """Alias → function, for its tools."""
        for node in functions:
            names, _ = decorators.aliases(node, scope, exports.parameters(node), _ignore)
            for alias in names:
                self.aliases.setdefault(alias, node.name)
        self.secrets = frozenset(read_requirements(tree).secrets)


class _PackFile:
    """A file that may be a pack; it is parsed once, when something about it is asked.

    Args:
        file: Absolute path.
        stamp: Time of its last change in nanoseconds, and its size in bytes.
    """

    def __init__(self, file: str, stamp: tuple[int, int]) -> None:
        self.file = file
        self.stamp = stamp

    @cached_property
    def source(self) -> PackSource | None:
        """Facts about the pack, or None if the file can't be read or is not valid Python."""
        tree = parse_file(self.file)
        try:
            return PackSource(self.file, tree) if tree else None
        except RecursionError:
            return None

    @cached_property
    def _names_itself(self) -> bool:
        """Whether the file may have a line such as `pack = "name"`."""
        try:
            return _PACK.search(Path(self.file).read_bytes()) is not None
        except OSError:
            return False

    def may_be(self, pack: str) -> bool:
        """Return whether the file may be a pack of this name, without parsing it."""
        return exports.name_of_file(self.file) == pack or self._names_itself


class LocalPacks:
    """Packs, secrets and configuration available to a plain script.

    Args:
        folders: Folders of packs, or single files. If two packs have the same name, the first is used.
        environ: Environment with the secrets, and with the configuration unless `config` is passed.
        given: Packs without a file: functions by name, by pack. They override all others.
        config: Configuration of each pack.
    """

    def __init__(
        self,
        folders: Sequence[str],
        environ: Mapping[str, str],
        given: Mapping[str, Mapping[str, Callable[..., Any]]] | None = None,
        config: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        self._folders = folders
        self._environ = environ
        self._given = given or {}
        self._config = config
        self._files: dict[str, _PackFile] = {}
        self._callers: dict[str, PackSource] = {}  # by pack
        self._loading = RLock()

    @classmethod
    def of_environment(cls) -> LocalPacks:
        """Return the packs that Pegboard finds without its configuration file."""
        folders = [str(BUILT_IN_PACKS), os.path.join(_data_folder(), "packs")]  # noqa: PTH118 - paths are strings here
        folders += [folder for folder in os.environ.get("PEGBOARD_PACKS", "").split(os.pathsep) if folder]
        return cls([os.path.abspath(os.path.expanduser(folder)) for folder in folders], os.environ)  # noqa: PTH100, PTH111 - pathlib raises without a home folder

    def packs(self) -> dict[str, tuple[str, ...]]:
        """Return the packs that have tools, each with the tools' names."""
        found = {name: tuple(functions) for name, functions in self._given.items()}
        for name, source in self._known().items():
            found.setdefault(name, source.tools)
        return found

    def sources(self) -> dict[str, str]:
        """Return the source files of the packs that have one."""
        return {name: source.file for name, source in self._known().items() if name not in self._given}

    def aliases(self) -> dict[str, str]:
        """Return the aliases of all tools, each with the qualified name."""
        found: dict[str, str] = {}
        for name, source in self._known().items():
            if name not in self._given:
                for alias, function in source.aliases.items():
                    found.setdefault(alias, f"{name}.{function}")
        return found

    def call(self, tool: str, arguments: Mapping[str, object], log: Callable[[str], None]) -> object:
        """Call a tool in this process; see `Host.call`."""
        pack, _, name = tool.partition(".")
        function = self._function(pack, name)
        if function is None:
            pack, _, name = self.aliases().get(tool, "").partition(".")
            function = self._function(pack, name)
        if function is None:
            raise not_found(tool, self.packs())
        token = _running.set(pack)
        try:
            return run(tool, function, name, arguments, log)
        finally:
            _running.reset(token)

    def secret(self, pack: str | None, name: str, log: Callable[[str], None]) -> str | None:
        """Return a secret granted to the pack; see `Host.secret`."""
        if pack is not None and name not in self._granted(pack):
            log(not_granted_message(pack, name))
            return None
        value = self._environ.get(name)
        return None if secret_problem(value) else value

    def find_secret(self, name: str) -> tuple[str | None, str]:
        """Return the source of a secret; see `Host.find_secret`."""
        problem = secret_problem(self._environ.get(name))
        return (None, f"{name} {problem}.") if problem else ("environment", "")

    def config(self, pack: str | None) -> Mapping[str, object]:
        """Return the configuration of a pack: as passed, or from `PEGBOARD_PACKS__NAME__KEY` variables."""
        if pack is None:
            return {}
        return _config_in(self._environ, pack) if self._config is None else self._config.get(pack, {})

    def pack_of(self, namespace: Mapping[str, object]) -> str | None:
        """Return the pack that a module is, by its globals; None for helpers and other modules."""
        file = namespace.get("__file__")
        if not isinstance(file, str) or _is_ours(str(namespace.get("__name__"))) or not _uses_sdk(namespace):
            return None
        found = self._file(file)
        source = found.source if found is not None else None
        if source is None or source.name.startswith("_"):
            return None
        return self._callers.setdefault(source.name, source).name

    def running_pack(self) -> str | None:
        """Return the pack whose call is running in this context, or None."""
        return _running.get()

    def _granted(self, pack: str) -> frozenset[str]:
        source = self._callers.get(pack) or self._find(pack)
        listed = self.config(pack).get("secrets")
        more = listed.split(",") if isinstance(listed, str) else listed if isinstance(listed, list) else []
        return frozenset((*(source.secrets if source else ()), *(str(name).strip() for name in more)))

    def _function(self, pack: str, name: str) -> Callable[..., Any] | None:
        if pack in self._given:
            return self._given[pack].get(name)
        source = self._find(pack)
        if source is None or name not in source.tools:
            return None
        try:
            module = self._load(source.file)
        except ToolFailed:
            raise
        except (Exception, SystemExit) as error:
            raise RuntimeError(f"The pack {pack} could not be loaded: {type(error).__name__}: {error}") from error
        return tool_function(vars(module), name)

    def _load(self, file: str) -> ModuleType:
        with self._loading:
            unload_changed()
            return _imported(file) or load(file)

    def _find(self, pack: str) -> PackSource | None:
        """Return the same as `_known` for one pack; other packs are parsed only if they might have its name."""
        for file in self._pack_files():
            if file.may_be(pack) and file.source is not None and file.source.tools and file.source.name == pack:
                return file.source
        return None

    def _known(self) -> dict[str, PackSource]:
        """Return every pack that has tools: imported ones first, then those of the folders in order."""
        found: dict[str, PackSource] = {}
        for file in self._pack_files():
            if file.source is not None and file.source.tools:
                found.setdefault(file.source.name, file.source)
        return found

    def _pack_files(self) -> Iterator[_PackFile]:
        for path in dict.fromkeys([*_imported_files(), *self._listed()]):
            file = self._file(path)
            if file is not None:
                yield file

    def _listed(self) -> Iterator[str]:
        for folder in self._folders:
            if folder.endswith(".py") and os.path.isfile(folder):  # noqa: PTH113 - pathlib raises without permission
                yield folder
                continue
            try:
                with os.scandir(folder) as entries:
                    names = sorted(entry.name for entry in entries if entry.is_file())
            except OSError:
                continue
            for name in names:
                if name.endswith(".py") and not name.startswith(("_", ".")):
                    yield f"{folder}{os.sep}{name}"

    def _file(self, path: str) -> _PackFile | None:
        stamp = stamp_of(path)
        if stamp is None:
            return None
        file = self._files.get(path)
        if file is None or file.stamp != stamp:
            file = self._files[path] = _PackFile(path, stamp)
        return file


def _imported_files() -> Iterator[str]:
    """Yield the files of imported modules that use the SDK; others are not packs."""
    for name, module in _modules():
        if _is_ours(name):
            continue
        file = vars(module).get("__file__")
        # pathlib would take longer than the rest, for every module at every call
        if isinstance(file, str) and not os.path.basename(file).startswith("_") and _uses_sdk(vars(module)):  # noqa: PTH119
            yield file


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "pegboard" and not module.startswith("pegboard.packs.")


def _imported(file: str) -> ModuleType | None:
    for _, module in _modules():
        if vars(module).get("__file__") == file:
            return module
    return None


def _modules() -> Iterator[tuple[str, ModuleType]]:
    modules: list[tuple[str, object]] = [*sys.modules.items()]  # may contain any object
    return ((name, module) for name, module in modules if isinstance(module, ModuleType))


def _uses_sdk(namespace: Mapping[str, object]) -> bool:
    for value in [*namespace.values()]:
        if isinstance(value, FunctionType):
            if str(value.__module__).startswith(_SDK):
                return True
        elif value is ToolFailed or (isinstance(value, ModuleType) and value.__name__ in {"pegboard", _SDK}):
            return True
    return False


def _config_in(environ: Mapping[str, str], pack: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    prefix = f"pegboard_packs__{pack}__".lower().replace("-", "_")
    for variable in sorted(environ):
        if not variable.lower().replace("-", "_").startswith(prefix):
            continue
        *tables, key = variable.lower()[len(prefix) :].split("__")
        holder = found
        for table in tables:
            if not isinstance(holder.get(table), dict):
                holder[table] = {}
            holder = holder[table]
        holder[key] = _parse_value(environ[variable])
    return found


def _parse_value(text: str) -> object:
    """Parse the value of a variable as TOML; return it as text if it is not valid TOML."""
    import tomllib

    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if len(parsed) == 1 else text


def _data_folder() -> str:
    if os.environ.get("PEGBOARD_DATA_DIR"):
        return os.environ["PEGBOARD_DATA_DIR"]
    from platformdirs import user_data_dir

    return user_data_dir("pegboard", appauthor=False)
