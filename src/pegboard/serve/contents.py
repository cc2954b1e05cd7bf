"""Resources, prompts and completions of connected servers, passed through.

Names and URIs stay as they are. If two servers have the same, that of the later one gets the server's name in front:
`NAME.prompt`, and `pegboard://NAME/` before a URI.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from pegboard.models import JsonObject, McpHandler, Problem, ServerState
from pegboard.models.server_content import ForwardedError

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_SCHEME: Final = "pegboard://"
_LISTS: Final = {
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "prompts/list": ("prompts", "name"),
}
"""Method → keys of its items and of an item's name."""
_CONNECTED: Final = frozenset({ServerState.READY, ServerState.DEGRADED})
_NOT_FOUND_BEFORE_2026: Final = -32002


class _Origin(NamedTuple):
    """A server, and the name of something there."""

    server: str
    name: str


class Contents:
    """Resources, prompts and completions of the connected servers.

    Args:
        runtime: Has the servers.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._origins: dict[str, dict[str, _Origin]] = {method: {} for method in _LISTS}

    def servers(self) -> tuple[str, ...]:
        """Return the connected servers that may be used: not those whose tools are all excluded by the allow list."""
        connected = [status.name for status in self._runtime.servers.all() if status.state in _CONNECTED]
        if not self._runtime.tools.hidden():
            return tuple(connected)
        specs = self._runtime.tools.all()
        allowed = {spec.handler.server for spec in specs if isinstance(spec.handler, McpHandler)}
        return tuple(name for name in connected if name in allowed)

    async def items(self, method: str) -> JsonObject:
        """Return the items of all servers; those of a server that can't be read are left out."""
        key, name_key = _LISTS[method]
        servers = self.servers()
        lists = await asyncio.gather(*(self._runtime.servers.forward(server, method, {}) for server in servers))
        origins: dict[str, _Origin] = {}
        items: list[JsonObject] = []
        for server, listed in zip(servers, lists, strict=True):
            for item in _items(listed, key):
                name = item.get(name_key)
                if not isinstance(name, str):
                    continue
                shown = name if name not in origins else _qualified(method, server, name)
                origins.setdefault(shown, _Origin(server, name))
                items.append({**item, name_key: shown})
        self._origins[method] = origins
        return {key: items}  # type: ignore[dict-item]  # a list of JSON objects is JSON

    async def read(self, params: JsonObject, *, is_modern: bool) -> JsonObject:
        """Return the contents of a resource.

        Raises:
            MCPError: No server has it, or its server answered with an error.
        """
        uri = str(params.get("uri"))
        error = ForwardedError(
            code=INVALID_PARAMS if is_modern else _NOT_FOUND_BEFORE_2026,
            message="Resource not found",
            data={"uri": uri},
        )
        for origin in await self._candidates("resources/list", uri):
            answer = await self._runtime.servers.forward(
                origin.server, "resources/read", {**params, "uri": origin.name}
            )
            if isinstance(answer, ForwardedError) and answer.code not in (INVALID_PARAMS, _NOT_FOUND_BEFORE_2026):
                error = answer
            if not isinstance(answer, ForwardedError | Problem):
                return answer
        raise MCPError(error.code, error.message, error.data)

    async def prompt(self, params: JsonObject) -> JsonObject:
        """Return a prompt with its arguments filled in.

        Raises:
            MCPError: No server has it, or its server answered with an error.
        """
        name = str(params.get("name"))
        for origin in (await self._candidates("prompts/list", name))[:1]:
            return _answer(
                await self._runtime.servers.forward(origin.server, "prompts/get", {**params, "name": origin.name})
            )
        raise MCPError(INVALID_PARAMS, f"Unknown prompt: {name}")

    async def complete(self, params: JsonObject) -> JsonObject:
        """Return completions for an argument of a prompt, or for a variable of a template.

        Raises:
            MCPError: The server answered with an error.
        """
        ref = params.get("ref")
        ref = ref if isinstance(ref, dict) else {}
        key = "uri" if "uri" in ref else "name"
        method = "resources/templates/list" if key == "uri" else "prompts/list"
        for origin in (await self._candidates(method, str(ref.get(key))))[:1]:
            sent: JsonObject = {**params, "ref": {**ref, key: origin.name}}
            answer = await self._runtime.servers.forward(origin.server, "completion/complete", sent)
            if not isinstance(answer, Problem):
                return _answer(answer)
        return {"completion": {"values": [], "total": 0, "hasMore": False}}

    async def _candidates(self, method: str, name: str) -> list[_Origin]:
        """Return the servers that may have something, the likeliest first."""
        if name not in self._origins[method]:
            await self.items(method)
        known = self._origins[method].get(name)
        if known is not None:
            return [known] if known.server in self.servers() else []
        for server in self.servers():
            if name.startswith(front := _qualified(method, server, "")):
                return [_Origin(server, name.removeprefix(front))]
        # A URI that isn't listed may match a template.
        return [_Origin(server, name) for server in self.servers()] if method == "resources/list" else []


def _items(listed: JsonObject | ForwardedError | Problem, key: str) -> Iterator[JsonObject]:
    found = listed.get(key) if isinstance(listed, dict) else None
    for item in found if isinstance(found, list) else ():
        if isinstance(item, dict):
            yield item


def _qualified(method: str, server: str, name: str) -> str:
    return f"{server}.{name}" if method == "prompts/list" else f"{_SCHEME}{server}/{name}"


def _answer(answer: JsonObject | ForwardedError | Problem) -> JsonObject:
    if isinstance(answer, ForwardedError):
        raise MCPError(answer.code, answer.message, answer.data)
    if isinstance(answer, Problem):
        raise MCPError(INTERNAL_ERROR, str(answer))
    return answer
