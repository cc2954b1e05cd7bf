"""The engines of `pegboard batch` and `pegboard check run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pegboard.batch.engine import Engine
    from pegboard.batch.engines.dask import DaskEngine
    from pegboard.models import ToolCall, ToolResult
    from pegboard.ports import Calls
    from pegboard.runtime import Runtime

EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="URL",
        help="Run the calls on a Dask cluster: dask://HOST:PORT, dask+tls://HOST:PORT, or dask://local?workers=2."
        " Its scheduler and workers run your packs and must be trusted.",
    ),
]
InsecureOption = Annotated[bool, typer.Option("--insecure", help="Send granted secrets to a cluster without TLS.")]
EMBEDDED = "embedded"


def configured_engine(runtime: Runtime) -> str:
    """Return the engine of the user's own configuration; that of a folder, even a trusted one, is ignored."""
    return runtime.settings.batch.engine or EMBEDDED


def engine_at(runtime: Runtime, where: str, jobs: int | None, *, insecure: bool) -> Engine:
    """Return an engine; call it within a running event loop.

    Raises:
        EngineError: The address can't be used.
    """
    if where == EMBEDDED:
        from pegboard.batch.engines.embedded import EmbeddedEngine

        return EmbeddedEngine(runtime, jobs)
    from pegboard.batch.engines.dask import DaskEngine

    return DaskEngine(runtime, where, insecure=insecure)


class ClusterCalls:
    """Runner of calls of several tools on one Dask cluster.

    Args:
        runtime: The runtime.
        address: Address of the cluster.
        insecure: Whether secrets may be sent without TLS.

    Raises:
        CheckError: The address can't be used.
    """

    def __init__(self, runtime: Runtime, address: str, *, insecure: bool) -> None:
        from pegboard.batch.engines.dask_cluster import DaskCluster
        from pegboard.batch.errors import EngineError
        from pegboard.checks import CheckError

        self._runtime = runtime
        self._insecure = insecure
        self._engine: DaskEngine | None = None
        self._calls: Calls | None = None
        self._tool = ""
        try:
            self._cluster = DaskCluster(address)
        except EngineError as error:
            raise CheckError(str(error)) from error

    async def open(self) -> None:
        """Connect to the cluster.

        Raises:
            CheckError: The cluster can't be reached.
        """
        from pegboard.batch.errors import EngineError
        from pegboard.checks import CheckError

        try:
            await self._cluster.open()
        except EngineError as error:
            raise CheckError(str(error)) from error

    async def result(self, call: ToolCall) -> tuple[ToolCall, ToolResult]:
        """Run a call; return it as it was made, with its result.

        Raises:
            CheckError: The cluster can't run it.
        """
        from contextlib import aclosing

        from pegboard.batch.engines.dask import DaskEngine
        from pegboard.batch.errors import EngineError
        from pegboard.checks import CheckError
        from pegboard.models import Finished

        spec = self._runtime.tools.get(call.name)
        if spec is None:
            return await self._runtime.result(call)  # the gateway says why
        try:
            if self._calls is None or self._tool != spec.name:
                await self._leave()
                self._engine, self._tool = DaskEngine(self._runtime, self._cluster, insecure=self._insecure), spec.name
                self._calls = await self._engine.start(spec)
            async with aclosing(self._calls.call(call)) as events:
                finished = [event async for event in events if isinstance(event, Finished) and event.owner == call.id]
        except EngineError as error:
            raise CheckError(str(error)) from error
        return finished[-1].call, finished[-1].result

    async def close(self) -> None:
        """End all calls, and disconnect."""
        await self._leave()
        await self._cluster.close()

    async def _leave(self) -> None:
        """Forget the last tool on the workers."""
        engine, self._engine, self._calls = self._engine, None, None
        if engine is not None:
            await engine.close()
