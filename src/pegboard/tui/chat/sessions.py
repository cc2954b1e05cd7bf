"""The conversations that are kept: found by their names and by what was said, opened, renamed, exported, deleted."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from pegboard.errors import SessionError, StoreError
from pegboard.models.conversation import Message, ModelMessage, SystemMessage, ToolMessage, UserMessage
from pegboard.models.session import Session, SessionEntry
from pegboard.results.clean import clean, clean_line
from pegboard.results.new_file import write_new
from pegboard.results.sizes import age, count
from pegboard.tui.commands import Command, bindings
from pegboard.tui.messages import Copy
from pegboard.tui.shell.footer import KeysLine
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.filter_line import FilterLine
from pegboard.tui.widgets.pick_list import PickLine, PickList

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_Kind: TypeAlias = Literal["markdown", "json"]

_MOST: Final = 100_000
"""Sessions that are listed."""
_SEARCH_PAUSE, _PREVIEW_PAUSE = 0.15, 0.05
"""Seconds without a key before all that was said is searched, and before the marked session is read."""
_LAST_MESSAGES, _LAST_HITS = 8, 3
_LONGEST: Final = 2_000
"""Characters of a message that the preview shows."""
_AROUND: Final = 150
"""Characters that it shows before and after what was searched for."""
_WIDEST_MODEL: Final = 26
_WIDE: Final = 100
"""Columns of a screen on which there is room for the model beside the name."""
_EXPORTS: Final[tuple[tuple[_Kind, str, PickLine], ...]] = (
    ("markdown", ".md", PickLine("Markdown", "to read")),
    ("json", ".json", PickLine("JSON", "with all messages as they are kept")),
)


class SessionList(PickList):
    """A line for a new session, and those that there are; a filter finds names with all its words, and what was said.

    Args:
        current: The id of the session that is open.
    """

    def __init__(self, current: str) -> None:
        super().__init__(sign=self._sign_of)
        self._current = current
        self._sessions: Sequence[Session] = ()
        self._said: frozenset[str] = frozenset()
        self._said_of: str | None = None

    @property
    def session(self) -> Session | None:
        """The marked session; None where the line for a new one is marked."""
        return self._sessions[self.marked - 1] if self.marked else None

    @property
    def neighbour(self) -> str:
        """The id of the session that is marked when the marked one is gone; empty if there is none."""
        places = [place for place in (self.cursor + 1, self.cursor - 1) if 0 <= place < len(self._shown)]
        indexes = [self._shown[place] for place in places if self._shown[place]]
        return self._sessions[indexes[0] - 1].id if indexes else ""

    @property
    def is_searched(self) -> bool:
        """Whether it is known in which sessions the filter was said."""
        return not self.sought.strip() or self._said_of == self.sought

    def show_sessions(self, sessions: Sequence[Session], lines: Sequence[PickLine], marked: str) -> None:
        """Shows these sessions, filtered as before.

        Args:
            sessions: What there is.
            lines: A line for a new one, and one for each.
            marked: The id of the session to mark, if it is among them.
        """
        self._sessions, self._lines = sessions, lines
        place = next((place for place, session in enumerate(sessions, 1) if session.id == marked), 0)
        self._list(place or None)

    def show_said(self, sought: str, ids: frozenset[str]) -> None:
        """Shows the sessions in which a text was said, if it is still the filter; the mark stays on its session."""
        if sought == self.sought:
            self._said, self._said_of = ids, sought
            self._list(self.marked or None)

    def sift(self, query: str) -> list[int]:
        """Gives the indexes of the line for a new session, and of the sessions that fit, newest first."""
        words = query.casefold().split()
        said = self._said if self._said_of == query else frozenset()
        places = enumerate(zip(self._lines[1:], self._sessions, strict=True), 1)
        fit = [
            place
            for place, (line, session) in places
            if session.id in said or all(word in line.text.casefold() for word in words)
        ]
        return [*range(min(1, len(self._lines))), *fit]

    def highlighted(self, text: str) -> Content:
        """Gives a name with the words marked that the filter found in it."""
        shown = Content(text)
        match = self.get_visual_style("pick-list--match", partial=True)
        for word in self.sought.split():
            for found in re.finditer(re.escape(word), text, re.IGNORECASE):
                shown = shown.stylize(match, *found.span())
        return shown

    def _sign_of(self, index: int) -> str:
        if not index:
            return ""
        return "● " if self._sessions[index - 1].id == self._current else "  "


class SessionsScreen(Dialog[str | None]):
    """Lists the sessions; closes with the id of the one to go to, which is a new id where a new one is wanted.

    Args:
        runtime: Where they are kept.
        current: The id of the session that is open; it can't be deleted here.
    """

    PAGE = "Sessions"
    AUTO_FOCUS = "SessionList"

    DEFAULT_CSS = """
    SessionsScreen {
        align: center middle;
        background: $background 60%;
        #box {
            width: 110; max-width: 94%; height: 32; max-height: 90%; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            border-subtitle-color: $text-muted;
            SessionList { height: 3fr; }
            #about { height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
            #preview { height: 2fr; padding: 0 1; scrollbar-size-vertical: 1; }
            #preview Static { height: auto; }
        }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("sessions.rename", "f2", "rename", "Rename", "Give the marked session another name.", footer=True),
        Command("sessions.delete", "delete", "delete", "Delete", "Throw the marked session away.", footer=True),
        Command("sessions.export", "ctrl+e", "export", "Export", "Write the marked session to a file.", footer=True),
        Command("sessions.copy", "ctrl+y", "copy", "Copy", "Copy the marked session as Markdown.", footer=True),
        Command("sessions.close", "escape", "close", "Close", "Go back to the session that is open.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, current: str) -> None:
        super().__init__()
        self._list = SessionList(current)
        self._about = Static(id="about")
        self._said = Static(id="said")
        self._preview = VerticalScroll(self._said, id="preview", can_focus=False)
        self._runtime = runtime
        self._current = current

    def compose(self) -> ComposeResult:
        """The list over the end of the marked session."""
        with Vertical(id="box") as box:
            box.border_title = "Sessions"
            box.border_subtitle = "● is open"
            yield FilterLine("type to find a name, or what was said")
            yield self._list
            yield self._about
            yield self._preview
            yield KeysLine()

    def on_mount(self) -> None:
        """Reads the sessions."""
        self._list.empty = "Reading…"
        self._read(self._current)

    @work(exclusive=True, group="read")
    async def _read(self, marked: str) -> None:
        """Lists the sessions that there are now, one of them marked."""
        try:
            sessions, lines = await asyncio.to_thread(self._listed)
        except StoreError as error:
            self._refuse(error)
            sessions, lines = (), [_NEW]
        self._list.show_sessions(sessions, lines, marked)

    def _listed(self) -> tuple[Sequence[Session], Sequence[PickLine]]:
        sessions = self._runtime.sessions.list(limit=_MOST)
        return sessions, [_NEW, *_lines(sessions, with_model=self.app.size.width >= _WIDE)]

    # What the user does

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        """Closes with the chosen session; with a new one only when it is clear that nothing else is meant."""
        event.stop()
        if event.index or self._list.is_searched:
            self.dismiss(self._list.session.id if self._list.session else os.urandom(8).hex())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers only what can be done to the marked line."""
        return self._list.session is not None if action in {"rename", "delete", "export", "copy"} else True

    @work(exclusive=True, group="change")
    async def action_rename(self) -> None:
        """Gives the marked session another name."""
        from pegboard.tui.dialogs.ask_name import AskName

        session = self._list.session
        if session is None:
            return
        name = await self.app.push_screen_wait(AskName("Rename the session to", session.name))
        if name is None or name == session.name:
            return
        if await self._done(self._runtime.sessions.rename, session.id, name) is not None:
            self._read(session.id)

    @work(exclusive=True, group="change")
    async def action_delete(self) -> None:
        """Throws the marked session away, once that is confirmed."""
        from pegboard.tui.dialogs.confirm import Confirm

        session = self._list.session
        if session is None:
            return
        if session.id == self._current:
            self._refuse("This session is open. Go to another one, then delete it.")
            return
        question = f"It has {count(session.messages, 'message')}. The record of its calls stays.\n\n"
        asked = Confirm(f"Delete {_name(session)}?", f"{question}This can't be undone.", "Delete")
        if not await self.app.push_screen_wait(asked):
            return
        neighbour = self._list.neighbour
        if await self._done(self._runtime.sessions.delete, session.id) is not None:
            self._read(neighbour)

    @work(exclusive=True, group="change")
    async def action_export(self) -> None:
        """Writes the marked session to a file in the working directory."""
        from pegboard.tui.form.popups import PickOne

        session = self._list.session
        if session is None:
            return
        ways = PickOne(self._about.region, "Export as", [line for *_, line in _EXPORTS])
        picked = await self.app.push_screen_wait(ways)
        if picked is None:
            return
        kind, suffix, _ = _EXPORTS[picked]
        file = await self._done(self._written, session, kind, suffix)
        if file is not None:
            self.notify(f"Written: {clean_line(str(file))}", markup=False)

    @work(exclusive=True, group="change")
    async def action_copy(self) -> None:
        """Copies the marked session as Markdown."""
        session = self._list.session
        text = session and await self._done(self._runtime.sessions.export, session.id, "markdown")
        if isinstance(text, str):
            self.app.post_message(Copy(text))

    def action_close(self) -> None:
        """Closes without a session."""
        self.dismiss(None)

    def _written(self, session: Session, kind: _Kind, suffix: str) -> Path:
        text = self._runtime.sessions.export(session.id, kind)
        return write_new(Path.cwd(), session.name or session.id, suffix, text)

    async def _done(self, act: Callable[..., object], *words: object) -> object | None:
        """Does something beside the loop, and gives what came of it, True for nothing; None where it can't be done."""
        try:
            done = await asyncio.to_thread(act, *words)
        except (SessionError, StoreError, OSError) as error:
            self._refuse(error)
            return None
        return True if done is None else done

    def _refuse(self, why: Exception | str) -> None:
        self.notify(clean_line(str(why)), severity="error", markup=False)

    # What is seen

    @on(PickList.Filtered)
    def _filtered(self, event: PickList.Filtered) -> None:
        event.stop()
        searched = self._list.is_searched
        found = f"{event.found - 1:,} of {event.total - 1:,}" if searched else "searching…"
        self.query_one(FilterLine).show(self._list.sought, found)
        if searched:
            self.workers.cancel_group(self, "search")
        else:
            self._search(self._list.sought)

    @work(exclusive=True, group="search")
    async def _search(self, sought: str) -> None:
        """Looks through all that was said, once typing stops."""
        await asyncio.sleep(_SEARCH_PAUSE)
        ids: frozenset[str] = frozenset()
        try:
            found = await asyncio.to_thread(self._runtime.sessions.list, sought.strip(), limit=_MOST)
            ids = frozenset(session.id for session in found)
        except StoreError as error:
            self._refuse(error)
        self._list.show_said(sought, ids)

    @on(PickList.Marked)
    def _show_marked(self, event: PickList.Marked) -> None:
        event.stop()
        self.refresh_bindings()
        self._show_end(self._list.session, self._list.sought.strip() if self._list.is_searched else "")

    @work(exclusive=True, group="preview")
    async def _show_end(self, session: Session | None, sought: str) -> None:
        """Shows where something was said in a session; where nothing is sought or only its name fits, its end."""
        await asyncio.sleep(_PREVIEW_PAUSE)
        said: Content
        about, said, is_end = Content("A new session, with nothing said yet."), Content(), False
        if session is not None:
            try:
                entries = await asyncio.to_thread(self._runtime.sessions.entries, session.id)
            except StoreError as error:
                self._refuse(error)
                entries = ()
            places = await asyncio.to_thread(_found, entries, sought)
            said, is_end = places or _end(entries), places is None
            where = "Where it was said" if places else "How it ended" if entries else "Nothing was said yet"
            facts = " · ".join(clean_line(fact) for fact in (session.model, session.id) if fact)
            about = Content.assemble((where, "bold"), (f"  {facts}", "$text-muted"))
        self._about.update(about)
        self._said.update(said)
        if is_end:
            self._preview.scroll_end(animate=False)
        else:
            self._preview.scroll_home(animate=False)


_NEW: Final = PickLine("+ new session", pinned=True)


def _name(session: Session) -> str:
    return clean_line(session.name or session.id)


def _lines(sessions: Sequence[Session], *, with_model: bool) -> Iterator[PickLine]:
    """Gives a line for each session: its name, and in columns its age, its messages and its model."""
    now = datetime.now(UTC)
    ages = [age(now, session.changed) for session in sessions]
    counts = [count(session.messages, "message") for session in sessions]
    models = [_shortened(clean_line(session.model)) if with_model else "" for session in sessions]
    widths = [max(map(len, column), default=0) for column in (ages, counts, models)]
    for session, since, messages, model in zip(sessions, ages, counts, models, strict=True):
        note = f"{since:>{widths[0]}}  {messages:>{widths[1]}}  {model:<{widths[2]}}"
        yield PickLine(_name(session), note if widths[2] else note.rstrip())


def _shortened(model: str) -> str:
    return model if len(model) <= _WIDEST_MODEL else f"{model[: _WIDEST_MODEL - 1]}…"


def _end(entries: Sequence[SessionEntry]) -> Content:
    """Gives what was said last."""

    def pieces() -> Iterator[Content]:
        for entry in entries[-_LAST_MESSAGES:]:
            text = _said(entry.message)
            more = f" … {len(text) - _LONGEST:,} more characters" if len(text) > _LONGEST else ""
            yield Content.assemble(_speaker(entry.message), "  ", clean(text[:_LONGEST]).strip(), (more, "$text-muted"))

    return Content("\n").join([*pieces()])


def _found(entries: Sequence[SessionEntry], sought: str) -> Content | None:
    """Gives where something was said last, with what is around it; None if that was nowhere."""
    if not sought:
        return None
    # what the database finds is folded; a character or two of other alphabets this misses, and the end is shown
    pattern = re.compile(re.escape(sought), re.IGNORECASE)
    hits: list[Content] = []
    for entry in reversed(entries):
        text = _said(entry.message)
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


def _said(message: Message) -> str:
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
