"""MCP servers of the configuration are added, changed and removed in the app, without a restart."""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from servers import SDK_SERVER, start_of
from stage import Stage, on_stage
from test_servers import ready
from textual.widgets import Button

from pegboard.runtime import Runtime
from pegboard.tui.dialogs.configured_servers import AddServerScreen, ServerChangesScreen
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.dialogs.server_questions import ElicitationScreen
from pegboard.tui.widgets import answer_guard


def config() -> Path:
    """Return the user's configuration file."""
    return Path(os.environ["PEGBOARD_CONFIG"])


def entry(name: str, **keys: str) -> str:
    """Return the configuration of a server; the values of further keys are TOML."""
    command, *args = start_of(SDK_SERVER)
    more = "".join(f"{key} = {value}\n" for key, value in keys.items())
    return f'[mcp.servers.{name}]\ncommand = "{command}"\nargs = {args!r}\n{more}'


async def run_command(stage: Stage, query: str) -> None:
    """Run a command of the palette."""
    await stage.press("ctrl+p")
    await stage.type(query)
    await stage.press("enter")


def packs(stage: Stage) -> list[str]:
    """Return the names of the listed packs."""
    return [pack.name for pack in stage.app.tool_scan.catalogue.packs]


async def fill(stage: Stage, name: str, server: str) -> None:
    """Fill in the name and the command, the first two fields."""
    await stage.until(lambda: isinstance(stage.app.screen, AddServerScreen), "the dialog is open")
    await stage.until(lambda: stage.app.screen.focused is not None, "the first field has the focus")
    await stage.type(name)
    await stage.press("tab")
    await stage.type(server)


@pytest.mark.promise("MCP-3")
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_server_is_added_used_and_removed_by_keys(size: tuple[int, int]) -> None:
    async with on_stage(Runtime.from_environment(), size=size) as stage:
        await run_command(stage, "add mcp server")
        await fill(stage, "peer", shlex.join(start_of(SDK_SERVER)))
        await stage.press("ctrl+r")
        await ready(stage)
        await stage.until(lambda: stage.list.row is not None and "peer" in packs(stage), "it is listed")
        stage.screen.open_tool("peer.peek")
        await stage.until(lambda: stage.screen.settled, "the tool is shown")
        await stage.press("ctrl+r")
        await stage.until(lambda: stage.result.result is not None, "the call ended")
        stage.screen.open_tool("peer.greet")
        await stage.until(lambda: stage.screen.settled, "the tool is shown")
        await stage.press("ctrl+r")
        await stage.until(lambda: isinstance(stage.app.screen, ElicitationScreen), "the server asks a question")
        await stage.press("escape")
        await stage.until(lambda: stage.result.result is not None, "the call ended")
        stage.screen.open_server("peer")
        await stage.until(lambda: stage.screen.query("ServerPage"), "the page of the server is there")
        await run_command(stage, "remove mcp server")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "the question is there")
        await stage.press("enter")
        assert "[mcp.servers.peer]" in config().read_text()
        await run_command(stage, "remove mcp server")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "the question is there")
        await stage.press("ctrl+y")
        await stage.until(lambda: "peer" not in packs(stage), "the server is gone")
        assert "peer" not in config().read_text()


@pytest.mark.promise("MCP-3", "TUI-1")
async def test_the_last_button_of_a_server_is_visible_when_it_has_the_focus_in_a_narrow_terminal() -> None:
    config().write_text(entry("peer"))
    async with on_stage(Runtime.from_environment(), (60, 16)) as stage:
        await ready(stage)
        stage.screen.open_server("peer")
        await stage.until(lambda: stage.screen.query("ServerPage"), "the page of the server is there")
        await stage.until_seen("Remove…")
        stage.screen.query_one("#messages", Button).focus()
        await stage.until_seen("Messages")


