"""Concurrent reading of many files in child processes; a few small files are read in this process.

Python's parser holds the interpreter lock, so threads would block the interface. Child processes also use every core,
a file that crashes the parser affects only itself, and the memory of the parser is free afterwards.
"""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from pegboard.discovery.collector import collector_paused
from pegboard.discovery.parsed import pack
from pegboard.discovery.reader import Read, read, receive, send
from pegboard.signatures.expressions import PARSED_AS

_FEW_BYTES = 30_000
"""Maximum total size of files read in this process, such as a changed pack or two."""
_CHUNK_BYTES = 100_000
_MOST_PROCESSES = 8
_TIMEOUT_SECONDS = 60.0
"""Time limit for one chunk, in seconds."""


def read_all(files: Sequence[tuple[str, int]]) -> dict[str, Read]:
    """Read files, given as absolute paths and sizes in bytes, and return their contents by path."""
    if sum(size for _, size in files) <= _FEW_BYTES or not sys.executable:
        return _read_here([file for file, _ in files])
    chunks = deque(_chunks(files))
    found: dict[str, Read] = {}
    threads = [
        threading.Thread(target=_work, args=(chunks, found), name="pegboard-readers", daemon=True)
        for _ in range(min(_cores(), _MOST_PROCESSES, len(chunks)))
    ]
    started = [thread for thread in threads if _start(thread)]
    for thread in started:
        thread.join()
    # files remain if a thread could not start or ran out of memory
    found.update(_read_here([file for file, _ in files if file not in found]))
    return found


def _start(thread: threading.Thread) -> bool:
    try:
        thread.start()
    except RuntimeError:  # the limit of threads is reached
        return False
    return True


def silence() -> None:
    """Suppress Python's syntax warnings about packs, which would disturb the interface.

    The filter applies to sources parsed as `PARSED_AS`; `catch_warnings` is not thread-safe.
    """
    warnings.filterwarnings("ignore", module=PARSED_AS)


def _read_here(files: Sequence[str]) -> dict[str, Read]:
    silence()
    with collector_paused():
        return {file: read(file) for file in files}


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _chunks(files: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for file, bytes_ in files:
        chunk.append(file)
        size += bytes_
        if size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _work(chunks: deque[list[str]], found: dict[str, Read]) -> None:
    """Process chunks until none is left. If a chunk crashes the child process, retry each of its files alone."""
    process: _Process | None = None
    try:
        while True:
            try:
                chunk = chunks.popleft()
            except IndexError:
                return
            try:
                process = process or _Process()
            except OSError:
                found.update(_read_here(chunk))
                continue
            reads = process.read(chunk)
            if reads is not None:
                found.update(zip(chunk, reads, strict=True))
                continue
            process.close()
            process = None
            if len(chunk) > 1:
                chunks.extend([file] for file in chunk)
            else:
                from pegboard.discovery.parser import failed

                lost = failed(PurePath(chunk[0]).stem, chunk[0], "The file crashed Python's parser.")
                found[chunk[0]] = Read(None, pack(lost))
    finally:
        if process:
            process.close()


class _Process:
    """Child process that runs `pegboard.discovery.reader`.

    Raises:
        OSError: The process can't be started.
    """

    def __init__(self) -> None:
        # isolated, and with our folder last, so that a `json.py` in the working directory is not imported
        root = str(Path(__file__).parent.parent.parent)
        code = f"import sys; sys.path.append({root!r}); from pegboard.discovery.reader import main; main()"
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter with our own code
            [sys.executable, "-I", "-S", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def read(self, files: list[str]) -> list[Read] | None:
        """Return the contents of files, or None if the process crashed or exceeded the time limit."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        watchdog = threading.Timer(_TIMEOUT_SECONDS, self._process.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            send(stdin, files)
            frame = receive(stdout)
        except OSError:
            return None
        finally:
            watchdog.cancel()
        if frame is None:
            return None
        return [Read(*row) for row in marshal.loads(frame)]  # noqa: S302 - from our own process

    def close(self) -> None:
        """Terminate the process and wait for it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
