"""jq filters, tables, charts, images, code, and results that are too large for the screen."""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from pydantic import JsonValue
from rich.cells import cell_len
from textual.geometry import Region
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from pegboard.models import ResultMeta, ToolCall, ToolResult, Truncation
from pegboard.results.shorten import shorten
from pegboard.results.stored.client import open_stored
from pegboard.results.stored.values import StoredText
from pegboard.tui.messages import OpenFile
from pegboard.tui.result import export
from pegboard.tui.result.chart import ChartView
from pegboard.tui.result.image import ImageView, image_protocol
from pegboard.tui.result.segments import SegmentView
from pegboard.tui.result.table import TableView
from pegboard.tui.result.text import TextView
from pegboard.tui.result.tree import TreeView

from .pane_stage import OpenStage, Stage

pytestmark = pytest.mark.promise("TUI-9")

FILES: JsonValue = [
    {"name": "b.py", "size": 10, "kind": "file"},
    {"name": "a.py", "size": 9, "kind": "file"},
    {"name": "lib", "kind": "folder"},
    {"name": "c.py", "size": 100, "kind": "file"},
]


def truncated(tmp_path: Path, whole: JsonValue, limit: int = 20_000) -> ToolResult:
    """Return a result whose whole data is in a file."""
    file = tmp_path / "whole.json"
    file.write_text(json.dumps(whole, separators=(",", ":"), ensure_ascii=False))
    data, shown = shorten(whole, limit)
    cut = Truncation(shown_bytes=shown, total_bytes=file.stat().st_size, file=str(file))
    return ToolResult(ok=True, data=json.loads(json.dumps(data)), meta=ResultMeta(truncated=cut))


def table_rows(on: Stage) -> list[str]:
    """Return the first cell of each row."""
    table = on.pane.query_one(TableView)
    return [table.row(index)[0].split()[0] for index in range(table.row_count)]


# The jq filter


async def test_a_jq_filter_shows_its_result_as_you_type_and_escape_restores_the_whole(stage: OpenStage) -> None:
    async with stage(width=120) as on:
        await on.show({"results": FILES, "count": 4})
        await on.press("vertical_line", *"results[] | select(.size > 9) | .name")
        assert "jq .results[] | select(.size > 9) | .name" in on.text
        await on.press("enter")
        await on.until(lambda: '"c.py"' in on.text, "the filtered result is shown")
        assert "b.py" in on.text
        assert "lib" not in on.text
        assert "jq: 2 results · esc shows all · | edits · .results[]" in on.text
        await on.press("C")
        assert json.loads(on.app.clipboard) == ["b.py", "c.py"]
        await on.press("escape")
        assert "count: 4" in on.text.replace("  ", " ") or "count 4" in on.text
        assert "edits" not in on.text


