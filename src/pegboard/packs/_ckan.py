"""A client for CKAN portals: it calls an action and returns its result, or the reason for a failure.

A portal may answer with CKAN's own errors in one of several shapes, with a page of the web server in front of it, with
a redirect to a login page, or not at all. All of these become a `ToolFailed` whose data is a `Failure`.
"""

from __future__ import annotations

import asyncio
import re
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from html import unescape
from http import HTTPStatus
from ssl import SSLError
from typing import ClassVar, NamedTuple, TypeVar

import httpx
from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from pegboard.sdk import ToolFailed, log, progress

from ._ckan_models import CkanSettings, Failure, FailureReason

ResultT = TypeVar("ResultT")
ItemT = TypeVar("ItemT")
Params = Mapping[str, str | int]

_PAUSES = (0.5, 1.5)
"""Seconds before the second and the third attempt, which is the last."""
_LONGEST_PAUSE = 5.0
"""Seconds; a request is not retried if the portal asks to wait longer."""
_MOST_REDIRECTS = 3
_MOST_BYTES = 32 * 2**20
"""Size limit of an answer; a hundred datasets have about a tenth of it."""
_HEAD_BYTES = 2**16
"""Bytes that are read of a page that isn't JSON, to find its title."""
_JUDGED = 1_024
"""Bytes of an answer that decide whether it may be JSON."""
_BOM = b"\xef\xbb\xbf"
_LONGEST_MESSAGE = 2_000
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)

_CODES = {
    "Authorization Error": "forbidden",
    "Not Found Error": "not_found",
    "Search Error": "invalid_query",
    "Search Query Error": "invalid_query",
    "Validation Error": "invalid_parameters",
}
"""CKAN's names of errors → our codes."""
_CODES_BY_STATUS = {
    400: "bad_request",
    401: "forbidden",
    403: "forbidden",
    404: "not_found",
    409: "invalid_parameters",
    429: "rate_limited",
    503: "unavailable",
}
_AGAIN = frozenset({429, 503})
_REFUSED = frozenset({401, 403})


class _Reply(NamedTuple):
    """An HTTP answer.

    Attributes:
        status: The HTTP status.
        headers: Its headers.
        body: Its body; only the beginning if it isn't JSON.
        may_be_json: Whether the body starts like JSON.
        redirect: Its location, if it is a redirect.
    """

    status: int
    headers: httpx.Headers
    body: bytes
    may_be_json: bool
    redirect: httpx.Request | None

    @property
    def title(self) -> str:
        """Title of an HTML page; empty without one."""
        found = _TITLE.search(self.body[:_HEAD_BYTES].decode("utf-8", "replace"))
        return _cut(" ".join(unescape(found[1]).split()), 100) if found else ""

    @property
    def retry_after(self) -> float | None:
        """Seconds that the portal asks to wait; None if it doesn't."""
        said = self.headers.get("retry-after", "").strip()
        if re.fullmatch(r"\d{1,9}", said):
            return float(said)
        with suppress(ValueError):
            moment = parsedate_to_datetime(said)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return max((aware - datetime.now(UTC)).total_seconds(), 0.0)
        return None


