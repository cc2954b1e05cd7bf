"""`pegboard rules`: the rules for calls of models and other agents are listed, tested and changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import commands
import pytest

Command = Callable[..., commands.Done]

pytestmark = pytest.mark.promise("CLI-4", "ASK-7")


def test_rules_are_added_listed_moved_and_deleted(pegboard: Command, home: Path) -> None:
    added = pegboard("rules", "add", "allow", "fs.*", "tools.echo", "--where", "path=src/**", "--where", "path=a")
    assert (added.returncode, added.stdout, added.stderr) == (0, "", "")
    assert pegboard("rules", "add", "deny", "shell.*", "--scope", "mcp").returncode == 0
    assert pegboard("rules", "list").stdout.splitlines()[1:] == [
        "1  allow fs.*, tools.echo where path = src/** or a",
        "2  deny shell.* in calls of MCP clients",
    ]
    assert pegboard("rules", "move", "2", "1").returncode == 0
    assert json.loads(pegboard("rules", "list", "--json").stdout)[0] == {
        "number": 1,
        "action": "deny",
        "tools": ["shell.*"],
        "where": {},
        "exactly": None,
        "scope": "mcp",
    }
    assert pegboard("rules", "delete", "2").returncode == 0
    assert (home / "approvals.toml").read_text().endswith('[[rule]]\ndeny = "shell.*"\nscope = "mcp"\n')
    assert pegboard("rules", "add", "allow", "tools.echo", "--exactly", '{"value": 1}').returncode == 0
    assert pegboard("rules", "list").stdout.endswith('allow tools.echo with exactly {"value": 1}\n')


def test_a_call_is_tested_without_running_it(pegboard: Command, write_pack: Callable[[str, str], Path]) -> None:
    packs = str(write_pack("notes.py", 'def add(*, text: str) -> str:\n    """Add a note."""\n    return text\n'))

    def tested(*words: str) -> commands.Done:
        return pegboard("rules", "test", *words, "--packs", packs)

    assert tested("fs.read_file", "--arg", "path=a").stdout.startswith("allow: ")
    assert tested("notes.add", "--arg", "text=a").stdout == "ask: notes.add may change data.\n"
    pegboard("rules", "add", "allow", "notes.add", "--where", "text=a*", "--scope", "ask", "--packs", packs)
    found = json.loads(tested("notes.add", "--arg", "text=ab", "--json").stdout)
    assert (found["action"], found["rule"]) == ("allow", 1)
    assert tested("notes.add", "--arg", "text=b").stdout.startswith("ask: ")
    assert tested("notes.add", "--arg", "text=a", "--client").stdout.startswith("ask: ")
    assert "its arguments are invalid: text: is required" in tested("notes.add").stderr
    assert json.loads(pegboard("history", "--json").stdout) == []


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["add", "allow", "x", "--where", "path"], 2, "--where path is not ARGUMENT=PATTERN."),
        (["add", "allow", "x", "--exactly", "{"], 2, "it should have a JSON object"),
        (["add", "allow", "x", "--where", "a=b", "--exactly", "{}"], 2, "without `where`"),
        (["add", "permit", "x"], 2, "permit"),
        (["delete", "1"], 2, "There is no rule 1. `pegboard rules list` lists the rules."),
        (["move", "1", "2"], 2, "There is no rule 1."),
        (["test", "fs.nope"], 3, "fs.nope"),
        (["test", "fs.list_dir", "--arg", "max_depth=x"], 2, "must be an integer"),
    ],
)
def test_mistakes_are_named_and_change_nothing(
    pegboard: Command, home: Path, words: list[str], code: int, message: str
) -> None:
    done = pegboard("rules", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert not (home / "approvals.toml").exists()


@pytest.mark.promise("SEC-4")
def test_rules_that_cannot_be_read_are_a_failure_and_stay_as_they_are(pegboard: Command, home: Path) -> None:
    (home / "approvals.toml").write_text("[[rule]\n")
    for words in (["list"], ["add", "deny", "x"], ["test", "fs.list_dir"]):
        done = pegboard("rules", *words)
        assert (done.returncode, done.stdout) == (1, "")
        assert "not valid TOML" in done.stderr
        assert done.stderr.startswith(f"{home / 'approvals.toml'}:1: ")
    assert (home / "approvals.toml").read_text() == "[[rule]\n"


def test_a_rule_for_a_tool_without_a_name_is_refused(pegboard: Command) -> None:
    refused = pegboard("rules", "add", "allow", "")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "The rule was not added: the name of its tool is empty." in refused.stderr
    assert pegboard("rules", "list", "--json").stdout == "[]\n"


def test_only_the_problems_of_the_rule_that_is_added_are_printed(pegboard: Command) -> None:
    assert "'nope.*'" in pegboard("rules", "add", "deny", "nope.*").stderr
    second = pegboard("rules", "add", "deny", "odd.*").stderr
    assert ("'odd.*'" in second, "nope" in second) == (True, False)


@pytest.mark.promise("STO-3")
@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize("words", [["list"], ["test", "fs.read_file", "--arg", "path=a"]])
def test_listing_and_testing_rules_name_one_that_can_never_match(
    pegboard: Command, home: Path, words: list[str]
) -> None:
    (home / "approvals.toml").write_text('[[rule]]\nask = "fs.read_file"\nwhere = { file = "a" }\n')
    done = pegboard("rules", *words)
    assert (done.returncode, "In rule 1, fs.read_file has no argument 'file'." in done.stderr) == (0, True)


def test_rules_that_processes_add_concurrently_are_all_added(pegboard: Command) -> None:
    names = [f"tool{number}.x" for number in range(8)]
    with ThreadPoolExecutor(len(names)) as threads:
        done = list(threads.map(lambda name: pegboard("rules", "add", "deny", name), names))
    assert [one.returncode for one in done] == [0] * len(names), [one.stderr for one in done]
    listed = json.loads(pegboard("rules", "list", "--json").stdout)
    assert sorted(rule["tools"][0] for rule in listed) == names
