"""The file in which an agent writes its session: the only trace of calls that its user interrupts or rejects.

Claude Code and Copilot CLI run no hook when a call ends that way.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pegboard.config.client_files import client_home

EVERY_CALL: Final = ""
"""Instead of an id: all calls in flight."""

_PATHS: Final = {"claude-code": "transcript_path", "copilot": "transcriptPath"}
"""Keys of the path in events, by agent."""
_OF_COPILOT: Final = "session-state/{}/events.jsonl"
"""The path of a session in the folder of Copilot CLI, which names it only after the first turn."""
_SESSION: Final = re.compile(r"[A-Za-z0-9-]+")
_DENIALS: Final = ("user-rejected", "interrupted")
_REJECTED: Final = "User rejected tool use"
"""The same in versions of Claude Code without that key."""
_LONGEST_LINE: Final = 2**24
_CHUNK: Final = 2**20


class SessionTranscript:
    """The transcript of a session, from the moment of its first event."""

    def __init__(self) -> None:
        self._path = ""
        self._read = 0
        self._rest = b""
        """The beginning of a line."""

    @property
    def is_followed(self) -> bool:
        """Whether it exists."""
        return bool(self._path)

    def follow(self, agent: str, event: dict[str, Any]) -> None:
        """Note the path in an event, if the agent is one that needs it.

        Args:
            agent: Name of the agent.
            event: The event.
        """
        path = event.get(_PATHS.get(agent, ""))
        session = event.get("sessionId")
        if agent == "copilot" and path is None and isinstance(session, str) and _SESSION.fullmatch(session):
            path = self._path or str(client_home("copilot") / _OF_COPILOT.format(session))
        if isinstance(path, str) and path != self._path and (size := _size(path)) is not None:
            self._path, self._read, self._rest = path, size, b""

    def interrupted(self) -> Iterator[str]:
        """Yield the ids of calls that were interrupted or rejected since the last time."""
        size = _size(self._path)
        if size is None or size == self._read:
            return
        if size < self._read:  # It was written anew, without what has been read.
            self._read, self._rest = size, b""
        with suppress(OSError), Path(self._path).open("rb") as file:
            file.seek(self._read)
            while chunk := file.read(_CHUNK):
                self._read += len(chunk)
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                self._rest = b"" if len(self._rest) > _LONGEST_LINE else self._rest
                for line in lines:
                    yield from _in_line(line)


def _size(path: str) -> int | None:
    """Return the size of a file; None for anything else, such as a pipe, which must not be opened."""
    with suppress(OSError, ValueError):
        about = os.stat(path)  # noqa: PTH116 - several times per second
        return about.st_size if stat.S_ISREG(about.st_mode) else None
    return None


def _in_line(line: bytes) -> list[str]:
    """Return the ids of interrupted calls in a line."""
    found: Any = None
    if b"tool_result" in line or b'"abort"' in line:
        with suppress(ValueError, RecursionError):
            found = json.loads(line)
    if not isinstance(found, dict):
        return []
    if found.get("type") == "abort":
        return [EVERY_CALL]
    if found.get("toolDenialKind") not in _DENIALS and found.get("toolUseResult") != _REJECTED:
        return []
    message = found.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    results = [one for one in (content if isinstance(content, list) else ()) if isinstance(one, dict)]
    return [id_ for one in results if isinstance(id_ := one.get("tool_use_id"), str) and id_]
