"""Many files read at once, by processes of our own; few and small ones here.

Processes keep the interface awake (the parser holds the interpreter's lock) and use every core, and a source that
ends the process that parses it costs only itself.
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
from pegboard.discovery.parser import failed
from pegboard.discovery.reader import Read, read, receive, send
from pegboard.schema.source import PARSED_AS

_FEW_BYTES = 150_000
"""Up to this much source is read here: about the time that a process takes to start."""
_CHUNK_BYTES = 100_000
_MOST_PROCESSES = 8
_PATIENCE = 60.0
"""Seconds after which a process that reads one chunk is taken for stuck."""


def read_all(files: Sequence[tuple[str, int]]) -> dict[str, Read]:
    """Reads files, each given by its absolute path and its size in bytes.

    Returns:
        What each of them holds.
    """
    if sum(size for _, size in files) <= _FEW_BYTES or not sys.executable:
        return _read_here([file for file, _ in files])
    chunks = deque(_chunks(files))
    found: dict[str, Read] = {}
    threads = [
        threading.Thread(target=_work, args=(chunks, found), name="pegboard-readers", daemon=True)
        for _ in range(min(_cores(), _MOST_PROCESSES, len(chunks)))
    ]
    started = [thread for thread in threads if _starts(thread)]
    for thread in started:
        thread.join()
    # A thread that couldn't start, or that ran out of memory, leaves files behind.
    found.update(_read_here([file for file, _ in files if file not in found]))
    return found


def _starts(thread: threading.Thread) -> bool:
    try:
        thread.start()
    except RuntimeError:  # no more threads to be had
        return False
    return True


def silence() -> None:
    """Keeps what Python has to say of a pack's strings and comparisons off the screen.

    Only what is parsed under our name is silenced, for `catch_warnings` isn't safe beside other threads.
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
    """Takes chunks until none is left; what a process dies of is read again file by file, each for itself."""
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
                lost = failed(PurePath(chunk[0]).stem, chunk[0], "Reading it ended the process that read it.")
                found[chunk[0]] = Read(None, pack(lost))
    finally:
        if process:
            process.close()


class _Process:
    """One process of `pegboard.discovery.reader`."""

    def __init__(self) -> None:
        """Starts it.

        Raises:
            OSError: It can't be started.
        """
        # Isolated, and our folder last: a `json.py` where the user stands, or beside us, must not be imported.
        root = str(Path(__file__).parent.parent.parent)
        code = f"import sys; sys.path.append({root!r}); from pegboard.discovery.reader import main; main()"
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter with our own code
            [sys.executable, "-I", "-S", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def read(self, files: list[str]) -> list[Read] | None:
        """Reads files; None if the process ended or got stuck over them."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        watchdog = threading.Timer(_PATIENCE, self._process.kill)
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
        """Ends the process and waits for its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
