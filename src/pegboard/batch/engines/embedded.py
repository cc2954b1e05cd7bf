"""The embedded engine: worker processes of this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pegboard.models import PackHandler, ToolSpec

if TYPE_CHECKING:
    from pegboard.executor import Executor
    from pegboard.ports import Calls
    from pegboard.runtime import Runtime
    from pegboard.runtime.pipelines import GroupedRecorder


class EmbeddedEngine:
    """Pool of worker processes of its own, so that calls of a batch don't delay others. An `Engine`.

    Tools of MCP servers run over the runtime's connections.

    Args:
        runtime: The runtime.
        jobs: Number of worker processes; by default the configured one, or the number of cores.
    """

    name = "embedded"

    def __init__(self, runtime: Runtime, jobs: int | None = None) -> None:
        self._runtime = runtime
        self.jobs = jobs or runtime.settings.tools.workers or os.cpu_count() or 1
        self.ahead = 0
        self._executor: Executor | None = None
        self._recorder: GroupedRecorder | None = None

    async def start(self, spec: ToolSpec) -> Calls:
        """Return the pipeline; the processes start with the first calls."""
        if not isinstance(spec.handler, PackHandler):
            return self._runtime.pipelines.shared()
        self._executor = self._runtime.pipelines.executor(self.jobs)
        self._recorder = self._runtime.pipelines.grouped_recorder()
        self.ahead = 1  # the pool runs no more than `jobs` calls, and the next one is validated meanwhile
        return self._runtime.pipelines.through(self._executor, self._recorder)

    async def close(self) -> None:
        """End all calls and processes."""
        if self._executor is not None:
            await self._executor.close()
        if self._recorder is not None:
            self._recorder.pass_on()
