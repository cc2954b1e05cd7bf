"""All settings with their defaults: one model for each section of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr

from pegboard.config.appearance import Appearance
from pegboard.models import Problem

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([kmg]i?)?b?", re.IGNORECASE)


def _bytes(value: object) -> object:
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise ValueError('should be a number of bytes, or a size such as "2 GiB" or "500 MB"')
    return int(float(match[1]) * _UNITS[(match[2] or "").lower()])


def _names(value: object) -> object:
    if isinstance(value, str):
        return [name.strip() for name in value.split(",") if name.strip()]
    return value


def _path(value: object) -> object:
    if value == "":
        raise ValueError("should be the path of a folder, but is empty")  # `Path("")` is the working directory
    if isinstance(value, str) and "\0" not in value:
        return Path(value)
    return value


def _key_names(value: object) -> object:
    if isinstance(value, list) and all(isinstance(key, str) for key in value):
        return ",".join(value)
    return value


def variable_name(name: str) -> str:
    """Return a name as it is in an environment variable, which many shells limit to capital letters and `_`."""
    return name.lower().replace("-", "_")


# Strict except for tuples and paths, which are lists and text in TOML.
Names: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_names), Field(strict=False)]
"""A list of names, or one text with commas."""
Texts: TypeAlias = Annotated[tuple[str, ...], Field(strict=False)]
Folders: TypeAlias = Annotated[tuple[Annotated[Path, BeforeValidator(_path)], ...], Field(strict=False)]
# The system's limits are signed 64-bit integers.
Bytes: TypeAlias = Annotated[int, BeforeValidator(_bytes), Field(gt=0, le=2**62)]
"""A size in bytes, or a text such as `2 GiB`."""
Memory: TypeAlias = Annotated[int, BeforeValidator(_bytes), Field(ge=64 * 2**20, le=2**62)]
"""A size that Python itself needs at least."""
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=366 * 24 * 3600, allow_inf_nan=False)]
"""A duration of at most a year."""
Keys: TypeAlias = Annotated[str, BeforeValidator(_key_names)]
"""Textual key names separated by commas, or a list of them."""


TrustState: TypeAlias = Literal["nothing", "untrusted", "changed", "trusted"]
"""*changed*: a file of the folder differs from the trusted one; *nothing*: no file needs trust."""


@dataclass(frozen=True)
class Origin:
    """Origin of a value: a file, an environment variable, or neither for a default."""

    file: str | None = None
    line: int | None = None
    variable: str | None = None

    def __str__(self) -> str:
        """Return `FILE:LINE`, `FILE`, the name of the variable, or `default`."""
        if self.file and self.line:
            return f"{self.file}:{self.line}"
        return self.file or self.variable or "default"

    def problem(self, message: str, fix: str = "", severity: Literal["error", "warning"] = "error") -> Problem:
        """Build a problem of the value that was set here."""
        if self.variable:
            message = f"{self.variable}: {message}"
        return Problem(message=message, fix=fix, severity=severity, file=self.file, line=self.line)


@dataclass(frozen=True)
class Unused:
    """A value in a file that has no effect."""

    key: str
    value: object
    origin: Origin
    reason: Literal["untrusted", "unknown", "ignored", "withheld"]
    """*withheld*: the folder could send it elsewhere."""


@dataclass(frozen=True)
class Loaded:
    """Origins of the settings, and values without effect."""

    origins: Mapping[str, Origin]
    unused: tuple[Unused, ...] = ()
    blocked: Problem | None = None
    """Why no tool may run: a part of the configuration that limits tools can't be used. Empty if tools may run."""
    model_blocked: Problem | None = None
    """Why no model may be used: its address is unknown. Empty if models may be used."""
    base_url_model: str | None = None
    """Name of the model that `model.base_url` was set for, `provider:model`; None for any model."""
    blocked_servers: Mapping[str, Problem] = field(default_factory=dict)
    """Why MCP servers may not be used, by name: a setting that limits them is wrong."""
    folder_file: str | None = None
    """The `pegboard.toml` of the working directory, if it is trusted."""
    trust: TrustState = "nothing"
    """Whether the user trusts the files of the working directory."""
    packs_of_variables: frozenset[str] = frozenset()
    """Names of packs that only environment variables configure, as they are in the variables."""


