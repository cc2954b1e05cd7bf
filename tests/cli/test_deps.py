"""`pegboard deps`, and the requirements in `tools list | info`."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import commands
import pytest

Command = Callable[..., commands.Done]

PACK = '''
from pegboard.sdk import requires_cli, requires_lib, requires_secret

@requires_cli("here", min_version="1.2")
@requires_lib("json")
def ready() -> str:
    """Has all that it needs."""
    return "done"

@requires_cli("not-here", min_version="3", install="make \\x1b[31mnot-here")
@requires_secret("NEEDED_KEY", hint="https://example.org/account")
def blocked() -> str:
    """Lacks two things."""
    return "done"

@requires_cli("here", min_version="9")
def outdated() -> str:
    """Needs more than there is."""
    return "done"
'''

KEYS = ["tool", "kind", "name", "status", "version", "minVersion", "path", "install", "error"]


@pytest.fixture
def environment(tmp_path: Path, write_pack: Callable[[str, str], Path]) -> dict[str, str]:
    """Return an environment with the pack, one of the programs that it needs, no secrets and no keyring."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "here").write_text("#!/bin/sh\necho here 1.2.3\n")
    (folder / "here").chmod(0o755)
    return {
        **{name: value for name, value in os.environ.items() if name != "NEEDED_KEY"},
        "PATH": f"{folder}:/usr/bin:/bin",
        "PEGBOARD_PACKS": str(write_pack("needy.py", PACK)),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }


@pytest.fixture
def pegboard(environment: dict[str, str], tmp_path: Path) -> Command:
    """Return a function that runs `pegboard` and returns the finished process."""

    def run(*arguments: str, **more: str) -> commands.Done:
        return commands.pegboard(*arguments, cwd=tmp_path, env={**environment, **more})

    return run


@pytest.mark.promise("CLI-4", "CLI-5", "SDK-9")
def test_the_report_is_an_array_of_rows_and_exit_1_if_something_is_missing(pegboard: Command, tmp_path: Path) -> None:
    done = pegboard("deps", "--json", "--tool-allow", "needy.*")
    rows = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (1, "")
    assert all([*row] == KEYS for row in rows)
    assert [(row["tool"], row["kind"], row["name"], row["status"]) for row in rows] == [
        ("needy.blocked", "cli", "not-here", "missing"),
        ("needy.blocked", "secret", "NEEDED_KEY", "missing"),
        ("needy.outdated", "cli", "here", "outdated"),
        ("needy.ready", "cli", "here", "ok"),
        ("needy.ready", "lib", "json", "ok"),
    ]
    assert rows[1]["install"] == "https://example.org/account"
    assert rows[3] == {
        "tool": "needy.ready",
        "kind": "cli",
        "name": "here",
        "status": "ok",
        "version": "1.2.3",
        "minVersion": "1.2",
        "path": str(tmp_path / "bin" / "here"),
        "install": "Install here and add it to the PATH.",
        "error": None,
    }


@pytest.mark.promise("CLI-4", "CLI-2")
@pytest.mark.parametrize(
    ("line", "code", "tools"),
    [
        (["needy.ready"], 0, {"needy.ready"}),
        (["needy.outdated"], 1, {"needy.outdated"}),
        (["needy"], 1, {"needy.ready", "needy.blocked", "needy.outdated"}),
        (["fs"], 0, set()),
        (["--tool-allow", "*.ready"], 0, {"needy.ready"}),
    ],
)
def test_one_tool_or_one_pack_can_be_checked(pegboard: Command, line: list[str], code: int, tools: set[str]) -> None:
    done = pegboard("deps", "--json", *line)
    assert (done.returncode, {row["tool"] for row in json.loads(done.stdout)}) == (code, tools)


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize(("name", "near"), [("needy.raedy", "needy.ready"), ("nedy", "needy"), ("nowhere", "nowhere")])
def test_an_unknown_tool_is_exit_3_with_the_nearest_pack(pegboard: Command, name: str, near: str) -> None:
    done = pegboard("deps", name)
    assert (done.returncode, done.stdout) == (3, "")
    assert near in done.stderr


@pytest.mark.promise("CLI-4", "TUI-4")
def test_the_report_is_grouped_by_requirement_with_fixes_and_without_control_characters(
    pegboard: Command,
) -> None:
    done = pegboard("deps", "--tool-allow", "needy.*")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr, len(lines)) == (1, "", 10)
    assert "\x1b" not in done.stdout
    assert lines[0].startswith("missing   not-here ≥ 3  program  `not-here` is not on the PATH. How to get it: make ")
    assert lines[1] == "          blocks 1 tool: needy.blocked"
    assert [line.split()[:2] for line in lines[::2]] == [
        ["missing", "not-here"], ["missing", "NEEDED_KEY"], ["outdated", "here"], ["ok", "here"], ["ok", "json"],
    ]  # fmt: skip
    assert lines[6].startswith("ok        here ≥ 1.2    program  1.2.3  /")
    assert lines[7] == "          1 tool: needy.ready"


