"""Subprocesses and their output: without a shell, and only as long as the output is needed."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pegboard.sdk import ToolFailed

_LONGEST_ERROR = 2_000
_DESCRIPTORS = "/proc/self/fd"
_ENTER = "import os, sys; os.fchdir(int(sys.argv[1])); os.execvp(sys.argv[2], sys.argv[2:])"


class Program:
    """A running program.

    Args:
        process: The process, with a pipe for stdout.
        errors: The file for stderr.
    """

    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        assert process.stdout is not None, "asked for"
        self.output = process.stdout
        """What it prints."""
        self._process = process
        self._errors = errors

    def end(self) -> int:
        """Wait for its end and return its exit code."""
        return self._process.wait()

    def complaint(self) -> str:
        """Return the beginning of its stderr."""
        self._errors.seek(0)
        return self._errors.read(_LONGEST_ERROR).decode("utf-8", "replace").strip()


@contextmanager
def started(command: Sequence[str], folder: int | None = None, files: Sequence[int] = ()) -> Iterator[Program]:
    """Start a program, and end it afterwards if it still runs.

    Args:
        command: Its name on the PATH, and its arguments.
        folder: The descriptor of the folder to run it in; None for the working directory.
        files: Descriptors that it inherits.

    Raises:
        ToolFailed: It can't be started.
    """
    kept = [*files]
    in_folder = [*command]
    cwd = None
    if folder is not None and Path(_DESCRIPTORS).is_dir():
        cwd = f"{_DESCRIPTORS}/{folder}"
    elif folder is not None:  # on this system only a process itself can change to a folder by its descriptor
        in_folder = [sys.executable, "-I", "-S", "-c", _ENTER, str(folder), *command]
        kept.append(folder)
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(  # noqa: S603 - no shell, and every pack checks its arguments
                in_folder, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, pass_fds=kept
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
