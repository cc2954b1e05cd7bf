"""Announcements of a server: changes of its lists, and of the resources that are open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import (
    METHOD_NOT_FOUND,
    EmptyResult,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    ServerNotification,
    SubscribeRequest,
    SubscribeRequestParams,
    ToolListChangedNotification,
    UnsubscribeRequest,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.mcp.failures import ERRORS
from pegboard.mcp.limits import FIRST_REST, LONGEST_REST

if TYPE_CHECKING:
    from anyio.abc import TaskGroup
    from mcp import Client

_LONGEST_PAUSE: Final = 60.0
"""Seconds between attempts to follow a server's announcements."""
_SUBSCRIBE_SECONDS: Final = 15.0
"""Seconds that a server may take to answer a subscription, for which others wait."""
_UNSUBSCRIBE_SECONDS: Final = 2.0


class Announcements:
    """Announcements of one server, during all its connections.

    Args:
        tools_changed: Is called when the server has changed its list of tools.
        contents_changed: Is called when it has changed its resources or prompts, and not much more often than once
            per second.
    """

    def __init__(self, *, tools_changed: Callable[[], None], contents_changed: Callable[[], None]) -> None:
        self._tools_changed = tools_changed
        self._contents_changed = contents_changed
        self._contents = anyio.Event()
        self._followers: dict[str, list[Callable[[], None]]] = {}
        self._subscriptions: dict[str, anyio.CancelScope] = {}
        self._begin: Callable[[str], None] | None = None
        """Subscribes to a resource; None if the server isn't connected or has no subscriptions."""
        self._one_at_a_time = anyio.Lock()

    def receive(self, message: ServerNotification) -> None:
        """Process a notification."""
        match message:
            case ToolListChangedNotification():
                self._tools_changed()
            case ResourceListChangedNotification() | PromptListChangedNotification():
                self._contents.set()
            case ResourceUpdatedNotification(params=params):
                changed = str(params.uri)
                for uri in [*self._followers]:
                    if changed == uri or changed.startswith(f"{uri.rstrip('/')}/"):
                        self._notify(uri)
            case _:
                pass

    async def follow(self, uri: str, changed: Callable[[], None]) -> None:
        """Subscribe to a resource until this is cancelled. Does nothing if the server has no subscriptions.

        Args:
            uri: The resource.
            changed: Is called when the resource has changed, and when a subscription begins: a change may have come
                before it.
        """
        followers = self._followers.setdefault(uri, [])
        followers.append(changed)
        if uri in self._subscriptions:
            changed()
        elif self._begin is not None:
            self._begin(uri)
        try:
            await anyio.sleep_forever()
        finally:
            followers.remove(changed)
            if not followers:
                del self._followers[uri]
                if (scope := self._subscriptions.pop(uri, None)) is not None:
                    scope.cancel()

    async def serve(self, client: Client) -> None:
        """Follow a connected server until this is cancelled."""
        capabilities = client.server_capabilities
        tools, prompts, resources = capabilities.tools, capabilities.prompts, capabilities.resources
        lists = {
            "tools": tools is not None and bool(tools.list_changed),
            "prompts": prompts is not None and bool(prompts.list_changed),
            "resources": resources is not None and bool(resources.list_changed),
        }
        self._subscriptions.clear()
        async with anyio.create_task_group() as group:
            group.start_soon(self._pass_on)
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS and any(lists.values()):
                group.start_soon(self._listen, client, lists)
            if resources is not None and resources.subscribe:
                self._begin = lambda uri: self._start(client, group, uri)
                for uri in self._followers:
                    self._begin(uri)
            try:
                await anyio.sleep_forever()
            finally:
                self._begin = None

    def _notify(self, uri: str) -> None:
        for changed in [*self._followers.get(uri, ())]:
            changed()

    async def _pass_on(self) -> None:
        """Report changes of resources and prompts, the less often the longer they keep coming."""
        rest = FIRST_REST
        while True:
            await self._contents.wait()
            self._contents = anyio.Event()
            self._contents_changed()
            await anyio.sleep(rest)
            rest = min(LONGEST_REST, 2 * rest) if self._contents.is_set() else FIRST_REST

    async def _listen(self, client: Client, lists: dict[str, bool]) -> None:
        """Subscribe to lists of a server that announces changes only to subscribers; `receive` gets them."""
        pause, is_first = FIRST_REST, True
        while True:
            try:
                async with client.listen(
                    tools_list_changed=lists["tools"],
                    prompts_list_changed=lists["prompts"],
                    resources_list_changed=lists["resources"],
                ) as events:
                    if not is_first:  # changes meanwhile were not announced
                        self._tools_changed()
                        self._contents.set()
                    is_first, pause = False, FIRST_REST
                    async for _ in events:
                        pass
            except ERRORS as error:
                if isinstance(error, MCPError) and error.code == METHOD_NOT_FOUND:
                    return
                pause = min(_LONGEST_PAUSE, 2 * pause)
            await anyio.sleep(pause)

    def _start(self, client: Client, group: TaskGroup, uri: str) -> None:
        scope = self._subscriptions[uri] = anyio.CancelScope()
        subscribe = (
            self._subscribe_by_stream if client.protocol_version in MODERN_PROTOCOL_VERSIONS else self._subscribe
        )

        async def run() -> None:
            with scope:
                await subscribe(client, uri)

        group.start_soon(run)

    async def _subscribe_by_stream(self, client: Client, uri: str) -> None:
        """Subscribe as since protocol 2026-07-28."""
        pause = FIRST_REST
        while True:
            try:
                async with client.listen(resource_subscriptions=[uri]) as events:
                    if not events.honored.resource_subscriptions:
                        return
                    pause = FIRST_REST
                    self._notify(uri)
                    async for _ in events:
                        self._notify(uri)
            except ERRORS as error:
                if isinstance(error, MCPError) and error.code == METHOD_NOT_FOUND:
                    return
                pause = min(_LONGEST_PAUSE, 2 * pause)
            await anyio.sleep(pause)

    async def _subscribe(self, client: Client, uri: str) -> None:
        """Subscribe as in earlier versions of the protocol."""
        # The methods of the client for these requests are deprecated, as the newer protocol doesn't have them.
        async with self._one_at_a_time:
            try:
                params = SubscribeRequestParams(uri=uri)
                with anyio.fail_after(_SUBSCRIBE_SECONDS):
                    await client.session.send_request(SubscribeRequest(params=params), EmptyResult)
            except ERRORS:
                return  # the resource is shown as it was read
        try:
            self._notify(uri)
            await anyio.sleep_forever()
        finally:
            if uri not in self._subscriptions:  # otherwise the connection ends, and the subscription with it
                with anyio.move_on_after(_UNSUBSCRIBE_SECONDS, shield=True):
                    await self._unsubscribe(client, uri)

    async def _unsubscribe(self, client: Client, uri: str) -> None:
        async with self._one_at_a_time:
            if uri in self._subscriptions:  # it was opened again meanwhile
                return
            try:
                params = UnsubscribeRequestParams(uri=uri)
                await client.session.send_request(UnsubscribeRequest(params=params), EmptyResult)
            except ERRORS:
                pass  # the connection has ended, or the server will send updates that nothing follows
