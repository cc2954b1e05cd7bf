"""MCP servers of other clients are imported in the app."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest
from servers import SDK_SERVER, start_of
from stage import Stage, on_stage
from test_configured_servers import config, packs, run_command
from test_servers import ready

from pegboard.config.client_files import CLIENTS
from pegboard.runtime import Runtime
from pegboard.tui.dialogs.configured_servers import ServerChangesScreen
from pegboard.tui.dialogs.import_servers import ImportServersScreen
from pegboard.tui.widgets import answer_guard

TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


def write(file: str, servers: dict[str, object]) -> None:
    """Write the file of a client in the home folder."""
    path = Path(os.environ["HOME"]) / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}))


def entry(**keys: object) -> dict[str, object]:
    """Return the entry of a server that runs, as other clients write it."""
    command, *args = start_of(SDK_SERVER)
    return {"command": command, "args": args, **keys}


async def open_list(stage: Stage) -> None:
    """Open the list of servers."""
    await run_command(stage, "import mcp servers")
    await stage.until(lambda: isinstance(stage.app.screen, ImportServersScreen), "the list is open")


@pytest.mark.promise("MCP-3")
async def test_the_palette_finds_the_import_by_the_name_of_every_client() -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        for client in CLIENTS:
            await stage.press("ctrl+p")
            await stage.until(lambda: stage.app.screen is not stage.screen, "the palette is open")
            await stage.press(*f"import {client}")
            await stage.until_seen("Import MCP servers…")
            await stage.press("escape")
            await stage.until(lambda: stage.app.screen is stage.screen, "the palette is closed")


@pytest.mark.promise("MCP-3")
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_selected_servers_of_other_clients_are_added_and_used(size: tuple[int, int]) -> None:
    write(".claude.json", {"peer": entry(env={"API_TOKEN": TOKEN}), "old": {"type": "sse", "url": "https://x/sse"}})
    write(".cursor/mcp.json", {"other": entry(), "third": entry(timeout=5)})
    async with on_stage(Runtime.from_environment(), size=size) as stage:
        await open_list(stage)
        for line in ("peer", "old", "claude-code · not possible", "cursor · new", ".claude.json", "env: API_TOKEN"):
            await stage.until_seen(line)
        assert TOKEN not in stage.text
        await stage.press("space", "down")
        await stage.until_seen("1 selected")
        await stage.press("space", "enter")
        await stage.until(lambda: isinstance(stage.app.screen, ServerChangesScreen), "the question is there")
        shown = " ".join(stage.text.split())
        assert "Start peer: " in shown
        assert "Start other: " in shown
        assert TOKEN not in shown
        await stage.press("y", "enter")
        assert not config().exists()
        await stage.press("ctrl+y")
        await ready(stage, "peer")
        await ready(stage, "other")
        assert {"peer", "other"} <= {*packs(stage)}
        assert set(tomllib.loads(config().read_text())["mcp"]["servers"]) == {"peer", "other"}
        assert TOKEN not in config().read_text()
        await open_list(stage)
        await stage.until_seen("Not possible: it is configured already")


@pytest.mark.promise("MCP-3")
async def test_a_server_that_cannot_be_imported_is_named_with_the_reason() -> None:
    write(".claude.json", {"old": {"type": "sse", "url": "https://x/sse"}})
    (Path(os.environ["HOME"]) / ".cursor").mkdir()
    (Path(os.environ["HOME"]) / ".cursor/mcp.json").write_text("{")
    async with on_stage(Runtime.from_environment()) as stage:
        await open_list(stage)
        await stage.press("enter")
        await stage.until_seen("old can't be added: it uses the old HTTP+SSE transport")
        await stage.press("down", "space")
        await stage.until_seen("cursor can't be added: ")
        await stage.until_seen("not JSON")
        assert isinstance(stage.app.screen, ImportServersScreen)


@pytest.mark.promise("SEC-2")
async def test_a_key_that_was_meant_for_something_else_imports_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_guard, "clock", answer_guard.Clock())
    write(".claude.json", {"peer": entry()})
    async with on_stage(Runtime.from_environment()) as stage:
        await open_list(stage)
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, ServerChangesScreen), "the question is there")
        await stage.press("ctrl+y")
        assert isinstance(stage.app.screen, ServerChangesScreen)
        assert not config().exists()


@pytest.mark.promise("MCP-3")
async def test_without_files_of_other_clients_a_message_names_the_clients() -> None:
    async with on_stage(Runtime.from_environment()) as stage:
        await run_command(stage, "import mcp servers")
        await stage.until_seen("No MCP servers were found in the files of claude-code")
