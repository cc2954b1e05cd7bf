"""The server of the protocol: answers every request with what `Runtime` offers."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.connection import Connection
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard import __version__
from pegboard.brake import NOT_SHOWN
from pegboard.models import Agent, JsonObject, McpHandler, ToolCall, ToolResult, ToolSpec
from pegboard.models.model import as_json
from pegboard.results.edits import edit_note
from pegboard.results.export import completed
from pegboard.results.images import as_objects, images
from pegboard.serve.calls import Context, Input, ServedCall, ServedCalls, set_log_level
from pegboard.serve.contents import Contents
from pegboard.serve.offer import ServedTools
from pegboard.serve.results import call_result, with_note

if TYPE_CHECKING:
    from pegboard.runtime import Runtime
    from pegboard.serve.approval import BrakeApprover

_CONNECT_SECONDS: Final = 15.0
"""Time that servers have to connect before the first list of tools is answered without theirs."""
_INTRODUCTION_SECONDS: Final = 3.0
"""Time that servers have to connect before a client is greeted without their instructions."""
_INSTRUCTIONS: Final = (
    "Tools of packs and MCP servers. Calls of tools that aren't read-only may need the user's approval; a"
    " rejected call says why. Don't repeat it."
)
_LARGE: Final = 100_000
"""Bytes of a result that is converted in a thread."""
_CLIENT: Final = "pegboard.client"
"""Key of a connection's state."""
_MOST_AGENTS: Final = 256
_FRESH_MS: Final = 5_000
_CACHEABLE: Final[tuple[CacheableMethod, ...]] = (
    "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read",
)  # fmt: skip


class _Client(NamedTuple):
    """A client, and the session of its calls."""

    agent: Agent
    session: str


