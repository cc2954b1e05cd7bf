"""Probes for programs: runs them concurrently, with a time limit, to read their versions."""

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

from pegboard.sdk.findings import ProbeResult, check_version
from pegboard.sdk.requirements import DeclaredRequirement
from pegboard.sdk.versions import version_in

_MOST_AT_ONCE = 256
_TICK = 0.02
"""Seconds between checks for ended programs."""
_MOST_OUTPUT = 65_536
_LONGEST_LINE = 200
_FLAG = re.compile(r"-{0,2}(?:[A-Za-z-]*version[A-Za-z-]*|ver|v|V|help|client|short)")
"""Allowed version flags. Programs run without approval, so a flag must not be able to do anything else."""
_PLAIN_OUTPUT = {"LC_ALL": "C", "NO_COLOR": "1", "PAGER": "cat", "TERM": "dumb"}


class Programs:
    """Running version queries. Leaving the context kills those that still run.

    Args:
        environ: Environment of the programs, with the PATH to search.
        timeout: Time limit of each program, in seconds.
    """

    def __init__(self, environ: Mapping[str, str], timeout: float) -> None:
        self._path = environ.get("PATH", os.defpath)
        self._environ = {**environ, **_PLAIN_OUTPUT}
        self._timeout = timeout
        self._running: list[_VersionQuery] = []
        self._selector = selectors.DefaultSelector()
        self._checked_at = 0.0
        # each needs two pipes, and the process needs files for other purposes
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
        """Whether programs are running."""
        return bool(self._running)

    @property
    def are_enough(self) -> bool:
        """Whether the maximum number of programs is running."""
        return len(self._running) >= self._most

    def ask(self, requirement: DeclaredRequirement) -> ProbeResult | None:
        """Start a program to query its version; return a result only if that is not necessary or not possible."""
        name, flag = requirement.name, requirement.version_flag.split()
        if not name or os.sep in name or "\0" in name:
            return ProbeResult("error", error=f"`{name}` is not a program name. Write the name without a path.")
        path = shutil.which(name, path=self._path)
        if path is None:
            return self._missing(name)
        if not flag:
            return check_version(name, None, path, requirement.min_version)
        if not all(map(_FLAG.fullmatch, flag)):
            flags = requirement.version_flag
            return ProbeResult(
                "error", None, path, f"`{name} {flags}` was not run because `{flags}` doesn't look like a version flag."
            )
        try:
            asked = _VersionQuery(requirement, path, flag, self._environ, time.monotonic() + self._timeout)
        except OSError as error:
            return ProbeResult("error", None, path, f"`{name}` can't be started: {error.strerror or error}.")
        self._running.append(asked)
        for stream in asked.streams:
            self._selector.register(stream, selectors.EVENT_READ, asked)
        return None

    def answers(self, wait: float = _TICK) -> Iterator[tuple[DeclaredRequirement, ProbeResult]]:
        """Yield the results of the programs that have ended.

        Args:
            wait: Maximum time to wait for output, in seconds. With 0, checks at most once per tick.
        """
        if not wait and time.monotonic() < self._checked_at + _TICK:
            return
        self._checked_at = time.monotonic()
        for key, _ in self._selector.select(wait):
            if not key.data.read(key.fileobj):
                self._selector.unregister(key.fileobj)
        for asked in [*self._running]:
            found = asked.result(self._timeout)
            if found is not None:
                self._running.remove(asked)
                self._close(asked)
                yield asked.requirement, found

    def _close(self, asked: _VersionQuery) -> None:
        for stream in asked.streams:
            with suppress(KeyError):  # already unregistered at its end
                self._selector.unregister(stream)
            os.close(stream)

    def _missing(self, name: str) -> ProbeResult:
        for folder in self._path.split(os.pathsep):
            with suppress(OSError):
                file = Path(folder, name)
                if file.is_file():
                    return ProbeResult("error", None, str(file), f"{file} is not executable.")
        return ProbeResult("missing", error=f"`{name}` is not on the PATH.")


class _VersionQuery:
    """Version query of one program."""

    def __init__(
        self, requirement: DeclaredRequirement, path: str, flag: list[str], environ: Mapping[str, str], deadline: float
    ) -> None:
        self.requirement = requirement
        self._path = path
        self._deadline = deadline
        self._process = subprocess.Popen(  # noqa: S603 - a program that the pack names, with a checked flag
            [path, *flag],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=os.sep,  # not the user's folder: `make help` or `bash version` would run its files
            env=dict(environ),
            start_new_session=True,  # without a terminal to prompt on, and as a group that can be killed
        )
        self._output: dict[int, bytes] = {}
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None, "it is a pipe"
            descriptor = os.dup(stream.fileno())
            stream.close()
            os.set_blocking(descriptor, False)
            self._output[descriptor] = b""

    @property
    def streams(self) -> tuple[int, ...]:
        """Descriptors of standard output and standard error."""
        return tuple(self._output)

    def read(self, stream: int) -> bool:
        """Read available output; return False at the end of the stream."""
        try:
            data = os.read(stream, _MOST_OUTPUT)
        except BlockingIOError:
            return True
        self._output[stream] += data
        return bool(data)

    def result(self, timeout: float) -> ProbeResult | None:
        """Return the result, or None while the program runs."""
        name, flag = self.requirement.name, self.requirement.version_flag
        if self._process.poll() is not None:
            for stream in self._output:
                while self._is_below_limit(stream) and self._read_more(stream):
                    pass
            return self._evaluate(self._process.returncode)
        if not all(map(self._is_below_limit, self._output)):
            self.kill()
            return self._evaluate(0)
        if time.monotonic() < self._deadline:
            return None
        self.kill()
        return ProbeResult("error", None, self._path, f"`{name} {flag}` was stopped after {timeout:g} s.")

    def kill(self) -> None:
        """Kill the program and its child processes."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _is_below_limit(self, stream: int) -> bool:
        return len(self._output[stream]) < _MOST_OUTPUT

    def _read_more(self, stream: int) -> bool:
        before = len(self._output[stream])
        return self.read(stream) and len(self._output[stream]) > before

    def _evaluate(self, status: int) -> ProbeResult:
        requirement = self.requirement
        texts = [raw[:_MOST_OUTPUT].decode("utf-8", "replace") for raw in self._output.values()]
        if status:
            ending = f"exit code {status}" if status > 0 else f"signal {-status}"
            output = _first_line(texts[1]) or _first_line(texts[0])
            message = (
                f"`{requirement.name} {requirement.version_flag}` failed with {ending}{': ' if output else '.'}{output}"
            )
            return ProbeResult("error", None, self._path, message)
        versions = (version_in(text, requirement.name) for text in texts)
        version = next((found for found in versions if found), None)
        return check_version(requirement.name, version, self._path, requirement.min_version)


def _first_line(text: str) -> str:
    for line in text.splitlines():
        shown = "".join(character for character in line if character.isprintable()).strip()
        if shown:
            return shown[:_LONGEST_LINE]
    return ""
