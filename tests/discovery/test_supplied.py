"""Parameters that the framework of a tool, or a decorator, supplies."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.discovery import scan
from pegboard.models import ToolSpec

Tool = Callable[[str], ToolSpec]


@pytest.mark.promise("DSC-3")
@pytest.mark.parametrize(
    ("imports", "parameter"),
    [
        ("from agents import RunContextWrapper", "RunContextWrapper[int]"),
        ("from agents import RunContextWrapper", "'RunContextWrapper[int]'"),
        ("import agents", "agents.RunContextWrapper"),
        ("from agents.tool_context import ToolContext as Given", "Given[int]"),
        ("from pydantic_ai import RunContext\nDeps = RunContext[int]", "Deps"),
        ("from mcp.server.fastmcp import Context", "Context | None"),
        ("from fastmcp import Context", "Context"),
        ("import typing as t\nfrom langchain_core.runnables import RunnableConfig", "t.Optional[RunnableConfig]"),
        ("from langchain.tools import ToolRuntime", "ToolRuntime[int, str]"),
        ("import typing as t\nfrom langgraph.prebuilt import InjectedState", "t.Annotated[dict, InjectedState]"),
        (
            "from typing import Annotated\nfrom langgraph.prebuilt import InjectedState",
            "Annotated[list, InjectedState('messages')]",
        ),
        (
            "import typing as t\nfrom langchain_core.tools import InjectedToolArg\nclass User(InjectedToolArg): pass",
            "t.Annotated[str, User]",
        ),
        (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from google.adk.tools import ToolContext",
            "'ToolContext'",
        ),
        ("from mirascope import llm", "llm.Context[int]"),
        ("from strands import Agent", "Agent | None"),
        ("from agno.agent import Agent\nfrom agno.team import Team", "Agent | Team"),
        ("from semantic_kernel import Kernel", "Kernel"),
        ("from pipecat.services.llm_service import FunctionCallParams", "FunctionCallParams"),
    ],
)  # fmt: skip
def test_a_parameter_that_a_framework_supplies_is_neither_a_field_nor_shown(
    tool: Tool, imports: str, parameter: str
) -> None:
    found = tool(f"{imports}\ndef f(ctx: {parameter} = None, *, a: int):\n    'Do.'")
    assert found.input_schema["properties"] == {"a": {"type": "integer"}}
    assert found.signature == "sample.f(*, a: int)"
    assert found.problems == ()


@pytest.mark.promise("DSC-3")
@pytest.mark.parametrize(
    ("decorator", "fields"),
    [
        ("from strands import tool\n@tool", ["files"]),
        ("import strands\n@strands.tool(name='other')", ["files"]),
        ("from agno.tools import tool\n@tool(show_result=True)", []),
        ("from langchain_core.tools import tool\n@tool", ["agent", "files"]),
        ("import strands\ntool = print\n@tool", ["agent", "files"]),
    ],
)
def test_a_parameter_that_a_framework_supplies_by_its_name_is_not_a_field(
    tool: Tool, decorator: str, fields: list[str]
) -> None:
    found = tool(f"{decorator}\ndef f(*, agent: object = None, files: list[str] | None = None):\n    'Do.'")
    properties = found.input_schema["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == fields
    assert found.problems == ()


@pytest.mark.promise("DSC-3")
def test_a_subclass_in_a_helper_module_of_what_a_framework_supplies_is_not_a_field_either(tmp_path: Path) -> None:
    (tmp_path / "_context.py").write_text(
        "from agents import RunContextWrapper\nclass Given(RunContextWrapper): pass\n"
    )
    (tmp_path / "pack.py").write_text("from _context import Given\ndef f(ctx: Given = None, *, a: int):\n    'Do.'\n")
    (found,), _ = scan([tmp_path])
    assert found.input_schema["properties"] == {"a": {"type": "integer"}}


@pytest.mark.promise("DSC-3")
def test_without_a_default_such_a_parameter_is_a_problem_with_its_line_and_the_fix(tool: Tool) -> None:
    found = tool("""
        from agents import RunContextWrapper

        def f(
            ctx: RunContextWrapper[int],
            a: int,
        ):
            'Do.'
    """)
    assert found.input_schema["properties"] == {"a": {"type": "integer"}}
    (problem,) = found.problems
    assert (problem.severity, problem.line) == ("error", 5)
    assert problem.message == "`f` requires `ctx`, which an agent framework supplies but Pegboard can't."
    assert problem.fix.endswith("Write `def f(ctx=None, *, a)`.")


@pytest.mark.promise("DSC-3")
@pytest.mark.parametrize(
    "source",
    [
        "from ours import Context",
        "class Context:\n    a: int",
        "from mcp.server.fastmcp import Image as Context",
        "import agents\nfrom ours import Context",
        "import mcp\nContext = str | mcp.server.fastmcp.Context",
    ],
)
def test_a_type_of_the_same_name_from_elsewhere_stays_a_field(tool: Tool, source: str) -> None:
    found = tool(f"{source}\ndef f(*, ctx: Context):\n    'Do.'")
    assert found.input_schema["required"] == ["ctx"]


@pytest.mark.promise("DSC-3")
@pytest.mark.parametrize(
    ("body", "use"),
    [
        ("def call(*args, **rest): return f(*args, db=1, **rest)", "@given"),
        ("async def call(*args, **rest): return await f(connect(), *args, **rest)", "@given"),
        ("def call(**rest): rest['db'] = 1; return f(**rest)", "@given"),
        ("def call(*args, **rest): return f(*args, db=name, **rest)", "@called('x')"),
    ],
)
def test_a_parameter_that_a_decorator_of_the_file_fills_in_is_not_a_field(tool: Tool, body: str, use: str) -> None:
    decorator = f"def given(f):\n  {body}\n  return call\n"
    factory = "def called(name):\n" + textwrap.indent(decorator, "  ") + "  return given\n"
    found = tool(f"{decorator}{factory}{use}\ndef f(db, a: int):\n    'Do.'\n")
    assert found.input_schema["properties"] == {"a": {"type": "integer"}}
    assert [problem.fix for problem in found.problems] == ["Write `def f(db, *, a)`."]


@pytest.mark.promise("DSC-3")
@pytest.mark.parametrize(
    "passing",
    [
        "def call(db, *args, **rest): return f(db, *args, **rest)",
        "def call(db, **rest): return f(clean(db), **rest)",
        "def call(*args, **rest): return f(*args, db=clean(rest.pop('db')), **rest)",
        "def call(**rest): rest['db'] = clean(rest['db']); return f(**rest)",
        "def call(**rest): one = rest['db']; rest['db'] = clean(one); return f(**rest)",
    ],
)
def test_a_parameter_that_a_decorator_only_passes_on_stays_a_field(tool: Tool, passing: str) -> None:
    found = tool(f"def given(f):\n  {passing}\n  return call\n@given\ndef f(*, db, a: int):\n  'Do.'")
    assert found.input_schema["required"] == ["db", "a"]
