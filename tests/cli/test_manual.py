"""The command line describes itself, and its lists have headings, messages and limits."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import commands
import pytest

from pegboard.cli import COMMANDS
from pegboard.models.call import CallSource

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.promise("CLI-7")
def test_help_as_json_describes_every_command_with_its_options_and_exit_codes(pegboard: Command) -> None:
    done = pegboard("--help", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    described = json.loads(done.stdout)
    by_name = {command["name"]: command for command in described["commands"]}
    assert {name.split()[1] for name in by_name} == set(COMMANDS)
    assert described["exitCodes"]["3"] == "unknown tool"
    invoke = by_name["pegboard tools invoke"]
    assert invoke["arguments"] == [
        {"name": "NAME", "required": True, "repeatable": False, "help": "A tool, such as fs.read_file."}
    ]
    options = {name: option for option in invoke["options"] for name in option["names"]}
    assert options["--print"]["choices"] == ["cli", "script", "json", "python", "mcp"]
    assert options["--arg"]["repeatable"]
    assert options["--data"]["value"] is None
    assert by_name["pegboard deps"]["exitCodes"] == {"1": "a requirement is missing or unsuitable"}
    assert by_name["pegboard history redact"]["exitCodes"] == {"1": "the value may remain somewhere"}
    assert by_name["pegboard check run"]["exitCodes"] == {"1": "a check failed, or couldn't run"}
    assert by_name["pegboard history show"]["exitCodes"] == {"3": "unknown call"}
    assert all(command["help"] for command in by_name.values())


@pytest.mark.promise("CFG-2", "CLI-7")
def test_every_command_accepts_packs_and_servers_after_its_name(pegboard: Command) -> None:
    commands_ = json.loads(pegboard("--help", "--json").stdout)["commands"]
    lacking = {
        command["name"]
        for command in commands_
        if not {"--packs", "--mcp"} <= {name for option in command["options"] for name in option["names"]}
    }
    assert not lacking
    assert pegboard("trust", "--list", "--packs", ".").returncode == 0


@pytest.mark.promise("CLI-7")
def test_arguments_have_plain_names_in_the_usage_and_in_the_json(pegboard: Command) -> None:
    commands_ = json.loads(pegboard("--help", "--json").stdout)["commands"]
    names = {argument["name"] for command in commands_ for argument in command["arguments"]}
    assert {"QUERY", "TOOL", "ID", "ACTION"} <= names
    assert not [name for name in names if set(name) & set("[].{}") or name.islower()]
    assert "[[" not in pegboard("history", "list", "--help").stdout


@pytest.mark.promise("CLI-7")
@pytest.mark.parametrize(
    ("words", "name", "inner"),
    [
        (["tools", "invoke", "-h", "--json"], "pegboard tools invoke", 0),
        (["--json", "--help", "sessions"], "pegboard sessions", 5),
    ],
)
def test_one_command_or_group_is_described_alone(pegboard: Command, words: list[str], name: str, inner: int) -> None:
    described = json.loads(pegboard(*words).stdout)
    assert (described["name"], len(described["commands"])) == (name, inner)


@pytest.mark.promise("CLI-2", "CLI-7")
def test_an_unknown_command_is_not_described(pegboard: Command) -> None:
    done = pegboard("tolos", "--help", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Unknown command 'tolos'" in done.stderr


@pytest.mark.promise("CLI-1")
@pytest.mark.parametrize(
    ("words", "suggested"),
    [
        (["run"], "`pegboard check run`, `pegboard script run`, `pegboard tools invoke`"),
        (["fs.read file"], "`pegboard tools invoke 'fs.read file'`"),
        (["tools", "exec"], "`pegboard tools invoke`"),
        (["doctor"], "`pegboard deps`"),
    ],
)
def test_an_unknown_command_names_those_that_may_be_meant(pegboard: Command, words: list[str], suggested: str) -> None:
    done = pegboard(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"Error: No such command '{words[-1]}'. Did you mean {suggested}?\n")


@pytest.mark.parametrize("group", ["mcp", "history", "tools", "script"])
def test_the_commands_of_a_group_are_listed_with_whole_descriptions(pegboard: Command, group: str) -> None:
    listed = pegboard(group, "--help").stdout.partition("Commands:")[2]
    assert "..." not in listed
    described = json.loads(pegboard(group, "--help", "--json").stdout)["commands"]
    shown = " ".join(listed.split())
    assert all(
        f"{one['name'].split()[-1]} {one['help'].split('. ')[0].splitlines()[0]}"[:60] in shown for one in described
    )


def test_arguments_after_two_dashes_are_not_read_as_help(pegboard: Command) -> None:
    done = pegboard("ask", "--json", "--", "--help")
    assert json.loads(done.stdout)["sessionId"]


@pytest.mark.parametrize("columns", ["80", "200"])
def test_help_is_the_same_whether_or_not_the_commands_are_loaded(home: Path, columns: str) -> None:
    quick, full = (
        subprocess.run(
            [sys.executable, "-m", "pegboard", *words, "--help"],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "COLUMNS": columns, "TERMINAL_WIDTH": columns},
            check=True,
        ).stdout
        for words in ([], ["--packs", "x"])
    )
    assert quick == full
    assert "..." not in quick.partition("Commands:")[2], "a description is cut"
    assert all(f"\n  {name} " in quick for name in COMMANDS)


@pytest.mark.promise("DOC-1")
def test_the_guide_lists_and_prints_its_pages(pegboard: Command) -> None:
    listed = pegboard("guide")
    names = [line.split()[0] for line in listed.stdout.splitlines()[1:]]
    assert {"tools", "results", "models", "scripts", "health", "packs", "mcp", "configuration"} <= set(names)
    assert [page["name"] for page in json.loads(pegboard("guide", "--json").stdout)] == names
    agent = pegboard("guide", "agent")
    assert (agent.returncode, agent.stderr) == (0, "")
    assert agent.stdout.startswith("# Use Pegboard as an agent\n")
    wrong = pegboard("guide", "nowhere")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "agent" in wrong.stderr


@pytest.mark.promise("DOC-1")
def test_the_guide_names_every_source_of_calls(pegboard: Command) -> None:
    (row,) = [line for line in pegboard("guide", "commands").stdout.splitlines() if line.startswith("| `source:")]
    assert set(re.findall(r"`(\w+)`", row)) == {*get_args(CallSource)}


@pytest.mark.promise("DOC-1")
def test_the_guide_can_be_searched(pegboard: Command) -> None:
    found = pegboard("guide", "--search", "EXIT CODE")
    assert any(line.startswith("commands:") for line in found.stdout.splitlines())
    assert all("exit code" in line.casefold() for line in found.stdout.splitlines())
    [hit, *_] = json.loads(pegboard("guide", "packs", "--search", "keyword-only", "--json").stdout)
    assert hit["page"] == "packs"
    none = pegboard("guide", "--search", "nowhere to be found")
    assert (none.returncode, none.stdout) == (0, "")
    assert "No line" in none.stderr


@pytest.mark.promise("DOC-1")
def test_on_a_terminal_the_page_is_formatted(home: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pegboard", "guide", "health"], stdout=theirs, stdin=subprocess.DEVNULL
    )
    os.close(theirs)
    shown = b""
    try:
        while select.select([ours], [], [], 60)[0]:
            try:
                piece = os.read(ours, 10_000)
            except OSError:
                break
            shown += piece
        assert process.wait(60) == 0
    finally:
        process.kill()
        os.close(ours)
    text = re.sub(rb"\x1b\[[0-9;]*m", b"", shown).decode()
    assert b"\x1b[" in shown
    assert "## " not in text
    assert "The Health page shows every program" in text


@pytest.mark.promise("DOC-1")
def test_a_page_longer_than_the_terminal_opens_in_the_users_pager(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "PAGER": "sh -c 'cat > page; echo $LESS >> page'"}
    environ.pop("LESS", None)
    process = subprocess.Popen(
        commands.forked("pegboard", "guide", "health"), stdin=theirs, stdout=theirs, cwd=tmp_path, env=environ
    )
    try:
        assert process.wait(60) == 0
    finally:
        process.kill()
        os.close(theirs)
        os.close(ours)
    page = (tmp_path / "page").read_text()
    assert "The Health page shows every program" in re.sub(r"\x1b\[[0-9;]*m", "", page)
    assert page.endswith("\n-RFX\n"), "less shows colors"


@pytest.mark.promise("CLI-6")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sessions", "list"], "No sessions yet."),
        (["sessions", "list", "--search", "x"], "No session contains 'x'."),
        (["history"], "No recorded calls yet."),
        (["history", "--tool", "fs.x"], "No recorded calls of fs.x."),
        (["presets", "list"], "No presets."),
        (["presets", "list", "fs.list_dir"], "No presets of fs.list_dir."),
        (["script", "list"], "No saved scripts."),
        (["rules", "list"], "No rules: read-only tools run, all others ask for approval."),
        (["trust", "--list"], "No trusted folders."),
        (["auth", "list"], "No secrets"),
        (["tools", "list", "nowhere"], "No tool matches 'nowhere'."),
    ],
)
def test_an_empty_list_is_a_message_on_stderr(pegboard: Command, words: list[str], message: str) -> None:
    done = pegboard(*words)
    assert (done.returncode, done.stdout) == (0, "")
    assert message in done.stderr
    assert json.loads(pegboard(*words, "--json").stdout) == []


@pytest.mark.promise("CLI-6")
def test_sessions_and_history_have_headings(pegboard: Command) -> None:
    pegboard("ask", "tools.echo value=x", "--session", "s")
    assert pegboard("sessions", "list").stdout.splitlines()[0].split() == ["ID", "CHANGED", "MESSAGES", "NAME"]
    heading, call = pegboard("history").stdout.splitlines()
    assert heading.split() == ["ID", "TIME", "RESULT", "DURATION", "SOURCE", "TOOL", "ARGUMENTS"]
    assert call.index("tools.echo") == heading.index("TOOL")


@pytest.mark.promise("CLI-6")
def test_show_prints_the_last_messages_shortened_and_everything_on_request(pegboard: Command) -> None:
    long = "x" * 9000
    for value in ("first", long):
        pegboard("ask", f"tools.echo value={value}", "--session", "s")
    shown = pegboard("sessions", "show", "s", "--limit", "3")
    assert len(shown.stdout) < 15_000
    assert "first" not in shown.stdout.split("\n", 3)[3]
    assert "… (5,000 more characters)" in shown.stdout
    assert "note: 5 earlier messages not shown, " in shown.stderr
    assert "--full" in shown.stderr
    full = pegboard("sessions", "show", "s", "--full")
    assert (full.stdout, full.stderr) == (pegboard("sessions", "export", "s").stdout, "")
    assert long in full.stdout
    assert pegboard("sessions", "show", "s").stderr.startswith("note: ")


@pytest.mark.promise("CLI-3")
@pytest.mark.parametrize("words", [["--with-tools", "false", "hello"], ["hello", "--with-tools", "FALSE"]])
def test_tools_are_switched_off_with_a_separate_word(pegboard: Command, words: list[str]) -> None:
    done = pegboard("ask", *words)
    assert (done.returncode, "offered no tools" in done.stdout) == (0, True), done.stderr
    assert ' --with-tools false "…"\n' in done.stderr
    again = pegboard("ask", "--with-tools", "tools.echo value=y")
    assert "→ tools.echo" in again.stderr


@pytest.mark.promise("CLI-3")
def test_ask_says_how_to_continue_its_session_with_the_same_model(pegboard: Command) -> None:
    done = pegboard("ask", "tools.echo value=one", "--model", "offline")
    [line] = [line for line in done.stderr.splitlines() if line.startswith("To continue:")]
    [session] = re.findall(r'--session (\w+) --model offline "…"$', line)
    pegboard("ask", "tools.echo value=two", "--session", session)
    entries = json.loads(pegboard("sessions", "show", session, "--json").stdout)["entries"]
    assert len(entries) == 8
    assert "To continue" not in pegboard("ask", "hello", "--session", session).stderr


@pytest.mark.promise("CLI-6")
def test_data_and_messages_appear_in_order(home: Path, write_pack: Callable[[str, str], Path]) -> None:
    packs = write_pack(
        "order.py",
        '''
        from pegboard.sdk import log, progress

        def talk() -> str:
            """Print half a line, then report progress."""
            print("half a line", end="", flush=True)
            progress(1, 2, "working")
            return "done"
        ''',
    )
    done = subprocess.run(
        [sys.executable, "-m", "pegboard", "--packs", str(packs), "tools", "invoke", "order.talk", "--data"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines() == ["half a line", "progress 1/2 working", "done"]


@pytest.mark.promise("CLI-1")
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("fs.*", {"fs.list_dir", "fs.read_file"}),
        ("*.list_dir", {"fs.list_dir"}),
        ("READ_FILE", {"fs.read_file", "git.read_file"}),
    ],
)
def test_tools_are_listed_by_pattern_or_text(pegboard: Command, pattern: str, expected: set[str]) -> None:
    listed = {tool["name"] for tool in json.loads(pegboard("tools", "list", pattern, "--json").stdout)}
    assert listed == expected


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tools invoke time.now --print cli --timeout 30", "--timeout can't be combined with --print"),
        ("tools invoke time.now --print json --data --json", "--data, --json can't be combined with --print"),
        ("tools invoke time.now --print mcp --messages --elicit decline", "--elicit, --messages can't be combined"),
        ("tools invoke time.now --data --json", "--json can't be combined with --data"),
        ("ask hello --with-tools false --approve fs.*", "--approve can't be combined with --with-tools false"),
        ("history show 01 --print cli --data", "--data can't be combined with --print"),
        ("history stats time.now --session x", "TOOL can't be combined with --session"),
        ("trust --list .", "DIR can't be combined with --list"),
        ("sessions show s --limit 3 --full", "--limit can't be combined with --full"),
        ("sessions show s --limit 3 --json", "--limit can't be combined with --json"),
    ],
)
def test_an_option_that_another_one_would_hide_is_refused(pegboard: Command, line: str, message: str) -> None:
    done = pegboard(*line.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(message), done.stderr
