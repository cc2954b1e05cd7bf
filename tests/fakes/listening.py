"""Turns of a model for tests: collect its events and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from provider import FakeProvider

from pegboard.ask.providers import ModelTimeouts, ProviderModel, model
from pegboard.errors import ModelError
from pegboard.models.conversation import (
    CallDelta,
    Message,
    ModelEvent,
    OfferedTool,
    Prompt,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    UserMessage,
)

KEY = "sk-test-ThisIsNobodysKey0123456789wxyz"
"""A made-up key; no text may contain a piece of it."""

LIST_DIR = OfferedTool(
    name="fs_list_dir",
    description="Lists a folder.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


@dataclass
class Heard:
    """The recorded turn.

    Attributes:
        events: All events in order.
        failure: The error that ended it, if any.
    """

    events: list[ModelEvent] = field(default_factory=list)
    failure: ModelError | None = None

    @property
    def text(self) -> str:
        """The text as it was streamed."""
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def thoughts(self) -> str:
        """The thoughts as they were streamed."""
        return "".join(event.text for event in self.events if isinstance(event, ThinkingDelta))

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Names and arguments of the calls as they were streamed."""
        pieces = [event for event in self.events if isinstance(event, CallDelta)]
        count = max((piece.index for piece in pieces), default=-1) + 1
        return [
            (
                "".join(piece.name for piece in pieces if piece.index == index),
                "".join(piece.arguments for piece in pieces if piece.index == index),
            )
            for index in range(count)
        ]

    @property
    def ended(self) -> TurnEnded:
        """The end of a successful turn."""
        assert self.failure is None, f"{self.failure!r}: {self.failure.detail}"
        (ended,) = [event for event in self.events if isinstance(event, TurnEnded)]
        assert self.events[-1] is ended
        return ended

    @property
    def failed(self) -> ModelError:
        """The error of a failed turn."""
        assert self.failure is not None, "it didn't fail"
        assert not any(isinstance(event, TurnEnded) for event in self.events)
        return self.failure


def reach(
    fake: FakeProvider,
    name: str = "openai:fake",
    *,
    key: str | None = KEY,
    timeouts: ModelTimeouts = ModelTimeouts(),  # noqa: B008 - it can't be changed
) -> ProviderModel:
    """Return a model of a fake provider."""
    return model(name, base_url=fake.url, key=lambda _: key, timeouts=timeouts)


async def hear(
    speaker: ProviderModel,
    *messages: Message,
    tools: Sequence[OfferedTool] = (LIST_DIR,),
    max_tokens: int | None = None,
    temperature: float | None = None,
) -> Heard:
    """Send messages to a model and collect its turn, for a minute at most; close its connections."""
    heard = Heard()
    said = messages or (UserMessage(text="What is in src?"),)
    prompt = Prompt(messages=said, tools=tuple(tools), max_tokens=max_tokens, temperature=temperature)
    try:
        async with asyncio.timeout(60):
            async for event in speaker.stream(prompt):
                heard.events.append(event)
    except ModelError as failure:
        heard.failure = failure
    finally:
        await speaker.close()
    return heard
