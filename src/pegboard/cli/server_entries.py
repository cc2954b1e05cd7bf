"""Servers that `pegboard mcp add` and `mcp import` write to the configuration file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

from pegboard.cli.output import narrate
from pegboard.cli.root import TOOL_FAILED, USAGE
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from pegboard.config.client_files import FoundServer
    from pegboard.runtime import Runtime

_OF_COMMANDS: Final = {"env": "--env", "cwd": "--cwd"}
_OF_URLS: Final = {"headers": "--header", "oauth": "--client-id"}
"""Options of one transport by the keys of the entry; they would have no effect on the other one."""


def check_entry(runtime: Runtime, name: str, entry: Mapping[str, object]) -> None:
    """Exit if a server can't be added."""
    from pegboard.config.new_servers import entry_complaint
    from pegboard.config.servers import is_server_name

    complaint = entry_complaint(name, entry, pack_names(runtime))
    if is_server_name(name) and "command" not in entry and "url" not in entry:
        complaint = f"Add a command after `--`, or --url: pegboard mcp add {name} -- COMMAND ARGS…"
    if complaint := complaint or _unused_options(entry):
        narrate(f"{name!r} was not added. {complaint}")
        raise typer.Exit(USAGE)


def _unused_options(entry: Mapping[str, object]) -> str:
    """Return why options would have no effect; empty if all have one."""
    oauth = entry.get("oauth")
    lacks_id = isinstance(oauth, dict) and "client_id" not in oauth
    transport, unused = ("a command", _OF_URLS) if "command" in entry else ("a URL", _OF_COMMANDS)
    for key, option in unused.items():
        if key in entry:
            given = "--client-secret" if key == "oauth" and lacks_id else option
            return f"{given} has no effect on a server with {transport}."
    return "--client-secret needs --client-id." if lacks_id else ""


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


def write_entries(runtime: Runtime, entries: Mapping[str, Mapping[str, object]], *, keep_literals: bool) -> None:
    """Write servers to the configuration file, their credentials to secrets; exit if that fails."""
    from pegboard.config import Secrets
    from pegboard.config.new_servers import add_servers
    from pegboard.config.server_file import ServerFile

    is_taken = False
    try:
        is_taken = bool(ServerFile(runtime.paths.config_file).names() & entries.keys())
        add_servers(runtime.paths, Secrets(runtime.paths), entries, narrate, keep_literals=keep_literals)
    except ConfigError as error:
        narrate(str(error))
        raise typer.Exit(USAGE if is_taken else TOOL_FAILED) from None
    for name in entries:
        if text := runtime.rules.existing(name):
            narrate(f"warning: {text}")


def found_row(runtime: Runtime, found: FoundServer, added: Sequence[FoundServer]) -> dict[str, Any]:
    """Return a server of another client as `mcp import --json` prints it."""
    entry = found.entry
    target = runtime.servers.configured.target
    is_known = not found.skipped and found not in added
    return {
        "name": found.name,
        "added": found.new_name if found in added else None,
        "target": target(entry.get("command"), entry.get("args"), entry.get("url")) if entry else None,
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


def note_stored_secrets(runtime: Runtime, texts: Iterable[str]) -> None:
    """Say where the secrets stay that the texts of a removed server refer to."""
    from pegboard.config import Secrets
    from pegboard.config.servers import SECRET

    secrets = Secrets(runtime.paths)
    found = [secrets.find(name) for name in sorted({one for text in texts for one in SECRET.findall(text)})]
    stored = [f"{one.name} ({one.place})" for one in found if one is not None and one.source != "environment"]
    if stored:
        how = "Delete one of the keyring with `pegboard auth remove NAME`, one of a file with an editor."
        narrate(f"note: its secrets stay: {', '.join(stored)}. {how}")


def note_relative_files(command: Sequence[str]) -> None:
    """Say which file of a command is found only from the working directory, if any."""
    from pegboard.config.new_servers import relative_file
    from pegboard.results.clean import clean_line

    here = relative_file(command)
    if here:
        narrate(f"note: {clean_line(here)} is found only if Pegboard starts in this folder; `--cwd .` starts it here.")
