"""`pegboard presets`, and calls that start from a preset."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import commands
import pytest

Command = Callable[..., commands.Done]


@pytest.mark.promise("CLI-1", "CLI-2")
def test_a_preset_is_saved_listed_shown_renamed_and_deleted(pegboard: Command, home: Path) -> None:
    saved = pegboard("presets", "save", "fs.list_dir", "a/b", "--arg", "path=src", "--arg", "maxDepth=2", "--json")
    preset = {"tool": "fs.list_dir", "name": "a/b", "arguments": {"path": "src", "max_depth": 2}}
    assert (saved.returncode, saved.stderr, json.loads(saved.stdout)) == (0, "", preset)
    assert (home / "data" / "presets" / "fs.list_dir" / "a%2Fb.toml").read_text() == 'path = "src"\nmax_depth = 2\n'

    assert json.loads(pegboard("presets", "list", "--json").stdout) == [preset]
    assert json.loads(pegboard("presets", "list", "time.now", "--json").stdout) == []
    assert pegboard("presets", "list").stdout.splitlines()[1:] == ["fs.list_dir  a/b     path, max_depth"]
    assert json.loads(pegboard("presets", "show", "fs.list_dir", "a/b").stdout) == preset["arguments"]
    assert json.loads(pegboard("presets", "show", "fs.list_dir", "a/b", "--json").stdout) == preset

    renamed = pegboard("presets", "rename", "fs.list_dir", "a/b", "c")
    assert (renamed.returncode, renamed.stdout, renamed.stderr) == (0, "", "")
    again = pegboard("presets", "save", "fs.list_dir", "c")
    assert (again.returncode, "Or replace it with --force." in again.stderr, again.stdout) == (2, True, "")
    replaced = pegboard("presets", "save", "fs.list_dir", "c", "--force", "--args", "-", stdin='{"recursive": true}')
    assert (replaced.returncode, replaced.stdout) == (0, "")
    assert json.loads(pegboard("presets", "show", "fs.list_dir", "c").stdout) == {"recursive": True}
    assert pegboard("presets", "delete", "fs.list_dir", "c").returncode == 0
    assert pegboard("presets", "list").stdout == ""


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (["show", "fs.list_dir", "nope"], 2, "no preset 'nope'"),
        (["delete", "fs.list_dir", "nope"], 2, "no preset `nope`"),
        (["rename", "fs.list_dir", "nope", "x"], 2, "no preset `nope`"),
        (["save", "fs.list_dir", "x", "--arg", "max_depth=ten"], 2, "must be an integer"),
        (["save", "fs.list_dir", "x", "--args", "{"], 2, "not JSON"),
        (["save", "fs.list_dir", ""], 2, "Enter a name"),
        (["save", "fs.list_dri", "x"], 3, "fs.list_dir"),
    ],
)
def test_errors_are_one_sentence(pegboard: Command, line: list[str], code: int, words: str) -> None:
    done = pegboard("presets", *line)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.promise("CLI-2")
def test_a_preset_that_cannot_be_written_is_a_failure_and_no_wrong_usage(pegboard: Command, home: Path) -> None:
    (home / "data").write_text("a file in the place of the folder")
    done = pegboard("presets", "save", "fs.list_dir", "x")
    assert (done.returncode, done.stdout) == (1, "")
    assert "The preset `x` can't be written" in done.stderr


@pytest.mark.promise("CLI-1")
def test_a_note_says_which_saved_arguments_are_invalid_but_not_which_are_missing(pegboard: Command) -> None:
    done = pegboard("presets", "save", "fs.read_file", "x", "--arg", "pth=a")
    assert (done.returncode, done.stderr) == (
        0,
        "note: calls with this preset fail: pth: unknown argument; did you mean `path`?\n",
    )
    assert pegboard("presets", "save", "fs.read_file", "y").stderr == ""


@pytest.mark.promise("CLI-1")
def test_a_call_starts_from_a_preset_and_its_own_arguments_change_that(pegboard: Command) -> None:
    pegboard("presets", "save", "tools.echo", "x", "--args", '{"value": {"a": 1, "b": [1, null]}}')
    line = ["tools", "invoke", "tools.echo", "--data", "--preset", "x"]
    assert json.loads(pegboard(*line).stdout) == {"a": 1, "b": [1, None]}
    assert json.loads(pegboard(*line, "--arg", "value.a=2").stdout) == {"a": 2, "b": [1, None]}
    assert json.loads(pegboard(*line, "--args", '{"value": 3}').stdout) == 3


@pytest.mark.promise("STO-3")
def test_a_damaged_preset_is_a_problem_with_file_and_line_and_can_be_deleted(pegboard: Command, home: Path) -> None:
    pegboard("presets", "save", "time.now", "good")
    file = home / "data" / "presets" / "time.now" / "bad.toml"
    file.write_text("x = \n")
    listed = pegboard("presets", "list", "--json")
    assert [preset["name"] for preset in json.loads(listed.stdout)] == ["good"]
    assert f"{file}:1" in listed.stderr
    used = pegboard("tools", "invoke", "time.now", "--preset", "bad")
    assert (used.returncode, f"{file}:1" in used.stderr) == (2, True)
    assert "It has: good." in used.stderr
    assert pegboard("presets", "delete", "time.now", "bad").returncode == 0
    assert not file.exists()
