"""`pegboard batch` with the worker pool."""

from __future__ import annotations

import asyncio
import csv
import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import commands
import pytest

from pegboard.batch.engines.embedded import EmbeddedEngine
from pegboard.batch.errors import BatchError
from pegboard.batch.export import merge_results
from pegboard.batch.journal import journal_file
from pegboard.batch.plan import BatchPlan
from pegboard.batch.preview import preview
from pegboard.batch.result_folder import ResultFolder, can_continue
from pegboard.batch.run import Batch
from pegboard.runtime import Runtime

pytestmark = pytest.mark.promise("BAT-1")

Command = Callable[..., commands.Done]


def rows(source: Path, count: int, /, **more: object) -> Path:
    source.write_text("".join(json.dumps({"number": number, **more}) + "\n" for number in range(1, count + 1)))
    return source


def lines(text: str) -> list[dict[str, Any]]:
    return sorted((json.loads(line) for line in text.splitlines()), key=lambda result: result["row"])


def test_each_row_is_a_recorded_call_with_one_result(pegboard: Command, tmp_path: Path) -> None:
    rows(tmp_path / "rows.jsonl", 5)
    done = pegboard("rows.square", "--from", "rows.jsonl")
    assert done.returncode == 1
    found = lines(done.stdout)
    assert [(one["row"], one["ok"], one["data"]) for one in found] == [
        (1, False, None), (2, True, 4), (3, False, None), (4, True, 16), (5, False, None),
    ]  # fmt: skip
    assert found[0]["error"] == {"code": "execution_error", "message": "1 is odd.", "detail": "odd"}
    assert found[0].keys() == {"row", "ok", "data", "error", "durationMs", "attempts", "call"}
    assert "5 rows, 2 succeeded, 3 failed" in done.stderr
    with_records = {record.id: record for record in Runtime.from_environment().history.records()}
    records = [with_records[one["call"]] for one in found]
    assert [record.args["number"] for record in records] == [1, 2, 3, 4, 5]
    assert {record.source for record in records} == {"batch"}
    assert len({record.parent for record in records}) == 1
    assert records[0].parent is not None
    batch = with_records[records[0].parent]
    assert (batch.tool, batch.source, batch.parent) == ("batch.run", "batch", None)
    assert batch.args == {"tool": "rows.square", "from": "rows.jsonl"}
    result = Runtime.from_environment().history.result(batch.id)
    assert result is not None
    assert result.data == {"succeeded": 2, "failed": 3}
    assert result.error is not None
    assert (batch.ok, result.error.message) == (False, "3 of 5 rows failed.")


