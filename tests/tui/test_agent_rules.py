"""Rules that answers to calls of `pegboard serve` add: for the client's session, and permanently."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import commands
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult
from pydantic import JsonValue
from stage import Stage
from test_agent_calls import answered, asked, card, on_app, open_card
from test_approval_by_accident import StandingClock
from textual.widgets import Button, RadioButton, RadioSet

from pegboard.brake import Answer, Question, Questions
from pegboard.models.rule import Rule
from pegboard.tui.dialogs.agent_call import AgentCallScreen
from pegboard.tui.dialogs.approval_scope import ApprovalScope
from pegboard.tui.dialogs.ask_text import AskText
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.dialogs.edit_call import EditCallScreen
from pegboard.tui.widgets import answer_guard
from pegboard.tui.widgets.answer_guard import DELAY_SECONDS

PACK = '''
from pegboard.sdk import hints

def note(*, text: str, times: int = 1) -> str:
    """Note a text."""
    return f"noted {text}"

@hints(destructive=True)
def remove(*, path: str) -> str:
    """Remove a file."""
    return f"removed {path}"
'''
Serve = Callable[[], AbstractAsyncContextManager[Client]]


@pytest.fixture
def packs(write_pack: Callable[[str, str], Path]) -> Path:
    """Write a pack with a tool that may change data and one that may delete it."""
    return write_pack("desk.py", PACK)


@pytest.fixture
def listed(packs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every process list the pack, the app too."""
    monkeypatch.setenv("PEGBOARD_PACKS", str(packs))


@pytest.fixture
def questions(home: Path) -> Questions:
    """Return the waiting calls."""
    return Questions(home / "state")


@pytest.fixture
def serve(packs: Path, tmp_path: Path) -> Serve:
    """Return a function that starts `pegboard serve` with a client."""

    @asynccontextmanager
    async def serve() -> AsyncIterator[Client]:
        program, *args = commands.forked("pegboard", "--packs", str(packs), "serve")
        parameters = StdioServerParameters(command=program, args=args, env=dict(os.environ), cwd=tmp_path)
        async with Client(stdio_client(parameters), read_timeout_seconds=60) as client:
            yield client

    return serve


def call(client: Client, tool: str, **args: object) -> asyncio.Task[CallToolResult]:
    """Start a call."""
    return asyncio.create_task(client.call_tool(tool, args))


async def text(calling: asyncio.Task[CallToolResult]) -> str:
    """Return the text of a result."""
    return "\n".join(str(getattr(part, "text", "")) for part in (await calling).content)


def rules(stage: Stage) -> tuple[Rule, ...]:
    """Return the rules of the file."""
    return stage.app.runtime.rules.read().rules


async def open_scope(stage: Stage) -> ApprovalScope:
    """Open the dialog of the waiting call, and wait until answers count."""
    await open_card(stage)
    await stage.until(lambda: "desk.remove" in {spec.name for spec in stage.app.runtime.tools.all()}, "it is listed")
    await stage.press("A")
    await stage.until(lambda: isinstance(stage.app.screen, ApprovalScope), "the dialog is open")
    screen = stage.app.screen
    assert isinstance(screen, ApprovalScope)
    await stage.until(lambda: screen.focused is not None and screen.accepts_now, "answers count")
    return screen


@pytest.mark.promise("ASK-7", "WAT-4")
async def test_s_allows_later_calls_of_the_tool_in_the_session_of_the_client(serve: Serve) -> None:
    async with on_app() as stage, serve() as client:
        first = call(client, "desk.note", text="a")
        await open_card(stage)
        assert "s allows any arguments in this session." in stage.text
        await stage.press("s")
        assert await text(first) == "noted a"
        await stage.until_seen("desk.note runs with any arguments")
        await answered(stage)
        assert await text(call(client, "desk.note", text="b")) == "noted b"

        async with serve() as another:
            other = call(another, "desk.note", text="c")
            await open_card(stage)
            await stage.press("r")
            assert "rejected" in await text(other)
            await answered(stage)

        first = call(client, "desk.remove", path="a")
        await open_card(stage)
        assert "s allows exactly these arguments in this session." in stage.text
        await stage.press("s")
        assert await text(first) == "removed a"
        await stage.until_seen("desk.remove runs with exactly these")
        await answered(stage)
        assert await text(call(client, "desk.remove", path="a")) == "removed a"
        second = call(client, "desk.remove", path="b")
        await asked(stage)
        second.cancel()
        assert not rules(stage)


