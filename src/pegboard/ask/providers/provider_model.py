"""The implementation of `ports.Model`: it finds the key, connects with the first turn and streams answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from pegboard.ask.providers.endpoint import Endpoint, ModelTimeouts, endpoint
from pegboard.errors import ModelError
from pegboard.models.conversation import ModelEvent, Prompt

if TYPE_CHECKING:
    from pegboard.ask.providers.connection import ModelConnection


def model(
    name: str,
    *,
    base_url: str | None,
    key: Callable[[str], str | None],
    timeouts: ModelTimeouts = ModelTimeouts(),  # noqa: B008 - it is immutable
) -> ProviderModel:
    """Return a model by its name; load and connect nothing yet.

    Args:
        name: `provider:model`, such as `openai:gpt-5-mini`. An unknown provider is an OpenAI-compatible server.
        base_url: The provider's URL, if not the usual one.
        key: Function that returns a secret by its name, or None; it may block, and is called in a thread before each
            turn.
        timeouts: Timeouts for the provider.

    Raises:
        ModelError: `not_configured` if the name or the URL is invalid.
    """
    return ProviderModel(endpoint(name, base_url), key, timeouts)


def preload() -> None:
    """Import the modules that the first turn needs. It takes about a second: call it in a thread."""
    import pegboard.ask.providers.stream  # noqa: F401 - imported for its side effect on later imports


class _KeptConnection(NamedTuple):
    """A connection, and the key and event loop that it was made for."""

    key: str | None
    loop: asyncio.AbstractEventLoop
    connection: ModelConnection


class ProviderModel:
    """A model of a provider; a `ports.Model`. Several turns may run concurrently.

    Args:
        endpoint: The model.
        key: Function that returns a secret by its name, or None.
        timeouts: Timeouts for the provider.
    """

    def __init__(self, endpoint: Endpoint, key: Callable[[str], str | None], timeouts: ModelTimeouts) -> None:
        self._endpoint = endpoint
        self._find_key = key
        self._timeouts = timeouts
        self._kept: list[_KeptConnection] = []
        self._connecting = threading.Lock()
        self._turns = 0

    @property
    def name(self) -> str:
        """Name in the configuration: `provider:model`."""
        return self._endpoint.name

    @property
    def is_answering(self) -> bool:
        """Whether a turn is running."""
        return self._turns > 0

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Send a prompt and yield the answer piece by piece, `TurnEnded` last.

        Closing the iterator ends the answer. A key that changed since the last turn is used.

        Raises:
            ModelError: The provider failed.
        """
        self._turns += 1
        try:
            kept = await asyncio.to_thread(self._connect, asyncio.get_running_loop())
            from pegboard.ask.providers.errors import ErrorFactory
            from pegboard.ask.providers.stream import turn

            errors = ErrorFactory(self._endpoint, kept.key)
            async with aclosing(turn(kept.connection, prompt, self._timeouts, errors)) as events:
                async for event in events:
                    yield event
        finally:
            self._turns -= 1

    async def close(self) -> None:
        """Close the connections that are kept for the next turn; a later turn opens new ones."""
        kept, self._kept = self._kept, []
        loop = asyncio.get_running_loop()
        for one in kept:
            # A connection of a closed loop was closed with it.
            if one.loop is loop:
                await one.connection.close()

    def _connect(self, loop: asyncio.AbstractEventLoop) -> _KeptConnection:
        """Return the connection for the current key; leave others open, as another turn may use them."""
        key = self._key()
        preload()
        from pegboard.ask.providers.connection import ModelConnection

        with self._connecting:
            for kept in self._kept:
                if kept.key == key and kept.loop is loop:
                    return kept
            kept = _KeptConnection(key, loop, ModelConnection(self._endpoint, key, self._timeouts))
            self._kept.append(kept)
            return kept

    def _key(self) -> str | None:
        """Return the key, or None if it is missing and not required."""
        names = self._endpoint.secrets
        for name in names:
            key = (self._find_key(name) or "").strip()
            if key and not (key.isascii() and key.isprintable() and " " not in key):
                raise ModelError(
                    f"{name} contains characters that a key can't contain.",
                    code="auth",
                    fix=f"Set it again: `pegboard auth set {name}`.",
                )
            if key:
                return key
        if not self._endpoint.needs_key:
            return None
        raise ModelError(
            f"{self._endpoint.title} requires a key, but {names[0]} is not set.",
            code="not_configured",
            fix=f"Run `pegboard auth set {names[0]}`, or set {names[0]} in the environment.",
        )
