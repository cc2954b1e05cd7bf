"""Requests about resources, prompts and completions that are passed on to a server unchanged.

The functions run on the connections' thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final  # Any: the protocol's models, one per method

from pegboard.mcp.limits import MOST_CONTENTS
from pegboard.mcp.pages import read_pages
from pegboard.models import JsonObject
from pegboard.models.model import as_json
from pegboard.models.server_content import ForwardedError

if TYPE_CHECKING:
    from mcp import Client
    from pydantic import BaseModel

LISTS: Final = {
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""Method → the key of its items."""


async def forward(client: Client, method: str, params: JsonObject) -> JsonObject | ForwardedError:
    """Send a request and return its result, or the server's error; a list contains the items of all pages.

    Raises:
        ValueError: The method can't be passed on.
        MCPError: The server has forgotten the session, see `in_session`, or a list can't be read.
    """
    if method in LISTS:
        return await _list(client, method)
    capability = "completions" if method.startswith("completion/") else method.partition("/")[0]
    if getattr(client.server_capabilities, capability, None) is None:
        raise ValueError(f"The server doesn't support {capability}.")
    from mcp.shared.exceptions import MCPError

    from pegboard.mcp.session import LostSession
    from pegboard.mcp.texts import OwnWords

    try:
        return as_json(await _send(client, method, params))
    except MCPError as error:
        if isinstance(error.data, LostSession):
            raise
        data = None if isinstance(error.data, OwnWords) else error.data
        return ForwardedError(code=error.code, message=error.message, data=data)


async def _send(client: Client, method: str, params: JsonObject) -> BaseModel:
    import mcp_types as types

    session = client.session
    match method:
        case "resources/read":
            read = types.ReadResourceRequestParams.model_validate(params)
            return await session.read_resource(
                read.uri,
                input_responses=read.input_responses,
                request_state=read.request_state,
                allow_input_required=True,
            )
        case "prompts/get":
            get = types.GetPromptRequestParams.model_validate(params)
            return await session.get_prompt(
                get.name,
                get.arguments,
                input_responses=get.input_responses,
                request_state=get.request_state,
                allow_input_required=True,
            )
        case "completion/complete":
            complete = types.CompleteRequestParams.model_validate(params)
            others = complete.context.arguments if complete.context is not None else None
            argument = {"name": complete.argument.name, "value": complete.argument.value}
            return await session.complete(complete.ref, argument, others)
        case _:
            raise ValueError(f"{method} can't be passed on.")


async def _list(client: Client, method: str) -> JsonObject:
    capabilities = client.server_capabilities
    fetch: Callable[..., Awaitable[Any]]
    known: BaseModel | None
    match method:
        case "prompts/list":
            known, fetch = capabilities.prompts, client.list_prompts
        case "resources/list":
            known, fetch = capabilities.resources, client.list_resources
        case _:
            known, fetch = capabilities.resources, client.list_resource_templates
    items: list[Any] = []

    def add(page: Any) -> tuple[int, int]:  # noqa: ANN401 - one of the protocol's models
        listed = as_json(page).get(LISTS[method])
        items.extend(listed if isinstance(listed, list) else ())
        return len(items), len(page.model_dump_json())

    if known is not None:
        await read_pages(LISTS[method], MOST_CONTENTS, lambda cursor: fetch(cursor=cursor), add)
    return {LISTS[method]: items[:MOST_CONTENTS]}
