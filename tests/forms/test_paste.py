"""Pasted calls: any common notation fills the form, and other text is ignored."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.forms import Pasted, pasted
from pegboard.models import JsonObject, McpHandler, PackHandler, ToolSpec

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "depth": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def tool(schema: JsonObject, name: str = "fs.list_dir") -> ToolSpec:
    pack, _, function = name.partition(".")
    return ToolSpec(
        name=name,
        pack=pack,
        input_schema=schema,
        aliases=("ls",),
        parameter_aliases={"where": "path"},
        handler=PackHandler(pack=pack, function=function, file=f"/packs/{pack}.py", line=1),
    )


TOOL = tool(SCHEMA)
ARGUMENTS: JsonObject = {"path": "src", "depth": 2}


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # only arguments
        ('{"path": "src", "depth": 2}', Pasted("arguments", None, ARGUMENTS)),
        (' \n{"path": "src",\n "depth": 2}\n', Pasted("arguments", None, ARGUMENTS)),
        ('{"path": 1}', Pasted("arguments", None, {"path": 1})),
        ('{"depth": 2, "wrong": true}', Pasted("arguments", None, {"depth": 2, "wrong": True})),
        ('{"where": "src"}', Pasted("arguments", None, {"where": "src"})),
        # a name and arguments
        ('{"name": "fs.list_dir", "arguments": {"path": "src", "depth": 2}}', Pasted("call", "fs.list_dir", ARGUMENTS)),
        ('{"tool": "ls", "args": {"path": "src", "depth": 2}}', Pasted("call", "fs.list_dir", ARGUMENTS)),
        ('{"name": "fs.remove", "arguments": {"path": "x"}}', Pasted("call", "fs.remove", {"path": "x"})),
        ('{"name": "fs.list_dir", "arguments": {"wrong": 1}}', Pasted("call", "fs.list_dir", {"wrong": 1})),
        (
            '{"id": "1", "function": {"name": "ls", "arguments": "{\\"path\\": \\"src\\", \\"depth\\": 2}"}}',
            Pasted("call", "fs.list_dir", ARGUMENTS),
        ),
        ('{"function": {"name": "fs.list_dir", "arguments": ""}}', Pasted("call", "fs.list_dir", {})),
        (
            '{"type": "tool_use", "id": "toolu_1", "name": "fs.list_dir", "input": {"path": "src", "depth": 2}}',
            Pasted("call", "fs.list_dir", ARGUMENTS),
        ),
        (
            '{"call": {"id": "f00", "name": "ls", "args": {"path": "src", "depth": 2}}, "result": {"ok": true}}',
            Pasted("call", "fs.list_dir", ARGUMENTS),
        ),
        # MCP
        (
            '{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "ls", "arguments": {"path": "src"}}}',
            Pasted("mcp", "fs.list_dir", {"path": "src"}),
        ),
        (
            '{"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {"name": "time.now"}}',
            Pasted("mcp", "time.now", {}),
        ),
        # command lines
        ("pegboard tools invoke fs.list_dir", Pasted("cli", "fs.list_dir", {})),
        ("$ pegboard tools invoke fs.list_dir --arg path=src --arg depth=2", Pasted("cli", "fs.list_dir", ARGUMENTS)),
        ("pegboard tools invoke ls --arg where=src --arg=depth=2", Pasted("cli", "fs.list_dir", ARGUMENTS)),
        ('pegboard tools invoke ls --args=\'{"path": "src", "depth": 2}\'', Pasted("cli", "fs.list_dir", ARGUMENTS)),
        (
            'pegboard tools invoke ls --args \'{"path": "x"}\' --arg depth=2 --arg path=src',
            Pasted("cli", "fs.list_dir", ARGUMENTS),
        ),
        (
            "pegboard tools invoke fs.list_dir --mcp 'fs=npx -y \"a server\"' --arg path=src --arg depth=2",
            Pasted("cli", "fs.list_dir", ARGUMENTS),
        ),
        (
            "pegboard --mcp=https://localhost/mcp tools invoke ls --elicit '{}' --arg path=src --arg depth=2",
            Pasted("cli", "fs.list_dir", ARGUMENTS),
        ),
        (
            "pegboard --packs ~/p tools \\\n  invoke --data ls \\\n  --arg path=src --timeout 3 --arg depth=2 --json",
            Pasted("cli", "fs.list_dir", ARGUMENTS),
        ),
        (
            "PEGBOARD_PACKS=x .venv/bin/pegboard tools invoke fs.list_dir --arg path=src --arg depth=2 | jq . # all",
            Pasted("cli", "fs.list_dir", ARGUMENTS),
        ),
        (
            "python3 -m pegboard tools invoke --arg path=src --arg depth=2 -- fs.list_dir; ls",
            Pasted("cli", "fs.list_dir", ARGUMENTS),
        ),
        (
            "pegboard tools invoke ls --arg tags=a --arg tags='b c'",
            Pasted("cli", "fs.list_dir", {"tags": ["a", "b c"]}),
        ),
        ("pegboard tools invoke fs.remove --arg path=12", Pasted("cli", "fs.remove", {"path": "12"})),
        (
            """pegboard tools invoke ls --arg path=a\\ b'c"d'"e'f\\"\\$g\\h"$HOME/i#j""",
            Pasted("cli", "fs.list_dir", {"path": 'a bc"de\'f"$g\\h$HOME/i#j'}),
        ),
        (
            'pegboard tools invoke ls --args - <<\'END\'\n{"path": "src",\n"depth": 2}\nEND\n',
            Pasted("cli", "fs.list_dir", ARGUMENTS),
        ),
        # Python
        ('call_tool("fs.list_dir", path="src", depth=2)', Pasted("python", "fs.list_dir", ARGUMENTS)),
        ("await sdk.call_tool('ls', **{'path': 'src', 'depth': 2},)", Pasted("python", "fs.list_dir", ARGUMENTS)),
        (
            "call_tool('x.y', a=None, b=-1.5, c=[{'d': True}])",
            Pasted("python", "x.y", {"a": None, "b": -1.5, "c": [{"d": True}]}),
        ),
    ],
)
def test_a_call_is_parsed_from_every_notation(text: str, expected: Pasted) -> None:
    assert pasted(text, TOOL) == expected


