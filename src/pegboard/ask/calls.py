"""The calls of one turn: read, run in their order, and answered in words that the model can read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeAlias

from pegboard.ask.call_text import UnreadableArguments, arguments
from pegboard.ask.offer import Offer
from pegboard.ask.result_text import MORE, excerpt, told, wanted
from pegboard.data.json_text import write
from pegboard.models import ApprovalRequested, CallEvent, Finished, JsonObject, Started, ToolCall, ToolResult
from pegboard.models.ask import CallHappened
from pegboard.models.conversation import ProposedCall
from pegboard.ports import Calls

UNFINISHED = "unfinished_turn"
"""Detail of the result of a call whose turn didn't end properly."""
_LONGEST_NAME = 200
"""Characters of a name that no tool has."""
_AHEAD = 1_000
"""Events that calls may be ahead of whoever watches them."""

_Happened: TypeAlias = "tuple[Proposal, CallEvent | None]"
"""What happened to a call, or that nothing more will."""


@dataclass
class Proposal:
    """A call that a model proposed, on its way to its result."""

    proposed: ProposedCall
    call: ToolCall
    """As it was made, once it was."""
    result: ToolResult | None = None
    """Here before it ran if it won't be."""
    text: str | None = None
    """The result for the model, where it isn't told like any other."""
    only_reads: bool = False
    begun: bool = False
    """Whether it ran, so that it may have done something."""
    asked: JsonObject | None = field(default=None, repr=False)
    """The arguments that the user was shown."""

    @property
    def edited(self) -> JsonObject | None:
        """The arguments that it ran with, if the user changed them."""
        return self.call.args if self.asked is not None and self.asked != self.call.args else None


class Calling:
    """Makes the calls that a model proposes.

    Args:
        calls: The road that all calls take.
        offer: The tools that the model was offered.
        session: The session that they belong to.
        whole: Gives the text of all of a result by the id of its call, if it is kept; blocks.
        limit: Bytes of a result that the model is told at once.
        parallel: Whether neighbours that only read run at once.
    """

    def __init__(
        self,
        calls: Calls,
        offer: Offer,
        *,
        session: str,
        whole: Callable[[str], str | None],
        limit: int,
        parallel: bool,
    ) -> None:
        self._calls = calls
        self._offer = offer
        self._session = session
        self._whole = whole
        self._limit = limit
        self._parallel = parallel

    def read(self, proposed: Sequence[ProposedCall], *, is_complete: bool) -> list[Proposal]:
        """Read the calls of a turn; those that can't be run have their result already.

        Args:
            proposed: As the model wrote them.
            is_complete: Whether the turn ended properly; none of the calls of any other may run, for arguments can be
                valid and still not be all that the model meant.
        """
        return [self._read(one, is_complete=is_complete) for one in proposed]

    def _read(self, proposed: ProposedCall, *, is_complete: bool) -> Proposal:
        spec = self._offer.find(proposed.name)
        # by the name too under which it was offered earlier in the session
        hidden = Offer(self._calls.callable()).find(proposed.name) if spec is None and proposed.name != MORE else None
        meant = spec or hidden
        name = proposed.name[:_LONGEST_NAME] if meant is None else meant.name
        call = ToolCall(
            name=name,
            source="ask",
            session=self._session,
            provider_id=proposed.provider_id,
            from_text=proposed.from_text,
        )
        only_reads = spec is not None and bool(spec.hints.read_only)
        if not is_complete:
            message = (
                f"{name} was not called because the model's answer ended early, after {len(proposed.arguments):,}"
                " characters of arguments. Call it again with a shorter answer."
            )
            return Proposal(proposed, call, ToolResult.failed("invalid_args", message, UNFINISHED))
        try:
            args = arguments(proposed.arguments)
        except UnreadableArguments as unreadable:
            result = ToolResult.failed("invalid_args", f"{name} was not called. {unreadable}")
            return Proposal(proposed, call, result)
        proposal = Proposal(proposed, call.model_copy(update={"args": args}), only_reads=only_reads)
        if hidden is not None:
            message = f"{name} is switched off in this conversation."
            proposal.result = ToolResult.failed("tool_not_found", message, "not_allowed")
        return proposal

    def groups(self, proposals: Sequence[Proposal]) -> Iterator[list[Proposal]]:
        """Gives the calls in their order, together those that may run at once."""
        for _, group in groupby(enumerate(proposals), key=lambda item: -1 if self._at_once(item[1]) else item[0]):
            yield [proposal for _, proposal in group]

    def _at_once(self, proposal: Proposal) -> bool:
        return self._parallel and proposal.only_reads

    async def run(
        self,
        group: Sequence[Proposal],
        shown: Callable[[str], bool],
        within: Callable[[Awaitable[_Happened]], Awaitable[_Happened]],
    ) -> AsyncGenerator[CallHappened]:
        """Runs some calls at once and yields what happens to them; then each has its result.

        Args:
            group: The calls.
            shown: Tells whether the result of a call was told in this session.
            within: Waits for something as long as there is time, and raises if there is none left.
        """
        waiting = [proposal for proposal in group if proposal.result is None]
        for proposal in [*waiting]:
            if proposal.call.name == MORE and self._offer.find(MORE) is None:
                waiting.remove(proposal)
                await asyncio.to_thread(self._more, proposal, shown)
        events: asyncio.Queue[_Happened] = asyncio.Queue(_AHEAD)
        tasks = [asyncio.create_task(self._follow(proposal, events)) for proposal in waiting]
        try:
            unfinished = len(tasks)
            while unfinished:
                proposal, event = await within(events.get())
                if event is None:
                    unfinished -= 1
                    continue
                _learn(proposal, event)
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
                    # here, not where it is told: that may be after the interruption
                    if isinstance(event, Started) and event.owner == proposal.call.id:
                        proposal.begun = True
                    await events.put((proposal, event))
        finally:
            if not _is_cancelled():
                await events.put((proposal, None))

    def _more(self, proposal: Proposal, shown: Callable[[str], bool]) -> None:
        """Answers the call for more of a result."""
        asked = wanted(proposal.call.args)
        if isinstance(asked, str):
            proposal.result = ToolResult.failed("invalid_args", f"{MORE} was not called: {asked}")
            return
        call, start = asked
        text = self._whole(call) if shown(call) else None
        if text is None:
            message = f"There is no result of a call {call!r} in this session."
            proposal.result = ToolResult.failed("execution_error", message, "not_kept")
            return
        proposal.text = excerpt(text, start, self._limit, call)
        proposal.result = ToolResult(ok=True, data=proposal.text)

    async def told(self, proposal: Proposal) -> str:
        """Gives the result of a call as the model reads it."""
        result = proposal.result
        assert result is not None, "it was run"
        if proposal.text is not None:
            return proposal.text
        whole = None
        if result.meta.truncated is not None:
            whole = await asyncio.to_thread(self._whole, proposal.call.id)
        text = told(result, whole, proposal.call.id, self._limit)
        if proposal.edited is None:
            return text
        return f"The user edited the arguments first. It ran with {write(proposal.edited)}.\n{text}"


def _learn(proposal: Proposal, event: CallEvent) -> None:
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
