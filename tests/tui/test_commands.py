"""Commands: keys, palette, help, footer and remapped keys."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyperclip
import pytest
from stage import GivenRuntime, on_stage, tool
from textual import events
from textual.command import CommandList
from textual.geometry import Offset
from textual.widgets import Label

from pegboard.config import Settings, load
from pegboard.models import JsonObject, Problem
from pegboard.tui.app import PegboardApp
from pegboard.tui.commands import in_reach, key_in_reach
from pegboard.tui.shell import palette
from pegboard.tui.shell.help import HelpScreen
from pegboard.tui.shell.jump import JumpScreen
from pegboard.tui.shell.keymap import command_groups, key_problems
from pegboard.tui.tools.batch import BatchScreen
from pegboard.tui.tools.screen import ToolsScreen

GROUPS = command_groups(PegboardApp, ToolsScreen)


def remapped(folder: Path, **keys: str) -> GivenRuntime:
    return GivenRuntime(
        folder, settings=Settings(keys={name.replace("__", "."): value for name, value in keys.items()})
    )


@pytest.mark.promise("TUI-7")
def test_every_command_has_a_help_line_and_a_unique_id() -> None:
    declared = [command for _, commands in GROUPS for command in commands]
    assert len({command.id for command in declared}) == len({(command.id, command.action) for command in declared})
    for command in declared:
        assert command.help.endswith("."), command.id
        assert command.title, command.id


@pytest.mark.promise("TUI-7")
async def test_help_lists_every_available_command_with_its_id(given: GivenRuntime) -> None:
    async with on_stage(given, size=(120, 120)) as stage:
        in_list = [command for _, command in in_reach(stage.app.focused)]
        await stage.press("f1")
        await stage.until(lambda: isinstance(stage.app.screen, HelpScreen), "help is shown")
        for command in in_list:
            assert command.id in stage.text, command.id
        assert "may write: not declared read-only" in stage.text
        await stage.press("escape")
        assert stage.app.screen is stage.screen


async def test_help_describes_the_focused_widget(given: GivenRuntime) -> None:
    async with on_stage(given, size=(120, 110)) as stage:
        await stage.open("read")
        await stage.press("f1")
        await stage.until_seen("form.text")
        assert "list.fold" not in stage.text


async def test_a_question_mark_opens_help_in_the_list_but_is_text_in_a_field(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("question_mark")
        await stage.until(lambda: isinstance(stage.app.screen, HelpScreen), "help is shown")
        await stage.press("escape")
        await stage.open("read")
        await stage.press("question_mark", "exclamation_mark")
        assert stage.app.screen is stage.screen
        assert stage.form.submit() == {"path": "?!"}


@pytest.mark.promise("TUI-7")
async def test_the_palette_lists_every_command_in_reach(given: GivenRuntime) -> None:
    async with on_stage(given, size=(120, 200)) as stage:
        titles = {command.title for _, command in in_reach(stage.app.focused)}
        await stage.press("ctrl+p")
        await stage.until(lambda: all(title in stage.text for title in titles), "all commands are listed")


@pytest.mark.slow
@pytest.mark.promise("TUI-7")
async def test_the_palette_finds_any_tool_and_opens_it(tmp_path: Path) -> None:
    many = [tool(f"pack{number}.tool_{number}", path={"type": "string"}) for number in range(2_000)]
    async with on_stage(GivenRuntime(tmp_path, tools=many)) as stage:
        await stage.press("ctrl+p")
        await stage.type("tool_1777")
        await stage.until_seen("pack1777.tool_1777")
        await stage.press("enter")
        await stage.until(lambda: stage.marked == "pack1777.tool_1777", "the tool is marked")
        await stage.until(lambda: stage.form.has_focus_within, "its form has the focus")


async def test_the_palette_runs_a_command_that_has_no_key(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("ctrl+p")
        await stage.type("rescan")
        await stage.until_seen("Tools: Rescan")
        await stage.press("enter")
        await stage.until_seen("5 tools.")


@pytest.mark.promise("TUI-7")
async def test_a_key_can_be_assigned_to_a_command_that_has_none(tmp_path: Path) -> None:
    async with on_stage(remapped(tmp_path, tools__batch="f12", form__unfold_all="alt+u")) as stage:
        await stage.open("read")
        assert key_in_reach(stage.app.focused or stage.app, ["form.fold_all"]) == ""
        assert key_in_reach(stage.app.focused or stage.app, ["form.unfold_all"]) == "alt+u"
        await stage.press("f12")
        assert isinstance(stage.app.screen, BatchScreen)


async def test_a_command_of_the_palette_that_is_not_possible_says_so(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("ctrl+p")
        await stage.type("remove mcp")
        await stage.press("enter")
        await stage.until_seen("“Remove MCP server” is not possible now.")


@pytest.mark.promise("TUI-7")
async def test_help_and_palette_mark_commands_that_are_not_possible_now(given: GivenRuntime) -> None:
    async with on_stage(given, size=(120, 200)) as stage:
        await stage.press("f1")
        await stage.until_seen("– Cancel the running call.")
        assert "– not possible now" in stage.text
        assert "– Run the tool with the arguments in the form." not in stage.text
        await stage.type("not possible")
        await stage.until(lambda: "Run the tool with" not in stage.text, "the help is filtered")
        assert "– Cancel the running call." in stage.text
        await stage.press("escape", "escape", "ctrl+p")
        await stage.until_seen("Delete the login to the MCP server. Not possible now.")
        assert stage.text.index("Type part of a name") < stage.text.index("Not possible now."), "these are the last"


@pytest.mark.promise("TUI-7")
async def test_a_command_that_is_not_possible_needs_no_further_line_of_the_help(given: GivenRuntime) -> None:
    async with on_stage(given, size=(80, 60)) as stage:
        await stage.press("f1")
        await stage.type("tools.reconnect")
        await stage.until_seen("1 of")
        line = next(line for line in stage.text.splitlines() if "alt+r" in line)
        assert "– Reconnect to the MCP server." in line
        assert "tools.reconnect" in line


async def test_the_palette_copies_the_selected_text(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        stage.screen.query_one("#about").text_select_all()
        text = stage.screen.get_selected_text()
        assert text
        await stage.press("ctrl+p")
        await stage.type("copy selection")
        await stage.until_seen("Copy selection")
        await stage.press("enter")
        await stage.until(lambda: stage.app.clipboard == text, "it is copied")
        assert "Do you want to quit?" not in stage.text


@pytest.mark.promise("TUI-5")
async def test_a_selection_is_copied_to_the_system_clipboard_if_the_terminal_has_no_sequence_for_that(
    given: GivenRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []
    async with on_stage(given) as stage:
        monkeypatch.setattr(pyperclip, "copy", copied.append)
        monkeypatch.setenv("TERM_PROGRAM", "Apple_Terminal")
        await stage.open("read")
        stage.screen.query_one("#about").text_select_all()
        text = stage.screen.get_selected_text()
        await stage.press("ctrl+c")
        await stage.until(lambda: copied == [text], "it is copied")
        assert stage.app.clipboard == text


@pytest.mark.promise("TUI-5")
async def test_a_toast_names_the_clipboard_of_a_selection(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        stage.screen.query_one("#about").text_select_all()
        await stage.press("ctrl+c")
        await stage.until_seen("to the terminal (OSC 52).")


@pytest.mark.promise("TUI-5")
async def test_a_text_of_a_field_that_no_clipboard_accepts_is_saved_to_a_file(
    given: GivenRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_stage(given) as stage:
        monkeypatch.setenv("TMUX", "/tmp/tmux-0/default")
        await stage.open("read")
        stage.app.post_message(events.Paste("long" * 14_500))
        await stage.until(lambda: stage.form.submit() == {"path": "long" * 14_500}, "it is pasted")
        await stage.press("ctrl+a", "ctrl+c")
        await stage.until_seen("No clipboard accepts 58 kB")
        [file] = given.paths.state.glob("copied-*.txt")
        assert file.read_text() == "long" * 14_500


@pytest.mark.promise("TUI-4")
async def test_the_palette_shows_a_hostile_tool_as_text(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path, tools=[tool("p.x[red]y", "[bold]evil[/bold]\x1b[2J")])
    async with on_stage(given) as stage:
        await stage.press("ctrl+p")
        await stage.type("red")
        await stage.until_seen("p.x[red]y")
        assert "[bold]evil[/bold]" in stage.text
        assert "\x1b" not in stage.text


@pytest.mark.promise("TUI-2")
async def test_a_long_text_pasted_into_the_palette_is_searched_only_by_its_beginning(
    given: GivenRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []

    def positions(query: str, name: str) -> tuple[int, ...]:
        del name
        searched.append(query)
        return ()

    monkeypatch.setattr(palette, "match_positions", positions)
    async with on_stage(given) as stage:
        await stage.press("ctrl+p")
        await stage.until_seen("Tools: Run")
        stage.app.post_message(events.Paste("word" * 50_000))
        await stage.until_seen("No matches found")
        assert {len(query) for query in searched} == {200}
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.screen, "the palette is closed")


@pytest.mark.promise("CFG-1")
async def test_keys_are_remapped_by_command_id(tmp_path: Path) -> None:
    given = remapped(tmp_path, tools__run="f6", app__help="f7")
    async with on_stage(given) as stage:
        await stage.press("end", "ctrl+r")
        assert not given.calls
        await stage.press("f6")
        await stage.until_seen("✓ ok")
        assert "f6 Run" in stage.lines[-1]
        await stage.press("f7")
        await stage.until(lambda: isinstance(stage.app.screen, HelpScreen), "help is shown")
        assert stage.app.focused is not None


@pytest.mark.promise("CFG-1")
async def test_a_remapped_command_leaves_the_keys_that_it_shared_to_the_others(tmp_path: Path) -> None:
    given = remapped(tmp_path, tools__cancel="ctrl+x", tools__save="ctrl+l")
    async with on_stage(given) as stage:
        await stage.open("read")
        assert key_in_reach(stage.form, ["tools.cancel"]) == "ctrl+x"
        assert key_in_reach(stage.form, ["tools.presets"]) == "ctrl+l"
        await stage.press("escape")
        await stage.until(lambda: stage.list.has_focus, "esc still returns to the tool list")


@pytest.mark.promise("CFG-1")
async def test_an_empty_key_removes_the_key_of_a_command(tmp_path: Path) -> None:
    given = remapped(tmp_path, tools__run="", tools__checks="", app__help="f1")
    async with on_stage(given, size=(120, 110)) as stage:
        await stage.open("read")
        assert "Run" not in stage.lines[-1]
        assert "Press ctrl+p “Run” to run the tool." in stage.text
        await stage.press("ctrl+r", "alt+c", "f1")
        await stage.until_seen("palette            Run the tool with the arguments in the form.")
        assert not given.calls


@pytest.mark.promise("CFG-1")
@pytest.mark.parametrize("key", ["p", "+", "space", "left", "backspace"])
async def test_a_key_that_a_text_field_needs_runs_no_command_while_one_types(tmp_path: Path, key: str) -> None:
    given = remapped(tmp_path, app__palette=key, tools__run=key)
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.press("b", key, "c")
        typed = {"+": "b+c", "space": "b c", "left": "cb", "backspace": "c"}.get(key, f"b{key}c")
        assert stage.form.submit() == {"path": typed}
        assert not given.calls
        assert stage.app.screen is stage.screen


@pytest.mark.promise("CFG-1")
async def test_a_key_that_is_assigned_to_a_command_of_the_app_works_in_a_text_field_that_also_has_it(
    tmp_path: Path,
) -> None:
    async with on_stage(remapped(tmp_path, app__palette="ctrl+a")) as stage:
        await stage.open("read")
        await stage.press("b", "ctrl+a")
        await stage.until(lambda: stage.app.screen is not stage.screen, "the palette opened")


@pytest.mark.promise("CFG-1")
async def test_keys_can_be_written_as_users_read_them(tmp_path: Path) -> None:
    given = remapped(tmp_path, tools__run="shift+ctrl+f6, ctrl+[")
    async with on_stage(given) as stage:
        await stage.press("end", "ctrl+shift+f6")
        await stage.until_seen("✓ ok")
        assert key_in_reach(stage.screen, ["tools.run"]) == "ctrl+shift+f6"


@pytest.mark.promise("CFG-1")
def test_keys_that_no_terminal_sends_are_problems() -> None:
    keys = {"tools.run": "Ctrl+Y", "tools.save": "esc,f2", "tools.fit": "", "tools.batch": "ctrl+nothing,f9"}
    found = [str(problem) for problem in key_problems(Settings(keys=keys), GROUPS) if "named" in problem.message]
    assert [text.partition("`tools")[0] + text.partition("one. ")[2] for text in found] == [
        "No key is named `Ctrl+Y`; Did you mean `ctrl+y`?",
        "No key is named `esc`; Did you mean `escape`?",
        "No key is named `ctrl+nothing`; Write keys as help (f1) shows them, such as `ctrl+y` or `f12`.",
    ]


@pytest.mark.promise("CFG-1")
@pytest.mark.parametrize(
    ("command", "key", "other"),
    [
        ("app.help", "?,ctrl+q", "app.quit"),
        ("form.text", "ctrl+q", "app.quit"),
        ("app.palette", "ctrl+t", "form.text"),
        ("tools.back", "escape,f4", "tools.source"),
        ("result.save", "s, |", "result.jq"),
        ("tools.save", "ctrl+t", "form.text"),
        ("form.text", "ctrl+s", "tools.save"),
        ("form.reset", "ctrl+k", "field.state"),
        ("activity.compare", "f3", "result.pager"),
        ("chat.retry", "ctrl+j", "ask.newline"),
        ("result.copy", "t", "result.tree.table"),
        ("presets.rename", "ctrl+u", "pick.erase_all"),
    ],
)
def test_a_key_that_another_command_takes_is_a_problem(command: str, key: str, other: str) -> None:
    problems = key_problems(Settings(keys={command: key}), GROUPS)
    assert any(f"`{command}`" in problem.message and f"`{other}`" in problem.message for problem in problems)
    assert not any("escape" in problem.message for problem in problems), "two commands share that by default"


@pytest.mark.parametrize("key", ["pageup", "pagedown"])
async def test_the_palette_of_a_terminal_without_a_column_for_text_pages_without_an_error(
    given: GivenRuntime, key: str
) -> None:
    async with on_stage(given) as stage:
        await stage.pilot.resize_terminal(4, 10)
        await stage.press("ctrl+p")
        hits = stage.app.screen.query_one(CommandList)
        await stage.until(lambda: hits.option_count, "the commands are listed")
        await stage.press(key)
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.screen, "the palette is closed")


async def test_a_page_switched_while_the_palette_opens_leaves_the_app_usable(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        stage.app.action_command_palette()
        stage.app.action_mode("health")
        await stage.until(lambda: stage.app.current_mode == "health", "the page is switched")
        await stage.press("f5")
        await stage.until(lambda: stage.app.screen is stage.screen, "the palette is closed")


@pytest.mark.promise("CFG-1")
async def test_keys_that_clash_and_unknown_ids_are_problems(tmp_path: Path) -> None:
    given = remapped(tmp_path, tools__run="f1", tools__rnu="f6", activity__compare="alt+9", script_calls__failed="n")
    async with on_stage(given) as stage:
        await stage.until_seen("! 2 problems")
        await stage.press("ctrl+g")
        await stage.until_seen("Did you mean `tools.run`?")
        assert "[keys] assigns `f1` to both `app.help` and `tools.run`." in stage.text


def test_the_default_keys_have_no_problems() -> None:
    assert key_problems(Settings(), GROUPS) == []


@pytest.mark.promise("CFG-1")
def test_a_key_that_lists_of_several_dialogs_share_with_a_command_is_one_problem() -> None:
    messages = [problem.message for problem in key_problems(Settings(keys={"app.palette": "ctrl+u"}), GROUPS)]
    assert "[keys] assigns `ctrl+u` to both `app.palette` and `pick.erase_all`." in messages
    assert len(messages) == len(set(messages))


@pytest.mark.promise("CFG-1")
def test_problems_with_keys_name_the_location_of_the_setting(tmp_path: Path, trust: Callable[[Path], None]) -> None:
    (tmp_path / "config.toml").write_text("[keys]\ntools.rnu = 'f6'\n")
    (tmp_path / "pegboard.toml").write_text("[keys]\n\n'tools.run' = 'f1'\n")
    trust(tmp_path)
    variables = {**os.environ, "PEGBOARD_CONFIG": str(tmp_path / "config.toml"), "PEGBOARD_KEYS__APP__HLEP": "f9"}
    settings, _ = load(variables, tmp_path)
    found = {
        str(problem).removesuffix(" Assign another key to one of them.") for problem in key_problems(settings, GROUPS)
    }
    assert found == {
        "PEGBOARD_KEYS__APP__HLEP: Unknown command `app.hlep` in [keys]. Did you mean `app.help`?",
        f"{tmp_path}/config.toml:2: Unknown command `tools.rnu` in [keys]. Did you mean `tools.run`?",
        f"{tmp_path}/pegboard.toml:3: [keys] assigns `f1` to both `app.help` and `tools.run`.",
    }


@pytest.mark.promise("CFG-1")
def test_a_command_of_a_page_that_is_remapped_to_a_key_of_the_app_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[keys]\n'chat.model' = 'f5'\n'result.search' = 'f1'\n'mode.health' = 'f3'\n'talk.form' = 'f8'\n")
    settings, _ = load({**os.environ, "PEGBOARD_CONFIG": str(config)}, tmp_path)
    found = [problem.message for problem in key_problems(settings, GROUPS)]
    assert "[keys] assigns `f5` to both `mode.tools` and `chat.model`." in found
    assert "[keys] assigns `f1` to both `app.help` and `result.search`." in found
    assert not [message for message in found if "`talk.form`" in message], "Health has another key"


@pytest.mark.promise("TUI-7")
async def test_jump_mode_focuses_the_element_whose_label_is_typed(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        targets = list(stage.screen.focus_chain)
        await stage.press("ctrl+o")
        await stage.until(lambda: isinstance(stage.app.screen, JumpScreen), "letters are shown")
        assert " a " in stage.text
        await stage.press("d")
        await stage.until(lambda: stage.app.focused is targets[2], "the third has the focus")
        for key in ("escape", "ctrl+o", "f7", "!"):
            await stage.press("ctrl+o", key)
            assert not isinstance(stage.app.screen, JumpScreen), "a key without a label ends the mode"
            assert stage.app.focused is targets[2]


@pytest.mark.promise("TUI-7")
async def test_fields_that_are_scrolled_out_of_view_have_no_labels(given: GivenRuntime) -> None:
    fields: dict[str, JsonObject] = {f"p{number}": {"type": "string"} for number in range(60)}
    given.found = (tool("big.tool", "", None, **fields),)
    async with on_stage(given) as stage:
        await stage.open("big")
        stage.form.focus_field("/p59")
        await stage.until_seen("p59")
        await stage.until(lambda: stage.screen.settled, "the form is scrolled")

        def visible() -> list[Offset]:
            fields = [one for one in stage.screen.focus_chain if one.region]
            regions = [stage.screen.find_widget(one).visible_region for one in fields]
            return [region.offset for region in regions if region]

        await stage.until(lambda: len(visible()) == 11, "the last fields are shown")
        await stage.press("ctrl+o")
        await stage.until(lambda: isinstance(stage.app.screen, JumpScreen), "letters are shown")

        def labeled() -> list[Offset]:
            return [label.region.offset for label in stage.app.screen.query(Label) if label.display]

        await stage.until(lambda: labeled() == visible(), "the visible fields, and only these, have labels")
        assert len(visible()) < len(stage.screen.focus_chain)


@pytest.mark.promise("TUI-7")
async def test_ctrl_q_quits_and_closes_the_runtime_but_escape_and_ctrl_c_do_not(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("escape", "escape", "ctrl+c")
        await stage.until_seen("ctrl+q")
        assert stage.app.is_running
        assert not given.closed
        await stage.pilot.press("ctrl+q")
    assert given.closed


@pytest.mark.promise("TUI-7")
async def test_every_header_item_can_be_clicked(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.pilot.click("HeaderItem#tools")
        assert stage.list.has_focus
        await stage.pilot.click("HeaderItem#problems")
        await stage.until_seen("No problems with packs, requirements, themes or settings.")


@pytest.mark.promise("TUI-7")
@pytest.mark.parametrize(
    ("opener", "hint"), [("f1", "esc closes"), ("f2", "esc closes"), ("ctrl+g", "esc closes"), ("f1", "f2 guide")]
)
async def test_the_hints_at_the_edge_of_a_dialog_can_be_clicked(given: GivenRuntime, opener: str, hint: str) -> None:
    given.wrong = [Problem(message="It is broken.", file="/packs/broken.py", line=3)]
    async with on_stage(given) as stage:
        await stage.press(opener)
        await stage.until_seen(hint)
        dialog = stage.app.screen
        row = next(number for number, line in enumerate(stage.lines) if hint in line)
        await stage.pilot.click(offset=(stage.lines[row].index(hint) + 1, row))
        expected = "type to search" if "guide" in hint else "Arguments"
        await stage.until(
            lambda: stage.app.screen is not dialog and expected in stage.text, "the hint's key was pressed"
        )


@pytest.mark.promise("CFG-1")
async def test_the_hints_of_a_dialog_show_and_press_the_assigned_keys(tmp_path: Path) -> None:
    given = remapped(tmp_path, help__guide="f9", help__close="f8", guide__close="ctrl+y")
    async with on_stage(given) as stage:
        await stage.press("f1")
        await stage.until_seen("f9 guide · f8 closes")
        row = next(number for number, line in enumerate(stage.lines) if "f9 guide" in line)
        await stage.pilot.click(offset=(stage.lines[row].index("f9 guide") + 1, row))
        await stage.until_seen("ctrl+y closes")
        row = next(number for number, line in enumerate(stage.lines) if "ctrl+y closes" in line)
        await stage.pilot.click(offset=(stage.lines[row].index("ctrl+y closes") + 1, row))
        await stage.until(lambda: stage.app.screen is stage.screen, "the guide is closed")


@pytest.mark.promise("CFG-1")
async def test_the_hints_of_a_list_of_choices_show_the_assigned_keys(tmp_path: Path) -> None:
    given = remapped(tmp_path, pick__choose="f9", choice__close="")
    given.found = [tool("paint.wall", color={"enum": [f"color {number}" for number in range(20)]})]
    async with on_stage(given) as stage:
        await stage.open("wall")
        await stage.press("enter")
        await stage.until_seen("f9 chooses")
        assert "esc" not in next(line for line in stage.lines if "f9 chooses" in line)


@pytest.mark.promise("CFG-1")
async def test_the_welcome_text_shows_the_assigned_keys(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path, settings=Settings(keys={"mode.chat": "f11", "chat.model": "f9"}), first_start=True)
    async with on_stage(given, size=(120, 40)) as stage:
        await stage.until_seen("Connect a model: f11, f9.")


@pytest.mark.promise("CFG-1")
async def test_a_command_whose_keys_were_removed_is_named_in_texts(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path, settings=Settings(keys={"mode.chat": "", "app.palette": ""}), first_start=True)
    async with on_stage(given, size=(120, 40)) as stage:
        await stage.until_seen("Connect a model: “Chat”, f2.")
        await stage.until_seen("Add an MCP server: “Commands”, add mcp.")


@pytest.mark.promise("CFG-1")
async def test_a_letter_that_is_assigned_to_a_command_of_the_tool_list_runs_it_unless_one_filters(
    tmp_path: Path,
) -> None:
    given = remapped(tmp_path, list__filter="x", tools__source="o", tools__run="r")
    async with on_stage(given) as stage:
        await stage.press("x", "x")
        await stage.until_seen("/ x▏")
        await stage.press("o", "escape")
        await stage.press("r", "e", "slash")
        await stage.until_seen("/ re/▏")
        assert not given.calls
