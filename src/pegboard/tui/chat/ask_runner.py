"""The running ask of the Chat page, and the queue of messages sent meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from textual.screen import Screen

from pegboard.errors import SessionError, StoreError, explained
from pegboard.models.ask import AskFinished, AskStarted, CallHappened
from pegboard.models.events import ApprovalRequested
from pegboard.tui.chat.blocks import NoteBlock
from pegboard.tui.chat.open_session import OpenSession
from pegboard.tui.chat.prompt import AskLine
from pegboard.tui.chat.transcript import Transcript
from pegboard.tui.commands import key_of

if TYPE_CHECKING:
    from pegboard.runtime import Runtime


class AskRunner:
    """Sends messages of the open session one after the other.

    Args:
        page: Screen that runs the worker and shows notifications.
        runtime: Provides the asks.
        session: The open session.
        transcript: Widget that shows the conversation.
        prompt: Prompt that unsent messages return to.
        changed: Callback for a change of `is_running` or of the queue.
        approval_requested: Callback after the card of a call has learned that the call awaits approval.
    """

    def __init__(
        self,
        page: Screen[None],
        runtime: Runtime,
        session: OpenSession,
        transcript: Transcript,
        prompt: AskLine,
        *,
        changed: Callable[[], object],
        approval_requested: Callable[[], object],
    ) -> None:
        self.is_running = False
        self.queue: list[str] = []
        self.hidden_tools: frozenset[str] = frozenset()
        """Names of tools that the model doesn't see."""
        self._page = page
        self._runtime = runtime
        self._session = session
        self._transcript = transcript
        self._prompt = prompt
        self._changed = changed
        self._approval_requested = approval_requested
        self._interrupt: Callable[[], object] | None = None
        self._is_interrupted = False
        self._since = 0.0

    @property
    def seconds(self) -> float | None:
        """Elapsed time of the running ask in seconds; None if nothing runs."""
        return monotonic() - self._since if self.is_running else None

    def send(self, text: str) -> None:
        """Send a message, or queue it while the model or the session is busy."""
        if self.is_running or self._session.is_loading:
            self.queue.append(text)
            self._changed()
        else:
            self._submit(text)

    def send_next(self, text: str = "") -> None:
        """Send `text`, or else the next queued message."""
        if text:
            self._submit(text)
        elif self.queue and not self.is_running:
            self._submit(self.queue.pop(0))

    def interrupt(self) -> None:
        """Stop the running ask; its events end in order."""
        self._is_interrupted = True
        if self._interrupt is not None:
            self._interrupt()

    def take_back_queue(self) -> None:
        """Move the queued messages back to the prompt."""
        if self.queue:
            self._prompt.put_before("\n".join(self.queue))
            self.queue.clear()
            self._changed()

    def _submit(self, text: str) -> None:
        self._is_interrupted = False
        self._since = monotonic()
        self._set_running(True)
        self._session.story.begin(text)
        self._transcript.follow()
        work: Callable[[], Awaitable[None]] = partial(self._ask, text)
        self._page.run_worker(work, exclusive=True, group="ask")

    def _set_running(self, is_running: bool) -> None:
        self.is_running = is_running
        self._changed()

    async def _ask(self, text: str) -> None:
        """Send a message, show the events, and send the next queued message."""
        session, story = self._session, self._session.story
        (name, base_url), system, answering = session.model, session.system, session.model_name
        try:
            ask = await asyncio.to_thread(
                lambda: self._runtime.ask(
                    session.id, model=name, base_url=base_url, without=self.hidden_tools, system=system
                )
            )
            if self._is_interrupted:
                self._take_back(text)
                return
            self._interrupt = ask.interrupt
            async for event in ask.run(text):
                if isinstance(event, AskFinished) and story.is_waiting and event.outcome.model_error is None:
                    self._take_back(text)
                    return
                story.feed(event)
                match event:
                    case AskFinished(outcome=outcome):
                        if outcome.model_error is not None:
                            key = key_of(self._page, "chat.retry")
                            story.note(NoteBlock(f"Press {key} to retry."))
                            self.take_back_queue()
                        await session.update(outcome, model=answering, base_url=base_url, system=system)
                        if not self._page.app.app_focus:
                            self._page.app.bell()
                    case AskStarted():
                        await session.show_missed()
                    case CallHappened(event=ApprovalRequested()):
                        self._approval_requested()
                    case _:
                        pass
        except (SessionError, StoreError) as error:
            story.note(NoteBlock(explained(error, "The session can't be saved"), "error", "Earlier messages are kept."))
        finally:
            self._interrupt = None
            self._set_running(False)
        self.send_next()

    def _take_back(self, text: str) -> None:
        """Return an unsent message and the queue to the prompt."""
        self._session.story.take_back()
        self._prompt.put_before("\n".join([text, *self.queue]))
        self.queue.clear()
        self._page.notify("Message not sent. It is in the prompt again.")
