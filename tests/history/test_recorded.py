"""Finding recorded calls: the query language, pages, counts, deleting and pinning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import JsonValue

from pegboard.history import History
from pegboard.history.query import parse_query
from pegboard.history.recorded import RecordedCalls
from pegboard.history.statistics import statistics, timeline
from pegboard.models import Agent, CallSource, HistoryQuery, JsonObject, ResultMeta, ToolCall, ToolResult

NOW = datetime.now(UTC)
OpenHistory = Callable[..., History]


@pytest.fixture
def calls(history: History) -> Iterator[RecordedCalls]:
    """Return the recorded calls of an empty history."""
    recorded = RecordedCalls(history)
    yield recorded
    recorded.close()


def add(
    history: History,
    tool: str = "ckan.search",
    data: JsonValue = None,
    *,
    args: JsonObject | None = None,
    source: CallSource = "cli",
    ago: timedelta = timedelta(0),
    ms: float = 5,
    fails: str | None = None,
    session: str | None = None,
    parent: str | None = None,
    agent: str | None = None,
) -> str:
    call = ToolCall(
        name=tool,
        args=args or {},
        source=source,
        session=session,
        parent=parent,
        agent=Agent(name=agent) if agent else None,
    )
    meta = ResultMeta(duration_ms=ms)
    result = ToolResult(ok=True, data=data, meta=meta)
    if fails is not None:
        result = ToolResult.failed("execution_error", "It broke.", fails).model_copy(update={"meta": meta})
    history.record(call, result, NOW - ago)
    return call.id


@pytest.mark.promise("ACT-1")
@pytest.mark.parametrize("is_written_before", [False, True])
def test_a_call_comes_before_the_calls_that_it_made_however_short_they_are(
    history: History, calls: RecordedCalls, *, is_written_before: bool
) -> None:
    outer = ToolCall(name="script.run", source="script")
    inner = ToolCall(name="tools.echo", source="script", parent=outer.id)
    history.start(outer, NOW)
    history.start(inner, NOW + timedelta(milliseconds=1))
    history.record(inner, ToolResult(ok=True), NOW + timedelta(milliseconds=1))
    if is_written_before:
        history.flush()
    history.record(outer, ToolResult(ok=True), NOW)
    assert found(calls, "") == [inner.id, outer.id]


def found(calls: RecordedCalls, text: str, **more: int) -> list[str]:
    parsed = parse_query(text)
    assert not parsed.problems
    return [call.id for call in calls.page(parsed.query, **more).calls]


@pytest.mark.promise("ACT-1")
def test_calls_are_found_by_tool_source_session_status_time_duration_and_text(
    history: History, calls: RecordedCalls
) -> None:
    old = add(history, "fs.read", "the quick brown fox", ago=timedelta(days=3), ms=2500)
    failed = add(history, "ckan.show", fails="crashed", source="ask", session="abcd1234", agent="Claude")
    denied = add(history, "ckan.search", fails="denied", source="ask", session="abcd1234")
    umlaut = add(history, "text.count", {"count": 3}, args={"text": "Über größe"}, source="form", ms=150)
    assert found(calls, "") == [umlaut, denied, failed, old]
    assert found(calls, "tool:fs.read") == [old]
    assert found(calls, "tool:ckan.*") == found(calls, "tool:ckan") == [denied, failed]
    assert found(calls, "tool:ckan.show,fs") == [failed, old]
    assert found(calls, "tool:nothing.*") == []
    assert found(calls, "source:form") == [umlaut]
    assert found(calls, "source:form source:cli") == [umlaut, old]
    assert found(calls, "session:abcd1234") == found(calls, "session:abc") == [denied, failed]
    assert found(calls, "agent:Claude") == [failed]
    assert found(calls, "status:failed") == [failed]
    assert found(calls, "status:denied,failed") == [denied, failed]
    assert found(calls, "since:2d") == [umlaut, denied, failed]
    assert found(calls, "before:2d") == [old]
    assert found(calls, "slower:2s") == [old]
    assert found(calls, "slower:100ms") == [umlaut, old]
    assert found(calls, "quick") == found(calls, "brow") == found(calls, '"quick brown"') == [old]
    assert found(calls, '"brown quick"') == []
    assert found(calls, "uber grosse") == []
    assert found(calls, "uber größe") == [umlaut]
    assert found(calls, "tool:ckan status:failed broke") == [failed]


@pytest.mark.promise("ACT-1")
def test_pages_continue_below_or_above_a_position_until_every_call_was_listed_once(
    history: History, calls: RecordedCalls
) -> None:
    wanted = [add(history, "a.x" if number % 3 else "a.y", number) for number in range(25)]
    for query, ids in (
        (HistoryQuery(), wanted),
        (HistoryQuery(tools=("a.x",)), [i for n, i in enumerate(wanted) if n % 3]),
    ):
        listed: list[str] = []
        before = None
        while True:
            page = calls.page(query, before=before, limit=4)
            listed += [call.id for call in page.calls]
            before = page.next
            if before is None:
                break
        assert listed == ids[::-1]
        assert calls.count(query).calls == len(ids)
        listed = []
        after: int | None = 0
        while after is not None:
            page = calls.page_after(query, after, limit=4)
            listed = [call.id for call in page.calls] + listed
            after = page.next
        assert listed == ids[::-1]


@pytest.mark.promise("ACT-1")
@pytest.mark.parametrize(
    ("text", "span", "message", "allowed"),
    [
        ("a status:bad", (2, 12), "'bad' is not a status", "failed"),
        ("source:foo", (0, 10), "'foo' is not a source", "cli"),
        ("since:yesterday", (0, 15), "'yesterday' is not a time", "2h"),
        ("slower:fast", (0, 11), "'fast' is not a duration", "1s"),
        ("slower:200000w", (0, 14), "'200000w' is too long", "1s"),
        ("colour:red", (0, 10), "colour: is not a filter", "tool:"),
        ("x ###", (2, 5), "contains no letters or digits", None),
        ("tool:", (0, 5), "tool: has no value", None),
        ("tool:,", (0, 6), "tool: has no value", None),
        ("status:,,", (0, 9), "status: has no value", "failed"),
        ("before:", (0, 7), "before: has no value", "2h"),
        ("parent:a0 parent:b0", (10, 19), "parent: can have only one value", None),
        ("since:2020-01-31 tool:fs since:2020-02-29", (25, 41), "since: can have only one value", None),
        ("slower:1s slower:2s", (10, 19), "slower: can have only one value", None),
    ],
)
def test_an_invalid_part_of_a_query_is_reported_with_its_position_and_ignored(
    text: str, span: tuple[int, int], message: str, allowed: str | None
) -> None:
    parsed = parse_query(text)
    [problem] = parsed.problems
    assert (problem.start, problem.end) == span
    assert message in problem.message
    assert allowed is None or allowed in problem.allowed
    assert parsed.query == parse_query(text[: span[0]]).query


def test_quotes_that_are_still_open_and_urls_are_text() -> None:
    assert parse_query('"half a').query.phrases == ("half a",)
    assert parse_query("https://example.org").query.words == ("https://example.org",)
    assert parse_query('tool:"a b"').query.tools == ("a b",)
    assert parse_query('agent:"Claude Code,Codex').query.agents == ("Claude Code", "Codex")


def test_each_of_several_names_can_be_quoted() -> None:
    parsed = parse_query('agent:"Claude Code","Codex CLI",Cursor tool:"fs" word')
    assert parsed.problems == ()
    assert parsed.query.agents == ("Claude Code", "Codex CLI", "Cursor")
    assert (parsed.query.tools, parsed.query.words) == (("fs",), ("word",))


@pytest.mark.promise("ACT-1")
def test_a_call_is_listed_while_it_runs_and_then_as_finished(history: History, calls: RecordedCalls) -> None:
    call = ToolCall(name="fs.read", args={"path": "notes"}, source="form")
    history.start(call, NOW)
    [running] = calls.page(HistoryQuery()).calls
    assert (running.id, running.state, running.ok) == (call.id, "running", False)
    for text in ("status:running", "tool:fs", "notes", "source:form"):
        assert found(calls, text) == [call.id]
    assert found(calls, "status:ok") == []
    assert history.result(call.id) is None
    assert history.records() == ()
    history.record(call, ToolResult(ok=True, data="done"), NOW)
    [finished] = calls.page(HistoryQuery()).calls
    assert (finished.id, finished.state, finished.position) == (call.id, "ok", running.position)
    assert found(calls, "status:running") == []
    assert found(calls, "done") == [call.id]


@pytest.mark.promise("ACT-1")
def test_calls_that_a_call_made_are_counted_and_listed_below_it(history: History, calls: RecordedCalls) -> None:
    script = add(history, "script.run")
    inner = [add(history, "fs.read", parent=script, source="script") for _ in range(3)]
    assert found(calls, "parent:none") == [script]
    assert found(calls, f"parent:{script}") == found(calls, f"parent:{script[:20]}") == inner[::-1]
    assert calls.count(parse_query(f"parent:{script[:20]}").query).calls == 3
    assert found(calls, f"parent:{script[:3]}") == found(calls, "parent:unknown") == []
    [listed] = calls.page(HistoryQuery(parent="none")).calls
    assert listed.calls == 3


@pytest.mark.promise("ACT-2")
def test_deleted_calls_are_gone_everywhere_and_can_be_restored(history: History, calls: RecordedCalls) -> None:
    kept = add(history, "fs.read", "needle one")
    script = add(history, "script.run", "needle two")
    inner = add(history, "fs.read", "needle three", parent=script)
    assert set(calls.delete([script, "unknown"])) == {script, inner}
    assert found(calls, "") == found(calls, "needle") == [kept]
    assert calls.count(HistoryQuery()).calls == 1
    assert [record.id for record in history.records()] == [kept]
    assert history.uses("fs.read").calls == 1
    assert calls.get(script) is None
    assert set(calls.restore([script, inner])) == {script, inner}
    assert found(calls, "needle") == [inner, script, kept]
    assert history.uses("fs.read").calls == 2


@pytest.mark.promise("ACT-2")
def test_restoring_a_call_leaves_those_deleted_that_were_deleted_before_it(
    history: History, calls: RecordedCalls
) -> None:
    script = add(history, "script.run")
    first, second = (add(history, "fs.read", parent=script) for _ in range(2))
    assert calls.delete([first]) == (first,)
    assert set(calls.delete([script])) == {script, second}
    assert set(calls.restore([script])) == {script, second}
    assert found(calls, f"parent:{script}") == [second]
    assert calls.restore([first]) == (first,)


@pytest.mark.promise("ACT-1")
def test_a_tool_filter_names_a_tool_a_pack_or_a_pattern(history: History, calls: RecordedCalls) -> None:
    fs, fsx, other = (add(history, tool) for tool in ("fs.read", "fsx.read", "x.fs"))
    for text, ids in (
        ("fs", [fs]),
        ("fs.read", [fs]),
        ("fs*", [fsx, fs]),
        ("*.read", [fsx, fs]),
        ("fs.rea", []),
        ("fsx,x", [other, fsx]),
    ):
        assert found(calls, f"tool:{text}") == ids, text


@pytest.mark.promise("ACT-1")
def test_a_page_that_ends_with_the_last_call_is_the_last(history: History, calls: RecordedCalls) -> None:
    listed = [add(history) for _ in range(4)]
    newest = calls.page(HistoryQuery(), limit=2)
    oldest = calls.page(HistoryQuery(), before=newest.next, limit=2)
    assert [call.id for call in (*newest.calls, *oldest.calls)] == listed[::-1]
    assert oldest.next is None
    assert calls.page_after(HistoryQuery(), newest.calls[-1].position - 1, limit=2).next is None


@pytest.mark.promise("ACT-2")
def test_pinned_calls_are_listed_and_survive_the_size_limit(open_history: OpenHistory) -> None:
    history = open_history(size_limit=100_000)
    calls = RecordedCalls(history)
    pinned = add(history, "a.x", "x" * 10_000)
    history.flush()
    assert calls.pin([pinned]) == (pinned,)
    assert calls.dropped() is None
    for _ in range(30):
        add(history, "a.x", "y" * 10_000)
        history.flush()
    assert found(calls, "pinned:") == [pinned]
    dropped = calls.dropped()
    assert dropped is not None
    assert dropped.calls == 31 - calls.count(HistoryQuery()).calls
    assert dropped.size_limit == 100_000
    assert calls.pin([pinned], pinned=False) == (pinned,)
    assert found(calls, "pinned:") == []
    calls.close()


@pytest.mark.promise("ACT-2")
def test_the_work_of_deleting_and_restoring_a_batch_grows_with_its_calls_and_not_with_their_square(
    history: History, calls: RecordedCalls
) -> None:
    steps = [0]

    def work(change: Callable[[Sequence[str]], tuple[str, ...]], ids: Sequence[str]) -> tuple[tuple[str, ...], int]:
        before = steps[0]
        return change(ids), steps[0] - before

    def count_step() -> None:
        steps[0] += 1

    work_of = []
    for size in (100, 800):
        batch = add(history, "batch.run", source="batch")
        made = [add(history, parent=batch, source="batch") for _ in range(size)]
        history.act(lambda database: database._connection.set_progress_handler(count_step, 100))
        deleted, deleting = work(calls.delete, [batch])
        restored, restoring = work(calls.restore, deleted)
        assert set(restored) == set(deleted) == {batch, *made}
        work_of.append((deleting, restoring))
    (delete_few, restore_few), (delete_many, restore_many) = work_of
    assert delete_many < 12 * delete_few
    assert restore_many < 12 * restore_few


@pytest.mark.promise("ACT-2", "ASK-3")
def test_the_result_of_a_deleted_call_is_neither_read_nor_reused_until_it_is_restored(
    history: History, calls: RecordedCalls
) -> None:
    call = add(history, data="a secret plan")
    history.keep_for_reuse("key", call)
    for _ in range(2):
        result = history.result(call)
        assert result is not None
        assert result.data == "a secret plan"
        assert history.kept_for_reuse("key")[1] == result
        deleted = calls.delete([call])
        assert history.result(call) is None
        assert history.kept_for_reuse("key")[1] is None
        calls.restore(deleted)


@pytest.mark.promise("ACT-2")
def test_a_call_that_made_others_survives_the_size_limit_as_long_as_one_of_them(open_history: OpenHistory) -> None:
    history = open_history(size_limit=100_000)
    calls = RecordedCalls(history)
    script = add(history, "script.run", "x" * 10_000)
    pinned, inner = (add(history, "a.x", "x" * 10_000, parent=script) for _ in range(2))
    history.flush()
    calls.pin([pinned])
    batch = add(history, "batch.run", source="batch")
    for _ in range(30):
        add(history, "a.x", "y" * 10_000, parent=batch)
        history.flush()
    assert calls.get(inner) is None
    assert found(calls, "parent:none") == [batch, script]
    assert found(calls, f"parent:{script}") == [pinned]
    rows = found(calls, f"parent:{batch}")
    assert 0 < len(rows) < 30
    calls.pin([pinned], pinned=False)
    for _ in range(40):
        add(history, "a.x", "z" * 10_000)
        history.flush()
    assert not {script, pinned, batch, *rows} & {*found(calls, "")}
    calls.close()


def test_a_call_is_found_by_the_unique_start_of_its_id(history: History, calls: RecordedCalls) -> None:
    first = add(history)
    history.record(ToolCall(name="a.x", source="cli", id="beef01"), ToolResult(ok=True), NOW)
    history.record(ToolCall(name="a.x", source="cli", id="beef02"), ToolResult(ok=True), NOW)
    one = calls.get("beef01")
    assert one is not None
    assert one.tool == "a.x"
    assert calls.get("beef") is None
    assert calls.get(first[:3]) is None
    found_first = calls.get(first[:30])
    assert found_first is not None
    assert found_first.id == first


@pytest.mark.promise("ACT-1")
def test_a_frequent_word_matches_only_as_a_whole_word(
    history: History, calls: RecordedCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.history.recorded.FREQUENT", 3)
    longer = add(history, "a.x", "orders")
    orders = [add(history, "a.x", "order") for _ in range(3)]
    assert set(found(calls, "order")) == {longer, *orders}
    orders.append(add(history, "a.x", "order"))
    assert set(found(calls, "order")) == set(orders)
    assert longer in found(calls, "orde")


@pytest.mark.promise("ACT-1")
def test_a_word_after_a_line_break_a_tab_or_a_backslash_is_found(history: History, calls: RecordedCalls) -> None:
    text = "first\nsecond\r\n\tthird\\nested C:\\temp"
    ids = [
        add(history, data=text),
        add(history, data={"lines": [text]}),
        add(history, args={"text": text}),
        add(history, data={"text": "other"}),
    ]
    for words in ("second", "third", "nested", "temp", '"first second third"', '"second third nested"'):
        found = [call.id for call in calls.page(parse_query(words).query).calls]
        assert sorted(found) == sorted(ids[:3]), words
    assert not calls.page(parse_query("nsecond").query).calls


@pytest.mark.promise("ACT-1")
def test_a_beginning_finds_all_words_with_it_few_or_many(
    history: History, calls: RecordedCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ("Customer", "custody of", "custard", "cuspid", "a\u00e7a\u00ed", "cus")
    wanted = {text: add(history, "a.x", text) for text in texts}
    for most in (300, 2):
        monkeypatch.setattr("pegboard.history.recorded.MOST_TERMS", most)
        assert set(found(calls, "CUST")) == {wanted[text] for text in texts[:3]}
        assert set(found(calls, "cus")) == {wanted[text] for text in texts if text.lower().startswith("cus")}
        assert found(calls, "aca") == found(calls, "a\u00e7a") == [wanted["a\u00e7a\u00ed"]]
        assert found(calls, "custx") == []
        assert found(calls, "customer cust", limit=1) == [wanted["Customer"]]
        assert calls.count(parse_query("cus").query).calls == 5


@pytest.mark.promise("ACT-1")
def test_a_timeline_has_a_gap_only_where_nothing_runs(history: History, calls: RecordedCalls) -> None:
    at: dict[str, float] = {"outer": 0, "inner": 1, "next": 10.2, "later": 16, "last": 16.01}
    lasts = {"outer": 10_000, "inner": 500, "next": 800, "later": 100, "last": 3_000}
    for name, seconds in at.items():
        add(history, name, session="s", ago=timedelta(hours=1, seconds=-seconds), ms=lasts[name])
    shown = timeline(calls.reader, "s")
    start = shown.bars[0].start
    assert [bar.label for bar in shown.bars] == [*at]
    assert [((gap.start - start).total_seconds(), (gap.end - start).total_seconds()) for gap in shown.gaps] == [
        (11.0, 16.0)
    ]


def test_the_95th_percentile_of_20_durations_is_the_second_longest(history: History, calls: RecordedCalls) -> None:
    for number in range(20):
        add(history, ms=number + 1)
    [found] = statistics(calls.reader)
    assert found.p95_ms == 19
