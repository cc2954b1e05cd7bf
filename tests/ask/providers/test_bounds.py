"""Limits of a provider's answer while it arrives, and how its turn ended, over real connections."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

import pytest
from dialects import CALL, anthropic, candidate, claude, ends, gemini, google
from listening import KEY, hear, reach
from provider import Answer, FakeProvider, call, delta

from pegboard.ask.providers import ModelTimeouts, limits
from pegboard.models.conversation import TurnEnded

MIB = b"x" * 2**20


def endless(piece: bytes, begin: bytes = b"") -> Iterator[bytes]:
    yield begin
    while True:
        yield piece


@pytest.mark.promise("SEC-8")
@pytest.mark.parametrize("speaker", [reach, claude, gemini])
async def test_an_event_without_an_end_ends_the_connection(speaker: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LARGEST_EVENT", 2**20)
    with FakeProvider(Answer(endless(MIB, b"data: "))).running() as fake:
        failure = (await hear(speaker(fake))).failed  # type: ignore[operator]  # any of them
    assert failure.code == "broken_stream"
    assert "too large" in str(failure)


@pytest.mark.promise("SEC-8")
async def test_an_endless_stream_without_events_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LARGEST_ANSWER", 4 * 2**20)
    with FakeProvider(Answer(endless(b": ping\n\n" * 10_000, b"data: [1\n\n"))).running() as fake:
        assert (await hear(reach(fake))).failed.code == "broken_stream"


@pytest.mark.promise("SEC-8")
@pytest.mark.parametrize("speaker", [reach, claude, gemini])
@pytest.mark.parametrize("status", [400, 401, 404, 422])
async def test_the_body_of_an_error_is_read_up_to_a_limit(speaker: object, status: int) -> None:
    with FakeProvider(Answer(endless(MIB, b"No! "), status=status, type="text/plain")).running() as fake:
        failure = (await hear(speaker(fake))).failed  # type: ignore[operator]  # any of them
    assert len(str(failure)) < 1_000


@pytest.mark.promise("SEC-8")
async def test_compressed_answers_are_not_decompressed() -> None:
    bomb = gzip.compress(b"data: " + b"x" * 50_000_000)
    answer = Answer([bomb], headers={"content-encoding": "gzip"})
    with FakeProvider(answer).running() as fake:
        failure = (await hear(reach(fake))).failed
        assert fake.asked[0].headers["accept-encoding"] == "identity"
    assert failure.code == "broken_stream"


@pytest.mark.promise("SEC-8")
async def test_headers_without_an_end_are_a_failure() -> None:
    with FakeProvider(Answer([delta(content="x")], headers={"x-big": "x" * 5_000_000})).running() as fake:
        assert (await hear(reach(fake))).failed.code in {"no_connection", "broken_stream"}


@pytest.mark.promise("SEC-8")
async def test_pings_do_not_keep_a_silent_answer_alive() -> None:
    pings = Answer(endless(b": ping\n\n", b'data: {"choices": [{"index": 0, "delta": {"content": "One"}}]}\n\n'))
    with FakeProvider(pings).running() as fake:
        heard = await hear(reach(fake, timeouts=ModelTimeouts(silence=0.5)))
    assert heard.failed.code == "timeout"


def openai_call(finish: str | None, arguments: str) -> Answer:
    pieces = [call(id="call_1", name="fs_list_dir", arguments=arguments)]
    return Answer([*pieces, *([delta(finish)] if finish else [])])


@pytest.mark.promise("SEC-6")
@pytest.mark.parametrize("arguments", ["", "{}", '{"path": "src"}'])
@pytest.mark.parametrize(
    ("name", "finish"),
    [
        *(
            (name, finish)
            for name in ("openai:x", "ollama:x", "my-own:x")
            for finish in ("length", "content_filter", "odd")
        ),
        *(("openrouter:a/x", finish) for finish in ("length", "content_filter", "error", "odd")),
        *((name, None) for name in ("openai:x", "openrouter:a/x", "ollama:x")),
    ],
)
async def test_a_call_of_an_unfinished_turn_of_an_openai_compatible_server_is_known(
    name: str, finish: str | None, arguments: str
) -> None:
    with FakeProvider(openai_call(finish, arguments)).running() as fake:
        heard = await hear(reach(fake, name))
    assert heard.failure is not None or not heard.ended.is_complete


@pytest.mark.promise("SEC-6")
@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "pause_turn", "model_context_window_exceeded", "odd"])
async def test_a_call_of_an_unfinished_turn_of_anthropic_is_known(reason: str) -> None:
    with FakeProvider(anthropic(*CALL, ("content_block_stop", {"index": 1}), *ends(reason))).running() as fake:
        heard = await hear(claude(fake))
    assert heard.failure is not None or not heard.ended.is_complete


@pytest.mark.promise("SEC-6")
@pytest.mark.parametrize(
    "reason", ["MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "ODD"]
)
async def test_a_call_of_an_unfinished_turn_of_google_is_known(reason: str) -> None:
    made = {"functionCall": {"name": "fs_list_dir", "args": {}}}
    with FakeProvider(google(candidate(made, finish=reason))).running() as fake:
        heard = await hear(gemini(fake))
    assert heard.failure is not None or not heard.ended.is_complete


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "function_call"])
async def test_a_call_of_a_finished_turn_is_complete(finish: str) -> None:
    with FakeProvider(openai_call(finish, json.dumps({"path": KEY[:2]}))).running() as fake:
        ended = (await hear(reach(fake))).ended
    assert isinstance(ended, TurnEnded)
    assert (ended.reason, ended.is_complete) == ("calls", True)
