"""MCP servers of the settings and of `--mcp`, and the secrets in their variables and headers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from pegboard import models
from pegboard.config.display import looks_secret, shown_words
from pegboard.config.paths import absolute
from pegboard.config.redaction import Redactor, credential_of, is_secret_name
from pegboard.data.urls import url_parts
from pegboard.errors import ConfigError
from pegboard.models import Problem

if TYPE_CHECKING:
    from pegboard.config.secrets import Secrets
    from pegboard.config.settings import McpServer, Settings
    from pegboard.models import ServerConfig

SECRET: Final = re.compile(r"\$\{([^{}]*)\}")
"""A reference to a secret in a variable or a header: `${NAME}`."""

STARTED: Final = "PEGBOARD_STARTED"
"""Variable of every server that Pegboard starts. `pegboard serve` that has it leaves out the configured servers: it may
be one of them, and would start itself without end."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
NAME_RULE: Final = "A name has letters, digits, `_` and `-`, at most 64, and starts with a letter or `_`."
_GIVEN_NAME: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]{0,63})=(?!=)(.*)", re.DOTALL)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]+")


class ResolvedServer(NamedTuple):
    """A server with its secrets."""

    config: ServerConfig
    """The configuration, each `${NAME}` replaced."""
    secrets: dict[str, str]
    """The values to redact, by name."""


def configured_servers(settings: Settings) -> tuple[ServerConfig, ...]:
    """Return every configured server, by name; one that can't be used has a problem."""
    return tuple(_config(settings, name, server) for name, server in sorted(settings.mcp.servers.items()))


def given_server(text: str) -> ServerConfig:
    """Return the server of `--mcp`.

    Args:
        text: `COMMAND-OR-URL`, or `NAME=COMMAND-OR-URL`.

    Raises:
        ConfigError: It can't be parsed.
    """
    named = _GIVEN_NAME.fullmatch(text.strip())
    name, target = (named[1], named[2].strip()) if named else ("", text.strip())
    try:
        keys = target_keys(target)
    except ValueError as error:
        raise ConfigError(f"--mcp {shown_given(text)} can't be parsed: {error}. Check its quotes.") from None
    if not keys:
        raise ConfigError('--mcp needs a command or a URL, such as --mcp "npx -y some-server".')
    config = models.ServerConfig.model_validate({"name": name, **keys, "saved": False})
    for complaint in server_complaints(config):
        raise ConfigError(f"--mcp {shown_given(text)} can't be used. {complaint}")
    return config


def target_keys(target: str) -> dict[str, object]:
    """Return the keys of a server's configuration from a command line or a URL; empty for blank text.

    Raises:
        ValueError: A quote of the command line isn't closed.
    """
    if _SCHEME.match(target):
        return {"url": target}
    words = shlex.split(target)
    keys: dict[str, object] = {"command": words[0]} if words else {}
    return {**keys, "args": words[1:]} if words[1:] else keys


def given_option(name: str, config: ServerConfig) -> str:
    """Return the value of `--mcp` that starts a server that was given for this run, with this name for its pack."""
    return f"{name}={config.url or shlex.join([config.command or '', *config.args])}"


def pack_name(reported: str, taken: Collection[str] = ()) -> str:
    """Return the name of the pack of a server that only reports a name, such as `everything`.

    Args:
        reported: The server's name, such as `mcp-servers/everything`: untrusted text.
        taken: Names of packs and servers; a suffix distinguishes the new name from them.
    """
    last = re.split(r"[/\\:]", reported.strip().rstrip("/\\:"))[-1]
    name = _ODD.sub("_", last).strip("_-")[:60] or "server"
    if not _NAME.fullmatch(name):
        name = f"_{name}"
    number = 2
    unique = name
    while unique in taken:
        unique = f"{name}_{number}"
        number += 1
    return unique


def ends_in_sse(url: str) -> bool:
    """Return whether an address looks like those of the old HTTP+SSE transport."""
    return url_parts(url).path.rstrip("/").endswith("/sse")


def is_server_name(name: str) -> bool:
    """Return whether a server can have this name."""
    return _NAME.fullmatch(name) is not None