class Portal:
    """One CKAN portal, with a connection pool that belongs to one event loop.

    Args:
        settings: Address and options.
    """

    def __init__(self, settings: CkanSettings) -> None:
        self.settings = settings
        given = httpx.URL(settings.base_url)
        self._base = given.copy_with(path=given.path.rstrip("/") or "/api/3")
        headers = {"User-Agent": settings.user_agent, "Accept": "application/json"}
        if settings.api_key:
            headers["Authorization"] = settings.api_key
        self._client = httpx.AsyncClient(
            headers=headers,
            timeout=None,  # noqa: S113 - httpx's timeouts limit parts of a request; `_timed` limits the whole
            limits=httpx.Limits(max_connections=10),
        )

    @property
    def base_url(self) -> str:
        """Address of the API without a password, for display."""
        return str(self._base.copy_with(username=None, password=None))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def get(self, action: str, params: Params, shape: TypeAdapter[ResultT]) -> ResultT:
        """Call an action.

        After a lost connection or a status 429 or 503 the request is retried, up to three attempts in all.

        Args:
            action: CKAN's name of it, such as `package_search`.
            params: Its parameters.
            shape: Type of its result.

        Raises:
            ToolFailed: It failed; the data is a `Failure`.
        """
        reply = await self._asked(action, params)
        said = self._parsed(reply)
        if reply.status >= HTTPStatus.BAD_REQUEST or not isinstance(said, dict) or said.get("success") is not True:
            raise self._refusal(reply, said)
        try:
            return shape.validate_python(said.get("result"))
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = ".".join(map(str, ("result", *wrong["loc"])))
            message = f"The portal's response is not a valid CKAN response: {where}: {wrong['msg']}."
            raise failure(message, "unexpected_shape", status=reply.status) from None

    async def pages(
        self,
        action: str,
        params: Params,
        shape: TypeAdapter[list[ItemT]],
        name: Callable[[ItemT], str],
        limit: int | None,
        offset: int,
    ) -> list[ItemT]:
        """Call an action that returns a list until it is complete; CKAN limits the length of a page without saying so.

        Args:
            action: CKAN's name of it, such as `group_list`.
            params: Its parameters, except those for paging.
            shape: Type of one page.
            name: Function that returns the unique name of an item.
            limit: Maximum number of items; None for all.
            offset: Number of items to skip.

        Raises:
            ToolFailed: As `get`.
        """
        found: dict[str, ItemT] = {}
        longest = 0
        while limit is None or len(found) < limit:
            known = len(found)
            paging = {"offset": offset + known} if limit is None else {"offset": offset + known, "limit": limit - known}
            page = await self.get(action, {**params, **paging}, shape)
            found.update((name(item), item) for item in page)
            progress(len(found), limit)
            if len(found) == known or len(page) < longest:
                break
            longest = len(page)
        return list(found.values())[:limit]

    async def _asked(self, action: str, params: Params) -> _Reply:
        url = self._base.copy_with(path=f"{self._base.path}/action/{action}")
        pauses = iter(_PAUSES)
        while True:
            pause = next(pauses, None)
            try:
                request = self._client.build_request("GET", url, params=params)
            except httpx.InvalidURL:
                length = max(len(str(value)) for value in params.values())
                message = f"{action} was not called because its arguments are too long: {length:,} characters."
                raise failure(f"{message} Shorten them.", "query_too_long") from None
            except UnicodeError:
                message = f"{action} was not called because an argument is not valid text: it contains lone surrogates."
                raise failure(message, "invalid_query") from None
            try:
                reply = await self._followed(request)
            except httpx.RequestError as error:
                if pause is None or not _was_broken(error):
                    raise self._unreached(error) from None
                await self._wait(pause, "closed the connection")
                continue
            wished = reply.retry_after
            if reply.status not in _AGAIN or pause is None or (wished or 0) > _LONGEST_PAUSE:
                return reply
            await self._wait(pause if wished is None else wished, f"answered {_named(reply.status)}")

    async def _wait(self, seconds: float, why: str) -> None:
        log(f"{self._base.host} {why}; retrying in {seconds:g} s")
        await asyncio.sleep(seconds)

    async def _followed(self, request: httpx.Request) -> _Reply:
        """Send a request, and follow a redirect only within the API."""
        action = request.url.path.rpartition("/action/")[2]
        redirects = 0
        while True:
            reply = await self._timed(request)
            if reply.redirect is None:
                return reply
            request = reply.redirect
            redirects += 1
            if redirects > _MOST_REDIRECTS or not request.url.path.endswith(f"/action/{action}"):
                where = request.url.copy_with(query=None, fragment=None, username=None, password=None)
                message = f"{self._base.host} redirected to {where} instead of answering. It may require a key."
                raise failure(message, "redirected", status=reply.status)

    async def _timed(self, request: httpx.Request) -> _Reply:
        try:
            async with asyncio.timeout(self.settings.timeout):
                return await self._sent(request)
        except TimeoutError:
            message = f"{self._base.host} did not answer within {self.settings.timeout:g} seconds."
            raise failure(message, "timeout") from None

    async def _sent(self, request: httpx.Request) -> _Reply:
        response = await self._client.send(request, stream=True)
        try:
            body = bytearray()
            may_be_json = True
            async for chunk in response.aiter_bytes():
                body += chunk
                may_be_json = _may_be_json(body)
                if not may_be_json and len(body) >= _HEAD_BYTES:
                    break
                if len(body) > _MOST_BYTES:
                    message = f"The portal's response is larger than {_MOST_BYTES // 2**20} MB. Request less."
                    raise failure(message, "too_large", status=response.status_code)
        finally:
            await response.aclose()
        return _Reply(response.status_code, response.headers, bytes(body), may_be_json, response.next_request)

    def _parsed(self, reply: _Reply) -> JsonValue:
        """Return the JSON of an answer.

        Raises:
            ToolFailed: It isn't JSON.
        """
        try:
            said: JsonValue = from_json(reply.body.removeprefix(_BOM))
        except ValueError as error:
            reason = f" ({error})" if reply.may_be_json and reply.body else ""
        else:
            return said
        status = reply.status
        page = f"a page, “{reply.title}”," if reply.title else "something else" if reply.body else "nothing"
        message = f"{self._base.host} answered {_named(status)} with {page} where JSON was expected{reason}."
        if status in _REFUSED:
            message += " Some portals reject unknown programs: set `user_agent` under `[packs.ckan]`."
        elif status < HTTPStatus.BAD_REQUEST or status == HTTPStatus.NOT_FOUND:
            message += f" Check that {self.base_url} is the address of its API."
            raise failure(message, "not_json", status=status)
        raise failure(message, _code(status), status=status, retry_after=reply.retry_after)

    def _refusal(self, reply: _Reply, said: JsonValue) -> ToolFailed:
        """Return the failure that CKAN reported, in its own words if there are any."""
        error = said.get("error") if isinstance(said, dict) else said
        if reply.status < HTTPStatus.BAD_REQUEST and not error:
            message = "The portal's response is not a valid CKAN response: it contains neither a result nor an error."
            return failure(message, "unexpected_shape", status=reply.status)
        kind, words, fields = None, "", {}
        if isinstance(error, dict):
            kind, words = _text(error.get("__type")), _text(error.get("message"))
            fields = {name: _texts(value) for name, value in error.items() if name not in {"__type", "message"}}
        elif error:
            words = "; ".join(_texts(error))
        listed = "; ".join(f"{name}: {', '.join(texts)}" for name, texts in fields.items())
        return failure(
            words or listed or f"{self._base.host} answered {_named(reply.status)} without a reason.",
            _CODES.get(kind or "") or _code(reply.status),
            status=reply.status,
            type=kind,
            fields=fields or None,
            retry_after=reply.retry_after,
        )

    def _unreached(self, error: httpx.RequestError) -> ToolFailed:
        host, reason = self._base.host, str(error) or type(error).__name__
        if any(isinstance(cause, SSLError) for cause in _causes(error)):
            return failure(f"A secure connection to {host} failed: {reason}.", "tls")
        if isinstance(error, httpx.ConnectError | httpx.UnsupportedProtocol | httpx.ProxyError):
            return failure(f"{host} can't be reached: {reason}.", "unreachable")
        if isinstance(error, httpx.DecodingError):
            return failure(f"The answer of {host} can't be decompressed: {reason}.", "not_json")
        return failure(f"The connection to {host} was lost: {reason}.", "connection_lost")


