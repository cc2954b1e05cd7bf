"""Compatibility of tools: current schemas against earlier ones and against recorded calls."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from heapq import merge
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

from pegboard.built_in import is_built_in
from pegboard.checks.comparable import is_comparable
from pegboard.checks.file import CheckError, Checks
from pegboard.checks.revision import PacksAtRevision, UnparsablePackError, repository_of, resolved
from pegboard.checks.schema_changes import SchemaChange, is_same
from pegboard.checks.schemas import (
    SchemaVersion,
    SeenPack,
    SeenSchemas,
    changes_since,
    named,
    origin_of,
    with_current_names,
)
from pegboard.data.pointer import pointer
from pegboard.errors import FormFaults
from pegboard.models import CallRecord, DataModel, Fault, McpHandler, PackHandler, ToolSpec
from pegboard.results.sizes import count
from pegboard.runtime import Runtime
from pegboard.storage import no_temporary_file

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d.*")
_MOST_CALLS: Final = 1000
"""Recorded calls of a tool that are validated, the newest ones."""
_MOST_SHOWN: Final = 50


class BrokenCall(DataModel):
    """A recorded call whose arguments were valid and no longer are."""

    id: str
    at: datetime
    reason: str
    """The first validation error as a clause; it may contain text of the tool."""


class ToolCompatibility(DataModel):
    """Comparison of one tool with an earlier version."""

    tool: str
    status: Literal["compatible", "breaking", "new", "removed"]
    since: str = ""
    """The earlier version: a time, or a git revision; empty if none is known."""
    changes: tuple[SchemaChange, ...] = ()
    calls: int = 0
    """Number of recorded calls that were validated."""
    broken: int = 0
    """Number of them that no longer validate."""
    broken_calls: tuple[BrokenCall, ...] = ()
    """The newest of these."""

    @property
    def summary(self) -> str:
        """One sentence without its full stop, the most important fact first; it may contain text of the tool."""
        if self.broken:
            reason = Counter(call.reason for call in self.broken_calls).most_common(1)[0][0]
            calls = count(self.calls, "recorded call")
            verb = "validates" if self.broken == 1 else "validate"
            return f"{self.broken:,} of {calls} no longer {verb}: {reason}"
        if self.status in {"removed", "new"}:
            return f"the tool {'was removed' if self.status == 'removed' else 'is new'}"
        breaking = [change for change in self.changes if change.breaking]
        if breaking:
            more = f", and {count(len(breaking) - 1, 'more breaking change')}" if len(breaking) > 1 else ""
            return f"{_sided(breaking[0])}{more}"
        return count(len(self.changes), "compatible change") if self.changes else "no change"


class Compatibility:
    """Compares the tools of a runtime with earlier versions.

    Args:
        runtime: The runtime, whose tools were scanned.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.seen = SeenSchemas(runtime.paths.schemas)

    def against_baseline(
        self, specs: Sequence[ToolSpec], *, removed: str | None = None
    ) -> tuple[ToolCompatibility, ...]:
        """Compare tools with the versions that callers rely on, and note the current ones; block.

        Args:
            specs: The tools.
            removed: Start of the names of the tools to report that no longer exist; none are reported if None.

        Raises:
            OSError: The current versions can't be written.
        """
        found = []
        before = {spec.name: self.seen.of(spec) for spec in specs}
        self.seen.note(specs)
        for spec in specs:
            known = before[spec.name]
            found.append(self._compare(spec, known.base if known is not None else None))
        return (*found, *(self._removed(removed) if removed is not None else ()))

    def changed(self, specs: Sequence[ToolSpec]) -> tuple[ToolCompatibility, ...]:
        """Note the current schemas, and return the tools whose change since the baseline breaks callers; block.

        Unlike `against_baseline`, it reads the history only for tools that changed. The current schema of a tool
        without recorded calls, checks and presets becomes the baseline, since nothing relies on the earlier one.

        Raises:
            OSError: The current versions can't be written.
        """
        specs = [spec for spec in specs if is_comparable(spec)]
        before = {spec.name: self.seen.of(spec) for spec in specs}
        self.seen.note(specs)
        found = []
        unused = []
        for spec in specs:
            known = before[spec.name]
            if known is None or known.baseline == self.seen.digest(spec):
                continue
            if any(map(self._is_used, (spec.name, *spec.aliases))):
                found.append(self._compare(spec, known.base))
            else:
                unused.append(spec)
        if unused:
            self.seen.accept(unused)
        return tuple(one for one in found if one.status == "breaking")

    def _is_used(self, tool: str) -> bool:
        """Return whether a recorded call, a check or a preset uses a tool."""
        if self._runtime.history.records(tool=tool, limit=1) or self._runtime.presets.list(tool):
            return True
        return any(check.tool == tool for check in Checks(self._runtime.paths).list(tool)[0])

    def accept(self, specs: Sequence[ToolSpec], found: Iterable[ToolCompatibility] = ()) -> None:
        """Make the current schemas of tools the baseline, and forget removed tools; block.

        Args:
            specs: The tools.
            found: A comparison with removed tools.

        Raises:
            OSError: The schemas can't be written.
        """
        self.seen.accept(specs)
        gone = {one.tool for one in found if one.status == "removed"}
        for pack in [*self.seen.packs()] if gone else ():
            if gone & pack.tools.keys() and not any(self._runtime.tools.get(name) for name in gone & pack.tools.keys()):
                self.seen.forget(pack.origin, gone)

    def at_date(
        self, specs: Sequence[ToolSpec], moment: datetime, *, removed: str | None = None
    ) -> tuple[ToolCompatibility, ...]:
        """Compare tools with the versions in effect at a moment; block.

        Args:
            specs: The tools; one that wasn't known then is new.
            moment: The moment.
            removed: Start of the names of the tools to report that were known then and no longer exist; none are
                reported if None.
        """
        found = []
        for spec in specs:
            known = self.seen.of(spec)
            version = known.at(moment) if known is not None else None
            found.append(_new(spec) if version is None else self._compare(spec, version))
        return (*found, *(self._removed(removed, moment) if removed is not None else ()))

    async def at_revision(
        self, specs: Sequence[ToolSpec], revision: str, *, removed: str | None = None
    ) -> tuple[ToolCompatibility, ...]:
        """Compare the tools of packs in a git repository with those of a commit.

        Tools that aren't in a repository are left out, unless all of them are.

        Args:
            specs: The tools.
            revision: A branch, a tag, or another name of a commit.
            removed: Start of the names of the tools to report that the commit has in addition: empty to report those of
                packs that no longer exist, too; none are reported if None.

        Raises:
            CheckError: No pack is in a repository, or the repository or the revision can't be read.
        """
        files: dict[str, list[ToolSpec]] = {}
        for spec in specs:
            if isinstance(spec.handler, PackHandler) and repository_of(spec.handler.file) is not None:
                files.setdefault(spec.handler.file, []).append(spec)
        try:
            copy = TemporaryDirectory(prefix="pegboard-")
        except OSError as error:
            raise CheckError(no_temporary_file("The packs were not compared", error)) from error
        with copy:
            packs = PacksAtRevision(self._runtime, revision, Path(copy.name))
            old = {file: await packs.tools(file) for file in files}
            lost = await self._removed_packs(packs) if removed == "" else []
        known = {name: version for tools in reversed([*old.values(), *lost]) for name, version in tools.items()}
        found: list[ToolCompatibility] = []
        for file, tools in files.items():
            for spec in tools:
                version = named(known, spec)
                found.append(
                    _new(spec)
                    if version is None
                    else await asyncio.to_thread(self._compare, spec, version, since=revision)
                )
            if len(tools) == sum(spec.file == file for spec in self._runtime.tools.all()):
                lost.append(old[file])
        if removed is not None:
            names = {name: None for tools in lost for name in tools if name.startswith(removed)}
            gone = filter(self._is_missing, names)
            found += [ToolCompatibility(tool=name, status="removed", since=revision) for name in gone]
        if not found and not (removed == "" and self.unread()):
            raise CheckError(_nothing_compared(specs, revision))
        return tuple(found)

    async def _removed_packs(self, packs: PacksAtRevision) -> list[dict[str, SchemaVersion]]:
        """Return the tools of each pack that the packs folders had, but that has no tools now."""
        present = {str(resolved(spec.file)) for spec in self._runtime.tools.all() if spec.file} | self._unread()
        found = []
        for folder in self._folders_in_repositories():
            for file in await packs.files(folder):
                if str(resolved(file)) not in present:
                    with suppress(UnparsablePackError):  # it had no tools
                        found.append(await packs.tools(file))
        return found

    def unread(self) -> list[str]:
        """Return the pack files in git repositories of which an error hides every tool."""
        known = {os.path.realpath(spec.file) for spec in self._runtime.tools.all() if spec.file}
        errors = (one for one in self._runtime.problems() if one.pack and one.file and one.severity == "error")
        files = dict.fromkeys(os.path.realpath(one.file) for one in errors if one.file)
        return [file for file in files if file not in known and repository_of(file) is not None]

    def _folders_in_repositories(self) -> list[Path]:
        """Return the packs folders in git repositories, even missing ones other than the user's own."""
        own = self._runtime.paths.packs
        folders = [folder for folder in self._runtime.folders if folder != own or os.path.isdir(folder)]  # noqa: PTH112 - pathlib may raise
        return [folder for folder in folders if repository_of(folder) is not None]

    async def since(
        self, specs: Sequence[ToolSpec], text: str, *, removed: str | None = None
    ) -> tuple[ToolCompatibility, ...]:
        """Compare tools with a date (`2026-07-31`, optionally with a time) or a git revision.

        Args:
            specs: The tools.
            text: The date or the revision.
            removed: Start of the names of the tools to report that existed then and no longer exist; none are reported
                if None.

        Raises:
            CheckError: The date is invalid, or the tools of the revision can't be read.
        """
        if not is_date(text):
            return await self.at_revision(specs, text, removed=removed)
        try:
            moment = datetime.fromisoformat(text)
            moment = (moment if moment.tzinfo else moment.astimezone()).astimezone(UTC)
        except (ValueError, OverflowError):  # also if its time in UTC has no date
            raise CheckError(
                f"`{text}` is not a date that can be used. Write it as 2026-07-31 or 2026-07-31T12:00."
            ) from None
        return await asyncio.to_thread(self.at_date, specs, moment, removed=removed)

    def _compare(self, spec: ToolSpec, version: SchemaVersion | None, *, since: str = "") -> ToolCompatibility:
        """Compare a tool with one version of it and with the recorded calls."""
        changes = changes_since(version, spec) if version is not None else ()
        calls, broken = self._calls(spec, version, changes)
        breaks = bool(broken) or any(change.breaking for change in changes)
        if version is not None and not since:
            since = version.at.isoformat(timespec="seconds")
        return ToolCompatibility(
            tool=spec.name,
            status="breaking" if breaks else "compatible",
            since=since,
            changes=changes,
            calls=calls,
            broken=len(broken),
            broken_calls=tuple(broken[:_MOST_SHOWN]),
        )

    def _calls(
        self, spec: ToolSpec, version: SchemaVersion | None, changes: Sequence[SchemaChange]
    ) -> tuple[int, list[BrokenCall]]:
        """Return the number of recorded calls with valid arguments, and those that no longer validate."""
        from pegboard.schema.arguments import by_parameter, prepare
        from pegboard.schema.validation import validator

        names = spec.parameter_aliases
        before = with_current_names(version.input_schema, names) if version is not None else None
        has_same_arguments = before is not None and is_same(before, spec.input_schema)
        old = validator(before) if before is not None and not has_same_arguments else None
        clauses = {change.path: change.message for change in changes if change.breaking and change.side == "input"}
        valid, broken = 0, []
        for record in self._records(spec):
            args = by_parameter(record.args, names)
            if not _was_accepted(record) or (old is not None and old.faults(args)):
                continue
            valid += 1
            if has_same_arguments:
                continue
            try:
                prepare(spec, args)
            except FormFaults as faults:
                reason = _reason(faults.faults[0], clauses)
                broken.append(BrokenCall(id=record.id, at=record.at, reason=reason))
        return valid, broken

    def _records(self, spec: ToolSpec) -> Iterable[CallRecord]:
        """Return the latest recorded calls of a tool, newest first, also those by a name that is an alias now."""
        names = (spec.name, *spec.aliases)
        found = [self._runtime.history.records(tool=name, limit=_MOST_CALLS) for name in names]
        return islice(merge(*found, key=lambda record: record.at, reverse=True), _MOST_CALLS)

    def _removed(self, start: str, moment: datetime | None = None) -> Iterable[ToolCompatibility]:
        """Return the tools that were seen and no longer exist; packs that can't be read now are left out.

        Args:
            start: Start of their names.
            moment: Leave out tools that were first seen after it.
        """
        unread = self._unread()
        current = {origin for spec in self._runtime.tools.all() if (origin := origin_of(spec)) is not None}
        servers = self._runtime.servers
        usable = [servers.config(one.name) for one in servers.all() if one.state.is_usable]  # perhaps without a tool
        current |= {f"mcp:{one.name}" for one in usable if one is not None and one.saved}
        folders = {os.path.realpath(folder) for folder in self._runtime.folders}
        for pack in self.seen.packs():
            is_file = not pack.origin.startswith("mcp:")
            was_scanned = os.path.dirname(pack.origin) in folders if is_file else False  # noqa: PTH120 - compares text
            if pack.origin in current or (was_scanned and pack.origin not in unread):
                yield from (one for one in self._gone(pack, moment) if one.tool.startswith(start))

    def _unread(self) -> set[str]:
        """Return the files with problems, which may have tools that aren't known."""
        return {os.path.realpath(problem.file) for problem in self._runtime.problems() if problem.file}

    def _gone(self, pack: SeenPack, moment: datetime | None) -> Iterable[ToolCompatibility]:
        for name, tool in pack.tools.items():
            version = tool.base if moment is None else tool.at(moment)
            if version is not None and self._is_missing(name):
                yield ToolCompatibility(tool=name, status="removed", since=version.at.isoformat(timespec="seconds"))

    def _is_missing(self, name: str) -> bool:
        """Return whether no tool has this name, not even one that isn't allowed."""
        why = self._runtime.tools.why_not(name)
        return why is not None and why.error is not None and why.error.detail != "not_allowed"


