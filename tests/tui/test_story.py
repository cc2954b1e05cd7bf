"""The blocks of a conversation, live and as stored, without the app."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from models import Said, ScriptedModel, calls, says

from pegboard.errors import ModelError
from pegboard.models import HistoryQuery, JsonObject, ToolError, ToolResult
from pegboard.models.ask import ModelSaid
from pegboard.models.conversation import TextDelta, UserMessage
from pegboard.models.turn import ModelTurn
from pegboard.runtime import Runtime
from pegboard.tui.chat.blocks import Block
from pegboard.tui.chat.call_block import CallBlock
from pegboard.tui.chat.story import Story, TurnEnd

PACK = '''
from pegboard.sdk import ToolFailed, hints

@hints(read_only=True)
def add(*, a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

@hints(read_only=True)
def fail() -> None:
    """Fail."""
    raise ToolFailed("No such shelf.")
'''


@pytest.fixture
async def runtime(write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]) -> Runtime:
    """Return a runtime with the pack `shop`."""
    return open_runtime(write_pack("shop.py", PACK))


def shown(blocks: Sequence[Block]) -> list[str]:
    """Return the kind and the text of each block, and the name, the state and the result of each call."""
    lines = []
    for block in blocks:
        kind, text = type(block).__name__.removesuffix("Block").lower(), block.text
        if isinstance(block, CallBlock):
            assert block.result is not None
            kind, text = f"{block.name} {'ok' if block.result.ok else 'failed'}", text.partition("\n\n")[2]
        lines.append(f"{kind}: {text.strip()}")
    return lines


def ends(runtime: Runtime, session: str) -> dict[int, TurnEnd]:
    """Return why turns of a session ended, by the position of the user's message."""
    query = HistoryQuery(sessions=(session,), parent="none", turns=True)
    found = [(ModelTurn.of(call), call.error) for call in runtime.activity.page(query).calls]
    return {turn.message: TurnEnd(error, turn.stopped_by) for turn, error in found if turn.message is not None}


def recalled(runtime: Runtime, session: str, *, without: int = 0, is_in_use: bool = False) -> Story:
    """Return a stored session without its last messages."""

    def recorded(call_id: str) -> tuple[JsonObject | None, ToolResult | None]:
        call = runtime.activity.get(call_id)
        return (None, None) if call is None else (call.args, runtime.history.result(call_id))

    entries = runtime.sessions.entries(session)
    story = Story(lambda _: None)
    names, ended = runtime.models.tool_names(), ends(runtime, session)
    story.recall(entries[: len(entries) - without], names, recorded, ended, is_in_use=is_in_use)
    return story


async def live(runtime: Runtime, text: str, *turns: Sequence[Said], story: Story | None = None) -> Story:
    """Return a conversation after a model answered; interrupt it when it said a last word."""
    story = story or Story(lambda _: None)
    story.begin(text)
    asking = runtime.ask("s", model=ScriptedModel(*turns))
    async with asyncio.timeout(60):
        async for event in asking.run(text):
            story.feed(event)
            if isinstance(event, ModelSaid) and event.event == TextDelta(text="last"):
                asking.interrupt()
    return story


TURNS: dict[str, list[list[Said]]] = {
    "calls": [
        calls(("shop_add", {"a": 1, "b": 2}), ("shop_fail", {}), text="Adding."),
        calls(("shop_add", {"a": 1}), ("shop_none", {}), ("shop_add", "{broken")),
        says("It is 3."),
    ],
    "interrupted": [[TextDelta(text="Once "), TextDelta(text="last"), asyncio.Event()]],
    "failing": [[TextDelta(text="Once "), ModelError("The provider is down.", code="auth")]],
    "cut": [calls(("shop_add", {"a": 1, "b": 2}), cut=True), says("Sorry.")],
}


@pytest.mark.promise("ASK-6")
async def test_a_stored_conversation_is_shown_as_it_was_while_it_ran(runtime: Runtime) -> None:
    story: Story | None = None
    for name, turns in TURNS.items():
        story = await live(runtime, name, *turns, story=story)
    assert story is not None
    now, later = shown(story.blocks), shown(recalled(runtime, "s").blocks)
    assert later == now
    assert now[6].startswith("shop.add failed: shop.add was not called. The arguments text is not JSON")
    assert now[-2].startswith("shop.add failed: shop.add was not called because the model's turn ended early")
    assert [line for line in now if not line.startswith(("user", "text"))] == [
        "shop.add ok: 3",
        "shop.fail failed: No such shelf.",
        "shop.add failed: shop.add was not called because its arguments are invalid: b: is required",
        "shop_none failed: No tool is named 'shop_none'.",
        now[6],
        "note: You interrupted the model.",
        "note: The provider is down.",
        now[-2],
    ]


@pytest.mark.promise("ASK-6", "ASK-1")
async def test_a_stored_conversation_shows_which_limit_stopped_a_turn(runtime: Runtime) -> None:
    broken = calls(("shop_add", "{broken"))
    story = await live(runtime, "go", broken, broken, broken, says("Sorry."))
    assert shown(story.blocks)[-1] == "note: Stopped: the model's calls were invalid several times in a row."
    assert shown(recalled(runtime, "s").blocks) == shown(story.blocks)


@pytest.mark.promise("ASK-6")
async def test_calls_of_a_stored_session_without_a_result_have_ended_unless_another_client_uses_it(
    runtime: Runtime,
) -> None:
    await live(runtime, "calls", *TURNS["calls"][:1], says("It is 3."))
    ended = recalled(runtime, "s", without=2)
    assert shown(ended.blocks)[2:] == ["shop.add ok: 3", "shop.fail failed: The session ends before its result."]
    assert ended.pending == {}
    used = recalled(runtime, "s", without=2, is_in_use=True)
    (waiting,) = used.pending.values()
    assert (waiting, waiting.state) == (used.blocks[-1], "waiting")


@pytest.mark.promise("ASK-6")
async def test_calls_whose_records_were_deleted_show_what_the_model_read(runtime: Runtime) -> None:
    await live(runtime, "calls", *TURNS["calls"])
    before = shown(recalled(runtime, "s").blocks)
    made = [call.id for call in runtime.activity.page().calls]
    assert len(runtime.activity.delete(made)) == len(made)
    assert runtime.activity.page().calls == ()
    story = Story(lambda _: None)
    story.recall(runtime.sessions.entries("s"), runtime.models.tool_names(), lambda _: (None, None), {})
    assert shown(story.blocks) == before


@pytest.mark.promise("ASK-6")
async def test_a_turn_whose_process_was_killed_is_not_described_as_a_call(runtime: Runtime) -> None:
    runtime.sessions.start("s")
    first = runtime.sessions.append("s", UserMessage(text="Hello"))
    # The error that the history sets for every record of a process that has ended.
    lost = "The process that ran this call ended before it finished."
    failed = {first.position: TurnEnd(ToolError(code="execution_error", message=lost, detail="interrupted"), "answer")}
    story = Story(lambda _: None)
    story.recall(runtime.sessions.entries("s"), {}, lambda _: (None, None), failed)
    assert shown(story.blocks) == [
        "user: Hello",
        "note: The app or command that sent this message ended before the model finished.",
    ]
