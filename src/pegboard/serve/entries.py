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
    "codex": "~/.codex/config.toml",
    "cursor": "~/.cursor/mcp.json, or .cursor/mcp.json of a project",
    "gemini": "~/.gemini/settings.json, or .gemini/settings.json of a project",
    "opencode": "~/.config/opencode/opencode.json, or opencode.json of a project",
    "vscode": ".vscode/mcp.json, or the user's mcp.json (MCP: Open User Configuration)",
    "windsurf": "~/.codeium/windsurf/mcp_config.json",
    "copilot": "~/.copilot/mcp-config.json, or .github/mcp.json of a project",
}
CLIENTS: Final = tuple(_FILES)
"""Clients whose configuration is known."""


class OwnEntry(NamedTuple):
    """Entry for a client's file."""

    content: JsonObject
    """The file with nothing but the entry."""
    file: str
    """Where the file is, for people."""
    note: str = ""
    """Further steps for the user."""

    def toml(self) -> str:
        """Return the content as TOML that can be appended to a file: without the header of a table around the entry."""
        import tomlkit

        document = tomlkit.document()
        for key, entries in self.content.items():
            around = tomlkit.table(is_super_table=True)
            for name, entry in entries.items() if isinstance(entries, dict) else ():
                around[name] = entry
            document[key] = around
        return document.as_string()


def stdio_entry(client: str, command: Sequence[str], variables: Mapping[str, str]) -> OwnEntry:
    """Return the entry with which a client starts `pegboard serve`.

    Args:
        client: One of `CLIENTS`.
        command: The command line.
        variables: Environment variables of the server.
    """
    entry: JsonObject = {"command": command[0], "args": list(command[1:])}
    if client == "opencode":
        entry = {"type": "local", "command": list(command)}
    if variables:
        entry["environment" if client == "opencode" else "env"] = dict(variables)
    if client in ("claude-code", "vscode"):
        entry = {"type": "stdio", **entry}
    return OwnEntry({_key(client): {NAME: entry}}, _FILES[client])


def http_entry(client: str, url: str) -> OwnEntry | None:
    """Return the entry with which a client connects to a running `pegboard serve --http`; None if it can't.

    The entry refers to the token, and doesn't contain it.

    Args:
        client: One of `CLIENTS`.
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
        return OwnEntry({"inputs": [asked], "servers": {NAME: entry}}, _FILES[client], note)
    entries: dict[str, JsonObject] = {
        "codex": {"url": url, "bearer_token_env_var": VARIABLE},
        "cursor": {"url": url, "headers": _headers(f"${{env:{VARIABLE}}}")},
        "gemini": {"httpUrl": url, "headers": _headers(f"${VARIABLE}")},
        "opencode": {"type": "remote", "url": url, "headers": _headers(f"{{env:{VARIABLE}}}"), "oauth": False},
        "windsurf": {"serverUrl": url, "headers": _headers(f"${{env:{VARIABLE}}}")},
    }
    entry = entries.get(client) or {"type": "http", "url": url, "headers": _headers(f"${{{VARIABLE}}}")}
    return OwnEntry({_key(client): {NAME: entry}}, _FILES[client], set_)


def _key(client: str) -> str:
    return {"codex": "mcp_servers", "opencode": "mcp", "vscode": "servers"}.get(client, "mcpServers")


def _headers(token: str) -> JsonObject:
    return {"Authorization": f"Bearer {token}"}
