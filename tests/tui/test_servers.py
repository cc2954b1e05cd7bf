"""MCP servers in the interface: their states, questions, resources and prompts, with real servers."""

from __future__ import annotations

import asyncio
import importlib.abc
import json
import sys
import threading
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from chat_stage import on_chat
from headless import TIMEOUT_SECONDS
from models import calls, says
from oauth_server import OAuthServer
from provider import FakeProvider
from provider import says as answers
from servers import COMPLETING_SERVER, HOSTILE_SERVER, SDK_SERVER, start_of
from stage import Stage, on_stage

from pegboard.models import ServerConfig, ServerState, ToolCall
from pegboard.runtime import Runtime
from pegboard.tui.dialogs.result import ResultScreen
from pegboard.tui.dialogs.server_contents import VariablesScreen
from pegboard.tui.dialogs.server_questions import ElicitationScreen, SamplingScreen, VisitScreen
from pegboard.tui.form import FormPane
from pegboard.tui.form.editors import TextLine
from pegboard.tui.widgets import answer_guard


def server(script: Path, *arguments: str, name: str = "peer", **config: object) -> ServerConfig:
    """Return the configuration of a server that runs a script."""
    command, *args = start_of(script, *arguments)
    fields: dict[str, object] = {"command": command, "args": tuple(args), "timeout": 60.0}
    return ServerConfig.model_validate({"name": name, **fields, **config})


@asynccontextmanager
async def with_servers(*configs: ServerConfig, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Stage]:
    """Run the app with servers."""
    runtime = Runtime.from_environment()
    for config in configs:
        runtime.servers.add(config)
    async with on_stage(runtime, size) as stage:
        yield stage


async def ready(stage: Stage, name: str = "peer") -> None:
    """Wait until a server and its tools are listed."""
    await stage.until(
        lambda: any(
            pack.name == name and pack.entries and pack.server and pack.server.state is ServerState.READY
            for pack in stage.app.tool_scan.catalogue.packs
        ),
        "the server is listed",
    )


async def select(stage: Stage, name: str = "peer") -> None:
    """Select a server in the tool list and wait for its page."""
    stage.screen.open_server(name)
    await stage.until(lambda: stage.screen.query("ServerPage"), "the page of the server is there")
    await stage.until_seen(f"MCP server {name}")


async def start_call(stage: Stage, name: str) -> None:
    """Run a tool without arguments from its form."""
    stage.screen.open_tool(name)
    await stage.until(lambda: stage.screen.settled, "the tool is shown")
    await stage.press("ctrl+r")


def line_of(stage: Stage, name: str) -> str:
    """Return the line of a pack in the tool list."""
    lines = [stage.list.draw(row, 32, is_selected=False).plain for row in range(stage.list.row_count)]
    return next((line for line in lines if f" {name} " in line), "")


@pytest.mark.promise("MCP-1")
async def test_each_state_is_a_sign_and_a_word_and_servers_without_tools_are_listed() -> None:
    async with with_servers(
        server(SDK_SERVER),
        server(SDK_SERVER, name="gone", command="no-such-command"),
        server(SDK_SERVER, name="off", enabled=False),
        server(HOSTILE_SERVER, "silent", name="slow"),
    ) as stage:
        await ready(stage)
        await stage.until(lambda: "✖ failed" in line_of(stage, "gone"), "the failed server is listed")
        assert "◌ disabled" in line_of(stage, "off")
        assert "… connecting" in line_of(stage, "slow")
        assert "● ready" in line_of(stage, "peer")


