"""The source of a pack with the modules that it imports, identified by a hash of its content."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from pegboard.batch.errors import EngineError
from pegboard.built_in import is_built_in
from pegboard.discovery.project_modules import imported_files
from pegboard.models import PackHandler
from pegboard.sdk.module_files import package_of

_LARGEST: Final = 20_000_000


@dataclass(frozen=True, slots=True)
class PackBundle:
    """The files that a tool needs on another machine.

    Attributes:
        digest: Hash of names and contents.
        file: Path of the pack's file.
        files: Content by path, relative to a common folder; empty for a built-in pack, which every Pegboard has.
    """

    digest: str
    file: str
    files: dict[str, bytes]

    @classmethod
    def of(cls, handler: PackHandler) -> PackBundle:
        """Read the pack of a tool: its file, the helpers beside it and the modules of its project; read the disk.

        Raises:
            EngineError: A file can't be read, or they are too large.
        """
        file = Path(handler.file)
        if is_built_in(file):
            return cls(f"built-in-{file.stem}", file.name, {})
        try:
            modules = [Path(module) for module in imported_files(handler.file)]
            base = _base(file, modules)
            paths = {file, *file.parent.glob("_*.py"), *modules}
            files = {path.relative_to(base).as_posix(): path.read_bytes() for path in sorted(paths)}
            if (base / "pyproject.toml").is_file():
                files["pyproject.toml"] = b""
        except OSError as error:
            raise EngineError(f"{error.filename} can't be sent to the cluster: {error.strerror}.") from error
        if sum(map(len, files.values())) > _LARGEST:
            raise EngineError(f"{file.parent} can't be sent to the cluster: it has more than {_LARGEST:,} bytes.")
        return cls(digest_of(files), file.relative_to(base).as_posix(), files)


def _base(pack: Path, modules: Sequence[Path]) -> Path:
    """Return the folder that contains the pack and the modules that it imports, and that marks their project."""
    folder = pack.parent
    if all(module.is_relative_to(folder) for module in modules) and not (folder / "__init__.py").exists():
        return folder
    project = next((above for above in pack.parents if (above / "pyproject.toml").is_file()), None)
    top = Path(package_of(str(folder))[0])
    return Path(os.path.commonpath([top, *(module.parent for module in modules), *([project] if project else [])]))


def digest_of(files: dict[str, bytes]) -> str:
    """Return the hash of files by name."""
    found = sha256()
    for name, content in sorted(files.items()):
        found.update(f"{name}\0{len(content)}\0".encode())
        found.update(content)
    return found.hexdigest()
