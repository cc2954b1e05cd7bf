"""`pegboard serve`."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from pegboard.cli.root import TOOL_FAILED, USAGE, AllowOption, PacksOption, app, open_runtime

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pegboard.runtime import Runtime
    from pegboard.serve.entries import OwnEntry
    from pegboard.serve.service import Service
    from pegboard.serve.token import Token

PORT: Final = 8768
HOST: Final = "127.0.0.1"


def _clients(incomplete: str) -> list[str]:
    from pegboard.serve.entries import CLIENTS

    return [client for client in CLIENTS if client.startswith(incomplete)]


@app.command()
def serve(
    context: typer.Context,
    port: Annotated[
        int | None,
        typer.Argument(
            metavar="PORT", min=0, max=65535, help="Port of --http; 0 chooses a free one.", show_default=str(PORT)
        ),
    ] = None,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP on 127.0.0.1 instead of stdio.")] = False,
    host: Annotated[
        str, typer.Option("--host", help="Host of --http that clients use. Other machines can reach it: needs a token.")
    ] = HOST,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", help="File with the token of --http; by default, Pegboard creates one.", readable=False
        ),
    ] = None,
    print_config: Annotated[
        str | None,
        typer.Option(
            "--print-config",
            metavar="CLIENT",
            help="Print the entry for a client and exit: claude-code, claude-desktop, codex, copilot, cursor, gemini,"
            " opencode, vscode or windsurf.",
            autocompletion=_clients,
        ),
    ] = None,
    tool_allow: AllowOption = None,
    packs: PacksOption = None,
) -> None:
    """Serve the tools to MCP clients, over stdio or HTTP.

    A client such as Claude Code starts `pegboard serve` itself; --print-config prints its entry. Read-only tools of
    packs run. Other tools need a rule or a person that allows them; see `pegboard guide serve`. Every call is recorded.

    Examples: `pegboard serve --print-config cursor`, `pegboard serve --http`, `pegboard serve --http 9000`.
    """
    if port is not None and not http:
        _fail("A port needs --http: pegboard serve --http PORT", USAGE)
    if (host != HOST or token_file is not None) and not http:
        _fail("--host and --token-file need --http.", USAGE)
    allow = tool_allow or context.meta.get("pegboard.allow")
    if print_config is not None:
        if port == 0:
            _fail("--print-config needs the port itself: 0 chooses a free one each time the server starts.", USAGE)
        url = f"http://{f'[{host}]' if ':' in host else host}:{PORT if port is None else port}/mcp" if http else None
        _print_entry(context, print_config, allow or (), url)
        return
    runtime = open_runtime(context, allow)
    from pegboard.cli import servers
    from pegboard.cli.output import narrate
    from pegboard.config.servers import STARTED

    if os.environ.get(STARTED):
        runtime.servers.limit(())
        narrate("Pegboard started this server, so the tools of configured MCP servers are left out.")
    servers.add_given(runtime, context.meta.get("pegboard.mcp", ()))
    serve_, process = _over_http(runtime, host, port, token_file) if http else (_over_stdio(), os.getppid())
    raise typer.Exit(_run(runtime, serve_, process=process))


def _over_stdio() -> Callable[[Service], Awaitable[None]]:
    from pegboard.serve.stdio import serve_stdio

    return serve_stdio


def _over_http(
    runtime: Runtime, host: str, port: int | None, token_file: Path | None
) -> tuple[Callable[[Service], Awaitable[None]], None]:
    """Bind the address; return what serves on it. Exits if that fails."""
    from pegboard.cli.output import narrate
    from pegboard.serve.http import Address, AddressError, serve_http
    from pegboard.serve.token import TokenError

    try:
        token, note = _token(runtime, host, token_file)
        address = Address(host, PORT if port is None else port)
    except (AddressError, TokenError) as error:
        _fail(str(error), TOOL_FAILED)
    runtime.hide("the token of pegboard serve", token.text)

    def started() -> None:
        narrate(f"Serving MCP clients at {address.url}. Press ctrl+c to stop.\n{note}")

    return lambda service: serve_http(service, address, token, started), None


def _token(runtime: Runtime, host: str, file: Path | None) -> tuple[Token, str]:
    """Return the token, and what to print about it.

    Raises:
        TokenError: It can't be used.
    """
    from pegboard.config.loopback import is_loopback
    from pegboard.serve.token import VARIABLE, Token, TokenError, kept_token, read_token

    given = os.environ.pop(VARIABLE, "")
    if file is not None or given:
        token = read_token(file) if file is not None else Token(given, VARIABLE)
        return token, f"Clients need the token of {token.where}, as the header `Authorization: Bearer TOKEN`."
    if not is_loopback(host):
        raise TokenError(
            f"--host {host} lets other machines connect, so it needs a token of your own: set {VARIABLE}, or use"
            " --token-file FILE."
        )
    token, is_new = kept_token(runtime.paths.serve_token)
    where = f"Clients need it as the header `Authorization: Bearer TOKEN`. It is stored in {token.where}."
    return token, f"Token: {token.text}\n{where} It won't be shown again." if is_new else f"Token: not shown. {where}"


def _print_entry(context: typer.Context, client: str, allow: list[str] | tuple[()], url: str | None) -> None:
    """Print the entry for a client's file on stdout, and where it belongs on stderr."""
    from pegboard.cli.output import narrate, print_json, print_text
    from pegboard.config import Paths
    from pegboard.results.clean import clean_line
    from pegboard.serve.entries import CLIENTS, http_entry, stdio_entry
    from pegboard.serve.token import VARIABLE
    from pegboard.watch.adoption import pegboard_command

    if client not in CLIENTS:
        _fail(f"--print-config doesn't know the client {client!r}. It knows {', '.join(CLIENTS)}.", USAGE)
    options = [
        *(word for folder in context.meta.get("pegboard.packs", []) for word in ("--packs", str(folder.absolute()))),
        *(word for server in context.meta.get("pegboard.mcp", []) for word in ("--mcp", server)),
        *(word for patterns in allow for word in ("--tool-allow", patterns)),
    ]
    variables = Paths.from_environment().variables()
    if url is None:
        entry: OwnEntry | None = stdio_entry(client, [*pegboard_command(), "serve", *options], variables)
    else:
        entry = http_entry(client, url)
    if entry is None:
        _fail(f"The configuration of {client} can't name HTTP servers. Leave out --http.", USAGE)
    if client == "codex":
        print_text(entry.toml())
    else:
        print_json(entry.content)
    narrate(f"Add this to {entry.file}.{f' {entry.note}' if entry.note else ''}")
    if options and url is not None:
        given = clean_line(shlex.join(options))
        narrate(f"Not in the entry, because the client doesn't start the server: {given}. Pass it to `pegboard serve`.")
    if url is None and (relative := _relative_files(context)):
        named = clean_line(", ".join(relative))
        narrate(f"Write absolute paths in --mcp, as the client may start the server in another folder: {named}.")
    known = {*variables, VARIABLE}
    left = sorted(
        name for name, value in os.environ.items() if name.startswith("PEGBOARD_") and value and name not in known
    )
    if left and url is None:
        narrate(f"Not in the entry, because they may be secret: {', '.join(left)}. Add those that the server needs.")


