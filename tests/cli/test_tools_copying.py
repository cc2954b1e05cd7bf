"""Arguments on the command line, and calls printed for another program."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import commands
import pytest
from pydantic import JsonValue

from pegboard.data.json_text import identical
from pegboard.forms import copied_as
from pegboard.runtime import Runtime

Command = Callable[..., commands.Done]

TYPED = '''
from typing import Literal, TypedDict

class Op(TypedDict, total=False):
    """A step."""
    kind: Literal["add", "remove"]
    path: str

def take(*, code: str, tags: list[str] = [], limits: dict[str, int] = {}, ops: list[Op] = []) -> dict:
    """Gives what it was given."""
    return {"code": code, "tags": tags, "limits": limits, "ops": ops}
'''


@pytest.mark.promise("CLI-1", "TUI-3")
def test_values_are_converted_to_the_types_of_the_parameters(
    pegboard: Command, write_pack: Callable[[str, str], Path]
) -> None:
    packs = str(write_pack("typed.py", TYPED))
    line = [
        "--arg=code=007",
        "--arg=tags=x",
        "--arg=tags=1",
        "--arg=limits.cpu=2",
        "--arg=ops.0.kind=add",
        "--arg=ops.0.path=3",
    ]
    done = pegboard("tools", "invoke", "typed.take", *line, "--data", "--packs", packs)
    assert json.loads(done.stdout) == {
        "code": "007",
        "tags": ["x", "1"],
        "limits": {"cpu": 2},
        "ops": [{"kind": "add", "path": "3"}],
    }
    over = ["--args", '{"code": "a", "limits": {"cpu": 1, "gpu": 1}}', "--arg", "limits.cpu=9"]
    done = pegboard("tools", "invoke", "typed.take", *over, "--data", "--packs", packs)
    assert json.loads(done.stdout)["limits"] == {"cpu": 9, "gpu": 1}
    done = pegboard("tools", "invoke", "typed.take", "--arg=limits.cpu=x", "--arg=ops.0.kind=move", "--packs", packs)
    assert done.returncode == 2
    faults = json.loads(done.stdout)["result"]["error"]["faults"]
    assert {fault["path"]: fault["message"] for fault in faults} == {
        "/code": "is required",
        "/limits/cpu": 'must be an integer, not "x"',
        "/ops/0/kind": 'must be one of "add", "remove", not "move"',
    }


@pytest.mark.promise("CLI-1", "CLI-2")
def test_a_call_is_printed_for_another_program_and_does_not_run(pegboard: Command, packs: str) -> None:
    line = [
        "tools",
        "invoke",
        "sayHello",
        "--arg",
        "name=you & me",
        "--arg",
        "salutation=Hi",
        "--packs",
        packs,
        "--print",
    ]
    printed = {kind: pegboard(*line, kind) for kind in ("cli", "json", "python", "mcp")}
    assert {(done.returncode, done.stderr) for done in printed.values()} == {(0, "")}
    said = f"pegboard tools invoke greet.hello --packs {shlex.quote(packs)} --arg 'name=you & me' --arg greeting=Hi\n"
    assert printed["cli"].stdout == said
    assert json.loads(printed["json"].stdout) == {"name": "you & me", "greeting": "Hi"}
    assert printed["python"].stdout == 'call_tool("greet.hello", name="you & me", greeting="Hi")\n'
    assert json.loads(printed["mcp"].stdout)["params"]["arguments"] == {"name": "you & me", "greeting": "Hi"}
    assert json.loads(pegboard("history", "--json").stdout) == []


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (["greet.add", "--arg", "a=1"], 2, "b: "),
        (["greet.add", "--arg", "a=x"], 2, "must be an integer"),
        (["greet.nope"], 3, "No tool is named"),
        (["zzz"], 3, "No tool is named 'zzz'. `pegboard tools list` lists the tools."),
    ],
)
def test_an_invalid_call_is_not_printed(pegboard: Command, packs: str, line: list[str], code: int, words: str) -> None:
    done = pegboard("tools", "invoke", *line, "--print", "cli", "--packs", packs)
    assert (done.returncode, words in done.stderr) == (code, True)
    assert "pegboard tools invoke" not in done.stdout


VALUES: list[JsonValue] = [
    'it\'s "$HOME" `id` \\ !x',
    "two\nlines",
    "tab\there \x1b[31m \x00 \ud800 🙂",
    "-x",
    "12",
    "null",
    "x" * 200_000,
    None,
    {"a.b": [1, {"": "="}], "c": 1.0},
    123456789012345678901234567890,
]


@pytest.mark.promise("CLI-1")
def test_copied_lines_make_the_same_calls_in_a_real_shell(home: Path, tmp_path: Path) -> None:
    runtime = Runtime.from_environment()
    runtime.tools.scan()
    echo = runtime.tools.get("tools.echo")
    assert echo is not None
    lines = [copied_as("cli", echo, {"value": value}).replace("invoke", "invoke --print json", 1) for value in VALUES]
    script = commands.shell_function("program") + 'pegboard() { program "$@" && printf "\\0"; }\n' + "\n".join(lines)
    done = subprocess.run(["sh"], input=script.encode(), capture_output=True, timeout=100, cwd=tmp_path, check=True)
    assert done.stderr == b""
    *called, end = done.stdout.split(b"\0")
    assert end == b""
    for text, value in zip(called, VALUES, strict=True):
        assert identical(json.loads(text), {"value": value})
