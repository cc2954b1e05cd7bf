"""Texts of servers, as far as Pegboard puts them into its own sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pegboard.config.servers import ends_in_sse
from pegboard.results.clean import clean_line

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import ServerCapabilities

_LONGEST = 300
_QUOTED = 2_000
"""Bytes of a body in which a title is looked for."""
LONGEST_ERROR = 100_000
"""Bytes of a body that is parsed as an error."""
_TITLE = re.compile(rb"<title[^>]*>(.{1,200}?)</title>", re.IGNORECASE | re.DOTALL)
_LONGEST_INSTRUCTIONS = 20_000

MORE_PERMISSIONS = "The server requires more permissions"
"""Start of the reason of a server whose login lacks permissions for some calls."""
RESPONSE = "The server's response"
"""Start of the messages about a response that can't be used."""
NOT_JSON_RPC = f"{RESPONSE} is not valid JSON-RPC."


class UnsendableError(ValueError):
    """A message can't be sent; the message of the error continues a sentence about it: `it contains …`."""


class OwnWords(str):
    """Data of an error whose message is a sentence of Pegboard in place of a response, not the server's.

    The data that a server sends is never of this class.
    """

    __slots__ = ()


def quotation(text: str) -> str:
    """Return a server's own words in quotation marks, on one line and shortened."""
    line = clean_line(" ".join(text[: 4 * _LONGEST].split()))
    return f"“{line[:_LONGEST]}…”" if len(line) > _LONGEST else f"“{line.removesuffix('.')}”"


def said_in(body: bytes, *, is_html: bool) -> str:
    """Return the start of the body of a failed response on one line; of an HTML page, only its title."""
    title = _TITLE.search(body[:_QUOTED]) if is_html else None
    text = title[1] if title else b"" if is_html else body[:_QUOTED]
    return " ".join(text.decode("utf-8", "replace").split())[:_LONGEST]


def error_in(body: bytes) -> str | None:
    """Return the message of a JSON-RPC error with its data if it has any; None if the body is something else."""
    try:
        message = json.loads(body) if len(body) <= LONGEST_ERROR else None
    except (ValueError, RecursionError):
        return None
    error = message.get("error") if isinstance(message, dict) and "jsonrpc" in message else None
    if not isinstance(error, dict) or not isinstance(said := error.get("message"), str) or not said.strip():
        return None
    return " ".join(with_data(said, error.get("data")).split())[:_LONGEST]


def with_data(message: str, data: object) -> str:
    """Return the message of an error, with its data in parentheses if it has any."""
    if data in (None, "", {}, []):
        return message
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
    return f"{message} ({text[:1000]})"


def is_old_transport(url: str, status: int) -> bool:
    """Return whether an address that answers a message with this status seems to be of the old HTTP+SSE transport."""
    return status in (400, 404, 405) and ends_in_sse(url)


def log_line(level: str, logger: str | None, data: object) -> str:
    """Return a log message of a server as a line: `warning: disk: almost full`."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
    return f"{level}: {logger}: {text}\n" if logger else f"{level}: {text}\n"


def server_facts(client: Client) -> dict[str, object]:
    """Return what a connected server reports about itself, as fields of its status."""
    info, instructions = client.server_info, client.instructions or ""
    is_long = len(instructions) > _LONGEST_INSTRUCTIONS
    return {
        "server_name": info.name if info else "",
        "server_version": info.version if info else "",
        "protocol": client.protocol_version,
        "capabilities": tuple(_capability_names(client.server_capabilities)),
        "instructions": f"{instructions[:_LONGEST_INSTRUCTIONS]}…" if is_long else instructions.strip(),
    }


def _capability_names(capabilities: ServerCapabilities) -> Iterator[str]:
    """Yield the capabilities of a server, such as `tools` and `tools.listChanged`."""
    for name, value in capabilities.model_dump(by_alias=True, exclude_none=True, mode="json").items():
        yield str(name)[:50]
        if isinstance(value, dict):
            yield from (f"{name}.{inner}"[:100] for inner, is_on in [*value.items()][:20] if is_on)
