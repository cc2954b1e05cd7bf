"""Messages that any widget can post to the app."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from pegboard.models import JsonObject


@dataclass
class Copy(Message):
    """A request to copy a text to the clipboard."""

    text: str


@dataclass
class Called(Message):
    """A call of a tool with requirements; the call has checked them."""

    tool: str
    """Qualified name of the tool."""


@dataclass
class HistoryRead(Message):
    """A tool's history and presets were read, which may have revealed problems."""


@dataclass
class Asking(Message):
    """The start or the end of a model turn."""

    running: bool


@dataclass
class Scripting(Message):
    """The start or the end of a script."""

    running: bool


@dataclass
class TalkAbout(Message):
    """A request to append a text to the prompt of the Chat page, and to focus it."""

    text: str


@dataclass
class OpenTurn(Message):
    """A request to open a chat session on the Chat page at one of the user's messages."""

    session: str
    """Id of the session."""
    message: int
    """Position of the message in the session."""


@dataclass
class OpenCall(Message):
    """A request to open a call in the form of its tool."""

    tool: str
    """Name or alias of the tool."""
    arguments: JsonObject


@dataclass
class OpenWaitingCall(Message):
    """A request to show the card of a call that waits for approval."""

    call: str
    """Id of the call."""


@dataclass
class KeepCall(Message):
    """A request to keep a recorded call as a check."""

    call: str
    """Id of the call."""


@dataclass
class ShowChecks(Message):
    """A request to show the checks of a tool."""

    tool: str
    """Name of the tool."""


@dataclass
class SchemaAccepted(Message):
    """The user accepted the changes of a tool's schema."""

    tool: str
    """Qualified name of the tool."""


@dataclass
class OpenScript(Message):
    """A request to open a text as a new script on the Script page."""

    text: str


@dataclass
class OpenTool(Message):
    """A request to open the form of a tool on the Tools page."""

    tool: str
    """Qualified name of the tool."""


@dataclass
class OpenServer(Message):
    """A request to show the page of an MCP server on the Tools page."""

    server: str
    """Name of the server's pack."""


@dataclass
class OpenResource(Message):
    """A request to read a resource of an MCP server and show it."""

    server: str
    """Name of the server's pack."""
    uri: str


@dataclass
class OpenFile(Message):
    """A request to open a file that a result was saved to."""

    file: str
    """Absolute path; untrusted."""
