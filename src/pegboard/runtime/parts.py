"""The parts of a runtime, each built when it is first needed."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard import models
from pegboard.config import packs_folders
from pegboard.config.paths import absolute
from pegboard.registry import AllowList, Registry

if TYPE_CHECKING:
    from pegboard.config import Paths, ResolvedServer, Secrets, Settings
    from pegboard.executor import Executor
    from pegboard.gateway import Gateway, Rules, Timeouts
    from pegboard.health import Health
    from pegboard.history import History
    from pegboard.mcp.authorization import ServerAuthorization
    from pegboard.mcp.hub import Hub
    from pegboard.mcp.logins import Logins
    from pegboard.mcp.runner import McpRunner
    from pegboard.mcp.services import Sampled
    from pegboard.models import Problem, SamplingRequest, ServerConfig, ToolSpec
    from pegboard.ports import Recorder, ToolRunner
    from pegboard.presets import Presets
    from pegboard.runtime.configuration import Configuration
    from pegboard.runtime.grants import PackGrants
    from pegboard.runtime.redaction import SecretRedaction
    from pegboard.scripts import ScriptRunner


class _PackFolders:
    """The packs folders as a source of tools.

    Args:
        parts: The parts, with the folders; the one in the data folder may be missing.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def scan(self) -> tuple[Sequence[ToolSpec], Sequence[Problem]]:
        from pegboard.discovery import scan

        own = self._parts.paths.packs
        wanted = [folder for folder in self._parts.folders if folder != own or _may_be_folder(folder)]
        return scan(wanted, index=self._parts.paths.index)


def _may_be_folder(path: Path) -> bool:
    """Return whether a path is a folder, or is in a folder that the user may not enter."""
    try:
        return path.is_dir()
    except OSError:
        return True


class _ScriptTool:
    """The tool that runs scripts as a source, if it is enabled.

    Args:
        parts: The parts, with the configuration.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def scan(self) -> tuple[Sequence[ToolSpec], Sequence[Problem]]:
        settings = self._parts.settings.scripts
        if not settings.offer:
            return (), ()
        from pegboard.scripts import ScriptSource

        return ScriptSource(settings.seconds).scan()


class _ServerTools:
    """The tools of MCP servers as a source; nothing is imported while there are none.

    Args:
        parts: The parts, with the connections.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def scan(self) -> tuple[Sequence[ToolSpec], Sequence[Problem]]:
        return self._parts.hub.scan() if self._parts.has_servers else ((), ())

    def is_outdated(self, spec: ToolSpec) -> bool:
        return self._parts.has_servers and self._parts.hub.is_outdated(spec)

    def unavailable(self, tool: str) -> str:
        return self._parts.hub.unavailable(tool) if self._parts.has_servers else ""


def _configured_allow_list(settings: Settings) -> AllowList:
    """Return the configured allow list; it admits nothing if the settings that restrict tools can't be used."""
    blocked = settings.loaded.blocked
    if blocked is not None:
        return AllowList((), reason=f"the configuration can't be used: {blocked}")
    return AllowList(settings.tools.allow)


