"""Servers that a user adds: checked, their credentials moved to secrets, and written to the configuration file."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from pegboard.config.paths import absolute, working_directory
from pegboard.errors import ConfigError
from pegboard.models import Problem

if TYPE_CHECKING:
    from pegboard.config.paths import Paths
    from pegboard.config.secrets import Secrets


def entry_complaint(name: str, entry: Mapping[str, object], packs: Collection[str]) -> str:
    """Return why a server can't be added, as a sentence; empty if it can.

    Args:
        name: Its name.
        entry: Its keys in the configuration.
        packs: Names of the packs that aren't servers.
    """
    from pydantic import ValidationError

    from pegboard.config.servers import NAME_RULE, is_server_name, server_complaints
    from pegboard.config.settings import McpServer

    if not is_server_name(name):
        return NAME_RULE
    if name in packs:
        return f"A pack named {name} exists; choose another name."
    try:
        return next(server_complaints(McpServer.model_validate(entry)), "")
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        return f"`{'.'.join(map(str, first['loc']))}`: {first['msg']}."


def relative_file(command: Sequence[str]) -> str:
    """Return the argument of a command that names a file in the working directory; empty if none does."""
    return next((word for word in command if not os.path.isabs(word) and os.path.isfile(word)), "")  # noqa: PTH113, PTH117 - a word, perhaps no path


def command_from_here(command: str) -> str:
    """Return a command that is found from every folder: a relative path starts at the working directory."""
    return str(absolute(command, working_directory())) if "/" in command else command


def add_servers(
    paths: Paths,
    secrets: Secrets,
    entries: Mapping[str, Mapping[str, object]],
    note: Callable[[str], object],
    *,
    keep_literals: bool = False,
) -> None:
    """Write servers to the configuration file, their credentials to secrets.

    Args:
        paths: Where the configuration is.
        secrets: The user's secrets.
        entries: The keys of each server, by name.
        note: Receives what the user should know about credentials, one sentence at a time.
        keep_literals: Whether credentials stay in the file.

    Raises:
        ConfigError: A server exists, a secret can't be stored, or the file can't be read or written.
    """
    from pegboard.config.display import has_secret_argument
    from pegboard.config.server_file import ServerFile, taken_name

    file = ServerFile(paths.config_file)
    if taken := sorted(file.names() & entries.keys()):
        raise taken_name(taken[0], paths.config_file)
    file.add(
        {
            name: _without_literals(paths, secrets, name, entry, note, keep=keep_literals)
            for name, entry in entries.items()
        }
    )
    for name, entry in entries.items():
        args = entry.get("args")
        places = {"arguments": args if isinstance(args, list) else [], "URL": [entry.get("url") or ""]}
        for place, words in places.items():
            if has_secret_argument([str(word) for word in words]):
                note(f"warning: the {place} of {name} may contain a credential, which is now in plain text.")


def _without_literals(
    paths: Paths,
    secrets: Secrets,
    name: str,
    entry: Mapping[str, object],
    note: Callable[[str], object],
    *,
    keep: bool,
) -> Mapping[str, object]:
    """Return a server whose credentials are references to secrets, which are stored.

    Raises:
        ConfigError: A secret can't be stored.
    """
    from pegboard.config.literal_secrets import store_secret, without_literals

    def find(name: str) -> str | None:
        secret = secrets.find(name)
        return None if secret is None else secret.reveal()

    plain, literals = without_literals(name, entry, find)
    if literals and keep:
        note(f"warning: {name} has credentials in plain text in {paths.config_file}.")
        return entry
    for literal in literals:
        where = store_secret(secrets, paths, literal.name, literal.value)
        if isinstance(where, Problem):
            raise ConfigError(
                f"{name} was not added because {literal.where} can't be stored as a secret. {where}"
                " Set the secret yourself and refer to it as ${NAME}, or pass --keep-literals to `pegboard mcp`."
            )
        note(f"{name}: {literal.where} is stored as the secret {literal.name} ({where}).")
    return plain
