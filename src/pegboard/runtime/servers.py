"""The MCP servers, their resources and prompts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast  # Any: what coroutines yield and receive

from pegboard import models
from pegboard.errors import ModelError
from pegboard.runtime.configured_servers import ConfiguredServers

if TYPE_CHECKING:
    from types import ModuleType

    from pegboard.mcp.connection import Request, ServerConnection
    from pegboard.mcp.contents import Listed
    from pegboard.mcp.services import Sampled, ServerUser
    from pegboard.models import JsonObject, Problem, SamplingRequest, ServerConfig, ServerStatus, ToolSpec
    from pegboard.models.conversation import Message
    from pegboard.models.server_content import (
        Completion,
        ForwardedError,
        PromptInfo,
        PromptText,
        ResourceContents,
        ResourceInfo,
        ResourceTemplate,
    )
    from pegboard.models.server_message import ServerMessage
    from pegboard.ports import ClientRequests, ServerQuestions
    from pegboard.runtime.models import Models
    from pegboard.runtime.parts import Parts

_T = TypeVar("_T")

_LONGEST_INSTRUCTIONS: Final = 4_000
"""Characters of the instructions of one server that a model gets."""


class LoggedOut(NamedTuple):
    """The end of a login."""

    was_logged_in: bool
    note: str = ""
    """Why its tokens may stay valid at the server; empty if they don't."""


