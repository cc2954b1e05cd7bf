"""Model turns on the Activity page: rows that the calls of a chat or an agent fold under."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from chat_stage import answer, on_chat, user
from models import calls as proposes
from models import says
from stage import Stage
from test_activity import START, Recorder, calls, filtered, on_activity, paths, press, recorder, rows, runtime, title

from pegboard.errors import ModelError
from pegboard.models import CallSource, HistoryPage, ResultMeta, ToolCall, ToolResult
from pegboard.models.call import new_call_id
from pegboard.models.conversation import Usage
from pegboard.models.turn import ModelTurn
from pegboard.runtime import Runtime
from pegboard.runtime.activity import Activity
from pegboard.tui.activity.screen import ActivityScreen
from pegboard.tui.chat.blocks import UserBlock
from pegboard.tui.chat.screen import ChatScreen
from pegboard.tui.chat.transcript import Transcript

__all__ = ["paths", "recorder", "runtime"]

HOSTILE = "[bold]Look[/bold] \x1b[31mhere\nsecond line"


def add_turn(
    runtime: Runtime,
    text: str = HOSTILE,
    *,
    session: str = "abc",
    source: CallSource = "ask",
    message: int | None = 0,
    model: str = "m",
) -> str:
    """Record a turn and its script with one call; return its id."""
    turn = ModelTurn(text=text, model=model, message=message, steps=2, usage=Usage(input_tokens=900, output_tokens=100))
    call = turn.call(new_call_id(), source, session)
    runtime.history.record(call, ToolResult(ok=True, meta=ResultMeta(duration_ms=2000)), START)
    script = call.model_copy(update={"id": new_call_id(), "name": "script.run", "args": {"commands": "gate.shout a"}})
    inner = {"id": new_call_id(), "name": "gate.shout", "args": {"text": "a"}, "parent": script.id}
    done = ToolResult(ok=True, data="A", meta=ResultMeta(duration_ms=12, size=3))
    for one in (script, script.model_copy(update=inner)):
        runtime.history.record(one, done, START + timedelta(seconds=1))
    runtime.history.flush()
    return call.id


async def to_activity(stage: Stage) -> None:
    """Open the Activity page."""
    await stage.press("f9")
    await stage.until(
        lambda: isinstance(stage.app.screen, ActivityScreen) and stage.app.screen.settled, "the page is shown"
    )


async def to_chat(stage: Stage) -> ChatScreen:
    """Wait until the Chat page is shown."""
    await stage.until(lambda: isinstance(stage.app.screen, ChatScreen), "the Chat page is shown")
    assert isinstance(stage.app.screen, ChatScreen)
    return stage.app.screen


@pytest.mark.promise("ACT-1", "TUI-4")
async def test_a_turn_unfolds_to_scripts_and_a_script_to_its_calls(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("time.now")
    add_turn(runtime)
    async with on_activity(runtime) as stage:
        assert "2 calls" not in title(stage)
        assert "3 calls" in title(stage)
        assert [row.split(" [")[0] for row in rows(stage)] == ["ask abc ▸ turn", "cli time.now 12 ms 6 B ✓ ok"]
        assert "[bold]Look[/bold] ␛[3…" in rows(stage)[0]
        assert "second" not in rows(stage)[0]
        assert rows(stage)[0].endswith("2.0 s 1 call ✓ ok")
        await stage.until_seen("m · 1 call · 1.0k tokens · 2 responses")
        await press(stage, "right")
        await stage.until(lambda: len(rows(stage)) == 3, "the turn is unfolded")
        assert "▸ script.run gate.shout a" in rows(stage)[1]
        await press(stage, "down", "right")
        await stage.until(lambda: len(rows(stage)) == 4, "the script is unfolded")
        assert 'gate.shout {text: "a"}' in rows(stage)[2]
        await press(stage, "right")
        assert calls(stage).cursor == 2
        await press(stage, "left")
        assert calls(stage).cursor == 1, "the call that made the selected one is selected"
        await press(stage, "left", "left", "left")
        await stage.until(lambda: len(rows(stage)) == 2, "the turn is folded")


@pytest.mark.promise("ACT-1")
async def test_calls_of_expanded_turns_are_read_again_only_if_they_may_have_changed(
    runtime: Runtime, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    calls_of = Activity.calls_of

    def counted(activity: Activity, call_id: str, **more: Any) -> HistoryPage:
        read.append(call_id)
        return calls_of(activity, call_id, **more)

    monkeypatch.setattr(Activity, "calls_of", counted)
    turns = [add_turn(runtime) for _ in range(3)]
    async with on_activity(runtime) as stage:
        for _ in turns:
            await press(stage, "right")
            await press(stage, "right", "down")
        await stage.until(lambda: len(rows(stage)) == 6, "the turns are unfolded")
        assert sorted(read) == sorted(turns)
        recorder.add("time.now")
        await stage.until(lambda: "time.now" in rows(stage)[0], "a new call is listed")
        assert sorted(read) == sorted(turns)
        script = ToolCall(name="gate.shout", args={"text": "late"}, source="ask", turn=turns[0])
        runtime.history.record(script, ToolResult(ok=True), START)
        await stage.until(lambda: any("late" in row for row in rows(stage)), "the later call of a turn is listed")


@pytest.mark.promise("ACT-1")
async def test_filters_find_turns_and_their_calls(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("time.now")
    add_turn(runtime, "Find the needle")
    async with on_activity(runtime) as stage:
        await filtered(stage, "tool:gate")
        assert [row.split(" {")[0] for row in rows(stage)] == ["ask abc ↳ gate.shout"]
        await press(stage, "escape")
        await filtered(stage, "source:ask session:abc status:ok since:2h")
        assert [row.split()[2:4] for row in rows(stage)] == [["↳", "gate.shout"], ["▸", "script.run"], ["▸", "turn"]]
        await stage.until(lambda: "2 calls, 1 turn" in title(stage), "turns are counted")
        await press(stage, "escape")
        await filtered(stage, "needle")
        assert ["turn" in row for row in rows(stage)] == [True]


@pytest.mark.promise("ACT-2")
async def test_enter_on_a_turn_opens_its_chat_at_the_message(runtime: Runtime, recorder: Recorder) -> None:
    runtime.sessions.start("abc")
    for number in range(1, 30):
        for message in (user(f"Question {number}"), answer("Prose. " * 100)):
            runtime.sessions.append("abc", message)
    recorder.add("time.now")
    add_turn(runtime, "Question 7", message=12)
    async with on_activity(runtime) as stage:
        await press(stage, "enter")
        chat = await to_chat(stage)
        await stage.until(lambda: chat.session == "abc", "the session is open")
        await stage.until(lambda: "❯ Question 7" in stage.text, "the message is visible")
        marked = chat.query_one(Transcript).marked
        assert isinstance(marked, UserBlock)
        assert marked.message == "Question 7"
        assert "❯ Question 29" not in stage.text


@pytest.mark.promise("ACT-2")
async def test_a_turn_without_a_chat_says_why_it_is_not_opened(runtime: Runtime) -> None:
    runtime.sessions.start("here")
    add_turn(runtime, "Other agent", source="otel", session="otel:x", message=None)
    add_turn(runtime, "", session="here", message=None, model="tiny")
    add_turn(runtime, "Gone", session="gone")
    async with on_activity(runtime) as stage:
        assert "tiny" in rows(stage)[1]
        for reason in ("session was deleted", "message was deleted", "has no chat"):
            await stage.press("enter")
            await stage.until(lambda reason=reason: reason in " ".join(stage.text.split()), reason)  # type: ignore[misc]
            stage.app.clear_notifications()
            await press(stage, "down")
        assert stage.app.current_mode == "activity"


@pytest.mark.promise("ACT-2")
@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("ctrl+r", "The turn can't be run again"),
        ("alt+e", "The turn can't be run again"),
        ("alt+o", "The turn can't be run again"),
        ("ctrl+right_square_bracket", "A turn can't be copied"),
        ("alt+d", "Turns can't be compared"),
        ("alt+k", "A turn can't be kept as a check"),
        ("alt+c", "A turn can't be checked"),
    ],
)
async def test_what_only_calls_can_do_is_explained_on_a_turn(runtime: Runtime, key: str, reason: str) -> None:
    add_turn(runtime)
    async with on_activity(runtime) as stage:
        await stage.press(key)
        await stage.until_seen(reason)
        assert isinstance(stage.app.screen, ActivityScreen)


@pytest.mark.promise("ACT-2")
async def test_a_turn_becomes_a_script_and_is_deleted_with_its_calls(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("time.now")
    add_turn(runtime)
    async with on_activity(runtime) as stage:
        await stage.press("alt+s")
        await stage.until(lambda: stage.app.current_mode == "script" and "gate.shout a" in stage.text, "it is a script")
        await to_activity(stage)
        await press(stage, "delete")
        await stage.until(lambda: len(rows(stage)) == 1 and "1 call" in title(stage), "all is deleted")
        await stage.press("ctrl+z")
        await stage.until(lambda: len(rows(stage)) == 2 and "3 calls" in title(stage), "all is restored")


@pytest.mark.promise("ACT-4")
async def test_a_value_is_redacted_in_turns(runtime: Runtime) -> None:
    turn = add_turn(runtime, "My number is 0049-555-0199.")
    report = runtime.activity.redact("0049-555-0199")
    assert (report.messages, report.calls) == (1, 0)
    [call] = runtime.activity.find([turn])
    assert ModelTurn.of(call).text == "My number is «redacted»."
    async with on_activity(runtime) as stage:
        assert "My number is «redac" in rows(stage)[0]


@pytest.mark.promise("ACT-1", "WAT-3")
async def test_a_chat_is_shown_as_a_turn_with_its_calls_while_it_runs(tmp_path: Path) -> None:
    gate = asyncio.Event()
    turns = (proposes(("work_look", {"where": "under the bed"}), tokens=5), [gate, *says("Done", tokens=7)])
    async with on_chat(tmp_path, *turns) as stage:
        await stage.type("Where is it")
        await stage.press("enter")
        await to_activity(stage)
        await stage.until(lambda: len(rows(stage)) == 2, "the running turn is unfolded")
        assert "▾ turn Where is it" in rows(stage)[0]
        assert "▶ running" in rows(stage)[0]
        assert "work.look" in rows(stage)[1]
        await press(stage, "home", "left")
        await stage.until(lambda: len(rows(stage)) == 1, "the user has folded it")
        gate.set()
        await stage.until(lambda: "✓ ok" in rows(stage)[0], "the turn has ended")
        assert "▸ turn Where is it" in rows(stage)[0]
        await stage.until_seen("scripted:model · 1 call · 12 tokens · 2 responses")
        call = calls(stage).call
        assert call is not None
        assert [one.turn for one in stage.runtime.activity.calls_of(call.id).calls] == [call.id]


@pytest.mark.promise("ACT-1")
async def test_a_turn_whose_model_failed_shows_the_reason(tmp_path: Path) -> None:
    async with on_chat(tmp_path, [ModelError("Too [b]busy[/b].", code="rate_limited")]) as stage:
        await stage.ask("Hello")
        await to_activity(stage)
        await stage.until(lambda: rows(stage) and rows(stage)[0].endswith("✗ rate_limited"), "the reason is listed")
        await stage.until_seen("Too [b]busy[/b].")


@pytest.mark.promise("ACT-1")
async def test_a_turn_that_a_limit_stopped_shows_which_one(tmp_path: Path) -> None:
    broken = proposes(("work_look", "{broken"))
    async with on_chat(tmp_path, broken, broken, broken, says("Sorry.")) as stage:
        await stage.ask("Hello")
        await to_activity(stage)
        await stage.until_seen("stopped after invalid calls · scripted:model")
