"""Running programs that print what a tool is after: never by a shell, and never longer than they are of use."""

import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, NamedTuple

from pegboard.sdk import ToolFailed

_LONGEST_ERROR = 2_000


class Program:
    """A program that runs.

    Args:
        process: The process, with a pipe for what it prints.
        errors: The file that takes its complaints.
    """

    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        assert process.stdout is not None, "asked for"
        self.output = process.stdout
        """What it prints."""
        self._process = process
        self._errors = errors

    def end(self) -> int:
        """Waits for its end, and gives its exit code."""
        return self._process.wait()

    def stop(self) -> None:
        """Ends it, as nothing more is wanted of it."""
        self._process.kill()

    def complaint(self) -> str:
        """Gives the beginning of what it said on standard error."""
        self._errors.seek(0)
        return self._errors.read(_LONGEST_ERROR).decode("utf-8", "replace").strip()


class Printed(NamedTuple):
    """What a program printed, and how it ended."""

    output: bytes
    status: int
    complaint: str
    cut: bool
    """Whether it was stopped, as it printed more than was wanted."""


@contextmanager
def started(command: Sequence[str], folder: str, environ: Mapping[str, str] | None = None) -> Iterator[Program]:
    """Starts a program, and sees to it that it has ended afterwards.

    Args:
        command: Its name on the PATH, and its arguments.
        folder: Where it runs.
        environ: Its environment; ours if there is none.

    Raises:
        ToolFailed: It can't be started.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(  # noqa: S603 - no shell, and every pack checks the arguments that it gives
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environ
            )
        except OSError as error:
            said = (error.strerror or str(error)).lower()
            raise ToolFailed(f"{command[0]} can't be started: {said}.", code="dependency_missing") from None
        except ValueError:
            raise ToolFailed("An argument can't contain NUL characters.", code="invalid_argument") from None
        with process:
            try:
                yield Program(process, errors)
            finally:
                process.kill()


def printed(command: Sequence[str], folder: str, most: int, environ: Mapping[str, str] | None = None) -> Printed:
    """Runs a program to its end, or until it has printed enough.

    Args:
        command: Its name on the PATH, and its arguments.
        folder: Where it runs.
        most: How many bytes of its output are wanted.
        environ: Its environment; ours if there is none.

    Raises:
        ToolFailed: It can't be started.
    """
    with started(command, folder, environ) as program:
        output = program.output.read(most + 1)
        cut = len(output) > most
        if cut:
            program.stop()
        return Printed(output[:most], program.end(), program.complaint(), cut)
