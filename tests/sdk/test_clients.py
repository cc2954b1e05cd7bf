"""API clients created on first use, and headers with keys."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pegboard.sdk import api_headers, lazy_client, testing


def _threads_in(function: str) -> int:
    frames = sys._current_frames().values()
    return sum(frame.f_code.co_name == function and frame.f_code.co_filename.endswith("clients.py") for frame in frames)


@pytest.mark.promise("SDK-7")
def test_thirty_two_concurrent_threads_share_one_client() -> None:
    all_here = threading.Barrier(32, timeout=30)
    built: list[object] = []

    def build() -> object:
        built.append(object())
        bound = time.monotonic() + 30
        while len(built) == 1 and _threads_in("client") < 31 and time.monotonic() < bound:
            time.sleep(0.01)  # until all other threads wait
        return built[0]

    client = lazy_client(build)

    def get(_: int) -> object:
        all_here.wait()
        return client()

    with ThreadPoolExecutor(32) as executor:
        clients = set(executor.map(get, range(32)))
    assert len(built) == 1
    assert clients == set(built)


@pytest.mark.promise("SDK-7")
def test_a_factory_that_raises_is_tried_again_at_the_next_call() -> None:
    attempts: list[int] = []

    def build() -> str:
        attempts.append(len(attempts))
        if len(attempts) == 1:
            raise ConnectionError
        return "client"

    client = lazy_client(build)
    with pytest.raises(ConnectionError):
        client()
    assert (client(), client(), len(attempts)) == ("client", "client", 2)


@pytest.mark.promise("SDK-7")
def test_a_factory_that_returns_none_is_called_once() -> None:
    attempts: list[int] = []
    client = lazy_client(lambda: attempts.append(1))
    assert (client(), client(), attempts) == (None, None, [1])


@pytest.mark.promise("SDK-7")
def test_the_client_is_none_while_its_secret_is_missing() -> None:
    client = lazy_client(lambda: "client", secret_name="CLIENT_KEY")
    with testing.host():
        assert client() is None
    with testing.host(secrets={"CLIENT_KEY": "k"}):
        assert client() == "client"


@pytest.mark.promise("SDK-7")
def test_another_secret_gets_another_client_and_a_removed_one_none() -> None:
    made: list[str] = []

    def build() -> str:
        made.append(f"client {len(made)}")
        return made[-1]

    client = lazy_client(build, secret_name="CLIENT_KEY")
    for key, found in (("old", "client 0"), ("old", "client 0"), ("new", "client 1"), ("old", "client 2")):
        with testing.host(secrets={"CLIENT_KEY": key}):
            assert client() == found
    with testing.host():
        assert client() is None


@pytest.mark.promise("SDK-6")
def test_headers_carry_the_secret_or_are_empty() -> None:
    with testing.host(secrets={"KEY": "k", "FROM_FILE": "f\n"}):
        assert api_headers("KEY") == {"Authorization": "Bearer k"}
        assert api_headers("KEY", header_name="X-Key", prefix="") == {"X-Key": "k"}
        assert api_headers("FROM_FILE", prefix="Token ") == {"Authorization": "Token f"}
        assert api_headers("NONE") == {}
