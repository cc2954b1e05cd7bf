"""Parsing of docstrings in three styles: description, parameters, returns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pegboard.discovery import read
from pegboard.models import ToolSpec

Tool = Callable[[str], ToolSpec]

GOOGLE = '''
def f(*, path: str, limit: int = 3, **rest: str) -> list[int]:
    """Find *things*.

    More about it::

        code

    Args:
        path (str, optional): Where to look,
            and how.
        limit: A list:
            - one
            - two
        **rest: Whatever
            else.

    Returns:
        list[int]: The sizes,
        largest first.

    Raises:
        ValueError: Never.

    Example:
        >>> f()
    """
'''
NUMPY = '''
def f(*, path: str, limit: int = 3, **rest: str) -> list[int]:
    """
    Find *things*.

    More about it::

        code

    Parameters
    ----------
    path : str, optional
        Where to look,
        and how.
    limit
        A list:

        - one
        - two
    **rest : str
        Whatever else.

    Returns
    -------
    list of int
        The sizes,
        largest first.

    Raises
    ------
    ValueError
        Never.
    """
'''
SPHINX = '''
def f(*, path: str, limit: int = 3, **rest: str) -> list[int]:
    """Find *things*.

    More about it::

        code

    :param str path: Where to look,
        and how.
    :type path: str
    :param limit: A list:
        - one
        - two
    :returns: The sizes,
        largest first.
    :rtype: list[int]
    :raises ValueError: Never.
    """
'''


def texts(spec: ToolSpec) -> dict[str, object]:
    properties = spec.input_schema["properties"]
    assert isinstance(properties, dict)
    return {name: schema.get("description") for name, schema in properties.items() if isinstance(schema, dict)}


@pytest.mark.promise("DSC-3")
@pytest.mark.parametrize("source", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_parameters_and_returns_are_found_in_every_style(tool: Tool, source: str) -> None:
    spec = tool(source)
    assert texts(spec)["path"] == "Where to look, and how."
    assert "- one\n- two" in str(texts(spec)["limit"])
    assert spec.output_schema is not None
    assert spec.output_schema["description"] == "The sizes, largest first."


@pytest.mark.promise("DSC-3")
@pytest.mark.parametrize("source", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_all_but_parameters_and_returns_stays_in_the_description(tool: Tool, source: str) -> None:
    description = tool(source).description
    assert description.startswith("Find *things*.\n\nMore about it::\n\n    code")
    assert "ValueError" in description
    for gone in ("Where to look", "largest first", "Parameters", "Args", "path"):
        assert gone not in description


def test_examples_stay_where_they_are(tool: Tool) -> None:
    assert tool(GOOGLE).description.endswith("Example:\n    >>> f()")


@pytest.mark.parametrize(
    "text",
    ["One line.", "Note: this is no section.", "A title\n-\nText.", "Ratio a:b, see `x`.", "Args: none of them."],
)
def test_a_docstring_without_sections_is_the_description(tool: Tool, text: str) -> None:
    assert tool(f'def f(*, a: int):\n    """{text}"""\n').description == text


def test_several_names_may_share_a_text(tool: Tool) -> None:
    spec = tool('def f(*, x: int, y: int):\n    """Go.\n\n    Args:\n        x, y: Where to.\n    """\n')
    assert texts(spec) == {"x": "Where to.", "y": "Where to."}


@pytest.mark.promise("DSC-3")
@pytest.mark.parametrize(
    "section",
    [
        "Args:\n    a -- The first (default 1)\n        of two.\n    b -- The second: last.",
        "Keyword arguments:\n    a - The first (default 1)\n        of two.\n    b (int) - The second: last.",
        "Arguments:\n    - a: The first (default 1)\n      of two.\n    - `b` (int): The second: last.",
        "Parameters:\n    * **a**: The first (default 1)\n      of two.\n    * **b** (int) – The second: last.",
    ],
)
def test_parameters_are_found_in_lists_and_after_dashes(tool: Tool, section: str) -> None:
    indented = section.replace("\n", "\n    ")
    spec = tool(f'def f(*, a: int, b: int):\n    """Do it.\n\n    {indented}\n    """\n')
    assert texts(spec) == {"a": "The first (default 1) of two.", "b": "The second: last."}
    assert spec.description == "Do it."


@pytest.mark.promise("DSC-3")
@pytest.mark.parametrize(
    ("section", "kept"),
    [
        ("Args:\n    All are optional. See the manual.", "Args:\n    All are optional. See the manual."),
        ("Parameters\n----------\nSee the manual.", "Parameters\n----------\nSee the manual."),
        ("Args:\n    None.", ""),
        ("Args:", ""),
    ],
)
def test_a_section_in_which_no_parameter_is_found_stays_in_the_description(tool: Tool, section: str, kept: str) -> None:
    indented = section.replace("\n", "\n    ")
    spec = tool(f'def f(*, a: int):\n    """Do it.\n\n    {indented}\n    """\n')
    assert spec.description == f"Do it.\n\n{kept}".strip()


@pytest.mark.promise("DSC-3")
def test_a_list_below_a_parameter_belongs_to_it(tool: Tool) -> None:
    section = "Args:\n        a: One of\n        - b: x\n        b: B"
    spec = tool(f'def f(*, a: str, b: int):\n    """Do it.\n\n    {section}\n    """\n')
    assert texts(spec) == {"a": "One of\n- b: x", "b": "B"}


def test_a_description_in_the_annotation_overrides_the_docstring(tool: Tool) -> None:
    spec = tool(
        "from typing import Annotated\nfrom pydantic import Field\n"
        'def f(*, a: Annotated[int, Field(description="From the type.")]):\n'
        '    """Go.\n\n    Args:\n        a: From the text.\n    """\n'
    )
    assert texts(spec) == {"a": "From the type."}


@pytest.mark.promise("DSC-3")
def test_a_line_without_indentation_continues_the_text_of_a_sphinx_field(tool: Tool) -> None:
    spec = tool(
        "def f(*, text: str, index: int, edits: list) -> str:\n"
        '    """Go.\n\n'
        "    :param text: The transformed text.\n"
        "    :param index: Index of the text that was used to\n    generate it, in the\n    Sorted list\n"
        '    :param edits: Operations:\n    - {"action": "replace"}\n    - {"action": "append"}\n'
        "    :return: The text\n    before it was transformed\n"
        "    :raises ValueError: If the index is lower than 0 or\n    too large\n\n"
        '    >>> f(text="a")\n    """\n'
    )
    assert texts(spec) == {
        "text": "The transformed text.",
        "index": "Index of the text that was used to generate it, in the Sorted list",
        "edits": 'Operations:\n- {"action": "replace"}\n- {"action": "append"}',
    }
    assert spec.output_schema == {"type": "string", "description": "The text before it was transformed"}
    assert spec.description == (
        'Go.\n\n:raises ValueError: If the index is lower than 0 or\ntoo large\n\n>>> f(text="a")'
    )