def is_date(text: str) -> bool:
    """Return whether a text names a date rather than a git revision."""
    return _DATE.fullmatch(text) is not None


def _nothing_compared(specs: Sequence[ToolSpec], revision: str) -> str:
    """Return why none of these tools can be compared with a git revision, and what to do."""
    handlers = [spec.handler for spec in specs]
    files = {one.file for one in handlers if isinstance(one, PackHandler) and not is_built_in(one.file)}
    folders = sorted({str(Path(file).parent) for file in files})
    if specs and all(isinstance(one, McpHandler) for one in handlers):
        why = "a revision has no schemas of MCP servers. Compare with those that Pegboard saw: omit --since"
    elif not folders:
        why = "no tool is in a pack of yours. Name the folder of your packs with --packs"
    else:
        verb = "is" if len(folders) == 1 else "are"
        why = f"{', '.join(folders)} {verb} not in a git repository. Use a clone with its .git folder"
    return f"Nothing was compared with {revision} because {why}, or compare with a date such as 2026-07-31."


def _was_accepted(record: CallRecord) -> bool:
    return record.error is None or record.error.code == "execution_error"


def _reason(fault: Fault, clauses: dict[str, str]) -> str:
    """Return a validation error as a clause, in the words of the change that caused it if there is one."""
    path = fault.path
    general = pointer(*("*" if step.isdecimal() else step for step in path.split("/")[1:]))
    found = clauses.get(path) or clauses.get(general)
    return found or (f"`{fault.where}` {fault.message}" if fault.where else f"the arguments {fault.message}")


def _new(spec: ToolSpec) -> ToolCompatibility:
    return ToolCompatibility(tool=spec.name, status="new")


def _sided(change: SchemaChange) -> str:
    return change.message if change.side == "input" else f"in results, {change.message}"
