"""Tools whose function gets all arguments as one dictionary, as in the Claude Agent SDK and modules of Strands."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pegboard.models import ToolSpec

Tool = Callable[[str], ToolSpec]

HEAD = """
from typing import Annotated, Any, TypedDict
import claude_agent_sdk as sdk
from claude_agent_sdk import tool
from pydantic import BaseModel

class Place(TypedDict):
    city: Annotated[str, "Name of the city."]
    days: int

class Query(BaseModel):
    text: str
    limit: int = 3

SHAPE = {"a": float, "b": Annotated[str, "What."]}
"""

FUNCTION = """
async def f(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": "done"}]}
"""


@pytest.mark.promise("DSC-3")
@pytest.mark.parametrize(
    ("decorator", "properties", "required", "signature"),
    [
        (
            'tool("add", "Add two.", {"a": float, "b": int})',
            {"a": {"type": "number"}, "b": {"type": "integer"}},
            ["a", "b"],
            "*, a: float, b: int",
        ),
        (
            'sdk.tool("add", "Add two.", input_schema=SHAPE)',
            {"a": {"type": "number"}, "b": {"type": "string", "description": "What."}},
            ["a", "b"],
            "*, a: float, b: Annotated[str, 'What.']",
        ),
        (
            'tool(name="add", description="Add two.", input_schema=Place)',
            {"city": {"type": "string", "description": "Name of the city."}, "days": {"type": "integer"}},
            ["city", "days"],
            "*, city, days",
        ),
        (
            'tool("add", "Add two.", Query.model_json_schema())',
            {"text": {"type": "string"}, "limit": {"type": "integer", "default": 3}},
            ["text"],
            "*, text, limit",
        ),
        (
            'tool("add", "Add two.", {"type": "object", "properties": {"n": {"minimum": 1}}, "required": ["n"]})',
            {"n": {"minimum": 1}},
            ["n"],
            "*, n",
        ),
    ],
)
def test_the_schema_in_the_decorator_declares_the_parameters(
    tool: Tool, decorator: str, properties: dict[str, object], required: list[str], signature: str
) -> None:
    spec = tool(f"{HEAD}@{decorator}{FUNCTION}")
    assert spec.description == "Add two."
    assert spec.input_schema["properties"] == properties
    assert spec.input_schema["required"] == required
    assert spec.signature.startswith(f"sample.f({signature})")
    assert spec.output_schema is None
    assert spec.problems == ()


@pytest.mark.promise("DSC-3")
def test_a_tool_without_arguments_has_no_parameters(tool: Tool) -> None:
    spec = tool(f'{HEAD}@tool("now", "What time is it.", {{}}){FUNCTION}')
    assert spec.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert spec.problems == ()


@pytest.mark.promise("DSC-3")
@pytest.mark.parametrize("schema", ["shape()", '{"type": "object", "properties": shape()}'])
def test_a_schema_that_only_running_the_file_would_show_is_a_problem(tool: Tool, schema: str) -> None:
    spec = tool(f'{HEAD}@tool("now", "What time is it.", {schema}){FUNCTION}')
    assert spec.input_schema["additionalProperties"] is True
    assert [(problem.message, problem.fix) for problem in spec.problems] == [
        (
            "The schema of `f` can't be read without running the file: any arguments are accepted.",
            'Write it in the decorator, such as `{"city": str}`.',
        )
    ]


MODULE = """
TOOL_SPEC = {
    "name": "forecast",
    "description": "Forecast the weather of a city.",
    "inputSchema": SCHEMA,
}

def forecast(tool, **kwargs):
    return {"toolUseId": tool["toolUseId"], "status": "success", "content": [{"text": "sunny"}]}

def helper(*, a: int):
    pass
"""


@pytest.mark.promise("DSC-3")
@pytest.mark.parametrize("within", ['{"json": %s}', "%s"])
def test_the_specification_of_a_module_declares_the_parameters_of_its_function(tool: Tool, within: str) -> None:
    schema = '{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}'
    spec = tool(MODULE.replace("SCHEMA", within % schema))
    assert spec.description == "Forecast the weather of a city."
    assert spec.input_schema == {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    assert spec.signature == "sample.forecast(*, city)"
    assert spec.problems == ()


@pytest.mark.promise("DSC-3")
def test_a_specification_of_another_function_changes_nothing(tool: Tool) -> None:
    source = MODULE.replace("SCHEMA", "{}").replace("def forecast(tool, **kwargs):", "def other(*, a: int):\n    'Do.'")
    assert tool(source).input_schema["properties"] == {"a": {"type": "integer"}}