class Section(BaseModel):
    """A table of the file: unknown keys are forbidden, types are not converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class PacksSettings(Section):
    """`[packs]`: folders of packs, and the config of each pack in `[packs.NAME]`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, dict[str, object]]

    folders: Folders = ()
    """Additional folders of packs, absolute."""

    _of_variables: Mapping[str, str] = PrivateAttr(default_factory=dict)
    """Names of packs that only environment variables configure, by `variable_name`."""

    def of(self, pack: str) -> Mapping[str, object]:
        """Return the config of one pack, as parsed; empty if it has none."""
        configs = self.__pydantic_extra__
        name = pack if pack in configs else self._of_variables.get(variable_name(pack), pack)
        return MappingProxyType(configs.get(name, {}))

    def with_variables(self, names: frozenset[str]) -> Self:
        """Return these settings with the names of packs that only environment variables configure."""
        if not names:
            return self
        copy = self.model_copy()
        copy._of_variables = {variable_name(name): name for name in names}  # noqa: SLF001 - the copy is of this class
        return copy

    def secrets(self, pack: str) -> tuple[str, ...]:
        """Return the secrets that a pack may read in addition to those that its file declares."""
        listed = _names(self.of(pack).get("secrets"))
        names = (name.strip() for name in listed if isinstance(name, str)) if isinstance(listed, list) else ()
        return tuple(filter(None, names))


class ToolsSettings(Section):
    """`[tools]`: tools that may run, and their limits."""

    allow: Names | None = None
    """Patterns of the tools that may be called, such as `fs.*`; an empty list allows none, null all."""
    timeout: Seconds = 8.0
    """Seconds that a call may take, unless the tool or the caller sets a timeout."""
    timeouts: dict[str, Seconds] = Field(default_factory=dict)
    """Seconds that calls of some tools may take: pattern → seconds."""
    memory_limit: Memory = 2 * 2**30
    """Memory of one worker process, in bytes or as a text such as `2 GiB`."""
    result_limit: Bytes = 1_000_000
    """Bytes of a result's JSON that are passed on, or a text such as `1 MB`; the rest is stored on disk."""
    log_limit: Bytes = 10_000_000
    """Bytes of one call's output that are kept, or a text such as `10 MB`."""
    workers: Annotated[int, Field(gt=0, le=1000)] | None = None
    """Number of calls that run concurrently; null depends on the number of processors."""
    environment: Names = ()
    """Names of additional environment variables that are passed to tools."""


class ModelSettings(Section):
    """`[model]`: the language model."""

    name: str | None = None
    """The model, as `provider:model`."""
    base_url: str | None = None
    """URL of an OpenAI-compatible server."""
    text_calls: bool = False
    """Whether messages of this model that consist only of calls written as text are run as calls."""


class AskSettings(Section):
    """`[ask]`: limits for one question."""

    steps: Annotated[int, Field(ge=2, le=1000)] = 20
    """Turns of the model for one question; the last one has no tools."""
    tokens: Annotated[int, Field(gt=0)] = 1_000_000
    """Tokens read and written for one question; one more turn without tools follows."""
    seconds: Seconds = 600.0
    """Seconds for one question; one more turn without tools follows."""
    result_limit: Annotated[Bytes, Field(ge=1000)] = 50_000
    """Bytes of a result that the model gets in one message, or a text such as `50 kB`; it can read the rest."""
    turn_bytes: Annotated[Bytes, Field(ge=1000)] = 4_000_000
    """Bytes of the text, thinking and arguments of one turn; the connection is closed at the limit."""
    turn_calls: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Calls that one turn may propose; if it proposes more, none runs."""
    parallel: bool = False
    """Whether adjacent read-only calls of one turn run concurrently."""
    cache: bool = True
    """Whether results of tools with `cache_seconds` are reused within a session."""


class ScriptsSettings(Section):
    """`[scripts]`: limits of a script, and whether models may write scripts."""

    offer: bool = False
    """Whether models and MCP clients are offered the tool `script.run`."""
    seconds: Seconds = 60.0
    """Seconds that a script may take."""
    memory: Annotated[Bytes, Field(ge=128 * 2**20)] = 512 * 2**20
    """Memory of a script's process, in bytes or as a text such as `512 MiB`."""


