"""Presets of the selected tool: saving, loading, renaming and deleting by keys."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from stage import GivenRuntime, Stage, on_stage, tool
from textual.widgets import Input

from pegboard.models import JsonObject, Preset
from pegboard.runtime import Runtime
from pegboard.tui.dialogs.ask_name import AskName
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.tools.presets import PresetsScreen
from pegboard.tui.widgets import dialog
from pegboard.tui.widgets.pick_list import PickList

SMALL: JsonObject = {"path": "small.txt", "max_bytes": 10}


async def open_presets(stage: Stage) -> None:
    """Open the dialog and wait until the presets are listed."""
    await stage.press("ctrl+l")
    await stage.until(lambda: isinstance(stage.app.screen, PresetsScreen), "the presets are listed")
    await stage.until(lambda: stage.app.screen.query_one(PickList).row_count, "they are read")


async def closed(stage: Stage) -> None:
    """Wait until the dialog is closed."""
    await stage.until(lambda: stage.app.screen is stage.screen, "the list is closed")


@pytest.mark.promise("TUI-3", "TUI-7")
async def test_the_forms_arguments_are_saved_and_loaded_again(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.type("a.txt")
        await open_presets(stage)
        await stage.type("first one")
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "a name is asked for")
        assert stage.app.screen.query_one(Input).value == "first one"
        await stage.press("enter")
        await stage.until(lambda: given.kept == {"fs.read_file": {"first one": {"path": "a.txt"}}}, "it is kept")
        await stage.press("escape")
        await closed(stage)
        await stage.press("backspace", "backspace", "backspace", "backspace", "z")
        assert stage.form.submit() == {"path": "az"}
        await open_presets(stage)
        await stage.until_seen("a.txt")
        await stage.press("enter")
        await stage.until(lambda: stage.form.submit() == {"path": "a.txt"}, "the form is filled")


@pytest.mark.promise("TUI-3")
async def test_only_the_presets_of_the_shown_tool_are_listed_and_typing_filters_them(given: GivenRuntime) -> None:
    given.kept = {
        "fs.read_file": {"small": SMALL, "large": {"path": "large.txt"}},
        "fs.list_dir": {"another": {"path": "/"}},
    }
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.until_seen("ctrl+l 2 presets")
        await open_presets(stage)
        assert "another" not in stage.text
        await stage.type("sm")
        await stage.until_seen('"max_bytes": 10')
        await stage.press("enter")
        await stage.until(lambda: stage.form.submit() == SMALL, "the form is filled")


@pytest.mark.promise("TUI-3")
async def test_a_preset_is_overwritten_only_after_confirmation(given: GivenRuntime) -> None:
    given.kept = {"fs.read_file": {"small": SMALL}}
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.type("b.txt")

        def is_kept(arguments: JsonObject) -> bool:
            return given.kept["fs.read_file"]["small"] == arguments

        answers: list[tuple[str, JsonObject]] = [("n", SMALL), ("ctrl+y", {"path": "b.txt"})]
        for answer, kept in answers:
            await open_presets(stage)
            await stage.press("ctrl+s")
            await stage.until(lambda: isinstance(stage.app.screen, AskName), "a name is asked for")
            await stage.type("small")
            await stage.press("enter")
            await stage.until(lambda: isinstance(stage.app.screen, Confirm), "a question is asked")
            await stage.until_seen("Overwrite the preset small?")
            await stage.press(answer)
            await stage.until(lambda: isinstance(stage.app.screen, PresetsScreen), "the list is shown again")
            await stage.until(partial(is_kept, kept), "it is as it should be")
            await stage.press("escape")
            await closed(stage)


@pytest.mark.promise("TUI-3")
async def test_a_preset_is_renamed_and_deleted(given: GivenRuntime) -> None:
    given.kept = {"fs.read_file": {"small": SMALL, "tiny": {"path": "t"}}}
    async with on_stage(given) as stage:
        await stage.open("read")
        await open_presets(stage)
        await stage.press("f2")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "a name is asked for")
        await stage.press("ctrl+u", *"tiny", "enter")
        await stage.until_seen("There is a preset tiny already.")
        await stage.press("ctrl+u", *"smalls", "enter")
        await stage.until(lambda: "smalls" in given.kept["fs.read_file"], "it has another name")
        await stage.until_seen("smalls")
        await stage.press("delete")
        await stage.until_seen("Delete the preset smalls?")
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, PresetsScreen), "nothing was deleted")
        assert "smalls" in given.kept["fs.read_file"]
        await stage.press("delete")
        await stage.until_seen("Delete the preset smalls?")
        await stage.press("ctrl+y")
        await stage.until(lambda: [*given.kept["fs.read_file"]] == ["tiny"], "it is deleted")


@pytest.mark.promise("TUI-3")
async def test_after_a_preset_is_deleted_the_next_one_is_selected(given: GivenRuntime) -> None:
    given.kept = {"fs.read_file": {name: {"path": name} for name in "abcd"}}
    async with on_stage(given) as stage:
        await stage.open("read")
        await open_presets(stage)
        await stage.press("down")
        for name, following in ("bc", "cd", "da"):
            await stage.press("delete")
            await stage.until_seen(f"Delete the preset {name}?")
            await stage.press("ctrl+y")
            await stage.until_seen(f'"path": "{following}"')


@pytest.mark.promise("TUI-3")
async def test_the_list_follows_other_programs_and_keeps_filter_and_selection(given: GivenRuntime) -> None:
    given.kept = {"fs.read_file": {"small": SMALL, "smaller": SMALL, "tiny": {"path": "t"}}}
    async with on_stage(given) as stage:
        await stage.open("read")
        await open_presets(stage)
        await stage.type("sm")
        await stage.press("down")
        given.kept["fs.read_file"] = {"a small one": SMALL, "smaller": {"path": "changed.txt"}}
        await stage.until_seen('"path": "changed.txt"')
        presets = stage.app.screen.query_one(PickList)
        assert (presets.sought, presets.total, presets.row_count) == ("sm", 3, 3)
        await stage.press("enter")
        await stage.until(lambda: stage.form.submit() == {"path": "changed.txt"}, "the selected one fills the form")
        await open_presets(stage)
        await stage.press("end")
        del given.kept["fs.read_file"]["smaller"]
        await stage.until_seen('"path": "small.txt"')
        await stage.press("enter")
        await stage.until(lambda: stage.form.submit() == SMALL, "the one before it fills the form")


@pytest.mark.promise("TUI-3")
async def test_presets_that_take_long_to_read_are_not_read_twice_at_the_same_time(
    given: GivenRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialog, "_FOLLOW_SECONDS", 0.02)
    began, may_end, read = threading.Semaphore(0), threading.Event(), given.presets.list

    def read_slowly(tool: str) -> Sequence[Preset]:
        began.release()
        assert may_end.wait(30)
        return read(tool)

    async with on_stage(given) as stage:
        await stage.open("read")
        await open_presets(stage)
        monkeypatch.setattr(given.presets, "list", read_slowly)
        assert await asyncio.to_thread(began.acquire, timeout=30)
        assert not await asyncio.to_thread(began.acquire, timeout=0.5)
        may_end.set()
        assert await asyncio.to_thread(began.acquire, timeout=30), "it is read again"


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("question", ["Delete", "Overwrite"])
async def test_a_preset_that_another_program_changes_during_the_question_is_kept(
    given: GivenRuntime, question: str
) -> None:
    given.kept = {"fs.read_file": {"small": SMALL}}
    changed: JsonObject = {"path": "changed.txt"}
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.type("b.txt")
        await open_presets(stage)
        await stage.press(*["delete"] if question == "Delete" else ["ctrl+s", *"small", "enter"])
        await stage.until_seen(f"{question} the preset small?")
        given.kept["fs.read_file"]["small"] = changed
        await stage.press("ctrl+y")
        await stage.until_seen("The preset `small` was not")
        assert given.kept == {"fs.read_file": {"small": changed}}
        if question == "Overwrite":
            await stage.press("enter")
        else:
            await stage.until_seen('"path": "changed.txt"')
            await stage.press("delete")
        await stage.until_seen(f"{question} the preset small?")
        await stage.press("ctrl+y")
        await stage.until(lambda: given.kept["fs.read_file"].get("small") != changed, "it is as confirmed")


@pytest.mark.promise("TUI-3")
async def test_an_invalid_name_stays_in_the_dialog_with_the_reason(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await open_presets(stage)
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "a name is asked for")
        await stage.press("a", "slash", "b", "enter")
        await stage.until_seen("A name can't have a slash.")
        assert given.kept == {}
        await stage.press("backspace", "backspace", "enter")
        await stage.until_seen("Saved the preset a.")
        assert [*given.kept] == ["fs.read_file"]


@pytest.mark.promise("TUI-3", "TUI-4")
async def test_the_preview_masks_secrets_and_shows_hostile_text_as_text(tmp_path: Path) -> None:
    login = tool("web.login", api_key={"type": "string"}, note={"type": "string"})
    given = GivenRuntime(tmp_path, tools=[login])
    given.kept = {"web.login": {"[red]x\x1b[2J": {"api_key": "hush-hush", "note": "[bold]n\x1b]0;t\x07"}}}
    async with on_stage(given) as stage:
        await open_presets(stage)
        await stage.until_seen("[bold]n")
        assert "hush-hush" not in stage.text
        assert "[red]x" in stage.text
        assert "\x1b" not in stage.text


async def test_saving_a_secret_shows_a_warning(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path, tools=[tool("web.login", api_key={"type": "string"})])
    async with on_stage(given) as stage:
        await stage.open("login")
        await stage.type("abc")
        await open_presets(stage)
        await stage.press("ctrl+s")
        await stage.until_seen("The arguments contain a secret")


@pytest.mark.promise("ACT-4")
async def test_a_preset_without_its_redacted_value_is_loaded_with_a_warning(given: GivenRuntime) -> None:
    given.kept = {"fs.read_file": {"small": {"path": "«redacted».txt"}}}
    async with on_stage(given) as stage:
        await stage.open("read")
        await open_presets(stage)
        await stage.press("enter")
        await stage.until_seen("«redacted» hides")


@pytest.mark.promise("TUI-7")
async def test_presets_are_loaded_by_mouse(given: GivenRuntime) -> None:
    given.kept = {"fs.read_file": {"small": SMALL, "tiny": {"path": "t"}}}
    async with on_stage(given, size=(80, 24)) as stage:
        await stage.open("read")
        await open_presets(stage)
        await stage.pilot.click(PickList, offset=(5, 2))
        await closed(stage)
        await stage.until(lambda: stage.form.submit() == {"path": "t"}, "the form is filled")


@pytest.mark.promise("TUI-3", "STO-3")
async def test_presets_are_kept_between_sessions_and_a_damaged_one_is_a_problem() -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        await stage.open("read_file")
        await stage.type("kept.txt")
        await open_presets(stage)
        await stage.type("mine")
        await stage.press("enter", "enter")
        await stage.until_seen("kept.txt")
        await stage.until(lambda: isinstance(stage.app.screen, PresetsScreen), "it is saved")
        await stage.until(lambda: stage.app.screen.query_one(PickList).row_count == 2, "it is listed")
        await stage.press("escape")
    runtime = Runtime.from_environment()
    [file] = runtime.paths.presets.rglob("mine.toml")
    file.with_name("broken.toml").write_text("path = ")
    async with on_stage(runtime) as stage:
        await stage.press("escape")  # clears the restored filter
        await stage.open("read_file")
        await stage.until_seen("ctrl+l 1 preset")
        await stage.until_seen("1 problem")
        await open_presets(stage)
        await stage.press("enter")
        await closed(stage)
        await stage.until(lambda: stage.form.submit() == {"path": "kept.txt"}, "the form is filled")