async def test_results_that_cannot_be_written_at_the_end_end_the_batch_with_the_reason(
    pegboard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    monkeypatch.setattr("pegboard.batch.store.write_csv", fail)
    runtime = Runtime.from_environment(packs=[tmp_path / "packs"])
    runtime.tools.scan()
    spec = runtime.tools.get("rows.square")
    assert spec is not None
    plan = BatchPlan(spec=spec, source=str(rows(tmp_path / "rows.jsonl", 4)), out=tmp_path / "out.csv")
    async with runtime:
        batch = Batch(plan, EmbeddedEngine(runtime), runtime.pipelines.recorder)
        with pytest.raises(BatchError, match="No space left on device"):
            await batch.run()
        [record] = [one for one in runtime.history.records() if one.tool == "batch.run"]
    assert record.error is not None
    assert "No space left on device" in record.error.message
    assert batch.progress.done == 4


def test_the_preview_names_the_keys_of_the_first_json_rows_and_shows_three_calls(
    pegboard: Command, tmp_path: Path
) -> None:
    runtime = Runtime.from_environment(packs=[tmp_path / "packs"])
    runtime.tools.scan()
    spec = runtime.tools.get("rows.square")
    assert spec is not None
    file = rows(tmp_path / "rows.jsonl", 4)
    file.write_text(f'{file.read_text()}{{"number": 5, "note": "the last"}}\n')
    found = preview(BatchPlan(spec=spec, source=str(file), out=tmp_path / "out.csv"))
    assert found.columns == ("number", "note")
    assert [call.arguments for call in found.calls] == [{"number": 1}, {"number": 2}, {"number": 3}]


def test_a_full_disk_ends_a_batch_with_the_reason_and_results_that_can_be_continued(
    program: list[str], pegboard: Command, tmp_path: Path
) -> None:
    rows(tmp_path / "rows.jsonl", 3)
    line = ["rows.large", "--from", "rows.jsonl", "--out", "out.csv", "--jobs", "1"]
    limited = ["sh", "-c", 'ulimit -f 9000 && exec "$@"', "sh", *program, *line]  # in units of 512 bytes
    done = subprocess.run(limited, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert f"error: out.csv can't be written: {os.strerror(errno.EFBIG)}. Check the disk space" in done.stderr
    results = tmp_path / "out.csv.rows.jsonl"
    written = [one["row"] for one in lines(results.read_text())]
    assert len(written) < 3  # results that are written together may all be missing
    assert pegboard(*line, "--resume").returncode == 0
    assert sorted(one["row"] for one in lines(results.read_text())) == [1, 2, 3]


@pytest.mark.promise("BAT-1")
def test_a_full_disk_during_a_batch_from_stdin_does_not_advise_to_resume(program: list[str], tmp_path: Path) -> None:
    line = ["rows.large", "--from", "-", "--out", "out.jsonl", "--jobs", "1"]
    limited = ["sh", "-c", 'ulimit -f 9000 && exec "$@"', "sh", *program, *line]  # in units of 512 bytes
    text = rows(tmp_path / "rows.jsonl", 3).read_text()
    done = subprocess.run(limited, cwd=tmp_path, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "Check the disk space and permissions, then run the batch again." in done.stderr
    assert "then resume" not in done.stderr


def test_the_summary_of_one_row_is_in_the_singular(pegboard: Command, tmp_path: Path) -> None:
    rows(tmp_path / "rows.jsonl", 1)
    done = pegboard("rows.square", "--from", "rows.jsonl", "--stop-after", "1")
    assert "1 row, 0 succeeded, 1 failed" in done.stderr
    assert "1 rows" not in done.stderr


def test_retry_unknown_without_resume_is_an_error(pegboard: Command, tmp_path: Path) -> None:
    rows(tmp_path / "rows.jsonl", 1)
    done = pegboard("rows.square", "--from", "rows.jsonl", "--retry-unknown")
    assert (done.returncode, done.stderr) == (2, "--retry-unknown needs --resume.\n")


def test_replacing_results_on_stdout_is_an_error(pegboard: Command, tmp_path: Path) -> None:
    rows(tmp_path / "rows.jsonl", 1)
    done = pegboard("rows.square", "--from", "rows.jsonl", "--force", "--out", "-")
    assert (done.returncode, done.stderr) == (2, "--force replaces the results of --out, so it needs --out.\n")
    assert not (tmp_path / "-").exists()


def test_csv_columns_are_mapped_and_csv_results_are_flat(pegboard: Command, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("count,more\n4,a\nfive,b\n6\n")
    done = pegboard("rows.double", "--from", "rows.csv", "--map", "number=count", "--out", "out.csv", "--json")
    assert done.returncode == 1
    summary = json.loads(done.stdout)
    assert (summary["rows"], summary["ok"], summary["failed"], summary["ended"]) == (3, 1, 2, "complete")
    with (tmp_path / "out.csv").open(newline="") as file:
        found = sorted(csv.DictReader(file), key=lambda one: one["row"])
    assert (found[0]["ok"], found[0]["data.number"], found[0]["data.double"]) == ("true", "4", "8")
    assert (found[1]["error"], "must be an integer" in found[1]["message"]) == ("invalid_args", True)
    assert found[2]["message"] == "Line 4 has 1 value, but the header has 2 columns."
    assert "row 3: Line 4 has 1 value" in done.stderr
    assert "more" in done.stderr


def test_large_results_are_written_whole(pegboard: Command, tmp_path: Path) -> None:
    rows(tmp_path / "rows.jsonl", 2)
    pegboard("rows.large", "--from", "rows.jsonl", "--out", "out.jsonl")
    assert [len(one["data"]) for one in lines((tmp_path / "out.jsonl").read_text())] == [2_000_000] * 2


def test_a_secret_is_in_no_result(pegboard: Command, tmp_path: Path) -> None:
    rows(tmp_path / "rows.jsonl", 1)
    done = pegboard("rows.secret", "--from", "rows.jsonl", env={"BATCH_KEY": "hunter2-is-long"})
    assert "15 " in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("error", "attempts", "ok"), [("ConnectionError", 3, True), ("code", 3, True), ("ValueError", 1, False)]
)
def test_only_failures_that_pass_are_repeated(
    pegboard: Command, tmp_path: Path, error: str, attempts: int, ok: bool
) -> None:
    rows(tmp_path / "rows.jsonl", 1, folder=str(tmp_path), error=error)
    found = lines(pegboard("rows.flaky", "--from", "rows.jsonl", "--retry", "3").stdout)
    assert [(one["ok"], one["attempts"]) for one in found] == [(ok, attempts)]


def test_a_failure_after_which_a_call_may_have_had_its_effect_is_repeated_only_if_the_tool_may_be(
    pegboard: Command, tmp_path: Path
) -> None:
    attempts = {
        "TimeoutError": 1, "ConnectionResetError": 1, "BrokenPipeError": 1, "ConnectionError": 1, "504": 1,
        "ConnectionRefusedError": 2, "rate_limited": 2,
    }  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"error": error}) + "\n" for error in attempts))
    found = lines(pegboard("rows.pay", "--from", "rows.jsonl", "--retry", "1").stdout)
    assert [one["attempts"] for one in found] == [*attempts.values()]
    rows(tmp_path / "rows.jsonl", 1, folder=str(tmp_path), error="TimeoutError")
    (repeated,) = lines(pegboard("rows.flaky", "--from", "rows.jsonl", "--retry", "3").stdout)
    assert (repeated["ok"], repeated["attempts"]) == (True, 3)


