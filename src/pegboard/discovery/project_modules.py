"""Modules of the project of a pack, parsed for the types that the pack imports from them."""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache, partial

from pegboard.discovery.files import content, stamp_of
from pegboard.sdk.module_files import find_local, import_folders, library_file, module_files, relative_files
from pegboard.sdk.scope import Scope
from pegboard.signatures.expressions import PARSED_AS

Seen = tuple[str, tuple[int, ...] | None, bytes | None]
"""Path, stamp and digest of a module's file when it was read; the last two are None if it was missing.

A plain tuple, because child processes send it and the index stores it.
"""


_INSTALLED = {"annotated_types", "pegboard", "pydantic", "typing_extensions"}
"""Libraries of many annotations that are always there."""

_library_file = cache(library_file)  # for each name in an annotation


class ProjectModules:
    """Modules of the project of one pack that aren't libraries, each parsed when first needed.

    Args:
        folder: Absolute path of the pack's folder.

    Attributes:
        seen: Files of the requested modules, including missing ones; the pack's tools depend on them.
    """

    def __init__(self, folder: str) -> None:
        self.seen: list[Seen] = []
        self._folder = folder
        self._scopes: dict[tuple[str, str], Scope | None] = {}  # by importing file and module
        self._read_files: dict[str, Scope | None] = {}

    def scope(self, module: str) -> Scope | None:
        """Return the scope of a module that the pack imports, such as `._models`, or None if it can't be read."""
        return self._find(f"{self._folder}{os.sep}", module)

    def _find(self, importer: str, module: str) -> Scope | None:
        key = importer, module
        if key not in self._scopes:
            files = _files_of(importer, module, self._folder)
            for file in files:
                if file not in self._read_files:
                    self._read_files[file] = self._read(file)
            self._scopes[key] = next(filter(None, map(self._read_files.get, files)), None)
        return self._scopes[key]

    def _read(self, file: str) -> Scope | None:
        stamp = stamp_of(file)  # before the content, so that the next scan detects a change in between
        source = _source(file)
        self.seen.append((file, stamp and tuple(stamp), None if source is None else digest(source)))
        if source is None:
            return None
        try:
            return Scope(ast.parse(source, PARSED_AS), file, partial(self._find, file))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def imported_files(pack: str) -> list[str]:
    """Return the files of all modules of its project that a pack imports, even indirectly, and of their packages.

    Args:
        pack: Absolute path of the pack.
    """
    start = os.path.dirname(pack)  # noqa: PTH120 - as below
    found, waiting = {pack}, [pack]
    while waiting:
        file = waiting.pop()
        imported = [each for module in _imported_names(file) for each in _files_of(file, module, start)]
        package = os.path.dirname(file)  # noqa: PTH120 - as below
        while os.path.isfile(init := f"{package}{os.sep}__init__.py"):  # noqa: PTH113 - as below
            imported.append(init)
            package = package.rpartition(os.sep)[0]
        new = {each for each in imported if each not in found and os.path.isfile(each)}  # noqa: PTH113 - as below
        found |= new
        waiting += new
    return sorted(found - {pack})


def _imported_names(file: str) -> Iterator[str]:
    """Yield the dotted names that a file imports anywhere, with leading dots; perhaps names in modules, too."""
    try:
        tree = ast.parse(_source(file) or b"", PARSED_AS)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield module
            yield from (f"{module}.{name.name}" if node.module else f"{module}{name.name}" for name in node.names)


def _files_of(importer: str, module: str, start: str) -> Sequence[str]:
    """Return the file of a module of the project, or where it could be if it is missing; empty for a library."""
    folder, top = os.path.dirname(importer), module.lstrip(".").partition(".")[0]  # noqa: PTH120 - for each name
    if module.startswith("."):
        return relative_files(folder, module, start)
    beside = f"{folder}{os.sep}{top}.py"
    if top.startswith("_") and os.path.isfile(beside):  # noqa: PTH113 - for each name
        return (beside,)
    if top in sys.stdlib_module_names or top in _INSTALLED:
        return ()
    found = find_local(importer, module, start=start)
    if found is not None:
        return module_files(found[0], module)
    if _library_file(top) is not None:
        return ()
    return [file for root in import_folders(folder, start) for file in module_files(root, module)]


def digest(source: bytes) -> bytes:
    """Return the hash of a file's content."""
    return hashlib.blake2b(source, digest_size=16).digest()


def is_unchanged(seen: Seen) -> bool:
    """Return whether a module's file still has the same content, by reading it."""
    source = _source(seen[0])
    return (None if source is None else digest(source)) == seen[2]


def _source(file: str) -> bytes | None:
    try:
        source = content(file)
    except OSError:
        return None
    return source if isinstance(source, bytes) else None