@pytest.mark.promise("CLI-4")
def test_each_requirement_is_listed_once_with_the_tools_that_need_it(
    pegboard: Command, write_pack: Callable[[str, str], Path]
) -> None:
    source = [
        f'''
@requires_cli("not-here")
def tool{number}() -> str:
    """Do work."""
    return ""
'''
        for number in range(11)
    ]
    write_pack("many.py", "from pegboard.sdk import requires_cli\n" + "".join(source))
    done = pegboard("deps", "many")
    first, second = done.stdout.splitlines()
    assert first.startswith("missing   not-here  program")
    assert second.startswith("          blocks 11 tools: many.tool0, many.tool1, many.tool10, ")
    assert second.endswith(" and 3 more")


SHARED = '''
from pegboard.sdk import get_secret, requires_cli, requires_secret

@requires_cli("not-here")
def first() -> str:
    """Reads a secret."""
    return get_secret("SHARED_KEY") or ""

@requires_cli("not-here", install="make not-here")
@requires_secret("SHARED_KEY", hint="Ask Bob.")
def second() -> str:
    """Requires a secret."""
    return ""
'''


def test_the_advice_of_a_tool_that_has_one_is_printed_for_all_tools(
    pegboard: Command, write_pack: Callable[[str, str], Path]
) -> None:
    write_pack("shared.py", SHARED)
    report = pegboard("deps", "shared").stdout
    assert "How to get it: make not-here\n" in report
    assert "How to get it: Ask Bob.\n" in report


def test_the_words_of_a_program_end_before_the_advice(
    pegboard: Command, write_pack: Callable[[str, str], Path], tmp_path: Path
) -> None:
    (tmp_path / "bin" / "here").write_text("#!/bin/sh\necho no license >&2\nexit 3\n")
    report = pegboard("deps", "needy.ready").stdout
    assert "`here --version` failed with exit code 3: no license. How to get it: " in report


def test_tools_without_requirements_are_reported(pegboard: Command) -> None:
    done = pegboard("deps", "fs")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "note: the tools have no requirements\n")


@pytest.mark.promise("CLI-4")
@pytest.mark.parametrize(("no_color", "colored"), [("", True), ("1", False)])
def test_on_a_terminal_rows_appear_as_they_are_found_and_in_color(
    environment: dict[str, str], tmp_path: Path, no_color: str, colored: bool
) -> None:
    slow = tmp_path / "bin" / "here"
    slow.write_text(f"#!/bin/sh\nuntil test -e {tmp_path}/go; do sleep 0.05; done\necho here 1.2.3\n")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pegboard", "deps", "needy.ready"],
        stdout=theirs,
        cwd=tmp_path,
        env={**environment, "NO_COLOR": no_color},
    )
    os.close(theirs)
    try:
        first = _read_until(ours, b"json")
        assert b"here" not in first.replace(b"needy.ready", b"")
        (tmp_path / "go").touch()
        _read_until(ours, b"1.2.3")
        assert process.wait(60) == 0
    finally:
        process.kill()
        os.close(ours)
    assert (b"\x1b[32mok" in first) is colored


def _read_until(terminal: int, text: bytes) -> bytes:
    read = b""
    while text not in read:
        assert select.select([terminal], [], [], 60)[0], read
        read += os.read(terminal, 1000)
    return read


@pytest.mark.promise("CLI-1", "CLI-5")
def test_list_shows_the_state_of_each_tool_and_its_requirements(pegboard: Command) -> None:
    listed = {tool["name"]: tool for tool in json.loads(pegboard("tools", "list", "--json").stdout)}
    states = {name: tool["state"] for name, tool in listed.items() if tool["pack"] == "needy"}
    assert states == {"needy.ready": "ready", "needy.blocked": "blocked", "needy.outdated": "blocked"}
    assert listed["needy.ready"]["requirements"] == json.loads(pegboard("deps", "needy.ready", "--json").stdout)
    assert listed["fs.read_file"]["requirements"] == []
    assert "needy.blocked   blocked" in pegboard("tools", "list", "--tool-allow", "needy.*").stdout


@pytest.mark.promise("CLI-1")
def test_info_shows_the_requirements_of_a_tool_and_their_status(pegboard: Command) -> None:
    info = json.loads(pegboard("tools", "info", "needy.outdated", "--json").stdout)
    assert (info["state"], [row["status"] for row in info["requirements"]]) == ("blocked", ["outdated"])
    shown = pegboard("tools", "info", "needy.outdated").stdout
    assert "state    blocked\n" in shown
    assert "needs    cli here ≥ 9: outdated, `here` is 1.2.3; 9 or later is required. How to get it: " in shown


@pytest.mark.promise("EXE-3", "CLI-2")
def test_a_blocked_tool_is_not_called_and_the_reason_is_reported(pegboard: Command) -> None:
    done = pegboard("tools", "invoke", "needy.blocked")
    error = json.loads(done.stdout)["result"]["error"]
    assert (done.returncode, error["code"], error["detail"]) == (1, "execution_error", "dependency_missing")
    for row in json.loads(pegboard("deps", "needy.blocked", "--json").stdout):
        assert row["error"] in error["message"]
        assert row["install"] in error["message"]
