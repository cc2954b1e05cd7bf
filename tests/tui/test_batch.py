"""The dialog that runs a tool over a file, on the real runtime."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from stage import Stage, on_stage
from textual.widgets import Input

from pegboard.batch.results import RowResult
from pegboard.runtime import Runtime
from pegboard.tui.dialogs.ask_name import AskName
from pegboard.tui.dialogs.result import ResultScreen
from pegboard.tui.tools.batch import BatchScreen
from pegboard.tui.tools.batch_text import row_line
from pegboard.tui.widgets.pick_list import PickList

pytestmark = pytest.mark.promise("BAT-1")

PACK = '''
from pathlib import Path
from pegboard.sdk import ToolFailed, hints

@hints(read_only=True)
def read_even(*, number: int, marker: str = "") -> int:
    """Accepts even numbers, and odd ones once a file exists."""
    if number % 2 and not Path(marker).is_file():
        raise ToolFailed(f"[b]{number}[/b] is odd.", code="odd")
    return 10 * number
'''

SLOW_PACK = PACK.replace("    if number", "    time.sleep(0.05)\n    if number").replace(
    "from pathlib", "import time\nfrom pathlib"
)


@pytest.fixture
def runtime(write_pack: Callable[[str, str], Path]) -> Runtime:
    return Runtime.from_environment(packs=[write_pack("numbers.py", PACK)])


async def open_dialog(stage: Stage) -> BatchScreen:
    """Open the dialog for the tool."""
    await stage.open("read_even")
    await stage.screen.run_action("batch")
    await stage.until(lambda: isinstance(stage.app.screen, BatchScreen), "the dialog is open")
    screen = stage.app.screen
    assert isinstance(screen, BatchScreen)
    return screen


async def exported(stage: Stage, out: Path) -> dict[str, str]:
    """Export the results to the suggested file, and return for each row whether it succeeded."""
    screen = stage.app.screen
    await stage.press("ctrl+s")
    await stage.until(lambda: isinstance(stage.app.screen, AskName), "a file is asked for")
    await stage.press("enter")
    await stage.until(lambda: stage.app.screen is screen, "the dialog is back")
    await stage.until(out.exists, "the results are exported")
    with out.open(newline="") as file:
        return {row["row"]: row["ok"] for row in csv.DictReader(file)}


@pytest.mark.parametrize(
    ("milliseconds", "shown"), [(0.013, "<0.1 ms"), (0.4, "0.4 ms"), (12, "12 ms"), (61_000, "1 min 1 s")]
)
def test_the_duration_of_a_row_is_shown_as_that_of_any_call(milliseconds: float, shown: str) -> None:
    assert row_line(RowResult(row=1, ok=True, data=5, duration_ms=milliseconds)).note == shown


async def test_a_file_is_mapped_previewed_run_filtered_retried_and_exported(runtime: Runtime, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    rows = "".join(f"{number},{marker},x\n" for number in (*range(1, 7), "seven"))
    (tmp_path / "in.csv").write_text(f"count,marker,more\n{rows}")
    async with on_stage(runtime, size=(120, 40)) as stage:
        screen = await open_dialog(stage)
        await stage.type(str(tmp_path / "in.csv"))
        await stage.until_seen("requires `number`")
        await stage.press("enter")
        await stage.type("number=count")
        await stage.until_seen("row 2: numbers.read_even")
        assert any("ignored: more" in line for line in stage.lines)
        await stage.press("enter")
        await stage.until_seen("with every row.")
        assert screen.query_one(PickList).row_count == 0, "nothing has run"
        await stage.press("ctrl+r")
        await stage.until_seen("7 rows, 4 failed")
        await stage.until_seen("[b]3[/b] is odd.")
        pick = screen.query_one(PickList)
        assert pick.row_count == 7
        await stage.press("f3")
        await stage.until(lambda: pick.row_count == 4, "only the failures are listed")
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, ResultScreen), "the result of a row is open")
        await stage.until_seen('Row 1 of numbers.read_even {"number": 1, "marker": ')
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is screen, "it is closed")
        marker.touch()
        await stage.press("f6")
        await stage.until_seen("4 rows retried, 1 failed")
        await stage.press("f3")
        await stage.until(lambda: pick.row_count == 7, "every row is listed once, with its last result")
        await stage.press("ctrl+s")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "a file is asked for")
        await stage.press("enter")
        out = tmp_path / "in.results.csv"
        await stage.until(out.exists, "the results are exported")
        await stage.until(lambda: stage.app.screen is screen, "the dialog is back")
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.screen, "the dialog is closed")
    with out.open(newline="") as file:
        found = sorted((int(row["row"]), row["ok"], row["data"]) for row in csv.DictReader(file))
    assert found == [*((number, "true", str(10 * number)) for number in range(1, 7)), (7, "false", "")]
    assert not [*(runtime.paths.state / "batches").iterdir()]
    assert {record.source for record in Runtime.from_environment().history.records()} == {"batch"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "names of its columns"),
        ('number\n"1', "doesn't end"),
        ("other\n1\n", "No column of the file"),
        (None, "No such"),
    ],
)
async def test_a_file_that_cannot_be_used_is_a_message(
    runtime: Runtime, tmp_path: Path, content: str | None, words: str
) -> None:
    file = tmp_path / "in.csv"
    if content is not None:
        file.write_text(content)
    async with on_stage(runtime, size=(160, 40)) as stage:
        screen = await open_dialog(stage)
        await stage.type("~no-such-user/in.csv")
        await stage.until_seen("No such file")
        screen._file.value = str(file)
        await stage.until_seen(words)
        await stage.until(lambda: "no-such-user" not in str(screen._preview.content), "the file is previewed")
        await stage.press("ctrl+r")
        await stage.until(lambda: words in str(screen._status.content), "running says so too")
        await stage.until(lambda: not str(screen._preview.content), "the error is shown once")
        assert not any("--" in line for line in stage.lines), "no options of the command line"


async def test_a_batch_of_scripts_runs_only_after_confirmation(home: Path, tmp_path: Path) -> None:
    (home / "config.toml").write_text("[scripts]\noffer = true\n")
    file = tmp_path / "scripts.jsonl"
    file.write_text('{"commands": "echo a"}\n')
    async with on_stage(Runtime.from_environment(), size=(160, 40)) as stage:
        await stage.open("script.run")
        await stage.screen.run_action("batch")
        await stage.until(lambda: isinstance(stage.app.screen, BatchScreen), "the dialog is open")
        await stage.type(str(file))
        await stage.until_seen("echo a")
        await stage.press("ctrl+r")
        await stage.until_seen("script.run runs scripts, which may")
        await stage.press("n")
        await stage.until(lambda: isinstance(stage.app.screen, BatchScreen), "it is answered")
        assert not Runtime.from_environment().history.records()


async def test_a_batch_that_was_interrupted_by_quitting_is_continued_later(
    runtime: Runtime, tmp_path: Path, write_pack: Callable[[str, str], Path]
) -> None:
    write_pack("numbers.py", SLOW_PACK)
    file = tmp_path / "in.jsonl"
    file.write_text("".join(f'{{"number": {number}}}\n' for number in range(1, 201)))
    async with on_stage(runtime, size=(120, 40)) as stage:
        screen = await open_dialog(stage)
        await stage.type(str(file))
        await stage.press("ctrl+r")
        await stage.until(lambda: screen._recent, "rows run")
    again = Runtime.from_environment(packs=[write_pack("numbers.py", PACK)])
    async with on_stage(again, size=(120, 40)) as stage:
        await stage.press("escape")  # the filter of the tool list is remembered
        screen = await open_dialog(stage)
        await stage.type(str(file))
        await stage.until_seen("This batch was interrupted. alt+g resumes it")
        await stage.press("alt+g")
        await stage.until(lambda: screen._batch is None and len(screen._failed) == 100, "all rows have run")
        assert screen._batch is None
        (part,) = screen._parts
        assert sorted(result["row"] for result in map(json.loads, part.read_text().splitlines())) == [*range(1, 201)]
        await stage.until_seen("200 rows, 100 failed")
        await stage.until_seen("✗      1  ")
        await stage.press("f3")
        await stage.until(lambda: screen._list.row_count == 100, "the failures before the interruption are listed, too")
        await stage.press("escape")
    assert not [*(runtime.paths.state / "batches").iterdir()]


async def test_the_status_of_a_batch_fits_into_a_small_terminal(runtime: Runtime, tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("number,other\n2,a\n4,b\n6,c\n")
    async with on_stage(runtime) as stage:
        await open_dialog(stage)
        await stage.type(str(file))
        await stage.press("ctrl+r")
        await stage.until_seen("3 rows, 0 failed")
        await stage.pilot.resize_terminal(40, 12)
        await stage.until_seen("3 rows, 0 failed")


@pytest.mark.promise("TUI-7")
async def test_the_footer_has_every_key_of_a_stopped_batch_in_a_small_terminal(
    runtime: Runtime, tmp_path: Path, write_pack: Callable[[str, str], Path]
) -> None:
    write_pack("numbers.py", SLOW_PACK)
    file = tmp_path / "in.jsonl"
    file.write_text('{"number": 1}\n' + '{"number": 2}\n' * 1_000)
    async with on_stage(runtime, size=(80, 24)) as stage:
        screen = await open_dialog(stage)
        await stage.type(str(file))
        await stage.press("ctrl+r")
        await stage.until(lambda: screen._recent and screen._failed, "rows run")
        await stage.press("escape")
        await stage.until_seen("Stopped.")
        await stage.until_seen("⏎ Open  ^r Run  alt+g Resume  f3 Failed  f6 Retry  ^s Export  esc Close")


async def test_escape_stops_a_batch_first(
    runtime: Runtime, tmp_path: Path, write_pack: Callable[[str, str], Path]
) -> None:
    write_pack("numbers.py", SLOW_PACK)
    file = tmp_path / "in.jsonl"
    file.write_text('{"number": 2}\n' * 1_000)
    async with on_stage(runtime, size=(120, 40)) as stage:
        screen = await open_dialog(stage)
        await stage.type(str(file))
        await stage.press("ctrl+r")
        await stage.until(lambda: screen._recent, "rows run")
        assert "esc Stop" in stage.text
        assert "esc Close" not in stage.text
        await stage.press("escape")
        await stage.until_seen("Stopped.")
        assert stage.app.screen is screen
        await stage.until_seen("esc Close")
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.screen, "the dialog is closed")


async def test_the_filter_of_the_rows_is_shown_and_stays_while_the_batch_runs(
    runtime: Runtime, tmp_path: Path, write_pack: Callable[[str, str], Path]
) -> None:
    write_pack("numbers.py", SLOW_PACK)
    file = tmp_path / "in.jsonl"
    file.write_text('{"number": 3}\n' + '{"number": 2}\n' * 1_000)
    async with on_stage(runtime, size=(120, 40)) as stage:
        screen = await open_dialog(stage)
        pick = screen._list
        await stage.type(str(file))
        await stage.press("ctrl+r")
        await stage.until(lambda: pick.total > 1, "rows run")
        pick.focus()
        await stage.type("odd")
        await stage.until_seen("/ odd▏")
        before = pick.total
        await stage.until(lambda: pick.total > before, "further rows are listed")
        assert (pick.sought, pick.row_count) == ("odd", 1)
        await stage.press("f3")
        await stage.until(lambda: pick.total == 1, "only the failures are listed")
        assert pick.sought == "odd"
        await stage.press("ctrl+u")
        await stage.until(lambda: "/ odd" not in stage.text, "the line is hidden without a filter")
        await stage.press("escape")
        await stage.until_seen("Stopped.")


@pytest.mark.parametrize(
    ("field", "other"), [("maps", "number=count"), ("maps", "number=nothing"), ("file", "other.csv")]
)
async def test_failed_rows_are_retried_and_results_exported_with_the_inputs_that_ran_only(
    runtime: Runtime, tmp_path: Path, field: str, other: str
) -> None:
    (tmp_path / "in.csv").write_text("number,count\n1,2\n2,4\n3,6\n")
    (tmp_path / "other.csv").write_text("number\n8\n")
    async with on_stage(runtime, size=(160, 40)) as stage:
        screen = await open_dialog(stage)
        await stage.type(str(tmp_path / "in.csv"))
        await stage.press("ctrl+r")
        await stage.until_seen("3 rows, 2 failed")
        changed = screen.query_one(f"#{field}", Input)
        earlier = changed.value
        changed.value = str(tmp_path / other) if field == "file" else other
        for key in ("f6", "ctrl+s"):
            await stage.press(key)
            await stage.until_seen("The inputs have changed")
            stage.app.clear_notifications()
            await stage.until(lambda: "The inputs have changed" not in stage.text, "the message is gone")
        if other == "number=nothing":
            await stage.press("ctrl+r")
            await stage.until(lambda: "nothing" in str(screen._status.content), "this mapping can't be used")
        changed.value = earlier
        await stage.press("f6")
        await stage.until_seen("2 rows retried, 2 failed")
        assert await exported(stage, tmp_path / "in.results.csv") == {"1": "false", "2": "true", "3": "false"}


async def test_a_stopped_retry_keeps_the_failed_rows_that_it_did_not_reach(
    runtime: Runtime, tmp_path: Path, write_pack: Callable[[str, str], Path]
) -> None:
    write_pack("numbers.py", SLOW_PACK)
    (tmp_path / "in.jsonl").write_text('{"number": 1}\n{"number": 2}\n' * 50)
    async with on_stage(runtime, size=(120, 40)) as stage:
        screen = await open_dialog(stage)
        await stage.type(str(tmp_path / "in.jsonl"))
        await stage.press("ctrl+r")
        await stage.until_seen("100 rows, 50 failed")
        await stage.press("f6")
        await stage.until(lambda: screen._batch is not None and screen._batch.progress.done, "rows are retried")
        await stage.press("escape")
        await stage.until_seen("Stopped.")
        assert "50 rows retried" not in stage.text
        pick = screen.query_one(PickList)
        assert pick.row_count == 100
        await stage.press("f3")
        await stage.until(lambda: pick.row_count == 50, "all failures are listed")
        await stage.press("f6")
        await stage.until_seen("50 rows retried, 50 failed")


async def test_rows_of_a_stopped_batch_that_a_retry_fixed_are_not_failed_in_the_dialog_that_continues_it(
    runtime: Runtime, tmp_path: Path, write_pack: Callable[[str, str], Path]
) -> None:
    write_pack("numbers.py", SLOW_PACK)
    marker = tmp_path / "marker"
    (tmp_path / "in.jsonl").write_text(f'{{"number": 1, "marker": "{marker}"}}\n' * 60)
    async with on_stage(runtime, size=(120, 40)) as stage:
        screen = await open_dialog(stage)
        await stage.type(str(tmp_path / "in.jsonl"))
        await stage.press("ctrl+r")
        await stage.until(lambda: screen._failed, "rows fail")
        await stage.press("escape")
        await stage.until_seen("alt+g resumes.")
        marker.touch()
        await stage.press("f6")
        await stage.until_seen("retried, 0 failed")
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.screen, "the dialog is closed")
        await stage.press("f5", "escape")
        screen = await open_dialog(stage)
        await stage.type(str(tmp_path / "in.jsonl"))
        await stage.until_seen("This batch was interrupted.")
        await stage.press("alt+g")
        await stage.until(lambda: screen._parts and screen._batch is None, "all rows have run")
        assert not screen._failed
        results = await exported(stage, tmp_path / "in.results.csv")
        assert results == {str(row): "true" for row in range(1, 61)}


async def test_the_name_of_an_export_that_cant_be_written_can_be_corrected(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("number\n1\n2\n")
    kept = tmp_path / "in.results.csv"
    kept.write_text("kept")
    async with on_stage(runtime, size=(120, 40)) as stage:
        await open_dialog(stage)
        await stage.type(str(tmp_path / "in.csv"))
        await stage.press("ctrl+r")
        await stage.until_seen("2 rows, 1 failed")
        await stage.press("ctrl+s")
        await stage.until_seen("Export the results to")
        await stage.press("enter")
        await stage.until_seen("This file exists.")
        await stage.press(*["left"] * len("in.results.csv"))
        await stage.type("none/")
        await stage.press("enter")
        await stage.until_seen("No such file or directory")
        await stage.press(*["left"] * len("in.results.csv"), *["backspace"] * len("none/"))
        await stage.type("new-")
        await stage.press("enter")
        await stage.until((tmp_path / "new-in.results.csv").exists, "the results are exported")
    assert kept.read_text() == "kept"


async def test_two_apps_with_the_same_inputs_have_results_of_their_own(
    runtime: Runtime, tmp_path: Path, write_pack: Callable[[str, str], Path]
) -> None:
    (tmp_path / "in.csv").write_text("number\n1\n2\n")
    async with on_stage(runtime, size=(120, 40)) as stage:
        await open_dialog(stage)
        await stage.type(str(tmp_path / "in.csv"))
        await stage.press("ctrl+r")
        await stage.until_seen("2 rows, 1 failed")
        again = Runtime.from_environment(packs=[write_pack("numbers.py", PACK)])
        async with on_stage(again, size=(120, 40)) as other:
            await other.press("escape")  # the filter of the tool list is remembered
            await open_dialog(other)
            await other.type(str(tmp_path / "in.csv"))
            await other.press("ctrl+r")
            await other.until_seen("2 rows, 1 failed")
            await other.press("escape")
            await other.until(lambda: other.app.screen is other.screen, "the dialog is closed")
        assert await exported(stage, tmp_path / "in.results.csv") == {"1": "false", "2": "true"}
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.screen, "the dialog is closed")
    assert not [*(runtime.paths.state / "batches").iterdir()]


async def test_a_batch_follows_the_file_of_its_tool(
    runtime: Runtime, write_pack: Callable[[str, str], Path], tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text("count\n2\n4\n")
    async with on_stage(runtime, size=(120, 40)) as stage:
        await open_dialog(stage)
        await stage.type(str(tmp_path / "in.csv"))
        await stage.until_seen("No column of the file is a parameter of numbers.read_even.")
        write_pack(
            "numbers.py",
            PACK.replace("number:", "count:")
            .replace("{number}", "{count}")
            .replace("number %", "count %")
            .replace("* number", "* count"),
        )
        await stage.until_seen('row 2: numbers.read_even {"count": 4}')
        await stage.press("ctrl+r")
        await stage.until_seen("2 rows, 0 failed")


async def test_a_batch_whose_pack_is_broken_keeps_the_earlier_results(
    runtime: Runtime, write_pack: Callable[[str, str], Path], tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text("number\n1\n2\n")
    async with on_stage(runtime, size=(160, 40)) as stage:
        await open_dialog(stage)
        await stage.type(str(tmp_path / "in.csv"))
        await stage.until_seen("row 2: numbers.read_even")
        await stage.press("ctrl+r")
        await stage.until_seen("2 rows, 1 failed")
        write_pack("numbers.py", f"{PACK}def broken(:\n")
        for key in ("ctrl+r", "f6"):
            await stage.press(key)
            await stage.until_seen(
                "Nothing was run. No tool is named 'numbers.read_even' because its pack has a problem"
            )
            assert await exported(stage, tmp_path / "in.results.csv") == {"1": "false", "2": "true"}
            (tmp_path / "in.results.csv").unlink()
