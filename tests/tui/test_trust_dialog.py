"""The dialog that reviews the working directory before the user trusts it."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage import Stage, on_stage
from textual.widgets import Button

from pegboard.config import load
from pegboard.runtime import Runtime
from pegboard.tui.dialogs.trust import TrustScreen
from pegboard.tui.widgets import answer_guard

CONFIG = """
[packs.x]
api_key = "hunter2"
note = "[bold]no markup[/] [@click=app.quit]quit[/] \\u001b[31m"
[tools]
allow = ["time.*"]
[ui]
vim_keys = true
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    """Change into a folder with settings, and return it."""
    folder = tmp_path / "[red]clone"
    folder.mkdir()
    (folder / "pegboard.toml").write_text(CONFIG)
    (folder / ".env").write_text("KEY=hunter2\n")
    monkeypatch.chdir(folder)
    return folder


class EarlyClock(answer_guard.Clock):
    """A clock for events that happen before any question is visible."""

    def of(self, event: answer_guard.TimedEvent) -> float:
        """Return a time in the past."""
        return event.time - 1_000_000


async def open_dialog(stage: Stage) -> TrustScreen:
    """Open the dialog by the palette."""
    await stage.press("ctrl+p")
    await stage.until_seen("Find a command")
    await stage.type("trust this")
    await stage.until_seen("Trust this folder…")
    await stage.press("enter")
    await stage.until(lambda: isinstance(stage.app.screen, TrustScreen), "the dialog is open")
    screen = stage.app.screen
    assert isinstance(screen, TrustScreen)
    await stage.until(lambda: screen._guard.selected is not None, "the dialog is visible")
    return screen


def focused(stage: Stage) -> str | None:
    return stage.app.focused.id if stage.app.focused is not None else None


@pytest.mark.promise("SEC-3")
async def test_a_toast_reports_an_untrusted_folder_and_blocks_nothing(folder: Path) -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        await stage.until_seen("This folder is not trusted")
        assert stage.app.screen is stage.screen
        await stage.until_seen("problems")


@pytest.mark.promise("SEC-3", "TUI-4")
async def test_it_lists_the_settings_as_plain_text_without_secrets(folder: Path) -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        await open_dialog(stage)
        await stage.until_seen("Do not trust")
        for text in ("[red]clone?", "[bold]no markup[/] [@click=app.quit]quit[/]", 'tools.allow = ["time.*"]', "KEY ="):
            assert text in stage.text, stage.text
        assert "hunter2" not in stage.text
        assert "\x1b" not in stage.text
        assert focused(stage) == "no"


@pytest.mark.promise("SEC-3", "TUI-1")
async def test_long_settings_scroll_while_the_button_that_refuses_has_the_focus(folder: Path) -> None:
    names = ", ".join(f'"tool_{number}.*"' for number in range(300))
    (folder / "pegboard.toml").write_text(f"[tools]\nallow = [{names}]\n")
    async with on_stage(Runtime.from_environment(), size=(80, 24)) as stage:
        await open_dialog(stage)
        assert "tool_0." in stage.text
        await stage.press("down", *["pagedown"] * 20)
        await stage.until_seen("tool_299.")
        await stage.press("up", *["pageup"] * 20)
        await stage.until_seen("tool_0.")
        assert focused(stage) == "no"


@pytest.mark.promise("SEC-3")
async def test_early_keys_and_clicks_are_ignored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = answer_guard.clock
    monkeypatch.setattr(answer_guard, "clock", EarlyClock())
    async with on_stage(Runtime.from_environment()) as stage:
        screen = await open_dialog(stage)
        await stage.press("right", "enter", "tab", "space", "y", "escape")
        await stage.pilot.click("#yes")
        await stage.pilot.pause()
        assert stage.app.screen is screen
        assert focused(stage) == "no"
        monkeypatch.setattr(answer_guard, "clock", patient)
        await stage.press("enter")
        await stage.until(lambda: stage.app.screen is stage.screen, "the dialog is closed")
        assert load(None, folder)[0].loaded.trust == "untrusted"


@pytest.mark.promise("SEC-3")
@pytest.mark.parametrize("keys", [["enter"], ["escape"], ["y", "escape"], ["right", "left", "enter"]])
async def test_only_the_button_trusts(folder: Path, keys: list[str]) -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        await open_dialog(stage)
        await stage.press(*keys)
        await stage.until(lambda: stage.app.screen is stage.screen, "the dialog is closed")
        assert not stage.app.wants_reload
        assert load(None, folder)[0].loaded.trust == "untrusted"


@pytest.mark.promise("SEC-3")
@pytest.mark.parametrize("device", ["keys", "click"])
async def test_trusting_a_folder_is_recorded_and_restarts_pegboard(folder: Path, device: str) -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        await open_dialog(stage)
        if device == "keys":
            await stage.press("right", "enter")
        else:
            await stage.pilot.click("#yes")
        await stage.until(lambda: stage.app.wants_reload, "the app ends to restart")
    settings, _ = load(None, folder)
    assert (settings.loaded.trust, settings.tools.allow) == ("trusted", ("time.*",))
    runtime = Runtime.from_environment()
    async with on_stage(runtime) as stage:
        assert "not trusted" not in stage.text
        assert {spec.name for spec in runtime.tools.all()} == {"time.now"}


@pytest.mark.promise("SEC-3")
async def test_a_change_while_the_dialog_is_open_is_not_trusted(folder: Path) -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        await open_dialog(stage)
        (folder / "pegboard.toml").write_text('[packs.fs]\nroots = ["/"]\n')
        await stage.press("right", "enter")
        await stage.until(lambda: stage.app.wants_reload, "the app ends to restart")
    settings, _ = load(None, folder)
    assert (settings.loaded.trust, settings.packs.of("fs")) == ("changed", {})


@pytest.mark.promise("SEC-3")
async def test_a_folder_that_cannot_be_reviewed_cannot_be_trusted(folder: Path) -> None:
    (folder / "pegboard.toml").write_text("[tools\n")
    async with on_stage(Runtime.from_environment(), size=(80, 24)) as stage:
        screen = await open_dialog(stage)
        assert [button.id for button in screen.query(Button)] == ["no"]
        await stage.until_seen("The folder can't be reviewed")
