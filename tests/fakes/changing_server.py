"""A server whose tools change its resource and its lists: `changing_server.py [2025-11-25]`, or `… http PORT`.

Given a version, it speaks that version only. The resource `memo://log` lists the subscriptions that it had and ended.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated

IS_MODERN = "2025-11-25" not in sys.argv
bus = InMemorySubscriptionBus()
listening = ListenHandler(bus)
memos = {"memo://now": "version 0"}
log: list[str] = []


async def list_resources(context: Any, params: Any) -> types.ListResourcesResult:
    """Return the memos."""
    return types.ListResourcesResult(
        resources=[types.Resource(uri=uri, name=uri.rpartition("/")[2]) for uri in (*memos, "memo://log")]
    )


async def read(context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    """Return a memo."""
    uri = str(params.uri)
    text = json.dumps(log) if uri == "memo://log" else memos[uri]
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=text)])


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    """Return the tools."""
    schema = {"type": "object"}
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=schema) for name in ("edit", "append")])


async def call(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Change the memo, or add one, and announce it."""
    if params.name == "edit":
        memos["memo://now"] = f"version {int(memos['memo://now'].split()[1]) + 1}"
        await bus.publish(ResourceUpdated("memo://now"))
        if not IS_MODERN:
            await context.session.send_resource_updated("memo://now")
    else:
        memos[f"memo://{len(memos)}"] = "another"
        await bus.publish(ResourcesListChanged())
        if not IS_MODERN:
            await context.session.send_resource_list_changed()
    return types.CallToolResult(content=[types.TextContent(type="text", text="done")])


async def subscribe(context: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
    """Note a subscription."""
    log.append(f"subscribed {params.uri}")
    return types.EmptyResult()


async def unsubscribe(context: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    """Note the end of a subscription."""
    log.append(f"unsubscribed {params.uri}")
    return types.EmptyResult()


async def listen(context: Any, params: types.SubscriptionsListenRequestParams) -> types.SubscriptionsListenResult:
    """Serve a stream of events, and note its beginning and its end."""
    uris = params.notifications.resource_subscriptions or []
    log.extend(f"subscribed {uri}" for uri in uris)
    try:
        return await listening(context, params)
    finally:
        log.extend(f"unsubscribed {uri}" for uri in uris)


async def main() -> None:
    """Serve stdin and stdout, or HTTP."""
    if IS_MODERN:
        server: Server[Any] = Server(
            "changing",
            on_list_resources=list_resources,
            on_read_resource=read,
            on_list_tools=list_tools,
            on_call_tool=call,
            on_subscriptions_listen=listen,
        )
    else:
        server = Server(
            "changing",
            on_list_resources=list_resources,
            on_read_resource=read,
            on_list_tools=list_tools,
            on_call_tool=call,
            on_subscribe_resource=subscribe,
            on_unsubscribe_resource=unsubscribe,
        )
    if "http" in sys.argv:
        import uvicorn

        port = int(sys.argv[-1])
        await uvicorn.Server(
            uvicorn.Config(server.streamable_http_app(), host="127.0.0.1", port=port, log_level="warning")
        ).serve()
        return
    options = server.create_initialization_options(NotificationOptions(resources_changed=True))
    async with stdio_server() as (reads, writes):
        if IS_MODERN:
            await server.run(reads, writes, options)
        else:
            await serve_loop(server, reads, writes, lifespan_state={}, init_options=options)


if __name__ == "__main__":
    anyio.run(main)
