"""`pegboard script run | check | list`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import commands
import pytest

Command = Callable[..., commands.Done]

SHOP = (Path(__file__).parents[1] / "packs" / "scripted.py").read_text(encoding="utf-8")


@pytest.fixture
def environment(write_pack: Callable[[str, str], Path]) -> dict[str, str]:
    return {**os.environ, "PEGBOARD_PACKS": str(write_pack("shop.py", SHOP))}


@pytest.fixture
def pegboard(environment: dict[str, str], tmp_path: Path) -> Command:
    """Return a function that writes a script to a file and runs `pegboard script` with it."""

    def run(verb: str, script: str, *options: str) -> commands.Done:
        (tmp_path / "it.sh").write_bytes(script.encode())
        return commands.pegboard("script", verb, "it.sh", *options, cwd=tmp_path, env=environment)

    return run


@pytest.mark.promise("CLI-4", "CLI-2")
def test_a_script_prints_what_it_prints_and_exits_as_it_does(pegboard: Command) -> None:
    done = pegboard("run", "shop.get_user 7 | jq -r .name; shop.get_user 9; exit 7")
    assert (done.stdout, done.returncode) == ("Ada\n", 7)
    assert done.stderr == "shop.get_user: There is no user 9.\n"


@pytest.mark.promise("CLI-4", "CLI-2")
@pytest.mark.parametrize("verb", ["run", "check"])
def test_a_note_explains_windows_line_ends_which_become_part_of_a_word(pegboard: Command, verb: str) -> None:
    done = pegboard(verb, "shop.get_user 7\r\n")
    assert done.stderr.startswith("note: it.sh has Windows line ends.")
    assert "sed -i 's/\\r$//' FILE" in done.stderr
    assert pegboard(verb, "shop.get_user 7\n").stderr == ""


@pytest.mark.promise("CLI-5", "SCR-2")
def test_a_command_reads_its_arguments_as_json_from_a_pipe(pegboard: Command) -> None:
    script = """printf '{"id": 7}' | shop.get_user --args - | jq -r .name"""
    assert pegboard("run", script).stdout == "Ada\n"
    for words in ("--args -", "--args=-"):
        checked = pegboard("check", script.replace("--args -", words))
        assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.promise("CLI-5", "CLI-2")
def test_as_json_a_script_has_its_calls_with_their_results(pegboard: Command) -> None:
    done = pegboard("run", "shop.get_user 7 | jq -r .name; shop.get_user 9", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert {name: told[name] for name in ("stdout", "stderr", "exit_code")} == {
        "stdout": "Ada\n",
        "stderr": "shop.get_user: There is no user 9.\n",
        "exit_code": 1,
    }
    found, missing = told["calls"]
    assert {**found["call"], "id": ""} == {"id": "", "name": "shop.get_user", "args": {"id": 7}, "source": "script"}
    assert found["result"]["data"]["name"] == "Ada"
    assert missing["result"]["error"]["detail"] == "not_found"


@pytest.mark.promise("CLI-2")
def test_an_unreadable_script_is_wrong_usage(pegboard: Command, tmp_path: Path) -> None:
    assert pegboard("run", "echo 'a").returncode == 2
    empty = pegboard("run", "")
    assert (empty.returncode, empty.stderr) == (2, "it.sh is empty.\n")
    assert commands.pegboard("script", "run", "-", cwd=tmp_path).stderr == "Standard input is empty.\n"
    (tmp_path / "bytes.sh").write_bytes(b"\xff")
    for file, said in (("none.sh", "doesn't exist"), ("bytes.sh", "is not UTF-8"), ("", f"{tmp_path} is a folder.")):
        done = commands.pegboard("script", "run", str(tmp_path / file))
        assert (done.returncode, said in done.stderr) == (2, True)


@pytest.mark.promise("CLI-2", "CLI-5")
def test_as_json_a_script_that_ran_is_a_success_and_has_its_own_exit_code_and_interrupted_calls(
    pegboard: Command,
) -> None:
    calls = []
    for text, options, code in (("exit 7", [], 7), ("true", [], 0), ("shop.nap 50", ["--timeout", "0.5"], 124)):
        done = pegboard("run", text, "--json", *options)
        told = json.loads(done.stdout)
        assert (done.returncode, told["exit_code"]) == (0, code)
        calls += told["calls"]
    [nap] = calls
    assert (nap["call"]["name"], nap["call"]["args"]) == ("shop.nap", {"seconds": 50})
    assert nap["result"]["error"]["detail"] == "cancelled"


def test_a_script_has_a_timeout_and_keeps_what_it_printed(pegboard: Command) -> None:
    done = pegboard("run", "echo before; shop.nap 50", "--timeout", "0.5")
    assert (done.stdout, done.returncode) == ("before\n", 124)
    assert done.stderr == "pegboard: the script was stopped: it took longer than 0.5 s\n"


def test_a_script_may_call_what_the_allow_list_admits(pegboard: Command) -> None:
    done = pegboard("run", "shop.get_user 7 | jq .id; shop.buy tea", "--tool-allow", "shop.get_user")
    assert (done.stdout, done.returncode) == ("7\n", 127)
    assert "shop.buy: command not found" in done.stderr


@pytest.mark.promise("CLI-2")
def test_ctrl_c_ends_a_script_and_its_calls(environment: dict[str, str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "pegboard", "script", "run", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("echo begun; shop.nap 50")
        process.stdin.close()
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130


@pytest.mark.promise("CLI-2", "CLI-5")
def test_as_json_an_interrupted_script_has_its_output_and_the_calls_that_ran(
    environment: dict[str, str], write_pack: Callable[[str, str], Path], tmp_path: Path
) -> None:
    write_pack(
        "marking.py",
        "import pathlib, time\n\ndef nap(*, marker: str) -> None:\n"
        '    """Sleep."""\n    pathlib.Path(marker).touch()\n    time.sleep(50)\n',
    )
    marker = tmp_path / "marker"
    with subprocess.Popen(
        [sys.executable, "-m", "pegboard", "script", "run", "-", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(f"echo begun; marking.nap --marker {marker}")
        process.stdin.close()
        process.stdin = None
        end = time.monotonic() + 30
        while not marker.exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=10)
    assert process.returncode == 130
    told = json.loads(out)
    assert {**told, "calls": len(told["calls"])} == {"stdout": "begun\n", "stderr": "", "exit_code": 130, "calls": 1}
    assert told["calls"][0]["result"]["error"]["detail"] == "cancelled"


@pytest.mark.promise("CLI-4")
def test_check_lists_the_calls_of_a_script_and_the_unknown_ones(pegboard: Command) -> None:
    done = pegboard("check", "shop.get_user 7; shop.buy $(date); $x")
    assert done.stdout.splitlines() == ["shop.get_user  7", "shop.buy       ?"]
    assert done.stderr == "unknown: A command's name is only known when the script runs.\n"
    assert done.returncode == 0

    wrong = pegboard("check", "shop.get_user ada", "--json")
    assert wrong.returncode == 2
    assert json.loads(wrong.stdout)["calls"][0]["tool"] == "shop.get_user"
    assert pegboard("check", "if then").returncode == 2


@pytest.mark.promise("CLI-1", "SCR-2")
def test_a_call_printed_as_a_line_of_a_script_has_equal_arguments(environment: dict[str, str], tmp_path: Path) -> None:
    def pegboard(*arguments: str, stdin: str) -> str:
        done = commands.pegboard(*arguments, cwd=tmp_path, env=environment, stdin=stdin)
        done.check_returncode()
        return done.stdout

    text = 'it\'s "$HOME" `id` $(id) \\ !x\n\ttwo\r\x1b ünï 🙂 {a,b} * ~ #'
    lines = ""
    made = [
        {"filter": {"a.b": text, "": None, "n": [10**30, -1, True]}, "note": None},
        {"filter": {text: {"x": text}}, "note": "-h"},
        {"filter": None, "note": ""},
        {"note": f"END\n{text}"},
        {},
    ]
    for args in made:
        lines += pegboard("tools", "invoke", "shop.search", "--print", "script", "--args", "-", stdin=json.dumps(args))
    ran = json.loads(pegboard("script", "run", "-", "--json", stdin=lines))
    assert ran["stderr"] == ""
    assert [call["call"]["args"] for call in ran["calls"]] == made


@pytest.mark.promise("CLI-4", "CLI-2")
def test_a_script_is_saved_shown_renamed_and_deleted(
    pegboard: Command, tmp_path: Path, environment: dict[str, str]
) -> None:
    def script(*arguments: str, stdin: str = "") -> commands.Done:
        return commands.pegboard("script", *arguments, cwd=tmp_path, env=environment, stdin=stdin)

    assert script("save", "hi", "-", stdin="echo hi\n").returncode == 0
    assert script("show", "hi.sh").stdout == "echo hi\n"
    again = script("save", "hi", "-", stdin="echo other\n")
    assert (again.returncode, "Choose another name, or add --force." in again.stderr) == (2, True)
    (tmp_path / "file.sh").write_text("echo file\n")
    assert script("save", "hi", "file.sh", "--force").returncode == 0
    assert script("rename", "hi", "bye").returncode == 0
    assert script("run", "bye").stdout == "file\n"
    assert script("delete", "bye").returncode == 0
    missing = script("show", "bye")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "No saved script is named `bye`." in missing.stderr
    assert script("save", "x").returncode == script("save", "x", "file.sh", "--call", "0000").returncode == 2


@pytest.mark.promise("CLI-4", "ACT-2")
def test_recorded_calls_are_saved_as_a_script_that_repeats_them(
    pegboard: Command, tmp_path: Path, environment: dict[str, str]
) -> None:
    made = pegboard("run", "shop.get_user 9; shop.get_user 7", "--json")
    ids = [call["call"]["id"] for call in json.loads(made.stdout)["calls"]]
    options = [word for id_ in reversed(ids) for word in ("--call", id_)]
    save = ("script", "save", "again", *options)
    assert commands.pegboard(*save, cwd=tmp_path, env=environment).returncode == 0
    again = commands.pegboard("script", "run", "again", "--json", cwd=tmp_path, env=environment)
    assert [call["call"]["args"] for call in json.loads(again.stdout)["calls"]] == [{"id": 9}, {"id": 7}]
    unknown = commands.pegboard("script", "save", "x", "--call", "0000", cwd=tmp_path, env=environment)
    assert (unknown.returncode, "exactly one recorded call" in unknown.stderr) == (3, True)


@pytest.mark.promise("CLI-2", "CLI-5")
def test_saved_scripts_are_listed_run_and_checked_by_name_and_a_file_wins(
    pegboard: Command, home: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    def saved(*arguments: str) -> commands.Done:
        return commands.pegboard("script", *arguments, cwd=tmp_path, env=environment)

    assert json.loads(saved("list", "--json").stdout) == []
    folder = home / "data" / "scripts"
    folder.mkdir(parents=True)
    (folder / "who is.sh").write_text("shop.get_user 7 | jq -r .name")
    (folder / "other.sh").write_text("echo other")
    assert [line.split("  ")[0] for line in saved("list").stdout.splitlines()[1:]] == ["other", "who is"]
    [_, told] = json.loads(saved("list", "--json").stdout)
    assert (told["name"], told["changed"][-1]) == ("who is", "Z")

    assert saved("run", "who is").stdout == "Ada\n"
    assert saved("run", "who is.sh").stdout == "Ada\n"
    assert saved("check", "who is").stdout == "shop.get_user  7\n"
    (tmp_path / "other").mkdir()
    assert saved("run", "other").stdout == "other\n", "a folder is no script"
    (tmp_path / "who is").write_text("echo file")
    assert saved("run", "who is").stdout == "file\n"

    missing = saved("run", "nobody")
    assert missing.returncode == 2
    assert missing.stderr == (
        "The file nobody doesn't exist. No saved script is named `nobody`. Saved scripts: other, who is.\n"
    )


BLOCKED = '''
from pegboard.sdk import requires_cli

@requires_cli("surely-not-installed", install="Install it.")
def show(*, path: str) -> str:
    """Show a file."""
    return path
'''

WRONG = {
    "a misspelled tool": ("shop.get_usr 7", "Unknown command shop.get_usr. Did you mean shop.get_user?"),
    "a misspelled plain name": ("shop_get_usr 7", "Unknown command shop_get_usr. Did you mean shop"),
    "an unknown pack": ("x=$(nothing.here 3)", "Unknown command nothing.here."),
    "an unknown flag": ("shop.get_user --idd 7", "shop.get_user: "),
    "an unknown flag with a word that isn't known": ("shop.words $x --shout", "shop.words: unknown flag --shout"),
    "an unknown flag behind xargs": ("echo a | xargs -n 1 shop.words --shout", "shop.words: unknown flag --shout"),
    "a missing argument": ("echo 7 | shop.get_user", "shop.get_user: --id: is required"),
    "a missing argument in a function": ("f() { shop.words --loud; }; f", "shop.words: --text: is required"),
    "a wrong value": ("shop.words a --limit many", "shop.words: --limit"),
    "a blocked tool": ("blocked.show a", "blocked.show is blocked: "),
    "a tool that isn't allowed": ("shop.buy tea", "shop.buy is not on the allow list"),
    "a plain name that isn't allowed": ("shop_buy tea", "shop.buy is not on the allow list"),
}


@pytest.mark.promise("CLI-4")
@pytest.mark.parametrize(("script", "said"), WRONG.values(), ids=WRONG.keys())
def test_check_reports_calls_that_can_not_work(
    pegboard: Command, write_pack: Callable[[str, str], Path], script: str, said: str
) -> None:
    write_pack("blocked.py", BLOCKED)
    allow = "shop.get_user,shop.words,blocked.*" if "allow list" in said else "*"
    done = pegboard("check", script, "--tool-allow", allow)
    assert f"error: {said}" in done.stderr
    assert done.returncode == 2


FINE = [
    "shop.get_user 7 | jq .name; sort -u x; my.func() { echo hi; }; my.func",
    "echo text | shop.lines; shop.lines < f",
    "shop.get_user --help; help shop.get_user; shop.get_user --id=7; shop.get_user --args '{\"id\": 7}'",
    "shop.words a --no-loud --tags b --tags c; shop.words --limit=$x a",
    "source f.sh; a.b 3",
    "./x.sh; echo $x.y; python3 a.py",
]


@pytest.mark.promise("CLI-4")
@pytest.mark.parametrize("script", FINE)
def test_check_accepts_calls_that_may_work(pegboard: Command, script: str) -> None:
    done = pegboard("check", script)
    assert "error" not in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("verb", ["run", "check"])
def test_the_problem_of_a_pack_or_server_is_printed_if_a_command_is_missing(
    pegboard: Command, write_pack: Callable[[str, str], Path], verb: str
) -> None:
    write_pack("broken.py", "def hello(*, name: str -> str:\n")
    config = Path(os.environ["PEGBOARD_CONFIG"])
    config.parent.mkdir(exist_ok=True)
    config.write_text("[mcp.servers.gone]\ncommand = '/nonexistent/server'\n", encoding="utf-8")
    for script in ("broken.hello 1; true", "shop.get_user 7 >/dev/null; gone.hello"):
        done = pegboard(verb, script)
        assert "broken.py:1: The file could not be parsed: invalid syntax." in done.stderr
        assert "The MCP server gone is not connected." in done.stderr
    assert pegboard(verb, "shop.get_user 7").stderr == ""


def test_arguments_nested_too_deeply_are_misuse_of_one_command_and_the_script_continues(pegboard: Command) -> None:
    nested = "[" * 300 + "]" * 300
    done = pegboard(
        "run", f"shop.search --args '{{\"filter\": {nested}}}'; shop.search --note {nested} | jq -r .note; echo x"
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "x")
    assert "nested deeper than 150 levels" in done.stderr
    assert "usage: shop.search" in done.stderr
    assert "it broke" not in done.stderr
    done = pegboard("run", f"shop.search --filter{'.a' * 300} 1; echo x")
    assert (done.returncode, done.stdout) == (0, "x\n")
    assert "a key has more than 32 parts; pass the value as JSON" in done.stderr
