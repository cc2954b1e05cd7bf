"""The command line from outside: a process with arguments, stdout, stderr and an exit code."""

from __future__ import annotations

import io
import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import commands
import pytest

from pegboard.cli.arguments import ArgumentError, read_arguments, read_object
from pegboard.models import JsonObject, ToolResult
from pegboard.runtime import Runtime

Command = Callable[..., commands.Done]

TOOL_KEYS = {
    "name",
    "aliases",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "pack",
    "location",
    "state",
    "requirements",
    "problems",
}


@pytest.mark.promise("CLI-1", "CLI-5", "DSC-8")
def test_list_as_json_has_the_stable_shape_and_the_built_in_tools(pegboard: Command) -> None:
    done = pegboard("tools", "list", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    tools = json.loads(done.stdout)
    assert {"fs.list_dir", "fs.read_file", "shell.pwd", "time.now", "tools.echo"} <= {tool["name"] for tool in tools}
    assert all(set(tool) == TOOL_KEYS for tool in tools)
    [read] = [tool for tool in tools if tool["name"] == "fs.read_file"]
    assert read["state"] == "ready"
    assert read["annotations"]["readOnlyHint"] is True
    assert set(read["location"]) == {"kind", "file", "line"}
    assert read["inputSchema"]["required"] == ["path"]


@pytest.mark.promise("DSC-5", "CLI-2")
def test_of_many_warnings_about_a_file_the_first_are_printed_and_the_others_counted(
    pegboard: Command, write_pack: Callable[[str, str], Path], packs: str
) -> None:
    write_pack("plain.py", "".join(f'def f{number}(a):\n    """Do it."""\n\n\n' for number in range(5)))
    about = [line for line in pegboard("tools", "list", "--packs", packs).stderr.splitlines() if "plain.py" in line]
    assert [line.partition("plain.py")[2][:16] for line in about] == [
        *(f":{1 + 4 * number}: `f{number}` has pos" for number in range(3)),
        ": 2 more problem",
    ]
    assert "Write `def f4(*, a)`." in pegboard("tools", "info", "plain.f4", "--packs", packs).stdout


@pytest.mark.promise("CLI-2", "DSC-7")
def test_list_is_data_on_stdout_and_problems_on_stderr(pegboard: Command, packs: str) -> None:
    (Path(packs) / "broken.py").write_text("def broken(:\n")
    done = pegboard("tools", "list", "--packs", packs)
    assert done.returncode == 0
    assert any(line.startswith("greet.hello ") and "Greets somebody." in line for line in done.stdout.splitlines())
    assert "broken.py:1" in done.stderr
    assert "broken" not in done.stdout


@pytest.mark.promise("EXE-2")
@pytest.mark.parametrize(
    ("allow", "names"), [("time.*", ["time.now"]), ("", []), ("tools.echo,shell.pwd", ["shell.pwd", "tools.echo"])]
)
def test_an_allow_list_filters_the_list(pegboard: Command, allow: str, names: list[str]) -> None:
    done = pegboard("tools", "list", "--json", "--tool-allow", allow)
    assert [tool["name"] for tool in json.loads(done.stdout)] == names
    assert re.search(r"the allow list excludes \d+ more tools", done.stderr)


@pytest.mark.promise("EXE-2")
def test_allow_lists_before_and_after_the_command_are_one(pegboard: Command) -> None:
    done = pegboard("--tool-allow", "time.*", "tools", "list", "--json", "--tool-allow", "shell.*")
    assert [tool["name"] for tool in json.loads(done.stdout)] == ["shell.pwd", "time.now"]
    done = pegboard("--tool-allow", "time.*", "tools", "list", "--json")
    assert [tool["name"] for tool in json.loads(done.stdout)] == ["time.now"]


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_the_plain_list_is_that_of_a_pattern_that_matches_all(pegboard: Command, home: Path, json: list[str]) -> None:
    (home / "config.toml").write_text('[tools]\nallow = ["time.*", "fs.*", "no.such"]\n[mistake]\n')
    plain, matching = pegboard("tools", "list", *json), pegboard("tools", "list", "*", *json)
    assert (plain.returncode, plain.stdout, plain.stderr) == (0, matching.stdout, matching.stderr)
    assert "no.such" in plain.stderr
    assert "mistake" in plain.stderr


def test_without_an_allow_list_no_note_mentions_it(pegboard: Command) -> None:
    assert "allow list" not in pegboard("tools", "list").stderr


@pytest.mark.promise("CFG-2")
@pytest.mark.parametrize("where", ["front", "group", "end", "environment"])
def test_packs_folders_are_accepted_anywhere_on_the_command_line(pegboard: Command, packs: str, where: str) -> None:
    option = ["--packs", packs]
    lines = {
        "front": [*option, "tools", "list", "--json"],
        "group": ["tools", *option, "list", "--json"],
        "end": ["tools", "list", "--json", *option],
        "environment": ["tools", "list", "--json"],
    }
    done = pegboard(*lines[where], env={"PEGBOARD_PACKS": packs} if where == "environment" else None)
    assert "greet.hello" in [tool["name"] for tool in json.loads(done.stdout)]


@pytest.mark.promise("CFG-2", "SEC-3")
@pytest.mark.parametrize("where", [0, 1, 3])
def test_an_empty_packs_folder_is_a_usage_error_and_not_the_working_directory(
    pegboard: Command, tmp_path: Path, where: int
) -> None:
    (tmp_path / "here.py").write_text('def f():\n    """Do it."""\n')
    words = ["tools", "list", "here"]
    done = pegboard(*words[:where], "--packs", "", *words[where:])
    assert (done.returncode, done.stdout) == (2, "")
    assert "The folder is empty." in done.stderr


@pytest.mark.promise("CLI-1", "CLI-2")
def test_the_message_of_an_unknown_tool_says_how_to_load_its_pack_from_this_folder(
    pegboard: Command, tmp_path: Path
) -> None:
    (tmp_path / "shelf.py").write_text('"""A shelf."""\n\ndef count() -> int:\n    """Count."""\n    return 1\n')
    for line in (
        ("tools", "invoke", "shelf.count"),
        ("tools", "info", "shelf.count"),
        ("tools", "list", "shelf"),
        ("deps", "shelf"),
        ("batch", "shelf.count", "--from", "-"),
    ):
        assert "shelf.py in this folder is not loaded: add `--packs .`" in pegboard(*line, stdin="{}").stderr, line
    loaded = pegboard("tools", "invoke", "shelf.nope", "--packs", ".")
    assert (loaded.returncode, "not loaded" in loaded.stderr) == (3, False)
    assert pegboard("tools", "invoke", "shelf.count", "--data", "--packs", ".").stdout == "1\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("config", "set", "ui.theme", "nord"), "Too many levels of symbolic links"),
        (("tools", "info", "shelf.count", "--packs", "loop"), "shelf.py in this folder is not loaded"),
        (("batch", "time.now", "--from", "loop", "--out", "out"), "Too many levels of symbolic links"),
        (("history", "redact"), "Redacted in 0 calls"),
    ],
)
@pytest.mark.promise("CLI-1")
def test_links_that_form_a_loop_are_reported_or_ignored(
    line: tuple[str, ...], message: str, pegboard: Command, tmp_path: Path
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "checks").symlink_to("checks")
    (tmp_path / "shelf.py").touch()
    env = {"PEGBOARD_CONFIG": str(tmp_path / "loop")} if "config" in line else {}
    done = pegboard(*line, env=env, stdin="a very long secret")
    assert message in done.stdout + done.stderr


