"""Execution of the tools of packs in separate processes.

`Executor` runs the calls. `pool` assigns a worker process to each, queues calls while all are busy, and keeps a spare
one; `process` represents a worker process. `active_call` is the state of a running call, `callbacks` answers the
questions of its tool, and `deadline` pauses its time limit while nested calls await approval. `environment` selects the
environment variables of workers. `pegboard.worker.keeper` ensures that no process outlives its call or Pegboard.
"""

from typing import TYPE_CHECKING

from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.executor.executor import Executor

__all__ = ["Executor"]

# `executor` imports asyncio, which users of `environment` alone don't need
__getattr__, __dir__ = on_demand(__name__, {"Executor": "executor"})
