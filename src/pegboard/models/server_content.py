"""Resources and prompts of MCP servers. Every text is untrusted."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from pegboard.models.model import DataModel


class ResourceInfo(DataModel):
    """A resource that a server lists."""

    uri: str
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = ""
    size: int | None = None
    """Size in bytes, if the server reports it."""


class ResourceTemplate(DataModel):
    """A URI with variables, such as `file:///{path}`."""

    uri_template: str
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = ""
    variables: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    """Variables that can be left out, such as `limit` in `notes://all{?limit}`."""


class ResourceContents(DataModel):
    """The content of a resource: a text, or a file with binary content."""

    uri: str
    mime_type: str = ""
    text: str | None = None
    file: str | None = None
    """Absolute path of the saved binary content."""
    size: str = ""
    problem: str = ""
    """Why the content can't be shown; empty if it can."""


class PromptArgument(DataModel):
    """An argument of a prompt."""

    name: str
    title: str = ""
    description: str = ""
    required: bool = False


class PromptInfo(DataModel):
    """A prompt that a server lists."""

    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class PromptMessage(DataModel):
    """One message of a prompt."""

    role: Literal["user", "assistant"]
    content: JsonValue
    """A text, or other content as in the results of tools."""


class PromptText(DataModel):
    """A prompt with its arguments filled in."""

    description: str = ""
    messages: tuple[PromptMessage, ...] = ()


class ForwardedError(DataModel):
    """An error with which a server answered a request that was passed on to it."""

    code: int
    message: str
    data: JsonValue = None


class Completion(DataModel):
    """Possible values of an argument."""

    values: tuple[str, ...] = ()
    has_more: bool = False
