"""Messages of one connection, bounded and repaired before the SDK sees them.

The SDK validates a list of tools as a whole: one invalid tool would hide all others. So the watch keeps the list as the
server sent it, and passes on only what the SDK needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any  # Any: messages before they are read

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.client._transport import ReadStream, TransportStreams, WriteStream  # the SDK exports these types nowhere else
from mcp.shared.message import SessionMessage
from mcp_types import methods
from mcp_types.jsonrpc import (
    INTERNAL_ERROR,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import JsonValue, ValidationError
from pydantic_core import to_json

from pegboard.mcp.blocks import readable_block, readable_contents, readable_prompt_message
from pegboard.mcp.forwarded_requests import LISTS
from pegboard.mcp.http import TOO_LONG
from pegboard.mcp.limits import MOST_OPEN_QUESTIONS
from pegboard.mcp.session import LostSession
from pegboard.mcp.specs import UNREADABLE, readable
from pegboard.mcp.texts import NOT_JSON_RPC, RESPONSE, OwnWords, UnsendableError, quotation
from pegboard.results.sizes import count

if TYPE_CHECKING:
    from pegboard.mcp.http import LastResponse

RAW_TOOLS = "pegboard/tools"
"""Key in the `_meta` of a list of tools: the tools as the server sent them."""

_RAW_LIST = "tools/list, raw"
_LISTEN = "subscriptions/listen"

_BURST = 2_000.0
"""Messages that a server may send without a limit of their rate."""
_RATE_BUSY, _RATE_IDLE = 1_000.0, 50.0
"""Messages per second that it may send then: while it works on requests, and otherwise."""
_SLACK = 20_000.0
"""Messages beyond these limits that are dropped if they only inform; then the server is slowed down."""
_MOST_REASONS = 100
_FAILED = ("Server returned an error response", "Session terminated", "Not Found")
_UNPARSED = ("Failed to parse JSON response: ", "Failed to parse SSE message: ")
_PARTS: dict[str, tuple[str, Callable[[JsonValue], JsonValue]]] = {
    "tools/call": ("content", readable_block),
    "prompts/get": ("messages", readable_prompt_message),
    "resources/read": ("contents", readable_contents),
}
"""Method → the list in its result whose parts may be of an unknown kind, and what makes a part readable."""
_INFORMS = frozenset({"notifications/progress", "notifications/message"})

Read = ReadStream[SessionMessage | Exception]
Write = WriteStream[SessionMessage]


class Watch(AbstractAsyncContextManager[TransportStreams]):
    """A transport whose messages are bounded and repaired.

    Args:
        transport: The transport itself.
        last: The last response of an HTTP server.
    """

    def __init__(self, transport: AbstractAsyncContextManager[Any], last: LastResponse | None = None) -> None:
        self._transport = transport
        self._last = last
        self._sent: dict[str, str] = {}
        """Requests without a response: id → method."""
        self._asked: set[str] = set()
        """Requests of the server without a response."""
        self._budget = _BURST
        self._budget_at = 0.0
        self._write: Write | None = None
        self.is_raw_next = False
        """Whether the next list of tools is for `listing`, not for the SDK."""
        self.version = ""
        """Protocol version in use, once it is known."""
        self.dropped: dict[str, list[str]] = {}
        """Why invalid items of other lists were dropped, by the name of the list; cleared by those who read it."""
        self.strays = 0
        """Number of responses to no open request."""
        self.on_closed: Callable[[], None] = lambda: None
        """Callback for the end of the server's messages."""

    async def __aenter__(self) -> TransportStreams:
        read, write = await self._transport.__aenter__()
        self._write = write
        return _WatchedRead(read, self), _WatchedWrite(write, self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._transport.__aexit__(kind, error, trace)

    def sending(self, item: SessionMessage) -> None:
        """Note a message to the server.

        Raises:
            UnsendableError: It can't be written as JSON. A transport would find that too late, and end the connection.
        """
        try:
            to_json(item.message)
        except ValueError as error:
            has_half = "surrogates" in str(error)
            raise UnsendableError("contains half a character" if has_half else "is nested too deeply") from error
        match item.message:
            case JSONRPCRequest(id=number, method="tools/list") if self.is_raw_next:
                self._sent[str(number)] = _RAW_LIST
                self.is_raw_next = False
            case JSONRPCRequest(id=number, method=method):
                self._sent[str(number)] = method
            case JSONRPCResponse(id=number) | JSONRPCError(id=number):
                self._asked.discard(str(number))
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": number}):
                self._sent.pop(str(number), None)
            case _:
                pass

    async def receiving(self, item: SessionMessage | Exception) -> bool:
        """Repair a message of the server; return False to drop it."""
        if isinstance(item, Exception):
            return True
        message = item.message
        is_over = await self._limit_rate()
        match message:
            case JSONRPCNotification(method=method) if is_over and method in _INFORMS:
                return False
            case JSONRPCResponse(id=number):
                sent = self._sent.pop(str(number), "")
                if not sent:
                    self.strays += 1
                    return False
                self._repair(sent, message.result)
            case JSONRPCError(id=number):
                if not self._sent.pop(str(number), ""):
                    self.strays += 1
                    return False
                _shorten_parse_error(message.error)
                self._explain(message.error, str(number))
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": number}):
                self._asked.discard(str(number))
            case JSONRPCRequest(id=number):
                if len(self._asked) >= MOST_OPEN_QUESTIONS or str(number) in self._asked:
                    await self._reject(number)
                    return False
                self._asked.add(str(number))
            case _:
                pass
        return True

    async def _limit_rate(self) -> bool:
        """Slow down a server that sends far too much; return whether it sends too much."""
        now = asyncio.get_running_loop().time()
        is_busy = any(method != _LISTEN for method in self._sent.values())  # a subscription stays open for ever
        rate = _RATE_BUSY if is_busy else _RATE_IDLE
        self._budget = min(_BURST, self._budget + (now - self._budget_at) * rate) - 1
        self._budget_at = now
        if self._budget < -_SLACK:
            await asyncio.sleep((-_SLACK - self._budget) / rate)
        return self._budget < 0

    async def _reject(self, number: str | int) -> None:
        error = ErrorData(code=INTERNAL_ERROR, message="Too many requests are waiting for an answer.")
        assert self._write is not None, "it is set before messages arrive"
        await self._write.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error)))

    def _explain(self, error: ErrorData, number: str) -> None:
        """Mark the error of a request without a session, and replace the SDK's message about a failed HTTP request.

        That message doesn't contain what the server said.
        """
        if self._last is None:
            return
        if number in self._last.lost:
            error.data = LostSession(error.message)
        if error.message in _FAILED and self._last.status >= 400:
            said = f": {quotation(self._last.text)}" if self._last.text else ""
            error.message = f"HTTP {self._last.status}{said}"

    def _repair(self, method: str, result: dict[str, Any]) -> None:
        if (part := _PARTS.get(method)) is not None and isinstance(result.get(part[0]), list):
            name, readable_part = part
            result[name] = [readable_part(one) for one in result[name]]
        elif method == _RAW_LIST and isinstance(result.get("tools"), list):
            result["_meta"] = {RAW_TOOLS: [readable(tool) for tool in result["tools"]]}
            result["tools"] = []
        elif method == "tools/list" and isinstance(result.get("tools"), list):
            result["tools"] = [slim(tool, self.version) for tool in result["tools"] if _is_usable(tool)]
        elif (key := LISTS.get(method)) is not None and isinstance(result.get(key), list):
            rest = {name: value for name, value in result.items() if name != "nextCursor"}
            result[key] = [item for item in result[key] if self._is_valid(method, {**rest, key: [item]}, item)]

    def _is_valid(self, method: str, result: dict[str, Any], item: object) -> bool:
        try:
            methods.validate_server_result(method, self.version or "2025-11-25", result)
        except ValidationError as error:
            name = item.get("name") or item.get("uri") if isinstance(item, dict) else None
            where, what = ".".join(map(str, error.errors()[0]["loc"][2:])), error.errors()[0]["msg"]
            reasons = self.dropped.setdefault(LISTS[method], [])
            if len(reasons) < _MOST_REASONS:
                reasons.append(f"{str(name)[:100] if name else 'without a name'}: {where}: {what}")
            return False
        except KeyError:  # a method that this version doesn't have
            pass
        return True