@pytest.mark.promise("CLI-1", "CLI-5")
def test_info_adds_timeout_signature_and_uses(pegboard: Command, packs: str) -> None:
    assert pegboard("tools", "invoke", "greet.hello", "--args", '{"name": "you"}', "--packs", packs).returncode == 0
    done = pegboard("tools", "info", "greet.hello", "--json", "--packs", packs)
    info = json.loads(done.stdout)
    assert set(info) == TOOL_KEYS | {"timeout", "signature", "uses"}
    assert info["timeout"] == 3
    assert info["signature"] == "greet.hello(*, name: str, greeting: str = 'Hello') -> str"
    assert info["uses"]["calls"] == 1
    assert info["location"]["file"] == str(Path(packs) / "greet.py")


def test_info_without_json_is_for_people(pegboard: Command, packs: str) -> None:
    done = pegboard("tools", "info", "sayHello", "--packs", packs)
    assert done.returncode == 0
    assert "greet.hello(*, name: str" in done.stdout
    assert "Greets somebody." in done.stdout


@pytest.mark.promise("DSC-4")
def test_the_names_in_the_schema_of_a_class_are_those_that_the_function_understands(
    pegboard: Command, write_pack: Callable[[str, str], Path]
) -> None:
    source = '''
    from dataclasses import dataclass
    from pydantic import AliasChoices, BaseModel, ConfigDict, Field
    from pydantic.alias_generators import to_camel

    class Options(BaseModel):
        model_config = ConfigDict(alias_generator=to_camel)
        dry_run: bool = False
        limit: int = Field(10, validation_alias=AliasChoices("max", "lim"))

    @dataclass
    class Plain:
        dry_run: bool = False

    def purge(*, options: Options) -> list:
        """Purge."""
        return [options.dry_run, options.limit]

    def plain(*, options: Plain) -> bool:
        """Purge."""
        return options.dry_run
    '''
    packs = str(write_pack("aliased.py", source))
    info = json.loads(pegboard("tools", "info", "aliased.purge", "--json", "--packs", packs).stdout)
    on, limit = info["inputSchema"]["$defs"]["Options"]["properties"]
    args = json.dumps({"options": {on: True, limit: 3}})
    done = pegboard("tools", "invoke", "aliased.purge", "--args", args, "--data", "--packs", packs)
    assert json.loads(done.stdout) == [True, 3]

    args = json.dumps({"options": {"dryrun": True}})
    done = pegboard("tools", "invoke", "aliased.plain", "--args", args, "--packs", packs)
    assert "did you mean `dry_run`?" in done.stderr


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize("command", ["info", "invoke"])
def test_an_unknown_tool_is_exit_3_with_the_nearest_names(pegboard: Command, command: str) -> None:
    done = pegboard("tools", command, "fs.red_file")
    assert done.returncode == 3
    assert "fs.read_file" in done.stderr
    if command == "invoke":
        assert json.loads(done.stdout)["result"]["error"]["code"] == "tool_not_found"


