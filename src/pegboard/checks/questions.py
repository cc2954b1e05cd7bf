"""Ask models the questions of checks: does a model make the call?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Final

from pegboard.checks.differences import differences, shortened
from pegboard.checks.file import Checks
from pegboard.checks.model import Check, FailedExpectation, QuestionReport
from pegboard.checks.run import problem_of_pack
from pegboard.config.trust import REVIEW
from pegboard.errors import FormFaults, SessionError, StoreError
from pegboard.models import JsonObject, Problem, ToolCall, ToolError, ToolSpec
from pegboard.models.ask import AskedCall, AskFinished, CallProposed, ModelSaid, Outcome
from pegboard.models.conversation import TurnEnded
from pegboard.models.model_requirements import OFFLINE
from pegboard.runtime import Runtime
from pegboard.until_done import until_done

if TYPE_CHECKING:
    from pegboard.ask import Ask

_NAMED: Final = 5
"""Other tools that a message names."""


class QuestionRunner:
    """Questions of checks to models, asked one after the other, each in a new session.

    A question ends when the model makes the expected call, which is not run. Other calls run as those of any model
    that no person watches: read-only tools, and those that a rule allows.

    Args:
        runtime: The runtime whose tools are offered.
        checks: The files of the checks.
        base_url: Server of the models; by default the configured one.
        repeat: How often each model is asked each question.
        at_least: Percentage of these times that the model must make the call.
        send_key: As in `Models.get`.
    """

    def __init__(
        self,
        runtime: Runtime,
        checks: Checks,
        *,
        base_url: str | None = None,
        repeat: int = 1,
        at_least: float = 100,
        send_key: bool = False,
    ) -> None:
        self._runtime = runtime
        self._checks = checks
        self._base_url = base_url
        self._repeat = repeat
        self._at_least = at_least
        self._send_key = send_key

    async def run(self, checks: Sequence[Check], models: Sequence[str | None]) -> AsyncGenerator[QuestionReport]:
        """Ask each model each question of the checks, and yield a report on each pair.

        Args:
            checks: The checks.
            models: Models as `provider:name`; None is the configured one.
        """
        for check in checks:
            if not check.questions:
                continue
            for question in check.questions:
                for model in models:
                    spec = await asyncio.to_thread(self._spec, check)
                    report = QuestionReport(
                        check=check.name,
                        tool=check.tool,
                        file=check.file,
                        status="error",
                        problem=spec if isinstance(spec, Problem) else None,
                        question=question.text,
                        model=model or self._runtime.settings.model.name or OFFLINE,
                    )
                    if not isinstance(spec, Problem):
                        expected = check.arguments if question.arguments is None else question.arguments
                        report = await self._ask(report, spec, expected, model)
                    yield report

    def _spec(self, check: Check) -> ToolSpec | Problem:
        """Return the tool of a check, or why its questions can't be asked."""
        if not self._checks.is_runnable(check):
            message = f"The questions of `{check.name}` were not asked because this folder is not trusted."
            return Problem(message=message, fix=REVIEW, file=check.file)
        spec = self._runtime.tools.get(check.tool)
        if spec is None:
            if (problem := problem_of_pack(self._runtime, check.tool)) is not None:
                return problem
            message = f"No tool that models can use is named {check.tool}."
            return Problem(message=message, fix="Correct `tool`, or allow the tool.", file=check.file)
        return spec

    async def _ask(
        self, report: QuestionReport, spec: ToolSpec, expected: JsonObject, model: str | None
    ) -> QuestionReport:
        """Ask a question as often as wanted, and return the report on it."""
        clock = asyncio.get_running_loop().time
        began, made, tokens = clock(), 0, 0
        for number in range(1, self._repeat + 1):
            asking = self._runtime.ask(model=model, base_url=self._base_url, send_key=self._send_key)
            try:
                with self._runtime.rules.unattended(asking.session):
                    used, outcome = await self._ask_once(asking, spec, expected, report.question)
            except asyncio.CancelledError:
                # No report names them.
                await until_done(asyncio.to_thread(self._forget, asking.session, report.session))
                raise
            made += outcome is None
            tokens += used
            report = report.model_copy(
                update={"asked": number, "made": made, "tokens": tokens, "duration_ms": (clock() - began) * 1000}
            )
            is_shown = outcome is not None and (outcome.model_error is None or bool(outcome.tool_calls))
            superfluous = report.session if is_shown else asking.session
            if superfluous is not None:
                await asyncio.to_thread(self._runtime.sessions.delete, superfluous)
            if outcome is None:
                continue
            if is_shown:
                report = report.model_copy(update={"session": asking.session, "calls": outcome.tool_calls})
            if outcome.model_error is not None:
                error = outcome.model_error
                return report.model_copy(update={"problem": Problem(message=error.message, fix=error.fix)})
            report = report.model_copy(update={"differences": self._differences(spec, expected, outcome)})
        if made * 100 >= self._repeat * self._at_least:
            return report.model_copy(update={"status": "passed"})
        return report.model_copy(update={"status": "failed"})

    def _forget(self, *sessions: str | None) -> None:
        for session in filter(None, sessions):
            with suppress(SessionError, StoreError):  # it may not exist yet
                self._runtime.sessions.delete(session)

    async def _ask_once(
        self, asking: Ask, spec: ToolSpec, expected: JsonObject, text: str
    ) -> tuple[int, Outcome | None]:
        """Ask a question; return the tokens, and the outcome unless the model made the call."""
        tokens = 0
        async with aclosing(asking.run(text)) as events:
            async for event in events:
                match event:
                    case ModelSaid(event=TurnEnded(usage=usage)):
                        tokens += usage.input_tokens + usage.output_tokens
                    case CallProposed(call=call, error=None) if not self._faults(spec, expected, call):
                        return tokens, None  # no call of this turn has started, and none does
                    case AskFinished(outcome=outcome):
                        return tokens, outcome
        raise AssertionError("an ask always ends with AskFinished")

    def _faults(
        self, spec: ToolSpec, expected: JsonObject, call: ToolCall | AskedCall
    ) -> tuple[FailedExpectation, ...]:
        """Return how a call differs from the expected one."""
        from pegboard.schema.arguments import by_parameter

        if call.name != spec.name:
            message = f"The model called {call.name} instead of {spec.name}."
            return (FailedExpectation(expectation="call", path="", message=message),)
        try:
            got = self._runtime.tools.prepare(spec, call.args)
        except FormFaults as faults:
            message = f"The model called {spec.name} with invalid arguments: {faults}"
            return (FailedExpectation(expectation="arguments", path="", message=message),)
        properties = spec.input_schema.get("properties")
        defaults: JsonObject = {
            name: schema["default"]
            for name, schema in (properties.items() if isinstance(properties, dict) else ())
            if isinstance(schema, dict) and "default" in schema
        }
        wanted = by_parameter(expected, spec.parameter_aliases)
        return differences("arguments", wanted, defaults | got, is_subset=True)

    def _why_not(
        self, spec: ToolSpec, expected: JsonObject, call: AskedCall, error: ToolError | None
    ) -> tuple[FailedExpectation, ...]:
        """Return why a call of the tool isn't the expected one."""
        faults = self._faults(spec, expected, call)
        is_unreadable = error is not None and error.code == "invalid_args" and not call.args
        if error is not None and (is_unreadable or not faults):
            return (FailedExpectation(expectation="arguments", path="", message=error.message),)
        return faults

    def _differences(self, spec: ToolSpec, expected: JsonObject, outcome: Outcome) -> tuple[FailedExpectation, ...]:
        """Return how the calls of a model differ from the expected one: those of the nearest call of the tool."""
        calls = [*zip(outcome.tool_calls, outcome.tool_results, strict=True)]
        of_tool = [self._why_not(spec, expected, call, made.error) for call, made in calls if call.name == spec.name]
        if of_tool:
            return min(of_tool, key=len)
        others = [*dict.fromkeys(call.name for call, _ in calls)]
        called = f"It called {', '.join(others[:_NAMED])}." if others else "It called no tool."
        said = f" Its answer: {shortened(outcome.answer)}" if outcome.answer else ""
        message = f"The model didn't call {spec.name}. {called}{said}"
        return (FailedExpectation(expectation="call", path="", message=message),)
