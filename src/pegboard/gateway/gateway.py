"""The gateway: validation, approval, execution and recording of calls."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING

from pegboard.errors import FormFaults, RulesError
from pegboard.gateway.cache import ResultCache
from pegboard.gateway.log_tail import LogTail
from pegboard.gateway.redaction import Redacting
from pegboard.gateway.rules import Rules, Verdict, is_unsaved
from pegboard.gateway.stored_arguments import check_redacted
from pegboard.gateway.timeouts import Timeouts
from pegboard.models import (
    ApprovalRequested,
    CallEvent,
    Finished,
    JsonObject,
    McpHandler,
    Started,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from pegboard.models.approval import AddedRule
from pegboard.ports import Approver, Readiness, Recorder, Redaction, ToolRunner
from pegboard.registry import AllowList, Registry

if TYPE_CHECKING:
    import asyncio

    from pegboard.models.approval import Approval
    from pegboard.models.rule import Rule

_WRITE_SECONDS = 1.0
"""Time for which an approved call waits until the record says that it runs."""


class Gateway:
    """Pipeline that every call passes; each call has a result.

    Args:
        registry: All tools by name.
        runners: Runners of calls, by the kind of the tool's handler (`pack`, `mcp`, `script`).
        recorder: Stores the record.
        allow: The tools that can be called.
        timeouts: Timeouts of calls.
        rules: The approval rules; without any, only read-only tools run.
        approver: Decides on calls that need approval; without one, they are rejected.
        readiness: Checks requirements; without it, every tool is ready.
        redaction: Removes secrets from events and records; without it, none are known.
        cache: Whether to reuse results of cacheable tools within a session.
    """

    def __init__(
        self,
        registry: Registry,
        runners: Mapping[str, ToolRunner],
        recorder: Recorder,
        *,
        allow: AllowList | None = None,
        timeouts: Timeouts | None = None,
        rules: Rules | None = None,
        approver: Approver | None = None,
        readiness: Readiness | None = None,
        redaction: Redaction | None = None,
        cache: bool = True,
    ) -> None:
        self._registry = registry
        self._runners = runners
        self._recorder = recorder
        self._allow = allow or AllowList()
        self._timeouts = timeouts or Timeouts()
        self._rules = rules or Rules()
        self.approver = approver
        self.held: Callable[[ToolCall], str] | None = None
        """Returns why a call that rules allow must be approved nevertheless; empty if it needn't."""
        self.unattended: set[str] = set()
        """Sessions whose calls are rejected if they need approval, because no person watches them."""
        self.rule_added: Callable[[AddedRule], object] | None = None
        """Receives every rule that an approval adds, and every one that couldn't be added."""
        self._readiness = readiness
        self._redaction = redaction
        self._cache = ResultCache(recorder, enabled=cache)
        self._deciding: dict[str, asyncio.Future[Approval]] = {}

    async def call(self, call: ToolCall) -> AsyncGenerator[CallEvent]:
        """Run one call through the pipeline.

        Yields its events and those of nested calls, its own `Finished` last. Failures of the tool and invalid arguments
        are results, not exceptions. Closing the iterator early cancels the call. Every call is recorded, also a
        rejected or cancelled one. Events and records contain no secrets.
        """
        asked_at = datetime.now(UTC)
        began: float | None = None
        result: ToolResult | None = None
        redacting = Redacting(self._redaction) if self._redaction else None
        wait = _ApprovalWait()
        output = LogTail()
        try:
            if self._redaction is not None:
                await self._redaction.renew()
            # Before it waits for a worker, so that a killed process leaves a record of it.
            begun = redacting.call(call) if redacting else call
            self._recorder.start(begun, asked_at)

            async def note_approval(approved: ToolCall) -> None:
                self._recorder.start(redacting.call(approved) if redacting else approved, asked_at)
                await self._end_wait(wait)

            async with aclosing(self._run(call, note_approval)) as events:
                async for happened in events:
                    if happened.owner != call.id:
                        yield happened  # A nested call passed this pipeline itself, so its events contain no secrets.
                        continue
                    for event in await redacting.events(happened) if redacting else (happened,):
                        if isinstance(event, Started):
                            call, began = event.call, perf_counter()
                        if isinstance(event, ApprovalRequested):
                            begun = event.call
                            wait.begin()
                            self._recorder.start(begun, asked_at, waits=True)
                        elif isinstance(event, Started) and event.call is not begun:
                            begun = event.call  # The name and the arguments are complete now.
                            self._recorder.start(begun, asked_at)
                        if isinstance(event, Finished):
                            # Record before yielding: clients that receive a result also find it in the history.
                            call, result = event.call, wait.added(event.result)
                            event = event.model_copy(update={"result": result})  # noqa: PLW2901
                            self._recorder.record(call, output.added(result), asked_at)
                            await self._cache.save(call.id)
                        output.add(event)
                        yield event
        finally:
            if result is None:
                gone = ToolResult.failed(
                    "execution_error", "The caller disconnected before the call finished.", "cancelled"
                )
                if began is not None:
                    gone = gone.timed((perf_counter() - began) * 1000)
                gone = output.added(wait.added(gone))
                self._recorder.record(redacting.call(call) if redacting else call, gone, asked_at)

    async def reject(self, call: ToolCall, result: ToolResult) -> Finished:
        """Record a call that was not made because its arguments can't be read; return it without secrets."""
        finished = Finished(call=call, result=result)
        if self._redaction is not None:
            await self._redaction.renew()
            [*_, redacted] = await Redacting(self._redaction).events(finished)
            finished = redacted if isinstance(redacted, Finished) else finished
        self._recorder.record(finished.call, finished.result, datetime.now(UTC))
        return finished

    async def _end_wait(self, wait: _ApprovalWait) -> None:
        """End a wait for approval and write that the call runs: no record of a killed process may say that it waits."""
        import asyncio

        if wait.end():
            written = asyncio.ensure_future(asyncio.to_thread(self._recorder.flush))
            await asyncio.wait({written}, timeout=_WRITE_SECONDS)

    def forget_results(self) -> None:
        """Drop the results that are kept in memory for reuse."""
        self._cache.clear()

    def callable(self) -> tuple[ToolSpec, ...]:
        """Return the tools that can be called, from the last scan."""
        return tuple(spec for spec in self._registry.tools() if self._allow.admits(spec))

    async def changed(self, spec: ToolSpec) -> ToolResult | None:
        """Return the failed result of a call whose tool changed after it was approved; None if it may run."""
        now = await self._find(spec.name)
        if isinstance(now, ToolResult):
            return now
        return None if now is spec or _identity(now) == _identity(spec) else ToolResult.changed(spec.name)

    async def refreshed(self) -> tuple[ToolSpec, ...]:
        """Scan again and return the tools that can be called."""
        import asyncio

        await asyncio.to_thread(self._registry.scan)
        return self.callable()

    async def cancel(self, call_id: str) -> bool:
        """Cancel a running or waiting call; return False if none has this id."""
        deciding = self._deciding.pop(call_id, None)
        if deciding is not None:
            deciding.get_loop().call_soon_threadsafe(deciding.cancel)
            return True
        for runner in self._runners.values():
            if await runner.cancel(call_id):
                return True
        return False

    async def _run(
        self, call: ToolCall, on_approval: Callable[[ToolCall], Awaitable[None]]
    ) -> AsyncGenerator[CallEvent]:
        """Yield the events of a call, with secrets; call `on_approval` when a call of an agent may run."""
        found = await self._find(call.name)
        if isinstance(found, ToolResult):
            yield Finished(call=call, result=found)
            return
        try:
            call = self._validated(found, call)
        except FormFaults as faults:
            message = f"{found.name} was not called because its arguments are invalid: {faults}"
            yield Finished(call=call, result=ToolResult.failed("invalid_args", message, None, *faults.faults))
            return
        if (blocked := await self._blocked(found)) is not None:
            yield Finished(call=call, result=blocked)
            return
        if call.caller == "agent":
            verdict = await self._verdict(found, call)
            if verdict.action == "allow" and self.held is not None and (reason := self.held(call)):
                verdict = Verdict("ask", reason)
            if verdict.action == "ask":
                yield ApprovalRequested(call=call, reason=verdict.reason)
            approved = await self._approved(found, call, verdict)
            if isinstance(approved, ToolResult):
                yield Finished(call=call, result=approved)
                return
            await on_approval(approved)
            call = approved
        key = self._cache.key(found, call)
        if (cached := await self._cache.get(found, key)) is not None:
            yield Started(call=call)
            yield Finished(call=call, result=cached)
            return
        runner = self._runners.get(found.handler.kind)
        if runner is None:
            message = (
                f"{found.name} was not called because no runner is registered for tools of kind {found.handler.kind!r}."
            )
            yield Finished(call=call, result=ToolResult.failed("execution_error", message, "no_runner"))
            return
        timeout = self._timeouts.of(found, call)
        async with aclosing(runner.run(found, call, timeout=timeout, calls=self)) as events:
            async for event in events:
                if isinstance(event, Finished) and event.owner == call.id:
                    self._cache.put(key, call, event.result)
                yield event

    async def _find(self, name: str) -> ToolSpec | ToolResult:
        """Return the tool in the current version of its file, or why it can't be called."""
        spec = self._registry.get(name)
        is_current = spec is not None and not self._registry.stale(spec)
        if spec is not None and is_current and self._allow.admits(spec):
            return spec
        if not is_current:
            import asyncio

            await asyncio.to_thread(self._registry.scan)
        return self._registry.find(name, self._allow)

    def _validated(self, spec: ToolSpec, call: ToolCall) -> ToolCall:
        from pegboard.schema.arguments import prepare

        args = prepare(spec, call.args)
        check_redacted(call.source, args)
        if spec.name == call.name and args == call.args:
            return call
        return call.model_copy(update={"name": spec.name, "args": args})

    async def _blocked(self, spec: ToolSpec) -> ToolResult | None:
        if self._readiness is None or not spec.requirements:
            return None
        missing = await self._readiness.missing(spec)
        if not missing:
            return None
        lines = [f"{spec.name} was not called because a requirement is missing:", *map(str, missing)]
        return ToolResult.failed("execution_error", "\n".join(lines), "dependency_missing")

    async def _verdict(self, spec: ToolSpec, call: ToolCall) -> Verdict:
        if (verdict := self._rules.quick_verdict(spec, call)) is not None:
            return verdict
        import asyncio

        return await asyncio.to_thread(self._rules.verdict, spec, call)

    async def _approved(self, spec: ToolSpec, call: ToolCall, verdict: Verdict) -> ToolCall | ToolResult:
        """Return the call to run, edited if the user did so, or its rejection."""
        if verdict.action == "allow":
            return call
        if verdict.action == "deny":
            return _denied(spec, verdict.reason)
        if self.approver is None or call.session in self.unattended:
            return _denied(spec, f"{verdict.reason.removesuffix('.')}, but this run can't ask for approval.")
        approval = await self._decision(self.approver, spec, call)
        if approval is None:
            return ToolResult.failed("execution_error", "The call was cancelled.", "cancelled")
        if approval.answer == "reject" and not approval.by_person:
            return _denied(spec, approval.reason)
        if approval.answer == "reject":
            why = f" They said: {approval.reason}" if approval.reason.strip() else ""
            return _denied(spec, f"The user rejected this call.{why}")
        approved = call if approval.args is None else self._with_edit(spec, call, approval.args)
        if isinstance(approved, ToolCall):
            # The user approves the call as shown, which doesn't override a rule that denies it.
            now = await self._verdict(spec, approved)
            if now.action == "deny":
                return _denied(spec, now.reason)
            if (changed := await self.changed(spec)) is not None:
                return changed
            if approval.rule is not None:
                from pegboard.until_done import until_done

                # The user learns of a rule that is written, even if the call is cancelled meanwhile.
                adding = self._add_rule(spec, approved, approval.rule, is_permanent=approval.answer == "always")
                await until_done(adding)
        return approved

    async def _decision(self, approver: Approver, spec: ToolSpec, call: ToolCall) -> Approval | None:
        """Return the user's decision, or None if the call was cancelled in the meantime."""
        import asyncio

        deciding = self._deciding[call.id] = asyncio.ensure_future(approver.decide(spec, call))
        try:
            return await deciding
        except asyncio.CancelledError:
            if call.id in self._deciding:  # The caller was cancelled, not the decision.
                raise
            return None
        finally:
            self._deciding.pop(call.id, None)

    async def _add_rule(self, spec: ToolSpec, call: ToolCall, rule: Rule, *, is_permanent: bool) -> None:
        """Add the rule of an approval; the approved call runs even if that fails."""
        import asyncio

        problem = ""
        if not self._rules.fits(rule, spec, call):
            problem = f"The rule was not added because it doesn't match this call of {spec.name}: {rule}"
        elif is_permanent and is_unsaved(spec):
            problem = (
                f"The rule was not written because {spec.pack} was given with --mcp, and saved rules never apply to"
                " such a server. Allow it for the session instead."
            )
        elif is_permanent and self._has_secrets(rule, call):
            problem = (
                "The rule was not written because the arguments contain a secret. Allow it for the session instead."
            )
        elif not is_permanent and call.session is None:
            problem = "The rule was not added because the call belongs to no session."
        else:
            try:
                session = None if is_permanent else call.session
                await asyncio.to_thread(self._rules.add, rule, session, destructive=bool(spec.hints.destructive))
            except RulesError as error:
                problem = f"The rule was not added: {error}"
        if self.rule_added is not None:
            session = None if is_permanent else call.session
            self.rule_added(AddedRule(rule=rule, session=session, problem=problem, call=call.id))

    def _has_secrets(self, rule: Rule, call: ToolCall) -> bool:
        if self._redaction is None or (rule.exactly is None and not rule.where):
            return False
        return self._redaction.value(call.args) != call.args

    def _with_edit(self, spec: ToolSpec, call: ToolCall, args: JsonObject) -> ToolCall | ToolResult:
        try:
            return self._validated(spec, call.model_copy(update={"args": args}))
        except FormFaults as faults:
            message = f"{spec.name} was not called because the edited arguments are invalid: {faults}"
            return ToolResult.failed("invalid_args", message, None, *faults.faults)


class _ApprovalWait:
    """The time for which a call waits for approval."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._waited = 0.0

    def begin(self) -> None:
        """Begin to wait."""
        self._began = perf_counter()

    def end(self) -> bool:
        """End the wait; return False if the call didn't wait."""
        if self._began is None:
            return False
        self._waited, self._began = perf_counter() - self._began, None
        return True

    def added(self, result: ToolResult) -> ToolResult:
        """Return a result with the time; a call that still waits has ended by it."""
        self.end()
        return result.after_wait(self._waited * 1000)


def _identity(spec: ToolSpec) -> tuple[object, ...]:
    """Return what an approval of a call relies on."""
    entry = spec.handler.entry if isinstance(spec.handler, McpHandler) else None
    return spec.hints, spec.input_schema, spec.file, entry


def _denied(spec: ToolSpec, why: str) -> ToolResult:
    return ToolResult.failed("execution_error", f"{spec.name} was not called. {why}", "denied")
