"""Preparation of arguments."""

from __future__ import annotations

import pytest

from pegboard.errors import FormFaults
from pegboard.models import JsonObject, PackHandler, ToolSpec
from pegboard.schema.arguments import prepare

SPEC = ToolSpec(
    name="t.list",
    pack="t",
    input_schema={
        "type": "object",
        "properties": {"path": {"type": "string"}, "max_depth": {"type": "integer", "default": 4}},
        "required": ["path"],
        "additionalProperties": False,
    },
    handler=PackHandler(pack="t", function="list", file="/t.py", line=1),
    parameter_aliases={"maxDepth": "max_depth", "depth": "max_depth"},
)


@pytest.mark.promise("SDK-14")
def test_other_names_of_parameters_are_resolved_before_validation() -> None:
    assert prepare(SPEC, {"maxDepth": 2, "path": "a"}) == {"max_depth": 2, "path": "a"}
    with pytest.raises(FormFaults) as caught:
        prepare(SPEC, {"maxDepth": "two", "path": "a"})
    assert [fault.path for fault in caught.value.faults] == ["/max_depth"]


@pytest.mark.promise("SDK-14")
@pytest.mark.parametrize(("first", "second"), [("max_depth", "maxDepth"), ("maxDepth", "depth")])
def test_two_names_of_one_parameter_are_reported_with_all_other_errors(first: str, second: str) -> None:
    with pytest.raises(FormFaults) as caught:
        prepare(SPEC, {first: 1, second: 1})
    assert [(fault.path, fault.message) for fault in caught.value.faults] == [
        (f"/{second}", f"is an alias of `{first}`, which is also set"),
        ("/path", "is required"),
    ]


def test_optional_defaults_are_left_to_the_tool_and_arguments_stay_unchanged() -> None:
    given: JsonObject = {"depth": 1, "path": "a"}
    assert prepare(SPEC, {"path": "a"}) == {"path": "a"}
    prepare(SPEC, given)
    assert given == {"depth": 1, "path": "a"}
