"""`pegboard mcp`: add, import, test and use MCP servers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from pegboard.cli.completion import completions
from pegboard.cli.root import CLIENTS_HELP, TOOL_FAILED, USAGE, JsonOption, PacksOption, group, open_runtime
from pegboard.cli.server_entries import (
    check_entry,
    found_row,
    note_relative_files,
    note_stored_secrets,
    pack_names,
    pair,
    print_found,
    write_entries,
)
from pegboard.cli.servers import ElicitOption, answer_questions, check_prompt, narrate_new_problems, requested

if TYPE_CHECKING:
    from pegboard.models import Problem, ServerConfig, ServerStatus
    from pegboard.runtime import Runtime

mcp = group("mcp", "Add, test and use MCP servers, whose tools are listed with the others.")

_T = TypeVar("_T")


def complete_servers(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of configured servers that start with the typed text."""
    return completions(open_runtime(context).settings.mcp.servers, incomplete)


ServerArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the server.", autocompletion=complete_servers)
]
OptionalServer = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="Name of the server, unless --mcp has it.", autocompletion=complete_servers),
]
KeepOption = Annotated[
    bool, typer.Option("--keep-literals", help="Leave credentials in the file instead of moving them to secrets.")
]


@mcp.command()
def add(
    context: typer.Context,
    name: ServerArgument,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND ARGS…", help="The command that starts the server.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="Connect to this address instead.")] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="K=V",
            help="Set an environment variable for the server; K alone uses the secret K; can be repeated.",
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="'K: V'", help="Send a header with each request; can be repeated."),
    ] = None,
    cwd: Annotated[Path | None, typer.Option("--cwd", metavar="DIR", help="Start the command in this folder.")] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout", metavar="SECONDS", min=0.001, help="Timeout in seconds for connecting and for each call."
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option("--protocol", metavar="VERSION", help="Use no newer version of the protocol: 2025-11-25."),
    ] = None,
    client_id: Annotated[
        str | None, typer.Option("--client-id", metavar="ID", help="Log in with this OAuth client identifier.")
    ] = None,
    client_secret: Annotated[
        str | None,
        typer.Option(
            "--client-secret", metavar="SECRET", help="Name of the secret that holds the OAuth client secret."
        ),
    ] = None,
    keep_literals: KeepOption = False,
    packs: PacksOption = None,
) -> None:
    """Add a server to the configuration file.

    Credentials in --env and --header are moved to secrets, and the file refers to them as ${NAME}.
    """
    from pegboard.cli.output import narrate
    from pegboard.config.new_servers import command_from_here
    from pegboard.config.paths import absolute

    runtime = open_runtime(context)
    entry: dict[str, object] = {}
    if command:
        entry |= {"command": command_from_here(command[0]), **({"args": command[1:]} if command[1:] else {})}
    if url is not None:
        entry["url"] = url
    if env:
        entry["env"] = dict(pair(text, "=", "--env", alone=True) for text in env)
    if header:
        entry["headers"] = dict(pair(text, ":", "--header") for text in header)
    limits = {"cwd": str(absolute(cwd)) if cwd else None, "timeout": timeout, "protocol": protocol}
    entry |= {key: value for key, value in limits.items() if value is not None}
    oauth = {"client_id": client_id, "client_secret": client_secret and f"${{{client_secret}}}"}
    if any(oauth.values()):
        entry["oauth"] = {key: value for key, value in oauth.items() if value is not None}
    check_entry(runtime, name, entry)
    write_entries(runtime, {name: entry}, keep_literals=keep_literals)
    narrate(f"Added {name} to {runtime.paths.config_file}. Test it with `pegboard mcp test {name}`.")
    note_relative_files(() if cwd else command or ())


@mcp.command("list")
def list_(context: typer.Context, json: JsonOption = False, packs: PacksOption = None) -> None:
    """Connect to all servers and list them with their states."""
    from pegboard.cli.output import narrate, narrate_problems, print_json, print_table
    from pegboard.results.sizes import count

    runtime = _connected(context, None, fails=False)
    narrate_problems(runtime.problems(packs=False))
    rows = [(_row(runtime, config, status), status) for config, status in _configs(runtime)]
    if json:
        print_json([row for row, _ in rows])
        return
    if not rows:
        narrate("note: no MCP server is configured; add one with `pegboard mcp add`")
    print_table(
        [
            (
                row["name"],
                row["state"],
                f"{count(status.tools, 'tool')}, ≈ {count(status.tokens, 'token')}" if status.protocol else "",
                row["target"],
                status.reason,
            )
            for row, status in rows
        ]
    )


