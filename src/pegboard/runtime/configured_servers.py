"""Changes of the MCP servers in the configuration while Pegboard runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pegboard import models
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    import asyncio

    from pegboard.models import Problem, ServerConfig
    from pegboard.runtime.parts import Parts


class ServerChange(NamedTuple):
    """A server whose configuration differs from the one in use."""

    name: str
    before: ServerConfig | None
    """The configuration in use; None if the server is new."""
    after: ServerConfig | None
    """The configuration in the files; None if the server was removed."""


class ConfiguredServers:
    """The MCP servers in the configuration files: added, removed and changed without a restart.

    Nothing that the files contain is started before `apply`.

    Args:
        parts: The parts of the runtime.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @cached_property
    def changing(self) -> asyncio.Lock:
        """Held while servers are added, removed or applied: meanwhile, the files differ from the settings in use."""
        import asyncio

        return asyncio.Lock()

    def changes(self) -> tuple[ServerChange, ...] | Problem:
        """Return the servers that differ from those in use, by name, or why the files can't be used; block."""
        from pegboard.config import configured_servers

        read, _ = self._parts.configuration.read()
        if read.loaded.blocked is not None:
            return read.loaded.blocked
        before = {config.name: config for config in configured_servers(self._parts.settings)}
        after = {config.name: config for config in configured_servers(read)}
        names = sorted(before.keys() | after.keys())
        changes = (ServerChange(name, before.get(name), after.get(name)) for name in names)
        return tuple(change for change in changes if change.before != change.after)

    async def apply(self, changes: Sequence[ServerChange]) -> Problem | None:
        """Connect to servers as they are configured now, and end the connections to those that were removed.

        Args:
            changes: Changes as the user saw them.

        Returns:
            Why nothing was applied: the files have changed again, or can't be used.
        """
        async with self.changing:
            return await self._use(changes)

    async def _use(self, changes: Sequence[ServerChange]) -> Problem | None:
        import asyncio

        from pegboard.runtime.reload import with_servers

        found = await asyncio.to_thread(self.changes)
        if isinstance(found, models.Problem):
            return found
        if not all(change in found for change in changes):
            return models.Problem(message="The configuration changed again, so nothing was applied.")
        parts = self._parts
        read, problems = await asyncio.to_thread(parts.configuration.read)
        parts.configuration.replace(with_servers(parts.settings, read, [one.name for one in changes]), problems)
        if parts.is_built("hub"):
            for change in changes:
                await parts.hub.replace(change.name, change.after)
        else:
            parts.hub.start()
        await asyncio.to_thread(parts.registry.scan)
        return None

    async def add(self, name: str, entry: Mapping[str, object]) -> tuple[str, ...] | Problem:
        """Add a server to the configuration file, its credentials to secrets, and start to connect to it.

        Args:
            name: Name of the server.
            entry: Its keys in the configuration.

        Returns:
            What the user should know about its credentials, or why it was not added.
        """
        import asyncio

        async with self.changing:
            written = await asyncio.to_thread(self._write, name, entry)
            return await self._use_one(name) or written if isinstance(written, tuple) else written

    async def remove(self, name: str) -> Problem | None:
        """Remove a server from the configuration file, and end its connection; its secrets stay.

        Returns:
            Why it was not removed.
        """
        import asyncio

        from pegboard.config.server_file import ServerFile

        async with self.changing:
            try:
                await asyncio.to_thread(ServerFile(self._parts.paths.config_file).remove, name)
            except ConfigError as error:
                return models.Problem(message=str(error))
            return await self._use_one(name)

    def place(self, name: str) -> tuple[str, int | None] | None:
        """Return the file with a server and the line where it begins, or None if no file has it."""
        origins = self._parts.settings.loaded.origins
        found = [origin for key, origin in origins.items() if key.startswith(f"mcp.servers.{name}.") and origin.file]
        if not found:
            return None
        return found[0].file or "", min((origin.line for origin in found if origin.line), default=None)

    def is_removable(self, name: str) -> bool:
        """Return whether the user's configuration file has the server."""
        from pegboard.config.files import shown

        place = self.place(name)
        return place is not None and place[0] == shown(self._parts.paths.config_file)

    def target(self, config: ServerConfig) -> str:
        """Return the command line or the URL of a server, secrets masked; read the disk."""
        from pegboard.config import Redactor
        from pegboard.config.display import shown_target

        return shown_target(config.command, config.args, config.url, Redactor(self._parts.secrets.known()))

    def _write(self, name: str, entry: Mapping[str, object]) -> tuple[str, ...] | Problem:
        from pegboard.config.new_servers import add_servers, entry_complaint

        taken = {*self._parts.other_packs(), *self._parts.settings.mcp.servers}
        notes: list[str] = []
        if complaint := entry_complaint(name, entry, taken):
            return models.Problem(message=f"{name!r} was not added. {complaint}")
        try:
            add_servers(self._parts.paths, self._parts.secrets, {name: entry}, notes.append)
        except ConfigError as error:
            return models.Problem(message=str(error))
        return tuple(notes)

    async def _use_one(self, name: str) -> Problem | None:
        """Apply what the files contain about one server."""
        import asyncio

        found = await asyncio.to_thread(self.changes)
        if isinstance(found, models.Problem):
            return found
        return await self._use([change for change in found if change.name == name])
