"""Sessions in the history database, with real files and processes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pegboard.errors import SessionError
from pegboard.history import History, Sessions
from pegboard.models import ToolCall, ToolResult
from pegboard.models.conversation import Message, ModelMessage, ProposedCall, ToolMessage, UserMessage

WRITER = """
import sys
from pathlib import Path
from pegboard.history import History, Sessions
from pegboard.models.conversation import UserMessage

folder = Path(sys.argv[1])
history = History(folder / "history.db", folder / "results")
sessions = Sessions(history, folder / "sessions")
sessions.start("s")
for number in range(50):
    sessions.append("s", UserMessage(text=f"{sys.argv[2]} {number}"))
history.close()
"""

HOLDER = """
import sys
from pathlib import Path
from pegboard.history import History, Sessions

folder = Path(sys.argv[1])
with Sessions(History(folder / "history.db", folder / "results"), folder / "sessions").held("s") as free:
    print(free, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def sessions(history: History, tmp_path: Path) -> Sessions:
    """Return the sessions of an empty history."""
    return Sessions(history, tmp_path / "state" / "sessions")


def _talk(sessions: Sessions, session: str, *said: str) -> None:
    sessions.start(session, model="scripted:model")
    for text in said:
        sessions.append(session, UserMessage(text=text))


@pytest.mark.promise("ASK-6")
def test_messages_are_read_back_after_reopening(
    sessions: Sessions, open_history: Callable[..., History], tmp_path: Path
) -> None:
    call = ProposedCall(provider_id="1", name="a_b", arguments='{"x": ')
    said: list[Message] = [
        UserMessage(text=" Grüße\n\x1b[31m\u202e "),
        ModelMessage(text="", calls=(call,)),
        ToolMessage(provider_id="1", name="a_b", text="no", ok=False),
    ]
    sessions.start("s", model="scripted:model", system="Be brief.")
    for message in said[:2]:
        sessions.append("s", message)
    sessions.append("s", said[2], call="our id")
    other = Sessions(open_history(), tmp_path / "state" / "sessions")
    entries = other.entries("s")
    assert [entry.message for entry in entries] == said
    assert [entry.position for entry in entries] == [0, 1, 2]
    assert entries[2].call == "our id"
    found = other.get("s")
    assert found is not None
    assert (found.messages, found.model, found.system) == (3, "scripted:model", "Be brief.")
    assert found.name == "Grüße [31m"


@pytest.mark.promise("ASK-6")
def test_sessions_are_listed_by_their_last_change_and_found_by_name_and_words(sessions: Sessions) -> None:
    _talk(sessions, "one", "About STRASSE 100%")
    _talk(sessions, "two", "about cats")
    sessions.append("one", ModelMessage(text="", calls=(ProposedCall(provider_id="1", name="x", arguments="needle"),)))
    assert [session.id for session in sessions.list()] == ["one", "two"]
    assert [session.id for session in sessions.list("Straße")] == ["one"]
    assert [session.id for session in sessions.list("100%")] == ["one"]
    assert [session.id for session in sessions.list("needle")] == ["one"]
    assert sessions.list("%") == sessions.list("100%")
    sessions.rename("two", " Pets ")
    assert [session.name for session in sessions.list("pets")] == ["Pets"]


@pytest.mark.promise("ASK-6")
def test_a_name_that_was_given_stays_and_a_long_beginning_is_cut(sessions: Sessions) -> None:
    _talk(sessions, "s", "word " * 50)
    name = sessions.list()[0].name
    assert len(name) <= 60
    assert name.endswith("…")
    sessions.rename("s", "Mine")
    sessions.append("s", UserMessage(text="More."))
    assert sessions.list()[0].name == "Mine"


@pytest.mark.promise("ASK-6")
@pytest.mark.parametrize("name", ["会議\u3000メモ", "می\u200cخواهم", "👨\u200d👩\u200d👧 trip", "10\u00a0kg"])
def test_a_name_may_have_wide_spaces_and_joiners(sessions: Sessions, name: str) -> None:
    _talk(sessions, "s", "a")
    sessions.rename("s", name)
    assert sessions.list()[0].name == name


@pytest.mark.promise("ASK-6", "SEC-5")
@pytest.mark.parametrize(
    "name", ["", "a\nb", "a\tb", "a\x1b[2Jb", "a\u202eb", "a\u200db", "a\u200bb", "\ud800", "x" * 201]
)
def test_a_name_that_would_be_shown_otherwise_is_rejected(sessions: Sessions, name: str) -> None:
    _talk(sessions, "s", "a")
    with pytest.raises(SessionError, match="printable"):
        sessions.rename("s", name)


@pytest.mark.promise("ASK-6")
def test_a_deleted_session_rejects_further_messages(sessions: Sessions) -> None:
    _talk(sessions, "s", "a")
    sessions.delete("s")
    assert (sessions.get("s"), sessions.entries("s"), sessions.list()) == (None, (), ())
    with pytest.raises(SessionError, match=r"'s' (was deleted|doesn't exist)"):
        sessions.append("s", UserMessage(text="b"))
    with pytest.raises(SessionError, match="doesn't exist"):
        sessions.delete("s")
    with pytest.raises(SessionError, match="doesn't exist"):
        sessions.rename("s", "x")


@pytest.mark.parametrize("id_", ["", " ", "a\nb", "x" * 201, "\x1b"])
def test_an_unprintable_id_is_rejected(sessions: Sessions, id_: str) -> None:
    with pytest.raises(SessionError, match="printable"):
        sessions.start(id_)


def test_a_branch_has_the_beginning_and_leaves_the_other_as_it_is(sessions: Sessions) -> None:
    _talk(sessions, "s", "a", "b", "c")
    sessions.branch("s", "t", before=2)
    sessions.append("t", UserMessage(text="d"))
    assert [entry.message.text for entry in sessions.entries("t")] == ["a", "b", "d"]
    assert [entry.message.text for entry in sessions.entries("s")] == ["a", "b", "c"]
    with pytest.raises(SessionError, match="already"):
        sessions.branch("s", "t", before=1)
    with pytest.raises(SessionError, match="doesn't exist"):
        sessions.branch("nobody", "u", before=1)


@pytest.mark.promise("ASK-6", "STO-3")
def test_processes_and_threads_write_concurrently_without_losses(sessions: Sessions, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    sessions.start("s")
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(folder), name], stderr=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    with ThreadPoolExecutor(4) as pool:
        for number in range(50):
            pool.submit(sessions.append, "s", UserMessage(text=f"here {number}"))
    for writer in writers:
        _, errors = writer.communicate(timeout=60)
        assert (writer.returncode, errors) == (0, "")
    entries = sessions.entries("s")
    assert [entry.position for entry in entries] == [*range(150)]
    for name in ("one", "two"):
        own = [entry.message.text for entry in entries if entry.message.text.startswith(name)]
        assert own == [f"{name} {number}" for number in range(50)]


@pytest.mark.promise("ASK-6")
def test_a_session_has_one_owner_and_is_released_when_its_process_is_killed(sessions: Sessions, tmp_path: Path) -> None:
    sessions.start("s")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "state")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        with sessions.held("s") as free, sessions.held("other") as other:
            assert (free, other) == (False, True)
        with pytest.raises(SessionError, match="in use"):
            sessions.delete("s")
        holder.kill()
        holder.wait(30)
        with sessions.held("s") as free:
            assert free