@pytest.mark.promise("ASK-7", "WAT-4", "SEC-2")
@pytest.mark.usefixtures("listed")
async def test_always_writes_a_confirmed_rule_that_every_process_obeys_until_it_is_undone(serve: Serve) -> None:
    async with on_app() as stage, serve() as client, serve() as another:
        first = call(client, "desk.remove", path="a")
        await open_scope(stage)
        await stage.press("tab", "down", "enter")
        await stage.until(lambda: "Written to" in stage.text, "it is permanent")
        await stage.until(lambda: stage.app.screen.accepts_now, "answers count")  # type: ignore[attr-defined]
        await stage.press("ctrl+s")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it is confirmed")
        await stage.until_seen("Allow desk.remove permanently?")
        assert not first.done()
        assert not rules(stage)
        await stage.until(lambda: stage.app.screen.accepts_now, "answers count")  # type: ignore[attr-defined]
        await stage.press("ctrl+y")
        assert await text(first) == "removed a"
        await stage.until_seen("Rule added permanently")
        await answered(stage)
        assert rules(stage) == (Rule(allow=("desk.remove",), exactly='{"path": "a"}', scope="mcp"),)
        assert await text(call(another, "desk.remove", path="a")) == "removed a"

        await stage.press("alt+z")
        await stage.until_seen("Rule removed")
        assert not rules(stage)
        again = call(another, "desk.remove", path="a")
        await open_card(stage)
        await stage.press("r")
        assert "rejected" in await text(again)


