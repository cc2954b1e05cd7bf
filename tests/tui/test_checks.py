"""Checks in the app: calls are kept, run and compared; a schema change is a problem with the calls that it breaks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from provider import Answer, FakeProvider, delta, proposes, says
from stage import Stage, on_stage

from pegboard.checks.compatibility import Compatibility
from pegboard.models import JsonObject, ToolCall
from pegboard.runtime import Runtime
from pegboard.tui.dialogs.ask_name import AskName
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.tools.checks import ChecksScreen
from pegboard.tui.widgets.pick_list import PickList

PACK = '''
from pegboard.sdk import hints

@hints(read_only=True)
def items(*, size: int = 2, kind: str = "a") -> list[dict[str, str]]:
    """Return items."""
    return [{"[b]id[/b]": str(number), "text": "\\x1b[31mred"} for number in range(size)]

@hints(destructive=True)
def clear() -> str:
    """Clear it."""
    return "clear"
'''


@pytest.fixture
def packs(write_pack: Callable[[str, str], Path]) -> Path:
    return write_pack("shop.py", PACK)


@pytest.fixture
def own_check(home: Path) -> Callable[[str, str], Path]:
    """Return a function that writes a check of the user and returns its file."""

    def write(name: str, text: str) -> Path:
        folder = home / "data" / "checks"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.toml").write_text(text)
        return folder / f"{name}.toml"

    return write


async def open_checks(stage: Stage, tool: str) -> None:
    """Select a tool and open its checks."""
    await stage.type(tool)
    await stage.until(lambda: stage.screen.settled, "the tool is shown")
    await stage.press("alt+c")
    await stage.until(lambda: isinstance(stage.app.screen, ChecksScreen), "the checks are open")
    await stage.until(lambda: "Loading…" not in stage.text, "they are read")


async def call(packs: Path, **arguments: int | str) -> None:
    """Record a call of `shop.items`."""
    async with Runtime.from_environment(packs=[packs]) as runtime:
        args: JsonObject = dict(arguments)
        await runtime.result(ToolCall(name="shop.items", args=args, source="cli"))


@pytest.mark.promise("BAT-3")
async def test_a_result_is_kept_as_check_and_a_change_of_the_tool_is_shown_as_difference(
    packs: Path, home: Path
) -> None:
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await stage.open("items")
        await stage.press("alt+k")
        await stage.until_seen("Run the tool first")
        await stage.press("ctrl+r")
        await stage.until_seen("✓ ok")
        await stage.press("alt+k")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "a name is asked for")
        assert "the working directory is not trusted" in " ".join(stage.text.replace("│", " ").split())
        await stage.press("enter")
        file = home / "data" / "checks" / "shop.items.toml"
        await stage.until(file.exists, "it is written")
        await stage.press("alt+c")
        await stage.until_seen("not run")
        await stage.press("enter")
        await stage.until_seen("Every expectation is met.")
        (packs / "shop.py").write_text(PACK.replace("red", "blue"))
        await stage.press("ctrl+r")
        await stage.until_seen("✗ failed")
        assert "2 differences" in stage.text
        assert 'item #1.text to be "\\u001b[31mred", got "\\u001b[31mblue".' in stage.text
        shown = " ".join(stage.text.replace("│", " ").split())
        assert 'If these parts always differ, set `expect.snapshot.ignore`: ["/0/text", "/1/text"]' in shown
        await stage.press("ctrl+s")
        await stage.until_seen("The snapshot was stored.")
        await stage.press("ctrl+r")
        await stage.until_seen("Every expectation is met.")


@pytest.mark.promise("BAT-3", "SEC-5")
async def test_the_checks_of_a_tool_are_listed_with_invalid_ones_and_their_text_is_inert(
    packs: Path, own_check: Callable[[str, str], Path]
) -> None:
    own_check("[red]evil", 'tool = "shop.items"\nexpect.exact = ["[b]bold[/b]", 2]\n')
    own_check("other", 'tool = "tools.echo"\n')
    own_check("wrong", "tool = 3\n")
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await open_checks(stage, "items")
        await stage.until_seen("[red]evil")
        assert "wrong.toml" in stage.text
        assert "other" not in stage.text
        await stage.press("ctrl+r")
        await stage.until_seen('+   "[b]id[/b]": "0"')
        assert "[b]bold[/b]" in stage.text
        assert "␛" in stage.text or "\\u001b" in stage.text
        await stage.press("down")
        await stage.until_seen("`tool` input should be a valid string")


@pytest.mark.promise("BAT-3")
async def test_a_filter_that_matches_no_check_says_so_and_not_that_there_are_no_checks(
    packs: Path, own_check: Callable[[str, str], Path]
) -> None:
    own_check("all", 'tool = "shop.items"\n')
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await open_checks(stage, "items")
        await stage.type("zzz")
        await stage.until_seen("No matching checks.")
        assert "No checks yet" not in stage.text


@pytest.mark.promise("BAT-3")
async def test_the_selected_match_of_a_filter_stays_selected_while_its_check_runs(
    packs: Path, own_check: Callable[[str, str], Path]
) -> None:
    for name in ("all", "one a", "one b"):
        own_check(name, 'tool = "shop.items"\nexpect.jq = ["length == 2"]\n')
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await open_checks(stage, "items")
        await stage.type("one")
        await stage.until_seen("one a  ⏎ runs it")
        await stage.press("down")
        await stage.until_seen("one b  ⏎ runs it")
        await stage.press("enter")
        await stage.until_seen("✓ one b")
        await stage.until_seen("Every expectation is met.")
        assert stage.app.screen.query_one(PickList).marked == 2


@pytest.mark.promise("BAT-3")
async def test_the_check_of_a_destructive_tool_runs_only_after_confirmation_and_can_be_deleted(
    packs: Path, own_check: Callable[[str, str], Path]
) -> None:
    file = own_check("all", 'tool = "shop.clear"\nexpect.exact = "clear"\n')
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await open_checks(stage, "clear")
        await stage.until_seen("not run")
        for key, seen in (("n", "not run"), ("ctrl+y", "Every expectation is met.")):
            await stage.press("enter")
            await stage.until(lambda: isinstance(stage.app.screen, Confirm), "a question is asked")
            await stage.press(key)
            await stage.until_seen(seen)
        await stage.press("delete")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "a question is asked")
        await stage.press("ctrl+y")
        await stage.until_seen("No checks yet.")
        assert not file.exists()


@pytest.mark.promise("BAT-3", "SCR-5")
async def test_the_check_of_a_script_that_calls_a_destructive_tool_runs_only_after_confirmation(
    packs: Path, own_check: Callable[[str, str], Path], home: Path
) -> None:
    (home / "config.toml").write_text("[scripts]\noffer = true\n")
    own_check("all", 'tool = "script.run"\narguments = { commands = "shop.clear" }\n')
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await open_checks(stage, "script.run")
        await stage.until_seen("not run")
        for key, seen in (("n", "not run"), ("ctrl+y", "✓ all")):
            await stage.press("enter")
            await stage.until_seen("script.run calls tools that may delete or overwrite")
            await stage.press(key)
            await stage.until_seen(seen)


@pytest.mark.promise("BAT-3")
@pytest.mark.parametrize("other", ["ctrl+r", "alt+a"])
async def test_a_check_that_was_ended_by_a_question_no_longer_runs(
    packs: Path, own_check: Callable[[str, str], Path], write_pack: Callable[[str, str], Path], other: str
) -> None:
    write_pack("shop.py", PACK.replace('return "clear"', "import time\n    time.sleep(60)"))
    file = own_check("all", 'tool = "shop.clear"\nexpect.exact = "clear"\nquestions = ["Clear it?"]\n')
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await open_checks(stage, "clear")
        await stage.press("ctrl+r")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "a question is asked")
        await stage.press("ctrl+y")
        await stage.until_seen("running…")
        await stage.press(other)
        if other == "ctrl+r":
            await stage.until(lambda: isinstance(stage.app.screen, Confirm), "a question is asked")
            await stage.press("n")
        else:
            await stage.until_seen("The offline model can't be asked such questions.")
        await stage.until_seen("not run")
        file.unlink()
        await stage.until_seen("No checks yet.")


@pytest.mark.promise("BAT-3")
async def test_after_a_check_is_deleted_the_next_one_is_selected(
    packs: Path, own_check: Callable[[str, str], Path]
) -> None:
    files = {name: own_check(name, 'tool = "shop.items"\n') for name in "abcd"}
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await open_checks(stage, "items")
        await stage.press("down")
        for name, following in ("bc", "cd", "da"):
            await stage.until_seen(f"{name}  ⏎ runs it")
            await stage.press("delete")
            await stage.until_seen(f"Delete the check {name}?")
            await stage.press("ctrl+y")
            await stage.until_seen(f"{following}  ⏎ runs it")
            assert not files[name].exists()


@pytest.mark.promise("BAT-3")
async def test_the_checks_follow_other_programs_and_a_changed_one_has_no_result(
    packs: Path, own_check: Callable[[str, str], Path]
) -> None:
    same = own_check("a", 'tool = "shop.items"\nexpect.jq = ["length == 2"]\n')
    file = own_check("c", 'tool = "shop.items"\nexpect.jq = ["length == 2"]\n')
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await open_checks(stage, "items")
        await stage.press("ctrl+r")
        await stage.until(lambda: stage.text.count("✓") > 2 and "running…" not in stage.text, "both have run")
        await stage.press("down")
        own_check("b", 'tool = "shop.items"\nexpect.jq = ["length == 3"]\n')
        await stage.until(lambda: stage.app.screen.query_one(PickList).marked == 2, "the new one is above")
        await stage.until_seen("Every expectation is met.")
        file.write_text('tool = "shop.items"\nexpect.jq = ["length == 4"]\n')
        await stage.until_seen("length == 4")
        assert "Every expectation is met." not in stage.text
        same.unlink()
        await stage.until(lambda: stage.app.screen.query_one(PickList).marked == 1, "the first one is gone")


@pytest.mark.promise("BAT-3")
async def test_a_check_that_another_program_has_changed_is_deleted_only_after_it_is_shown(
    packs: Path, own_check: Callable[[str, str], Path]
) -> None:
    file = own_check("one", 'tool = "shop.items"\nexpect.snapshot.data = 1\n')
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await open_checks(stage, "items")
        await stage.until_seen("not run")
        await stage.press("ctrl+s")
        await stage.until_seen("The snapshot was stored.")
        await stage.press("delete")
        await stage.until_seen("Delete the check one?")
        file.write_text('tool = "shop.items"\nexpect.jq = ["length == 2"]\n')
        await stage.press("ctrl+y")
        await stage.until_seen("The check `one` was not deleted.")
        assert file.exists()
        await stage.until(lambda: stage.app.screen.query_one(PickList).marked == 0, "it is read again")
        await stage.press("delete")
        await stage.until_seen("Delete the check one?")
        await stage.press("ctrl+y")
        await stage.until(lambda: not file.exists(), "it is deleted")


@pytest.mark.promise("BAT-3")
async def test_the_check_of_a_tool_that_no_longer_exists_is_listed_and_can_be_deleted(
    packs: Path, own_check: Callable[[str, str], Path]
) -> None:
    file = own_check("old", 'tool = "shop.[b]gone"\n')
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await open_checks(stage, "items")
        await stage.until_seen("! old")
        await stage.until_seen("No tool is named shop.[b]gone.")
        await stage.press("delete")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "a question is asked")
        await stage.press("ctrl+y")
        await stage.until_seen("No checks yet.")
        assert not file.exists()


@pytest.mark.promise("BAT-4")
async def test_a_breaking_change_is_a_problem_of_the_tool_that_lists_the_calls_to_open(packs: Path) -> None:
    for size in (1, 2, 3):
        await call(packs, size=size)
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await stage.open("items")
        await stage.until(lambda: _seen(stage), "the schemas are stored")
        before = _problems(stage)  # of this machine, which may lack a program
        (packs / "shop.py").write_text(PACK.replace('kind: str = "a"', "kind: str"))
        await stage.until_seen("3 of 3 recorded calls no longer validate:")
        await stage.until(lambda: _problems(stage) == before + 1, "it is counted")
        await stage.press("alt+c")
        await stage.until_seen("Schema: 3 of 3 recorded calls")
        assert "✗ input: `kind` is now required" in stage.text
        await stage.press("down", "enter")
        await stage.until(lambda: stage.app.screen is stage.screen, "the dialog is closed")
        await stage.until(lambda: (stage.form.form and stage.form.form.draft()) == {"size": 3}, "the call is opened")
        await stage.press("alt+c")
        await stage.until_seen("Schema: 3 of 3 recorded calls")
        await stage.press("f2")
        await stage.until_seen("No checks yet.")
        await stage.press("escape")
        await stage.until(lambda: _problems(stage) == before, "it is solved")


@pytest.mark.promise("BAT-4")
async def test_a_schema_that_changes_again_is_accepted_only_after_its_changes_are_shown(
    packs: Path, no_thread: Callable[[], AbstractContextManager[None]]
) -> None:
    await call(packs)
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await stage.open("items")
        await stage.until(lambda: _seen(stage), "the schemas are stored")
        before = _problems(stage)
        (packs / "shop.py").write_text(PACK.replace('kind: str = "a"', "kind: str"))
        await stage.until(lambda: _problems(stage) == before + 1, "it is counted")
        await stage.press("alt+c")
        await stage.until_seen("✗ input: `kind` is now required")
        (packs / "shop.py").write_text(PACK.replace("size: int = 2", "size: int"))
        tools = stage.app.runtime.tools
        await stage.until(lambda: "size: int," in str(tools.get("shop.items")), "it is scanned")
        await stage.press("f2")
        await stage.until_seen("✗ input: `size` is now required")
        assert "it changed again" in stage.text
        assert _problems(stage) == before + 1
        with no_thread():
            await stage.press("f2", "escape")
        await stage.until(lambda: _problems(stage) == before, "it is solved")


@pytest.mark.promise("BAT-4")
async def test_a_breaking_change_of_a_tool_that_nothing_uses_is_not_reported(packs: Path) -> None:
    def changed() -> list[str]:
        runtime = Runtime.from_environment(packs=[packs])
        runtime.tools.scan()
        return [one.tool for one in Compatibility(runtime).changed(runtime.tools.all())]

    assert not changed()
    (packs / "shop.py").write_text(PACK.replace('kind: str = "a"', "kind: str"))
    assert not changed()
    await call(packs, size=1, kind="a")
    assert not changed(), "the call was made with the changed schema"
    (packs / "shop.py").write_text(PACK.replace('kind: str = "a"', "kind: int"))
    assert changed() == ["shop.items"]


def _problems(stage: Stage) -> int:
    counted = re.search(r"(\d+) problem", stage.lines[0])
    return int(counted[1]) if counted else 0


def _seen(stage: Stage) -> bool:
    return any(stage.app.runtime.paths.schemas.glob("shop-*.json"))


@pytest.mark.promise("BAT-3")
async def test_a_call_of_activity_is_kept_as_check_and_the_checks_of_its_tool_are_shown(
    packs: Path, home: Path
) -> None:
    await call(packs, size=1)
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await stage.press("f9")
        await stage.until_seen("shop.items")
        await stage.press("alt+k")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "a name is asked for")
        await stage.press("enter")
        await stage.until((home / "data" / "checks" / "shop.items.toml").exists, "the check is written")
        await stage.press("alt+c")
        await stage.until(lambda: isinstance(stage.app.screen, ChecksScreen), "the checks are open")
        await stage.until_seen("not run")
        await stage.press("ctrl+r")
        await stage.until_seen("✓ shop.items")


@pytest.mark.promise("BAT-3")
async def test_the_questions_of_a_check_are_shown_before_it_runs(
    packs: Path, own_check: Callable[[str, str], Path]
) -> None:
    own_check("asked", 'tool = "shop.items"\nquestions = ["What do you [b]sell[/b]?"]\n')
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await open_checks(stage, "shop.items")
        await stage.until_seen("What do you [b]sell[/b]?")


@pytest.fixture
def provider(home: Path) -> Iterator[FakeProvider]:
    """Yield the server of the configured model."""
    with FakeProvider().running() as server:
        (home / "config.toml").write_text(f'[model]\nname = "openai:fake"\nbase_url = "{server.url}"\n')
        yield server


ASKED = 'tool = "shop.items"\narguments.size = 3\nquestions = ["Three [b]items[/b]?", "And three more?"]\n'


@pytest.mark.promise("BAT-3", "SEC-5", "ASK-7")
async def test_the_model_is_asked_the_questions_of_a_check_and_no_call_waits_for_approval(
    packs: Path, own_check: Callable[[str, str], Path], provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    own_check("three", ASKED)
    provider.play(
        proposes("shop_items", {"size": 3}), proposes("shop_clear", {}), says("I [red]may not[/red] clear it.")
    )
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await stage.press("f6")  # The Chat page approves calls as soon as it was open.
        await stage.until(lambda: stage.app.screen is not stage.screen, "the chat is open")
        await stage.press("f5")
        await stage.until(lambda: stage.app.screen is stage.screen, "the tools are shown")
        await open_checks(stage, "items")
        await stage.until_seen("alt+a asks the model")
        await stage.press("alt+a")
        await stage.until_seen("1 of 2 questions")
        assert "✓ openai:fake: Three [b]items[/b]?" in stage.text
        assert "✗ openai:fake: And three more?" in stage.text
        text = " ".join(stage.text.replace("│", " ").split())
        assert (
            'The model didn\'t call shop.items. It called shop.clear. Its answer: "I [red]may not[/red] clear it."'
            in text
        )
        assert "Its session can be opened on the Chat page." in text
        assert "awaits approval" not in text
        (session,) = stage.app.runtime.sessions.list()
        assert session.name == "And three more?"


@pytest.mark.promise("BAT-3")
async def test_without_a_model_the_questions_of_a_check_are_not_asked(
    packs: Path, own_check: Callable[[str, str], Path]
) -> None:
    own_check("three", ASKED)
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await open_checks(stage, "items")
        await stage.press("alt+a")
        await stage.until_seen("The offline model can't be asked such questions.")
        assert stage.app.runtime.sessions.list() == ()


@pytest.mark.promise("BAT-3")
async def test_closing_the_dialog_ends_the_questions_and_keeps_no_session(
    packs: Path, own_check: Callable[[str, str], Path], provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    own_check("three", ASKED)
    provider.play(Answer((delta(content="Hm"),), end="hang"))
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await open_checks(stage, "items")
        await stage.press("alt+a")
        await stage.until_seen("asking…")
        await stage.until(lambda: provider.asked, "the model is asked")
        await stage.press("escape")
        await stage.until(lambda: not isinstance(stage.app.screen, ChecksScreen), "the dialog is closed")
        await stage.until(lambda: not stage.app.runtime.sessions.list(), "no session is left")


@pytest.mark.promise("BAT-3")
async def test_closing_the_dialog_while_no_thread_is_free_keeps_no_session_either(
    packs: Path,
    own_check: Callable[[str, str], Path],
    provider: FakeProvider,
    monkeypatch: pytest.MonkeyPatch,
    no_thread: Callable[[], AbstractContextManager[None]],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    own_check("three", ASKED)
    provider.play(Answer((delta(content="Hm"),), end="hang"))
    async with on_stage(Runtime.from_environment(packs=[packs])) as stage:
        await open_checks(stage, "items")
        await stage.press("alt+a")
        await stage.until(lambda: provider.asked, "the model is asked")
        (asking,) = (worker for worker in stage.app.workers if worker.name == "action_ask")
        with no_thread():
            await stage.press("escape")
            await stage.until(lambda: not isinstance(stage.app.screen, ChecksScreen), "the dialog is closed")
            asking.cancel()  # Closing it has cancelled the questions twice.
            for _ in range(10):
                await asyncio.sleep(0)
        await stage.until(lambda: not stage.app.runtime.sessions.list(), "no session is left")
