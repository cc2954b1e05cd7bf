"""Cards of calls: progress, expanding, results and actions."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from chat_stage import PACK, answer, on_chat, opened, pack, user
from models import Said, calls, says
from test_chat import HOSTILE, is_clean

from pegboard.models import Fault, ToolCall, ToolResult
from pegboard.models.conversation import (
    CallDelta,
    ModelMessage,
    ProposedCall,
    ToolMessage,
    TurnEnded,
)
from pegboard.tui.chat.blocks import UserBlock
from pegboard.tui.chat.call_block import CallBlock
from pegboard.tui.chat.offered_tools import OfferedScreen
from pegboard.tui.dialogs.result import ResultScreen


@pytest.mark.promise("ASK-4", "TUI-1")
async def test_a_card_shows_name_arguments_and_progress_and_collapses_at_the_end(tmp_path: Path) -> None:
    gate, more, end = tmp_path / "gate", asyncio.Event(), asyncio.Event()
    arguments = json.dumps({"gate": str(gate), "lines": 20})
    proposed = ProposedCall(provider_id="1", name="work_wait", arguments=arguments)
    turn: list[Said] = [
        CallDelta(index=0, name="work_wait"),
        more,
        CallDelta(index=0, arguments=arguments[:7]),
        end,
        CallDelta(index=0, arguments=arguments[7:]),
        TurnEnded(message=ModelMessage(calls=(proposed,)), reason="calls"),
    ]
    async with on_chat(tmp_path, turn, says("It opened")) as stage:
        await stage.say("Wait")
        await stage.until_seen("… work_wait")
        assert "writing" in stage.text
        more.set()
        await stage.until_seen('{"gate"')
        end.set()
        await stage.until_seen("▶ work.wait")
        await stage.until_seen("│ now I wait")
        await stage.until_seen("1 of 3 · one of three")
        assert "… 13 earlier lines" in stage.text
        assert '"lines": 20' in stage.text
        await opened(gate)
        await stage.idle()
        assert any("▸ ✓ work.wait" in line for line in stage.lines)
        assert "now I wait" not in stage.text
        assert stage.answers == ["It opened"]


async def test_space_expands_a_call_and_z_expands_all(tmp_path: Path) -> None:
    turn = calls(("work_look", {"where": "left"}), ("work_look", {"where": "right"}))
    async with on_chat(tmp_path, turn, says("Done")) as stage:
        await stage.ask("Look")
        assert "seen left" not in stage.text
        await stage.press("shift+tab", "up", "space")
        await stage.until_seen("seen right")
        assert "seen left" not in stage.text
        await stage.press("space")
        assert "seen right" not in stage.text
        await stage.press("z")
        await stage.until_seen("seen left")
        assert "seen right" in stage.text
        await stage.press("z")
        assert "seen" not in stage.text


async def test_a_click_on_the_title_of_a_call_expands_it(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_look", {})), says("Done")) as stage:
        await stage.ask("Look")
        row = next(number for number, line in enumerate(stage.lines) if "work.look" in line)
        await stage.pilot.click(offset=(10, row))
        await stage.until_seen("seen here")


@pytest.mark.parametrize(
    ("unfold", "seen"), [("never", (False, False)), ("failed", (False, True)), ("always", (True, True))]
)
async def test_a_setting_determines_which_calls_are_expanded(
    tmp_path: Path, unfold: str, seen: tuple[bool, bool]
) -> None:
    turn = calls(("work_look", {}), ("work_fail", {}))
    async with on_chat(tmp_path, turn, says("Done"), config=f'[ui]\nunfold = "{unfold}"') as stage:
        await stage.ask("Look")
        assert ("seen here" in stage.text, "No such thing." in stage.text) == seen


async def test_enter_opens_the_full_result(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_big", {"lines": 500})), says("Done")) as stage:
        await stage.ask("Look")
        await stage.press("shift+tab", "up", "space")
        await stage.until_seen("… 482 more lines")
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, ResultScreen), "the result is open")
        await stage.until_seen("Result of work.big")
        await stage.press("end")
        await stage.until_seen("… 300 more")
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.chat, "it is closed")


async def test_a_result_of_an_earlier_session_opens_in_full_from_the_history(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_big", {"lines": 9000})), says("Done"), says("And?")) as stage:
        await stage.ask("Look")
        session = stage.chat.session
        await stage.press("ctrl+n")
        await stage.until(lambda: stage.chat.session != session, "a new one")
        stage.chat.open_session.open(session)
        await stage.until(lambda: stage.chat.session == session and stage.cards, "the old one is back")
        await stage.drawn()
        assert "✓ work.big" in stage.text
        await stage.press("shift+tab", "up", "enter")
        await stage.until_seen("Result of work.big")
        await stage.press("end")
        await stage.until_seen("… 8,800 more")


async def test_o_opens_the_call_in_the_form_with_its_arguments(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_look", {"where": "under the bed", "often": 3})), says("Done")) as stage:
        await stage.ask("Look")
        await stage.press("shift+tab", "up", "o")
        await stage.until(lambda: stage.app.current_mode == "tools", "the tools are there")
        filled = {"where": "under the bed", "often": 3}
        await stage.until(lambda: stage.form.form and stage.form.form.arguments() == filled, "it is filled")
        assert stage.marked == "work.look"


@pytest.mark.promise("BAT-3")
async def test_the_marked_call_is_kept_as_a_check(tmp_path: Path, home: Path) -> None:
    async with on_chat(tmp_path, calls(("work_look", {"where": "under the bed"})), says("Done")) as stage:
        await stage.ask("Look")
        await stage.press("shift+tab", "up", "alt+k")
        await stage.until_seen("Keep as check")
        await stage.press("enter")
        file = home / "data" / "checks" / "work.look.toml"
        await stage.until(file.exists, "it is written")
        assert 'arguments.where = "under the bed"' in file.read_text()
        assert 'expect.snapshot.data = "seen under the bed"' in file.read_text()
        await stage.press("enter")
        await stage.until_seen("Result of work.look")
        await stage.press("alt+k")
        await stage.until_seen("work.look-2")


async def test_a_removed_tool_keeps_its_card_and_its_result(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_look", {})), says("Done"), calls(("work_look", {})), says("Oh")) as stage:
        await stage.ask("Look")
        pack(tmp_path, PACK.replace("def look", "def glance"))
        await stage.until(lambda: "work.look" not in stage.chat.weights, "the tool is gone")
        await stage.press("shift+tab", "up", "enter")
        await stage.until_seen("Result of work.look")
        await stage.press("escape")
        await stage.press("o")
        await stage.pilot.pause()
        await stage.press("f6")
        await stage.ask("Again")
        assert [card.result.ok for card in stage.cards if card.result] == [True, False]
        stage.consistent()


async def test_a_call_in_the_text_of_the_model_is_marked_and_awaits_approval(tmp_path: Path) -> None:
    turn = says('```json\n{"name": "work_look", "arguments": {"where": "there"}}\n```')
    async with on_chat(tmp_path, turn, says("Done"), config="[model]\ntext_calls = true\n") as stage:
        await stage.say("Look")
        card = await stage.asked()
        assert (card.name, card.from_text) == ("work.look", True)


async def test_invalid_json_arguments_are_shown_as_written_and_not_run(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_look", '{"where": ')), says("Sorry")) as stage:
        await stage.ask("Look")
        (card,) = stage.cards
        assert card.result is not None
        assert card.result.error is not None
        assert card.result.error.code == "invalid_args"
        assert "✗ work.look" in stage.text
        await stage.press("shift+tab", "up", "space")
        await stage.until_seen('{"where":')


async def test_esc_interrupts_a_running_call_and_the_session_continues(tmp_path: Path) -> None:
    turn = calls(("work_wait", {"gate": str(tmp_path / "never")}), ("work_look", {}))
    async with on_chat(tmp_path, turn, says("Well")) as stage:
        await stage.say("Wait")
        await stage.running_card()
        await stage.press("escape")
        await stage.idle()
        assert [card.state for card in stage.cards] == ["done", "done"]
        assert stage.text.count("⊘") == 2
        assert stage.notes == ["You interrupted the model."]
        stage.consistent()
        await stage.ask("And now?")
        assert stage.answers == ["Well"]
        stage.consistent()


@pytest.mark.promise("TUI-4")
async def test_text_of_a_call_is_never_interpreted(tmp_path: Path) -> None:
    turn = calls(
        (HOSTILE, {"a": HOSTILE}),
        ("work_say", {"text": HOSTILE.replace("\ud800", "")}),
        ("work_fail", {"message": HOSTILE.replace("\ud800", "")}),
        ("work_look", {HOSTILE: HOSTILE}),
        ("x" * 5_000, f'{{"{HOSTILE}'),
    )
    async with on_chat(tmp_path, turn, says("Done")) as stage:
        await stage.ask("Go")
        await stage.press("shift+tab", "z")
        rows = "\n".join(stage.rows)
        assert is_clean(rows)
        assert rows.count("[@click=app.quit]") >= 6
        for _ in stage.cards:
            await stage.press("up")
            assert is_clean(stage.text)
            await stage.press("enter")
            await stage.until(lambda: isinstance(stage.app.screen, ResultScreen), "the result is open")
            assert is_clean(stage.text)
            await stage.press("escape")
            await stage.until(lambda: stage.app.screen is stage.chat, "it is closed")


async def test_the_status_of_a_call_is_visible_beside_a_long_name(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("x" * 5_000, {})), says("Done"), size=(80, 24)) as stage:
        await stage.ask("Go")
        assert any("✗ xxx" in line and line.rstrip().endswith("tool_not_found") for line in stage.lines)


@pytest.mark.promise("TUI-2")
async def test_a_result_of_a_megabyte_is_truncated_with_a_note(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_big", {"letters": 1_000_000})), says("Done")) as stage:
        await stage.ask("Go")
        await stage.press("shift+tab", "up", "space")
        await stage.until_seen("xxxx")
        assert any("more characters" in row for row in stage.rows)


@pytest.mark.promise("TUI-2")
async def test_ten_thousand_lines_of_log_show_the_last_ones(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with on_chat(tmp_path, calls(("work_wait", {"gate": str(gate), "lines": 10_000})), says("Done")) as stage:
        await stage.say("Go")
        await stage.until_seen("line 9999")
        assert "line 9992" not in stage.text
        await opened(gate)
        await stage.idle()


async def test_hidden_tools_are_not_offered_to_the_model(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_look", {})), says("No")) as stage:
        stage.chat.hidden_tools = frozenset({"work.look"})
        await stage.ask("Look")
        offered = {tool.name for tool in stage.model.prompts[0].tools}
        assert "work_look" not in offered
        assert "work_fail" in offered
        assert re.search(r"(\d+) of (?!\1)\d+ tools", stage.status)
        assert stage.cards[0].result is not None
        assert not stage.cards[0].result.ok


async def test_calls_of_a_stored_session_show_the_names_of_the_tools(tmp_path: Path) -> None:
    asked = ModelMessage(calls=(ProposedCall(provider_id="1", name="work_look", arguments='{"where": "x"}'),))
    told = ToolMessage(provider_id="1", name="work_look", text="seen x")
    async with on_chat(tmp_path, sessions=[("old", [user("Look"), asked, told, answer("There")])]) as stage:
        stage.chat.open_session.open("old")
        await stage.until(lambda: stage.cards, "it is shown")
        await stage.drawn()
        assert "✓ work.look" in stage.text
        await stage.press("shift+tab", "up", "space")
        await stage.until_seen("seen x")


async def test_keys_before_the_next_frame_are_handled(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with on_chat(tmp_path, [gate, *says("Done")]) as stage:
        stage.chat.runner.send_next("Go")
        stage.talk.enter()
        stage.talk.action_move(-1)
        stage.talk.action_move(1)
        stage.talk.action_move_to(0)
        await stage.pilot.pause()
        assert stage.talk.marked is stage.blocks(UserBlock)[0]
        gate.set()
        await stage.idle()


async def test_tools_are_hidden_in_a_dialog_and_counted_in_the_status_line(tmp_path: Path) -> None:
    async with on_chat(tmp_path, says("No")) as stage:
        total = len(stage.chat.weights)
        await stage.press("ctrl+b")
        await stage.until(lambda: isinstance(stage.app.screen, OfferedScreen), "they are listed")
        await stage.until_seen("type to filter")
        await stage.type("work.look")
        await stage.press("space", "ctrl+s")
        await stage.until(lambda: stage.app.screen is stage.chat, "it is closed")
        assert stage.chat.hidden_tools == {"work.look"}
        assert f"{total - 1} of {total} tools" in stage.status


def test_a_long_error_is_cut_with_the_number_of_lines_that_follow() -> None:
    card = CallBlock(unfold="failed")
    call = ToolCall(name="work.look", source="ask")
    card.set_call(call, ProposedCall(provider_id="1", name="work_look", arguments="{}"))
    faults = tuple(Fault(path=f"/items/{number}", message="must be an integer") for number in range(25))
    message = "\n".join(["x" * 2_010, *(f"line {number}" for number in range(1, 30))])
    card.finish(call, ToolResult.failed("invalid_args", message, None, *faults))
    text = "\n".join(row.row.text for row in card.rows(100))
    assert "… 10 more characters" in text
    assert "line 19" in text
    assert "line 20" not in text
    assert "… 10 more lines" in text
    assert "… 5 more errors" in text