def server_complaints(server: McpServer | ServerConfig) -> Iterator[str]:
    """Yield why a server can't be used, as sentences that never quote a value that may be secret."""
    if server.command is None and server.url is None:
        yield "It has neither `command` nor `url`."
    elif server.command is not None and server.url is not None:
        yield "It has both `command` and `url`."
    elif server.command is not None and not server.command.strip():
        yield "Its `command` is empty."
    elif server.url is not None:
        yield from _url_complaints(server.url)
    for name, value in server.headers.items():
        if not _HEADER_NAME.fullmatch(name) or any(sign in value for sign in "\r\n\0"):
            yield f"The header {name!r} is invalid."
    for name, value in server.env.items():
        if not name or "=" in name or "\0" in name + value:
            yield f"The variable {name!r} is invalid."
    if any("\0" in text for text in (*server.args, server.command or "", server.cwd or "")):
        yield "Its command contains a NUL character."


def secrets_of_servers(settings: Settings) -> frozenset[str]:
    """Return the names of the secrets that configured servers refer to."""
    return frozenset(
        name
        for server in settings.mcp.servers.values()
        for text in (*server.env.values(), *server.headers.values(), server.oauth.client_secret or "")
        for name in SECRET.findall(text)
    )


def resolve_server(config: ServerConfig, secrets: Secrets) -> ResolvedServer | Problem:
    """Replace each `${NAME}` in variables and headers by the secret, or return why one is missing. Blocks.

    Args:
        config: The configuration.
        secrets: The user's secrets. A server that the folder configures gets only those of the folder's `.env`.
    """
    found: dict[str, str] = {}
    hidden: dict[str, str] = {}
    client_secret = config.oauth.client_secret or ""
    for text in (*config.env.values(), *config.headers.values(), client_secret):
        for name in SECRET.findall(text):
            secret = secrets.look_up(name, of_folder=config.of_folder)
            if isinstance(secret, Problem):
                return secret
            found[name] = secret.reveal()
            if secret.source != "environment" or is_secret_name(name):
                hidden[name] = secret.reveal()
    for name, text in (*config.env.items(), *config.headers.items()):
        if not SECRET.search(text) and (is_secret_name(name) or looks_secret(text)):
            hidden[f"{name} of {config.name}"] = credential_of(name, text)

    def filled(text: str) -> str:
        return SECRET.sub(lambda match: found[match[1]], text)

    oauth = config.oauth.model_copy(update={"client_secret": filled(client_secret) or None})
    env, headers = ({key: filled(text) for key, text in texts.items()} for texts in (config.env, config.headers))
    resolved = config.model_copy(update={"env": env, "headers": headers, "oauth": oauth})
    for complaint in server_complaints(resolved):  # such as a secret with a line break in a header
        return Problem(message=f"The server was not started: {complaint}", fix="Set another secret.")
    return ResolvedServer(resolved, hidden)


def shown_given(text: str) -> str:
    """Return a value of `--mcp` for a message, credentials masked."""
    return repr(shown_words([text], Redactor({}))[0])


def _config(settings: Settings, name: str, server: McpServer) -> ServerConfig:
    key = f"mcp.servers.{name}"
    folder = _folder_of(settings, key)
    return models.ServerConfig(
        name=name,
        command=_absolute_command(server.command, folder),
        args=server.args,
        env=server.env,
        cwd=None if server.cwd is None else str(absolute(server.cwd, folder)),
        url=server.url,
        headers=server.headers,
        timeout=server.timeout,
        enabled=server.enabled,
        tools=server.tools,
        trusted=server.trusted,
        protocol=server.protocol,
        roots=None if server.roots is None else tuple(str(absolute(root, folder)) for root in server.roots),
        oauth=models.OAuthClient(**dict(server.oauth)),
        of_folder=settings.is_from_folder_below(key),
        problem=settings.loaded.blocked_servers.get(name),
    )


def _absolute_command(command: str | None, folder: Path | None) -> str | None:
    """Return a command whose relative path starts at the file that configures it; a bare name stays as it is."""
    if command is None or not ("/" in command or command.startswith("~")):
        return command
    return str(absolute(command, folder))


def _folder_of(settings: Settings, key: str) -> Path | None:
    """Return the folder of the file that configures a server; None for the environment."""
    origins = settings.loaded.origins
    files = (origin.file for name, origin in origins.items() if name.startswith(f"{key}.") and origin.file)
    return next((Path(file).parent for file in files), None)


def _url_complaints(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        yield f"Its URL is invalid: {error}."
        return
    if parts.scheme.lower() not in {"http", "https"}:
        yield "Its URL doesn't start with http:// or https://. Write it in full, such as http://localhost:8000/mcp."
    elif not host:
        yield "Its URL has no host."
    elif parts.username is not None or parts.password is not None:
        yield "Its URL contains a user name or a password; use `headers` instead."
    elif any(sign.isspace() or not sign.isprintable() for sign in url):
        yield "Its URL contains blanks or control characters."
