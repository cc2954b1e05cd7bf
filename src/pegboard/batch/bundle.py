"""The source of a pack with its helper modules, identified by a hash of its content."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from pegboard.batch.errors import EngineError
from pegboard.models import PackHandler

_BUILT_IN: Final = Path(__file__).parents[1] / "packs"
_LARGEST: Final = 20_000_000


@dataclass(frozen=True, slots=True)
class PackBundle:
    """The files that a tool needs on another machine.

    Attributes:
        digest: Hash of names and contents.
        file: Name of the pack's file.
        files: Content by name; empty for a built-in pack, which every Pegboard has.
    """

    digest: str
    file: str
    files: dict[str, bytes]

    @classmethod
    def of(cls, handler: PackHandler) -> PackBundle:
        """Read the pack of a tool: its file and the helper modules in the same folder; read the disk.

        Raises:
            EngineError: A file can't be read, or they are too large.
        """
        file = Path(handler.file)
        if file.parent == _BUILT_IN:
            return cls(f"built-in-{file.stem}", file.name, {})
        try:
            names = sorted({file.name, *(helper.name for helper in file.parent.glob("_*.py"))})
            files = {name: (file.parent / name).read_bytes() for name in names}
        except OSError as error:
            raise EngineError(f"{error.filename} can't be sent to the cluster: {error.strerror}.") from error
        if sum(map(len, files.values())) > _LARGEST:
            raise EngineError(f"{file.parent} can't be sent to the cluster: it has more than {_LARGEST:,} bytes.")
        return cls(digest_of(files), file.name, files)


def digest_of(files: dict[str, bytes]) -> str:
    """Return the hash of files by name."""
    found = sha256()
    for name, content in sorted(files.items()):
        found.update(f"{name}\0{len(content)}\0".encode())
        found.update(content)
    return found.hexdigest()


def built_in(file: str) -> Path:
    """Return the path of a built-in pack on this machine."""
    return _BUILT_IN / file
