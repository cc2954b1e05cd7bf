"""`pegboard history`: queries, and what can be done with a recorded call."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import commands
import pytest
from rich.cells import cell_len
from terminals import pegboard as in_terminal
from watched import eventually

from pegboard.cli.differences import difference_lines
from pegboard.history.diff import diff
from pegboard.models import JsonObject, ToolCall, ToolResult
from pegboard.runtime import Runtime

Command = Callable[..., commands.Done]


def ids(pegboard: Command, *query: str) -> list[str]:
    return [record["id"] for record in json.loads(pegboard("history", *query, "--json").stdout)]


@pytest.fixture
def recorded(pegboard: Command, packs: str) -> list[str]:
    """Return the ids of three recorded calls, the newest first."""
    pegboard("tools", "invoke", "greet.hello", "--arg", "name=Ada Lovelace", "--packs", packs)
    pegboard("tools", "invoke", "greet.add", "--arg", "a=1", "--arg", "b=2", "--packs", packs)
    pegboard("tools", "invoke", "greet.fail", "--packs", packs)
    return ids(pegboard)


@pytest.mark.promise("ACT-1", "CLI-5")
def test_a_query_and_options_narrow_the_list(pegboard: Command, recorded: list[str]) -> None:
    fail, add, hello = recorded
    assert ids(pegboard, "status:failed") == ids(pegboard, "--failed") == [fail]
    assert ids(pegboard, "lovelace") == ids(pegboard, "Ada Lovelace") == [hello]
    assert ids(pegboard, "tool:greet.add") == ids(pegboard, "--tool", "greet.add") == [add]
    assert ids(pegboard, "tool:greet", "--limit", "2", "--source", "cli", "--since", "1h") == [fail, add]
    assert ids(pegboard, "list") == recorded
    assert pegboard("history", "Grace").stderr.strip() == "No recorded call matches."
    wrong = pegboard("history", "status:bad")
    assert wrong.returncode == 2
    assert "'bad' is not a status. Use one of: waiting, running, ok, failed" in wrong.stderr


@pytest.mark.promise("ACT-1")
@pytest.mark.skipif(sys.platform == "darwin", reason="file names are UTF-8 there")
def test_a_state_folder_whose_name_is_not_utf_8_has_a_history(
    pegboard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_STATE_DIR", str(tmp_path / os.fsdecode(b"caf\xe9?#")))
    assert pegboard("tools", "invoke", "time.now").returncode == 0
    assert [record["tool"] for record in json.loads(pegboard("history", "--json").stdout)] == ["time.now"]


@pytest.mark.promise("ACT-1")
@pytest.mark.skipif(sys.platform == "darwin", reason="arguments are UTF-8 there")
@pytest.mark.parametrize(
    "line", [["caf\udce9"], ["parent:\udce9"], ["show", "\udce9"], ["stats", "--session", "\udce9"]]
)
def test_an_argument_that_is_not_utf_8_matches_nothing(pegboard: Command, recorded: list[str], line: list[str]) -> None:
    done = pegboard("history", *line)
    assert (done.returncode, done.stdout) == (0 if len(line) == 1 else 3, "")
    assert "Traceback" not in done.stderr


@pytest.mark.promise("CLI-5")
@pytest.mark.parametrize(
    ("filter_", "options", "named"),
    [
        ("status:ok", ["--failed"], "--failed"),
        ("tool:fs", ["--tool", "greet"], "--tool"),
        ("source:ask,cli", ["--source", "cli"], "--source"),
    ],
)
def test_a_filter_beside_its_option_is_refused_as_either_would_match(
    pegboard: Command, filter_: str, options: list[str], named: str
) -> None:
    refused = pegboard("history", filter_, *options)
    key = filter_.partition(":")[0]
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"{key}: in the query can't be combined with {named}.\n"


@pytest.mark.promise("ACT-2")
def test_a_batch_is_neither_printed_as_a_call_nor_kept_as_a_check(pegboard: Command, packs: str) -> None:
    pegboard("batch", "greet.add", "--from", "-", "--packs", packs, stdin='{"a": 1, "b": 2}')
    (batch,) = ids(pegboard, "tool:batch.run")
    for kind in ("cli", "json"):
        printed = pegboard("history", "show", batch, "--print", kind, "--packs", packs)
        assert (printed.returncode, printed.stdout) == (1, "")
        assert "batch.run was not printed as a call: It is a batch, not a call." in printed.stderr
    kept = pegboard("check", "keep", batch, "--packs", packs)
    assert (kept.returncode, kept.stdout) == (2, "")
    assert "is a batch, which no check can repeat." in kept.stderr
    assert json.loads(pegboard("check", "list", "--json", "--packs", packs).stdout) == []


@pytest.mark.promise("ACT-2")
def test_a_call_is_shown_copied_and_run_again_with_changes(pegboard: Command, recorded: list[str], packs: str) -> None:
    _, add, hello = recorded
    shown = json.loads(pegboard("history", "show", hello[:20]).stdout)
    assert shown["call"]["args"]["name"] == "Ada Lovelace"
    assert shown["result"]["data"] == "Hello Ada Lovelace"
    assert pegboard("history", "show", hello, "--data").stdout == "Hello Ada Lovelace\n"
    for command in ("show", "rerun"):
        refused = pegboard("history", command, hello, "--data", "--json")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "it prints only the data" in refused.stderr
    copied = pegboard("history", "show", add, "--print", "cli", "--packs", packs).stdout
    assert copied == f"pegboard tools invoke greet.add --packs {shlex.quote(packs)} --arg a=1 --arg b=2\n"
    again = pegboard("history", "rerun", add, "--packs", packs)
    assert json.loads(again.stdout)["result"]["data"] == 3
    assert json.loads(again.stdout)["call"]["source"] == "cli"
    changed = pegboard("history", "rerun", add, "--arg", "b=40", "--data", "--packs", packs)
    assert changed.stdout == "41\n"
    assert json.loads(pegboard("history", "show", ids(pegboard)[0]).stdout)["call"]["args"] == {"a": 1, "b": 40}
    gone = pegboard("history", "rerun", add)
    assert gone.returncode == 3
    assert "greet.add" in gone.stderr
    unknown = pegboard("history", "show", "feedbeef")
    assert (unknown.returncode, unknown.stdout) == (3, "")
    assert "feedbeef doesn't identify exactly one recorded call." in unknown.stderr


@pytest.mark.promise("ACT-2")
def test_a_recorded_script_is_copied_as_a_command_that_runs_it(pegboard: Command, packs: str) -> None:
    script = "greet.hello --name 'Ada L' | wc -c\n"
    ran = pegboard("script", "run", "-", "--packs", packs, stdin=script)
    (call,) = ids(pegboard, "tool:script.run")
    assert pegboard("history", "show", call, "--print", "script").stdout.strip() == script.strip()
    copied = pegboard("history", "show", call, "--print", "cli", "--packs", packs).stdout
    command, text, end = copied.splitlines()
    assert shlex.split(command.partition(" <<")[0]) == ["pegboard", "script", "run", "--packs", packs, "-"]
    assert (text, end) == (script.strip(), "END")
    assert pegboard(*shlex.split(command.partition(" <<")[0])[1:], stdin=f"{text}\n").stdout == ran.stdout != ""
    program = pegboard("history", "show", call, "--print", "python", "--packs", packs).stdout
    assert "runtime.scripts" in program
    assert json.loads(pegboard("history", "show", call, "--print", "json").stdout) == {"commands": script}


@pytest.mark.promise("ACT-2", "STO-2")
def test_a_call_without_its_secret_is_not_run_again_unless_the_value_is_given(
    pegboard: Command, packs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GREETING_KEY", "sk-1234567890abcdef")
    pegboard("tools", "invoke", "greet.hello", "--arg", "name=sk-1234567890abcdef", "--packs", packs)
    [call] = ids(pegboard)
    refused = pegboard("history", "rerun", call, "--packs", packs)
    assert refused.returncode == 2
    assert "«secret GREETING_KEY» hides a value that is not recorded. Enter it with --arg or --args." in refused.stdout
    assert ids(pegboard) == [call]
    given = pegboard("history", "rerun", call, "--arg", "name=Ada", "--data", "--packs", packs)
    assert (given.returncode, given.stdout) == (0, "Hello Ada\n")
    copied = pegboard("history", "show", call, "--print", "script", "--packs", packs)
    assert "«secret GREETING_KEY»" in copied.stdout
    assert "hides a value that is not recorded. Enter it where you use the text." in copied.stderr


@pytest.mark.promise("ACT-3")
def test_two_calls_are_compared(pegboard: Command, recorded: list[str], packs: str) -> None:
    add = recorded[1]
    pegboard("history", "rerun", add, "--arg", "b=40", "--packs", packs)
    other = ids(pegboard)[0]
    compared = pegboard("history", "diff", add, other).stdout
    assert compared.split() == [
        "arguments:",
        ".b",
        "-",
        "2",
        "+",
        "40",
        "result:",
        "(whole",
        "value)",
        "-",
        "3",
        "+",
        "41",
    ]
    found = json.loads(pegboard("history", "diff", add, other, "--json").stdout)
    assert found["arguments"]["differences"][0]["path"] == ".b"
    assert pegboard("history", "diff", add, add).stdout == "arguments: equal\nresult: equal\n"


@pytest.mark.promise("ACT-3")
def test_saved_images_are_compared_by_content(pegboard: Command, write_pack: Callable[[str, str], Path]) -> None:
    source = 'def shoot():\n    """Return an image."""\n    return [{{"mimeType": "image/png", "data": "{}"}}]\n'
    for data in ("AAAA", "AAAA", "BBBB"):
        packs = str(write_pack("camera.py", source.format(data)))
        pegboard("tools", "invoke", "camera.shoot", "--packs", packs)
    other, again, first = ids(pegboard)
    assert pegboard("history", "diff", first, again).stdout == "arguments: equal\nresult: equal\n"
    assert "image/png, 3 B: " in pegboard("history", "diff", first, other).stdout


@pytest.mark.promise("ACT-2")
def test_calls_are_exported_deleted_restored_and_pinned(pegboard: Command, recorded: list[str], tmp_path: Path) -> None:
    fail, _, hello = recorded
    lines = pegboard("history", "export", "tool:greet").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == recorded
    assert json.loads(lines[2])["result"]["data"] == "Hello Ada Lovelace"
    assert pegboard("history", "export", "tool:greet", "--out", "-").stdout.splitlines() == lines
    pegboard("history", "export", "--limit", "1", "--out", "calls.jsonl")
    assert json.loads((tmp_path / "calls.jsonl").read_text())["id"] == fail
    again = pegboard("history", "export", "--out", "calls.jsonl")
    assert (again.returncode, again.stderr) == (
        2,
        "calls.jsonl was not written: File exists. Choose another file.\n",
    )
    assert "pegboard history restore" in pegboard("history", "delete", hello, fail).stderr
    assert len(ids(pegboard)) == 1
    pegboard("history", "restore", hello, fail)
    assert ids(pegboard) == recorded
    pegboard("history", "pin", hello)
    assert ids(pegboard, "pinned:") == [hello]


def writer_of(pipe: Path) -> int | None:
    """Open a named pipe that a process reads; return None if none does."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


