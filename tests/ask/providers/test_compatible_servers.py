"""Answers of OpenAI-compatible servers that depart from OpenAI's protocol, over real connections."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from listening import KEY, hear, reach
from provider import Answer, FakeProvider, call, delta, fails, says, usage

from pegboard.ask.providers import model
from pegboard.ask.providers.endpoint import PROVIDERS
from pegboard.models.conversation import (
    Message,
    ModelMessage,
    Prompt,
    ProposedCall,
    TextDelta,
    Thinking,
    ToolMessage,
    Usage,
    UserMessage,
)


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize("end", [b"data: [DONE]\n\n", b"data:[DONE]", b"\r\ndata: [DONE]\r\n\r\n"])
@pytest.mark.parametrize("finish", [None, ""])
async def test_text_before_the_end_marker_is_a_complete_answer_even_without_a_finish_reason(
    finish: str | None, end: bytes
) -> None:
    pieces = [delta(finish, content="data: "), delta(finish, content="[DONE]")]
    with FakeProvider(Answer([*pieces, end[:9], end[9:]], end="close")).running() as fake:
        heard = await hear(reach(fake, "my-own:fake"))
    assert (heard.ended.reason, heard.ended.message.text) == ("stop", "data: [DONE]")


@pytest.mark.promise("ASK-5")
async def test_text_that_quotes_the_end_marker_is_still_cut_off_without_one() -> None:
    pieces = [delta(content="data: [DONE]"), delta(content="\ndata: [DONE]\n\n")]
    with FakeProvider(Answer(pieces, end="close")).running() as fake:
        assert (await hear(reach(fake, "my-own:fake"))).failed.code == "broken_stream"


@pytest.mark.promise("ASK-5", "SEC-6")
async def test_a_call_before_the_end_marker_is_not_run_without_a_finish_reason_and_the_error_says_why() -> None:
    pieces = [delta(content="I look."), call(id="a", name="fs_list_dir", arguments='{"path": "src"}')]
    with FakeProvider(Answer(pieces)).running() as fake:
        failure = (await hear(reach(fake, "my-own:fake"))).failed
    assert "ended its answer without a finish_reason" in str(failure)
    assert "update the server" in failure.fix


TOKENS: dict[str, Any] = usage(10, 5)["usage"]
ENDED = {"index": 0, "delta": {}, "finish_reason": "stop"}


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([delta("stop") | {"x_groq": {"id": "req_1", "usage": TOKENS}}], id="as Groq"),
        pytest.param([delta() | {"choices": [ENDED | {"usage": TOKENS}]}], id="as Moonshot"),
        pytest.param([delta("stop") | {"x_groq": {"usage": TOKENS}}, usage(10, 5)], id="in two fields"),
        pytest.param(
            [delta(content=".") | {"usage": usage(10, 3)["usage"]}, delta("stop") | {"usage": TOKENS}],
            id="so far with each piece",
        ),
    ],
)
async def test_the_usage_is_read_wherever_a_server_reports_it_and_counted_once(chunks: list[dict[str, Any]]) -> None:
    first = delta(content="Four") | {"x_groq": {"id": "req_1"}, "usage": None}
    with FakeProvider(Answer([first, *chunks])).running() as fake:
        assert (await hear(reach(fake, "my-own:fake"))).ended.usage == Usage(input_tokens=10, output_tokens=5)


REJECTIONS = [
    {"object": "error", "message": {"detail": [{"loc": ["body", "stream_options", "include_usage"], "msg": "Extra"}]}},
    {"error": {"message": "Unknown parameter: 'stream_options'.", "param": "stream_options"}},
]


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize("body", REJECTIONS, ids=["as Mistral", "as OpenAI"])
async def test_a_server_that_rejects_the_request_for_the_usage_is_asked_without_it_from_then_on(
    body: dict[str, Any],
) -> None:
    rejection = Answer(status=422, body=json.dumps(body).encode(), type="application/json")
    with FakeProvider(rejection, says("Four."), says("Five.")).running() as fake:
        speaker = reach(fake, "mistral:fake")
        said = [
            event.text
            for prompt in [Prompt(messages=(UserMessage(text="2 + 2?"),))] * 2
            async for event in speaker.stream(prompt)
            if isinstance(event, TextDelta)
        ]
        await speaker.close()
    assert said == ["Four.", "Five."]
    assert ["stream_options" in asked.body for asked in fake.asked] == [True, False, False]


@pytest.mark.promise("ASK-5")
async def test_a_server_that_rejects_the_request_for_the_usage_again_is_not_asked_a_third_time() -> None:
    with FakeProvider(fails(400, "stream_options: invalid")).running() as fake:
        assert (await hear(reach(fake, "mistral:fake"))).failed.code == "bad_request"
        assert len(fake.asked) == 2


@pytest.mark.promise("ASK-5")
async def test_calls_of_another_provider_are_sent_to_openai_with_ids_that_are_short_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = ["call_1", "call_" + "1" * 36, "functions.a:0"]
    calls = tuple(ProposedCall(provider_id=id_, name="fs_list_dir", arguments="{}") for id_ in ids)
    results = [ToolMessage(provider_id=id_, name="fs_list_dir", text=id_) for id_ in ids]
    with FakeProvider(says("Four.")).running() as fake:
        monkeypatch.setitem(PROVIDERS, "openai", replace(PROVIDERS["openai"], base_url=fake.url))
        for speaker in (model("openai:fake", base_url=None, key=lambda _: KEY), reach(fake, "openai:fake")):
            await hear(speaker, UserMessage(text="Hi"), ModelMessage(calls=calls), *results)
    sent, as_they_are = ([answer["tool_call_id"] for answer in asked.body["messages"][2:]] for asked in fake.asked)
    assert (sent[0], sent[2], len(sent[1]) <= 40) == ("call_1", "functions.a:0", True)
    assert as_they_are == ids


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize("name", ["mistral:fake", "vllm:mistralai/Devstral-Small", "openrouter:mistralai/fake"])
async def test_calls_of_another_provider_are_sent_to_mistral_with_ids_that_it_accepts(name: str) -> None:
    ids = ["call_1", "Mistral01", "call_2"]
    calls = tuple(ProposedCall(provider_id=id_, name="fs_list_dir", arguments="{}") for id_ in ids)
    results = [ToolMessage(provider_id=id_, name="fs_list_dir", text=id_) for id_ in ids]
    with FakeProvider(says("Four.")).running() as fake:
        await hear(reach(fake, name), UserMessage(text="Hi"), ModelMessage(calls=calls), *results)
    _, called, *answered = fake.asked[0].body["messages"]
    sent = [call["id"] for call in called["tool_calls"]]
    assert all(re.fullmatch("[A-Za-z0-9]{9}", id_) for id_ in sent)
    assert (len(set(sent)), sent[1]) == (3, "Mistral01")
    assert [answer["tool_call_id"] for answer in answered] == sent
    assert [answer["content"] for answer in answered] == ids


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize("name", ["my-own:fake", "openrouter:a/fake"])
async def test_events_without_data_that_keep_a_connection_open_are_ignored(name: str) -> None:
    empty = b"retry: 3000\n\n", b"id: 7\n: ping\n\n", b"event: ping\n\n", b"data: \n\n"
    with FakeProvider(Answer([*empty, delta(content="Four."), *empty, delta("stop")])).running() as fake:
        assert (await hear(reach(fake, name))).ended.message.text == "Four."


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize(
    ("name", "expected"),
    [("deepseek:deepseek-v4-pro", ["", "", "Hm."]), ("deepseek:deepseek-reasoner", [None, None, "Hm."])],
)
async def test_messages_of_earlier_questions_are_sent_with_empty_reasoning_to_models_that_require_it(
    name: str, expected: list[str | None]
) -> None:
    first, second = (ProposedCall(provider_id=id_, name="fs_list_dir", arguments="{}") for id_ in "ab")
    thought = Thinking(text="Hm.", field="reasoning_content", signature=None, provider="deepseek")
    conversation: list[Message] = [
        UserMessage(text="Hi"),
        ModelMessage(calls=(first,)),
        ToolMessage(provider_id="a", name="fs_list_dir", text="[]"),
        ModelMessage(text="Nothing."),
        UserMessage(text="Again"),
        ModelMessage(calls=(second,), thinking=(thought,)),
        ToolMessage(provider_id="b", name="fs_list_dir", text="[]"),
    ]
    with FakeProvider(says("Four.")).running() as fake:
        await hear(reach(fake, name), *conversation)
    sent = [message for message in fake.asked[0].body["messages"] if message["role"] == "assistant"]
    assert [message.get("reasoning_content") for message in sent] == expected