@pytest.mark.promise("ASK-6")
def test_a_session_that_is_continued_keeps_its_system_prompt_unless_another_is_given(sessions: Sessions) -> None:
    seen = []
    for model, system in (("a", "Be brief."), ("b", None), ("c", ""), ("d", None)):
        sessions.start("s", model=model, system=system)
        session = sessions.get("s")
        assert session is not None
        seen.append((session.model, session.system))
    assert seen == [("a", "Be brief."), ("b", "Be brief."), ("c", ""), ("d", "")]


@pytest.mark.promise("ASK-6")
def test_a_session_is_cut_before_a_message_and_can_be_continued(sessions: Sessions) -> None:
    _talk(sessions, "s", "one", "two", "three")
    _talk(sessions, "other", "four")
    sessions.cut("s", 1)
    sessions.append("s", UserMessage(text="five"))
    said = {name: [(entry.position, entry.message.text) for entry in sessions.entries(name)] for name in ("s", "other")}
    assert said == {"s": [(0, "one"), (1, "five")], "other": [(0, "four")]}
    with sessions.held("s"), pytest.raises(SessionError, match="in use"):
        sessions.cut("s", 0)
    with pytest.raises(SessionError, match="doesn't exist"):
        sessions.cut("nothing", 0)


@pytest.mark.promise("ASK-6")
def test_a_session_that_is_released_leaves_no_lock_file_and_never_has_two_owners(
    sessions: Sessions, tmp_path: Path
) -> None:
    owners = threading.Semaphore(1)

    def hold_often() -> int:
        held = 0
        for attempt in range(100_000):
            if held and attempt >= 300:
                break
            with sessions.held("s") as free:
                if free:
                    assert owners.acquire(blocking=False), "there are two owners"
                    held += 1
                    owners.release()
        return held

    with ThreadPoolExecutor(4) as threads:
        assert all(each.result(60) for each in [threads.submit(hold_often) for _ in range(4)])
    assert [*(tmp_path / "state" / "sessions").iterdir()] == []


@pytest.mark.promise("STO-3")
def test_a_history_created_without_sessions_gets_their_tables(
    open_history: Callable[..., History], tmp_path: Path
) -> None:
    first = open_history()
    first.records()
    first.close()
    with sqlite3.connect(tmp_path / "state" / "history.db") as raw:
        raw.execute("DROP TABLE sessions")
        raw.execute("DROP TABLE messages")
    raw.close()
    later = open_history()
    sessions = Sessions(later, tmp_path / "state" / "sessions")
    _talk(sessions, "s", "a")
    assert [session.id for session in sessions.list()] == ["s"]
    assert later.problems == ()


@pytest.mark.promise("STO-3")
def test_a_damaged_message_is_left_out_and_the_others_stay(
    sessions: Sessions, history: History, tmp_path: Path
) -> None:
    _talk(sessions, "s", "a", "b")
    history.close()
    with sqlite3.connect(tmp_path / "state" / "history.db") as raw:
        raw.execute("UPDATE messages SET message = '{' WHERE position = 0")
    raw.close()
    assert [entry.message.text for entry in sessions.entries("s")] == ["b"]


@pytest.mark.promise("STO-1")
def test_a_conversation_that_was_lost_is_still_reported_when_the_history_can_be_written_again(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    history = History(tmp_path / "state" / "history.db", tmp_path / "state" / "results")
    _talk(Sessions(history, tmp_path / "locks"), "s", "Hello")
    history.close()
    (tmp_path / "state").unlink()
    history.record(ToolCall(name="a.x", args={}, source="cli"), ToolResult(ok=True), datetime.now(UTC))
    history.close()
    assert history.unrecorded is not None
    assert "The conversation is not recorded." in history.unrecorded.message