def test_invalid_words_of_a_line_are_kept_as_typed_and_reported() -> None:
    found = pasted("pegboard tools invoke ls --arg=depth=ten --arg=path=src --arg=path.x=1 --arg tags.x=1", TOOL)
    assert found is not None
    assert found.arguments == {"depth": "ten", "path": "src"}
    assert [(fault.path, fault.message) for fault in found.faults] == [
        ("/path", "is set both as a whole and in parts"),
        ("/tags/x", "must be the index of an item, starting at 0"),
        ("/depth", 'must be an integer, not "ten"'),
    ]


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "src/main.py",
        "12",
        "[1, 2]",
        '"text"',
        "{",
        "{}",
        '{"unknown": 1}',
        '{"path": "a", "path": "b"}',
        '{"path": NaN}',
        '{"path": "a"} {"path": "b"}',
        '{"name": "x"}',
        '{"name": "x", "arguments": "{broken"}',
        '{"jsonrpc": "2.0", "method": "tools/list"}',
        "pegboard",
        "pegboard tools list",
        "pegboard tools invoke",
        "pegboard tools invoke a b",
        "pegboard tools invoke x --frobnicate",
        "pegboard tools invoke x --preset deep",
        "pegboard tools invoke x --arg",
        "pegboard tools invoke x --args '{broken'",
        "pegboard tools invoke x --args '[1]'",
        "pegboard tools invoke x --args -",
        "pegboard tools invoke x --args - <<END\n{}",
        "pegboard tools invoke x --arg 'path=open",
        "pegboard tools invoke x --arg $'path=\\n'",
        "run pegboard tools invoke with care",
        "# pegboard tools invoke x",
        "sudo rm -rf / pegboard tools invoke x",
        "call_tool",
        "call_tool()",
        "call_tool(name)",
        "call_tool('x', 1)",
        "call_tool('x', a=b)",
        "call_tool('x', a=print())",
        "call_tool('x', a=(1, 2))",
        "call_tool('x', a=1e999)",
        "call_tool('x', a={1: 2})",
        "call_tool('x', a=1, **{'a': 2})",
        "call_tool('x', **[1])",
        "call_tool('x'); call_tool('y')",
        "call_tool(" + "(" * 500 + ")" * 500 + ")",
        "call_tool('x', a=" + "[" * 5000,
        "call_tool('\x00')",
    ],
)
def test_other_text_is_not_a_call(text: str) -> None:
    assert pasted(text, TOOL) is None


