"""Run checks: one call through the gateway each, compared with the expectations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from typing import Final, TypeAlias

from pydantic import JsonValue

from pegboard.checks.differences import MOST, differences, named, shortened
from pegboard.checks.file import CheckError, Checks
from pegboard.checks.model import Check, CheckReport, CheckStatus, Expectations, FailedExpectation
from pegboard.config.trust import REVIEW
from pegboard.errors import FormFaults
from pegboard.models import Problem, ToolCall, ToolResult
from pegboard.results.images import as_objects
from pegboard.runtime import Runtime

CallEngine: TypeAlias = Callable[[ToolCall], Awaitable[tuple[ToolCall, ToolResult]]]
"""Runs one call; returns it as it was made, with its result. `Runtime.result` is the embedded engine. It raises
`CheckError` if it can't run the call."""

_UNCALLED: Final = frozenset(
    {"denied", "dependency_missing", "import_failed", "needs_login", "not_allowed", "not_connected"}
)
"""Details of errors of tools that couldn't run; they don't show that a call fails as expected."""
_LARGEST: Final = 50_000_000
"""Bytes of the data that expectations about data read."""


class CheckRunner:
    """Runs checks, one after the other.

    Args:
        runtime: The runtime whose tools are checked.
        checks: The files of the checks.
        engine: Runs the calls; the runtime's gateway by default.
        unattended: Whether no person started the run, so that only read-only tools run, and those that a rule allows.
    """

    def __init__(
        self, runtime: Runtime, checks: Checks, engine: CallEngine | None = None, *, unattended: bool = False
    ) -> None:
        self._unattended = unattended
        self._runtime = runtime
        self._checks = checks
        self._engine: CallEngine = engine or runtime.result

    async def run(self, checks: Sequence[Check], *, update: bool = False) -> AsyncGenerator[CheckReport]:
        """Run checks and yield a report on each.

        Args:
            checks: The checks.
            update: Whether to store new data as the snapshot if that is all that differs.
        """
        runnable: dict[str, bool] = {}
        for check in checks:
            folder = check.file.rpartition("/")[0]
            if folder not in runnable:
                runnable[folder] = await asyncio.to_thread(self._checks.is_runnable, check)
            if runnable[folder]:
                yield await self._run(check, update=update)
            else:
                message = f"The check `{check.name}` did not run because this folder is not trusted."
                yield _unable(check, Problem(message=message, fix=REVIEW, file=check.file))

    async def _run(self, check: Check, *, update: bool) -> CheckReport:
        call = ToolCall(name=check.tool, args=check.arguments, source="check", unattended=self._unattended)
        if self._unattended and (reason := await asyncio.to_thread(self._why_skipped, call)):
            fix = "Run it with `pegboard check run`, or add a rule that allows it."
            return _unable(check, Problem(message=reason, fix=fix, severity="warning"), status="skipped")
        try:
            call, result = await self._engine(call)
        except CheckError as error:
            return _unable(check, Problem(message=str(error), file=check.file))
        if (uncalled := self._why_uncalled(check, result)) is not None:
            return _unable(check, uncalled, call, result)
        found: list[FailedExpectation] = [*_of_outcome(check.expect, result)]
        stored = False
        if all(one.expectation == "max_seconds" for one in found):  # otherwise the data is that of another outcome
            try:
                data = await asyncio.to_thread(_whole, result)
            except (OSError, ValueError) as error:
                message = f"The whole result of `{check.name}` can't be compared: {error}."
                return _unable(check, Problem(message=message, file=check.file), call, result)
            found += await self._of_data(check, data)
            changed = await asyncio.to_thread(_of_snapshot, check.expect, data)
            if changed and update and not found:
                try:
                    await asyncio.to_thread(self._checks.store_snapshot, check, data)
                except CheckError as error:
                    return _unable(check, Problem(message=str(error), file=check.file), call, result)
                stored = True
            else:
                found += changed
        return CheckReport(
            check=check.name,
            tool=check.tool,
            file=check.file,
            status="failed" if found else "passed",
            differences=tuple(found),
            call=call.id,
            duration_ms=result.meta.duration_ms,
            updated=stored,
        )

    def _why_uncalled(self, check: Check, result: ToolResult) -> Problem | None:
        """Return why the tool of a check could not run; None if it ran or the check names the error it expects."""
        error = result.error
        if error is None or error.said or check.expect.error is not None:
            return None
        if error.code == "tool_not_found" and error.detail is None:
            if (problem := problem_of_pack(self._runtime, check.tool)) is not None:
                return problem
        elif error.detail not in _UNCALLED:
            return None
        return Problem(message=error.message, file=check.file) if check.expect.outcome == "failed" else None

    def _why_skipped(self, call: ToolCall) -> str:
        """Return why the rules don't allow a call without a person; empty if they allow it. Reads the rules."""
        spec = self._runtime.tools.get(call.name)
        if spec is None:
            return ""
        try:
            prepared = self._runtime.tools.prepare(spec, call.args)
        except FormFaults:  # the gateway rejects the call before the rules apply
            return ""
        verdict = self._runtime.rules.verdict(call.model_copy(update={"name": spec.name, "args": prepared}))
        return "" if verdict is None or verdict.action == "allow" else verdict.reason

    async def _of_data(self, check: Check, data: JsonValue) -> list[FailedExpectation]:
        """Return the failed expectations about the data, except the snapshot."""
        expect = check.expect
        found: list[FailedExpectation] = []
        if expect.result_schema is not None:
            found += await asyncio.to_thread(lambda: [*self._of_schema(check, data)])
        if expect.has("exact"):
            found += await asyncio.to_thread(differences, "exact", expect.exact, data)
        if expect.has("subset"):
            found += await asyncio.to_thread(differences, "subset", expect.subset, data, is_subset=True)
        for number, program in enumerate(expect.jq):
            found += await self._of_jq(number, program, data)
        return found

    def _of_schema(self, check: Check, data: JsonValue) -> Iterator[FailedExpectation]:
        from pegboard.schema.soundness import REFERENCES
        from pegboard.schema.validation import validator

        schema: JsonValue = check.expect.result_schema
        is_own = schema != "output"
        if not is_own:
            spec = self._runtime.tools.get(check.tool)
            schema = spec.output_schema if spec is not None else None
            if schema is None:
                yield FailedExpectation(expectation="schema", path="", message=f"{check.tool} has no output schema.")
                return
        checker = validator(schema)
        for flaw in checker.flaws:
            if flaw.path.rpartition("/")[2] in REFERENCES:
                why = f"at `{flaw.path}`, {flaw.message}"
            elif is_own:  # a misspelled type would accept any data; tools of others may have such schemas
                why = f"`{flaw.path}` {flaw.message}"
            else:
                continue
            message = f"The schema can't be applied: {why}."
            yield FailedExpectation(expectation="schema", path="", message=message)
        faults = checker.faults(data)
        if faults and (described := as_objects(data)) is not data:  # images are saved, and only their lines are kept
            faults = checker.faults(described)
        for fault in faults[:MOST]:
            message = f"{named(fault.path)} {fault.message}."
            yield FailedExpectation(expectation="schema", path=fault.path, message=message)

    async def _of_jq(self, number: int, program: str, data: JsonValue) -> list[FailedExpectation]:
        result = await self._runtime.queries.jq(program, data)
        path = f"/jq/{number}"
        if result.error is not None:
            message = f"`{program}` could not be evaluated: {result.error.message}"
            return [FailedExpectation(expectation="jq", path=path, message=message, expected=True)]
        if isinstance(result.data, dict) and result.data["truncated"]:
            message = (
                f"`{program}` returned too many values to verify all of them. Return one, such as `all(.[]; .ok)`."
            )
            return [FailedExpectation(expectation="jq", path=path, message=message, expected=True)]
        values = result.data["results"] if isinstance(result.data, dict) else None
        if isinstance(values, list) and values and all(value is True for value in values):
            return []
        got: JsonValue = values[0] if isinstance(values, list) and len(values) == 1 else values
        message = f"`{program}` returned {shortened(got)} instead of true."
        return [FailedExpectation(expectation="jq", path=path, message=message, expected=True, got=got)]