@pytest.mark.promise("ASK-7", "SEC-2")
@pytest.mark.usefixtures("listed")
async def test_a_rule_that_denies_wins_and_no_rule_is_written_with_a_secret(
    serve: Serve, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCH_API_KEY", "sk-1234567890abcdef")
    async with on_app() as stage, serve() as client:
        first = call(client, "desk.note", text="sk-1234567890abcdef")
        await open_scope(stage)
        await stage.press("tab", "down", "enter")
        await stage.until(lambda: stage.app.screen.accepts_now, "answers count")  # type: ignore[attr-defined]
        await stage.press("ctrl+s")
        await stage.until_seen("The rule was not added because")
        assert isinstance(stage.app.screen, AgentCallScreen)
        assert "sk-1234567890abcdef" not in stage.text
        assert not rules(stage)

        (home / "approvals.toml").write_text('[[rule]]\ndeny = "desk.note"\n')
        await stage.until(lambda: card(stage).accepts_now, "answers count")
        await stage.press("s")
        assert "denies desk.note" in await text(first)
        assert "denies desk.note" in await text(call(client, "desk.note", text="b"))
        await stage.until_seen("No rule for desk.note was added")


@pytest.mark.promise("ASK-7", "SEC-2")
@pytest.mark.usefixtures("listed")
async def test_the_dialog_of_a_call_that_ended_adds_no_rule(serve: Serve) -> None:
    async with on_app() as stage, serve() as client:
        first = call(client, "desk.note", text="a")
        screen = await open_scope(stage)
        assert not screen.query_one("#allow", Button).disabled
        first.cancel()
        await stage.until_seen("it has already ended")
        assert screen.query_one("#allow", Button).disabled
        await stage.press("ctrl+s")
        assert stage.app.screen is screen
        await stage.press("escape")
        await answered(stage)
        assert not rules(stage)


@pytest.mark.promise("ASK-7", "WAT-4")
async def test_a_tool_that_the_app_does_not_list_can_be_allowed_for_the_session_only(serve: Serve) -> None:
    async with on_app() as stage, serve() as client:
        first = call(client, "desk.note", text="a")
        await open_card(stage)
        await stage.press("A")
        await stage.until_seen("This app doesn't list desk.note")
        assert isinstance(stage.app.screen, AgentCallScreen)
        assert not first.done()
        await stage.press("s")
        assert await text(first) == "noted a"


@pytest.mark.promise("WAT-4")
async def test_calls_of_watched_agents_and_paused_calls_offer_no_rule(questions: Questions) -> None:
    async with on_app() as stage:
        for number, kind in enumerate(("watch", "paused", "serve")):
            via = "watch" if kind == "watch" else "serve"
            question = Question(
                "a.b", {}, "agent", "a", "Why.", "paused" if kind == "paused" else "ask", call=f"c{number}", via=via
            )
            (questions.brake.pause if kind == "paused" else questions.brake.resume)()
            questions.open(question)
            await stage.until(lambda: stage.app.agent_calls, "a call waits")
            await stage.press("f12")
            await stage.until(lambda: isinstance(stage.app.screen, AgentCallScreen), "the card is open")
            await stage.until(lambda: card(stage).accepts_now, "answers count")
            is_offered = kind == "serve"
            for sign in ("s Session", "A Always r"):
                assert (sign in " ".join(stage.text.split())) is is_offered, sign
            for name in ("#session", "#always"):
                assert card(stage).query_one(name).display is is_offered
            await stage.press("s", "A")
            if is_offered:
                await stage.until(lambda: not questions.pending(), "it is answered")
            else:
                assert len(questions.pending()) == 1
                questions.answer(question.id, Answer("reject"))
            await answered(stage)


@pytest.mark.promise("WAT-4")
async def test_a_call_of_a_client_without_a_session_offers_only_a_permanent_rule(
    listed: None, questions: Questions
) -> None:
    async with on_app() as stage:
        args: dict[str, JsonValue] = {"path": "a"}
        questions.open(Question("desk.remove", args, "agent", "a", "Why.", call="c", via="serve", has_session=False))
        await open_card(stage)
        assert not card(stage).query_one("#session").display
        await stage.press("s")
        assert len(questions.pending()) == 1
        scope = await open_scope(stage)
        await stage.until_seen("The rule can't be added for this session because its client has no session")
        assert scope.query_one("#allow", Button).disabled
        scope.query_one("#duration", RadioSet).query(RadioButton).last().value = True
        await stage.until(lambda: not scope.query_one("#allow", Button).disabled, "a permanent rule can be added")


@pytest.mark.promise("WAT-4")
async def test_a_call_whose_agent_accepts_no_edit_offers_none(questions: Questions) -> None:
    async with on_app() as stage:
        for problem, offers in (("hooks of Qwen Code can't change arguments", False), ("", True)):
            asked_now = questions.open(Question("qwen.shell", {"a": 1}, "Qwen", "", "Why.", edit_problem=problem))
            await open_card(stage)
            assert ("The arguments can't be edited: hooks of Qwen Code" in stage.text) is not offers
            assert card(stage).query_one("#edit").display is offers
            assert ("e" in stage.app.screen.active_bindings) is offers
            await stage.press("e")
            if offers:
                await stage.until(lambda: isinstance(stage.app.screen, AskText), "the arguments are edited")
                await stage.press("escape")
                await stage.until(lambda: card(stage).accepts_now, "answers count again")
            await stage.press("r")
            await answered(stage)
            assert asked_now.poll() is not None


@pytest.mark.promise("WAT-4", "SEC-2")
async def test_early_keys_and_clicks_add_no_rule(questions: Questions, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = StandingClock()
    monkeypatch.setattr(answer_guard, "clock", clock)
    async with on_app() as stage:
        questions.open(Question("a.b", {}, "agent", "a", "Why.", call="c", via="serve"))
        await asked(stage)
        await stage.press("f12")
        await stage.until(lambda: isinstance(stage.app.screen, AgentCallScreen), "the card is open")
        clock.seconds += DELAY_SECONDS / 2
        await stage.press("s", "A")
        await stage.pilot.click("#session")
        await stage.pilot.click("#always")
        await stage.pilot.pause()
        assert isinstance(stage.app.screen, AgentCallScreen)
        assert len(questions.pending()) == 1
        clock.seconds += DELAY_SECONDS * 2
        await stage.pilot.click("#session")
        await stage.until(lambda: not questions.pending(), "it is answered")


@pytest.mark.promise("ASK-7", "WAT-4")
@pytest.mark.usefixtures("listed")
async def test_the_arguments_of_a_listed_tool_are_edited_in_its_form(serve: Serve, questions: Questions) -> None:
    async with on_app() as stage, serve() as client:
        await stage.until(lambda: stage.app.runtime.tools.get("desk.note") is not None, "it is listed")

        async def edit() -> EditCallScreen:
            await open_card(stage)
            await stage.press("e")
            await stage.until(lambda: isinstance(stage.app.screen, EditCallScreen), "the form is open")
            form = stage.app.screen
            assert isinstance(form, EditCallScreen)
            await stage.until(lambda: form.form.has_focus_within, "a field has the focus")
            return form

        first = call(client, "desk.note", text="a", times=2)
        await edit()
        await stage.press("end", "b", "tab", "x", "ctrl+r")
        await stage.until_seen("must be an integer")
        await stage.press("backspace", "ctrl+r")
        assert (await text(first)).startswith("noted ab\n")
        await answered(stage)

        second = call(client, "desk.remove", path="a")
        form = await edit()
        await stage.press("end", "b")
        [question] = questions.pending()
        questions.answer(question.id, Answer("reject", by="Another app"))
        await stage.until_seen("The call has ended; your changes don't apply")
        assert "rejected" in await text(second)
        await stage.press("ctrl+r")
        assert stage.app.screen is form
        assert form.form.submit() == {"path": "ab"}
        await stage.press("escape")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "discarding the changes is asked for")
