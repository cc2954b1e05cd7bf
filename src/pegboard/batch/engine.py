"""The port for where the calls of a batch run."""

from __future__ import annotations

from typing import Protocol

from pegboard.models import ToolSpec
from pegboard.ports import Calls


class Engine(Protocol):
    """Machines or processes that run the calls of a batch.

    An engine provides a pipeline whose last stage, the runner, is its own. Validation, rules, redaction and the record
    stay in this process, whatever the engine.
    """

    name: str
    """The engine as messages show it."""

    @property
    def jobs(self) -> int:
        """Concurrent calls that fit the engine, once it was started."""
        ...

    @property
    def ahead(self) -> int:
        """Calls that may wait in the engine while others run, so that it doesn't idle. It may change at any time."""
        ...

    async def start(self, spec: ToolSpec) -> Calls:
        """Prepare to run calls of a tool, and return the pipeline for them.

        Raises:
            EngineError: The engine can't be reached, or can't run this tool.
        """
        ...

    async def close(self) -> None:
        """End all calls and release everything."""
        ...
