"""Dialogs of the Script page: saved scripts, past calls, copy."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from script_stage import ScriptStage, on_script
from textual.widgets import Input

from pegboard.forms.script_texts import copied_as
from pegboard.models import ToolCall
from pegboard.tui.dialogs.ask_name import AskName
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.dialogs.copy_as import CopyScreen
from pegboard.tui.script.past_calls import PastCallsScreen
from pegboard.tui.script.saved_scripts import SavedScriptsScreen


async def save_as(stage: ScriptStage, name: str) -> None:
    """Save a new script."""
    await stage.press("ctrl+s")
    await stage.until(lambda: isinstance(stage.app.screen, AskName), "a name is asked for")
    await stage.type(name)
    await stage.press("enter")
    await stage.until(lambda: stage.place.document.name == name, "it is saved")


async def listed(stage: ScriptStage) -> None:
    """Open the dialog of saved scripts."""
    await stage.press("ctrl+l")
    await stage.until(lambda: isinstance(stage.app.screen, SavedScriptsScreen), "the list is open")
    await stage.until(lambda: "Loading…" not in stage.text, "they are read")
    await stage.pilot.pause()


async def confirmed(stage: ScriptStage, answer: str) -> None:
    """Answer a confirmation."""
    await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it asks")
    await stage.press(answer)


# Saved scripts


@pytest.mark.promise("TUI-1")
async def test_a_script_is_saved_changed_saved_again_and_opened(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        saved = stage.runtime.scripts.saved
        await stage.type("work.say a")
        assert stage.title == "Script"
        await save_as(stage, "first")
        assert stage.title == "first"
        assert await asyncio.to_thread(saved.read, "first") == "work.say a"
        await stage.type("b")
        assert stage.title == "first  ● changed"
        await stage.press("ctrl+s")
        await stage.until_seen("Saved as first.")
        assert await asyncio.to_thread(saved.read, "first") == "work.say ab"
        assert stage.title == "first"
        await stage.press("ctrl+n")
        await stage.until(lambda: stage.editor.text == "", "a new one is begun")
        await listed(stage)
        await stage.until_seen("1 line")
        await stage.press("enter")
        await stage.until(lambda: stage.editor.text == "work.say ab", "it is opened")
        assert stage.title == "first"


@pytest.mark.promise("TUI-1")
async def test_the_end_of_a_long_preview_is_shown_by_keyboard(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        text = "\n".join(f"echo {number}" for number in range(60))
        await asyncio.to_thread(stage.runtime.scripts.saved.write, "long", text)
        await listed(stage)
        await stage.until_seen("echo 0")
        await stage.press("tab", "end")
        await stage.until_seen("echo 59")
        await stage.press("shift+tab", "enter")
        await stage.until(lambda: stage.editor.text == text, "the script is opened")


@pytest.mark.promise("TUI-1")
async def test_changes_are_discarded_only_after_confirmation(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await asyncio.to_thread(stage.runtime.scripts.saved.write, "other", "work.say other")
        await stage.type("work.say mine")
        await stage.press("ctrl+n")
        await confirmed(stage, "n")
        assert stage.editor.text == "work.say mine"
        await listed(stage)
        await stage.press("enter")
        await confirmed(stage, "n")
        assert stage.editor.text == "work.say mine"
        await listed(stage)
        await stage.press("enter")
        await confirmed(stage, "ctrl+y")
        await stage.until(lambda: stage.editor.text == "work.say other", "the other is opened")


@pytest.mark.promise("TUI-1")
async def test_a_script_is_saved_even_if_another_dialog_opens_while_no_thread_is_free(
    tmp_path: Path, no_thread: Callable[[], AbstractContextManager[None]]
) -> None:
    async with on_script(tmp_path) as stage:
        await stage.type("a")
        await save_as(stage, "first")
        await stage.type("b")
        with no_thread():
            await stage.press("ctrl+s", "ctrl+l")
        await stage.until_seen("Saved as first.")
        assert not stage.place.document.is_changed
        assert await asyncio.to_thread(stage.runtime.scripts.saved.read, "first") == "ab"


@pytest.mark.promise("TUI-1")
async def test_closing_the_dialog_while_no_thread_is_free_keeps_the_new_name_of_the_open_script(
    tmp_path: Path, no_thread: Callable[[], AbstractContextManager[None]]
) -> None:
    async with on_script(tmp_path) as stage:
        document = stage.place.document
        await stage.type("a")
        await save_as(stage, "first")
        await listed(stage)
        await stage.press("f2", "end", *"2")
        with no_thread():
            await stage.press("enter", "escape")
        await stage.until(lambda: document.name == "first2", "it is renamed")
        await listed(stage)
        await stage.press("delete")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it asks")
        with no_thread():
            await stage.press("ctrl+y", "escape")
        await stage.until(lambda: document.name == "", "it is deleted")
        assert document.is_changed


@pytest.mark.promise("TUI-1")
async def test_text_that_is_typed_while_a_script_is_opened_is_discarded_only_after_confirmation(
    tmp_path: Path, no_thread: Callable[[], AbstractContextManager[None]]
) -> None:
    async with on_script(tmp_path) as stage:
        await asyncio.to_thread(stage.runtime.scripts.saved.write, "other", "work.say other")
        await listed(stage)
        with no_thread():
            await stage.press("enter", *"mine")
        await confirmed(stage, "n")
        assert stage.editor.text == "mine"


async def test_a_script_changed_by_another_program_is_overwritten_only_after_confirmation(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        saved = stage.runtime.scripts.saved
        await stage.type("a")
        await save_as(stage, "mine")
        await asyncio.to_thread(saved.write, "mine", "theirs")
        await stage.type("b")
        await stage.press("ctrl+s")
        await stage.until_seen("Another program changed")
        await confirmed(stage, "n")
        assert await asyncio.to_thread(saved.read, "mine") == "theirs"
        await stage.press("ctrl+s")
        await confirmed(stage, "ctrl+y")
        await stage.until_seen("Saved as mine.")
        assert await asyncio.to_thread(saved.read, "mine") == "ab"
        await asyncio.to_thread(saved.write, "mine", "theirs again")
        stage.place.action_save_as()
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "a name is asked for")
        await stage.press("enter")
        await stage.until_seen("Another program changed")
        await confirmed(stage, "n")
        assert await asyncio.to_thread(saved.read, "mine") == "theirs again"


@pytest.mark.promise("TUI-1")
async def test_saved_scripts_are_renamed_deleted_and_overwritten(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        saved = stage.runtime.scripts.saved
        await asyncio.to_thread(saved.write, "one", "work.say one")
        await asyncio.to_thread(saved.write, "zwölf", "work.say zwölf")
        await stage.type("x")
        await save_as(stage, "mine")
        await listed(stage)
        assert "● mine" in stage.text
        await stage.press("f2", *"2.sh", "enter")
        await stage.until(lambda: stage.place.document.name == "mine" and "mine2" in stage.text, "it is renamed")
        await stage.type("one")
        await stage.press("delete")
        await confirmed(stage, "ctrl+y")
        await stage.until(lambda: "work.say one" not in stage.text, "it is gone")
        await stage.press("ctrl+s")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "a name is asked for")
        stage.app.screen.query_one(Input).value = "zwo\u0308lf .sh"  # the same name
        await stage.press("enter")
        await confirmed(stage, "ctrl+y")
        await stage.until(lambda: isinstance(stage.app.screen, SavedScriptsScreen), "it is saved")
        await stage.press("escape")
        await stage.until(lambda: stage.title == "zwölf", "it has another name")
        assert [one.name for one in await asyncio.to_thread(saved.list)] == ["mine2", "zwölf"]
        assert await asyncio.to_thread(saved.read, "zwölf") == "x"


@pytest.mark.promise("TUI-1")
async def test_after_a_saved_script_is_deleted_the_next_one_is_selected(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        for name in ("a", "b", "c"):
            await asyncio.to_thread(stage.runtime.scripts.saved.write, name, f"work.say {name}")
        await listed(stage)
        await stage.until_seen("work.say a")
        await stage.press("down")
        await stage.until_seen("work.say b")
        await stage.press("delete")
        await confirmed(stage, "ctrl+y")
        await stage.until_seen("work.say c")


@pytest.mark.promise("TUI-1")
@pytest.mark.parametrize("spelling", ["zwölf.sh.sh", "zwo\u0308lf.sh .sh ", "zwo\u0308lf"])
async def test_no_spelling_of_a_name_overwrites_another_script_without_confirmation(
    tmp_path: Path, spelling: str
) -> None:
    async with on_script(tmp_path) as stage:
        saved = stage.runtime.scripts.saved
        await asyncio.to_thread(saved.write, "zwölf", "work.say zwölf")
        await stage.type("x")
        await stage.press("ctrl+s")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "a name is asked for")
        stage.app.screen.query_one(Input).value = spelling
        await stage.press("enter")
        await stage.until_seen("A script named zwölf already exists.")
        await confirmed(stage, "n")
        await stage.until(lambda: not isinstance(stage.app.screen, Confirm), "it is answered")
        assert await asyncio.to_thread(saved.read, "zwölf") == "work.say zwölf"


async def test_an_invalid_name_or_one_that_is_taken_stays_in_the_dialog_with_the_reason(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        saved = stage.runtime.scripts.saved
        await asyncio.to_thread(saved.write, "two", "work.say two")
        await stage.type("x")
        await stage.press("ctrl+s")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "a name is asked for")
        await stage.press("a", "slash", "b", "enter")
        await stage.until_seen("The name contains '/'")
        await stage.press("ctrl+u", *"mine", "enter")
        await stage.until(lambda: stage.title == "mine", "it is saved")
        await listed(stage)
        await stage.press("f2")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "a name is asked for")
        await stage.press("ctrl+u", *"two", "enter")
        await stage.until_seen("A script named `two` already exists.")
        await stage.press("s", "enter")
        await stage.until(lambda: isinstance(stage.app.screen, SavedScriptsScreen), "it is renamed")
        assert [one.name for one in await asyncio.to_thread(saved.list)] == ["two", "twos"]


async def test_a_deleted_script_stays_in_the_editor_as_a_new_one(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.type("x")
        await save_as(stage, "mine")
        await listed(stage)
        await stage.press("delete")
        await stage.until_seen("It stays in the editor as a new script.")
        await confirmed(stage, "ctrl+y")
        await stage.until(lambda: "● mine" not in stage.text, "it is gone")
        await stage.press("escape")
        assert stage.title == "Script"
        assert stage.editor.text == "x"
        assert stage.place.document.is_changed


async def test_the_list_follows_other_programs_and_a_script_changed_during_the_question_is_kept(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        saved = stage.runtime.scripts.saved
        for name in ("one", "three", "two"):
            await asyncio.to_thread(saved.write, name, f"work.say {name}")
        await listed(stage)
        await stage.type("t")
        await stage.until_seen("work.say three")
        await asyncio.to_thread(saved.delete, "three")
        await stage.until_seen("work.say two")
        await asyncio.to_thread(saved.rename, "one", "tone")
        await stage.until_seen("2 of 2")
        await stage.press("delete")
        await stage.until_seen("Delete two?")
        await asyncio.to_thread(saved.write, "two", "work.say theirs")
        await stage.press("ctrl+y")
        await stage.until_seen("The script `two` was not deleted.")
        await stage.until_seen("work.say theirs")
        assert saved.read("two") == "work.say theirs"
        await stage.press("delete")
        await confirmed(stage, "ctrl+y")
        await stage.until(lambda: [one.name for one in saved.list()] == ["tone"], "it is deleted as confirmed")


async def test_an_invalid_name_is_rejected_with_a_message(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.type("x")
        await stage.press("ctrl+s")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "a name is asked for")
        await stage.type("a/b")
        await stage.press("enter")
        await stage.until_seen("which file names can't contain")
        assert stage.title == "Script"


# Past calls


@pytest.mark.promise("STO-1", "TUI-1")
async def test_past_calls_become_lines_in_chronological_order(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.press("ctrl+up")
        await stage.until_seen("No calls recorded yet.")
        await stage.press("escape")
        for name, args in (("work.say", {"text": "a b"}), ("work.look", {"where": "x"}), ("work.big", {"size": 3})):
            await stage.runtime.result(ToolCall(name=name, args=args, source="form"))
        await stage.write("echo before")
        await stage.press("end", "ctrl+up")
        await stage.until(lambda: isinstance(stage.app.screen, PastCallsScreen), "they are listed")
        await stage.until_seen("☐ work.big")
        await stage.press("down", "space", "space")
        assert "2 selected" in stage.text
        await stage.press("enter")
        await stage.until(lambda: "work.look" in stage.editor.text, "they are lines")
        lines = [line for line in stage.editor.text.split("\n") if line and not line.startswith("#")]
        assert lines == ["echo before", "work.say --text 'a b'", "work.look --where x"]
        await stage.press("ctrl+r")
        await stage.idle()
        assert "  before" in stage.printed


async def test_without_a_selection_the_chosen_call_is_inserted(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        for text in ("a", "b"):
            await stage.runtime.result(ToolCall(name="work.say", args={"text": text}, source="form"))
        await stage.press("ctrl+up")
        await stage.until_seen('work.say  {text: "b"}')
        await stage.press("down", "enter")
        await stage.until(lambda: "work.say --text a" in stage.editor.text, "it is a line")
        assert "text b" not in stage.editor.text


@pytest.mark.promise("TUI-2")
async def test_calls_that_are_inserted_into_a_very_long_script_keep_all_of_it(tmp_path: Path) -> None:
    script = "".join(f"# step {number}\n" for number in range(10_000))
    async with on_script(tmp_path) as stage:
        saved = stage.runtime.scripts.saved
        await asyncio.to_thread(saved.write, "long", script)
        await stage.runtime.result(ToolCall(name="work.say", args={"text": "a"}, source="form"))
        await listed(stage)
        await stage.press("enter")
        await stage.until_seen("more characters: edit in $EDITOR (f4)")
        await stage.press("ctrl+up")
        await stage.until_seen('work.say  {text: "a"}')
        await stage.press("enter")
        await stage.until(lambda: "work.say --text a\n" in stage.editor.text, "it is a line")
        stage.editor.move_cursor(stage.editor.document.end)
        await stage.press("shift+tab")
        await stage.type("wolook")
        await stage.press("enter")
        await stage.press("ctrl+s")
        await stage.until_seen("Saved as long.")
        text = await asyncio.to_thread(saved.read, "long")
        assert text.endswith(f"work.say --text a\n{script}work.look <where>")


# Copies


@pytest.mark.promise("TUI-5")
async def test_a_script_is_copied_in_every_format(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.press("ctrl+right_square_bracket")
        await stage.until_seen("The editor is empty")
        await stage.write("work.say 'a b'\n")
        for downs, part in ((0, "work.say 'a b'\n"), (1, "script run"), (2, '"script.run"'), (3, "orchestrator()")):
            await stage.press("ctrl+right_square_bracket")
            await stage.until(lambda: isinstance(stage.app.screen, CopyScreen), "the ways are listed")
            await stage.press(*["down"] * downs, "enter")
            await stage.until(lambda part=part: part in stage.app.clipboard, "it is copied")  # type: ignore[misc]
        assert str(tmp_path / "packs") in stage.app.clipboard


TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=40),
    st.text("ab\n'\"\\$`!END<>%\t\x1b", max_size=40),
    st.sampled_from(["END\nEND2\n", "a\nEND", "\\", '"""', "'''\\", "", "\n\n", "%s %b \\0101 \\\\"]),
)


@pytest.mark.slow
@settings(max_examples=60)
@given(TEXTS)
def test_a_copied_command_passes_the_script_unchanged_to_the_shell(script: str) -> None:
    command = copied_as("cli", script, ["/my packs"])
    fake = 'pegboard() { [ "$*" = "script run --packs /my packs -" ] || echo "not so: $*"; cat; }\n'
    done = subprocess.run(
        ["bash"], input=(fake + command + "\n").encode(), capture_output=True, env=os.environ, check=True
    )
    assert done.stdout.decode().removesuffix("\n") == script.removesuffix("\n")


@settings(max_examples=60)
@given(TEXTS)
def test_a_copied_program_and_call_contain_the_script_unchanged(script: str) -> None:
    program = copied_as("python", script, ["/p"])
    found: dict[str, object] = {}
    exec(program[program.index("SCRIPT = ") : program.index("\n\n\nasync def main")], found)
    assert found["SCRIPT"] == script
    compile(program, "copied", "exec")
    assert json.loads(copied_as("json", script)) == {"name": "script.run", "arguments": {"commands": script}}
    assert copied_as("script", script) == script
