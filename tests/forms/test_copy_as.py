"""Copied calls: they make the same call elsewhere for any arguments."""

from __future__ import annotations

import ast
import json
import shlex
import shutil
import subprocess

import pytest
from bashkit import Bash
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from rows import Row

from pegboard.data.json_text import identical
from pegboard.forms import CopyKind, arguments_from_pairs, copied_as, pasted
from pegboard.forms.flags import arguments_from_words
from pegboard.models import JsonObject, McpHandler, PackHandler, ToolSpec

SHELLS = [
    pytest.param(shell, marks=pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed"))
    for shell in ("sh", "bash", "zsh")
]

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "maybe": {"type": ["string", "null"]},
        "n": {"type": "integer"},
        "ratio": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "mode": {"enum": ["fast", 1, "1", None]},
        "inner": {"type": "object", "properties": {"k": {"type": "integer"}, "t": {"type": "string"}}},
        "ops": {"type": "array", "items": {"type": "object", "properties": {"t": {"type": "string"}}}},
        "both": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "any": {},
    },
}


def tool(schema: JsonObject, name: str = "fs.list_dir") -> ToolSpec:
    handler = PackHandler(pack="fs", function="list_dir", file="/packs/fs.py", line=1)
    return ToolSpec(name=name, pack="fs", input_schema=schema, handler=handler)


TOOL = tool(SCHEMA)

NASTY = [
    "it's",
    '"quoted"',
    "$HOME `id` $(id) \\ \\n",
    "!history !! ^x^y",
    "-x",
    "--args",
    "-",
    "--",
    "a=b",
    "a.b",
    "two\nlines\n",
    "END\nEND",
    "\r\n\t\x00\x1b[31m\x7f\x85",
    "\ud800",
    "\udcff",
    "ünï 名 🙂",
    "* ? ~ # ; | & < > ( ) [x] {a,b}",
    "[1, 2]",
    '{"a": 1}',
    "null",
    "12",
    "",
    " ",
]
TEXTS = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=[]), max_size=12)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS: st.SearchStrategy[JsonObject] = st.builds(
    lambda named, odd: {**odd, **named},
    st.fixed_dictionaries(
        {},
        optional={
            "text": TEXTS,
            "maybe": TEXTS | st.none(),
            "n": st.integers(),
            "ratio": st.floats(allow_nan=False, allow_infinity=False),
            "tags": st.lists(TEXTS, max_size=3),
            "mode": st.sampled_from(["fast", 1, "1", None]),
            "inner": st.fixed_dictionaries({}, optional={"k": st.integers(), "t": TEXTS}),
            "ops": st.lists(st.fixed_dictionaries({}, optional={"t": TEXTS}), max_size=2),
            "both": TEXTS | st.integers(),
            "any": VALUES,
        },
    ),
    st.dictionaries(TEXTS, VALUES, max_size=2),
)

# Words end with NUL, and calls end with a word that can't be an argument. Standard input is an extra word.
RECORDER = """
pegboard() {
  printf '%s\\0' "$@"
  for word in "$@"; do :; done
  if [ "$word" = "-" ]; then cat; printf '\\0'; fi
  printf 'end of call\\0\\0'
}
"""


def run_in(shell: str, lines: list[str]) -> list[list[str]]:
    """Return the words that each line passes to `pegboard`, followed by standard input if that is read."""
    script = RECORDER + "\n".join(lines)
    done = subprocess.run(
        [shell], input=script.encode(), capture_output=True, timeout=60, check=True, env={"HOME": "/home/nobody"}
    )
    assert done.stderr == b""
    calls = done.stdout.decode().split("end of call\0\0")
    assert calls.pop() == ""
    return [call.split("\0")[:-1] for call in calls]


def arguments_of(words: list[str], spec: ToolSpec) -> JsonObject:
    """Parse the words of one call as the command line documents it."""
    assert words[:3] == ["tools", "invoke", spec.name]
    given_: JsonObject | None = None
    pairs: list[str] = []
    rest = iter(words[3:])
    for option in rest:
        text = next(rest)
        if option == "--arg":
            pairs.append(text)
        else:
            assert option == "--args"
            given_ = json.loads(next(rest) if text == "-" else text)
    return given_ if given_ is not None and not pairs else arguments_from_pairs(spec.input_schema, pairs, given=given_)


@pytest.mark.promise("CLI-1")
@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=8, phases=[Phase.generate])  # shrinking a batch would take minutes
@given(batch=st.lists(ARGUMENTS, min_size=30, max_size=30))
def test_a_copied_line_passes_equal_arguments_in_a_real_shell(shell: str, batch: list[JsonObject]) -> None:
    called = run_in(shell, [copied_as("cli", TOOL, arguments) for arguments in batch])
    assert len(called) == len(batch)
    for words, arguments in zip(called, batch, strict=True):
        assert identical(arguments_of(words, TOOL), arguments)


