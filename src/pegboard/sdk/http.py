"""HTTP without exceptions for what HTTP does every day."""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from typing import Any, Literal, Protocol, overload  # Any: JSON from elsewhere, and what a client's `request` takes

from pegboard.sdk.granted import get_secret

_LONGEST_BODY = 500

Answer = tuple[Literal[True], Any] | tuple[Literal[False], str]
"""Whether it went well, and the data or else what went wrong."""


class Response(Protocol):
    """What is used of a client's responses."""

    @property
    def status_code(self) -> int:
        """The status."""

    @property
    def text(self) -> str:
        """The body as text."""

    @property
    def headers(self) -> Any:  # noqa: ANN401 - every library has a class of its own for them
        """The headers, by their names in any case."""

    def json(self) -> Any:  # noqa: ANN401 - see above
        """Parses the body."""


class Client(Protocol):
    """`httpx.Client`, and whatever is like it."""

    def request(self, method: str, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401 - the client knows them
        """Sends a request."""


class AsyncClient(Protocol):
    """`httpx.AsyncClient`, and whatever is like it."""

    def request(self, method: str, *args: Any, **kwargs: Any) -> Awaitable[Response]:  # noqa: ANN401 - as above
        """Sends a request."""


@overload
def safe_request(client: AsyncClient, method: str, url: str, **kwargs: Any) -> Awaitable[Answer]: ...  # noqa: ANN401
@overload
def safe_request(client: Client, method: str, url: str, **kwargs: Any) -> Answer: ...  # noqa: ANN401 - see above
def safe_request(
    client: AsyncClient | Client,
    method: str,
    url: str,
    **kwargs: Any,
) -> Answer | Awaitable[Answer]:
    """Sends a request, and says how it went instead of raising.

    Args:
        client: An `httpx.Client`, or an `httpx.AsyncClient`: then await what this gives.
        method: `GET`, `POST` and so on.
        url: Where to.
        **kwargs: What else the client's `request` takes: `params`, `json`, `headers`, `timeout` and so on.

    Returns:
        `(True, data)`: parsed JSON where the response is JSON, else its text.
        `(False, "HTTP error (STATUS): BODY")` for 4xx and 5xx, and for a redirect that the client doesn't follow; the
        body is cut at 500 characters.
        `(False, "Request failed: MESSAGE")` where no response came: no connection, a timeout, a URL that is none.
    """
    errors = _errors(client)
    try:
        sent = client.request(method, url, **kwargs)
    except errors as error:
        return False, _failed(error)
    if isinstance(sent, Awaitable):
        return _awaited(sent, errors)
    return _answer(sent)


def api_headers(secret_name: str, header_name: str = "Authorization", prefix: str = "Bearer ") -> dict[str, str]:
    """Builds the header that carries an API key.

    Args:
        secret_name: The secret, which the pack is granted by naming it here as a literal.
        header_name: The header.
        prefix: What stands before the key.

    Returns:
        The header; nothing where the secret is missing.
    """
    secret = get_secret(secret_name)
    # a line break at the end, as keys from files have, would be refused with the key in the message
    return {header_name: prefix + secret.strip()} if secret else {}


async def _awaited(sent: Awaitable[Response], errors: tuple[type[Exception], ...]) -> Answer:
    try:
        return _answer(await sent)
    except errors as error:
        return False, _failed(error)
    except ExceptionGroup as group:  # what came of attempts at several addresses
        _, others = group.split(errors)
        if others is not None:
            raise
        return False, _failed(group.exceptions[0])


def _answer(response: Response) -> Answer:
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
        except (ValueError, RecursionError):  # it only says that it is JSON
            pass
    return response.text


def _failed(error: Exception) -> str:
    return f"Request failed: {str(error).strip() or type(error).__name__}"


def _errors(client: object) -> tuple[type[Exception], ...]:
    """Gives the exceptions that mean no response: Python's own, and those of the client's library."""
    found: list[type[Exception]] = [OSError, UnicodeError, OverflowError]
    for cls in type(client).__mro__:
        library = sys.modules.get(cls.__module__.partition(".")[0])
        for name in ("HTTPError", "InvalidURL"):
            error = vars(library).get(name) if library else None
            if isinstance(error, type) and issubclass(error, Exception):
                found.append(error)
    return tuple(found)