@pytest.mark.promise("EXE-7", "STO-1")
@pytest.mark.parametrize("broken", ["", "broken = ["])
def test_a_call_of_an_unknown_tool_is_recorded_with_its_arguments(pegboard: Command, home: Path, broken: str) -> None:
    (home / "config.toml").write_text(broken)
    pairs = ("--arg", "b.c=x", "--arg", "list=1", "--arg", "list=2")
    done = pegboard("tools", "invoke", "fs.red_file", "--args", '{"a": "1"}', *pairs)
    sent = {"a": "1", "b": {"c": "x"}, "list": [1, 2]}
    assert done.returncode == 3
    assert json.loads(done.stdout)["call"]["args"] == sent
    assert json.loads(pegboard("history", "list", "--json").stdout)[0]["args"] == sent


@pytest.mark.promise("CLI-1", "STO-2")
def test_a_rejected_call_is_printed_with_its_arguments_without_secrets(pegboard: Command, packs: str) -> None:
    pairs = ("--arg", "a=1", "--arg", "b=hunter2-hunter2")
    done = pegboard("tools", "invoke", "greet.add", *pairs, "--packs", packs, env={"ADD_TOKEN": "hunter2-hunter2"})
    assert done.returncode == 2
    assert json.loads(done.stdout)["call"]["args"] == {"a": 1, "b": "«secret ADD_TOKEN»"}


@pytest.mark.promise("EXE-2", "CLI-2")
@pytest.mark.parametrize(
    "line", [["info", "tools.echo"], ["invoke", "tools.echo"], ["invoke", "tools.echo", "--arg", "value=1"]]
)
def test_a_tool_that_is_not_allowed_is_reported_and_exit_3(pegboard: Command, line: list[str]) -> None:
    done = pegboard("tools", *line, "--tool-allow", "fs.*")
    assert done.returncode == 3
    assert "not on the allow list" in done.stderr
    if line[0] == "invoke":
        assert json.loads(done.stdout)["result"]["error"]["detail"] == "not_allowed"


