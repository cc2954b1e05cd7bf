"""The first start, what later starts restore, and the layout of the tool page."""

from __future__ import annotations

import asyncio
import re
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest
from stage import READ_ONLY, TOOLS, GivenRuntime, Stage, as_runtime, on_stage, open_on, tool
from textual import events
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.widgets import Static
from textual.worker import Worker, WorkerFailed

from pegboard.config import Appearance, Settings
from pegboard.models import JsonObject, ToolResult
from pegboard.runtime import Runtime
from pegboard.tui.app import PegboardApp
from pegboard.tui.form import FormPane
from pegboard.tui.health.screen import HealthScreen
from pegboard.tui.messages import OpenCall
from pegboard.tui.result import ResultPane
from pegboard.tui.state.remembered import Remembered
from pegboard.tui.tools.screen import ToolsScreen


@pytest.mark.promise("TUI-8")
async def test_the_first_start_opens_a_tool_that_runs_without_arguments_and_welcomes_until_it_ran(
    tmp_path: Path,
) -> None:
    tools = [tool("crm.find", hints=READ_ONLY, words={"type": "string"}), *TOOLS]
    given = GivenRuntime(tmp_path, tools, first_start=True)
    async with on_stage(given, size=(80, 24)) as stage:
        assert stage.marked == "fs.list_dir"
        welcome = ["Press ctrl+r to run this tool.", "pegboard new NAME"]
        welcome += ["Connect a model: f6, f2.", "Add an MCP server: ctrl+p, add mcp."]
        assert all(line in stage.text for line in welcome)
        await stage.press("ctrl+r")
        await stage.until_seen("✓ ok")
        await stage.press("home", "end")
        await stage.until(lambda: stage.screen.settled, "another tool is shown")
        assert "pegboard new NAME" not in stage.text
    async with on_stage(given) as stage:
        await stage.press("home")
        await stage.until(lambda: stage.screen.settled, "a pack is shown")
        assert "pegboard new NAME" not in stage.text


