"""The dialog behind `A`: which calls a rule allows, for how long, and how it is undone."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
from chat_stage import ChatStage, on_chat
from models import calls, says
from stage import on_stage
from textual import events
from textual.widgets import Button, Input

from pegboard.models.approval import AddedRule
from pegboard.models.rule import Rule
from pegboard.runtime import Runtime
from pegboard.tui.dialogs.approval_scope import ApprovalScope
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.widgets.cut_text import CutText

REMOVE = ("work_remove", {"path": "a.txt"})
CHANGE = ("work_change", {"path": "src/a.txt"})


async def scope(stage: ChatStage) -> ApprovalScope:
    """Wait for a call, select it and open the dialog."""
    await stage.select()
    await stage.press("A")
    await stage.until(lambda: isinstance(stage.app.screen, ApprovalScope), "the dialog is open")
    await stage.pilot.pause()
    screen = stage.app.screen
    assert isinstance(screen, ApprovalScope)
    await stage.until(lambda: screen.focused is not None, "it has the focus")
    return screen


def preview(screen: ApprovalScope) -> str:
    return " ".join(str(screen.query_one("#preview", CutText).text).split())


def rules(stage: ChatStage) -> tuple[Rule, ...]:
    return stage.runtime.rules.read().rules


def results(stage: ChatStage) -> list[str]:
    return [message.text for message in stage.tool_messages]


@pytest.mark.promise("ASK-7", "SEC-2")
async def test_the_default_is_exactly_these_arguments_in_this_session(tmp_path: Path) -> None:
    other = ("work_remove", {"path": "a.txt", "force": True})
    async with on_chat(tmp_path, calls(REMOVE, REMOVE, other), says("Done")) as stage:
        await stage.say("Remove")
        screen = await scope(stage)
        assert 'allow work.remove with exactly {"force": false, "path": "a.txt"} in calls of models' in preview(screen)
        assert "In memory" in preview(screen)
        await stage.press("ctrl+s")
        await stage.until_seen("Rule added for this session")
        await stage.until(lambda: len(stage.tool_messages) == 2, "the same call runs without asking")
        card = await stage.asked()
        assert card.asked_for is not None
        assert card.asked_for.args == other[1], "one with another argument asks"
        assert not rules(stage)
        await stage.select()
        await stage.press("r")
        await stage.idle()
        assert results(stage)[:2] == ["removed a.txt"] * 2


@pytest.mark.promise("ASK-7", "SEC-2")
async def test_a_permanent_rule_for_a_destructive_tool_is_confirmed_once_more(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(REMOVE), says("Done")) as stage:
        await stage.say("Remove")
        await scope(stage)
        await stage.press("tab", "down", "enter", "ctrl+s")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it is confirmed")
        await stage.until_seen("Allow work.remove permanently?")
        await stage.press("escape")
        await stage.until(lambda: isinstance(stage.app.screen, ApprovalScope), "back in the dialog")
        assert stage.cards[0].state == "asking"
        assert not rules(stage)
        await stage.press("ctrl+s")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it is confirmed")
        await stage.press("ctrl+y")
        await stage.idle()
        assert rules(stage) == (Rule(allow=("work.remove",), exactly='{"force": false, "path": "a.txt"}', scope="ask"),)
        assert results(stage) == ["removed a.txt"]


@pytest.mark.promise("ASK-7", "SEC-2")
async def test_the_arrow_keys_choose_and_stop_at_the_ends(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(CHANGE), says("Done")) as stage:
        await stage.say("Change")
        screen = await scope(stage)
        await stage.press("up")
        assert "with exactly" in preview(screen)
        await stage.press("down", "tab", "down", "down")
        assert "where path = src/a.txt, times = 1" in preview(screen)
        assert "Written to" in preview(screen)
        await stage.press("ctrl+s")
        await stage.idle()
        [rule] = rules(stage)
        assert "where path = src/a.txt, times = 1" in str(rule)


@pytest.mark.promise("ASK-7", "SEC-2")
async def test_a_permanent_rule_for_any_arguments_is_named_and_can_be_undone(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(CHANGE), says("Done"), calls(CHANGE), says("Done")) as stage:
        await stage.say("Change")
        screen = await scope(stage)
        await stage.press("down", "down", "enter", "tab", "down", "enter")
        assert str(stage.runtime.paths.approvals) in preview(screen).replace(" ", "")
        await stage.press("ctrl+s")
        await stage.until_seen("Rule added permanently")
        await stage.until_seen("alt+z undoes")
        await stage.idle()
        assert rules(stage) == (Rule(allow=("work.change",), scope="ask"),)
        await stage.press("alt+z")
        await stage.until_seen("Rule removed")
        assert not rules(stage)
        await stage.press("alt+z")
        await stage.until_seen("No rule was added")
        await stage.say("Change")
        await stage.select()
        await stage.press("r")
        await stage.idle()


@pytest.mark.promise("ASK-7", "TUI-2")
async def test_keys_count_while_rules_are_undone_one_after_the_other() -> None:
    runtime = Runtime.from_environment()
    async with on_stage(runtime) as stage:
        for pattern in ("fs.remove", "fs.move"):
            rule = Rule(allow=(pattern,))
            runtime.rules.add(None, rule)
            stage.app.rule_undo.added(AddedRule(rule=rule))
        lock = os.open(runtime.paths.approvals.parent, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # as another program that writes there
            await stage.press("slash")
            for key in ("alt+z", "alt+z", "f"):
                stage.app.post_message(events.Key(key, key if len(key) == 1 else None))
            await stage.until(lambda: stage.list.sought == "f", "the key is handled")
        finally:
            os.close(lock)
        await stage.until(lambda: not runtime.rules.read().rules, "both rules are removed")
        toasts = stage.app._notifications
        await stage.until(lambda: sum("Rule removed" in one.message for one in toasts) == 2, "both are named")


@pytest.mark.promise("ASK-7", "SEC-2")
async def test_undoing_a_rule_is_tried_again_after_a_failure_until_the_rule_no_longer_exists(tmp_path: Path) -> None:
    turns = [calls(CHANGE), says("Done"), calls(REMOVE), says("Done")]
    async with on_chat(tmp_path, *turns) as stage:
        file = stage.runtime.paths.approvals
        await stage.say("Change")
        await scope(stage)
        await stage.press("down", "down", "enter", "tab", "down", "enter", "ctrl+s")
        await stage.until_seen("Rule added permanently")
        await stage.idle()
        added = file.read_text()
        file.write_text(f"{added}\n[[rule")  # as an editor leaves it while it writes
        await stage.press("alt+z")
        await stage.until(lambda: any("tries again." in one.message for one in stage.app._notifications), "it failed")
        file.write_text(added)
        await stage.press("alt+z")
        await stage.until_seen("Rule removed")
        assert not rules(stage)

        await stage.say("Remove")
        await scope(stage)
        await stage.press("tab", "down", "enter", "ctrl+s")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it is confirmed")
        await stage.press("ctrl+y")
        await stage.idle()
        file.write_text("")
        await stage.press("alt+z")
        await stage.until_seen("The rule was not removed")
        await stage.press("alt+z")
        await stage.until_seen("No rule was added")


@pytest.mark.promise("ASK-7")
async def test_a_pattern_is_edited_and_must_match_the_call(tmp_path: Path) -> None:
    turn = calls(CHANGE, ("work_change", {"path": "src/b.txt"}), ("work_change", {"path": "src/b.txt", "times": 2}))
    async with on_chat(tmp_path, turn, says("Done"), size=(80, 24)) as stage:
        await stage.say("Change")
        screen = await scope(stage)
        await stage.press("down", "enter")
        inputs = [*screen.query("#patterns Input").results(Input)]
        assert [one.value for one in inputs] == ["src/a.txt", "1"]
        inputs[0].value = "doc/*"
        await stage.until_seen("The rule doesn't match this call.")
        await stage.press("ctrl+s")
        assert stage.app.screen is screen
        assert screen.query_one("#allow", Button).disabled
        inputs[0].value = "src/*"
        await stage.until(lambda: not screen.query_one("#allow", Button).disabled, "it matches")
        assert "allow work.change where path = src/*, times = 1 in calls of models" in preview(screen)
        await stage.press("ctrl+s")
        await stage.until(lambda: len(stage.tool_messages) == 2, "the second runs without asking")
        await stage.select()
        await stage.press("r")
        await stage.idle()
        assert "rejected" in results(stage)[2]


@pytest.mark.promise("ASK-7", "SEC-2")
@pytest.mark.parametrize("destructive", [True, False])
async def test_s_allows_any_arguments_of_a_tool_unless_it_is_destructive(tmp_path: Path, destructive: bool) -> None:
    name = "work_remove" if destructive else "work_change"
    turn = calls((name, {"path": "a"}), (name, {"path": "a"}), (name, {"path": "b"}))
    async with on_chat(tmp_path, turn, says("Done")) as stage:
        await stage.say("Go")
        await stage.select()
        await stage.until_seen(f"s allows {'exactly these' if destructive else 'any'} arguments in this session")
        await stage.press("s")
        if destructive:
            await stage.until(lambda: len(stage.tool_messages) == 2, "the same call runs")
            await stage.select()
            await stage.press("r")
        await stage.idle()
        assert len(stage.tool_messages) == 3
        assert ("rejected" in results(stage)[2]) is destructive
        assert not rules(stage)


@pytest.mark.promise("SEC-2", "TUI-4")
async def test_hostile_arguments_stay_text_and_exactly_means_exactly(tmp_path: Path) -> None:
    path = "[b]*?[*]\x1b[31m\u202e[@click=app.quit]x[/]"
    turn = calls(
        ("work_remove", {"path": path}), ("work_remove", {"path": path}), ("work_remove", {"path": path + "y"})
    )
    async with on_chat(tmp_path, turn, says("Done")) as stage:
        await stage.say("Remove")
        screen = await scope(stage)
        assert "\x1b" not in stage.text
        assert "[@click=app.quit]" in preview(screen)
        await stage.press("down", "enter")
        assert not screen.query_one("#allow", Button).disabled, "the suggested pattern matches"
        assert "\x1b" not in stage.text
        assert "\u202e" not in stage.text
        await stage.press("up", "enter", "ctrl+s")
        await stage.until(lambda: len(stage.tool_messages) == 2, "the same call runs")
        await stage.select()
        await stage.press("r")
        await stage.idle()


@pytest.mark.promise("ASK-7", "SEC-2")
async def test_a_rule_that_is_too_long_ends_in_an_ellipsis(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_remove", {"path": "a" * 1500})), says("Done"), size=(80, 24)) as stage:
        await stage.say("Remove")
        screen = await scope(stage)

        def last_row(widget: str) -> str:
            region = stage.app.screen.query_one(widget).region
            return stage.lines[region.bottom - 1][region.x : region.right].rstrip()

        await stage.until(lambda: last_row("#preview").endswith("aaa…"), "it is cut visibly")
        await stage.press("tab", "down", "enter")
        await stage.until(lambda: screen.accepts_now, "answers count")
        await stage.press("ctrl+s")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it is confirmed")
        await stage.until(lambda: last_row("#question").endswith("aaa…"), "it is cut visibly")
        await stage.press("escape", "escape")
        await stage.select()
        await stage.press("r")
        await stage.idle()


@pytest.mark.promise("ASK-7")
async def test_the_toast_of_a_long_rule_shows_its_beginning_and_the_key_that_undoes_it(tmp_path: Path) -> None:
    turn = calls(("work_change", {"path": "word " * 1000}))
    async with on_chat(tmp_path, turn, says("Done"), size=(80, 24)) as stage:
        await stage.say("Change")
        screen = await scope(stage)
        await stage.until(lambda: screen.accepts_now, "answers count")
        await stage.press("ctrl+s")
        await stage.until_seen("Rule added for this session")
        words = " ".join(line.rpartition("▌")[2].strip() for line in stage.lines)
        assert "allow work.change with exactly" in " ".join(words.split())
        assert "alt+z undoes it." in " ".join(words.split())
        await stage.idle()


@pytest.mark.promise("SEC-2")
async def test_other_calls_leave_the_dialog_alone_and_the_end_of_its_call_is_shown(tmp_path: Path) -> None:
    turn = calls(("work_both", {"first": "one", "second": "two"}))
    async with on_chat(tmp_path, turn, says("Done")) as stage:
        await stage.say("Go")
        await stage.until(lambda: len(stage.app.requests) == 2, "both ask")
        card = stage.cards[0]
        screen = await scope(stage)
        first = card.asks_about
        other = next(one.call.id for one in stage.app.requests if one.call.id != first)
        await stage.runtime.cancel(other)
        await stage.until(lambda: len(stage.app.requests) == 1, "the other one has ended")
        assert stage.app.screen is screen
        assert not screen.query_one("#allow", Button).disabled
        await stage.runtime.cancel(first)
        await stage.until_seen("it has already ended")
        await stage.press("ctrl+s")
        assert stage.app.screen is screen
        await stage.press("escape")
        await stage.idle()
        assert not rules(stage)


async def test_the_chosen_scope_has_another_shape_than_the_others(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(REMOVE), says("Done")) as stage:
        await stage.say("Remove")
        await scope(stage)
        await stage.until_seen("▐●▌ This session")
        assert "▐○▌ Permanently" in stage.text
        await stage.press("tab", "down", "enter")
        await stage.until_seen("▐●▌ Permanently")
        assert "▐○▌ This session" in stage.text