@pytest.mark.promise("CLI-1", "CLI-5", "EXE-1")
def test_invoke_prints_call_and_result(pegboard: Command, packs: str) -> None:
    done = pegboard("tools", "invoke", "greet.hello", "--args", '{"name": "you"}', "--packs", packs)
    answer = json.loads(done.stdout)
    assert set(answer) == {"call", "result"}
    assert set(answer["call"]) == {"id", "name", "args", "source"}
    assert (answer["call"]["name"], answer["call"]["source"]) == ("greet.hello", "cli")
    assert set(answer["result"]) == {"ok", "data", "error", "meta"}
    assert (answer["result"]["ok"], answer["result"]["data"], answer["result"]["error"]) == (True, "Hello you", None)
    assert ToolResult.model_validate(answer["result"]).ok


@pytest.mark.parametrize(
    ("line", "stdin"),
    [
        (["--arg", "a=1", "--arg", "b=2"], ""),
        (["--args", '{"a": 1, "b": 2}'], ""),
        (["--args", "-"], '{"a": 1, "b": 2}'),
        (["--args", '{"a": 1, "b": 9}', "--arg", "b=2"], ""),
        (["--arg=a=1", "--args", "-", "--arg=b=2"], '{"a": 5}'),
    ],
)
def test_arguments_come_as_json_as_pairs_or_from_stdin(
    pegboard: Command, packs: str, line: list[str], stdin: str
) -> None:
    done = pegboard("tools", "invoke", "greet.add", *line, "--packs", packs, "--data", stdin=stdin)
    assert (done.returncode, done.stdout) == (0, "3\n")


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["--args", "{a: 1}"], "not JSON"),
        (["--args", "[1]"], "must be a JSON object"),
        (["--args", "@packs/greet.py"], "To read arguments from a file, write `--args - < FILE`."),
        (["--args", "{}"], "a: "),
        (["--args", '{"a": 1, "b": 2, "c": 3}'], "c: "),
        (["--args", '{"a": NaN, "b": 2}'], "NaN"),
        (["--args", '{"a": 1e400, "b": 2}'], "1e400"),
        (["--args", '{"a": ' + "[" * 300 + "]" * 300 + "}"], "nested deeper"),
        (["--args", '{"a": 1, "b": "\udcff"}'], "--args is not UTF-8"),
        (["--arg", "a=1", "--arg", "b=\udcff"], "--arg is not UTF-8"),
        (["--arg", "a=x", "--arg", "b=2"], "a: "),
        (["--arg", "a"], "a"),
        (["--args", '{"a": 1, "a": 2, "b": 2}'], "twice"),
        (["--preset", "nope"], "no preset 'nope'"),
        (["a=1"], "Unexpected 'a=1'. Write arguments of the tool as --arg KEY=VALUE or --args JSON."),
        (["--a", "1"], "Unexpected '--a'. Write arguments of the tool as --arg KEY=VALUE or --args JSON."),
    ],
)
def test_invalid_arguments_are_exit_2_with_paths_and_reasons(
    pegboard: Command, packs: str, line: list[str], words: str
) -> None:
    done = pegboard("tools", "invoke", "greet.add", *line, "--packs", packs)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    if not words.startswith("Unexpected"):
        answer = json.loads(done.stdout)
        assert answer["result"]["error"]["code"] == "invalid_args"


@pytest.mark.promise("STO-1", "CLI-2")
@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        (["--arg", "a=1", "--arg", "b=x"], {"a": 1, "b": "x"}),
        (["--args", '{"a": 1, "b": "x"}'], {"a": 1, "b": "x"}),
        (["--args", "{a: 1}"], {}),
    ],
)
def test_a_call_whose_arguments_are_invalid_is_recorded(
    pegboard: Command, packs: str, line: list[str], arguments: dict[str, object]
) -> None:
    printed = json.loads(pegboard("tools", "invoke", "greet.add", *line, "--packs", packs).stdout)
    [recorded] = json.loads(pegboard("history", "--json").stdout)
    assert (recorded["id"], recorded["tool"]) == (printed["call"]["id"], "greet.add")
    assert recorded["args"] == printed["call"]["args"] == arguments
    assert recorded["error"] == printed["result"]["error"]
    again = pegboard("history", "rerun", recorded["id"], "--arg", "b=y", "--packs", packs)
    assert again.returncode == 2
    assert json.loads(again.stdout)["call"]["id"] in pegboard("history", "--json").stdout


