"""HTTP requests that return errors instead of raising them."""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from typing import Any, Literal, Protocol, overload  # Any: JSON of servers, and the arguments of a client's `request`

from pegboard.sdk.granted import get_secret

_LONGEST_BODY = 500

SafeResult = tuple[Literal[True], Any] | tuple[Literal[False], str]
"""`(True, data)` or `(False, error message)`."""


class Response(Protocol):
    """Required attributes of a client's responses."""

    @property
    def status_code(self) -> int:
        """HTTP status."""

    @property
    def text(self) -> str:
        """Body as text."""

    @property
    def headers(self) -> Any:  # noqa: ANN401 - every library has its own class
        """Headers; names are case-insensitive."""

    def json(self) -> Any:  # noqa: ANN401 - see above
        """Parse the body as JSON."""


class Client(Protocol):
    """Interface of `httpx.Client` and compatible clients."""

    def request(self, method: str, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401 - up to the client
        """Send a request."""


class AsyncClient(Protocol):
    """Interface of `httpx.AsyncClient` and compatible clients."""

    def request(self, method: str, *args: Any, **kwargs: Any) -> Awaitable[Response]:  # noqa: ANN401 - up to the client
        """Send a request."""


@overload
def safe_request(client: AsyncClient, method: str, url: str, **kwargs: Any) -> Awaitable[SafeResult]: ...  # noqa: ANN401
@overload
def safe_request(client: Client, method: str, url: str, **kwargs: Any) -> SafeResult: ...  # noqa: ANN401 - see above
def safe_request(
    client: AsyncClient | Client,
    method: str,
    url: str,
    **kwargs: Any,
) -> SafeResult | Awaitable[SafeResult]:
    """Send a request and return `(True, data)` or `(False, message)` instead of raising.

    Example::

        ok, data = safe_request(httpx.Client(timeout=10), "GET", "https://api.example.org/items", params={"q": "desk"})
        if not ok:
            raise ToolFailed(data)

    Args:
        client: An `httpx.Client` or an `httpx.AsyncClient`. With the latter, await the return value.
        method: HTTP method, such as `GET`.
        url: URL of the request.
        **kwargs: Further arguments of the client's `request`: `params`, `json`, `headers`, `timeout` and so on.

    Returns:
        `(True, data)` on success: the parsed JSON, or the text of any other content type.
        `(False, "HTTP error (STATUS): BODY")` for 4xx and 5xx responses, and for redirects that the client doesn't
        follow. The body is truncated to 500 characters.
        `(False, "Request failed: MESSAGE")` without a response: no connection, a timeout, or an invalid URL.
    """
    errors = _errors(client)
    try:
        sent = client.request(method, url, **kwargs)
    except errors as error:
        return False, _failed(error)
    if isinstance(sent, Awaitable):
        return _await_response(sent, errors)
    return _answer(sent)


def api_headers(secret_name: str, header_name: str = "Authorization", prefix: str = "Bearer ") -> dict[str, str]:
    """Return the HTTP header with an API key.

    Args:
        secret_name: Name of the secret. Write it as a literal: naming it here grants it to the pack.
        header_name: Name of the header.
        prefix: Text before the key.

    Returns:
        A dictionary with the header; empty if the secret is missing.
    """
    secret = get_secret(secret_name)
    # keys from files end in a line break, and clients would reject it with the key in the error message
    return {header_name: prefix + secret.strip()} if secret else {}


async def _await_response(sent: Awaitable[Response], errors: tuple[type[Exception], ...]) -> SafeResult:
    try:
        return _answer(await sent)
    except errors as error:
        return False, _failed(error)
    except ExceptionGroup as group:  # several addresses of a host were tried
        _, others = group.split(errors)
        if others is not None:
            raise
        return False, _failed(group.exceptions[0])


def _answer(response: Response) -> SafeResult:
    status = response.status_code
    location = response.headers.get("location")
    if status < 300 or (status < 400 and location is None):
        return True, _data(response)
    body = f"Moved to {location}" if status < 400 else response.text
    return False, f"HTTP error ({status}): {body[:_LONGEST_BODY]}"


def _data(response: Response) -> Any:  # noqa: ANN401 - see above
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind.endswith(("/json", "+json")):
        try:
            return response.json()
        except (ValueError, RecursionError):  # invalid JSON despite the content type
            pass
    return response.text


def _failed(error: Exception) -> str:
    return f"Request failed: {str(error).strip() or type(error).__name__}"


def _errors(client: object) -> tuple[type[Exception], ...]:
    """Return the exceptions that mean a missing response: Python's, and those of the client's library."""
    found: list[type[Exception]] = [OSError, UnicodeError, OverflowError]
    for cls in type(client).__mro__:
        library = sys.modules.get(cls.__module__.partition(".")[0])
        for name in ("HTTPError", "InvalidURL"):
            error = vars(library).get(name) if library else None
            if isinstance(error, type) and issubclass(error, Exception):
                found.append(error)
    return tuple(found)
