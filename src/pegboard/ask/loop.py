"""The loop: send the conversation to the model, run the calls that it proposes, repeat until it answers with text."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable
from contextlib import ExitStack, aclosing
from typing import Final, TypeVar

from pegboard.ask.allowance import Allowance, AskLimits
from pegboard.ask.call_text import calls_in_text, with_own_ids
from pegboard.ask.calls import CallRunner, Proposal
from pegboard.ask.conversation import CUT_OFF, SYSTEM, sent, unanswered
from pegboard.ask.offer import Offer
from pegboard.ask.result_text import MORE, MORE_TOOL, is_shortened
from pegboard.ask.turn import TurnRecord
from pegboard.errors import ModelError
from pegboard.executor.deadline import PendingApprovals
from pegboard.history import Sessions
from pegboard.models import ToolCall, ToolResult, ToolSpec
from pegboard.models.ask import (
    AskedCall,
    AskedResult,
    AskEvent,
    AskFinished,
    AskStarted,
    CallHappened,
    CallProposed,
    FirstToolError,
    ModelFailure,
    ModelSaid,
    Outcome,
    StoppedBy,
    ToolAnswered,
    TurnStarted,
    Waiting,
)
from pegboard.models.conversation import (
    Message,
    ModelMessage,
    Prompt,
    TextDelta,
    ThinkingEnded,
    ToolMessage,
    TurnEnded,
    Usage,
    UserMessage,
)
from pegboard.ports import Calls, Model
from pegboard.until_done import until_done

INVALID_ROUNDS: Final = 2
"""Consecutive turns with only invalid calls after which the model may correct itself; one more ends the loop."""
LAST_TURN_SECONDS: Final = 60.0
"""Time for a last answer after the time limit is reached."""
LAST_TURN_TOKENS: Final = 10_000
"""Tokens for a last answer after the token limit is reached."""
_POLL_SECONDS: Final = 0.05

_REASONS: Final[dict[StoppedBy, str]] = {
    "steps": "The limit of {steps} steps was reached.",
    "tokens": "The limit of {tokens:,} tokens was reached.",
    "time": "The limit of {seconds:g} seconds was reached.",
    "size": "The limit of one turn, {turn_bytes:,} bytes and {turn_calls:,} calls, was reached.",
    "invalid_args": "All calls of several consecutive turns had invalid arguments.",
    "length": "The answer was cut off at the model's own limit of tokens.",
    "filter": "The answer was cut off by the provider's content filter.",
    "unknown": "The provider ended the answer for an unknown reason.",
}

ValueT = TypeVar("ValueT")


class Ask:
    """Questions to a model within one session, one at a time.

    Args:
        session: The session's id; a missing session is created.
        model: Function that returns the model; it may block and raise `ModelError`.
        calls: The call pipeline, which also lists the tools.
        sessions: The store of sessions.
        turn: Function that returns a new record of a turn.
        whole: Function that returns the complete text of a result by the id of its call, or None; it may block.
        limits: Limits for each question.
        with_tools: Whether the model is offered tools.
        without: Names of tools that are not offered.
        parallel: Whether adjacent read-only calls of one turn run concurrently.
        system: New system prompt of the session; None leaves it unchanged.
        instructions: Function that returns how the MCP servers of tools want to be used, for the system prompt.
        text_calls: Predicate on a model's name: whether its messages that consist only of calls written as text are
            run as calls.
    """

    def __init__(
        self,
        session: str,
        *,
        model: Callable[[], Model],
        calls: Calls,
        sessions: Sessions,
        turn: Callable[[], TurnRecord],
        whole: Callable[[str], str | None],
        limits: AskLimits | None = None,
        with_tools: bool = True,
        without: Collection[str] = (),
        parallel: bool = False,
        system: str | None = None,
        instructions: Callable[[Iterable[ToolSpec]], str] = lambda _: "",
        text_calls: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.session = session
        self.model = model
        self.calls = calls
        self.sessions = sessions
        self.turn = turn
        self.whole = whole
        self.limits = limits or AskLimits()
        self.with_tools = with_tools
        self.without = frozenset(without)
        self.parallel = parallel
        self.system = system
        self.instructions = instructions
        self.text_calls = text_calls
        self._question: _Question | None = None

    async def run(self, text: str) -> AsyncGenerator[AskEvent]:
        """Send a message to the model and yield all events until it has answered, `AskFinished` last.

        A provider's failure, a limit and an interruption are outcomes, not exceptions. Closing the iterator, or
        cancelling the task that iterates, also leaves the session consistent: every call in it has an answer.

        Args:
            text: The user's message. Secrets that the store redacts are absent from later questions to the model.

        Raises:
            SessionError: The session's id is invalid, or the session was deleted meanwhile.
            StoreError: The session can't be read or written.
        """
        self._question = _Question(self, text)
        try:
            async with aclosing(self._question.events()) as events:
                async for event in events:
                    yield event
        finally:
            self._question.record.finish(None)
            self._question = None

    def interrupt(self) -> None:
        """End the current question; `run` still yields the remaining events, `AskFinished` last."""
        if self._question is not None:
            self._question.interrupt()


class _StoppedError(Exception):
    """The time limit was reached, or the user interrupted."""

    def __init__(self, by: StoppedBy) -> None:
        super().__init__(by)
        self.by = by


class _Question:
    """One question and its state."""

    def __init__(self, ask: Ask, text: str) -> None:
        self._ask = ask
        self._text = text
        self._limits = ask.limits
        self._deadline = math.inf
        self._unanswered = PendingApprovals()
        self._asked_at = 0.0
        self._scope: asyncio.Timeout | None = None
        self._interrupted = False
        self._is_late = False
        self._messages: list[Message] = []
        self._shown: set[str] = set()
        self._has_shortened = False
        self._has_native_calls = False
        self._system = ""
        specs = ask.calls.callable() if ask.with_tools else ()
        self._offer = Offer((spec for spec in specs if spec.name not in ask.without), taken=[MORE])
        self.record = ask.turn()
        self._runner = CallRunner(
            ask.calls,
            self._offer,
            session=ask.session,
            turn=self.record.id,
            whole=ask.whole,
            limit=ask.limits.result_bytes,
            parallel=ask.parallel,
        )
        self._unsaved_text: list[str] = []
        self._open: list[Proposal] = []
        self._done: list[tuple[ToolCall, ToolResult]] = []
        self._invalid_rounds = 0
        self._answer = ""
        self._usage = Usage()
        self._unreported = 0
        self._steps = 0
        self._stopped_by: StoppedBy = "answer"
        self._failure: ModelFailure | None = None
        self._session_updated = False

    def interrupt(self) -> None:
        self._interrupted = True
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(0)

    async def events(self) -> AsyncGenerator[AskEvent]:
        with ExitStack() as hold:
            try:
                async with aclosing(self._run(hold)) as events:
                    async for event in events:
                        yield event
            except _StoppedError as stopped:
                self._stopped_by = stopped.by
            except ModelError as error:
                self._stopped_by = "model_error"
                self._failure = ModelFailure(
                    code=error.code, message=str(error), fix=error.fix, retry_after=error.retry_after
                )
            finally:
                await until_done(self._settle())  # the session must become consistent
        outcome = self._outcome()
        self.record.finish(outcome)
        yield AskFinished(outcome=outcome)

    async def _run(self, hold: ExitStack) -> AsyncGenerator[AskEvent]:
        async for waiting in self._wait_for_session(hold):
            yield waiting
        self._deadline = asyncio.get_running_loop().time() + self._limits.seconds
        await self._begin()
        model = await asyncio.to_thread(self._ask.model)
        self.record.model = model.name
        await until_done(asyncio.to_thread(self._ask.sessions.start, self._ask.session, model=model.name))
        yield AskStarted(session=self._ask.session, model=model.name, tools=len(self._offer.specs))
        async with aclosing(self._turns(model)) as events:
            async for event in events:
                yield event

    async def _wait_for_session(self, hold: ExitStack) -> AsyncGenerator[Waiting]:
        """Wait until no other process or task uses this session, without a time limit."""
        is_announced = False
        while True:
            with ExitStack() as attempt:
                if attempt.enter_context(self._ask.sessions.held(self._ask.session)):
                    hold.enter_context(attempt.pop_all())
                    return
            if not is_announced:
                is_announced = True
                yield Waiting(session=self._ask.session)
            await self._wait(asyncio.sleep(_POLL_SECONDS))

    async def _begin(self) -> None:
        """Load the session, answer interrupted calls in it, and append the user's message."""
        sessions, session = self._ask.sessions, self._ask.session

        def read() -> None:
            known = sessions.get(session)
            if known is None or self._ask.system is not None:
                sessions.start(session, model=known.model if known else "", system=self._ask.system)
            for entry in sessions.entries(session):
                self._messages.append(entry.message)
                self._note(entry.message, entry.call)
            said = self._ask.system if self._ask.system is not None else known.system if known else None
            self._system = SYSTEM if said is None else said

        await until_done(asyncio.to_thread(read))
        for call in unanswered(self._messages):
            message = ToolMessage(provider_id=call.provider_id, name=call.name, text=CUT_OFF, ok=False)
            await self._append(message)
        position = await self._append(UserMessage(text=self._text))
        await self.record.start(session, position, self._text)

    async def _turns(self, model: Model) -> AsyncGenerator[AskEvent]:
        while True:
            self._steps += 1
            over = self._limit_reached()
            if over is not None:
                self._stopped_by = over
            if over == "time":
                self._deadline = asyncio.get_running_loop().time() + LAST_TURN_SECONDS
            with_tools = over is None and bool(self._offer.specs)
            yield TurnStarted(step=self._steps, of=self._limits.steps, with_tools=with_tools)
            async with aclosing(self._turn(model, with_tools=with_tools)) as turn:
                async for event in turn:
                    yield event
            if not self._open:
                return
            async with aclosing(self._calls()) as calls:
                async for happened in calls:
                    yield happened

    def _limit_reached(self) -> StoppedBy | None:
        """Return the limit that makes this turn the last, or None."""
        if self._is_late:
            return "time"
        if self._invalid_rounds > INVALID_ROUNDS:
            return "invalid_args"
        if self._tokens >= self._limits.tokens:
            return "tokens"
        return "steps" if self._steps >= self._limits.steps else None

    async def _turn(self, model: Model, *, with_tools: bool) -> AsyncGenerator[ModelSaid]:
        """Run one model turn within its limits and append its message to the session."""
        ended: TurnEnded | None = None
        left = self._allowance()
        async with aclosing(model.stream(self._prompt(with_tools=with_tools))) as stream:
            while (event := await self._wait(anext(stream, None))) is not None:
                if isinstance(event, TurnEnded):
                    ended = event
                    break
                piece, exceeded = left.count(event)
                if isinstance(piece, TextDelta):
                    self._unsaved_text.append(piece.text)
                elif isinstance(piece, ThinkingEnded):
                    self._unsaved_text.clear()
                yield ModelSaid.model_construct(event=piece)
                if exceeded is not None:
                    raise _StoppedError(exceeded)
        if ended is None:
            raise ModelError("The model's answer ended early.", code="broken_stream", fix="Try again.")
        self._usage += ended.usage
        if not ended.usage.output_tokens:
            self._unreported += left.estimate
        has_calls = with_tools and bool(ended.message.calls)
        if self._stopped_by == "answer" and not has_calls and ended.reason in ("length", "filter", "unknown"):
            self._stopped_by = ended.reason
        message = self._read(ended, model.name, with_tools=with_tools)
        self._open = self._runner.read(message.calls, is_complete=ended.is_complete)
        self._answer = message.text
        self._unsaved_text.clear()
        await self._append(message)
        yield ModelSaid(event=ended.model_copy(update={"message": message}))

    @property
    def _tokens(self) -> int:
        """Tokens read and written so far, estimated where the provider doesn't report them."""
        return self._usage.input_tokens + self._usage.output_tokens + self._unreported

    def _allowance(self) -> Allowance:
        """Return the limits of the next turn; the last one has its own minimum of tokens."""
        tokens = self._limits.tokens - self._tokens
        if self._stopped_by != "answer":
            tokens = max(tokens, LAST_TURN_TOKENS)
        return Allowance(size=self._limits.turn_bytes, calls=self._limits.turn_calls, tokens=tokens)

    def _prompt(self, *, with_tools: bool) -> Prompt:
        system, tools = self._system, self._offer.tools() if with_tools else ()
        if tools:
            system += self._ask.instructions(self._offer.specs)
        if tools and self._has_shortened:
            tools = (*tools, MORE_TOOL)
        if self._stopped_by != "answer":
            system += (
                f"\n\n{self._reason()} Answer now, without tools: say what you found and which work is unfinished."
            )
        return Prompt(messages=sent(system.strip(), self._messages), tools=tools)

    def _read(self, ended: TurnEnded, model: str, *, with_tools: bool) -> ModelMessage:
        """Return a model's message as it is stored: with calls only if it may make any, and never empty."""
        message = ended.message
        calls = with_own_ids(message).calls if with_tools else ()
        may_be_text = with_tools and ended.is_complete and not self._has_native_calls
        if may_be_text and not calls and self._ask.text_calls(model):
            calls = calls_in_text(message.text, self._is_offered)
        calls = tuple(self._offer.as_meant(call) for call in calls)
        text = message.text if message.text.strip() or calls else self._fallback_answer()
        return message.model_copy(update={"text": text, "calls": calls})

    def _is_offered(self, name: str) -> bool:
        return self._offer.find(name) is not None or (self._has_shortened and name == MORE)

    async def _calls(self) -> AsyncGenerator[AskEvent]:
        """Run the calls of a turn and append their answers to the session, in the order of the proposals."""
        proposals = self._open
        for proposal in proposals:
            error = proposal.result.error if proposal.result is not None else None
            yield CallProposed(call=proposal.call, proposed=proposal.proposed, error=error)
        for group in self._runner.groups(proposals):
            if not self._is_late:
                try:
                    async with aclosing(self._runner.run(group, self._shown.__contains__, self._wait)) as events:
                        async for event in events:
                            self._pause_clock(event)
                            yield event
                except _StoppedError as stopped:
                    if stopped.by != "time":
                        raise
                    self._is_late = True
            for proposal in group:
                if proposal.result is None:
                    proposal.result = proposal.not_finished(self._reason("time"))
                yield await self._answered(proposal)
        fit = any(result.error is None or result.error.code != "invalid_args" for _, result in self._last(proposals))
        self._invalid_rounds = 0 if fit else self._invalid_rounds + 1

    def _pause_clock(self, happened: CallHappened) -> None:
        """Extend the deadline by the time during which approvals are pending, nested calls included."""
        now = asyncio.get_running_loop().time()
        was_pending = bool(self._unanswered)
        self._unanswered.update(happened.event, happened.call_id)
        if self._unanswered and not was_pending:
            self._asked_at = now
        elif was_pending and not self._unanswered:
            self._deadline += now - self._asked_at

    def _last(self, proposals: list[Proposal]) -> list[tuple[ToolCall, ToolResult]]:
        return self._done[-len(proposals) :]

    async def _answered(self, proposal: Proposal) -> ToolAnswered:
        result = proposal.result
        assert result is not None, "the call has ended"
        text = await self._runner.result_text(proposal)
        await self._answer_to(proposal, result, text)
        return ToolAnswered.model_construct(call=proposal.call, result=result, text=text)

    async def _answer_to(self, proposal: Proposal, result: ToolResult, text: str) -> None:
        proposed = proposal.proposed
        message = ToolMessage(provider_id=proposed.provider_id, name=proposed.name, text=text, ok=result.ok)
        self._open = [other for other in self._open if other is not proposal]
        self._done.append((proposal.call, result))
        await self._append(message, proposal.call.id)
        self._session_updated = True

    async def _settle(self) -> None:
        """Make the session consistent after an early end: store the text so far and answer every call."""
        text = "".join(self._unsaved_text)
        if text.strip():
            self._answer = text
            await self._append(ModelMessage(text=text))
        for proposal in self._open:
            result = proposal.result or proposal.not_finished("The user interrupted it.")
            await self._answer_to(proposal, result, await self._result_text(proposal, result))

    async def _result_text(self, proposal: Proposal, result: ToolResult) -> str:
        proposal.result = result
        return await self._runner.result_text(proposal)

    async def _append(self, message: Message, call: str | None = None) -> int:
        entry = await until_done(asyncio.to_thread(self._ask.sessions.append, self._ask.session, message, call))
        self._messages.append(message)
        self._note(message, call)
        return entry.position

    def _note(self, message: Message, call: str | None) -> None:
        if call is not None:
            self._shown.add(call)
        if isinstance(message, ToolMessage) and is_shortened(message.text):
            self._has_shortened = True
        if isinstance(message, ModelMessage) and not all(made.from_text for made in message.calls):
            self._has_native_calls = True

    async def _wait(self, wanted: Awaitable[ValueT]) -> ValueT:
        """Await something until the deadline or an interruption."""
        try:
            deadline = None if self._unanswered else self._deadline
            async with asyncio.timeout_at(0 if self._interrupted else deadline) as self._scope:
                return await wanted
        except TimeoutError:
            if self._scope is None or not self._scope.expired():
                raise
            raise _StoppedError("interrupted" if self._interrupted else "time") from None
        finally:
            self._scope = None

    def _reason(self, by: StoppedBy | None = None) -> str:
        return _REASONS.get(by or self._stopped_by, "").format(**vars(self._limits))

    def _fallback_answer(self) -> str:
        """Return a summary that replaces an empty answer of the model."""
        made = [f"- {call.name}: {'done' if result.ok else 'failed'}" for call, result in self._done]
        said = " ".join(part for part in (self._reason(), "The model returned no answer.") if part)
        return "\n".join([said, *(["", "Its calls:", *made] if made else [])])

    def _outcome(self) -> Outcome:
        if self._stopped_by in _REASONS and not self._answer.strip():
            self._answer = self._fallback_answer()
        failed = next(((call, result.error) for call, result in self._done if result.error is not None), None)
        first = (
            None
            if failed is None
            else FirstToolError(tool=failed[0].name, code=failed[1].code, message=failed[1].message)
        )
        return Outcome.model_construct(
            answer=self._answer,
            tool_calls=tuple(AskedCall.of(call) for call, _ in self._done),
            tool_results=tuple(AskedResult.of(call, result) for call, result in self._done),
            tool_error=first,
            session_context_updated=self._session_updated,
            session_id=self._ask.session,
            usage=self._usage,
            steps=self._steps,
            stopped_by=self._stopped_by,
            model_error=self._failure,
        )
