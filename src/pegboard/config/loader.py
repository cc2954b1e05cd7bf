"""Settings from the files and the environment. An error affects only its own value, unless that could open a limit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.config.display import may_be_secret
from pegboard.config.dotenv import parse_dotenv
from pegboard.config.files import decoded, read_text, shown
from pegboard.config.layer import (
    drop_errors,
    environment_layers,
    file_layer,
    flat,
    leaves,
    make_folders_absolute,
    respell,
)
from pegboard.config.paths import OVERLAY, Paths
from pegboard.config.servers import NAME_RULE, is_server_name, server_complaints
from pegboard.config.settings import Loaded, Origin, Settings, UiSettings, Unused
from pegboard.config.trust import DOTENV, REVIEW, FolderFiles, TrustFile
from pegboard.models import Problem

if TYPE_CHECKING:
    from pegboard.config.layer import (
        Layer,
        TomlTable,
    )
    from pegboard.config.trust import Trust

_HARMLESS = frozenset({"theme", "vim_keys", "unfold", "animations"})
"""What an untrusted folder may set in `[ui]`. A new setting is added here only if it can't mislead or approve."""
_OF_USER = {
    "batch.engine": "Use --engine or your own config.toml.",
    "history.size_limit": "Set it in your own config.toml.",
}
"""What a folder may not set → the remedy: those who run the cluster could read the calls, and a smaller history loses
the user's calls of all folders."""
_OF_ANY_SERVER = frozenset({"enabled", "protocol", "timeout", "tools"})
"""What a variable sets of a server whose address or command the folder configures: neither credentials nor trust."""
_MOST_PROBLEMS = 20
"""Settings of an untrusted folder that get a problem of their own."""


