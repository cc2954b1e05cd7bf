"""Calls of tools whose functions get all arguments as one dictionary: Claude Agent SDK, modules of Strands."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any  # fixtures

import pytest

PACK = """
    import sys
    import types
    from dataclasses import dataclass

    sdk = types.ModuleType("claude_agent_sdk")

    @dataclass
    class SdkMcpTool:
        handler: object

    SdkMcpTool.__module__ = "claude_agent_sdk"
    sdk.tool = lambda name, description, schema: SdkMcpTool
    sys.modules["claude_agent_sdk"] = sdk

    from claude_agent_sdk import tool

    @tool("add", "Add two numbers.", {"a": float, "b": float})
    async def add(args):
        return {"content": [{"type": "text", "text": f"{args['a'] + args['b']}"}, {"type": "text", "text": "done"}]}

    @tool("fail", "Fail.", {})
    async def fail(args):
        return {"content": [{"type": "text", "text": "Division by zero."}], "is_error": True}

    @tool("link", "Return more than text.", {})
    async def link(args):
        return {"content": [{"type": "resource_link", "uri": "a:b"}]}
"""


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    file = tmp_path / "calculator.py"
    file.write_text(textwrap.dedent(PACK))
    return file


@pytest.mark.promise("EXE-4")
async def test_the_arguments_arrive_as_one_dictionary_and_the_result_is_the_text(harness: Any, pack: Path) -> None:
    assert (await harness.run("add", pack, a=1, b=2)).data == "3\ndone"


async def test_a_result_that_says_that_it_is_an_error_is_a_failure(harness: Any, pack: Path) -> None:
    result = await harness.run("fail", pack)
    assert not result.ok
    assert (result.error.code, result.error.message) == ("execution_error", "Division by zero.")


async def test_a_result_with_more_than_text_arrives_unchanged(harness: Any, pack: Path) -> None:
    assert (await harness.run("link", pack)).data == {"content": [{"type": "resource_link", "uri": "a:b"}]}


@pytest.mark.parametrize(
    ("result", "data", "error"),
    [
        (
            '{"status": "success", "content": [{"text": tool["input"]["city"]}, {"text": tool["name"]}]}',
            "Oslo\nf",
            None,
        ),
        ('{"status": "success", "content": [{"json": {"city": tool["input"]["city"]}}]}', {"city": "Oslo"}, None),
        ('{"status": "error", "content": [{"text": "No " + tool["input"]["city"]}]}', None, "No Oslo"),
    ],
)
@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_module_of_strands_gets_the_arguments_as_it_expects(
    harness: Any, tmp_path: Path, kind: str, result: str, data: object, error: str | None
) -> None:
    pack = tmp_path / "forecast.py"
    pack.write_text(
        f'TOOL_SPEC = {{"name": "f", "description": "Do.", "inputSchema": {{}}}}\n'
        f"{kind} f(tool, **kwargs):\n    return {result}\n"
    )
    done = await harness.run("f", pack, city="Oslo")
    assert done.data == data
    assert (done.error and done.error.message) == error


DECORATED = """
    class DecoratedFunctionTool:
        def __init__(self, function):
            self.function = function

        def __call__(self, *args, **kwargs):
            return self.function(*args, **kwargs)

    DecoratedFunctionTool.__module__ = "strands.tools.decorator"
    tool = DecoratedFunctionTool

    @tool
    def find(city: str) -> dict:
        'Find a city.'
        if city == "Atlantis":
            return {"status": "error", "content": [{"text": f"There is no {city}."}]}
        return {"status": "success", "content": [{"text": city}]}

    @tool
    async def find_slowly(city: str) -> dict:
        'Find a city.'
        return find.function(city)
"""


@pytest.mark.parametrize("function", ["find", "find_slowly"])
async def test_a_result_of_a_tool_of_strands_with_the_status_error_is_a_failure(
    harness: Any, tmp_path: Path, function: str
) -> None:
    pack = tmp_path / "cities.py"
    pack.write_text(textwrap.dedent(DECORATED))
    found = await harness.run(function, pack, city="Oslo")
    assert found.data == {"status": "success", "content": [{"text": "Oslo"}]}
    missing = await harness.run(function, pack, city="Atlantis")
    assert (missing.ok, missing.error.message) == (False, "There is no Atlantis.")
