"""Dialogs with much text: buttons and keys stay visible in small terminals."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyperclip
import pytest
from stage import GivenRuntime, on_stage, tool
from textual import events
from textual.content import Content

from pegboard.brake import Question, Questions
from pegboard.config import review_folder
from pegboard.models import Elicitation, JsonObject, SamplingRequest, ToolCall
from pegboard.runtime import Runtime
from pegboard.tui.activity.redact import RedactScreen
from pegboard.tui.app import PegboardApp
from pegboard.tui.chat.model_setup import ModelSetup
from pegboard.tui.dialogs.agent_call import AgentCall, AgentCallScreen
from pegboard.tui.dialogs.approval_scope import ApprovalScope
from pegboard.tui.dialogs.configured_servers import AddServerScreen, ServerChangesScreen
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.dialogs.server_questions import ElicitationScreen, SamplingScreen, VisitScreen
from pegboard.tui.dialogs.trust import TrustScreen
from pegboard.tui.messages import Copy
from pegboard.tui.widgets import clipboard
from pegboard.tui.widgets.long_text import LongText

LINES = [f"line {number} of a text that is longer than any terminal is high" for number in range(80)]
TEXT = "\n".join(LINES)
NAME = "name" * 50


def trust(app: PegboardApp) -> object:
    Path("pegboard.toml").write_text("[tools]\nallow = [\n" + "".join(f'"{line}",\n' for line in LINES) + "]\n")
    Path(".env").write_text("".join(f"NAME_{number}=1\n" for number in range(80)))
    return app.push_screen(TrustScreen(review_folder(app.runtime.paths)))


def elicitation(app: PegboardApp) -> object:
    fields = {f"field_{number}": {"type": "string", "description": TEXT} for number in range(20)}
    question = Elicitation(server=NAME, message=TEXT, json_schema={"type": "object", "properties": fields})
    return app.push_screen(ElicitationScreen(question))


def sampling(app: PegboardApp) -> object:
    return app.push_screen(SamplingScreen(SamplingRequest(server=NAME, messages=(("user", TEXT),)), NAME))


def visit(app: PegboardApp) -> object:
    return app.push_screen(VisitScreen(Content(NAME), TEXT, f"https://example.com/{'a/' * 1_000}", "Visit?"))


def agent_call(app: PegboardApp) -> object:
    questions = Questions(app.runtime.paths.state)
    return app.push_screen(AgentCallScreen(app.runtime, questions, AgentCall.read(app.runtime, questions.pending()[0])))


def scope(app: PegboardApp) -> object:
    names = [f"parameter_{number}" for number in range(30)]
    fields: dict[str, JsonObject] = {name: {"type": "string"} for name in names}
    spec = tool("x.y", "", None, **fields)
    call = ToolCall(id="c", name="x.y", args=dict.fromkeys(names, TEXT), source="ask")
    return app.push_screen(ApprovalScope(app.runtime, spec, call, call, lambda: True))


DIALOGS: list[Callable[[PegboardApp], object]] = [
    trust,
    elicitation,
    sampling,
    visit,
    agent_call,
    scope,
    lambda app: app.push_screen(ServerChangesScreen(LINES)),
    lambda app: app.push_screen(AddServerScreen(app.runtime)),
    lambda app: app.push_screen(Confirm("Delete?", TEXT, "Delete")),
    lambda app: app.push_screen(ModelSetup(app.runtime, "openai:gpt", f"https://example.com/{'v1/' * 100}")),
    lambda app: app.push_screen(RedactScreen()),
]


@pytest.mark.promise("TUI-1", "TUI-4")
@pytest.mark.parametrize("size", [(60, 16), (80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_every_button_and_key_of_a_question_is_visible_however_long_its_text(
    size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runtime = Runtime.from_environment()
    call = Question("x.y", {"text": TEXT}, agent=NAME, server=NAME, reason=TEXT, via="serve", call="c")
    Questions(runtime.paths.state).open(call)
    async with on_stage(runtime, size=size) as stage:
        await stage.until(lambda: stage.app.agent_calls, "the call waits")
        hidden: list[str] = []
        for build in DIALOGS:
            build(stage.app)
            await stage.until(lambda: stage.app.screen.query("#box"), "the dialog is open")
            await stage.press("down")  # the approval for similar calls has a line per parameter
            await stage.pilot.pause()
            await stage.pilot.pause()
            screen = stage.app.screen
            box = screen.query_one("#box").content_region
            needed = [one for one in screen.query("Button, KeysLine, RedactScreen Input") if one.display]
            assert needed
            hidden += [
                f"{screen} {one} {one.region} in {box}"
                for one in needed
                if not one.region or not box.contains_region(one.region)
            ]
            await stage.app.pop_screen()
        assert not hidden, "\n".join(hidden)


@pytest.mark.promise("TUI-1", "MCP-5")
@pytest.mark.parametrize("opens", [elicitation, visit], ids=["form", "address"])
async def test_a_long_text_of_a_server_is_read_to_its_end_by_keyboard(
    opens: Callable[[PegboardApp], object],
) -> None:
    async with on_stage(Runtime.from_environment(), size=(80, 24)) as stage:
        opens(stage.app)
        await stage.until(lambda: stage.app.screen.query(LongText), "the dialog is open")
        await stage.until(lambda: stage.app.focused is not None, "keys count")
        for text in stage.app.screen.query(LongText):
            for _ in range(60):
                if text.has_focus:
                    break
                await stage.press("tab")
            await stage.press("end")
            await stage.until(partial(getattr, text, "is_vertical_scroll_end"), "the end is shown")
            assert text.has_focus
            assert text.max_scroll_y > 0


async def test_keys_count_while_the_browser_opens_an_address(
    given: GivenRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_open = threading.Event()

    class Browser(webbrowser.BaseBrowser):
        def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
            del url, new, autoraise
            return may_open.wait(100)

    monkeypatch.setattr(webbrowser, "get", Browser)
    async with on_stage(given) as stage:
        try:
            stage.app.push_screen(VisitScreen(Content(NAME), TEXT, "https://example.com/in", "Visit?"))
            await stage.until_seen("Host: example.com")
            for key in ("ctrl+y", "c"):
                stage.app.post_message(events.Key(key, None))
            await stage.until(lambda: stage.app.clipboard == "https://example.com/in", "the address is copied")
            assert isinstance(stage.app.screen, VisitScreen)
        finally:
            may_open.set()
        await stage.until(lambda: not stage.app.screen.is_modal, "the dialog closes when the address is open")


async def test_keys_count_while_a_clipboard_program_does_not_respond(
    given: GivenRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    monkeypatch.setattr(pyperclip, "copy", lambda _: ended.wait(100))
    monkeypatch.setattr(clipboard, "_SYSTEM_SECONDS", 100)
    async with on_stage(given) as stage:
        try:
            await stage.press("slash")
            stage.app.post_message(Copy("text"))
            stage.app.post_message(events.Key("f", "f"))
            await stage.until(lambda: stage.list.sought == "f", "the key is handled")
        finally:
            ended.set()
