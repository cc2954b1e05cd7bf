"""Scripts that repeat calls of the record."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.models import CallRecord, JsonObject, ToolCall, ToolError
from pegboard.runtime import Runtime

pytestmark = pytest.mark.promise("SCR-2", "STO-1")

ODD = [
    "it's",
    '"quoted" $HOME `id` $(id) \\ \\n !x',
    "two\nlines\n",
    "END\nEND\n)",
    "\r\n\t\x1b[31m",
    "ünï 名 🙂",
    "* ? ~ # ; | & < > ( ) [x] {a,b}",
    "--help",
    "-h",
    "null",
    "12",
    "",
    " ",
]


def _record(tool: str, args: JsonObject, **more: object) -> CallRecord:
    known = {
        "id": f"{tool} {json.dumps(args)}", "at": datetime.now(UTC), "tool": tool, "args": args, "ok": True,
        "error": None, "duration_ms": 12.0, "source": "form", "session": None, "parent": None,
    }  # fmt: skip
    return CallRecord.model_validate({**known, **more})


def _commands(script: str) -> list[str]:
    return [line for line in script.splitlines() if not line.startswith("#")]


async def _calls(runtime: Runtime, script: str) -> list[tuple[str, JsonObject]]:
    """Run a script and return the calls that it made."""
    [outer] = [event.call async for event in runtime.scripts.run(script) if event.kind == "started"][:1]
    return [(record.tool, record.args) for record in reversed(runtime.history.records()) if record.parent == outer.id]


async def test_the_calls_of_the_record_run_again_with_equal_arguments(shop: Runtime) -> None:
    made: list[tuple[str, JsonObject]] = [
        ("shop.search", {"filter": {text: [text, None, {}]}, "note": text}) for text in ODD
    ]
    made += [("shop.search", {"note": None}), ("shop.search", {"filter": {"a": 10**30, "b": -0.5}})]
    made += [("shop.words", {"text": text, "tags": ["", text], "loud": True}) for text in ODD]
    for name, args in made:
        await shop.result(ToolCall(name=name, args=args, source="ask"))
    assert await _calls(shop, shop.scripts.from_records(shop.history.records())) == made


def test_each_call_is_a_command_below_a_comment(open_runtime: Callable[..., Runtime]) -> None:
    runtime = open_runtime()
    tool = runtime.scripts.orchestrator()
    texts = st.sampled_from(ODD) | st.text(max_size=5)
    values = st.dictionaries(texts, texts | st.none() | st.integers(), max_size=3)

    @given(st.lists(values, max_size=3))
    def check(given_: list[JsonObject]) -> None:
        at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        records = [
            _record("tools.echo", {"value": value}, id=str(number), at=at + timedelta(seconds=number))
            for number, value in enumerate(given_)
        ]
        found = tool.analyze(runtime.scripts.from_records(reversed(records)))
        assert (found.error, [call.args for call in found.calls]) == (None, [record.args for record in records])

    check()


def test_a_comment_says_when_and_how_it_ended(shop: Runtime) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    failed = ToolError(code="execution_error", message="There is no\nuser 9.\x1b[31m")
    records = [
        _record("shop.get_user", {"id": 9}, at=at + timedelta(minutes=1), source="ask", ok=False, error=failed),
        _record("shop.get_user", {"id": 7}, at=at),
    ]
    local = at.astimezone()
    assert shop.scripts.from_records(records).splitlines() == [
        f"# {local:%Y-%m-%d %H:%M:%S}, form: ok, 12 ms",
        "shop.get_user --id 7",
        "",
        f"# {local + timedelta(minutes=1):%Y-%m-%d %H:%M:%S}, ask: failed: There is no⏎user 9.␛[31m",
        "shop.get_user --id 9",
    ]
    assert shop.scripts.from_records([]) == ""


async def test_a_call_of_a_missing_tool_becomes_a_comment(shop: Runtime) -> None:
    gone = _record("shop.gone\n; shop.buy tea", {"a": "x\nshop.buy tea", "\n": "\u2028"})
    script = shop.scripts.from_records([gone, _record("shop.get_user", {"id": 7})])
    assert '"a": "x\\nshop.buy tea"' in script
    assert _commands(script) == ["", "shop.get_user --id 7"]
    assert await _calls(shop, script) == [("shop.get_user", {"id": 7})]


async def test_a_recorded_script_is_its_text_and_nested_calls_are_left_out(
    shop: Runtime,
) -> None:
    text = "x=5\nshop.get_user 7 | jq .id\ncat <<END\n$x\nEND\nexit 3\n"
    async for _ in shop.scripts.run(text):
        pass
    records = shop.history.records()
    assert [record.tool for record in records] == ["shop.get_user", "script.run"]
    assert shop.scripts.from_records(records).partition("\n")[2] == text
    assert _commands(shop.scripts.from_records(records[:1])) == ["shop.get_user --id 7"]

    both = shop.scripts.from_records([*records, _record("shop.words", {"text": "after"})])
    events = [event async for event in shop.scripts.run(both)]
    assert "".join(event.text for event in events if event.kind == "log") == "7\n5\nafter\n"


def test_a_batch_becomes_a_comment_and_the_calls_of_its_rows_commands(shop: Runtime) -> None:
    batch = _record("batch.run", {"tool": "shop.get_user", "from": "a\nb.csv"}, source="batch")
    row = _record("shop.get_user", {"id": 7}, source="batch", parent=batch.id)
    script = shop.scripts.from_records([batch, row])
    comment = '# a batch, which `pegboard batch` runs: {"tool": "shop.get_user", "from": "a\\nb.csv"}'
    assert comment in script.splitlines()
    assert _commands(script) == ["", "shop.get_user --id 7"]


def test_a_record_that_only_looks_like_a_script_causes_no_error(shop: Runtime) -> None:
    assert _commands(shop.scripts.from_records([_record("script.run", {"commands": 1})])) == []


def test_the_pack_may_have_been_deleted(write_pack: Callable[[str, str], Path], shop: Runtime) -> None:
    record = _record("shop.get_user", {"id": 7})
    write_pack("shop.py", '"""Nothing."""')
    shop.tools.scan()
    assert _commands(shop.scripts.from_records([record])) == []
