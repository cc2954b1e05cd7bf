"""Model turns: rows of the history, above the calls that were made in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pegboard.history import History, Sessions
from pegboard.history.query import parse_query
from pegboard.history.recorded import RecordedCalls
from pegboard.history.statistics import session_tools, statistics
from pegboard.models import HistoryQuery, RecordedCall, ResultMeta, ToolCall, ToolResult
from pegboard.models.call import new_call_id
from pegboard.models.conversation import Usage, UserMessage
from pegboard.models.turn import ModelTurn

NOW = datetime.now(UTC)
LINES = HistoryQuery(parent="none", turns=True)


@pytest.fixture
def calls(history: History) -> Iterator[RecordedCalls]:
    """Return the recorded calls of an empty history."""
    recorded = RecordedCalls(history)
    yield recorded
    recorded.close()


def begin(history: History, text: str = "Find the needle", session: str = "s") -> tuple[ToolCall, datetime]:
    """Record the start of a turn."""
    started = ModelTurn(text=text, model="m", message=0).call(new_call_id(), "ask", session), NOW
    history.start(*started)
    return started


def end(history: History, started: tuple[ToolCall, datetime], fails: str | None = None) -> None:
    """Record the end of a turn."""
    call, at = started
    turn = ModelTurn(text=str(call.args["text"]), model="m", message=0, steps=2, usage=Usage(output_tokens=9))
    result = ToolResult(ok=True) if fails is None else ToolResult.failed("execution_error", "No.", fails)
    result = result.model_copy(update={"meta": ResultMeta(duration_ms=1500)})
    history.record(turn.call(call.id, "ask", str(call.session)), result, at)


def add(history: History, tool: str = "fs.read", *, turn: str | None = None, parent: str | None = None) -> str:
    """Record a call."""
    call = ToolCall(name=tool, source="ask", session="s", turn=turn, parent=parent)
    history.record(call, ToolResult(ok=True, data="hay", meta=ResultMeta(duration_ms=5)), NOW + timedelta(seconds=1))
    return call.id


def ids(calls: RecordedCalls, query: HistoryQuery | str) -> list[str]:
    """Return the ids of a page, the newest first."""
    wanted = parse_query(query).query if isinstance(query, str) else query
    return [call.id for call in calls.page(wanted).calls]


def lines(calls: RecordedCalls, text: str) -> list[str]:
    """Return the ids of the calls and turns that a filter finds."""
    return ids(calls, parse_query(text).query.model_copy(update={"turns": True}))


def get(calls: RecordedCalls, call_id: str) -> RecordedCall:
    """Return a recorded call or turn."""
    found = calls.get(call_id)
    assert found is not None
    return found


@pytest.mark.promise("ACT-1")
def test_a_turn_is_one_line_above_its_scripts_and_their_calls(history: History, calls: RecordedCalls) -> None:
    before = add(history)
    started = begin(history)
    turn = started[0].id
    script = add(history, "script.run", turn=turn)
    inner = add(history, "fs.find", turn=turn, parent=script)
    after = add(history, turn=turn)
    end(history, started)
    assert ids(calls, LINES) == [turn, before]
    [listed, _] = calls.page(LINES).calls
    assert (listed.is_turn, listed.calls, listed.state, listed.duration_ms) == (True, 2, "ok", 1500)
    known = ModelTurn.of(listed)
    assert (known.text, known.model, known.steps, known.usage.output_tokens) == ("Find the needle", "m", 2, 9)
    assert ids(calls, HistoryQuery(parent=turn)) == ids(calls, f"parent:{turn}") == [after, script]
    assert ids(calls, HistoryQuery(parent=script)) == [inner]
    assert {call.turn for call in calls.find([script, inner, after])} == {turn}


@pytest.mark.promise("ACT-1")
def test_queries_of_calls_never_find_turns(history: History, calls: RecordedCalls) -> None:
    running, started = begin(history), begin(history)
    call = add(history, turn=started[0].id)
    end(history, started, "rate_limited")
    queries = ["", "needle", "source:ask", "session:s", "status:failed,running", "slower:1s", "since:1h", "tool:*"]
    expected = {"": [call], "source:ask": [call], "session:s": [call], "since:1h": [call], "tool:*": [call]}
    assert {query: ids(calls, query) for query in queries} == {query: expected.get(query, []) for query in queries}
    assert ids(calls, "parent:none") == [call]
    assert calls.count(HistoryQuery()).calls == 1
    assert [record.id for record in history.records()] == [call]
    assert calls.tools() == ("fs.read",)
    assert [one.calls for one in statistics(calls.reader)] == [one.calls for one in session_tools(calls.reader, "s")]
    end(history, running)


@pytest.mark.promise("ACT-1")
def test_turns_are_found_by_text_source_session_status_and_time(history: History, calls: RecordedCalls) -> None:
    good, bad = begin(history), begin(history, "Find the thread", "other")
    turn, failed = good[0].id, bad[0].id
    call = add(history, turn=turn)
    assert set(lines(calls, "status:running")) == {turn, failed}
    end(history, good)
    end(history, bad, "rate_limited")
    assert lines(calls, "needle") == [turn]
    assert lines(calls, "status:failed") == [failed]
    assert lines(calls, "session:other") == [failed]
    assert set(lines(calls, "source:ask")) == set(lines(calls, "since:1h")) == {call, failed, turn}
    assert lines(calls, "before:1h") == lines(calls, "source:cli") == []
    assert lines(calls, "tool:fs") == [call]
    assert lines(calls, "tool:turn") == []
    count = calls.count(HistoryQuery(sources=("ask",), turns=True))
    assert (count.calls, count.turns) == (1, 2)


@pytest.mark.promise("ACT-2")
def test_a_turn_is_deleted_and_restored_with_all_its_calls(history: History, calls: RecordedCalls) -> None:
    started = begin(history)
    turn = started[0].id
    script = add(history, "script.run", turn=turn)
    inner = add(history, parent=script)
    other = add(history)
    end(history, started)
    deleted = calls.delete([turn])
    assert set(deleted) == {turn, script, inner}
    assert ids(calls, LINES) == [other]
    assert lines(calls, "needle") == []
    calls.restore(deleted)
    assert set(ids(calls, LINES)) == {turn, other}
    assert lines(calls, "needle") == [turn]


@pytest.mark.promise("STO-1")
def test_calls_are_listed_without_their_turn_when_the_size_limit_removed_it(
    open_history: Callable[..., History],
) -> None:
    history = open_history(size_limit=20_000)
    recorded = RecordedCalls(history)
    started = begin(history, "Old " * 300)
    end(history, started)
    call = add(history, turn=started[0].id)
    history.flush()
    recorded.pin([call])
    for _ in range(60):
        add(history)
        history.flush()
    assert recorded.get(started[0].id) is None
    assert call in [one.id for one in recorded.page(LINES, limit=1000).calls]
    assert get(recorded, call).turn is None
    recorded.close()


@pytest.mark.promise("STO-3")
def test_a_turn_of_a_killed_process_is_interrupted(history: History, calls: RecordedCalls) -> None:
    started = begin(history)
    history.flush()
    assert get(calls, started[0].id).state == "running"
    history.act(lambda database: database.select("UPDATE calls SET process = 'gone'"))
    history.mark_interrupted()
    assert get(calls, started[0].id).state == "interrupted"


@pytest.mark.promise("ASK-6")
def test_the_text_of_a_turn_is_deleted_with_its_message(history: History, calls: RecordedCalls, tmp_path: Path) -> None:
    sessions = Sessions(history, tmp_path / "state" / "sessions")
    sessions.start("s")
    turns = []
    for text in ("Find the needle", "Find the thread"):
        position = sessions.append("s", UserMessage(text=text)).position
        call = ModelTurn(text=text, model="m", message=position).call(new_call_id(), "ask", "s")
        history.record(call, ToolResult(ok=True), NOW)
        turns.append(call.id)
    sessions.cut("s", 1)
    assert [ModelTurn.of(get(calls, turn)).text for turn in turns] == ["Find the needle", ""]
    assert (lines(calls, "needle"), lines(calls, "thread")) == ([turns[0]], [])
    sessions.delete("s")
    assert [ModelTurn.of(get(calls, turn)) for turn in turns] == [ModelTurn(model="m")] * 2
    assert lines(calls, "needle") == []


def test_a_tool_that_is_called_turn_is_a_call(history: History, calls: RecordedCalls) -> None:
    call = add(history, "turn")
    assert ids(calls, "tool:turn") == ids(calls, LINES) == [call]
    assert not get(calls, call).is_turn


@pytest.mark.promise("ACT-1", "ACT-2")
def test_a_turn_counts_only_the_calls_that_are_listed_below_it(history: History, calls: RecordedCalls) -> None:
    started = begin(history)
    turn = started[0].id
    script = add(history, "script.run", turn=turn)
    add(history, parent=script)
    gone = add(history, turn=turn)
    end(history, started)
    assert get(calls, turn).calls == 2
    calls.delete([gone])
    assert get(calls, turn).calls == 1
    assert ids(calls, f"parent:{turn}") == [script]