@pytest.mark.promise("CLI-2", "SDK-13")
def test_a_tool_that_fails_is_exit_1_with_its_own_message(pegboard: Command, packs: str) -> None:
    done = pegboard("tools", "invoke", "greet.fail", "--packs", packs)
    assert done.returncode == 1
    result = json.loads(done.stdout)["result"]
    assert result["error"] == {"code": "execution_error", "message": "No such shelf.", "detail": "no_shelf"}
    assert result["data"] == {"shelf": 4}
    assert "No such shelf." in done.stderr


@pytest.mark.promise("SDK-12", "CLI-2")
def test_output_logs_and_progress_of_a_tool_go_to_stderr(pegboard: Command, packs: str) -> None:
    done = pegboard("tools", "invoke", "greet.talk", "--packs", packs)
    assert json.loads(done.stdout)["result"]["data"] == "done"
    for words in ("printed", "logged", "1/2 half"):
        assert words in done.stderr


@pytest.mark.promise("CLI-2")
def test_ctrl_c_cancels_the_call_and_is_exit_130(pegboard: Command, packs: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pegboard", "tools", "invoke", "greet.wait", "--timeout", "60", "--packs", packs],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert json.loads(out)["result"]["error"]["detail"] == "cancelled"
    [record] = json.loads(pegboard("history", "--json").stdout)
    assert record["error"]["detail"] == "cancelled"


@pytest.mark.promise("CLI-5", "STO-1")
def test_history_lists_the_newest_first_with_the_stable_shape(pegboard: Command, packs: str) -> None:
    pegboard("tools", "invoke", "greet.add", "--arg", "a=1", "--arg", "b=2", "--packs", packs)
    pegboard("tools", "invoke", "greet.fail", "--packs", packs)
    done = pegboard("history", "--json")
    records = json.loads(done.stdout)
    assert [record["tool"] for record in records] == ["greet.fail", "greet.add"]
    keys = {"id", "at", "tool", "args", "ok", "error", "durationMs", "source", "session", "parent", "turn"}
    keys |= {"state", "agent", "size", "pinned", "calls"}
    assert all(set(record) == keys for record in records)
    assert [record["tool"] for record in json.loads(pegboard("history", "--json", "--limit", "1").stdout)] == [
        "greet.fail"
    ]
    assert "no_shelf" in pegboard("history").stdout


@pytest.mark.promise("CFG-2")
def test_paths_shows_every_location(pegboard: Command, packs: str, home: Path) -> None:
    where = json.loads(pegboard("paths", "--json", "--packs", packs).stdout)
    assert where["config"] == str(home / "config.toml")
    assert where["data"] == str(home / "data")
    assert where["packs"][-1] == packs
    assert str(home / "config.toml") in pegboard("paths").stdout


@pytest.mark.promise("EXE-4")
def test_a_timeout_says_how_to_allow_more_time(pegboard: Command, packs: str, home: Path) -> None:
    line = ("tools", "invoke", "greet.wait", "--packs", packs)
    (home / "config.toml").write_text('[tools]\ntimeouts = { "greet.*" = 0.7 }\n')
    done = pegboard(*line)
    assert done.returncode == 1
    assert "timed out after 0.7 s. If it needs more time, set `timeouts` under `[tools]`" in done.stderr
    assert "`--timeout`" in done.stderr
    chosen = pegboard(*line, "--timeout", "0.5").stderr
    assert "timed out after 0.5 s.\n" in chosen


@pytest.mark.promise("CLI-2")
def test_a_lack_of_memory_says_how_to_allow_more(pegboard: Command, home: Path, tmp_path: Path) -> None:
    (home / "config.toml").write_text('[tools]\nmemory_limit = "100 MiB"\n')
    (tmp_path / "eater.py").write_text('def eat() -> int:\n    """Eat."""\n    return len(bytearray(200 * 2**20))\n')
    done = pegboard("tools", "invoke", "eater.eat", "--packs", str(tmp_path))
    assert done.returncode == 1
    assert "MemoryError. Request less data, or raise memory_limit under [tools] in the config.\n" in done.stderr


@pytest.mark.promise("CFG-1")
def test_a_broken_configuration_is_reported_and_stops_nothing(pegboard: Command, home: Path) -> None:
    (home / "config.toml").write_text('[tools]\ntimeuot = 3\n[ui]\nvim_keys = "maybe"\n')
    done = pegboard("tools", "list", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)
    assert "config.toml:2" in done.stderr
    assert "timeout" in done.stderr
    assert "config.toml:4" in done.stderr


@pytest.mark.promise("DSC-6")
@pytest.mark.parametrize("damage", [b"", b"rubbish", b"\x00" * 100])
def test_a_broken_index_is_ignored(pegboard: Command, home: Path, packs: str, damage: bytes) -> None:
    first = pegboard("tools", "list", "--json", "--packs", packs)
    index = [file for file in (home / "cache").rglob("*") if file.is_file()]
    assert index
    for file in index:
        file.write_bytes(damage)
    assert pegboard("tools", "list", "--json", "--packs", packs).stdout == first.stdout


def test_a_missing_folder_is_reported_and_stops_nothing(pegboard: Command, tmp_path: Path) -> None:
    done = pegboard("tools", "list", "--json", "--packs", str(tmp_path / "nowhere"))
    assert done.returncode == 0
    assert json.loads(done.stdout)
    assert "nowhere: This packs folder doesn't exist. Create it, or correct the path in --packs, " in done.stderr


def test_a_folder_whose_files_are_in_subfolders_names_one_of_them(pegboard: Command, tmp_path: Path) -> None:
    for name in ("src", "app", ".venv", "data"):
        (tmp_path / "project" / name).mkdir(parents=True)
    for name in ("src", "app", ".venv"):
        (tmp_path / "project" / name / "shop.py").write_text("def buy(*, a: int):\n    'Buy.'\n")
    done = pegboard("tools", "list", "--packs", str(tmp_path / "project"))
    assert done.returncode == 0
    assert (
        f"hint: {tmp_path}/project: This packs folder contains no Python file. Those of its subfolders, such as app, "
        f"are not read. Specify the folder of the files: {tmp_path}/project/app."
    ) in done.stderr
    (tmp_path / "project" / "own.py").write_text("")
    assert "no Python file" not in pegboard("tools", "list", "--packs", str(tmp_path / "project")).stderr


def test_escape_sequences_of_tools_reach_no_terminal_output(pegboard: Command, packs: str) -> None:
    source = 'def evil() -> str:\n    """\\x1b[31mRed\\x07."""\n    print("\\x1b]0;owned\\x07")\n    return "x"\n'
    (Path(packs) / "evil.py").write_text(source)
    listed = pegboard("tools", "list", "--packs", packs)
    called = pegboard("tools", "invoke", "evil.evil", "--packs", packs)
    assert "\x1b" not in listed.stdout + listed.stderr + called.stdout + called.stderr


def test_without_a_terminal_the_app_exits_with_a_message(pegboard: Command) -> None:
    done = pegboard()
    assert done.returncode == 2
    assert "terminal" in done.stderr


def test_help_documents_the_exit_codes_and_version_prints_it(pegboard: Command) -> None:
    done = pegboard("--help")
    assert done.returncode == 0
    assert "130 interrupted" in done.stdout
    assert pegboard("--version").stdout.startswith("pegboard ")


@pytest.mark.promise("CLI-1")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("pegboard tools invoke fs.", ["fs.list_dir", "fs.read_file"]),
        ("pegboard tools invoke fs.list_dir --arg r", ["recursive="]),
        ("pegboard tools invoke fs.list_dir --arg ", ["path=", "recursive=", "max_depth="]),
        ("pegboard tools invoke greet.nope --arg ", []),
        ("pegboard tools invoke fs.list_dir --preset d", ["deep", "deeper"]),
        ("pegboard presets show fs.list_dir d", ["deep", "deeper"]),
        ("pegboard presets delete fs.read_file ", []),
        ("pegboard script run d", ["daily", "deep"]),
        ("pegboard script check x", []),
        ("pegboard script rename d", ["daily", "deep"]),
        ("pegboard check delete d", ["daily"]),
        ("pegboard config set tools.time", ["tools.timeout", "tools.timeouts"]),
        ("pegboard config unset model.n", ["model.name"]),
        ("pegboard rules add deny fs.r", ["fs.read_file"]),
    ],
)
def test_the_shell_completes_tools_presets_keys_and_scripts(
    pegboard: Command, home: Path, line: str, offered: list[str]
) -> None:
    folder = home / "data" / "presets" / "fs.list_dir"
    folder.mkdir(parents=True)
    for name in ("deep", "deeper", "other"):
        (folder / f"{name}.toml").touch()
    (home / "data" / "scripts").mkdir()
    for name in ("daily", "deep", "other"):
        (home / "data" / "scripts" / f"{name}.sh").touch()
    (home / "data" / "checks").mkdir()
    for name in ("daily", "other"):
        (home / "data" / "checks" / f"{name}.toml").write_text('tool = "fs.list_dir"\n')
    words = line.count(" ")
    done = pegboard(env={"_PEGBOARD_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(words)})
    assert done.stdout.split() == offered


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("tools list >/dev/full", 1),
        ("--help >/dev/full", 1),
        ("tools list | head -n 1 | grep -q fs.list_dir", None),
        ("tools invoke nope.x 2>/dev/full", 3),
        ("tools invoke nope.x 2>&-", 3),
        ("tools invoke tools.echo --args - <&-", 2),
        ("tools invoke time.now >&-", 0),
    ],
)
def test_broken_streams_end_in_an_exit_code_and_never_in_a_traceback(home: Path, line: str, code: int | None) -> None:
    program = f"{shlex.quote(sys.executable)} -m pegboard"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {program} {line}"], capture_output=True, text=True, timeout=60, check=False
    )
    # a reader that leaves early may come before or after the last write
    assert done.returncode == code if code is not None else done.stderr == ""
    assert "Traceback" not in done.stderr
    if "2>" in line:
        assert json.loads(done.stdout)["result"]["error"]["code"] == "tool_not_found"


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize("line", ["paths", "--help", "--help --json", "guide commands", "tools list --json"])
def test_a_command_whose_reader_has_ended_exits_as_if_by_a_broken_pipe(home: Path, line: str) -> None:
    program = f"{shlex.quote(sys.executable)} -m pegboard"
    script = f'{program} {line} | true; exit "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.promise("CLI-2", "CFG-1")
