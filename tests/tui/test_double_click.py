"""Clicks on what moves before the release, and selection by a double click and by dragging."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from stage import GivenRuntime, on_stage, tool
from textual import events
from textual.widgets import Input, TextArea

from pegboard.models import ToolResult
from pegboard.tui.result.text import TextView
from pegboard.tui.widgets.double_click import word_at


@pytest.mark.promise("TUI-3")
async def test_typed_text_replaces_the_word_under_a_double_click_and_the_text_under_a_triple_click(
    given: GivenRuntime,
) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.type("notes of monday.txt")
        await stage.pilot.click(stage.app.focused, offset=(14, 0), times=2)
        await stage.type("june")
        assert stage.form.form is not None
        assert stage.form.form.draft() == {"path": "notes of june.txt"}
        await stage.pilot.click(stage.app.focused, offset=(14, 0), times=3)
        await stage.type("x")
        assert stage.form.form.draft() == {"path": "x"}


@pytest.mark.promise("TUI-3")
async def test_a_click_chooses_the_value_under_the_mouse_although_the_description_above_it_unfolds_meanwhile(
    given: GivenRuntime,
) -> None:
    long = "Whether to delete it, " + "which can't be undone, " * 5
    given.found = [tool("mail.send", to={"type": "string"}, gone={"type": "boolean", "description": long})]
    async with on_stage(given, size=(80, 24)) as stage:
        await stage.open("send")
        y = next(row for row, line in enumerate(stage.lines) if "true" in line)
        x = stage.lines[y].index("true")
        await stage.mouse(events.MouseDown, x, y)
        await stage.until(lambda: "true" not in stage.lines[y], "the description is unfolded")
        await stage.mouse(events.MouseUp, x, y)
        assert stage.form.form is not None
        assert stage.form.form.draft() == {"gone": True}


@pytest.mark.promise("TUI-3")
async def test_a_double_click_selects_a_word_of_one_of_several_lines(given: GivenRuntime) -> None:
    given.found = [tool("mail.send", body={"type": "string"})]
    async with on_stage(given) as stage:
        await stage.open("send")
        stage.app.post_message(events.Paste('first line\n"second" line'))
        await stage.pilot.pause()
        box = stage.app.focused
        assert isinstance(box, TextArea)
        await stage.pilot.click(box, offset=(6, 1), times=2)
        assert box.selected_text == "second"


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("text", ["नमस्ते", "\u26a0\ufe0f disk", "a\tb\tc", "日本語", "e\u0301e\u0301e\u0301"])
async def test_a_click_puts_the_cursor_at_the_character_under_the_mouse(given: GivenRuntime, text: str) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        stage.app.post_message(events.Paste(f"{text}."))
        await stage.pilot.pause()
        field = stage.app.focused
        assert isinstance(field, Input)
        shown = next(line for line in stage.lines if "▌" in line and "." in line).split("▌")[1]
        dot = field.gutter.left + cell_len(shown[: shown.index(".")].lstrip())
        for column, position in ((dot + 1, len(text) + 1), (dot, len(text))):
            await stage.pilot.click(field, offset=(column, 0))
            assert field.cursor_position == position


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize(
    "text",
    [
        "नमस्ते",
        "\u26a0\ufe0f disk",
        "👩\u200d👩\u200d👧\u200d👦",
        "a\tb\tc",
        "日本語",
        "e\u0301e\u0301e\u0301",
        "\x1b[31mred\x07",
    ],
)
@pytest.mark.parametrize("before", ["", "first line\n", f"{'日' * 40} 👩\u200d👧{'日' * 10} "])
async def test_a_click_puts_the_cursor_at_the_character_under_the_mouse_in_one_of_several_lines(
    given: GivenRuntime, text: str, before: str
) -> None:
    given.found = [tool("mail.send", body={"type": "string"})]
    async with on_stage(given) as stage:
        await stage.open("send")
        stage.app.post_message(events.Paste(f"{before}{text}.\nlast line"))
        await stage.until_seen("last line")
        await stage.pilot.pause()
        box = stage.app.focused
        assert isinstance(box, TextArea)
        line = f"{before}{text}.".split("\n")[-1]
        row, end = before.count("\n"), len(line)
        at = box.wrapped_document.location_to_offset((row, end - 1))
        shown = box.render_line(at.y).text
        dot = cell_len(shown[: shown.index(".")])
        for column, position in ((dot + 1, end), (dot, end - 1)):
            await stage.pilot.click(box, offset=(box.gutter.left + column, box.gutter.top + at.y))
            assert box.cursor_location == (row, position)


@pytest.mark.promise("TUI-5")
@pytest.mark.parametrize("sign", ["\u26a0\ufe0f", "👩\u200d👩\u200d👧\u200d👦", "1\ufe0f\u20e3", "日", "e\u0301"])
async def test_the_text_under_the_mouse_is_selected_beside_emoji_and_accents(given: GivenRuntime, sign: str) -> None:
    given.answer = lambda call: ToolResult(ok=True, data=f"A {sign} disk full {sign} now")
    async with on_stage(given) as stage:
        await stage.open("list")
        await stage.press("ctrl+r")
        await stage.until_seen("disk full")
        await stage.pilot.pause()
        view = next(view for view in stage.result.query(TextView) if view.region)
        width, left = cell_len(sign), view.gutter.left
        for last, selected in (
            (1 + width, f"A {sign}"),
            (1 + width + len(" disk"), f"A {sign} disk"),
            (1 + 2 * width + len(" disk full "), f"A {sign} disk full {sign}"),
        ):
            await stage.pilot.mouse_down(view, offset=(left, 0))
            await stage.pilot.hover(view, offset=(left + last, 0))
            await stage.pilot.mouse_up(view, offset=(left + last, 0))
            assert stage.app.screen.get_selected_text() == selected
        await stage.pilot.click(view, offset=(left + 2 * width + len("A  disk full  "), 0), times=2)
        assert stage.app.screen.get_selected_text() == "now"


def test_a_word_is_found_after_many_dots() -> None:
    text = "see ~/a.txt" + " ." + "./" * 100_000
    assert word_at(text, 6) == (4, 11)
    assert word_at(text, len(text) - 1) == (len(text) - 1, len(text) - 1)