@pytest.mark.promise("CLI-1")
@pytest.mark.parametrize("shell", SHELLS)
def test_special_characters_survive_in_every_argument(shell: str) -> None:
    batch: list[JsonObject] = []
    for text in NASTY:
        batch += [
            {"text": text},
            {"tags": [text, text]},
            {"inner": {"t": text}},
            {"any": text},
            {"both": text},
            {text: 1},
        ]
        batch += [{"maybe": text}, {"ops": [{"t": text}]}, {"any": {text: [text]}}]
    called = run_in(shell, [copied_as("cli", TOOL, arguments) for arguments in batch])
    for words, arguments in zip(called, batch, strict=True):
        assert identical(arguments_of(words, TOOL), arguments)


def test_a_word_that_zsh_would_replace_by_a_path_is_quoted() -> None:
    assert copied_as("cli", TOOL, {"": 1}) == "pegboard tools invoke fs.list_dir --arg '=1'"


def test_a_line_uses_the_simplest_notation() -> None:
    arguments: JsonObject = {
        "text": "src",
        "n": 2,
        "tags": ["a", "it's"],
        "mode": None,
        "inner": {"k": 1},
        "ops": [{"t": "x"}, {"t": "y"}],
        "both": "12",
        "maybe": None,
    }
    assert copied_as("cli", TOOL, arguments) == (
        "pegboard tools invoke fs.list_dir --arg text=src --arg n=2 --arg tags=a --arg 'tags=it'\"'\"'s' "
        "--arg mode=null --arg inner.k=1 --arg ops.0.t=x --arg ops.1.t=y --arg 'both=\"12\"' "
        "--args '{\"maybe\": null}'"
    )
    assert copied_as("cli", TOOL, {}) == "pegboard tools invoke fs.list_dir"
    constant = tool({"properties": {"v": {"const": 1}}, "required": ["v"]})
    assert copied_as("cli", constant, {}) == "pegboard tools invoke fs.list_dir --args '{}'"


@pytest.mark.promise("CLI-1")
@pytest.mark.parametrize("kind", ["cli", "script"])
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"const": {"major": 1, "minor": 2}}, {"major": 1, "minor": 2}),
        ({"enum": [[640, 480], [1920, 1080]]}, [640, 480]),
        ({"const": [[1], [2]]}, [[1], [2]]),
    ],
)
def test_a_constant_object_or_list_is_copied_as_one_word(kind: CopyKind, schema: JsonObject, value: JsonValue) -> None:
    spec = tool({"type": "object", "properties": {"v": schema, "t": {"type": "string"}}, "required": ["v"]})
    arguments: JsonObject = {"v": value, "t": "x"}
    line = copied_as(kind, spec, arguments)
    words = shlex.split(line)
    assert "args" not in {word.lstrip("-") for word in words}, line
    if kind == "cli":
        assert identical(arguments_of(words[1:], spec), arguments), line
    else:
        assert identical(arguments_from_words(spec, words[1:]), arguments), line


# --- Script commands ---


def words_in(line: str) -> tuple[str | None, ...]:
    """Return the words of a line as parsed by the script runner."""
    [command] = Bash().analyze(line).commands
    return (command.name, *command.args)


@pytest.mark.promise("SCR-2")
@given(arguments=ARGUMENTS)
def test_a_script_command_passes_equal_arguments(arguments: JsonObject) -> None:
    name, *words = words_in(copied_as("script", TOOL, arguments))
    assert name == "fs.list_dir"
    assert identical(arguments_from_words(TOOL, [word for word in words if word is not None]), arguments)


@pytest.mark.promise("SCR-2")
@pytest.mark.parametrize("part", range(3))
def test_a_script_command_passes_required_and_oddly_named_arguments(part: int) -> None:
    required = [["text"], ["tags", "mode"], ["const", "args", "_args", "help"]][part]
    odd: JsonObject = {"const": {"const": 1}, "args": {"type": "string"}, "_args": {}, "help": {"type": "boolean"}}
    properties = SCHEMA["properties"]
    assert isinstance(properties, dict)
    spec = tool({**SCHEMA, "properties": {**properties, **odd}, "required": [*required]})
    values: list[JsonValue] = ["", "-h", "--help", "--", "-1", "null", "true", "{}", None, True, False, [], {}, [[]]]
    values += [10**30, -0.0, 1e-7, ["--help"], ["-h", ""], {"": {"": None}}, {"a=b": "c\nd"}, "\t", "\ud800", "it's $x"]
    for name in (
        "text",
        "maybe",
        "tags",
        "any",
        "both",
        "args",
        "_args",
        "help",
        "mode",
        "no-such",
        "in.ner",
        "a=b",
        "",
    ):
        # Every name has every value once; a required name has it with each list of required names.
        for value in values if name in required else values[part::3]:
            arguments: JsonObject = {"const": 1, "args": "x", name: value}
            _, *words = words_in(copied_as("script", spec, arguments))
            assert identical(arguments_from_words(spec, [word or "" for word in words]), arguments), (name, value)


