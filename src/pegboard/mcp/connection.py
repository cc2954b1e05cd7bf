"""One server: connecting, listing its tools, calling them, and connecting again."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import anyio
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation, LoggingMessageNotificationParams, ServerNotification
from pydantic import BaseModel

from pegboard import __version__
from pegboard.discovery.collector import collector_paused
from pegboard.mcp.announcements import Announcements
from pegboard.mcp.backoff import pause
from pegboard.mcp.failures import ERRORS, ServerFailure, UnusableServerError, request_failure, stray_output, unanswered
from pegboard.mcp.limits import FIRST_REST, LAST_ANSWERS, LONGEST_REST
from pegboard.mcp.link import ServerLink, link
from pegboard.mcp.listing import list_tools
from pegboard.mcp.messages import MessageLog
from pegboard.mcp.questions import RequestAnswers
from pegboard.mcp.session import in_session
from pegboard.mcp.specs import ServerTools, tool_specs
from pegboard.mcp.texts import log_line, quotation, server_facts
from pegboard.mcp.time_limits import TimeLimits
from pegboard.mcp.watch import Watch, dropped_items
from pegboard.models import JsonObject, Problem, ServerConfig, ServerState, ServerStatus, ToolCall, ToolResult
from pegboard.results.definition import token_weight

if TYPE_CHECKING:
    from pegboard.mcp.contents import Listed
    from pegboard.mcp.running_call import RunningCall
    from pegboard.mcp.services import Services

_MOST_FAILURES = 10
"""Failures in a row after which Pegboard waits for the user."""
_STABLE_SECONDS = 30.0
"""Time after which a connection counts as stable, so that the next pause is short again."""
_REASON_SECONDS = 1.0
"""Time to wait for the exit code of a server whose stdout was closed."""

_T = TypeVar("_T")
Request: TypeAlias = Callable[[Client], Awaitable[_T]]
"""Sends a request to a server."""


class ServerConnection:
    """Connection to one server. All methods run on the connections' thread; the attributes can be read anywhere.

    Args:
        config: The server.
        services: What it needs from the rest of Pegboard.
        name_pack: Returns a free name for the pack of a server that reports a name.
        changed: Is called when the status or the tools have changed.
    """

    def __init__(
        self,
        config: ServerConfig,
        services: Services,
        *,
        name_pack: Callable[[ServerConnection, str], str],
        changed: Callable[[], None],
    ) -> None:
        self.config, self.services = config, services
        self.messages = MessageLog()
        self._name_pack = name_pack
        self._changed = changed
        self.pack = config.name
        """Name of its pack; empty until a server without a name has reported one."""
        self.snapshot = self._tools = ServerTools()
        state = ServerState.CONNECTING if config.enabled else ServerState.DISABLED
        self.status = ServerStatus(name=config.name, state=state)
        self._client: Client | None = None
        self._link: ServerLink | None = None
        self._watch: Watch | None = None
        self._settled = asyncio.Event()
        self._retry = asyncio.Event()
        self._wake = asyncio.Event()
        self._gone = asyncio.Event()
        self._is_over = False  # it never connects again
        self._is_stale = False
        self._closed = asyncio.Event()
        self._list_problems: dict[str, tuple[Problem, ...]] = {}
        """Problems of the lists of resources and prompts."""
        self._limits = TimeLimits()
        self.announcements = Announcements(tools_changed=self.list_again, contents_changed=self._note_contents)
        self._questions = RequestAnswers(
            config,
            services,
            pack=lambda: self.pack,
            tool=self._asking_tool,
            call=self._asking_call,
            paused=self._limits.paused,
            note=lambda text: self._log("log", text),
        )
        if not config.enabled:
            self._settled.set()

    async def run(self) -> None:
        """Keep the server connected until this is cancelled."""
        failures = 0
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            self._retry.clear()
            self._gone.clear()
            failure = await self._connect_once()
            self._client = None
            self._gone.set()
            if loop.time() - began > _STABLE_SECONDS:
                failures = 0
            failures += 1
            waits = failure.is_final or failures >= _MOST_FAILURES
            self._report_failure(failure, retries=not waits)
            if self._retry.is_set():  # a call already waits for the next connection
                continue
            self._settled.set()
            with anyio.move_on_after(math.inf if waits else pause(failures)):
                await self._retry.wait()
                failures = 0 if waits else failures
                self._set(state=ServerState.CONNECTING)
            self._settled.clear()

    def list_again(self) -> None:
        """List the tools again, such as after a login, if the server is connected."""
        self._is_stale = True
        self._wake.set()

    async def settle(self) -> None:
        """Connect now if the server isn't connected, and wait until it is or has failed."""
        if self._client is None and self._settled.is_set() and self.config.enabled and not self._is_over:
            self._settled.clear()
            self._retry.set()
        await self._settled.wait()

    async def reconnect(self) -> None:
        """Connect again even if the server is connected, and wait until it is or has failed."""
        if self._client is not None:
            self._client = None
            self._settled.clear()
            self._retry.set()
            self._close()
        await self.settle()

    def end(self) -> None:
        """Fail all calls and requests, and never connect again; `run` is to be cancelled then."""
        self._is_over, self._client = True, None
        reason = "Its entry in the configuration was changed or removed."
        self._set(state=ServerState.FAILED, reason=reason, fix="", retries=False)
        self._settled.set()
        message = f"The connection to the server {self.pack} ended during the call. {self.status.reason}"
        for call in self._limits.calls:
            call.end(ToolResult.failed("execution_error", message, "crashed"))

    @asynccontextmanager
    async def running(self, call: RunningCall, seconds: float) -> AsyncIterator[anyio.CancelScope]:
        """Yield the time limit of a call; output and questions of the server belong to the call meanwhile."""
        try:
            with self._limits.limit(seconds, call) as scope:
                yield scope
        finally:
            if not self._limits.calls:
                self._questions.start_over()

    async def client(self) -> Client | None:
        """Return the connected client, connecting if necessary; None if that fails."""
        if self._client is None:
            with anyio.move_on_after(self.config.timeout):
                await self.settle()
        return self._client

    async def renew_session(self, client: Client) -> Client | None:
        """Return a client with another session than this one, which the server has forgotten; None if that fails."""
        await asyncio.sleep(LAST_ANSWERS)
        if self._client is client:
            await self.reconnect()
        return await self.client()

    async def request(self, send: Request[_T]) -> _T | Problem:
        """Send a request other than a call; return its result, or why there is none.

        Args:
            send: Sends the request.
        """
        client = await self.client()
        if client is None:
            return self.problem()
        try:
            with self._limits.limit(self.config.timeout) as limit:
                result = await in_session(client, send, self.renew_session)
        except MCPError as error:
            if (login := self.login_missing()) is not None:
                return self._problem(login.reason, login.fix)
            return self._problem(request_failure(self.pack, error), "")
        except ERRORS as error:
            return self._problem(unanswered(f"The request to the server {self.pack}", error), "")
        if limit.cancelled_caught:
            return self._problem(f"The server {self.pack} didn't answer within {self.config.timeout:g} s.", "")
        return result

    async def listed(self, what: str, send: Request[Listed[_T]]) -> tuple[_T, ...] | Problem:
        """Read a list of the server; return it, or why it can't be read. Its problems become those of the server.

        Args:
            what: Name of the list in the protocol.
            send: Reads it.
        """
        if self._watch is not None:
            self._watch.dropped.pop(what, None)
        answer = await self.request(send)
        if isinstance(answer, Problem):
            return answer
        notes = [answer.problem] if answer.problem else []
        if self._watch is not None and (dropped := self._watch.dropped.pop(what, None)):
            notes.append(dropped_items(what, dropped))
        found = tuple(
            self._problem(f"The server {self.pack}: {note}", "Report this to the server's author.", "warning")
            for note in notes
        )
        if found != self._list_problems.get(what, ()):
            self._list_problems[what] = found
            if self._client is not None:
                self._publish(self._tools, None)
        return answer.items

    async def answer(self, params: object) -> str:
        """Ask the user a question that came with an error; return the action."""
        from mcp_types import ElicitRequestURLParams

        assert isinstance(params, ElicitRequestURLParams), "only these come with errors"
        return (await self._questions.answer(params)).action

    async def answer_all(self, call: ToolCall, requests: Mapping[str, BaseModel]) -> dict[str, JsonObject]:
        """Return the results of requests that came instead of the result of a call; see `RequestAnswers.answer_all`."""
        return await self._questions.answer_all(call, requests)

    async def wait_until_lost(self) -> None:
        """Wait a moment for the reason why the connection ended."""
        if self._link is not None and self._link.process is not None:
            await self._link.process.wait(_REASON_SECONDS)
        else:
            with anyio.move_on_after(_REASON_SECONDS):
                await self._gone.wait()

    def lost(self) -> str:
        """Return why the connection ended, for the calls that it ended."""
        if self._link is not None and self._link.process is not None:
            return self._link.ended().reason
        return self.status.reason or "The connection was lost."

    def now(self) -> ServerStatus:
        """Return the status, with the last lines of stderr and whether there is a login. Thread-safe."""
        process = self._link.process if self._link is not None else None
        if process is None:
            login = None if self._link is None else self._link.login
            return self.status if login is None else self.status.model_copy(update={"has_login": login.has_login})
        redact = self.services.redact
        update: dict[str, object] = {"stderr": tuple(map(redact, process.stderr))}
        if process.reader.garbage:
            reason, fix = stray_output(process.reader.garbage, process.reader.sample)[:2]
            update["stray_output"] = redact(reason)
            if not self.status.reason:
                update |= {"reason": update["stray_output"], "fix": fix}
        return self.status.model_copy(update=update)

    @property
    def kept_stderr(self) -> tuple[str, ...]:
        """More of the last lines of stderr than the status has."""
        process = self._link.process if self._link is not None else None
        return () if process is None else tuple(map(self.services.redact, process.kept_stderr))

    @property
    def is_ready(self) -> bool:
        """Whether calls can be sent."""
        return self._client is not None

    @property
    def strays(self) -> int:
        """Number of responses of the server to no open request."""
        return 0 if self._watch is None else self._watch.strays

    def problem(self) -> Problem:
        """Return why the server isn't connected."""
        if not self.config.enabled:
            fix = f"Remove `enabled = false` from `[mcp.servers.{self.config.name}]`."
            return self._problem(f"The server {self.pack} is disabled.", fix)
        reason = self.status.reason or f"It didn't connect within {self.config.timeout:g} s."
        return self._problem(f"The server {self.pack or 'of --mcp'} is not connected. {reason}", self.status.fix)

    def login_missing(self) -> ServerFailure | None:
        """Report that the user must log in, if the last response says so; return the failure of the call."""
        failure = None if self._link is None else self._link.login_failure
        if failure is not None and failure.needs_login:
            self._report_failure(failure, retries=False)
        return failure

    def fail(self, error: BaseException) -> None:
        """Report an error of Pegboard itself, which ended `run`."""
        self._is_over, self._client = True, None
        self._report_failure(
            ServerFailure(f"The connection failed: {error!r}.", "Report this error.", is_final=True), retries=False
        )
        self._settled.set()

    # Connecting

    async def _connect_once(self) -> ServerFailure:
        """Connect and serve until the connection ends; return why it did, or why it couldn't be made."""
        config = self.config
        if config.problem is not None:
            return ServerFailure(config.problem.message, config.problem.fix, is_final=True)
        resolved = await asyncio.to_thread(self.services.resolve, config)
        if isinstance(resolved, Problem):
            return ServerFailure(resolved.message, resolved.fix, is_final=True)
        self._closed.clear()
        self._is_stale = False
        self._list_problems.clear()
        try:
            log, services = partial(self._log, "stderr"), self.services
            made = link(config, resolved.config, authorize=services.authorize, on_stderr=log, messages=self.messages)
        except UnusableServerError as error:
            return error.failure
        self._link, self._watch = made, Watch(made.transport, made.last)
        self._watch.on_closed = self._close
        try:
            with anyio.move_on_after(config.timeout) as scope:
                async with self._new_client(self._watch) as client:
                    await self._greet(client)
                    scope.deadline = math.inf
                    self._client = client
                    self._settled.set()
                    await self._serve(client)
        except ERRORS as error:
            return made.explain(error)
        return made.no_answer() if scope.cancelled_caught else made.ended()

    def _new_client(self, watch: Watch) -> Client:
        return Client(
            watch,
            client_info=Implementation(name="pegboard", version=__version__),
            cache=None,
            mode="auto" if self.config.protocol is None else "legacy",
            log_level="debug",
            elicitation_callback=self._questions.elicit,
            sampling_callback=self._questions.sample,
            sampling_capabilities=self._questions.sampling,
            list_roots_callback=self._questions.roots,
            logging_callback=self._on_log,
            message_handler=self._on_message,
        )

    async def _greet(self, client: Client) -> None:
        """Read who the server is and its tools."""
        assert self._watch is not None, "it is connected"
        self._watch.version = client.protocol_version
        info = client.server_info
        if not self.pack or not self.snapshot.specs:
            self.pack = await asyncio.to_thread(self._name_pack, self, info.name if info else "")
        self._set(name=self.pack, **server_facts(client))
        await self._list(client)

    async def _serve(self, client: Client) -> None:
        """Follow the list of tools until the connection ends."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.announcements.serve, client)
            rest = FIRST_REST
            while await self._has_changed():
                self._is_stale = False
                await self._list_again(client)
                with anyio.move_on_after(rest):
                    await self._closed.wait()
                rest = min(LONGEST_REST, 2 * rest) if self._is_stale else FIRST_REST
            group.cancel_scope.cancel()

    async def _has_changed(self) -> bool:
        """Wait until the list of tools has changed; return False when the connection has ended instead."""
        while not self._closed.is_set() and not self._is_stale:
            self._wake.clear()
            await self._wake.wait()
        return not self._closed.is_set()

    async def _list(self, client: Client) -> None:
        if client.server_capabilities.tools is None:
            self._publish(ServerTools(), None)
            return
        assert self._watch is not None, "it is connected"
        listing = await list_tools(client, self._watch)
        with collector_paused():  # thousands of new objects without cycles would start collections, which block the app
            # Later versions of the protocol know no tools that run only as tasks.
            has_tasks = client.protocol_version >= "2026-07-28"
            specs, problems = tool_specs(
                self.config, self.pack, listing.tools, listing.rejected, has_task_tools=has_tasks
            )
        own = [*self._own_problems()]
        if listing.problem:
            message = f"The server {self.pack}: {listing.problem}"
            own.append(self._problem(message, "Report this to the server's author.", "warning"))
        self._publish(ServerTools(specs, (*own, *problems), sum(map(token_weight, specs))), listing.latency_ms)

    async def _list_again(self, client: Client) -> None:
        try:
            with anyio.fail_after(self.config.timeout):
                await self._list(client)
        except (MCPError, ValueError, TimeoutError) as error:
            if not self._closed.is_set():
                why = quotation(str(error) or f"no answer within {self.config.timeout:g} s")
                reason = f"The server {self.pack} changed its tool list, but the new list can't be read: {why}."
                problem = self._problem(reason, "The previous tools stay listed.", "warning")
                self._publish(self.snapshot._replace(problems=(problem,)), None)

    def _own_problems(self) -> Iterator[Problem]:
        if self.config.name and self.pack != self.config.name:
            message = f"The server {self.config.name} is listed as {self.pack} because another pack has its name."
            fix = f"Rename `[mcp.servers.{self.config.name}]`."
            yield self._problem(message, fix if self.config.saved else "", "warning")

    def _publish(self, snapshot: ServerTools, latency_ms: float | None) -> None:
        self._tools = snapshot
        others = [problem for found in self._list_problems.values() for problem in found]
        self.snapshot = snapshot = snapshot._replace(problems=(*snapshot.problems, *others))
        found = sorted((one for one in snapshot.problems if one.severity != "hint"), key=lambda one: one.rank)
        worst = next(iter(found), None)
        more = f" ({len(found) - 1} more)" if len(found) > 1 else ""
        self._set(
            state=ServerState.READY if worst is None else ServerState.DEGRADED,
            reason="" if worst is None else worst.message + more,
            fix="" if worst is None else worst.fix,
            tools=len(snapshot.specs),
            tokens=snapshot.tokens,
            latency_ms=self.status.latency_ms if latency_ms is None else latency_ms,
        )

    def _report_failure(self, failure: ServerFailure, *, retries: bool) -> None:
        unusable = (ServerState.FAILED, ServerState.NEEDS_LOGIN)
        was_ready = bool(self.status.protocol) and self.status.state not in unusable
        state = ServerState.FAILED
        if failure.needs_login:
            state = ServerState.NEEDS_LOGIN
        elif was_ready and retries:
            state = ServerState.CONNECTING
        name = self.pack or self.config.command or self.config.url
        problem = self._problem(f"The MCP server {name} is not connected. {failure.reason}", failure.fix)
        # The configuration lists its own problem.
        self.snapshot = ServerTools(self.snapshot.specs, () if self.config.problem is not None else (problem,))
        self._set(state=state, reason=failure.reason, fix=failure.fix, retries=retries)

    def _set(self, **fields: object) -> None:
        redact = self.services.redact
        fields = {name: redact(value) if isinstance(value, str) else value for name, value in fields.items()}
        self.status = self.status.model_copy(update=fields)
        self._changed()

    def _problem(self, message: str, fix: str, severity: Literal["error", "warning"] = "error") -> Problem:
        message = self.services.redact(message)
        return Problem.model_construct(message=message, fix=fix, severity=severity, pack=self.pack or None)

    # What the server sends by itself

    def _close(self) -> None:
        self._client = None
        self._closed.set()
        self._wake.set()

    def _note_contents(self) -> None:
        self._set(content_changes=self.status.content_changes + 1)

    async def _on_message(self, message: ServerNotification | Exception) -> None:
        if not isinstance(message, Exception):
            self.announcements.receive(message)

    async def _on_log(self, params: LoggingMessageNotificationParams) -> None:
        self._log("log", log_line(params.level, params.logger, params.data))

    def _log(self, stream: str, text: str) -> None:
        for call in self._limits.calls:
            call.log("stderr" if stream == "stderr" else "log", text)

    def _asking_tool(self) -> str | None:
        names = {call.call.name for call in self._limits.calls}
        return names.pop() if len(names) == 1 else None

    def _asking_call(self) -> ToolCall | None:
        """Return the call to which a question belongs: the only one, or the last one of an MCP client that is alone."""
        calls = [running.call for running in self._limits.calls]
        sessions = {call.session for call in calls}
        return calls[-1] if len(calls) == 1 or (len(sessions) == 1 and None not in sessions) else None
