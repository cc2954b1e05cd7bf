"""Snapshots of the page of an MCP server and of a question that a server asks."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from stage import GivenRuntime, Stage, as_runtime, tool
from test_health_pictures import SIZES, Compare, after

from pegboard.models import Elicitation, ServerState, ServerStatus
from pegboard.models.server_content import PromptArgument, PromptInfo, ResourceInfo
from pegboard.models.server_message import ServerMessage
from pegboard.models.spec import McpHandler
from pegboard.tui.app import PegboardApp
from pegboard.tui.dialogs.configured_servers import AddServerScreen, ServerChangesScreen
from pegboard.tui.dialogs.server_dialogs import ServerDialogs
from pegboard.tui.dialogs.server_questions import ElicitationScreen
from pegboard.tui.form.editors import TextLine

pytestmark = pytest.mark.slow


@pytest.fixture
def given(tmp_path: Path) -> GivenRuntime:
    """Return a server in every state, one of them with tools, resources and a prompt."""
    of_server = tool("notes.search", "Search notes.").model_copy(
        update={"handler": McpHandler(server="notes", tool="search")}
    )
    runtime = GivenRuntime(tmp_path, tools=[of_server, tool("shell.pwd", "Print the working directory.")])
    runtime.servers.found = (
        ServerStatus(
            name="notes",
            state=ServerState.READY,
            server_name="example/notes",
            server_version="1.2",
            protocol="2026-07-28",
            capabilities=("tools", "resources", "prompts"),
            tools=1,
            tokens=58,
            latency_ms=12.0,
            stderr=("listening", "\x1b[31mcache is cold\x1b[0m"),
        ),
        ServerStatus(name="files", state=ServerState.CONNECTING),
        ServerStatus(
            name="broken", state=ServerState.FAILED, reason="The server ended with exit code 1.", fix="Install it."
        ),
        ServerStatus(name="cloud", state=ServerState.NEEDS_LOGIN, reason="The server requires a login."),
        ServerStatus(name="old", state=ServerState.DISABLED),
        ServerStatus(name="slow", state=ServerState.DEGRADED, reason="2 tools can't be offered."),
    )
    runtime.servers.has_resources = (
        ResourceInfo(uri="note://1", name="Groceries", description="A list.", mime_type="text/plain"),
    )
    runtime.servers.has_prompts = (
        PromptInfo(
            name="review", description="Review a note.", arguments=(PromptArgument(name="note", required=True),)
        ),
    )
    return runtime


@SIZES
@pytest.mark.promise("MCP-1")
@pytest.mark.parametrize("name", ["notes", "cloud"])
def test_the_page_of_a_server(given: GivenRuntime, snap_compare: Compare, size: tuple[int, int], name: str) -> None:
    async def steps(stage: Stage) -> None:
        await stage.until(lambda: stage.screen.settled and stage.marked is not None, "the first tool is shown")
        stage.screen.open_server(name)
        await stage.until(lambda: stage.screen.settled, "the server is selected")
        await stage.until_seen("review(note)" if name == "notes" else "requires a login")

    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=after(steps))


@SIZES
@pytest.mark.promise("MCP-1")
def test_the_messages_of_a_server(given: GivenRuntime, snap_compare: Compare, size: tuple[int, int]) -> None:
    log = [
        (True, "request", "tools/call", "3", "search", '{"jsonrpc": "2.0", "id": 3, "method": "tools/call"}'),
        (False, "notification", "notifications/message", "", "[bold]Not markup[/bold]", '{"method": "…"}'),
        (False, "other", "", "", "", "Loading \x1b[31mnotes\x1b[0m"),
        (False, "stderr", "", "", "", "cache is cold"),
        (False, "error", "tools/call", "3", "No such note.", '{"id": 3, "error": {"code": -32602, "message": "No."}}'),
    ]
    given.servers.has_messages = tuple(
        ServerMessage(
            number=number, at=datetime(2026, 7, 31, 12, 30, number).astimezone(), sent=sent, kind=kind, method=method,
            id=id_, about=about, milliseconds=12.5 if kind == "error" else None, size=len(text), text=text,
            is_cut=False,
        )
        for number, (sent, kind, method, id_, about, text) in enumerate(log, 1)
    )  # fmt: skip

    async def steps(stage: Stage) -> None:
        await stage.until(lambda: stage.screen.settled and stage.marked is not None, "the first tool is shown")
        stage.screen.open_server("notes")
        await stage.until(lambda: stage.screen.settled, "the server is selected")
        await stage.press("alt+m")
        await stage.until_seen("error of tools/call")

    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=after(steps))


@SIZES
@pytest.mark.promise("MCP-5")
def test_the_question_of_a_server(given: GivenRuntime, snap_compare: Compare, size: tuple[int, int]) -> None:
    question = Elicitation(
        server="notes",
        tool="notes.search",
        message="Which notes do you mean?\n[bold]This text is not markup.[/bold]",
        json_schema={
            "type": "object",
            "properties": {
                "folder": {"type": "string", "enum": ["home", "work"], "description": "The folder to search."},
                "words": {"type": "string"},
                "archived": {"type": "boolean", "default": False},
            },
            "required": ["words"],
        },
    )

    async def steps(stage: Stage) -> None:
        stage.app.run_worker(ServerDialogs(stage.app).elicit(question))
        await stage.until(lambda: isinstance(stage.app.screen, ElicitationScreen), "the question is there")
        await stage.until(lambda: stage.app.screen.focused is not None, "the form has the focus")
        assert stage.app.screen.query(TextLine)

    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=after(steps))


@SIZES
@pytest.mark.promise("MCP-3")
def test_the_form_that_adds_a_server(given: GivenRuntime, snap_compare: Compare, size: tuple[int, int]) -> None:
    async def steps(stage: Stage) -> None:
        await stage.until(lambda: stage.screen.settled and stage.marked is not None, "the first tool is shown")
        stage.app.push_screen(AddServerScreen(as_runtime(given)))
        await stage.until(lambda: isinstance(stage.app.screen.focused, TextLine), "the first field has the focus")
        await stage.type("files")
        await stage.press("tab")
        await stage.type("npx 'server")
        await stage.press("ctrl+r")
        await stage.until_seen("No closing quotation")

    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=after(steps))


@SIZES
@pytest.mark.promise("MCP-3")
def test_the_changed_servers(given: GivenRuntime, snap_compare: Compare, size: tuple[int, int]) -> None:
    async def steps(stage: Stage) -> None:
        await stage.until(lambda: stage.screen.settled and stage.marked is not None, "the first tool is shown")
        long = " ".join(f"--folder=/srv/documents/{number}" for number in range(12))
        lines = [f"Start files: npx -y @example/files {long} (env, trusted)", "Restart hub: https://example.com/mcp"]
        stage.app.push_screen(ServerChangesScreen([*lines, "Stop old"]))
        await stage.until_seen("Stop old")

    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=after(steps))
