"""Built-in tools that Pegboard uses itself, in worker processes and without a record."""

from __future__ import annotations

import os
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from pegboard import models
from pegboard.built_in import BUILT_IN_PACKS, is_built_in
from pegboard.ports import Granted

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.models import JsonObject, ToolResult, ToolSpec
    from pegboard.runtime.parts import Parts

_JQ_SECONDS: Final = 10.0
_GIT_SECONDS: Final = 20.0
_GIT_FILES: Final = str(BUILT_IN_PACKS / "_git_files.py")
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
        spec = self._parts.registry.get("json.query")
        if spec is None or not isinstance(spec.handler, models.PackHandler) or not is_built_in(spec.handler.file):
            return models.ToolResult.failed(
                "tool_not_found", "The built-in tool json.query is missing. Reinstall Pegboard."
            )
        return await self._run(spec, args, _JQ_SECONDS)

    async def python_files_at(self, repository: str, folder: str, revision: str) -> ToolResult:
        """Return the texts of the Python files in a folder at a git revision, by name.

        Those that are too large or aren't UTF-8 have None as their text. The folder may be missing.

        Args:
            repository: The top folder of the repository, which may be outside the folders that the git pack may read.
            folder: The folder, relative to it.
            revision: A branch, a tag, or another name of a commit.
        """
        args: JsonObject = {
            "repository": repository,
            "folder": folder,
            "revision": revision,
            "max_bytes": _LARGEST_PACK,
        }
        handler = models.PackHandler(pack="git", function="python_files", file=_GIT_FILES, line=1)
        spec = models.ToolSpec(name="git.python_files", pack="git", input_schema={}, handler=handler)
        return await self._run(spec, args, _GIT_SECONDS, granted=_ANYWHERE)

    async def _run(
        self, spec: ToolSpec, args: JsonObject, seconds: float, granted: Granted | None = None
    ) -> ToolResult:
        call = models.ToolCall(name=spec.name, args=args, source="check")
        async with aclosing(self._parts.executor.run(spec, call, timeout=seconds, granted=granted)) as events:
            async for event in events:
                if isinstance(event, models.Finished) and event.owner == call.id:
                    return event.result
        raise AssertionError("a call always ends with Finished")
