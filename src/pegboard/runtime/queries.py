"""Built-in tools that Pegboard uses itself, in worker processes and without a record."""

from __future__ import annotations

import os
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from pegboard import models
from pegboard.config.paths import BUILT_IN_PACKS
from pegboard.ports import Granted

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.models import JsonObject, ToolResult
    from pegboard.runtime.parts import Parts

_JQ_SECONDS: Final = 10.0
_GIT_SECONDS: Final = 20.0
_LARGEST_PACK: Final = 10_000_000
"""Bytes of a pack file at a revision."""
_ANYWHERE: Final = Granted({"roots": [os.sep]}, {})
"""Configuration of a pack that may read all files, for calls whose paths come from the user."""


class Queries:
    """Queries that run in a worker, where time and memory are limited.

    The allow list doesn't apply, because neither a model nor a server chooses these calls.

    Args:
        parts: The parts of the runtime.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def jq(self, program: str, value: JsonValue, *, max_results: int = 1000) -> ToolResult:
        """Run a jq filter on a value; the data of the result is `{"results": […], "truncated": …}`."""
        args: JsonObject = {"filter": program, "value": value, "max_results": max_results}
        return await self._run("json.query", args, _JQ_SECONDS)

    async def file_at(self, repository: str, path: str, revision: str) -> ToolResult:
        """Return the text of a file at a git revision.

        Args:
            repository: The top folder of the repository, which may be outside the folders that the git pack may read.
            path: The file, relative to it.
            revision: A branch, a tag, or another name of a commit.
        """
        args: JsonObject = {"repository": repository, "path": path, "revision": revision, "max_bytes": _LARGEST_PACK}
        return await self._run("git.read_file", args, _GIT_SECONDS, granted=_ANYWHERE)

    async def _run(self, name: str, args: JsonObject, seconds: float, granted: Granted | None = None) -> ToolResult:
        spec = self._parts.registry.get(name)
        if spec is None or not isinstance(spec.handler, models.PackHandler) or not _is_built_in(spec.handler.file):
            return models.ToolResult.failed(
                "tool_not_found", f"The built-in tool {name} is missing. Reinstall Pegboard."
            )
        call = models.ToolCall(name=name, args=args, source="check")
        async with aclosing(self._parts.executor.run(spec, call, timeout=seconds, granted=granted)) as events:
            async for event in events:
                if isinstance(event, models.Finished) and event.owner == call.id:
                    return event.result
        raise AssertionError("a call always ends with Finished")


def _is_built_in(file: str) -> bool:
    return os.path.dirname(os.path.realpath(file)) == os.path.realpath(BUILT_IN_PACKS)  # noqa: PTH120 - compares text