def load(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> tuple[Settings, tuple[Problem, ...]]:
    """Read the settings: the user's file, the trusted `pegboard.toml` of the working directory, the environment.

    A missing file counts as empty. Invalid values are left out and named in a problem; nothing is raised. If a part
    that limits tools can't be used, `Settings.loaded.blocked` says why no tool may run.

    Args:
        environ: The environment; the process's own by default.
        cwd: The working directory; the process's own by default.

    Returns:
        The settings, and all problems.
    """
    environ = os.environ if environ is None else environ
    paths = Paths.from_environment(environ)
    files = FolderFiles.read(cwd, paths)
    trust = TrustFile(paths.trust).of(files)
    user = file_layer(paths.config_file, read_text(paths.config_file))
    folder = folder_layer(files, may_block=trust.state == "trusted")
    unused = [] if trust.state == "trusted" else _distrust(folder, files, trust)
    environment = [*environment_layers(environ)]
    layers = [user, folder, *environment]

    merged: TomlTable = {}
    origins: dict[str, Origin] = {}
    problems: list[Problem] = []
    _drop_settings_of_user(folder)
    for layer in layers:
        if layer.variable:
            respell(layer, [user, folder])
        drop_errors(layer)
        make_folders_absolute(layer)
    _withhold_secrets(folder, user, environment)
    base_url_model = _base_url_model([[user], [folder], environment])  # before merging, which changes the tables
    packs_of_files = {*_packs_of(user.table), *_packs_of(folder.table)}
    blocked_servers: dict[str, Problem] = {}
    for layer in layers:
        problems += layer.problems
        if layer is folder:
            _replace_servers(merged, folder.table, origins, blocked_servers)
        _merge(merged, layer.table)
        origins |= {key: layer.origin(key) for key in leaves(layer.table)}
        blocked_servers |= layer.blocked_servers

    origins = {key: origins[key] for key in leaves(merged)}
    settings = Settings.model_validate(merged) if merged else Settings.model_construct()
    for name, problem in _server_problems(settings, origins):
        if name not in blocked_servers:
            blocked_servers[name] = problem
            problems.append(problem)
    loaded = Loaded(
        origins,
        unused=(*unused, *(value for layer in layers for value in layer.unused)),
        blocked=next((layer.blocked for layer in layers if layer.blocked), None),
        model_blocked=next((layer.model_blocked for layer in layers if layer.model_blocked), None),
        blocked_servers=blocked_servers,
        base_url_model=base_url_model,
        folder_file=shown(files.config_file) if trust.state == "trusted" else None,
        trust=trust.state,
        packs_of_variables=frozenset(_packs_of(merged).keys() - packs_of_files),
    )
    return settings.with_loaded(loaded), tuple(problems)


def folder_layer(files: FolderFiles, *, may_block: bool = True) -> Layer:
    """Parse the `pegboard.toml` of a folder."""
    raw = files.config
    text = raw if isinstance(raw, Problem) else decoded(files.config_file, raw or b"")
    return file_layer(files.config_file, text, may_block=may_block)


def _drop_settings_of_user(layer: Layer) -> None:
    """Remove what only the user may set from the layer of a folder."""
    for key, fix in _OF_USER.items():
        section, _, name = key.partition(".")
        table = layer.table.get(section)
        if isinstance(table, dict) and name in table:
            origin = layer.origin(key)
            layer.unused.append(Unused(key, table.pop(name), origin, "ignored"))
            message = f"`{key}` is ignored in the {OVERLAY} of a folder."
            layer.problems.append(origin.problem(message, fix, "warning"))


def _withhold_secrets(folder: Layer, user: Layer, environment: Sequence[Layer]) -> None:
    """Remove the user's secrets from packs and servers that the folder configures, which may send them elsewhere."""
    for pack in (name for name, config in _packs_of(folder.table).items() if config):
        for layer in (user, *environment):
            _withhold(layer, ("packs", pack), _packs_of(layer.table).get(pack, {}), may_be_secret)
    moved = {
        name
        for layer in environment
        for name, server in _servers_of(layer.table).items()
        if server.keys() & {"command", "url"}
    }
    for name in _servers_of(folder.table).keys() - moved:
        for layer in environment:
            server = _servers_of(layer.table).get(name, {})
            _withhold(layer, ("mcp", "servers", name), server, lambda path, _: path[3] not in _OF_ANY_SERVER)


def _withhold(
    layer: Layer, keys: tuple[str, ...], table: TomlTable, is_withheld: Callable[[tuple[str, ...], object], bool]
) -> None:
    """Remove values from a table of a layer, and note each.

    Args:
        layer: The layer.
        keys: Keys of the table.
        table: The table.
        is_withheld: Returns whether a value, with the keys that lead to it, is removed.
    """
    waiting = [(keys, table)]
    while waiting:
        path, here = waiting.pop()
        for name, value in [*here.items()]:
            inner = (*path, name)
            if isinstance(value, dict) and value:
                waiting.append((inner, value))
                continue
            if not is_withheld(inner, value):
                continue
            key = ".".join(inner)
            origin = layer.origin(key)
            layer.unused.append(Unused(key, here.pop(name), origin, "withheld"))
            message = f"`{_shortened(key)}` is not used because the {OVERLAY} of this folder sets `{'.'.join(keys)}`."
            fix = f"To use it here, set it in the {OVERLAY} of this folder."
            layer.problems.append(origin.problem(message, fix, "warning"))


def restricts(table: TomlTable) -> bool:
    """Return whether a `pegboard.toml` may limit tools."""
    packs = table.get("packs")
    limits_packs = isinstance(packs, dict) and any(name != "folders" for name in packs)
    return limits_packs or "allow" in (tools if isinstance(tools := table.get("tools"), dict) else {})


def _distrust(layer: Layer, files: FolderFiles, trust: Trust) -> list[Unused]:
    """Take everything out of a layer that needs trust; note a problem for each value, and for `.env`."""
    is_restricted = trust.restricts or (trust.problem is not None and restricts(layer.table))
    ui = layer.table.pop("ui", None)
    if isinstance(ui, dict):
        harmful = {key: ui.pop(key) for key in UiSettings.model_fields.keys() & ui.keys() - _HARMLESS}
        layer.table["ui"] = harmful
    unused = [Unused(key, value, layer.origin(key), "untrusted") for key, value in flat(layer.table)]
    layer.table = {} if ui is None else {"ui": ui}
    layer.problems = [problem.model_copy(update={"severity": "warning"}) for problem in layer.problems]
    if trust.problem is not None:
        layer.problems.append(trust.problem)
    if trust.state == "changed" or is_restricted:
        _note_change(layer, files, trust, blocks=is_restricted and not files.config_is_own)
    why = "this folder is not trusted" if trust.state == "untrusted" else "this folder changed after you trusted it"
    for value in unused[:_MOST_PROBLEMS]:
        message = f"`{_shortened(value.key)}` is not used because {why}."
        layer.problems.append(value.origin.problem(message, REVIEW, "warning"))
    if len(unused) > _MOST_PROBLEMS:
        more = len(unused) - _MOST_PROBLEMS
        message = f"{f'{more} more settings are' if more > 1 else '1 more setting is'} not used because {why}."
        layer.problems.append(Problem(message=message, fix=REVIEW, severity="warning", file=shown(layer.file)))
    if files.dotenv is not None:
        layer.problems += _ignored_dotenv(files, why)
    return unused


def _note_change(layer: Layer, files: FolderFiles, trust: Trust, *, blocks: bool) -> None:
    if trust.state == "changed":
        message = f"{OVERLAY} or {DOTENV} changed after you trusted this folder."
        fix = "Review the change with `pegboard trust`, or run `pegboard trust --remove`."
    else:
        message = f"{OVERLAY} limits tools, but the record of trusted folders can't be read."
        fix = "Repair the record of trusted folders, or run `pegboard trust`."
    problem = Problem(message=message, fix=fix, severity="warning", file=shown(files.config_file))
    # The folder limited tools; without its limits, more could run than the user expects.
    layer.may_block = True
    layer.add(problem, tools=blocks)
    layer.may_block = False


def _ignored_dotenv(files: FolderFiles, why: str) -> Iterator[Problem]:
    raw = files.dotenv
    text = raw if isinstance(raw, Problem) else decoded(files.dotenv_file, raw or b"")
    if isinstance(text, Problem):
        yield text.model_copy(update={"severity": "warning"})
    elif parse_dotenv(files.dotenv_file, text).values:
        message = f"{DOTENV} is ignored because {why}."
        yield Problem(message=message, fix=REVIEW, severity="warning", file=shown(files.dotenv_file))


def _shortened(key: str) -> str:
    longest = 80
    return key if len(key) <= longest else f"{key[:longest]}…"


def _replace_servers(
    merged: TomlTable, folder: TomlTable, origins: dict[str, Origin], blocked_servers: dict[str, Problem]
) -> None:
    """Remove the user's servers that the folder configures too.

    Merging the two would send the user's headers to the folder's address, or start the folder's command with the
    user's variables.
    """
    own, others = (_servers_of(table) for table in (merged, folder))
    for name in own.keys() & others.keys():
        del own[name]
        blocked_servers.pop(name, None)
        for key in [key for key in origins if key.startswith(f"mcp.servers.{name}.")]:
            del origins[key]


def _packs_of(table: TomlTable) -> TomlTable:
    packs = table.get("packs", {})
    return {name: config for name, config in packs.items() if isinstance(config, dict)}


def _servers_of(table: TomlTable) -> TomlTable:
    servers = table.get("mcp", {}).get("servers", {})
    return servers if isinstance(servers, dict) else {}


def _server_problems(settings: Settings, origins: Mapping[str, Origin]) -> Iterator[tuple[str, Problem]]:
    """Yield why servers can't be used, by name."""
    for name, server in settings.mcp.servers.items():
        origin = next((origin for key, origin in origins.items() if key.startswith(f"mcp.servers.{name}.")), Origin())
        complaints = [*server_complaints(server)]
        if not is_server_name(name):
            complaints.insert(0, NAME_RULE)
        for complaint in complaints:
            message = f"The MCP server {_shortened(name)} can't be used. {complaint}"
            yield name, origin.problem(message, f"Correct `[mcp.servers.{_shortened(name)}]`.")


def _base_url_model(groups: Iterable[Iterable[Layer]]) -> str | None:
    """Return the model that the base URL in effect was set for: the one named beside it, or below it."""
    name: str | None = None
    meant: str | None = None
    for group in groups:
        tables = [layer.table.get("model", {}) for layer in group]
        name = next((str(table["name"]) for table in tables if "name" in table), name)
        if any("base_url" in table for table in tables):
            meant = name
    return meant


def _merge(below: TomlTable, above: TomlTable) -> None:
    waiting = [(below, above)]
    while waiting:
        below, above = waiting.pop()
        for key, value in above.items():
            if isinstance(value, dict) and isinstance(below.get(key), dict):
                waiting.append((below[key], value))
            else:
                below[key] = value
