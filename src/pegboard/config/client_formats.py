"""The formats in which MCP clients list their servers: JSON with comments, and TOML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from pegboard.data.json_spans import spans
from pegboard.data.json_text import JsonTextError, parse
from pegboard.data.toml import TomlError, parse_toml

BOM: Final = "\ufeff"
VARIABLE: Final = re.compile(r"\$\{([^{}]*)\}")
"""Reference to an environment variable, as in `${NAME}`."""


class ClientFormatError(Exception):
    """A file has neither format; the message says why, after the name of the file."""


def is_toml(name: str) -> bool:
    """Return whether a file is TOML, by its name."""
    return name.lower().endswith(".toml")


def parsed(name: str, text: str) -> object:
    """Return the content of a client's file.

    Args:
        name: Name of the file.
        text: Its text.

    Raises:
        ClientFormatError: The text doesn't have the format of its name.
    """
    body = text.removeprefix(BOM)
    if is_toml(name):
        try:
            return parse_toml(body)
        except TomlError as error:
            raise ClientFormatError(f"is not TOML: {error}") from None
    with suppress(JsonTextError):  # a large file without comments
        return parse(body)
    try:
        return spans(body, comments=True).json()
    except JsonTextError as error:
        raise ClientFormatError(str(error)) from None


def listed_keys(name: str) -> str:
    """Return where a file of this name lists servers, for messages."""
    return "`mcp_servers`" if is_toml(name) else "`mcpServers`, `servers` or `mcp`"


def server_places(content: object) -> Iterator[tuple[str, ...]]:
    """Yield the keys that lead to each server in the content of a client's file.

    Servers are in `mcpServers` or `servers`, of the file, of `mcp` and of each of the `projects` of Claude Code; in
    `mcp` itself for OpenCode 1, beside its other settings; in `mcp_servers` for Codex.
    """
    holders: list[tuple[str, ...]] = [(), ("mcp",)]
    holders += [("projects", name) for name in _members(content, ("projects",))]
    for holder in holders:
        for key in ("mcpServers", "servers"):
            yield from ((*holder, key, name) for name in _members(content, (*holder, key)))
    for name, entry in _members(content, ("mcp",)).items():
        if isinstance(entry, dict) and entry.get("type") in ("local", "remote"):
            yield ("mcp", name)
    yield from (("mcp_servers", name) for name in _members(content, ("mcp_servers",)))


def value_at(content: object, place: tuple[str, ...]) -> object:
    """Return the value to which keys lead; None if there is none."""
    for key in place:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _members(content: object, place: tuple[str, ...]) -> dict[str, object]:
    found = value_at(content, place)
    return found if isinstance(found, dict) else {}
