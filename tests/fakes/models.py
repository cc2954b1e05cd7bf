"""A model that plays a script: what it says in each turn is written down by the test, and what it was sent is kept."""

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
"""A piece of a turn: something that is yielded, a failure that is raised, or something that is waited for."""


class ScriptedModel:
    """A `pegboard.ports.Model` that says turn after turn what it was given, and then no more.

    Args:
        turns: The pieces of each turn.

    Attributes:
        prompts: What it was sent, turn after turn.
    """

    def __init__(self, *turns: Iterable[Said]) -> None:
        self._turns = iter(turns)
        self.prompts: list[Prompt] = []
        self.name = "scripted:model"

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Plays the next turn."""
        self.prompts.append(prompt)
        for piece in next(self._turns):
            if isinstance(piece, ModelError):
                raise piece
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            else:
                yield piece


def says(text: str, *, tokens: int = 0) -> list[Said]:
    """A turn of words, which come one by one."""
    pieces: list[Said] = [TextDelta(text=f"{word} ") for word in text.split(" ")]
    return [*pieces, TurnEnded(message=ModelMessage(text=text), usage=Usage(output_tokens=tokens))]


def calls(*wanted: tuple[str, object], text: str = "", cut: bool = False, tokens: int = 0) -> list[Said]:
    """A turn of calls: the name of each, and its arguments, which are taken as they are if they are text."""
    proposed = []
    pieces: list[Said] = [TextDelta(text=text)] if text else []
    for index, (name, given) in enumerate(wanted):
        written = given if isinstance(given, str) else json.dumps(given)
        proposed.append(ProposedCall(provider_id=f"given_{index}", name=name, arguments=written))
        pieces += [CallDelta(index=index, name=name), CallDelta(index=index, arguments=written)]
    message = ModelMessage(text=text, calls=tuple(proposed))
    reason = "length" if cut else "calls"
    return [*pieces, TurnEnded(message=message, usage=Usage(output_tokens=tokens), reason=reason)]