@pytest.mark.promise("TUI-8")
async def test_later_starts_restore_page_tool_and_filter(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.type("re")
        await stage.press("down")
        marked = stage.marked
        await stage.press("f8")
        await stage.until(lambda: isinstance(stage.app.screen, HealthScreen), "the Health page is shown")
    async with on_stage(given) as stage:
        await stage.until(lambda: isinstance(stage.app.screen, HealthScreen), "the Health page is restored")
        await stage.press("f5")
        await stage.until(lambda: isinstance(stage.app.screen, ToolsScreen), "the Tools page is shown")
        await stage.until(lambda: stage.screen.query(ResultPane), "form and result are there")
        await stage.until(lambda: stage.screen.settled, "its form is shown")
        assert (stage.marked, stage.list.sought) == (marked, "re")
        assert stage.form.form is not None
        assert [field.name for field in stage.form.form.fields] == ["path", "max_bytes"]
        await stage.until_seen("max_bytes  integer")


async def test_a_filter_without_matches_leaves_no_empty_box_and_is_not_restored(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.type("qqq")
        await stage.until_seen("No tool matches “qqq”.")
        await stage.until_seen("Select a tool to run it.")
        assert "─ Result ─" in stage.lines[1], "nothing is above the result"
    async with on_stage(given) as stage:
        assert not stage.list.sought
        assert stage.marked
        await stage.type("re")
        await stage.until(lambda: stage.screen.settled, "the best match is shown")
    async with on_stage(given) as stage:
        assert stage.list.sought == "re"
        await stage.type("now")
        assert (stage.marked, stage.list.sought) == ("time.now", "now"), "the first letter replaces it"


async def test_the_key_of_the_filter_begins_a_new_one_when_the_focus_returns_to_the_list(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("slash", "r", "e")
        assert stage.list.sought == "re"
        stage.app.app_focus = False
        await stage.pilot.pause()
        stage.app.app_focus = True
        await stage.until(lambda: stage.list.has_focus, "the list has the focus again")
        assert stage.list.typing, "only the terminal had lost the focus"
        await stage.press("enter")
        await stage.until(lambda: not stage.list.has_focus, "the form has the focus")
        await stage.press("escape")
        await stage.until(lambda: stage.list.has_focus, "the list has the focus again")
        await stage.press("slash", "n", "o", "w")
        assert stage.list.sought == "now"
        await stage.press("slash")
        assert stage.list.sought == "now/"


class _SlowRuntime(GivenRuntime):
    """A runtime whose settings can't be read before `readable` is set."""

    def __init__(self, folder: Path) -> None:
        self.readable = threading.Event()
        self.read = 0
        super().__init__(folder)

    @property
    def settings(self) -> Settings:
        """The defaults."""
        assert self.readable.wait(20)
        self.read += 1
        return Settings()

    @settings.setter
    def settings(self, settings: Settings) -> None: ...


async def test_the_first_frame_waits_for_no_settings_and_keys_typed_before_them_are_kept(tmp_path: Path) -> None:
    slow = _SlowRuntime(tmp_path)
    app = PegboardApp(as_runtime(slow), Appearance(theme="pegboard-light"))
    async with app.run_test(size=(120, 40)) as pilot:
        stage = Stage(app, pilot)
        await stage.until_seen("Looking for tools…")
        assert (app.theme, slow.read) == ("pegboard-light", 0)
        for letter in "re":
            app.post_message(events.Key(letter, letter))
        app.post_message(events.Key("f8", None))
        app.post_message(events.Key("f5", None))
        slow.readable.set()
        await stage.until(lambda: stage.list.sought == "re", "the keys are handled")
        await stage.until(lambda: stage.marked == "fs.remove", "the tools are found")


async def test_the_page_of_the_last_run_is_the_first_one_so_typed_text_goes_to_no_other(tmp_path: Path) -> None:
    slow = _SlowRuntime(tmp_path)
    slow.readable.set()
    Remembered(page="health", has_run=True).write(slow.paths.interface)
    app = PegboardApp(as_runtime(slow), Appearance())
    assert slow.read == 1
    async with app.run_test(size=(120, 40)) as pilot:
        assert isinstance(app.screen, HealthScreen)
        await pilot.press("f5")
        stage = Stage(app, pilot)
        await stage.until(lambda: stage.marked == "fs.list_dir", "the tools are listed when their page is opened")
        await stage.until(lambda: stage.screen.settled, "the marked tool is shown")


async def test_a_tool_is_opened_from_another_page_before_the_tools_page_was_ever_shown(given: GivenRuntime) -> None:
    Remembered(page="health", has_run=True).write(given.paths.interface)
    async with on_stage(given) as stage:
        stage.app.post_message(OpenCall("fs.read_file", {"path": "a.txt"}))
        await stage.until(lambda: isinstance(stage.app.screen, ToolsScreen), "the Tools page is shown")
        await stage.until(lambda: stage.screen.query(FormPane) and stage.form.form is not None, "its form is shown")
        await stage.until(lambda: stage.form.form and stage.form.form.draft() == {"path": "a.txt"}, "it is filled in")


async def test_a_damaged_state_counts_as_a_first_start(tmp_path: Path) -> None:
    file = tmp_path / "interface.json"
    file.write_text('{"page": 3, "stacked": 77}')
    assert Remembered.read(file) == Remembered()
    file.write_text('{"page": "wall", "tool": "fs.list_dir"}')
    assert Remembered.read(file).page == "tools"


@pytest.mark.promise("TUI-8")
async def test_the_form_is_as_high_as_its_fields_and_the_result_gets_the_rest(given: GivenRuntime) -> None:
    async with on_stage(given, size=(120, 60)) as stage:
        await stage.open("list_dir")
        high = stage.form.outer_size.height
        await stage.press("escape", "escape")
        await stage.open("remove")
        assert stage.form.outer_size.height < high
        assert stage.form.outer_size.height + stage.result.outer_size.height > 40


@pytest.mark.promise("TUI-8")
async def test_form_and_result_are_side_by_side_if_the_terminal_is_wide(given: GivenRuntime) -> None:
    async with on_stage(given, size=(150, 40)) as stage:
        assert stage.form.region.y == stage.result.region.y
        assert stage.form.region.right == stage.result.region.x
        await stage.pilot.resize_terminal(120, 40)
        await stage.until(lambda: stage.form.region.bottom == stage.result.region.y, "they are stacked")


@pytest.mark.promise("TUI-8")
@pytest.mark.parametrize("size", [(120, 40), (160, 40)])
async def test_keys_and_the_mouse_move_the_divider_and_the_next_start_keeps_it(
    given: GivenRuntime, size: tuple[int, int]
) -> None:
    def extent(stage: object) -> int:
        form = stage.form.outer_size  # type: ignore[attr-defined]  # a stage
        return int(form.width if size[0] > 150 else form.height)

    async with on_stage(given, size=size) as stage:
        before = extent(stage)
        await stage.press("alt+pagedown", "alt+pagedown")
        larger = extent(stage)
        assert larger > before
        await stage.press("alt+pageup")
        assert before < extent(stage) < larger
        corner = stage.result.region.offset
        target = Offset(corner.x - 9, corner.y + 3) if size[0] > 150 else Offset(corner.x + 3, corner.y - 5)
        start = Offset(corner.x, corner.y + 3) if size[0] > 150 else Offset(corner.x + 3, corner.y)
        moved = extent(stage)
        await stage.pilot.mouse_down(offset=start)
        await stage.pilot.hover(offset=target)
        await stage.pilot.mouse_up(offset=target)
        await stage.pilot.pause()
        assert moved - extent(stage) in {5, 9}
        chosen = extent(stage)
    async with on_stage(given, size=size) as stage:
        assert extent(stage) == chosen


@pytest.mark.promise("TUI-8")
async def test_a_drag_of_the_divider_selects_no_text(given: GivenRuntime) -> None:
    given.answer = lambda call: ToolResult(ok=True, data="\n".join(f"line {number}" for number in range(50)))
    async with on_stage(given) as stage:
        await stage.open("list_dir")
        await stage.press("ctrl+r")
        await stage.until_seen("line 3")
        await stage.pilot.pause()
        x, y = stage.result.region.offset
        await stage.pilot.mouse_down(offset=(x + 9, y))
        for lines in range(1, 5):
            await stage.pilot.hover(offset=(x + 9, y - lines))
            await stage.pilot.pause()
            assert not stage.app.screen.get_selected_text()
        await stage.pilot.mouse_up(offset=(x + 9, y - 4))
        assert stage.result.region.y == y - 4


@pytest.mark.promise("TUI-8")
async def test_a_maximized_form_names_the_tool_and_how_to_leave_and_is_restored_by_a_run(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("list_dir")
        await stage.press("f10")
        await stage.until_seen("Arguments · fs.list_dir · ready · f10 restores")
        assert stage.form.outer_size.height > 30
        await stage.press("ctrl+r")
        await stage.until_seen("✓ ok")
        assert stage.app.screen.maximized is None


async def test_a_cut_signature_and_a_cut_description_end_in_an_ellipsis(tmp_path: Path) -> None:
    names: dict[str, JsonObject] = {f"parameter_{number}": {"type": "string"} for number in range(40)}
    long = tool("fs.long", "First line.\n\nSecond line.", None, **names)
    async with on_stage(GivenRuntime(tmp_path, [long]), size=(80, 24)) as stage:
        signature = next(line for line in stage.lines if "fs.long(*" in line)
        assert signature.rstrip().endswith("…")
        assert "First line. …" in stage.text
        await stage.pilot.resize_terminal(120, 40)
        await stage.until(lambda: any(line.rstrip("│ ").endswith("…") for line in stage.lines[2:7]), "four lines, cut")


@pytest.mark.promise("TUI-7")
async def test_run_and_cancel_are_clicked_in_the_footer(given: GivenRuntime) -> None:
    given.go_on.clear()
    async with on_stage(given) as stage:
        footer = stage.lines[-1]
        await stage.pilot.click(offset=(footer.index("Run"), 39))
        await stage.until_seen("▶ running")
        await stage.until(lambda: "Cancel" in stage.lines[-1], "the footer offers to cancel")
        await stage.pilot.click(offset=(stage.lines[-1].index("Cancel"), 39))
        await stage.until_seen("⊘ cancelled")


@pytest.mark.promise("TUI-8")
async def test_a_new_row_is_scrolled_into_view_as_a_whole(tmp_path: Path) -> None:
    row: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    guests = tool("crm.invite", guests={"type": "array", "items": row}, last={"type": "string"})
    async with on_stage(GivenRuntime(tmp_path, [guests]), size=(80, 24)) as stage:
        await stage.open("invite")
        await stage.press("enter", "enter", "enter")
        await stage.until_seen("▾ 1")
        await stage.press("enter")
        await stage.until_seen("▾ 2")
        await stage.until(lambda: re.search(r"▾ 2.*\n.* a  .*\n.*\n.* b  .*\n.*▌", stage.text), "the whole row is seen")


@pytest.mark.promise("TUI-8")
@pytest.mark.parametrize("page", ["tools", "chat", "script", "health", "activity"])
async def test_the_app_starts_on_each_page_as_from_a_terminal(page: str) -> None:
    async def leave(pilot: Pilot[object]) -> None:
        await pilot.pause()
        pages.append(pilot.app.current_mode)
        app.exit(return_code=3)

    pages: list[str] = []
    runtime = Runtime.from_environment()
    open_on(page, runtime)
    app = PegboardApp(runtime)
    app.clear_selection()  # the fields of the first page do so before it is on the screen, from Python 3.12 on
    # On Python 3.12 and later this starts tasks eagerly, which `run_test` doesn't.
    await app.run_async(headless=True, auto_pilot=leave)
    assert (app.crash, app.return_code, pages) == (None, 3, [page])


@pytest.mark.parametrize("late", ["a query", "a mount", "the screen of a widget"])
async def test_code_that_shows_something_while_the_app_closes_does_not_end_it_with_an_error(
    given: GivenRuntime, late: str
) -> None:
    def show() -> None:
        if late == "a query":
            app.screen.query_one("#gone")
        elif late == "the screen of a widget":
            assert Static().screen.is_active
        else:
            Static().mount(Static())

    app = PegboardApp(as_runtime(given))
    async with app.run_test() as pilot:
        await pilot.pause()
        app.exit(return_code=3)
        app.screen.call_next(show)
    assert app.crash is None
    assert app.return_code == 3


async def test_a_worker_that_shows_something_in_an_app_that_ends_without_exit_does_not_crash_it(
    given: GivenRuntime,
) -> None:
    async def show() -> None:
        while app.is_running:  # noqa: ASYNC110 - no event announces the end
            await asyncio.sleep(0)
        app.query_one("#gone")

    app = PegboardApp(as_runtime(given))
    async with app.run_test() as pilot:
        await pilot.pause()
        app.run_worker(show())
    assert app.crash is None


async def test_a_worker_that_outlives_the_app_does_not_end_it_with_an_error(given: GivenRuntime) -> None:
    app = PegboardApp(as_runtime(given))
    ended = asyncio.Event()
    workers: list[Worker[None]] = []

    async def nothing() -> None:
        """Do nothing."""

    async def outlive() -> None:
        while not ended.is_set():
            with suppress(asyncio.CancelledError):
                await ended.wait()
        with closing(nothing()) as work:
            app.run_worker(work)

    async def leave(pilot: Pilot[object]) -> None:
        workers.append(app.run_worker(outlive()))
        await pilot.pause()
        app.exit(return_code=3)

    await app.run_async(headless=True, auto_pilot=leave)
    ended.set()
    with pytest.raises(WorkerFailed, match="App is not running"):
        await workers[0].wait()
    assert app.crash is None
    assert app.return_code == 3