def _relative_files(context: typer.Context) -> list[str]:
    """Return the arguments in commands of `--mcp` that name files in the working directory."""
    from pegboard.config.new_servers import relative_file

    found: list[str] = []
    for command in context.meta.get("pegboard.mcp", []):
        with suppress(ValueError):  # unbalanced quotes
            first, *others = shlex.split(command)
            found.append(relative_file([first, first.partition("=")[2], *others]))
    return [file for file in found if file]


def _fail(message: str, code: int) -> NoReturn:
    from pegboard.cli.output import narrate

    narrate(message)
    raise typer.Exit(code)


def _run(runtime: Runtime, serve_: Callable[[Service], Awaitable[None]], *, process: int | None) -> int:
    """Serve until the client leaves or a signal arrives; return the exit code."""
    import asyncio

    from pegboard.cli.interruption import interruptible
    from pegboard.serve.approval import BrakeApprover
    from pegboard.serve.service import Service

    async def main() -> int:
        async with runtime:
            serving = asyncio.ensure_future(serve_(Service(runtime, approver=BrakeApprover(runtime), process=process)))

            def stop() -> None:
                serving.cancel()

            with interruptible(stop) as interruption:
                try:
                    await serving
                except asyncio.CancelledError:
                    if not interruption:
                        raise
            return interruption.exit_code if interruption else 0

    return asyncio.run(main())
