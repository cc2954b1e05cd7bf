"""Resources and prompts of servers. Functions that send requests run on the connections' thread.

This module is imported on the user's side too, so it imports the SDK only where it is needed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Hashable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar
from uuid import uuid4

from pegboard.mcp.limits import MOST_CONTENTS
from pegboard.mcp.pages import read_pages
from pegboard.models.server_content import (
    Completion,
    PromptArgument,
    PromptInfo,
    PromptMessage,
    PromptText,
    ResourceContents,
    ResourceInfo,
    ResourceTemplate,
)

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import PaginatedResult

_PageT = TypeVar("_PageT", bound="PaginatedResult")
_ItemT = TypeVar("_ItemT")
_VARIABLES = re.compile(r"\{([+#./;?&]?)([^{}]+)\}")
_PREFIXES = "#./;?&"
"""Operators whose expression vanishes as a whole if its variables have no value."""


class Listed(NamedTuple, Generic[_ItemT]):
    """A list of a server, or its beginning."""

    items: tuple[_ItemT, ...] = ()
    problem: str = ""
    """Why the list is incomplete; empty if it isn't."""


async def resources(client: Client) -> Listed[ResourceInfo]:
    """Return the resources of a server."""
    if client.server_capabilities.resources is None:
        return Listed()
    found, problem = await _items(
        "resources",
        lambda cursor: client.list_resources(cursor=cursor),
        lambda page: ((one.uri, one) for one in page.resources),
    )
    items = (
        ResourceInfo(
            uri=str(one.uri),
            name=one.name,
            title=one.title or "",
            description=one.description or "",
            mime_type=one.mime_type or "",
            size=one.size,
        )
        for one in found
    )
    return Listed(tuple(items), problem)


async def templates(client: Client) -> Listed[ResourceTemplate]:
    """Return the templates of a server's resources; none if it has only resources and doesn't know the request."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import METHOD_NOT_FOUND

    if client.server_capabilities.resources is None:
        return Listed()
    try:
        found, problem = await _items(
            "resource templates",
            lambda cursor: client.list_resource_templates(cursor=cursor),
            lambda page: ((one.uri_template, one) for one in page.resource_templates),
        )
    except MCPError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        return Listed()
    items = (
        ResourceTemplate(
            uri_template=one.uri_template,
            name=one.name,
            title=one.title or "",
            description=one.description or "",
            mime_type=one.mime_type or "",
            variables=tuple(variables := _variables(one.uri_template)),
            optional=tuple(name for name, operator in variables.items() if operator and operator in _PREFIXES),
        )
        for one in found
    )
    return Listed(tuple(items), problem)


async def read(client: Client, uri: str, folder: Path) -> tuple[ResourceContents, ...]:
    """Return the contents of a resource; save binary ones to a folder."""
    result = await client.read_resource(uri)

    def convert() -> tuple[ResourceContents, ...]:
        from pegboard.mcp.results import ResultReader

        reader = ResultReader(folder, 0, f"resource-{uuid4().hex}")
        return tuple(ResourceContents.model_validate(reader.resource(content)) for content in result.contents)

    return await asyncio.to_thread(convert)


async def expand(template: str, variables: dict[str, str]) -> str:
    """Return the URI that a template means.

    Raises:
        ValueError: The template is invalid.
    """
    from mcp.shared.uri_template import UriTemplate

    parsed = UriTemplate.parse(template)
    paths = {one.name for one in parsed.variables if one.operator == "/" and one.explode}
    # Each part of `{/path*}` is a value of its own; otherwise the slashes between them would be escaped.
    return parsed.expand(
        {name: value.removeprefix("/").split("/") if name in paths else value for name, value in variables.items()}
    )


async def prompts(client: Client) -> Listed[PromptInfo]:
    """Return the prompts of a server."""
    if client.server_capabilities.prompts is None:
        return Listed()
    found, problem = await _items(
        "prompts",
        lambda cursor: client.list_prompts(cursor=cursor),
        lambda page: ((one.name, one) for one in page.prompts),
    )
    items = (
        PromptInfo(
            name=one.name,
            title=one.title or "",
            description=one.description or "",
            arguments=tuple(
                PromptArgument(
                    name=arg.name,
                    title=arg.title or "",
                    description=arg.description or "",
                    required=bool(arg.required),
                )
                for arg in one.arguments or ()
            ),
        )
        for one in found
    )
    return Listed(tuple(items), problem)


async def prompt(client: Client, name: str, arguments: dict[str, str], folder: Path) -> PromptText:
    """Return a prompt with its arguments filled in."""
    result = await client.get_prompt(name, arguments)

    def convert() -> PromptText:
        from pegboard.mcp.results import ResultReader

        reader = ResultReader(folder, 0, f"prompt-{uuid4().hex}")
        messages = tuple(
            PromptMessage(role=message.role, content=reader.block(message.content)) for message in result.messages
        )
        return PromptText(description=result.description or "", messages=messages)

    return await asyncio.to_thread(convert)


async def complete(client: Client, of: str, argument: str, value: str, others: dict[str, str]) -> Completion:
    """Return completions for an argument of a prompt, or for a variable of a template, whose URI contains `{`."""
    from mcp_types import PromptReference, ResourceTemplateReference

    if client.server_capabilities.completions is None:
        return Completion()
    ref = ResourceTemplateReference(uri=of) if "{" in of else PromptReference(name=of)
    result = await client.complete(ref, {"name": argument, "value": value}, others or None)
    return Completion(values=tuple(result.completion.values[:100]), has_more=bool(result.completion.has_more))


async def _items(
    what: str,
    fetch: Callable[[str | None], Awaitable[_PageT]],
    keyed: Callable[[_PageT], Iterable[tuple[Hashable, _ItemT]]],
) -> tuple[list[_ItemT], str]:
    """Return the items of all pages of a list, each once, and why they aren't all, if they aren't.

    Args:
        what: Name of the items.
        fetch: Returns the page after a cursor.
        keyed: Returns the items of a page with what distinguishes them.
    """
    items: dict[Hashable, _ItemT] = {}

    def add(page: _PageT) -> tuple[int, int]:
        for key, item in keyed(page):
            items.setdefault(key, item)
        return len(items), len(page.model_dump_json())

    problem = await read_pages(what, MOST_CONTENTS, fetch, add)
    return [*items.values()][:MOST_CONTENTS], problem


def _variables(template: str) -> dict[str, str]:
    """Return the variables of a template with their operators; a variable that comes twice has that of the first."""
    variables: dict[str, str] = {}
    for operator, names in _VARIABLES.findall(template):
        for name in names.split(","):
            variables.setdefault(name.split(":")[0].rstrip("*"), operator)
    return variables
