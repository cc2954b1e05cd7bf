"""Comparing two calls on the Activity page."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from stage import Stage
from test_activity import Recorder, on_activity, paths, press, recorder, runtime

from pegboard.models import JsonObject, ResultMeta, ToolResult
from pegboard.runtime import Runtime
from pegboard.tui.activity.compare import CompareScreen, DifferenceView

__all__ = ["paths", "recorder", "runtime"]

OLD: JsonObject = {"rows": [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Ben"}], "text": "one\ntwo\nthree", "same": 7}
NEW: JsonObject = {"rows": [{"id": 1, "name": "[b]Eva[/b]"}], "text": "one\n2\nthree", "same": 7, "more": "\x1b[31mred"}


def result(data: JsonObject | str) -> ToolResult:
    return ToolResult(ok=True, data=data, meta=ResultMeta(duration_ms=12, size=6))


def lines(stage: Stage) -> Sequence[str]:
    """Return all rows of the comparison."""
    view = stage.app.screen.query_one(DifferenceView)
    return [view.row(index)[0].rstrip() for index in range(view.row_count)]


async def compared(stage: Stage) -> CompareScreen:
    """Press the key and wait for the differences."""
    await stage.press("alt+d")
    await stage.until(lambda: isinstance(stage.app.screen, CompareScreen), "the comparison opens")
    screen = stage.app.screen
    assert isinstance(screen, CompareScreen)
    await stage.until(lambda: screen.settled, "the differences are shown")
    await stage.pilot.pause()
    return screen


@pytest.mark.promise("ACT-3")
async def test_the_exit_codes_of_two_compared_scripts_are_shown(runtime: Runtime, recorder: Recorder) -> None:
    for code in (0, 125):
        ended = ToolResult(ok=True, data={"exit_code": code}, meta=ResultMeta(duration_ms=12, exit_code=code))
        recorder.add("script.run", {"commands": f"exit {code}"}, ended)
    async with on_activity(runtime) as stage:
        await compared(stage)
        await stage.until_seen("- ✓ ok")
        await stage.until_seen("+ ✗ exit 125")


@pytest.mark.promise("ACT-3")
async def test_two_selected_calls_are_compared_by_path_and_line(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "old words", "same": 1}, result(OLD))
    recorder.add("fs.list_dir")
    recorder.add("gate.shout", {"text": "new words", "same": 1}, result(NEW))
    async with on_activity(runtime, (80, 24)) as stage:
        await press(stage, "space", "down", "down", "space")
        await compared(stage)
        assert lines(stage) == [
            "Arguments · 1 difference",
            ".text",
            '- "old words"',
            '+ "new words"',
            "",
            "Result · 4 differences",
            ".rows[0].name",
            '- "Ada"',
            '+ "[b]Eva[/b]"',
            ".rows[1]  removed",
            "- {",
            '-   "id": 2,',
            '-   "name": "Ben"',
            "- }",
            ".text",
            "1   one",
            "2 - two",
            "2 + 2",
            "3   three",
            ".more  added",
            '+ "\\u001b[31mred"',
        ]


@pytest.mark.promise("ACT-3")
async def test_one_call_is_compared_with_the_call_before_of_the_same_tool(runtime: Runtime, recorder: Recorder) -> None:
    first = recorder.add("gate.shout", {"text": "a"}, result("x"))
    recorder.add("gate.hold", {"file": "b"})
    last = recorder.add("gate.shout", {"text": "c"}, result("x"))
    async with on_activity(runtime) as stage:
        await compared(stage)
        await stage.until_seen(first[:12])
        await stage.until_seen(last[:12])
        assert lines(stage)[-1] == "Result · no difference"
        await press(stage, "escape", "down")
        await stage.press("alt+d")
        await stage.until_seen("gate.hold has no earlier call.")


async def test_three_selected_calls_are_not_compared(runtime: Runtime, recorder: Recorder) -> None:
    for text in "abc":
        recorder.add("gate.shout", {"text": text})
    async with on_activity(runtime) as stage:
        await press(stage, "space", "space", "space", "alt+d")
        await stage.until_seen("3 calls are selected. Select two to compare them.")


@pytest.mark.promise("ACT-3")
async def test_the_values_are_side_by_side_in_a_wide_terminal(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "old"}, result("one\n" + "q" * 150 + "\nend"))
    recorder.add("gate.shout", {"text": "new"}, result("one\n" + "y" * 60 + "世" * 40 + "\nend"))
    async with on_activity(runtime, (120, 40)) as stage:
        screen = await compared(stage)
        found = [" ".join(line.split()) for line in lines(stage)]
        assert '- "old" │ + "new"' in found
        assert "1 one │ 1 one" in found
        assert sum(line.count("q") for line in found) == 150
        assert sum(line.count("世") for line in found) == 40
        assert len({line.index("│") for line in lines(stage) if "│" in line}) == 1
        await stage.pilot.resize_terminal(100, 30)
        await stage.until(lambda: not any("│" in line for line in lines(stage)), "the columns are merged")
        assert '- "old"' in lines(stage)
        assert screen.settled


async def test_keys_go_to_the_next_and_previous_difference(runtime: Runtime, recorder: Recorder) -> None:
    old: JsonObject = {f"key{number}": {"value": list(range(20))} for number in range(10)}
    new: JsonObject = {f"key{number}": {"value": number} for number in range(10)}
    recorder.add("gate.shout", {"text": "a"}, result(old))
    recorder.add("gate.shout", {"text": "b"}, result(new))
    async with on_activity(runtime, (80, 24)) as stage:
        await compared(stage)
        await stage.until_seen("difference 1 of 11")
        await stage.press("n", "n", "n")
        await stage.until_seen("difference 4 of 11")
        view = stage.app.screen.query_one(DifferenceView)
        await stage.until(lambda: view.render_line(0).text.strip() == ".key2.value", "it is scrolled to")
        await stage.press("N")
        await stage.until_seen("difference 3 of 11")
        await stage.press(*"nnnnnnnnn")
        await stage.until_seen("No difference follows.")
        await stage.until_seen("difference 11 of 11")


async def test_a_large_result_is_compared_without_blocking_the_app(runtime: Runtime, recorder: Recorder) -> None:
    old: JsonObject = {"items": [{"id": number, "text": "word " * 10} for number in range(40_000)]}
    new: JsonObject = {"items": {"id": 1, "text": "line " * 500_000}}
    recorder.add("gate.shout", {"text": "a"}, result(old))
    recorder.add("gate.shout", {"text": "b"}, result(new))
    async with on_activity(runtime, (80, 24)) as stage:
        await compared(stage)
        assert any("only the first 200,000 characters shown" in line for line in lines(stage))
        assert len(lines(stage)) < 60_000
        await stage.press("end")
        await asyncio.wait_for(stage.pilot.pause(), 10)


async def test_an_error_is_compared_and_never_read_as_markup(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "[/]"}, result("fine"))
    recorder.add("gate.shout", {"text": "[/b]"}, ToolResult.failed("execution_error", "[red]No.[/red]"))
    async with on_activity(runtime) as stage:
        await compared(stage)
        await stage.until_seen("[red]No.[/red]")
        await stage.until_seen('"[/b]"')
