"""The Health page: requirements, their states, and navigation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from stage import READ_ONLY, TOOLS, GivenRuntime, Stage, on_stage, tool

from pegboard.config import Settings
from pegboard.config.settings import UiSettings
from pegboard.models import Hints, Problem, Requirement, ToolSpec
from pegboard.runtime import Runtime
from pegboard.tui.health.health_list import HealthList
from pegboard.tui.health.remedy import RemedyPane
from pegboard.tui.health.screen import HealthScreen
from pegboard.tui.widgets.pick_list import PickList

RG = Requirement(kind="cli", name="rg", min_version="13", install="apt install ripgrep")
GIT = Requirement(kind="cli", name="git")
PANDAS = Requirement(kind="lib", name="pandas", min_version="2")
KEY = Requirement(kind="secret", name="SEARCH_KEY", install="Ask for one at example.org.")
EXTRA = Requirement(kind="secret", name="EXTRA_KEY", optional=True)
BROKEN = Problem(message="It can't be parsed: expected ':'.", fix="Fix it.", file="/packs/broken.py", line=3)


def needing(spec: ToolSpec, *requirements: Requirement) -> ToolSpec:
    return spec.model_copy(update={"requirements": requirements})


NEEDY = (
    *TOOLS,
    needing(tool("web.search", "Searches.", READ_ONLY), RG, KEY, EXTRA),
    needing(tool("web.replace", "Replaces.", Hints(destructive=True)), RG, GIT),
    needing(tool("web.table", "Makes a table."), PANDAS),
)
"""Return three tools with five requirements, among others without any."""


@pytest.fixture
def needy(tmp_path: Path) -> GivenRuntime:
    """Return a runtime in which only git and an outdated library are installed."""
    given = GivenRuntime(tmp_path, tools=NEEDY)
    given.there = {"git": "2.39.5", "pandas": "1.5"}
    return given


def screen(stage: Stage) -> HealthScreen:
    shown = stage.app.get_screen_stack("health")[0]
    assert isinstance(shown, HealthScreen)
    return shown


def report(stage: Stage) -> Sequence[str]:
    """Return the lines of the list that aren't empty, with single spaces."""
    shown = screen(stage).query_one(HealthList)
    lines = [" ".join(shown.render_line(y).text.split()) for y in range(shown.size.height)]
    return [line for line in lines if line]


async def until_report(stage: Stage, *lines: str) -> None:
    """Wait until the list shows these lines."""
    await stage.until(lambda: report(stage) == [*lines], f"the report is {lines}")


async def go_to_health(stage: Stage) -> None:
    if stage.app.current_mode != "health":
        await stage.press("f8")
    await stage.until(lambda: isinstance(stage.app.focused, HealthList), "the report has the focus")
    await stage.until(lambda: report(stage), "the report is there")


async def until_marked(stage: Stage, name: str) -> None:
    """Move down until a line is selected."""
    shown = screen(stage).query_one(HealthList)
    while shown.line is None or shown.line.name != name:
        before = shown.cursor
        await stage.press("down")
        assert shown.cursor > before, f"there is no {name}"