def test_a_call_reports_problems_of_the_configuration_but_not_of_other_packs(
    pegboard: Command, packs: str, home: Path
) -> None:
    (home / "config.toml").write_text("[tools]\ntimeout = -3\n")
    (Path(packs) / "broken.py").write_text("def broken(:\n")
    done = pegboard("tools", "invoke", "time.now", "--packs", packs)
    assert done.returncode == 0
    assert "config.toml:2" in done.stderr
    assert "broken.py" not in done.stderr
    assert "config.toml:2" in pegboard("paths").stderr


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize("count", [60_000, 700_000], ids=["parsed", "copied"])
def test_only_data_is_the_whole_of_a_large_result(pegboard: Command, packs: str, count: int) -> None:
    line = ["tools", "invoke", "greet.rows", "--arg", f"count={count}", "--timeout", "60", "--packs", packs]
    done = pegboard(*line, "--data")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    assert (len(rows), rows[-1]) == (count, {"id": count - 1, "name": f"row ä {count - 1}"})


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize("count", [200_000, 2_000_000], ids=["parsed", "copied"])
def test_only_data_is_the_whole_of_a_large_text_unchanged(pegboard: Command, packs: str, count: int) -> None:
    line = ["tools", "invoke", "greet.text", "--arg", f"count={count}", "--timeout", "60", "--packs", packs]
    done = pegboard(*line, "--data")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == 'aé\n"\\😀' * count + "\n"


