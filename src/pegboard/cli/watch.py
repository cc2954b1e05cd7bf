"""`pegboard watch`."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from pegboard.cli.root import TOOL_FAILED, USAGE, app


@app.command()
def watch(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND ARGS…", help="The command that starts the server; with --otel, the port."),
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            "--name", metavar="NAME", help="Name of the server in rules and records; by default its package or program."
        ),
    ] = "",
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Watch the server at this address instead.")
    ] = None,
    http: Annotated[
        int | None,
        typer.Option(
            "--http",
            metavar="PORT",
            min=0,
            max=65535,
            help="With --url: listen on this port of 127.0.0.1 instead of stdio; 0 chooses a free one.",
        ),
    ] = None,
    hook: Annotated[
        str,
        typer.Option(
            "--hook", metavar="AGENT", help="Handle the event of a hook on stdin, for the agent of this name."
        ),
    ] = "",
    otel: Annotated[
        bool,
        typer.Option(
            "--otel",
            help="Receive the telemetry of agents instead: OTLP over HTTP on 127.0.0.1, port 4318 or PORT.",
        ),
    ] = False,
) -> None:
    """Watch the calls of an agent: a transparent proxy between an MCP client and a server.

    Configure the client to run this command in place of the server's own, or run `pegboard adopt`. Every message passes
    unchanged. Tool calls are recorded. Rules for MCP clients, `pegboard pause` and `pegboard approve` apply to them.

    With --otel, agents send the spans of their calls and model turns instead. With --hook, an agent runs this command
    before and after each call of its own tools. See `pegboard guide watch`.

    Examples: `pegboard watch -- npx -y @modelcontextprotocol/server-everything`,
    `pegboard watch --name github --url https://example.com/mcp`, `pegboard watch --otel`.
    """
    from pegboard.cli.output import narrate
    from pegboard.config.servers import is_server_name

    if hook:
        _handle_hook(hook, is_alone=not (command or name or url or otel) and http is None)
    if otel:
        _receive(command or [], is_alone=not name and url is None and http is None)
        return
    if mistake := _usage_error(command, url, http):
        narrate(mistake)
        raise typer.Exit(USAGE)
    if name and not is_server_name(name):
        narrate(f"{name!r} can't be the name of a server. Use letters, digits, - and _, and start with a letter.")
        raise typer.Exit(USAGE)
    if command:
        from pegboard.watch.proxy import run

        run(command, name)
    elif url is not None:
        from pegboard.watch.http import serve_http
        from pegboard.watch.remote import bridge
        from pegboard.watch.remote_client import RemoteError

        try:
            if http is None:
                bridge(url, name)
            else:
                raise typer.Exit(serve_http(url, name, http, typer.echo))
        except RemoteError as error:
            narrate(str(error))
            raise typer.Exit(TOOL_FAILED) from error


def _handle_hook(agent: str, *, is_alone: bool) -> NoReturn:
    """Handle the event of a hook; the usual form of this command comes here only if something is wrong with it."""
    from pegboard.cli.output import narrate
    from pegboard.config.servers import is_server_name
    from pegboard.watch.hooks.hook import run

    if not is_alone:
        narrate("--hook accepts only the name of the agent: pegboard watch --hook AGENT")
        raise typer.Exit(USAGE)
    if not is_server_name(agent):
        narrate(f"{agent!r} can't be the name of an agent. Use letters, digits, - and _, and start with a letter.")
        raise typer.Exit(USAGE)
    run(agent)


def _usage_error(command: list[str] | None, url: str | None, http: int | None) -> str:
    if command and url is not None:
        return "A command and --url can't be combined because one proxy watches one server. Remove one of them."
    if http is not None and url is None:
        return "--http needs the address of a server. Add it with --url."
    return "" if command or url is not None else "Add a command after `--`, or an address with --url."


def _receive(ports: list[str], *, is_alone: bool) -> None:
    """Receive the telemetry of agents until a signal ends the program."""
    from pegboard.cli.output import narrate

    if len(ports) > 1 or not is_alone:
        narrate("--otel accepts only a port: pegboard watch --otel PORT")
        raise typer.Exit(USAGE)
    if ports and not (ports[0].isascii() and ports[0].isdecimal() and int(ports[0][:6]) <= 65535):
        narrate(f"{ports[0]!r} is not a port. Use a number from 0 to 65535; 0 chooses a free port.")
        raise typer.Exit(USAGE)
    from pegboard.watch.otel.receiver import PORT, receive_spans
    from pegboard.watch.remote_client import RemoteError

    try:
        raise typer.Exit(receive_spans(int(ports[0]) if ports else PORT, typer.echo))
    except RemoteError as error:
        narrate(str(error))
        raise typer.Exit(TOOL_FAILED) from error
