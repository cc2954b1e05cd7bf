"""A tool's file is edited while the tool is open in the app."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from headless import TIMEOUT_SECONDS
from stage import on_stage
from textual import events

from pegboard.runtime import Runtime
from pegboard.tui.form.editors import JsonBox, TextLine

LETTER = '''
"""Letters."""

def write(*, body: str) -> str:
    """Write a letter."""
    return body
'''


async def wait(true: Callable[[], object]) -> None:
    """Wait until a condition is true; the pilot would wait for the end of the editor."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not true():  # noqa: ASYNC110 - the file system raises no event here
            await asyncio.sleep(0.005)


@pytest.mark.promise("TUI-3", "DSC-6")
async def test_a_text_is_kept_if_its_tool_changes_while_the_text_is_open_in_the_editor(
    write_pack: Callable[[str, str], Path], external_editor: Callable[[str], None], tmp_path: Path
) -> None:
    opened, done = tmp_path / "opened", tmp_path / "done"
    external_editor(f'echo "Dear all" > "$file"\ntouch {opened}\nuntil [ -e {done} ]; do sleep 0.01; done')
    runtime = Runtime.from_environment(packs=[write_pack("letter.py", LETTER)])
    async with on_stage(runtime) as stage:
        await stage.open("letter.write")
        stage.app.post_message(events.Key("f4", None))
        try:
            await wait(opened.exists)
            write_pack("letter.py", LETTER.replace("body: str", "body: str, copies: int = 1"))
            await stage.app.action_rescan().wait()
            await wait(lambda: stage.screen.settled)
        finally:
            done.touch()
        await stage.until_seen("copies")
        assert stage.form.form is not None
        assert stage.form.form.draft() == {"body": "Dear all"}


NESTED = '''
"""Letters."""

from typing import TypedDict

class Address(TypedDict, total=False):
    street: str
    city: str

def send(*, address: Address, to: str = "", subject: str = "") -> str:
    """Send a letter."""
    return ""
'''


@pytest.mark.promise("TUI-1", "DSC-7")
@pytest.mark.parametrize(
    ("removed", "changed"),
    [("to", 'to: str = "", '), ("address.street", "    street: str\n")],
    ids=["field", "field of an object"],
)
async def test_keys_for_a_field_that_was_removed_reach_no_other_field(
    write_pack: Callable[[str, str], Path], removed: str, changed: str
) -> None:
    runtime = Runtime.from_environment(packs=[write_pack("letter.py", NESTED)])
    async with on_stage(runtime) as stage:
        await stage.open("send")
        assert stage.form.form is not None
        stage.form.focus_field("/" + removed.replace(".", "/"))
        await stage.until(lambda: isinstance(stage.app.focused, TextLine), "the field is focused")
        await stage.type("mine")
        write_pack("letter.py", NESTED.replace(changed, ""))
        await stage.until_seen(f"The field {removed} no longer exists.")
        await stage.type("lost")
        assert "lost" not in json.dumps(stage.form.form.draft())
        assert stage.app.focused is None


@pytest.mark.promise("TUI-1", "DSC-7")
async def test_the_json_text_keeps_the_focus_when_the_field_that_had_it_before_is_removed(
    write_pack: Callable[[str, str], Path],
) -> None:
    runtime = Runtime.from_environment(packs=[write_pack("letter.py", NESTED)])
    async with on_stage(runtime) as stage:
        await stage.open("send")
        stage.form.focus_field("/to")
        await stage.until(lambda: isinstance(stage.app.focused, TextLine), "the field is focused")
        await stage.press("ctrl+t")
        await stage.until(lambda: isinstance(stage.app.focused, JsonBox), "the JSON text is focused")
        write_pack("letter.py", NESTED.replace('to: str = "", ', ""))
        await stage.until(lambda: "to: str" not in str(runtime.tools.get("letter.send")), "the schema has changed")
        await stage.until(lambda: stage.screen.settled and stage.form.form is not None, "the form is shown")
        await stage.until(lambda: isinstance(stage.app.focused, JsonBox), "the JSON text has the focus")
        assert "no longer exists" not in stage.text


@pytest.mark.promise("TUI-1", "DSC-7")
async def test_after_a_syntax_error_is_fixed_the_tool_its_arguments_and_the_focus_are_back(
    write_pack: Callable[[str, str], Path],
) -> None:
    runtime = Runtime.from_environment(packs=[write_pack("letter.py", LETTER)])
    async with on_stage(runtime) as stage:
        await stage.open("write")
        await stage.type("half")
        write_pack("letter.py", LETTER + "def next(")
        await stage.until_seen("The file could not be parsed")
        await stage.until(lambda: stage.screen.settled, "the form is gone")
        assert stage.marked == "letter"
        await stage.until_seen("The form of letter.write was closed")
        await stage.type("lost")
        write_pack("letter.py", LETTER)
        await stage.until(lambda: stage.form.has_focus_within, "the field has the focus again")
        assert stage.marked == "letter.write"
        await stage.type(" way")
        await stage.until_seen("half way")
        assert "The form of letter.write was closed" not in stage.text, "the message no longer applies"
        assert stage.form.form is not None
        assert stage.form.form.draft() == {"body": "half way"}