@pytest.mark.promise("CLI-1", "EXE-3")
def test_each_argument_that_cannot_be_read_is_reported_once_with_all_other_errors(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    pack = 'def go(*, at: list[int], n: int, to: str, limit: int = 5) -> None:\n    """Go."""\n'
    runtime = open_runtime(write_pack("trip.py", pack))
    spec = runtime.tools.get("trip.go")
    assert spec is not None
    with pytest.raises(ArgumentError) as found:
        read_arguments(runtime, spec, '{"limit": "all"}', ["at=1", "at=x", "n=y"])
    assert sorted(fault.path for fault in found.value.faults) == ["/at/1", "/limit", "/n", "/to"]


@pytest.mark.promise("CLI-1", "CLI-2")
def test_a_parameter_that_was_probably_meant_is_named_unless_it_was_given_or_the_schema_decides(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime], capsys: pytest.CaptureFixture[str]
) -> None:
    runtime = open_runtime(write_pack("trip.py", 'def go(*, path: str = "") -> None:\n    """Go."""\n'))
    spec = runtime.tools.get("trip.go")
    assert spec is not None
    properties: JsonObject = {"path": {}, "limit": {}}
    cases: list[tuple[JsonObject, str, str]] = [
        ({}, '{"pathh": 1}', "'path'"),
        ({"additionalProperties": True}, '{"limt": 1, "path": 1}', "'limit'"),
        ({}, '{"pathh": 1, "path": 2}', ""),
        ({}, '{"other": 1}', ""),
        ({"additionalProperties": False}, '{"pathh": 1}', ""),
        ({"additionalProperties": {"type": "string"}}, '{"pathh": "a"}', ""),
    ]
    for more, args, meant in cases:
        schema: JsonObject = {"type": "object", "properties": properties, **more}
        read_arguments(runtime, spec.model_copy(update={"input_schema": schema}), args, [])
        shown = capsys.readouterr().err
        assert (f"Did you mean {meant}?" in shown) if meant else not shown, (more, args)


