"""The loop: what the user says goes to the model, the calls that it proposes run, until it answers in words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from typing import Final, TypeVar

from pegboard.ask.allowance import Allowance
from pegboard.ask.call_text import calls_in_text, with_own_ids
from pegboard.ask.calls import Calling, Proposal
from pegboard.ask.conversation import CUT_OFF, SYSTEM, sent, unanswered
from pegboard.ask.offer import Offer
from pegboard.ask.result_text import MORE, MORE_TOOL, is_shortened
from pegboard.errors import ModelError
from pegboard.executor.deadline import PendingApprovals
from pegboard.history import Sessions
from pegboard.models import ToolCall, ToolResult
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
    ToolMessage,
    TurnEnded,
    Usage,
    UserMessage,
)
from pegboard.ports import Calls, Model

INVALID_ROUNDS: Final = 2
"""How often in a row a model is told that all its calls of a turn had unfit arguments; after the next time it ends."""
LAST_TURN_SECONDS: Final = 60.0
"""What a model gets for its last answer when the time is over."""
LAST_TURN_TOKENS: Final = 10_000
"""What a model may write as its last answer when the limit of tokens is reached."""
_POLL_SECONDS: Final = 0.05

_REASONS: Final[dict[StoppedBy, str]] = {
    "steps": "The limit of {steps} steps was reached.",
    "tokens": "The limit of {tokens:,} tokens was reached.",
    "time": "The limit of {seconds:g} seconds was reached.",
    "size": "The limit of one turn, {turn_bytes:,} bytes and {turn_calls:,} calls, was reached.",
    "invalid_args": "The model's calls could not be run, several times in a row.",
}

ValueT = TypeVar("ValueT")


@dataclass(frozen=True)
class Limits:
    """How far a model may go with one question."""

    steps: int = 20
    """Turns of the model; the last one is without tools."""
    tokens: int = 1_000_000
    """Read and written."""
    seconds: float = 600.0
    result_bytes: int = 50_000
    """Of a result's text that the model is told at once."""
    turn_bytes: int = 4_000_000
    """Of the text, thinking and arguments of one turn."""
    turn_calls: int = 100
    """Calls that one turn may propose."""


