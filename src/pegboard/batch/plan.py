"""Options of a batch."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from pegboard.batch.errors import BatchError
from pegboard.batch.journal import journal_file
from pegboard.batch.rows import STDIN
from pegboard.models import JsonObject, ToolSpec

_RATE = re.compile(r"(\d+(?:\.\d+)?)(?:/(s|sec|min|h))?", re.ASCII)
_SECONDS = {None: 1, "s": 1, "sec": 1, "min": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Options of a batch.

    Attributes:
        spec: The tool.
        source: Path of the rows, or `-` for standard input.
        maps: Values of `--map`.
        given: Arguments that every row starts from; None for an untouched form.
        jobs: Highest number of concurrent calls; None for as many as fit the engine.
        rate: Highest number of calls started per second; None for no limit.
        retry: Highest number of further attempts of a row.
        out: File of the results; None to keep none. A name that ends with `.csv` is written as CSV.
        resume: Whether to continue the batch that wrote `out`.
        retry_unknown: Whether to repeat interrupted calls of a tool that isn't idempotent.
        stop_after: Number of failed rows after which no more rows start; None for no limit.
        timeout: Timeout of a call in seconds; by default that of the tool.
        encoding: Encoding of the rows; by default found out.
        replace: Whether to replace existing results.
        only: Numbers of the rows to run; None for all.
    """

    spec: ToolSpec
    source: str
    maps: tuple[str, ...] = ()
    given: JsonObject | None = None
    jobs: int | None = None
    rate: float | None = None
    retry: int = 0
    out: Path | None = None
    resume: bool = False
    retry_unknown: bool = False
    stop_after: int | None = None
    timeout: float | None = None
    encoding: str | None = None
    replace: bool = False
    only: frozenset[int] | None = None

    @property
    def lines(self) -> Path | None:
        """The file that results are appended to: `out`, or a file beside it if that is CSV."""
        if self.out is None or self.out.suffix.lower() != ".csv":
            return self.out
        return self.out.with_name(f"{self.out.name}.rows.jsonl")

    def arguments_hash(self) -> str:
        """Return a hash of everything that turns a row into arguments."""
        parts = [sorted(self.maps), self.given, self.encoding]
        return blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=8).hexdigest()

    def check(self) -> None:
        """Check options that exclude each other.

        Raises:
            BatchError: The batch can't run this way.
        """
        if self.resume and self.source == STDIN:
            raise BatchError("Standard input can't be resumed because it can't be read again. Save the rows to a file.")
        if self.resume and self.out is None:
            raise BatchError("Only a batch with --out can be resumed.")
        if self.resume and self.replace:
            raise BatchError("--resume continues existing results and --force replaces them. Use one of them.")
        if self.out is not None and not self.out.parent.is_dir():
            raise BatchError(f"{self.out} can't be written: the folder {self.out.parent} doesn't exist.")
        if self.out is not None and self.out.exists() and not self.out.is_file():
            raise BatchError(f"{self.out} can't be written because it is not a regular file. Choose another --out.")
        self._check_rows_are_kept()

    def _check_rows_are_kept(self) -> None:
        """Raise `BatchError` if the batch would write to the file of its rows."""
        if self.out is None or self.lines is None or self.source == STDIN:
            return
        source = _resolved(self.source)
        if _resolved(self.out) == source:
            raise BatchError(f"--out must be another file than the rows: {self.out}.")
        for beside in (self.lines, journal_file(self.out)):
            if _resolved(beside) == source:
                raise BatchError(
                    f"A batch with the results {self.out} replaces {beside}, which contains the rows."
                    " Choose another --out."
                )


def _resolved(file: Path | str) -> str:
    return os.path.realpath(file)  # `Path.resolve` raises if links form a loop


def read_rate(text: str) -> float:
    """Return the calls per second of a rate such as `5/s`, `0.5/s` or `30/min`.

    Raises:
        BatchError: It can't be read.
    """
    found = _RATE.fullmatch(text.strip())
    rate = float(found[1]) / _SECONDS[found[2]] if found else 0.0
    if rate <= 0:
        raise BatchError(f"The rate {text!r} can't be used. Write it as a number per time, such as 5/s or 30/min.")
    return rate