class _ListenHandler(ListenHandler):
    """Handler of subscriptions to changes of the lists; it confirms none to a resource, as no update is passed on."""

    async def __call__(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve one stream of events."""
        wanted = params.notifications.model_copy(update={"resource_subscriptions": None})
        return await super().__call__(ctx, params.model_copy(update={"notifications": wanted}))


class _Server(Server[None]):
    """Server that announces changes of its lists to clients of the protocol 2025-11-25, too."""

    def get_capabilities(self, *args: Any, **options: Any) -> types.ServerCapabilities:  # noqa: ANN401 - the SDK's
        """Return the capabilities, without subscriptions to resources."""
        capabilities = super().get_capabilities(*args, **options)
        if capabilities.resources is not None:
            capabilities.resources.subscribe = False
        return capabilities

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the options of a handshake."""
        changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(
            notification_options or changes, experimental_capabilities, extensions
        )


class Service:
    """The tools of a runtime for MCP clients, over any transport.

    Args:
        runtime: The runtime.
        approver: Decides on calls that need approval, and holds all calls during a pause. Without one, or without a
            person, they are rejected, and the result says how the user can allow them.
        process: Id of the client's process, if there is only one client.
    """

    def __init__(self, runtime: Runtime, *, approver: BrakeApprover | None = None, process: int | None = None) -> None:
        self._runtime = runtime
        self._approver = approver
        self._process = process
        self._offer = ServedTools(())
        self._ready = asyncio.Event()
        self._calls = ServedCalls(runtime)
        self._contents = Contents(runtime)
        self._bus = InMemorySubscriptionBus()
        self._listening = _ListenHandler(self._bus)
        self._connections: set[Connection] = set()
        self._agents: OrderedDict[tuple[str, str], _Client] = OrderedDict()
        self.server = self._make_server()
        """The server of the SDK, for a transport."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow the registry while the block runs; cancel all calls at its end."""
        if self._approver is not None:
            self._runtime.rules.approve_with(self._approver, self._approver.rule_added)
            self._runtime.rules.hold_with(self._approver.held)
            self._approver.is_shared = self._is_shared
        self._runtime.servers.pass_on_to(self._calls)
        following = {asyncio.create_task(self._follow()), asyncio.create_task(self._follow_servers())}
        try:
            yield
        finally:
            self._listening.close()
            await self._calls.close()
            for task in following:
                task.cancel()
            await asyncio.wait(following)

    async def cancel_calls(self) -> None:
        """Cancel all calls; the results for their clients say so."""
        await self._calls.close()

    def _make_server(self) -> Server[None]:
        has_servers = bool(self._runtime.servers.all())
        server: Server[None] = _Server(
            "pegboard",
            version=__version__,
            title="Pegboard",
            instructions=_INSTRUCTIONS,
            cache_hints={method: CacheHint(ttl_ms=_FRESH_MS, scope="private") for method in _CACHEABLE},
            get_tool_input_schema=self._input_schema,
            on_subscriptions_listen=self._listening,
        )
        # These handlers return JSON, which the SDK validates for the protocol version of the client.
        server.add_request_handler("tools/list", types.PaginatedRequestParams, self._list_tools)
        server.add_request_handler("tools/call", types.CallToolRequestParams, self._call_tool)
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        server.add_notification_handler("notifications/initialized", types.NotificationParams, self._greet)
        if has_servers:
            server.add_request_handler("resources/list", types.PaginatedRequestParams, self._list_resources)
            server.add_request_handler("resources/templates/list", types.PaginatedRequestParams, self._list_templates)
            server.add_request_handler("resources/read", types.ReadResourceRequestParams, self._read_resource)
            server.add_request_handler("prompts/list", types.PaginatedRequestParams, self._list_prompts)
            server.add_request_handler("prompts/get", types.GetPromptRequestParams, self._get_prompt)
            server.add_request_handler("completion/complete", types.CompleteRequestParams, self._complete)
        return server

    # Tools

    async def _follow(self) -> None:
        """Follow the registry, and announce changes of the tools."""
        watching = self._runtime.tools.watch()
        settling: asyncio.Task[None] | None = None
        try:
            async for _ in watching:
                has_changed = self._offer_tools()
                if settling is None:
                    settling = asyncio.create_task(self._settle())
                elif has_changed and self._ready.is_set():
                    await self._announce(ToolsListChanged(), "notifications/tools/list_changed")
        finally:
            if settling is not None:
                settling.cancel()
            await watching.aclose()

    async def _follow_servers(self) -> None:
        """Follow the servers, and announce changes of the lists of resources and prompts."""
        changed, loop = asyncio.Event(), asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(changed.set)

        ignore = self._runtime.servers.listen(wake)
        servers = self._server_states()
        try:
            while True:
                await changed.wait()
                changed.clear()
                if servers == (servers := self._server_states()):
                    continue
                await asyncio.to_thread(self._runtime.tools.scan)  # a server without allowed tools is hidden
                if self._ready.is_set():
                    await self._announce(ResourcesListChanged(), "notifications/resources/list_changed")
                    await self._announce(PromptsListChanged(), "notifications/prompts/list_changed")
        finally:
            ignore()

    async def _settle(self) -> None:
        """Wait until all servers are connected or have failed, so that the first list of tools is complete."""
        try:
            await self._runtime.servers.connect(timeout=_CONNECT_SECONDS)
            self._offer_tools()
        finally:
            self._ready.set()

    def _offer_tools(self) -> bool:
        """Offer the present tools, and return whether they differ from the ones before."""
        specs = self._runtime.tools.all()
        before, self._offer = self._offer, ServedTools(specs)
        self.server.instructions = _INSTRUCTIONS + self._runtime.servers.instructions(specs)
        return not self._offer.is_like(before)

    async def introduced(self) -> None:
        """Wait a moment for trusted servers, whose instructions are part of the greeting of a client."""
        configs = [self._runtime.servers.config(status.name) for status in self._runtime.servers.all()]
        if any(config is not None and config.trusted for config in configs):
            with suppress(TimeoutError):
                async with asyncio.timeout(_INTRODUCTION_SECONDS):
                    await self._ready.wait()

    def _server_states(self) -> tuple[tuple[str, str, int], ...]:
        """Return all on which the lists of resources and prompts depend."""
        servers = self._runtime.servers.all()
        return tuple((status.name, status.state.value, status.content_changes) for status in servers)

    async def _announce(self, event: ToolsListChanged | ResourcesListChanged | PromptsListChanged, method: str) -> None:
        await self._bus.publish(event)
        for connection in [*self._connections]:
            await connection.notify(method, None)

    def _input_schema(self, name: str) -> JsonObject | None:
        return self._offer.input_schema(name)

    async def _list_tools(self, context: Context, params: types.PaginatedRequestParams) -> JsonObject:
        await self._ready.wait()
        tools, last = self._offer.page(_read_cursor(params.cursor))
        listed: JsonObject = {"tools": tools, **({"nextCursor": _cursor(last)} if last is not None else {})}  # type: ignore[dict-item]  # JSON
        return _for_version(context, listed)

    async def _call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> JsonObject | types.InputRequiredResult:
        await self._ready.wait()
        spec = self._offer.find(params.name)
        name = params.name if spec is None else spec.name
        answers = {key: as_json(answer) for key, answer in (params.input_responses or {}).items()}
        if params.request_state is not None:
            served = self._calls.resume(name, context, params.request_state, answers)
        else:
            served = self._calls.start(self._call(context, name, params.arguments or {}), context, answers)
        outcome = await self._outcome(context, served)
        if isinstance(outcome, Input):
            requests = {key: dict(request) for key, request in outcome.requests.items()}
            return types.InputRequiredResult.model_validate(
                {"resultType": "input_required", "inputRequests": requests, "requestState": outcome.state}
            )
        if spec is None:
            spec = self._found_meanwhile(name, outcome)
        if served.missing and not outcome.ok and context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            needed: JsonObject = {name: {} for name in sorted(served.missing)}
            message = f"{spec.name} needs capabilities of the client: {', '.join(needed)}."
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, {"requiredCapabilities": needed})
        return _for_version(context, await self._answer(spec, served, outcome))

    async def _outcome(self, context: Context, served: ServedCall) -> ToolResult | Input:
        """Wait for the outcome; cancel the call if its client disconnects."""
        gone = context.request.scope.get(DISCONNECTED) if context.request is not None else None
        if not isinstance(gone, asyncio.Event):
            return await self._calls.wait(served)
        leaving = asyncio.create_task(gone.wait())
        leaving.add_done_callback(lambda task: None if task.cancelled() else served.cancel())
        try:
            return await self._calls.wait(served)
        finally:
            leaving.cancel()

    def _found_meanwhile(self, name: str, outcome: ToolResult) -> ToolSpec:
        """Return the tool of a call that was made although its tool isn't offered, so that the history contains it.

        Raises:
            MCPError: The tool doesn't exist, or it isn't allowed.
        """
        spec = self._runtime.tools.get(name)
        if spec is None or (outcome.error is not None and outcome.error.code == "tool_not_found"):
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {name}")
        return spec

    def _call(self, context: Context, name: str, arguments: JsonObject) -> ToolCall:
        client = self._client(context)
        return ToolCall(name=name, args=arguments, source="serve", session=client.session, agent=client.agent)

    async def _answer(self, spec: ToolSpec, served: ServedCall, result: ToolResult) -> JsonObject:
        hint = ""
        note = "" if served.edited is None else edit_note(served.edited)
        if result.error is not None and result.error.detail == "denied" and not self._was_asked(result.error.message):
            hint = await asyncio.to_thread(self._advice, spec, served.call)

        def convert() -> JsonObject:
            fault, data, complete = "", None, result
            if result.ok and result.original is None:
                with suppress(OSError, ValueError):  # `call_result` says why
                    complete = completed(result)
                    fault = self._runtime.tools.output_fault(spec, complete.data)
                    if fault and (described := as_objects(complete.data)) is not complete.data:
                        fault, data = self._runtime.tools.output_fault(spec, described), described
            folder = self._runtime.paths.results.absolute()
            return with_note(call_result(spec, complete, folder, hint, fault, data), note)

        is_quick = result.meta.size < _LARGE and not images(result.data)
        return convert() if is_quick else await asyncio.to_thread(convert)

    def _was_asked(self, message: str) -> bool:
        """Return whether a person decided on a rejected call."""
        return self._approver is not None and NOT_SHOWN not in message

    def _advice(self, spec: ToolSpec, call: ToolCall) -> str:
        """Return how the user can allow a call that was rejected for want of an approver; read the disk."""
        verdict = self._runtime.rules.verdict(call)
        if verdict is None or verdict.action != "ask":
            return ""
        rules = self._runtime.rules.read()
        if rules.problem is not None:
            return f"The user's rules can't be read: {rules.problem}"
        if isinstance(spec.handler, McpHandler) and not spec.handler.saved:
            return (
                "To allow it, the user can approve it in an open Pegboard app or with `pegboard approve`. Rules never"
                " apply to a server of `--mcp`; for a rule, add the server with `pegboard mcp add` first."
            )
        return (
            f"To allow it, the user can add this rule to {rules.file}:\n"
            f'[[rule]]\nallow = "{call.name}"\nscope = "mcp"\n'
            "A `where` line limits the rule to certain arguments; see `pegboard guide serve`."
        )

    # Clients

    def _client(self, context: Context) -> _Client:
        """Return the client that sent a request: its connection, or all its requests if the protocol has none."""
        params = context.session.client_params
        name, version = (params.client_info.name, params.client_info.version) if params is not None else ("", "")
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            state = context.session._connection.state  # noqa: SLF001 - handlers have no other way to it
            client = state.get(_CLIENT)
            if not isinstance(client, _Client):
                client = state[_CLIENT] = self._connected(name, version)
            return client
        found = self._agents.get((name, version))
        if found is None:
            found = self._agents[name, version] = self._connected(name, version)
            if len(self._agents) > _MOST_AGENTS:
                self._agents.popitem(last=False)
        return found

    def _is_shared(self, session: str | None) -> bool:
        """Return whether several clients may have a session: those of one name, in a protocol without connections."""
        return self._process is None and any(client.session == session for client in self._agents.values())

    def _connected(self, name: str, version: str) -> _Client:
        agent = Agent.connected(self._process, name=name, version=version)
        return _Client(agent, agent.session)

    async def _greet(self, context: Context, params: types.NotificationParams) -> None:
        connection = context.session._connection  # noqa: SLF001 - as in `_client`
        if connection.has_standalone_channel and connection not in self._connections:
            self._connections.add(connection)
            connection.exit_stack.callback(self._connections.discard, connection)

    async def _set_level(self, context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        set_log_level(context, params.level)
        return types.EmptyResult()

    # Resources, prompts and completions

    async def _list_resources(self, context: Context, params: types.PaginatedRequestParams) -> JsonObject:
        return await self._list(context, "resources/list")

    async def _list_templates(self, context: Context, params: types.PaginatedRequestParams) -> JsonObject:
        return await self._list(context, "resources/templates/list")

    async def _list_prompts(self, context: Context, params: types.PaginatedRequestParams) -> JsonObject:
        return await self._list(context, "prompts/list")

    async def _list(self, context: Context, method: str) -> JsonObject:
        await self._ready.wait()
        return _for_version(context, await self._contents.items(method))

    async def _read_resource(self, context: Context, params: types.ReadResourceRequestParams) -> JsonObject:
        await self._ready.wait()
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        return _for_version(context, await self._contents.read(as_json(params), is_modern=is_modern))

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> JsonObject:
        await self._ready.wait()
        return _for_version(context, await self._contents.prompt(as_json(params)))

    async def _complete(self, context: Context, params: types.CompleteRequestParams) -> JsonObject:
        await self._ready.wait()
        return _for_version(context, await self._contents.complete(as_json(params)))


DISCONNECTED: Final = "pegboard.disconnected"
"""Key of an HTTP request's scope: an `asyncio.Event` that is set when the client has disconnected."""


def _for_version(context: Context, answer: JsonObject) -> JsonObject:
    """Return a server's answer as a result for the client's protocol version.

    Raises:
        MCPError: The server asks for input, which this version doesn't know.
    """
    is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    kind = answer.get("resultType")
    if kind == "input_required" and not is_modern:
        raise MCPError(types.INTERNAL_ERROR, "The server asks for input, which this protocol version doesn't support.")
    # Identity and freshness are this server's own.
    meta = answer.get("_meta")
    meta = (
        {key: one for key, one in meta.items() if key != types.SERVER_INFO_META_KEY} if isinstance(meta, dict) else {}
    )
    plain = {key: value for key, value in answer.items() if key not in ("_meta", "ttlMs", "cacheScope")}
    if is_modern:
        plain.setdefault("resultType", "complete")
    return {**plain, "_meta": meta} if meta else plain


def _cursor(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _read_cursor(cursor: str | None) -> str | None:
    """Return the name in a cursor.

    Raises:
        MCPError: The cursor isn't one of this server.
    """
    if cursor is None:
        return None
    with suppress(binascii.Error, ValueError):
        return base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    raise MCPError(types.INVALID_PARAMS, "The cursor is invalid. List the tools again from the start.")