def test_rows_that_call_nothing_and_the_end_of_the_file_do_not_wait_for_the_rate(
    pegboard: Command, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("number\n" + 30 * "a,b\n" + "2\n")
    done = pegboard("rows.double", "--from", "rows.csv", "--rate", "1/h", "--jobs", "8")
    assert (done.returncode, "31 rows, 1 succeeded, 30 failed" in done.stderr) == (1, True)


def test_a_rate_bounds_the_calls_per_second(pegboard: Command, tmp_path: Path) -> None:
    rows(tmp_path / "rows.jsonl", 8)
    began = time.monotonic()
    assert pegboard("rows.double", "--from", "rows.jsonl", "--rate", "20/s", "--jobs", "4").returncode == 0
    assert time.monotonic() - began >= 7 / 20


def test_a_batch_stops_after_failures_and_can_be_resumed(pegboard: Command, tmp_path: Path) -> None:
    rows(tmp_path / "rows.jsonl", 50)
    line = ("rows.square", "--from", "rows.jsonl", "--out", "out.jsonl", "--jobs", "1")
    done = pegboard(*line, "--stop-after", "3")
    assert (done.returncode, len((tmp_path / "out.jsonl").read_text().splitlines())) == (1, 5)
    assert "--resume" in done.stderr
    assert pegboard(*line, "--resume").returncode == 1
    assert [one["row"] for one in lines((tmp_path / "out.jsonl").read_text())] == [*range(1, 51)]
    again = pegboard(*line, "--resume", "--json")
    assert (again.returncode, json.loads(again.stdout)["before"]) == (1, 50)


def test_the_option_to_continue_a_batch_comes_before_the_arguments(packs: str, tmp_path: Path) -> None:
    rows(tmp_path / "rows.jsonl", 50)
    options = ("--from", "rows.jsonl", "--out", "out.jsonl", "--stop-after=1", "--packs", packs)
    done = commands.pegboard("batch", *options, "--force", "--", "rows.square", cwd=tmp_path)
    assert f"Continue with: pegboard batch {' '.join(options)} --resume -- rows.square" in done.stderr


def test_a_batch_of_a_file_whose_name_is_not_ascii_can_be_resumed(pegboard: Command, tmp_path: Path) -> None:
    rows(tmp_path / "entrées שלום.jsonl", 20)
    line = ("rows.square", "--from", "entrées שלום.jsonl", "--out", "sortie é.jsonl", "--jobs", "1")
    assert pegboard(*line, "--stop-after", "1").returncode == 1
    done = pegboard(*line, "--resume")
    assert (done.returncode, "20 rows, 10 succeeded, 10 failed" in done.stderr) == (1, True), done.stderr


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are UTF-8 there")
def test_a_batch_whose_files_have_names_in_another_encoding_can_be_resumed_with_the_printed_command(
    pegboard: Command, program: list[str], tmp_path: Path
) -> None:
    source, out = (os.fsdecode(b"caf\xe9's\n" + suffix) for suffix in (b".jsonl", b"-out.jsonl"))
    rows(tmp_path / source, 20)
    done = pegboard("rows.square", "--from", source, "--out", out, "--jobs", "1", "--stop-after", "1")
    assert (done.returncode, len((tmp_path / out).read_bytes().splitlines())) == (1, 1), done.stderr
    command = next(line for line in done.stderr.splitlines() if line.startswith("Continue with: "))
    words = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command.removeprefix('Continue with: ')}"], capture_output=True, check=True
    ).stdout.split(b"\0")
    assert words[:4] == [b"pegboard", b"batch", b"rows.square", b"--from"]
    again = subprocess.run([*program, *map(os.fsdecode, words[2:-1])], cwd=tmp_path, capture_output=True, check=False)
    assert (again.returncode, b"1 finished before" in again.stderr) == (1, True), again.stderr


