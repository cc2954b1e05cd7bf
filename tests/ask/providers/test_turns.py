"""A model's answer as it arrives: over real connections, from a scripted server."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import aclosing
from typing import Any

import pytest
from listening import KEY, Heard, hear, reach
from provider import Answer, FakeProvider, call, delta, proposes, says, usage

from pegboard.ask.providers import model
from pegboard.ask.providers.price import price
from pegboard.models.conversation import (
    ModelMessage,
    OfferedTool,
    Prompt,
    ProposedCall,
    SystemMessage,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolMessage,
    Usage,
    UserMessage,
)

PROMPT = Prompt(messages=(UserMessage(text="Hello"),))


@pytest.mark.promise("ASK-5")
async def test_text_arrives_in_the_pieces_that_were_sent() -> None:
    with FakeProvider(says("Hel", "lo ", "you.")).running() as fake:
        heard = await hear(reach(fake))
    assert [event.text for event in heard.events if isinstance(event, TextDelta)] == ["Hel", "lo ", "you."]
    assert heard.ended.message == ModelMessage(text="Hello you.")
    assert heard.ended.usage == Usage(input_tokens=10, output_tokens=5)
    assert heard.ended.reason == "stop"


async def test_a_call_arrives_with_its_name_first_and_its_arguments_in_pieces() -> None:
    with FakeProvider(proposes("fs_list_dir", {"path": "src"})).running() as fake:
        heard = await hear(reach(fake))
    assert heard.calls == [("fs_list_dir", '{"path": "src"}')]
    assert len(heard.events) == 3
    proposed = ProposedCall(provider_id="call_1", name="fs_list_dir", arguments='{"path": "src"}')
    assert heard.ended.message == ModelMessage(calls=(proposed,))
    assert heard.ended.reason == "calls"


async def test_several_calls_of_a_turn_are_kept_apart_though_their_pieces_are_mixed() -> None:
    chunks = [
        delta(content="Let me look."),
        call(0, id="a", name="fs_list_dir", arguments='{"pa'),
        call(1, id="b", name="time_now", arguments=""),
        call(0, arguments='th": "x"}'),
        call(1, arguments="{}"),
        delta("tool_calls"),
    ]
    with FakeProvider(Answer(chunks)).running() as fake:
        heard = await hear(reach(fake))
    assert heard.text == "Let me look."
    assert heard.calls == [("fs_list_dir", '{"path": "x"}'), ("time_now", "{}")]
    assert [(made.provider_id, made.arguments) for made in heard.ended.message.calls] == [
        ("a", '{"path": "x"}'),
        ("b", "{}"),
    ]


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param(
            [
                call(0, id="a", name="fs_list_dir", arguments='{"path": "x"}'),
                call(0, id="b", name="fs_list_dir", arguments='{"path": "y"}'),
            ],
            ['{"path": "x"}', '{"path": "y"}'],
            id="whole calls with one index",
        ),
        pytest.param(
            [
                call(0, name="fs_list_dir", arguments='{"path": "x"}'),
                call(0, name="fs_list_dir", arguments='{"path": "y"}'),
            ],
            ['{"path": "x"}', '{"path": "y"}'],
            id="whole calls with one index and no id",
        ),
        pytest.param(
            [
                call(0, id="a", name="fs_list_dir", arguments=""),
                call(0, arguments='{"path": "x"}'),
                call(0, id="b", name="fs_list_dir", arguments=""),
                call(0, arguments='{"path": '),
                call(0, arguments='"y"}'),
            ],
            ['{"path": "x"}', '{"path": "y"}'],
            id="calls in pieces with one index",
        ),
        pytest.param(
            [
                call(0, id="a", name="fs_list_dir", arguments='{"path": '),
                call(0, id="a", name="fs_list_dir", arguments='"x"}'),
                call(0, id="a", name="fs_list_dir", arguments=""),
            ],
            ['{"path": "x"}'],
            id="id and name with each piece",
        ),
        pytest.param(
            [
                call(0, name="fs_list_dir", arguments='"{}"'),
                call(0, name="fs_list_dir", arguments='"{}"'),
            ],
            ['"{}"', '"{}"'],
            id="whole calls with quoted arguments and one index",
        ),
        pytest.param(
            [
                call(0, name="fs_list_dir", arguments='{"path": "x"}'),
                call(0, name="fs_list_dir", arguments=""),
            ],
            ['{"path": "x"}'],
            id="name with each piece and no id",
        ),
        pytest.param(
            [
                call(0, id="a", name="fs_list_dir", arguments=""),
                call(0, id="b", name="fs_list_dir", arguments='{"path": '),
                call(0, id="c", name="fs_list_dir", arguments='"x"}'),
            ],
            ['{"path": "x"}'],
            id="another id with each piece",
        ),
        pytest.param(
            [call(0, id="a", name="fs_", arguments=""), call(0, name="list_dir", arguments='{"path": "x"}')],
            ['{"path": "x"}'],
            id="name in pieces",
        ),
    ],
)
async def test_calls_of_servers_with_wrong_indexes_or_repeated_names_are_read_as_they_were_meant(
    chunks: list[dict[str, Any]], expected: list[str]
) -> None:
    with FakeProvider(Answer([*chunks, delta("tool_calls")])).running() as fake:
        heard = await hear(reach(fake))
    assert heard.calls == [("fs_list_dir", arguments) for arguments in expected]
    assert [(made.name, made.arguments) for made in heard.ended.message.calls] == heard.calls


async def test_calls_of_openrouter_with_one_index_or_repeated_names_are_kept_apart() -> None:
    chunks = [
        call(0, id="a", name="time_now", arguments="{}"),
        call(0, id="b", name="fs_list_dir", arguments='{"path": '),
        call(0, id="b", name="fs_list_dir", arguments='"x"}'),
    ]
    with FakeProvider(Answer([*chunks, delta("tool_calls")])).running() as fake:
        heard = await hear(reach(fake, "openrouter:google/fake"))
    assert heard.calls == [("time_now", "{}"), ("fs_list_dir", '{"path": "x"}')]


async def test_calls_count_as_calls_even_if_the_finish_reason_is_stop() -> None:
    with FakeProvider(Answer([call(id="a", name="time_now", arguments="{}"), delta("stop")])).running() as fake:
        assert (await hear(reach(fake))).ended.reason == "calls"


@pytest.mark.parametrize("last", [{"delta": None}, {}, {"message": {"role": "assistant", "content": "Hi."}}])
async def test_the_last_chunk_may_have_no_delta(last: dict[str, Any]) -> None:
    chunk = delta() | {"choices": [{"index": 0, "finish_reason": "stop", **last}]}
    with FakeProvider(Answer([delta(content="Hi."), chunk])).running() as fake:
        ended = (await hear(reach(fake))).ended
    assert (ended.reason, ended.message.text) == ("stop", "Hi.")


async def test_a_call_without_an_id_is_given_one_and_one_without_arguments_has_none_of_them() -> None:
    with FakeProvider(Answer([call(name="time_now"), delta("tool_calls")])).running() as fake:
        (made,) = (await hear(reach(fake))).ended.message.calls
    assert made.provider_id
    assert made.arguments == "{}"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_thinking_is_separate_from_the_answer(field: str) -> None:
    chunks = [delta(**{field: "Hm, "}), delta(**{field: "well."}), delta(content="Four."), delta("stop")]
    with FakeProvider(Answer(chunks)).running() as fake:
        heard = await hear(reach(fake, "llamacpp:fake"))
    assert [event.text for event in heard.events if isinstance(event, ThinkingDelta)] == ["Hm, ", "well."]
    assert heard.ended.message.text == heard.text == "Four."
    assert heard.ended.message.thinking == (), "only that of a turn with calls is sent again"


async def test_thinking_among_the_parts_of_a_content_is_separate_from_the_answer() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}  # as Mistral sends it
    chunks = [
        delta(content=[thought]),
        delta(content=[{"type": "text", "text": "Four"}]),
        delta(content="."),
        delta("stop"),
    ]
    with FakeProvider(Answer(chunks)).running() as fake:
        heard = await hear(reach(fake))
    assert [event.text for event in heard.events if isinstance(event, ThinkingDelta)] == ["Hm."]
    assert (heard.ended.message.text, heard.ended.message.thinking) == ("Four.", ())


async def test_tokens_from_a_cache_cost_less_and_impossible_numbers_and_other_servers_have_no_price() -> None:
    report = usage(10_000, 5)
    report["usage"]["prompt_tokens_details"] = {"cached_tokens": 9_000}
    with FakeProvider(Answer([delta(content="Hello."), delta("stop"), report])).running() as fake:
        heard = await hear(reach(fake))
    used = heard.ended.usage
    assert used == Usage(input_tokens=10_000, output_tokens=5, cached_tokens=9_000)
    uncached = price("openai:gpt-5-mini", None, Usage(input_tokens=10_000, output_tokens=5))
    cost = price("openai:gpt-5-mini", "https://API.openai.com/v1/", used)
    assert cost is not None
    assert uncached is not None
    assert 0 < cost < uncached / 2
    for impossible in (Usage(input_tokens=1, cached_tokens=2), Usage(input_tokens=-1)):
        assert price("openai:gpt-5-mini", None, impossible) is None
    assert price("openai:gpt-5-mini", "http://127.0.0.1:8080/v1", used) is None


async def test_thinking_that_a_small_model_writes_into_its_answer_is_separated() -> None:
    pieces = ["<think>", "Hm.", "</think>", "Four."]
    with FakeProvider(Answer([*(delta(content=piece) for piece in pieces), delta("stop")])).running() as fake:
        heard = await hear(reach(fake, "ollama:fake"))
    assert heard.thoughts == "Hm."
    assert heard.ended.message.text == heard.text == "Four."


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize(
    "pieces",
    [
        ["<think>\nHm, ", "well.</think>\n\nFour."],
        ["<think>\nHm, well.</think>Four."],
        ["\n", "<th", "ink>", "\nHm, well.", "</thi", "nk>", "\n", "\nFo", "ur."],
        list("<think>\nHm, well.</think>\nFour."),
    ],
)
async def test_thinking_is_separated_wherever_its_tags_are_cut(pieces: list[str]) -> None:
    with FakeProvider(Answer([*(delta(content=piece) for piece in pieces), delta("stop")])).running() as fake:
        heard = await hear(reach(fake, "llamacpp:fake"))
    assert heard.thoughts.strip() == "Hm, well."
    assert heard.ended.message.text == heard.text == "Four."


@pytest.mark.parametrize(
    "pieces", [["a < b, and the tag is <think>", " or </think>."], ["<", "b>Bold</b>"], ["  <th"], ["1 <", " 2"]]
)
async def test_text_without_thinking_arrives_unchanged(pieces: list[str]) -> None:
    with FakeProvider(Answer([*(delta(content=piece) for piece in pieces), delta("stop")])).running() as fake:
        heard = await hear(reach(fake, "llamacpp:fake"))
    assert not heard.thoughts
    assert heard.ended.message.text == heard.text == "".join(pieces)


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize(
    "pieces",
    [
        ["Hm, <b>", " well.\n</think>\n\nFour, says `</think>`."],
        ["Hm, <b> well.", "\n", " </th", "ink>", "\n", "\nFour, says ", "`</think>`."],
        list("```\n</think>\n```\nHm, <b> well.\n</think>Four, says `</think>`."),
        list("so " * 150 + "\n```" + "x" * 300 + "\n```\nHm, <b> well.\n</think>\nFour, says `</think>`."),
    ],
)
async def test_thinking_whose_opening_tag_is_in_the_models_template_is_separated(pieces: list[str]) -> None:
    with FakeProvider(Answer([*(delta(content=piece) for piece in pieces), delta("stop")])).running() as fake:
        heard = await hear(reach(fake, "llamacpp:fake"))
    end = heard.events.index(ThinkingEnded())
    before, after = Heard(events=heard.events[:end]).text, Heard(events=heard.events[end:]).text
    assert before.strip().endswith("Hm, <b> well.")
    assert heard.ended.message.text == after == "Four, says `</think>`."


async def test_an_answer_may_quote_the_opening_tag_in_the_line_of_the_closing_one() -> None:
    pieces = ["Hm, well.\n", "</think>", "Four, says ", "`<think>`."]
    with FakeProvider(Answer([*(delta(content=piece) for piece in pieces), delta("stop")])).running() as fake:
        heard = await hear(reach(fake, "llamacpp:fake"))
    assert ThinkingEnded() in heard.events
    assert heard.ended.message.text == "Four, says `<think>`."


@pytest.mark.parametrize(
    "pieces",
    [
        ["The tag is\n", "</th", "ing>."],
        ["Write <think> first and\n", "</think> last."],
        ["```\n", "</think>\n", "```\n"],
        list("```" + "x" * 300 + "\n</think>\n```\n"),
        list("y " * 150 + "<think>\n</think>\n"),
        ["All.\n  </thi"],
        ["Write </think>."],
    ],
)
async def test_an_answer_that_quotes_the_closing_tag_arrives_unchanged(pieces: list[str]) -> None:
    with FakeProvider(Answer([*(delta(content=piece) for piece in pieces), delta("stop")])).running() as fake:
        heard = await hear(reach(fake, "llamacpp:fake"))
    assert ThinkingEnded() not in heard.events
    assert heard.ended.message.text == heard.text == "".join(pieces)


@pytest.mark.promise("ASK-5")
async def test_an_answer_that_ran_out_of_tokens_is_marked_and_its_arguments_are_unchanged() -> None:
    with FakeProvider(
        Answer([call(id="a", name="fs_list_dir", arguments='{"path": "sr'), delta("length")])
    ).running() as fake:
        heard = await hear(reach(fake))
    assert heard.ended.reason == "length"
    assert heard.ended.message.calls[0].arguments == '{"path": "sr'


async def test_an_answer_that_ran_out_of_tokens_before_the_name_of_a_call_is_cut_off_and_not_wrong() -> None:
    with FakeProvider(Answer([delta(content="One"), call(id="a", arguments="{"), delta("length")])).running() as fake:
        heard = await hear(reach(fake))
    assert (heard.ended.reason, heard.ended.message.text, heard.ended.message.calls) == ("length", "One", ())


@pytest.mark.promise("ASK-5")
async def test_a_call_whose_name_comes_after_its_arguments_is_complete() -> None:
    pieces = [
        call(id="a", arguments='{"path": '),
        call(1, id="b", name="time_now", arguments="{}"),
        call(name="fs_list_dir", arguments='"src"}'),
        delta("tool_calls"),
    ]
    with FakeProvider(Answer(pieces)).running() as fake:
        heard = await hear(reach(fake))
    assert {(made.provider_id, made.name, made.arguments) for made in heard.ended.message.calls} == {
        ("a", "fs_list_dir", '{"path": "src"}'),
        ("b", "time_now", "{}"),
    }


@pytest.mark.promise("ASK-5", "SEC-6")
@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("eos", "calls"),
        ("eos_token", "calls"),
        ("end", "calls"),
        ("stop_sequence", "calls"),
        ("STOP", "calls"),
        ("tool_use", "calls"),
        ("model_length", "length"),
        ("MAX_TOKENS", "length"),
        ("abort", "unknown"),
        ("pause_turn", "unknown"),
    ],
)
async def test_the_reasons_of_other_servers_for_the_end_of_an_answer_are_known(finish: str, reason: str) -> None:
    with FakeProvider(
        Answer([call(id="a", name="fs_list_dir", arguments='{"path": "src"}'), delta(finish)])
    ).running() as fake:
        heard = await hear(reach(fake, "llamacpp:fake"))
    assert heard.ended.reason == reason


async def test_an_answer_that_was_filtered_in_the_middle_is_marked() -> None:
    with FakeProvider(Answer([delta(content="First"), delta("content_filter")])).running() as fake:
        heard = await hear(reach(fake))
    assert (heard.ended.reason, heard.ended.message.text) == ("filter", "First")


async def test_the_whole_conversation_is_sent_as_it_was() -> None:
    conversation = (
        SystemMessage(text="Be brief."),
        UserMessage(text="What is in src?"),
        ModelMessage(
            text="I look.",
            calls=(ProposedCall(provider_id="call_1", name="fs_list_dir", arguments='{"path":"src"}'),),
        ),
        ToolMessage(provider_id="call_1", name="fs_list_dir", text='["a.py"]'),
        ModelMessage(text="a.py is."),
        UserMessage(text="  And\nin docs? <b>"),
    )
    with FakeProvider(says("Nothing.")).running() as fake:
        await hear(reach(fake), *conversation, max_tokens=50, temperature=0.5)
    body = fake.asked[0].body
    assert [message["role"] for message in body["messages"]] == [
        "system", "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    assert body["messages"][0]["content"] == "Be brief."
    assert body["messages"][2]["tool_calls"][0]["function"] == {"name": "fs_list_dir", "arguments": '{"path":"src"}'}
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "call_1", "content": '["a.py"]'}
    assert body["messages"][5]["content"] == "  And\nin docs? <b>"
    assert (body["model"], body["stream"], body["max_tokens"], body["temperature"]) == ("fake", True, 50, 0.5)


async def test_the_schemas_of_tools_are_sent_unchanged() -> None:
    schema = {
        "type": "object",
        "title": "Odd",
        "properties": {
            "a": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
            "b": {"$ref": "#/$defs/b", "description": "With words beside it."},
            "c": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
        },
        "$defs": {"b": {"enum": ["x", 1, None]}},
    }
    tool = OfferedTool(name="odd", description="Is odd.", parameters=schema)
    with FakeProvider(says("Fine.")).running() as fake:
        await hear(reach(fake, "llamacpp:fake"), tools=[tool])
    (sent,) = fake.asked[0].body["tools"]
    assert sent == {
        "type": "function",
        "function": {"name": "odd", "description": "Is odd.", "parameters": schema},
    }


async def test_no_tools_are_sent_if_none_is_offered() -> None:
    with FakeProvider(says("Fine.")).running() as fake:
        await hear(reach(fake), tools=[])
    assert "tools" not in fake.asked[0].body


async def test_invalid_calls_of_a_model_do_not_break_later_turns() -> None:
    bad = ProposedCall(provider_id="x", name="fs.list dir!" + "o" * 80, arguments='{"path": "sr')
    answer = ToolMessage(provider_id="x", name=bad.name, text="There is no such tool.", ok=False)
    with FakeProvider(says("Sorry.")).running() as fake:
        await hear(reach(fake), UserMessage(text="Hi"), ModelMessage(calls=(bad,)), answer, ModelMessage())
    sent = fake.asked[0].body["messages"]
    function = sent[1]["tool_calls"][0]["function"]
    assert function["name"] == ("fs_list_dir_" + "o" * 80)[:64]
    assert isinstance(json.loads(function["arguments"]), dict)
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]


@pytest.mark.parametrize(("key", "header"), [(KEY, f"Bearer {KEY}"), (f" {KEY}\n", f"Bearer {KEY}")])
async def test_the_key_goes_to_the_provider(key: str, header: str) -> None:
    with FakeProvider(says("Fine.")).running() as fake:
        await hear(reach(fake, key=key))
    assert fake.asked[0].headers["authorization"] == header


async def test_environment_variables_for_openai_are_not_sent_to_other_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    with FakeProvider(says("Fine.")).running() as fake:
        heard = await hear(reach(fake, "ollama:fake", key=None))
    assert heard.text == "Fine."
    assert KEY not in str(fake.asked[0].headers)


async def test_a_proxy_from_the_environment_is_not_used_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with FakeProvider(says("Fine.")).running() as fake:
        assert (await hear(reach(fake))).text == "Fine."


async def test_a_changed_key_is_used_from_the_next_turn() -> None:
    keys = iter(["old-key", "new-key"])
    with FakeProvider(says("Fine.")).running() as fake:
        speaker = model("openai:fake", base_url=fake.url, key=lambda _: next(keys))
        assert [event async for event in speaker.stream(PROMPT)]
        assert [event async for event in speaker.stream(PROMPT)]
        await speaker.close()
    assert [asked.headers["authorization"] for asked in fake.asked] == ["Bearer old-key", "Bearer new-key"]


async def test_several_turns_run_concurrently_while_the_key_changes() -> None:
    keys = iter(["old-key", "new-key", "new-key"])
    with FakeProvider(says("Fine.")).running() as fake:
        speaker = model("openai:fake", base_url=fake.url, key=lambda _: next(keys))
        async with aclosing(speaker.stream(PROMPT)) as first:
            heard = [await anext(first)]
            others = [[event async for event in speaker.stream(PROMPT)] for _ in range(2)]
            heard += [event async for event in first]
        await speaker.close()
    assert others == [heard, heard]


async def test_closing_the_stream_ends_the_answer_at_the_server_too() -> None:
    with FakeProvider(Answer([delta(content="One ")], end="hang")).running() as fake:
        speaker = reach(fake)
        async with aclosing(speaker.stream(PROMPT)) as events:
            assert await anext(events) == TextDelta(text="One ")
        assert await asyncio.to_thread(fake.left.wait, 30)
        await speaker.close()


async def test_cancelling_in_the_middle_of_an_answer_ends_it_at_the_server_too() -> None:
    with FakeProvider(Answer([delta(content="One ")], end="hang")).running() as fake:
        speaker = reach(fake)
        came = asyncio.Event()

        async def listen() -> None:
            async with aclosing(speaker.stream(PROMPT)) as events:
                async for _ in events:
                    came.set()

        listening = asyncio.create_task(listen())
        await asyncio.wait_for(came.wait(), 30)
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening
        assert await asyncio.to_thread(fake.left.wait, 30)
        await speaker.close()


@pytest.mark.slow
@pytest.mark.promise("ASK-5", "TUI-2")
async def test_five_thousand_pieces_all_arrive_without_blocking_other_tasks() -> None:
    pieces = [f"{number} " for number in range(5000)]
    # As short as possible, so that more than a thousand of them are read in one chunk.
    chunks = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    with FakeProvider(Answer([*chunks, delta("stop"), usage(1, 5000)], at_once=True)).running() as fake:
        speaker = reach(fake)
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        heard: list[str] = []
        in_one_go: Counter[int] = Counter()
        other = asyncio.create_task(others())
        async with aclosing(speaker.stream(PROMPT)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    heard.append(event.text)
                    in_one_go[turns] += 1
        other.cancel()
        await speaker.close()
    assert heard == pieces
    assert max(in_one_go.values()) < 700


async def test_one_model_works_in_one_event_loop_after_another() -> None:
    def elsewhere() -> str:
        return asyncio.run(hear_once())

    async def hear_once() -> str:
        return "".join([event.text async for event in speaker.stream(PROMPT) if isinstance(event, TextDelta)])

    with FakeProvider(says("Fine.")).running() as fake:
        speaker = reach(fake)
        assert await asyncio.to_thread(elsewhere) == "Fine."
        assert await hear_once() == "Fine."
        await speaker.close()
