"""Snapshots of the Script page at two sizes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from script_stage import ScriptStage, entered, script_app
from textual.pilot import Pilot

from pegboard.models import CallRecord
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.result import pane
from pegboard.tui.script import calls, output, past_calls, run, saved_scripts
from pegboard.tui.script.saved_scripts import SavedScriptsScreen

pytestmark = pytest.mark.slow

Compare = Callable[..., bool]
Steps = Callable[[ScriptStage], Awaitable[None]]
ORDERS = """\
# Notify customers who wait for a part that is out of stock.
for user in Ada Grace; do
  name=$(work.look "$user" | jq -r .seen)
  work.outer "$name" &
done
wait
work.fail --message 'There is no user 9.' || echo "nobody: $?" >&2
if [[ $name == Grace ]]; then work.say "told $name"; fi
"""


@pytest.fixture(autouse=True)
def _time_stands_still(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(run, "monotonic", lambda: 0.0)
    monkeypatch.setattr(pane, "monotonic", lambda: 0.0)
    monkeypatch.setattr(calls, "duration", lambda _: "12 ms")
    monkeypatch.setattr(output, "duration", lambda _: "345 ms")
    monkeypatch.setattr(past_calls, "duration", lambda _: "12 ms")
    monkeypatch.setattr(past_calls, "age", lambda *_: "5 min")
    monkeypatch.setattr(saved_scripts, "age", lambda *_: "3 h")
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(params=[(120, 40), (80, 24)], ids=["120x40", "80x24"])
def looks(request: pytest.FixtureRequest, snap_compare: Compare, tmp_path: Path) -> Callable[..., bool]:
    """Run steps at one of two sizes and compare the last screen."""

    def compare(steps: Steps, *, each_size: bool = False) -> bool:
        app = script_app(tmp_path, allow="work.*,text.count")

        async def play(pilot: Pilot[None]) -> None:
            stage = ScriptStage(app, pilot)
            await entered(stage)
            await steps(stage)
            await stage.drawn()

        return snap_compare(app, terminal_size=request.param, run_before=play, each_size=each_size)

    return compare


async def written(stage: ScriptStage, script: str, said: str) -> None:
    """Write a script and wait for its findings."""
    await stage.write(script)
    await stage.looked_at(said)


def test_empty(looks: Callable[..., bool]) -> None:
    async def nothing(_: ScriptStage) -> None: ...

    assert looks(nothing)


def test_a_script_that_has_run(looks: Callable[..., bool]) -> None:
    async def steps(stage: ScriptStage) -> None:
        # sequential calls make the picture deterministic
        await written(stage, ORDERS.replace(" &\n", "\n"), "will call")
        await stage.press("ctrl+r")
        await stage.idle()
        stage.tree.focus()
        await stage.press("f")

    assert looks(steps, each_size=True)


def test_a_script_that_runs(looks: Callable[..., bool]) -> None:
    async def steps(stage: ScriptStage) -> None:
        await written(stage, "echo begun\nwork.wait /nowhere &\nwork.wait /nowhere &\nwait", "will call")
        await stage.press("ctrl+r")
        await stage.until(lambda: sum("1 of 3" in row for row in stage.calls) == 2, "both run")
        await stage.until(lambda: stage.printed == ["  begun"], "it has printed something")

    assert looks(steps)


def test_errors_of_a_script(looks: Callable[..., bool]) -> None:
    async def steps(stage: ScriptStage) -> None:
        script = 'work.big many\nwork.lok <where>\nwork.look <where> "two\nlines" # and no more\neval "$x"\n'
        await written(stage, script, "line 3, column 11: fill in <where>")

    assert looks(steps)


def test_the_commands(looks: Callable[..., bool]) -> None:
    async def steps(stage: ScriptStage) -> None:
        await written(stage, "work.say a\n", "will call")
        await stage.press(*([] if stage.app.size.width > 100 else ["ctrl+b"]), "shift+tab")
        stage.commands.list.focus()
        await stage.type("oo")

    assert looks(steps, each_size=True)  # a screen that becomes narrow hides the list


def test_the_help_of_a_command(looks: Callable[..., bool]) -> None:
    async def steps(stage: ScriptStage) -> None:
        await written(stage, "work.look a\n", "will call")
        await stage.press("f2")
        await stage.until_seen("Where to look.")

    assert looks(steps)


def test_before_something_is_deleted(looks: Callable[..., bool]) -> None:
    async def steps(stage: ScriptStage) -> None:
        await written(stage, 'work.remove old.tar\nwork.remove "$1"\n', "will call")
        await stage.press("ctrl+r")
        await stage.until(lambda: isinstance(stage.app.screen, Confirm), "it asks")
        await stage.until_seen("old.tar")

    assert looks(steps)


def test_the_saved_scripts(looks: Callable[..., bool]) -> None:
    async def steps(stage: ScriptStage) -> None:
        for name in ("late orders", "stock", "who is who"):
            await asyncio.to_thread(stage.runtime.scripts.saved.write, name, ORDERS)
        await stage.press("ctrl+l")
        await stage.until(lambda: isinstance(stage.app.screen, SavedScriptsScreen), "the list is open")
        await stage.until_seen("late orders  8 lines")

    assert looks(steps)


def test_past_calls(looks: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(stage: ScriptStage) -> None:
        at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        facts = {"at": at, "error": None, "duration_ms": 12.0, "source": "form", "session": None, "parent": None}
        made = (("work.say", {"text": "a b"}), ("work.look", {"where": "x"}), ("script.run", {"commands": ORDERS}))
        records = [CallRecord(id=name, tool=name, args=args, ok=True, **facts) for name, args in made]
        monkeypatch.setattr(stage.runtime.history, "records", lambda **_: records)
        await stage.press("ctrl+up")
        await stage.until_seen("work.look")
        await stage.press("space", "down")

    assert looks(steps)


def test_ways_to_copy(looks: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(stage: ScriptStage) -> None:
        monkeypatch.setattr(stage.runtime.tools, "packs_option", lambda _: "")
        await written(stage, ORDERS, "will call")
        await stage.press("ctrl+right_square_bracket", "down")
        await stage.until_seen("pegboard script run")

    assert looks(steps)
