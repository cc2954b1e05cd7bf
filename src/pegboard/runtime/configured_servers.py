"""Changes of the MCP servers in the configuration while Pegboard runs."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar  # Any: what coroutines yield and receive

from pegboard import models
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    import asyncio

    from pegboard.config.client_files import FoundServer
    from pegboard.config.settings import Origin, Settings
    from pegboard.models import Problem, ServerConfig
    from pegboard.runtime.parts import Parts


_T = TypeVar("_T")


class ServerChange(NamedTuple):
    """A server whose configuration differs from the one in use."""

    name: str
    before: ServerConfig | None
    """The configuration in use; None if the server is new."""
    after: ServerConfig | None
    """The configuration in the files; None if the server was removed."""

    @property
    def is_real(self) -> bool:
        """Whether the configurations differ in more than the line of a problem."""
        if self.before is None or self.after is None:
            return self.before is not self.after
        problems = [str(one.problem and one.problem.message) for one in (self.before, self.after)]
        plain = [one.model_copy(update={"problem": None}) for one in (self.before, self.after)]
        return plain[0] != plain[1] or problems[0] != problems[1]


class ClientServer(NamedTuple):
    """A server in the file of another client, or a file that can't be used."""

    client: str
    found: FoundServer
    skipped: str
    """Why it can't be added; empty if it can."""