@pytest.mark.promise("MCP-3")
async def test_an_entry_that_another_program_wrote_in_the_meantime_is_not_removed_unseen() -> None:
    config().write_text(entry("peer"))
    async with on_stage(Runtime.from_environment()) as stage:
        await ready(stage)
        stage.screen.open_server("peer")
        await stage.until(lambda: stage.screen.query("ServerPage"), "the page of the server is there")
        await run_command(stage, "remove mcp server")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "the question is there")
        changed = entry("peer", env='{ MINE = "typed elsewhere" }')
        config().write_text(changed)
        await stage.press("ctrl+y")
        await stage.until_seen("peer was not removed because its entry was changed")
        assert config().read_text() == changed
        await run_command(stage, "apply mcp servers")
        await stage.until(lambda: isinstance(stage.app.screen, ServerChangesScreen), "the change is shown")
        await stage.press("ctrl+y")
        await ready(stage)
        await run_command(stage, "remove mcp server")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "the question is there")
        await stage.press("ctrl+y")
        await stage.until(lambda: "peer" not in packs(stage), "the server is gone")
        assert "peer" not in config().read_text()


@pytest.mark.promise("MCP-3")
async def test_a_server_that_cannot_be_added_keeps_the_typed_text() -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        await run_command(stage, "add mcp server")
        await fill(stage, "fs", "no-such-command 'x")
        await stage.press("ctrl+r")
        await stage.until_seen("The command can't be parsed: No closing quotation. Check its quotes.")
        await stage.press("apostrophe", "ctrl+r")
        await stage.until_seen("A pack named fs exists; choose another name.")
        assert not config().exists()
        await stage.press("shift+tab", "2", "ctrl+r")
        await stage.until_seen("✖ failed")
        await stage.until_seen("no-such-command")
        assert 'args = ["x"]' in config().read_text()


@pytest.mark.promise("MCP-3")
@pytest.mark.parametrize(
    ("typed", "cwd", "written"),
    [
        ("python server.py", "", {"command": "python", "args": ["server.py"], "cwd": "{here}"}),
        ("./server.py", "", {"command": "{here}/server.py", "cwd": "{here}"}),
        ("python x.py", "sub", {"command": "python", "args": ["x.py"], "cwd": "{here}/sub"}),
        ("https://127.0.0.1:1/mcp", "", {"url": "https://127.0.0.1:1/mcp"}),
    ],
)
async def test_relative_paths_start_at_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, cwd: str, written: dict[str, object]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.py").write_text("")
    async with on_stage(Runtime.from_environment()) as stage:
        await run_command(stage, "add mcp server")
        await fill(stage, "peer", typed)
        if cwd:
            await stage.press("tab", "tab", "tab")
            await stage.type(cwd)
        await stage.press("ctrl+r")
        await stage.until(lambda: "peer" in packs(stage), "the server is listed")
    found = tomllib.loads(config().read_text())["mcp"]["servers"]["peer"]
    assert found == json.loads(json.dumps(written).replace("{here}", str(tmp_path)))


@pytest.mark.promise("MCP-3")
async def test_a_second_press_adds_no_second_server() -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        await run_command(stage, "add mcp server")
        await fill(stage, "peer", shlex.join(start_of(SDK_SERVER)))
        dialog = stage.app.screen
        assert isinstance(dialog, AddServerScreen)
        for _ in range(3):
            dialog.action_add()
        await ready(stage)
        assert not isinstance(stage.app.screen, AddServerScreen)
        assert config().read_text().count("[mcp.servers.peer]") == 1


@pytest.mark.promise("MCP-5", "MCP-8")
async def test_the_question_of_a_server_that_was_removed_closes_and_its_call_fails() -> None:
    config().write_text(entry("peer"))
    async with on_stage(Runtime.from_environment()) as stage:
        await ready(stage)
        stage.screen.open_tool("peer.greet")
        await stage.until(lambda: stage.screen.settled, "the tool is shown")
        await stage.press("ctrl+r")
        await stage.until(lambda: isinstance(stage.app.screen, ElicitationScreen), "the server asks a question")
        assert await stage.app.runtime.servers.configured.remove("peer") is None
        await stage.until(lambda: not isinstance(stage.app.screen, ElicitationScreen), "the question is closed")
        await stage.until(lambda: stage.result.result is not None, "the call ended")
        result = stage.result.result
        assert result is not None
        assert result.error is not None
        assert "Its entry in the configuration was changed or removed." in result.error.message


