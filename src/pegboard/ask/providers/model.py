"""The model itself: it finds its key, connects when it is first spoken to, and speaks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from pegboard.ask.providers.endpoint import Endpoint, Patience, endpoint
from pegboard.errors import ModelError
from pegboard.models.conversation import ModelEvent, Prompt

if TYPE_CHECKING:
    from pegboard.ask.providers.connection import Connection


def model(
    name: str,
    *,
    base_url: str | None,
    key: Callable[[str], str | None],
    patience: Patience = Patience(),  # noqa: B008 - it can't be changed
) -> ProviderModel:
    """Gives a model by its name; nothing is loaded or reached yet.

    Args:
        name: `provider:model`, such as `openai:gpt-5-mini`. A provider that isn't known by name is an OpenAI-compatible
            server.
        base_url: Where the provider is, if not in its usual place.
        key: Gives a secret by its name, None if it is missing; it may block, and is asked in a thread before each turn.
        patience: How long to wait.

    Raises:
        ModelError: `not_configured`, if it is no model's name or no place.
    """
    return ProviderModel(endpoint(name, base_url), key, patience)


def preload() -> None:
    """Imports what the first turn needs. It takes about a second: call it in a thread."""
    import pegboard.ask.providers.stream  # noqa: F401 - to have it loaded


class _Line(NamedTuple):
    """A connection, and what it was made for."""

    key: str | None
    loop: asyncio.AbstractEventLoop
    connection: Connection


class ProviderModel:
    """A model that a provider runs; a `ports.Model`. Several turns may run at once.

    Args:
        endpoint: Which model, and where.
        key: Gives a secret by its name.
        patience: How long to wait.
    """

    def __init__(self, endpoint: Endpoint, key: Callable[[str], str | None], patience: Patience) -> None:
        self._endpoint = endpoint
        self._find_key = key
        self._patience = patience
        self._lines: list[_Line] = []
        self._connecting = threading.Lock()

    @property
    def name(self) -> str:
        """Its name as the configuration has it: `provider:model`."""
        return self._endpoint.name

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Says something to the model and yields its answer piece by piece, `TurnEnded` last.

        Closing it ends the answer. A key that was changed since the last turn is taken.

        Raises:
            ModelError: The provider failed. What was yielded before stays said.
        """
        line = await asyncio.to_thread(self._connect, asyncio.get_running_loop())
        from pegboard.ask.providers.errors import Failing
        from pegboard.ask.providers.stream import turn

        failing = Failing(self._endpoint, line.key)
        async with aclosing(turn(line.connection, prompt, self._patience, failing)) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """Closes the connections that are kept for the next turn; it may be spoken to again."""
        lines, self._lines = self._lines, []
        loop = asyncio.get_running_loop()
        for line in lines:
            # What belongs to a loop that is over can't be closed any more, and went with it.
            if line.loop is loop:
                await line.connection.close()

    def _connect(self, loop: asyncio.AbstractEventLoop) -> _Line:
        """Gives the connection for the key as it is now; one that another turn may still use is left open."""
        key = self._key()
        preload()
        from pegboard.ask.providers.connection import Connection

        with self._connecting:
            for line in self._lines:
                if line.key == key and line.loop is loop:
                    return line
            line = _Line(key, loop, Connection(self._endpoint, key, self._patience))
            self._lines.append(line)
            return line

    def _key(self) -> str | None:
        """Gives the key, None if there is none and none is needed."""
        names = self._endpoint.secrets
        for name in names:
            key = (self._find_key(name) or "").strip()
            if key and not (key.isascii() and key.isprintable() and " " not in key):
                raise ModelError(
                    f"{name} holds characters that can't be in a key.",
                    code="auth",
                    fix=f"Set it again: `pegboard auth set {name}`.",
                )
            if key:
                return key
        if not self._endpoint.needs_key:
            return None
        raise ModelError(
            f"{self._endpoint.title} needs a key, and {names[0]} is not set.",
            code="not_configured",
            fix=f"Run `pegboard auth set {names[0]}`, or set {names[0]} in the environment.",
        )
