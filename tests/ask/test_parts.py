"""Names and conversations that providers accept, and files of sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.ask.conversation import sent
from pegboard.ask.export import as_json, as_markdown
from pegboard.ask.offer import Offer
from pegboard.models import PackHandler, ToolSpec
from pegboard.models.conversation import (
    Message,
    ModelMessage,
    ProposedCall,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from pegboard.models.session import Session, SessionEntry
from pegboard.runtime import Runtime
from pegboard.serve.offer import ServedTools

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
IDS = st.sampled_from(["1", "2", "3"])
CALLS = st.tuples(IDS, st.sampled_from(["{}", "", "{", "[1]", "null"])).map(
    lambda call: ProposedCall(provider_id=call[0], name="a_b", arguments=call[1])
)
MESSAGES: st.SearchStrategy[list[Message]] = st.lists(
    st.one_of(
        st.just(UserMessage(text="Go.")),
        st.lists(CALLS, max_size=3, unique_by=lambda call: call.provider_id).map(
            lambda calls: ModelMessage(text="Hm.", calls=tuple(calls))
        ),
        IDS.map(lambda id_: ToolMessage(provider_id=id_, name="a_b", text="3")),
    ),
    max_size=12,
)


def _spec(name: str, schema: dict[str, object] | None = None) -> ToolSpec:
    handler = PackHandler(pack="p", function="f", file="/p.py", line=1)
    return ToolSpec.model_validate(
        {"name": name, "pack": name.partition(".")[0], "input_schema": schema or {"type": "object"}, "handler": handler}
    )


@given(st.lists(st.text(min_size=1, max_size=100), unique=True, max_size=20))
def test_every_tool_has_a_unique_name_that_providers_accept_and_that_maps_back(names: list[str]) -> None:
    offer = Offer([_spec(f"p.{name}") for name in names], taken=["p_taken"])
    offered = [tool.name for tool in offer.tools()]
    assert len(set(offered)) == len(names)
    for name, spec in zip(offered, offer.specs, strict=True):
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name)
        assert name != "p_taken"
        assert offer.find(name) is spec
        assert offer.find(spec.name) in offer.specs


def test_names_are_the_tools_own_if_possible_and_stay_the_same() -> None:
    assert [tool.name for tool in Offer([_spec("fs.read_file")]).tools()] == ["fs_read_file"]
    both = [tool.name for tool in Offer([_spec("a.b_c"), _spec("a_b.c")]).tools()]
    assert len(set(both)) == 2
    assert [tool.name for tool in Offer([_spec("a_b.c"), _spec("a.b_c")]).tools()] == both[::-1]


def test_a_tool_with_the_name_that_digits_would_make_for_another_replaces_none() -> None:
    first, second = _spec("a.b_c"), _spec("a_b.c")
    marked, _ = Offer([first, second]).names
    same = _spec(marked)
    for specs in ([first, second, same], [same, second, first]):
        offer, served = Offer(specs), ServedTools(specs)
        assert set(offer.names.values()) == {"a.b_c", "a_b.c", marked}
        described, _ = served.page(None)
        found = [served.find(str(tool["name"])) for tool in described]
        assert sorted(spec.name for spec in found if spec) == sorted(spec.name for spec in specs)
        assert offer.find(marked) is served.find(marked) is same


@pytest.mark.parametrize("kind", [{}, {"type": ["object", "null"]}])
def test_the_schema_of_arguments_always_has_the_type_of_objects(kind: dict[str, object]) -> None:
    schema: dict[str, object] = {"properties": {"a": {}}, **kind}
    spec = _spec("p.tool", schema)
    assert [tool.parameters for tool in Offer([spec]).tools()] == [{**schema, "type": "object"}]
    assert ServedTools([spec]).input_schema("p.tool") == {**schema, "type": "object"}


def test_a_prefix_that_models_write_is_ignored_unless_a_tool_has_that_very_name() -> None:
    plain, prefixed = _spec("a.b"), _spec("functions.a_b")
    assert Offer([plain]).find("functions.a_b") is plain
    assert Offer([plain, prefixed]).find("functions.a_b") is prefixed
    assert Offer([plain]).find("functions.c") is None


@pytest.mark.promise("SDK-14")
def test_a_tool_that_was_renamed_is_found_under_the_name_by_which_it_was_offered_before() -> None:
    long = f"a.{'long' * 20}"
    renamed = _spec("a.new").model_copy(update={"aliases": ("a.old", "a.b_c", long, "a.more")})
    other = _spec("a_b.c")
    [offered] = Offer([_spec(long)]).names
    offer = Offer([renamed, other], taken=["a_more"])
    assert offer.find("a_old") is renamed
    assert offer.find(offered) is renamed
    assert offer.find("functions.a_old") is renamed
    assert offer.find("a_b_c") is other, "its own name comes first"
    assert offer.find("a_more") is None
    assert set(offer.names) == {"a_new", "a_b_c"}
    served = ServedTools([renamed, other])
    assert (served.find("a_old"), served.find("a_b_c")) == (renamed, other)


def test_parameters_are_always_those_of_an_object() -> None:
    [tool] = Offer([_spec("a.b", {"properties": {"x": {}}})]).tools()
    assert tool.parameters == {"type": "object", "properties": {"x": {}}}


@given(MESSAGES)
def test_a_model_is_sent_a_consistent_conversation_for_any_session(messages: list[Message]) -> None:
    out = sent("Be brief.", messages)
    assert isinstance(out[0], SystemMessage)
    open_calls: list[str] = []
    for before, message in pairwise(out):
        if isinstance(message, ToolMessage):
            assert message.provider_id in open_calls
            open_calls.remove(message.provider_id)
            continue
        assert open_calls == []
        if isinstance(message, UserMessage):
            assert not isinstance(before, UserMessage | ToolMessage)
        if isinstance(message, ModelMessage):
            open_calls = [call.provider_id for call in message.calls]
            assert all(isinstance(json.loads(call.arguments), dict) for call in message.calls)
    assert open_calls == []
    assert [m for m in out if isinstance(m, UserMessage)] == [m for m in messages if isinstance(m, UserMessage)]


def test_no_text_ends_its_code_block_in_the_markdown() -> None:
    session = Session(id="s", name="A `name`", created=NOON, changed=NOON, messages=2, model="m:n")
    call = ProposedCall(provider_id="1", name="a`b", arguments='{"x": "```"}')
    said: list[Message] = [
        UserMessage(text="Go."),
        ModelMessage(text="Yes.", calls=(call,)),
        ToolMessage(provider_id="1", name="a_b", text="```\n# no heading\n````"),
    ]
    entries = [SessionEntry(position=number, at=NOON, message=message) for number, message in enumerate(said)]
    text = as_markdown(session, entries)
    assert "`````\n```\n# no heading\n````\n`````" in text
    assert text.startswith("# A `name`\n\nSession `s`, 2025-06-01 12:00 UTC, m:n\n\n## You\n\nGo.")
    told = json.loads(as_json(session, entries))
    assert told["entries"][1]["message"]["calls"][0]["arguments"] == '{"x": "```"}'
    assert (told["id"], told["entries"][2]["message"]["role"]) == ("s", "tool")


def test_a_session_is_exported_by_the_runtime(open_runtime: Callable[..., Runtime]) -> None:
    runtime = open_runtime()
    runtime.sessions.start("s")
    runtime.sessions.append("s", UserMessage(text="Hello."))
    assert "## You\n\nHello." in runtime.sessions.export("s", "markdown")
