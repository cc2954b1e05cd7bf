"""The open session of the Chat page: loading, editing and branching it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from textual.screen import Screen

from pegboard.errors import SessionError, StoreError, explained
from pegboard.models import HistoryQuery, JsonObject, ToolResult
from pegboard.models.ask import Outcome
from pegboard.models.conversation import ModelMessage, ToolMessage, UserMessage
from pegboard.models.model_requirements import OFFLINE
from pegboard.models.session import Session, SessionEntry
from pegboard.models.turn import ModelTurn
from pegboard.results.clean import clean_line
from pegboard.tui.chat.blocks import Block, TextBlock, ThoughtBlock, UserBlock
from pegboard.tui.chat.call_block import CallBlock
from pegboard.tui.chat.prompt import AskLine
from pegboard.tui.chat.story import Story, TurnEnd
from pegboard.tui.chat.transcript import Transcript
from pegboard.until_done import until_done

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

SHOWN: Final = 200
"""Messages of a session shown initially, and added on demand."""
_MOST_TURNS: Final = 1_000
"""Turns, the newest ones, of which it is shown why they failed."""


def new_id() -> str:
    """Return an ID for a new session."""
    return os.urandom(8).hex()


class SessionListener(Protocol):
    """Receiver of changes of the open session."""

    def may_leave(self) -> bool:
        """Return whether the session may be changed now; explain to the user if not."""
        ...

    def session_opened(self, send: str) -> None:
        """Handle another state of the session, and send a message unless it is empty."""
        ...

    def session_unchanged(self) -> None:
        """Handle a change that failed or wasn't needed."""
        ...