def dropped_items(what: str, reasons: Sequence[str]) -> str:
    """Return the sentence about the items that were left out of a list.

    Args:
        what: Name of the list in the protocol.
        reasons: Why they are invalid.
    """
    number = count(len(reasons), "item") if len(reasons) < _MOST_REASONS else f"{_MOST_REASONS} items or more"
    verbs = "is invalid and was" if len(reasons) == 1 else "are invalid and were"
    method = next(method for method, name in LISTS.items() if name == what)
    return f"Its response to `{method}` contains {number} that {verbs} left out, such as {quotation(reasons[0])}."


def _shorten_parse_error(error: ErrorData) -> None:
    """Shorten the SDK's message about an HTTP response that it can't parse, which quotes the whole validation."""
    if error.code != PARSE_ERROR or not error.message.startswith(_UNPARSED):
        return
    reason = error.message.removeprefix(_UNPARSED[0]).removeprefix(_UNPARSED[1])
    if "validation error" in reason:
        error.message = NOT_JSON_RPC
    else:
        error.message = reason if reason == TOO_LONG else f"{RESPONSE} can't be read: {quotation(reason)}."
    error.data = OwnWords()


def _is_usable(tool: JsonValue) -> bool:
    is_named = isinstance(tool, dict) and isinstance(tool.get("name"), str) and UNREADABLE not in tool
    return is_named and readable(tool) is tool


def slim(tool: dict[str, Any], version: str) -> dict[str, Any]:
    """Return what the SDK needs of a tool: its name, and its schema if parts of arguments are sent as headers."""
    schema = tool.get("inputSchema")
    keep = (
        version in MODERN_PROTOCOL_VERSIONS
        and isinstance(schema, dict)
        and schema.get("type") == "object"
        and _has_headers(schema, 0)
    )
    return {"name": tool["name"], "inputSchema": schema if keep else {"type": "object"}}


def _has_headers(part: object, depth: int) -> bool:
    if depth > 50:
        return False
    if isinstance(part, dict):
        return "x-mcp-header" in part or any(_has_headers(inner, depth + 1) for inner in part.values())
    return isinstance(part, list) and any(_has_headers(inner, depth + 1) for inner in part)


class _WatchedRead(ObjectReceiveStream[SessionMessage | Exception]):
    def __init__(self, read: Read, watch: Watch) -> None:
        self._read = read
        self._watch = watch

    @property
    def last_context(self) -> object:
        """Context of the sender of the last message, if the transport has one."""
        return getattr(self._read, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        while True:
            try:
                item = await self._read.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                self._watch.on_closed()
                raise
            if await self._watch.receiving(item):
                return item

    async def aclose(self) -> None:
        await self._read.aclose()


class _WatchedWrite(ObjectSendStream[SessionMessage]):
    def __init__(self, write: Write, watch: Watch) -> None:
        self._write = write
        self._watch = watch

    async def send(self, item: SessionMessage, /) -> None:
        self._watch.sending(item)
        await self._write.send(item)

    async def aclose(self) -> None:
        await self._write.aclose()