@pytest.mark.promise("MCP-1")
async def test_the_page_of_a_failed_server_says_why_and_reconnects(tmp_path: Path) -> None:
    program = tmp_path / "server"
    async with with_servers(server(SDK_SERVER, command=str(program))) as stage:
        await stage.until(lambda: "✖ failed" in line_of(stage, "peer"), "the failed server is listed")
        await select(stage)
        await stage.until_seen("Install it, or correct `command`")
        await stage.until_seen("Reconnect alt+r")
        program.write_text(f'#!/bin/sh\necho starting >&2\nexec {sys.executable} "$@"\n')
        program.chmod(0o755)
        await stage.press("alt+r")
        await ready(stage)
        await stage.until_seen("example/fixture 1.2")
        for text in ("● ready", "2026-07-28", "resources", "│ starting"):
            await stage.until_seen(text)


@pytest.mark.promise("MCP-1")
async def test_the_page_of_a_failed_server_says_whether_pegboard_tries_again() -> None:
    async with with_servers(
        server(SDK_SERVER, name="ends", command="false"),
        server(SDK_SERVER, name="locked", env={"API_TOKEN": "${NO_SUCH_SECRET}"}),
    ) as stage:
        for name, line in (("ends", "✖ failed · Pegboard tries again"), ("locked", "✖ failed · Pegboard has stopped")):
            await select(stage, name)
            await stage.until_seen(line)


@pytest.mark.promise("MCP-1")
async def test_a_changed_server_is_reconnected_from_the_form_of_its_tool_which_keeps_the_arguments(
    tmp_path: Path,
) -> None:
    script = tmp_path / "changing.py"
    script.write_text(SDK_SERVER.read_text())
    async with with_servers(server(script)) as stage:
        await ready(stage)
        await stage.open("peer.add")
        await stage.type("17")
        script.write_text(SDK_SERVER.read_text().replace("def add(a: int, b: int", "def add(a: int, bee: int"))
        await stage.press("alt+r")
        await stage.until_seen("Reconnected to peer:")
        await stage.until(lambda: stage.screen.settled, "the tool is shown")
        await stage.until_seen("bee")
        assert stage.form.form is not None
        assert stage.form.form.draft() == {"a": 17}
        script.write_text("raise SystemExit('no database')\n")
        await stage.press("alt+r")
        await stage.until_seen("peer is not connected.")
        await stage.until_seen("no database")


@pytest.mark.promise("MCP-1", "TUI-3")
async def test_the_form_of_a_tool_that_its_server_removed_says_so_and_has_the_focus_again_when_the_tool_is_back(
    tmp_path: Path,
) -> None:
    script = tmp_path / "changing.py"
    script.write_text(SDK_SERVER.read_text())
    async with with_servers(server(script)) as stage:
        await ready(stage)
        await stage.open("peer.add")
        await stage.type("17")
        script.write_text(SDK_SERVER.read_text().replace("def add(", "def plus("))
        await stage.press("alt+r")
        await stage.until_seen("The form of peer.add was closed")
        await stage.type("5")
        script.write_text(SDK_SERVER.read_text())
        await stage.press("alt+r")
        await stage.until(lambda: stage.form.has_focus_within, "the field has the focus again")
        await stage.type("3")
        await stage.until_seen("173")
        assert "The form of peer.add was closed" not in stage.text
        assert stage.form.form is not None
        assert stage.form.form.draft() == {"a": 173}


@pytest.mark.promise("MCP-1")
async def test_the_messages_of_a_server_are_listed_while_they_are_sent(tmp_path: Path) -> None:
    async with with_servers(server(SDK_SERVER)) as stage:
        await ready(stage)
        await stage.open("peer.add")
        await stage.type("17")
        await stage.press("tab", *"5", "alt+m")
        await stage.until_seen("response to tools/list #2")
        runtime = stage.app.runtime
        sent = asyncio.create_task(runtime.result(ToolCall(name="peer.add", args={"a": 1, "b": 2}, source="form")))
        await stage.until_seen("response to tools/call #3  add")
        await sent
        await stage.until_seen('"total": 3')
        await stage.type("discover")
        await stage.until_seen("2 of 8")
        assert "tools/call #3" not in stage.text
        await stage.press("down", "enter")
        await stage.until_seen("─ response to server/discover ─")
        await stage.press("escape", "escape", "escape")
        await stage.until(lambda: stage.screen is stage.app.screen, "the dialogs are closed")
        assert stage.form.form is not None
        assert stage.form.form.draft() == {"a": 17, "b": 5}
        await select(stage)
        await stage.press("alt+m")
        await stage.until_seen("Messages of peer")