@pytest.mark.parametrize(
    ("schema", "text", "kind"),
    [
        # a tool with properties called name and arguments
        ({"name": {"type": "string"}, "arguments": {"type": "object"}}, '{"name": "x", "arguments": {}}', "arguments"),
        ({"name": {"type": "string"}, "arguments": {"type": "object"}}, '{"name": 1, "arguments": {}}', "arguments"),
        ({"name": {"type": "string"}, "arguments": {"type": "array"}}, '{"name": "x", "arguments": {}}', "arguments"),
        (
            {"name": {"type": "string"}, "arguments": {"type": "object"}},
            '{"name": "fs.list_dir", "arguments": {"name": "x", "arguments": {}}}',
            "call",
        ),
        ({"name": {"type": "string"}}, '{"name": "x", "arguments": {}}', "call"),
        ({"function": {"type": "object"}}, '{"function": {"name": "x", "arguments": "{}"}}', "arguments"),
        ({}, '{"name": "x", "arguments": {}}', "call"),
    ],
)
def test_the_schema_decides_whether_a_name_and_arguments_are_a_call_or_arguments(
    schema: JsonObject, text: str, kind: str
) -> None:
    required: JsonObject = {"required": [*schema], "additionalProperties": False} if schema else {}
    found = pasted(text, tool({"type": "object", "properties": schema, **required}))
    assert found is not None
    assert found.kind == kind


def test_the_server_s_own_name_of_the_tool_is_recognised() -> None:
    of_server = TOOL.model_copy(update={"handler": McpHandler(server="files", tool="list")})
    found = pasted('{"name": "list", "arguments": {"path": "src"}}', of_server)
    assert found == Pasted("call", "fs.list_dir", {"path": "src"})


def test_an_argument_object_of_a_union_is_recognised_by_any_of_its_properties() -> None:
    kinds = [{"properties": {"id": {"type": "integer"}}, "required": ["id"]}, {"$ref": "#/$defs/by_name"}]
    union = json.loads(
        json.dumps({"anyOf": kinds, "$defs": {"by_name": {"properties": {"name": {}}, "required": ["name"]}}})
    )
    assert pasted('{"name": "x", "id": "wrong"}', tool(union)) == Pasted(
        "arguments", None, {"name": "x", "id": "wrong"}
    )
    assert pasted('{"other": 1}', tool(union)) is None


def test_a_large_text_is_parsed_quickly() -> None:
    arguments: JsonObject = {"path": "x" * 1_000_000, "tags": ["a b"] * 20_000}
    text = f"pegboard tools invoke ls --args '{json.dumps(arguments)}'"
    assert pasted(text, TOOL) == Pasted("cli", "fs.list_dir", arguments)
    assert pasted("plain text, " * 100_000, TOOL) is None
    assert pasted("pegboard " * 100_000, TOOL) is None


@given(
    st.text()
    | st.text(st.sampled_from("{}[]()\"'\\$=-\n <#|;:,aepgborditlsnvk1"), max_size=60).map(
        "pegboard tools invoke {}".format
    )
)
def test_no_pasted_text_raises(text: str) -> None:
    pasted(text, TOOL)
    pasted(f"call_tool({text})", TOOL)
    pasted(f"{{{text}}}", TOOL)
