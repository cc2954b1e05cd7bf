"""Running tools of packs, each in a process that is not ours.

`Executor` takes the calls. `pool` gives each a worker process, makes calls wait in turn where there are too few, and
keeps one warm; `process` is one of them as seen from here; `running` is a call on its way: what it said so far and
how it ended; `questions` answers what its tool asks meanwhile, and `waiting` stops its clock while the user is asked.
`pegboard.worker.keeper` is what makes sure that nothing outlives its call, or us. `environment` is what workers see of
ours.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.executor.executor import Executor

__all__ = ["Executor"]


def __getattr__(name: str) -> object:
    # Loaded when it is asked for: it brings asyncio along, which whoever only asks for the environment can do without.
    if name != "Executor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pegboard.executor.executor import Executor

    return Executor
