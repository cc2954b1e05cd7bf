"""Snapshots of the Chat page at two sizes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import pytest
from chat_stage import ChatStage, chat_app, entered
from models import Said, calls, says
from textual.pilot import Pilot

from pegboard.errors import ModelError
from pegboard.models.conversation import TextDelta
from pegboard.tui.chat import call_block, status
from pegboard.tui.dialogs.approval_scope import ApprovalScope
from pegboard.tui.dialogs.edit_call import EditCallScreen

pytestmark = pytest.mark.slow

Compare = Callable[..., bool]
Steps = Callable[[ChatStage], Awaitable[None]]
REMOVE = ("work_remove", {"path": "build/old.tar", "force": True})
ANSWER = """\
There are **two** of them; see `notes.txt`:

1. the first, which is *old*
2. the second

```python
def keep(name: str) -> bool:
    return name != "old.tar"
```

| file | size |
|------|-----:|
| old.tar | 7 MB |
| new.tar | 3 kB |
"""


@pytest.fixture(autouse=True)
def _time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_block, "monotonic", lambda: 0.0)
    monkeypatch.setattr(call_block, "duration", lambda _: "12 ms")
    monkeypatch.setattr(status, "duration", lambda _: "1.2 s")


@pytest.fixture(params=[(120, 40), (80, 24)], ids=["120x40", "80x24"])
def looks(request: pytest.FixtureRequest, snap_compare: Compare, tmp_path: Path) -> Callable[..., bool]:
    """Play a conversation at one of two sizes and compare the last screen."""

    def compare(steps: Steps, *turns: Iterable[Said], each_size: bool = False) -> bool:
        app, runtime, model = chat_app(tmp_path, *turns, allow="work.*")

        async def run(pilot: Pilot[None]) -> None:
            stage = ChatStage(app, pilot, runtime, model)
            await entered(stage)
            await steps(stage)
            await stage.drawn()

        return snap_compare(app, terminal_size=request.param, run_before=run, each_size=each_size)

    return compare


def test_empty(looks: Callable[..., bool]) -> None:
    async def nothing(_: ChatStage) -> None: ...

    assert looks(nothing)


def test_a_talk_with_folded_calls(looks: Callable[..., bool]) -> None:
    async def steps(stage: ChatStage) -> None:
        await stage.ask("Which archives are there,\nand which can go?")

    turn = calls(("work_look", {"where": "build"}), ("work_fail", {}), text="I look for them.")
    assert looks(steps, turn, says(ANSWER, tokens=1_234))


def test_an_unfolded_call(looks: Callable[..., bool]) -> None:
    async def steps(stage: ChatStage) -> None:
        await stage.ask("What is in it?")
        await stage.press("shift+tab", "up", "space")

    assert looks(steps, calls(("work_big", {"lines": 40})), says("Forty lines."), each_size=True)


def test_a_running_call(looks: Callable[..., bool]) -> None:
    async def steps(stage: ChatStage) -> None:
        await stage.say("Wait for it")
        await stage.until_seen("now I wait")
        await stage.until_seen("one of three")
        await stage.say("And then tell me")
        await stage.type("Also")

    assert looks(steps, calls(("work_wait", {"gate": "/nowhere/at/all", "lines": 12}), text="It may take a while."))


def test_a_call_that_asks(looks: Callable[..., bool]) -> None:
    async def steps(stage: ChatStage) -> None:
        await stage.say("Remove the old one")
        await stage.asked()

    assert looks(steps, calls(REMOVE, text="Then I remove it."))


def test_a_selected_call_that_asks(looks: Callable[..., bool]) -> None:
    async def steps(stage: ChatStage) -> None:
        await stage.say("Remove the old one")
        await stage.select()

    assert looks(steps, calls(REMOVE, text="Then I remove it."))


def test_the_scope_of_a_rule(looks: Callable[..., bool]) -> None:
    async def steps(stage: ChatStage) -> None:
        await stage.say("Remove the old one")
        await stage.select()
        await stage.press("A")
        await stage.until(lambda: isinstance(stage.app.screen, ApprovalScope), "the dialog is open")
        await stage.press("down", "enter")
        await stage.until_seen("where path = build/old.tar")

    assert looks(steps, calls(REMOVE))


def test_a_call_within_one_that_asks_while_one_writes(looks: Callable[..., bool]) -> None:
    gate = asyncio.Event()

    async def steps(stage: ChatStage) -> None:
        await stage.say("Remove the old one")
        await stage.type("No, wai")
        gate.set()
        await stage.asked()
        await stage.until(lambda: "f12" in stage.status, "the way there is shown")

    assert looks(steps, [gate, *calls(("work_outer", {"path": "build/old.tar"}))])


def test_the_form_of_a_call_that_asks(looks: Callable[..., bool]) -> None:
    async def steps(stage: ChatStage) -> None:
        await stage.say("Remove the old one")
        await stage.select()
        await stage.press("e")
        await stage.until(lambda: isinstance(stage.app.screen, EditCallScreen), "the form is open")
        await stage.until_seen("build/old.tar")
        await stage.press("end", "2")

    assert looks(steps, calls(REMOVE))


def test_an_edited_call(looks: Callable[..., bool]) -> None:
    async def steps(stage: ChatStage) -> None:
        await stage.say("Remove the old one")
        await stage.select()
        await stage.press("e")
        await stage.until(lambda: isinstance(stage.app.screen, EditCallScreen), "the form is open")
        await stage.until_seen("build/old.tar")
        await stage.press("end", "2", "ctrl+r")
        await stage.idle()
        await stage.press("shift+tab", "up", "space")

    assert looks(steps, calls(REMOVE), says("It removed `build/old.tar2`, as you wanted."))


def test_a_failure_of_the_model(looks: Callable[..., bool]) -> None:
    async def steps(stage: ChatStage) -> None:
        await stage.ask("Hello?")

    failure = ModelError(
        "The provider wants no more for now: 30 requests a minute are over.",
        code="rate_limited",
        fix="Ask again in 20 seconds (ctrl+r), or choose another model (f2).",
    )
    assert looks(steps, [TextDelta(text="Hel"), failure])
