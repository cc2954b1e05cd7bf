"""Requests that return errors instead of raising, with a server with many kinds of responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import httpx2
import pytest

from pegboard.sdk import safe_request
from pegboard.sdk.http import SafeResult

pytestmark = pytest.mark.promise("SDK-5")

Send = Callable[..., Awaitable[SafeResult]]


@pytest.fixture(params=["httpx.Client", "httpx.AsyncClient", "httpx2.Client", "httpx2.AsyncClient"])
def send(request: pytest.FixtureRequest) -> Send:
    """Return a function that sends a request with one of the clients, as `send("GET", url, …)`."""
    library, kind = request.param.split(".")
    client_class: Any = getattr({"httpx": httpx, "httpx2": httpx2}[library], kind)

    async def with_async(method: str, url: str, **kwargs: Any) -> SafeResult:
        async with client_class(trust_env=False) as client:
            awaited: SafeResult = await safe_request(client, method, url, **kwargs)
            return awaited

    async def with_sync(method: str, url: str, **kwargs: Any) -> SafeResult:
        with client_class(trust_env=False) as client:
            answer: SafeResult = safe_request(client, method, url, **kwargs)
            return answer

    return with_async if kind == "AsyncClient" else with_sync


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("json", {"answer": 42}),
        ("problem-json", ["a"]),
        ("no-json", "<html>Sign in"),
        ("deep", "[" * 200_000),
        ("number", "42"),
        ("text", "schön"),
        ("latin", "schön"),
        ("bytes", "sch\ufffdn \ufffd\ufffd"),
        ("empty", ""),
    ],
)
async def test_a_response_is_parsed_as_json_or_returned_as_text(send: Send, url: str, path: str, data: object) -> None:
    assert await send("GET", f"{url}/{path}") == (True, data)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing", "HTTP error (404): " + "x" * 500),
        ("broken", 'HTTP error (500): {"error": "ours"}'),
        ("busy", "HTTP error (429): slow down"),
        ("moved", "HTTP error (301): Moved to /json"),
    ],
)
async def test_an_error_status_is_returned_with_the_start_of_its_body(
    send: Send, url: str, path: str, message: str
) -> None:
    assert await send("GET", f"{url}/{path}") == (False, message)


async def test_a_redirect_is_followed_if_the_client_does(send: Send, url: str) -> None:
    assert await send("GET", f"{url}/moved", follow_redirects=True) == (True, {"answer": 42})


async def test_further_arguments_are_passed_to_the_client(send: Send, url: str) -> None:
    assert await send("POST", url, json={"a": [1]}) == (True, {"a": [1]})


async def test_fifty_megabytes_arrive_completely(send: Send, url: str) -> None:
    ok, data = await send("GET", f"{url}/large")
    assert (ok, len(data)) == (True, 50 * 2**20)


@pytest.mark.parametrize(("path", "seconds"), [("cut", 30), ("slow", 0.2)])
async def test_an_incomplete_response_is_a_failed_request(send: Send, url: str, path: str, seconds: float) -> None:
    ok, message = await send("GET", f"{url}/{path}", timeout=seconds)
    assert not ok
    assert message.startswith("Request failed: ")
    assert message != "Request failed: "


async def test_a_refused_connection_is_a_failed_request(send: Send, refused: str) -> None:
    ok, message = await send("GET", refused)
    assert (ok, message.partition(":")[0]) == (False, "Request failed")
    assert "onnect" in message


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "nowhere",
        "ftp://127.0.0.1/x",
        "http://",
        "http://[",
        "http://127.0.0.1:99999/",
        "http://a b/",
        "http://\ud800/",
    ],
)
async def test_a_bad_url_is_a_failed_request(send: Send, bad: str) -> None:
    ok, message = await send("GET", bad)
    assert (ok, message.partition(":")[0]) == (False, "Request failed")


async def test_a_programming_error_is_raised(send: Send, url: str) -> None:
    with pytest.raises(TypeError):
        await send("GET", url, jsn={})


def test_subclasses_of_clients_are_supported(url: str) -> None:
    class Own(httpx.Client):
        pass

    with Own(trust_env=False) as client:
        assert safe_request(client, "GET", "nowhere")[0] is False
