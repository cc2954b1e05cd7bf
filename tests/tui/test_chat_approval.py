"""Calls awaiting approval: the answers and their effects."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from chat_stage import ChatStage, on_chat
from models import calls, says
from test_chat import HOSTILE, is_clean
from test_chat_sessions import opened
from textual.widgets import Input, TextArea

from pegboard.models.conversation import TextDelta
from pegboard.tui.dialogs.ask_name import AskName
from pegboard.tui.dialogs.edit_call import EditCallScreen

REMOVE = ("work_remove", {"path": "a.txt"})


def results(stage: ChatStage) -> list[str]:
    """Return the results as the model reads them."""
    return [message.text for message in stage.tool_messages]


async def click(stage: ChatStage, text: str) -> None:
    """Click on a text on the screen."""
    row = next(number for number, line in enumerate(stage.lines) if text in line)
    await stage.pilot.click(offset=(stage.lines[row].index(text), row))
    await stage.pilot.pause()


async def form(stage: ChatStage) -> EditCallScreen:
    """Wait for the dialog with the form."""
    await stage.until(lambda: isinstance(stage.app.screen, EditCallScreen), "the form is open")
    screen = stage.app.screen
    assert isinstance(screen, EditCallScreen)
    await stage.until(lambda: isinstance(screen.focused, Input | TextArea), "a field has the focus")
    await stage.pilot.pause()
    return screen


@pytest.mark.promise("ASK-7", "TUI-7")
async def test_a_call_awaiting_approval_shows_all_arguments_and_a_runs_it_once(tmp_path: Path) -> None:
    long = " ".join(f"part{number}" for number in range(100))
    turns = (calls(("work_remove", {"path": long})), calls(REMOVE), says("Done"))
    async with on_chat(tmp_path, *turns, size=(80, 24)) as stage:
        await stage.say("Remove")
        await stage.asked()
        assert "? work.remove awaits approval: f12" in stage.status
        await stage.select()
        assert "? work.remove awaits approval ·" in stage.status
        await stage.press("end")
        assert "work.remove may delete or overwrite data." in stage.text
        assert "a once" in stage.text
        assert "part99" in stage.text
        await stage.press("a")
        await stage.until(lambda: len(stage.tool_messages) == 1, "it has run")
        await stage.select()
        await stage.press("a")
        await stage.idle()
        assert results(stage) == [f"removed {long}", "removed a.txt"]
        assert stage.line.has_focus
        assert stage.talk.marked is None


@pytest.mark.promise("ASK-7")
async def test_s_approves_the_tool_in_this_session_only(tmp_path: Path) -> None:
    turns = (calls(REMOVE, REMOVE), says("Done"), calls(REMOVE), says("Done"))
    async with on_chat(tmp_path, *turns) as stage:
        await stage.say("Remove")
        await stage.select()
        await stage.press("s")
        await stage.idle()
        assert results(stage) == ["removed a.txt"] * 2
        assert not stage.runtime.rules.read().rules
        await stage.press("ctrl+n")
        await stage.until(lambda: not stage.cards, "a new session")
        await stage.say("Remove")
        await stage.asked()
        await stage.press("escape")
        await stage.idle()


@pytest.mark.promise("ASK-7")
async def test_s_also_releases_the_calls_that_wait_and_that_its_rule_allows(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_both", {"first": "one", "second": "two"})), says("Done")) as stage:
        await stage.say("Go")
        await stage.until(lambda: len(stage.app.requests) == 2, "both ask")
        await stage.select()
        await stage.press("s")
        await stage.idle()
        assert results(stage) == ['["changed one 1 times", "changed two 1 times"]']
        assert not stage.app.requests
        assert stage.line.has_focus


@pytest.mark.promise("ASK-7", "SEC-6")
async def test_a_call_written_as_text_offers_no_rule_because_none_would_apply(tmp_path: Path) -> None:
    written = says('{"name": "work_remove", "arguments": {"path": "a.txt"}}')
    async with on_chat(tmp_path, written, says("Done"), config="[model]\ntext_calls = true\n") as stage:
        await stage.say("Remove")
        await stage.select()
        assert "No rule applies to calls written as text: each one asks." in stage.text
        assert "a once   r reject   R reject with reason   e edit" in stage.text
        bindings = stage.app.screen.active_bindings
        assert ["s" in bindings, "A" in bindings, "a" in bindings] == [False, False, True]
        await stage.press("s", "A")
        await click(stage, "once")
        await stage.idle()
        assert results(stage) == ["removed a.txt"]
        assert stage.notes == []


@pytest.mark.promise("ASK-7", "TUI-1")
async def test_in_a_narrow_terminal_only_the_reason_is_missing_in_the_row_of_answers(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(REMOVE), says("Done"), size=(60, 16)) as stage:
        await stage.say("Remove")
        await stage.select()
        assert "a once   s session   A always…   r reject   e edit" in stage.text
        await click(stage, "edit")
        await stage.until_seen("Edit work.remove before it runs")


@pytest.mark.promise("ASK-7")
async def test_r_rejects_the_call_and_the_model_continues(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(REMOVE), says("As you like")) as stage:
        await stage.say("Remove")
        await stage.select()
        await stage.press("r")
        await stage.idle()
        assert "The user rejected this call." in results(stage)[0]
        assert any("⊘ work.remove" in line and "denied" in line for line in stage.lines)
        assert stage.answers == ["As you like"]


@pytest.mark.promise("ASK-7")
async def test_capital_r_rejects_with_a_reason_that_the_model_reads(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(REMOVE), says("Ah")) as stage:
        await stage.say("Remove")
        await stage.select()
        await stage.press("R")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "the reason is asked for")
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.chat, "it is closed")
        assert stage.cards[0].state == "asking", "who gives no reason has not rejected yet"
        await stage.press("R")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "the reason is asked for")
        await stage.type("Take b instead")
        await stage.press("enter")
        await stage.idle()
        assert "They said: Take b instead" in results(stage)[0]


@pytest.mark.promise("ASK-7", "TUI-3")
async def test_e_edits_the_arguments_and_the_model_reads_the_edited_ones(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(REMOVE), says("Ah")) as stage:
        await stage.say("Remove")
        await stage.select()
        await stage.press("e")
        await form(stage)
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.chat, "it is closed")
        assert stage.cards[0].state == "asking"
        await stage.press("e")
        await form(stage)
        await stage.press("end")
        await stage.type(".old")
        await stage.press("ctrl+r")
        await stage.idle()
        (told,) = results(stage)
        assert "The user edited the arguments." in told
        assert "removed a.txt.old" in told
        assert any("work.remove" in line and "edited" in line for line in stage.lines)
        session = stage.chat.session
        await stage.press("ctrl+n")
        await stage.until(lambda: stage.chat.session != session, "a new session")
        await opened(stage, session)
        assert any("edited" in line and '{path: "a.txt.old"}' in line for line in stage.lines), "as it ran"


@pytest.mark.promise("ASK-7", "SEC-2")
async def test_the_form_of_a_call_shows_where_a_long_argument_continues(tmp_path: Path) -> None:
    turn = calls(("work_change", {"path": "notes.txt" + " " * 200 + "../secret.txt", "times": 2}))
    async with on_chat(tmp_path, turn, says("Done"), size=(80, 24)) as stage:
        await stage.say("Change")
        await stage.select()
        await stage.press("e")
        dialog = await form(stage)

        def shown() -> str:
            region = dialog.query(Input).first().region
            return stage.lines[region.y][region.x : region.right].strip(" ▌")

        await stage.until(lambda: shown().startswith("…") and shown().endswith(" ../secret.txt"), "its end is shown")
        await stage.press("home")
        await stage.until(lambda: shown().startswith("notes.txt ") and shown().endswith(" …"), "its beginning is shown")
        await stage.press("tab")
        await stage.until(lambda: not dialog.query(Input).first().has_focus, "another field has the focus")
        assert shown().endswith(" …")
        await stage.press("escape")
        await stage.select()
        await stage.press("r")
        await stage.idle()


async def test_invalid_edited_arguments_do_not_run_and_unchanged_ones_are_not_marked_as_edited(
    tmp_path: Path,
) -> None:
    async with on_chat(tmp_path, calls(("work_change", {"path": "a", "times": 2})), says("Ah")) as stage:
        await stage.say("Change")
        await stage.select()
        await stage.press("e")
        screen = await form(stage)
        await stage.press("tab", "end", "x", "ctrl+r")
        assert stage.app.screen is screen
        await stage.press("backspace", "ctrl+r")
        await stage.idle()
        assert results(stage) == ["changed a 2 times"]
        assert not stage.cards[0].is_edited


@pytest.mark.promise("ASK-7")
async def test_a_nested_call_awaits_approval_in_the_card_of_the_outer_one(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_outer", {"path": "deep.txt"})), says("Done")) as stage:
        await stage.say("Go")
        card = await stage.asked()
        assert card.name == "work.outer"
        assert "It calls work.remove:" in stage.text
        assert '"path": "deep.txt"' in stage.text
        await stage.select()
        await stage.press("a")
        await stage.idle()
        assert results(stage) == ["removed deep.txt"]
        await stage.press("shift+tab", "up", "space")
        await stage.until_seen("├ ✓ work.remove")


async def test_a_click_on_an_answer_selects_first_and_answers_then(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(REMOVE), says("Done")) as stage:
        await stage.say("Go")
        await stage.asked()
        await click(stage, "r reject")
        assert stage.cards[0].state == "asking"
        assert stage.talk.selected is stage.cards[0]
        await click(stage, "may delete or overwrite")  # elsewhere, to avoid a double click
        assert stage.cards[0].state == "asking"
        await click(stage, "r reject")
        await stage.idle()
        assert "rejected" in results(stage)[0]


async def test_a_click_on_the_status_line_selects_the_call_awaiting_approval(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(REMOVE), says("Done")) as stage:
        await stage.say("Go")
        await stage.asked()
        assert "Not selected" in stage.text
        await click(stage, "? work.remove awaits approval")
        assert stage.talk.selected is stage.cards[0]
        assert stage.cards[0].state == "asking"


async def test_esc_cancels_a_pending_approval_and_the_session_continues(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(REMOVE, REMOVE), says("Done")) as stage:
        await stage.say("Go")
        await stage.asked()
        await stage.press("escape")
        await stage.idle()
        assert not stage.app.requests
        assert [card.state for card in stage.cards] == ["done", "done"]
        stage.consistent()
        await stage.ask("Go on")
        assert stage.answers == ["Done"]
        stage.consistent()


async def test_concurrent_calls_are_answered_separately(tmp_path: Path) -> None:
    turn = calls(("work_outer", {"path": "one"}), ("work_outer", {"path": "two"}))
    async with on_chat(tmp_path, turn, says("Done"), config="[ask]\nparallel = true") as stage:
        await stage.say("Go")
        await stage.until(lambda: len(stage.app.requests) == 2, "both ask")
        await stage.until(lambda: all(card.state == "asking" for card in stage.cards), "both cards ask")
        first, second = (stage.chat.open_session.story.block_of(request.call) for request in stage.app.requests)
        assert first is not None
        assert second is not None
        assert "? 2 calls await approval: f12" in stage.status
        assert await stage.select() is first
        await stage.press("r")
        await stage.until(lambda: len(stage.app.requests) == 1, "one is answered")
        assert await stage.select() is second
        await stage.press("a")
        await stage.idle()
        assert "rejected" in first.model_text
        assert second.model_text in {"removed one", "removed two"}


async def test_a_call_awaiting_approval_is_reached_from_another_page(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with on_chat(tmp_path, [gate, *calls(REMOVE)], says("Done")) as stage:
        await stage.say("Go")
        for page in ("f5", "f8", "f7"):
            await stage.press(page)
        gate.set()
        await stage.asked()
        await stage.until_seen("1 call awaits approval: f12")
        await stage.press("a")
        assert not stage.tool_messages
        await stage.select()
        await stage.until_seen("a once")
        await stage.press("a")
        await stage.idle()
        assert results(stage) == ["removed a.txt"]


@pytest.mark.promise("TUI-4", "ASK-7")
async def test_hostile_arguments_are_shown_as_text(tmp_path: Path) -> None:
    path = HOSTILE.replace("\ud800", "")
    async with on_chat(tmp_path, calls(("work_remove", {"path": f"{path}\n  a once\n{path}"})), says("Done")) as stage:
        await stage.say("Go")
        await stage.asked()
        assert is_clean(stage.text)
        assert sum("a once   s" in line for line in stage.lines) == 1
        await stage.select()
        await stage.press("e")
        await form(stage)
        await stage.press("escape")
        await stage.select()
        await stage.press("r")
        await stage.idle()


@pytest.mark.promise("ASK-7")
async def test_an_argument_of_several_lines_is_shown_as_lines_with_a_bar_before_each_row(tmp_path: Path) -> None:
    path = f'first "line"\n{"x" * 100} }}\n'
    async with on_chat(tmp_path, calls(("work_remove", {"path": path})), says("Done"), size=(80, 24)) as stage:
        await stage.say("Go")
        await stage.asked()
        rows = [row.removeprefix("▌").strip() for row in stage.rows]
        at = rows.index('"path": 3 lines:')
        shown = rows[at + 1 : rows.index("}", at)]
        assert all(row.startswith("│") for row in shown)
        texts = [row.removeprefix("│").strip() for row in shown]
        assert (texts[0], "".join(texts[1:]), texts[-1]) == ('first "line"', f"{'x' * 100} }}", "")
        await stage.select()
        await stage.press("r")
        await stage.idle()


async def test_arguments_longer_than_the_screen_show_their_start_and_can_be_scrolled(
    tmp_path: Path,
) -> None:
    long = "\n".join(f"line {number}" for number in range(400))
    turn = [TextDelta(text="I do it."), *calls(("work_remove", {"path": long}))]
    answer = says("\n\n".join(f"word {number}" for number in range(50)))
    async with on_chat(tmp_path, turn, turn, answer, size=(80, 24)) as stage:
        await stage.say("Go")
        await stage.select()
        assert "? work.remove" in stage.text
        await stage.press("end")
        await stage.until_seen("a once")
        await stage.press("a")
        await stage.until(lambda: stage.tool_messages, "it has run")
        await stage.select()
        await stage.press("r")
        await stage.idle()
        assert "removed line 0" in results(stage)[0]
        assert "word 49" in stage.text, "the answer is followed again"


@pytest.mark.promise("ASK-7")
async def test_nested_calls_await_approval_in_turn_and_the_shown_one_is_answered(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_both", {"first": "one", "second": "two"})), says("Done")) as stage:
        await stage.say("Go")
        await stage.until(lambda: len(stage.app.requests) == 2, "both ask")
        card = await stage.asked()
        first, second = (request.call for request in stage.app.requests)
        assert card.asked_for is not None
        assert card.asked_for.id == first.id
        assert f'"{first.args["path"]}"' in stage.text
        assert f'"{second.args["path"]}"' not in stage.text.replace('"second": "two"', "").replace('"first": "one"', "")
        assert "may change data" in stage.text
        await stage.select()
        await stage.press("a")
        await stage.until(lambda: card.asked_for and card.asked_for.id == second.id, "the other one asks")
        await stage.drawn()
        assert "may change data" in stage.text
        await stage.select()
        await stage.press("r")
        await stage.idle()
        assert [inner.result.ok for inner in card.inner.values() if inner.result] in ([True, False], [False, True])


@pytest.mark.promise("ASK-7", "TUI-7")
async def test_the_status_line_shows_the_key_that_selects_a_call(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(REMOVE), says("Done")) as stage:
        await stage.say("Remove")
        await stage.select()
        assert "f12" not in stage.status
        await stage.press("up")
        await stage.until(lambda: "? work.remove awaits approval: f12" in stage.status, "the way is shown")
        await stage.press("a")
        assert stage.cards[0].state == "asking", "the call isn't selected"
        await stage.press("alt+a", "a")
        await stage.idle()
        assert results(stage) == ["removed a.txt"]
