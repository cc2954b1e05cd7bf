"""Changes of the configuration while Pegboard runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pegboard.config.layer import NO_MODEL, NO_TOOL, STILL_USED

if TYPE_CHECKING:
    from pegboard.config import Settings
    from pegboard.models import Problem

_KEPT: Final = ("packs", "tools", "scripts", "mcp")
"""Sections that apply only after a restart: workers, limits and rights are built from them once. Servers of `mcp` apply
when the user confirms it."""
_SERVERS: Final = "mcp.servers."
_NOT_LIVE: Final = frozenset({"ask.cache", "history.size_limit", "ui.vim_keys"})
"""Keys of other sections that apply only after a restart, because a part or a page reads them only when it is built."""


@dataclass(frozen=True)
class SettingsChange:
    """Result of reading the configuration again."""

    applied: tuple[str, ...] = ()
    """Dotted keys that changed and apply now."""
    restart: tuple[str, ...] = ()
    """Dotted keys that changed and apply after a restart."""
    servers: tuple[str, ...] = ()
    """Names of the MCP servers that changed; `ConfiguredServers.apply` connects to them as they are now configured."""
    blocked: Problem | None = None
    """Why nothing changed: a part that limits tools or models can't be read."""


def changed_settings(before: Settings, after: Settings) -> tuple[Settings, SettingsChange]:
    """Return the settings to use from now on, and what changed.

    Limits and rights of tools stay those of the start, with their origins: whether a folder set them decides which
    secrets a pack may read.

    Args:
        before: The settings in use.
        after: The settings that were read.
    """
    old, new = before.loaded, after.loaded
    blocked = new.blocked or new.model_blocked
    if blocked is not None and (new.blocked, new.model_blocked) != (old.blocked, old.model_blocked):
        return before, SettingsChange(blocked=_of_running(blocked))
    first, second = ({".".join(keys): value for keys, value in one.leaves()} for one in (before, after))
    changed = sorted(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))
    kept = [key for key in changed if key.partition(".")[0] in _KEPT or key in _NOT_LIVE]
    of_servers = [key for key in kept if f"{key}.".startswith(_SERVERS)]
    servers, read = before.mcp.servers, after.mcp.servers
    names = sorted(name for name in servers.keys() | read.keys() if servers.get(name) != read.get(name))
    if old.blocked is not None and new.blocked is None:
        kept.append("tools")
    origins = {key: origin for key, origin in new.origins.items() if key.partition(".")[0] not in _KEPT}
    origins |= {key: origin for key, origin in old.origins.items() if key.partition(".")[0] in _KEPT}
    loaded = replace(new, origins=origins, blocked=old.blocked, folder_file=new.folder_file or old.folder_file)
    settings = after.model_copy(update={name: getattr(before, name) for name in _KEPT}).with_loaded(loaded)
    restart = dict.fromkeys(key for key in kept if key not in of_servers)
    return settings, SettingsChange(tuple(key for key in changed if key not in kept), tuple(restart), tuple(names))


def _of_running(problem: Problem) -> Problem:
    """Return a problem of settings that were read again, with its consequence for a running Pegboard."""
    fix = problem.fix.removesuffix(NO_MODEL).rstrip().removesuffix(NO_TOOL)
    return problem.model_copy(update={"fix": f"{fix.rstrip()} {STILL_USED}".lstrip()})


def with_servers(before: Settings, read: Settings, names: Collection[str]) -> Settings:
    """Return settings whose servers of these names are as they were read, with their origins.

    Args:
        before: The settings in use.
        read: The settings that were read.
        names: Names of servers.
    """
    keys = tuple(f"{_SERVERS}{name}." for name in names)
    old, new = before.loaded, read.loaded
    origins = {key: origin for key, origin in old.origins.items() if not key.startswith(keys)}
    origins |= {key: origin for key, origin in new.origins.items() if key.startswith(keys)}
    blocked = {name: problem for name, problem in old.blocked_servers.items() if name not in names}
    blocked |= {name: problem for name, problem in new.blocked_servers.items() if name in names}
    servers = {name: server for name, server in before.mcp.servers.items() if name not in names}
    servers |= {name: server for name, server in read.mcp.servers.items() if name in names}
    mcp = before.mcp.model_copy(update={"servers": servers})
    loaded = replace(old, origins=origins, blocked_servers=blocked)
    return before.model_copy(update={"mcp": mcp}).with_loaded(loaded)
