"""Services of the rest of Pegboard to the connections."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar  # Any: what coroutines yield and receive

from pegboard.models import Problem, SamplingRequest, ServerConfig
from pegboard.ports import ClientRequests, ServerQuestions

if TYPE_CHECKING:
    from pegboard.config import ResolvedServer
    from pegboard.mcp.authorization import ServerAuthorization

_T = TypeVar("_T")


class Sampled(NamedTuple):
    """A model's answer to a server's prompt."""

    text: str
    model: str
    is_complete: bool


class SamplingError(Exception):
    """A prompt can't be answered; the message is a sentence for the server."""


class ServerUser:
    """The user's side of servers' questions: who answers, and in which event loop."""

    def __init__(self) -> None:
        self.questions: ServerQuestions | None = None
        """Answers questions; without it, all are declined."""
        self.requests: ClientRequests | None = None
        """Passes requests of servers on to the MCP clients whose calls they belong to, instead of asking the user."""
        self._loop: asyncio.AbstractEventLoop | None = None

    def is_here(self) -> None:
        """Note that the user's side runs in the current event loop."""
        self._loop = asyncio.get_running_loop()

    async def ask(self, make: Callable[[], Coroutine[Any, Any, _T]]) -> _T | None:
        """Run a coroutine in the user's event loop; return None if none runs."""
        loop = self._loop
        if loop is None:
            return None
        asking = make()
        try:
            future = asyncio.run_coroutine_threadsafe(asking, loop)
        except RuntimeError:  # the loop is closed
            asking.close()
            return None
        return await asyncio.wrap_future(future)


@dataclass
class Services:
    """Services of the rest of Pegboard to the connections."""

    resolve: Callable[[ServerConfig], ResolvedServer | Problem]
    """Fill in the secrets of a server, and have them redacted. Blocks."""
    packs: Callable[[], Collection[str]]
    """Return the names of all other packs, which no server's pack may have. Blocks."""
    results: Path
    """Folder for large results, images and audio."""
    result_limit: int = 1_000_000
    log_limit: int = 10_000_000
    sample: Callable[[SamplingRequest, float | None], Awaitable[Sampled]] | None = None
    """Ask the configured model; runs in the user's event loop; raises `SamplingError`."""
    authorize: Callable[[ServerConfig], ServerAuthorization | None] = lambda _: None
    """Return the authorization of the requests to an HTTP server, whose secrets are filled in; None for none."""
    redact: Callable[[str], str] = str
    """Return a text of a server without secrets."""
    user: ServerUser = field(default_factory=ServerUser)
