"""Only leftover result files of killed processes are deleted, after a week."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pegboard.history import History
from pegboard.history.recorded import RecordedCalls
from pegboard.models import ResultMeta, ToolCall, ToolResult, Truncation

OpenHistory = Callable[..., History]
NOW = datetime.now(UTC)
LARGE = "x" * 70_000

WRITER = """
import os, sys
from pegboard.worker import serve
def hang(*_):
    print("written", flush=True)
    sys.stdin.read()
os.replace = hang
serve._write_whole(sys.argv[1], b"[1, 2, 3]")
"""


def age(results: Path, days: float = 8) -> None:
    """Set the modification time of every file of a folder to `days` ago."""
    past = time.time() - days * 86_400
    for file in results.iterdir():
        os.utime(file, (past, past))


def kept(results: Path) -> set[str]:
    return {file.name for file in results.iterdir()}


def record(history: History, call_id: str, data: str = LARGE) -> None:
    call = ToolCall(id=call_id, name="a.x", source="cli")
    history.record(call, ToolResult(ok=True, data=data), NOW)
    history.flush()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "state" / "results"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.promise("STO-3")
def test_the_lock_file_that_another_process_is_creating_is_kept(history: History, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "running"
    folder.mkdir(parents=True, exist_ok=True)
    for name in (".7-draft", "7-killed"):
        (folder / name).touch()
    history.sweep()
    assert (folder / ".7-draft").exists()
    assert not (folder / "7-killed").exists()


@pytest.mark.promise("STO-3")
def test_the_unfinished_file_of_a_killed_worker_is_deleted_after_a_week(history: History, results: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(results / "1f.json")]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"written\n"
        history.sweep()
        assert [name[:9] for name in kept(results)] == [".1f.json."]
    finally:
        worker.kill()
        worker.communicate(timeout=30)
    assert worker.returncode == -signal.SIGKILL
    history.sweep()
    assert [name[:9] for name in kept(results)] == [".1f.json."]
    age(results)
    history.sweep()
    assert kept(results) == set()


def test_the_unfinished_file_of_a_killed_history_is_deleted_after_a_week(history: History, results: Path) -> None:
    (results / ".ab.json.a1_b2cde").write_text("[")
    (results / ".ab-1.png.a1_b2cde").write_text("an image")
    age(results)
    history.sweep()
    assert kept(results) == set()


@pytest.mark.promise("STO-3")
def test_a_result_file_is_kept_while_a_call_refers_to_it(open_history: OpenHistory, results: Path) -> None:
    other = open_history()
    record(other, "recorded")
    record(other, "an odd id/")
    truncated = Truncation(shown_bytes=1, total_bytes=9, file=str(results / f"{'5' * 64}.json"))
    (results / f"{'5' * 64}.json").write_text("[1, 2, 3]")
    call = ToolCall(id="another odd id", name="a.x", source="cli")
    other.record(call, ToolResult(ok=True, data=[1], meta=ResultMeta(truncated=truncated)), NOW)
    other.flush()
    expected = kept(results)
    assert len(expected) == 3
    (results / "orphan.json").write_text("[1, 2, 3]")
    (results / "fresh.json").write_text("[1, 2, 3]")
    age(results)
    os.utime(results / "fresh.json")
    open_history().sweep()
    assert kept(results) == {*expected, "fresh.json"}
    result = other.result("an odd id/")
    assert result is not None
    assert result.data == LARGE


def test_files_with_other_names_are_kept(history: History, results: Path, tmp_path: Path) -> None:
    (results / "notes.txt").write_text("mine")
    (results / "a folder.json").mkdir()
    (results / "link.json").symlink_to(tmp_path)
    age(results)
    os.utime(results / "link.json", (1, 1), follow_symlinks=False)
    expected = kept(results)
    history.sweep()
    assert kept(results) == expected


@pytest.mark.promise("STO-3")
def test_results_of_a_database_that_was_set_aside_stay(open_history: OpenHistory, results: Path) -> None:
    first = open_history()
    record(first, "recorded")
    first.close()
    (results.parent / "history.db").write_bytes(b"not a database" * 100)
    age(results)
    second = open_history()
    second.sweep()
    assert kept(results) == {"recorded.json"}
    assert [problem.message for problem in second.problems] == [
        "The history could not be used: file is not a database."
    ]
    second.close()
    open_history().sweep()
    assert kept(results) == {"recorded.json"}


def test_lock_files_of_killed_processes_are_deleted(open_history: OpenHistory, tmp_path: Path) -> None:
    running = open_history()
    running.start(ToolCall(name="a.x", source="cli"), NOW)
    running.flush()
    folder = tmp_path / "state" / "running"
    [alive] = kept(folder)
    (folder / "4711-0123456789abcdef").touch()
    open_history().sweep()
    assert kept(folder) == {alive}


def test_sweeping_without_a_history_creates_no_database(history: History, tmp_path: Path) -> None:
    history.sweep()
    assert not (tmp_path / "state").exists()


@pytest.mark.promise("MCP-4")
def test_images_of_recorded_calls_are_kept(history: History, results: Path) -> None:
    record(history, "recorded")
    for name in ("recorded-1.png", "killed-1.png", "resource-ab12-3.bin", "notes.txt", "young-1.png"):
        (results / name).write_bytes(b"image")
    age(results)
    (results / "young-1.png").write_bytes(b"image")
    history.sweep()
    assert kept(results) == {"recorded.json", "recorded-1.png", "notes.txt", "young-1.png"}


def record_image(history: History, results: Path, call_id: str, size: int = 1_000) -> None:
    image = results / f"{call_id}-1.png"
    image.write_bytes(b"x" * size)
    record(history, call_id, f"image/png, 1 kB: {image}")


@pytest.mark.promise("STO-3")
def test_images_count_toward_the_size_limit_and_are_removed_with_the_oldest_calls(
    open_history: OpenHistory, results: Path
) -> None:
    history = open_history(size_limit=100_000)
    for number in range(6):
        record_image(history, results, f"call{number}", 30_000)
    assert kept(results) == {"call3-1.png", "call4-1.png", "call5-1.png"}


@pytest.mark.promise("ACT-2")
def test_images_of_a_deleted_call_are_removed_when_it_can_no_longer_be_restored(
    history: History, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for call_id in ("deleted", "kept"):
        record_image(history, results, call_id)
    calls = RecordedCalls(history)
    calls.delete(["deleted"])
    record(history, "within an hour", "small")
    assert kept(results) == {"deleted-1.png", "kept-1.png"}
    monkeypatch.setattr("pegboard.history.database.UNDO_SECONDS", -1)
    record(history, "after it", "small")
    calls.close()
    assert kept(results) == {"kept-1.png"}
