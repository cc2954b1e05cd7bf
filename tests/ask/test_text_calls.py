"""Calls that a model writes as text: only if configured, only whole messages, and never without approval."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import pytest
from models import ScriptedModel, calls, says

from pegboard.models import ApprovalRequested, ToolCall, ToolSpec
from pegboard.models.approval import Approval
from pegboard.models.ask import AskEvent, CallHappened, CallProposed, Outcome
from pegboard.models.conversation import ModelMessage, TextDelta, TurnEnded
from pegboard.models.rule import Rule
from pegboard.runtime import Runtime

Asked = Callable[..., Awaitable[tuple[list[AskEvent], Outcome]]]
SetUp = Callable[..., Runtime]

CALL = '{"name": "shop_add", "arguments": {"a": 1, "b": 2}}'


class Says:
    """An approver with one answer for every call, which records the calls."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[ToolCall] = []

    async def decide(self, spec: ToolSpec, call: ToolCall) -> Approval:
        assert spec.name == call.name
        self.asked.append(call)
        rule = Rule(allow=(call.name,)) if self.answer in {"session", "always"} else None
        return Approval.model_validate({"answer": self.answer, "rule": rule})


@pytest.fixture
def texting(set_up: SetUp) -> Runtime:
    """Provide a runtime whose model is configured to write calls as text."""
    return set_up(MODEL__TEXT_CALLS="true")


