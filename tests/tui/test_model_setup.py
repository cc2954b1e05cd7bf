"""Setup of a model in the app, settings, and changes of the configuration without a restart."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from provider import FakeProvider, fails, says
from stage import Stage, on_stage
from textual.widgets import Input

from pegboard.runtime import Runtime
from pegboard.tui.chat.model_setup import ModelSetup
from pegboard.tui.chat.models import ModelsScreen
from pegboard.tui.chat.prompt import AskLine
from pegboard.tui.chat.screen import ChatScreen
from pegboard.tui.chat.transcript import Transcript
from pegboard.tui.dialogs.settings import SettingsScreen
from pegboard.tui.widgets.external_editor import open_in_editor


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    """Serve a model that fails."""
    with FakeProvider(fails(500, "Out of order.")).running() as server:
        yield server


def config() -> Path:
    """Return the user's configuration file."""
    return Path(os.environ["PEGBOARD_CONFIG"])


async def open_settings(stage: Stage) -> None:
    """Open the dialog of settings."""
    await stage.press("ctrl+p", *"preferences")
    await stage.until_seen("Everywhere: Settings")
    await stage.press("enter")
    await stage.until(lambda: isinstance(stage.app.screen, SettingsScreen), "they are open")
    await stage.until_seen("tools.timeout = 8.0")


async def set_up(stage: Stage, provider: str, model: str, url: str) -> ModelSetup:
    """Open the setup of a model and fill it in."""
    await stage.press("f6")
    await stage.until(lambda: isinstance(stage.app.screen, ChatScreen), "the page is open")
    await stage.press("f2")
    await stage.until(lambda: isinstance(stage.app.screen, ModelsScreen), "the list is open")
    await stage.press("f2")
    await stage.until(lambda: isinstance(stage.app.screen, ModelSetup), "the setup is open")
    screen = stage.app.screen
    assert isinstance(screen, ModelSetup)
    for name, value in (("provider", provider), ("model", model), ("base-url", url)):
        screen.query_one(f"#{name}", Input).value = value
    return screen


@pytest.mark.promise("CFG-1")
async def test_a_model_is_tested_saved_and_used_without_a_restart(provider: FakeProvider) -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        await set_up(stage, "local", "tiny", provider.url)
        await stage.press("ctrl+r")
        await stage.until_seen("failed with an internal error")
        provider.play(says("OK"))
        await stage.press("ctrl+r")
        await stage.until_seen("✓ local:tiny answers.")
        await stage.press("ctrl+s")
        await stage.until(lambda: isinstance(stage.app.screen, ChatScreen), "it is saved and chosen")
        assert config().read_text() == f'[model]\nname = "local:tiny"\nbase_url = "{provider.url}"\n'
        assert stage.app.runtime.settings.model.name == "local:tiny"
        provider.play(says("Hi, I'm tiny."))
        await stage.press(*"hello", "enter")
        await stage.until_seen("Hi, I'm tiny.")


@pytest.mark.promise("CFG-1", "TUI-1")
async def test_the_outcome_of_a_test_the_buttons_and_keys_are_visible_in_a_small_terminal(
    provider: FakeProvider,
) -> None:
    async with on_stage(Runtime.from_environment(), (60, 16)) as stage:
        await set_up(stage, "local", "tiny", f"{provider.url}/{'x' * 100}")
        await stage.press("ctrl+r")
        await stage.until_seen("✗")
        assert "Save" in stage.lines[-4]
        assert "^s Save  ^r Test" in stage.lines[-3]


@pytest.mark.promise("CFG-1")
async def test_a_test_of_other_settings_than_those_in_the_form_shows_no_outcome(
    provider: FakeProvider, no_thread: Callable[[], AbstractContextManager[None]]
) -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        screen = await set_up(stage, "local", "tiny", provider.url)
        provider.play(says("OK"))
        screen.query_one("#model", Input).focus()
        with no_thread():
            await stage.press("ctrl+r")
            await stage.until_seen("Testing…")
            await stage.press("end", "2")
        await stage.until(lambda: not any(one.group == "test" for one in stage.app.workers), "the test has ended")
        assert "✓ local:tiny" not in stage.text
        await stage.press("ctrl+r")
        await stage.until_seen("✓ local:tiny2 answers.")


