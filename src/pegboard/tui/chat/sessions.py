"""Dialog for stored sessions: find by name or text, open, rename, export, delete."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len, set_cell_size
from textual import on, work
from textual.binding import BindingType
from textual.content import Content

from pegboard.errors import SessionError, StoreError, explained
from pegboard.models.conversation import Message, ModelMessage, SystemMessage, ToolMessage, UserMessage
from pegboard.models.session import Session, SessionEntry
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import age, count
from pegboard.results.wrap import truncate
from pegboard.tui.commands import Command, bindings
from pegboard.tui.messages import Copy
from pegboard.tui.widgets.dialog import ListDialog
from pegboard.tui.widgets.pick_list import PickLine, PickList

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_MOST: Final = 100_000
"""Limit of listed sessions."""
_SEARCH_PAUSE, _PREVIEW_PAUSE = 0.15, 0.05
"""Delays after the last key before messages are searched and before a session is loaded, in seconds."""
_LAST_MESSAGES, _LAST_HITS = 8, 3
_LONGEST: Final = 2_000
"""Characters of a message in the preview."""
_AROUND: Final = 150
"""Characters before and after a match in the preview."""
_WIDEST_MODEL, _NARROWEST_MODEL = 26, 8
_WIDE: Final = 100
"""Width from which the model is shown beside the name, in cells."""
_BOX: Final = 110
"""Width of the dialog in a terminal that is wide enough, in cells."""
_UNREAD: Final = "The sessions can't be read"


class SessionList(PickList):
    """A row for a new session followed by the stored ones. The filter matches words of names, and messages.

    Args:
        current: ID of the open session.
    """

    def __init__(self, current: str) -> None:
        super().__init__(sign=self._sign_of)
        self._current = current
        self._sessions: Sequence[Session] = ()
        self._matching: frozenset[str] = frozenset()
        self._searched: str | None = None

    @property
    def session(self) -> Session | None:
        """The selected session; None if the row for a new one is selected."""
        return self._sessions[self.marked - 1] if self.marked else None

    @property
    def neighbour(self) -> str:
        """ID of the session to select after the selected one is deleted; empty if it is the last."""
        rows = [row for row in (self.cursor + 1, self.cursor - 1) if 0 <= row < len(self._shown)]
        indexes = [self._shown[row] for row in rows if self._shown[row]]
        return self._sessions[indexes[0] - 1].id if indexes else ""

    @property
    def is_search_complete(self) -> bool:
        """Whether the messages were searched for the current filter."""
        return not self.sought.strip() or self._searched == self.sought

    def show_sessions(self, sessions: Sequence[Session], lines: Sequence[PickLine], marked: str) -> None:
        """Show sessions and keep the filter.

        Args:
            sessions: The sessions, newest first.
            lines: A line for a new session, and one for each session.
            marked: ID of the session to mark, if present.
        """
        self._sessions, self._lines = sessions, lines
        index = next((index for index, session in enumerate(sessions, 1) if session.id == marked), 0)
        self._list(index or None)

    def update_sessions(self, sessions: Sequence[Session], lines: Sequence[PickLine]) -> None:
        """Show sessions as they are now; keep the filter, and the selected session or else the next one."""
        wanted = [self.session.id, self.neighbour] if self.session is not None else []
        indexes = {session.id: index for index, session in enumerate(sessions, 1)}
        self._sessions = sessions
        self.renew(lines, next((indexes[one] for one in wanted if one in indexes), 0))

    def show_search(self, sought: str, ids: frozenset[str]) -> None:
        """Show the sessions whose messages contain a text, if it is still the filter."""
        if sought == self.sought:
            self._matching, self._searched = ids, sought
            self._list(self.marked or None)

    def sift(self, query: str) -> list[int]:
        """Return the indexes of the row for a new session and of matching sessions, newest first."""
        words = query.casefold().split()
        matching = self._matching if self._searched == query else frozenset()
        found = enumerate(zip(self._lines[1:], self._sessions, strict=True), 1)
        fit = [
            index
            for index, (line, session) in found
            if session.id in matching or all(word in line.text.casefold() for word in words)
        ]
        return [*range(min(1, len(self._lines))), *fit]

    def highlighted(self, text: str, *, is_selected: bool = False) -> Content:
        """Return a name with the words of the filter highlighted."""
        del is_selected
        shown = Content(text)
        match = self.get_visual_style("filter-list--match", partial=True)
        for word in self.sought.split():
            for found in re.finditer(re.escape(word), text, re.IGNORECASE):
                shown = shown.stylize(match, *found.span())
        return shown

    def _sign_of(self, index: int) -> str:
        if not index:
            return ""
        return "● " if self._sessions[index - 1].id == self._current else "  "


class SessionsScreen(ListDialog[str | None]):
    """Dialog that returns the ID of the session to open: a stored one, or a new ID.

    Args:
        runtime: Provides the sessions.
        current: ID of the open session, which can't be deleted.
    """

    PAGE = "Sessions"
    FILTER_HINT = "type to search names and messages"

    DEFAULT_CSS = """
    SessionsScreen {
        & > #box {
            width: 110; height: 32;
            SessionList { height: 3fr; }
            #preview { height: 2fr; }
        }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("sessions.rename", "f2", "rename", "Rename", "Rename the selected session.", footer=True),
        Command("sessions.delete", "delete", "delete", "Delete", "Delete the selected session.", footer=True),
        Command(
            "sessions.export",
            "ctrl+s,ctrl+e",
            "export",
            "Export",
            "Export the selected session to a file.",
            footer=True,
        ),
        Command(
            "sessions.copy",
            "ctrl+right_square_bracket,ctrl+y",
            "copy",
            "Copy",
            "Copy the selected session as Markdown.",
            footer=True,
        ),
        Command("sessions.close", "escape", "close", "Close", "Close and stay in the open session.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, current: str) -> None:
        self._sessions = SessionList(current)
        super().__init__("Sessions", "● open", pick_list=self._sessions)
        self._runtime = runtime
        self._current = current
        self._room = 0
        """Cells for the columns after the name; 0 for those without the model."""
        self._shown: Sequence[Session] | None = None
        self._version = 0
        """Version of the history when the sessions were compared with it."""

    def on_mount(self) -> None:
        """Load the sessions, again whenever another process changes them."""
        self._sessions.empty = "Loading…"
        self._room = self._available_room
        self._read(self._current)
        self.follow(self._update)

    def on_resize(self) -> None:
        """Show the models on a wide screen only, and cut them so that all rows have the same columns."""
        if self._room != self._available_room:
            self._room = self._available_room
            marked = self._sessions.session.id if self._sessions.session else ""
            self._read(marked if self._sessions.row_count else self._current)

    @property
    def _available_room(self) -> int:
        width = self.app.size.width
        row = min(_BOX, width * 94 // 100) - 3  # the frame and the scrollbar
        return row // 2 - 2 if width >= _WIDE else 0  # a long name leaves half of a row

    @work(exclusive=True, group="read")
    async def _read(self, marked: str) -> None:
        """Reload the sessions and select one."""
        try:
            self._version, sessions, lines = await asyncio.to_thread(self._load)
        except StoreError as error:
            self._show_error(explained(error, _UNREAD))
            sessions, lines = (), [_NEW]
        self._shown = sessions
        self._sessions.show_sessions(sessions, lines, marked)

    @work(exclusive=True, group="update")
    async def _update(self) -> None:
        """Show what other processes have changed."""
        shown = self._shown
        with suppress(StoreError):  # the next action reports it
            if shown is None or await asyncio.to_thread(self._runtime.sessions.version) == self._version:
                return
            version, sessions, lines = await asyncio.to_thread(self._load)
            if self._shown is not shown:
                return
            self._version = version
            if sessions != shown:
                self._shown = sessions
                self._sessions.update_sessions(sessions, lines)

    def _load(self) -> tuple[int, Sequence[Session], Sequence[PickLine]]:
        version = self._runtime.sessions.version()
        sessions = self._runtime.sessions.list(limit=_MOST)
        return version, sessions, [_NEW, *_lines(sessions, self._room)]

    # Actions

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        """Return the chosen session; a new one only after the search has finished without a match."""
        event.stop()
        if self._sessions.session is not None:
            self._open(self._sessions.session)
        elif self._sessions.is_search_complete:
            self.dismiss(os.urandom(8).hex())

    @work(exclusive=True, group="change")
    async def _open(self, session: Session) -> None:
        """Return a session unless another client has deleted it."""
        found = await self._run_in_thread(_UNREAD, lambda: self._runtime.sessions.get(session.id) or False)
        if found:
            self.dismiss(session.id)
        elif found is not None:
            self._show_error(f"The session {_name(session)} was deleted.")
            self._read(self._sessions.neighbour)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the actions on a session only if one is selected."""
        return self._sessions.session is not None if action in {"rename", "delete", "export", "copy"} else True

    @work(exclusive=True, group="change")
    async def action_rename(self) -> None:
        """Rename the selected session."""
        from pegboard.tui.dialogs.ask_name import ask_name, in_thread

        session = self._sessions.session
        if session is None:
            return
        rename = in_thread(partial(self._runtime.sessions.rename, session.id))
        if await ask_name(self.app, "Rename session to", session.name, rename) is not None:
            self._read(session.id)

    @work(exclusive=True, group="change")
    async def action_delete(self) -> None:
        """Delete the selected session after confirmation."""
        from pegboard.tui.dialogs.confirm import Confirm

        session = self._sessions.session
        if session is None:
            return
        if session.id == self._current:
            self._show_error("The open session can't be deleted. Open another session first.")
            return
        question = f"The session has {count(session.messages, 'message')}. Its calls stay in the history.\n\n"
        asked = Confirm(f"Delete {_name(session)}?", f"{question}This can't be undone.", "Delete")
        if not await self.app.push_screen_wait(asked):
            return
        neighbour = self._sessions.neighbour

        def delete() -> None:
            if self._runtime.sessions.get(session.id) not in (None, session):
                raise SessionError(f"{_name(session)} was not deleted. Another program has changed it in the meantime.")
            self._runtime.sessions.delete(session.id)

        if await self._run_in_thread(f"{_name(session)} was not deleted", delete) is not None:
            self._read(neighbour)

    @work(exclusive=True, group="change")
    async def action_export(self) -> None:
        """Export the selected session to a file in the working directory."""
        from pegboard.tui.chat.session_file import export_session

        session = self._sessions.session
        if session is not None:
            await export_session(self.app, self._runtime, session, self._about)

    @work(exclusive=True, group="change")
    async def action_copy(self) -> None:
        """Copy the selected session as Markdown."""
        session = self._sessions.session
        if session is None:
            return
        text = await self._run_in_thread(_UNREAD, partial(self._runtime.sessions.export, session.id, "markdown"))
        if isinstance(text, str):
            self.app.post_message(Copy(text))

    async def _run_in_thread(self, failed: str, act: Callable[[], object]) -> object | None:
        """Call a function in a thread; return its result or True, or None after showing its error and what failed."""
        try:
            done = await asyncio.to_thread(act)
        except (SessionError, StoreError, OSError) as error:
            self._show_error(explained(error, failed))
            return None
        return True if done is None else done

    def _show_error(self, why: str) -> None:
        self.notify(clean_line(why), severity="error", markup=False)

    # Display

    def describe_found(self, event: PickList.Filtered) -> str:
        """Return how many sessions match."""
        return super().describe_found(event) if self._sessions.is_search_complete else "searching…"

    @on(PickList.Filtered)
    def _filtered(self) -> None:
        if self._sessions.is_search_complete:
            self.workers.cancel_group(self, "search")
        else:
            self._search(self._sessions.sought)

    @work(exclusive=True, group="search")
    async def _search(self, sought: str) -> None:
        """Search the messages once typing stops."""
        await asyncio.sleep(_SEARCH_PAUSE)
        ids: frozenset[str] = frozenset()
        try:
            found = await asyncio.to_thread(self._runtime.sessions.list, sought.strip(), limit=_MOST)
            ids = frozenset(session.id for session in found)
        except StoreError as error:
            self._show_error(explained(error, _UNREAD))
        self._sessions.show_search(sought, ids)

    @on(PickList.Marked)
    def _show_marked(self, event: PickList.Marked) -> None:
        event.stop()
        self.refresh_bindings()
        self._show_end(
            self._sessions.session, self._sessions.sought.strip() if self._sessions.is_search_complete else ""
        )

    @work(exclusive=True, group="preview")
    async def _show_end(self, session: Session | None, sought: str) -> None:
        """Preview the matches in a session's messages, or else its last messages."""
        await asyncio.sleep(_PREVIEW_PAUSE)
        text: Content
        about, text, is_end = Content("New session"), Content(), False
        if session is not None:
            try:
                entries = await asyncio.to_thread(self._runtime.sessions.entries, session.id)
            except StoreError as error:
                self._show_error(explained(error, _UNREAD))
                entries = ()
            found = await asyncio.to_thread(_excerpts, entries, sought)
            text, is_end = found or _last_messages(entries), found is None
            where = "Matches" if found else "Last messages" if entries else "No messages yet"
            facts = " · ".join(clean_line(fact) for fact in (session.model, session.id) if fact)
            about = Content.assemble((where, "bold"), (f"  {facts}", "$text-muted"))
        self.show_preview(about, text, at_end=is_end)


_NEW: Final = PickLine("+ New session", pinned=True)


def _name(session: Session) -> str:
    return clean_line(session.name or session.id)


def _lines(sessions: Sequence[Session], room: int) -> Iterator[PickLine]:
    """Yield a line for each session with columns for age and messages, and for the model if it fits into `room`."""
    now = datetime.now(UTC)
    ages = [age(now, session.changed) for session in sessions]
    counts = [count(session.messages, "message") for session in sessions]
    widths = [max(map(len, column), default=0) for column in (ages, counts)]
    most = min(room - sum(widths) - 4, _WIDEST_MODEL)
    models = [truncate(clean_line(one.model), most) if most >= _NARROWEST_MODEL else "" for one in sessions]
    widest = max(map(cell_len, models), default=0)
    for session, since, messages, model in zip(sessions, ages, counts, models, strict=True):
        note = f"{since:>{widths[0]}}  {messages:>{widths[1]}}  {set_cell_size(model, widest)}"
        yield PickLine(_name(session), note if widest else note.rstrip())


def _last_messages(entries: Sequence[SessionEntry]) -> Content:
    """Return the last messages of a session."""

    def pieces() -> Iterator[Content]:
        for entry in entries[-_LAST_MESSAGES:]:
            text = _text_of(entry.message)
            more = f" … {count(len(text) - _LONGEST, 'more character')}" if len(text) > _LONGEST else ""
            yield Content.assemble(_speaker(entry.message), "  ", clean(text[:_LONGEST]).strip(), (more, "$text-muted"))

    return Content("\n").join([*pieces()])


def _excerpts(entries: Sequence[SessionEntry], sought: str) -> Content | None:
    """Return the last matches with the text around them, or None without a match."""
    if not sought:
        return None
    # the database folds case differently for a few characters; without a match here, the last messages are shown
    pattern = re.compile(re.escape(sought), re.IGNORECASE)
    hits: list[Content] = []
    for entry in reversed(entries):
        text = _text_of(entry.message)
        match = pattern.search(text)
        if match is None:
            continue
        start, end = max(0, match.start() - _AROUND), match.end() + _AROUND
        hits.append(
            Content.assemble(
                _speaker(entry.message),
                "  … " if start else "  ",
                clean(text[start : match.start()]),
                (clean(match[0]), "bold underline"),
                clean(text[match.end() : end]),
                " …" if end < len(text) else "",
            )
        )
        if len(hits) == _LAST_HITS:
            break
    return Content("\n").join(reversed(hits)) if hits else None


def _text_of(message: Message) -> str:
    if isinstance(message, ModelMessage):
        return "\n".join([message.text, *(f"→ {call.name} {call.arguments}" for call in message.calls)]).strip()
    return message.text


def _speaker(message: Message) -> tuple[str, str]:
    match message:
        case SystemMessage():
            return "System", "$text-muted bold"
        case UserMessage():
            return "You", "$text-primary bold"
        case ModelMessage():
            return "Model", "$text-accent bold"
        case ToolMessage(name=name, ok=ok):
            return f"{'✓' if ok else '✗'} {clean_line(name)}", "$text-success bold" if ok else "$text-error bold"
