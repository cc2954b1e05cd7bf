"""The packs of git repositories as they were at a revision."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from pegboard.built_in import is_built_in
from pegboard.checks.file import CheckError
from pegboard.checks.schemas import SchemaVersion
from pegboard.discovery.files import absolute, is_pack_file
from pegboard.models import Problem, ToolSpec
from pegboard.results.export import whole
from pegboard.runtime import Runtime

_Texts: TypeAlias = Mapping[str, str | None]
"""Python files of one folder by name; None for those that are too large or not UTF-8."""


class UnparsablePackError(CheckError):
    """A pack can't be parsed as it was at the revision."""


class PacksAtRevision:
    """Packs at a revision, parsed without running them. Each folder is read once.

    Args:
        runtime: The runtime that reads the repositories.
        revision: A branch, a tag, or another name of a commit.
        copy: Empty folder for copies of the packs and of the modules that define their types; each has its whole path.
    """

    def __init__(self, runtime: Runtime, revision: str, copy: Path) -> None:
        self._runtime = runtime
        self._revision = revision
        self._copy = copy
        self._copied: set[Path] = set()
        self._folders: dict[Path, _Texts] = {}

    async def files(self, path: Path) -> tuple[str, ...]:
        """Return the pack files that a packs folder had, whether or not they exist now.

        Args:
            path: A packs folder, or a single pack file, in a git repository.

        Raises:
            CheckError: The repository or the revision can't be read.
        """
        if _is_single(path):
            return (str(path),) if path.name in await self._texts(path.parent) else ()
        return tuple(str(path / name) for name in await self._texts(path) if is_pack_file(name))

    async def tools(self, file: str) -> dict[str, SchemaVersion]:
        """Return the tools that a pack file had; empty if the commit doesn't have the file.

        Raises:
            UnparsablePackError: The file can't be parsed.
            CheckError: The repository or the revision can't be read.
        """
        real = resolved(file)
        texts = await self._texts(real.parent)
        if real.name not in texts:
            return {}
        source = texts[real.name]
        if source is None:
            raise UnparsablePackError(
                f"{real.name} can't be parsed at {self._revision} because it is too large or not UTF-8 text."
            )
        specs, problems = await self._parsed(Path(absolute(file)), source)
        if not specs and any(problem.severity == "error" for problem in problems):
            raise UnparsablePackError(f"{real.name} can't be parsed at {self._revision}. {problems[0].message}")
        return {spec.name: _version(spec) for spec in specs}

    async def _parsed(self, file: Path, source: str) -> tuple[Sequence[ToolSpec], Sequence[Problem]]:
        """Parse a pack with the modules of its project that define types, all from the same revision."""
        from pegboard.discovery import read

        top = repository_of(file.parent) or file.parent
        wanted = {folder for folder in file.parents if folder.is_relative_to(top)} or {file.parent}
        top = min(wanted, key=lambda folder: len(folder.parts))
        while True:
            for folder in wanted:
                await self._copy_folder(folder, self._copy / _relative(folder))
            specs, problems = await asyncio.to_thread(read, source, str(self._copy / _relative(file)))
            needed = {Path(module).parent for spec in specs for module in spec.files}
            copied = {self._copy / _relative(folder): folder for folder in self._copied}
            wanted = {
                Path(file.anchor, each.relative_to(self._copy))
                for each in needed - copied.keys()
                if each.is_relative_to(self._copy)
            }
            if not wanted:
                return specs, problems

    async def _copy_folder(self, folder: Path, place: Path) -> None:
        """Write the Python files that a folder had, and mark the folder of a project."""
        if folder in self._copied:
            return
        self._copied.add(folder)
        texts = await self._texts(folder)
        await asyncio.to_thread(_write, place, texts, is_project=(folder / "pyproject.toml").is_file())

    async def _texts(self, folder: Path) -> _Texts:
        folder = resolved(folder)
        if folder not in self._folders:
            top = repository_of(folder)
            if top is None:
                return {}
            path = folder.relative_to(top).as_posix()
            result = await self._runtime.queries.python_files_at(str(top), path, self._revision)
            if result.error is not None:
                advice = _advice(top) if result.error.detail == "unknown_revision" else ""
                raise CheckError(f"{folder} can't be read at {self._revision}. {result.error.message}{advice}")
            try:
                data = await asyncio.to_thread(whole, result)
            except (OSError, ValueError) as error:
                raise CheckError(f"{folder} can't be read at {self._revision}: {error}.") from error
            assert isinstance(data, dict), "the files by name"
            self._folders[folder] = {name: text if isinstance(text, str) else None for name, text in data.items()}
        return self._folders[folder]


def repository_of(path: Path | str) -> Path | None:
    """Return the top folder of the git repository that contains a pack or a packs folder; None for built-in ones."""
    if is_built_in(path):
        return None
    real = resolved(path)
    return next((folder for folder in (real, *real.parents) if _has_git_folder(folder)), None)


def _advice(top: Path) -> str:
    """Return how a revision becomes known to a repository."""
    if (top / ".git" / "shallow").is_file():
        return (
            f" The clone {top} is shallow: fetch the commit first, with `git fetch --unshallow`, or with"
            " `fetch-depth: 0` of actions/checkout in GitHub Actions."
        )
    return f" Name a commit of the repository {top}; `git fetch` gets those of its remote."


def _has_git_folder(folder: Path) -> bool:
    """Return whether a folder has a git directory, as git decides: empty ones, which sandboxes make, are none."""
    place = folder / ".git"
    return os.path.isfile(place) or os.path.lexists(place / "HEAD")  # noqa: PTH113 - pathlib raises without permission


def resolved(path: Path | str) -> Path:
    """Return the absolute path without links; the path may be missing."""
    return Path(os.path.realpath(path))


def _is_single(path: Path) -> bool:
    """Return whether a path in `--packs` names a single pack, which may be missing."""
    return path.suffix == ".py" and not path.is_dir()


def _relative(path: Path) -> Path:
    """Return the path that an absolute path has below the folder of the copies."""
    return path.relative_to(path.anchor)


def _write(place: Path, texts: _Texts, *, is_project: bool) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        if text is not None:
            (place / name).write_text(text, encoding="utf-8")
    if is_project:
        (place / "pyproject.toml").touch()


def _version(spec: ToolSpec) -> SchemaVersion:
    return SchemaVersion.of(spec, datetime.now(UTC))