@pytest.mark.promise("MCP-3")
async def test_each_change_says_what_applying_it_does() -> None:
    config().write_text(entry("gone") + entry("kept") + entry("off", enabled="false"))
    config().with_name("approvals.toml").write_text('[[rule]]\nallow = ["new.*", "gone.*"]\n')
    async with on_stage(Runtime.from_environment()) as stage:
        await ready(stage, "kept")
        config().write_text(
            entry("kept", timeout="9.0") + entry("new") + entry("new_off", enabled="false") + entry("wrong", tools="3")
        )
        await run_command(stage, "apply mcp servers")
        await stage.until(lambda: isinstance(stage.app.screen, ServerChangesScreen), "the changes are shown")
        for line in ("Stop gone", "Restart kept: ", "Start new: ", "Do not start new_off", "Remove off"):
            assert line in stage.text, line
        assert stage.text.count("approvals.toml has rules that cover") == 1
        assert "rules that cover new: allow new.*, gone.*." in " ".join(stage.text.split())
        assert "Do not start wrong: `mcp.servers.wrong.tools`" in stage.text


@pytest.mark.promise("MCP-3", "MCP-8")
async def test_changes_of_the_file_are_applied_only_when_the_user_agrees() -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        config().write_text(entry("peer", env='{ API_TOKEN = "ghp_0123456789abcdefghij" }', trusted="true"))
        await stage.until_seen("MCP server peer changed.")
        await run_command(stage, "apply mcp servers")
        await stage.until(lambda: isinstance(stage.app.screen, ServerChangesScreen), "the changes are shown")
        await stage.until_seen("Start peer:")
        assert "(env, trusted)" in " ".join(stage.text.split())
        assert "ghp_" not in stage.text
        await stage.press("enter", "y", "escape")
        assert "peer" not in packs(stage)
        await run_command(stage, "apply mcp servers")
        await stage.until(lambda: isinstance(stage.app.screen, ServerChangesScreen), "the changes are shown")
        await stage.press("ctrl+y")
        await ready(stage)
        config().write_text(entry("peer", enabled="false") + entry("other"))
        await stage.until_seen("MCP servers other, peer changed.")
        await run_command(stage, "apply mcp servers")
        await stage.until_seen("Stop peer")
        await stage.press("ctrl+y")
        await ready(stage, "other")
        await run_command(stage, "apply mcp servers")
        await stage.until_seen("The MCP servers are as configured.")


@pytest.mark.promise("SEC-2")
async def test_a_key_that_was_meant_for_something_else_applies_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_guard, "clock", answer_guard.Clock())
    async with on_stage(Runtime.from_environment()) as stage:
        config().write_text(entry("peer"))
        await run_command(stage, "apply mcp servers")
        await stage.until(lambda: isinstance(stage.app.screen, ServerChangesScreen), "the changes are shown")
        await stage.press("ctrl+y")
        assert isinstance(stage.app.screen, ServerChangesScreen)
        assert "peer" not in packs(stage)


@pytest.mark.promise("MCP-3")
async def test_the_entry_of_a_server_opens_in_the_editor(
    external_editor: Callable[[str], None], tmp_path: Path
) -> None:
    config().write_text(f"# mine\n\n{entry('peer', enabled='false')}")
    external_editor(f'echo "$@" > {tmp_path / "opened"}')
    async with on_stage(Runtime.from_environment()) as stage:
        await stage.until(lambda: "peer" in packs(stage), "the server is listed")
        stage.screen.open_server("peer")
        await stage.until_seen("Remove `enabled = false` from `[mcp.servers.peer]`.")
        await stage.press("f4")
        await stage.until((tmp_path / "opened").exists, "the editor was started")
        assert (tmp_path / "opened").read_text().endswith(f"{config()}\n")
