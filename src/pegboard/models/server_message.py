"""Messages between Pegboard and an MCP server. Every text is untrusted."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pegboard.models.model import DataModel

MessageKind = Literal["request", "response", "error", "notification", "other", "stderr"]


class ServerMessage(DataModel):
    """One message as it was sent, or one line that the server wrote to stderr."""

    number: int
    """Number among all messages of the connection and of earlier connections to the server."""
    at: datetime
    sent: bool
    """Whether Pegboard sent it."""
    kind: MessageKind
    """`error` is an error response; `other` is text that isn't a JSON-RPC message."""
    method: str = ""
    """Its method; of a response, that of the request if it is known."""
    id: str = ""
    """Id of the request, as JSON; empty if there is none."""
    about: str = ""
    """The name or URI in its parameters or those of its request, or the message of its error."""
    milliseconds: float | None = None
    """Time since the request, of a response."""
    size: int
    """Size in bytes."""
    text: str
    """The message, or its beginning."""
    is_cut: bool
    """Whether the text is only the beginning."""
