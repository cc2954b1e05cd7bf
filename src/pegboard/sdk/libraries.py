"""Looking for a library without importing it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec

from pegboard.sdk.distributions import installed_as
from pegboard.sdk.findings import Found, judged


class Libraries:
    """The libraries of this interpreter, as they are installed now."""

    def __init__(self) -> None:
        self._providers: Mapping[str, Sequence[str]] | None = None

    def find(self, name: str, min_version: str | None) -> Found:
        """Looks for a library; nothing of it is imported, not even the packages above a dotted name.

        Args:
            name: What is imported, or the name that it is installed by.
            min_version: The least version that will do.
        """
        try:
            spec = _spec(name)
            version = self._version(name, spec) if spec else _installed_version(name)
        except Exception as error:  # noqa: BLE001 - finders and metadata of other libraries may raise anything
            return Found("error", error=f"Looking for `{name}` failed: {type(error).__name__}: {error}")
        if spec is None and version is None:
            return Found("missing", error=f"`{name}` is not installed.")
        return judged(name, version, _place(spec), min_version)

    def _version(self, name: str, spec: ModuleSpec) -> str | None:
        """Gives the version of what was installed so that `name` can be imported; None for what came with Python."""
        known = _recorded_version(name, spec)
        if known is not None:
            return known
        # This reads what every library has installed, and takes a tenth of a second.
        if self._providers is None:
            self._providers = metadata.packages_distributions()
        providers = sorted(set(self._providers.get(name.partition(".")[0], ())))
        if len(providers) == 1:
            return metadata.version(providers[0])
        return _installed_version(name) if providers else None


def _recorded_version(name: str, spec: ModuleSpec) -> str | None:
    """Gives the version of what is installed by the name of what it provides, if it says that it installed that file.

    Its list of files is searched as text (PyPA, Recording installed projects: `RECORD` is CSV, a path first).
    """
    if not spec.has_location or spec.origin is None:
        return None
    for installed in installed_as(name):
        try:
            found = metadata.distribution(installed)
        except (metadata.PackageNotFoundError, ValueError):
            continue
        record, folder = found.read_text("RECORD"), str(found.locate_file(""))
        path = os.path.relpath(spec.origin, folder).replace(os.sep, "/")
        if record is not None and f"\n{path}," in f"\n{record}":
            return found.version
    return None


def _installed_version(name: str) -> str | None:
    try:
        return metadata.version(name.replace(".", "-"))
    except (metadata.PackageNotFoundError, ValueError):  # ValueError: it can't be a name at all
        return None


def _spec(name: str) -> ModuleSpec | None:
    top, *below = name.split(".")
    if not all(part.isidentifier() for part in (top, *below)):
        return None
    spec = _top_spec(top)
    for part in below:
        if spec is None or spec.submodule_search_locations is None:
            return None
        # By its last name alone: by the whole one, Python would look for the packages above among those imported.
        spec = PathFinder.find_spec(part, list(spec.submodule_search_locations))
    return spec


def _top_spec(name: str) -> ModuleSpec | None:
    try:
        return find_spec(name)
    except ValueError:  # something without a spec was put among the modules by that name
        return PathFinder.find_spec(name)


def _place(spec: ModuleSpec | None) -> str | None:
    if spec is None:
        return None
    if spec.has_location:
        return spec.origin
    return next(iter(spec.submodule_search_locations or ()), None)
