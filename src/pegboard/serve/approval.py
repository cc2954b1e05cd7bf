"""Calls of MCP clients that wait for a person in another process: in an open app, or in `pegboard approve`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from pegboard.brake import RESUMED, RULE, Answer, BrakeError, Question, Questions, RuleOutcome
from pegboard.models import ToolCall, ToolSpec
from pegboard.models.approval import AddedRule, Approval
from pegboard.models.rule_scope import exact_rule, session_rule

if TYPE_CHECKING:
    from pegboard.runtime import Runtime


class BrakeApprover:
    """Decisions of people in other processes, and the pause. A `pegboard.ports.Approver`.

    Args:
        runtime: Provides the rules and the settings.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._questions = Questions(runtime.paths.state, runtime.redacted_args)
        self._open: dict[str, ToolCall] = {}
        """The calls that wait, by the id of their question."""
        self._releasing: asyncio.Task[None] | None = None
        self.is_shared: Callable[[str | None], bool] = lambda _: False
        """Returns whether several clients may have a session, so that no answer lasts for it."""

    def held(self, call: ToolCall) -> str:
        """Return why a call waits although rules allow it; empty if it doesn't."""
        del call
        state = self._questions.brake.state
        return "" if state == "running" else f"Calls from agents are {state}."

    async def decide(self, spec: ToolSpec, call: ToolCall) -> Approval:
        """Ask in every open app; cancelled when the call no longer waits for the answer."""
        while True:
            verdict = await asyncio.to_thread(self._runtime.rules.verdict, call)
            is_asked = verdict is None or verdict.action != "allow"
            question = Question(
                tool=spec.name,
                args=call.args,
                agent=str(call.agent) if call.agent is not None else "MCP client",
                server=spec.location.server or spec.pack,
                reason=verdict.reason if verdict is not None and is_asked else self.held(call),
                kind="ask" if is_asked else "paused",
                call=call.id,
                via="serve",
                has_session=not self.is_shared(call.session),
                is_session_exact=session_rule(spec, call).exactly is not None,
            )
            self._open[question.id] = call
            try:
                answer = await self._questions.ask(question, wait=self._runtime.settings.brake.wait)
            except BrakeError as error:
                return Approval(answer="reject", reason=str(error), by_person=False)
            finally:
                del self._open[question.id]
            # Rules may have changed while the call was paused.
            if answer.kind != "approve" or answer.by != RESUMED or not await self._must_ask(call):
                return self._approval(spec, call, question, answer)

    def rule_added(self, added: AddedRule) -> None:
        """Report to the process that answered the outcome of the rule of its answer; release the calls it allows."""
        with suppress(OSError):
            self._questions.report_rule(added.call, RuleOutcome(added.problem, added.rule.exactly is not None))
        if not added.problem:
            self._releasing = asyncio.ensure_future(self._release(self._releasing))

    async def _release(self, before: asyncio.Task[None] | None) -> None:
        """Approve the calls that wait although a new rule allows them, unless a person was faster."""
        if before is not None:
            await asyncio.wait({before})
        answer = Answer("approve", by=RULE, by_person=False)
        for question, call in [*self._open.items()]:
            if await asyncio.to_thread(self._runtime.rules.allow, call) and not self.held(call):
                with suppress(BrakeError):
                    await asyncio.to_thread(self._questions.answer, question, answer)

    async def _must_ask(self, call: ToolCall) -> bool:
        verdict = await asyncio.to_thread(self._runtime.rules.verdict, call)
        return verdict is not None and verdict.action == "ask"

    def _approval(self, spec: ToolSpec, call: ToolCall, question: Question, answer: Answer) -> Approval:
        if answer.kind != "approve":
            return Approval(answer="reject", reason=answer.reason, by_person=answer.by_person)
        if answer.lasts == "once":
            return Approval(answer="once", args=answer.args)
        rule = session_rule(spec, call) if answer.rule is None and answer.lasts == "session" else answer.rule
        if rule is not None and rule.exactly is not None and answer.lasts == "session":
            rule = exact_rule(spec, call)  # Of the question, its author knows the arguments without secrets.
        if rule is None:
            return Approval(answer="reject", reason="The answer has no rule.", by_person=False)
        if answer.lasts == "session" and question.session_problem:
            problem = f"The rule was not added because {question.session_problem}."
            self.rule_added(AddedRule(rule=rule, session=call.session, problem=problem, call=call.id))
            return Approval(answer="once")
        return Approval(answer=answer.lasts, rule=rule)