@pytest.mark.promise("MCP-1")
async def test_only_the_newest_of_many_messages_are_listed(tmp_path: Path) -> None:
    async with with_servers(server(SDK_SERVER)) as stage:
        await ready(stage)
        await stage.open("peer.add")
        await stage.press("alt+m")
        await stage.until_seen("response to tools/list #2")
        call = ToolCall(name="peer.work", args={"steps": 1_500}, source="form")
        sent = asyncio.create_task(stage.app.runtime.result(call))
        await stage.until_seen("← response #3")  # its request is no longer kept
        await sent
        await stage.type("discover")
        await stage.until_seen("0 of 1,000")


@pytest.mark.promise("MCP-1")
async def test_a_server_that_connects_keeps_the_selection_and_the_form(tmp_path: Path) -> None:
    program = tmp_path / "server"
    async with with_servers(server(SDK_SERVER, command=str(program))) as stage:
        await stage.open("fs.read_file")
        await stage.type("draft")
        await stage.until(lambda: "failed" in str(stage.app.tool_scan.catalogue.packs[0].server), "it failed")
        program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        program.chmod(0o755)
        await stage.app.runtime.servers.connect("peer")
        await ready(stage)
        await stage.until(lambda: stage.screen.settled, "the tool is shown")
        assert stage.marked == "fs.read_file"
        assert stage.form.form is not None
        assert stage.form.form.draft() == {"path": "draft"}


@pytest.mark.promise("TUI-2")
async def test_the_dialogs_of_servers_are_imported_off_the_event_loop_when_a_server_first_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, threads = "pegboard.tui.dialogs.server_questions", []

    class Watch(importlib.abc.MetaPathFinder):
        """Note the threads that import the module."""

        def find_spec(self, fullname: str, path: object, target: object = None) -> None:
            del path, target
            if fullname == module:
                threads.append(threading.current_thread())

    monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Watch(), *sys.meta_path])
    async with with_servers(server(SDK_SERVER)) as stage:
        await ready(stage)
        assert threads == []
        await start_call(stage, "peer.greet")
        await stage.until_seen("The MCP server peer asks you during peer.greet")
        assert len(threads) == 1
        assert threads[0] is not threading.main_thread()
        await stage.press("alt+d")


@pytest.mark.promise("MCP-5")
async def test_a_question_is_a_form_and_its_values_reach_the_server() -> None:
    async with with_servers(server(SDK_SERVER)) as stage:
        await ready(stage)
        await start_call(stage, "peer.greet")
        await stage.until(lambda: isinstance(stage.app.screen, ElicitationScreen), "the question is there")
        for text in ("The MCP server peer asks you during peer.greet", "Who are you?", "Accept", "Decline", "Cancel"):
            await stage.until_seen(text)
        await stage.until(lambda: isinstance(stage.app.screen.focused, TextLine), "the first field has the focus")
        await stage.press("ctrl+r")
        assert isinstance(stage.app.screen, ElicitationScreen), "the name is required"
        await stage.type("Ann")
        await stage.press("ctrl+r")
        await stage.until_seen("Ann is 30")


@pytest.mark.promise("MCP-5")
@pytest.mark.parametrize(("key", "answer"), [("alt+d", "decline"), ("escape", "cancel")])
async def test_declining_and_cancelling_a_question(key: str, answer: str) -> None:
    async with with_servers(server(SDK_SERVER)) as stage:
        await ready(stage)
        await start_call(stage, "peer.greet")
        await stage.until(lambda: isinstance(stage.app.screen, ElicitationScreen), "the question is there")
        await stage.until(lambda: isinstance(stage.app.screen.focused, TextLine), "the first field has the focus")
        await stage.press(key)
        await stage.until(lambda: stage.result.result is not None, "the call has ended")
        assert stage.result.result is not None
        assert stage.result.result.data == answer


