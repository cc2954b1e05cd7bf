"""Calls of watched agents that await approval, in the app: the card, other apps, the pause, and accidents."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import commands
import pytest
from stage import Stage, on_stage
from test_approval_by_accident import StandingClock
from textual import events
from textual.selection import Selection
from textual.widgets._toast import Toast
from watched import PLAIN_SERVER, Watched

from pegboard.brake import Answer, Question, Questions
from pegboard.runtime import Runtime
from pegboard.tui.dialogs.agent_call import AgentCall, AgentCallScreen
from pegboard.tui.dialogs.ask_name import AskName
from pegboard.tui.dialogs.ask_text import AskText
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.form.lines import Lines
from pegboard.tui.result.text import TextView
from pegboard.tui.state.app_state import AppState
from pegboard.tui.state.remembered import Remembered
from pegboard.tui.widgets import answer_guard
from pegboard.tui.widgets.answer_guard import DELAY_SECONDS, Clock

ASK = '[[rule]]\nask = "plain.delete"\nscope = "mcp"\n'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the file of the calls that the server received."""
    return tmp_path / "calls.jsonl"


@pytest.fixture
def watched(log: Path, home: Path) -> Iterator[Watched]:
    """Yield a proxy whose server logs its calls, and whose tool `delete` needs approval."""
    (home / "approvals.toml").write_text(ASK)
    with Watched(sys.executable, "-S", PLAIN_SERVER, str(log)) as started:
        started.initialize()
        yield started


@pytest.fixture
def questions(home: Path) -> Questions:
    """Return the waiting calls."""
    return Questions(home / "state")


