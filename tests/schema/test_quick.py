"""Quick acceptance of arguments never accepts what the validator rejects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pegboard.models import JsonObject
from pegboard.schema.quick import quick_acceptance
from pegboard.schema.validation import Validator

TYPES = ["string", "integer", "number", "boolean", "null", "array", "object"]
NODES: st.SearchStrategy[Any] = st.one_of(
    st.just({}),
    st.booleans(),
    st.builds(lambda name: {"type": name, "title": "T"}, st.sampled_from(TYPES)),
    st.builds(lambda names: {"type": names}, st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True)),
    st.just({"type": "string", "format": "date"}),
    st.just({"type": "integer", "minimum": 3}),
    st.just({"enum": [1, "a"]}),
)
VALUES: st.SearchStrategy[JsonValue] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(),
    st.just(10**400),
    st.sampled_from(["", "a", "2026-01-01"]),
    st.just([]),
    st.just({}),
)
SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abc"), NODES)},
    optional={
        "required": st.lists(st.sampled_from("abcd"), unique=True),
        "additionalProperties": st.one_of(st.booleans(), st.just({"type": "string"})),
        "minProperties": st.just(1),
    },
)


@pytest.mark.promise("EXE-3")
@given(schema=SCHEMAS, arguments=st.dictionaries(st.sampled_from("abcd"), VALUES))
def test_accepted_arguments_are_valid(schema: JsonObject, arguments: JsonObject) -> None:
    validator = Validator(schema)
    accepts = quick_acceptance(validator.schema)
    if accepts is not None and accepts(arguments):
        assert validator.faults_within(validator.schema, arguments, "") == ()


@pytest.mark.promise("EXE-3")
def test_a_usual_call_is_accepted() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"value": {}, "count": {"type": "integer", "default": 1}},
        "required": ["value"],
        "additionalProperties": False,
    }
    accepts = quick_acceptance(Validator(schema).schema)
    assert accepts is not None
    assert accepts({"value": [1], "count": 2})
    assert not accepts({"count": 2})
    assert not accepts({"value": 1, "count": True})
    assert not accepts({"value": 1, "other": 1})
    for infinite in ("inf", "-inf", "nan"):
        assert not accepts({"value": float(infinite)}), "the validator decides"