def is_png(file: str) -> bool:
    """Return whether a file is a PNG."""
    return Path(file).read_bytes().startswith(b"\x89PNG")


class StoppedClock(answer_guard.Clock):
    """A clock by which no time passes, so that every key comes too early."""

    def now(self) -> float:
        return 0.0

    def of(self, event: answer_guard.TimedEvent) -> float:
        del event
        return 0.0


@pytest.mark.promise("MCP-5")
@pytest.mark.parametrize("tool", ["peer.greet", "peer.ask_model"])
async def test_keys_meant_for_something_else_neither_answer_nor_fill_in(
    tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with with_servers(server(SDK_SERVER)) as stage:
        await ready(stage)
        monkeypatch.setattr(answer_guard, "clock", StoppedClock())
        await start_call(stage, tool)
        await stage.until(
            lambda: isinstance(stage.app.screen, ElicitationScreen | SamplingScreen), "the question is there"
        )
        await stage.press("A", "n", "enter", "ctrl+r", "ctrl+y", "alt+d", "escape", "tab", "enter")
        asking = stage.app.screen
        assert isinstance(asking, ElicitationScreen | SamplingScreen)
        forms = asking.query(FormPane)
        assert all(one.form is not None and not one.form.draft() for one in forms)


@pytest.mark.promise("MCP-5")
async def test_a_question_closes_when_its_call_is_cancelled() -> None:
    async with with_servers(server(SDK_SERVER)) as stage:
        await ready(stage)
        await start_call(stage, "peer.greet")
        await stage.until(lambda: isinstance(stage.app.screen, ElicitationScreen), "the question is there")
        assert stage.result.call is not None
        await stage.app.runtime.cancel(stage.result.call.id)
        await stage.until(lambda: stage.app.screen is stage.screen, "the question is closed")


@pytest.mark.promise("MCP-5")
@pytest.mark.parametrize("opens", [True, False])
async def test_an_address_is_shown_in_full_and_opened_only_on_request(
    opens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import webbrowser

    opened: list[str] = []

    class Browser(webbrowser.BaseBrowser):
        def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
            del new, autoraise
            opened.append(url)
            return True

    monkeypatch.setattr(webbrowser, "get", Browser)
    async with with_servers(server(HOSTILE_SERVER, "url")) as stage:
        await ready(stage)
        await start_call(stage, "peer.bad")
        await stage.until(lambda: isinstance(stage.app.screen, VisitScreen), "the question is there")
        await stage.until_seen("https://example.org/in")
        assert "Host: example.org" in stage.text
        assert not opened
        await stage.press("ctrl+y" if opens else "enter")
        await stage.until(lambda: stage.result.result is not None, "the call has ended")
        assert stage.result.result is not None
        assert stage.result.result.ok is opens
        assert opened == (["https://example.org/in"] if opens else [])


@pytest.mark.promise("MCP-5")
@pytest.mark.parametrize("key", ["ctrl+y", "n"])
async def test_a_prompt_for_the_model_is_shown_in_full_before_it_is_sent(key: str) -> None:
    async with with_servers(server(SDK_SERVER)) as stage:
        await ready(stage)
        await start_call(stage, "peer.ask_model")
        await stage.until(lambda: isinstance(stage.app.screen, SamplingScreen), "the prompt is there")
        for text in ("The MCP server peer", "peer.ask_model", "Be brief.", "six times seven?", "maximum tokens: 100"):
            await stage.until_seen(text)
        await stage.press(key)
        await stage.until(lambda: stage.result.result is not None, "the call has ended")
        result = stage.result.result
        assert result is not None
        assert result.error is not None
        assert ("No model is configured" if key == "ctrl+y" else "rejected") in result.error.message


@pytest.mark.promise("MCP-6")
async def test_resources_and_templates_open_in_a_result_pane() -> None:
    async with with_servers(server(SDK_SERVER)) as stage:
        await ready(stage)
        await select(stage)
        await stage.until_seen("memo://one")
        for text in ("memo://of/{name}", "review(topic)"):
            assert text in stage.text
        stage.screen.query_one("ServerPage PickList").focus()
        await stage.type("zzz")
        await stage.until_seen("No matches.")
        await stage.press("ctrl+u", "home", "enter")
        await stage.until(lambda: isinstance(stage.app.screen, ResultScreen), "the resource is open")
        await stage.until_seen("the memo")
        await stage.press("escape")
        await stage.type("memo://of")
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, VariablesScreen), "the form is there")
        await stage.type("tea time")
        await stage.press("ctrl+r")
        await stage.until_seen("memo tea time")
        await stage.press("escape", "ctrl+u")
        await stage.type("notes://")
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, VariablesScreen), "the form is there")
        await stage.press("ctrl+r")  # without the variables that can be left out
        await stage.until_seen("5 notes in []")


