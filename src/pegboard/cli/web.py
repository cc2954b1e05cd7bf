"""`pegboard web`."""

from __future__ import annotations

from typing import Annotated

import typer

from pegboard.cli.root import TOOL_FAILED, AllowOption, PacksOption, app


@app.command()
def web(
    context: typer.Context,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1; 0 chooses a free one.")
    ] = 8767,
    tool_allow: AllowOption = None,
    packs: PacksOption = None,
) -> None:
    """Serve the app in a browser on this machine.

    The address goes to stdout. Only a browser that opens it can use the app, because it contains a secret token. Each
    tab has an app of its own. Press ctrl+c to stop.
    """
    from pegboard.cli.output import narrate, print_text
    from pegboard.runtime.extras import extra_command
    from pegboard.watch.adoption import pegboard_command

    try:
        from pegboard.cli.web_server import PortError, WebServer
    except ModuleNotFoundError as error:
        narrate(
            f"The app can't be served because the library {error.name} is not installed."
            f" Install it with: {extra_command('web')}"
        )
        raise typer.Exit(TOOL_FAILED) from error
    allow = tool_allow or context.meta.get("pegboard.allow") or ()
    command = [
        *pegboard_command(),
        *(word for folder in context.meta.get("pegboard.packs", []) for word in ("--packs", str(folder))),
        *(word for server in context.meta.get("pegboard.mcp", []) for word in ("--mcp", server)),
        *(word for patterns in allow for word in ("--tool-allow", patterns)),
    ]
    try:
        server = WebServer(command, port)
    except PortError as error:
        narrate(str(error))
        raise typer.Exit(TOOL_FAILED) from error
    print_text(server.address, end="\n")
    narrate("Open this address in a browser on this machine. Press ctrl+c to stop.")
    raise typer.Exit(server.run())
