"""Approval of the calls of a model, in the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from models import ScriptedModel, calls, says

from pegboard.models import ApprovalRequested, JsonObject, ToolCall, ToolSpec
from pegboard.models.approval import Approval
from pegboard.models.ask import AskEvent, CallHappened, Outcome
from pegboard.models.conversation import ToolMessage
from pegboard.runtime import Runtime

Asked = Callable[..., Awaitable[tuple[list[AskEvent], Outcome]]]
SetUp = Callable[..., Runtime]


def _answers(model: ScriptedModel, turn: int = -1) -> list[ToolMessage]:
    """Return the results that the model received before one of its turns."""
    return [message for message in model.prompts[turn].messages if isinstance(message, ToolMessage)]


@pytest.mark.promise("ASK-7")
async def test_a_call_that_nothing_approves_is_denied_and_the_model_receives_the_reason(
    runtime: Runtime, asked: Asked
) -> None:
    model = ScriptedModel(calls(("shop_write", {"text": "x"})), says("I may not."))
    _, outcome = await asked(runtime, model=model)
    assert outcome.tool_results[0].error is not None
    assert outcome.tool_results[0].error.detail == "denied"
    assert "this run can't ask for approval" in _answers(model)[0].text
    call = ToolCall(name="shop.write", args={"text": "x"}, source="ask")
    verdict = runtime.rules.verdict(call)
    assert verdict is not None
    assert verdict.action == "ask"


class _Editor:
    """An approver that replaces the arguments of every call, like a user at the form."""

    def __init__(self, args: JsonObject) -> None:
        self._args = args

    async def decide(self, spec: ToolSpec, call: ToolCall) -> Approval:
        return Approval(answer="once", args=self._args)


@pytest.mark.promise("ASK-7")
async def test_the_model_receives_the_arguments_that_the_user_edited(runtime: Runtime, asked: Asked) -> None:
    runtime.rules.approve_with(_Editor({"text": "better", "path": "b.txt"}))
    model = ScriptedModel(calls(("shop_write", {"text": "x"})), says("Better."))
    events, outcome = await asked(runtime, model=model)
    [request] = [
        event.event
        for event in events
        if isinstance(event, CallHappened) and isinstance(event.event, ApprovalRequested)
    ]
    assert request.call.args == {"text": "x"}
    assert outcome.tool_calls[0].args == {"text": "better", "path": "b.txt"}
    [answer] = _answers(model)
    assert 'edited the arguments. The call ran with {"text": "better", "path": "b.txt"}' in answer.text
    assert answer.text.endswith("b.txt: better")


@pytest.mark.promise("ASK-7")
async def test_another_type_of_an_equal_value_is_an_edit_that_the_model_receives(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime], asked: Asked
) -> None:
    runtime = open_runtime(
        write_pack("box.py", "def put(*, item) -> str:\n    'Put something in.'\n    return repr(item)\n")
    )
    runtime.rules.approve_with(_Editor({"item": {"is_new": True}}))
    model = ScriptedModel(calls(("box_put", {"item": {"is_new": 1}})), says("Better."))
    await asked(runtime, model=model)
    [answer] = _answers(model)
    assert 'edited the arguments. The call ran with {"item": {"is_new": true}}' in answer.text


class _Slow:
    """An approver that takes longer than the time limit of the model, like an absent user."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def decide(self, spec: ToolSpec, call: ToolCall) -> Approval:
        await asyncio.sleep(self._seconds)
        return Approval(answer="once")


@pytest.mark.promise("ASK-1", "ASK-7")
@pytest.mark.parametrize("tool", ["write", "through"])
async def test_pending_approvals_do_not_count_towards_the_time_limit(asked: Asked, set_up: SetUp, tool: str) -> None:
    brief = set_up(ASK__SECONDS="3")
    await brief.prewarm()
    brief.rules.approve_with(_Slow(3.5))
    model = ScriptedModel(calls((f"shop_{tool}", {"text": "x"})), says("Done."))
    _, outcome = await asked(brief, model=model)
    assert (outcome.stopped_by, outcome.tool_results[0].ok, outcome.answer) == ("answer", True, "Done.")


@pytest.mark.promise("ASK-4", "ASK-7")
async def test_a_call_that_the_user_never_approved_is_reported_as_not_called(runtime: Runtime) -> None:
    runtime.rules.approve_with(_Slow(60))
    asking = runtime.ask("s", model=ScriptedModel(calls(("shop_write", {"text": "x"})), says("Never said.")))
    async with asyncio.timeout(30):
        async for event in asking.run("Write."):
            if isinstance(event, CallHappened) and isinstance(event.event, ApprovalRequested):
                asking.interrupt()
    answer = runtime.sessions.entries("s")[-1].message
    assert isinstance(answer, ToolMessage)
    assert "shop.write was not called. The user interrupted it." in answer.text
