"""The dialog for a text of several lines."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import pytest
from stage import GivenRuntime, Stage, on_stage

from pegboard.tui.dialogs.ask_text import AskText
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.form.lines import Lines

Closed = list[str | None]


async def ask(stage: Stage, text: str) -> Closed:
    """Open the dialog and append its result to a list."""
    closed: Closed = []
    await stage.app.push_screen(AskText("System prompt [red]", text, "It holds [bold]from now on."), closed.append)
    await stage.until(lambda: isinstance(stage.app.focused, Lines), "it can be typed")
    return closed


async def has_closed(stage: Stage, closed: Closed) -> None:
    await stage.until(lambda: closed, "it is answered")


async def test_a_text_of_several_lines_is_typed_and_submitted(given: GivenRuntime) -> None:
    async with on_stage(given, size=(80, 24)) as stage:
        closed = await ask(stage, "Be brief.")
        await stage.until_seen("It holds [bold]from now on.")
        assert "System prompt [red]" in stage.text
        await stage.press("enter", *"Or", "tab", "ctrl+s")
        await has_closed(stage, closed)
    assert closed == ["Be brief.\nOr"]


@pytest.mark.parametrize(
    "text",
    ["", " \r\n x\n\n", "\x1b[2J\u202e", "word " * 30_000],
    ids=["nothing", "ends of lines", "signs that steer", "a very long one"],
)
async def test_an_unchanged_text_is_returned_unchanged(given: GivenRuntime, text: str) -> None:
    async with on_stage(given) as stage:
        closed = await ask(stage, text)
        await stage.press("ctrl+s")
        await has_closed(stage, closed)
        assert closed == [text]
        closed = await ask(stage, text)
        await stage.press("escape")
        await has_closed(stage, closed)
    assert closed == [None]


@pytest.mark.promise("TUI-1")
@pytest.mark.parametrize(
    ("text", "keys", "left"),
    [
        ("", ["ctrl+k"], ""),
        ("", ["ctrl+x"], ""),
        ("one", ["ctrl+x"], ""),
        ("one", ["ctrl+shift+k"], ""),
        ("one\ntwo", ["ctrl+shift+k"], "one\n"),
        ("one\n", ["ctrl+k"], "one\n"),
        ("one", ["ctrl+shift+k", "ctrl+z"], "one"),
        ("one\ntwo", ["up", "ctrl+x"], "two"),
    ],
)
async def test_the_last_line_of_a_text_is_deleted_like_the_others(
    given: GivenRuntime, text: str, keys: list[str], left: str
) -> None:
    async with on_stage(given) as stage:
        closed = await ask(stage, text)
        await stage.press(*keys, "ctrl+s")
        await has_closed(stage, closed)
    assert closed == [left]


async def test_changes_are_discarded_only_after_confirmation(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        closed = await ask(stage, "Be brief.")
        await stage.press("x", "escape")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "a question is asked")
        await stage.press("n")
        await stage.until(lambda: isinstance(stage.app.focused, Lines), "it can be typed again")
        assert not closed
        await stage.press("escape")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "a question is asked")
        await stage.press("ctrl+y")
        await has_closed(stage, closed)
        assert closed == [None]
        closed = await ask(stage, "Be brief.")
        await stage.press("x", "backspace", "escape")
        await has_closed(stage, closed)
    assert closed == [None]


async def test_a_text_is_unchanged_if_it_cannot_be_written_for_the_external_editor(
    given: GivenRuntime, external_editor: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    external_editor('echo edited > "$file"')
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])  # as on a full disk
    async with on_stage(given) as stage:
        closed = await ask(stage, "Be brief")
        await stage.press("f4")
        await stage.until_seen("The editor was not opened because no temporary file")
        await stage.press("!", "ctrl+s")
        await has_closed(stage, closed)
    assert [text.replace("!", "") for text in closed if text] == ["Be brief"]


async def test_a_text_is_edited_in_the_external_editor(
    given: GivenRuntime, external_editor: Callable[[str], None]
) -> None:
    external_editor(r'printf "%s and\nmore\n" "$(cat "$file")" > "$file"')
    async with on_stage(given) as stage:
        closed = await ask(stage, "Be brief")
        await stage.press("f4")
        await stage.until_seen("Be brief and")
        await stage.press("ctrl+s")
        await has_closed(stage, closed)
    assert closed == ["Be brief and\nmore"]
