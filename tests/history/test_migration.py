"""Opening a history that an earlier Pegboard wrote."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pegboard.history import History
from pegboard.history.query import parse_query
from pegboard.history.recorded import RecordedCalls
from pegboard.history.statistics import timeline
from pegboard.models import HistoryQuery, ToolCall, ToolResult

VERSION_1 = """
CREATE TABLE calls (
    id TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, tool TEXT NOT NULL, args TEXT NOT NULL, ok INTEGER NOT NULL,
    error TEXT, duration_ms REAL NOT NULL, source TEXT NOT NULL, session TEXT, parent TEXT, meta TEXT NOT NULL,
    data TEXT, file TEXT, bytes INTEGER NOT NULL
);
CREATE INDEX calls_by_time ON calls (at);
CREATE INDEX calls_by_tool ON calls (tool, at, ok);
CREATE TABLE total (bytes INTEGER NOT NULL);
INSERT INTO total VALUES (0);
CREATE TRIGGER call_added AFTER INSERT ON calls BEGIN UPDATE total SET bytes = bytes + NEW.bytes; END;
CREATE TRIGGER call_removed AFTER DELETE ON calls BEGIN UPDATE total SET bytes = bytes - OLD.bytes; END;
PRAGMA user_version = 1;
"""


@pytest.mark.promise("STO-3")
@pytest.mark.promise("ACT-1")
def test_calls_of_an_earlier_version_are_kept_and_can_be_searched(
    open_history: Callable[..., History], tmp_path: Path
) -> None:
    (tmp_path / "state").mkdir()
    with sqlite3.connect(tmp_path / "state" / "history.db") as old:
        old.executescript(VERSION_1)
        for number, error in enumerate([None, '{"code":"execution_error","message":"Oh.","detail":"cancelled"}', "{}"]):
            old.execute(
                "INSERT INTO calls VALUES (?, ?, 'a.x', ?, ?, ?, 5.0, 'cli', NULL, NULL, '{}', '\"word\"', NULL, 400)",
                [f"call{number}", 1_700_000_000_000_000 - number, f'{{"n":{number}}}', error is None, error],
            )
    old.close()
    history = open_history()
    calls = RecordedCalls(history)
    page = calls.page(parse_query("word status:ok,cancelled").query)
    assert [(call.id, call.state) for call in page.calls] == [("call0", "ok"), ("call1", "cancelled")]
    assert history.uses("a.x").calls == 3
    assert history.uses("a.x").failures == 1
    assert [record.id for record in history.records(limit=2)] == ["call0", "call1"]
    assert not history.problems
    assert not [*(tmp_path / "state").glob("history.db.*-*")]
    calls.delete(["call0"])
    assert [call.id for call in calls.page(parse_query("word").query).calls][:1] == ["call1"]
    calls.close()


@pytest.mark.promise("STO-3")
@pytest.mark.promise("ACT-1")
def test_calls_of_a_version_without_turns_have_no_turn_and_stay_searchable(
    open_history: Callable[..., History], tmp_path: Path
) -> None:
    (tmp_path / "state").mkdir()
    with sqlite3.connect(tmp_path / "state" / "history.db") as old:
        old.executescript((Path(__file__).parent / "version_2.sql").read_text())
        for number, parent in enumerate([None, "call0", None]):
            old.execute(
                "INSERT INTO calls (id, at, tool, ok, duration_ms, source, session, parent, bytes, args, meta, data)"
                " VALUES (?, ?, 'a.x', 1, 5.0, 'ask', 's', ?, 400, '{}', '{}', '\"word\"')",
                [f"call{number}", 1_700_000_000_000_000 + number, parent],
            )
        old.execute("INSERT INTO turns VALUES ('t', 'otel:s', 1700000000000000, 5.0, 1, 'm', 'Old text', 7, 3)")
    old.close()
    history = open_history()
    calls = RecordedCalls(history)
    assert [(call.id, call.turn) for call in calls.page(HistoryQuery(words=("word",))).calls] == [
        ("call2", None),
        ("call1", None),
        ("call0", None),
    ]
    lines = HistoryQuery(parent="none", turns=True)
    assert [(call.id, call.calls) for call in calls.page(lines).calls] == [("call2", 0), ("call0", 1)]
    calls.pin(["call2"])
    calls.delete(["call0"])
    assert [call.id for call in calls.page(parse_query("word pinned:").query).calls] == ["call2"]
    assert [call.id for call in calls.page(parse_query("word").query).calls] == ["call2"]
    [bar] = timeline(calls.reader, "otel:s").bars
    assert (bar.label, bar.model) == ("Old text", "m")
    assert not history.problems
    assert not [*(tmp_path / "state").glob("history.db.*-*")]
    calls.close()


@pytest.mark.promise("STO-3")
@pytest.mark.promise("ACT-1")
def test_calls_whose_text_was_indexed_with_escapes_are_changed_and_deleted_beside_new_ones(
    open_history: Callable[..., History], tmp_path: Path
) -> None:
    (tmp_path / "state").mkdir()
    with sqlite3.connect(tmp_path / "state" / "history.db") as old:
        old.executescript((Path(__file__).parent / "version_3.sql").read_text())
        for number in range(3):
            old.execute(
                "INSERT INTO calls (id, at, tool, ok, duration_ms, source, bytes, args, meta, data)"
                " VALUES (?, ?, 'a.x', 1, 5.0, 'cli', 400, '{}', '{}', '\"one\\ntwo\"')",
                [f"call{number}", 1_700_000_000_000_000 + number],
            )
    old.close()
    history = open_history()
    history.record(ToolCall(name="a.x", args={}, source="cli"), ToolResult(ok=True, data="one\ntwo"), datetime.now(UTC))
    calls = RecordedCalls(history)
    assert [call.id for call in calls.page(parse_query("one").query).calls][1:] == ["call2", "call1", "call0"]
    [new] = calls.page(parse_query("two").query).calls
    calls.pin(["call2", new.id])
    calls.delete(["call1"])
    assert [call.id for call in calls.page(parse_query("one pinned:").query).calls] == [new.id, "call2"]
    assert [call.id for call in calls.page(parse_query("ntwo").query).calls] == ["call2", "call0"]
    calls.delete([new.id, "call0", "call2"])
    assert not calls.page(parse_query("one").query).calls
    calls.restore([new.id, "call0"])
    assert [call.id for call in calls.page(parse_query("one").query).calls] == [new.id, "call0"]
    assert [call.id for call in calls.page(parse_query("two").query).calls] == [new.id]
    assert not history.problems
    calls.close()
