"""The MCP servers of a `GivenRuntime`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pegboard.models import ServerConfig, ServerStatus
from pegboard.models.server_content import PromptInfo, ResourceInfo, ResourceTemplate
from pegboard.models.server_message import ServerMessage

if TYPE_CHECKING:
    from pegboard.ports import ServerQuestions


class GivenServers:
    """The servers facet of a `GivenRuntime`: states and contents set by a test, without connections."""

    def __init__(self) -> None:
        self.configured = _GivenConfigured()
        self.found: tuple[ServerStatus, ...] = ()
        self.has_resources: tuple[ResourceInfo, ...] = ()
        self.has_prompts: tuple[PromptInfo, ...] = ()
        self.has_messages: tuple[ServerMessage, ...] = ()

    def all(self) -> Sequence[ServerStatus]:
        return self.found

    def status(self, name: str) -> ServerStatus | None:
        return next((server for server in self.found if server.name == name), None)

    def config(self, name: str) -> ServerConfig | None:
        return ServerConfig(name=name, command="peer") if self.status(name) else None

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        del changed
        return lambda: None

    def ask_with(self, questions: ServerQuestions | None) -> None:
        """Do nothing: no server asks anything."""

    async def resources(self, name: str) -> tuple[ResourceInfo, ...]:
        return self.has_resources if name else ()

    async def templates(self, name: str) -> tuple[ResourceTemplate, ...]:
        del name
        return ()

    async def prompts(self, name: str) -> tuple[PromptInfo, ...]:
        return self.has_prompts if name else ()

    def messages(self, name: str, after: int = 0) -> tuple[ServerMessage, ...]:
        return tuple(message for message in self.has_messages if name and message.number > after)


class _GivenConfigured:
    """Servers of the configuration file: every server is one, and none changes."""

    def __init__(self) -> None:
        self.changing = asyncio.Lock()

    def place(self, name: str) -> tuple[str, int | None] | None:
        return (f"/{name}.toml", 1)

    def is_removable(self, name: str) -> bool:
        return bool(name)
