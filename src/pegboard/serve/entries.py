"""Entries of `pegboard serve` for the configuration of MCP clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pegboard.models import JsonObject
from pegboard.serve.token import VARIABLE

NAME: Final = "pegboard"

_FILES: Final = {
    "claude-code": ".mcp.json of a project, or ~/.claude.json",
    "claude-desktop": "claude_desktop_config.json (Settings → Developer → Edit Config)",
    "cursor": "~/.cursor/mcp.json, or .cursor/mcp.json of a project",
    "vscode": ".vscode/mcp.json, or the user's mcp.json (MCP: Open User Configuration)",
}


class Entry(NamedTuple):
    """Entry for a client's file."""

    json: JsonObject
    """The file with nothing but the entry."""
    file: str
    """Where the file is, for people."""
    note: str = ""
    """Further steps for the user."""


def stdio_entry(client: str, command: Sequence[str], variables: Mapping[str, str]) -> Entry:
    """Return the entry with which a client starts `pegboard serve`.

    Args:
        client: One of `CLIENTS` of `config.client_files`.
        command: The command line.
        variables: Environment variables of the server.
    """
    entry: JsonObject = {"command": command[0], "args": list(command[1:])}
    if variables:
        entry["env"] = dict(variables)
    if client in ("claude-code", "vscode"):
        entry = {"type": "stdio", **entry}
    return Entry({_key(client): {NAME: entry}}, _FILES[client])


def http_entry(client: str, url: str) -> Entry | None:
    """Return the entry with which a client connects to a running `pegboard serve --http`; None if it can't.

    The entry refers to the token, and doesn't contain it.

    Args:
        client: One of `CLIENTS` of `config.client_files`.
        url: The address of the server.
    """
    if client == "claude-desktop":
        return None
    set_ = f"Set {VARIABLE} to the token in the environment of the client."
    if client == "vscode":
        asked: JsonObject = {
            "type": "promptString",
            "id": "pegboard-token",
            "description": "Token of pegboard serve",
            "password": True,
        }
        entry: JsonObject = {"type": "http", "url": url, "headers": _headers("${input:pegboard-token}")}
        note = "VS Code asks for the token once, and stores it."
        return Entry({"inputs": [asked], "servers": {NAME: entry}}, _FILES[client], note)
    if client == "cursor":
        return Entry(
            {"mcpServers": {NAME: {"url": url, "headers": _headers(f"${{env:{VARIABLE}}}")}}}, _FILES[client], set_
        )
    entry = {"type": "http", "url": url, "headers": _headers(f"${{{VARIABLE}}}")}
    return Entry({"mcpServers": {NAME: entry}}, _FILES[client], set_)


def _key(client: str) -> str:
    return "servers" if client == "vscode" else "mcpServers"


def _headers(token: str) -> JsonObject:
    return {"Authorization": f"Bearer {token}"}
