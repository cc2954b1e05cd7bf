"""Asking programs for their versions, many at once, none for longer than it may take."""

from __future__ import annotations

import os
import re
import resource
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from pegboard.sdk.findings import Found, judged
from pegboard.sdk.requirements import Requirement
from pegboard.sdk.versions import version_in

_MOST_AT_ONCE = 256
_TICK = 0.02
"""Seconds between two looks at which programs have ended."""
_MOST_OUTPUT = 65_536
_LONGEST_LINE = 200
_FLAG = re.compile(r"-{0,2}(?:[A-Za-z-]*version[A-Za-z-]*|ver|v|V|h|help|client|short)")
"""What a program may be asked with: nobody is asked before, so it must not be able to do anything else."""
_MANNERS = {"LC_ALL": "C", "NO_COLOR": "1", "PAGER": "cat", "TERM": "dumb"}


class Programs:
    """Programs that are being asked for their versions; on leaving, those that still run are killed.

    Args:
        environ: The environment that they run in and that has the PATH.
        timeout: Seconds that each may take.
    """

    def __init__(self, environ: Mapping[str, str], timeout: float) -> None:
        self._path = environ.get("PATH", os.defpath)
        self._environ = {**environ, **_MANNERS}
        self._timeout = timeout
        self._running: list[_Asked] = []
        self._selector = selectors.DefaultSelector()
        self._looked_at = 0.0
        # each takes two pipes, and the process has other use for files too
        self._most = min(_MOST_AT_ONCE, max(1, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for asked in self._running:
            asked.kill()
            self._close(asked)
        self._selector.close()

    @property
    def are_running(self) -> bool:
        """Whether answers are awaited."""
        return bool(self._running)

    @property
    def are_enough(self) -> bool:
        """Whether one must have answered before another is asked."""
        return len(self._running) >= self._most

    def ask(self, requirement: Requirement) -> Found | None:
        """Asks a program for its version; gives at once what can be told without an answer, else None."""
        name, flag = requirement.name, requirement.version_flag.split()
        if not name or os.sep in name or "\0" in name:
            return Found("error", error=f"`{name}` is no name of a program on the PATH.")
        path = shutil.which(name, path=self._path)
        if path is None:
            return self._absent(name)
        if not flag:
            return judged(name, None, path, requirement.min_version)
        if not all(map(_FLAG.fullmatch, flag)):
            said = requirement.version_flag
            return Found(
                "error", None, path, f"`{name} {said}` was not run: `{said}` doesn't look like a version flag."
            )
        try:
            asked = _Asked(requirement, path, flag, self._environ, time.monotonic() + self._timeout)
        except OSError as error:
            return Found("error", None, path, f"`{name}` can't be started: {error.strerror or error}.")
        self._running.append(asked)
        for stream in asked.streams:
            self._selector.register(stream, selectors.EVENT_READ, asked)
        return None

    def answers(self, wait: float = _TICK) -> Iterator[tuple[Requirement, Found]]:
        """Gives what has come meanwhile.

        Args:
            wait: Seconds to wait at most until something comes; without waiting, it is looked every tick only.
        """
        if not wait and time.monotonic() < self._looked_at + _TICK:
            return
        self._looked_at = time.monotonic()
        for key, _ in self._selector.select(wait):
            if not key.data.read(key.fileobj):
                self._selector.unregister(key.fileobj)
        for asked in [*self._running]:
            found = asked.result(self._timeout)
            if found is not None:
                self._running.remove(asked)
                self._close(asked)
                yield asked.requirement, found

    def _close(self, asked: _Asked) -> None:
        for stream in asked.streams:
            with suppress(KeyError):  # it had come to its end before
                self._selector.unregister(stream)
            os.close(stream)

    def _absent(self, name: str) -> Found:
        for folder in self._path.split(os.pathsep):
            with suppress(OSError):
                file = Path(folder, name)
                if file.is_file():
                    return Found("error", None, str(file), f"{file} is not executable.")
        return Found("missing", error=f"`{name}` is not on the PATH.")


class _Asked:
    """One program that has been asked."""

    def __init__(
        self, requirement: Requirement, path: str, flag: list[str], environ: Mapping[str, str], deadline: float
    ) -> None:
        self.requirement = requirement
        self._path = path
        self._deadline = deadline
        self._process = subprocess.Popen(  # noqa: S603 - a program that the pack names, with a flag that was looked at
            [path, *flag],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ),
            start_new_session=True,  # no terminal to ask, and a group that can be killed
        )
        self._output: dict[int, bytes] = {}
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None, "asked for above"
            descriptor = os.dup(stream.fileno())
            stream.close()
            os.set_blocking(descriptor, False)
            self._output[descriptor] = b""

    @property
    def streams(self) -> tuple[int, ...]:
        """The descriptors of what it prints: standard output, standard error."""
        return tuple(self._output)

    def read(self, stream: int) -> bool:
        """Reads what it has printed; False at the end."""
        try:
            data = os.read(stream, _MOST_OUTPUT)
        except BlockingIOError:
            return True
        self._output[stream] += data
        return bool(data)

    def result(self, timeout: float) -> Found | None:
        """Gives what came of it, or None while it runs."""
        name, flag = self.requirement.name, self.requirement.version_flag
        if self._process.poll() is not None:
            for stream in self._output:
                while self._has_room(stream) and self._reads_more(stream):
                    pass
            return self._judged(self._process.returncode)
        if not all(map(self._has_room, self._output)):
            self.kill()
            return self._judged(0)
        if time.monotonic() < self._deadline:
            return None
        self.kill()
        return Found("error", None, self._path, f"`{name} {flag}` was stopped: it took longer than {timeout:g} s.")

    def kill(self) -> None:
        """Kills it with all that it started."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _has_room(self, stream: int) -> bool:
        return len(self._output[stream]) < _MOST_OUTPUT

    def _reads_more(self, stream: int) -> bool:
        before = len(self._output[stream])
        return self.read(stream) and len(self._output[stream]) > before

    def _judged(self, status: int) -> Found:
        requirement = self.requirement
        texts = [raw[:_MOST_OUTPUT].decode("utf-8", "replace") for raw in self._output.values()]
        if status:
            ending = f"exit code {status}" if status > 0 else f"signal {-status}"
            said = _first_line(texts[1]) or _first_line(texts[0])
            message = (
                f"`{requirement.name} {requirement.version_flag}` failed with {ending}{': ' if said else '.'}{said}"
            )
            return Found("error", None, self._path, message)
        versions = (version_in(text, requirement.name) for text in texts)
        version = next((found for found in versions if found), None)
        return judged(requirement.name, version, self._path, requirement.min_version)


def _first_line(text: str) -> str:
    for line in text.splitlines():
        shown = "".join(character for character in line if character.isprintable()).strip()
        if shown:
            return shown[:_LONGEST_LINE]
    return ""