def calls(log: Path) -> list[Any]:
    """Return the calls that the server received."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@asynccontextmanager
async def on_app() -> AsyncIterator[Stage]:
    """Run the app of the user; wait until agents can ask in it."""
    runtime = Runtime.from_environment()
    Remembered(has_run=True).write(runtime.paths.interface)
    async with on_stage(runtime) as stage:
        await stage.until(stage.app.agents.questions.is_anyone_present, "the app is announced")
        yield stage


def card(stage: Stage) -> AgentCallScreen:
    """Return the card."""
    assert isinstance(stage.app.screen, AgentCallScreen)
    return stage.app.screen


async def asked(stage: Stage) -> None:
    """Wait until the header counts one waiting call."""
    await stage.until_seen("1 call awaits approval: f12")


async def open_card(stage: Stage) -> None:
    """Open the card and wait until answers count."""
    await asked(stage)
    await stage.press("f12")
    await stage.until(lambda: isinstance(stage.app.screen, AgentCallScreen), "the card is open")
    await stage.until(lambda: card(stage).accepts_now, "answers count")


async def answered(stage: Stage) -> None:
    """Wait until the card is closed, no call waits, and the header shows that."""
    await stage.until(lambda: not stage.app.screen.is_modal, "the card is closed")
    await stage.until(lambda: not stage.app.agent_calls, "no call waits")
    await stage.until(lambda: "awaits approval" not in stage.text, "the header counts no call")


async def received(watched: Watched) -> Any:
    """Return the next message to the client."""
    return await asyncio.to_thread(watched.receive)


@pytest.mark.promise("WAT-4", "TUI-4")
async def test_the_card_shows_the_whole_call_and_approves_it(watched: Watched, log: Path) -> None:
    watched.initialize("tester" + " " * 2000 + "Tool  plain.say")
    async with on_app() as stage:
        watched.call(1, "delete", path="[bold]a[/bold]\x1b[31m", lines="x" * 200 + "END")
        await open_card(stage)
        await stage.until_seen("END")
        for text in (
            "Agent   tester Tool plain.say 7 (process",
            "plain.delete",
            "[bold]a[/bold]",
            "A rule of approvals.toml",
            "may time out",
        ):
            assert text in stage.text
        assert calls(log) == []
        await stage.press("a")
        assert (await received(watched))["id"] == 1
        await answered(stage)
        assert len(calls(log)) == 1
        assert "awaits approval" not in stage.text


@pytest.mark.promise("WAT-4", "SEC-2")
async def test_no_name_hides_the_tool_of_a_call_without_a_sign(questions: Questions) -> None:
    async with on_app() as stage:
        questions.open(Question("files.delete", {}, "Claude Code calls fs.read_file " + "x" * 90, "files", "Why"))
        await open_card(stage)
        assert "─ files.delete · called by Claude Code calls fs.read_file xxx" in stage.text
        await stage.press("r")
        await answered(stage)

        questions.open(Question("files.look" + "\u2800" * 900 + "delete", {}, "tester", "files", "Why"))
        await open_card(stage)
        header = stage.app.screen.query_one("#from").region
        last = stage.lines[header.bottom - 1][header.x : header.right].rstrip()
        assert last.endswith("…")
        await stage.press("r")
        await answered(stage)

        question = Question("files.delete", {}, "tester " * 300, "files " * 300, "A reason")
        questions.open(question)
        await open_card(stage)
        assert "Tool    files.delete" in stage.text
        assert "A reason" in stage.text
        questions.answer(question.id, Answer("reject", "For a reason. " * 200 + "Call another tool.", by="app " * 300))
        await answered(stage)
        await stage.until(lambda: [toast for toast in stage.app.screen.query(Toast) if toast.size], "a toast is shown")
        message = [one.message for one in stage.app._notifications][-1]
        assert message.startswith("app app ")
        assert message.endswith("… rejected files.delete.")
        assert stage.app.screen.query(Toast).last().size.height < 15


@pytest.mark.promise("WAT-4", "SEC-2", "ASK-7")
async def test_no_wrapped_row_of_an_argument_looks_like_another_argument(questions: Questions) -> None:
    fake = '"safe": true'
    for command in (f"rm -rf build\n{fake} {'x' * 69} {fake}", f"{'x' * 200} {fake}"):
        async with on_app() as stage:
            questions.open(Question("sh.run", {"command": command, "last": 1}, "tester", "sh", "Why"))
            await open_card(stage)
            view = card(stage).query_one(TextView)
            rows = [view.row(index)[0] for index in range(view.row_count)]
            assert max(map(len, rows)) <= view.row_width
            end = rows.index('  "last": 1')
            indents = [len(row) - len(row.lstrip(" ")) for row in rows]
            assert indents[:2] == [0, 2]
            assert len(rows) > view.text.count("\n") + 1, "a line is wrapped"
            assert all(indent >= 4 for indent in indents[2:end])
            if "\n" in command:
                assert all(row.lstrip(" ").startswith("│ ") for row in rows[2:end])
            selected = view.get_selection(Selection(None, None))
            assert selected is not None
            assert selected[0] == view.text, "what the view adds is not copied"
            await stage.press("r")
            await answered(stage)


@pytest.mark.promise("WAT-4")
@pytest.mark.parametrize("key", ["a", "escape"])
async def test_an_answer_counts_and_the_card_closes_if_another_key_follows_while_no_thread_is_free(
    watched: Watched, log: Path, no_thread: Callable[[], AbstractContextManager[None]], key: str
) -> None:
    async with on_app() as stage:
        watched.call(1, "delete", path="a")
        await open_card(stage)
        with no_thread():
            await stage.press("a", key)
        await answered(stage)
        assert (await received(watched))["id"] == 1
        assert len(calls(log)) == 1


@pytest.mark.promise("WAT-4")
async def test_the_card_rejects_with_a_reason(watched: Watched, log: Path) -> None:
    async with on_app() as stage:
        watched.call(1, "delete")
        await open_card(stage)
        await stage.press("R")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "the reason is asked for")
        await stage.type("not today")
        await stage.press("enter")
        result = (await received(watched))["result"]
        assert result["content"][0]["text"].endswith("The user rejected this call. They said: not today")
        await answered(stage)

        watched.call(2, "delete")
        await open_card(stage)
        await stage.press("r")
        result = (await received(watched))["result"]
        assert result["content"][0]["text"].endswith("The user rejected this call.")
        await answered(stage)
    assert calls(log) == []


@pytest.mark.promise("WAT-4", "STO-2")
async def test_the_card_edits_arguments_and_keeps_masked_secrets(
    watched: Watched, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCH_API_KEY", "sk-1234567890abcdef")
    async with on_app() as stage:
        watched.call(1, "delete", path="a", key="sk-1234567890abcdef")
        await open_card(stage)
        assert "sk-1234567890abcdef" not in stage.text
        await stage.press("e")
        await stage.until(lambda: isinstance(stage.app.screen, AskText), "the arguments are edited")
        editor = stage.app.screen.query_one(Lines)
        assert "sk-1234567890abcdef" not in editor.text
        whole = editor.text
        editor.text = "[1]"
        await stage.press("ctrl+s")
        await stage.until_seen("The arguments must be a JSON object")
        editor.text = whole.replace('"key": "', '"key": "Bearer ')
        await stage.press("ctrl+s")
        await stage.until_seen("hides a value that was moved or changed")
        editor.text = whole.replace('"a"', '"b"')
        await stage.press("ctrl+s")
        assert (await received(watched))["id"] == 1
        await answered(stage)
    assert calls(log) == [["delete", {"path": "b", "key": "sk-1234567890abcdef"}]]


@pytest.mark.promise("WAT-3")
async def test_a_waiting_call_is_marked_as_such_where_the_activity_page_shows_no_durations(watched: Watched) -> None:
    async with on_app() as stage:
        watched.call(1, "delete", path="a")
        await stage.press("f9")
        await stage.pilot.resize_terminal(80, 24)
        await stage.until(lambda: "duration" not in stage.text and "{path:" in stage.text, "the call is listed")
        assert "? waiting" in next(line for line in stage.text.splitlines() if "{path:" in line)


@pytest.mark.promise("WAT-3", "WAT-4")
async def test_the_activity_page_shows_a_waiting_call_and_opens_its_card(watched: Watched, log: Path) -> None:
    async with on_app() as stage:
        watched.call(1, "delete", path="a")
        await stage.press("f9")
        await stage.until_seen("? waiting")
        await stage.until_seen("The call waits for approval, or for the end of a pause. Open it to answer it.")
        await stage.type("zz")
        await stage.until_seen("Select a call to see its result.")
        await stage.press("escape")
        await stage.until_seen("The call waits for approval, or for the end of a pause. Open it to answer it.")
        await stage.press("ctrl+r")
        toasts = stage.app._notifications
        await stage.until(lambda: any("It waits for approval, and hasn't run." in one.message for one in toasts), "so")
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, AgentCallScreen), "the card is open")
        await stage.until(lambda: card(stage).accepts_now, "answers count")
        await stage.press("a")
        assert (await received(watched))["id"] == 1
        await answered(stage)
        await stage.until_seen("✓ ok")
    assert calls(log) == [["delete", {"path": "a"}]]


@pytest.mark.promise("WAT-4")
async def test_the_first_of_two_apps_answers_and_the_other_shows_who(watched: Watched, log: Path) -> None:
    async with on_app() as first, on_app() as second:
        watched.call(1, "delete")
        await open_card(first)
        await open_card(second)
        await first.press("a")
        assert (await received(watched))["id"] == 1
        await second.until(lambda: not second.app.screen.is_modal, "the card of the other app is closed")
        await second.until_seen("approved plain.delete")
        assert "Pegboard (process" in second.text
        await answered(first)
        assert "approved plain.delete" not in first.text
    assert len(calls(log)) == 1


@pytest.mark.promise("WAT-4")
async def test_a_call_that_was_answered_elsewhere_is_no_longer_edited(watched: Watched, questions: Questions) -> None:
    async with on_app() as stage:
        watched.call(1, "delete", path="a")
        await open_card(stage)
        await stage.press("e")
        await stage.until(lambda: isinstance(stage.app.screen, AskText), "the arguments are edited")
        editor = stage.app.screen.query_one(Lines)
        editor.text = '{"path": "typed"}'
        [question] = questions.pending()
        questions.answer(question.id, Answer("reject", by="Another app"))
        await stage.until_seen("Your changes don't apply.")
        assert "The call runs with these arguments" not in stage.text
        assert "ctrl+s" not in stage.text
        await stage.press("ctrl+s")
        assert editor.text in stage.text
        await stage.press("escape")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "discarding the text is asked for")
        await stage.until(lambda: cast("Confirm", stage.app.screen).accepts_now, "answers count")
        await stage.press("ctrl+y")
        await answered(stage)


@pytest.mark.promise("WAT-4")
async def test_a_reason_that_comes_after_another_answer_is_not_used_and_the_app_says_so(
    watched: Watched, questions: Questions
) -> None:
    async with on_app() as stage:
        watched.call(1, "delete", path="a")
        await open_card(stage)
        await stage.press("R")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "the reason is asked for")
        [question] = questions.pending()
        questions.answer(question.id, Answer("approve", by="Another app"))
        toasts = stage.app._notifications
        await stage.until(lambda: any("Another app approved" in one.message for one in toasts), "who answered")
        await stage.type("too dangerous")
        await stage.press("enter")
        await answered(stage)
        assert any("Your answer was not used. Another app approved" in one.message for one in toasts)


@pytest.mark.promise("WAT-4")
async def test_the_card_of_another_call_stays_if_an_answer_to_the_call_before_comes_too_late(
    questions: Questions, no_thread: Callable[[], AbstractContextManager[None]]
) -> None:
    async with on_app() as stage:
        first, second = (Question(f"files.{name}", {}, "tester", "files", "Why") for name in ("move", "delete"))
        questions.open(first)
        questions.open(second)
        await stage.until_seen("2 calls await approval: f12")
        await stage.app.show_agent_call(first)
        await stage.until(lambda: isinstance(stage.app.screen, AgentCallScreen), "the card is open")
        await stage.until(lambda: card(stage).accepts_now, "answers count")
        with no_thread():
            questions.answer(first.id, Answer("reject", by="Another app"))
            await stage.press("a")
            card(stage).show(AgentCall.read(stage.app.runtime, second))
        await stage.until_seen("Another app rejected files.move.")
        await stage.until(lambda: len(stage.app.agent_calls) == 1, "one call waits")
        assert card(stage).question.tool == "files.delete"
        assert not any("files.delete" in one.message for one in stage.app._notifications)


@pytest.mark.promise("WAT-4")
@pytest.mark.parametrize("how", ["cancels", "leaves", "is killed"])
async def test_the_card_of_a_call_that_ended_closes(watched: Watched, log: Path, how: str) -> None:
    async with on_app() as stage:
        watched.call(1, "delete")
        await open_card(stage)
        if how == "cancels":
            watched.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        elif how == "leaves":
            assert watched.process.stdin is not None
            watched.process.stdin.close()
        else:
            watched.process.kill()
        await answered(stage)
        await stage.until_seen("plain.delete no longer waits")
    assert calls(log) == []


@pytest.mark.promise("WAT-4")
async def test_the_card_of_a_process_that_was_killed_closes(home: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from pegboard.brake import Question, Questions\n"
        "Questions(Path(sys.argv[1])).open(Question('plain.delete', {}, 'agent', 'plain', 'Why.')); time.sleep(60)"
    )
    async with on_app() as stage:
        asking = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(home / "state"))
        try:
            await open_card(stage)
        finally:
            asking.kill()
            await asking.wait()
        await answered(stage)
        await stage.until_seen("plain.delete no longer waits")


@pytest.mark.promise("WAT-4", "SEC-2")
async def test_no_key_or_click_for_something_else_answers_a_call(
    watched: Watched, log: Path, questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = StandingClock()
    monkeypatch.setattr(answer_guard, "clock", clock)
    async with on_app() as stage:
        await stage.press("f6")
        focused = stage.app.focused
        watched.call(1, "delete")
        await asked(stage)
        await stage.type("are aReA")
        assert stage.app.focused is focused  # A waiting call never takes the focus.

        for keys in (("a", "r", "R", "e", "enter", "tab", "enter"), ("x",)):
            await stage.press("f12")
            await stage.until(lambda: isinstance(stage.app.screen, AgentCallScreen), "the card is open")
            clock.seconds += DELAY_SECONDS / 2
            await stage.press(*keys)  # Too early.
            clock.seconds += DELAY_SECONDS / 2
            await stage.press("a")  # The user types.
            await stage.pilot.click("#once")
            assert isinstance(stage.app.screen, AgentCallScreen)
            assert len(questions.pending()) == 1
            await stage.press("escape")
            await stage.until(lambda: not stage.app.screen.is_modal, "the card is closed")

        await stage.press("f12")
        await stage.until(lambda: isinstance(stage.app.screen, AgentCallScreen), "the card is open")
        clock.seconds += DELAY_SECONDS * 2
        await stage.pilot.click("#once")
        assert (await received(watched))["id"] == 1
        await answered(stage)
    assert len(calls(log)) == 1


@pytest.mark.promise("WAT-4", "SEC-2")
async def test_no_key_answers_a_call_whose_arguments_are_not_visible_yet(
    questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = StandingClock()
    monkeypatch.setattr(answer_guard, "clock", clock)
    wrap = TextView.on_resize
    monkeypatch.setattr(TextView, "on_resize", lambda *_: None)  # as if the machine were too busy to lay them out
    async with on_app() as stage:
        questions.open(Question("files.delete", {"path": "a.txt"}, "agent", "files", "Why"))
        await asked(stage)
        await stage.press("f12")
        await stage.until_seen("files.delete · called by agent")
        assert '"path"' not in stage.text
        clock.seconds += DELAY_SECONDS * 2
        await stage.press("a")
        assert len(questions.pending()) == 1

        view = card(stage).query_one(TextView)
        wrap(view, events.Resize(view.size, view.size))
        await stage.until_seen('"path": "a.txt"')
        await stage.press("a")
        assert len(questions.pending()) == 1
        clock.seconds += DELAY_SECONDS * 2
        await stage.press("a")
        await answered(stage)


@pytest.mark.promise("WAT-4", "SEC-2")
async def test_a_call_is_not_answered_while_the_terminal_is_too_small_to_show_it(
    watched: Watched, log: Path, questions: Questions
) -> None:
    async with on_app() as stage:
        watched.call(1, "delete", path="a")
        await open_card(stage)
        await stage.pilot.resize_terminal(40, 7)
        await stage.until(lambda: '"path"' not in stage.text, "the arguments don't fit")
        await stage.press("a")
        await stage.until(lambda: any("terminal larger" in one.message for one in stage.app._notifications), "so")
        assert len(questions.pending()) == 1
        await stage.pilot.resize_terminal(80, 24)
        await stage.until_seen('"path"')
        await stage.press("a")
        assert (await received(watched))["id"] == 1
        await answered(stage)
    assert len(calls(log)) == 1


@pytest.mark.promise("WAT-4", "SEC-2")
async def test_keys_pressed_together_with_the_one_that_opens_the_card_never_answer_the_call(
    watched: Watched, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_guard, "clock", Clock())
    async with on_app() as stage:
        watched.call(1, "delete", path="a.txt")
        await asked(stage)
        stage.app.screen.set_focus(None)  # so that no field takes the keys as text
        for key in ("f12", *"aaaa", "enter"):
            stage.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await stage.until(lambda: isinstance(stage.app.screen, AgentCallScreen), "the card is open")
        await stage.pilot.pause()
        assert isinstance(stage.app.screen, AgentCallScreen)
        assert calls(log) == []
        await stage.until(lambda: card(stage).accepts_now, "answers count")
        await stage.press("a")
        assert (await received(watched))["id"] == 1
        await answered(stage)


@pytest.mark.promise("WAT-4")
async def test_f12_does_nothing_on_the_card_of_a_call_that_was_just_answered_elsewhere(watched: Watched) -> None:
    async with on_app() as stage:
        watched.call(1, "delete", path="a")
        await open_card(stage)
        shown = card(stage)
        stage.app.set_reactive(AppState.agent_calls, ())  # The card is still open.
        await stage.app.show_agent_call()
        assert stage.app.screen is shown


@pytest.mark.promise("WAT-4", "TUI-2")
async def test_keys_count_while_a_waiting_call_is_read_and_one_card_opens(
    questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, may_read = AgentCall.read, threading.Event()
    monkeypatch.setattr(AgentCall, "read", lambda *given: may_read.wait(100) and read(*given))
    async with on_app() as stage:
        try:
            questions.open(Question("files.move", {}, "tester", "files", "Why"))
            await asked(stage)
            await stage.press("slash")
            for key in ("f12", "f12", "f"):
                stage.app.post_message(events.Key(key, key if len(key) == 1 else None))
            await stage.until(lambda: stage.list.sought == "f", "the key is handled")
        finally:
            may_read.set()
        await stage.until(lambda: isinstance(stage.app.screen, AgentCallScreen), "the card is open")
        await stage.press("escape")
        await stage.until(lambda: not stage.app.screen.is_modal, "no other card is open")
        assert len(questions.pending()) == 1


@pytest.mark.promise("WAT-4")
async def test_f12_goes_from_one_waiting_call_to_the_next(
    watched: Watched, log: Path, questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = StandingClock()
    monkeypatch.setattr(answer_guard, "clock", clock)
    async with on_app() as stage:
        watched.call(1, "delete", path="first")
        await asked(stage)
        watched.call(2, "delete", path="second")
        await stage.until_seen("2 calls await approval: f12")
        await stage.press("f12")
        await stage.until_seen('"first"')
        assert "1 of 2 calls" in stage.text
        clock.seconds += DELAY_SECONDS * 2
        await stage.press("f12")
        await stage.until_seen('"second"')
        await stage.press("a")  # Too early for this call.
        assert len(questions.pending()) == 2
        clock.seconds += DELAY_SECONDS * 2
        await stage.press("a")
        assert (await received(watched))["id"] == 2
        await stage.until_seen("1 call awaits approval")
    assert calls(log) == [["delete", {"path": "second"}]]


@pytest.mark.promise("WAT-4")
async def test_every_page_shows_the_pause_and_the_app_pauses_stops_and_resumes(watched: Watched, log: Path) -> None:
    async with on_app() as stage:
        commands.pegboard("pause")
        await stage.until_seen("agents paused")
        watched.call(1, "say")
        await stage.until_seen("agents paused: 1")
        for key in ("f6", "f7", "f8", "f9", "f5"):
            await stage.press(key)
            await stage.until_seen("agents paused: 1")
        assert "awaits approval" not in stage.text
        await stage.app.run_action("resume_agents")
        assert (await received(watched))["id"] == 1
        await stage.until(lambda: "agents paused" not in stage.text, "the pause has ended")

        await stage.press("alt+h")
        await stage.until_seen("agents paused")
        watched.call(2, "say")
        await stage.until_seen("agents paused: 1")
        await stage.app.run_action("stop_agents")
        assert "stopped" in (await received(watched))["result"]["content"][0]["text"]
        await stage.until_seen("agents stopped")
        await stage.app.run_action("resume_agents")
        watched.call(3, "say")
        assert (await received(watched))["id"] == 3
    assert [tool for tool, _ in calls(log)] == ["say", "say"]


@pytest.mark.promise("WAT-4")
async def test_an_app_that_ends_is_no_longer_announced(watched: Watched, questions: Questions) -> None:
    async with on_app() as stage:
        watched.call(1, "delete")
        await asked(stage)
    assert not questions.is_anyone_present()
    assert "No Pegboard app is open" in (await received(watched))["result"]["content"][0]["text"]


@pytest.mark.promise("WAT-4")
async def test_the_terminal_title_and_the_bell_announce_a_waiting_call(
    home: Path, questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_app() as stage:
        bells: list[bool] = []
        titles: list[str] = []
        monkeypatch.setattr(stage.app, "bell", lambda: bells.append(True))
        monkeypatch.setattr(stage.app._window_title, "set", titles.append)
        question = Question("a.b", {}, "agent", "a", "Why.")
        asked_question = questions.open(question)
        await asked(stage)
        assert bells == [True]
        assert titles[-1] == "? Pegboard"
        questions.answer(question.id, Answer("approve"))
        await stage.until(lambda: not stage.app.agent_calls, "no call waits")
        assert titles[-1] == "Pegboard"
        assert bells == [True]
        asked_question.poll()
