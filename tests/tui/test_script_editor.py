"""The editor of the Script page: highlighting, commands, findings, draft."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from script_stage import PACK, ScriptStage, on_script, script_app, write_work
from textual.events import Key, Paste

from pegboard.tui.script.command_help import CommandHelp
from pegboard.tui.script.document import EXAMPLE
from pegboard.tui.script.editor import ScriptEditor
from pegboard.tui.state.draft import Draft, DraftFile


def looks(editor: ScriptEditor, row: int) -> dict[str, set[str]]:
    """Return the highlighted pieces of a line by kind."""
    line = editor.get_line(row)
    found: dict[str, set[str]] = {}
    for kind in ("tool", "unknown", "string", "comment", "keyword", "placeholder"):
        style = editor._style_of(kind)
        pieces = {line.plain[span.start : span.end] for span in line.spans if span.style == style}
        found |= {kind: pieces} if pieces else {}
    return found


@pytest.mark.promise("TUI-1")
async def test_tools_and_unknown_commands_are_highlighted(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.write("""\
            work.say "a" | jq . # work.say
            work_look x; work.lok; mine; if true
            cat 'work.say
            work.look' <path>
            mine() { work.say; }
            """)
        await stage.looked_at("parse error")
        assert looks(stage.editor, 0) == {"tool": {"work.say"}, "string": {'"a"'}, "comment": {"# work.say"}}
        assert looks(stage.editor, 1) == {"tool": {"work_look"}, "unknown": {"work.lok"}, "keyword": {"if"}}
        assert looks(stage.editor, 2) == {"string": {"'work.say"}}
        assert looks(stage.editor, 3) == {"string": {"work.look'"}, "placeholder": {"<path>"}}


async def test_a_command_is_not_marked_as_unknown_while_it_is_typed(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.type("work.sa")
        assert looks(stage.editor, 0) == {}
        await stage.type(" x")
        assert looks(stage.editor, 0) == {"unknown": {"work.sa"}}


async def test_an_open_quote_changes_the_lines_below(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.write("\nwork.say x\nwork.say y")
        assert "tool" in looks(stage.editor, 2)
        await stage.type("echo '")
        assert looks(stage.editor, 2) == {"string": {"work.say y"}}
        await stage.press("ctrl+z")
        assert "tool" in looks(stage.editor, 2)


@pytest.mark.promise("TUI-2")
async def test_keys_in_quick_succession_are_handled_in_order(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        for key, sign in (("a", "a"), ("b", "b"), ("enter", None), ("tab", None), ("c", "c"), ("backspace", None)):
            stage.app.post_message(Key(key, sign))
        for key, sign in (("d", "d"), ("up", None), ("e", "e")):
            stage.app.post_message(Key(key, sign))
        await stage.until(lambda: "e" in stage.editor.text, "all came")
        assert stage.editor.text == "abe\n  d"


async def test_a_new_line_is_indented_like_the_one_before_and_tab_indents(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.type("a")
        await stage.press("enter", "tab", "b", "enter", "c", "shift+up")
        await stage.press("tab")
        assert stage.editor.text == "a\n    b\n    c"


@pytest.mark.promise("TUI-7")
async def test_tab_inserts_the_example_and_it_runs(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        assert "Press tab to insert this example" in stage.text
        await stage.press("tab")
        assert stage.editor.text == EXAMPLE
        assert EXAMPLE.count("\n") == 3
        await stage.looked_at("will call fs.list_dir, time.now, text.count, fs.read_file")
        await stage.press("ctrl+r")
        await stage.idle()
        assert stage.calls[0].startswith("✓ script exit 0")
        assert stage.printed[-1] == "  File not found."


@pytest.mark.promise("TUI-7")
async def test_every_page_is_reached_from_the_editor_and_the_focus_leaves_it(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        for key, mode in (("f6", "chat"), ("f7", "script"), ("f5", "tools"), ("f7", "script"), ("f8", "health")):
            await stage.press(key)
            assert stage.app.current_mode == mode
        await stage.press("f7")
        await stage.type("x=1")
        assert stage.editor.text == "x=1"
        await stage.press("escape", "tab")
        assert stage.app.focused is not stage.editor
        await stage.press("escape")
        assert stage.app.focused is stage.editor
        await stage.press("shift+tab")
        assert stage.commands.list.has_focus


@pytest.mark.promise("TUI-7")
async def test_text_that_is_typed_after_esc_is_inserted_in_the_editor(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.run("work.say a")
        stage.editor.focus()
        stage.editor.move_cursor((0, 10))
        await stage.press("escape")
        await stage.type("bc")
        await stage.press("tab")
        assert stage.editor.text == "work.say abc  "
        await stage.press("escape", "left", "tab")
        assert stage.editor.has_focus


async def test_changes_of_the_external_editor_can_be_undone(
    tmp_path: Path, external_editor: Callable[[str], None]
) -> None:
    external_editor('case $file in *.sh) echo "work.say more" >> "$file";; esac')
    async with on_script(tmp_path) as stage:
        await stage.write("work.say a\n")
        await stage.press("f4")
        await stage.until(lambda: stage.editor.text == "work.say a\nwork.say more\n", "it is edited")
        await stage.press("ctrl+z")
        assert stage.editor.text == "work.say a\n"


@pytest.mark.parametrize("lines", [3, 10_000])
async def test_the_lines_of_a_script_of_the_external_editor_end_with_line_feeds(
    tmp_path: Path, external_editor: Callable[[str], None], lines: int
) -> None:
    external_editor(f'case $file in *.sh) seq -f "# step %g" {lines} | sed "s/$/\\r/" >> "$file";; esac')
    async with on_script(tmp_path) as stage:
        await stage.press("f4")
        await stage.until(lambda: f"# step {lines}" in stage.editor.text, "it is edited")
        assert stage.editor.text == "".join(f"# step {number}\n" for number in range(1, lines + 1))


async def test_half_a_surrogate_pair_is_replaced_because_a_script_with_it_cannot_run(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        stage.app.post_message(Paste("echo a\ud800b\n"))
        await stage.until(lambda: stage.editor.text == "echo a\ufffdb\n", "it is pasted")
        stage.editor.load_text("echo \udc00")
        await stage.press("ctrl+r")
        await stage.idle()
        assert stage.editor.text == "echo \ufffd"
        assert stage.calls[0].startswith("✓ script exit 0")


# Commands


@pytest.mark.promise("TUI-7")
async def test_a_command_is_inserted_with_placeholders_that_tab_selects(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.press("shift+tab")
        await stage.type("wolook")
        assert "work.look <where>" in stage.text
        await stage.press("enter")
        assert stage.editor.text == "work.look <where>"
        await stage.looked_at("line 1, column 11: fill in <where>")
        await stage.type("here")
        assert stage.editor.text == "work.look here"
        await stage.looked_at("will call work.look")
        await stage.press("shift+tab", "escape")
        assert stage.commands.list.sought == ""
        await stage.type("wosay")
        await stage.press("enter")
        assert stage.editor.text == "work.look here\nwork.say <text>"
        await stage.press("ctrl+z")
        assert stage.editor.text == "work.look here"


async def test_a_double_click_inserts_a_command_once_and_later_clicks_insert_it_again(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.pilot.click(stage.commands.list, times=2)
        await stage.until(lambda: stage.editor.text, "the command is inserted")
        first = stage.commands.marked
        assert first is not None
        name = first.names[0]
        assert stage.editor.text.count(name) == 1
        await stage.pilot.click(stage.commands.list)
        await stage.until(lambda: stage.editor.text.count(name) == 2, "it is inserted again")


async def test_a_command_is_inserted_where_bash_expects_one(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        for before, after in (
            ("x=$(", "x=$(work.say <text>"),
            ("a |", "a | work.say <text>"),
            ("if ", "if work.say <text>"),
            ("for x in 1; do\n  echo a", "for x in 1; do\n  echo a\n  work.say <text>"),
        ):
            stage.editor.load_text(before)
            stage.editor.move_cursor(stage.editor.document.end)
            stage.editor.put("work.say <text>")
            assert stage.editor.text.replace("|work", "| work") == after
            assert stage.editor.selected_text == "<text>"


@pytest.mark.promise("SCR-4")
async def test_the_help_of_a_command_is_shown_and_the_command_inserted(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.press("f2")
        await stage.until_seen("Select a command in the list")
        await stage.write("echo a; work.look x")
        stage.editor.move_cursor((0, 15))
        await stage.press("f2")
        await stage.until(lambda: isinstance(stage.app.screen, CommandHelp), "it is shown")
        await stage.until_seen("Where to look.")
        await stage.press("escape")
        await stage.press("shift+tab")
        await stage.type("work.big")
        await stage.press("f2", "enter")
        await stage.until(lambda: "work.big <size>" in stage.editor.text, "it is put in")


@pytest.mark.promise("SCR-4", "TUI-1")
async def test_the_keys_stay_below_the_help_of_a_command_that_is_longer_than_the_screen(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.write("text.diff a b")
        await stage.pilot.resize_terminal(60, 16)
        await stage.press("f2")
        await stage.until(lambda: isinstance(stage.app.screen, CommandHelp), "it is shown")
        await stage.until_seen("⏎ Insert  esc Close")


@pytest.mark.promise("TUI-7")
async def test_the_sidebar_is_hidden_and_on_narrow_screens_shown_on_demand(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        assert stage.commands.region.width > 20
        await stage.press("ctrl+b")
        assert stage.commands.region.width == 0
        assert stage.editor.has_focus
        await stage.press("ctrl+b")
        assert stage.commands.list.has_focus
        await stage.pilot.resize_terminal(80, 24)
        await stage.until(lambda: stage.commands.region.width == 0, "there is no room")
        await stage.until(lambda: stage.editor.has_focus, "the focus is where it can be seen")
        await stage.press("ctrl+b")
        assert stage.commands.list.has_focus
        await stage.type("wosay")
        await stage.press("enter")
        assert stage.commands.region.width == 0
        assert stage.editor.text == "work.say <text>"


@pytest.mark.promise("TUI-1")
async def test_new_tools_become_commands_immediately(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.write("work.new x")
        (write_work(tmp_path) / "work.py").write_text(f'{PACK}\ndef new() -> str:\n    """New."""\n    return ""\n')
        await stage.until(lambda: "work.new" in stage.place.analyzer.names, "it is known")
        await stage.until(lambda: looks(stage.editor, 0) == {"tool": {"work.new"}}, "it is seen to be a tool")
        assert stage.editor.text == "work.new x"


# Findings


@pytest.mark.promise("SCR-5")
async def test_calls_and_errors_of_a_script_are_shown_before_it_runs(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.write('work.say a; work.say b\nwork.big many\neval "$x"\nwork.big few')
        await stage.looked_at("line 2, column 1: work.big: --size:")
        assert "line 4, column 1: work.big: --size:" in stage.findings
        assert "→ will call work.say ×2, work.big ×2  and 1 more" in stage.findings
        await stage.write('work.say a; work.say b; work.big 3; eval "$x"')
        await stage.looked_at("? eval runs a script")
        assert "→ will call work.say ×2, work.big\n" in stage.findings
        await stage.write("echo a")
        await stage.looked_at("calls no tools")
        await stage.write("echo a\nif then")
        await stage.looked_at("✗ parse error at line 2")
        await stage.pilot.click("#findings")
        assert stage.editor.cursor_location == (1, 3)
        assert not stage.records


async def test_findings_that_are_cut_are_complete_in_their_tooltip(tmp_path: Path) -> None:
    async with on_script(tmp_path, size=(80, 24)) as stage:
        await stage.write("work.big few\nwork.big many")
        await stage.looked_at("and 1 more")
        assert 'not "many"' not in stage.text
        assert "will call" not in stage.text
        tooltip = str(stage.place.query_one("#findings").tooltip)
        assert tooltip.endswith('must be an integer, not "many"\n→ will call work.big ×2')
        await stage.write("work.say a")
        await stage.looked_at("will call work.say")
        assert stage.place.query_one("#findings").tooltip is None


async def test_a_key_moves_to_each_error_in_turn_and_shows_it_in_full(tmp_path: Path) -> None:
    async with on_script(tmp_path, size=(80, 24)) as stage:
        await stage.write("\n".join(f"work.big {'few' * 20}{number}" for number in range(4)))
        await stage.looked_at("and 3 more")
        for line in (0, 1, 2, 3, 0):
            await stage.press("alt+x")
            await stage.until_seen(f"{line + 1} of 4")
            assert stage.editor.cursor_location == (line, 0)
            assert f'must be an integer, not "{"few" * 20}{line}"' in " ".join(stage.findings.split())
        await stage.pilot.click("#findings")
        assert stage.editor.cursor_location == (0, 0)
        stage.editor.move_cursor((3, 0))
        for number in (4, 1):
            await stage.press("alt+x")
            await stage.until_seen(f"{number} of 4")
        await stage.write("work.say a")
        await stage.looked_at("will call work.say")
        await stage.press("alt+x")
        assert "will call work.say" in stage.findings


# Draft


@pytest.mark.promise("TUI-1")
async def test_the_draft_is_restored(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.type("work.say a")
    async with on_script(tmp_path) as stage:
        assert stage.editor.text == "work.say a"
        await stage.press("end", "b")
        folder = stage.runtime.paths.state
        kept = folder / "script-draft.json"
        await stage.until(lambda: "work.say ab" in kept.read_text(), "it is kept without leaving")


async def test_text_typed_before_the_draft_is_loaded_follows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    read = DraftFile.read

    def late(file: DraftFile) -> Draft:
        go_on.wait(20)
        return read(file)

    async with on_script(tmp_path) as stage:
        await stage.type("old")
    monkeypatch.setattr(DraftFile, "read", late)
    app = script_app(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        stage = ScriptStage(app, pilot)
        await stage.press("f7")
        await stage.type("new")
        go_on.set()
        await stage.until(lambda: stage.place.document.is_restored, "the draft is read")
        assert stage.editor.text == "old\nnew"


async def test_a_second_process_has_its_own_draft(tmp_path: Path) -> None:
    first, second = DraftFile(tmp_path, "script-draft"), DraftFile(tmp_path, "script-draft")
    assert (first.read(), second.read()) == (Draft(), Draft())
    first.keep(Draft("one", "a", "o"))
    second.keep(Draft("two"))
    for file in (first, second):
        file.write()
        file.close()
    again = DraftFile(tmp_path, "script-draft")
    assert again.read() == Draft("one", "a", "o")
    third = DraftFile(tmp_path, "script-draft")
    assert third.read() == Draft("two")
    again.close()
    third.close()


@pytest.mark.parametrize("texts", [("", "two"), ("one", "two")])
async def test_no_draft_of_several_processes_stays_hidden_if_one_runs_afterwards(
    tmp_path: Path, texts: tuple[str, ...]
) -> None:
    files = [DraftFile(tmp_path, "script-draft") for _ in texts]
    for file, text in zip(files, texts, strict=True):
        file.read()
        file.keep(Draft(text))
        file.write()
    for file in files:
        file.close()
    for text in filter(None, texts):
        file = DraftFile(tmp_path, "script-draft")
        assert file.read() == Draft(text)
        file.keep(Draft())  # it is sent or deleted
        file.write()
        file.close()


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"text": "a"}', "\x00"])
async def test_a_damaged_draft_is_ignored(tmp_path: Path, damage: str) -> None:
    (tmp_path / "script-draft.json").write_text(damage)
    file = DraftFile(tmp_path, "script-draft")
    assert file.read() == Draft()
    file.keep(Draft("new"))
    file.write()
    file.close()
    assert DraftFile(tmp_path, "script-draft").read() == Draft("new")


@pytest.mark.promise("TUI-1")
async def test_keys_move_to_the_start_and_the_end_of_the_script_and_select_up_to_them(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.write("echo a\necho b")
        await stage.press("ctrl+home", *"x ", "ctrl+end", *" y")
        await stage.until(lambda: stage.editor.text == "x echo a\necho b y", "both ends are reached")
        await stage.press("ctrl+shift+home", "z")
        await stage.until(lambda: stage.editor.text == "z", "all of it was selected")
