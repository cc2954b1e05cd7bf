"""Reuse of results."""

from __future__ import annotations

import json
import os
import time
from collections import OrderedDict
from hashlib import sha256

from pegboard.models import ToolCall, ToolResult, ToolSpec
from pegboard.ports import Recorder

_KEPT = 1_000


class ResultCache:
    """Successful results of sessions, by tool, arguments, working directory and version of the tool's file.

    Only tools that are both `read_only` and have `cache_seconds` are cached, and only within a session. Results are
    looked up in the record, because a session may continue in another process, and another process may have redacted
    or removed a result. They are in memory only until they are recorded.

    Args:
        recorder: Stores the record.
        enabled: Whether results are reused.
    """

    def __init__(self, recorder: Recorder, *, enabled: bool = True) -> None:
        self._recorder = recorder
        self._enabled = enabled
        self._results: OrderedDict[str, tuple[float, ToolResult]] = OrderedDict()
        self._unsaved: dict[str, str] = {}

    def key(self, spec: ToolSpec, call: ToolCall) -> str | None:
        """Return the key of a call before it runs, because its tool's file may change meanwhile; None if not cached."""
        if not self._enabled or call.session is None or not spec.hints.read_only or not spec.hints.cache_seconds:
            return None
        # JSON distinguishes 1, 1.0 and true, which are equal as keys of a Python dict.
        parts = [call.session, spec.name, call.args, *_surroundings(spec)]
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    async def get(self, spec: ToolSpec, key: str | None) -> ToolResult | None:
        """Return the cached result of an equal call in the same session, or None."""
        if key is None:
            return None
        at, result = self._results.get(key) or await self._look_up(key)
        if result is None or not 0 <= time.time() - at <= (spec.hints.cache_seconds or 0):
            return None
        if result.meta.truncated is not None and not await _exists(result.meta.truncated.file):
            return None
        return result.model_copy(update={"meta": result.meta.model_copy(update={"cached": True, "log": ()})})

    def put(self, key: str | None, call: ToolCall, result: ToolResult) -> None:
        """Keep a result in memory until `save` if it can be reused."""
        if key is None or not result.ok:
            return
        self._results[key] = (time.time(), result)
        self._results.move_to_end(key)
        while len(self._results) > _KEPT:
            self._results.popitem(last=False)
        self._unsaved[call.id] = key

    def clear(self) -> None:
        """Drop all results in memory."""
        self._results.clear()

    async def save(self, call_id: str) -> None:
        """Make the result of a call available to other processes if it was `put`.

        Call this after the call was recorded: another process may look the result up immediately, and finds it in the
        record.
        """
        key = self._unsaved.pop(call_id, None)
        if key is None:
            return
        import asyncio

        await asyncio.to_thread(self._recorder.keep_for_reuse, key, call_id)
        self._results.pop(key, None)

    async def _look_up(self, key: str) -> tuple[float, ToolResult | None]:
        import asyncio

        return await asyncio.to_thread(self._recorder.kept_for_reuse, key)


async def _exists(file: str) -> bool:
    import asyncio

    return await asyncio.to_thread(os.path.exists, file)


def _surroundings(spec: ToolSpec) -> tuple[str | int, ...]:
    """Return the working directory and the version of the tool's file, on which results may depend."""
    try:
        return os.getcwd(), os.stat(spec.file).st_mtime_ns if spec.file else 0  # noqa: PTH109, PTH116 - at each call, and `Path` costs more
    except OSError:
        return ("", 0)