@pytest.mark.promise("DSC-3")
def test_a_sentence_or_an_example_below_a_sphinx_field_stays_in_the_description(tool: Tool) -> None:
    spec = tool('def f(*, a: int):\n    """Go.\n\n    :param a: The number\n    Adds one.\n    """\n')
    assert (texts(spec), spec.description) == ({"a": "The number"}, "Go.\n\nAdds one.")
    spec = tool('def f(*, a: int):\n    """Go.\n\n    :param a: The number\n    >>> f(a=1)\n    """\n')
    assert (texts(spec), spec.description) == ({"a": "The number"}, "Go.\n\n>>> f(a=1)")


@pytest.mark.parametrize(
    "hostile",
    [
        "Args:\n        a" + " " * 200_000 + "b",
        "x" + " " * 200_000 + "x\n    ---",
        ":param" + " " * 200_000 + "a",
        "Args:\n        a " + "(" * 200_000,
        "Returns:\n        " + "a|" * 100_000,
        "Args:\n" + "\n" * 200_000 + "x",
        ":type " + ":" * 200_000,
        "Args:\n        " + "a," * 100_000,
        "Args:\n        - a " + "(" * 200_000,
        "Args:\n        a" + " -" * 100_000,
        "Args:\n        * " + "*" * 200_000,
        "Args:\n        a" + " " * 200_000 + "-- b",
    ],
)
def test_a_hostile_docstring_is_parsed_in_time(tool: Tool, hostile: str) -> None:
    assert tool(f'def f(*, a: int):\n    """Go.\n\n    {hostile}"""\n').description


def test_lone_surrogates_do_not_get_into_the_description(tool: Tool) -> None:
    tool('def f():\n    """Bad \\ud800 text."""\n').description.encode()


@pytest.mark.promise("DSC-3")
@pytest.mark.parametrize("annotation", ["", " -> Any", " -> Unknown", " -> object"])
@pytest.mark.parametrize(
    "section", ["Returns:\n        The sum.", "Returns\n    -------\n    int\n        The sum.", ":returns: The sum."]
)
def test_the_returns_section_stays_in_the_description_without_an_output_schema(
    tool: Tool, annotation: str, section: str
) -> None:
    spec = tool(f"""
from typing import Any
def f(*, a: int){annotation}:
    \"\"\"Add up.

    {section}
    \"\"\"
""")
    assert (spec.description, spec.output_schema) == ("Add up.\n\nReturns: The sum.", None)