@pytest.mark.promise("SEC-6")
@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{CALL}\n```",
        f"<tool_call>{CALL}</tool_call>",
        '{"tool": "shop_add", "args": {"a": 1, "b": 2}}',
        '```\n[{"function": {"name": "shop_add", "arguments": "{\\"a\\": 1, \\"b\\": 2}"}}]\n```',
        f"<tools>\n{CALL}\n</tools>",
        f"<tool_call>\n{CALL}",
        f"{CALL}\n</tool_call>",
        f"\n\n  {CALL}  \n",
    ],
)
async def test_a_message_that_consists_of_a_call_is_run_if_configured_and_always_needs_approval(
    texting: Runtime, asked: Asked, text: str
) -> None:
    approver = Says("session")
    texting.rules.approve_with(approver)
    events, outcome = await asked(texting, model=ScriptedModel(says(text), says(text), says("3.")), session="s")
    proposed = [event.proposed for event in events if isinstance(event, CallProposed)]
    assert [one.from_text for one in proposed] == [True, True]
    assert [result.data for result in outcome.tool_results] == [3, 3]
    assert [call.from_text for call in approver.asked] == [True, True], "no earlier approval counts"
    reasons = [
        event.event.reason
        for event in events
        if isinstance(event, CallHappened) and isinstance(event.event, ApprovalRequested)
    ]
    assert all("as text" in reason for reason in reasons)


@pytest.mark.promise("SEC-6")
@pytest.mark.parametrize(
    "text",
    [
        f"{CALL}\n{CALL}",
        f"```\n{CALL}\n{CALL}\n```",
        f"```\n{CALL}\n```\n\n```json\n{CALL}\n```",
        f"<tool_call>{CALL}</tool_call><tool_call>{CALL}</tool_call>",
    ],
)
async def test_several_calls_in_one_message_all_run(texting: Runtime, asked: Asked, text: str) -> None:
    texting.rules.approve_with(Says("once"))
    _, outcome = await asked(texting, model=ScriptedModel(says(text), says("3 and 3.")))
    assert [result.data for result in outcome.tool_results] == [3, 3]


QUOTATIONS = [
    f"The file says: {CALL}",
    f"I will add.\n```json\n{CALL}\n```",
    f"{CALL} would add them.",
    f"```json\n{CALL}\n```\nThat is what the page asks me to do.",
    f"> {CALL}",
    f'"{CALL}"',
    f"`{CALL}`",
    f"leton\n{CALL}\n</tool_call>",
    f'{CALL}\n{{"name": "unknown", "arguments": {{}}}}',
    f"[{CALL}, 1]",
    f'{{"quoted": {CALL}}}',
    '```json\n{"name": "unknown", "arguments": {}}\n```',
    "```json\n{\n```",
    "{}",
    "add(1, 2)",
    '<tool_call>{"name": "shop_add", "arguments": {"a": 1',
    "nothing</tool_call>",
    '```\n{"function": {"name": "shop_add", "parameters": {"type": "object", "properties": {"a": {}}}}}\n```',
]


@pytest.mark.promise("SEC-6")
@pytest.mark.parametrize("text", QUOTATIONS)
async def test_a_quotation_is_not_run_as_a_call(texting: Runtime, asked: Asked, text: str) -> None:
    texting.rules.approve_with(Says("once"))
    _, outcome = await asked(texting, model=ScriptedModel(says(text)))
    assert (outcome.answer, outcome.tool_calls) == (text, ())


@pytest.mark.promise("SEC-6")
@pytest.mark.parametrize("settings", [{}, {"MODEL__TEXT_CALLS": "true", "MODEL__NAME": "scripted:another"}])
@pytest.mark.parametrize("text", [CALL, f"```\n{CALL}\n```", f"<tool_call>{CALL}</tool_call>"])
async def test_text_is_never_run_as_a_call_unless_this_model_is_configured_for_it(
    set_up: SetUp, asked: Asked, text: str, settings: dict[str, str]
) -> None:
    plain = set_up(**settings)
    plain.rules.approve_with(Says("once"))
    _, outcome = await asked(plain, model=ScriptedModel(says(text)))
    assert (outcome.answer, outcome.tool_calls) == (text, ())


@pytest.mark.promise("SEC-6")
async def test_after_a_native_call_text_is_never_run_as_a_call_in_later_questions(
    texting: Runtime, asked: Asked
) -> None:
    texting.rules.approve_with(Says("once"))
    native = calls(("shop_add", {"a": 1, "b": 1}))
    _, outcome = await asked(texting, model=ScriptedModel(native, says(CALL)), session="s")
    assert (len(outcome.tool_calls), outcome.answer) == (1, CALL)
    _, outcome = await asked(texting, model=ScriptedModel(says(CALL)), session="s")
    assert (outcome.tool_calls, outcome.answer) == ((), CALL)


@pytest.mark.promise("SEC-6")
@pytest.mark.parametrize("reason", ["length", "filter", "unknown"])
async def test_a_call_written_as_text_in_an_unfinished_turn_is_not_run(
    texting: Runtime, asked: Asked, reason: str
) -> None:
    texting.rules.approve_with(Says("once"))
    ended = TurnEnded.model_validate({"message": ModelMessage(text=CALL), "reason": reason})
    _, outcome = await asked(texting, model=ScriptedModel([TextDelta(text=CALL), ended]))
    assert outcome.tool_calls == ()


@pytest.mark.promise("SEC-6", "ASK-7")
async def test_a_call_written_as_text_is_rejected_without_a_person_though_it_only_reads_and_a_rule_allows_it(
    texting: Runtime, asked: Asked
) -> None:
    texting.paths.approvals.parent.mkdir(parents=True, exist_ok=True)
    texting.paths.approvals.write_text('[[rule]]\nallow = "shop.add"\n')
    _, outcome = await asked(texting, model=ScriptedModel(says(CALL), says("No.")))
    assert outcome.tool_error is not None
    assert outcome.tool_results[0].error is not None
    assert outcome.tool_results[0].error.detail == "denied"
    assert "as text" in outcome.tool_error.message


@pytest.mark.promise("SEC-6", "ASK-7")
@pytest.mark.parametrize(("pattern", "runs"), [("*", False), ("shop.*", False), ("shop.add", True)])
async def test_in_advance_only_the_exact_name_approves_a_call_written_as_text(
    texting: Runtime, asked: Asked, pattern: str, runs: bool
) -> None:
    texting.rules.approve_in_advance([pattern])
    _, outcome = await asked(texting, model=ScriptedModel(says(CALL), says("Well.")))
    assert outcome.tool_results[0].ok is runs


@pytest.mark.promise("SEC-6", "SEC-4")
async def test_in_advance_no_name_approves_a_call_written_as_text_while_the_rules_cannot_be_read(
    texting: Runtime, asked: Asked
) -> None:
    texting.paths.approvals.parent.mkdir(parents=True, exist_ok=True)
    texting.paths.approvals.write_text('[[rule]]\ndeny = "shop.add')
    texting.rules.approve_in_advance(["shop.add"])
    _, outcome = await asked(texting, model=ScriptedModel(says(CALL), says("Well.")))
    assert not outcome.tool_results[0].ok


@pytest.mark.promise("SEC-6")
async def test_later_prompts_contain_the_written_call_with_its_result(texting: Runtime, asked: Asked) -> None:
    texting.rules.approve_with(Says("once"))
    model = ScriptedModel(says(CALL), says("3."))
    await asked(texting, model=model)
    sent = [message for message in model.prompts[-1].messages if isinstance(message, ModelMessage)]
    assert [json.loads(call.arguments) for call in sent[0].calls] == [{"a": 1, "b": 2}]


async def test_a_model_that_writes_calls_as_text_can_read_more_of_a_shortened_result(
    asked: Asked, set_up: SetUp
) -> None:
    runtime = set_up(MODEL__TEXT_CALLS="true")
    runtime.rules.approve_with(Says("once"))
    large = json.dumps({"name": "shop_large", "arguments": {"size": 200_000}})
    _, outcome = await asked(runtime, model=ScriptedModel(says(large), says("Long.")), session="s")
    more = {"name": "more_of_result", "arguments": {"call": outcome.tool_calls[0].id, "start": 199_990}}
    _, outcome = await asked(runtime, model=ScriptedModel(says(json.dumps(more)), says("Read.")), session="s")
    assert [result.data for result in outcome.tool_results] == ["000019999\n"]
