"""The Script page: running a script, its calls, its output."""

from __future__ import annotations

from pathlib import Path

import pytest
from script_stage import ScriptStage, on_script
from textual import events

from pegboard.tui.chat.prompt import AskLine
from pegboard.tui.chat.screen import ChatScreen
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.dialogs.result import ResultScreen
from pegboard.tui.messages import OpenCall
from pegboard.tui.tools.screen import ToolsScreen


def begun(stage: ScriptStage) -> list[list[str]]:
    """Return sign and name of each call."""
    return [row.replace("∥ ", "").split()[:2] for row in stage.calls[1:]]


@pytest.mark.promise("SCR-6", "TUI-1")
async def test_a_script_runs_and_shows_its_calls_and_output(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.run("work.look here | jq -r .seen\necho oops >&2; exit 3")
        assert stage.calls[0].startswith("✗ script exit 3")
        assert begun(stage) == [["✓", "work.look"]]
        assert '{where: "her' in stage.calls[1]
        assert stage.printed == ["  here", "! oops"]
        assert "✗ exit 3" in stage.text


@pytest.mark.promise("TUI-1")
async def test_json_output_is_filtered_with_jq_from_every_view_and_the_filtered_part_is_copied(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.run("work.look here --often 3")
        stage.output.focus()
        await stage.until(lambda: "[Output 1]" in stage.text, "the output is shown as it was printed")
        await stage.press("vertical_line", *"often")
        await stage.until(lambda: "[Text]" in stage.text, "the filter is followed")
        await stage.press("enter")
        await stage.until(lambda: "jq: 1 result" in stage.text, "the filter is kept")
        for key in ("C", "c"):
            stage.app.copy_to_clipboard("")
            await stage.press(key)
            await stage.until(lambda: stage.app.clipboard == "3", "the filtered result is copied")
        await stage.press("escape")
        await stage.until(lambda: "[Output 1]" in stage.text, "the whole output is shown again")
        await stage.press("C")
        await stage.until(lambda: stage.app.clipboard == '{"seen": "here", "often": 3}\n', "the whole output is copied")


@pytest.mark.promise("SCR-6", "TUI-1")
async def test_concurrent_calls_are_marked_and_esc_cancels_them(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        gate = tmp_path / "gate"
        await stage.write(f"work.wait {gate} & work.wait /nowhere & wait; work.wait /nowhere")
        await stage.press("ctrl+r")
        await stage.until(lambda: begun(stage) == [["▶", "work.wait"]] * 2, "both run")
        assert [row[:3] for row in stage.calls] == ["▶ s", "▶ w", "▶ ∥"]
        assert "f7 Script ▶" in stage.lines[0]
        assert "esc Cancel" in stage.lines[-1]
        await stage.until(lambda: "1 of 3" in stage.calls[2], "how far they are is told")
        gate.touch()
        await stage.until(lambda: ["✓", "work.wait"] in begun(stage), "one has ended, the other goes on")
        stage.tree.focus()
        await stage.press("end", "up", "down")
        await stage.press("home", "down", "down" if "▶" in stage.calls[2] else "home", "up", "down")
        await stage.press("escape")
        await stage.idle()
        assert {sign for sign, name in begun(stage) if name == "work.wait"} == {"✓", "⊘"}
        assert stage.calls[0].startswith("⊘ script cancelled")
        assert stage.tree.border_title == "Calls  2"  # a cancelled call hasn't failed
        assert "⊘ cancelled" in stage.text
        assert "f7 Script ▶" not in stage.lines[0]


@pytest.mark.promise("SCR-6")
async def test_the_title_counts_only_the_calls_of_the_last_run(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.run("work.look here")
        assert stage.tree.border_title == "Calls  1"
        await stage.run("echo nothing")
        assert stage.tree.border_title == "Calls"


@pytest.mark.promise("SCR-6")
async def test_the_marked_call_shows_its_error_and_its_last_log_lines(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        (tmp_path / "gate").touch()
        await stage.run(
            f"work.say a; work.fail --message 'Nothing of the kind.'; work.say b; work.wait {tmp_path / 'gate'}"
        )
        assert stage.tree.border_title == "Calls  4, 1 failed"
        stage.tree.focus()
        await stage.press("f")
        assert stage.calls[3] == "│ Nothing of the kind."
        await stage.press("end")
        assert stage.calls[5:] == ["│ … 3 earlier lines", *(f"│ line {number}" for number in range(3, 8))]
        await stage.press("home")
        assert len(stage.calls) == 5


@pytest.mark.promise("SCR-6")
async def test_nested_calls_are_listed_below_their_caller(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.run("work.outer there; work.say x")
        assert begun(stage) == [["✓", "work.outer"], ["✓", "work.look"], ["✓", "work.say"]]
        depths = [len(row) - len(row.lstrip()) for row, _ in map(stage.tree.row, range(4))]
        assert depths == [0, 2, 4, 2]


@pytest.mark.promise("SCR-6", "TUI-1")
async def test_a_call_opens_its_full_result_its_form_and_the_chat(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.run("work.big 20000 | wc -c; work.look 'a b' --often 3")
        stage.tree.focus()
        await stage.press("home", "down", "enter")
        await stage.until(lambda: isinstance(stage.app.screen, ResultScreen), "the result is open")
        await stage.until_seen("x" * 80)
        await stage.press("escape", "down", "a")
        await stage.until(lambda: isinstance(stage.app.screen, ChatScreen), "the chat is open")
        line = stage.app.screen.query_one(AskLine)
        await stage.until(
            lambda: line.text.startswith('`work.look` with `{"where":"a b"'), "the call is in the message"
        )
        await stage.press("f7", "o")
        await stage.until(lambda: isinstance(stage.app.screen, ToolsScreen), "the form is open")
        await stage.until(lambda: stage.form.form is not None and stage.form.form.draft() != {}, "it is filled")
        assert stage.form.submit() == {"where": "a b", "often": 3}


@pytest.mark.promise("SCR-6", "TUI-2")
async def test_hundreds_of_calls_are_listed_and_the_end_is_followed(tmp_path: Path) -> None:
    async with on_script(tmp_path, size=(80, 24)) as stage:
        await stage.run("for i in $(seq 300); do work.say $i; done | wc -l")
        assert stage.tree.border_title == "Calls  300"
        assert len(stage.calls) == 301
        assert "300" in "".join(line for line in stage.lines if "work.say" in line).split("work.say")[-1]
        stage.tree.focus()
        await stage.press("home")
        assert "✓ script" in stage.text
        await stage.press("pagedown", "up")
        assert stage.tree.cursor is not None


async def test_the_viewport_stays_when_scrolled_up_while_calls_arrive(tmp_path: Path) -> None:
    async with on_script(tmp_path, size=(80, 24)) as stage:
        gates = [tmp_path / "one", tmp_path / "two"]
        loop = "for i in $(seq 30); do work.say $i; done >/dev/null"
        await stage.write(f"{loop}; work.wait {gates[0]}; {loop}; work.wait {gates[1]}")
        await stage.press("ctrl+r")
        await stage.until(lambda: ["▶", "work.wait"] in begun(stage), "the first half is done")
        await stage.drawn()
        stage.tree.scroll_to(y=3, animate=False, immediate=True)
        gates[0].touch()
        await stage.until(lambda: len(stage.calls) == 63, "the second half is done")
        await stage.drawn()
        assert stage.tree.scroll_offset.y == 3
        gates[1].touch()
        await stage.idle()
        stage.tree.focus()
        await stage.press("end")
        assert stage.tree.is_vertical_scroll_end


async def test_a_click_marks_a_call_and_a_second_click_opens_it(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.run("work.say a; work.say b")
        await stage.pilot.click(stage.tree, offset=(8, 2))
        assert stage.tree.cursor is not None
        assert stage.tree.cursor.call.args == {"text": "a"}
        await stage.pilot.click(stage.tree, offset=(8, 2))
        await stage.until(lambda: isinstance(stage.app.screen, ResultScreen), "the result is open")


async def test_a_click_marks_the_call_under_the_mouse_although_the_tree_grows_before_the_release(
    tmp_path: Path,
) -> None:
    async with on_script(tmp_path, size=(80, 24)) as stage:
        await stage.run("for i in $(seq 30); do work.say $i; done >/dev/null")
        stage.editor.focus()
        await stage.pilot.pause()
        height = stage.tree.size.height
        y = next(row for row, line in enumerate(stage.lines) if 'work.say  {text: "30"}' in line)
        for _ in range(2):
            await stage.mouse(events.MouseDown, 10, y)
            assert stage.tree.size.height > height
            assert 'work.say  {text: "30"}' not in stage.lines[y]
            await stage.mouse(events.MouseUp, 10, y)
            assert stage.tree.cursor is not None
            assert stage.tree.cursor.call.args == {"text": "30"}
        await stage.until(lambda: isinstance(stage.app.screen, ResultScreen), "the second click opened the result")


@pytest.mark.promise("SCR-5")
@pytest.mark.parametrize(("answer", "calls"), [("n", 0), ("ctrl+y", 2)])
async def test_a_destructive_script_is_confirmed_once(tmp_path: Path, answer: str, calls: int) -> None:
    async with on_script(tmp_path) as stage:
        await stage.write('x=b.txt; work.remove a.txt; work.remove "$x"; work.say x')
        await stage.press("ctrl+r")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it asks")
        await stage.until_seen('work.remove  {path: "a.txt"}')
        assert "work.remove  …" in stage.text
        assert not stage.records
        await stage.press(answer)
        await stage.idle()
        assert sum(record.tool == "work.remove" for record in stage.records) == calls


@pytest.mark.promise("SCR-5")
async def test_a_destructive_tool_is_confirmed_even_if_its_call_cant_be_analyzed(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.write("echo a.txt | xargs -P 2 -I{} sh -c 'work.remove {}'; trap 'work.say x' EXIT")
        await stage.press("ctrl+r")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it asks")
        await stage.until_seen("work.remove  …")
        assert "work.say  " not in stage.text
        await stage.press("n")
        await stage.idle()
        assert not stage.records


@pytest.mark.promise("SCR-5")
async def test_a_script_with_known_errors_is_confirmed(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.write("work.say hello\nwork.sya there\nwork.remove --nope 1")
        await stage.press("ctrl+r")
        await stage.until_seen("It has errors:")
        await stage.until_seen("Unknown command work.sya")
        await stage.until_seen("work.remove: --nope: unknown argument")
        await stage.press("n")
        await stage.idle()
        assert not stage.records
        await stage.write("work.say hello\nwork.sya there\nif then")
        await stage.press("ctrl+r")
        await stage.until_seen("Run this script?")
        await stage.until_seen("Unknown command work.sya")
        await stage.press("n")
        await stage.idle()
        assert not stage.records


@pytest.mark.promise("SCR-5", "ACT-2")
async def test_a_destructive_script_is_confirmed_before_it_runs_again(tmp_path: Path) -> None:
    async with on_script(tmp_path, config="[scripts]\noffer = true\n") as stage:
        async for _ in stage.runtime.scripts.run("work.remove a.txt"):
            pass
        await stage.press("f9")
        await stage.until_seen("script.run ")
        await stage.press("ctrl+r")
        await stage.until_seen("data: work.remove.")
        await stage.press("n")
        await stage.until(lambda: not isinstance(stage.app.screen, Confirm), "the question is closed")
        stage.app.screen.post_message(OpenCall("script.run", {"commands": "work.remove b.txt"}))
        await stage.until(lambda: stage.app.current_mode == "tools", "the form is open")
        await stage.until_seen("work.remove b.txt")
        await stage.press("ctrl+r")
        await stage.until_seen("data: work.remove.")
        await stage.press("n")
        await stage.until(lambda: not isinstance(stage.app.screen, Confirm), "the question is closed")
        assert len(stage.records) == 2


async def test_a_running_script_is_not_started_again_and_an_empty_one_does_not_run(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.press("ctrl+r")
        await stage.until_seen("The editor is empty. Type a script to run.")
        await stage.write("work.wait /nowhere")
        await stage.press("ctrl+r")
        await stage.until(lambda: ["▶", "work.wait"] in begun(stage), "it runs")
        await stage.press("ctrl+r")
        await stage.until_seen("A script is still running. Press esc to cancel it.")
        await stage.press("escape")
        await stage.idle()
        assert len(stage.records) == 2


async def test_the_end_of_a_script_is_announced_on_other_pages(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.write(f"work.wait {tmp_path / 'gate'}; exit 4")
        await stage.press("ctrl+r", "f5")
        await stage.until(lambda: "f7 Script ▶" in stage.lines[0], "it runs")
        (tmp_path / "gate").touch()
        await stage.until_seen("The script ended with exit code 4.")


@pytest.mark.promise("TUI-7")
async def test_every_pane_is_maximized_and_restored_with_esc(tmp_path: Path) -> None:
    async with on_script(tmp_path, size=(80, 24)) as stage:
        await stage.run("work.say a")
        await stage.press("ctrl+b")
        for widget in (stage.editor, stage.tree, stage.output, stage.commands.list):
            widget.focus()
            await stage.pilot.pause()
            before = widget.region.height
            await stage.press("f10")
            assert widget.region.width >= 78, widget
            assert stage.place.maximized is not None
            assert "f7 Script" in stage.lines[0]
            await stage.press("escape")
            await stage.until(lambda: stage.place.maximized is None, "it is given back")
            assert widget.region.height <= max(before, 21)


@pytest.mark.promise("TUI-7")
@pytest.mark.parametrize("size", [(120, 40), (80, 24), (60, 16), (200, 60), (100, 20), (70, 50)])
async def test_every_pane_is_visible_at_every_size_with_any_focus(tmp_path: Path, size: tuple[int, int]) -> None:
    async with on_script(tmp_path, size=size) as stage:
        await stage.run("work.say a")
        for widget in (stage.editor, stage.tree, stage.output):
            widget.focus()
            await stage.pilot.pause()
            assert stage.editor.size.height >= 2
            assert stage.tree.size.height >= 2
            assert stage.output.size.height >= 2
            assert all(len(line) <= size[0] for line in stage.lines)


# Output


@pytest.mark.promise("TUI-1")
async def test_json_output_is_shown_as_tree_or_table_and_copied_unchanged(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.run("for i in 1 2 3; do work.look p$i; done")
        assert "[Output 3]" in stage.text
        stage.output.focus()
        await stage.press("C")
        printed = "".join(f'{{"seen": "p{i}", "often": 1}}\n' for i in (1, 2, 3))
        await stage.until(lambda: stage.app.clipboard == printed, "it is copied")
        await stage.press("v")
        await stage.until_seen("[Table]")
        assert "p3" in stage.text
        await stage.run("echo '{\"deep\": [1]}'")
        await stage.press("v")
        await stage.until_seen("[Tree]")


async def test_the_output_of_a_running_script_is_copied_not_that_of_the_last_one(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.run("echo first")
        await stage.write("echo second; work.wait /nowhere")
        await stage.press("ctrl+r")
        await stage.until(lambda: stage.printed == ["  second"], "the line is shown")
        stage.output.focus()
        await stage.press("c")
        await stage.until(lambda: bool(stage.app.clipboard), "the output is copied")
        assert stage.app.clipboard.strip() == "second"


@pytest.mark.parametrize(
    ("printed", "data"),
    [
        ('{"a": "x\u2028y\x85z"}\n {"a": 2} \r\n[3]', [{"a": "x\u2028y\x85z"}, {"a": 2}, [3]]),
        ("[1\n2]", "[1\n2]\n"),
        ('{"a": 1}\n2, 3', '{"a": 1}\n2, 3\n'),
        ('{"a": 1}\n{"a": NaN}', '{"a": 1}\n{"a": NaN}\n'),
    ],
)
async def test_only_lines_that_are_json_on_their_own_are_shown_as_a_list(
    tmp_path: Path, printed: str, data: object
) -> None:
    async with on_script(tmp_path) as stage:
        await stage.run(f"cat <<'END'\n{printed}\nEND")
        assert stage.output.result is not None
        assert stage.output.result.data == data


@pytest.mark.promise("TUI-1")
async def test_the_output_is_searchable(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.run("for i in $(seq 200); do echo line $i; done")
        stage.output.focus()
        await stage.press("slash")
        await stage.type("line 77")
        await stage.press("enter")
        await stage.until_seen("1 of 1: line 77")
        assert "  line 77" in stage.text


@pytest.mark.promise("SCR-5")
@pytest.mark.parametrize(
    ("script", "code", "reason"),
    [
        ("f() { f; }; f", 125, "its functions were nested more than 16 levels deep"),
        ("echo a; sleep 20", 124, "it took longer than 2 s"),
        ("echo a\nif then", 2, "bash: line 2: syntax error near unexpected token"),
        ("for i in $(seq 2000); do printf '%01000d' 1; done", 125, "stdout was truncated after 1,000,000 bytes"),
    ],
)
async def test_the_reason_why_a_script_was_stopped_or_truncated_is_shown(
    tmp_path: Path, script: str, code: int, reason: str
) -> None:
    async with on_script(tmp_path, size=(160, 40), config="[scripts]\nseconds = 2\n") as stage:
        await stage.run(script)
        assert any(f"│ {'✗' if code else '✓'} exit {code} · " in line for line in stage.lines)
        assert reason in " ".join(" ".join(stage.printed).split())


@pytest.mark.promise("SCR-5")
async def test_the_whole_status_is_shown_on_a_narrow_screen(tmp_path: Path) -> None:
    async with on_script(tmp_path, size=(80, 24)) as stage:
        await stage.run("seq 50000; f() { f; }; f")
        status = " ".join(stage.text.split())
        assert "exit 125" in status
        assert "more than 16 levels deep · " in status
        assert "lines; the Text view has all of stdout" in status


@pytest.mark.promise("SCR-5")
async def test_a_tool_that_hangs_is_cancelled_and_the_script_continues(tmp_path: Path) -> None:
    async with on_script(tmp_path, config="[tools]\ntimeout = 0.3\n") as stage:
        await stage.run('work.wait /nowhere || echo "code $?"')
        assert stage.printed[-1] == "  code 124"
        assert "✗ work.wait" in stage.calls[1]
        assert "timeout" in stage.calls[1]


@pytest.mark.promise("TUI-4")
async def test_output_of_scripts_and_tools_is_shown_as_text(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.run(
            "work.say $'[bold]a\\x1b[2J\\u202eb'; work.fail --message $'\\x1b]0;own\\x07[red]x'; echo '[link=x]y'"
        )
        stage.tree.focus()
        await stage.press("f")
        assert "\x1b" not in stage.text
        assert "\u202e" not in stage.text
        assert "[bold]a␛[2J" in "\n".join(stage.printed)
        assert "[red]x" in "\n".join(stage.calls)


async def test_quitting_the_app_cancels_the_script(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.write("work.wait /nowhere")
        await stage.press("ctrl+r")
        await stage.until(lambda: begun(stage) == [["▶", "work.wait"]], "it runs")
        runtime, call_id = stage.runtime, stage.place.runner.call_id
    assert not await runtime.cancel(call_id)
