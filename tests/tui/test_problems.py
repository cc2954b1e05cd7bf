"""The list of problems, and opening the file of one in an editor."""

from __future__ import annotations

import gc

import pytest
from stage import GivenRuntime, on_stage
from textual.widgets import OptionList

from pegboard.config.editor import editor_command
from pegboard.models import Problem
from pegboard.tui.messages import HistoryRead

BROKEN = Problem(message="It can't be parsed: invalid syntax.", fix="Fix the syntax.", file="/packs/broken.py", line=3)
ODD = Problem(message="`x` has no type.", file="/packs/fs.py", line=12, pack="fs", severity="warning")


@pytest.mark.promise("DSC-7", "TUI-1")
async def test_problems_are_counted_in_the_header_and_listed_errors_first(given: GivenRuntime) -> None:
    given.wrong = [ODD, BROKEN]
    async with on_stage(given) as stage:
        assert "✖ 2 problems" in stage.lines[0]
        await stage.press("exclamation_mark")
        await stage.until_seen("enter opens the file")
        assert stage.text.index("✖ It can't be parsed: invalid syntax.") < stage.text.index("! `x` has no type.")
        assert "broken.py:3" in stage.text
        assert "Fix the syntax." in stage.text


@pytest.mark.promise("DSC-7")
async def test_a_hint_about_no_pack_is_listed_and_not_counted(given: GivenRuntime) -> None:
    hint = Problem(message="Rule 1 matches no tool now.", file="/config/approvals.toml", line=1, severity="hint")
    given.wrong = [hint]
    async with on_stage(given) as stage:
        assert "✓ no problems" in stage.lines[0]
        await stage.press("ctrl+g")
        await stage.until_seen("0 problems, 1 hint")
        assert "Rule 1 matches no tool now." in stage.text


async def test_problems_that_are_read_twice_in_one_moment_print_no_warning_of_python(
    given: GivenRuntime, recwarn: pytest.WarningsRecorder
) -> None:
    async with on_stage(given) as stage:
        for _ in "ab":
            stage.app.post_message(HistoryRead())
        await stage.press("exclamation_mark")
    gc.collect()
    assert [str(one.message) for one in recwarn if "never awaited" in str(one.message)] == []


async def test_a_problem_is_copied_with_its_location(given: GivenRuntime) -> None:
    given.wrong = [BROKEN]
    async with on_stage(given) as stage:
        await stage.press("ctrl+g")
        await stage.until_seen("c copies")
        await stage.press("c")
        await stage.until(lambda: stage.app.clipboard, "something is copied")
        assert stage.app.clipboard == str(BROKEN)


@pytest.mark.promise("DSC-7", "TUI-1")
async def test_a_slash_filters_the_problems_and_a_printable_key_then_runs_no_command(given: GivenRuntime) -> None:
    given.wrong = [BROKEN, ODD, *(Problem(message=f"Cause {number}.", file=f"/p/{number}.py") for number in range(40))]
    async with on_stage(given) as stage:
        await stage.press("ctrl+g")
        await stage.until_seen("/ to filter")
        await stage.press("slash")
        await stage.type("cause 3")
        await stage.until_seen("13 of 42")
        await stage.press("7")
        await stage.until_seen("1 of 42")
        assert "Cause 37." in stage.text
        assert "invalid syntax" not in stage.text
        await stage.type("cq")
        await stage.until_seen("No matches.")
        assert not stage.app.clipboard
        await stage.press("enter", "escape", "slash")
        await stage.type("fs.py")
        await stage.until_seen("1 of 42")
        await stage.press("enter")
        await stage.until_seen("fs.py can't")


async def test_a_deleted_file_of_a_problem_is_reported(given: GivenRuntime) -> None:
    given.wrong = [BROKEN]
    async with on_stage(given) as stage:
        await stage.press("ctrl+g")
        await stage.until_seen("enter opens")
        await stage.press("enter")
        await stage.until_seen("broken.py can't")


@pytest.mark.parametrize("way", ["enter", "click"])
async def test_the_list_stays_open_and_says_so_if_a_problem_has_no_file(given: GivenRuntime, way: str) -> None:
    given.wrong = [Problem(message="`jq` is not on the PATH.", fix="How to get it: apt install jq")]
    async with on_stage(given) as stage:
        await stage.press("ctrl+g")
        await stage.until_seen("`jq` is not on the PATH.")
        if way == "enter":
            await stage.press("enter")
        else:
            await stage.pilot.click(OptionList)
        await stage.until_seen("No file was opened because this")
        assert "How to get it: apt install jq" in stage.text


async def test_a_terminal_that_cannot_run_an_editor_shows_the_file_name(given: GivenRuntime) -> None:
    file = given.paths.config_file.parent / "broken.py"
    file.write_text("def f(:")
    given.wrong = [Problem(message="bad", file=str(file), line=1)]
    async with on_stage(given) as stage:
        await stage.press("home", "f4")
        await stage.until_seen("can't run an editor from here")


async def test_the_definition_is_shown_as_models_receive_it_and_copied(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("f2")
        await stage.until_seen('"inputSchema": {')
        await stage.press("c")
        await stage.until(lambda: '"fs.list_dir"' in stage.app.clipboard, "the definition is copied")
        await stage.press("f2")
        assert stage.app.screen is stage.screen


@pytest.mark.parametrize(
    ("environ", "command"),
    [
        ({"EDITOR": "nano"}, ["nano", "+7", "a.py"]),
        ({"EDITOR": "vim", "VISUAL": "/usr/bin/nvim -p"}, ["/usr/bin/nvim", "-p", "+7", "a.py"]),
        ({"EDITOR": "emacsclient -nw"}, ["emacsclient", "-nw", "+7", "a.py"]),
        ({"EDITOR": "code --wait"}, ["code", "--wait", "--goto", "a.py:7"]),
        ({"EDITOR": "hx"}, ["hx", "a.py:7"]),
        ({"EDITOR": '"/Apps/My Editor/subl" -w'}, ["/Apps/My Editor/subl", "-w", "a.py:7"]),
        ({"EDITOR": 'un"balanced'}, ['un"balanced', "+7", "a.py"]),
        ({"EDITOR": "  "}, ["vi", "+7", "a.py"]),
        ({}, ["vi", "+7", "a.py"]),
    ],
)
def test_every_editor_receives_the_line_in_its_own_syntax(environ: dict[str, str], command: list[str]) -> None:
    assert editor_command("a.py", 7, environ) == command


def test_a_file_without_a_line_is_opened() -> None:
    assert editor_command("a.py", None, {"EDITOR": "code"}) == ["code", "a.py"]


@pytest.mark.promise("DSC-7")
async def test_an_open_list_of_problems_follows_a_repaired_file_and_keeps_the_selected_problem(
    given: GivenRuntime,
) -> None:
    others = [Problem(message=f"Cause {number}.", file=f"/p/{number}.py") for number in range(4)]
    given.wrong = [BROKEN, *others]
    async with on_stage(given) as stage:
        await stage.press("ctrl+g")
        await stage.until_seen("─ 5 problems ─")
        await stage.press("down", "down")
        given.change(given.found, others)
        await stage.until_seen("─ 4 problems ─")
        assert "invalid syntax" not in stage.text
        await stage.press("c")
        await stage.until(lambda: stage.app.clipboard, "something is copied")
        assert stage.app.clipboard == str(others[1])
        given.change(given.found, [])
        await stage.until_seen("No problems with packs")
        assert "c copies" not in stage.text
        given.change(given.found, [ODD])
        await stage.until_seen("`x` has no type.")
        assert "─ 1 problem ─" in stage.text
