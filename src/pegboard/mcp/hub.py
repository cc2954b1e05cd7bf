"""All connections to servers, on a thread of their own.

The SDK takes most of a second to import, and a server may send much in little time. On their own thread, neither blocks
the event loop of the app. This module doesn't import the SDK; the thread does.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar  # Any: what coroutines yield and receive
from weakref import WeakSet

from pegboard.models import McpHandler, Problem, ServerConfig, ServerState, ServerStatus, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pegboard.mcp.connection import ServerConnection
    from pegboard.mcp.services import Services

_T = TypeVar("_T")

_CLOSE_SECONDS = 8.0
"""Time for all servers to end; what then remains ends with this process."""


class Hub:
    """Connections to servers, a `pegboard.ports.ToolSource`. Every method can be called from any thread.

    Args:
        configs: The servers.
        services: What connections need from the rest of Pegboard.
        listeners: Functions to call, on the connections' thread, whenever a state or tool has changed; the caller may
            change the list.
    """

    def __init__(
        self, configs: Sequence[ServerConfig], services: Services, listeners: Sequence[Callable[[], None]] = ()
    ) -> None:
        self.services = services
        self._configs = list(configs)
        self._left_out: list[ServerConfig] = []
        self._connections: list[ServerConnection] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._named: WeakSet[ServerConnection] = WeakSet()
        """Connections whose packs have their final names."""
        self._kept: dict[ServerConnection, asyncio.Task[None]] = {}
        """Tasks that keep servers connected."""
        self._lock = threading.Lock()
        self._naming = threading.Lock()
        self._thread: threading.Thread | None = None
        self._started: Future[asyncio.AbstractEventLoop] = Future()
        self._stop: asyncio.Event | None = None
        self._is_closed = False
        self._listeners = listeners

    # Tools and states

    def scan(self) -> tuple[Sequence[ToolSpec], Sequence[Problem]]:
        """Return the tools and problems of all servers as they are known now; never wait for a server."""
        specs: list[ToolSpec] = []
        problems: list[Problem] = []
        for connection in [*self._connections]:
            snapshot = connection.snapshot
            specs += snapshot.specs
            problems += snapshot.problems
        return specs, problems

    def is_outdated(self, spec: ToolSpec) -> bool:
        """Return whether a tool is no longer one that its server lists; False until the server lists any."""
        connection = self.connection(spec.handler.server) if isinstance(spec.handler, McpHandler) else None
        listed = () if connection is None else connection.snapshot.specs
        return bool(listed) and next((one for one in listed if one.name == spec.name), None) != spec

    def unavailable(self, tool: str) -> str:
        """Return why the server of a tool with this name lists no tools; empty if it does, or is unknown."""
        connection = self.connection(tool.partition(".")[0])
        is_known = connection is None or connection.snapshot.specs or connection.status.state.is_usable
        if connection is None or is_known or connection.status.state is ServerState.CONNECTING:
            return ""
        problem = next(iter(connection.snapshot.problems), None) or connection.problem()
        return f"{problem.message} {problem.fix}".strip()

    def all(self) -> tuple[ServerStatus, ...]:
        """Return the status of every server, in the order of the configuration."""
        known = {id(connection.config): connection for connection in [*self._connections]}
        return tuple(known[id(config)].now() if id(config) in known else _waiting(config) for config in self._configs)

    def status(self, name: str) -> ServerStatus | None:
        """Return the status of the server with this name; None if there is none."""
        return next((status for status in self.all() if status.name == name), None)

    def names(self) -> frozenset[str]:
        """Return the names of all servers and of their packs."""
        packs = {connection.pack for connection in [*self._connections]}
        return frozenset(packs | {config.name for config in self._configs}) - {""}

    def config(self, name: str) -> ServerConfig | None:
        """Return the configuration of the server with this name; None if there is none."""
        connection = self.connection(name)
        if connection is not None:
            return connection.config
        return next((config for config in (*self._configs, *self._left_out) if config.name == name), None)

    def connection(self, name: str) -> ServerConnection | None:
        """Return the connection whose pack has this name, or else the server in the configuration."""
        connections = [*self._connections]
        found = next((one for one in connections if one.pack == name), None)
        return found or next((one for one in connections if one.config.name == name), None)

    # Lifecycle

    def add(self, config: ServerConfig) -> None:
        """Add a server for this run; connect to it if the others are being connected to."""
        with self._lock:
            self._configs.append(config)
            if not self._started.done():  # the thread connects to it when it starts
                return
        with suppress(RuntimeError):  # the loop is closed
            self._started.result().call_soon_threadsafe(self._connect, config)

    async def replace(self, name: str, config: ServerConfig | None) -> None:
        """End the connection to a server of the configuration, if any, and start one to it as it is now configured.

        Args:
            name: The server.
            config: Its configuration; None if it was removed.
        """

        async def replace() -> None:
            old = [one for one in self._connections if one.config.saved and one.config.name == name]
            with self._lock:
                configs = [one for one in self._configs if not (one.saved and one.name == name)]
                if config is not None:
                    # Those of the configuration come first, by name.
                    configs = sorted([*configs, config], key=lambda one: (not one.saved, one.saved and one.name))
                self._configs = configs
                for connection in old:
                    self._connections.remove(connection)
                # Calls and requests wait for the new connection while the old one ends.
                new = None if config is None else self._add_connection(config)
            self._changed()
            await asyncio.gather(*map(self._end, old))
            if new is not None:
                self._keep(new)
            self._changed()

        await self.run(replace)

    def limit(self, names: Collection[str]) -> None:
        """Leave out all servers of the configuration but these; only before `start`."""
        for config in [one for one in self._configs if one.saved and one.name not in names]:
            self._configs.remove(config)
            self._left_out.append(config)

    def start(self) -> None:
        """Connect to all servers in the background, unless this was called before."""
        with self._lock:
            if self._thread is not None or self._is_closed:
                return
            self._thread = threading.Thread(target=self._run, name="pegboard-mcp", daemon=True)
            self._thread.start()

    async def connect(self, name: str | None = None, seconds: float | None = None) -> None:
        """Connect to a server, or to all, and wait until each is connected or has failed.

        Args:
            name: A server; all by default.
            seconds: Time limit; that of the servers by default.
        """
        self.services.user.is_here()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.run(lambda: self._settle(name))

    async def reconnect(self, name: str) -> None:
        """Connect to a server again even if it is connected, and wait until it is or has failed."""
        self.services.user.is_here()

        async def reconnect() -> None:
            connection = self.connection(name)
            if connection is not None:
                await connection.reconnect()

        await self.run(reconnect)

    async def run(self, make: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Run a coroutine on the connections' thread, and return its result.

        Raises:
            RuntimeError: The hub is closed.
        """
        loop = await self._loop()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), loop))

    async def spawn(
        self, make: Callable[[], Coroutine[Any, Any, None]], ended: Callable[[asyncio.Task[None]], None]
    ) -> Callable[[], None]:
        """Run a coroutine on the connections' thread; return a function that cancels it. Faster than `run`.

        Args:
            make: Makes the coroutine.
            ended: Is called on that thread when it has ended.

        Raises:
            RuntimeError: The hub is closed.
        """
        loop = await self._loop()
        tasks: list[asyncio.Task[None]] = []

        def begin() -> None:
            task = loop.create_task(make())
            tasks.append(task)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(ended)

        def cancel() -> None:  # after `begin`
            tasks[0].cancel()

        def stop() -> None:
            if not tasks or not tasks[0].done():
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(cancel)

        loop.call_soon_threadsafe(begin)
        return stop

    async def _loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop of the connections' thread, which is started if necessary.

        Raises:
            RuntimeError: The hub is closed.
        """
        self.start()
        if self._is_closed:
            raise RuntimeError("The connections to MCP servers are closed.")
        if not self._started.done():
            await asyncio.shield(asyncio.wrap_future(self._started))
        return self._started.result()

    async def close(self) -> None:
        """End all connections and the servers that Pegboard started."""
        self._is_closed = True
        if self._thread is None:
            return
        await asyncio.wait((asyncio.wrap_future(self._started),))
        if self._started.exception() is None and self._stop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._started.result().call_soon_threadsafe(self._stop.set)
        await asyncio.to_thread(self._thread.join, _CLOSE_SECONDS)

    # On the thread

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            if not self._started.done():  # others wait for it
                self._started.set_exception(error)
            raise

    async def _main(self) -> None:
        for name in ("mcp", "client"):  # the SDK's loggers; without a handler, Python prints to the terminal
            logging.getLogger(name).addHandler(logging.NullHandler())
        self._stop = asyncio.Event()
        from pegboard.mcp.connection import ServerConnection  # noqa: F401 - imports the SDK, before others wait for the loop

        with self._lock:
            for config in self._configs:
                self._connect(config)
            self._started.set_result(asyncio.get_running_loop())
        await self._stop.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connect(self, config: ServerConfig) -> None:
        self._keep(self._add_connection(config))

    def _add_connection(self, config: ServerConfig) -> ServerConnection:
        from pegboard.mcp.connection import ServerConnection

        connection = ServerConnection(config, self.services, name_pack=self._name_pack, changed=self._changed)
        self._connections.append(connection)
        return connection

    def _keep(self, connection: ServerConnection) -> None:
        """Keep a server connected from now on, if it is enabled."""
        if not connection.config.enabled:
            return
        task = self._kept[connection] = asyncio.get_running_loop().create_task(connection.run())
        self._tasks.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._kept.pop(connection, None)
            if not task.cancelled() and (error := task.exception()) is not None:
                connection.fail(error)

        task.add_done_callback(ended)

    async def _end(self, connection: ServerConnection) -> None:
        """End a connection for good; its calls fail, and the process of its server ends."""
        connection.end()
        task = self._kept.get(connection)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    def _changed(self) -> None:
        for changed in [*self._listeners]:
            changed()

    def _name_pack(self, connection: ServerConnection, reported: str) -> str:
        """Return the name of a connection's pack: the configured one, or else the reported one, unless it is taken."""
        from pegboard.config import pack_name

        packs = self.services.packs()
        with self._naming:  # Several servers that report the same name may connect at the same moment.
            is_saved = connection.config.saved
            others = [one for one in self._connections if one is not connection]
            if is_saved:  # The names of the configuration are in rules, so a server of --mcp never changes them.
                others = [one for one in others if one.config.saved or one in self._named]
            taken = {one.pack for one in others} | {
                one.config.name for one in others if one.config.saved or not is_saved
            }
            configs = [one for one in self._configs if one is not connection.config and (one.saved or not is_saved)]
            self._named.add(connection)
            configured = {config.name for config in configs}
            connection.pack = pack_name(connection.config.name or reported, {*taken, *configured, *packs})
            return connection.pack

    async def _settle(self, name: str | None) -> None:
        wanted = [self.connection(name)] if name is not None else [*self._connections]
        await asyncio.gather(*(connection.settle() for connection in wanted if connection is not None))


def _waiting(config: ServerConfig) -> ServerStatus:
    state = ServerState.CONNECTING if config.enabled else ServerState.DISABLED
    if config.problem is not None:
        return ServerStatus(
            name=config.name, state=ServerState.FAILED, reason=config.problem.message, fix=config.problem.fix
        )
    return ServerStatus(name=config.name, state=state)