class BatchSettings(Section):
    """`[batch]`: where `pegboard batch` runs calls."""

    engine: str | None = None
    """Engine of the calls: `embedded` or `dask://HOST:PORT`. A folder's `pegboard.toml` can't set it."""


class McpOAuth(Section):
    """`[mcp.servers.NAME.oauth]`: how Pegboard identifies itself when the user logs in to a server.

    Only servers that don't let clients register themselves need it.
    """

    client_id: str | None = None
    """Identifier that the server's operator issued, or the HTTPS address of a client metadata document."""
    client_secret: str | None = None
    """The secret of that identifier, as `${NAME}`."""
    redirect_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port of the loopback address that the browser returns to; any free one by default."""


class McpServer(Section):
    """`[mcp.servers.NAME]`: a server that a command starts, or that is reached by its URL."""

    command: str | None = None
    """The program to start."""
    args: Texts = ()
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables of the process; `${NAME}` in a value is replaced by the secret NAME."""
    cwd: str | None = None
    """Working directory of the process, relative to the file that sets it."""
    url: str | None = None
    """The address of its streamable HTTP endpoint."""
    headers: dict[str, str] = Field(default_factory=dict)
    """HTTP headers of every request; `${NAME}` in a value is replaced by the secret NAME."""
    timeout: Seconds = 60.0
    """Seconds that connecting, and one call, may take."""
    enabled: bool = True
    """Whether to connect."""
    tools: Names | None = None
    """Patterns of the server's own tool names that are offered; null offers all."""
    trusted: bool = False
    """Whether the server's annotations count, such as `readOnlyHint`."""
    protocol: Literal["2025-11-25"] | None = None
    """The newest protocol version to use, for a server that asks as only older versions allow; None for any."""
    roots: Texts | None = None
    """Folders to report to the server as roots, relative to the file; None for the working directory."""
    oauth: McpOAuth = McpOAuth.model_construct()


class McpSettings(Section):
    """`[mcp]`: servers whose tools are listed with the local ones."""

    servers: dict[str, McpServer] = Field(default_factory=dict)
    """The servers: name → how to connect."""


class HistorySettings(Section):
    """`[history]`: the record of calls."""

    size_limit: Annotated[Bytes, Field(ge=1_000_000)] = 500_000_000
    """Bytes of recorded calls and results, or a text such as `2 GB`; the oldest unpinned calls are removed first."""


class BrakeSettings(Section):
    """`[brake]`: calls of MCP clients and watched agents that await approval."""

    wait: Annotated[float, Field(ge=0, le=24 * 3600, allow_inf_nan=False)] = 0.0
    """Seconds until a call that needs approval is rejected while no app is open that shows it."""


class UiSettings(Section):
    """`[ui]`: appearance and keys of the interface."""

    theme: str = Appearance.theme
    """Name of the theme, a built-in or your own one."""
    vim_keys: bool = Appearance.vim_keys
    """Whether j, k, g and G move in lists; then only `/` filters."""
    unfold: Literal["never", "failed", "always"] = "never"
    """Which finished calls of a chat are shown in full; others are collapsed to one line."""
    animations: bool = Appearance.animations
    """Whether scrolling and changes of the layout are animated."""
    focus: Literal["form", "result"] = "form"
    """Where the focus is after a tool has run."""


