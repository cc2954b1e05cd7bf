"""The loop, with real workers, a real history and a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, aclosing
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest
from listening import reach
from models import ScriptedModel, calls, says
from processes import until
from provider import Answer, FakeProvider, delta, proposes
from provider import says as provided

from pegboard.errors import ModelError
from pegboard.models import Finished, HistoryQuery, Log, Started
from pegboard.models.ask import (
    AskEvent,
    AskFinished,
    AskStarted,
    CallHappened,
    CallProposed,
    ModelSaid,
    Outcome,
    ToolAnswered,
    TurnStarted,
    Waiting,
)
from pegboard.models.conversation import (
    CallDelta,
    ModelMessage,
    SystemMessage,
    TextDelta,
    ThinkingEnded,
    ToolMessage,
    UserMessage,
)
from pegboard.runtime import Runtime

Asked = Callable[..., Awaitable[tuple[list[AskEvent], Outcome]]]
SetUp = Callable[..., Runtime]

NOISY = '''
from pathlib import Path
from pegboard.sdk import hints, log

@hints(read_only=True)
def talk(*, file: str) -> None:
    """Log without end."""
    for number in range(100_000_000):
        log(str(number))
        if number == 100:
            Path(file).touch()
'''


def _answers(model: ScriptedModel, turn: int = -1) -> list[ToolMessage]:
    """Return the results that the model received before one of its turns."""
    return [message for message in model.prompts[turn].messages if isinstance(message, ToolMessage)]


def _roles(runtime: Runtime, session: str) -> list[str]:
    return [entry.message.role for entry in runtime.sessions.entries(session)]


@pytest.mark.promise("ASK-1", "ASK-2")
async def test_calls_run_in_order_and_their_results_go_back_until_the_model_answers(
    runtime: Runtime, asked: Asked
) -> None:
    model = ScriptedModel(
        calls(("shop_add", {"a": 1, "b": 2}), ("shop_add", {"a": 3, "b": 4})),
        calls(("shop_add", {"a": 3, "b": 7})),
        says("It is 10."),
    )
    _, outcome = await asked(runtime, "Add all.", model=model, session="s")
    assert (outcome.answer, outcome.stopped_by, outcome.steps) == ("It is 10.", "answer", 3)
    assert [(call.name, call.args, call.source) for call in outcome.tool_calls] == [
        ("shop.add", {"a": 1, "b": 2}, "ask"),
        ("shop.add", {"a": 3, "b": 4}, "ask"),
        ("shop.add", {"a": 3, "b": 7}, "ask"),
    ]
    assert [result.data for result in outcome.tool_results] == [3, 7, 10]
    assert [result.call_id for result in outcome.tool_results] == [call.id for call in outcome.tool_calls]
    assert [answer.text for answer in _answers(model)] == ["3", "7", "10"]
    assert (outcome.tool_error, outcome.session_context_updated, outcome.session_id) == (None, True, "s")
    assert [(record.id, record.source, record.session) for record in reversed(runtime.history.records())] == [
        (call.id, "ask", "s") for call in outcome.tool_calls
    ]


@pytest.mark.promise("ASK-1", "ASK-5")
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_thinking_before_a_call_is_sent_back_in_its_field_until_the_question_is_answered(
    runtime: Runtime, asked: Asked, field: str
) -> None:
    first = Answer([delta(**{field: "Hm, well."}), *proposes("shop_add", {"a": 1, "b": 2}).chunks])
    with FakeProvider(first, provided("It is 3."), provided("Nothing else.")).running() as fake:
        for question in ("Add all.", "What else?"):
            await asked(runtime, question, model=reach(fake, "deepseek:fake"), session="s")
    sent = [
        [message.get(field) for message in turn.body["messages"] if message.get("tool_calls")] for turn in fake.asked
    ]
    assert sent == [[], ["Hm, well."], [None]]


@pytest.mark.promise("ASK-1", "ASK-5")
async def test_the_signature_of_a_call_is_sent_back_with_it_until_the_question_is_answered(
    runtime: Runtime, asked: Asked
) -> None:
    signed = {"google": {"thought_signature": "AbC="}}  # as Gemini's OpenAI-compatible interface requires it
    function = {"name": "shop_add", "arguments": '{"a": 1, "b": 2}'}
    piece = {"index": 0, "id": "", "type": "function", "function": function, "extra_content": signed}
    first = Answer([delta(tool_calls=[piece]), delta("stop")])
    with FakeProvider(first, provided("It is 3."), provided("Nothing else.")).running() as fake:
        for question in ("Add all.", "What else?"):
            await asked(runtime, question, model=reach(fake), session="s")
    sent = [
        [call.get("extra_content") for message in turn.body["messages"] for call in message.get("tool_calls") or ()]
        for turn in fake.asked
    ]
    assert sent == [[], [signed], [None]]


@pytest.mark.promise("ASK-1", "ASK-5")
async def test_encrypted_thinking_before_a_call_is_sent_back_whole(runtime: Runtime, asked: Asked) -> None:
    thought = {"type": "reasoning.encrypted", "data": "AbC=", "id": "call_1", "format": "google-gemini-v1", "index": 0}
    first = Answer([delta(reasoning_details=[thought]), *proposes("shop_add", {"a": 1, "b": 2}).chunks])
    with FakeProvider(first, provided("It is 3.")).running() as fake:  # as OpenRouter sends it
        await asked(runtime, "Add all.", model=reach(fake, "openrouter:google/fake"), session="s")
    [sent] = [message for message in fake.asked[1].body["messages"] if message.get("tool_calls")]
    assert sent["reasoning_details"] == [thought]


@pytest.mark.promise("ASK-2")
async def test_every_outcome_has_all_its_names_in_camel_case(runtime: Runtime, asked: Asked) -> None:
    _, outcome = await asked(runtime, model=ScriptedModel(says("Hello.")), session="s")
    told = json.loads(outcome.model_dump_json())
    assert told == {
        "answer": "Hello.",
        "toolCalls": [],
        "toolResults": [],
        "toolError": None,
        "sessionContextUpdated": False,
        "sessionId": "s",
        "usage": {"inputTokens": 0, "outputTokens": 0, "cachedTokens": 0},
        "steps": 1,
        "stoppedBy": "answer",
        "modelError": None,
    }


@pytest.mark.promise("ASK-2")
async def test_the_model_receives_the_error_of_a_failed_tool_and_the_question_does_not_fail(
    runtime: Runtime, asked: Asked
) -> None:
    model = ScriptedModel(calls(("shop_fail", {}), ("shop_add", {"a": 1})), says("It failed."))
    _, outcome = await asked(runtime, model=model)
    assert outcome.stopped_by == "answer"
    assert outcome.tool_error is not None
    assert (outcome.tool_error.tool, outcome.tool_error.code) == ("shop.fail", "execution_error")
    assert [result.ok for result in outcome.tool_results] == [False, False]
    first, second = _answers(model)
    assert not first.ok
    assert first.text == 'The call failed: execution_error (no_shelf). No such shelf.\n{"shelf": 4}'
    assert second.text == (
        "The call failed: invalid_args. shop.add was not called because its arguments are invalid: b: is required"
    )


@pytest.mark.promise("ASK-4")
async def test_text_arguments_and_events_of_calls_are_reported_as_they_happen(runtime: Runtime, asked: Asked) -> None:
    model = ScriptedModel(calls(("shop_fail", {}), text="Let me see."), says("It failed."))
    events, _ = await asked(runtime, model=model)
    kinds = [type(event) for event in events]
    assert kinds[0] is AskStarted
    assert kinds[1] is TurnStarted
    assert kinds.count(TurnStarted) == 2
    proposed = next(event for event in events if isinstance(event, CallProposed))
    assert (proposed.call.name, proposed.proposed.name, proposed.call.provider_id) == (
        "shop.fail",
        "shop_fail",
        "given_0",
    )
    within = [event.event for event in events if isinstance(event, CallHappened)]
    assert isinstance(within[0], Started)
    assert isinstance(within[-1], Finished)
    order = [kinds.index(kind) for kind in (ModelSaid, CallProposed, CallHappened, ToolAnswered, AskFinished)]
    assert order == sorted(order)
    pieces = [event.event for event in events if isinstance(event, ModelSaid)]
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextDelta)) == "Let me see.It failed. "
    assert "".join(piece.name for piece in pieces if isinstance(piece, CallDelta)) == "shop_fail"


@pytest.mark.promise("ASK-1")
async def test_the_limit_of_steps_ends_it_with_a_turn_without_tools(asked: Asked, set_up: SetUp) -> None:
    few = set_up(ASK__STEPS="3")
    again = calls(("shop_add", {"a": 1, "b": 1}))
    model = ScriptedModel(again, again, says("I got as far as 2."))
    events, outcome = await asked(few, model=model)
    assert (outcome.stopped_by, outcome.steps, outcome.answer) == ("steps", 3, "I got as far as 2.")
    turns = [(event.step, event.of, event.with_tools) for event in events if isinstance(event, TurnStarted)]
    assert turns == [(1, 3, True), (2, 3, True), (3, 3, False)]
    assert [bool(prompt.tools) for prompt in model.prompts] == [True, True, False]
    system = model.prompts[-1].messages[0]
    assert isinstance(system, SystemMessage)
    assert "The limit of 3 steps was reached." in system.text


@pytest.mark.promise("ASK-1")
async def test_the_limit_of_tokens_ends_it_too(asked: Asked, set_up: SetUp) -> None:
    few = set_up(ASK__TOKENS="100")
    model = ScriptedModel(calls(("shop_add", {"a": 1, "b": 1}), tokens=100), says("2."))
    _, outcome = await asked(few, model=model)
    assert (outcome.stopped_by, outcome.answer, outcome.usage.output_tokens) == ("tokens", "2.", 100)


@pytest.mark.promise("ASK-1")
async def test_the_limit_of_time_cuts_off_a_tool_and_the_model_still_answers(
    asked: Asked, set_up: SetUp, tmp_path: Path
) -> None:
    brief = set_up(ASK__SECONDS="2")
    await brief.prewarm()
    model = ScriptedModel(
        calls(("shop_wait", {"file": str(tmp_path / "a")}), ("shop_add", {"a": 1, "b": 1})), says("It took too long.")
    )
    _, outcome = await asked(brief, model=model, session="s")
    assert (outcome.stopped_by, outcome.answer) == ("time", "It took too long.")
    details = [result.error.detail for result in outcome.tool_results if result.error]
    assert details == ["cancelled", "cancelled"]
    assert "was not called" in _answers(model)[1].text
    assert _roles(brief, "s") == ["user", "model", "tool", "tool", "model"]


@pytest.mark.promise("ASK-1")
async def test_a_model_that_hangs_is_stopped_and_the_answer_summarizes_the_calls(asked: Asked, set_up: SetUp) -> None:
    brief = set_up(ASK__SECONDS="0.5")
    _, outcome = await asked(brief, model=ScriptedModel([asyncio.Event()]))
    assert outcome.stopped_by == "time"
    assert "The limit of 0.5 seconds was reached." in outcome.answer


@pytest.mark.promise("ASK-1", "ASK-6")
async def test_the_time_until_another_client_of_the_session_finishes_does_not_count_towards_the_limit(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    asking = runtime.ask("s", model=ScriptedModel(says("Hello.")))
    async with aclosing(asking.run("Hello?")) as events:
        with runtime.sessions.held("s"):
            assert isinstance(await anext(events), Waiting)
            now = loop.time
            monkeypatch.setattr(loop, "time", lambda: now() + 2 * asking.limits.seconds)
        async with asyncio.timeout(30):
            ended = [event async for event in events][-1]
    assert isinstance(ended, AskFinished)
    assert (ended.outcome.stopped_by, ended.outcome.answer) == ("answer", "Hello.")


@pytest.mark.promise("ASK-1")
async def test_an_empty_answer_is_replaced_by_a_summary(asked: Asked, set_up: SetUp) -> None:
    few = set_up(ASK__STEPS="2")
    again = calls(("shop_add", {"a": 1, "b": 1}))
    _, outcome = await asked(few, model=ScriptedModel(again, again))
    assert len(outcome.tool_calls) == 1, "what it calls in the turn without tools isn't run"
    assert "The limit of 2 steps was reached." in outcome.answer
    assert "shop.add: done" in outcome.answer


@pytest.mark.promise("ASK-1", "ASK-5")
@pytest.mark.parametrize(
    ("written", "cut", "told"),
    [
        ('{"a": 1, "b"', False, "is not JSON"),
        ('{"a": 1, "b"', True, "ended early, after 12 characters of arguments"),
        ("", True, "ended early"),
        ('{"a": 1, "b": 2}', True, "ended early"),
        ("[1]", False, "must be a JSON object"),
        ('"a"', False, "must be a JSON object"),
        ('{"a": 1}{"a": 1, "b": 2}', False, "is not JSON"),
        ('{"a": 1, "a": 2, "b": 1}', False, "twice"),
        pytest.param("[" * 100_000, False, "nested too deeply", id="deep"),
    ],
)
async def test_calls_with_truncated_or_malformed_arguments_never_run(
    runtime: Runtime, asked: Asked, written: str, cut: bool, told: str
) -> None:
    model = ScriptedModel(calls(("shop_add", written), cut=cut), says("Sorry."))
    _, outcome = await asked(runtime, model=model, session="s")
    [answer] = _answers(model)
    assert told in answer.text
    assert outcome.tool_error is not None
    assert outcome.tool_error.code == "invalid_args"
    assert not runtime.history.records()
    sent = [message for message in model.prompts[-1].messages if isinstance(message, ModelMessage)]
    assert all(isinstance(json.loads(call.arguments), dict) for call in sent[0].calls), "no server is sent other text"
    kept = [entry.message for entry in runtime.sessions.entries("s")]
    assert isinstance(kept[1], ModelMessage)
    assert kept[1].calls[0].arguments == written


@pytest.mark.promise("ASK-1", "ASK-5")
@pytest.mark.parametrize("name", ["functions.shop_add", "functions.shop.add"])
@pytest.mark.parametrize("written", [json.dumps(' {"a": 1, "b": 2}'), '{}{"a": 1, "b": 2}'])
async def test_a_call_with_quoted_or_repeated_arguments_and_a_prefix_runs_and_is_sent_back_as_it_was_meant(
    runtime: Runtime, asked: Asked, name: str, written: str
) -> None:
    model = ScriptedModel(calls((name, written), ("functions.more_of_result", "{}")), says("3."))
    _, outcome = await asked(runtime, model=model, session="s")
    assert [call.name for call in outcome.tool_calls] == ["shop.add", "more_of_result"]
    assert outcome.tool_results[0].data == 3
    [sent] = [message for message in model.prompts[1].messages if isinstance(message, ModelMessage)]
    assert sent.calls[0].name == name.removeprefix("functions.")
    assert json.loads(sent.calls[0].arguments) == {"a": 1, "b": 2}


@pytest.mark.promise("ASK-1")
async def test_a_third_consecutive_turn_with_invalid_arguments_ends_the_loop(runtime: Runtime, asked: Asked) -> None:
    bad = calls(("shop_add", '{"a"'))
    model = ScriptedModel(bad, bad, bad, says("I can't."))
    _, outcome = await asked(runtime, model=model)
    assert (outcome.stopped_by, outcome.steps, outcome.answer) == ("invalid_args", 4, "I can't.")
    assert model.prompts[-1].tools == ()


async def test_the_duration_of_a_turn_does_not_depend_on_the_clock(
    runtime: Runtime, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SetBack:
        """A clock that is set back by an hour each time it is read."""

        reads = 0

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            cls.reads += 1
            return datetime.now(tz) - timedelta(hours=cls.reads)

    monkeypatch.setattr("pegboard.ask.turn.datetime", SetBack)
    await asked(runtime, model=ScriptedModel(says("Hello.")))
    [turn] = runtime.activity.page(HistoryQuery(turns=True), limit=9).calls
    assert 0 <= turn.duration_ms < 60_000


@pytest.mark.promise("ASK-1")
async def test_a_valid_call_resets_the_count_of_consecutive_invalid_turns(runtime: Runtime, asked: Asked) -> None:
    bad = calls(("shop_add", '{"a"'))
    model = ScriptedModel(bad, bad, calls(("shop_add", {"a": 1, "b": 2})), bad, bad, says("I can't."))
    _, outcome = await asked(runtime, model=model)
    assert (outcome.stopped_by, outcome.steps, outcome.answer) == ("answer", 6, "I can't.")
    assert model.prompts[-1].tools


async def test_an_unknown_tool_is_answered_with_the_nearest_name_and_the_model_continues(
    runtime: Runtime, asked: Asked
) -> None:
    model = ScriptedModel(calls(("shop.ad", {}), ("shop.add", {"a": 1, "b": 2})), says("3."))
    _, outcome = await asked(runtime, model=model)
    assert "shop.add" in _answers(model)[0].text
    assert outcome.tool_error is not None
    assert outcome.tool_error.code == "tool_not_found"
    assert outcome.tool_results[1].data == 3, "the tool's own name is understood too"


@pytest.mark.promise("ASK-2")
@pytest.mark.parametrize("name", ["SHOP_ADD", "Shop.Add", "ShopAdd"])
async def test_an_unknown_tool_is_answered_with_the_nearest_name_whatever_its_case(
    runtime: Runtime, asked: Asked, name: str
) -> None:
    model = ScriptedModel(calls((name, {"a": 1, "b": 2})), says("Sorry."))
    _, outcome = await asked(runtime, model=model)
    assert not outcome.tool_results[0].ok
    assert "Nearest: shop.add" in _answers(model)[0].text


@pytest.mark.parametrize("name", ["shop.add", "shop_add"])
async def test_a_tool_that_the_model_was_not_offered_is_not_called(runtime: Runtime, asked: Asked, name: str) -> None:
    model = ScriptedModel(calls((name, {"a": 1, "b": 2})), says("No."))
    _, outcome = await asked(runtime, model=model, without=["shop.add"])
    assert "shop_add" not in {tool.name for tool in model.prompts[0].tools}
    assert outcome.tool_error is not None
    assert "switched off" in outcome.tool_error.message


async def test_without_tools_the_model_is_offered_none(runtime: Runtime, asked: Asked) -> None:
    model = ScriptedModel(says("Hello."))
    await asked(runtime, model=model, with_tools=False)
    assert model.prompts[0].tools == ()


@pytest.mark.promise("EXE-6")
async def test_the_model_receives_a_large_result_shortened_and_can_read_more(asked: Asked, set_up: SetUp) -> None:
    small = set_up(TOOLS__RESULT_LIMIT="100000")
    first = ScriptedModel(calls(("shop_large", {"size": 200_000})), says("Long."))
    _, outcome = await asked(small, model=first, session="s")
    [answer] = _answers(first)
    id_ = outcome.tool_calls[0].id
    assert len(answer.text) < 51_000
    assert answer.text.startswith("000000000\n000000001\n")
    assert "[Shortened: these are the characters 0 to 50,000 of 200,000." in answer.text
    assert answer.text.endswith(f'To read on, call more_of_result with call="{id_}" and start=50000.]')
    assert "more_of_result" not in {tool.name for tool in first.prompts[0].tools}
    assert "more_of_result" in {tool.name for tool in first.prompts[1].tools}
    elsewhere = ScriptedModel(calls(("shop_add", {"a": 1, "b": 1})), says("2."))
    _, other = await asked(small, model=elsewhere, session="other")
    second = ScriptedModel(
        calls(
            ("more_of_result", {"call": id_, "start": 190_000}),
            ("more_of_result", {"call": other.tool_calls[0].id, "start": 0}),
            ("more_of_result", {"start": 0}),
        ),
        says("Done."),
    )
    _, outcome = await asked(small, model=second, session="s")
    texts = [message.text for message in _answers(second)][1:]
    assert texts[0] == "".join(f"{number:09d}\n" for number in range(19_000, 20_000))
    assert "contains no result" in texts[1]
    assert "`call` must be" in texts[2]
    assert [result.ok for result in outcome.tool_results] == [True, False, False]


@pytest.mark.promise("EXE-6")
async def test_the_model_can_read_more_of_a_failure_with_long_data(runtime: Runtime, asked: Asked) -> None:
    first = ScriptedModel(calls(("shop_fail_at_length", {"size": 120_000})), says("Long."))
    _, outcome = await asked(runtime, model=first, session="s")
    [answer] = _answers(first)
    assert len(answer.text) < 51_000
    start = int(answer.text.rpartition("start=")[2].removesuffix(".]"))
    more = ("more_of_result", {"call": outcome.tool_calls[0].id, "start": start})
    second = ScriptedModel(calls(more), says("More."))
    await asked(runtime, model=second, session="s")
    texts = [message.text.rpartition("\n[Shortened")[0] for message in _answers(second)]
    assert len("".join(texts)) == 100_000
    failure, _, lines = "".join(texts).partition("\n")
    assert failure == "The call failed: execution_error. Failed."
    assert "".join(f"{number:09d}\n" for number in range(12_000)).startswith(lines)


async def test_read_only_calls_run_concurrently_if_configured_and_are_answered_in_order(
    asked: Asked, set_up: SetUp, tmp_path: Path
) -> None:
    wide = set_up(ASK__PARALLEL="true", TOOLS__WORKERS="2")
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    model = ScriptedModel(
        calls(("shop_meet", {"mine": a, "other": b}), ("shop_meet", {"mine": b, "other": a})), says("Met.")
    )
    events, outcome = await asked(wide, model=model)
    assert [result.data for result in outcome.tool_results] == [a, b]
    answered = [event.call.args["mine"] for event in events if isinstance(event, ToolAnswered)]
    assert answered == [a, b]


@pytest.mark.promise("ASK-2", "ASK-5")
async def test_a_providers_failure_keeps_the_messages_and_the_session_continues(runtime: Runtime, asked: Asked) -> None:
    failure = ModelError("Too many requests.", code="rate_limited", fix="Wait.", retry_after=3)
    model = ScriptedModel(calls(("shop_add", {"a": 1, "b": 2})), [TextDelta(text="It is"), failure], says("It is 3."))
    _, outcome = await asked(runtime, "Add.", model=model, session="s")
    assert (outcome.stopped_by, outcome.answer) == ("model_error", "It is")
    assert outcome.tool_results[0].data == 3
    assert outcome.model_error is not None
    assert (outcome.model_error.code, outcome.model_error.retry_after) == ("rate_limited", 3)
    _, outcome = await asked(runtime, "Again.", model=model, session="s")
    assert outcome.answer == "It is 3."
    assert _roles(runtime, "s") == ["user", "model", "tool", "model", "user", "model"]


async def test_a_placeholder_answer_follows_an_unanswered_question(runtime: Runtime, asked: Asked) -> None:
    failure = ModelError("No server.", code="no_connection")
    model = ScriptedModel([failure], says("Yes."))
    await asked(runtime, "One?", model=model, session="s")
    await asked(runtime, "Two?", model=model, session="s")
    assert [message.role for message in model.prompts[-1].messages] == ["system", "user", "model", "user"]
    assert _roles(runtime, "s") == ["user", "user", "model"]


async def test_a_stream_without_an_end_event_is_a_failure_of_the_provider(runtime: Runtime, asked: Asked) -> None:
    _, outcome = await asked(runtime, model=ScriptedModel([TextDelta(text="It i")]))
    assert outcome.model_error is not None
    assert (outcome.model_error.code, outcome.answer) == ("broken_stream", "It i")


async def test_text_that_turned_out_to_be_a_thought_is_not_the_answer_of_an_incomplete_turn(
    runtime: Runtime, asked: Asked
) -> None:
    model = ScriptedModel([TextDelta(text="I wonder. "), ThinkingEnded(), TextDelta(text="It i")])
    _, outcome = await asked(runtime, model=model, session="s")
    assert outcome.answer == "It i"
    assert [entry.message.text for entry in runtime.sessions.entries("s")][1:] == ["It i"]


@pytest.mark.promise("ASK-4")
@pytest.mark.parametrize("how", ["interrupted", "closed", "cancelled"])
async def test_ending_it_while_a_tool_runs_leaves_every_call_answered(
    runtime: Runtime, asked: Asked, tmp_path: Path, how: str
) -> None:
    file = tmp_path / "running"
    model = ScriptedModel(
        calls(("shop_add", {"a": 1, "b": 1}), ("shop_wait", {"file": str(file)}), ("shop_add", {"a": 2, "b": 2})),
        says("All right."),
    )
    asking = runtime.ask("s", model=model)
    seen: list[AskEvent] = []
    running = asyncio.Event()

    async def watch() -> None:
        events = asking.run("Wait.")
        async for event in events:
            seen.append(event)
            if isinstance(event, CallHappened) and isinstance(event.event, Log):
                running.set()
                if how == "interrupted":
                    asking.interrupt()
                elif how == "closed":
                    await events.aclose()
                    return

    task = asyncio.create_task(watch())
    await asyncio.wait_for(running.wait(), 30)
    if how == "cancelled":
        task.cancel()
    await asyncio.wait([task], timeout=30)
    assert task.done()
    if how == "interrupted":
        assert isinstance(seen[-1], AskFinished)
        outcome = seen[-1].outcome
        assert outcome.stopped_by == "interrupted"
        assert [result.ok for result in outcome.tool_results] == [True, False, False]
    assert _roles(runtime, "s") == ["user", "model", "tool", "tool", "tool"]
    _, after, never = [e.message for e in runtime.sessions.entries("s") if isinstance(e.message, ToolMessage)]
    assert "was interrupted while it ran" in after.text
    assert "was not called" in never.text
    _, outcome = await asked(runtime, "Go on.", model=model, session="s")
    assert outcome.answer == "All right."


@pytest.mark.promise("ASK-4")
async def test_ending_it_while_the_model_answers_keeps_the_text_so_far(runtime: Runtime) -> None:
    asking = runtime.ask("s", model=ScriptedModel([TextDelta(text="Once upon"), asyncio.Event()]))
    outcome: Outcome | None = None
    async for event in asking.run("A story."):
        if isinstance(event, ModelSaid):
            asking.interrupt()
        if isinstance(event, AskFinished):
            outcome = event.outcome
    assert outcome is not None
    assert (outcome.answer, outcome.stopped_by) == ("Once upon", "interrupted")
    kept = [entry.message for entry in runtime.sessions.entries("s")]
    assert kept == [UserMessage(text="A story."), ModelMessage(text="Once upon")]


@pytest.mark.promise("ASK-4")
async def test_cancelling_it_repeatedly_while_no_thread_is_free_keeps_the_text_so_far(
    runtime: Runtime, no_thread: Callable[[], AbstractContextManager[None]]
) -> None:
    asking = runtime.ask("s", model=ScriptedModel([TextDelta(text="Once upon"), asyncio.Event()]))
    said = asyncio.Event()

    async def watch() -> None:
        async for event in asking.run("A story."):
            if isinstance(event, ModelSaid):
                said.set()

    task = asyncio.create_task(watch())
    await asyncio.wait_for(said.wait(), 30)
    with no_thread():
        for _ in range(3):
            task.cancel()
            for _ in range(10):
                await asyncio.sleep(0)
    await asyncio.wait([task], timeout=30)
    assert task.cancelled()
    kept = [entry.message for entry in runtime.sessions.entries("s")]
    assert kept == [UserMessage(text="A story."), ModelMessage(text="Once upon")]


@pytest.mark.promise("ASK-4")
async def test_cancelling_it_ends_a_call_whose_output_comes_faster_than_it_is_read(
    write_pack: Callable[[str, str], Path],
    open_runtime: Callable[..., Runtime],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pegboard.ask.calls._AHEAD", 2)
    runtime = open_runtime(write_pack("noisy.py", NOISY))
    file = tmp_path / "file"
    asking = runtime.ask("s", model=ScriptedModel(calls(("noisy_talk", {"file": str(file)}))))

    async def watch() -> None:
        async with aclosing(asking.run("Talk.")) as events:
            async for event in events:
                if isinstance(event, CallHappened):
                    await asyncio.Event().wait()

    task = asyncio.create_task(watch())
    await until(file.exists)
    task.cancel()
    await asyncio.wait([task], timeout=30)
    assert task.done()
    assert _roles(runtime, "s") == ["user", "model", "tool"]


@pytest.mark.promise("ASK-6")
async def test_a_session_that_was_interrupted_in_a_call_can_be_continued(runtime: Runtime, asked: Asked) -> None:
    sessions = runtime.sessions
    sessions.start("s")
    sessions.append("s", UserMessage(text="Add."))
    turn = calls(("shop_add", {"a": 1, "b": 2}), ("shop_add", {"a": 3, "b": 4}))[-1]
    sessions.append("s", turn.message)  # type: ignore[union-attr]  # the last piece is the end of the turn
    sessions.append("s", ToolMessage(provider_id="given_0", name="shop_add", text="3"))
    model = ScriptedModel(says("3, and I don't know."))
    await asked(runtime, "And?", model=model, session="s")
    first, second = _answers(model)
    assert first.text == "3"
    assert "It may or may not have run." in second.text
    assert _roles(runtime, "s") == ["user", "model", "tool", "tool", "user", "model"]


@pytest.mark.promise("ASK-6")
async def test_earlier_messages_are_sent_again_and_the_users_text_is_kept_as_typed(
    runtime: Runtime, asked: Asked, open_runtime: Callable[..., Runtime]
) -> None:
    words = "  Grüße,\n\t`x`  \u202e "
    await asked(runtime, words, model=ScriptedModel(says("Hello.")), session="s")
    other = open_runtime(*runtime.folders)
    model = ScriptedModel(says("Again."))
    await asked(other, "And you?", model=model, session="s", system="Be brief.")
    assert model.prompts[0].messages == (
        SystemMessage(text="Be brief."),
        UserMessage(text=words),
        ModelMessage(text="Hello."),
        UserMessage(text="And you?"),
    )


@pytest.mark.promise("ASK-6")
async def test_two_questions_in_one_session_run_one_after_the_other_and_lose_nothing(
    runtime: Runtime, asked: Asked, open_runtime: Callable[..., Runtime]
) -> None:
    other = open_runtime(*runtime.folders)
    turns = [
        asked(
            one,
            f"Question {number}.",
            session="s",
            model=ScriptedModel(calls(("shop_add", {"a": 1, "b": 2})), says("3.")),
        )
        for number, one in enumerate([runtime, other] * 3)
    ]
    outcomes = await asyncio.gather(*turns)
    assert all(outcome.answer == "3." for _, outcome in outcomes)
    assert _roles(runtime, "s") == ["user", "model", "tool", "model"] * 6
    said = {entry.message.text for entry in runtime.sessions.entries("s") if isinstance(entry.message, UserMessage)}
    assert said == {f"Question {number}." for number in range(6)}


@pytest.mark.promise("ASK-3")
async def test_a_repeated_call_in_a_session_is_answered_from_the_cache(runtime: Runtime, asked: Asked) -> None:
    twice = ScriptedModel(calls(("shop_counted", {}), ("shop_counted", {}), ("shop_counted", {"step": 2})), says("1."))
    _, outcome = await asked(runtime, model=twice, session="s")
    assert [result.meta.cached for result in outcome.tool_results] == [False, True, False]
    assert outcome.tool_results[0].data == outcome.tool_results[1].data


@pytest.mark.promise("ASK-3")
async def test_without_the_cache_every_call_runs(asked: Asked, set_up: SetUp) -> None:
    fresh = set_up(ASK__CACHE="false")
    twice = ScriptedModel(calls(("shop_counted", {}), ("shop_counted", {})), says("1."))
    _, outcome = await asked(fresh, model=twice, session="s")
    assert not any(result.meta.cached for result in outcome.tool_results)
