"""The dialog of sessions: search, open, rename, delete, export, copy."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from rich.cells import cell_len
from stage import Stage, on_stage
from textual import events
from textual.widgets import Input

from pegboard.models.conversation import ModelMessage, ProposedCall, ToolMessage, UserMessage
from pegboard.runtime import Runtime
from pegboard.tui.chat.sessions import SessionList, SessionsScreen
from pegboard.tui.dialogs.ask_name import AskName
from pegboard.tui.dialogs.confirm import Confirm


@pytest.fixture
def runtime() -> Runtime:
    """Return a runtime with three sessions: a, b and, the newest, c."""
    runtime = Runtime.from_environment()
    for session, said, answered in [
        ("a", "Which files are large?", "The whale is the largest."),
        ("b", "List the [bold]folder[/bold]\x1b[2J", "It has two files."),
        ("c", "Tell me the time", "It is noon."),
    ]:
        runtime.sessions.start(session, model="scripted:model")
        runtime.sessions.append(session, UserMessage(text=said))
        runtime.sessions.append(session, ModelMessage(text=answered))
    return runtime


async def open_list(stage: Stage, runtime: Runtime, current: str = "b") -> list[str | None]:
    """Open the dialog, wait for the sessions, and append the result to a list."""
    closed: list[str | None] = []
    await stage.app.push_screen(SessionsScreen(runtime, current), closed.append)
    await stage.until(lambda: stage.app.screen.query_one(SessionList).row_count, "the sessions are read")
    return closed


def shown(stage: Stage) -> list[str]:
    """Return the lines of the list without their notes."""
    sessions = stage.app.screen.query_one(SessionList)
    lines = [sessions.render_line(y).text.strip() for y in range(sessions.size.height)]
    return [line.split("  ")[0] for line in lines if line]


async def has_closed(stage: Stage, closed: list[str | None]) -> None:
    await stage.until(lambda: closed, "the list is closed")


@pytest.mark.promise("ASK-6")
async def test_sessions_are_listed_newest_first_and_opened(runtime: Runtime) -> None:
    async with on_stage(runtime) as stage:
        closed = await open_list(stage, runtime)
        assert shown(stage) == [
            "+ New session",
            "Tell me the time",
            "● List the [bold]folder[/bold][2J",
            "Which files are large?",
        ]
        [line] = [line for line in stage.lines if "Tell me" in line]
        assert line.split("  ")[-3:] != []
        assert "now" in line
        assert "2 messages" in line
        assert "scripted:model" in line
        await stage.press("down", "enter")
        await has_closed(stage, closed)
    assert closed == ["a"]


@pytest.mark.promise("TUI-4")
async def test_the_end_of_the_marked_session_is_previewed_as_text(runtime: Runtime) -> None:
    call = ProposedCall(provider_id="1", name="fs_list", arguments='{"path": "[red]"}')
    runtime.sessions.append("b", ModelMessage(text="I look.", calls=(call,)))
    runtime.sessions.append("b", ToolMessage(provider_id="1", name="fs_list", text="\x1b[31mno", ok=False))
    async with on_stage(runtime) as stage:
        await open_list(stage, runtime)
        await stage.until_seen("Model  It has two files.")
        assert "You  List the [bold]folder[/bold]␛[2J" in stage.text
        assert '→ fs_list {"path": "[red]"}' in stage.text
        assert "✗ fs_list  ␛[31mno" in stage.text
        await stage.press("end")
        await stage.until_seen("The whale is the largest.")


@pytest.mark.promise("ASK-6")
async def test_typing_finds_names_immediately_and_messages_soon(runtime: Runtime) -> None:
    async with on_stage(runtime) as stage:
        closed = await open_list(stage, runtime)
        await stage.type("tell")
        assert shown(stage) == ["+ New session", "Tell me the time"]
        await stage.press("ctrl+u")
        await stage.type("WHALE")
        await stage.until_seen("Matches")
        assert shown(stage) == ["+ New session", "Which files are large?"]
        assert "1 of 3" in stage.text
        await stage.press("enter")
        await has_closed(stage, closed)
    assert closed == ["a"]


async def test_enter_starts_no_new_session_during_the_search(runtime: Runtime) -> None:
    async with on_stage(runtime) as stage:
        closed = await open_list(stage, runtime)
        for key in (*"noon", "enter"):  # without waiting: otherwise the search may end before enter
            stage.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await stage.until_seen("Matches")
        assert not closed
        await stage.press("enter")
        await has_closed(stage, closed)
    assert closed == ["c"]


async def test_a_new_session_has_a_new_id(runtime: Runtime) -> None:
    ids = []
    async with on_stage(runtime) as stage:
        for keys in (["home"], [*"nobody said this"]):
            closed = await open_list(stage, runtime)
            await stage.press(*("space" if key == " " else key for key in keys))
            await stage.until(lambda: stage.app.screen.query_one(SessionList).is_search_complete, "all is searched")
            await stage.press("enter")
            await has_closed(stage, closed)
            ids += closed
        closed = await open_list(stage, runtime)
        await stage.press("escape")
        await has_closed(stage, closed)
    assert closed == [None]
    assert len({*ids, "a", "b", "c"}) == 5
    assert all(ids)


@pytest.mark.promise("ASK-6")
async def test_a_session_is_renamed_and_stays_marked(runtime: Runtime) -> None:
    async with on_stage(runtime) as stage:
        closed = await open_list(stage, runtime)
        await stage.press("f2")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "a name is asked for")
        stage.app.screen.query_one(Input).value = "x" * 201
        await stage.press("enter")
        await stage.until_seen("The session was not renamed")
        await stage.press("f2")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "a name is asked for")
        await stage.press("ctrl+u", *"Folders", "enter")
        await stage.until(lambda: "● Folders" in shown(stage), "it has the name")
        await stage.press("enter")
        await has_closed(stage, closed)
    assert closed == ["b"]


@pytest.mark.promise("ASK-6")
async def test_a_session_is_deleted_after_confirmation(runtime: Runtime) -> None:
    async with on_stage(runtime) as stage:
        await open_list(stage, runtime)
        await stage.press("up")
        for answer in ("n", "ctrl+y"):
            await stage.press("delete")
            await stage.until(lambda: isinstance(stage.app.screen, Confirm), "a question is asked")
            await stage.until_seen("Delete Tell me the time?")
            assert runtime.sessions.get("c") is not None
            await stage.press(answer)
            await stage.until(lambda: isinstance(stage.app.screen, SessionsScreen), "it is answered")
        await stage.until(lambda: len(shown(stage)) == 3, "it is gone")
        assert runtime.sessions.get("c") is None
        session = stage.app.screen.query_one(SessionList).session
        assert session is not None
        assert session.id == "b"


@pytest.mark.promise("ASK-6")
async def test_the_list_follows_other_processes_and_keeps_filter_and_selection(runtime: Runtime) -> None:
    other = Runtime.from_environment()
    async with on_stage(runtime) as stage:
        await open_list(stage, runtime)
        sessions = stage.app.screen.query_one(SessionList)
        await stage.type("t")
        await stage.until(lambda: sessions.is_search_complete, "the messages are searched")
        await stage.press("home", "down", "down")
        other.sessions.delete("c")
        await stage.until(lambda: "Tell me the time" not in stage.text, "the deleted session is no longer listed")
        assert (sessions.sought, sessions.session and sessions.session.id) == ("t", "b")
        other.sessions.rename("a", "Files that are large")
        await stage.until_seen("Files that are large")
        assert sessions.session is not None
        assert sessions.session.id == "b"
        await stage.press("home")
        other.sessions.delete("b")
        await stage.until(lambda: len(shown(stage)) == 2, "the deleted session is no longer listed")
        assert sessions.session is None


@pytest.mark.promise("ASK-6")
async def test_a_session_that_another_process_continues_during_the_question_is_kept(runtime: Runtime) -> None:
    other = Runtime.from_environment()
    async with on_stage(runtime) as stage:
        await open_list(stage, runtime)
        await stage.press("up", "delete")
        await stage.until_seen("The session has 2 messages.")
        other.sessions.append("c", UserMessage(text="And now?"))
        await stage.press("ctrl+y")
        await stage.until_seen("was not deleted")
        assert runtime.sessions.get("c") is not None
        await stage.until_seen("And now?")
        await stage.press("delete")
        await stage.until_seen("The session has 3 messages.")
        await stage.press("ctrl+y")
        await stage.until(lambda: runtime.sessions.get("c") is None, "it is deleted as confirmed")


async def test_neither_the_open_session_nor_one_in_use_is_deleted(runtime: Runtime) -> None:
    async with on_stage(runtime) as stage:
        await open_list(stage, runtime)
        await stage.press("delete")
        await stage.until_seen("The open session can't be deleted.")
        with runtime.sessions.held("a"):
            await stage.press("down", "delete")
            await stage.until(lambda: isinstance(stage.app.screen, Confirm), "a question is asked")
            await stage.press("ctrl+y")
            await stage.until_seen("The session 'a' is in use.")
    assert len(runtime.sessions.list()) == 3


@pytest.mark.promise("ASK-6", "STO-3")
async def test_a_session_is_exported_to_a_new_file(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Which files are large_.md").write_text("mine")
    async with on_stage(runtime) as stage:
        await open_list(stage, runtime, "a")
        await stage.press("ctrl+e")
        await stage.until_seen("Export as")
        await stage.press("enter")
        await stage.until_seen("Exported to")
        await stage.press("ctrl+e")
        await stage.until_seen("Export as")
        await stage.press("down", "enter")
        file = tmp_path / "Which files are large_.json"
        await stage.until(file.exists, "it is written as JSON")
        await stage.until(file.read_text, "all of it")
    assert json.loads(file.read_text())["id"] == "a"
    assert (tmp_path / "Which files are large_.md").read_text() == "mine"
    assert (tmp_path / "Which files are large_ (2).md").read_text() == runtime.sessions.export("a", "markdown")


async def test_an_unwritable_folder_is_reported(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    async with on_stage(runtime) as stage:
        await open_list(stage, runtime, "a")
        (tmp_path / "gone").rmdir()
        await stage.press("ctrl+e")
        await stage.until_seen("Export as")
        await stage.press("enter")
        await stage.until_seen("No such file or directory")
        [toast] = stage.app._notifications
        assert toast.message == (
            "The session was not exported: No such file or directory."
            " To write it to another folder, use `pegboard sessions export`."
        )


async def test_a_session_is_copied_as_markdown(runtime: Runtime) -> None:
    async with on_stage(runtime) as stage:
        await open_list(stage, runtime, "a")
        await stage.press("ctrl+y")
        await stage.until(lambda: stage.app.clipboard, "it is copied")
        assert stage.app.clipboard == runtime.sessions.export("a", "markdown")


@pytest.mark.promise("ASK-6")
async def test_a_session_that_another_client_has_deleted_is_not_opened_as_an_empty_one(runtime: Runtime) -> None:
    async with on_stage(runtime) as stage:
        closed = await open_list(stage, runtime)
        runtime.sessions.delete("a")
        await stage.press("down", "enter")
        await stage.until_seen("The session Which files are large? was deleted.")
        await stage.until(lambda: len(shown(stage)) == 3, "it is no longer listed")
        assert not closed
        await stage.press("enter")
        await has_closed(stage, closed)
    assert closed == ["b"]


async def test_without_sessions_a_new_one_can_be_started() -> None:
    runtime = Runtime.from_environment()
    async with on_stage(runtime) as stage:
        closed = await open_list(stage, runtime)
        assert shown(stage) == ["+ New session"]
        await stage.press("f2", "delete", "ctrl+e", "ctrl+y")
        assert isinstance(stage.app.screen, SessionsScreen)
        await stage.press("enter")
        await has_closed(stage, closed)
    assert closed[0]


@pytest.mark.promise("TUI-2")
async def test_ten_thousand_sessions_are_listed_and_filtered(runtime: Runtime) -> None:
    runtime.history.records()  # creates the database
    with closing(sqlite3.connect(runtime.paths.database)) as database, database:
        database.executemany(
            "INSERT INTO sessions (id, name, created, changed, model) VALUES (?, ?, ?, ?, 'a:b')",
            [(f"s{n}", f"talk number {n} about some thing", n, n) for n in range(10_000)],
        )
    async with on_stage(runtime) as stage:
        closed = await open_list(stage, runtime)
        assert stage.app.screen.query_one(SessionList).row_count == 10_004
        for key in ("end", "up", *"number", "space", *"7777"):
            await stage.press(key)
        await stage.until(lambda: shown(stage) == ["+ New session", "talk number 7777 about some thing"], "it is found")
        await stage.press("enter")
        await has_closed(stage, closed)
    assert closed == ["s7777"]


@pytest.mark.promise("TUI-2")
@pytest.mark.parametrize("width", [100, 120])
async def test_rows_with_long_names_have_the_same_columns_as_others(runtime: Runtime, width: int) -> None:
    for session, name, model in [
        ("d", "a name that is as long as the first sixty characters of it", "openrouter:a/very-long-name-of-a-model"),
        ("e", "漢字" * 40, "local:模型🎈"),
    ]:
        runtime.sessions.start(session, model=model)
        for _ in range(10):
            runtime.sessions.append(session, UserMessage(text=name))
    with closing(sqlite3.connect(runtime.paths.database)) as database, database:
        database.execute("UPDATE sessions SET changed = 0 WHERE id = 'a'")  # its age is a date
    async with on_stage(runtime, size=(width, 30)) as stage:
        await open_list(stage, runtime)
        sessions = stage.app.screen.query_one(SessionList)
        rows = [sessions.render_line(y).text for y in range(1, 6)]
    assert len({cell_len(row[: row.index(" message")]) for row in rows}) == 1
    assert [row.split()[-1] for row in rows if "scripted" in row] == ["scripted:model"] * 3