@pytest.mark.parametrize("key", ["ctrl+r", "ctrl+s"])
@pytest.mark.promise("CFG-1")
async def test_a_model_without_a_name_is_neither_tested_nor_saved_and_gets_one(
    provider: FakeProvider, key: str
) -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        screen = await set_up(stage, "local", "", provider.url)
        await stage.press(key)
        await stage.until_seen("✗ Enter the name of the model.")
        screen.query_one("#provider", Input).value = " "
        await stage.press(*"tiny", key)
        await stage.until_seen("✗ Enter the name of the provider.")
        assert not config().exists()
        await stage.press("ctrl+u", *"local", "ctrl+s")
        await stage.until(lambda: isinstance(stage.app.screen, ChatScreen), "it is saved and chosen")
        assert stage.app.runtime.settings.model.name == "local:tiny"


@pytest.mark.parametrize("size", [(120, 40), (60, 16)])
async def test_without_a_model_the_chat_says_at_any_width_how_to_choose_one(size: tuple[int, int]) -> None:
    async with on_stage(Runtime.from_environment(), size, "chat") as stage:
        await stage.until(lambda: isinstance(stage.app.screen, ChatScreen), "the page is open")
        await stage.until_seen("what time is it")
        shown = " ".join(stage.text.split())
        assert "No model is connected. Press f2 to choose one; until then the offline model answers." in shown
        assert "It doesn't reason; it matches your words to a tool, for example:" in shown


@pytest.mark.promise("TUI-7")
async def test_a_click_on_an_empty_conversation_focuses_the_prompt_and_inserts_the_clicked_example() -> None:
    async with on_stage(Runtime.from_environment(), (120, 40), "chat") as stage:
        await stage.until_seen("what time is it")
        await stage.press("shift+tab")
        await stage.until(lambda: not isinstance(stage.app.focused, AskLine), "the conversation is focused")
        await stage.pilot.click(Transcript, offset=(4, 20))
        await stage.until(lambda: isinstance(stage.app.focused, AskLine), "the prompt is focused")
        row = next(number for number, line in enumerate(stage.lines) if "what time is it" in line)
        await stage.pilot.click(offset=(stage.lines[row].index("time"), row))
        prompt = stage.app.screen.query_one(AskLine)
        await stage.until(lambda: prompt.text == "what time is it", "the example is in the prompt")
        assert prompt.has_focus
        await stage.pilot.click(offset=(stage.lines[row - 1].index("list_dir"), row - 1))
        await stage.until(
            lambda: prompt.text == "what time is it\nfs.list_dir path=.", "the other is in a line of its own"
        )