@pytest.mark.promise("STO-3", "CLI-2")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_export_that_a_signal_ends_leaves_no_file(home: Path, tmp_path: Path, number: signal.Signals) -> None:
    runtime = Runtime.from_environment()
    result = ToolResult(ok=True, data=["x" * 100] * 20_000)
    runtime.history.record(ToolCall(name="web.get", args={}, source="cli"), result, datetime.now(UTC))
    runtime.history.close()
    (stored,) = (file for file in (home / "state" / "results").rglob("*") if file.is_file())
    stored.unlink()
    os.mkfifo(stored)  # so that the export waits
    folder = tmp_path / "exported"
    folder.mkdir()
    command = [sys.executable, "-m", "pegboard", "history", "export", "--out", str(folder / "calls.jsonl")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as exporting:
        eventually(lambda: [*folder.iterdir()])
        writer = eventually(lambda: writer_of(stored))
        # A signal just before the read begins would not end it.
        state = ["ps", "-o", "state=", "-p", str(exporting.pid)]
        eventually(lambda: subprocess.run(state, capture_output=True, text=True, check=True).stdout.startswith("S"))
        exporting.send_signal(number)
        errors = exporting.communicate(timeout=60)[1]
        os.close(writer)
    assert (exporting.returncode, errors) == (128 + number, "")
    assert [*folder.iterdir()] == []


@pytest.mark.promise("ACT-2")
def test_the_command_that_undoes_a_deletion_restores_every_call(pegboard: Command) -> None:
    runtime = Runtime.from_environment()
    script = ToolCall(name="script.run", source="script")
    made = [ToolCall(name="greet.hello", source="script", parent=script.id) for _ in range(6)]
    inner = ToolCall(name="greet.hello", source="sdk", parent=made[0].id)
    for call in (script, *made, inner):
        runtime.history.record(call, ToolResult(ok=True), datetime.now(UTC))
    runtime.history.close()
    pegboard("history", "delete", made[5].id)
    done = pegboard("history", "delete", script.id[:20])
    assert done.stderr == f"Deleted 7 calls. Undo: pegboard history restore {script.id}\n"
    assert pegboard("history", "restore", script.id).stderr == "Restored 7 calls.\n"
    assert set(ids(pegboard)) == {script.id, inner.id, *(call.id for call in made[:5])}


@pytest.mark.promise("ACT-2")
def test_a_running_call_is_named_if_only_the_others_are_deleted(pegboard: Command, recorded: list[str]) -> None:
    runtime = Runtime.from_environment()
    call = ToolCall(name="greet.hello", source="cli")
    runtime.history.start(call, datetime.now(UTC))
    runtime.history.flush()
    done = pegboard("history", "delete", call.id, recorded[0])
    assert done.returncode == 1
    assert done.stderr == (
        f"{call.id} was not deleted because it is running. Delete it when it has ended.\n"
        f"Deleted 1 call. Undo: pegboard history restore {recorded[0]}\n"
    )
    runtime.history.close()


@pytest.mark.promise("ACT-2")
def test_a_running_call_is_not_deleted_and_a_message_says_why(pegboard: Command, home: Path) -> None:
    runtime = Runtime.from_environment()
    call = ToolCall(name="greet.hello", source="cli")
    runtime.history.start(call, datetime.now(UTC))
    runtime.history.flush()
    done = pegboard("history", "delete", call.id)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Nothing was deleted because a running call can't be deleted. Delete it when it has ended.\n"
    runtime.history.close()


@pytest.mark.promise("ACT-4")
def test_a_value_is_redacted_from_stdin_and_never_an_argument(
    pegboard: Command, recorded: list[str], home: Path
) -> None:
    short = pegboard("history", "redact", stdin="Ada\n")
    assert (short.returncode, "fewer than 6 characters" in short.stderr) == (2, True)
    refused = pegboard("history", "redact", "Ada Lovelace")
    assert (refused.returncode, "can't be an argument" in refused.stderr) == (2, True)
    done = pegboard("history", "redact", stdin="Ada Lovelace\n")
    assert (done.returncode, done.stdout) == (0, "")
    assert "Redacted in 1 call, 0 chat messages and " in done.stderr
    assert pegboard("history", "show", recorded[2], "--data").stdout == "Hello «redacted»\n"
    assert not [file for file in home.rglob("*") if file.is_file() and b"Lovelace" in file.read_bytes()]
    report = json.loads(pegboard("history", "redact", "--json", stdin="Ada Lovelace").stdout)
    assert report == {"calls": 0, "messages": 0, "files": [], "remaining": []}


@pytest.mark.promise("ACT-4")
def test_a_preset_script_or_check_is_not_run_without_its_redacted_value(
    pegboard: Command, recorded: list[str], packs: str, home: Path
) -> None:
    (home / "data" / "scripts").mkdir(parents=True)
    (home / "data" / "scripts" / "hello.sh").write_text('greet.hello --name "Ada Lovelace"\n')
    pegboard("presets", "save", "greet.hello", "ada", "--arg", "name=Ada Lovelace", "--packs", packs)
    pegboard("check", "keep", recorded[2], "--name", "ada", "--packs", packs)
    pegboard("history", "redact", stdin="Ada Lovelace\n")
    call = ("tools", "invoke", "greet.hello", "--preset", "ada", "--packs", packs)
    done = pegboard(*call)
    assert done.returncode == 2
    assert "name: contains «redacted» in place of a value; enter it in the preset, the script, --arg" in done.stderr
    assert pegboard(*call, "--arg", "name=Bob", "--data").stdout == "Hello Bob\n"
    done = pegboard("script", "run", "hello", "--packs", packs)
    assert (done.returncode, done.stdout) == (2, "")
    assert "The saved script hello contains «redacted» in place of a value." in done.stderr
    done = pegboard("check", "run", "--packs", packs)
    assert done.returncode == 1
    assert "name: contains «redacted» in place of a value; enter it in the check" in done.stdout


@pytest.mark.promise("ACT-1")
def test_a_script_is_listed_with_its_exit_code_unless_it_is_0(pegboard: Command) -> None:
    for script, outcome in (("true", "ok"), ("exit 125", "exit 125"), ("seq 30000; exit 3", "exit 3")):
        pegboard("script", "run", "-", stdin=script)
        newest = pegboard("history", "list", "--limit", "1").stdout.splitlines()[1]
        assert f" {outcome}  " in newest
    [call] = json.loads(pegboard("history", "list", "--limit", "1", "--json").stdout)
    assert (call["state"], call["exitCode"]) == ("ok", 3)


@pytest.mark.promise("ACT-1")
def test_statistics_count_calls_and_failures(pegboard: Command, recorded: list[str]) -> None:
    found = {one["tool"]: one for one in json.loads(pegboard("history", "stats", "--json").stdout)}
    assert (found["greet.fail"]["calls"], found["greet.fail"]["failures"]) == (1, 1)
    assert found["greet.add"]["p50Ms"] is not None
    assert "100.0%" in pegboard("history", "stats", "greet.fail").stdout


@pytest.mark.promise("ACT-1")
def test_denied_and_invalid_calls_are_neither_successes_nor_failures_in_any_statistics(
    pegboard: Command, packs: str
) -> None:
    for arguments in ("a=1", "b=x"):
        pegboard("tools", "invoke", "greet.add", "--arg", arguments, "--arg", "b=2", "--packs", packs)
    runtime = Runtime.from_environment()
    for detail in ("denied", None):
        call = ToolCall(name="greet.add", args={"a": 1, "b": 2}, source="ask")
        runtime.history.record(call, ToolResult.failed("execution_error", "No.", detail), datetime.now(UTC))
    runtime.history.close()
    [found] = json.loads(pegboard("history", "stats", "--json").stdout)
    uses = json.loads(pegboard("tools", "info", "greet.add", "--json", "--packs", packs).stdout)["uses"]
    for one in (found, uses):
        assert (one["calls"], one["rejected"], one["failures"]) == (4, 2, 1)
    assert "50.0%" in pegboard("history", "stats").stdout
    assert "4 ×, 2 not run, 1 failed" in pegboard("tools", "info", "greet.add", "--packs", packs).stdout


@pytest.mark.promise("ACT-1")
def test_statistics_of_a_tool_with_a_long_name_are_complete_on_a_terminal(
    pegboard: Command, write_pack: Callable[[str, str], Path], tmp_path: Path
) -> None:
    name = "add_the_numbers_of_two_columns_of_every_table_in_a_folder"
    write_pack("sums.py", f"def {name}() -> int:\n    'Add.'\n    return 1\n")
    pegboard("tools", "invoke", f"sums.{name}")
    with in_terminal("history", "stats", size=(80, 24)) as terminal:
        assert terminal.read_all() == 0
    heading, row = terminal.output.splitlines()[:2]
    assert heading.split() == ["TOOL", "CALLS", "FAILED", "P50", "P95", "LAST"]
    assert re.fullmatch(r"sums\.add_the_num\w+…  1 +0\.0% .*\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", row), row
    assert name in pegboard("history", "stats").stdout


@pytest.mark.promise("ACT-1")
def test_the_timeline_of_a_session_has_turns_and_calls(pegboard: Command) -> None:
    pegboard("ask", "tools.echo value=x", "--session", "sums")
    timeline = json.loads(pegboard("history", "stats", "--session", "su", "--json").stdout)
    assert timeline["session"] == "sums"
    assert [bar["kind"] for bar in timeline["bars"]] == ["turn", "call", "turn"]
    assert timeline["bars"][1]["label"] == "tools.echo"


@pytest.mark.promise("ACT-1", "CLI-2")
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_the_timeline_of_an_unknown_session_is_an_error(pegboard: Command, as_json: list[str]) -> None:
    done = pegboard("history", "stats", "--session", "nowhere", *as_json)
    assert (done.returncode, done.stdout) == (3, "")
    assert "No session has the id nowhere" in done.stderr


@pytest.fixture
def large(pegboard: Command, packs: str) -> str:
    """Return the id of a recorded call whose result is in a file because it has more than 1 MB."""
    pegboard("tools", "invoke", "greet.rows", "--arg", "count=60000", "--packs", packs)
    return ids(pegboard)[0]


@pytest.mark.promise("ACT-2")
def test_a_large_result_is_shown_and_exported_completely(pegboard: Command, large: str) -> None:
    data = pegboard("history", "show", large, "--data")
    assert (data.stderr, len(json.loads(data.stdout))) == ("", 60_000)
    exported = pegboard("history", "export")
    assert exported.stderr == ""
    for printed in (pegboard("history", "show", large).stdout, exported.stdout):
        result = json.loads(printed)["result"]
        assert (len(result["data"]), result["meta"]["truncated"]) == (60_000, None)


@pytest.mark.promise("ACT-2")
@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file or directory"), ("[1, 2", "EOF while parsing a list")]
)
def test_without_its_file_only_a_part_of_a_large_result_is_printed_with_a_note(
    pegboard: Command, large: str, home: Path, content: str | None, reason: str
) -> None:
    [file] = [found for found in home.rglob("*.json") if found.parent.name == "results"]
    file.unlink()
    if content is not None:
        file.write_text(content)
    data = pegboard("history", "show", large, "--data")
    shown, exported = pegboard("history", "show", large), pegboard("history", "export")
    for done in (data, shown, exported):
        assert f"{file}" in done.stderr
        assert reason in done.stderr
    assert 0 < len(json.loads(data.stdout)) < 60_000
    for done in (shown, exported):
        result = json.loads(done.stdout)["result"]
        assert 0 < len(result["data"]) < 60_000
        assert result["meta"]["truncated"]["file"] == str(file)
    assert "1 result is incomplete because a file can't be read" in exported.stderr


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize("number", ["9223372036854775807", "99999999999999999999"])
@pytest.mark.parametrize(
    "line",
    [
        ["history", "list", "--limit"],
        ["history", "export", "--limit"],
        ["sessions", "show", "s", "--limit"],
        ["batch", "time.now", "--from", "-", "--retry"],
        ["batch", "time.now", "--from", "-", "--stop-after"],
    ],
    ids=lambda line: " ".join([line[0], line[-1]]),
)
def test_a_number_that_is_too_large_is_a_usage_error(pegboard: Command, line: list[str], number: str) -> None:
    done = pegboard(*line, number)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Invalid value for '{line[-1]}'" in done.stderr


@pytest.mark.promise("ACT-2", "CLI-6")
def test_statistics_name_the_tools_without_recorded_calls(pegboard: Command, recorded: list[str]) -> None:
    done = pegboard("history", "stats", "nope.x", "greet.hello")
    assert (done.returncode, done.stderr) == (0, "No recorded calls of nope.x.\n")
    assert done.stdout.splitlines()[1].startswith("greet.hello ")
    assert pegboard("history", "stats", "nope.x").stderr == "No recorded calls of nope.x.\n"


@pytest.mark.promise("ACT-2")
def test_messages_count_one_call_in_the_singular(pegboard: Command, recorded: list[str]) -> None:
    hello = recorded[2]
    assert pegboard("history", "delete", hello).stderr.startswith("Deleted 1 call. Undo: ")
    assert pegboard("history", "restore", hello).stderr == "Restored 1 call.\n"
    assert pegboard("history", "pin", hello).stderr == "Pinned 1 call.\n"
    assert (
        pegboard("history", "export", "--limit", "1", "--out", "call.jsonl").stderr == "1 call written to call.jsonl.\n"
    )


@pytest.mark.promise("ACT-2", "CLI-2")
def test_restoring_an_unknown_call_says_that_there_is_none(pegboard: Command, recorded: list[str]) -> None:
    pegboard("history", "delete", recorded[0])
    unknown = pegboard("history", "restore", "zz")
    assert (unknown.returncode, unknown.stderr) == (3, "No call deleted within the last hour has the id zz.\n")
    mixed = pegboard("history", "restore", "zz", recorded[0])
    assert (mixed.returncode, mixed.stderr.splitlines()[1:]) == (0, ["Restored 1 call."])


@pytest.mark.promise("ACT-1")
@pytest.mark.usefixtures("recorded")
def test_the_list_on_a_narrow_terminal_leaves_space_for_the_arguments(pegboard: Command, packs: str) -> None:
    pegboard("tools", "invoke", "greet.hello", "--arg", f"name={'日本' * 40}", "--packs", packs)
    with in_terminal("history", "list", environ={"COLUMNS": "80"}) as terminal:
        assert terminal.read_all() == 0
    heading, wide, *others = terminal.output.splitlines()
    assert heading.split() == ["ID", "TIME", "RESULT", "TOOL", "ARGUMENTS"]
    assert '{"name": "日本' in wide
    assert wide.endswith("…")
    assert cell_len(wide) in {79, 80}
    assert len(others) == 3
    assert '{"a": 1, "b": 2}' in others[1]
    assert heading.index("ARGUMENTS") == others[1].index('{"a"')
    with in_terminal("history", "list", environ={"COLUMNS": "200"}) as terminal:
        assert terminal.read_all() == 0
    assert terminal.output.split()[:7] == ["ID", "TIME", "RESULT", "DURATION", "SOURCE", "TOOL", "ARGUMENTS"]


@pytest.mark.promise("ACT-2")
def test_an_export_on_a_terminal_is_json(pegboard: Command) -> None:
    pegboard("tools", "invoke", "tools.echo", "--args", r'{"value": "\u009b31m"}')
    with in_terminal("history", "export", is_forked=True) as terminal:
        assert terminal.read_all() == 0
    assert json.loads(terminal.output)["result"]["data"] == "\u009b31m"


@pytest.mark.promise("ACT-4")
@pytest.mark.promise("ACT-4", "STO-1")
def test_a_history_that_cannot_be_written_is_read_but_not_reported_as_redacted(
    pegboard: Command, recorded: list[str], home: Path
) -> None:
    lock = home / "state" / "history.db.lock"
    lock.unlink()
    lock.mkdir()
    assert ids(pegboard) == recorded
    done = pegboard("history", "redact", stdin="Ada Lovelace\n")
    assert done.returncode == 1
    assert "history.db may still contain the value because it can't be changed: Is a directory." in done.stderr
    lock.rmdir()
    assert pegboard("history", "show", recorded[2], "--data").stdout == "Hello Ada Lovelace\n"


@pytest.mark.promise("STO-2")
def test_a_value_is_hidden_after_the_question_for_it_was_stopped_and_continued(home: Path) -> None:
    with in_terminal("history", "redact") as terminal:
        for _ in range(2):
            terminal.output = ""
            terminal.read_until("Value to redact: ")
            terminal.until(lambda: not terminal.shows_input, "the value is hidden")
            terminal.stop()
            assert terminal.shows_input
            terminal.process.send_signal(signal.SIGCONT)
        terminal.until(lambda: not terminal.shows_input, "the value is hidden again")
        terminal.type("shelf-of-Ada\n")
        assert terminal.read_all() == 0
        assert "Redacted in 0 calls" in terminal.output
        assert "shelf-of-Ada" not in terminal.output
        assert terminal.is_as_before


def test_ctrl_d_instead_of_a_value_to_redact_changes_nothing(home: Path) -> None:
    with in_terminal("history", "redact") as terminal:
        terminal.read_until("Value to redact: ")
        terminal.type("\x04")
        assert terminal.read_all() == 2
    assert "Nothing was changed because no value was typed." in terminal.output


@pytest.mark.promise("ACT-4", "CLI-2")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("redact", "The value may remain in what Pegboard has stored because the history can't be changed: "),
        ("delete ID", "Nothing was deleted: "),
        ("pin ID", "Nothing was changed: "),
    ],
)
def test_a_full_disk_is_reported_with_the_change_that_failed_and_what_to_do(
    pegboard: Command, home: Path, line: str, words: str
) -> None:
    call = json.loads(pegboard("tools", "invoke", "tools.echo", "--arg", "value=shelf-of-Ada").stdout)["call"]["id"]
    [file] = home.rglob("history.db")
    with closing(sqlite3.connect(file)) as database:
        for act in ("UPDATE", "DELETE"):
            database.execute(
                f"CREATE TRIGGER full_{act} BEFORE {act} ON calls BEGIN"
                " SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
    done = pegboard("history", *line.replace("ID", call).split(), stdin="shelf-of-Ada\n")
    assert done.returncode == 1
    assert done.stderr == f"{words}database or disk is full. Free space on the disk, then try again.\n"


@pytest.mark.parametrize(("differences", "line"), [(201, "1 more difference ("), (202, "2 more differences (")])
def test_the_differences_that_are_not_printed_are_counted(differences: int, line: str) -> None:
    before: JsonObject = {f"k{number}": 1 for number in range(differences)}
    after: JsonObject = dict.fromkeys(before, 2)
    assert line in [*difference_lines("result", diff(before, after))][-1]
