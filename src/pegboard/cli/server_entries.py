"""Servers that `pegboard mcp add` and `mcp import` write to the configuration file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from pegboard.cli.output import narrate
from pegboard.cli.root import TOOL_FAILED, USAGE
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from pegboard.config import Secrets
    from pegboard.config.client_files import FoundServer
    from pegboard.runtime import Runtime


def check_entry(runtime: Runtime, name: str, entry: Mapping[str, object]) -> None:
    """Exit if a server can't be added."""
    from pydantic import ValidationError

    from pegboard.config import McpServer
    from pegboard.config.servers import is_server_name, server_complaints

    complaints: list[str] = []
    if not is_server_name(name):
        complaints.append("A name has letters, digits, `_` and `-`, and starts with a letter or `_`.")
    elif name in pack_names(runtime):
        complaints.append(f"A pack named {name} exists; choose another name.")
    try:
        complaints += server_complaints(McpServer.model_validate(entry))
    except ValidationError as error:
        complaints += [
            f"`{'.'.join(map(str, one['loc']))}`: {one['msg']}." for one in error.errors(include_input=False)
        ]
    if "command" not in entry and "url" not in entry:
        complaints = [f"Add a command after `--`, or --url: pegboard mcp add {name} -- COMMAND ARGS…"]
    if complaints:
        narrate(f"{name!r} was not added. {complaints[0]}")
        raise typer.Exit(USAGE)


def pack_names(runtime: Runtime) -> frozenset[str]:
    """Return the names of the packs that aren't servers."""
    runtime.servers.limit(())
    runtime.tools.scan()
    return frozenset(spec.pack for spec in runtime.tools.all())


def pair(text: str, sign: str, option: str, *, alone: bool = False) -> tuple[str, str]:
    """Return the name and the value in an argument of an option; with `alone`, a name alone refers to a secret."""
    key, found, value = text.partition(sign)
    if alone and not found and key:
        return key, f"${{{key}}}"
    if not found or not key.strip():
        raise typer.BadParameter(f"{option} needs a name and a value, separated by `{sign}`.", param_hint=option)
    return (key.strip(), value.strip()) if sign == ":" else (key, value)


def is_configured(runtime: Runtime, found: FoundServer) -> bool:
    """Return whether a server of another client is configured already, perhaps with another name."""
    servers = runtime.settings.mcp.servers
    if found.name in servers:
        return True
    wanted = (found.entry.get("command"), found.entry.get("args", []), found.entry.get("url"))
    return any((one.command, [*one.args], one.url) == wanted for one in servers.values())


def write_entries(runtime: Runtime, entries: Mapping[str, Mapping[str, object]], *, keep_literals: bool) -> None:
    """Write servers to the configuration file, their credentials to secrets; exit if that fails."""
    from pegboard.config import Secrets
    from pegboard.config.display import has_secret_argument
    from pegboard.config.server_file import ServerFile

    file = ServerFile(runtime.paths.config_file)
    secrets = Secrets(runtime.paths)
    try:
        if taken := sorted(file.names() & entries.keys()):
            narrate(
                f"The server {taken[0]} was not added because it exists in {runtime.paths.config_file}."
                f" Choose another name, or first run `pegboard mcp remove {taken[0]}`."
            )
            raise typer.Exit(USAGE)
        plain = {
            name: _without_literals(runtime, secrets, name, entry, keep=keep_literals)
            for name, entry in entries.items()
        }
        file.add(plain)
    except ConfigError as error:
        narrate(str(error))
        raise typer.Exit(TOOL_FAILED) from None
    for name, entry in entries.items():
        args = entry.get("args")
        if isinstance(args, list) and has_secret_argument([str(word) for word in args]):
            narrate(f"warning: the arguments of {name} seem to contain a credential, which is now in plain text.")


def _without_literals(
    runtime: Runtime, secrets: Secrets, name: str, entry: Mapping[str, object], *, keep: bool
) -> Mapping[str, object]:
    """Return a server whose credentials are references to secrets, which are stored.

    Raises:
        ConfigError: A secret can't be stored.
    """
    from pegboard.config.literal_secrets import store_secret, without_literals
    from pegboard.models import Problem

    def find(name: str) -> str | None:
        secret = secrets.find(name)
        return None if secret is None else secret.reveal()

    plain, literals = without_literals(name, entry, find)
    if literals and keep:
        narrate(f"warning: {name} has credentials in plain text in {runtime.paths.config_file}.")
        return entry
    for literal in literals:
        where = store_secret(secrets, runtime.paths, literal.name, literal.value)
        if isinstance(where, Problem):
            raise ConfigError(
                f"{name} was not added because {literal.where} can't be stored as a secret. {where}"
                " Set the secret yourself and refer to it as ${NAME}, or pass --keep-literals."
            )
        narrate(f"{name}: {literal.where} is stored as the secret {literal.name} ({where}).")
    return plain


def target(runtime: Runtime, command: object, args: object, url: object) -> str:
    """Return the command line or the URL of a server, without credentials; empty if it has neither."""
    import shlex

    from pegboard.config import Redactor, Secrets
    from pegboard.config.display import shown_words

    redactor = Redactor(Secrets(runtime.paths).known())
    if command is None:
        return "" if url is None else shown_words([str(url)], redactor)[0]
    words = [str(command), *map(str, args if isinstance(args, list | tuple) else ())]
    return shlex.join(shown_words(words, redactor))


def found_row(runtime: Runtime, found: FoundServer, added: Sequence[FoundServer]) -> dict[str, Any]:
    """Return a server of another client as `mcp import --json` prints it."""
    entry = found.entry
    is_known = not found.skipped and found not in added
    return {
        "name": found.name,
        "added": found.new_name if found in added else None,
        "target": target(runtime, entry.get("command"), entry.get("args"), entry.get("url")) if entry else None,
        "skipped": "it is configured already" if is_known else found.skipped or None,
        "notes": list(found.notes),
        "file": str(found.file),
    }


def print_found(runtime: Runtime, found: FoundServer, *, is_added: bool, dry_run: bool) -> None:
    """Print whether a server was imported, and why not."""
    from pegboard.results.clean import clean_line

    row = found_row(runtime, found, [found] if is_added else [])
    if not is_added:
        print(clean_line(f"skipped {found.name}: {row['skipped']}"))
        return
    more = [
        f"; {key}: {', '.join(names)}"
        for key in ("env", "headers")
        if isinstance(names := found.entry.get(key), Mapping)
    ]
    print(clean_line(f"{'would add' if dry_run else 'added'} {found.new_name}: {row['target']}{''.join(more)}"))
    for note in found.notes:
        print(clean_line(f"  {note}"))


def note_relative_files(command: Sequence[str]) -> None:
    """Say which file of a command is found only from the working directory, if any."""
    import os

    from pegboard.results.clean import clean_line

    here = next((word for word in command if not os.path.isabs(word) and os.path.isfile(word)), None)  # noqa: PTH113, PTH117 - a word, perhaps no path
    if here is not None:
        narrate(f"note: {clean_line(here)} is found only if Pegboard starts in this folder; `--cwd .` starts it here.")