async def test_only_the_file_of_the_filter_that_is_shown_is_kept(
    stage: OpenStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    numbers: list[JsonValue] = [{"number": number, "text": "x" * 100} for number in range(20_000)]
    shown: set[Path] = set()

    def files() -> set[Path]:
        return {*tmp_path.rglob("filtered-*.json")}

    async with stage(width=120) as on:
        await on.show(numbers)
        await on.press("vertical_line")
        for keys in ([*"[1:]"], [*["backspace"] * 3, *"2:]"], [*["backspace"] * 3, *"3:]"]):
            await on.press(*keys)
            await on.until(lambda: bool(files().difference(shown)) and len(files()) == 1, "only the new file is left")
            shown.update(files())


async def test_a_wrong_jq_filter_is_explained_under_the_line_and_keeps_the_result(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show({"a": [1, 2]})
        await on.press("vertical_line", *"a[")
        await on.until(lambda: "syntax error" in on.text, "the error is under the line")
        assert on.text.splitlines()[-2].strip() == "jq .a["
        assert "a: [1, 2]" in on.text or "▾ a" in on.text
        await on.press("escape")
        assert "syntax error" not in on.text


async def test_without_a_folder_for_temporary_files_filter_and_pager_say_what_to_do(
    stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])  # as on a full disk
    async with stage(width=120) as on:
        await on.show({"a": [1, 2]})
        await on.press("vertical_line", "a")
        await on.until(lambda: "free space on the disk, or set TMPDIR" in on.text, "the filter failed")
        await on.press("escape", "f3")
        await on.until(
            lambda: any("The pager was not opened because no temporary file" in one for one in on.app.notices),
            "the pager failed",
        )


async def test_the_first_dot_of_a_jq_filter_may_be_typed_or_not(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show({"a": [1, 2]})
        await on.press("vertical_line", *".a")
        assert "jq .a " in on.text
        await on.press("escape", "vertical_line", *"..", "enter")
        await on.until(lambda: "jq: 4 results" in on.text, "the filter is applied")
        await on.press("vertical_line", "1")
        assert "jq ..1 " in on.text


async def test_a_text_that_is_json_becomes_a_tree_or_a_table_with_the_jq_filter(stage: OpenStage) -> None:
    async with stage(width=120) as on:
        await on.show(json.dumps({"results": FILES}))
        await on.press("vertical_line")
        await on.until(lambda: "[Table]" in on.text, "the objects in the text are a table")
        assert "jq fromjson | . " in on.text
        await on.press(*".re", "tab")
        assert "jq fromjson | .results " in on.text
        await on.press("enter")
        await on.until(lambda: "jq: 1 result" in on.text, "the filter is applied")
        await on.press("escape")
        assert "[Text]" in on.text
        await on.show("[1, 2")
        await on.press("vertical_line")
        assert "jq . " in on.text


async def test_enter_keeps_a_wrong_jq_filter_for_correction(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show({"a": [1, 2]})
        await on.press("vertical_line", *"a[")
        await on.until(lambda: "syntax error" in on.text, "the error is under the line")
        await on.press("enter")
        assert on.focused() == "Input"
        await on.press("0", "]", "enter")
        await on.until(lambda: "jq: 1 result" in on.text, "the corrected filter is applied")
        assert on.focused() != "Input"


async def test_a_jq_filter_that_was_submitted_before_it_failed_stays_with_the_error_for_correction(
    stage: OpenStage,
) -> None:
    async with stage() as on:
        await on.show({"a": [1, 2]})
        await on.press("vertical_line", *"a[")
        await on.app.workers.wait_for_complete()
        await on.press("1", "enter")
        await on.until(lambda: "syntax error" in on.text, "the error is under the line")
        assert on.focused() == "Input"
        assert "jq .a[1 " in on.text
        await on.press("]", "enter")
        await on.until(lambda: "jq: 1 result" in on.text, "the corrected filter is applied")
        await on.until(lambda: on.focused() != "Input", "the line is closed")


async def test_keys_after_a_submitted_jq_filter_that_still_runs_run_no_commands(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show({"a": [1, 2]})
        await on.press("vertical_line", *"a[")
        await on.app.workers.wait_for_complete()
        await on.press("1", "enter", "slash", "backspace", "]", "enter")
        await on.until(lambda: "jq: 1 result" in on.text, "the completed filter is applied")
        await on.until(lambda: on.focused() != "Input", "the line is closed")


async def test_tab_completes_the_paths_of_a_jq_filter_from_the_data(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show({"results": FILES})
        await on.press("vertical_line", *"re", "tab")
        assert "jq .results" in on.text
        await on.press(*"[] | .", "tab", "tab")
        assert "jq .results[] | .size" in on.text
        assert on.focused() == "Input"


async def test_a_jq_filter_can_neither_read_files_nor_the_environment_and_is_stopped(
    stage: OpenStage, tmp_path: Path
) -> None:
    (tmp_path / "x.jq").write_text("def x: 1;")
    async with stage() as on:
        await on.show({"a": 1})
        for text, shown in (
            (' | import "x" as x; .', "imported"),
            (" | env", "{}"),
            (" | [repeat(1)]", "longer than 2 s"),
        ):
            await on.press("vertical_line", "ctrl+u", *f".{text}")
            await on.until(lambda shown=shown: shown in on.text, shown)  # type: ignore[misc]
            await on.press("escape")
        assert "a: 1" in on.text, on.text


# Tables


async def test_numbers_and_their_headings_are_aligned_at_the_right(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show(FILES)
        lines = on.text.splitlines()
        heading = next(line for line in lines if "name" in line and "kind" in line)
        row = next(line for line in lines if "c.py" in line)
        assert heading.index("size") + 4 == row.index("100") + 3
        assert "4 rows" in on.text


async def test_rows_are_filtered_and_sorted_and_columns_hidden_and_the_visible_part_is_saved(
    stage: OpenStage, tmp_path: Path
) -> None:
    async with stage(width=100) as on:
        await on.show(FILES)
        await on.press("f", *".py", "enter")
        assert "3 of 4 rows with .py" in on.text
        await on.press("right", "o")
        assert table_rows(on) == ["a.py", "b.py", "c.py"]
        await on.press("right", "h")
        assert "kind" not in on.text
        await on.press("s", "ctrl+u", *"r.csv", "enter")
        assert (tmp_path / "r.csv").read_text().split() == ["name,size", "a.py,9", "b.py,10", "c.py,100"]
        await on.press("s", "ctrl+u", *"r.json", "enter")
        assert json.loads((tmp_path / "r.json").read_text())[0] == {"name": "a.py", "size": 9}
        await on.press("s", "ctrl+u", *"r.md", "enter")
        assert (tmp_path / "r.md").read_text().splitlines()[:3] == ["| name | size |", "| --- | ---: |", "| a.py | 9 |"]
        await on.press("H", "f", "escape")
        assert table_rows(on)[-1] == "lib", "a row without a value is last"
        assert "kind" in on.text


async def test_a_saved_table_runs_no_formula_in_a_spreadsheet(stage: OpenStage, tmp_path: Path) -> None:
    cells = ["=1+1", "+49 30 1", "-2", "@x", "plain", "é"]
    async with stage() as on:
        await on.show([{"a": cell} for cell in cells])
        await on.press("s", "ctrl+u", *"r.csv", "enter")
    raw = (tmp_path / "r.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf"), "Excel reads UTF-8 only with a mark"
    saved = [row[0] for row in csv.reader(io.StringIO(raw.decode("utf-8-sig")))]
    assert saved == ["a", "'=1+1", "'+49 30 1", "-2", "'@x", "plain", "é"]


async def test_a_result_that_takes_long_to_save_is_reported_meanwhile(
    stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "NOTICE_SECONDS", 0)
    async with stage() as on:
        await on.show([{"a": 1}])
        await on.press("s", "ctrl+u", *"r.csv", "enter")
        await on.until(lambda: len(on.app.notices) == 2, "it is saved")
        assert on.app.notices == ["Saving to r.csv…", "Saved 6 B to r.csv"]


# Charts, images and code


@pytest.mark.parametrize("value", [list(range(100)), [{"name": "a", "size": 3}, {"name": "b\x1b[31m", "size": 9}]])
async def test_numbers_are_shown_as_a_chart(stage: OpenStage, value: JsonValue) -> None:
    async with stage() as on:
        await on.show(value)
        await on.press("V")
        await on.until(lambda: "┤" in on.text, "the chart is drawn")
        assert "numbers from" in on.text
        assert isinstance(on.app.focused, ChartView)


async def test_a_chart_shows_large_numbers_with_all_their_digits(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show([{"x": "a", "size": 37_037_034}, {"x": "b", "size": -1_234_567}, {"x": "c", "size": 0.5}])
        await on.press("V")
        await on.until(lambda: "┤" in on.text, "the chart is drawn")
        assert "size · 3 numbers from -1,234,567 to 37,037,034" in on.text
        assert [line.split()[-1] for line in on.text.splitlines() if "┤" in line] == ["37,037,034", "-1,234,567", "0.5"]


@pytest.mark.parametrize(
    ("values", "across", "upward"),
    [
        ([float(number % 7) for number in range(100)], "0 20 40 60 80", "6 4 2 0"),
        ([0.25, 0.5], "0 1", "0.5 0.45 0.4 0.35 0.3 0.25"),
        (
            [1_000_000 + number for number in range(6_000)],
            "0 1,000 2,000 3,000 4,000 5,000",
            "1,005,000 1,004,000 1,003,000 1,002,000 1,001,000 1,000,000",
        ),
        ([5, 5, 5], "0 1 2", "5"),
    ],
)
async def test_the_axes_of_a_line_are_marked_with_round_numbers(
    stage: OpenStage, values: list[JsonValue], across: str, upward: str
) -> None:
    async with stage() as on:
        await on.show(values)
        await on.press("V")
        await on.until(lambda: "└" in on.text, "the chart is drawn")
        lines = on.text.splitlines()
        axis = next(number for number, line in enumerate(lines) if "└" in line)
        assert lines[axis + 1].split() == across.split()
        assert [line.partition("┤")[0].strip() for line in lines[:axis] if "┤" in line] == upward.split()


async def test_a_chart_is_visible_in_a_theme_of_ansi_colors(stage: OpenStage) -> None:
    async with stage() as on:
        on.app.theme = "ansi-dark"
        await on.show([3, 1, 2])
        await on.press("V")
        await on.until(lambda: "└" in on.text, "the chart is drawn")
        plot = on.pane.query_one("PlotextPlot")
        segments = [one for strip in plot.render_lines(plot.size.region) for one in strip if one.text.strip()]
        assert len(segments) > 5
        colors = [(one.style.color, one.style.bgcolor) for one in segments if one.style is not None]
        assert all(text is None or text.is_default or text != background for text, background in colors)


async def test_each_bar_has_one_line_with_its_label_and_number(stage: OpenStage) -> None:
    sizes = [8, 4.5, 0, 0.001, -2, -4]
    async with stage() as on:
        await on.show([{"name": f"part {number}", "size": size} for number, size in enumerate(sizes)])
        await on.press("V")
        await on.until(lambda: "┤" in on.text, "the chart is drawn")
        lines = [line.rstrip() for line in on.text.splitlines() if "┤" in line]
        bars = {label.strip(): rest for label, _, rest in (line.partition("┤") for line in lines)}
        assert [*bars] == [f"part {number}" for number in range(len(sizes))]
        assert [float(bar.rpartition(" ")[2]) for bar in bars.values()] == sizes
        length = [len(bar.rstrip("0123456789.-").strip(" ")) for bar in bars.values()]
        assert length[0] >= 16
        assert length[2:4] == [0, 1]
        assert length == pytest.approx([length[0] * abs(size) / 8 for size in sizes], abs=1)
        zero = {bar.index("█") for bar in [*bars.values()][:2]}
        assert zero == {bar.rindex("█") + 1 for bar in [*bars.values()][4:]}


async def test_a_chart_offers_no_search(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show([3, 1, 2])
        assert on.pane.check_action("search", ())
        await on.press("V", "slash")
        assert isinstance(on.app.focused, ChartView)
        assert not on.pane.check_action("search", ())


async def test_a_search_is_resumed_after_a_view_that_cannot_be_searched(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show([{"name": "a", "size": 3}, {"name": "b", "size": 9}])
        await on.press("slash", "9", "enter")
        await on.until(lambda: "1 of 1: 9" in on.text, "it is found")
        await on.press("V")
        assert isinstance(on.app.focused, ChartView)
        assert "1 of 1: 9" not in on.text
        await on.press("v")
        await on.until(lambda: "1 of 1: 9" in on.text, "it is found again")
        await on.press("slash", "escape", "V", "v")
        assert "1 of 1: 9" not in on.text


async def test_bars_of_long_labels_and_of_the_largest_numbers_fit_into_a_narrow_pane(stage: OpenStage) -> None:
    async with stage(40, 20) as on:
        await on.show([{"name": "long " * 9, "size": -1e308}, {"name": "b", "size": 1e308}, {"name": "c", "size": 0.5}])
        await on.press("V")
        await on.until(lambda: "┤" in on.text, "the chart is drawn")
        lines = [line.rstrip() for line in on.text.splitlines() if "┤" in line]
        assert [line.split()[-1] for line in lines] == ["-1e+308", "1e+308", "0.5"]
        assert ["█" in line for line in lines] == [True, True, False]
        assert "…" in lines[0]


async def test_bars_begin_in_the_same_column_beside_labels_with_wide_or_combining_characters(stage: OpenStage) -> None:
    names = ["plain", "日本語", "e\u0301te\u0301", "🙂"]
    async with stage() as on:
        await on.show([{"name": name, "size": size} for size, name in enumerate(names, start=1)])
        await on.press("V")
        await on.until(lambda: "┤" in on.text, "the chart is drawn")
        axis = {cell_len(line.partition("┤")[0]) for line in on.text.splitlines() if "┤" in line}
        assert len(axis) == 1


async def test_values_that_cannot_be_drawn_do_not_end_the_app(stage: OpenStage) -> None:
    values: list[JsonValue] = [[1e308, -1e308], [0, 0], [1, *[2] * 300, 10**400], [{"a": 5e-324}, {"a": 1e300}]]
    async with stage() as on:
        for value in values:
            await on.show(value)
            while not isinstance(on.app.focused, ChartView):
                await on.press("V")
            await on.until(lambda: on.pane.query("PlotextPlot"), "there is a chart")
            await on.pilot.pause()
        assert on.app.is_running


def png(width: int = 8, height: int = 8) -> str:
    """Return a picture as base64."""
    out = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


async def test_an_image_of_a_server_is_drawn_and_saved(stage: OpenStage, tmp_path: Path) -> None:
    (tmp_path / "kept.png").write_bytes(base64.b64decode(png(30, 20)))
    async with stage(width=120) as on:
        await on.show(
            [f"image/png, 1 kB: {tmp_path / 'kept.png'}", {"type": "image", "data": png(), "mimeType": "image/png"}]
        )
        await on.until(lambda: "30 × 20 pixels" in on.text, "the first image is drawn")
        await on.until(lambda: on.text.count("▀" * 30) == 10, "half a cell shows one pixel")
        await on.press("right")
        await on.until(lambda: "8 × 8 pixels" in on.text, "the second image is drawn")
        assert f"{len(base64.b64decode(png()))} B" in on.text
        await on.press("s")
        assert ".png" in on.text.splitlines()[-1]
        await on.press("ctrl+u", *"r.png", "enter")
        assert (tmp_path / "r.png").read_bytes() == base64.b64decode(png())
        await on.show({"dots": 1}, ResultMeta(content=(f"image/png, 1 kB: {tmp_path / 'kept.png'}",)))
        await on.until(lambda: "30 × 20 pixels" in on.text, "the image beside structured content is drawn")


@pytest.mark.promise("SEC-5", "MCP-8")
async def test_only_the_file_of_an_image_that_a_call_saved_is_copied(stage: OpenStage, tmp_path: Path) -> None:
    (tmp_path / "copies" / "results").mkdir(parents=True)
    (tmp_path / "copies" / "results" / "call-1.png").write_bytes(base64.b64decode(png()))
    (tmp_path / "private").write_text("key")
    async with stage(width=120) as on:
        for file, problem in (("private", "is not a file that Pegboard saved"), ("copies/results/call-1.png", "")):
            await on.show(f"image/png, 1 kB: {tmp_path / file}")
            await on.press("s", "ctrl+u", *"r.png", "enter")
            await on.until(lambda: on.app.notices, "the outcome is reported")
            assert problem in on.app.notices.pop()
            assert (tmp_path / "r.png").exists() is not bool(problem)
        assert (tmp_path / "r.png").read_bytes() == base64.b64decode(png())


async def test_the_image_that_is_shown_is_opened(
    stage: OpenStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    lines: list[JsonValue] = []
    for name in ("one.png", "two.png"):
        (tmp_path / name).write_bytes(base64.b64decode(png()))
        lines.append(f"image/png, 1 kB: {tmp_path / name}")
    async with stage(width=120) as on:
        monkeypatch.setattr(on.pane, "post_message", _recorded(on.pane.post_message, opened))
        await on.show({"figures": lines, "encoded": {"type": "image", "data": png(), "mimeType": "image/png"}})
        await on.press("o", "right", "o", "right", "o")
        assert opened == [str(tmp_path / "one.png"), str(tmp_path / "two.png")]


def _recorded(post: Callable[[Message], bool], opened: list[str]) -> Callable[[Message], bool]:
    """Return a function that posts a message and notes the files to open."""

    def posted(message: Message) -> bool:
        opened.extend([message.file] if isinstance(message, OpenFile) else [])
        return post(message)

    return posted


async def test_an_object_whose_base64_was_saved_to_a_file_is_drawn(stage: OpenStage, tmp_path: Path) -> None:
    (tmp_path / "kept.png").write_bytes(base64.b64decode(png(30, 20)))
    async with stage(width=120) as on:
        await on.show({"mimeType": "image/png", "data": f"image/png, 1 kB: {tmp_path / 'kept.png'}"})
        await on.until(lambda: "30 × 20 pixels" in on.text, "the image is drawn")


async def test_an_image_with_a_wrong_checksum_in_its_color_profile_is_drawn(stage: OpenStage, tmp_path: Path) -> None:
    image = base64.b64decode(png())
    header = image.index(b"IDAT") - 4
    profile = b"\0\0\0\x05iCCPa\0\0xy" + b"\0\0\0\0"
    (tmp_path / "odd.png").write_bytes(image[:header] + profile + image[header:])
    async with stage() as on:
        await on.show(f"image/png, 1 kB: {tmp_path / 'odd.png'}")
        await on.until(lambda: "8 × 8 pixels" in on.text, "the image is drawn")


async def test_damaged_and_huge_images_are_reported(stage: OpenStage, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.png"
    Image.new("1", (30_000, 30_000)).save(bomb)
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    async with stage(width=120) as on:
        for file, shown in (
            (bomb, "more than 40,000,000 pixels"),
            (tmp_path / "broken.png", "image"),
            (tmp_path / "gone.png", "No such file"),
        ):
            await on.show(f"image/png, 1 kB: {file}")
            room = on.pane.query_one(ImageView)
            await on.until(lambda room=room, shown=shown: shown in on.text and room.query("Center > Static"), shown)  # type: ignore[misc]
        assert not on.pane.query_one(ImageView).query("HalfcellImage")


@pytest.mark.parametrize(
    ("environ", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "sixel"),
        ({"TERM": "foot"}, "sixel"),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, "blocks"),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/x"}, "blocks"),
        ({}, "blocks"),
    ],
)
def test_the_terminal_draws_images_if_it_can(environ: dict[str, str], protocol: str) -> None:
    assert image_protocol(environ) == protocol


async def test_kitty_gets_something_to_draw_while_an_image_is_shown_since_it_loads_it_late(
    stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "__stdout__", io.StringIO())
    async with stage(width=120) as on:
        monkeypatch.setenv("TERM", "xterm-kitty")
        monkeypatch.delenv("TMUX", raising=False)
        monkeypatch.delenv("STY", raising=False)
        drawn: list[Widget] = []
        refresh = Static.refresh

        def noted(widget: Static, *regions: Region, **options: bool) -> Static:
            drawn.append(widget)
            return refresh(widget, *regions, **options)

        monkeypatch.setattr(Static, "refresh", noted)
        await on.show({"type": "image", "data": png(), "mimeType": "image/png"})
        await on.until(lambda: "8 × 8 pixels" in on.text, "the image is drawn")
        drawn.clear()
        caption = on.pane.query_one(ImageView).query_one(".caption", Static)
        await on.until(lambda: drawn.count(caption) > 1, "its caption is drawn again")


async def test_code_is_colored_by_the_type_of_its_file(stage: OpenStage) -> None:
    async with stage() as on:
        on.pane.show(
            ToolCall(name="fs.read_file", args={"path": "src/x.py"}, source="form"),
            ToolResult(ok=True, data='def f():\n    return "x" # why\n'),
        )
        await on.pilot.pause()
        view = on.pane.query_one(TextView)
        await on.until(lambda: view.row(0)[1], "the code is colored")
        assert (0, 3, "key") in view.row(0)[1]
        assert {kind for _, _, kind in view.row(1)[1]} == {"key", "string", "muted"}


# Results that are too large for the screen


@pytest.mark.promise("EXE-6")
async def test_every_row_of_a_large_table_is_reached_sorted_filtered_and_saved(
    stage: OpenStage, tmp_path: Path
) -> None:
    rows: JsonValue = [{"id": number, "name": f"näme {number * 7919 % 50_000}"} for number in range(50_000)]
    async with stage(width=120) as on:
        await on.show_result(truncated(tmp_path, rows))
        await on.until(lambda: "50,000 rows" in on.text, "the file is open")
        await on.press("end")
        assert "49999" in on.text
        await on.press("o", "o", "home")
        assert table_rows(on)[0] == "49999"
        await on.press("f", *"4999", "enter")
        await on.until(lambda: "of 50,000 rows with 4999" in on.text, "the rows of the file are filtered")
        shown = [row for row in rows if "4999" in str(row["id"]) or "4999" in str(row["name"])]  # type: ignore[union-attr,index,call-overload]
        assert on.pane.query_one(TableView).row_count == len(shown)
        await on.press("s", "ctrl+u", *"r.csv", "enter")
        assert len((tmp_path / "r.csv").read_text(encoding="utf-8-sig").splitlines()) == len(shown) + 1


async def test_the_cursor_stays_in_sight_when_the_file_of_a_table_opens(
    stage: OpenStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_pressed = asyncio.Event()

    async def open_after_the_key(result: ToolResult) -> JsonValue | StoredText:
        await is_pressed.wait()
        return await open_stored(result)

    monkeypatch.setattr("pegboard.tui.result.whole.open_stored", open_after_the_key)
    rows: JsonValue = [{"id": number, "name": f"name {number}"} for number in range(50_000)]
    async with stage(width=120) as on:
        await on.show_result(truncated(tmp_path, rows))
        await on.pilot.press("end")
        last = on.pane.query_one(TableView).row_count - 1
        is_pressed.set()
        await on.until(lambda: on.pane._views.is_whole, "the file is open")
        await on.until(lambda: f"name {last} " in on.text, "the row of the cursor is shown")


async def test_a_search_says_that_it_covered_only_the_part_shown_and_can_cover_the_whole(
    stage: OpenStage, tmp_path: Path
) -> None:
    items: JsonValue = [{"n": number, "in": ["x"] * 3} for number in range(40_000)]
    whole: JsonValue = {"a": {"items": items, "last": "x needle"}, "b": [{"needle": 1}, *range(60_000)]}
    async with stage(width=120) as on:
        await on.show_result(truncated(tmp_path, whole))
        await on.until(lambda: on.pane._views.is_whole, "the file is open")
        await on.press("slash", *"39999", "enter")
        assert "no match in the part shown: 39999 · w searches all" in on.text
        await on.press("w")
        await on.until(lambda: "1 of 2 in all" in on.text, "the whole has been searched")
        assert on.pane.query_one(TreeView).path == ("a", "items", 39_999, "n")
        await on.press("p")
        assert on.app.clipboard == ".a.items[39999].n"


async def test_a_large_list_in_a_large_result_is_copied_as_a_whole_unless_it_is_too_large(
    stage: OpenStage, tmp_path: Path
) -> None:
    items: list[JsonValue] = [{"n": number, "of": ["x"] * 3} for number in range(20_000)]
    more: JsonValue = ["y" * 1_000] * 11_000
    async with stage(width=120) as on:
        await on.show_result(truncated(tmp_path, {"a": {"items": items}, "more": more}))
        await on.until(lambda: on.pane._views.is_whole, "the file is open")
        await on.press("down", "c")
        assert json.loads(on.app.clipboard) == {"items": items}
        on.pane.query_one(TreeView).go(("a", "items"))
        await on.press("c")
        assert json.loads(on.app.clipboard) == items
        await on.press("home", "c")
        assert on.app.notices[-1] == "12 MB are too much to copy. Press s to save the complete result."
        assert json.loads(on.app.clipboard) == items


async def test_the_part_of_a_large_text_that_is_shown_is_copied(stage: OpenStage, tmp_path: Path) -> None:
    text = "\n".join(f"line {number}\tof \x1b[1mtext" for number in range(50_000))
    async with stage(width=120) as on:
        await on.show_result(truncated(tmp_path, text))
        await on.until(lambda: on.pane.query(SegmentView), "the file is open")
        copied = []
        for key in ("c", "C", "c"):
            await on.press(key)
            copied.append(on.app.clipboard)
            message = "Copied only the part that is shown. Press s to save the complete result."
            assert message in on.app.notices
            await on.press("right")
        assert text.startswith("".join(copied)), "each part is copied as it is"
        assert len(set(copied)) == 3


@pytest.mark.parametrize("suffix", ["csv", "md", "json"])
async def test_rows_with_large_values_are_saved_as_a_whole(stage: OpenStage, tmp_path: Path, suffix: str) -> None:
    rows: list[JsonValue] = [{"id": 2, "list": [*range(50_000)]}, {"id": 1, "list": [*range(60_000)]}]
    file = tmp_path / f"saved.{suffix}"
    async with stage(width=120) as on:
        await on.show_result(truncated(tmp_path, rows))
        await on.until(lambda: on.pane._views.is_whole, "the file is open")
        await on.press("o")
        await on.until(lambda: on.pane.query_one(TableView).table.is_arranged, "the rows are sorted")
        await on.press("s", "ctrl+u", *str(file), "enter")
    assert "59999]" in file.read_text().replace("\\", "")


async def test_all_parts_of_a_large_text_are_reached(stage: OpenStage, tmp_path: Path) -> None:
    text = 'ein Wört \\ "x" 😀\t' * 60_000 + "needle at the end"
    async with stage(width=120) as on:
        await on.show_result(truncated(tmp_path, text))
        await on.until(lambda: on.pane.query(SegmentView), "the file is open")
        view = on.pane.query_one(SegmentView)

        def turns() -> set[str]:
            return {one.binding.description for one in on.app.screen.active_bindings.values()} & {
                "Next part",
                "Previous part",
            }

        await on.until(lambda: turns() == {"Next part"}, "there is only a next part")
        await on.press("right")
        assert turns() == {"Next part", "Previous part"}
        await on.press("ctrl+end", "end")
        assert turns() == {"Previous part"}
        assert "needle at the end" in on.text
        await on.press("ctrl+home", "slash", *"needle", "enter", "w")
        await on.until(lambda: "1 of 1 in all" in on.text, "the whole has been searched")
        assert view.overlays(view.row_count - 1), "the match is marked"


async def test_each_part_of_a_large_text_is_searched_when_it_is_shown(stage: OpenStage, tmp_path: Path) -> None:
    lines = [f"line {number} needle" if number % 10_000 == 7 else f"line {number} of text" for number in range(70_000)]
    async with stage(width=120) as on:
        await on.show_result(truncated(tmp_path, "\n".join(lines)))
        await on.until(lambda: on.pane.query(SegmentView), "the file is open")
        view = on.pane.query_one(SegmentView)

        def marked() -> list[str]:
            return [view.row(index)[0] for index in range(view.row_count) if view.overlays(index)]

        await on.press("slash", *"needle", "enter")
        assert ("1 of 3 in the part shown: needle" in on.text, marked()) == (True, ["line 7 needle"])
        await on.press("right")
        assert ("2 matches in the part shown: needle" in on.text, marked()) == (True, [])
        await on.press("n")
        assert ("1 of 2 in the part shown: needle" in on.text, marked()) == (True, ["line 30007 needle"])
        await on.press("w")
        await on.until(lambda: "1 of 7 in all" in on.text, "the whole has been searched")
        await on.press("n", "n", "right")
        assert "3 of 7 in all" in on.text
        await on.press("n")
        assert ("4 of 7 in all" in on.text, marked()) == (True, ["line 30007 needle"])


@pytest.mark.parametrize(
    ("whole", "part", "other"),
    [
        ([{"id": number, "name": "x" * 40} for number in range(5_000)], "text", "tree"),
        ([*({"id": number} for number in range(5_000)), 7], "table", "tree"),
        ({"stdout": "printed line\n" * 9_000, "exit_code": 0}, "output", "tree"),
        ("# Title\n\nSome *words* of a long text.\n" * 3_000, "markdown", "text"),
    ],
    ids=["text", "table", "output", "markdown"],
)
@pytest.mark.promise("EXE-6")
async def test_a_view_that_shows_only_the_beginning_of_a_large_result_names_a_view_that_shows_all(
    whole: JsonValue, part: str, other: str, stage: OpenStage, tmp_path: Path
) -> None:
    async with stage() as on:
        await on.show_result(truncated(tmp_path, whole))
        await on.until(lambda: on.pane._views.is_whole, "the file is open")
        for _ in on.pane._views.offered:
            if on.pane._views.shown == part:
                break
            await on.press("v")
        assert f"as {part}, all as {other} (v)" in on.text, on.text
        assert "! Only" in on.text
        while on.pane._views.shown != other:
            await on.press("v")
        assert "read from the file as you scroll" in on.text
        assert "! Only" not in on.text


async def test_a_jq_filter_runs_on_the_whole_of_a_large_result(stage: OpenStage, tmp_path: Path) -> None:
    async with stage(width=120) as on:
        await on.show_result(truncated(tmp_path, [{"id": number} for number in range(30_000)]))
        await on.press("vertical_line", *"[29990:] | map(.id)", "enter")
        await on.until(lambda: "29999" in on.text, "the end of the list is shown")
        assert "truncated" in on.text, "the status line is about the call"
        assert not any(str(line.render()).startswith("! Only") for line in on.pane.query(Static) if line.display)