@mcp.command()
def remove(context: typer.Context, name: ServerArgument, packs: PacksOption = None) -> None:
    """Remove a server from the configuration file. Its secrets stay."""
    from pegboard.cli.output import narrate
    from pegboard.config.server_file import ServerFile
    from pegboard.errors import ConfigError

    runtime = open_runtime(context)
    known = runtime.settings.mcp.servers.get(name)
    try:
        ServerFile(runtime.paths.config_file).remove(name)
    except ConfigError as error:
        narrate(str(error))
        if known is not None:
            narrate(f"{name} is configured in {_origin(runtime, name)}.")
        raise typer.Exit(USAGE) from None
    narrate(f"Removed {name} from {runtime.paths.config_file}.")
    if known is not None:
        note_stored_secrets(runtime, (*known.env.values(), *known.headers.values()))


@mcp.command("test")
def try_(
    context: typer.Context,
    name: OptionalServer = None,
    messages: Annotated[bool, typer.Option("--messages", help="Also print every message as it was sent.")] = False,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Connect to a server, list its tools, and report protocol, capabilities and latency; exit with 1 on failure."""
    from textwrap import indent

    from pegboard.cli.output import narrate, narrate_problems, print_json, print_table, print_text
    from pegboard.cli.servers import message_lines, problems_of, status_problem
    from pegboard.results.clean import clean
    from pegboard.results.sizes import count

    runtime = _connected(context, name, fails=False)
    name = _chosen(runtime, name)
    config, status = next(pair for pair in _configs(runtime) if name in {pair[0].name, pair[1].name})
    row = _row(runtime, config, status)
    is_usable = status.state.is_usable
    sent = runtime.servers.messages(status.name) if messages else ()
    problems = [*problems_of(runtime, status)] if is_usable else [status_problem(status)]
    if json:
        row["problems"] = [problem.model_dump(mode="json", by_alias=True) for problem in problems]
        print_json(row | {"messages": sent} if messages else row)
    elif is_usable:
        facts = {
            "state": str(status.state),
            "server": f"{status.server_name} {status.server_version}".strip(),
            "protocol": status.protocol,
            "capabilities": ", ".join(status.capabilities),
            "tools": f"{status.tools:,}, ≈ {count(status.tokens, 'token')} in each turn of a model",
            "latency": "" if status.latency_ms is None else f"{status.latency_ms:.0f} ms",
        }
        print_table([(key, value) for key, value in facts.items() if value])
        if status.instructions:
            print_text(f"\nInstructions:\n{indent(clean(status.instructions), '  ')}\n")
    if sent and not json:
        print_text(message_lines(sent) + "\n")
    narrate_problems(problems)
    if is_usable:
        return
    if status.stderr and not json:
        narrate("\n".join(["Its last lines on stderr:", *(f"  {line}" for line in status.stderr[-10:])]))
    raise typer.Exit(TOOL_FAILED)


@mcp.command("import")
def import_(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=CLIENTS_HELP)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be added, and add nothing.")] = False,
    keep_literals: KeepOption = False,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Add the servers of another client, and show which ones are added, which are skipped, and why."""
    import os

    from pegboard.cli.output import narrate, print_json
    from pegboard.config import Secrets
    from pegboard.config.client_files import (
        CLIENTS,
        client_files,
        existing_files,
        folder_file,
        is_configured,
        read_client_files,
    )

    runtime = open_runtime(context)
    secrets = Secrets(runtime.paths)
    files = [Path(source)]
    if source in CLIENTS and not Path(source).exists():
        files = existing_files(source)
        local = folder_file(source)
        if local is not None and local.exists():
            narrate(f"note: {local} of this folder is not read; import it with `pegboard mcp import {local}`.")
        if not files:
            looked = ", ".join(map(str, client_files(source)))
            narrate(f"No file of {source} was found: {looked}. Pass the file instead.")
            raise typer.Exit(USAGE)
    servers = runtime.settings.mcp.servers
    taken = {*pack_names(runtime), *servers}
    found, reasons = read_client_files(files, taken, lambda name: secrets.find(name) is not None, os.environ)
    for reason in reasons[:1]:
        narrate(reason)
    if not found:
        raise typer.Exit(USAGE)
    added = [one for one in found if not (one.skipped or is_configured(one, servers, secrets.find))]
    entries = {one.new_name: one.entry for one in added}
    if entries and not dry_run:
        write_entries(runtime, entries, keep_literals=keep_literals)
    if json:
        print_json([found_row(runtime, one, added) for one in found])
        return
    for one in found:
        print_found(runtime, one, is_added=one in added, dry_run=dry_run)


@mcp.command()
def login(context: typer.Context, name: OptionalServer = None, packs: PacksOption = None) -> None:
    """Log in to a server in the browser, and store the login."""
    from pegboard.cli.output import narrate, narrate_problems
    from pegboard.cli.server_questions import TerminalQuestions
    from pegboard.cli.servers import add_given, close

    runtime = open_runtime(context)
    add_given(runtime, context.meta.get("pegboard.mcp", ()))
    name = _chosen(runtime, name)
    runtime.servers.limit(())
    runtime.servers.ask_with(TerminalQuestions(can_ask=False))
    try:
        problem = asyncio.run(runtime.servers.log_in(name))
    finally:
        close(runtime)
    if problem is not None:
        narrate_problems([problem])
        raise typer.Exit(TOOL_FAILED)
    narrate(f"You are logged in to {name or 'the server of --mcp'}.")


@mcp.command()
def logout(context: typer.Context, name: OptionalServer = None, packs: PacksOption = None) -> None:
    """Forget the login to a server, and revoke its tokens if the server supports it."""
    from pegboard.cli.output import narrate
    from pegboard.cli.servers import add_given

    runtime = open_runtime(context)
    add_given(runtime, context.meta.get("pegboard.mcp", ()))
    name = _chosen(runtime, name)
    ended = _or_exit(asyncio.run(runtime.servers.log_out(name)))
    narrate(f"You are logged out of {name}." if ended.was_logged_in else f"You were not logged in to {name}.")
    if ended.note:
        narrate(f"The tokens may stay valid until they expire. {ended.note}")


@mcp.command()
def resources(
    context: typer.Context, name: OptionalServer = None, json: JsonOption = False, packs: PacksOption = None
) -> None:
    """List the resources of a server and the templates of further ones."""
    from pegboard.cli.output import print_json, print_table

    runtime = _connected(context, name)
    name = _chosen(runtime, name)
    known = [*runtime.problems()]
    listed = _or_exit(requested(runtime, name, runtime.servers.resources(name)))
    templates = _or_exit(requested(runtime, name, runtime.servers.templates(name)))
    narrate_new_problems(runtime, known)
    if json:
        print_json({"resources": listed, "templates": templates})
        return
    print_table(
        [
            *((one.uri, one.mime_type, one.description or one.title or one.name) for one in listed),
            *((one.uri_template, one.mime_type, one.description or one.title or one.name) for one in templates),
        ]
    )


@mcp.command()
def read(
    context: typer.Context,
    name: ServerArgument,
    uri: Annotated[str | None, typer.Argument(metavar="URI", help="URI of the resource.")] = None,
    elicit: ElicitOption = None,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Print a resource of a server; binary content is saved to a file, whose path is printed."""
    from pegboard.cli.output import narrate, print_json, print_text

    given = context.meta.get("pegboard.mcp", ())
    if uri is None and given:
        uri, server = name, None
    elif uri is None:
        raise typer.BadParameter("The URI of the resource is missing.", param_hint="URI")
    else:
        server = name
    runtime = _connected(context, server)
    answer_questions(context, runtime, elicit)
    chosen = _chosen(runtime, server)
    contents = _or_exit(requested(runtime, chosen, runtime.servers.read(chosen, uri)))
    if json:
        print_json(contents)
    else:
        for content in contents:
            text = content.text if content.text is not None else content.file or ""
            print_text(text, end="" if text.endswith("\n") else "\n")
            if content.problem:
                narrate(content.problem)
    if any(content.problem for content in contents):
        raise typer.Exit(TOOL_FAILED)


@mcp.command()
def prompts(
    context: typer.Context, name: OptionalServer = None, json: JsonOption = False, packs: PacksOption = None
) -> None:
    """List the prompts of a server with their arguments; * marks required ones."""
    from pegboard.cli.output import print_json, print_table

    runtime = _connected(context, name)
    name = _chosen(runtime, name)
    known = [*runtime.problems()]
    listed = _or_exit(requested(runtime, name, runtime.servers.prompts(name)))
    narrate_new_problems(runtime, known)
    if json:
        print_json(listed)
        return
    print_table(
        [
            (
                one.name,
                " ".join(f"{argument.name}{'*' if argument.required else ''}" for argument in one.arguments),
                one.description or one.title,
            )
            for one in listed
        ]
    )


@mcp.command()
def prompt(
    context: typer.Context,
    name: ServerArgument,
    prompt: Annotated[str | None, typer.Argument(metavar="PROMPT", help="Name of the prompt.")] = None,
    arg: Annotated[
        list[str] | None, typer.Option("--arg", metavar="KEY=VALUE", help="Set an argument; can be repeated.")
    ] = None,
    elicit: ElicitOption = None,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Print the messages of a server's prompt, with its arguments filled in."""
    from pegboard.cli.output import print_data, print_json, print_text

    given = context.meta.get("pegboard.mcp", ())
    if prompt is None and not given:
        raise typer.BadParameter("The name of the prompt is missing.", param_hint="PROMPT")
    server, wanted = (None, name) if prompt is None else (name, prompt)
    arguments = dict(pair(text, "=", "--arg") for text in arg or [])
    runtime = _connected(context, server)
    chosen = _chosen(runtime, server)
    check_prompt(_or_exit(requested(runtime, chosen, runtime.servers.prompts(chosen))), wanted, arguments)
    answer_questions(context, runtime, elicit)
    filled = _or_exit(requested(runtime, chosen, runtime.servers.prompt(chosen, wanted, arguments)))
    if json:
        print_json(filled)
        return
    for message in filled.messages:
        print_text(f"{message.role}:\n")
        print_data(message.content)


def _connected(context: typer.Context, name: str | None, *, fails: bool = True) -> Runtime:
    """Connect to one server, or to all, and return the runtime; exit if a wanted server can't be used."""
    from pegboard.cli import servers
    from pegboard.cli.output import narrate_problems

    runtime = open_runtime(context)
    given = context.meta.get("pegboard.mcp", ())
    if name is not None:
        _chosen(runtime, name, given)
    context.call_on_close(lambda: servers.close(runtime))
    servers.connect_to(runtime, given, name)
    if fails:
        failed = [status for status in runtime.servers.all() if not status.state.is_usable]
        if failed:
            narrate_problems(map(servers.status_problem, failed))
            raise typer.Exit(TOOL_FAILED)
    return runtime


def _chosen(runtime: Runtime, name: str | None, given: object = ()) -> str:
    """Return the name of the server that the command is about; exit if there is none or there are several."""
    from pegboard.cli.output import narrate

    names = [status.name for status in runtime.servers.all()]
    if name is None and len(names) == 1:
        return names[0]
    if name is not None and (given or runtime.servers.config(name) is not None):
        return name
    if name is None:
        known = f"Specify one of the servers: {', '.join(names)}."
        narrate(known if names else "No MCP server is configured. Add one with `pegboard mcp add`.")
    else:
        from difflib import get_close_matches

        near = get_close_matches(name, names, n=1)
        fix = f"Did you mean {near[0]}?" if near else f"Known servers: {', '.join(names) or 'none'}."
        fix = "To use a server that isn't configured, write `--mcp` before the address." if "://" in name else fix
        narrate(f"No MCP server is named {name!r}. {fix}")
    raise typer.Exit(USAGE)


def _or_exit(answer: _T | Problem) -> _T:
    from pegboard.cli.output import narrate_problems
    from pegboard.models import Problem

    if isinstance(answer, Problem):
        narrate_problems([answer])
        raise typer.Exit(TOOL_FAILED)
    return answer


def _origin(runtime: Runtime, name: str) -> str:
    origins = runtime.settings.loaded.origins
    return next((str(origin) for key, origin in origins.items() if key.startswith(f"mcp.servers.{name}.")), "default")


def _configs(runtime: Runtime) -> Iterator[tuple[ServerConfig, ServerStatus]]:
    for status in runtime.servers.all():
        config = runtime.servers.config(status.name)
        if config is not None:
            yield config, status


def _row(runtime: Runtime, config: ServerConfig, status: ServerStatus) -> dict[str, Any]:
    """Return a server as `mcp list --json` prints it."""
    hidden = {"content_changes", "has_login", "retries", "stray_output"}
    return {
        **status.model_dump(mode="json", by_alias=True, exclude=hidden),
        "target": runtime.servers.configured.target(config.command, config.args, config.url),
        "origin": _origin(runtime, config.name) if config.saved else "--mcp",
    }
