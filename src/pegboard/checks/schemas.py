"""The schemas that tools had so far, by pack, in the state folder.

The baseline of a tool is the version that its callers rely on. It follows compatible changes; after a breaking change
it stays until the user accepts the change.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, TypeVar

from pydantic import Field

from pegboard import storage
from pegboard.checks.schema_changes import SchemaChange, schema_changes
from pegboard.checks.schema_parts import bare
from pegboard.config.files import read_bytes
from pegboard.data.pointer import pointer
from pegboard.models import DataModel, JsonObject, McpHandler, PackHandler, Problem, ToolSpec
from pegboard.presets.files import file_name

_MOST_VERSIONS: Final = 30
_T = TypeVar("_T")


class SchemaVersion(DataModel):
    """The schemas of a tool from one moment on."""

    at: datetime
    """When Pegboard first saw it, UTC."""
    digest: str
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    aliases: tuple[str, ...] = ()
    """Other names of the tool."""
    parameter_aliases: dict[str, str] = Field(default_factory=dict)
    """Other names of parameters: alias → parameter."""

    @classmethod
    def of(cls, spec: ToolSpec, at: datetime, digest: str = "") -> SchemaVersion:
        """Return the current version of a tool."""
        return cls(
            at=at,
            digest=digest,
            input_schema=spec.input_schema,
            output_schema=spec.output_schema,
            aliases=spec.aliases,
            parameter_aliases=spec.parameter_aliases,
        )


class SeenTool(DataModel):
    """The versions of one tool."""

    baseline: str
    """Digest of the version that callers rely on."""
    versions: tuple[SchemaVersion, ...]
    """The versions, oldest first."""

    @property
    def base(self) -> SchemaVersion:
        """The version that callers rely on."""
        return next((one for one in reversed(self.versions) if one.digest == self.baseline), self.versions[0])

    def at(self, moment: datetime) -> SchemaVersion | None:
        """Return the version in effect at a moment, or None if the tool wasn't known then."""
        return next((one for one in reversed(self.versions) if one.at <= moment), None)


class SeenPack(DataModel):
    """The tools of one pack file or server."""

    version: Literal[1] = 1
    origin: str
    tools: dict[str, SeenTool] = Field(default_factory=dict)


def origin_of(spec: ToolSpec) -> str | None:
    """Return where a tool comes from: the path of its pack, or `mcp:` and the server; None for Pegboard's own."""
    match spec.handler:
        case PackHandler(file=file):
            return os.path.realpath(file)
        case McpHandler(server=server, saved=True):
            return f"mcp:{server}"
        case _:
            return None


