"""Recording calls and reading them back."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Literal, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

import pegboard.history
from pegboard.history import History
from pegboard.models import (
    CallRecord,
    CallSource,
    Fault,
    JsonObject,
    ResultMeta,
    ToolCall,
    ToolError,
    ToolResult,
    ToolUses,
    Truncation,
)
from pegboard.ports import Recorder

NOON = datetime(2025, 6, 1, 12, 0, 0, 123456, tzinfo=UTC)
OpenHistory = Callable[..., History]


def call(name: str = "tools.echo", source: CallSource = "cli", **args: JsonValue) -> ToolCall:
    return ToolCall(name=name, args=args, source=source)


def answer(data: JsonValue = None) -> ToolResult:
    return ToolResult(ok=True, data=data)


FAILED = ToolResult.failed("execution_error", "It broke.", "crashed")


@pytest.mark.promise("STO-1")
def test_a_record_has_arguments_error_duration_source_session_and_parent(history: History) -> None:
    asked = ToolCall(name="fs.read", args={"a": [1, None, "ü"]}, source="ask", session="s", parent="p")
    result = ToolResult(
        ok=False,
        error=ToolError(code="invalid_args", message="no", detail="d", faults=(Fault(path="/a", message="bad"),)),
        meta=ResultMeta(duration_ms=12.5, worker="pid 1", traceback="frames"),
    )
    history.record(asked, result, NOON)
    assert history.records() == (CallRecord.of(asked, result, NOON),)
    assert history.result(asked.id) == result


def test_the_history_is_a_recorder(history: History) -> None:
    recorder: Recorder = history
    recorder.record(call(), answer(), NOON)
    assert len(history.records()) == 1


@pytest.mark.promise("STO-1")
def test_the_newest_come_first_and_can_be_narrowed(history: History) -> None:
    sources: list[CallSource] = ["form", "cli", "cli"]
    for minute, (name, source) in enumerate(zip(["a.x", "a.y", "a.x"], sources, strict=True)):
        history.record(call(name, source, n=minute), answer(), NOON + timedelta(minutes=minute))
    history.record(call("a.x", n=-1), answer(), NOON - timedelta(days=1))
    assert [record.args["n"] for record in history.records()] == [2, 1, 0, -1]
    assert [record.args["n"] for record in history.records(limit=2)] == [2, 1]
    assert history.records(limit=0) == ()
    assert [record.args["n"] for record in history.records(tool="a.x")] == [2, 0, -1]
    assert [record.args["n"] for record in history.records(tool="a.x", source="form")] == [0]
    assert history.records(tool="a.z") == ()


@pytest.mark.promise("STO-1")
def test_uses_and_last_arguments_are_counted_per_tool(history: History) -> None:
    assert history.uses("a.x") == ToolUses()
    assert history.last_arguments("a.x") is None
    history.record(call("a.x", n=1), answer(), NOON)
    history.record(call("a.x", n=2), FAILED, NOON + timedelta(seconds=1))
    history.record(call("a.y"), answer(), NOON)
    assert history.uses("a.x") == ToolUses(calls=2, failures=1, last_at=NOON + timedelta(seconds=1))
    assert history.uses("a.y") == ToolUses(calls=1, failures=0, last_at=NOON)
    assert history.last_arguments("a.x") == {"n": 2}


@pytest.mark.parametrize("detail", ["cancelled", "denied"])
def test_cancelled_and_denied_calls_are_not_failures_of_the_tool(history: History, detail: str) -> None:
    history.record(call("a.x", n=1), ToolResult.failed("execution_error", "The user didn't want it.", detail), NOON)
    history.record(call("a.x", n=2), FAILED, NOON)
    assert (history.uses("a.x").calls, history.uses("a.x").failures) == (2, 1)


def test_times_are_kept_in_utc_to_the_microsecond(history: History) -> None:
    history.record(call(), answer(), NOON.astimezone(timezone(timedelta(hours=5, minutes=30))))
    (record,) = history.records()
    assert record.at == NOON
    assert record.at.tzinfo == UTC


@pytest.mark.promise("STO-1", "STO-3")
def test_a_large_result_gets_a_file_and_is_read_back_completely(history: History, tmp_path: Path) -> None:
    small, large = call(), call()
    history.record(small, answer("x" * 60_000), NOON)
    history.record(large, answer("x" * 70_000), NOON)
    assert history.result(small.id) == answer("x" * 60_000)
    assert history.result(large.id) == answer("x" * 70_000)
    (file,) = (tmp_path / "state" / "results").iterdir()
    assert file.name == f"{large.id}.json"
    assert json.loads(file.read_text()) == "x" * 70_000


@pytest.mark.promise("STO-1", "EXE-6")
def test_a_truncated_result_keeps_its_file_and_is_read_back_truncated(history: History, tmp_path: Path) -> None:
    asked = call()
    whole = tmp_path / "state" / "results" / f"{asked.id}.json"
    whole.parent.mkdir(parents=True)
    whole.write_text(json.dumps("x" * 200_000))
    truncated = Truncation(shown_bytes=100_000, total_bytes=200_002, file=str(whole))
    result = ToolResult(ok=True, data="x" * 100_000, meta=ResultMeta(truncated=truncated))
    history.record(asked, result, NOON)
    assert history.result(asked.id) == result
    assert json.loads(whole.read_text()) == "x" * 200_000
    assert list(whole.parent.iterdir()) == [whole]


@pytest.mark.promise("STO-1")
def test_a_result_without_its_file_is_none_and_a_problem(history: History, tmp_path: Path) -> None:
    asked = call()
    history.record(asked, answer("x" * 70_000), NOON)
    history.flush()
    (tmp_path / "state" / "results" / f"{asked.id}.json").unlink()
    assert history.result(asked.id) is None
    assert "No such file" in history.problems[0].message
    assert len(history.records()) == 1


def test_an_unknown_call_has_no_result(history: History) -> None:
    assert history.result("nobody") is None
    assert history.problems == ()


def test_an_id_that_is_a_path_is_not_followed(history: History, tmp_path: Path) -> None:
    asked = ToolCall(id="../../escaped", name="a.x", source="mcp")
    history.record(asked, answer("x" * 70_000), NOON)
    assert history.result(asked.id) == answer("x" * 70_000)
    assert [path.name for path in tmp_path.rglob("*escaped*")] == []


@pytest.mark.promise("STO-1")
def test_beyond_the_size_limit_the_oldest_calls_and_their_files_are_removed(
    open_history: OpenHistory, tmp_path: Path
) -> None:
    history = open_history(size_limit=1_000_000)
    asked = [call(n=number) for number in range(40)]
    for number, one in enumerate(asked):
        history.record(one, answer("x" * 70_000), NOON + timedelta(seconds=number))
    kept = history.records(limit=100)
    assert 10 <= len(kept) <= 14
    assert [record.id for record in kept] == [one.id for one in reversed(asked[-len(kept) :])]
    files = {path.stem for path in (tmp_path / "state" / "results").iterdir()}
    assert files == {record.id for record in kept}
    assert history.result(asked[-1].id) == answer("x" * 70_000)


def test_a_single_result_beyond_the_size_limit_is_kept_until_the_next(open_history: OpenHistory) -> None:
    history = open_history(size_limit=50_000)
    first, second = call(), call()
    history.record(first, answer("x" * 70_000), NOON)
    assert history.result(first.id) is not None
    history.record(second, answer(), NOON)
    assert [record.id for record in history.records()] == [second.id]


def test_a_call_recorded_twice_is_one(history: History) -> None:
    asked = call()
    for _ in range(2):
        history.record(asked, answer(), NOON)
    assert len(history.records()) == 1


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner),
    max_leaves=15,
)


@pytest.mark.slow
@given(st.dictionaries(st.text("abc\0 ü'\"", max_size=5), JSON, max_size=4), JSON)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_is_read_back_equal(history: History, args: JsonObject, data: JsonValue) -> None:
    asked = ToolCall(name="a.x", args=args, source="form")
    history.record(asked, answer(data), NOON)
    assert history.records(limit=1)[0].args == args
    assert history.result(asked.id) == answer(data)


def nested(levels: int) -> JsonValue:
    value: JsonValue = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("data", "kept"),
    [("\ud800", "?"), (float("nan"), "NaN"), (nested(400), nested(400))],
    ids=["lone surrogate", "not a number", "deep"],
)
def test_values_that_json_can_hardly_represent_are_approximated(
    history: History, data: JsonValue, kept: JsonValue
) -> None:
    asked = ToolCall.model_construct(name="a.\ud800", id="id\ud800", args={"x": data}, source="sdk")
    history.record(asked, ToolResult.model_construct(ok=True, data=data), NOON)
    history.record(call(n=1), answer(), NOON)
    assert [record.args for record in history.records()] == [{"n": 1}, {"x": kept}]
    found = history.result("id\ud800")
    assert found is not None
    assert found.data == kept
    assert history.records(tool="a.\ud800")[0].tool == "a.?"


def test_a_result_that_is_not_json_loses_only_its_own_data(history: History) -> None:
    history.record(
        call(), ToolResult.model_construct(ok=True, data=cast("JsonValue", object())), NOON
    )  # as a defective runner might
    history.record(call(n=1), answer(), NOON)
    assert [record.args for record in history.records()] == [{"n": 1}]
    assert "not JSON" in history.problems[0].message


@pytest.mark.promise("STO-1")
def test_many_threads_record_and_each_reads_its_own_calls(history: History) -> None:
    wrong: list[str] = []

    def work(thread: int) -> None:
        for number in range(30):
            asked = call(f"t.{thread}", n=number)
            history.record(asked, answer(number), NOON + timedelta(seconds=number))
            if history.result(asked.id) != answer(number) or history.last_arguments(f"t.{thread}") != {"n": number}:
                wrong.append(f"{thread}/{number}")

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert {history.uses(record.tool).calls for record in history.records()} == {30}


def test_an_unused_history_touches_no_file(open_history: OpenHistory, tmp_path: Path) -> None:
    open_history().close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ask", ["records", "record"])
def test_a_closed_history_reopens_on_use(history: History, ask: Literal["records", "record"]) -> None:
    history.record(call(n=1), answer(), NOON)
    history.close()
    if ask == "record":
        history.record(call(n=2), answer(), NOON)
    assert len(history.records()) == (2 if ask == "record" else 1)


def test_the_files_are_the_users_own(history: History, tmp_path: Path) -> None:
    history.record(call(), answer("x" * 70_000), NOON)
    history.flush()
    for path in tmp_path.rglob("*"):
        if path.name != "history.db.lock":
            assert path.stat().st_mode & 0o077 == 0, path


def test_no_statement_needs_sqlite_3_35_which_systems_with_long_support_lack() -> None:
    sources = "".join(file.read_text() for file in Path(pegboard.history.__file__).parent.glob("*.py"))
    assert "SELECT" in sources
    assert [word for word in (" RETURNING ", " STRICT", "->>", "unixepoch(") if word in sources] == []