@pytest.mark.promise("SEC-1")
async def test_a_test_sends_a_stored_key_only_to_the_configured_host(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-stored-and-secret")
    provider.play(says("OK"))
    async with on_stage(Runtime.from_environment()) as stage:
        screen = await set_up(stage, "openai", "gpt", provider.url)
        await stage.press("ctrl+r")
        await stage.until_seen("✓ openai:gpt answers.")
        assert not any("sk-stored" in str(asked) for asked in provider.asked)
        screen.query_one("#key", Input).value = "sk-typed"
        await stage.press("ctrl+r")
        await stage.until(lambda: any("sk-typed" in str(asked) for asked in provider.asked), "the typed key is sent")
        assert "sk-typed" not in stage.text


async def test_a_failed_question_is_retried_with_the_key_that_the_chat_names(provider: FakeProvider) -> None:
    config().write_text(f'[model]\nname = "local:tiny"\nbase_url = "{provider.url}"\n')
    async with on_stage(Runtime.from_environment(), page="chat") as stage:
        await stage.until(lambda: isinstance(stage.app.screen, ChatScreen), "the page is open")
        await stage.press(*"hello", "enter")
        await stage.until_seen("Press ctrl+r to retry.")
        assert "failed with an internal error (HTTP 500): Out of order." in " ".join(stage.text.split())
        provider.play(says("All is well."))
        await stage.press("ctrl+r")
        await stage.until_seen("All is well.")
        assert "Out of order" not in stage.text


@pytest.mark.promise("CFG-1")
async def test_a_changed_file_applies_without_a_restart_and_names_what_does_not() -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        config().write_text('[keys]\n"app.help" = "f9"\n[ui]\ntheme = "nord"\n[tools]\ntimeout = 3\n')
        await stage.until_seen("Restart Pegboard to apply tools.timeout.")
        assert stage.app.theme == "nord"
        await stage.press("f9")
        await stage.until_seen("type to filter")
        await stage.press(*"reject")
        await stage.until_seen("Selected call awaiting approval")
        assert "Reject the selected call." in stage.text
        assert "Hide or show the tool list." not in stage.text
        await stage.press("escape", "escape")
        config().write_text("[keys\n")
        await stage.until_seen("The configuration was not applied")
        assert "No tool runs" not in stage.text
        assert stage.app.theme == "nord"


@pytest.mark.promise("CFG-1")
async def test_mistakes_in_a_changed_file_are_problems_until_they_are_corrected() -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        config().write_text('[keys]\n"app.hlep" = "f9"\n[ask]\nsteps = "many"\n')
        await stage.until_seen("✖ 2 problems")
        messages = "\n".join(map(str, stage.app.problems))
        assert "config.toml:2: Unknown command `app.hlep` in [keys]. Did you mean `app.help`?" in messages
        assert "config.toml:4: `ask.steps` should be a whole number" in messages
        config().write_text("[keys\n")
        await stage.until_seen("✖ 3 problems")
        assert "The settings from before are used until this is fixed." in str(stage.app.problems[0])
        config().write_text("")
        await stage.until(lambda: not stage.app.problems, "they are gone")


@pytest.mark.promise("CFG-1")
async def test_many_changes_are_named_in_short() -> None:
    async with on_stage(Runtime.from_environment(), size=(120, 40)) as stage:
        servers = "".join(f'[mcp.servers.s{number}]\ncommand = "x"\nargs = ["{number}"]\n' for number in range(8))
        config().write_text(f"[tools]\ntimeout = 3\n{servers}")
        await stage.until_seen("Restart Pegboard to apply tools.timeout.")
        await stage.until_seen("MCP servers s0, s1, s2, s3 and 4 more changed.")
        assert "mcp.servers" not in stage.text


@pytest.mark.promise("CFG-3", "SEC-3")
async def test_a_value_of_an_untrusted_folder_is_never_shown_as_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pegboard.toml").write_text("[tools]\ntimeout = 3\n")
    monkeypatch.chdir(folder)
    async with on_stage(Runtime.from_environment(), size=(120, 40)) as stage:
        await open_settings(stage)
        await stage.press(*"tools.timeout")
        await stage.until_seen("Value: 8.0")
        assert "In use until" not in stage.text
        await stage.press("down", "down")
        await stage.until_seen("not used: the folder is not trusted")


@pytest.mark.promise("CFG-3", "SEC-5")
async def test_the_path_of_a_folder_is_shown_without_control_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a\x1b]0;title\x07b"
    folder.mkdir()
    (folder / "pegboard.toml").write_text('[ui]\ntheme = "nord"\n')
    monkeypatch.chdir(folder)
    async with on_stage(Runtime.from_environment()) as stage:
        await open_settings(stage)
        await stage.press(*"ui.theme")
        await stage.until_seen('Value: "nord"')
        await stage.press("enter")
        await stage.until_seen("It is overridden by")
        await open_in_editor(stage.app.screen.app, str(folder / "gone.py"))
        await stage.until_seen("no longer exists.")
        assert not {"\x1b", "\x07"} & set("".join(one.message for one in stage.app._notifications))


@pytest.mark.promise("CFG-3")
async def test_a_setting_that_applies_after_a_restart_is_shown_as_configured_and_can_be_reset() -> None:
    async with on_stage(Runtime.from_environment(), size=(120, 40)) as stage:
        await open_settings(stage)
        await stage.press(*"tools.timeout")
        await stage.until_seen("Value: 8.0")
        await stage.press("enter")
        await stage.until_seen("enter accepts")
        await stage.press("ctrl+u", *"20", "enter")
        await stage.until_seen("● tools.timeout = 20.0")
        await stage.until_seen("In use until Pegboard restarts: 8.0")
        await stage.press("delete")
        await stage.until_seen("  tools.timeout = 8.0")
        assert "timeout" not in config().read_text()


