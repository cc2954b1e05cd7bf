"""Sessions on the Chat page: new and stored ones, asking again, editing, branching."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from chat_stage import ChatStage, answer, on_chat, user
from models import calls, says
from test_chat import HOSTILE, is_clean
from textual.events import AppBlur, AppFocus, Click
from textual.geometry import Offset
from textual.widgets import TextArea

from pegboard.errors import ModelError
from pegboard.models.conversation import Message, ModelMessage, ProposedCall, SystemMessage, TextDelta, ToolMessage
from pegboard.tui.chat.blocks import BlockRow, TextBlock, UserBlock
from pegboard.tui.chat.open_session import OpenSession
from pegboard.tui.chat.sessions import SessionsScreen
from pegboard.tui.chat.story import TurnEnd

TALK: Sequence[Message] = [user("one"), answer("1"), user("two"), answer("2"), user("three"), answer("3")]


async def opened(stage: ChatStage, session: str) -> None:
    """Open a session as the dialog does."""
    stage.chat.open_session.open(session)
    await stage.until(lambda: stage.chat.session == session, "it is open")
    await stage.drawn()


def said(stage: ChatStage, session: str) -> list[str]:
    """Return the texts of a session's messages."""
    return [entry.message.text for entry in stage.runtime.sessions.entries(session)]


async def submit_edited(stage: ChatStage, text: str) -> None:
    """Replace the text of the dialog and submit it."""
    await stage.until(lambda: stage.app.screen is not stage.chat and stage.app.screen.query(TextArea), "it is open")
    stage.app.screen.query_one(TextArea).load_text(text)
    await stage.press("ctrl+s")
    await stage.until(lambda: stage.app.screen is stage.chat, "it is closed")