class Ask:
    """Asks a model within one session, as often as wanted, once at a time.

    Args:
        session: The session's id; one that isn't there is started.
        model: Gives the model; may block, and raise a `ModelError`.
        calls: The road that calls take, which knows the tools too.
        sessions: Where sessions are kept.
        whole: Gives the text of all of a result by the id of its call, if it is kept; blocks.
        limits: How far the model may go.
        with_tools: Whether it is offered tools at all.
        without: Names of tools that it isn't offered.
        parallel: Whether calls that only read, one after the other in one turn, run at once.
        system: What the model is told beforehand, from now on in this session; None leaves that as it is.
        text_calls: Tells by a model's name whether a message of it that is nothing but calls written as text is taken
            for these calls.
    """

    def __init__(
        self,
        session: str,
        *,
        model: Callable[[], Model],
        calls: Calls,
        sessions: Sessions,
        whole: Callable[[str], str | None],
        limits: Limits | None = None,
        with_tools: bool = True,
        without: Collection[str] = (),
        parallel: bool = False,
        system: str | None = None,
        text_calls: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.session = session
        self.model = model
        self.calls = calls
        self.sessions = sessions
        self.whole = whole
        self.limits = limits or Limits()
        self.with_tools = with_tools
        self.without = frozenset(without)
        self.parallel = parallel
        self.system = system
        self.text_calls = text_calls
        self._asking: _Asking | None = None

    async def run(self, text: str) -> AsyncGenerator[AskEvent]:
        """Says something to the model and yields all that happens until it has answered, `AskFinished` last.

        A provider's failure, a limit and an interruption are outcomes. Closing the iterator, or cancelling the task
        that iterates, ends it too; the session is consistent then as well: every call that stands in it has its answer.

        Args:
            text: The user's words, kept as they are.

        Raises:
            SessionError: The session can't be named so, or was deleted meanwhile.
            StoreError: The session can't be read or written.
        """
        self._asking = _Asking(self, text)
        try:
            async with aclosing(self._asking.events()) as events:
                async for event in events:
                    yield event
        finally:
            self._asking = None

    def interrupt(self) -> None:
        """Ends what runs, in order: `run` still yields how it stands, `AskFinished` last."""
        if self._asking is not None:
            self._asking.interrupt()


class _StoppedError(Exception):
    """There is no time left, or the user has interrupted."""

    def __init__(self, by: StoppedBy) -> None:
        super().__init__(by)
        self.by = by


class _Asking:
    """One question and all that comes of it."""

    def __init__(self, ask: Ask, text: str) -> None:
        self._ask = ask
        self._text = text
        self._limits = ask.limits
        self._deadline = asyncio.get_running_loop().time() + ask.limits.seconds
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
        self._calling = Calling(
            ask.calls,
            self._offer,
            session=ask.session,
            whole=ask.whole,
            limit=ask.limits.result_bytes,
            parallel=ask.parallel,
        )
        self._unsaid: list[str] = []
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
        """Ends what is waited for, and all that would come."""
        self._interrupted = True
        if self._scope is not None:
            self._scope.reschedule(0)

    async def events(self) -> AsyncGenerator[AskEvent]:
        """Yields everything."""
        with ExitStack() as hold:
            try:
                async with aclosing(self._all(hold)) as events:
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
                # it goes on to its end even if whoever cancels this loses patience
                await asyncio.shield(asyncio.ensure_future(self._settle()))
        yield AskFinished(outcome=self._outcome())

    async def _all(self, hold: ExitStack) -> AsyncGenerator[AskEvent]:
        async for waiting in self._hold(hold):
            yield waiting
        await self._begin()
        model = await asyncio.to_thread(self._ask.model)
        await asyncio.to_thread(self._ask.sessions.start, self._ask.session, model=model.name)
        yield AskStarted(session=self._ask.session, model=model.name, tools=len(self._offer.specs))
        async with aclosing(self._turns(model)) as events:
            async for event in events:
                yield event

    async def _hold(self, hold: ExitStack) -> AsyncGenerator[Waiting]:
        """Waits until nobody else asks in this session."""
        told = False
        while True:
            with ExitStack() as attempt:
                if attempt.enter_context(self._ask.sessions.held(self._ask.session)):
                    hold.enter_context(attempt.pop_all())
                    return
            if not told:
                told = True
                yield Waiting(session=self._ask.session)
            await self._within(asyncio.sleep(_POLL_SECONDS))

    async def _begin(self) -> None:
        """Reads the session, answers what was cut off in it, and adds what the user says."""
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

        await asyncio.to_thread(read)
        for call in unanswered(self._messages):
            message = ToolMessage(provider_id=call.provider_id, name=call.name, text=CUT_OFF, ok=False)
            await self._say(message)
        await self._say(UserMessage(text=self._text))

    async def _turns(self, model: Model) -> AsyncGenerator[AskEvent]:
        while True:
            self._steps += 1
            over = self._over()
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

    def _over(self) -> StoppedBy | None:
        """Gives the limit that was reached, so that this turn is the last."""
        if self._is_late:
            return "time"
        if self._invalid_rounds > INVALID_ROUNDS:
            return "invalid_args"
        if self._tokens >= self._limits.tokens:
            return "tokens"
        return "steps" if self._steps >= self._limits.steps else None

    async def _turn(self, model: Model, *, with_tools: bool) -> AsyncGenerator[ModelSaid]:
        """Run a turn of the model, within its limits; then its message is in the session."""
        ended: TurnEnded | None = None
        left = self._allowance()
        async with aclosing(model.stream(self._prompt(with_tools=with_tools))) as stream:
            while (event := await self._within(anext(stream, None))) is not None:
                if isinstance(event, TurnEnded):
                    ended = event
                    break
                piece, exceeded = left.count(event)
                if isinstance(piece, TextDelta):
                    self._unsaid.append(piece.text)
                yield ModelSaid.model_construct(event=piece)
                if exceeded is not None:
                    raise _StoppedError(exceeded)
        if ended is None:
            raise ModelError("The model's answer ended before its end.", code="broken_stream", fix="Ask again.")
        self._usage += ended.usage
        if not ended.usage.output_tokens:
            self._unreported += left.estimate
        message = self._read(ended, model.name, with_tools=with_tools)
        self._open = self._calling.read(message.calls, is_complete=ended.is_complete)
        self._answer = message.text
        self._unsaid.clear()
        await self._say(message)
        yield ModelSaid(event=ended.model_copy(update={"message": message}))

    @property
    def _tokens(self) -> int:
        """Tokens read and written so far, estimated where the provider doesn't report them."""
        return self._usage.input_tokens + self._usage.output_tokens + self._unreported

    def _allowance(self) -> Allowance:
        """Return what the next turn may write; the last one has some tokens of its own."""
        tokens = self._limits.tokens - self._tokens
        if self._stopped_by != "answer":
            tokens = max(tokens, LAST_TURN_TOKENS)
        return Allowance(size=self._limits.turn_bytes, calls=self._limits.turn_calls, tokens=tokens)

    def _prompt(self, *, with_tools: bool) -> Prompt:
        system, tools = self._system, self._offer.tools() if with_tools else ()
        if tools and self._has_shortened:
            tools = (*tools, MORE_TOOL)
        if self._stopped_by != "answer":
            system += f"\n\n{self._reason()} Answer now, without tools: say what was found, and what was not done."
        return Prompt(messages=sent(system.strip(), self._messages), tools=tools)

    def _read(self, ended: TurnEnded, model: str, *, with_tools: bool) -> ModelMessage:
        """Return a model's message as it is kept: with calls only where it may make any, and never empty."""
        message = ended.message
        calls = with_own_ids(message).calls if with_tools else ()
        may_be_text = with_tools and ended.is_complete and not self._has_native_calls
        if may_be_text and not calls and self._ask.text_calls(model):
            calls = calls_in_text(message.text, lambda name: self._offer.find(name) is not None)
        text = message.text if message.text.strip() or calls else self._own_words()
        return message.model_copy(update={"text": text, "calls": calls})

    async def _calls(self) -> AsyncGenerator[AskEvent]:
        """Makes the calls of a turn and adds their answers to the session, in the order of the proposals."""
        proposals = self._open
        for proposal in proposals:
            yield CallProposed(call=proposal.call, proposed=proposal.proposed)
        for group in self._calling.groups(proposals):
            if not self._is_late:
                try:
                    async with aclosing(self._calling.run(group, self._shown.__contains__, self._within)) as events:
                        async for event in events:
                            self._mind_clock(event)
                            yield event
                except _StoppedError as stopped:
                    if stopped.by != "time":
                        raise
                    self._is_late = True
            for proposal in group:
                if proposal.result is None:
                    proposal.result = _not_finished(proposal, self._reason("time"))
                yield await self._answered(proposal)
        fit = any(result.error is None or result.error.code != "invalid_args" for _, result in self._last(proposals))
        self._invalid_rounds = 0 if fit else self._invalid_rounds + 1

    def _mind_clock(self, happened: CallHappened) -> None:
        """Stops the clock while the user is asked whether a call may run, one within another too."""
        now = asyncio.get_running_loop().time()
        has_stood = bool(self._unanswered)
        self._unanswered.update(happened.event, happened.call_id)
        if self._unanswered and not has_stood:
            self._asked_at = now
        elif has_stood and not self._unanswered:
            self._deadline += now - self._asked_at

    def _last(self, proposals: list[Proposal]) -> list[tuple[ToolCall, ToolResult]]:
        return self._done[-len(proposals) :]

    async def _answered(self, proposal: Proposal) -> ToolAnswered:
        result = proposal.result
        assert result is not None, "it was run or refused"
        text = await self._calling.told(proposal)
        await self._answer_to(proposal, result, text)
        return ToolAnswered.model_construct(call=proposal.call, result=result, text=text)

    async def _answer_to(self, proposal: Proposal, result: ToolResult, text: str) -> None:
        proposed = proposal.proposed
        message = ToolMessage(provider_id=proposed.provider_id, name=proposed.name, text=text, ok=result.ok)
        self._open = [other for other in self._open if other is not proposal]
        self._done.append((proposal.call, result))
        await self._say(message, proposal.call.id)
        self._session_updated = True

    async def _settle(self) -> None:
        """Makes the session consistent where the end came early: what was said is kept, every call is answered."""
        text = "".join(self._unsaid)
        self._unsaid.clear()
        if text.strip():
            self._answer = text
            await self._say(ModelMessage(text=text))
        for proposal in self._open:
            result = proposal.result or _not_finished(proposal, "The user interrupted.")
            await self._answer_to(proposal, result, await self._told(proposal, result))

    async def _told(self, proposal: Proposal, result: ToolResult) -> str:
        proposal.result = result
        return await self._calling.told(proposal)

    async def _say(self, message: Message, call: str | None = None) -> None:
        """Adds a message to the session."""
        await asyncio.to_thread(self._ask.sessions.append, self._ask.session, message, call)
        self._messages.append(message)
        self._note(message, call)

    def _note(self, message: Message, call: str | None) -> None:
        if call is not None:
            self._shown.add(call)
        if isinstance(message, ToolMessage) and is_shortened(message.text):
            self._has_shortened = True
        if isinstance(message, ModelMessage) and not all(made.from_text for made in message.calls):
            self._has_native_calls = True

    async def _within(self, wanted: Awaitable[ValueT]) -> ValueT:
        """Waits for something, unless the time is over or the user interrupts."""
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

    def _own_words(self) -> str:
        """Says what happened where the model says nothing."""
        made = [f"- {call.name}: {'done' if result.ok else 'failed'}" for call, result in self._done]
        said = " ".join(part for part in (self._reason(), "The model gave no answer.") if part)
        return "\n".join([said, *(["", "Its calls:", *made] if made else [])])

    def _outcome(self) -> Outcome:
        if self._stopped_by in _REASONS and not self._answer.strip():
            self._answer = self._own_words()
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


def _not_finished(proposal: Proposal, why: str) -> ToolResult:
    name = proposal.call.name
    if proposal.begun:
        message = f"{name} was cut off while it ran; what it had done by then is done. {why}"
    else:
        message = f"{name} was not called. {why}"
    return ToolResult.failed("execution_error", message, "cancelled")