@pytest.mark.promise("CLI-1")
def test_arguments_other_than_a_json_object_are_refused_with_their_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "args.json"
    file.write_text("{}")
    hint = "To read arguments from a file, write `--args - < FILE`."
    for text, stdin, reason in (
        ("-", b'{"a": "\xff"}', "--args from stdin is not UTF-8."),
        ("-", b"{", "--args from stdin is not JSON"),
        ("-", b"[1]", '--args from stdin must be a JSON object such as \'{"path": "."}\', not a list.'),
        ("\udcff", b"", "--args is not UTF-8."),
        (str(file), b"", hint),
        (f"@{file}", b"", hint),
        ("true", b"", "not a boolean."),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(ArgumentError) as refused:
            read_object(text)
        assert reason in str(refused.value)
        assert (hint in str(refused.value)) == (reason == hint)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"a": "\xc3\xa4"}\n')))
    assert (read_object("-"), read_object(None)) == ({"a": "ä"}, {})


@pytest.mark.promise("CLI-1")
def test_required_constants_and_defaults_apply_unless_args_or_a_preset_decide(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    runtime = open_runtime(write_pack("trip.py", 'def go(*, path: str = "") -> None:\n    """Go."""\n'))
    spec = runtime.tools.get("trip.go")
    assert spec is not None
    runtime.presets.save("trip.go", "mine", {"n": 3})
    properties: JsonObject = {"kind": {"const": "a"}, "n": {"type": "integer", "default": 5}, "path": {"default": "."}}
    schema: JsonObject = {"type": "object", "properties": properties, "required": ["kind", "n"]}
    spec = spec.model_copy(update={"input_schema": schema})
    assert read_arguments(runtime, spec, None, []) == {"kind": "a", "n": 5}
    assert read_arguments(runtime, spec, None, ["n=1"]) == {"kind": "a", "n": 1}
    assert read_arguments(runtime, spec, "{}", []) == {}
    assert read_arguments(runtime, spec, '{"path": "x"}', ["n=1"], "mine") == {"n": 1, "path": "x"}


@pytest.mark.promise("SDK-12", "CLI-2")
def test_output_beyond_the_limit_is_reported(pegboard: Command, write_pack: Callable[[str, str], Path]) -> None:
    pack = 'def shout() -> str:\n    """Shout."""\n    print("x" * 4999)\n    return "done"\n'
    packs = str(write_pack("loud.py", pack))
    call = ("tools", "invoke", "loud.shout", "--data", "--packs", packs)
    done = pegboard(*call, env={"PEGBOARD_TOOLS__LOG_LIMIT": "3000"})
    assert done.stdout == "done\n"
    note = "note: 2.0 kB more output of loud.shout was dropped. `log_limit` under `[tools]` limits it.\n"
    assert done.stderr.endswith(note), done.stderr[-200:]
    assert "dropped" not in pegboard(*call).stderr