def test_a_script_command_uses_the_simplest_notation() -> None:
    arguments: JsonObject = {
        "text": "it's",
        "n": -2,
        "tags": ["a", "b c"],
        "inner": {"k": 1},
        "any": True,
        "both": "12",
    }
    assert copied_as("script", TOOL, {**arguments, "maybe": None}) == (
        "fs.list_dir --text 'it'\"'\"'s' --n=-2 --tags a --tags 'b c' --inner.k 1 --any --both '\"12\"' "
        "--args '{\"maybe\": null}'"
    )
    assert copied_as("script", tool(SCHEMA, "-x y"), {}) == "_x_y"


@pytest.mark.slow
@pytest.mark.promise("SCR-2")
def test_an_example_of_every_schema_of_the_corpus_can_be_copied_as_a_script_command(corpus: list[Row]) -> None:
    for row in corpus:
        spec = TOOL.model_copy(update={"input_schema": row.schema})
        for example in row.valid[:1]:
            line = copied_as("script", spec, example)
            _, *words = words_in(line)
            assert identical(arguments_from_words(spec, [word or "" for word in words]), example), (row.id, line)


def test_a_tool_with_an_unusual_name_can_be_called() -> None:
    assert copied_as("cli", tool(SCHEMA, "-x y"), {"n": 1}) == "pegboard tools invoke --arg n=1 -- '-x y'"


@pytest.mark.promise("CLI-1")
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "arguments",
    [
        {"text": "x" * 20_000},
        {"text": "x" * 200_000},
        {"tags": ["it's\n$HOME END"] * 60_000},
        {"x" * 3_000: ["a"] * 100},
    ],
)
def test_arguments_too_long_for_a_command_line_are_passed_as_standard_input(shell: str, arguments: JsonObject) -> None:
    line = copied_as("cli", TOOL, arguments)
    [words] = run_in(shell, [line])
    assert words[3:5] == ["--args", "-"]
    assert arguments_of(words, TOOL) == arguments
    found = pasted(line, TOOL)
    assert found is not None
    assert found.arguments == arguments


@pytest.mark.parametrize("kind", ["cli", "json", "python", "mcp"])
@given(arguments=ARGUMENTS)
def test_copied_text_can_be_pasted_and_encoded_for_any_clipboard(kind: CopyKind, arguments: JsonObject) -> None:
    text = copied_as(kind, TOOL, arguments)
    text.encode()
    found = pasted(text, TOOL)
    assert found is not None
    assert identical(found.arguments, arguments)
    assert found.tool == (None if kind == "json" else "fs.list_dir")


@given(arguments=ARGUMENTS)
def test_json_is_the_argument_object_and_python_is_a_call_with_it(arguments: JsonObject) -> None:
    assert identical(json.loads(copied_as("json", TOOL, arguments)), arguments)
    code = compile(ast.parse(copied_as("python", TOOL, arguments), mode="eval"), "copied", "eval")

    def call_tool(name: str, /, **given_: JsonValue) -> tuple[str, JsonObject]:
        return name, given_

    name, found = eval(code, {"call_tool": call_tool})
    assert name == "fs.list_dir"
    assert identical(found, arguments)


def test_python_uses_keyword_arguments_where_the_names_allow_it() -> None:
    assert copied_as("python", TOOL, {"text": "it's", "n": 1, "a-b": None, "class": True, "ﬁ": 1.0}) == (
        'call_tool("fs.list_dir", text="it\'s", n=1, **{"a-b": None, "class": True, "ﬁ": 1.0})'
    )
    assert copied_as("python", TOOL, {"text": "x" * 90}).splitlines()[1:3] == [
        '    "fs.list_dir",',
        f'    text="{"x" * 90}",',
    ]


def test_mcp_is_a_one_line_request_with_the_server_s_own_tool_name() -> None:
    text = copied_as("mcp", TOOL, {"text": "a\nb"})
    assert "\n" not in text
    assert json.loads(text) == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "fs.list_dir", "arguments": {"text": "a\nb"}},
    }
    of_server = TOOL.model_copy(update={"handler": McpHandler(server="files", tool="ls")})
    assert json.loads(copied_as("mcp", of_server, {}))["params"]["name"] == "ls"
    found = pasted(copied_as("mcp", of_server, {}), of_server)
    assert found is not None
    assert found.tool == "fs.list_dir"


def _needs_json(value: JsonValue) -> bool:
    """Return True if a value of the corpus can't be a word: text with a tab, null where text fits, or `3.0` for `3`."""
    return value is None or value == 3.0 or (isinstance(value, str) and "\t" in value)


@pytest.mark.slow
@pytest.mark.promise("TUI-3", "CLI-1")
def test_an_example_of_every_schema_of_the_corpus_is_copied_as_plain_words(corpus: list[Row]) -> None:
    for row in corpus:
        spec = TOOL.model_copy(update={"input_schema": row.schema})
        for example in row.valid[:1]:
            line = copied_as("cli", spec, example)
            found = pasted(line, spec)
            assert found is not None, row.id
            assert identical(found.arguments, example), row.id
            if " --args " in line:
                assert any(map(_needs_json, example.values())), (row.id, line)