class Servers:
    """The MCP servers of the configuration, and those given for this run.

    Args:
        parts: The parts of the runtime.
        models: The language models, for servers' prompts that the user approves.
    """

    def __init__(self, parts: Parts, models: Models) -> None:
        self._parts = parts
        self._models = models
        parts.sample = self._sample
        self.configured = ConfiguredServers(parts)

    def all(self) -> tuple[ServerStatus, ...]:
        """Return the status of every server."""
        return self._parts.hub.all() if self._parts.has_servers else ()

    def status(self, name: str) -> ServerStatus | None:
        """Return the status of the server with this name, or None."""
        return self._parts.hub.status(name) if self._parts.has_servers else None

    def stderr(self, name: str) -> tuple[str, ...]:
        """Return the last lines that a server wrote to stderr, more than its status has."""
        connection = self._parts.hub.connection(name) if self._parts.has_servers else None
        return () if connection is None else connection.kept_stderr

    def messages(self, name: str, after: int = 0) -> tuple[ServerMessage, ...]:
        """Return the last messages to and from a server, oldest first.

        Args:
            name: Name of the server.
            after: Number of a message; only later ones are returned.
        """
        connection = self._parts.hub.connection(name) if self._parts.has_servers else None
        redact = self._parts.redaction.text
        found = () if connection is None else connection.messages.messages(after)
        return tuple(one.model_copy(update={"text": redact(one.text), "about": redact(one.about)}) for one in found)

    def instructions(self, tools: Iterable[ToolSpec]) -> str:
        """Return how the MCP servers of tools want to be used, in their own words, for a system prompt.

        Only connected servers that the user trusts are included; empty if none of them has instructions.
        """
        handlers = [tool.handler for tool in tools if isinstance(tool.handler, models.McpHandler)]
        servers = dict.fromkeys(handler.server for handler in handlers if handler.trusted)
        return "".join(
            f"\n\nInstructions of the MCP server {name} for its tools:\n\n{status.instructions[:_LONGEST_INSTRUCTIONS]}"
            for name in servers
            if (status := self.status(name)) is not None and status.instructions
        )

    def config(self, name: str) -> ServerConfig | None:
        """Return the configuration of the server with this name, or None; secrets in it are references."""
        return self._parts.hub.config(name) if self._parts.has_servers else None

    def add(self, config: ServerConfig) -> None:
        """Add a server for this run."""
        self._parts.hub.add(config)

    def limit(self, names: Collection[str]) -> None:
        """Leave out all servers of the configuration but these, before connecting; only `log_in` still finds others."""
        if self._parts.has_servers:
            self._parts.hub.limit(names)

    def start(self) -> None:
        """Connect to all servers in the background."""
        if self._parts.has_servers:
            self._parts.hub.start()

    async def connect(self, name: str | None = None, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as elsewhere
        """Connect to a server, or to all, wait until each is connected or has failed, and scan for their tools.

        Args:
            name: A server; all by default.
            timeout: Time limit in seconds; that of the servers by default.
        """
        if not self._parts.has_servers:
            return
        import asyncio

        await self._parts.hub.connect(name, timeout)
        await asyncio.to_thread(self._parts.registry.scan)

    async def reconnect(self, name: str) -> None:
        """Connect to a server again even if it is connected, wait until it is or has failed, and scan for its tools."""
        import asyncio

        if self.config(name) is not None:
            await self._parts.hub.reconnect(name)
            await asyncio.to_thread(self._parts.registry.scan)

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call a function, on another thread, whenever the status of a server changes; return how to stop it."""
        return self._parts.listen_to_servers(changed)

    async def close(self) -> None:
        """End all connections and the servers that Pegboard started."""
        if self._parts.is_built("hub"):
            await self._parts.hub.close()

    def ask_with(self, questions: ServerQuestions | None) -> None:
        """Set who answers what servers ask the user; without one, every question is declined.

        Questions are answered in the running event loop, or else in that of the next call.
        """
        import asyncio

        if questions is None and not self._parts.has_servers:
            return
        user: ServerUser = self._parts.hub.services.user
        user.questions = questions
        with suppress(RuntimeError):  # no event loop runs
            asyncio.get_running_loop()
            user.is_here()

    def pass_on_to(self, requests: ClientRequests) -> None:
        """Pass what servers ask during calls on to the MCP clients that made them, instead of asking the user."""
        if self._parts.has_servers:
            self._parts.hub.services.user.requests = requests

    async def forward(self, name: str, method: str, params: JsonObject) -> JsonObject | ForwardedError | Problem:
        """Send a request about resources, prompts or completions to a server; return its result, or why it failed.

        The result is as the server sent it, without secrets. A list contains the items of all pages.

        Args:
            name: The server.
            method: The method of the protocol, such as `resources/read`.
            params: Its parameters.
        """
        from pegboard.mcp import forwarded_requests
        from pegboard.models.server_content import ForwardedError

        result = await self._request(name, lambda client: forwarded_requests.forward(client, method, params))
        return (
            result
            if isinstance(result, models.Problem | ForwardedError)
            else cast("JsonObject", self._parts.redaction.value(result))
        )

    async def log_in(self, name: str) -> Problem | None:
        """Let the user log in to a server in the browser; return why that failed.

        The `ServerQuestions` show the address. Connect to the server again to use the login.
        """
        hub = self._parts.hub
        config = hub.config(name)
        if config is None:
            return self._unknown(name)
        user: ServerUser = hub.services.user
        user.is_here()

        async def ask(url: str) -> bool:
            questions = user.questions
            return questions is not None and bool(await user.ask(lambda: questions.log_in(name, url)))

        async def log_in() -> Problem | None:
            from pegboard.mcp.login import log_in

            resolved = await asyncio.to_thread(hub.services.resolve, config)
            if isinstance(resolved, models.Problem):
                return resolved
            problem = await log_in(resolved.config, self._parts.logins, ask, self._parts.redaction.add)
            connection = hub.connection(name)
            if problem is None and connection is not None:
                connection.list_again()
            return problem

        import asyncio

        return await hub.run(log_in)

    async def log_out(self, name: str) -> LoggedOut | Problem:
        """Forget the login to a server, and ask the authorization server to revoke its tokens."""
        import asyncio

        from pegboard.mcp.refresh_lock import refreshing

        config = self._parts.hub.config(name) if self._parts.has_servers else None
        if config is None:
            return self._unknown(name)
        if config.url is None:
            return LoggedOut(False)
        logins = self._parts.logins
        async with refreshing(logins.lock_file(config.url)):  # else another process may store what it refreshes now
            login = await asyncio.to_thread(logins.read, config.url)
            removed = await asyncio.to_thread(logins.remove, config.url)
        if isinstance(removed, models.Problem) or login is None or isinstance(login, models.Problem):
            return removed if isinstance(removed, models.Problem) else LoggedOut(removed)
        resolved = await asyncio.to_thread(self._parts.hub.services.resolve, config)
        if isinstance(resolved, models.Problem):
            return LoggedOut(removed, f"They were not revoked. {resolved}")
        oauth = resolved.config.oauth
        revoke = (await asyncio.to_thread(_import_revocation)).revoke
        return LoggedOut(removed, await revoke(login, oauth.client_id, oauth.client_secret))

    async def resources(self, name: str) -> tuple[ResourceInfo, ...] | Problem:
        """Return the resources of a server, or why they can't be listed."""
        from pegboard.mcp import contents

        return await self._listed(name, "resources", contents.resources)

    async def templates(self, name: str) -> tuple[ResourceTemplate, ...] | Problem:
        """Return the templates of a server's resources, or why they can't be listed."""
        from pegboard.mcp import contents

        return await self._listed(name, "resourceTemplates", contents.templates)

    async def read(self, name: str, uri: str) -> tuple[ResourceContents, ...] | Problem:
        """Return the contents of a resource, or why it can't be read. Binary contents are saved to a file."""
        from pegboard.mcp import contents

        results = self._parts.paths.results
        return await self._request(name, lambda client: contents.read(client, uri, results))

    async def follow(self, name: str, uri: str) -> AsyncGenerator[None]:
        """Subscribe to a resource until this ends; yield when a subscription begins and after each change.

        Yields nothing if the server has no subscriptions. The longer changes keep coming, the less often it yields.
        """
        import asyncio

        hub = self._parts.hub if self._parts.has_servers else None
        if hub is None or hub.config(name) is None:
            return
        from pegboard.mcp.limits import FIRST_REST, LONGEST_REST

        changed, loop = asyncio.Event(), asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(changed.set)

        async def subscribe() -> None:
            connection: ServerConnection | None = hub.connection(name)
            if connection is not None:  # it may have been removed just now
                await connection.announcements.follow(uri, wake)

        try:
            stop = await hub.spawn(subscribe, lambda _: None)
        except RuntimeError:  # the connections are closed
            return
        rest = FIRST_REST
        try:
            while True:
                await changed.wait()
                changed.clear()
                yield
                await asyncio.sleep(rest)
                rest = min(LONGEST_REST, 2 * rest) if changed.is_set() else FIRST_REST
        finally:
            stop()

    async def expand(self, name: str, template: str, variables: dict[str, str]) -> str | Problem:
        """Return the URI that a template of a server means with these variables, or why it is invalid."""
        from pegboard.mcp import contents

        return await self._request(name, lambda _: contents.expand(template, variables))

    async def prompts(self, name: str) -> tuple[PromptInfo, ...] | Problem:
        """Return the prompts of a server, or why they can't be listed."""
        from pegboard.mcp import contents

        return await self._listed(name, "prompts", contents.prompts)

    async def prompt(self, name: str, prompt: str, arguments: dict[str, str]) -> PromptText | Problem:
        """Return a prompt of a server with its arguments filled in, or why there is none."""
        from pegboard.mcp import contents

        results = self._parts.paths.results
        return await self._request(name, lambda client: contents.prompt(client, prompt, arguments, results))

    async def complete(
        self, name: str, of: str, argument: str, value: str, others: dict[str, str] | None = None
    ) -> Completion | Problem:
        """Return completions for an argument of a prompt or a variable of a template.

        Args:
            name: The server.
            of: Name of the prompt, or the template's URI, which contains `{`.
            argument: Name of the argument.
            value: Its beginning.
            others: Values of other arguments.
        """
        from pegboard.mcp import contents

        return await self._request(name, lambda client: contents.complete(client, of, argument, value, others or {}))

    async def _listed(self, name: str, what: str, send: Request[Listed[_T]]) -> tuple[_T, ...] | Problem:
        return await self._connected(name, lambda connection: connection.listed(what, send))

    async def _request(self, name: str, send: Request[_T]) -> _T | Problem:
        return await self._connected(name, lambda connection: connection.request(send))

    async def _connected(
        self, name: str, use: Callable[[ServerConnection], Coroutine[Any, Any, _T | Problem]]
    ) -> _T | Problem:
        hub = self._parts.hub if self._parts.has_servers else None
        if hub is None or hub.config(name) is None:
            return self._unknown(name)

        async def run() -> _T | Problem:
            connection: ServerConnection | None = hub.connection(name)
            return self._unknown(name) if connection is None else await use(connection)

        hub.services.user.is_here()
        return await hub.run(run)

    def _unknown(self, name: str) -> Problem:
        known = ", ".join(sorted(self._parts.hub.names())) if self._parts.has_servers else ""
        fix = f"Known servers: {known}." if known else "Add one with `pegboard mcp add`."
        return models.Problem(message=f"No MCP server is named {name!r}.", fix=fix)

    async def _sample(self, request: SamplingRequest, temperature: float | None) -> Sampled:
        """Ask the configured model what a server wants to know.

        Raises:
            SamplingError: No model is configured, or it failed.
        """
        from pegboard.mcp.services import Sampled, SamplingError
        from pegboard.models.conversation import ModelMessage, Prompt, SystemMessage, TurnEnded, UserMessage

        if self._parts.settings.model.name is None:
            raise SamplingError("No model is configured. Run `pegboard config set model.name PROVIDER:NAME`.")
        messages: list[Message] = [SystemMessage(text=request.system)] if request.system else []
        messages += [
            UserMessage(text=text) if role == "user" else ModelMessage(text=text) for role, text in request.messages
        ]
        prompt = Prompt(messages=tuple(messages), max_tokens=request.max_tokens, temperature=temperature)
        try:
            model = self._models.get()
            ended = [event async for event in model.stream(prompt) if isinstance(event, TurnEnded)]
        except ModelError as error:
            raise SamplingError(str(error)) from error
        return Sampled(ended[-1].message.text, model.name, ended[-1].is_complete)


def _import_revocation() -> ModuleType:
    """Return the module, which imports the SDK; that takes long."""
    from pegboard.mcp import revocation

    return revocation