@pytest.mark.promise("MCP-6")
async def test_a_prompt_is_completed_by_the_server_and_sent_to_the_chat() -> None:
    async with with_servers(server(COMPLETING_SERVER)) as stage:
        await stage.until(lambda: "● ready" in line_of(stage, "peer"), "the server is connected")
        await select(stage)
        await stage.until_seen("visit(city, days?)")
        stage.screen.query_one("ServerPage PickList").focus()
        await stage.type("visit")
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, VariablesScreen), "the form is there")
        await stage.until(lambda: isinstance(stage.app.screen.focused, TextLine), "the first field has the focus")
        await stage.type("Berl")
        line = stage.app.screen.focused
        assert isinstance(line, TextLine)
        await stage.until(lambda: line._suggestion == "Berlin", "the server completes the value")
        await stage.press("right", "ctrl+r")
        await stage.until(lambda: stage.app.current_mode == "chat", "the Chat page is open")
        await stage.until_seen("Plan 1 days in Berlin.")


@pytest.mark.promise("MCP-6")
async def test_the_arguments_of_a_prompt_are_labeled_with_their_titles() -> None:
    async with with_servers(server(HOSTILE_SERVER, "plain")) as stage:
        await ready(stage)
        await select(stage)
        await stage.until_seen("memo://one(lang?)")
        stage.screen.query_one("ServerPage PickList").focus()
        await stage.type("prompt")
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, VariablesScreen), "the form is there")
        await stage.until_seen("Language of all")


@pytest.mark.promise("MCP-1", "SEC-5")
async def test_the_instructions_of_a_server_are_shown_as_plain_text_and_can_be_scrolled_with_the_keyboard() -> None:
    async with with_servers(server(HOSTILE_SERVER, "escapes"), size=(80, 24)) as stage:
        await ready(stage)
        await select(stage)
        await stage.until_seen("◐ degraded · 2 tools")
        facts = stage.screen.query_one("ServerPage #facts")
        await stage.until(lambda: facts.focusable, "the facts don't fit")
        assert "Rule 59 of the server." not in stage.text
        assert "Reconnect" in stage.text.partition("Resources and prompts")[0], "the buttons stay visible"
        facts.focus()
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while "Rule 59 of the server.␛]0;owned␇␛[2J[bold" not in stage.text:
                await stage.press("end")  # problems may still be added above