class _Open:
    """The portals with connections in this process, one for each event loop."""

    portals: ClassVar[dict[AbstractEventLoop, Portal]] = {}


async def connect(settings: CkanSettings) -> Portal:
    """Return the portal for the running event loop: the same one until its settings change, to reuse connections.

    Args:
        settings: Address and options.
    """
    loop = asyncio.get_running_loop()
    portals = _Open.portals
    for ended in [known for known in portals if known.is_closed()]:
        del portals[ended]
    known = portals.get(loop)
    if known is not None and known.settings == settings:
        return known
    portals[loop] = Portal(settings)
    if known is not None:
        await known.close()
    return portals[loop]


async def close() -> None:
    """Close the connections of the running event loop."""
    portal = _Open.portals.pop(asyncio.get_running_loop(), None)
    if portal is not None:
        await portal.close()


def failure(
    message: str,
    code: str,
    *,
    status: int | None = None,
    type: str | None = None,  # noqa: A002 - the name in the answer
    fields: dict[str, list[str]] | None = None,
    retry_after: float | None = None,
) -> ToolFailed:
    """Return the exception that ends a call as failed; its data is a `Failure`.

    Args:
        message: The reason.
        code: Kind of failure in one word.
        status: The HTTP status, if there was an answer.
        type: CKAN's name of the error.
        fields: Parameter → its errors.
        retry_after: Seconds that the portal asks to wait.
    """
    fault = FailureReason(
        message=_cut(message, _LONGEST_MESSAGE),
        code=code,
        status=status,
        type=type,
        fields=fields,
        retry_after=retry_after,
    )
    return ToolFailed(fault.message, code, Failure(error=fault).model_dump(exclude_none=True))


_OPERATORS = re.compile(r'[\\!(){}\[\]^"~*?:/]|&&|\|\||(?<!\S)[+-]|(?<!\S)(?:AND|OR|NOT)(?!\S)')


def escaped(text: str) -> str:
    """Return a text as a query for its words: Solr's operators are escaped with backslashes."""
    return _OPERATORS.sub(lambda found: f"\\{found[0]}", text)


def _may_be_json(body: bytearray) -> bool:
    """Return whether a body starts like CKAN's answers."""
    return bytes(body[:_JUDGED]).removeprefix(_BOM).lstrip()[:1] in (b"", b"{", b"[", b'"')


def _was_broken(error: httpx.RequestError) -> bool:
    """Return whether a connection was lost after it was made, so that another attempt makes sense."""
    lost = isinstance(error, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError)
    return lost or any(isinstance(cause, ConnectionResetError) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _code(status: int) -> str:
    """Return the kind of a failure without a name of CKAN's."""
    if status < HTTPStatus.BAD_REQUEST:
        return "ckan_error"
    return _CODES_BY_STATUS.get(status) or ("http_error" if status < 500 else "server_error")


def _named(status: int) -> str:
    """Return a status with its name: `404 Not Found`."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _text(value: JsonValue) -> str:
    """Return a value as text: strings unchanged, null as an empty text, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else to_json(value).decode()


def _texts(value: JsonValue) -> list[str]:
    return [_text(item) for item in value] if isinstance(value, list) else [_text(value)]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
