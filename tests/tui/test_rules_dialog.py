"""The rules dialog: list, edit, and test of a call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from stage import Stage, on_stage
from textual.widgets import Input, Static

from pegboard.models import ToolCall
from pegboard.models.rule import Rule
from pegboard.runtime import Runtime
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.dialogs.rules import RuleDialog, RulesScreen
from pegboard.tui.widgets import external_editor
from pegboard.tui.widgets.pick_list import PickList

PACK = '''
from pegboard.sdk import hints

@hints(read_only=True)
def read(*, path: str) -> str:
    """Read."""

def write(*, path: str, text: str = "", count: int = 1) -> str:
    """Write."""
'''
MINE = """\
# mine
[[rule]]
allow = "book.write"
where = { path = "src/**" }

[[rule]]
deny = "book.*"
where = { text = "[b]*" }
"""


@pytest.fixture
def runtime(write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]) -> Runtime:
    runtime = open_runtime(write_pack("book.py", PACK))
    runtime.paths.approvals.parent.mkdir(parents=True, exist_ok=True)
    runtime.paths.approvals.write_text(MINE, encoding="utf-8")
    return runtime


@asynccontextmanager
async def _rules(runtime: Runtime, call: ToolCall | None = None) -> AsyncIterator[tuple[Stage, RulesScreen]]:
    """Open the rules and wait until they are read."""
    async with on_stage(runtime) as stage:
        if call is None:
            await stage.app.run_action("rules")
        else:
            await stage.app.push_screen(RulesScreen(runtime, call))
        await stage.until(lambda: isinstance(stage.app.screen, RulesScreen), "the rules are open")
        screen = stage.app.screen
        assert isinstance(screen, RulesScreen)
        await stage.until(lambda: screen.query("#answer") and _answer(screen), "something is said of the call")
        await stage.until_seen("Would this call from")
        yield stage, screen


def _answer(screen: RulesScreen) -> str:
    return str(screen.query_one("#answer", Static).content)


def _listed(screen: RulesScreen) -> list[str]:
    shown = screen.query_one(PickList)
    return [shown.render_line(line).text.rstrip() for line in range(shown.row_count)]


def _saved(runtime: Runtime) -> list[str]:
    return [str(rule) for rule in runtime.rules.read().rules]


@pytest.mark.promise("ASK-7")
async def test_rules_are_listed_in_words_with_their_file(runtime: Runtime) -> None:
    async with _rules(runtime) as (stage, screen):
        listed = _listed(screen)
        assert "allow book.write where path = src/**" in listed[0]
        assert "deny book.* where text = [b]*" in listed[1]
        assert listed[1].endswith("rule 2")
        await stage.until_seen("approvals.toml")
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.screen, "they are closed")


@pytest.mark.promise("ASK-7")
async def test_a_rule_that_is_moved_twice_while_a_filter_is_set_stays_selected(runtime: Runtime) -> None:
    runtime.paths.approvals.write_text(f'{MINE}\n[[rule]]\nask = "book.read"\n', encoding="utf-8")
    first, second, third = _saved(runtime)
    async with _rules(runtime) as (stage, screen):
        await stage.type("book")
        await stage.press("end")
        await stage.press("ctrl+up")
        await stage.until(lambda: _saved(runtime) == [first, third, second], "the rule is moved")
        await stage.until(lambda: screen.query_one(PickList).marked == 1, "it is selected")
        await stage.press("ctrl+up")
        await stage.until(lambda: _saved(runtime) == [third, first, second], "the same rule is moved")
        await stage.until(lambda: screen.query_one(PickList).marked == 0, "it is selected")


@pytest.mark.promise("ASK-7")
async def test_a_filter_that_matches_no_rule_says_so_and_not_that_there_are_no_rules(runtime: Runtime) -> None:
    async with _rules(runtime) as (stage, _):
        await stage.type("zzz")
        await stage.until_seen("No matching rules.")
        assert "No rules yet" not in stage.text


@pytest.mark.promise("ASK-7")
@pytest.mark.parametrize(
    ("arguments", "answer", "deciding"),
    [
        ("path=src/a", "Runs. A rule of approvals.toml allows book.write. (rule 1)", 0),
        ("path=a", "Asks first. book.write may change data.", None),
        ('path=src/a text="[b]x"', "Is rejected. A rule of approvals.toml denies book.write. (rule 2)", 1),
        ('{"path": "src/a", "count": 2}', "Runs.", 0),
        ("path=src/a count=x", "its arguments are invalid: count", 0),
        ("", "its arguments are invalid: path", None),
        ('{"path": ', "The arguments", None),
    ],
)
async def test_the_decision_on_a_typed_call_is_shown_and_its_rule_marked(
    runtime: Runtime, arguments: str, answer: str, deciding: int | None
) -> None:
    async with _rules(runtime) as (stage, screen):
        await stage.press("tab")
        await stage.type("book.w")
        await stage.until(lambda: screen.query_one("#tool", Input)._suggestion, "a name is suggested")
        await stage.press("right", "enter")
        assert screen.query_one("#tool", Input).value == "book.write"
        await stage.until(lambda: stage.app.focused is screen.query_one("#arguments"), "the arguments are next")
        screen.query_one("#arguments", Input).value = arguments
        await stage.until(lambda: answer in _answer(screen), answer)
        assert [line.startswith(" ▸") for line in _listed(screen)] == [deciding == 0, deciding == 1]


@pytest.mark.promise("ASK-7")
async def test_it_starts_with_the_call_awaiting_approval(runtime: Runtime) -> None:
    runtime.rules.add(runtime.rules.read(), Rule(deny=("book.write",), scope="mcp"))
    call = ToolCall(name="book.write", args={"path": "src/a"}, source="ask")
    async with _rules(runtime, call) as (stage, screen):
        await stage.until(lambda: "Runs." in _answer(screen), "it runs")
        await stage.press("ctrl+t")
        await stage.until(lambda: "Is rejected." in _answer(screen), "that of an MCP client is refused")
        await stage.until_seen("Would this call from an MCP client need approval?")


@pytest.mark.promise("ASK-7")
async def test_an_unknown_tool_is_reported(runtime: Runtime) -> None:
    async with _rules(runtime) as (stage, screen):
        screen.query_one("#tool", Input).value = "book.wirte"
        await stage.until(lambda: "book.write" in _answer(screen), "the nearest name is told")


@pytest.mark.promise("ASK-7")
async def test_a_new_rule_is_entered_in_a_form(runtime: Runtime) -> None:
    call = ToolCall(name="book.write", args={"path": "a"}, source="ask")
    async with _rules(runtime, call) as (stage, screen):
        await stage.until(lambda: "Asks first" in _answer(screen), "it asks")
        await stage.press("ctrl+n")
        await stage.until(lambda: isinstance(stage.app.screen, RuleDialog), "the form is open")
        await stage.press("ctrl+s")
        await stage.until(lambda: "Runs." in _answer(screen), "it runs now")
        assert runtime.paths.approvals.read_text() == f'{MINE}\n[[rule]]\nallow = "book.write"\n'
        await stage.until(lambda: "▸" in _listed(screen)[2], "the new rule decides")


@pytest.mark.promise("ASK-7")
async def test_a_rule_is_edited_in_a_form_and_the_rest_of_the_file_stays(runtime: Runtime) -> None:
    async with _rules(runtime) as (stage, screen):
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, RuleDialog), "the form is open")
        await stage.until(lambda: isinstance(stage.app.focused, Input), "a tool is focused")
        await stage.press("end", "x")
        await stage.press("ctrl+s")
        await stage.until(lambda: "book.writex" in _listed(screen)[0], "it is changed")
        assert runtime.paths.approvals.read_text() == MINE.replace('"book.write"', '"book.writex"')
        await stage.press("f2")
        await stage.until(lambda: isinstance(stage.app.screen, RuleDialog), "the form is open")
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is screen, "it is closed")
        assert len(_saved(runtime)) == 2


@pytest.mark.promise("ASK-7")
async def test_changes_to_a_rule_are_discarded_only_after_a_question(runtime: Runtime) -> None:
    async with _rules(runtime) as (stage, screen):
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, RuleDialog), "the form is open")
        await stage.until(lambda: isinstance(stage.app.focused, Input), "a tool is focused")
        await stage.press("end", "x", "escape")
        await stage.until_seen("The changes to this form will be lost.")
        await stage.press("n")
        await stage.until(lambda: isinstance(stage.app.screen, RuleDialog), "the form is open again")
        await stage.press("ctrl+s")
        await stage.until(lambda: "book.writex" in _listed(screen)[0], "it is changed")


@pytest.mark.promise("ASK-7", "TUI-7")
async def test_a_rule_is_deleted_after_confirmation(runtime: Runtime) -> None:
    async with _rules(runtime) as (stage, screen):
        await stage.press("delete")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it is asked")
        assert "allow book.write where path = src/**" in stage.text
        await stage.press("n")
        await stage.until(lambda: stage.app.screen is screen, "nothing happens")
        await stage.press("delete")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it is asked again")
        await stage.press("ctrl+y")
        await stage.until(lambda: len(_listed(screen)) == 1, "it is gone")
        assert _saved(runtime) == ["deny book.* where text = [b]*"]


@pytest.mark.promise("ASK-7")
async def test_a_rule_is_moved_and_stays_marked(runtime: Runtime) -> None:
    async with _rules(runtime) as (stage, screen):
        await stage.press("ctrl+down")
        await stage.until(lambda: "deny" in _listed(screen)[0], "it is the second")
        assert _saved(runtime)[1].startswith("allow")
        await stage.until(lambda: screen.query_one(PickList).marked == 1, "it is marked")
        for _ in range(2):  # faster than the file is written
            screen.action_shift(-1)
            screen.action_shift(1)
        screen.action_shift(-1)
        moves = [worker for worker in stage.app.workers if worker.group == "shift"]
        await stage.until(lambda: all(move.is_finished for move in moves), "all moves are done")
        await stage.until(lambda: "allow" in _listed(screen)[0], "it is the first again")
        await stage.until(lambda: screen.query_one(PickList).marked == 0, "it is marked")
        assert "Another program" not in stage.text
        assert _saved(runtime)[0].startswith("allow")


@pytest.mark.promise("ASK-7")
async def test_a_rule_can_be_moved_where_the_system_keeps_ctrl_up_and_ctrl_down(runtime: Runtime) -> None:
    async with _rules(runtime) as (stage, screen):
        await stage.press("alt+down")
        await stage.until(lambda: "deny" in _listed(screen)[0], "it is the second")
        await stage.until(lambda: screen.query_one(PickList).marked == 1, "it is marked")
        await stage.press("alt+up")
        await stage.until(lambda: "allow" in _listed(screen)[0], "it is the first again")


@pytest.mark.promise("ASK-7")
async def test_a_file_that_changed_meanwhile_is_not_overwritten_but_shown(runtime: Runtime) -> None:
    async with _rules(runtime) as (stage, screen):
        readings = [worker for worker in stage.app.workers if worker.group == "test"]
        await stage.until(lambda: all(reading.is_finished for reading in readings), "the old file is shown")
        runtime.paths.approvals.write_text('[[rule]]\nask = "new.*"\n', encoding="utf-8")
        await stage.press("ctrl+down")
        await stage.until(
            lambda: any("Another program changed it" in toast.message for toast in stage.app._notifications),
            "a toast reports it",
        )
        await stage.until(lambda: "ask new.*" in _listed(screen)[0], "it is shown as it is")
        assert _saved(runtime) == ["ask new.*"]


@pytest.mark.promise("ASK-7")
async def test_an_invalid_file_is_reported_and_opened_in_the_editor(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.paths.approvals.write_text('[[rule]]\nalow = "[b]"\n', encoding="utf-8")
    opened: list[str] = []

    async def repair(app: object, file: str, line: int | None = None) -> None:
        opened.append(file)
        runtime.paths.approvals.write_text(MINE, encoding="utf-8")

    monkeypatch.setattr(external_editor, "open_in_editor", repair)
    async with _rules(runtime) as (stage, screen):
        await stage.until_seen("In rule 1, `alow` is not a known key")
        await stage.press("ctrl+n")
        assert stage.app.screen is screen, "no rule can be written"
        await stage.press("f4")
        await stage.until(lambda: len(_listed(screen)) == 2, "it is read again")
        assert opened == [str(runtime.paths.approvals)]


async def test_the_file_of_the_first_rule_is_created_by_the_editor(
    runtime: Runtime, external_editor: Callable[[str], None]
) -> None:
    runtime.paths.approvals.unlink()
    external_editor('printf \'[[rule]]\nallow = "book.write"\n\' > "$file"')
    async with _rules(runtime) as (stage, screen):
        await stage.press("f4")
        await stage.until(lambda: len(_listed(screen)) == 1 and "book.write" in _listed(screen)[0], "it is read")
        assert runtime.paths.approvals.stat().st_mode & 0o077 == 0, "only its owner can read it"


@pytest.mark.promise("ASK-7")
async def test_without_rules_the_key_for_a_new_one_is_shown(runtime: Runtime) -> None:
    runtime.paths.approvals.unlink()
    async with _rules(runtime) as (stage, screen):
        await stage.until_seen("No rules yet")
        await stage.until_seen("Press insert to add the first rule")
        await stage.press("insert")
        await stage.until(lambda: isinstance(stage.app.focused, Input), "a tool is focused")
        await stage.press("ctrl+s")
        await stage.pilot.pause()
        assert isinstance(stage.app.screen, RuleDialog), "it needs a tool"
        await stage.type("book.*")
        await stage.press("ctrl+s")
        await stage.until(lambda: len(_listed(screen)) == 1, "it is there")
        assert _saved(runtime) == ["allow book.*"]


@pytest.mark.promise("SEC-4", "CFG-1")
async def test_problems_of_rules_that_another_program_changes_appear_while_the_app_runs(runtime: Runtime) -> None:
    async with on_stage(runtime) as stage:
        await stage.until(lambda: "no problems" in stage.lines[0], "the rules are valid")
        runtime.paths.approvals.write_text("[[rule]\n", encoding="utf-8")
        await stage.until(lambda: "✖ 1 problem" in stage.lines[0], "the invalid file is counted")
        runtime.paths.approvals.write_text(MINE, encoding="utf-8")
        await stage.until(lambda: "no problems" in stage.lines[0], "the file is valid again")


@pytest.mark.promise("ASK-7")
async def test_open_rules_follow_their_file_and_keep_the_marked_rule(runtime: Runtime) -> None:
    async with _rules(runtime) as (stage, screen):
        screen.query_one(PickList).focus()
        await stage.press("down")
        runtime.paths.approvals.write_text('[[rule]]\ndeny = "fs.*"\n\n' + MINE, encoding="utf-8")
        await stage.until(lambda: any("deny fs.*" in line for line in _listed(screen)), "the new rule is listed")
        assert screen.query_one(PickList).marked == 2
        assert _listed(screen)[2].endswith("rule 3")


@pytest.mark.promise("ASK-7")
async def test_a_rule_that_moves_in_the_file_while_it_is_edited_overwrites_no_other_rule(runtime: Runtime) -> None:
    async with _rules(runtime) as (stage, screen):
        screen.query_one(PickList).focus()
        await stage.press("down", "delete")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it asks")
        seen = stage.app.rules_version
        runtime.paths.approvals.write_text('[[rule]]\ndeny = "fs.*"\n\n' + MINE, encoding="utf-8")
        await stage.until(lambda: stage.app.rules_version != seen, "the app has seen the change")
        await stage.press("ctrl+y")
        await stage.until(lambda: any("deny fs.*" in line for line in _listed(screen)), "the new rule is listed")
        assert len(_saved(runtime)) == 3


@pytest.mark.promise("ASK-7")
@pytest.mark.parametrize("kept", ["", MINE], ids=["gone", "moved"])
async def test_a_rule_that_was_entered_while_the_file_changed_is_in_the_form_again(runtime: Runtime, kept: str) -> None:
    async with _rules(runtime) as (stage, _):
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, RuleDialog), "the form is open")
        await stage.until(lambda: isinstance(stage.app.focused, Input), "a tool is focused")
        await stage.press("end", "x")
        runtime.paths.approvals.write_text(f'[[rule]]\ndeny = "fs.*"\n\n{kept}', encoding="utf-8")
        first = stage.app.screen
        await stage.press("ctrl+s")
        await stage.until(lambda: isinstance(stage.app.screen, RuleDialog) and stage.app.screen is not first, "again")
        await stage.until_seen("book.writex")
        await stage.until_seen("Edit rule" if kept else "New rule")
        await stage.press("ctrl+s")
        await stage.until(lambda: any("book.writex" in rule for rule in _saved(runtime)), "it is saved")
        assert len(_saved(runtime)) == (3 if kept else 2)
        assert _saved(runtime)[0] == "deny fs.*"
