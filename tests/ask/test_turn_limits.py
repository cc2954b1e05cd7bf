"""The limits of one turn: bytes, calls and tokens while it arrives; and the calls of a turn that ended early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from itertools import count

import pytest
from models import ScriptedModel, calls, says

from pegboard.ask.allowance import Allowance
from pegboard.models.ask import AskEvent, Outcome
from pegboard.models.conversation import (
    CallDelta,
    ModelEvent,
    ModelMessage,
    Prompt,
    ProposedCall,
    TextDelta,
    ThinkingDelta,
    ToolMessage,
    TurnEnded,
    Usage,
)
from pegboard.runtime import Runtime

Asked = Callable[..., Awaitable[tuple[list[AskEvent], Outcome]]]
SetUp = Callable[..., Runtime]


class EndlessModel:
    """A model whose answer never ends by itself.

    Args:
        pieces: The endless pieces of its answer.

    Attributes:
        said: How many pieces were requested.
        is_closed: Whether its answer was closed.
    """

    name = "endless:model"

    def __init__(self, pieces: Iterable[ModelEvent]) -> None:
        self._pieces = pieces
        self.said = 0
        self.is_closed = False

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        del prompt
        try:
            for piece in self._pieces:
                self.said += 1
                yield piece
                await asyncio.sleep(0)
        finally:
            self.is_closed = True


def text() -> Iterable[ModelEvent]:
    return (TextDelta(text=f"{number:09d} ") for number in count())


def thinking() -> Iterable[ModelEvent]:
    return (ThinkingDelta(text=f"{number:09d} ") for number in count())


def arguments() -> Iterable[ModelEvent]:
    yield TextDelta(text="I will write. ")
    yield CallDelta(index=0, name="shop_write")
    for number in count():
        yield CallDelta(index=0, arguments=f"{number:09d} ")


def many_calls() -> Iterable[ModelEvent]:
    yield TextDelta(text="I will call. ")
    for number in count():
        yield CallDelta(index=number, name="shop_write", arguments='{"text": "x"}')


@pytest.mark.promise("SEC-8")
@pytest.mark.parametrize("endless", [text, thinking, arguments, many_calls])
async def test_an_endless_turn_ends_at_its_limit_with_the_text_so_far(
    set_up: SetUp, asked: Asked, endless: Callable[[], Iterable[ModelEvent]]
) -> None:
    small = set_up(ASK__TURN_BYTES="2000", ASK__TURN_CALLS="20")
    model = EndlessModel(endless())
    _, outcome = await asked(small, model=model, session="s")
    assert (outcome.stopped_by, outcome.tool_calls, model.is_closed) == ("size", (), True)
    assert model.said <= 210
    written = "".join(
        piece.text for piece, _ in zip(endless(), range(model.said), strict=False) if isinstance(piece, TextDelta)
    )
    if written:
        assert outcome.answer == written[:2000]
        kept = [entry.message for entry in small.sessions.entries("s")]
        assert kept[-1] == ModelMessage(text=written[:2000])
    else:
        assert "The limit of one turn, 2,000 bytes and 20 calls, was reached." in outcome.answer
    assert not small.history.records()


@pytest.mark.promise("SEC-8")
async def test_one_huge_piece_is_truncated_at_the_limit(set_up: SetUp, asked: Asked) -> None:
    small = set_up(ASK__TURN_BYTES="1000")
    _, outcome = await asked(small, model=EndlessModel([TextDelta(text="ä" * 5_000_000)]))
    assert (outcome.stopped_by, outcome.answer) == ("size", "ä" * 500)


@pytest.mark.promise("SEC-8", "ASK-1")
async def test_the_limit_of_tokens_ends_an_answer_while_it_streams(set_up: SetUp, asked: Asked) -> None:
    few = set_up(ASK__TOKENS="100")
    model = EndlessModel(text())
    _, outcome = await asked(few, model=model)
    assert (outcome.stopped_by, model.is_closed) == ("tokens", True)
    assert len(outcome.answer) == 400, "four bytes are taken for a token"
    assert model.said < 50


@pytest.mark.promise("SEC-8", "ASK-1")
async def test_the_last_turn_after_the_token_limit_has_a_limit_too(set_up: SetUp, asked: Asked) -> None:
    few = set_up(ASK__TOKENS="100")

    class Last(ScriptedModel):
        async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
            if not prompt.tools:
                for piece in text():
                    yield piece
            async for event in super().stream(prompt):
                yield event

    _, outcome = await asked(few, model=Last(calls(("shop_add", {"a": 1, "b": 1}), tokens=100)))
    assert outcome.stopped_by == "tokens"
    assert len(outcome.answer) == 40_000


@pytest.mark.promise("SEC-8")
@pytest.mark.parametrize("read", [0, 1])
async def test_tokens_that_a_provider_does_not_report_are_estimated_from_bytes(
    set_up: SetUp, asked: Asked, read: int
) -> None:
    few = set_up(ASK__TOKENS="100")
    *pieces, end = calls(("shop_write", {"text": "x" * 250}))
    assert isinstance(end, TurnEnded)
    again = [*pieces, end.model_copy(update={"usage": Usage(input_tokens=read)})]
    _, outcome = await asked(few, model=ScriptedModel(again, again, says("Enough.")))
    assert (outcome.stopped_by, outcome.usage.output_tokens) == ("tokens", 0)


@pytest.mark.promise("SEC-6")
@pytest.mark.parametrize("reason", ["length", "filter", "unknown"])
@pytest.mark.parametrize("written", ["", "{}", "null", '{"a": 1, "b": 2}', '{"a": 1'])
async def test_no_call_of_a_turn_that_ended_early_runs_whatever_its_arguments(
    runtime: Runtime, asked: Asked, reason: str, written: str
) -> None:
    proposed = [
        ProposedCall(provider_id="1", name="shop_add", arguments='{"a": 1, "b": 2}'),
        ProposedCall(provider_id="2", name="shop_add", arguments=written),
    ]
    cut = TurnEnded.model_validate({"message": ModelMessage(text="Now.", calls=tuple(proposed)), "reason": reason})
    model = ScriptedModel([cut], says("Sorry."))
    _, outcome = await asked(runtime, model=model)
    details = [result.error.detail for result in outcome.tool_results if result.error is not None]
    assert details == ["unfinished_turn", "unfinished_turn"]
    assert not runtime.history.records()
    told = [message.text for message in model.prompts[-1].messages if isinstance(message, ToolMessage)]
    assert all("was not called because the model's turn ended early" in one for one in told)
    assert len(told) == 2


@pytest.mark.promise("SEC-6", "SEC-8")
async def test_turns_that_repeatedly_end_early_end_the_loop(runtime: Runtime, asked: Asked) -> None:
    cut = calls(("shop_add", {"a": 1, "b": 2}), cut=True)
    _, outcome = await asked(runtime, model=ScriptedModel(cut, cut, cut, says("I can't.")))
    assert (outcome.stopped_by, outcome.steps, outcome.answer) == ("invalid_args", 4, "I can't.")


@pytest.mark.promise("ASK-2")
@pytest.mark.parametrize(
    ("reason", "said", "answer"),
    [
        ("length", "Once upon", "Once upon"),
        ("filter", "Once upon", "Once upon"),
        ("unknown", "Once upon", "Once upon"),
        ("length", "", "The answer was cut off at the model's own limit of tokens. The model returned no answer."),
    ],
)
async def test_an_answer_that_the_provider_cut_off_is_reported_as_incomplete(
    runtime: Runtime, asked: Asked, reason: str, said: str, answer: str
) -> None:
    cut = TurnEnded.model_validate({"message": ModelMessage(text=said), "reason": reason})
    _, outcome = await asked(runtime, model=ScriptedModel([cut]))
    assert (outcome.stopped_by, outcome.answer) == (reason, answer)


def test_an_estimate_of_tokens_is_rounded_up() -> None:
    allowance = Allowance(size=1_000, calls=1, tokens=2)
    assert allowance.count(TextDelta(text="x" * 8)) == (TextDelta(text="x" * 8), None)
    assert allowance.count(TextDelta(text="x")) == (TextDelta(text=""), "tokens")
    assert allowance.estimate == 3