@contextmanager
def while_locked(stage: ChatStage) -> Iterator[None]:
    """Write to the history as another process, so that this one waits."""
    with closing(sqlite3.connect(stage.runtime.paths.database, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("ROLLBACK")


@pytest.mark.promise("ASK-6")
async def test_a_new_session_is_empty_and_the_old_one_is_kept(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("1"), says("2")) as stage:
        await stage.ask("one")
        old = stage.chat.session
        await stage.press("ctrl+n")
        await stage.until(lambda: stage.chat.session != old, "a new one")
        await stage.drawn()
        assert "Ask something." in stage.text
        assert stage.users == []
        await stage.ask("two")
        assert said(stage, old) == ["one", "1"]
        assert said(stage, stage.chat.session) == ["two", "2"]


async def test_a_message_sent_right_after_starting_a_session_belongs_to_it(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("1"), says("2")) as stage:
        await stage.ask("one")
        old = stage.chat.session
        stage.chat.action_new()
        stage.line.put("two")
        stage.line.action_send()
        await stage.until(lambda: len(stage.model.prompts) == 2, "it is asked")
        await stage.idle()
        assert said(stage, old) == ["one", "1"]
        assert said(stage, stage.chat.session) == ["two", "2"]
        assert stage.users == ["two"]
        assert stage.answers == ["2"]


async def test_the_session_stays_open_while_the_model_is_running(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with on_chat(tmp_path, [gate, *says("1")]) as stage:
        await stage.say("one")
        session = stage.chat.session
        await stage.press("ctrl+n", "ctrl+r")
        assert stage.chat.session == session
        await stage.until_seen("The model is still running")
        gate.set()
        await stage.idle()
        assert said(stage, session) == ["one", "1"]


@pytest.mark.promise("ASK-6")
async def test_asking_again_drops_the_last_answer_even_if_the_message_contains_a_secret(tmp_path: Path) -> None:
    turns = (calls(("work_look", {})), says("bad"), says("good"))
    async with on_chat(tmp_path, *turns, sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        stage.runtime.hide("KEY", "pass-4-all")
        await stage.ask("pass-4-all")
        await stage.press("ctrl+r")
        await stage.until(lambda: stage.answers[-1:] == ["good"], "it is asked again")
        await stage.idle()
        assert stage.users[:-1] == ["one", "two", "three"]
        assert said(stage, "old") == ["one", "1", "two", "2", "three", "3", "«secret KEY»", "good"]


async def test_asking_again_after_an_error_works(tmp_path: Path) -> None:
    async with on_chat(tmp_path, [ModelError("Busy.", code="rate_limited")], says("good")) as stage:
        await stage.ask("one")
        await stage.press("ctrl+r")
        await stage.until(lambda: stage.answers == ["good"], "it is asked again")
        await stage.idle()
        assert said(stage, stage.chat.session) == ["one", "good"]
        assert stage.notes == []


async def test_asking_again_without_a_message_shows_a_note(tmp_path: Path) -> None:
    async with on_chat(tmp_path) as stage:
        await stage.press("ctrl+r")
        await stage.until_seen("No message to resend yet.")


async def test_the_last_message_is_edited_in_its_place(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("drei"), sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        await stage.press("ctrl+up")
        await submit_edited(stage, "THREE")
        await stage.until(lambda: stage.answers[-1:] == ["drei"], "it is asked")
        await stage.idle()
        assert stage.chat.session == "old"
        assert said(stage, "old") == ["one", "1", "two", "2", "THREE", "drei"]


async def test_an_earlier_message_is_edited_in_a_new_session(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("zwei"), sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        await stage.press("shift+tab", "up", "up", "up", "e")
        await submit_edited(stage, "TWO")
        await stage.until(lambda: stage.answers[-1:] == ["zwei"], "it is asked")
        await stage.idle()
        assert stage.chat.session != "old"
        assert said(stage, stage.chat.session) == ["one", "1", "TWO", "zwei"]
        assert said(stage, "old") == ["one", "1", "two", "2", "three", "3"]


async def test_a_branch_from_a_message_contains_the_earlier_messages_and_puts_this_one_before_the_draft(
    tmp_path: Path,
) -> None:
    async with on_chat(tmp_path, says("zwei"), sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        stage.runtime.sessions.append("old", user("from elsewhere"))
        await stage.press(*"draft", "shift+tab", "up", "up", "up", "b")
        await stage.until(lambda: stage.chat.session != "old", "a new one")
        await stage.drawn()
        assert stage.users == ["one"]
        assert stage.line.text == "two\ndraft"
        assert stage.line.has_focus
        await stage.ask("deux")
        assert said(stage, stage.chat.session) == ["one", "1", "deux", "zwei"]
        assert len(said(stage, "old")) == 7


async def test_a_branch_from_an_answer_contains_the_answer(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("zwei"), sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        await stage.press("shift+tab", "up", "up", "b")
        await stage.until(lambda: stage.chat.session != "old", "a new one")
        await stage.drawn()
        assert said(stage, stage.chat.session) == ["one", "1", "two", "2"]
        assert stage.line.text == ""


async def test_a_branch_from_a_call_ends_after_the_turn_of_the_model_that_made_it(tmp_path: Path) -> None:
    look, both = ("work.look", {"where": "there"}), [("work.look", {}), ("work.look", {"where": "two"})]
    turns = calls(look, text="First."), calls(*both), calls(look), says("Done."), says("again")
    async with on_chat(tmp_path, *turns, sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        await stage.ask("look")
        assert len(stage.cards) == 4
        await stage.press("shift+tab", "up", "up", "up", "b")
        await stage.until(lambda: stage.chat.session != "old", "a new one")
        await stage.drawn()
        assert [message.role for message in stage.kept[6:]] == ["user", "model", "tool", "model", "tool", "tool"]
        assert len(stage.cards) == 3
        await stage.ask("again")
        assert said(stage, stage.chat.session)[-2:] == ["again", "again"]
        assert len(said(stage, "old")) == 15


async def test_a_branch_from_a_text_of_the_model_before_a_call_contains_the_call(tmp_path: Path) -> None:
    turns = calls(("work.look", {}), text="First."), calls(("work.look", {}), text="Second."), says("Done.")
    async with on_chat(tmp_path, *turns) as stage:
        await stage.ask("look")
        old = stage.chat.session
        await stage.press("shift+tab", "home", "down", "b")
        await stage.until(lambda: stage.chat.session != old, "a new one")
        assert [message.role for message in stage.kept] == ["user", "model", "tool"]


async def test_a_branch_that_another_command_replaces_leaves_no_copy(tmp_path: Path) -> None:
    async with on_chat(tmp_path, sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        with while_locked(stage):
            await stage.press("shift+tab", "up", "up", "b")
            await stage.press("ctrl+n")
        await stage.until(lambda: stage.chat.session != "old" and not stage.chat.open_session.is_loading, "a new one")
        assert [session.id for session in await asyncio.to_thread(stage.runtime.sessions.list)] == ["old"]


async def test_a_message_that_another_command_prevents_from_being_sent_again_is_in_the_prompt(tmp_path: Path) -> None:
    async with on_chat(tmp_path, sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        with while_locked(stage):
            await stage.press("ctrl+r", "ctrl+n")
        await stage.until(lambda: stage.chat.session != "old" and not stage.chat.open_session.is_loading, "a new one")
        assert stage.line.text == "three"


async def test_an_edited_message_that_cannot_be_sent_while_another_client_uses_the_session_is_in_the_prompt(
    tmp_path: Path,
) -> None:
    async with on_chat(tmp_path, sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        with stage.runtime.sessions.held("old"):
            await stage.press("shift+tab", "up", "e")
            await submit_edited(stage, "THREE")
            await stage.until_seen("is in use")
        assert stage.line.text == "THREE"
        assert said(stage, "old")[-2:] == ["three", "3"]


@pytest.mark.promise("ASK-6")
@pytest.mark.parametrize("keys", [("up", "enter"), ("escape",)], ids=["chosen", "closed"])
async def test_a_session_whose_message_is_sent_behind_the_list_of_sessions_stays_open(
    tmp_path: Path, keys: tuple[str, ...]
) -> None:
    go_on = asyncio.Event()
    other: list[Message] = [user("else"), answer("more")]
    async with on_chat(tmp_path, [go_on, *says("3!")], sessions=[("old", TALK), ("other", other)]) as stage:
        await opened(stage, "old")
        with while_locked(stage):
            await stage.press("ctrl+r", "ctrl+l")
            await stage.until(lambda: isinstance(stage.app.screen, SessionsScreen), "the list is open")
        await stage.until(lambda: stage.chat.running, "the message is sent")
        await stage.until_seen("else")
        await stage.press(*keys)
        await stage.until(lambda: stage.app.screen is stage.chat, "the list is closed")
        go_on.set()
        await stage.idle()
        assert stage.chat.session == "old"
        assert stage.answers == ["1", "2", "3!"]
        assert said(stage, "old")[-2:] == ["three", "3!"]


async def test_an_edited_message_whose_session_was_continued_behind_the_dialog_is_in_the_prompt(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    async with on_chat(tmp_path, [go_on, *says("3!")], sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        with while_locked(stage):
            await stage.press("ctrl+r", "shift+tab", "up", "up", "up", "e")
            await stage.until(lambda: stage.app.screen.query(TextArea), "it is open")
        await stage.until(lambda: stage.chat.running, "the message is sent")
        await submit_edited(stage, "TWO")
        await stage.until(lambda: stage.line.text == "TWO", "it is in the prompt")
        go_on.set()
        await stage.idle()
        assert stage.chat.session == "old"


@pytest.mark.promise("ASK-6", "TUI-2")
async def test_a_long_session_shows_its_last_messages_and_more_on_demand(tmp_path: Path) -> None:
    long: list[Message] = [
        message for number in range(300) for message in (user(f"ask {number}"), answer(f"say {number}"))
    ]
    async with on_chat(tmp_path, sessions=[("old", long)]) as stage:
        await opened(stage, "old")
        await stage.until_seen("say 299")
        assert len(stage.users) == 100
        await stage.press("shift+tab", "home")
        assert "400 earlier messages" in stage.text
        await stage.press("up")
        await stage.until(lambda: len(stage.users) == 200, "more are shown")
        await stage.drawn()
        assert "ask 200" in stage.text, "the viewport stays at the same message"
        await stage.press("home")
        row = next(number for number, line in enumerate(stage.lines) if "earlier messages" in line)
        await stage.pilot.click(offset=(6, row))
        await stage.until(lambda: len(stage.users) == 300, "all are shown")
        await stage.drawn()
        await stage.press("home")
        assert "earlier messages" not in stage.text
        assert "ask 0" in stage.text


@pytest.mark.promise("ASK-6", "TUI-2")
async def test_the_viewport_stays_at_the_same_message_if_earlier_answers_are_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = dict.fromkeys(range(1_000), TurnEnd(None, "length"))
    monkeypatch.setattr(OpenSession, "_ends", lambda _, session: ends if session == "old" else {})
    long: list[Message] = [
        message for number in range(150) for message in (user(f"ask {number}"), answer(f"say {number}"))
    ]
    async with on_chat(tmp_path, sessions=[("old", long)]) as stage:
        await opened(stage, "old")
        await stage.press("shift+tab", "home", "up")
        await stage.until(lambda: len(stage.users) == 150, "more are shown")
        await stage.drawn()
        assert len(stage.notes) == 150
        assert isinstance(stage.talk.marked, UserBlock)
        assert stage.talk.marked.message == "ask 50"
        assert "ask 50" in stage.text


async def test_the_keys_for_earlier_messages_are_those_that_the_user_assigned(tmp_path: Path) -> None:
    long: list[Message] = [message for number in range(120) for message in (user(f"ask {number}"), answer("yes"))]
    keys = '[keys]\n"talk.first" = "g"\n"talk.up" = "k"\n'
    async with on_chat(tmp_path, sessions=[("old", long)], config=keys) as stage:
        await opened(stage, "old")
        await stage.press("shift+tab", "g")
        await stage.until_seen("earlier messages: press g, then k, or click here")


async def test_messages_of_a_stored_session_are_recalled_in_the_prompt(tmp_path: Path) -> None:
    async with on_chat(tmp_path, sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        await stage.press("up", "up")
        assert stage.line.text == "two"


async def test_an_edited_system_prompt_reaches_the_model_from_the_next_message_on(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("1"), says("2"), says("3")) as stage:
        await stage.ask("one")
        stage.chat.action_system()
        await submit_edited(stage, "Speak like a pirate.")
        await stage.ask("two")
        await stage.ask("three")
        prompts = [prompt.messages[0] for prompt in stage.model.prompts]
        assert prompts[0] == SystemMessage(text=stage.runtime.models.system_prompt)
        assert prompts[1:] == [SystemMessage(text="Speak like a pirate.")] * 2


async def test_a_system_prompt_that_is_edited_during_an_answer_reaches_the_model_with_the_next_message(
    tmp_path: Path,
) -> None:
    end = asyncio.Event()
    async with on_chat(tmp_path, [TextDelta(text="Wait"), end, *says("1")], says("2"), says("3")) as stage:
        await stage.say("one")
        await stage.until_seen("Wait")
        stage.chat.action_system()
        await submit_edited(stage, "Speak like a pirate.")
        end.set()
        await stage.idle()
        await stage.ask("two")
        await stage.ask("three")
        assert [prompt.messages[0] for prompt in stage.model.prompts[1:]] == [
            SystemMessage(text="Speak like a pirate.")
        ] * 2


async def test_the_cost_is_that_of_the_model_that_answered(tmp_path: Path) -> None:
    end = asyncio.Event()
    async with on_chat(tmp_path, [TextDelta(text="Wait"), end, *says("1")]) as stage:
        prices = {"openai:dear": 1.25, "ollama:free": 0.0}
        stage.runtime.models.price = lambda model, *_: prices[model]  # type: ignore[method-assign]
        stage.chat.open_session.choose_model("openai:dear", None)
        await stage.say("one")
        await stage.until_seen("Wait")
        stage.chat.open_session.choose_model("ollama:free", None)
        end.set()
        await stage.idle()
        assert stage.chat.open_session.cost == 1.25


@pytest.mark.promise("ASK-6")
async def test_a_message_waits_until_another_client_of_the_session_finishes(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("4"), sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        with stage.runtime.sessions.held("old"):
            await stage.say("four")
            await stage.until_seen("Another client uses this session")
            assert len(said(stage, "old")) == 6
        await stage.idle()
        assert stage.notes == []
        assert said(stage, "old")[6:] == ["four", "4"]


@pytest.mark.promise("ASK-6")
async def test_a_message_is_shown_after_those_that_another_client_has_added(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("1"), says("2"), says("3")) as stage:
        await stage.ask("one")
        session = stage.chat.session
        with stage.runtime.sessions.held(session):
            await stage.say("two")
            await stage.until_seen("Another client uses this session")
            stage.runtime.sessions.append(session, user("from elsewhere"))
            stage.runtime.sessions.append(session, answer("an answer for elsewhere"))
        await stage.idle()
        await stage.ask("three")
        assert said(stage, session) == [
            "one",
            "1",
            "from elsewhere",
            "an answer for elsewhere",
            "two",
            "2",
            "three",
            "3",
        ]
        assert stage.users == ["one", "from elsewhere", "two", "three"]
        assert stage.answers == ["1", "an answer for elsewhere", "2", "3"]


CALLING: Sequence[Message] = [
    user("look"),
    ModelMessage(calls=(ProposedCall(provider_id="1", name="work_look", arguments='{"where": "x"}'),)),
]
"""A session while its call is running."""
RESULT = ToolMessage(provider_id="1", name="work_look", text="seen x")


@pytest.mark.promise("ASK-6")
async def test_a_call_that_another_client_still_runs_is_not_shown_as_cancelled(tmp_path: Path) -> None:
    async with on_chat(tmp_path, sessions=[("old", CALLING)]) as stage:
        with stage.runtime.sessions.held("old"):
            await opened(stage, "old")
            await stage.until_seen("Another client uses this session")
            assert [card.state for card in stage.cards] == ["waiting"]
            assert "cancelled" not in stage.text
            stage.runtime.sessions.append("old", RESULT)
            stage.runtime.sessions.append("old", answer("Seen."))
        stage.app.post_message(AppBlur())
        stage.app.post_message(AppFocus())
        await stage.until(lambda: stage.answers == ["Seen."], "the answer is shown")
        assert [card.result and card.result.ok for card in stage.cards] == [True]


async def test_a_call_whose_other_client_ended_without_a_result_is_then_shown_as_cancelled(tmp_path: Path) -> None:
    async with on_chat(tmp_path, sessions=[("old", CALLING)]) as stage:
        with stage.runtime.sessions.held("old"):
            await opened(stage, "old")
        stage.app.post_message(AppBlur())
        stage.app.post_message(AppFocus())
        await stage.until(lambda: [card.state for card in stage.cards] == ["done"], "it has ended")
        await stage.until_seen("cancelled")


async def test_a_call_of_another_client_has_its_result_before_the_message_that_waited_for_it(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("4"), sessions=[("old", CALLING)]) as stage:
        with stage.runtime.sessions.held("old"):
            await opened(stage, "old")
            await stage.say("four")
            await stage.until_seen("Another client uses this session. Your message")
            stage.runtime.sessions.append("old", RESULT)
            stage.runtime.sessions.append("old", answer("Seen."))
        await stage.idle()
        assert [card.result and card.result.ok for card in stage.cards] == [True]
        assert stage.answers == ["Seen.", "4"]


@pytest.mark.promise("ASK-6")
async def test_an_unsent_message_returns_to_the_prompt(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("drei"), sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        with stage.runtime.sessions.held("old"):
            await stage.say("four")
            await stage.until_seen("Another client uses this session")
            await stage.press("escape")
            await stage.idle()
        assert stage.users == ["one", "two", "three"]
        assert stage.line.text == "four"
        assert len(said(stage, "old")) == 6
        await stage.press("enter")
        await stage.until(lambda: stage.answers == ["1", "2", "3", "drei"], "it was sent")


async def test_a_click_on_a_note_that_is_gone_in_the_next_frame_does_nothing(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("drei"), sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        with stage.runtime.sessions.held("old"):
            await stage.say("four")
            await stage.until_seen("Another client uses this session")
            await stage.drawn()
            row = next(at for at, text in enumerate(stage.rows) if "Another client" in text)
            stage.chat.open_session.story.take_back()
            spot = Offset(stage.talk.region.x + 5, stage.talk.region.y + row - stage.talk.scroll_offset.y)
            stage.talk.on_click(Click(stage.talk, 5, row, 0, 0, 1, False, False, False, *spot))
            assert stage.talk.marked is None
            await stage.press("escape")
            await stage.idle()


@pytest.mark.promise("TUI-2")
async def test_the_answers_of_a_session_are_drawn_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    draw = TextBlock.draw

    def drawn(block: TextBlock, width: int) -> Iterator[BlockRow]:
        threads.append(threading.current_thread())
        return draw(block, width)

    monkeypatch.setattr(TextBlock, "draw", drawn)
    async with on_chat(tmp_path, sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        assert stage.answers == ["1", "2", "3"]
    assert threads
    assert threading.main_thread() not in threads


@pytest.mark.promise("TUI-4")
async def test_names_and_messages_of_a_session_are_never_interpreted(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("Hm"), sessions=[("old", [user(HOSTILE), answer(HOSTILE)])]) as stage:
        stage.runtime.sessions.rename("old", "[bold]name[/bold] [/")
        await opened(stage, "old")
        assert is_clean(stage.text)
        assert "[bold]name[/bold] [/" in stage.status


async def test_asking_again_keeps_messages_of_other_clients(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("3!"), says("3?"), sessions=[("old", TALK)]) as stage:
        await opened(stage, "old")
        for message in (user("theirs"), answer("to them")):
            await asyncio.to_thread(stage.runtime.sessions.append, "old", message)
        await stage.press("ctrl+r")
        await stage.until(lambda: stage.answers[-1:] == ["3!"], "it is asked again")
        await stage.idle()
        assert said(stage, "old")[4:] == ["three", "3", "theirs", "to them", "three", "3!"]
        await asyncio.to_thread(stage.runtime.sessions.delete, "old")
        await stage.press("ctrl+r")
        await stage.until(lambda: stage.answers == ["3?"], "it is asked in a session that begins anew")
        assert said(stage, "old") == ["three", "3?"]


@pytest.mark.promise("ASK-6", "TUI-7")
async def test_another_session_is_chosen_from_the_list_and_closing_changes_nothing(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("1"), says("4"), sessions=[("old", TALK)]) as stage:
        await stage.ask("mine")
        session = stage.chat.session
        await stage.press("ctrl+l")
        await stage.until(lambda: isinstance(stage.app.screen, SessionsScreen), "they are listed")
        await stage.until_seen("mine")
        await stage.press("escape")
        await stage.until(
            lambda: stage.app.screen is stage.chat and not stage.chat.open_session.is_loading, "it is closed"
        )
        assert stage.chat.session == session
        assert stage.users == ["mine"]
        await stage.press("ctrl+l")
        await stage.until(lambda: isinstance(stage.app.screen, SessionsScreen), "they are listed")
        await stage.until_seen("mine")
        await stage.press("down", "enter")
        await stage.until(lambda: stage.chat.session == "old", "the other one is shown")
        await stage.ask("four")
        assert said(stage, "old")[-2:] == ["four", "4"]
        assert said(stage, session) == ["mine", "1"]


@pytest.mark.promise("ASK-6")
async def test_a_reopened_session_uses_its_model_and_shows_the_results_of_its_calls(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_fail", {"message": "Not today."})), says("Sorry.")) as stage:
        await stage.ask("try")
        [before] = stage.cards
        assert before.result is not None
        assert before.result.meta.duration_ms
        old = stage.chat.session
        stage.chat.open_session.model = ("offline", None)
        await stage.press("ctrl+n")
        await stage.until(lambda: stage.chat.session != old, "a new one")
        await opened(stage, old)
        assert stage.status.startswith("scripted:model")
        [again] = stage.cards
        assert again.result == before.result
        assert any("work.fail" in row and "execution_error" in row and "ms" in row for row in stage.rows)


@pytest.mark.promise("ASK-6")
async def test_a_reopened_session_shows_why_a_call_never_ran(tmp_path: Path) -> None:
    cut = calls(("work_change", {"path": "a"}), cut=True)
    async with on_chat(tmp_path, cut, says("Sorry.")) as stage:
        await stage.ask("try")
        [before] = stage.cards
        assert before.result is not None
        old = stage.chat.session
        await stage.press("ctrl+n")
        await stage.until(lambda: stage.chat.session != old, "a new one")
        await opened(stage, old)
        [again] = stage.cards
        assert again.result is not None
        assert again.result.error == before.result.error
        assert any("work.change" in row and "unfinished_turn" in row for row in stage.rows)


@pytest.mark.promise("ASK-6")
async def test_a_reopened_session_shows_why_a_turn_failed_unless_its_message_was_sent_again(tmp_path: Path) -> None:
    busy, gone = ModelError("Busy.", code="rate_limited"), ModelError("Gone [b]for[/b] good.", code="server")
    async with on_chat(tmp_path, [busy], says("yes"), [gone], says("no"), [busy]) as stage:
        await stage.ask("one")
        await stage.press("ctrl+r")
        await stage.until(lambda: stage.answers == ["yes"], "the first message is sent again")
        await stage.idle()
        for text in ("two", "three", "four"):
            await stage.ask(text)
        old = stage.chat.session
        await stage.press("ctrl+n")
        await stage.until(lambda: stage.chat.session != old, "a new one")
        await opened(stage, old)
        assert stage.notes == ["Gone [b]for[/b] good.", "Busy."]
        shown = [line.strip(" ❯✗") for line in stage.rows if line.strip()]
        assert shown.index("two") < shown.index("Gone [b]for[/b] good.") < shown.index("three")


@pytest.mark.promise("ASK-6")
async def test_returning_to_the_page_shows_what_another_process_changed_in_the_session(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("1"), says("2")) as stage:
        await stage.ask("one")
        session = stage.chat.session
        stage.runtime.sessions.append(session, user("from elsewhere"))
        await stage.press("f5", "f6")
        await stage.until_seen("from elsewhere")
        await stage.press(*"two", "enter")
        await stage.until(lambda: "2" in stage.answers, "it is answered")
        assert said(stage, session) == ["one", "1", "from elsewhere", "two", "2"]
        await stage.idle()
        stage.runtime.sessions.delete(session)
        await stage.press("f5", "f6")
        await stage.until_seen("This session was deleted elsewhere.")
        await stage.until(lambda: stage.users == [], "it is empty")


@pytest.mark.promise("ASK-6")
async def test_a_message_to_a_session_that_another_process_deleted_says_that_the_model_gets_no_earlier_ones(
    tmp_path: Path,
) -> None:
    async with on_chat(tmp_path, says("1"), says("2"), says("3")) as stage:
        await stage.ask("one")
        session = stage.chat.session
        stage.runtime.sessions.delete(session)
        await stage.ask("two")
        await stage.until_seen("Another client has deleted messages of this session.")
        assert said(stage, session) == ["two", "2"]
        await stage.idle()
        await stage.press("f5", "f6")
        await stage.until(lambda: stage.users == ["two"], "only what the model gets is shown")
        stage.app.clear_notifications()
        await stage.ask("three")
        assert said(stage, session) == ["two", "2", "three", "3"]
        assert not [*stage.app._notifications]


@pytest.mark.promise("ASK-6")
async def test_returning_to_the_terminal_shows_what_another_app_changed_in_the_session(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("1"), says("2")) as stage:
        await stage.ask("one")
        await stage.ask("two")
        session = stage.chat.session
        stage.app.post_message(AppBlur())
        await stage.until(lambda: not stage.app.app_focus, "another terminal has the focus")
        stage.runtime.sessions.cut(session, stage.runtime.sessions.entries(session)[2].position)
        stage.runtime.sessions.rename(session, "shorter")
        stage.app.post_message(AppFocus())
        await stage.until(lambda: stage.users == ["one"], "it is shorter")
        await stage.until_seen("shorter")
        assert stage.line.has_focus


@pytest.mark.promise("ASK-6")
async def test_a_session_can_be_exported_while_its_first_answer_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with on_chat(tmp_path, calls(("work_remove", {"path": "a"})), says("done")) as stage:
        await stage.press("ctrl+s")
        await stage.until_seen("The session is empty.")
        await stage.say("Clean up")
        await stage.asked()
        await stage.press("ctrl+s")
        await stage.until_seen("Export as")
        await stage.press("enter")
        await stage.until((tmp_path / "Clean up.md").exists, "it is written")
        assert "work_remove" in (tmp_path / "Clean up.md").read_text()
        await stage.press("escape")
        await stage.idle()