async def test_a_resumed_batch_replaces_its_record_and_running_apps_notice(pegboard: Command, tmp_path: Path) -> None:
    rows(tmp_path / "rows.jsonl", 5)
    line = ("rows.square", "--from", "rows.jsonl", "--out", "out.jsonl", "--jobs", "1")
    assert pegboard(*line, "--stop-after", "1").returncode == 1
    async with Runtime.from_environment() as runtime, aclosing(runtime.activity.changes()) as changes:
        await anext(changes)
        [stopped] = runtime.activity.page(runtime.activity.parse("tool:batch.run").query).calls
        assert stopped.error is not None
        assert stopped.error.message == "The batch was stopped because too many rows failed."
        assert pegboard(*line, "--resume").returncode == 1
        async with asyncio.timeout(20):
            while not (await anext(changes)).everything:
                pass
        [resumed] = runtime.activity.page(runtime.activity.parse("tool:batch.run").query).calls
        assert resumed.error is not None
        assert (resumed.id, resumed.error.message) == (stopped.id, "3 of 5 rows failed.")
        assert resumed.at > stopped.at


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (["rows.double", "--from", "nope.csv"], 2, "No such file"),
        (["rows.dubble", "--from", "rows.jsonl"], 3, "rows.double"),
        (["rows.double", "--from", "-", "--resume", "--out", "o.jsonl"], 2, "Standard input can't be resumed"),
        (["rows.double", "--from", "rows.jsonl", "--resume"], 2, "--out"),
        (["rows.double", "--from", "rows.jsonl", "--resume", "--out", "o.jsonl"], 2, "nothing to resume"),
        (["rows.double", "--from", "rows.jsonl", "--out", "rows.jsonl"], 2, "another file"),
        (["rows.double", "--from", "rows.jsonl", "--out", "exists.jsonl"], 2, "--resume"),
        (["rows.double", "--from", "rows.jsonl", "--out", "no/o.jsonl"], 2, "doesn't exist"),
        (["rows.double", "--from", "rows.jsonl", "--rate", "fast"], 2, "5/s"),
        (["rows.double", "--from", "rows.jsonl", "--json"], 2, "--out"),
        (["rows.double", "--from", "rows.jsonl", "--arg", "number=x"], 2, "must be an integer"),
        (["rows.double", "--from", "rows.jsonl", "--out", 300 * "o"], 2, "can't be used: File name too long"),
        (["rows.double", "--from", "rows.jsonl", "--engine", "dask://[::1"], 2, "can't be used as an engine"),
        (["rows.double", "--from", "rows.jsonl", "--engine", f"dask://local?workers={5000 * '1'}"], 2, "at most 64"),
    ],
)
def test_errors_before_the_first_call_are_messages(
    pegboard: Command, tmp_path: Path, line: list[str], code: int, words: str
) -> None:
    rows(tmp_path / "rows.jsonl", 1)
    (tmp_path / "exists.jsonl").write_text("x")
    done = pegboard(*line)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert "0 succeeded" not in done.stderr
    assert "Continue with" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_ends_badly_keeps_the_results_before(pegboard: Command, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('number\n1\n2\n"3\n')
    done = pegboard("rows.double", "--from", "rows.csv", "--out", "out.jsonl")
    assert done.returncode == 2
    assert "row 3 (line 4)" in done.stderr
    assert [one["row"] for one in lines((tmp_path / "out.jsonl").read_text())] == [1, 2]
    (tmp_path / "rows.csv").write_text('number\n1\n2\n"3"\n')
    assert pegboard("rows.double", "--from", "rows.csv", "--out", "out.jsonl", "--resume").returncode == 0
    assert [one["row"] for one in lines((tmp_path / "out.jsonl").read_text())] == [1, 2, 3]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace('"number": 2', '"number": 7'), "row 2 (line 2)"),
        (lambda text: text.splitlines()[0] + "\n", "ends before row 2"),
    ],
)
def test_changed_rows_cannot_be_resumed(
    pegboard: Command, tmp_path: Path, change: Callable[[str], str], words: str
) -> None:
    source = rows(tmp_path / "rows.jsonl", 4)
    line = ("rows.double", "--from", "rows.jsonl", "--out", "out.jsonl", "--jobs", "1")
    assert pegboard(*line).returncode == 0
    source.write_text(change(source.read_text()))
    done = pegboard(*line, "--resume")
    assert done.returncode == 2
    assert words in done.stderr