class SeenSchemas:
    """The versions of all tools. Every method blocks.

    Args:
        folder: Its folder; created when needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cache: dict[Path, tuple[object, SeenPack]] = {}
        self._digests: dict[str, tuple[ToolSpec, str]] = {}

    def of(self, spec: ToolSpec) -> SeenTool | None:
        """Return the versions of a tool, or None if it was never seen, not even by a name that is an alias now."""
        origin = origin_of(spec)
        return None if origin is None else named(self._read(self._file(spec.pack, origin), origin).tools, spec)

    def digest(self, spec: ToolSpec) -> str:
        """Return the digest of the schemas of a tool, without their texts, and of its aliases."""
        kept = self._digests.get(spec.name)
        if kept is None or (kept[0] is not spec and kept[0] != spec):
            kept = self._digests[spec.name] = (spec, _digest(spec))
        return kept[1]

    def packs(self) -> Iterator[SeenPack]:
        """Yield every pack that was seen."""
        try:
            files = sorted(self._folder.glob("*.json"))
        except OSError:
            return
        for file in files:
            pack = self._load(file)
            if pack is not None:
                yield pack

    def note(self, specs: Iterable[ToolSpec]) -> None:
        """Store the current schemas of tools, where they are new; move baselines along compatible changes.

        Raises:
            OSError: They can't be written.
        """
        at = datetime.now(UTC)
        for (pack, origin), tools in _by_pack(specs).items():
            file = self._file(pack, origin)
            known = self._read(file, origin)
            if not self._is_current(known, tools):
                with self._locked():
                    self._write(file, self._noted(self._read(file, origin), tools, at))

    def accept(self, specs: Iterable[ToolSpec]) -> None:
        """Make the current schemas the baseline.

        Raises:
            OSError: They can't be written.
        """
        at = datetime.now(UTC)
        for (pack, origin), tools in _by_pack(specs).items():
            file = self._file(pack, origin)
            with self._locked():
                known = self._noted(self._read(file, origin), tools, at)
                accepted = {
                    spec.name: known.tools[spec.name].model_copy(update={"baseline": self.digest(spec)})
                    for spec in tools
                }
                self._write(file, known.model_copy(update={"tools": {**known.tools, **accepted}}))

    def forget(self, origin: str, tools: Iterable[str]) -> None:
        """Remove tools that no longer exist.

        Raises:
            OSError: The rest can't be written.
        """
        gone = set(tools)
        for file in sorted(self._folder.glob("*.json")):
            with self._locked():
                known = self._load(file)
                if known is not None and known.origin == origin:
                    kept = {name: tool for name, tool in known.tools.items() if name not in gone}
                    self._write(file, known.model_copy(update={"tools": kept}))

    def _is_current(self, known: SeenPack, specs: list[ToolSpec]) -> bool:
        return all(
            (tool := known.tools.get(spec.name)) is not None and tool.versions[-1].digest == self.digest(spec)
            for spec in specs
        )

    def _noted(self, known: SeenPack, specs: list[ToolSpec], at: datetime) -> SeenPack:
        tools: dict[str, SeenTool] = dict(known.tools)
        for spec in specs:
            digest = self.digest(spec)
            version = SchemaVersion.of(spec, at, digest)
            seen = named(tools, spec)
            if seen is None:
                tools[spec.name] = SeenTool(baseline=digest, versions=(version,))
                continue
            tools[spec.name] = seen
            if seen.versions[-1].digest != digest:
                base = seen.base
                kept = (*seen.versions, version)[-_MOST_VERSIONS:]
                if base not in kept:
                    kept = (base, *kept[1:])
                breaks = any(change.breaking for change in changes_since(base, spec))
                tools[spec.name] = SeenTool(baseline=base.digest if breaks else digest, versions=kept)
        return known.model_copy(update={"tools": tools})

    def _file(self, pack: str, origin: str) -> Path:
        mark = sha256(os.fsencode(origin)).hexdigest()[:12]
        return self._folder / f"{file_name(pack)[:80]}-{mark}.json"

    def _read(self, file: Path, origin: str) -> SeenPack:
        return self._load(file) or SeenPack(origin=origin)

    def _load(self, file: Path) -> SeenPack | None:
        """Return the content of a file, or None if it is missing or damaged: then the tools count as new."""
        try:
            status = file.stat()
        except OSError:
            return None
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        kept = self._cache.get(file)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        raw = read_bytes(file)
        if raw is None or isinstance(raw, Problem):
            return None
        try:
            pack = SeenPack.model_validate(json.loads(raw))
        except (ValueError, RecursionError):
            return None
        self._cache[file] = (stamp, pack)
        return pack

    def _write(self, file: Path, pack: SeenPack) -> None:
        # Unlike pydantic's, this JSON can have halves of surrogate pairs, which servers may send.
        try:
            text = json.dumps(pack.model_dump(by_alias=True), default=str)
        except ValueError as error:
            raise OSError(str(error)) from error
        storage.write(file, text.encode(), durable=False)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        storage.make_folder(self._folder)
        lock = storage.open_lock(self._folder / "lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _by_pack(specs: Iterable[ToolSpec]) -> dict[tuple[str, str], list[ToolSpec]]:
    """Return tools by pack and origin, without those of Pegboard."""
    packs: dict[tuple[str, str], list[ToolSpec]] = {}
    for spec in specs:
        origin = origin_of(spec)
        if origin is not None:
            packs.setdefault((spec.pack, origin), []).append(spec)
    return packs


def _digest(spec: ToolSpec) -> str:
    try:
        names = [[*spec.aliases], spec.parameter_aliases] if spec.aliases or spec.parameter_aliases else []
        text = json.dumps([bare(spec.input_schema), bare(spec.output_schema), *names], sort_keys=True)
    except (RecursionError, ValueError):  # it is nested too deeply, or has a number with too many digits
        text = "not comparable"
    return sha256(text.encode()).hexdigest()[:24]


def named(tools: Mapping[str, _T], spec: ToolSpec) -> _T | None:
    """Return the entry of a tool, which may have had another name that is an alias now."""
    return next((tools[name] for name in (spec.name, *spec.aliases) if name in tools), None)


def changes_since(version: SchemaVersion, spec: ToolSpec) -> tuple[SchemaChange, ...]:
    """Return the changes of names, arguments and results between a version of a tool and the current one.

    A parameter whose earlier name is an alias now was not removed.
    """
    return (
        *_lost_names(version, spec),
        *schema_changes("input", with_current_names(version.input_schema, spec.parameter_aliases), spec.input_schema),
        *schema_changes("output", version.output_schema, spec.output_schema),
    )


def _lost_names(version: SchemaVersion, spec: ToolSpec) -> Iterator[SchemaChange]:
    properties = spec.input_schema.get("properties")
    known = {*(properties if isinstance(properties, dict) else ()), *spec.parameter_aliases}
    lost = [
        ("", f"the name `{name}` was removed") for name in version.aliases if name not in {spec.name, *spec.aliases}
    ]
    for name, parameter in version.parameter_aliases.items():
        if name not in known:
            lost.append((pointer(name), f"`{name}`, another name of `{parameter}`, was removed"))
    yield from (SchemaChange(side="input", path=path, message=message, breaking=True) for path, message in lost)


def with_current_names(schema: JsonObject, names: Mapping[str, str]) -> JsonObject:
    """Return a schema of arguments in which parameters have their current names.

    Args:
        schema: The schema.
        names: Earlier name → current name.
    """
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return schema
    new = {name: names[name] for name in properties if name in names and names[name] not in properties}
    renamed: JsonObject = {**schema, "properties": {new.get(name, name): part for name, part in properties.items()}}
    if isinstance(required, list):
        renamed["required"] = [new.get(name, name) if isinstance(name, str) else name for name in required]
    return renamed
