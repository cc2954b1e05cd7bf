"""Results that may be used again."""

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
    """The successful results of sessions, by tool, arguments, working directory and the tool's file as it is.

    Only a tool that is both `read_only` and has `cache_seconds` is ever cached, and only within a session: outside of
    one, every call is fresh. A session may go on in another process: what isn't known here is looked up in the record.

    Args:
        recorder: What keeps the record.
        enabled: Whether results are used again at all.
    """

    def __init__(self, recorder: Recorder, *, enabled: bool = True) -> None:
        self._recorder = recorder
        self._enabled = enabled
        self._results: OrderedDict[str, tuple[float, ToolResult]] = OrderedDict()

    async def get(self, spec: ToolSpec, call: ToolCall) -> ToolResult | None:
        """Gives the result of an equal call of the same session, marked `cached`, unless it is too old."""
        key = self._key(spec, call)
        if key is None:
            return None
        at, result = self._results.get(key) or await self._looked_up(key)
        if result is None or not 0 <= time.time() - at <= (spec.hints.cache_seconds or 0):
            return None
        return result.model_copy(update={"meta": result.meta.model_copy(update={"cached": True})})

    async def put(self, spec: ToolSpec, call: ToolCall, result: ToolResult) -> None:
        """Keeps a result, if it is one that may be used again."""
        key = self._key(spec, call)
        if key is None or not result.ok:
            return
        self._results[key] = (time.time(), result)
        self._results.move_to_end(key)
        while len(self._results) > _KEPT:
            self._results.popitem(last=False)
        import asyncio

        await asyncio.to_thread(self._recorder.keep_for_reuse, key, call.id)

    async def _looked_up(self, key: str) -> tuple[float, ToolResult | None]:
        import asyncio

        return await asyncio.to_thread(self._recorder.kept_for_reuse, key)

    def _key(self, spec: ToolSpec, call: ToolCall) -> str | None:
        if not self._enabled or call.session is None or not spec.hints.read_only or not spec.hints.cache_seconds:
            return None
        # json keeps 1, 1.0 and true apart, which a Python dict as key would not
        parts = [call.session, spec.name, call.args, *_surroundings(spec)]
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _surroundings(spec: ToolSpec) -> tuple[str | int, ...]:
    """Gives what the result may depend on beside the arguments: where we are, and the tool as it is written."""
    try:
        return os.getcwd(), os.stat(spec.location.file).st_mtime_ns if spec.location.file else 0  # noqa: PTH109, PTH116 - at each call, and `Path` costs more
    except OSError:
        return ("", 0)
