"""A model that plays a script: the test lists the pieces of each turn, and the prompts are recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable

from pegboard.errors import ModelError
from pegboard.models.conversation import (
    CallDelta,
    ModelEvent,
    ModelMessage,
    Prompt,
    ProposedCall,
    TextDelta,
    TurnEnded,
    Usage,
)

Said = ModelEvent | ModelError | asyncio.Event
"""A piece of a turn: an event to yield, an error to raise, or an event to wait for."""


class ScriptedModel:
    """A `pegboard.ports.Model` that plays its turns in order and then fails.

    Args:
        turns: The pieces of each turn.

    Attributes:
        prompts: The prompts of the turns.
    """

    def __init__(self, *turns: Iterable[Said]) -> None:
        self._turns = iter(turns)
        self.prompts: list[Prompt] = []
        self.name = "scripted:model"

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Play the next turn."""
        self.prompts.append(prompt)
        for piece in next(self._turns):
            if isinstance(piece, ModelError):
                raise piece
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            else:
                yield piece


def says(text: str, *, tokens: int = 0) -> list[Said]:
    """Return a turn of text, word by word."""
    pieces: list[Said] = [TextDelta(text=f"{word} ") for word in text.split(" ")]
    return [*pieces, TurnEnded(message=ModelMessage(text=text), usage=Usage(output_tokens=tokens))]


def calls(*wanted: tuple[str, object], text: str = "", cut: bool = False, tokens: int = 0) -> list[Said]:
    """Return a turn of calls: pairs of a name and arguments; arguments that are text are sent unchanged."""
    proposed = []
    pieces: list[Said] = [TextDelta(text=text)] if text else []
    for index, (name, given) in enumerate(wanted):
        written = given if isinstance(given, str) else json.dumps(given)
        proposed.append(ProposedCall(provider_id=f"given_{index}", name=name, arguments=written))
        pieces += [CallDelta(index=index, name=name), CallDelta(index=index, arguments=written)]
    message = ModelMessage(text=text, calls=tuple(proposed))
    reason = "length" if cut else "calls"
    return [*pieces, TurnEnded(message=message, usage=Usage(output_tokens=tokens), reason=reason)]