@pytest.mark.promise("MCP-1")
async def test_health_lists_servers_with_state_reason_and_fix_and_leads_to_their_pages() -> None:
    async with with_servers(server(SDK_SERVER), server(SDK_SERVER, name="gone", command="no-such-command")) as stage:
        await ready(stage)
        await stage.until(lambda: "✖ failed" in line_of(stage, "gone"), "the failed server is listed")
        await stage.press("f8")
        await stage.until_seen("✖ gone")
        for text in ("✖ failed", "was not found", "Install it, or correct", "● peer"):
            await stage.until_seen(text)
        assert "Health !" in stage.text
        await stage.press("enter")
        await stage.until_seen("MCP server gone")


@pytest.mark.promise("MCP-1")
async def test_a_description_is_shown_without_the_indentation_of_its_source() -> None:
    async with with_servers(server(SDK_SERVER)) as stage:
        await ready(stage)
        stage.screen.open_tool("peer.find")
        await stage.until(lambda: any("│ Find notes." in line for line in stage.lines), "the first line is shown")
        assert any("│ • One per line" in line for line in stage.lines)


@pytest.mark.promise("MCP-4")
async def test_images_and_resource_links_of_a_result_can_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    from pegboard.tui.dialogs import saved_file

    opened: list[str] = []
    monkeypatch.setattr(saved_file, "_opened", lambda file: not opened.append(file))  # type: ignore[func-returns-value]
    async with with_servers(server(SDK_SERVER)) as stage:
        await ready(stage)
        await start_call(stage, "peer.mixed")
        await stage.until_seen("image/png · 70 B")
        stage.result.focus()
        await stage.press("v")
        await stage.until_seen("image/png, 70 B")
        await stage.press("home", "down", "down", "o")
        await stage.until(lambda: opened, "the image is opened")
        assert is_png(opened[0])
        await stage.press("end", "o")
        await stage.until(lambda: isinstance(stage.app.screen, ResultScreen), "the resource is open")
        await stage.until_seen("the memo")


@pytest.mark.promise("MCP-8")
async def test_only_passive_files_that_pegboard_saved_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pegboard.tui.dialogs import saved_file

    monkeypatch.setattr(saved_file, "_opened", lambda file: pytest.fail(f"{file} was opened"))
    folder = tmp_path / "results"
    folder.mkdir()
    (tmp_path / "own.png").write_bytes(b"")
    (folder / "page.html").write_text("<script>")
    (folder / "link.png").symlink_to(tmp_path / "own.png")
    async with with_servers() as stage:
        for file in (tmp_path / "own.png", folder / "page.html", folder / "link.png", folder / "none.png"):
            await saved_file.open_file(stage.app, folder, str(file))
            # The screen may break the line anywhere, by the length of the path.
            said = f"{file} was not opened."
            await stage.until(lambda said=said: any(said in one.message for one in stage.app._notifications), said)  # type: ignore[misc]
        await saved_file.open_file(stage.app, folder, "/null\0character.png")
        said = "character.png was not opened. The file doesn't exist."
        await stage.until(lambda: any(said in one.message for one in stage.app._notifications), said)


