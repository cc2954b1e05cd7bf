"""The protocols of Anthropic and Google, against the same server."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import re
import sys
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from dialects import CALL, TEXT, anthropic, block, candidate, claude, ends, gemini, google
from listening import KEY, LIST_DIR, hear
from provider import Answer, FakeProvider, says

from pegboard.ask.providers import ProviderModel, model
from pegboard.errors import ModelError
from pegboard.models.conversation import (
    Message,
    ModelMessage,
    Prompt,
    ProposedCall,
    SystemMessage,
    TextDelta,
    ToolMessage,
    TurnEnded,
    Usage,
    UserMessage,
)

CONVERSATION = (
    SystemMessage(text="Be brief."),
    UserMessage(text="What is in src?"),
    ModelMessage(calls=(ProposedCall(provider_id="call_1", name="fs_list_dir", arguments='{"path":"src"}'),)),
    ToolMessage(provider_id="call_1", name="fs_list_dir", text="no such folder", ok=False),
)


@pytest.mark.promise("ASK-5")
async def test_anthropic_streams_text_and_calls_and_receives_the_results() -> None:
    answer = anthropic(
        *TEXT, ("content_block_stop", {"index": 0}), *CALL, ("content_block_stop", {"index": 1}), *ends("tool_use")
    )
    with FakeProvider(answer).running() as fake:
        heard = await hear(claude(fake), *CONVERSATION)
    assert heard.text == "Let me."
    assert heard.calls == [("fs_list_dir", '{"path": "src"}')]
    (made,) = heard.ended.message.calls
    assert (made.provider_id, made.name, json.loads(made.arguments)) == ("toolu_1", "fs_list_dir", {"path": "src"})
    assert (heard.ended.reason, heard.ended.usage) == ("calls", Usage(input_tokens=25, output_tokens=15))
    (asked,) = fake.asked
    assert asked.path.partition("?")[0] == "/v1/messages"
    assert any(KEY in value for value in asked.headers.values())
    assert "Be brief." in json.dumps(asked.body["system"])
    result = asked.body["messages"][-1]["content"][0]
    assert (result["tool_use_id"], result["is_error"]) == ("call_1", True)
    assert asked.body["tools"][0]["input_schema"]["properties"] == LIST_DIR.parameters["properties"]


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize(
    ("speaker", "answer"),
    [
        (
            claude,
            anthropic(*TEXT, *CALL, *block(2, TEXT[0][1]["content_block"], TEXT[1][1]["delta"]), *ends("tool_use")),
        ),
        (
            gemini,
            google(
                candidate({"text": "Let "}),
                candidate({"text": "me."}, {"functionCall": {"name": "fs_list_dir", "args": {"path": "src"}}}),
                candidate({"text": "Let "}, finish="STOP"),
            ),
        ),
    ],
)
async def test_texts_before_and_after_a_call_are_paragraphs(
    speaker: Callable[[FakeProvider], ProviderModel], answer: Answer
) -> None:
    with FakeProvider(answer).running() as fake:
        heard = await hear(speaker(fake))
    assert heard.text == heard.ended.message.text == "Let me.\n\nLet "
    assert [name for name, _ in heard.calls] == ["fs_list_dir"]


@pytest.mark.promise("ASK-5")
async def test_calls_of_another_provider_are_sent_to_anthropic_with_unique_ids_that_it_accepts() -> None:
    # As Kimi and servers that count the calls of each answer write them.
    turns = [["functions.fs_list_dir:0", "call_1"], ["functions.fs_list_dir:0", "call_2"], ["call_1"]]
    messages: list[Message] = []
    for ids in turns:
        calls = tuple(ProposedCall(provider_id=id_, name="fs_list_dir", arguments="{}") for id_ in ids)
        messages += [UserMessage(text="Hi"), ModelMessage(calls=calls)]
        messages += [ToolMessage(provider_id=id_, name="fs_list_dir", text=id_) for id_ in ids]
    said = anthropic(*TEXT, ("content_block_stop", {"index": 0}), *ends("end_turn"))
    with FakeProvider(said).running() as fake:
        await hear(claude(fake), *messages)
        await hear(claude(fake), *messages)
    blocks = [block for message in fake.asked[0].body["messages"] for block in message["content"]]
    called = [block["id"] for block in blocks if block["type"] == "tool_use"]
    results = [block for block in blocks if block["type"] == "tool_result"]
    assert all(re.fullmatch("[a-zA-Z0-9_-]+", id_) for id_ in called)
    assert len(set(called)) == len(called)
    assert (called[1], called[3]) == ("call_1", "call_2")
    assert [block["tool_use_id"] for block in results] == called
    assert [block["content"][0]["text"] for block in results] == [id_ for ids in turns for id_ in ids]
    assert fake.asked[1].body["messages"] == fake.asked[0].body["messages"]


@pytest.mark.promise("ASK-5")
async def test_anthropic_receives_no_text_of_nothing_but_whitespace() -> None:
    calls = tuple(ProposedCall(provider_id=id_, name="fs_list_dir", arguments="{}") for id_ in "ab")
    messages: list[Message] = [
        UserMessage(text="Hi"),
        ModelMessage(text="\n\n", calls=calls),  # as several models write it before a call
        ToolMessage(provider_id="a", name="fs_list_dir", text=""),
        ToolMessage(provider_id="b", name="fs_list_dir", text="\n"),
        ModelMessage(text=" "),
        UserMessage(text="And now?"),
    ]
    said = anthropic(*TEXT, ("content_block_stop", {"index": 0}), *ends("end_turn"))
    with FakeProvider(said).running() as fake:
        assert (await hear(claude(fake), *messages)).text == "Let me."
    blocks = [block for message in fake.asked[0].body["messages"] for block in message["content"]]
    blocks += [inner for block in blocks if block["type"] == "tool_result" for inner in block["content"]]
    assert all(block["text"].strip() for block in blocks if block["type"] == "text")
    assert [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"] == ["a", "b"]


@pytest.mark.promise("ASK-1", "ASK-5")
async def test_anthropic_receives_declarations_of_called_tools_even_if_none_is_offered() -> None:
    said = anthropic(*TEXT, ("content_block_stop", {"index": 0}), *ends("end_turn"))
    with FakeProvider(said).running() as fake:
        heard = [event async for event in claude(fake).stream(Prompt(messages=CONVERSATION))]
        before = [event async for event in claude(fake).stream(Prompt(messages=CONVERSATION[:2]))]
    assert isinstance(heard[-1], TurnEnded)
    assert isinstance(before[-1], TurnEnded)
    with_calls, without = (asked.body for asked in fake.asked)
    assert [tool["name"] for tool in with_calls["tools"]] == ["fs_list_dir"]
    assert with_calls["tool_choice"] == {"type": "none"}
    assert with_calls["messages"][1]["content"][0]["type"] == "tool_use"
    assert without.keys().isdisjoint({"tools", "tool_choice"})


@pytest.mark.parametrize(
    ("name", "declared"),
    [("openrouter:anthropic/claude", ["fs_list_dir"]), ("openrouter:qwen/qwen3", None), ("openai:fake", None)],
)
async def test_other_providers_receive_no_tools_if_none_is_offered(name: str, declared: list[str] | None) -> None:
    with FakeProvider(says("Done.")).running() as fake:
        spoken = model(name, base_url=fake.url, key=lambda _: KEY).stream(Prompt(messages=CONVERSATION))
        assert isinstance([event async for event in spoken][-1], TurnEnded)
    body = fake.asked[0].body
    assert [tool["function"]["name"] for tool in body.get("tools", ())] == (declared or [])
    assert body.get("tool_choice") == ("none" if declared else None)


@pytest.mark.promise("ASK-5")
async def test_an_answer_of_anthropic_that_ends_in_a_call_is_a_failure() -> None:
    with FakeProvider(anthropic(*TEXT, ("content_block_stop", {"index": 0}), *CALL[:-1])).running() as fake:
        heard = await hear(claude(fake))
    assert heard.text == "Let me."
    assert heard.failed.code == "broken_stream"


async def test_an_answer_of_anthropic_that_ran_out_of_tokens_is_marked() -> None:
    with FakeProvider(
        anthropic(*CALL[:-1], ("content_block_stop", {"index": 1}), *ends("max_tokens"))
    ).running() as fake:
        heard = await hear(claude(fake))
    assert heard.ended.reason == "length"


@pytest.mark.parametrize(
    ("status", "kind", "words", "code"),
    [
        (401, "authentication_error", f"invalid x-api-key {KEY}", "auth"),
        (404, "not_found_error", "model: claude-test", "unknown_model"),
        (400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum", "context_too_long"),
        (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", "rate_limited"),
        (529, "overloaded_error", "Overloaded", "server"),
    ],
)
async def test_failures_of_anthropic_have_the_same_messages(status: int, kind: str, words: str, code: str) -> None:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": words}}).encode()
    answer = Answer(status=status, body=body, type="application/json", headers={"retry-after-ms": "1"})
    with FakeProvider(answer).running() as fake:
        failure = (await hear(claude(fake))).failed
    assert failure.code == code
    assert KEY not in str(failure) + failure.detail


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=404, body=b'{"error": {"message": "not found"}}', type="application/json"),
        Answer(body=b"<html>Not here</html>", type="text/html"),
    ],
)
@pytest.mark.parametrize(("speaker", "path"), [(claude, "/v1/messages"), (gemini, "/v1beta/models/…")])
async def test_a_wrong_base_url_is_reported_with_the_path_that_is_added_to_it(
    speaker: Callable[[FakeProvider], ProviderModel], path: str, answer: Answer
) -> None:
    with FakeProvider(answer).running() as fake:
        fix = (await hear(speaker(fake))).failed.fix
    assert fix.endswith(f"Pegboard adds {path} to it.")
    assert fake.asked[0].path.startswith(path.removesuffix("…"))


async def test_an_error_in_the_middle_of_an_answer_of_anthropic_ends_it() -> None:
    error = ("error", {"error": {"type": "overloaded_error", "message": "Overloaded"}})
    with FakeProvider(anthropic(*TEXT, error)).running() as fake:
        heard = await hear(claude(fake))
    assert heard.text == "Let me."
    assert (heard.failed.code, heard.failed.detail) == ("server", "Overloaded")


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize(
    ("speaker", "answer"), [(claude, anthropic(*TEXT[:2])), (gemini, google(candidate({"text": "Let "})))]
)
async def test_closing_the_stream_ends_the_answer_at_the_server_too(
    speaker: Callable[[FakeProvider], ProviderModel], answer: Answer
) -> None:
    with FakeProvider(replace(answer, end="hang")).running() as fake:
        model = speaker(fake)
        async with aclosing(model.stream(Prompt(messages=CONVERSATION))) as events:
            assert await anext(events) == TextDelta(text="Let ")
        assert await asyncio.to_thread(fake.left.wait, 30)
        await model.close()


async def test_an_error_in_the_middle_of_an_answer_of_google_ends_the_connection() -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    error = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    with FakeProvider(replace(google(candidate({"text": "Let "}), error), end="hang")).running() as fake:
        model = gemini(fake)
        async with aclosing(model.stream(Prompt(messages=CONVERSATION))) as events:
            assert await anext(events) == TextDelta(text="Let ")
            with pytest.raises(ModelError, match="in the middle of its answer: The model is overloaded"):
                await anext(events)
        assert await asyncio.to_thread(fake.left.wait, 30)
        await model.close()
    # The library leaves generators to the loop, which closes them when they are collected.
    gc.collect()
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others, timeout=30)
    assert failures == []


async def test_google_streams_text_and_calls_and_receives_the_results() -> None:
    made = {"functionCall": {"name": "fs_list_dir", "args": {"path": "src"}}}
    with FakeProvider(google(candidate({"text": "Let me."}), candidate(made, finish="STOP"))).running() as fake:
        heard = await hear(gemini(fake), *CONVERSATION)
    assert heard.text == "Let me."
    ((name, arguments),) = heard.calls
    assert (name, json.loads(arguments)) == ("fs_list_dir", {"path": "src"})
    (call,) = heard.ended.message.calls
    assert (call.name, json.loads(call.arguments)) == ("fs_list_dir", {"path": "src"})
    assert (heard.ended.reason, heard.ended.usage) == ("calls", Usage(input_tokens=7, output_tokens=3))
    assert any(KEY in value for value in fake.asked[0].headers.values())


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
async def test_an_invalid_call_of_a_model_of_google_is_reported_as_such(reason: str) -> None:
    with FakeProvider(google(candidate({"text": "Let me."}), candidate(finish=reason))).running() as fake:
        failed = (await hear(gemini(fake))).failed
    assert (failed.code, failed.detail) == ("server", reason)
    assert str(failed).endswith(f"in the middle of its answer: {reason}.")
    assert failed.fix == "Try again, or use another model: this one wrote an invalid call."


@pytest.mark.parametrize(
    ("chunk", "words"),
    [
        (candidate(finish="SAFETY"), "SAFETY"),
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "PROHIBITED_CONTENT"),
        (
            {"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "Against our policy"}},
            "Against our policy",
        ),
    ],
)
async def test_a_message_that_google_blocks_is_a_refusal_with_its_reason(chunk: dict[str, Any], words: str) -> None:
    with FakeProvider(google(chunk)).running() as fake:
        failed = (await hear(gemini(fake))).failed
    assert (failed.code, str(failed)) == ("refused", f"gemini-test refused to answer: {words}.")


async def test_an_unfinished_answer_of_google_is_a_failure() -> None:
    with FakeProvider(google(candidate({"text": "Let me."}))).running() as fake:
        assert (await hear(gemini(fake))).failed.code == "broken_stream"


@pytest.mark.parametrize(
    ("status", "kind", "words", "code"),
    [
        (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", "auth"),
        (404, "NOT_FOUND", "models/x is not found for API version v1beta", "unknown_model"),
        (429, "RESOURCE_EXHAUSTED", "Quota exceeded", "rate_limited"),
        (503, "UNAVAILABLE", "The model is overloaded. Please try again later.", "server"),
    ],
)
async def test_failures_of_google_have_the_same_messages(status: int, kind: str, words: str, code: str) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    error = {"code": status, "status": kind, "message": words} | ({"details": details} if code == "auth" else {})
    answer = Answer(status=status, body=json.dumps({"error": error}).encode(), type="application/json")
    with FakeProvider(answer).running() as fake:
        assert (await hear(gemini(fake))).failed.code == code


@pytest.mark.parametrize(("name", "library"), [("anthropic:claude", "anthropic"), ("google:gemini", "google.genai")])
async def test_a_missing_library_is_reported_with_how_to_install_it(
    name: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialect = name.partition(":")[0]
    for loaded in [*sys.modules]:
        if loaded.startswith((f"pydantic_ai.models.{dialect}", f"pydantic_ai.providers.{dialect}")):
            monkeypatch.delitem(sys.modules, loaded)
    # None is Python's own mark for a module that can't be imported.
    monkeypatch.setitem(sys.modules, library, None)
    importlib.invalidate_caches()
    failure = (await hear(model(name, base_url="http://127.0.0.1:9", key=lambda _: KEY))).failed
    assert failure.code == "not_configured"
    assert f"pip install 'pegboard[{dialect}]'" in failure.fix