class OpenSession:
    """The session on the screen, its model and its conversation.

    Args:
        page: Screen that runs the workers and shows dialogs and notifications.
        runtime: Provides sessions, models and history.
        transcript: Widget that shows the conversation.
        prompt: Prompt whose history contains the messages of the session.
        listener: Receiver of changes.
    """

    def __init__(
        self, page: Screen[None], runtime: Runtime, transcript: Transcript, prompt: AskLine, listener: SessionListener
    ) -> None:
        self.id = ""
        """ID of the session; empty before the page is mounted."""
        self.model: tuple[str | None, str | None] = (None, None)
        """Name and base URL of the chosen model; None for the configured ones."""
        self.system: str | None = None
        """System prompt for the next message; None if unchanged."""
        self.cost = 0.0
        """Cost in US dollars since the session was opened."""
        self.record: Session | None = None
        """Stored session; None before its first message."""
        self._page = page
        self._runtime = runtime
        self._transcript = transcript
        self._prompt = prompt
        self._listener = listener
        self._base_urls: dict[str, str | None] = {}
        self._limit = SHOWN
        self._known: int | None = 0
        """Number of stored messages up to the end of the conversation; None if it is unknown."""
        self._is_stale = False
        """Whether the conversation has messages that another client has deleted."""
        self.story = self._new_story()

    @property
    def model_name(self) -> str:
        """Name of the model that answers."""
        return self.model[0] or self._runtime.settings.model.name or OFFLINE

    @property
    def is_loading(self) -> bool:
        """Whether another session is being loaded."""
        workers = (one for one in self._page.workers if one.node is self._page and one.group == "session")
        return any(not worker.is_finished for worker in workers)

    @property
    def system_prompt(self) -> str:
        """System prompt that the next message is sent with."""
        if self.system is not None:
            return self.system
        stored = self.record.system if self.record is not None else None
        return self._runtime.models.system_prompt if stored is None else stored

    def choose_model(self, name: str, base_url: str | None) -> None:
        """Use another model from the next message on."""
        self.model = (name, base_url)
        self._base_urls[name] = base_url

    async def update(self, outcome: Outcome, *, model: str, base_url: str | None, system: str | None) -> None:
        """Update record and cost after an ask; the user may have chosen another model meanwhile.

        Args:
            outcome: Outcome of the ask.
            model: Name of the model that answered.
            base_url: Base URL of that model; None for the configured one.
            system: System prompt that the ask stored; a later change is for the next message.
        """
        if self.system == system:
            self.system = None
        self.record = await asyncio.to_thread(self._runtime.sessions.get, self.id)
        self._known = self.record.messages if self.record is not None else 0
        cost = await asyncio.to_thread(self._runtime.models.price, model, base_url, outcome.usage)
        self.cost += cost or 0.0

    async def show_missed(self) -> None:
        """Show before the last user message, which is stored, what other clients have added since the last change."""
        # unknown until the next update: messages of an ask that fails are on the screen already
        known, self._known = self._known, None
        if known is None:
            return
        try:
            stored, entries = await asyncio.to_thread(self._entries_from, known)
        except StoreError as error:
            self._page.notify(clean_line(explained(error, "The session can't be read")), severity="error", markup=False)
            return
        if stored < known:  # as many as before may mean that the new message can't be stored
            self._is_stale = True
            self._page.notify(
                "Another client has deleted messages of this session. The model doesn't get them, although they are"
                " still on the screen.",
                severity="warning",
            )
        last = max((one.position for one in entries if isinstance(one.message, UserMessage)), default=0)
        missed = [entry for entry in entries if entry.position < last][-SHOWN:]
        if missed or self.story.pending:
            story = self._new_story()
            story.pending = self.story.pending
            await asyncio.to_thread(self._recall, self.id, story, missed)
            self.story.insert(story.blocks)

    def _entries_from(self, position: int) -> tuple[int, list[SessionEntry]]:
        """Return the number of stored messages, and those from a position on if others than the last are new."""
        record = self._runtime.sessions.get(self.id)
        stored = record.messages if record is not None else 0
        if stored <= position + 1:
            return stored, []
        return stored, [entry for entry in self._runtime.sessions.entries(self.id) if entry.position >= position]

    # Loading

    def start(self) -> None:
        """Show a new session when the page is mounted."""
        self.id = new_id()
        self._transcript.show(self.story.blocks)

    def open(
        self,
        session: str,
        *,
        limit: int = SHOWN,
        send: str = "",
        draft: str = "",
        stay: bool = False,
        at: int | None = None,
    ) -> None:
        """Load a session and show its end.

        Args:
            session: ID of the session.
            limit: Number of messages to show.
            send: Message to send afterwards.
            draft: Text for the prompt.
            stay: Whether to keep the current messages in the viewport.
            at: Position of a message of the user to show first; None for the end.
        """
        self._run(partial(self._load, session, limit=limit, send=send, draft=draft, stay=stay, at=at))

    def reload(self) -> None:
        """Load the session again."""
        self.open(self.id, limit=self._limit)

    def refresh(self) -> None:
        """Load the session again if another process has changed or deleted it."""
        if self.record is not None and not self.is_loading:
            self._run(partial(self._refresh, self.record))

    async def _refresh(self, known: Session) -> None:
        try:
            record = await asyncio.to_thread(self._runtime.sessions.get, known.id)
        except StoreError as error:
            self._fail(error)
            return
        if record == known and not self.story.pending and not self._is_stale:
            self._listener.session_unchanged()
            return
        if record is None:
            self._page.notify("This session was deleted elsewhere. Your next message starts a new one.")
        await self._load(known.id, limit=self._limit, send="", draft="", stay=False, at=None)

    def show_earlier(self) -> None:
        """Show more messages before the first one."""
        self.open(self.id, limit=self._limit + SHOWN, stay=True)

    async def _load(self, session: str, *, limit: int, send: str, draft: str, stay: bool, at: int | None) -> None:
        story = self._new_story()
        try:
            record, entries, is_in_use = await asyncio.to_thread(self._read, session)
            if at is not None:
                limit = max(limit, sum(entry.position >= at for entry in entries))
            shown = entries[-limit:]
            await asyncio.to_thread(self._recall, session, story, shown, is_in_use=is_in_use)
        except StoreError as error:
            self._put_back(send)
            self._fail(error)
            return
        except asyncio.CancelledError:
            self._put_back(send)
            raise
        if story.pending:
            self._page.notify("Another client uses this session, and its calls are answered there.")
        if session != self.id:
            self.system = None
            self.cost = 0.0
            if record is not None and record.model not in {"", OFFLINE}:
                self.model = (record.model, self._base_urls.get(record.model))
        else:
            story.usage = self.story.usage
        before = _stored_blocks(self.story.blocks)
        self.id, self.record, self.story, self._limit, self._is_stale = session, record, story, limit, False
        self._known = entries[-1].position + 1 if entries else 0
        self._transcript.hidden = len(entries) - len(shown)
        self._transcript.show(story.blocks)
        self._prompt.remember([entry.message.text for entry in entries if isinstance(entry.message, UserMessage)])
        if stay:
            stored = [index for index, block in enumerate(story.blocks) if _stored_blocks([block])]
            if 0 < before <= len(stored):
                self._transcript.action_move_to(stored[-before])
        if at is not None:
            self._page.call_after_refresh(self._show_message, sum(_is_before(entry, at) for entry in shown))
        if draft:
            self._prompt.put_before(draft)
        self._listener.session_opened(send)

    def _show_message(self, number: int) -> None:
        """Mark a message of the user and scroll to it.

        Args:
            number: Number of messages of the user before it.
        """
        messages = [index for index, block in enumerate(self.story.blocks) if isinstance(block, UserBlock)]
        if number < len(messages):
            self._transcript.action_move_to(messages[number])

    def _read(self, session: str) -> tuple[Session | None, Sequence[SessionEntry], bool]:
        """Return a session, its messages, and whether another client may add results of its calls."""
        sessions = self._runtime.sessions
        record, entries = sessions.get(session), sessions.entries(session)
        if not _lacks_results(entries):
            return record, entries, False
        with sessions.held(session) as is_free:  # only if needed, because no one else can begin to use it meanwhile
            pass
        return sessions.get(session), sessions.entries(session), not is_free

    def _recall(self, session: str, story: Story, entries: Sequence[SessionEntry], *, is_in_use: bool = False) -> None:
        """Show stored messages with the results of their calls, and why turns ended; read the disk, and draw."""
        names, ends = self._runtime.models.tool_names(), self._ends(session)
        story.recall(entries, names, self._recorded, ends, is_in_use=is_in_use)
        self._transcript.prepare(story.blocks)

    def _ends(self, session: str) -> dict[int, TurnEnd]:
        """Return why turns ended, by the position of the user's message; the last turn of a message counts."""
        query = HistoryQuery(sessions=(session,), parent="none", turns=True)
        try:
            found = self._runtime.activity.page(query, limit=_MOST_TURNS).calls
        except StoreError:
            return {}
        ends: dict[int, TurnEnd] = {}
        for call in found:
            turn = ModelTurn.of(call)
            if turn.message is not None and call.turn == call.id:
                ends.setdefault(turn.message, TurnEnd(call.error, turn.stopped_by))
        return ends

    def _recorded(self, call_id: str) -> tuple[JsonObject | None, ToolResult | None]:
        try:
            call = next(iter(self._runtime.activity.find([call_id])), None)
            return call.args if call is not None else None, self._runtime.history.result(call_id)
        except StoreError:
            return None, None

    def _new_story(self) -> Story:
        unfold = self._runtime.settings.ui.unfold
        return Story(lambda _: self._transcript.renew(), unfold, keys=self._transcript.card_keys)

    def _fail(self, error: Exception, failed: str = "The session can't be read") -> None:
        self._page.notify(clean_line(explained(error, failed)), severity="error", markup=False)
        self._listener.session_unchanged()

    def _run(self, change: Callable[[], Awaitable[None]], group: str = "session") -> None:
        self._page.run_worker(change, exclusive=True, group=group)

    # Editing

    @property
    def last_message(self) -> UserBlock | None:
        """The last user message, or None."""
        return next((block for block in reversed(self.story.blocks) if isinstance(block, UserBlock)), None)

    def resend(self, text: str | None = None) -> None:
        """Remove the last user message with its answer, and send it again or send `text` instead."""
        if self._listener.may_leave():
            self._run(partial(self._resend, text))
        else:
            self._put_back(text)

    async def _resend(self, text: str | None) -> None:
        last = self.last_message
        if last is None:
            self._page.notify("No message to resend yet.")
            self._listener.session_unchanged()
            return
        try:
            await until_done(asyncio.to_thread(self._drop_last, self.id, last.message))
        except (SessionError, StoreError) as error:
            self._put_back(text)
            self._fail(error, "The message was not sent again")
            return
        except asyncio.CancelledError:
            self._put_back(text or last.message)
            raise
        self.open(self.id, limit=self._limit, send=text if text is not None else last.message)

    def _put_back(self, text: str | None) -> None:
        """Put a message that can't be sent now before the text of the prompt."""
        if text:
            self._prompt.put_before(text)
            self._page.notify("Message not sent. It is in the prompt again.")

    def _drop_last(self, session: str, message: str) -> None:
        """Delete the last user message and its answer if it is this one; keep what another client has added since."""
        messages = self._user_messages(session)
        # Stored without secrets, but on the screen as typed.
        if messages and messages[-1].message.text in {message, self._runtime.redacted(message)}:
            self._runtime.sessions.cut(session, messages[-1].position)

    def edit(self, block: UserBlock) -> None:
        """Edit a user message: the last one in this session, an earlier one in a new session."""
        self._run(partial(self._edit, block), group="dialog")

    async def _edit(self, block: UserBlock) -> None:
        from pegboard.tui.dialogs.ask_text import AskText

        removed = self._messages_from(block)
        note = "" if len(removed) == 1 else "The edited message starts a new session; this one stays unchanged."
        text = await self._page.app.push_screen_wait(AskText("Edit message", block.message, note))
        if text is None or not text.strip():
            return
        if len(removed) == 1:
            self.resend(text)
        elif self._listener.may_leave():
            self._run(partial(self._branch, removed, send=text))
        else:
            self._put_back(text)

    def branch(self, block: Block) -> None:
        """Continue in a new session from a block; a user message becomes the draft of the prompt."""
        removed = self._messages_from(block)
        if isinstance(block, UserBlock):
            self._run(partial(self._branch, removed, draft=block.message))
        else:
            self._run(partial(self._branch, removed, after=self._place(block)))

    async def _branch(
        self, removed: Sequence[str], *, send: str = "", draft: str = "", after: tuple[str, int] | None = None
    ) -> None:
        """Open a copy of the session without these user messages, its last ones, and what another client has added.

        Args:
            removed: The user messages.
            send: Message to send in the copy.
            draft: Text for the prompt.
            after: User message before the removed ones, and the number of blocks of its answer to copy; None for all.
        """
        old, new = self.id, new_id()

        def copy() -> None:
            end = self._position(old, removed) if after is None else self._end(old, [after[0], *removed], after[1])
            self._runtime.sessions.branch(old, new, end)

        try:
            await until_done(asyncio.to_thread(copy))
        except (SessionError, StoreError) as error:
            self._put_back(send)
            self._fail(error, "The session was not changed")
            return
        except asyncio.CancelledError:  # the user opens another session, and would find the copy in the list
            self._put_back(send)
            with suppress(SessionError, StoreError):
                await until_done(asyncio.to_thread(self._runtime.sessions.delete, new))
            raise
        self._page.notify("Opened a new session. The original session is unchanged.")
        self.open(new, send=send, draft=draft)
        self._prompt.focus()

    def _place(self, block: Block) -> tuple[str, int] | None:
        """Return the user message that a block answers, and its number among the stored blocks of the answer.

        Return None if the message isn't shown, or the block is a notice without an answer before it.
        """
        blocks = self.story.blocks
        before = blocks[: blocks.index(block) + 1]
        first = next((at for at in reversed(range(len(before))) if isinstance(before[at], UserBlock)), None)
        message = None if first is None else before[first]
        number = 0 if first is None else _stored_blocks(before[first + 1 :]) + isinstance(block, ThoughtBlock)
        return (message.message, number) if isinstance(message, UserBlock) and number else None

    def _end(self, session: str, last: Sequence[str], blocks: int) -> int:
        """Return the position after the model turn with a block, and after the results of its calls.

        Args:
            session: ID of the session.
            last: The last user messages, from the answered one on.
            blocks: Number of the block in the answer.
        """
        start = self._position(session, last)
        for entry in self._runtime.sessions.entries(session):
            match entry.message:
                case UserMessage() if entry.position > start:
                    return entry.position
                case ModelMessage(text=text, calls=made) if entry.position > start:
                    if blocks <= 0:
                        return entry.position
                    blocks -= bool(text.strip()) + len(made)
                case _:
                    pass
        return 2**62

    def _messages_from(self, block: Block) -> list[str]:
        """Return the user messages from a block to the end."""
        blocks = self.story.blocks
        return [one.message for one in blocks[blocks.index(block) :] if isinstance(one, UserBlock)]

    def _position(self, session: str, last: Sequence[str]) -> int:
        """Return the position of the first of the last user messages, or one after the end if there are none."""
        if not last:
            return 2**62
        messages = self._user_messages(session)[: 1 - len(last) or None]
        # Another client may have added messages; they are stored without secrets, but on the screen as typed.
        texts = {last[0], self._runtime.redacted(last[0])}
        found = (entry.position for entry in reversed(messages) if entry.message.text in texts)
        return next(found, messages[-1].position if messages else 2**62)

    def _user_messages(self, session: str) -> list[SessionEntry]:
        entries = self._runtime.sessions.entries(session)
        return [entry for entry in entries if isinstance(entry.message, UserMessage)]


def _lacks_results(entries: Sequence[SessionEntry]) -> bool:
    """Return whether the last message with calls has one without a result."""
    called: set[str] = set()
    for message in (entry.message for entry in entries):
        if isinstance(message, ModelMessage):
            called = {call.provider_id for call in message.calls}
        elif isinstance(message, ToolMessage):
            called.discard(message.provider_id)
    return bool(called)


def _is_before(entry: SessionEntry, position: int) -> bool:
    """Return whether an entry is a message of the user before a position."""
    return isinstance(entry.message, UserMessage) and entry.position < position


def _stored_blocks(blocks: Sequence[Block]) -> int:
    """Return the number of blocks that a session stores."""
    return sum(isinstance(block, UserBlock | TextBlock | CallBlock) for block in blocks)