def test_a_batch_of_a_tool_that_was_renamed_is_resumed_if_an_alias_has_the_earlier_name(
    pegboard: Command, tmp_path: Path, packs: str
) -> None:
    rows(tmp_path / "rows.jsonl", 4)
    line = ("--from", "rows.jsonl", "--out", "out.jsonl", "--jobs", "1")
    assert pegboard("rows.square", *line, "--stop-after", "1").returncode == 1
    before = (tmp_path / "out.jsonl").read_text()
    pack = Path(packs) / "rows.py"
    head = "from pegboard.sdk import aliases\n"
    pack.write_text(head + pack.read_text().replace("def square(", '@aliases("rows.square")\ndef squared('))
    assert pegboard("rows.square", *line, "--resume").returncode == 1
    after = (tmp_path / "out.jsonl").read_text()
    assert after.startswith(before)
    assert [result["row"] for result in lines(after)] == [1, 2, 3, 4]
    assert pegboard("rows.squared", *line, "--resume").returncode == 1
    assert "the tool rows.square" in pegboard("rows.double", *line, "--resume").stderr


def test_the_app_finds_the_interrupted_batch_of_a_tool_that_was_renamed(packs: str, tmp_path: Path) -> None:
    runtime = Runtime.from_environment(packs=[Path(packs)])
    runtime.tools.scan()
    tool = runtime.tools.get("rows.square")
    assert tool is not None
    renamed = tool.model_copy(update={"name": "rows.squared", "aliases": ("rows.square",)})
    before, after = (BatchPlan(spec=spec, source="rows.jsonl") for spec in (tool, renamed))
    folder = ResultFolder.claim(tmp_path, before)
    journal_file(folder.part(0)).touch()
    assert folder.has_inputs(after)
    folder.release()
    assert can_continue(tmp_path, after)
    assert ResultFolder.claim(tmp_path, after).part(0) == folder.part(0)
    assert not can_continue(tmp_path, BatchPlan(spec=renamed.model_copy(update={"aliases": ()}), source="rows.jsonl"))


@pytest.mark.parametrize("option", [["--arg", "number=3"], ["--map", "number=other"]])
def test_other_arguments_cannot_be_resumed(pegboard: Command, tmp_path: Path, option: list[str]) -> None:
    rows(tmp_path / "rows.jsonl", 2)
    line = ("rows.double", "--from", "rows.jsonl", "--out", "out.jsonl")
    assert pegboard(*line).returncode == 0
    done = pegboard(*line, "--resume", *option)
    assert done.returncode == 2
    assert "--map, --arg" in done.stderr


