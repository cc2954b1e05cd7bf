"""The packs of git repositories as they were at a revision."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from pegboard.checks.file import CheckError
from pegboard.checks.schemas import SchemaVersion
from pegboard.config.paths import BUILT_IN_PACKS
from pegboard.discovery.files import is_pack_file
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
    """

    def __init__(self, runtime: Runtime, revision: str) -> None:
        self._runtime = runtime
        self._revision = revision
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
        # Helper modules define types that the schemas use, so they come from the same revision.
        siblings = await self._texts(Path(file).parent)
        helpers = {name: text for name, text in siblings.items() if name.startswith("_")}
        return await asyncio.to_thread(_parsed, Path(file).name, texts[real.name], helpers, self._revision)

    async def _texts(self, folder: Path) -> _Texts:
        folder = resolved(folder)
        if folder not in self._folders:
            top = repository_of(folder)
            if top is None:
                return {}
            path = folder.relative_to(top).as_posix()
            result = await self._runtime.queries.python_files_at(str(top), path, self._revision)
            if result.error is not None:
                raise CheckError(f"{path} can't be read at {self._revision}. {result.error.message}")
            try:
                data = await asyncio.to_thread(whole, result)
            except (OSError, ValueError) as error:
                raise CheckError(f"{path} can't be read at {self._revision}: {error}.") from error
            assert isinstance(data, dict), "the files by name"
            self._folders[folder] = {name: text if isinstance(text, str) else None for name, text in data.items()}
        return self._folders[folder]


def repository_of(path: Path | str) -> Path | None:
    """Return the top folder of the git repository that contains a pack or a packs folder; None for built-in ones."""
    if is_built_in(path):
        return None
    real = resolved(path)
    return next((folder for folder in (real, *real.parents) if (folder / ".git").exists()), None)


def is_built_in(path: Path | str) -> bool:
    """Return whether a path is the folder of built-in packs, or inside it."""
    return resolved(path).is_relative_to(os.path.realpath(BUILT_IN_PACKS))


def resolved(path: Path | str) -> Path:
    """Return the absolute path without links; the path may be missing."""
    return Path(os.path.realpath(path))


def _is_single(path: Path) -> bool:
    """Return whether a path in `--packs` names a single pack, which may be missing."""
    return path.suffix == ".py" and not path.is_dir()


def _parsed(name: str, source: str | None, helpers: _Texts, revision: str) -> dict[str, SchemaVersion]:
    from pegboard.discovery import read

    if source is None:
        raise UnparsablePackError(f"{name} can't be parsed at {revision} because it is too large or not UTF-8 text.")
    with tempfile.TemporaryDirectory(prefix="pegboard-") as folder:
        for helper, text in helpers.items():
            if text is not None:
                (Path(folder) / helper).write_text(text, encoding="utf-8")
        specs, problems = read(source, str(Path(folder) / name))
    if not specs and any(problem.severity == "error" for problem in problems):
        raise UnparsablePackError(f"{name} can't be parsed at {revision}. {problems[0].message}")
    now = datetime.now(UTC)
    versions = {}
    for spec in specs:
        version = SchemaVersion(at=now, digest="", input_schema=spec.input_schema, output_schema=spec.output_schema)
        versions[spec.name] = version
    return versions