@pytest.mark.promise("MCP-8", "TUI-7")
@pytest.mark.parametrize("rule", [False, True], ids=["by default", "by a rule"])
async def test_the_approval_card_names_the_server(tmp_path: Path, rule: bool) -> None:
    command, *args = start_of(SDK_SERVER)
    config = f'[mcp.servers.peer]\ncommand = "{command}"\nargs = {json.dumps(args)}\ntimeout = 60.0\n'
    approvals = Runtime.from_environment().paths.approvals
    approvals.parent.mkdir(parents=True, exist_ok=True)
    approvals.write_text('[[rule]]\nask = "peer.add"\n' if rule else "")
    turns = (calls(("peer_add", {"a": 1, "b": 2})), says("Done"))
    async with on_chat(tmp_path, *turns, config=config) as stage:
        await stage.until(lambda: stage.runtime.tools.get("peer.add"), "the server is connected")
        await stage.say("Add")
        await stage.asked()
        assert "MCP server peer" in "\n".join(stage.lines)
        assert ("A rule of" in "\n".join(stage.lines)) is rule


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the pages that the browser has opened; it follows redirects."""
    import webbrowser

    opened: list[bytes] = []

    class Browser(webbrowser.BaseBrowser):
        def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
            del new, autoraise
            with urllib.request.urlopen(url, timeout=20) as page:
                opened.append(page.read())
            return True

    monkeypatch.setattr(webbrowser, "get", Browser)
    return opened


async def log_in(stage: Stage) -> None:
    """Log in to the server vault with the button on its page."""
    await stage.until(lambda: "? needs login" in line_of(stage, "vault"), "the server needs a login")
    await select(stage, "vault")
    await stage.until_seen("Log in alt+l")
    await stage.pilot.click("#login")
    await stage.until(lambda: isinstance(stage.app.screen, VisitScreen), "the address is shown")
    await stage.until_seen("Log in to vault")
    await stage.press("ctrl+y")
    await ready(stage, "vault")
    await stage.until(lambda: "● ready" in line_of(stage, "vault"), "the server is ready")


@pytest.mark.promise("MCP-7")
async def test_logging_in_with_the_button_makes_a_server_ready(pages: list[bytes]) -> None:
    with OAuthServer().running() as oauth:
        async with with_servers(ServerConfig(name="vault", url=oauth.url, timeout=60.0)) as stage:
            await log_in(stage)
            assert b"Return to Pegboard" in pages[0]
            assert oauth.paths() == ["/register", "/authorize", "/token"]
            assert not stage.screen.query_one("#login").display


@pytest.mark.promise("MCP-7")
@pytest.mark.parametrize("status", [200, 503])
async def test_logging_out_revokes_the_tokens_and_the_server_needs_a_login_again(
    pages: list[bytes], status: int
) -> None:
    with OAuthServer().running() as oauth:
        oauth.revocation_status = status
        async with with_servers(ServerConfig(name="vault", url=oauth.url, timeout=60.0)) as stage:
            await stage.until(lambda: "? needs login" in line_of(stage, "vault"), "the server needs a login")
            await select(stage, "vault")
            assert not stage.screen.check_action("server", ("log_out",))
            await log_in(stage)
            await stage.until_seen("Log out")
            assert stage.screen.check_action("server", ("log_out",))
            await stage.pilot.click("#logout")
            await stage.until_seen("You are logged out of vault.")
            await stage.until(lambda: "? needs login" in line_of(stage, "vault"), "the server needs a login again")
            await stage.until_seen("Log in alt+l")
            assert oauth.paths()[3:] == (["/revoke", "/revoke"] if status == 200 else ["/revoke"])
            notes = [one.message for one in stage.app._notifications]
            assert any("may stay valid until they expire" in note for note in notes) is (status != 200)
            assert not stage.screen.check_action("server", ("log_out",))
            assert not stage.screen.query_one("#logout").display
    assert len(pages) == 1


@pytest.mark.promise("MCP-5")
async def test_an_approved_prompt_is_answered_by_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeProvider(answers("4", "2")).running() as provider:
        monkeypatch.setenv("PEGBOARD_MODEL__NAME", "openai:fake")
        monkeypatch.setenv("PEGBOARD_MODEL__BASE_URL", provider.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        async with with_servers(server(SDK_SERVER)) as stage:
            await ready(stage)
            await start_call(stage, "peer.ask_model")
            await stage.until(lambda: isinstance(stage.app.screen, SamplingScreen), "the prompt is there")
            assert provider.asked == [], "nothing is sent before it is approved"
            await stage.press("ctrl+y")
            await stage.until(lambda: stage.result.result is not None, "the call has ended")
            assert stage.result.result is not None
            assert stage.result.result.data == "openai:fake said 42"
            asked = [(one["role"], one["content"]) for one in provider.asked[0].body["messages"]]
            assert asked == [("system", "Be brief."), ("user", "What is six times seven?")]
