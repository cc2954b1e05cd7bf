"""Folder of the results of a batch and its retries, which a later process with the same inputs finds."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from hashlib import blake2b
from itertools import chain, count, takewhile
from pathlib import Path
from typing import Final

from pegboard import storage
from pegboard.batch.journal import journal_file
from pegboard.batch.plan import BatchPlan

_LOCK: Final = "lock"


class ResultFolder:
    """A folder that no other process uses until `release`. Use `claim`.

    Args:
        plan: The batch; its tool, rows and mapping identify the folder.
        path: The folder.
        lock: Descriptor of its lock.
    """

    def __init__(self, plan: BatchPlan, path: Path, lock: int) -> None:
        self.plan = plan
        self._path = path
        self._lock = lock

    @classmethod
    def claim(cls, parent: Path, plan: BatchPlan) -> ResultFolder:
        """Return the folder of an interrupted batch with the same inputs, or else one that no process uses.

        Raises:
            OSError: It can't be created or locked.
        """
        name = _name(plan, plan.spec.name)
        paths = chain(_interrupted(parent, plan), (parent / f"{name}-{number}" for number in count(1)))
        while True:
            path = next(paths)
            storage.make_folder(path)
            lock = _lock(path)
            if lock is not None:
                return cls(plan, path, lock)

    def is_interrupted(self) -> bool:
        """Return whether the batch isn't finished; read the disk."""
        return _is_interrupted(self._path)

    def part(self, number: int) -> Path:
        """Return the file for the results of the batch (0) or of a retry."""
        return _part(self._path, number)

    def parts(self) -> list[Path]:
        """Return the files of results that exist, those of retries after what they repeat; read the disk."""
        return [*takewhile(Path.exists, map(self.part, count()))]

    def discard_retries(self) -> None:
        """Delete the results of retries, because the batch starts again."""
        for part in self.parts()[1:]:
            part.unlink(missing_ok=True)

    def has_inputs(self, plan: BatchPlan) -> bool:
        """Return whether a batch has the same tool, rows and mapping."""
        return any(_name(plan, tool) == _name(self.plan, self.plan.spec.name) for tool in _tools(plan))

    def release(self) -> None:
        """Delete the results unless they are those of an interrupted batch; let other processes use the folder."""
        if self._lock < 0:
            return
        if not self.is_interrupted():
            shutil.rmtree(self._path, ignore_errors=True)
        os.close(self._lock)
        self._lock = -1


def can_continue(parent: Path, plan: BatchPlan) -> bool:
    """Return whether a batch with the same inputs was interrupted, and no process uses its results.

    Raises:
        OSError: A folder can't be locked.
    """
    for path in _interrupted(parent, plan):
        lock = _lock(path)
        if lock is not None:
            os.close(lock)
            return True
    return False


def _tools(plan: BatchPlan) -> tuple[str, ...]:
    """Return the names of the tool, also those that it had when an interrupted batch started."""
    return (plan.spec.name, *plan.spec.aliases)


def _name(plan: BatchPlan, tool: str) -> str:
    inputs = "\0".join((tool, os.path.abspath(plan.source), *plan.maps))  # noqa: PTH100 - keeps symlinks
    return blake2b(inputs.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _part(folder: Path, number: int) -> Path:
    return folder / f"{number}.jsonl"


def _is_interrupted(folder: Path) -> bool:
    """Return whether the journal exists, which is deleted when the batch is finished."""
    return journal_file(_part(folder, 0)).exists()


def _interrupted(parent: Path, plan: BatchPlan) -> Iterator[Path]:
    """Yield the folders of interrupted batches with the same inputs, including those in use."""
    folders = (folder for tool in _tools(plan) for folder in sorted(parent.glob(f"{_name(plan, tool)}*")))
    return filter(_is_interrupted, folders)


def _lock(folder: Path) -> int | None:
    """Return the descriptor of a folder's lock; None if another process has it or has just deleted the folder."""
    file = folder / _LOCK
    try:
        descriptor = storage.open_lock(file)
    except FileNotFoundError:
        return None
    is_locked = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_locked = os.path.samestat(os.fstat(descriptor), file.stat())
    except (BlockingIOError, FileNotFoundError):
        return None
    finally:
        if not is_locked:
            os.close(descriptor)
    return descriptor if is_locked else None
