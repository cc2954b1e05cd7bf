"""Calls that are shown and recorded without their secrets: edited, run again, opened in the form, allowed by a rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_stage import ChatStage, on_chat
from models import calls, says
from stage import Stage
from test_activity import Recorder, on_activity, paths, press, recorder, rows, runtime
from test_chat_approval import form

from pegboard.runtime import Runtime
from pegboard.tui.dialogs.approval_scope import ApprovalScope
from pegboard.tui.form.editors import TextBox

__all__ = ["paths", "recorder", "runtime"]

SECRET = "sk-1234567890abcdef"
MASKED = "«secret SEARCH_API_KEY»"
KEYS = '''
def use(*, note: str, key: str) -> str:
    """Use a key."""
    return f"{note} with {len(key)} characters"
'''


@pytest.fixture
def packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a pack with a tool that shows which key it received, and set a secret."""
    monkeypatch.setenv("SEARCH_API_KEY", SECRET)
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs" / "keys.py").write_text(KEYS)


async def until_notified(stage: Stage, text: str) -> None:
    """Wait until a toast contains a text."""
    await stage.until(lambda: any(text in toast.message for toast in stage.app._notifications), f"{text!r} is shown")


async def edit(stage: ChatStage, *keys: str) -> None:
    """Press keys in the form of the call that awaits approval, and run it."""
    await stage.select()
    await stage.press("e")
    await form(stage)
    assert SECRET not in stage.text
    await stage.press(*keys, "ctrl+r")


@pytest.mark.promise("ASK-7", "STO-2")
async def test_an_edited_call_of_the_chat_runs_with_the_secret_that_its_form_masks(packs: None, tmp_path: Path) -> None:
    turn = calls(("keys_use", {"note": "a", "key": SECRET}))
    async with on_chat(tmp_path, turn, turn, says("Done")) as stage:
        await stage.say("Use it")
        await edit(stage, "end", "b")
        await stage.until(lambda: len(stage.tool_messages) == 1, "it has run")
        assert f"ab with {len(SECRET)} characters" in stage.tool_messages[0].text
        assert stage.cards[0].is_edited
        await edit(stage)
        await stage.idle()
        assert f"a with {len(SECRET)} characters" in stage.tool_messages[1].text
        assert not stage.cards[1].is_edited
        assert SECRET not in stage.text


@pytest.mark.promise("ASK-7", "STO-2")
async def test_the_expected_calls_of_a_script_are_those_with_the_secret_and_are_shown_without_it(
    packs: None, tmp_path: Path
) -> None:
    turn = calls(("script_run", {"commands": f"keys.use --note a --key {SECRET}"}))
    async with on_chat(tmp_path, turn, says("Done"), config="[scripts]\noffer = true\n") as stage:
        await stage.say("Use it")
        await stage.select()
        await stage.until_seen(f"• keys.use --note a --key '{MASKED}'")
        assert "✗" not in stage.text
        assert SECRET not in stage.text
        await stage.press("r")
        await stage.idle()


@pytest.mark.promise("ASK-7", "STO-2")
async def test_an_edited_call_with_a_changed_mask_does_not_run(packs: None, tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("keys_use", {"note": "a", "key": SECRET})), says("Done")) as stage:
        await stage.say("Use it")
        await edit(stage, "tab", "end", "b")
        await until_notified(stage, f"{MASKED} hides a value that was moved or changed.")
        assert not stage.tool_messages
        await stage.press("escape")
        await stage.until_seen("Discard the changes?")
        await stage.press("ctrl+y", "escape")
        await stage.idle()


@pytest.mark.promise("ASK-7", "STO-2")
async def test_toasts_show_an_added_and_a_removed_rule_without_the_secret_in_its_arguments(
    packs: None, tmp_path: Path
) -> None:
    async with on_chat(tmp_path, calls(("keys_use", {"note": "a", "key": SECRET})), says("Done")) as stage:
        await stage.say("Use it")
        await stage.select()
        await stage.press("A")
        await stage.until(lambda: isinstance(stage.app.screen, ApprovalScope), "the dialog is open")
        await stage.press("ctrl+s")
        await stage.idle()
        await until_notified(stage, "Rule added for this session: allow keys.use with exactly ")
        await stage.press("alt+z")
        await until_notified(stage, "Rule removed: ")
        toasts = [toast.message for toast in stage.app._notifications]
        assert len([toast for toast in toasts if MASKED in toast]) == 2
        assert SECRET not in " ".join(toasts)


@pytest.mark.promise("ACT-2", "STO-2")
@pytest.mark.parametrize("hidden", [MASKED, "«redacted»"])
async def test_a_call_without_its_secret_is_not_run_again_before_the_value_is_entered(
    runtime: Runtime, recorder: Recorder, hidden: str
) -> None:
    recorder.add("gate.shout", {"text": hidden})
    async with on_activity(runtime) as stage:
        await stage.press("ctrl+r")
        await until_notified(stage, f"gate.shout can't be run again: {hidden} hides a value that is not recorded.")
        await until_notified(stage, "Enter it with alt+e.")
        await stage.press("alt+e")
        await stage.until_seen("Edit gate.shout and run it again")
        await stage.until(lambda: isinstance(stage.app.focused, TextBox), "the field has the focus")
        await stage.press("ctrl+r")
        await until_notified(stage, "Enter the value.")
        assert len(runtime.activity.page().calls) == 1
        await stage.press("end", *["backspace"] * len(hidden), *"hello", "ctrl+r")
        await stage.until(lambda: len(rows(stage)) == 2 and "hello" in rows(stage)[0], "it ran with the value")
        await press(stage, "down")
        await stage.press("alt+o")
        await until_notified(stage, "Enter it before you run gate.shout.")


@pytest.mark.promise("ACT-2", "STO-2")
async def test_a_copied_call_and_a_script_without_the_secret_say_so(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": MASKED})
    async with on_activity(runtime) as stage:
        await stage.press("ctrl+right_square_bracket")
        await stage.until_seen(f"{MASKED} hides a value that is not recorded.")
        await stage.press("escape", "alt+s")
        await stage.until_seen(f"# {MASKED} hides a value that is not recorded.")