class Parts:
    """Parts that the facets of one runtime share.

    Args:
        configuration: The settings; nothing reads them before they are needed.
        paths: Where Pegboard keeps its files.
        packs: More packs folders, after the configured ones.
        allow: Tools that can be used, within those that the configuration allows.
    """

    def __init__(
        self, configuration: Configuration, paths: Paths, packs: Sequence[Path], allow: AllowList | None
    ) -> None:
        self.configuration = configuration
        self.paths = paths
        self.given = {os.path.realpath(folder): str(folder.absolute()) for folder in packs}
        """Folders of `--packs`, by their resolved paths."""
        self._packs = packs
        self._given_allow = allow
        servers = _ServerTools(self)
        self.registry = Registry(
            [_PackFolders(self), _ScriptTool(self), servers], servers.is_outdated, servers.unavailable
        )
        self.server_listeners: list[Callable[[], None]] = []
        """Called, on another thread, whenever the state or the tools of an MCP server have changed."""
        self.sample: Callable[[SamplingRequest, float | None], Awaitable[Sampled]] | None = None
        """Asks the configured model for a server."""

    @property
    def settings(self) -> Settings:
        """The configuration."""
        return self.configuration.settings

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        """The packs folders, in order of precedence."""
        return tuple(packs_folders(self.settings, self.paths, self._packs))

    @cached_property
    def allow(self) -> AllowList:
        """The tools that can be used."""
        configured = _configured_allow_list(self.settings)
        return configured if self._given_allow is None else self._given_allow.within(configured)

    @property
    def allow_is_given(self) -> bool:
        """Whether this run has an allow list of its own."""
        return self._given_allow is not None

    def is_built(self, part: str) -> bool:
        """Return whether a part has been built."""
        return part in self.__dict__

    def usable(self) -> tuple[ToolSpec, ...]:
        """Return the tools that can be used, by name, from the last scan."""
        return tuple(spec for spec in self.registry.tools() if self.allow.admits(spec))

    def usable_tool(self, name: str) -> ToolSpec | None:
        """Return the tool with this name or alias, or None if no tool that can be used has it."""
        spec = self.registry.get(name)
        return spec if spec is not None and self.allow.admits(spec) else None

    def find_secret(self, name: str, *, of_folder: bool = False) -> tuple[str | None, str]:
        """Return where a secret comes from, or None and why it is missing; may wait for the keyring."""
        return self.secrets.where(name, of_folder=of_folder)

    @property
    def has_servers(self) -> bool:
        """Whether there are MCP servers, configured or given for this run."""
        return bool(self.settings.mcp.servers) or self.is_built("hub")

    def listen_to_servers(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call a function, on another thread, whenever the state of a server changes; return how to stop it."""
        self.server_listeners.append(changed)
        return lambda: self.server_listeners.remove(changed)

    @cached_property
    def hub(self) -> Hub:
        """The connections to MCP servers."""
        from pegboard.config import configured_servers
        from pegboard.mcp.hub import Hub
        from pegboard.mcp.services import Services

        set_ = self.settings.tools
        services = Services(
            resolve=self._resolve_server,
            packs=self.other_packs,
            results=self.paths.results.absolute(),
            result_limit=set_.result_limit,
            log_limit=set_.log_limit,
            sample=self.sample,
            authorize=self._authorize,
            redact=self.redaction.text,
        )
        return Hub(configured_servers(self.settings), services, self.server_listeners)

    def _resolve_server(self, config: ServerConfig) -> ResolvedServer | Problem:
        """Fill in the secrets of a server, and redact them from now on."""
        from pegboard.config import resolve_server

        resolved = resolve_server(config, self.secrets)
        if not isinstance(resolved, models.Problem):
            self.redaction.add(resolved.secrets)
        return resolved

    def _authorize(self, config: ServerConfig) -> ServerAuthorization | None:
        """Return the authorization of the requests to an HTTP server, unless a header in its entry has it."""
        from pegboard.mcp.authorization import ServerAuthorization

        if config.url is None or any(name.lower() == "authorization" for name in config.headers):
            return None
        return ServerAuthorization(config, self.logins, learn=self.redaction.add)

    @cached_property
    def logins(self) -> Logins:
        """The logins to HTTP servers."""
        from pegboard.mcp.logins import Logins

        return Logins(self.paths.logins)

    def other_packs(self) -> frozenset[str]:
        """Return the names of the packs that aren't servers."""
        if not self.registry.scanned:
            self.registry.scan()
        return frozenset(spec.pack for spec in self.registry.tools() if not isinstance(spec.handler, models.McpHandler))

    @cached_property
    def timeouts(self) -> Timeouts:
        """Timeouts of calls."""
        from pegboard.gateway import Timeouts

        return Timeouts(self.settings.tools.timeout, self.settings.tools.timeouts)

    @cached_property
    def presets(self) -> Presets:
        """Saved arguments."""
        from pegboard.presets import Presets

        return Presets(self.paths.presets)

    @cached_property
    def history(self) -> History:
        """The record of calls."""
        from pegboard.history import History

        return History(self.paths.database, self.paths.results, size_limit=self.settings.history.size_limit)

    @cached_property
    def secrets(self) -> Secrets:
        """Secrets from the environment, `.env` files and the keyring."""
        from pegboard.config import Secrets

        return Secrets(self.paths)

    @cached_property
    def grants(self) -> PackGrants:
        """Access of packs to configuration and secrets."""
        from pegboard.runtime.grants import PackGrants

        return PackGrants(self.settings.packs, self.secrets, self.redaction, of_folder=self.settings.packs_of_folder())

    @cached_property
    def redaction(self) -> SecretRedaction:
        """Redaction of secrets in texts and values."""
        from pegboard.runtime.redaction import SecretRedaction

        return SecretRedaction(self.secrets, self.settings)

    @cached_property
    def executor(self) -> Executor:
        """The worker pool."""
        return self.new_executor(self.settings.tools.workers)

    def new_executor(self, workers: int | None) -> Executor:
        """Return a new worker pool with the configured limits."""
        from pegboard.executor import Executor

        tools = self.settings.tools
        return Executor(
            results=self.paths.results,
            workers=workers,
            memory_limit=tools.memory_limit,
            log_limit=tools.log_limit,
            result_limit=tools.result_limit,
            environment=self._environment,
            grants=self.grants,
        )

    @cached_property
    def _environment(self) -> dict[str, str]:
        """The part of Pegboard's environment that tools see in addition to the usual variables."""
        return {name: os.environ[name] for name in self.settings.tools.environment if name in os.environ}

    @cached_property
    def health(self) -> Health:
        """The requirements of all tools."""
        from pegboard.executor.environment import worker_environment
        from pegboard.health import Health

        environ = {**worker_environment(os.environ), **self._environment}
        return Health(self.usable, find_secret=self.find_secret, environ=environ)

    @cached_property
    def server_runner(self) -> McpRunner:
        """Runner of the tools of MCP servers."""
        from pegboard.mcp.runner import McpRunner

        return McpRunner(self.hub)

    @cached_property
    def gateway(self) -> Gateway:
        """The pipeline that every call passes."""
        return self.gateway_through(self.executor)

    def gateway_through(
        self, runner: ToolRunner, *, is_remote: bool = False, recorder: Recorder | None = None
    ) -> Gateway:
        """Return a pipeline whose tools of packs run with a runner; a remote one checks requirements itself."""
        from pegboard.gateway import Gateway

        scripts = {"script": self.script_runner} if self.settings.scripts.offer else {}
        return Gateway(
            self.registry,
            {"pack": runner, "mcp": self.server_runner, **scripts},
            recorder or self.history,
            allow=self.allow,
            timeouts=self.timeouts,
            rules=self.rules,
            readiness=None if is_remote else self.health,
            redaction=self.redaction,
            cache=self.settings.ask.cache,
        )

    @cached_property
    def script_gateway(self) -> Gateway:
        """The pipeline of the user's own scripts, separate because it has only their tool."""
        from pegboard.gateway import Gateway
        from pegboard.scripts import ScriptSource

        registry = Registry([ScriptSource(self.settings.scripts.seconds)])
        return Gateway(
            registry, {"script": self.script_runner}, self.history, timeouts=self.timeouts, redaction=self.redaction
        )

    @cached_property
    def script_runner(self) -> ScriptRunner:
        """Runner of bash scripts."""
        from pegboard.scripts import Limits, ScriptRunner

        set_ = self.settings.scripts
        return ScriptRunner(lambda: self.gateway, Limits(seconds=set_.seconds, memory=set_.memory))

    @cached_property
    def rules(self) -> Rules:
        """The approval rules."""
        from pegboard.gateway import Rules

        return Rules(self.paths.approvals, self._roots)

    def _roots(self, pack: str) -> tuple[str, ...]:
        """Return the folders that the configuration confines a pack to; empty if it names none."""
        listed = self.settings.packs.of(pack).get("roots")
        listed = listed.split(os.pathsep) if isinstance(listed, str) else listed
        return (
            tuple(str(absolute(root)) for root in listed if isinstance(root, str)) if isinstance(listed, list) else ()
        )
