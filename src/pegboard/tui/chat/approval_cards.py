"""Cards awaiting approval on the Chat page: display, selection and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from textual.screen import Screen

from pegboard.data.json_text import same
from pegboard.models import ScriptAnalysis, ToolCall
from pegboard.results.clean import clean_line
from pegboard.tui.chat.answers import approval_of
from pegboard.tui.chat.call_block import CallBlock, script_in
from pegboard.tui.chat.open_session import OpenSession
from pegboard.tui.chat.prompt import AskLine
from pegboard.tui.chat.transcript import Transcript
from pegboard.tui.state.approvals import ApprovalRequest, Approvals

if TYPE_CHECKING:
    from pegboard.runtime import Runtime


class ApprovalCards:
    """Connects the calls awaiting approval with their cards in the conversation.

    Args:
        page: Screen that runs the workers and shows dialogs and notifications.
        runtime: Analyzes scripts and provides tools and rules.
        approvals: Receives the answers.
        session: The open session.
        transcript: Widget that shows the cards.
        prompt: Prompt that gets the focus after an answer.
        changed: Callback for a change of requests or selection.
    """

    def __init__(
        self,
        page: Screen[None],
        runtime: Runtime,
        approvals: Approvals,
        session: OpenSession,
        transcript: Transcript,
        prompt: AskLine,
        changed: Callable[[], object],
    ) -> None:
        self._page = page
        self._runtime = runtime
        self._approvals = approvals
        self._session = session
        self._transcript = transcript
        self._prompt = prompt
        self._changed = changed
        self._analyzed: set[str] = set()
        """Ids of the calls whose scripts were analyzed."""

    @property
    def requests(self) -> tuple[ApprovalRequest, ...]:
        """Calls awaiting approval, oldest first."""
        requests: tuple[ApprovalRequest, ...] = getattr(self._page.app, "requests", ())
        return requests

    def update(self, old: tuple[ApprovalRequest, ...], requests: tuple[ApprovalRequest, ...]) -> None:
        """Show which calls await approval. Never moves focus or selection."""
        waiting = {request.call.id for request in requests}
        shown = set[CallBlock]()
        for request in requests:
            block = self._session.story.block_of(request.call)
            if block is None or block in shown or not block.knows(request.call):
                continue
            shown.add(block)
            if block.asks_about not in waiting:
                block.ask(request.call)
            current = next(one for one in requests if one.call.id == block.asks_about)
            block.is_destructive = bool(current.spec.hints.destructive)
            block.server = current.spec.location.server or ""
            block.changed()
            self._analyze(block, current.call)
        self._transcript.renew()
        self._changed()
        if waiting - {request.call.id for request in old}:
            self._page.app.bell()

    def renew(self) -> None:
        """Show which calls await approval, whose cards may have just learned of it."""
        self.update(self.requests, self.requests)

    def select_next(self) -> None:
        """Select the marked card awaiting approval, or the oldest; if one is selected, select the next."""
        cards = self._cards()
        if not cards:
            return
        marked = self._transcript.marked
        at = next((at for at, card in enumerate(cards) if card is marked), 0)
        if self._transcript.selected is not None:
            at += 1
        if self._page.maximized is not None and self._page.maximized is not self._transcript:
            self._page.minimize()
        self._transcript.focus()
        self._transcript.select_card(cards[at % len(cards)])
        self._changed()

    @property
    def is_last(self) -> bool:
        """Whether the last card awaiting approval is selected, or none exists."""
        cards = self._cards()
        return not cards or self._transcript.selected is cards[-1]

    def _cards(self) -> list[CallBlock]:
        """Return the cards awaiting approval."""
        return [*dict.fromkeys(filter(None, (self._session.story.block_of(one.call) for one in self.requests)))]

    def leave(self) -> None:
        """Deselect when the user leaves the page, so that later keys go to the prompt."""
        self._transcript.guard.show({})
        if self._page.app.current_mode != "chat":
            self.deselect()

    def deselect(self) -> None:
        """Deselect the selected card, so that later keys go to the prompt."""
        if self._transcript.selected is not None:
            self._transcript.deselect()
            self._prompt.focus()

    def _analyze(self, block: CallBlock, call: ToolCall) -> None:
        """Show the calls of a script awaiting approval, unless they are or will be shown."""
        script = script_in(call)
        if script is not None and call.id not in self._analyzed:
            self._analyzed.add(call.id)
            work: Callable[[], Awaitable[None]] = partial(self._expect, block, call, script)
            self._page.run_worker(work, group="analyze")

    async def _expect(self, block: CallBlock, call: ToolCall, script: str) -> None:
        block.expect(call, await asyncio.to_thread(self._analysis, script))
        self._transcript.guard.restart(call.id)
        self._transcript.renew()

    def _analysis(self, script: str) -> ScriptAnalysis:
        """Return the analysis of a script without secrets; block. Without them, the script could be invalid."""
        from pydantic import TypeAdapter

        kind = TypeAdapter(ScriptAnalysis)
        found = kind.dump_python(self._runtime.scripts.orchestrator().analyze(script), mode="json")
        return kind.validate_python(self._runtime.redacted_args(found))

    def answer(self, block: CallBlock, call_id: str, chosen: str) -> None:
        """Answer a call, after the dialogs that the answer requires."""
        work: Callable[[], Awaitable[None]] = partial(self._answer, block, call_id, chosen)
        self._page.run_worker(work, exclusive=True, group="answer")

    async def _answer(self, block: CallBlock, call_id: str, chosen: str) -> None:
        request = next((one for one in self.requests if one.call.id == call_id), None)
        shown = block.asked_for
        if request is None or shown is None or shown.id != call_id:
            return
        approval = await approval_of(self._page.app, self._runtime, request, shown, chosen)
        if approval is None:
            return
        if not self._approvals.answer(call_id, approval):
            name = clean_line(shown.name)
            self._page.notify(
                f"{name} was not answered because the call has already ended.", severity="warning", markup=False
            )
        elif block.asks_about == call_id:
            is_edited = approval.args is not None and not same(approval.args, request.call.args)
            block.is_edited = block.is_edited or is_edited
            block.answered()
        if all(request.call.id == call_id for request in self.requests):
            self._transcript.follow()
        else:
            self._transcript.deselect()
        self._prompt.focus()
