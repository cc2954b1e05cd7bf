"""Selection by a double click in a field."""

from __future__ import annotations

import pytest
from stage import GivenRuntime, on_stage, tool
from textual import events
from textual.widgets import TextArea


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