@pytest.mark.promise("DSC-2", "DSC-3")
@pytest.mark.parametrize(
    "decorator",
    [
        "@mcp.tool(name='total', description=TEXT)",
        "@function_tool(description_override=TEXT)",
        "@traced\n        @agent.tool_plain(description='Add ' 'up.')",
    ],
)
@pytest.mark.parametrize(
    "docstring", ["", "'''Sum numbers.\n\n            Args:\n                a: First.\n            '''"]
)
def test_the_description_in_the_decorator_of_a_framework_replaces_that_of_the_docstring(
    tool: Tool, decorator: str, docstring: str
) -> None:
    spec = tool(f"""
        from frameworks import agent, function_tool, mcp, traced
        TEXT = "Add up."

        {decorator}
        def add(*, a: int):
            {docstring}
            return a
    """)
    assert (spec.name, spec.description, spec.problems) == ("sample.add", "Add up.", ())
    assert spec.input_schema["properties"] == {
        "a": {"type": "integer"} | ({"description": "First."} if docstring else {})
    }


@pytest.mark.promise("DSC-2")
@pytest.mark.parametrize(
    "decorator", ["@mcp.tool(description=' ')", "@mcp.tool(description=load())", "@page(description='x')"]
)
def test_a_decorator_without_a_static_description_of_a_tool_replaces_no_docstring(tool: Tool, decorator: str) -> None:
    source = f"{decorator}\ndef f(*, a: int):\n    'Do it.'\n"
    assert tool(source).description == "Do it."
    assert read(source.replace("'Do it.'", "..."), "/packs/sample.py")[0] == ()


@pytest.mark.promise("DSC-3")
def test_the_model_in_the_decorator_of_a_framework_describes_parameters_that_the_docstring_doesn_t(tool: Tool) -> None:
    spec = tool("""
        from langchain_core.tools import tool
        from pydantic import BaseModel, Field

        class Query(BaseModel):
            text: str = Field(description="Words to look for.")
            limit: int = Field(10, description="Of the model.")
            other: str = Field(description="No parameter.")

        @tool("web-search", args_schema=Query)
        def search(*, text: str, limit: int = 10):
            '''Search the web.

            Args:
                limit: Of the docstring.
            '''
    """)
    assert spec.input_schema["properties"] == {
        "text": {"type": "string", "description": "Words to look for."},
        "limit": {"type": "integer", "default": 10, "description": "Of the docstring."},
    }
    assert "$defs" not in spec.input_schema


LANGCHAIN = """
from typing import Literal
from langchain_core.tools import tool
from pydantic import BaseModel, Field

class Weather(BaseModel):
    units: Literal["celsius", "kelvin"] = Field(default="celsius", description="Unit.")
    days: int = Field(ge=1, le=9)
    free: Literal[1, 2]
    places: list[str] = Field(min_length=1)

@tool(args_schema=Weather)
"""
STRANDS = """
from strands import tool

DAYS = {"type": "integer", "minimum": 1, "maximum": 9}
FREE = {"type": "integer", "enum": [1, 2]}
UNITS = {"type": "string", "enum": ["celsius", "kelvin"], "description": "Unit."}

@tool(inputSchema={"json": {"type": "object", "properties": {"days": DAYS, "free": FREE, "units": UNITS}}})
"""


@pytest.mark.promise("DSC-3")
@pytest.mark.parametrize("head", [LANGCHAIN, STRANDS], ids=["args_schema", "inputSchema"])
def test_the_schema_in_the_decorator_of_a_framework_constrains_parameters(tool: Tool, head: str) -> None:
    spec = tool(
        f"{head}def f(*, days: int, free, places: list[str] | None = None, units: str = 'kelvin'):\n    'Do.'\n"
    )
    properties = spec.input_schema["properties"]
    assert isinstance(properties, dict)
    assert properties["days"] == {"type": "integer", "minimum": 1, "maximum": 9}
    assert properties["free"] == {"type": "integer", "enum": [1, 2]}
    assert properties["units"] == {
        "type": "string",
        "enum": ["celsius", "kelvin"],
        "default": "kelvin",
        "description": "Unit.",
    }
    assert properties["places"] == {
        "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
        "default": None,
    }
    assert spec.input_schema["required"] == ["days", "free"]


@pytest.mark.promise("DSC-3")
def test_the_schema_in_the_decorator_of_a_framework_changes_no_other_type(tool: Tool) -> None:
    spec = tool("""
        from strands import tool

        @tool(inputSchema={"properties": {"a": {"type": "string", "enum": ["1"]}}})
        def f(*, a: int):
            'Do.'
    """)
    assert spec.input_schema["properties"] == {"a": {"type": "integer"}}