@pytest.mark.promise("TUI-1", "DSC-6")
@pytest.mark.parametrize("is_filtered", [False, True])
async def test_keys_for_a_tool_that_was_renamed_reach_no_other_tool(
    write_pack: Callable[[str, str], Path], is_filtered: bool
) -> None:
    others = LETTER + LETTER.replace("write", "writer").replace('"""Letters."""', "")
    runtime = Runtime.from_environment(packs=[write_pack("letter.py", others)])
    async with on_stage(runtime) as stage:
        await stage.open("letter.write")
        if not is_filtered:
            await stage.press("f5", "escape")
            stage.screen.open_tool("letter.write")
        await stage.type("half")
        write_pack("letter.py", others.replace("write(", "pen("))
        await stage.until(lambda: stage.marked == "letter" and stage.screen.settled, "the pack is selected")
        await stage.type(" way")
        await stage.press("ctrl+r")
        assert stage.marked == "letter"
        assert stage.result.result is None
        write_pack("letter.py", others)
        await stage.until(lambda: stage.form.has_focus_within, "the field has the focus again")
        assert stage.form.form is not None
        assert stage.form.form.draft() == {"body": "half"}


@pytest.mark.promise("TUI-1", "DSC-7")
async def test_a_tool_that_comes_back_leaves_a_selection_that_was_made_meanwhile(
    write_pack: Callable[[str, str], Path],
) -> None:
    runtime = Runtime.from_environment(packs=[write_pack("letter.py", LETTER)])
    async with on_stage(runtime) as stage:
        await stage.open("write")
        await stage.press("f5", "escape")
        write_pack("letter.py", "def next(")
        await stage.until(lambda: stage.marked == "letter", "the broken pack is selected")
        await stage.press("down")
        chosen = stage.marked
        write_pack("letter.py", LETTER)
        await stage.until(lambda: any("write" in line for line in stage.tool_list), "the tool is back")
        assert stage.marked == chosen


@pytest.mark.promise("TUI-3", "DSC-6")
async def test_a_form_that_closes_under_the_cursor_since_its_pack_was_removed_says_so_and_keeps_its_values(
    write_pack: Callable[[str, str], Path],
) -> None:
    folder = write_pack("letter.py", LETTER)
    write_pack("other.py", LETTER)
    runtime = Runtime.from_environment(packs=[folder])
    async with on_stage(runtime) as stage:
        await stage.open("letter.write")
        await stage.press("escape", "ctrl+u", "enter")
        await stage.until(lambda: stage.form.has_focus_within, "the form has the focus, and no filter is left")
        await stage.type("half")
        (folder / "letter.py").unlink()
        await stage.until_seen("The form of letter.write was closed")
        await stage.until(lambda: stage.screen.settled, "the form is gone")
        await stage.type("lost")
        assert stage.form.form is None or stage.form.form.draft() == {}, "no other tool receives the text"
        write_pack("letter.py", LETTER)
        await stage.press("f5")
        await stage.open("letter.write")
        assert stage.form.form is not None
        assert stage.form.form.draft() == {"body": "half"}


@pytest.mark.promise("TUI-3", "DSC-6")
async def test_the_value_of_a_parameter_that_was_removed_for_a_moment_is_kept(
    write_pack: Callable[[str, str], Path],
) -> None:
    both = LETTER.replace("body: str", "body: str, to: str = '', cc: str = ''")
    runtime = Runtime.from_environment(packs=[write_pack("letter.py", both)])
    async with on_stage(runtime) as stage:
        await stage.open("write")
        await stage.type("half")
        await stage.press("tab")
        await stage.type("Ann")
        await stage.press("tab")
        await stage.type("Bob")
        for parameters in ("body: str, to: str = ''", "body: str", "body: str, cc: str = ''", "body: str, cc: int = 0"):
            write_pack("letter.py", LETTER.replace("body: str", parameters))
            await stage.until_seen(f"letter.write(*, {parameters})")
            await stage.until(lambda: stage.screen.settled, "the form is shown")
        write_pack("letter.py", both)
        await stage.until_seen("cc: str")
        await stage.until(lambda: stage.screen.settled, "the form is shown")
        assert stage.form.form is not None
        assert stage.form.form.draft() == {"body": "half", "to": "Ann", "cc": "Bob"}


@pytest.mark.promise("TUI-3", "DSC-6")
@pytest.mark.parametrize("kind", ["text", "line", "JSON"])
async def test_the_cursor_stays_in_its_place_if_the_tool_changes_while_the_user_types(
    write_pack: Callable[[str, str], Path], kind: str
) -> None:
    letter = LETTER.replace("body", "subject") if kind == "line" else LETTER
    runtime = Runtime.from_environment(packs=[write_pack("letter.py", letter)])
    async with on_stage(runtime) as stage:
        await stage.open("write")
        await stage.type("helo")
        if kind == "JSON":
            await stage.press("ctrl+t", "down", "end", "left")
        await stage.press("left")
        write_pack("letter.py", letter.replace(": str)", ": str, copies: int = 1)"))
        await stage.until_seen("copies: int = 1")
        await stage.until(lambda: stage.screen.settled, "the form is shown")
        await stage.type("l")
        await stage.until(lambda: "hello" in stage.text, "the letter is where the cursor was")