@pytest.mark.promise("TUI-1", "SDK-9")
async def test_the_report_lists_each_requirement_once_worst_first(needy: GivenRuntime) -> None:
    needy.wrong = [BROKEN]
    async with on_stage(needy, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("4 of 5 not met")
        assert report(stage) == [
            "✖ pandas ≥ 2 library outdated 1.5 blocks 1 tool",
            "✖ rg ≥ 13 program missing blocks 2 tools",
            "✖ SEARCH_KEY secret missing blocks 1 tool",
            "✖ broken pack error broken.py:3",
            "! EXTRA_KEY secret missing optional",
            "✓ git program ok 2.39.5 1 tool",
        ]


@pytest.mark.promise("TUI-1")
async def test_one_key_lists_each_tool_with_its_requirements(needy: GivenRuntime) -> None:
    async with on_stage(needy, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("4 of 5 not met")
        await stage.press("ctrl+t")
        await until_report(
            stage,
            "✖ web.replace tool blocked requires 2",
            "✖ rg ≥ 13 program missing blocks 2 tools",
            "✓ git program ok 2.39.5 1 tool",
            "✖ web.search tool blocked requires 3",
            "✖ rg ≥ 13 program missing blocks 2 tools",
            "✖ SEARCH_KEY secret missing blocks 1 tool",
            "! EXTRA_KEY secret missing optional",
            "✖ web.table tool blocked requires 1",
            "✖ pandas ≥ 2 library outdated 1.5 blocks 1 tool",
        )
        await stage.press("ctrl+t")
        await stage.until(lambda: len(report(stage)) == 5, "each thing is listed once again")


@pytest.mark.promise("TUI-1", "TUI-2")
async def test_lines_fill_one_by_one_and_a_slow_check_delays_no_other(needy: GivenRuntime) -> None:
    needy.slow = {"rg"}
    async with on_stage(needy, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("checking… 4 of 5")
        await stage.until(lambda: "… rg ≥ 13 program checking… 2 tools" in report(stage), "it waits for rg")
        assert "✓ git program ok 2.39.5 1 tool" in report(stage)
        needy.there["rg"] = "14.0"
        needy.found_slow.set()
        await stage.until_seen("3 of 5 not met")
        assert "✓ rg ≥ 13 program ok 14.0 2 tools" in report(stage)


@pytest.mark.promise("TUI-1")
async def test_the_details_show_the_problem_the_remedy_and_the_blocked_tools(needy: GivenRuntime) -> None:
    async with on_stage(needy, size=(80, 24), page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("4 of 5 not met")
        await until_marked(stage, "rg ≥ 13")
        for text in ("`rg` is not there.", "apt install ripgrep", "At least 13", "Required by 2 tools"):
            await stage.until_seen(text)
        assert "web.search" in stage.text
        assert "web.replace" in stage.text
        await until_marked(stage, "SEARCH_KEY")
        for text in ("Ask for one at example.org.", "pegboard auth set SEARCH_KEY"):
            await stage.until_seen(text)
        await until_marked(stage, "git")
        for text in ("The program is available.", "2.39.5", "/usr/bin/git"):
            await stage.until_seen(text)


@pytest.mark.promise("STO-2")
@pytest.mark.parametrize(
    ("source", "said"),
    [("environment", "the environment"), ("keyring", "the keyring"), ("/home/me/.env", "/home/me/.env")],
)
async def test_the_source_of_a_secret_is_shown(needy: GivenRuntime, source: str, said: str) -> None:
    needy.there["SEARCH_KEY"] = source
    async with on_stage(needy, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("3 of 5 not met")
        await until_marked(stage, "SEARCH_KEY")
        await stage.until_seen(f"From     {said}")


@pytest.mark.promise("TUI-1")
async def test_enter_goes_from_a_requirement_to_its_tool_and_f8_returns_to_the_same_line(
    needy: GivenRuntime,
) -> None:
    async with on_stage(needy, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("4 of 5 not met")
        await until_marked(stage, "rg ≥ 13")
        await stage.press("enter", "down", "enter")
        await stage.until(lambda: stage.app.current_mode == "tools", "the tools are shown")
        assert stage.marked == "web.replace"
        await stage.press("f8")
        await stage.until(lambda: stage.app.current_mode == "health", "health is shown")
        line = screen(stage).query_one(HealthList).line
        assert line is not None
        assert line.name == "rg ≥ 13"


async def test_enter_opens_a_tool_and_escape_returns_from_the_tools_to_the_report(
    needy: GivenRuntime,
) -> None:
    async with on_stage(needy, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("4 of 5 not met")
        await stage.press("enter")
        assert not isinstance(stage.app.focused, HealthList)
        await stage.press("escape")
        assert isinstance(stage.app.focused, HealthList)
        await stage.press("ctrl+t")
        await stage.until(lambda: len(report(stage)) == 9, "the tools are listed")
        await stage.press("enter")
        await stage.until(lambda: stage.app.current_mode == "tools", "the tools are shown")
        assert stage.marked == "web.replace"


async def test_typing_filters_by_name_kind_and_status_and_escape_shows_all_again(needy: GivenRuntime) -> None:
    async with on_stage(needy, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("4 of 5 not met")
        await stage.type("pan")
        assert report(stage) == ["✖ pandas ≥ 2 library outdated 1.5 blocks 1 tool"]
        assert "1 of 5" in stage.text
        await stage.press("escape")
        await stage.type("missing")
        assert [line.split()[1] for line in report(stage)] == ["rg", "SEARCH_KEY", "EXTRA_KEY"]
        await stage.press("ctrl+u")
        await stage.type("zzz")
        assert report(stage) == ["No line matches."]
        await stage.press("escape")
        await stage.press("ctrl+t")
        await stage.type("git")
        await until_report(stage, "✖ web.replace tool blocked requires 2", "✓ git program ok 2.39.5 1 tool")


async def test_with_vim_keys_letters_move_and_only_a_slash_filters(needy: GivenRuntime) -> None:
    needy.settings = Settings(ui=UiSettings(vim_keys=True))
    async with on_stage(needy, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("4 of 5 not met")
        shown = screen(stage).query_one(HealthList)
        await stage.press("j", "j", "k")
        assert shown.cursor == 1
        await stage.press("G")
        assert shown.cursor == 4
        await stage.press("g", "slash", "g", "i", "t")
        assert report(stage) == ["✓ git program ok 2.39.5 1 tool"]


@pytest.mark.promise("TUI-1")
async def test_a_recheck_finds_an_installed_program_and_updates_the_tool_list(needy: GivenRuntime) -> None:
    async with on_stage(needy) as stage:
        await stage.until(lambda: "○ table" in "\n".join(stage.tool_list), "the list shows that it is blocked")
        await go_to_health(stage)
        await stage.until_seen("4 of 5 not met")
        assert "f8 Health !" in stage.lines[0]
        assert "4 problems" in stage.lines[0]
        needy.there["pandas"] = "2.1"
        needy.asked.clear()
        await until_marked(stage, "pandas ≥ 2")
        await stage.press("ctrl+r")
        await stage.until_seen("3 of 5 not met")
        assert needy.asked == ["pandas"]
        assert report(stage)[0] == "✓ pandas ≥ 2 library ok 2.1 1 tool", "it stays where it was"
        assert "3 problems" in stage.lines[0]
        await stage.press("f5")
        await stage.until(lambda: "● table" in "\n".join(stage.tool_list), "the list shows that it is ready")
        await stage.press("f8")
        await stage.until(lambda: report(stage)[0].startswith("✖ rg"), "what isn't well is first again")


async def test_recheck_all_continues_on_another_page(needy: GivenRuntime) -> None:
    async with on_stage(needy, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("4 of 5 not met")
        needy.there |= {"rg": "13.0", "pandas": "2.0", "SEARCH_KEY": "keyring", "EXTRA_KEY": "environment"}
        needy.slow = {"rg"}
        needy.asked.clear()
        await stage.press("alt+r")
        await stage.until_seen("checking… 4 of 5")
        assert sorted(needy.asked) == ["EXTRA_KEY", "SEARCH_KEY", "git", "pandas", "rg"]
        await stage.press("f5")
        needy.found_slow.set()
        await stage.until_seen("f8 Health ✓")
        await stage.press("f8")
        await stage.until_seen("✓ all 5 met")


async def test_the_remedy_is_copied(needy: GivenRuntime) -> None:
    async with on_stage(needy, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("4 of 5 not met")
        await until_marked(stage, "rg ≥ 13")
        await stage.press("ctrl+right_square_bracket")
        await stage.until(lambda: stage.app.clipboard == "apt install ripgrep", "it is copied")


@pytest.mark.promise("DSC-7")
async def test_a_pack_with_a_problem_is_a_line_with_file_and_reason_that_opens_it(needy: GivenRuntime) -> None:
    needy.wrong = [BROKEN]
    async with on_stage(needy, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("4 of 5 not met")
        await until_marked(stage, "broken")
        for text in ("It can't be parsed: expected ':'.", "Fix it.", "/packs/broken.py:3"):
            await stage.until_seen(text)
        await stage.press("ctrl+right_square_bracket")
        await stage.until(lambda: stage.app.clipboard == str(BROKEN), "it is copied with its place")
        await stage.press("enter")
        await stage.until_seen("broken.py can't")


async def test_a_report_without_requirements_is_explained(given: GivenRuntime) -> None:
    async with on_stage(given, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("No tool requires a program")
        await stage.until(lambda: "f8 Health ✓" in stage.lines[0], "the header shows that nothing is missing")
        await stage.press("ctrl+r", "alt+r", "ctrl+right_square_bracket", "f4", "enter", "f10", "ctrl+t")
        assert stage.app.is_running


async def test_a_report_without_tools_explains_where_to_add_some(tmp_path: Path) -> None:
    async with on_stage(GivenRuntime(tmp_path, tools=[]), page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("No tools yet.")


async def test_a_rescan_updates_the_report_and_keeps_the_selection(needy: GivenRuntime) -> None:
    async with on_stage(needy, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("4 of 5 not met")
        await until_marked(stage, "SEARCH_KEY")
        needy.change([*NEEDY[:-1], needing(tool("web.more"), Requirement(kind="cli", name="aspell"))])
        await stage.until(lambda: "✖ aspell program missing blocks 1 tool" in report(stage), "the other need is there")
        assert not any("pandas" in line for line in report(stage))
        line = screen(stage).query_one(HealthList).line
        assert line is not None
        assert line.name == "SEARCH_KEY"


async def test_a_changed_declaration_of_a_checked_requirement_is_shown(needy: GivenRuntime) -> None:
    async with on_stage(needy, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("4 of 5 not met")
        await until_marked(stage, "EXTRA_KEY")
        required = EXTRA.model_copy(update={"optional": False, "install": "Ask Bob."})
        needy.change([*NEEDY[:-1], needing(tool("web.more"), required)])
        await stage.until(lambda: "✖ EXTRA_KEY secret missing blocks 1 of 2" in report(stage), "it blocks a tool")
        await stage.until_seen("Ask Bob.")
        problems = {problem.fix: problem.severity for problem in stage.app.problems}
        assert problems["How to get it: Ask Bob."] == "error"
        assert needy.asked.count("EXTRA_KEY") == 1


@pytest.mark.parametrize("is_last", [False, True])
async def test_the_declaration_of_a_tool_that_is_blocked_is_shown_before_those_of_others(
    tmp_path: Path, is_last: bool
) -> None:
    required = EXTRA.model_copy(update={"optional": False, "install": "Ask Bob."})
    vague = required.model_copy(update={"install": None})
    tools = [needing(tool(f"web.t{number}"), one) for number, one in enumerate((required, EXTRA, vague))]
    given = GivenRuntime(tmp_path, tools=tools[::-1] if is_last else tools)
    async with on_stage(given, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("1 of 1 not met")
        await stage.until_seen("Ask Bob.")
        assert [problem.severity for problem in stage.app.problems] == ["error"]


@pytest.mark.promise("TUI-4")
async def test_hostile_names_and_messages_are_shown_as_text(tmp_path: Path) -> None:
    hostile = Requirement(kind="cli", name="[red]x\x1b[2J", install="[b]run\x1b]0;evil\x07")
    given = GivenRuntime(tmp_path, tools=[needing(tool("p.[bold]y"), hostile)])
    async with on_stage(given, page="health") as stage:
        await go_to_health(stage)
        await stage.until_seen("[b]run")
        assert "[red]x" in stage.text
        await stage.until_seen("p.[bold]y")
        assert "\x1b" not in stage.text


@pytest.mark.promise("TUI-7")
async def test_the_palette_opens_pages_and_finds_tools_from_every_page(needy: GivenRuntime) -> None:
    async with on_stage(needy) as stage:
        await stage.press("ctrl+p")
        await stage.type("health")
        await stage.until_seen("Everywhere: Health")
        await stage.press("enter")
        await stage.until(lambda: stage.app.current_mode == "health", "health is shown")
        await go_to_health(stage)
        await stage.press("ctrl+p")
        await stage.type("pwd")
        await stage.until_seen("shell.pwd")
        await stage.press("enter")
        await stage.until(lambda: stage.marked == "shell.pwd", "the tool is marked")
        assert stage.app.current_mode == "tools"


@pytest.mark.promise("SEC-7")
async def test_a_key_that_arrives_before_its_page_has_widgets_does_nothing(needy: GivenRuntime) -> None:
    async with on_stage(needy) as stage:
        early = stage.app._health_screen()
        assert not await stage.app.run_action("back", early)
        await stage.press("f8", "escape")
        await stage.until_seen("pandas")


@pytest.mark.promise("TUI-7")
async def test_a_click_on_a_page_in_the_header_opens_it(needy: GivenRuntime) -> None:
    async with on_stage(needy, size=(80, 24)) as stage:
        await stage.until_seen("f5 Tools 8  f6 Chat  f7 Script  f8 Health !")
        await stage.pilot.click("HeaderItem#health")
        await stage.until(lambda: stage.app.current_mode == "health", "health is shown")
        await stage.until_seen("pandas")
        await stage.pilot.click("HeaderItem#problems")
        await stage.until_seen("4 problems ─")
        await stage.press("escape")
        await stage.pilot.click("HeaderItem#tools")
        await stage.until(lambda: stage.app.current_mode == "tools", "the tools are shown")


async def test_a_form_keeps_its_input_while_another_page_is_open(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.type("a.txt")
        await go_to_health(stage)
        await stage.press("f5")
        assert stage.form.submit() == {"path": "a.txt"}
        assert stage.form.has_focus_within


@pytest.mark.promise("TUI-1", "SDK-8")
async def test_the_form_of_a_blocked_tool_shows_why_and_running_it_needs_confirmation(needy: GivenRuntime) -> None:
    async with on_stage(needy) as stage:
        await stage.type("web.search")
        await stage.until_seen("✖ `rg` is not there. How to get it: apt install ripgrep")
        await stage.press("ctrl+r")
        await stage.until_seen("Run web.search anyway?")
        await stage.until_seen("web.search is blocked by missing requirements:")
        await stage.press("enter")
        assert not needy.calls
        await stage.press("ctrl+r")
        await stage.until_seen("Run web.search anyway?")
        await stage.press("ctrl+y")
        await stage.until(lambda: [call.name for call in needy.calls] == ["web.search"], "it is called")


async def test_a_blocked_destructive_tool_needs_one_confirmation(needy: GivenRuntime) -> None:
    async with on_stage(needy) as stage:
        await stage.type("replace")
        await stage.until_seen("`rg` is not there.")
        await stage.press("ctrl+r")
        await stage.until_seen("Run web.replace anyway?")
        await stage.until_seen("may delete or overwrite")
        await stage.press("ctrl+y")
        await stage.until_seen("✓ ok")


async def test_a_missing_optional_requirement_is_shown_without_confirmation(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path, tools=[needing(tool("p.free"), EXTRA)])
    async with on_stage(given) as stage:
        await stage.until_seen("! `EXTRA_KEY` is not there.")
        await stage.press("ctrl+r")
        await stage.until_seen("✓ ok")


PACK = '''
"""Works with a program."""
from pegboard.sdk import hints, requires_cli

@requires_cli("needed-here", install="make needed-here")
@hints(read_only=True)
def work() -> str:
    """Works."""
    return "it is done"
'''


@pytest.mark.promise("TUI-1", "SDK-9")
async def test_a_blocked_tool_fails_with_the_message_of_the_report_until_it_is_fixed(
    write_pack: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    runtime = Runtime.from_environment(packs=[write_pack("needy.py", PACK)])
    async with on_stage(runtime) as stage:
        await stage.type("needy.work")
        await stage.until_seen("`needed-here` is not on the PATH. How to get it: make needed-here")
        await stage.press("ctrl+r")
        await stage.until_seen("Run needy.work anyway?")
        await stage.press("ctrl+y")
        await stage.until_seen("dependency_missing")
        await stage.press("f8")
        await stage.until_seen("make needed-here")
        assert "`needed-here` is not on the PATH." in stage.text
        file = tmp_path / "bin" / "needed-here"
        file.write_text("#!/bin/sh\necho needed-here 1.0\n")
        file.chmod(0o755)
        await stage.press("f5", "ctrl+r")
        await stage.until_seen("Run needy.work anyway?")
        await stage.press("ctrl+y")
        await stage.until_seen("it is done")
        await stage.until(lambda: "● needy.work" in "\n".join(stage.tool_list), "the list shows that it is ready")
        await stage.press("ctrl+r")
        await stage.until(lambda: runtime.history.uses("needy.work").calls == 3, "it is run without a question")


async def test_a_tool_that_is_chosen_as_the_list_becomes_shorter_is_ignored(needy: GivenRuntime) -> None:
    async with on_stage(needy, page="health") as stage:
        await stage.until(lambda: any("rg" in line for line in report(stage)), "the report is shown")
        pane = screen(stage).query_one(RemedyPane)
        pane.post_message(PickList.Chosen(9))
        await stage.pilot.pause()
        assert stage.app.current_mode == "health"
