"""Hostile typing and clicking around calls awaiting approval: only a deliberate act approves one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from chat_stage import ChatStage, on_chat
from models import calls, says
from script_stage import on_script
from stage import GivenRuntime, Stage, on_stage
from textual import events
from textual.command import CommandList
from textual.widgets import Button

from pegboard.brake import Question, Questions
from pegboard.config import Settings
from pegboard.models import Elicitation, ElicitationAnswer, JsonObject
from pegboard.tui.chat.call_block import CallBlock
from pegboard.tui.dialogs.agent_call import AgentCallScreen
from pegboard.tui.dialogs.approval_scope import ApprovalScope
from pegboard.tui.dialogs.ask_name import AskName
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.dialogs.server_questions import ElicitationScreen
from pegboard.tui.widgets import answer_guard
from pegboard.tui.widgets.answer_guard import DELAY_SECONDS, AnswerGuard, Clock, TimedEvent

REMOVE = ("work_remove", {"path": "a.txt"})
TWO = calls(("work_outer", {"path": "one"}), ("work_outer", {"path": "two"}))
PARALLEL = "[ask]\nparallel = true"
EARLY, LATE = DELAY_SECONDS - 0.001, DELAY_SECONDS + 0.001


class StandingClock(Clock):
    """A clock that moves only when the test moves it; events happen when it says."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        """Return what it shows."""
        return self.seconds

    def of(self, event: TimedEvent) -> float:
        """Return what it shows."""
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    standing = StandingClock()
    monkeypatch.setattr(answer_guard, "clock", standing)
    return standing


@pytest.mark.promise("SEC-2")
def test_a_click_answers_only_the_selected_call_and_not_while_the_user_types(clock: StandingClock) -> None:
    guard = AnswerGuard()
    guard.show({"a": 5, "b": 9})
    guard.select("a")
    clock.seconds = 1.0
    assert (guard.accepts_click("a", 1.0), guard.accepts_click("b", 1.0)) == (True, False)
    guard.typed()
    assert not guard.accepts_click("a", 1.0 + DELAY_SECONDS / 2)
    assert guard.accepts_click("a", 1.0 + DELAY_SECONDS)
    guard.show({"a": 6, "b": 9})
    assert not guard.accepts_click("a", 1.0)


def place(stage: ChatStage, text: str) -> tuple[int, int]:
    """Return where a text is on the screen."""
    row = next(number for number, line in enumerate(stage.lines) if text in line)
    return stage.lines[row].index(text), row


async def end(stage: ChatStage) -> None:
    """Interrupt the running ask."""
    while stage.chat.running:
        await stage.press("escape")
        await stage.pilot.pause()
    await stage.idle()


def approved(stage: ChatStage) -> list[str]:
    """Return the results of tools as the model reads them."""
    return [message.text for message in stage.tool_messages if message.text.startswith("removed")]


def selected(stage: ChatStage) -> CallBlock | None:
    """Return the selected card."""
    return stage.talk.selected


async def both(stage: ChatStage) -> tuple[CallBlock, CallBlock]:
    """Wait until two cards await approval and return them, the earlier one first."""
    await stage.until(lambda: len(stage.app.requests) == 2, "both ask")
    await stage.until(lambda: all(card.asks_about for card in stage.cards), "both cards ask")
    await stage.drawn()
    first, second = (stage.chat.open_session.story.block_of(request.call) for request in stage.app.requests)
    assert first is not None
    assert second is not None
    return first, second


async def ask_in_form(stage: Stage) -> None:
    """Run a destructive tool from its form, and wait for the question."""
    await stage.open("remove")
    await stage.type("x")
    await stage.press("ctrl+r")
    await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it asks")


@asynccontextmanager
async def on_question(folder: Path) -> AsyncIterator[ChatStage]:
    """Open the Chat page with a destructive call that awaits approval."""
    async with on_chat(folder, calls(REMOVE), says("Done")) as stage:
        await stage.say("Go")
        await stage.asked()
        yield stage


@pytest.mark.promise("SEC-2", "ASK-7")
@pytest.mark.parametrize("typed", ["also do this", "And then Stop", "a", "A", "s", "sA", "erase", "R"])
async def test_text_typed_into_an_empty_prompt_stays_a_message_when_a_card_appears(tmp_path: Path, typed: str) -> None:
    gate = asyncio.Event()
    async with on_chat(tmp_path, [gate, *calls(REMOVE)], says("Done")) as stage:
        await stage.say("Go")
        gate.set()
        await stage.asked()
        assert stage.line.has_focus
        assert stage.talk.selected is None
        await stage.type(typed)
        assert stage.line.text == typed
        await stage.press("enter", "enter", "enter", "space")
        assert [card.state for card in stage.cards] == ["asking"]
        assert stage.app.screen is stage.chat
        await end(stage)
        assert not approved(stage)


@pytest.mark.promise("SEC-2")
@pytest.mark.parametrize("way", ["f12", "alt+a", "tab", "shift+tab", "click", "palette"])
async def test_a_card_that_the_user_selects_answers_only_after_the_delay(
    tmp_path: Path, clock: StandingClock, way: str
) -> None:
    async with on_question(tmp_path) as stage:
        clock.seconds += 60
        if way == "click":
            await stage.pilot.click(offset=place(stage, "may delete or overwrite"))
        elif way == "palette":
            await stage.press("ctrl+p")
            await stage.type("Approval")
            await stage.until_seen("Everywhere: Approval")
            await stage.press("enter")
            await stage.until(lambda: stage.app.screen is stage.chat, "the palette is closed")
        else:
            await stage.press(way)
        await stage.until(lambda: stage.can_answer, "it is selected")
        clock.seconds += EARLY
        await stage.press("a")
        assert stage.cards[0].state == "asking"
        clock.seconds += LATE
        await stage.press("a")
        await stage.idle()
        assert approved(stage) == ["removed a.txt"]


@pytest.mark.promise("SEC-2")
async def test_assigned_keys_answer_a_card_as_it_shows_them_and_only_after_the_delay(
    tmp_path: Path, clock: StandingClock
) -> None:
    keys = '[keys]\n"talk.approve_once" = "y"\n"talk.reject" = "a"\n'
    async with on_chat(tmp_path, calls(REMOVE), calls(REMOVE), says("Done"), config=keys) as stage:
        await stage.say("Go")
        await stage.asked()
        clock.seconds += 60
        await stage.press("f12")
        await stage.until(lambda: stage.can_answer, "it is selected")
        assert "y once" in stage.text
        assert "a reject" in stage.text
        clock.seconds += EARLY
        await stage.press("y")
        assert stage.cards[0].state == "asking"
        clock.seconds += LATE
        await stage.press("r")
        assert stage.cards[0].state == "asking", "the default key has no effect"
        clock.seconds += LATE
        await stage.press("a")
        await stage.until(lambda: len(stage.cards) == 2 and stage.cards[1].state == "asking", "it is rejected")
        clock.seconds += 60
        await stage.press("f12")
        await stage.until(lambda: stage.can_answer, "the next one is selected")
        clock.seconds += LATE
        await stage.press("y")
        await stage.idle()
        assert approved(stage) == ["removed a.txt"]


@pytest.mark.promise("SEC-2")
async def test_keys_pressed_before_the_selection_do_not_count_however_late_they_are_handled(tmp_path: Path) -> None:
    class Late(Clock):
        def of(self, event: TimedEvent) -> float:
            return 0.0

    async with on_question(tmp_path) as stage:
        await stage.select()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(answer_guard, "clock", Late())
            await stage.press("a", "s", "r")
        assert stage.cards[0].state == "asking"
        await end(stage)


@pytest.mark.promise("SEC-2")
async def test_keys_that_wait_until_a_dialog_is_ready_answer_it_no_earlier_than_they_were_pressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LateForTheCard(Clock):
        def of(self, event: TimedEvent) -> float:
            return event.time + (60 if isinstance(event, events.Key) and event.key == "A" else 0)

    monkeypatch.setattr(answer_guard, "clock", LateForTheCard())
    async with on_question(tmp_path) as stage:
        await stage.select()
        for key in ("A", "enter", "tab", "enter", "tab", "enter", "enter"):
            stage.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await stage.until(lambda: isinstance(stage.app.screen, ApprovalScope), "the dialog is open")
        await stage.pilot.pause()
        assert isinstance(stage.app.screen, ApprovalScope)
        assert stage.cards[0].state == "asking"
        await stage.press("escape")
        await end(stage)


@pytest.mark.promise("SEC-2")
async def test_continuous_typing_on_a_selected_card_answers_nothing(tmp_path: Path, clock: StandingClock) -> None:
    async with on_question(tmp_path) as stage:
        clock.seconds += 60
        await stage.press("tab")
        await stage.until(lambda: stage.can_answer, "it is selected")
        for letter in "Areas as sAra":
            clock.seconds += DELAY_SECONDS * 0.9
            await stage.press("space" if letter == " " else letter)
        assert stage.cards[0].state == "asking"
        assert stage.app.screen is stage.chat
        await end(stage)


@pytest.mark.promise("SEC-2")
async def test_paste_wheel_and_double_click_never_answer(tmp_path: Path, clock: StandingClock) -> None:
    async with on_question(tmp_path) as stage:
        clock.seconds += 60
        await stage.pilot.click(offset=place(stage, "a once"), times=3)
        assert stage.cards[0].state == "asking"
        stage.talk.post_message(events.Paste("a"))
        stage.talk.post_message(events.Paste("A\n"))
        for _ in range(5):
            await stage.pilot._post_mouse_events([events.MouseScrollDown], stage.talk, offset=(5, 5))
            await stage.pilot._post_mouse_events([events.MouseScrollUp], stage.talk, offset=(5, 5))
        await stage.pilot.click(offset=place(stage, "may delete"), button=3)
        await stage.pilot.click(offset=place(stage, "a once"), button=3)
        assert stage.cards[0].state == "asking"
        await end(stage)
        assert not approved(stage)


@pytest.mark.promise("SEC-2")
async def test_a_click_on_an_answer_selects_only_and_the_next_one_counts_after_the_delay(
    tmp_path: Path, clock: StandingClock
) -> None:
    async with on_question(tmp_path) as stage:
        await stage.pilot.click(offset=place(stage, "a once"))
        assert stage.cards[0].state == "asking"
        await stage.until(lambda: stage.can_answer, "it is selected")
        clock.seconds += EARLY
        x, y = place(stage, "a once")
        await stage.pilot.click(offset=(x + 1, y))
        assert stage.cards[0].state == "asking"
        clock.seconds += LATE
        await stage.pilot.mouse_down(offset=place(stage, "r reject"))
        await stage.pilot.mouse_up(offset=place(stage, "a once"))
        assert stage.cards[0].state == "asking", "the button went down on another answer"
        x, y = place(stage, "r reject")
        await stage.pilot.click(offset=(x + 2, y))
        await stage.idle()
        assert "rejected" in stage.tool_messages[0].text


async def leave_and_return(stage: Stage | ChatStage, clock: StandingClock) -> None:
    """Take the focus from the terminal for a minute."""
    for event in (events.AppBlur(), events.AppFocus()):
        clock.seconds += 60
        stage.app.post_message(event)
        await stage.pilot.pause()


async def only_a_late_click_approves(stage: ChatStage, clock: StandingClock) -> None:
    """Check that early clicks on the answers of the selected card do nothing, and that a later one approves."""
    assert selected(stage) is stage.cards[0]
    clock.seconds += EARLY
    await stage.pilot.click(offset=place(stage, "a once"))
    await stage.pilot.click("KeysLine", offset=(stage.lines[-1].index("a Once"), 0))
    assert stage.cards[0].state == "asking"
    clock.seconds += LATE
    await stage.pilot.click(offset=place(stage, "a once"))
    await stage.idle()
    assert approved(stage)


@pytest.mark.promise("SEC-2")
async def test_a_click_that_brings_the_terminal_to_the_front_answers_no_card(
    tmp_path: Path, clock: StandingClock
) -> None:
    async with on_question(tmp_path) as stage:
        await stage.press("tab")
        await stage.until(lambda: stage.can_answer, "it is selected")
        clock.seconds += 60
        await leave_and_return(stage, clock)
        await only_a_late_click_approves(stage, clock)


@pytest.mark.promise("SEC-2")
async def test_a_click_on_a_card_that_a_resize_has_just_moved_answers_nothing(
    tmp_path: Path, clock: StandingClock
) -> None:
    async with on_question(tmp_path) as stage:
        await stage.press("tab")
        await stage.until(lambda: stage.can_answer, "it is selected")
        clock.seconds += 60
        await stage.pilot.resize_terminal(100, 30)
        await stage.drawn()
        await only_a_late_click_approves(stage, clock)


async def only_a_late_click_runs(stage: Stage, given: GivenRuntime, clock: StandingClock) -> None:
    """Check that an early click on the button of a dialog answers nothing, and that a later one runs the tool."""
    clock.seconds += EARLY
    await stage.pilot.click("#yes")
    assert isinstance(stage.app.screen, Confirm)
    assert not given.calls
    clock.seconds += LATE
    yes = stage.app.screen.query_one("#yes", Button)
    await stage.until(lambda: not yes.has_class("-active"), "the button is released")
    await stage.pilot.click("#yes")
    await stage.until(lambda: given.calls, "it runs")


@pytest.mark.promise("SEC-2")
async def test_a_click_that_brings_the_terminal_to_the_front_answers_no_dialog(
    given: GivenRuntime, clock: StandingClock
) -> None:
    async with on_stage(given) as stage:
        await ask_in_form(stage)
        clock.seconds += 60
        await stage.pilot.pause()
        await leave_and_return(stage, clock)
        await only_a_late_click_runs(stage, given, clock)


@pytest.mark.promise("SEC-2")
async def test_a_double_click_on_a_key_in_the_footer_does_not_send_the_draft(
    tmp_path: Path, clock: StandingClock
) -> None:
    gate = tmp_path / "gate"
    turn = calls(("work_remove", {"path": "a"}), ("work_wait", {"gate": str(gate)}))
    async with on_chat(tmp_path, turn, says("Done"), says("More")) as stage:
        await stage.say("Go")
        await stage.asked()
        stage.line.put("half a")
        await stage.select()
        clock.seconds += 60
        await stage.until(lambda: "a Once" in stage.lines[-1], "the footer shows the answers")
        once = stage.lines[-1].index("a Once")
        await stage.pilot.click("KeysLine", offset=(once, 0))
        await stage.running_card()
        await stage.until(lambda: "Send" in stage.lines[-1][once:][:8], "the footer shows the keys of the prompt")
        await stage.pilot.click("KeysLine", offset=(once, 0))
        await stage.pilot.pause()
        assert stage.line.text == "half a"
        clock.seconds += 60
        await stage.pilot.click("KeysLine", offset=(once, 0))
        await stage.until(lambda: not stage.line.text, "another click sends it")
        gate.touch()
        await stage.idle()


@pytest.mark.promise("SEC-2")
async def test_a_click_on_a_dialog_that_a_resize_has_just_moved_answers_nothing(
    given: GivenRuntime, clock: StandingClock
) -> None:
    async with on_stage(given) as stage:
        await ask_in_form(stage)
        clock.seconds += 60
        await stage.pilot.pause()
        await stage.pilot.resize_terminal(100, 40)
        await stage.pilot.pause()
        await only_a_late_click_runs(stage, given, clock)


@pytest.mark.promise("SEC-2", "MCP-5")
async def test_a_click_on_a_form_of_a_server_that_a_resize_has_just_moved_sends_nothing(
    given: GivenRuntime, clock: StandingClock
) -> None:
    schema: JsonObject = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    answers: list[ElicitationAnswer | None] = []
    async with on_stage(given) as stage:
        form = ElicitationScreen(Elicitation(server="peer", message="Who are you?", json_schema=schema))
        stage.app.push_screen(form, answers.append)
        await stage.until_seen("Accept")
        await stage.pilot.pause()
        clock.seconds += 60
        await stage.until(lambda: form.focused is not None, "the field has the focus")
        await stage.type("Ada")
        await stage.pilot.resize_terminal(100, 40)
        await stage.pilot.pause()
        await stage.type(" Lovelace")
        clock.seconds += EARLY
        await stage.pilot.click("#accept")
        await stage.pilot.pause()
        assert answers == []
        accept = form.query_one("#accept", Button)
        await stage.until(lambda: not accept.has_class("-active"), "the button is released")
        clock.seconds += LATE
        await stage.pilot.click("#accept")
        await stage.until(lambda: answers, "it is sent")
        assert answers == [ElicitationAnswer(action="accept", content={"name": "Ada Lovelace"})]


@pytest.mark.promise("SEC-2")
async def test_answering_one_card_never_selects_or_answers_the_other(tmp_path: Path) -> None:
    async with on_chat(tmp_path, TWO, says("Done"), config=PARALLEL) as stage:
        await stage.say("Go")
        first, second = await both(stage)
        assert await stage.select() is first
        await stage.press("a", "a", "a", "r", "enter")
        await stage.until(lambda: len(stage.app.requests) == 1, "one is answered")
        await stage.drawn()
        assert stage.talk.selected is None
        assert stage.line.has_focus
        await stage.press("a", "s", "up", "down", "pageup", "end")
        assert second.state == "asking"
        assert not second.is_selected
        await end(stage)
        assert first.call is not None
        assert approved(stage) == [f"removed {first.call.args['path']}"]


@pytest.mark.promise("SEC-2")
async def test_a_card_that_finishes_moves_or_appears_never_shifts_the_selection(tmp_path: Path) -> None:
    async with on_chat(tmp_path, TWO, says("Done"), config=PARALLEL) as stage:
        await stage.say("Go")
        first, second = await both(stage)
        await stage.press("f12", "f12")
        await stage.until(lambda: stage.can_answer, "the second is selected")
        assert selected(stage) is second
        assert first.call is not None
        await stage.runtime.cancel(first.asks_about)
        await stage.until(lambda: first.state != "asking", "the first has ended")
        await stage.drawn()
        assert selected(stage) is second
        stage.talk._blocks.insert(0, CallBlock(name="work.look"))
        stage.talk.draw()
        assert selected(stage) is second
        del stage.talk._blocks[0]
        stage.talk.draw()
        assert selected(stage) is second
        await stage.runtime.cancel(second.asks_about)
        await stage.until(lambda: not second.asks_about, "the second has ended")
        assert selected(stage) is None
        await stage.press("a")
        await stage.idle()
        assert not approved(stage)


@pytest.mark.promise("SEC-2")
async def test_a_nested_call_in_the_selected_card_has_to_be_selected_itself(
    tmp_path: Path, clock: StandingClock
) -> None:
    turn = calls(("work_both", {"first": "one", "second": "two"}))
    async with on_chat(tmp_path, turn, says("Done")) as stage:
        await stage.say("Go")
        await stage.until(lambda: len(stage.app.requests) == 2, "both ask")
        card = await stage.asked()
        await stage.select()
        asked = card.asks_about
        clock.seconds += LATE
        await stage.runtime.cancel(asked)
        await stage.until(lambda: card.asks_about not in {"", asked}, "the other one asks in the same card")
        await stage.drawn()
        clock.seconds += 60
        assert stage.talk.selected is None
        await stage.press("a", "s", "A")
        assert card.state == "asking"
        assert stage.app.screen is stage.chat
        await stage.press("f12")
        await stage.until(lambda: stage.can_answer, "it is selected")
        await stage.press("a")
        assert card.state == "asking", "its delay has only begun"
        clock.seconds += LATE
        await stage.press("a")
        await stage.idle()


@pytest.mark.promise("SEC-2")
async def test_leaving_the_page_deselects_and_coming_back_goes_to_the_prompt(tmp_path: Path) -> None:
    async with on_question(tmp_path) as stage:
        await stage.select()
        await stage.press("f5", "f6")
        await stage.until(lambda: stage.line.has_focus, "the prompt has the focus")
        assert stage.talk.selected is None
        await stage.type("as")
        assert stage.line.text == "as"
        assert stage.cards[0].state == "asking"
        await end(stage)


@pytest.mark.promise("SEC-2")
async def test_following_and_scrolling_select_nothing(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(REMOVE), says("Done"), size=(80, 24)) as stage:
        await stage.say("\n".join(map(str, range(60))))
        await stage.asked()
        stage.talk.focus()  # as a letter of the jump labels does
        await stage.pilot.pause()
        await stage.press("pageup", "pagedown", "a", "s")
        stage.talk.scroll_home(animate=False)
        stage.talk.scroll_end(animate=False)
        await stage.drawn()
        await stage.press("a", "A", "end", "up", "down", "home", "end", "G", "a", "A", "s")
        assert stage.talk.selected is None
        assert stage.cards[0].state == "asking"
        await end(stage)


@pytest.mark.promise("SEC-2")
async def test_a_selected_card_that_is_out_of_view_does_not_answer(tmp_path: Path, clock: StandingClock) -> None:
    long = "\n".join(map(str, range(60)))
    async with on_chat(tmp_path, calls(REMOVE), says("Done"), size=(80, 24)) as stage:
        await stage.say(long)
        await stage.select()
        stage.talk.scroll_home(animate=False, immediate=True)
        await stage.until(lambda: not stage.can_answer, "it is out of view")
        clock.seconds += 60
        await stage.press("a")
        assert stage.cards[0].state == "asking"
        stage.talk.scroll_end(animate=False, immediate=True)
        await stage.until(lambda: stage.can_answer, "it is visible again")
        await stage.press("a")
        assert stage.cards[0].state == "asking", "it has only just become visible"
        clock.seconds += LATE
        await stage.press("a")
        await stage.idle()
        assert approved(stage) == ["removed a.txt"]


@pytest.mark.promise("SEC-2")
async def test_an_answer_to_a_call_that_ended_meanwhile_says_so(tmp_path: Path) -> None:
    async with on_question(tmp_path) as stage:
        card = await stage.select()
        await stage.press("R")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "the reason is asked for")
        await stage.runtime.cancel(card.asks_about)
        await stage.until(lambda: not stage.app.requests, "the call has ended")
        await stage.type("No")
        await stage.press("enter")
        await stage.until_seen("work.remove was not answered")
        await stage.idle()


@pytest.mark.promise("SEC-2", "WAT-4")
async def test_a_key_for_the_call_of_an_agent_that_just_ended_never_answers_the_card_below(
    tmp_path: Path, clock: StandingClock
) -> None:
    async with on_question(tmp_path) as stage:
        asked = Questions(stage.runtime.paths.state).open(Question("files.look", {}, "tester", "files", "Why"))
        await stage.until(lambda: stage.app.agent_calls, "the call of an agent waits")
        await stage.select()
        await stage.press("f12")
        await stage.until(lambda: isinstance(stage.app.screen, AgentCallScreen), "the call of the agent is shown")
        asked.close("The client cancelled the call.")
        await stage.until(lambda: stage.app.screen is stage.chat, "it is no longer shown")
        await stage.drawn()
        clock.seconds += LATE
        await stage.press("a")
        assert stage.cards[0].state == "asking"
        assert stage.line.text == "a"
        await end(stage)
        assert not approved(stage)


@pytest.mark.promise("SEC-2")
async def test_f12_leaves_an_open_dialog_alone(tmp_path: Path) -> None:
    async with on_question(tmp_path) as stage:
        await stage.press("f1")
        screen = stage.app.screen
        await stage.press("f12")
        assert stage.app.screen is screen
        await stage.until_seen("Close this dialog first")
        assert "Approve the selected call" not in stage.text
        await stage.press("escape", "f12", "f1")
        await stage.until_seen("Approve the selected call once.")
        await stage.press("escape")
        await end(stage)


@pytest.mark.promise("SEC-2")
async def test_a_call_within_a_call_of_the_script_page_runs_and_its_question_ignores_early_keys(
    tmp_path: Path, clock: StandingClock
) -> None:
    async with on_script(tmp_path) as stage:
        await stage.write("work.remove a.txt")
        await stage.press("ctrl+r")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it asks")
        await stage.until(lambda: stage.app.screen.focused is not None, "it is shown")
        await stage.pilot.pause()
        await stage.type("yes, and")
        await stage.press("ctrl+y", "tab", "enter", "n")
        assert isinstance(stage.app.screen, Confirm)
        await stage.pilot.click("#yes")
        assert isinstance(stage.app.screen, Confirm)
        clock.seconds += EARLY
        await stage.press("ctrl+y")
        assert isinstance(stage.app.screen, Confirm)
        clock.seconds += LATE
        await stage.type("y")
        assert isinstance(stage.app.screen, Confirm), "no letter confirms"
        clock.seconds += LATE
        await stage.press("ctrl+y")
        await stage.idle()
        assert "work.remove" in [record.tool for record in stage.records if record.ok]


@pytest.mark.promise("SEC-2")
async def test_the_question_of_the_form_ignores_early_keys_and_clicks(
    given: GivenRuntime, clock: StandingClock
) -> None:
    async with on_stage(given) as stage:
        await ask_in_form(stage)
        await stage.pilot.pause()
        await stage.press("y", "ctrl+y", "right", "enter", "tab", "enter", "n")
        await stage.pilot.click("#yes")
        assert isinstance(stage.app.screen, Confirm)
        assert not given.calls
        clock.seconds += LATE
        yes = stage.app.screen.query_one("#yes", Button)
        await stage.until(lambda: not yes.has_class("-active"), "the button is released")
        yes.focus()
        await stage.press("enter")
        await stage.until(lambda: given.calls, "it runs")


@pytest.mark.promise("SEC-2")
async def test_only_the_left_mouse_button_answers_the_question_of_the_form(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await ask_in_form(stage)
        await stage.until(lambda: stage.app.screen.query("#yes"), "it asks")
        await stage.pilot.pause()
        x, y = stage.app.screen.query_one("#yes").region.offset
        for button in (2, 3, 1):
            assert not given.calls
            for event in (events.MouseDown, events.MouseUp):
                stage.app.post_message(
                    event(None, x, y, 0, 0, button, shift=False, meta=False, ctrl=False, screen_x=x, screen_y=y)
                )
            await stage.pilot.pause()
        await stage.until(lambda: given.calls, "it runs")


@pytest.mark.promise("SEC-2")
@pytest.mark.parametrize("key", ["y", "escape"])
async def test_an_assigned_key_confirms_only_after_the_delay(tmp_path: Path, clock: StandingClock, key: str) -> None:
    given = GivenRuntime(tmp_path, settings=Settings.model_validate({"keys": {"confirm.yes": key}}))
    async with on_stage(given) as stage:
        await ask_in_form(stage)
        await stage.until_seen("y confirms" if key == "y" else "esc confirms")
        await stage.press(key, "ctrl+y")
        assert not given.calls
        clock.seconds += LATE
        await stage.press("ctrl+y")
        assert not given.calls, "the default key has no effect"
        clock.seconds += LATE
        await stage.press(key)
        await stage.until(lambda: given.calls, "it runs")


@pytest.mark.promise("SEC-2")
async def test_a_button_pressed_too_early_does_not_count_later_by_enter_or_by_its_release(
    given: GivenRuntime, clock: StandingClock
) -> None:
    async with on_stage(given) as stage:
        await ask_in_form(stage)
        await stage.pilot.pause()
        await stage.pilot.mouse_down("#yes")
        clock.seconds += LATE
        await stage.press("x")
        clock.seconds += LATE
        await stage.pilot.mouse_up("#yes")
        assert not given.calls
        await stage.press("enter")
        await stage.until(lambda: stage.app.screen is stage.screen, "enter means no")
        assert not given.calls


@pytest.mark.promise("SEC-2")
@pytest.mark.parametrize("way", ["list", "palette"])
async def test_keys_pressed_together_with_the_one_that_runs_a_tool_never_answer_its_question(
    given: GivenRuntime, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(answer_guard, "clock", Clock())
    async with on_stage(given) as stage:
        if way == "palette":
            await stage.press("ctrl+p")
        await stage.type("fs.remove")
        if way == "palette":
            hits = stage.app.screen.query_one(CommandList)
            await stage.until(lambda: hits.highlighted is not None, "it is found")
        for key in ("enter", "x", "ctrl+r", "ctrl+y", "right", "enter", "tab", "enter", "ctrl+y"):
            stage.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it asks")
        await stage.pilot.pause()
        assert isinstance(stage.app.screen, Confirm)
        assert not given.calls
        await stage.press("escape")
        assert stage.form.form is not None
        assert stage.form.form.draft() == {"path": "x"}