class ConfiguredServers:
    """The MCP servers in the configuration files: added, removed and changed without a restart.

    Nothing that the files contain is started before `apply`. A change that has begun is completed even if its caller
    is cancelled; otherwise the settings and the connections would differ.

    Args:
        parts: The parts of the runtime.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._running: set[asyncio.Task[Any]] = set()

    @cached_property
    def changing(self) -> asyncio.Lock:
        """Held while servers are added, removed or applied: meanwhile, the files differ from the settings in use."""
        import asyncio

        return asyncio.Lock()

    def changes(self) -> tuple[ServerChange, ...] | Problem:
        """Return the servers that differ from those in use, by name, or why the files can't be used; block."""
        read, _ = self._parts.configuration.read()
        return self._changes_to(read)

    def _changes_to(self, read: Settings) -> tuple[ServerChange, ...] | Problem:
        from pegboard.config import configured_servers

        if read.loaded.blocked is not None:
            return read.loaded.blocked
        before = {config.name: config for config in configured_servers(self._parts.settings)}
        after = {config.name: config for config in configured_servers(read)}
        names = sorted(before.keys() | after.keys())
        changes = (ServerChange(name, before.get(name), after.get(name)) for name in names)
        return tuple(change for change in changes if change.is_real)

    async def apply(self, changes: Sequence[ServerChange]) -> Problem | None:
        """Connect to servers as they are configured now, and end the connections to those that were removed.

        Args:
            changes: Changes as the user saw them.

        Returns:
            Why nothing was applied: the files have changed again, or can't be used.
        """
        return await self._complete(self._use(changes))

    async def add(self, name: str, entry: Mapping[str, object]) -> tuple[str, ...] | Problem:
        """Add a server to the configuration file, its credentials to secrets, and start to connect to it.

        Args:
            name: Name of the server.
            entry: Its keys in the configuration.

        Returns:
            What the user should know about its credentials and rules, or why it was not added.
        """
        return await self._complete(self._add(name, entry))

    def of_clients(self) -> tuple[ClientServer, ...]:
        """Return the servers in the files of known clients; read the disk."""
        import os

        from pegboard.config.client_files import CLIENTS, FoundServer, existing_files, is_configured, read_client_files

        def is_set(name: str) -> bool:
            return self._parts.secrets.find(name) is not None

        servers = self._parts.settings.mcp.servers
        taken = {*self._taken(), *servers}
        listed: list[ClientServer] = []
        for client in CLIENTS:
            files = existing_files(client)
            found, reasons = read_client_files(files, taken, is_set, os.environ)
            taken |= {one.new_name for one in found}
            for one in found:
                known = "it is configured already" if is_configured(one, servers, self._parts.secrets.find) else ""
                listed.append(ClientServer(client, one, one.skipped or known))
            listed += [ClientServer(client, FoundServer(client, files[0]), reason) for reason in reasons]
        return tuple(listed)

    def _taken(self) -> set[str]:
        """Return the names that packs and servers of this run have."""
        parts = self._parts
        return {*parts.other_packs(), *(parts.hub.names() if parts.has_servers else ())}

    async def remove(self, name: str) -> Problem | None:
        """Remove a server from the configuration file, and end its connection; its secrets stay.

        Returns:
            Why it was not removed.
        """
        return await self._complete(self._remove(name))

    def place(self, name: str) -> tuple[str, int | None] | None:
        """Return the file with a server and the line where it begins, or None if no file has it; read the disk."""
        read, _ = self._parts.configuration.read()
        return _place(read.loaded.origins, name)

    def is_removable(self, name: str) -> bool:
        """Return whether the user's configuration file has the server."""
        from pegboard.config.files import shown

        place = _place(self._parts.settings.loaded.origins, name)
        return place is not None and place[0] == shown(self._parts.paths.config_file)

    def target(self, command: object, args: object, url: object) -> str:
        """Return the command line or the URL of a server, secrets masked; empty if it has neither; read the disk."""
        from pegboard.config import Redactor
        from pegboard.config.display import shown_target

        words = [str(word) for word in args] if isinstance(args, list | tuple) else []
        redactor = Redactor(self._parts.secrets.known())
        start = None if command is None else str(command)
        return shown_target(start, words, None if url is None else str(url), redactor)

    async def _complete(self, change: Coroutine[Any, Any, _T]) -> _T:
        """Make a change after those that have begun, and complete it even if this is cancelled."""
        import asyncio

        async def run() -> _T:
            async with self.changing:
                return await change

        task = asyncio.create_task(run())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _add(self, name: str, entry: Mapping[str, object]) -> tuple[str, ...] | Problem:
        import asyncio

        written = await asyncio.to_thread(self._write, name, entry)
        return await self._use_one(name) or written if isinstance(written, tuple) else written

    def _write(self, name: str, entry: Mapping[str, object]) -> tuple[str, ...] | Problem:
        from pegboard.config.new_servers import add_servers, entry_complaint

        parts = self._parts
        complaint = entry_complaint(name, entry, {*self._taken(), *parts.settings.mcp.servers})
        if not complaint and isinstance(blocked := self.changes(), models.Problem):
            complaint = f"The configuration can't be used: {blocked}"
        if complaint:
            return models.Problem(message=f"{name!r} was not added. {complaint}")
        notes: list[str] = []
        try:
            add_servers(parts.paths, parts.secrets, {name: entry}, notes.append)
        except ConfigError as error:
            return models.Problem(message=str(error))
        if text := parts.rules.existing(name):
            notes.append(f"warning: {text}")
        return tuple(notes)

    async def _remove(self, name: str) -> Problem | None:
        import asyncio

        from pegboard.config.server_file import ServerFile

        found = await asyncio.to_thread(self.changes)
        if isinstance(found, models.Problem):
            return models.Problem(message=f"{name} was not removed. The configuration can't be used: {found}")
        changed = next((change for change in found if change.name == name), None)
        if changed is not None and changed.after is not None:  # the user knows only the entry that is in use
            return models.Problem(
                message=f"{name} was not removed because its entry was changed in the meantime.",
                fix="Choose “Apply MCP servers” in the palette, then try again.",
            )
        if changed is None:  # otherwise another program did it
            try:
                await asyncio.to_thread(ServerFile(self._parts.paths.config_file).remove, name)
            except ConfigError as error:
                return models.Problem(message=str(error))
        return await self._use_one(name)

    async def _use_one(self, name: str) -> Problem | None:
        """Apply what the files contain about one server."""
        import asyncio

        found = await asyncio.to_thread(self.changes)
        if isinstance(found, models.Problem):
            return found
        return await self._use([change for change in found if change.name == name])

    async def _use(self, changes: Sequence[ServerChange]) -> Problem | None:
        import asyncio

        from pegboard.runtime.reload import with_servers

        # Read once: nothing may start that was not compared with what the user saw.
        read, problems = await asyncio.to_thread(self._parts.configuration.read)
        found = self._changes_to(read)
        if isinstance(found, models.Problem):
            return found
        if not all(change in found for change in changes):
            return models.Problem(message="The configuration changed again, so nothing was applied.")
        parts = self._parts
        is_connected = parts.is_built("hub")
        for change in changes:
            if change.before is not None:
                connection = parts.hub.connection(change.name) if is_connected else None
                for pack in {change.name, change.name if connection is None else connection.pack}:
                    parts.rules.forget(pack)
        parts.configuration.replace(with_servers(parts.settings, read, [one.name for one in changes]), problems)
        if is_connected:
            await asyncio.gather(*(parts.hub.replace(change.name, change.after) for change in changes))
        else:
            parts.hub.start()
        await asyncio.to_thread(parts.registry.scan)
        return None


def _place(origins: Mapping[str, Origin], name: str) -> tuple[str, int | None] | None:
    found = [origin for key, origin in origins.items() if key.startswith(f"mcp.servers.{name}.") and origin.file]
    if not found:
        return None
    return found[0].file or "", min((origin.line for origin in found if origin.line), default=None)
