"""The tool calls of one model turn: parsed, run in order, and answered with text for the model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import TypeAlias

from pegboard.ask.call_text import UnreadableArguments, arguments
from pegboard.ask.offer import Offer
from pegboard.ask.result_text import MORE, excerpt, parse_more, result_text
from pegboard.data.json_text import same
from pegboard.models import ApprovalRequested, CallEvent, Finished, JsonObject, Started, ToolCall, ToolResult
from pegboard.models.ask import CallHappened
from pegboard.models.conversation import ProposedCall
from pegboard.ports import Calls
from pegboard.results.edits import edit_note

UNFINISHED = "unfinished_turn"
"""Detail of the result of a call whose turn didn't end properly."""
_LONGEST_NAME = 200
"""Characters that are kept of an unknown tool's name."""
_AHEAD = 1_000
"""Capacity of the queue between calls and the consumer of their events."""

_Happened: TypeAlias = "tuple[Proposal, CallEvent | None]"
"""A call with one of its events, or None after the last one."""


@dataclass
class Proposal:
    """A proposed call and its state."""

    proposed: ProposedCall
    call: ToolCall
    """The call as it was made, as soon as it runs."""
    result: ToolResult | None = None
    """Set before running if the call can't run."""
    text: str | None = None
    """Text for the model that replaces that of the result."""
    only_reads: bool = False
    begun: bool = False
    """Whether the call started, so that it may have had effects."""
    asked: JsonObject | None = field(default=None, repr=False)
    """The arguments that the user was asked to approve."""

    @property
    def edited(self) -> JsonObject | None:
        """The arguments that the call ran with, if the user changed them; otherwise None."""
        return self.call.args if self.asked is not None and not same(self.asked, self.call.args) else None

    def not_finished(self, why: str) -> ToolResult:
        """Return the result of a call that did not end by itself."""
        name = self.call.name
        if self.begun:
            message = f"{name} was interrupted while it ran; effects so far are not undone. {why}"
        else:
            message = f"{name} was not called. {why}"
        return ToolResult.failed("execution_error", message, "cancelled")


