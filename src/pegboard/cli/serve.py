"""`pegboard serve`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.root import AllowOption, PacksOption, app, open_runtime

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pegboard.runtime import Runtime
    from pegboard.serve.service import Service


@app.command()
def serve(
    context: typer.Context,
    tool_allow: AllowOption = None,
    packs: PacksOption = None,
) -> None:
    """Serve the tools to an MCP client."""
    runtime = open_runtime(context, tool_allow or context.meta.get("pegboard.allow"))
    from pegboard.cli import servers
    from pegboard.serve.stdio import serve_stdio

    servers.add_given(runtime, context.meta.get("pegboard.mcp", ()))
    raise typer.Exit(_run(runtime, serve_stdio, process=os.getppid()))


def _run(runtime: Runtime, serve_: Callable[[Service], Awaitable[None]], *, process: int | None) -> int:
    """Serve until the client leaves or a signal arrives; return the exit code."""
    import asyncio

    from pegboard.cli.interruption import interruptible
    from pegboard.serve.service import Service

    async def main() -> int:
        async with runtime:
            serving = asyncio.ensure_future(serve_(Service(runtime, process=process)))
            with interruptible(serving.cancel) as interruption:
                try:
                    await serving
                except asyncio.CancelledError:
                    if not interruption:
                        raise
            return interruption.exit_code if interruption else 0

    return asyncio.run(main())
