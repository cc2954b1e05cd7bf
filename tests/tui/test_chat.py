"""The Chat page: streaming, the queue, model errors, the prompt, and untrusted text."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from chat_stage import on_chat, opened
from models import Said, calls, says
from textual import events

from pegboard.ask import Ask
from pegboard.errors import ModelError
from pegboard.models.conversation import (
    CallDelta,
    ModelMessage,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    TurnEnded,
    Usage,
    UserMessage,
)
from pegboard.tui.chat.blocks import UserBlock
from pegboard.tui.messages import Asking

HOSTILE = "[bold]b[/bold] [@click=app.quit]x[/] \x1b[31mred\x07 \u202eover \u200bnone &#27;[0m \ud800 [/"
"""Markup, escape sequences, a bell, a direction override, a zero-width space, a lone surrogate, a broken tag."""


def is_clean(text: str) -> bool:
    return all(sign.isprintable() or sign == "\n" for sign in text)


@pytest.mark.promise("ASK-4", "TUI-1")
async def test_text_streams_as_markdown_and_is_stored_in_the_session(tmp_path: Path) -> None:
    more, end = asyncio.Event(), asyncio.Event()
    text = "# Found\n\nIt is **there**:\n\n- one\n- two"
    turn: list[Said] = [
        TextDelta(text="# Fou"),
        more,
        TextDelta(text="nd\n\nIt is **there**:\n\n- one\n- two"),
        end,
        TurnEnded(message=ModelMessage(text=text), usage=Usage(input_tokens=1_200, output_tokens=34)),
    ]
    async with on_chat(tmp_path, turn) as stage:
        await stage.say("Where is it?")
        await stage.until_seen("# Fou")
        await stage.until(lambda: "step 1 of 20" in stage.status, "the step is shown")
        more.set()
        await stage.until_seen("• two")
        assert "It is there:" in stage.text
        end.set()
        await stage.idle()
        assert stage.kept == [UserMessage(text="Where is it?"), ModelMessage(text=text)]
        assert "↑1.2k ↓34" in stage.status
        assert "Where is it?" in stage.status, "the session is called by its first message"


@pytest.mark.promise("TUI-5")
async def test_selected_text_of_an_answer_has_neither_the_margin_nor_the_breaks_of_the_view(tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(60))
    async with on_chat(tmp_path, says(f"{words}\n\nThe end")) as stage:
        await stage.ask("Tell")
        await stage.until_seen("The end")
        lines = stage.lines
        first = next(number for number, line in enumerate(lines) if "word0 " in line)
        last = next(number for number, line in enumerate(lines) if "The end" in line)
        await stage.pilot.mouse_down(offset=(2, first))
        await stage.pilot.hover(offset=(8, last))
        await stage.pilot.mouse_up(offset=(8, last))
        assert stage.app.screen.get_selected_text() == f"{words}\n\nThe end"


async def test_thoughts_are_collapsed_to_a_line_that_expands(tmp_path: Path) -> None:
    turn: list[Said] = [ThinkingDelta(text="I wonder "), ThinkingDelta(text="[why]\x1b."), *says("So.")]
    async with on_chat(tmp_path, turn) as stage:
        await stage.ask("Think")
        assert "▸ Thought: 16 characters" in stage.text
        await stage.press("shift+tab", "up", "space")
        await stage.until_seen("I wonder [why]␛.")


async def test_text_that_turns_out_to_be_a_thought_is_moved_to_its_line(tmp_path: Path) -> None:
    never = asyncio.Event()
    turn: list[Said] = [TextDelta(text="I wonder why.\n"), ThinkingEnded(), TextDelta(text="So."), never]
    async with on_chat(tmp_path, turn) as stage:
        await stage.say("Think")
        await stage.until_seen("So.")
        assert "▸ Thought: 14 characters" in stage.text
        assert "I wonder" not in stage.text
        await stage.press("escape")
        await stage.idle()
        assert stage.kept == [UserMessage(text="Think"), ModelMessage(text="So.")]


@pytest.mark.promise("ASK-4", "TUI-2")
async def test_esc_interrupts_an_answer_and_keeps_the_text_so_far(tmp_path: Path) -> None:
    never = asyncio.Event()
    async with on_chat(tmp_path, [TextDelta(text="Once upon a "), never], says("The end")) as stage:
        await stage.say("Tell")
        await stage.until_seen("Once upon a")
        await stage.press("escape")
        await stage.idle()
        assert stage.notes == ["You interrupted the model."]
        assert stage.kept == [UserMessage(text="Tell"), ModelMessage(text="Once upon a ")]
        await stage.ask("Go on")
        assert stage.answers[-1] == "The end"
        assert stage.model.prompts[-1].messages[-1] == UserMessage(text="Go on")


async def test_a_message_that_cannot_be_saved_because_the_history_is_locked_says_what_to_do_and_can_be_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.history.database.BUSY_SECONDS", 0.1)
    async with on_chat(tmp_path, says("Hello.")) as stage:
        with closing(sqlite3.connect(stage.app.runtime.paths.database)) as other:
            other.execute("BEGIN EXCLUSIVE")
            await stage.ask("Greet")
        [note] = stage.notes
        assert "The session can't be saved: database is locked. End the process that uses it, then try again." in note
        await stage.press("ctrl+r")
        await stage.until_seen("Hello.")
        await stage.idle()
        assert stage.kept == [UserMessage(text="Greet"), ModelMessage(text="Hello.")]


async def test_esc_right_after_sending_returns_the_message_to_the_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = threading.Event()
    async with on_chat(tmp_path, says("Yes")) as stage:
        ask = stage.runtime.ask

        def late(session: str | None = None, **options: Any) -> Ask:
            ready.wait(20)
            return ask(session, **options)

        monkeypatch.setattr(stage.runtime, "ask", late)
        await stage.say("Tell")
        await stage.say("More")
        await stage.press("escape")
        ready.set()
        await stage.idle()
        assert stage.users == []
        assert stage.line.text == "Tell\nMore"
        assert stage.kept == []
        await stage.press("enter")
        await stage.idle()
        assert stage.answers == ["Yes"]


async def test_assigned_keys_send_and_break_lines_in_the_order_of_typing(tmp_path: Path) -> None:
    keys = '[keys]\n"ask.send" = "ctrl+s"\n"ask.newline" = "enter"\n"chat.save" = "f4"\n'
    async with on_chat(tmp_path, says("Yes"), config=keys) as stage:
        await stage.press("a", "enter", "b", "ctrl+s")
        await stage.idle()
        assert [block.text for block in stage.blocks(UserBlock)] == ["a\nb"]


async def test_messages_sent_during_an_answer_are_queued_and_sent_in_order(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    async with on_chat(tmp_path, [go_on, *says("One")], says("Two"), says("Three")) as stage:
        await stage.say("First")
        await stage.say("Second")
        await stage.say("Third")
        assert "2 messages queued" in stage.status
        go_on.set()
        await stage.until(lambda: "Three" in stage.answers, "all messages are answered")
        await stage.idle()
        assert stage.users == ["First", "Second", "Third"]
        assert [one.text for one in stage.kept] == ["First", "One", "Second", "Two", "Third", "Three"]
        assert "queued" not in stage.status


@pytest.mark.promise("TUI-1")
async def test_messages_that_were_not_sent_are_in_the_prompt_after_a_restart(tmp_path: Path) -> None:
    async with on_chat(tmp_path, [asyncio.Event(), *says("One")]) as stage:
        await stage.say("first")
        await stage.say("second")
        await stage.press(*"draft")
        kept = stage.runtime.paths.state / "chat-draft.json"
        await stage.until(lambda: kept.exists() and "draft" in kept.read_text(), "it is kept without leaving")
    async with on_chat(tmp_path, says("hello")) as stage:
        await stage.until(lambda: stage.line.text, "the draft is read")
        assert stage.line.text == "second\ndraft"
        await stage.press("enter")
        await stage.idle()
    async with on_chat(tmp_path) as stage:
        await stage.pilot.pause()
        assert stage.line.text == ""


async def test_queued_messages_return_to_the_prompt_before_the_draft(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    async with on_chat(tmp_path, [go_on, *says("One")]) as stage:
        await stage.say("First")
        await stage.say("Second")
        await stage.say("Third")
        await stage.press(*"Draft")
        stage.chat.action_drop_queue()
        assert stage.line.text == "Second\nThird\nDraft"
        go_on.set()
        await stage.idle()
        assert stage.users == ["First"]


async def test_a_model_error_is_shown_with_its_fix_and_only_the_next_message_that_is_sent_is_answered(
    tmp_path: Path,
) -> None:
    go_on = asyncio.Event()
    failure = ModelError("The key was [refused]\x1b.", code="auth", fix="Run `pegboard auth`.")
    async with on_chat(tmp_path, [TextDelta(text="I beg"), go_on, failure], says("Here")) as stage:
        await stage.say("Hello")
        await stage.say("Queued")
        go_on.set()
        await stage.until(lambda: "retry" in stage.text, "the error is shown")
        await stage.idle()
        assert stage.line.text == "Queued"
        assert "✗ The key was [refused]␛." in stage.text
        assert "Run `pegboard auth`." in stage.text
        assert "I beg" in stage.text
        await stage.ask("And now?")
        assert stage.answers[-1] == "Here"
        assert [one.text for one in stage.kept] == ["Hello", "I beg", "And now?", "Here"]


async def test_a_model_that_fails_in_the_middle_of_a_call_leaves_no_unfinished_card(tmp_path: Path) -> None:
    turn: list[Said] = [
        CallDelta(index=0, name="work_look"),
        CallDelta(index=0, arguments='{"whe'),
        ModelError("Gone.", code="server"),
    ]
    async with on_chat(tmp_path, turn, says("Yes")) as stage:
        await stage.ask("Look")
        assert [card.state for card in stage.cards] == ["done"]
        assert "⊘ work_look" in stage.text
        await stage.ask("Still there?")
        assert stage.answers == ["Yes"]


@pytest.mark.promise("TUI-4")
async def test_text_of_the_model_is_never_interpreted(tmp_path: Path) -> None:
    text = (
        f"{HOSTILE}\n\n    {HOSTILE}\n\n```{HOSTILE}\n{HOSTILE}\n```\n\n[{HOSTILE}](http://x/{HOSTILE})\n\n<b>{HOSTILE}"
    )
    turn: list[Said] = [ThinkingDelta(text=HOSTILE), TextDelta(text=text), TurnEnded(message=ModelMessage(text=text))]
    async with on_chat(tmp_path, turn) as stage:
        await stage.ask(HOSTILE)
        await stage.press("shift+tab", "up", "space")
        rows = "\n".join(stage.rows)
        assert is_clean(rows)
        assert is_clean(stage.text)
        assert rows.count("[bold]b[/bold]") >= 5
        assert "\\u202eover" in rows


@pytest.mark.promise("TUI-2")
async def test_a_line_of_a_megabyte_and_a_thousand_chunks_are_shown_in_time(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    huge = "word" * 250_000
    turn: list[Said] = [*[TextDelta(text=f"piece {number} ") for number in range(1_000)], TextDelta(text=f"\n\n{huge}")]
    turn.append(TurnEnded(message=ModelMessage(text="done")))
    async with on_chat(tmp_path, turn) as stage:
        begun = loop.time()
        await stage.ask("Go")
        assert loop.time() - begun < 8
        assert "word" in stage.text
        assert "".join(row.strip() for row in stage.rows).count("word") >= 240_000


async def test_the_viewport_stays_when_scrolled_up_while_text_streams(tmp_path: Path) -> None:
    first, more, end = ("\n\n".join(f"{word} {number}" for number in range(60)) for word in ("a", "b", "c"))
    gate, done = asyncio.Event(), asyncio.Event()
    turn: list[Said] = [TextDelta(text=first), gate, TextDelta(text=f"\n\n{more}"), done, TextDelta(text=f"\n\n{end}")]
    turn.append(TurnEnded(message=ModelMessage(text="x")))
    async with on_chat(tmp_path, turn) as stage:
        await stage.say("Go")
        await stage.until_seen("a 59")
        await stage.press("shift+tab", "pageup", "pageup")
        seen = stage.lines[5][:100]
        gate.set()
        await stage.until(lambda: any("b 59" in row for row in stage.rows), "more came")
        assert stage.lines[5][:100] == seen
        await stage.press("end")
        await stage.until_seen("b 59")
        done.set()
        await stage.until_seen("c 59")
        await stage.idle()


async def test_resizing_during_an_answer_wraps_the_lines_again(tmp_path: Path) -> None:
    gate, done = asyncio.Event(), asyncio.Event()
    text = " ".join(f"word{number}" for number in range(300))
    turn: list[Said] = [TextDelta(text=text), gate, TextDelta(text=" more"), done, TextDelta(text=" end")]
    turn.append(TurnEnded(message=ModelMessage(text="x")))
    async with on_chat(tmp_path, turn) as stage:
        await stage.say("Go")
        await stage.until_seen("word299")
        for size in ((60, 16), (200, 60), (20, 5), (80, 24)):
            await stage.pilot.resize_terminal(*size)
            await stage.drawn()
            assert "".join(row[2:] for row in stage.rows).count("word") == 300 or size == (20, 5)
            assert all(len(row) <= size[0] for row in stage.rows) or size == (20, 5)
        gate.set()
        await stage.until_seen("word299 more")
        done.set()
        await stage.idle()
        assert "more end" in stage.text


@pytest.mark.parametrize("between", ["\n\n", " "])
async def test_resizing_keeps_the_part_of_a_long_answer_that_the_user_reads(tmp_path: Path, between: str) -> None:
    text = between.join(f"word{number}" + " and some more words that are wrapped" * 4 for number in range(200))
    async with on_chat(tmp_path, says(text)) as stage:
        await stage.ask("Go")
        await stage.press("shift+tab", "pageup", "pageup")
        await stage.drawn()
        [first, *_] = re.findall(r"word\d+", stage.text)
        assert 20 < int(first[4:]) < 190
        for size in ((70, 40), (60, 16), (120, 40)):
            await stage.pilot.resize_terminal(*size)
            await stage.drawn()
            [now, *_] = re.findall(r"word\d+", stage.text)
            assert abs(int(now[4:]) - int(first[4:])) <= 1


# The prompt


async def test_up_and_down_recall_sent_messages_and_return_to_the_draft(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("1"), says("2")) as stage:
        await stage.ask("one")
        await stage.ask("two\nlines")
        await stage.type("draft")
        await stage.press("up")
        assert stage.line.text == "two\nlines"
        await stage.press("up", "up")
        assert stage.line.text == "one"
        await stage.press("down", "down")
        assert stage.line.text == "draft"


async def test_a_draft_is_kept_while_a_sent_message_is_recalled(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("1"), says("2")) as stage:
        await stage.ask("one")
        await stage.ask("two")
        await stage.type("draft")
        await stage.press("up")
        assert stage.line.text == "two"
    async with on_chat(tmp_path) as stage:
        await stage.until(lambda: stage.line.text, "the draft is read")
        assert stage.line.text == "draft"


async def test_a_draft_is_kept_while_a_sent_message_is_recalled_and_changed(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("1")) as stage:
        await stage.ask("one")
        await stage.type("draft")
        await stage.press("up", "x")
    async with on_chat(tmp_path) as stage:
        await stage.until(lambda: stage.line.text, "both are read")
        assert stage.line.text == "draft\nonex"


async def test_a_draft_returns_to_the_prompt_if_another_session_is_opened_while_a_message_is_recalled(
    tmp_path: Path,
) -> None:
    async with on_chat(tmp_path, says("1")) as stage:
        await stage.ask("one")
        await stage.type("draft")
        await stage.press("up")
        stage.chat.open_session.reload()
        await stage.until(lambda: not stage.chat.open_session.is_loading, "the same session is loaded")
        assert stage.line.text == "one"
        await stage.press("down")
        assert stage.line.text == "draft"
        await stage.press("up", "ctrl+n")
        await stage.until(lambda: stage.chat.open_session.record is None, "a new session")
        assert stage.line.text == "draft"


async def test_up_and_down_move_within_a_wrapped_line_before_they_recall(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("1"), size=(60, 20)) as stage:
        await stage.ask("one")
        text = "word " * 40
        stage.line.put(text)
        await stage.pilot.pause()
        await stage.press("up")
        assert stage.line.text == text
        await stage.press("up", "up", "up", "up")
        assert stage.line.text == "one"


async def test_line_breaks_and_pasted_lines_do_not_send_the_message(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("1")) as stage:
        await stage.type("a")
        await stage.press("ctrl+j")
        await stage.type("b")
        stage.app.post_message(events.Paste("\nc\nd"))
        await stage.pilot.pause()
        assert stage.line.text == "a\nb\nc\nd"
        assert not stage.chat.running
        await stage.press("enter")
        await stage.idle()
        assert stage.users == ["a\nb\nc\nd"]
        assert stage.line.text == ""


@pytest.mark.promise("TUI-2")
async def test_texts_typed_and_pasted_around_a_long_paste_are_sent_and_recalled_with_it(tmp_path: Path) -> None:
    log = "".join(f"log line {number}\n" for number in range(6_000))
    async with on_chat(tmp_path, says("Much")) as stage:
        await stage.type("Why? ")
        for text in (log, "short ", log.upper()):
            stage.app.post_message(events.Paste(text.replace("\n", "\r")))
        await stage.press("ctrl+j")
        await stage.type("What went wrong?")
        await stage.until_seen("What went wrong?")
        assert "more characters #2]" in stage.text
        message = f"Why? {log}short {log.upper()}\nWhat went wrong?"
        await stage.press("enter")
        await stage.idle()
        assert stage.kept[0] == UserMessage(text=message)
        await stage.press("up", "!")
        assert stage.line.text == f"{message}!"


async def test_a_blank_message_is_not_sent(tmp_path: Path) -> None:
    async with on_chat(tmp_path) as stage:
        await stage.say(" \n ")
        assert not stage.chat.running
        assert stage.users == []


@pytest.mark.promise("TUI-2")
async def test_a_very_long_paste_is_sent_in_full_and_shown_from_its_start(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    paste = "\n".join(f"line {number}" for number in range(100_000))
    async with on_chat(tmp_path, says("Much")) as stage:
        stage.app.post_message(events.Paste(paste))
        await stage.pilot.pause()
        begun = loop.time()
        await stage.press("enter")
        await stage.idle()
        assert loop.time() - begun < 3
        assert stage.kept[0] == UserMessage(text=paste)
        assert "more characters" in stage.text
        await stage.press("shift+tab", "up", "space")
        await stage.until(lambda: stage.talk.row_count > 100_000, "the whole message is shown")
        await stage.press("space")
        await stage.until(lambda: stage.talk.row_count < 300, "it is collapsed again")


# Other pages


async def test_an_ask_continues_while_another_page_is_open(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with on_chat(tmp_path, calls(("work_wait", {"gate": str(gate)})), says("Open")) as stage:
        await stage.say("Wait")
        await stage.running_card()
        await stage.press("f8")
        await stage.press("f5")
        await opened(gate)
        await stage.until(lambda: not stage.chat.running, "the ask is finished in the background")
        await stage.press("f6")
        await stage.until_seen("Open")
        assert stage.line.has_focus


async def test_pegboard_can_be_quit_while_a_call_runs(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_wait", {"gate": str(tmp_path / "never")}))) as stage:
        await stage.say("Wait")
        await stage.running_card()
        await stage.press("ctrl+q")
        session = stage.chat.session
    assert stage.app.return_code == 0
    assert session


async def test_pegboard_can_be_quit_while_a_call_awaits_approval(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_remove", {"path": "a"}))) as stage:
        await stage.say("Remove")
        await stage.asked()
        await stage.press("ctrl+q")
    assert stage.app.return_code == 0


async def test_the_end_of_a_turn_that_is_announced_while_the_app_ends_changes_nothing(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("There.")) as stage:
        await stage.ask("Hello?")
        session = stage.app.session
    await stage.app._dispatch_message(Asking(running=False))
    assert stage.app.session == session != ""


@pytest.mark.promise("TUI-2")
async def test_keys_in_quick_succession_are_handled_in_order(tmp_path: Path) -> None:
    said = "where is the hammer that hung on the second peg from the left yesterday evening?"
    async with on_chat(tmp_path, says("There."), says("And there.")) as stage:
        for message in (said, "and the saw"):
            for sign in message:
                stage.app.post_message(events.Key(sign, sign))
            stage.app.post_message(events.Key("enter", "\r"))
        await stage.until(lambda: len(stage.answers) == 2, "both are answered")
        assert stage.users == [said, "and the saw"]
        assert stage.line.text == ""


async def test_a_conversation_that_loses_its_end_is_painted_before_the_next_drawing(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("One.")) as stage:
        await stage.ask("Hello?")
        await stage.idle()
        stage.talk._blocks.pop()
        for y in range(stage.talk.size.height):
            stage.talk.render_line(y)
