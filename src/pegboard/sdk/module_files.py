"""Files of the modules that a pack can import besides libraries: those of its folder, its package and its project."""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Sequence

# pathlib is too heavy for a worker
# ruff: noqa: PTH113, PTH116, PTH120


_INIT = f"{os.sep}__init__.py"


def package_of(folder: str) -> tuple[str, str]:
    """Return the folder that contains the top-level package of a folder, and the folder's dotted name as a package.

    A folder without `__init__.py` isn't a package: it is returned itself, with an empty name.

    Args:
        folder: Absolute path.
    """
    root, names = folder, []
    while os.path.isfile(f"{root}{os.sep}__init__.py"):
        parent, _, name = root.rpartition(os.sep)
        if not parent or not name.isidentifier():
            break
        root = parent
        names.append(name)
    return root, ".".join(reversed(names))


def import_folders(folder: str, start: str = "") -> list[str]:
    """Return the folders in which the absolute imports of a module find modules that aren't libraries.

    These are the module's folder, the folder where the search for the module itself began, the folder that contains
    its top-level package, and the nearest folder above with a `pyproject.toml`, and its `src`. A folder above that
    others can write to, such as `/tmp`, is left out, because a module of another user would run, and so is a
    folder of installed libraries. Built-in packs have only their own folder.

    Args:
        folder: Absolute path of the module's folder.
        start: Absolute path of the folder where the search for the module began; empty for a pack.
    """
    root, package = package_of(folder)
    if package.partition(".")[0] == "pegboard":
        return [folder]
    above, parent = [start or folder, root], folder
    while parent:
        if os.path.isfile(f"{parent}{os.sep}pyproject.toml"):
            above += [parent, f"{parent}{os.sep}src"]
            break
        parent = parent.rpartition(os.sep)[0]
    folders = [folder]
    for each in above:
        if each not in folders and not each.endswith(("site-packages", "dist-packages")) and _is_owned(each, folder):
            folders.append(each)
    return folders


def relative_files(folder: str, module: str, start: str) -> tuple[str, ...]:
    """Return the file of a module that is imported with leading dots, or where it could be if it is missing.

    The result is empty if the dots lead out of the package.

    Args:
        folder: Absolute path of the folder of the importing module.
        module: Dotted name with its leading dots, such as `.client`; `.` is the package itself.
        start: Absolute path of the folder where the search for the importing module began.
    """
    name = module.lstrip(".")
    root = package_of(folder)[0]
    if folder.startswith(f"{start}{os.sep}") and len(start) < len(root):
        root = start
    for _ in range(len(module) - len(name) - 1):
        if folder == root:
            return ()
        folder = folder.rpartition(os.sep)[0]
    return module_files(folder, name) if name else (f"{folder}{os.sep}__init__.py",)


def module_files(root: str, module: str) -> tuple[str, ...]:
    """Return the file of a module, `a/b/__init__.py` or `a/b.py` for `a.b`; both if neither exists.

    Args:
        root: Absolute path of the folder that contains the top-level module.
        module: Dotted name.
    """
    place = f"{root}{os.sep}{module.replace('.', os.sep)}"
    candidates = f"{place}{os.sep}__init__.py", f"{place}.py"
    return next(((file,) for file in candidates if os.path.isfile(file)), candidates)


def module_file(root: str, module: str) -> str | None:
    """Return the file of a module, or None if it is missing; like `module_files`."""
    found = module_files(root, module)
    return found[0] if len(found) == 1 else None


def find_local(importer: str, module: str, names: Sequence[str] = (), start: str = "") -> tuple[str, str] | None:
    """Return where an absolute import finds a module that isn't a library: the folder of its top level, and its file.

    The result is None if a library has its name, unless the library is the project itself, or if there is no such
    file. Pegboard is always a library.

    Args:
        importer: Absolute path of the importing module, which is not a candidate unless it is a package.
        module: Dotted name of the module.
        names: Names that are imported from it; one of them may be a module in a folder without `__init__.py`.
        start: Absolute path of the folder where the search for the importing module began; empty for a pack.
    """
    top = module.partition(".")[0]
    if top == "pegboard" or top in sys.stdlib_module_names:
        return None
    for root in _search_folders(os.path.dirname(importer), top, start):
        # a folder counts only if it contains an imported module
        for each in (top, module, *(f"{module}.{name}" for name in names)):
            file = module_file(root, each)
            if file is not None and (file != importer or file.endswith(_INIT)):
                return (root, file) if _is_own(root, each) else None
            if file is not None:
                break
    return None


def _search_folders(folder: str, top: str, start: str) -> list[str]:
    """Return the folders of `import_folders`; for the name of the module's own package, first that of the package."""
    folders = import_folders(folder, start)
    root, package = package_of(folder)
    if package.partition(".")[0] == top and root in folders:
        folders.remove(root)
        folders.insert(0, root)
    return folders


def _is_own(root: str, module: str) -> bool:
    """Return whether no library has the name of a module in `root`, or the library is that module itself.

    Distributions can share a folder without `__init__.py`, so the first part of the name that is a file decides.
    """
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}".lstrip(".")
        file = module_file(root, name)
        if file is not None:
            library = library_file(name)
            return library is None or (library != "" and os.path.realpath(library) == os.path.realpath(file))
    return False


def library_file(name: str) -> str | None:
    """Return the file of a module that Python itself finds; empty if it has none, None if it is missing.

    If a package above the module has a file, return that file: it isn't run to find the module.

    Args:
        name: Dotted name.
    """
    from importlib.machinery import PathFinder
    from importlib.util import find_spec

    top, *parts = name.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):  # for example `__main__`
        return ""
    for part in parts:
        if spec is None or spec.origin or spec.submodule_search_locations is None:
            break
        top = f"{top}.{part}"
        spec = PathFinder.find_spec(top, [*spec.submodule_search_locations])
    return None if spec is None else spec.origin or ""


def _is_owned(folder: str, by: str) -> bool:
    """Return whether a folder exists, has the owner of `by`, and only its owner and group can write to it."""
    try:
        status, owner = os.stat(folder), os.stat(by).st_uid
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == owner and not status.st_mode & stat.S_IWOTH
