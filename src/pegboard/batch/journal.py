"""Journal of a batch: which rows were started and which have a result.

The journal is a text file beside the results, `OUT.journal`. Lines are only appended:

- a header, as JSON: the batch, the tool and how its arguments are made
- `S ROW HASH`: the call of a row starts
- `D ROW SIZE OK`: the row has a result, and the results then have SIZE bytes

Rows start in the order of the input, so a row is finished unless it is among the few that have an `S` without a `D`,
and the memory to resume is bounded by the number of concurrent calls. The first `S` lines of all rows, in order, are
compared with the input while it is read again.

An `S` line is written before the call starts. A `D` line is written after the result, at the latest with the next `S`;
results whose `D` is missing are found in the results. A killed process therefore loses neither.
Results and journal are synced to the disk once a second, in this order, and at the end. After a power failure, rows of
the last second may therefore run again.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pegboard import storage
from pegboard.batch.errors import JournalError
from pegboard.models import DataModel

_VERSION = 1
_LONGEST_HEADER = 2**20


def journal_file(out: Path) -> Path:
    """Return the journal of a file of results."""
    return out.with_name(f"{out.name}.journal")


class JournalHeader(DataModel):
    """The batch that a journal belongs to."""

    batch: str
    """Id of the batch, the parent of its calls."""
    tool: str
    arguments: str
    """Hash of everything that turns a row into arguments."""
    source: str
    version: int = _VERSION


def is_replaceable(file: Path) -> bool:
    """Return whether a new journal can replace a file: it is missing, empty, or the journal of another batch.

    Raises:
        OSError: The file can't be read.
    """
    try:
        with file.open("rb") as lines:
            first = lines.readline(_LONGEST_HEADER)
        return not first or bool(JournalHeader.model_validate_json(first))
    except FileNotFoundError:
        return True
    except ValueError:
        return False


@dataclass
class JournalState:
    """The rows in a journal.

    Attributes:
        last: The highest row that was started.
        open: Rows without a result, with their hashes.
        size: Size of the results after the last one.
        succeeded: Number of successful rows.
        failed: Number of failed rows.
        reopened: Rows whose results were being removed when the journal ended.
    """

    last: int = 0
    open: dict[int, str] = field(default_factory=dict)
    size: int = 0
    succeeded: int = 0
    failed: int = 0
    reopened: frozenset[int] = frozenset()

    def finish(self, row: int, size: int, *, ok: bool) -> None:
        """Record a result."""
        self.open.pop(row, None)
        self.size = size
        self.succeeded += ok
        self.failed += not ok

    def reopen(self, rows: Iterable[int], size: int) -> None:
        """Record that the results of failed rows are removed; the others have `size` bytes."""
        self.reopened = frozenset(rows)
        self.open.update(dict.fromkeys(self.reopened, ""))
        self.failed -= len(self.reopened)
        self.size = size


class Journal:
    """An open journal, locked against other processes. Use `create` or `resume`.

    Args:
        file: The file.
        header: Its header.

    Raises:
        JournalError: Another process uses it.
        OSError: The file can't be opened.
    """

    def __init__(self, file: Path, header: JournalHeader) -> None:
        self._file = file
        self.header = header
        self.state = JournalState()
        self._unwritten = ""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(file, flags, storage.PRIVATE_FILE)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise JournalError(f"{file} is in use by another batch. Wait for it, or choose another --out.") from error

    @classmethod
    def create(cls, file: Path, header: JournalHeader) -> Journal:
        """Start a new journal, which replaces an older one.

        Raises:
            JournalError: Another process uses it.
            OSError: The file can't be written.
        """
        journal = cls(file, header)
        os.ftruncate(journal._descriptor, 0)
        journal._append(header.model_dump_json(by_alias=True) + "\n")
        return journal

    @classmethod
    def resume(cls, file: Path, header: JournalHeader, *, aliases: Collection[str] = ()) -> Journal:
        """Open a journal to continue its batch; the header's id is replaced by the journal's.

        Args:
            file: The file.
            header: The header that a new journal would have.
            aliases: Other names of the tool, such as one that it had when the batch started.

        Raises:
            JournalError: It doesn't exist, another process uses it, it is damaged or belongs to another batch.
            OSError: The file can't be read.
        """
        if not file.exists():
            raise JournalError(f"There is nothing to resume: {file} doesn't exist. Run without --resume.")
        journal = cls(file, header)
        try:
            journal._read(aliases)
        except BaseException:
            journal.close()
            raise
        return journal

    def start(self, rows: Iterable[tuple[int, str]]) -> None:
        """Record that the calls of rows start.

        Args:
            rows: Their numbers and hashes.

        Raises:
            OSError: The file can't be written.
        """
        if lines := "".join(f"S {row} {digest}\n" for row, digest in rows):
            self._append(lines)

    def reopen(self, rows: Sequence[int], size: int) -> None:
        """Record that the results of rows are about to be removed, so that the rows run again.

        Args:
            rows: The rows.
            size: Size of the results without them.

        Raises:
            OSError: The file can't be written.
        """
        self._append(f"U {size} {','.join(map(str, rows))}\n")
        self.sync()
        self.state.reopen(rows, size)

    def finish(self, row: int, size: int, *, ok: bool) -> None:
        """Record the result of a row, which is in the results already; they have `size` bytes with it.

        The line is written together with the next `start`: if it is lost, the results themselves have the row.
        """
        self._unwritten += f"D {row} {size} {int(ok)}\n"

    def hashes(self) -> Iterator[tuple[int, str]]:
        """Yield row and hash of the rows that were started before, in the order of the input."""
        expected, last = 1, self.state.last
        with self._file.open("rb") as lines:  # the header has names, which may not be ASCII
            for line in lines:
                if expected > last:
                    return
                if line.startswith(b"S "):
                    _, row, digest = line.decode("ascii").split()
                    if int(row) == expected:
                        yield expected, digest
                        expected += 1

    def flush(self) -> None:
        """Write all lines.

        Raises:
            OSError: The file can't be written.
        """
        self._append("")

    def sync(self) -> None:
        """Make the written lines survive a power failure; may run in another thread.

        Raises:
            OSError: The disk fails.
        """
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close and unlock the file."""
        os.close(self._descriptor)

    def _append(self, lines: str) -> None:
        storage.append(self._descriptor, (self._unwritten + lines).encode())
        self._unwritten = ""

    def _read(self, aliases: Collection[str]) -> None:
        """Read the file, and remove an incomplete line at its end."""
        end = 0
        with self._file.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                if end == 0:
                    self._read_header(line, aliases)
                else:
                    self._read_line(line)
                end += len(line)
        if end == 0:
            raise JournalError(f"There is nothing to resume: {self._file} is empty. Run without --resume.")
        os.ftruncate(self._descriptor, end)

    def _read_header(self, line: bytes, aliases: Collection[str]) -> None:
        try:
            found = json.loads(line)
            stored = JournalHeader.model_validate(found)
        except (ValueError, TypeError) as error:
            raise self._damaged(1) from error
        mine = self.header
        tool = stored.tool if stored.tool in aliases else mine.tool
        differs = [
            what
            for what, one, other in (
                ("another version of Pegboard", stored.version, mine.version),
                (f"the tool {stored.tool}", stored.tool, tool),
                ("other values of --map, --arg or --args", stored.arguments, mine.arguments),
            )
            if one != other
        ]
        if differs:
            raise JournalError(
                f"The batch can't be resumed because it was started with {' and '.join(differs)}."
                " Use the same options, or start again with another --out."
            )
        self.header = stored

    def _read_line(self, line: bytes) -> None:
        state = self.state
        state.reopened = frozenset()
        try:
            match line.decode("ascii").split():
                case ["S", row, digest]:
                    state.open[int(row)] = digest
                    state.last = max(state.last, int(row))
                case ["D", row, size, ok]:
                    state.finish(int(row), int(size), ok=ok == "1")
                case ["U", size, rows]:
                    state.reopen(map(int, rows.split(",")), int(size))
                case _:
                    raise self._damaged(state.last)
        except ValueError as error:
            raise self._damaged(state.last) from error

    def _damaged(self, row: int) -> JournalError:
        return JournalError(f"{self._file} is damaged after row {row}. Start again with --force or another --out.")