class Settings(Section):
    """All settings.

    The defaults are constructed without validation, so that no validator is built while nothing is configured.
    """

    packs: PacksSettings = PacksSettings.model_construct()
    tools: ToolsSettings = ToolsSettings.model_construct()
    model: ModelSettings = ModelSettings.model_construct()
    ask: AskSettings = AskSettings.model_construct()
    scripts: ScriptsSettings = ScriptsSettings.model_construct()
    batch: BatchSettings = BatchSettings.model_construct()
    mcp: McpSettings = McpSettings.model_construct()
    history: HistorySettings = HistorySettings.model_construct()
    brake: BrakeSettings = BrakeSettings.model_construct()
    keys: dict[str, Keys] = Field(default_factory=dict)
    """Keys of commands: command id → its keys, separated by commas."""
    ui: UiSettings = UiSettings.model_construct()

    _loaded: Loaded = PrivateAttr(default_factory=lambda: Loaded({}))

    @property
    def appearance(self) -> Appearance:
        """The part that the first frame needs."""
        return Appearance(self.ui.theme, self.ui.vim_keys, self.ui.animations, self.keys)

    @property
    def loaded(self) -> Loaded:
        """Origins of the values, and values without effect."""
        return self._loaded

    def with_loaded(self, loaded: Loaded) -> Self:
        """Return a copy of these settings with origins."""
        packs = self.packs.with_variables(loaded.packs_of_variables)
        copy = self.model_copy(update={} if packs is self.packs else {"packs": packs})
        copy._loaded = loaded  # noqa: SLF001 - the copy is of this class
        return copy

    def leaves(self) -> Iterator[tuple[tuple[str, ...], object]]:
        """Yield every value with its keys, in order; an empty table is a value."""
        # Not by recursion: tables may be nested deeper than Python's stack.
        waiting: list[tuple[tuple[str, ...], object]] = [((), self)]
        while waiting:
            path, value = waiting.pop()
            # `dict(value)` would call the field `keys` as a method.
            inner = {name: item for name, item in value} if isinstance(value, BaseModel) else value  # noqa: C416
            if isinstance(inner, dict) and inner:
                waiting += [((*path, key), inner[key]) for key in reversed(inner)]
            else:
                yield path, inner

    def origin(self, key: str) -> str:
        """Return the origin of a value: `FILE:LINE`, the name of an environment variable, or `default`.

        Args:
            key: Dotted, such as `tools.timeout`; a list has one origin.
        """
        return str(self._loaded.origins.get(key, Origin()))

    def warning(self, key: str, message: str, fix: str = "") -> Problem:
        """Build a warning about a value, with the file and line that set it.

        Args:
            key: Dotted, such as `tools.timeout`.
            message: The problem.
            fix: What to do about it.
        """
        return self._loaded.origins.get(key, Origin()).problem(message, fix, "warning")

    def is_from_folder(self, key: str) -> bool:
        """Return whether the `pegboard.toml` of the working directory sets a value."""
        origin = self._loaded.origins.get(key)
        return origin is not None and origin.file is not None and origin.file == self._loaded.folder_file

    def is_from_folder_below(self, key: str) -> bool:
        """Return whether the `pegboard.toml` of the working directory sets a value of a table."""
        return any(self.is_from_folder(name) for name in self._loaded.origins if name.startswith(f"{key}."))

    def base_url_of(self, model: str) -> str | None:
        """Return the configured base URL of a model: only a model of the provider it was set for gets it.

        Otherwise the key of one provider would go to the host of another.

        Args:
            model: `provider:model`.
        """
        meant = self._loaded.base_url_model or self.model.name
        return self.model.base_url if meant is None or provider_of(meant) == provider_of(model) else None

    def is_base_url_from_folder(self, base_url: str | None) -> bool:
        """Return whether a base URL is the one that the working directory's `pegboard.toml` sets.

        The user's keys are not meant for that host, only those of the folder's own `.env`.
        """
        configured = self.model.base_url
        return (
            base_url is not None
            and configured is not None
            and self.is_from_folder("model.base_url")
            and base_url.rstrip("/") == configured.rstrip("/")
        )

    def packs_of_folder(self) -> frozenset[str]:
        """Return the packs that the working directory's `pegboard.toml` configures.

        Such a config may name another host, so these packs get secrets only from the folder's own `.env`.
        """
        keys = (key.split(".") for key in self._loaded.origins if key.startswith("packs.") and self.is_from_folder(key))
        return frozenset(pack for _, pack, *inner in keys if inner)


def provider_of(model: str) -> str:
    """Return the provider in a model's name, `provider:model`."""
    return model.partition(":")[0].strip()
