"""Results of a batch and of its retries as one file."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pydantic_core import to_json

from pegboard import storage
from pegboard.batch.results import read_results, write_csv


def merge_results(parts: Sequence[Path], target: Path) -> None:
    """Write the last result of each row to a new file, as CSV if its name ends with `.csv`; read and write the disk.

    Args:
        parts: Files of results; those of retries come after what they repeat.
        target: The file; it must not exist.

    Raises:
        FileExistsError: The file exists.
        OSError: A file can't be read or written.
    """
    if target.exists():
        raise FileExistsError(errno.EEXIST, "the file exists", str(target))
    later: list[set[object]] = [set()]
    for part in reversed(parts[1:]):
        later.append(later[-1] | {result["row"] for result in read_results(part)})
    with tempfile.TemporaryDirectory(dir=parts[0].parent) as folder:
        merged = Path(folder) / "merged.jsonl"
        with merged.open("wb") as out:
            for part, replaced in zip(parts, reversed(later), strict=True):
                for result in read_results(part):
                    if result["row"] not in replaced:
                        out.write(to_json(result) + b"\n")
        if target.suffix.lower() == ".csv":
            write_csv(merged, target)
        else:
            with storage.replacing(target, replace=False) as copy, merged.open("rb") as lines:
                shutil.copyfileobj(lines, copy)