def problem_of_pack(runtime: Runtime, tool: str) -> Problem | None:
    """Return the error of the pack or server that should have a tool, or None."""
    pack = tool.partition(".")[0]
    errors = (one for one in runtime.problems() if one.pack == pack and one.severity == "error")
    return next((one for one in errors if one.tool in {None, tool}), None)


def interrupted(check: Check) -> CheckReport:
    """Return the report on a check that had not ended when the run was interrupted."""
    message = f"The check `{check.name}` did not end because the run was interrupted."
    return _unable(check, Problem(message=message, file=check.file))


def _of_outcome(expect: Expectations, result: ToolResult) -> Iterator[FailedExpectation]:
    """Yield the failed expectations about outcome, error and duration."""
    outcome = "ok" if result.ok else "failed"
    if outcome != expect.outcome:
        reason = f": {result.error.message}" if result.error is not None else "."
        message = f"The call {'succeeded' if result.ok else 'failed'}{reason}"
        yield FailedExpectation(expectation="outcome", path="", message=message, expected=expect.outcome, got=outcome)
    elif expect.error is not None and result.error is not None:
        for name in ("code", "detail"):
            wanted, got = getattr(expect.error, name), getattr(result.error, name)
            if wanted is not None and wanted != got:
                message = f"Expected the error {name} {shortened(wanted)}, got {shortened(got)}."
                yield FailedExpectation(expectation="error", path=f"/{name}", message=message, expected=wanted, got=got)
    seconds = result.meta.duration_ms / 1000
    if expect.max_seconds is not None and seconds > expect.max_seconds:
        message = f"The call took {seconds:.3g} s; the limit is {expect.max_seconds:g} s."
        yield FailedExpectation(
            expectation="max_seconds", path="", message=message, expected=expect.max_seconds, got=seconds
        )


def _of_snapshot(expect: Expectations, data: JsonValue) -> tuple[FailedExpectation, ...]:
    snapshot = expect.snapshot
    if snapshot is None:
        return ()
    if not snapshot.is_stored:
        message = "No snapshot is stored yet. `pegboard check run --update` stores it if nothing else differs."
        return (FailedExpectation(expectation="snapshot", path="", message=message, got=data),)
    return differences("snapshot", snapshot.data, data, ignore=snapshot.ignore)


def _whole(result: ToolResult) -> JsonValue:
    """Return the complete data of a result.

    Raises:
        OSError: Its file can't be read.
        ValueError: It is too large, or its file is damaged.
    """
    from pegboard.results.export import whole

    if result.meta.truncated is not None and result.meta.truncated.total_bytes > _LARGEST:
        raise ValueError(f"it has {result.meta.truncated.total_bytes:,} bytes; the limit is {_LARGEST:,}")
    return whole(result)


def _unable(
    check: Check,
    problem: Problem,
    call: ToolCall | None = None,
    result: ToolResult | None = None,
    status: CheckStatus = "error",
) -> CheckReport:
    return CheckReport(
        check=check.name,
        tool=check.tool,
        file=check.file,
        status=status,
        problem=problem,
        call=call.id if call is not None else None,
        duration_ms=result.meta.duration_ms if result is not None else 0.0,
    )