@pytest.mark.parametrize(("tool", "moments"), [("note", (0.4, 0.05)), ("again", (0.5,))])
@pytest.mark.slow
def test_a_killed_batch_ends_with_one_result_per_row(
    program: list[str], tmp_path: Path, tool: str, moments: tuple[float, ...]
) -> None:
    count = 400
    rows(tmp_path / "rows.jsonl", count, file=str(tmp_path / "calls"))
    out = tmp_path / "out.jsonl"
    line = [*program, f"rows.{tool}", "--from", "rows.jsonl", "--out", str(out), "--jobs", "3"]
    for number, moment in enumerate(moments):
        with subprocess.Popen(
            [*line, *(["--resume"] if number else [])], cwd=tmp_path, stderr=subprocess.DEVNULL
        ) as it:
            have = out.stat().st_size if out.exists() else 0
            deadline = time.monotonic() + 30
            while not (out.exists() and out.stat().st_size > have) and time.monotonic() < deadline:
                time.sleep(0.005)
            with_timeout(it, moment)
            it.kill()
    done = subprocess.run([*line, "--resume"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    found = lines(out.read_text())
    assert [one["row"] for one in found] == [*range(1, count + 1)], done.stderr
    called = [int(number) for number in (tmp_path / "calls").read_text().split()]
    unknown = {one["row"] for one in found if not one["ok"]}
    assert done.returncode == (1 if unknown else 0), done.stderr
    if tool == "note":
        assert len(called) == len(set(called)), "none twice"
        assert {one["error"]["detail"] for one in found if not one["ok"]} <= {"unknown"}
        assert {*range(1, count + 1)} - {*called} <= unknown
    else:
        assert not unknown
        assert {*called} == {*range(1, count + 1)}


def with_timeout(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Let a process run for some seconds."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def wait_for(file: Path, count: int) -> list[int]:
    """Wait until a file has some lines, and return their numbers."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = file.read_text().split() if file.exists() else []
        if len(found) >= count:
            return [int(number) for number in found]
        time.sleep(0.01)
    raise AssertionError(f"{file} has too few lines")


@pytest.mark.parametrize("retry_unknown", [False, True])
def test_an_interrupted_call_that_is_not_idempotent_is_unknown(
    program: list[str], tmp_path: Path, retry_unknown: bool
) -> None:
    rows(tmp_path / "rows.jsonl", 1, file=str(tmp_path / "pids"))
    (tmp_path / "rows.jsonl").write_text(json.dumps({"file": str(tmp_path / "pids")}) + "\n")
    line = [*program, "rows.wait_once", "--from", "rows.jsonl", "--out", "out.jsonl", "--timeout"]
    with subprocess.Popen([*line, "30"], cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        wait_for(tmp_path / "pids", 1)
        process.kill()
    more = ["--retry-unknown"] if retry_unknown else []
    done = subprocess.run(
        [*line, "0.3", "--resume", *more], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    (result,) = lines((tmp_path / "out.jsonl").read_text())
    assert (done.returncode, result["error"]["detail"]) == (1, "timeout" if retry_unknown else "unknown")
    assert len(wait_for(tmp_path / "pids", 1)) == 1 + retry_unknown


def killed(program: list[str], folder: Path, *, rows: int, jobs: int) -> list[str]:
    """Kill a batch of calls that wait once while `jobs` of them run; return its arguments."""
    pids = folder / "pids"
    (folder / "rows.jsonl").write_text(rows * (json.dumps({"file": str(pids)}) + "\n"))
    line = ["rows.wait_once", "--from", "rows.jsonl", "--out", "out.jsonl", "--jobs", str(jobs)]
    with subprocess.Popen([*program, *line], cwd=folder, stderr=subprocess.DEVNULL) as process:
        wait_for(pids, jobs)
        process.kill()
    return line


def test_each_resume_with_retry_unknown_runs_the_unknown_rows_again(
    program: list[str], pegboard: Command, tmp_path: Path
) -> None:
    pids, out = tmp_path / "pids", tmp_path / "out.jsonl"
    line = killed(program, tmp_path, rows=3, jobs=2)
    quick = ["--timeout", "0.3", "--resume"]
    assert pegboard(*line, *quick).returncode == 1
    found = {one["row"]: one["error"]["detail"] for one in lines(out.read_text())}
    assert found == {1: "unknown", 2: "unknown", 3: "timeout"}

    resume = [*program, *line, "--resume", "--retry-unknown"]
    with subprocess.Popen(resume, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        wait_for(pids, 5)
        process.kill()  # the rows are unknown for the second time
    assert [one["row"] for one in lines(out.read_text())] == [3]
    done = pegboard(*line, *quick, "--json")
    assert json.loads(done.stdout)["failed"] == 3
    assert sorted(one["error"]["detail"] for one in lines(out.read_text())) == ["timeout", "unknown", "unknown"]

    done = pegboard(*line, *quick, "--retry-unknown", "--json")
    summary = json.loads(done.stdout)
    assert (summary["rows"], summary["failed"], summary["before"], summary["unknown"]) == (3, 3, 1, 0)
    assert sorted(one["row"] for one in lines(out.read_text())) == [1, 2, 3]
    assert {one["error"]["detail"] for one in lines(out.read_text())} == {"timeout"}
    assert len(wait_for(pids, 1)) == 7
    pegboard(*line, *quick, "--retry-unknown")
    assert len(wait_for(pids, 1)) == 7, "nothing is unknown any longer"


def test_a_resume_completes_the_removal_of_unknown_rows(program: list[str], pegboard: Command, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    line = killed(program, tmp_path, rows=2, jobs=1)
    assert pegboard(*line, "--timeout", "0.3", "--resume").returncode == 1
    kept = next(text for text in out.read_bytes().splitlines(keepends=True) if json.loads(text)["row"] == 2)
    with out.with_name("out.jsonl.journal").open("a") as journal:  # as a process that was killed here leaves it
        journal.write(f"U {len(kept)} 1\n")
    done = pegboard(*line, "--timeout", "0.3", "--resume", "--json")
    assert json.loads(done.stdout)["rows"] == 2
    found = {one["row"]: one["error"]["detail"] for one in lines(out.read_text())}
    assert found == {1: "unknown", 2: "timeout"}
    assert out.read_bytes().startswith(kept)


def test_an_incomplete_line_of_the_journal_is_removed_at_a_resume(
    program: list[str], pegboard: Command, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    line = killed(program, tmp_path, rows=2, jobs=1)
    with out.with_name("out.jsonl.journal").open("a") as journal:  # as a full disk leaves it
        journal.write("S 2")
    for _ in range(2):
        done = pegboard(*line, "--timeout", "0.3", "--resume", "--json")
        assert json.loads(done.stdout)["rows"] == 2


def test_a_killed_worker_fails_only_its_row(program: list[str], tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(2 * (json.dumps({"file": str(tmp_path / "pids")}) + "\n"))
    line = [*program, "rows.wait", "--from", "rows.jsonl", "--jobs", "2", "--timeout", "3"]
    with subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        os.kill(wait_for(tmp_path / "pids", 2)[0], signal.SIGKILL)
        stdout, _ = process.communicate(timeout=30)
    assert sorted(one["error"]["detail"] for one in lines(stdout)) == ["crashed", "timeout"]


def test_ctrl_c_lets_running_calls_finish_and_says_how_to_resume(program: list[str], tmp_path: Path) -> None:
    rows(tmp_path / "rows.jsonl", 3000, file=str(tmp_path / "calls"))
    out = tmp_path / "out.jsonl"
    line = [*program, "rows.note", "--from", "rows.jsonl", "--out", "out.jsonl"]
    with subprocess.Popen(line, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        wait_for(tmp_path / "calls", 5)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "--resume" in stderr.splitlines()[-1]
    found = lines(out.read_text())
    assert all(one["ok"] for one in found)
    assert len(found) == len((tmp_path / "calls").read_text().split())


def test_a_reader_that_has_read_enough_ends_a_batch_without_a_message(program: list[str], tmp_path: Path) -> None:
    rows(tmp_path / "rows.jsonl", 3000)
    line = [*program, "rows.double", "--from", "rows.jsonl"]
    with subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_the_record_of_a_batch_says_that_the_reader_of_its_results_had_ended(
    program: list[str], tmp_path: Path
) -> None:
    rows(tmp_path / "rows.jsonl", 3000)
    line = [*program, "rows.double", "--from", "rows.jsonl"]
    with subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
    assert process.returncode == 141
    history = commands.pegboard("history", "tool:batch.run", "--json", cwd=tmp_path, env=dict(os.environ))
    [stopped] = json.loads(history.stdout)
    assert (stopped["state"], stopped["error"]["detail"]) == ("cancelled", "cancelled")
    assert "because the reader of its results" in stopped["error"]["message"]


@pytest.mark.parametrize(
    ("source", "out"), [("a.csv.rows.jsonl", "a.csv"), ("a.jsonl.journal", "a.jsonl"), ("a.csv.journal", "a.csv")]
)
def test_files_beside_the_results_never_replace_the_rows(
    pegboard: Command, tmp_path: Path, source: str, out: str
) -> None:
    rows(tmp_path / source, 3)
    before = (tmp_path / source).read_bytes()
    done = pegboard("rows.double", "--from", source, "--out", out, "--force")
    assert (done.returncode, f"replaces {source}, which contains the rows" in done.stderr) == (2, True)
    assert (tmp_path / source).read_bytes() == before
    assert not (tmp_path / out).exists()


def test_a_file_that_only_has_the_name_of_the_journal_is_replaced_only_with_force(
    pegboard: Command, tmp_path: Path
) -> None:
    rows(tmp_path / "rows.jsonl", 2)
    journal = tmp_path / "out.jsonl.journal"
    line = ("rows.double", "--from", "rows.jsonl", "--out", "out.jsonl")
    journal.write_text("my diary\n")
    done = pegboard(*line)
    assert (done.returncode, journal.read_text()) == (2, "my diary\n")
    assert "out.jsonl.journal exists and is not the journal of a batch." in done.stderr
    assert not (tmp_path / "out.jsonl").exists()
    assert pegboard(*line, "--force").returncode == 0
    (tmp_path / "out.jsonl").unlink()
    assert pegboard(*line).returncode == 0, "a journal whose results were deleted is replaced"


def test_a_column_that_is_not_used_is_named_in_one_line(pegboard: Command, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('number,"a\nb\x1b[1m"\n1,2\n')
    done = pegboard("rows.double", "--from", "rows.csv")
    assert "were ignored: a⏎b␛[1m\n" in done.stderr


def test_results_never_replace_a_device_or_a_folder(pegboard: Command, tmp_path: Path) -> None:
    rows(tmp_path / "rows.jsonl", 1)
    os.mkfifo(tmp_path / "pipe")
    for out in (tmp_path / "pipe", tmp_path):
        done = pegboard("rows.double", "--from", "rows.jsonl", "--out", str(out), "--force")
        assert (done.returncode, "it is not a regular file" in done.stderr) == (2, True)
    assert (tmp_path / "pipe").is_fifo()


def test_two_batches_do_not_write_the_same_results(program: list[str], pegboard: Command, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"file": str(tmp_path / "pids")}) + "\n")
    line = ["rows.wait", "--from", "rows.jsonl", "--out", "out.jsonl"]
    with subprocess.Popen([*program, *line], cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        wait_for(tmp_path / "pids", 1)
        done = pegboard(*line, "--resume")
        process.kill()
    assert (done.returncode, "in use by another batch" in done.stderr) == (2, True)


@pytest.mark.promise("BAT-2")
def test_the_engine_comes_from_the_user_and_never_from_a_folder(
    pegboard: Command, tmp_path: Path, home: Path, trust: Callable[[Path], None]
) -> None:
    rows(tmp_path / "rows.jsonl", 1)
    setting = '[batch]\nengine = "dask://nowhere"\n'
    (tmp_path / "pegboard.toml").write_text(setting)
    trust(tmp_path)
    done = pegboard("rows.double", "--from", "rows.jsonl")
    assert (done.returncode, "is ignored" in done.stderr) == (0, True)
    (tmp_path / "pegboard.toml").unlink()
    (home / "config.toml").write_text(setting)
    done = pegboard("rows.double", "--from", "rows.jsonl")
    assert (done.returncode, "dask://nowhere" in done.stderr) == (2, True)
    assert pegboard("rows.double", "--from", "rows.jsonl", "--engine", "embedded").returncode == 0


@pytest.mark.promise("BAT-2", "CFG-3")
def test_the_engine_of_a_folder_does_not_replace_that_of_the_user(
    pegboard: Command, tmp_path: Path, home: Path, trust: Callable[[Path], None]
) -> None:
    rows(tmp_path / "rows.jsonl", 1)
    (home / "config.toml").write_text('[batch]\nengine = "dask://nowhere"\n')
    (tmp_path / "pegboard.toml").write_text('[batch]\nengine = "dask://elsewhere"\n')
    trust(tmp_path)
    done = pegboard("rows.double", "--from", "rows.jsonl")
    assert (done.returncode, "dask://nowhere" in done.stderr, "is ignored" in done.stderr) == (2, True, True)
    shown = commands.pegboard("config", "show", cwd=tmp_path).stdout
    assert f'batch.engine = "dask://nowhere"  # {home / "config.toml"}:2\n' in shown
    assert f'batch.engine = "dask://elsewhere"  # {tmp_path / "pegboard.toml"}:2 (not used: only your own' in shown


def test_a_row_nested_too_deeply_fails_alone(pegboard: Command, tmp_path: Path) -> None:
    nested = "[" * 300 + "]" * 300
    (tmp_path / "rows.jsonl").write_text(f'{{"number": 2}}\n{{"number": {nested}}}\n{{"number": 4}}\n')
    done = pegboard("rows.square", "--from", "rows.jsonl")
    assert done.returncode == 1
    found = lines(done.stdout)
    assert [(one["row"], one["data"]) for one in found] == [(1, 4), (2, None), (3, 16)]
    assert found[1]["error"]["message"] == "Line 2 is nested deeper than 150 levels."


def test_csv_results_contain_no_formulas(pegboard: Command, tmp_path: Path) -> None:
    texts = ["=1+1", "@SUM(A1)", "-2.5", "-x", "plain"]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"value": {"a": text}}) + "\n" for text in texts))
    assert pegboard("tools.echo", "--from", "rows.jsonl", "--out", "out.csv").returncode == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        found = {int(one["row"]): one["data.a"] for one in csv.DictReader(file)}
    assert [found[row] for row in sorted(found)] == ["'=1+1", "'@SUM(A1)", "-2.5", "'-x", "plain"]
    merge_results([tmp_path / "out.csv.rows.jsonl"], tmp_path / "merged.csv")
    assert "'=1+1" in (tmp_path / "merged.csv").read_text()
    assert pegboard("tools.echo", "--from", "rows.jsonl", "--out", "out.csv", "--resume").returncode == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        assert {int(one["row"]): one["data.a"] for one in csv.DictReader(file)} == found


def test_half_a_character_in_a_row_leaves_results_that_can_be_read(pegboard: Command, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"number": 2}\n{"number\\ud800": 2}\n')
    assert pegboard("rows.square", "--from", "rows.jsonl", "--out", "out.csv").returncode == 1
    with (tmp_path / "out.csv").open(newline="") as file:
        assert sorted((one["row"], one["ok"]) for one in csv.DictReader(file)) == [("1", "true"), ("2", "false")]
    assert "2 rows" in pegboard("rows.square", "--from", "rows.jsonl", "--out", "out.csv", "--resume").stderr


def test_csv_results_name_each_value_unambiguously_and_keep_those_beyond_the_last_column(
    pegboard: Command, tmp_path: Path
) -> None:
    data = {"a.b": 1, "a": {"b": 2}, **{f"k{number}": number for number in range(1_200)}, "yes": True}
    values = [{"a.b": 3, "a": {}}, data]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"value": value}) + "\n" for value in values))
    assert pegboard("tools.echo", "--from", "rows.jsonl", "--out", "out.csv").returncode == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        first, second = sorted(csv.DictReader(file), key=lambda one: one["row"])
    assert (first['data."a.b"'], first["data.a.b"]) == ("3", "")
    assert (second['data."a.b"'], second["data.a.b"], second["data.k900"]) == ("1", "2", "900")
    rest = json.loads(second["rest"])
    assert rest["data.yes"] is True
    assert rest["data.k1199"] == 1199
    assert len([name for name in second if name.startswith("data")]) == 1_000
