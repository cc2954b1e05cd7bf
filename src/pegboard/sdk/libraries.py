"""Probes for installed libraries, without importing them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec

from pegboard.sdk.distributions import installed_as
from pegboard.sdk.findings import ProbeResult, check_version

# This module works with names in folders, which pathlib makes slow.
# ruff: noqa: PTH118, PTH119, PTH120, PTH123, PTH208

_VERSION = re.compile(r"^Version:[ \t]*(\S+)", re.MULTILINE)
_MAKES_MODULES = re.compile(r"\b__path__\b|\bsys\.modules\[")
_MOST_METADATA = 65_536
"""Characters of a distribution's metadata to read; its version is among the first lines."""


class Libraries:
    """Installed libraries of this interpreter."""

    def __init__(self) -> None:
        self._providers: Mapping[str, Sequence[str]] | None = None

    def find(self, name: str, min_version: str | None) -> ProbeResult:
        """Probe for a library without importing it or the parent packages of a dotted name.

        Args:
            name: Import name or distribution name.
            min_version: Lowest version that works.
        """
        try:
            spec = _spec(name)
            version = self._version(name, spec) if spec else _installed_version(name)
        except Exception as error:  # noqa: BLE001 - import hooks and metadata of other libraries may raise anything
            return ProbeResult("error", error=f"Looking for `{name}` failed: {type(error).__name__}: {error}")
        if spec is None and version is None:
            return ProbeResult("missing", error=f"`{name}` is not installed.")
        return check_version(name, version, _path_of(spec), min_version)

    def _version(self, name: str, spec: ModuleSpec) -> str | None:
        """Return the version of the distribution that provides `name`; None for the standard library."""
        known = _recorded_version(name, spec)
        if known is not None:
            return known
        from importlib import metadata

        # Reading the file lists of all distributions takes 100 ms.
        if self._providers is None:
            self._providers = metadata.packages_distributions()
        providers = sorted(set(self._providers.get(name.partition(".")[0], ())))
        if len(providers) == 1:
            return metadata.version(providers[0])
        return _installed_version(name) if providers else _editable_version(spec)


def _recorded_version(name: str, spec: ModuleSpec) -> str | None:
    """Return the version of the distribution with a matching name, if its `RECORD` lists the file of the library.

    `RECORD` is a CSV file whose first column is the path; it is searched as text, which is faster than parsing.
    """
    if not spec.has_location or spec.origin is None:
        return None
    names = installed_as(name)
    version = _version_beside(name, spec.origin, names)
    if version is not None:
        return version
    from importlib import metadata

    for installed in names:
        try:
            found = metadata.distribution(installed)
        except (metadata.PackageNotFoundError, ValueError):
            continue
        record, folder = found.read_text("RECORD"), str(found.locate_file(""))
        path = os.path.relpath(spec.origin, folder).replace(os.sep, "/")
        if record is not None and f"\n{path}," in f"\n{record}":
            return found.version
    return None


def _version_beside(name: str, origin: str, names: Sequence[str]) -> str | None:
    """Return the version of a distribution in the same folder, if its `RECORD` lists the file of the library.

    `importlib.metadata` finds the same, but loading it takes longer than all other checks.
    """
    is_package = os.path.basename(origin).startswith("__init__.")
    folder = origin
    for _ in range(name.count(".") + 1 + is_package):
        folder = os.path.dirname(folder)
    line = f"\n{os.path.relpath(origin, folder).replace(os.sep, '/')},"
    known = {_normalized(one) for one in names}
    for entry in os.listdir(folder):
        if not entry.endswith(".dist-info") or _normalized(entry.partition("-")[0]) not in known:
            continue
        record, described = (_read(os.path.join(folder, entry, file)) for file in ("RECORD", "METADATA"))
        version = _VERSION.search(described[:_MOST_METADATA])
        if version is not None and line in f"\n{record}":
            return version[1]
    return None


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            return opened.read()
    except OSError:
        return ""


def _installed_version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name.replace(".", "-"))
    except (metadata.PackageNotFoundError, ValueError):  # ValueError: not a valid name
        return None


def _editable_version(spec: ModuleSpec) -> str | None:
    """Return the version of a project that is installed as editable: its record lists none of its modules."""
    if not spec.has_location or spec.origin is None:
        return None
    file = os.path.realpath(spec.origin)
    # The environment may be a folder of the project.
    if any(_is_below(file, prefix) for prefix in {sys.prefix, sys.base_prefix}):
        return None
    from importlib import metadata

    for distribution in metadata.distributions():
        folder = _editable_folder(distribution.read_text("direct_url.json") or "")
        if folder and _is_below(file, folder):
            return distribution.version
    return None


def _editable_folder(direct_url: str) -> str:
    """Return the folder of an editable project by its `direct_url.json`; empty for other distributions."""
    if "editable" not in direct_url:
        return ""
    import json
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        source = json.loads(direct_url)
        return url2pathname(urlsplit(source["url"]).path) if source["dir_info"]["editable"] else ""
    except (ValueError, KeyError, TypeError):
        return ""


def _is_below(file: str, folder: str) -> bool:
    return file.startswith(os.path.realpath(folder).rstrip(os.sep) + os.sep)


def _spec(name: str) -> ModuleSpec | None:
    top, *below = name.split(".")
    if not all(part.isidentifier() for part in (top, *below)):
        return None
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(loaded, ModuleSpec):
        return loaded
    spec = _top_spec(top)
    for part in below:
        if spec is None:
            return None
        if spec.submodule_search_locations is None:
            return spec if _makes_modules(spec) else None
        # with the full name, Python would search the imported parent packages
        spec = PathFinder.find_spec(part, list(spec.submodule_search_locations))
    return spec


def _makes_modules(spec: ModuleSpec) -> bool:
    """Return whether a module that isn't a package makes modules when it is imported, such as `six.moves`."""
    return spec.has_location and _MAKES_MODULES.search(_read(spec.origin or "")) is not None


def _top_spec(name: str) -> ModuleSpec | None:
    try:
        return find_spec(name)
    except ValueError:  # the module in `sys.modules` has no spec
        return PathFinder.find_spec(name)


def _path_of(spec: ModuleSpec | None) -> str | None:
    if spec is None:
        return None
    if spec.has_location:
        return spec.origin
    return next(iter(spec.submodule_search_locations or ()), None)