class CallRunner:
    """Runner of the calls that a model proposes.

    Args:
        calls: The call pipeline.
        offer: The tools that the model was offered.
        session: Id of the session that the calls belong to.
        turn: Id of the turn that the calls belong to.
        whole: Function that returns the complete text of a result by the id of its call, or None; it may block.
        limit: Bytes of a result that are sent to the model in one message.
        parallel: Whether adjacent read-only calls run concurrently.
    """

    def __init__(
        self,
        calls: Calls,
        offer: Offer,
        *,
        session: str,
        turn: str,
        whole: Callable[[str], str | None],
        limit: int,
        parallel: bool,
    ) -> None:
        self._calls = calls
        self._offer = offer
        self._session = session
        self._turn = turn
        self._whole = whole
        self._limit = limit
        self._parallel = parallel

    def read(self, proposed: Sequence[ProposedCall], *, is_complete: bool) -> list[Proposal]:
        """Parse the calls of a turn; those that can't run get their result here.

        Args:
            proposed: As the model wrote them.
            is_complete: Whether the turn ended properly. Otherwise no call runs: truncated arguments can be valid JSON.
        """
        everything = cache(lambda: Offer(self._calls.callable()))
        return [self._read(one, everything, is_complete=is_complete) for one in proposed]

    def _read(self, proposed: ProposedCall, everything: Callable[[], Offer], *, is_complete: bool) -> Proposal:
        spec = self._offer.find(proposed.name)
        # A tool that is switched off may still be called by the name under which it was offered earlier.
        hidden = everything().find(proposed.name) if spec is None and proposed.name != MORE else None
        meant = spec or hidden
        name = proposed.name[:_LONGEST_NAME] if meant is None else meant.name
        call = ToolCall(
            name=name,
            source="ask",
            session=self._session,
            turn=self._turn,
            provider_id=proposed.provider_id,
            from_text=proposed.from_text,
        )
        only_reads = spec is not None and bool(spec.hints.read_only)
        if not is_complete:
            message = (
                f"{name} was not called because the model's turn ended early, after {len(proposed.arguments):,}"
                " characters of arguments. Call it again in a shorter turn."
            )
            return Proposal(proposed, call, ToolResult.failed("invalid_args", message, UNFINISHED))
        try:
            args = arguments(proposed.arguments)
        except UnreadableArguments as unreadable:
            result = ToolResult.failed("invalid_args", f"{name} was not called. {unreadable}")
            return Proposal(proposed, call, result)
        proposal = Proposal(proposed, call.model_copy(update={"args": args}), only_reads=only_reads)
        if hidden is not None:
            message = f"{name} was not called because it is switched off in this conversation."
            proposal.result = ToolResult.failed("tool_not_found", message, "not_allowed")
        return proposal

    def groups(self, proposals: Sequence[Proposal]) -> Iterator[list[Proposal]]:
        """Yield the calls in order, grouped with those that may run concurrently."""
        for _, group in groupby(enumerate(proposals), key=lambda item: -1 if self._is_concurrent(item[1]) else item[0]):
            yield [proposal for _, proposal in group]

    def _is_concurrent(self, proposal: Proposal) -> bool:
        return self._parallel and proposal.only_reads

    async def run(
        self,
        group: Sequence[Proposal],
        shown: Callable[[str], bool],
        within: Callable[[Awaitable[_Happened]], Awaitable[_Happened]],
    ) -> AsyncGenerator[CallHappened]:
        """Run calls concurrently and yield their events; afterwards each has its result.

        Args:
            group: The calls.
            shown: Predicate on a call's id: whether the session contains its result.
            within: Wrapper that awaits within the time limit, and raises when it is over.
        """
        waiting = [proposal for proposal in group if proposal.result is None]
        for proposal in [*waiting]:
            if proposal.call.name == MORE and self._offer.find(MORE) is None:
                waiting.remove(proposal)
                await asyncio.to_thread(self._read_more, proposal, shown)
        events: asyncio.Queue[_Happened] = asyncio.Queue(_AHEAD)
        tasks = [asyncio.create_task(self._follow(proposal, events)) for proposal in waiting]
        try:
            unfinished = len(tasks)
            while unfinished:
                proposal, event = await within(events.get())
                if event is None:
                    unfinished -= 1
                    continue
                _update(proposal, event)
                yield CallHappened.model_construct(call_id=proposal.call.id, event=event)
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, proposal: Proposal, events: asyncio.Queue[_Happened]) -> None:
        try:
            async with aclosing(self._calls.call(proposal.call)) as happening:
                async for event in happening:
                    # Set here: the consumer may read the event only after an interruption.
                    if isinstance(event, Started) and event.call.id == proposal.call.id:
                        proposal.begun = True
                    await events.put((proposal, event))
        finally:
            if not _is_cancelled():
                await events.put((proposal, None))

    def _read_more(self, proposal: Proposal, shown: Callable[[str], bool]) -> None:
        asked = parse_more(proposal.call.args)
        if isinstance(asked, str):
            message = f"{MORE} was not called because its arguments are invalid: {asked}"
            proposal.result = ToolResult.failed("invalid_args", message)
            return
        call, start = asked
        text = self._whole(call) if shown(call) else None
        if text is None:
            message = f"This session contains no result of a call {call!r}."
            proposal.result = ToolResult.failed("execution_error", message, "not_kept")
            return
        proposal.text = excerpt(text, start, self._limit, call)
        proposal.result = ToolResult(ok=True, data=proposal.text)

    async def result_text(self, proposal: Proposal) -> str:
        """Return the result of a call as the model reads it."""
        result = proposal.result
        assert result is not None, "the call has ended"
        if proposal.text is not None:
            return proposal.text
        whole = None
        if result.meta.truncated is not None:
            whole = await asyncio.to_thread(self._whole, proposal.call.id)
        text = result_text(result, whole, proposal.call.id, self._limit)
        if proposal.edited is None:
            return text
        return f"{edit_note(proposal.edited)}\n{text}"


def _update(proposal: Proposal, event: CallEvent) -> None:
    match event:
        case ApprovalRequested(call=call) if call.id == proposal.call.id:
            proposal.asked = call.args
        case Started(call=call) if call.id == proposal.call.id:
            proposal.call = call
        case Finished(call=call, result=result) if call.id == proposal.call.id:
            proposal.call, proposal.result = call, result


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