@pytest.mark.promise("CFG-3")
async def test_the_restart_that_a_setting_requires_is_announced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard.tui.dialogs.app._CHECK_SECONDS", 0.05)
    runtime = Runtime.from_environment()
    async with on_stage(runtime, size=(120, 40)) as stage:
        await open_settings(stage)
        await stage.press(*"tools.timeout")
        await stage.until_seen("Value: 8.0")
        await stage.press("enter")
        await stage.until_seen("enter accepts")
        await stage.press("ctrl+u", *"20", "enter")
        await stage.until_seen("Restart Pegboard to apply tools.timeout.")
        version = stage.app.rules_version
        runtime.paths.approvals.write_text("# Changed after the settings.\n")
        await stage.until(lambda: stage.app.rules_version > version, "the files were looked at")
        assert sum("Restart Pegboard" in one.message for one in stage.app._notifications) == 1


@pytest.mark.promise("CFG-3")
async def test_a_setting_that_another_program_changes_is_shown_and_overwritten_only_knowingly() -> None:
    async with on_stage(Runtime.from_environment(), size=(120, 40)) as stage:
        await open_settings(stage)
        await stage.press(*"packs.folders")
        await stage.until_seen("Value: []")
        await stage.press("enter")
        await stage.until_seen("enter accepts")
        config().write_text('[packs]\nfolders = ["theirs"]\n')
        await stage.press("ctrl+u", *'["mine"]', "enter")
        await stage.until_seen("Another program has changed packs.folders to")
        assert "theirs" in config().read_text()
        assert stage.app.screen.query_one(Input).value == '["mine"]'
        await stage.press("enter")
        await stage.until_seen('/mine"]')
        config().write_text('[packs]\nfolders = ["theirs"]\n')
        await stage.until_seen('/theirs"]')


@pytest.mark.promise("CFG-3")
async def test_settings_are_searched_changed_and_reset() -> None:
    async with on_stage(Runtime.from_environment(), size=(120, 40)) as stage:
        await open_settings(stage)
        await stage.press(*"unfold")
        await stage.until_seen("Set in: default")
        await stage.until_seen("Which finished calls of a chat are shown in full")
        await stage.until_seen("Allowed: never, failed or always.")
        await stage.press("enter")
        await stage.until_seen("enter accepts")
        await stage.press(*["backspace"] * 5, *"always", "enter")
        await stage.until_seen('● ui.unfold = "always"')
        assert config().read_text() == '[ui]\nunfold = "always"\n'
        await stage.until_seen(f"Set in: {config()}:2")
        await stage.press("enter")
        await stage.until_seen("enter accepts")
        await stage.press(*"!", "enter")
        await stage.until_seen("was not changed")
        assert stage.app.screen.query_one(Input).value == "always!", "the value isn't lost"
        await stage.press("escape")
        await stage.press("delete")
        await stage.until_seen('ui.unfold = "never"')
        assert "unfold" not in config().read_text()


@pytest.mark.promise("TUI-7")
async def test_a_reset_is_offered_only_if_the_filter_shows_a_setting() -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        await open_settings(stage)
        await stage.until_seen("del Reset  f4 File")
        await stage.type("zzz")
        await stage.until_seen("No matches.")
        await stage.until(lambda: "del Reset" not in stage.text and "f4 File" in stage.text, "nothing can be reset")
        await stage.press("ctrl+u")
        await stage.until_seen("del Reset  f4 File")


async def test_the_configuration_file_is_created_by_the_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, external_editor: Callable[[str], None]
) -> None:
    monkeypatch.setenv("PEGBOARD_CONFIG", str(tmp_path / "new" / "config.toml"))
    external_editor("printf '[tools]\ntimeout = 7\n' > \"$file\"")
    async with on_stage(Runtime.from_environment()) as stage:
        await open_settings(stage)
        await stage.press("f4")
        await stage.until_seen("tools.timeout = 7")
        assert config().stat().st_mode & 0o077 == 0, "only its owner can read it"
