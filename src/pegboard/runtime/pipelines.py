"""Pipelines of calls with other runners than the usual one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.executor import Executor
    from pegboard.gateway import Gateway
    from pegboard.ports import Grants, ToolRunner
    from pegboard.runtime.parts import Parts


class Pipelines:
    """The pipeline of calls, with a choice of the runner of packs' tools.

    Args:
        parts: The parts of the runtime.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @property
    def grants(self) -> Grants:
        """Lookup of the configuration and secrets of packs."""
        return self._parts.grants

    def shared(self) -> Gateway:
        """Return the pipeline that every other call passes."""
        return self._parts.gateway

    def through(self, runner: ToolRunner, *, is_remote: bool = False) -> Gateway:
        """Return a pipeline that runs the tools of packs with another runner.

        Args:
            runner: The runner.
            is_remote: Whether it runs tools on other machines, so that requirements of this one don't count.
        """
        return self._parts.gateway_through(runner, is_remote=is_remote)

    def executor(self, workers: int) -> Executor:
        """Return a new worker pool with a number of processes; its user closes it."""
        return self._parts.new_executor(workers)
