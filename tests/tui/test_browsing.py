"""Finding a tool in the tool list, by keyboard and by mouse."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from stage import READ_ONLY, TOOLS, GivenRuntime, Stage, on_stage, tool

from pegboard.config import Settings
from pegboard.config.settings import UiSettings
from pegboard.models import Problem, ToolSpec
from pegboard.runtime import Runtime
from pegboard.tui.widgets.filter_line import FilterLine

BROKEN = Problem(message="The file can't be parsed: expected ':'.", file="/packs/broken.py", line=3)


@pytest.mark.promise("TUI-1")
async def test_the_list_shows_every_pack_with_its_tools_and_selects_the_first_tool(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        for name in ("fs", "list_dir", "read_file", "remove", "shell", "pwd", "time", "now"):
            assert name in stage.text
        assert stage.marked == "fs.list_dir"
        assert "f5 Tools 5" in stage.lines[0]
        assert "3 packs" in stage.lines[0]


@pytest.mark.promise("TUI-1")
async def test_any_printable_key_filters_and_the_best_match_is_selected(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.type("rea")
        assert stage.marked == "fs.read_file"
        assert "1 of 5" in stage.text
        assert "list_dir" not in "".join(stage.tool_list)


@pytest.mark.promise("TUI-1")
async def test_text_that_is_typed_after_a_click_on_the_filter_line_filters_the_list(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("list_dir")
        assert not stage.list.has_focus
        await stage.pilot.click(FilterLine)
        await stage.type("rea")
        assert stage.list.sought == "rea"
        assert stage.marked == "fs.read_file"


@pytest.mark.promise("TUI-1")
@pytest.mark.parametrize("filter_", ["漢字", "漢" * 30, "e" * 60])
async def test_the_number_of_matches_beside_a_filter_of_wide_characters_is_not_cut(
    given: GivenRuntime, filter_: str
) -> None:
    async with on_stage(given) as stage:
        await stage.type(filter_)
        await stage.until_seen("0 of 5")


async def test_escape_clears_the_filter_and_keeps_the_selection(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.type("now")
        await stage.press("escape")
        assert stage.marked == "time.now"
        assert "list_dir" in "".join(stage.tool_list)


async def test_escape_shows_the_selected_tool_even_in_a_folded_pack(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("left")
        await stage.type("read")
        await stage.press("escape")
        assert stage.marked == "fs.read_file"


async def test_backspace_ctrl_w_and_ctrl_u_shorten_the_filter(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.type("list dirx")
        assert stage.list.row is None
        assert "No tool matches “list dirx”." in stage.text
        await stage.until_seen("Select a tool to run it.")
        assert "fs.list_dir" not in stage.text
        await stage.press("ctrl+d")
        await stage.until_seen("Select a tool first.")
        await stage.press("backspace")
        assert stage.marked == "fs.list_dir"
        await stage.press("ctrl+w")
        assert stage.list.sought.strip() == "list"
        await stage.press("space", "ctrl+w")
        assert not stage.list.sought
        await stage.type("list")
        await stage.press("ctrl+u")
        assert not stage.list.sought
        await stage.press("space")
        assert not stage.list.sought


@pytest.mark.parametrize("key", ["f2", "ctrl+up", "alt+c"])
async def test_a_command_of_a_tool_says_that_a_pack_is_selected_instead(given: GivenRuntime, key: str) -> None:
    async with on_stage(given) as stage:
        await stage.press("left", "left")
        await stage.until_seen("Select a tool to run it.")
        await stage.press(key)
        await stage.until_seen("Select a tool first.")


@pytest.mark.parametrize(("key", "sought"), [("n", "now"), ("space", "rea ow"), ("backspace", "reow")])
async def test_back_in_the_list_a_letter_begins_a_new_filter_and_a_space_or_backspace_continues_the_old_one(
    given: GivenRuntime, key: str, sought: str
) -> None:
    async with on_stage(given) as stage:
        await stage.type("rea")
        await stage.press("enter")
        await stage.until(lambda: not stage.list.has_focus, "the form has the focus")
        await stage.press("f5")
        await stage.until(lambda: stage.list.has_focus, "the list has the focus")
        await stage.press("down", "up")
        assert stage.list.sought == "rea"
        await stage.press(key, "o", "w")
        assert stage.list.sought == sought


async def test_a_filter_continues_when_the_terminal_has_the_focus_again(given: GivenRuntime) -> None:
    from textual import events

    async with on_stage(given) as stage:
        await stage.type("rea")
        stage.app.post_message(events.AppBlur())
        await stage.until(lambda: not stage.list.has_focus, "the terminal has lost the focus")
        stage.app.post_message(events.AppFocus())
        await stage.until(lambda: stage.list.has_focus, "the list has the focus")
        await stage.type("d")
        assert stage.list.sought == "read"


async def test_pasted_text_filters(given: GivenRuntime) -> None:
    from textual import events

    async with on_stage(given) as stage:
        stage.app.post_message(events.Paste("read_file\nmore"))
        await stage.until(lambda: stage.marked == "fs.read_file", "the pasted name is found")


@pytest.mark.promise("TUI-7")
async def test_arrows_pages_home_and_end_move_the_selection(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("down", "down")
        assert stage.marked == "fs.remove"
        await stage.press("up")
        assert stage.marked == "fs.read_file"
        await stage.press("end")
        assert stage.marked == "time.now"
        await stage.press("home")
        assert stage.marked == "fs"
        await stage.press("pagedown")
        assert stage.marked == "time.now"
        await stage.press("pageup")
        assert stage.marked == "fs"


async def test_left_and_right_fold_and_unfold_a_pack(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("left")
        assert stage.marked == "fs"
        assert "read_file" not in "".join(stage.tool_list)
        await stage.press("right")
        assert "read_file" in "".join(stage.tool_list)
        await stage.press("right")
        assert stage.marked == "fs.list_dir"


async def test_enter_focuses_the_form_of_the_selected_tool(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        assert stage.form.form is not None
        assert [field.name for field in stage.form.form.fields] == ["path", "max_bytes"]


@pytest.mark.promise("TUI-7")
async def test_a_click_selects_a_tool_and_a_click_on_a_pack_folds_it(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.pilot.click(stage.list, offset=(6, 2))
        assert stage.marked == "fs.read_file"
        await stage.pilot.click(stage.list, offset=(6, 0))
        assert stage.marked == "fs"
        assert "read_file" not in "".join(stage.tool_list)
        await stage.pilot.click(stage.list, offset=(6, 0))
        assert "read_file" in "".join(stage.tool_list)


async def test_with_vim_keys_letters_move_and_only_a_slash_filters(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path, settings=Settings(ui=UiSettings(vim_keys=True)))
    async with on_stage(given) as stage:
        await stage.press("j")
        assert stage.marked == "fs.read_file"
        await stage.press("G")
        assert stage.marked == "time.now"
        await stage.press("g", "j", "k")
        assert stage.marked == "fs"
        await stage.press("slash", "j", "k")
        assert stage.list.sought == "jk"
        await stage.press("escape", "j")
        assert stage.list.sought == ""


@pytest.mark.promise("DSC-6")
async def test_a_rescan_keeps_selection_folds_scroll_and_half_filled_form(tmp_path: Path) -> None:
    many = [tool(f"pack{number:03}.tool", path={"type": "string"}) for number in range(100)]
    given = GivenRuntime(tmp_path, tools=many)
    async with on_stage(given) as stage:
        await stage.press("left")
        for _ in range(60):
            stage.list.action_move(1)
        await stage.until(lambda: stage.screen.settled, "the mark rests")
        await stage.press("enter")
        await stage.until(lambda: stage.form.has_focus_within, "the form has the focus")
        await stage.type("half")
        mark, line = stage.marked, stage.list.cursor - round(stage.list.scroll_y)
        given.change([tool("aaa.first"), tool("bbb.second"), *many])
        await stage.until(lambda: "f5 Tools 102" in stage.text, "the new tools are counted")
        assert stage.marked == mark
        assert stage.list.cursor - round(stage.list.scroll_y) == line
        assert "half" in stage.text
        assert stage.form.has_focus_within
        await stage.press("f5", "home")
        assert "▸ pack000" in stage.text


async def test_if_the_selected_tool_disappears_its_neighbour_is_selected(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("down")
        given.change([spec for spec in TOOLS if spec.name != "fs.read_file"])
        await stage.until(lambda: stage.marked == "fs.remove", "the next tool is marked")
        await stage.until_seen("Deletes a file for good.")


async def test_the_selection_survives_a_rescan_while_filtering(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.type("f")
        await stage.press("down")
        mark = stage.marked
        given.change([*TOOLS, tool("x.f")])
        await stage.until_seen("4 of 6")
        assert stage.marked == mark


async def test_states_and_hints_are_shown_as_symbols(given: GivenRuntime) -> None:
    given.states = {"fs.read_file": "degraded", "time.now": "blocked"}
    async with on_stage(given) as stage:
        assert [line.split() for line in stage.tool_list if line.startswith("  ") and line.strip()] == [
            ["●", "list_dir"],
            ["◐", "read_file"],
            ["●", "remove", "D"],
            ["●", "pwd"],
            ["○", "now"],
        ]


@pytest.mark.promise("DSC-7", "TUI-1")
async def test_an_unreadable_pack_is_listed_with_its_reason(tmp_path: Path) -> None:
    async with on_stage(GivenRuntime(tmp_path, problems=[BROKEN])) as stage:
        assert "✖ broken" in stage.text
        assert "✖ 1 problem" in stage.lines[0]
        await stage.press("home")
        await stage.until_seen("expected ':'. (broken.py:3)")


async def test_an_empty_list_explains_where_to_add_tools(tmp_path: Path) -> None:
    async with on_stage(GivenRuntime(tmp_path, tools=[])) as stage:
        assert "No tools yet." in stage.text
        await stage.press("enter", "ctrl+r", "f2", "f4", "ctrl+l")
        assert stage.app.is_running


@pytest.mark.promise("EXE-2")
async def test_tools_excluded_by_the_allow_list_are_counted_in_the_header(given: GivenRuntime) -> None:
    given.shut_out = 12
    async with on_stage(given, size=(120, 40)) as stage:
        assert "12 not allowed" in stage.lines[0]
        given.shut_out = 0
        given.change(TOOLS)
        await stage.until(lambda: "not allowed" not in stage.lines[0], "nothing is kept out any more")


@pytest.mark.promise("EXE-2")
async def test_a_list_emptied_by_the_allow_list_explains_why() -> None:
    runtime = Runtime.from_environment(tool_allow="nothing.*")
    async with on_stage(runtime, size=(120, 40)) as stage:
        await stage.until_seen("No tools: the allow list")
        assert runtime.tools.hidden() > 0
        assert f"{runtime.tools.hidden()} not allowed" in stage.lines[0]
        assert "No tools yet" not in stage.text


@pytest.mark.promise("TUI-4")
async def test_hostile_names_and_descriptions_are_shown_as_text(tmp_path: Path) -> None:
    evil = tool(
        "p.[red]x[/]\x1b[2J", "[bold]desc[/bold] \x1b]0;owned\x07 \u202egnp", READ_ONLY, path={"type": "string"}
    )
    problem = Problem(message="[link=evil]\x1b[31m", file="/packs/p.py")
    async with on_stage(GivenRuntime(tmp_path, tools=[evil], problems=[problem])) as stage:
        await stage.until_seen("[bold]desc[/bold]")
        assert "[red]x[/]␛[2J" in stage.text
        assert "\x1b" not in stage.text
        assert "\x07" not in stage.text
        assert "\u202e" not in stage.text
        await stage.type("red")
        assert stage.marked == "p.[red]x[/]␛[2J"
        await stage.press("f2")
        await stage.until_seen("\\u001b[2J")


@pytest.mark.slow
@pytest.mark.promise("TUI-2")
async def test_ten_thousand_tools_are_listed_and_filtered(tmp_path: Path) -> None:
    many = [tool(f"pack{number // 10}.tool_{number}") for number in range(10_000)]
    async with on_stage(GivenRuntime(tmp_path, tools=many)) as stage:
        assert "f5 Tools 10,000" in stage.lines[0]
        await stage.press("end")
        assert stage.marked == "pack999.tool_9999"
        await stage.type("tool_7777")
        assert stage.marked == "pack777.tool_7777"
        assert "1 of 10,000" in stage.text


def _has_width(stage: Stage, columns: int) -> bool:
    return stage.app.size.width == columns


@pytest.mark.promise("TUI-7")
async def test_no_text_of_the_header_is_cut_when_all_of_them_just_fit(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        whole = " ".join(stage.lines[0].replace("3 packs", "").replace("Pegboard", "").split())
        for columns in range(90, 74, -1):
            await stage.pilot.resize_terminal(columns, 24)
            await stage.until(partial(_has_width, stage, columns), "it has this width")
            short = whole.replace("no problems", "")
            shown = " ".join(stage.lines[0].replace("3 packs", "").split())
            assert shown in {whole, short.strip()}, columns


async def test_the_count_of_matches_stays_at_the_right_edge_after_a_resize(given: GivenRuntime) -> None:
    async with on_stage(given, size=(80, 24)) as stage:
        await stage.type("list")
        await stage.pilot.resize_terminal(120, 40)
        await stage.until(lambda: stage.screen.tool_list.size.width > 30, "the tool list is wide")
        await stage.until_seen("of 5 │")


@pytest.mark.promise("TUI-1")
async def test_sections_in_the_description_of_a_server_are_lists(given: GivenRuntime) -> None:
    given.found = (tool("web.fetch", "Fetch a page.\n\nRaises:\n    OSError: No network.\n    KeyError: No page."),)
    async with on_stage(given, size=(120, 40)) as stage:
        await stage.until_seen("• OSError: No network.")
        row = next(number for number, line in enumerate(stage.lines) if "• OSError: No network." in line)
        assert "• KeyError: No page." in stage.lines[row + 1]


@pytest.mark.promise("TUI-1", "MCP-3")
async def test_parameters_in_the_description_of_a_server_are_described_in_the_form(given: GivenRuntime) -> None:
    about = """Fetch a page.

    Args:
        url (str): The address,
            with its scheme.
        raw: As HTML.

    Returns:
        Text."""

    def fetch(description: str) -> ToolSpec:
        return tool("web.fetch", description, url={"type": "string"}, raw={"type": "boolean", "description": "HTML?"})

    given.found = (fetch(about),)
    async with on_stage(given, size=(120, 40)) as stage:
        await stage.press("enter")
        await stage.until_seen("The address, with its scheme.")
        assert "HTML?" in stage.text
        assert "Args:" not in stage.text
        assert "Returns: Text." in stage.text
        given.change((fetch(about.replace("address", "URL")),))
        await stage.until_seen("The URL, with its scheme.")
