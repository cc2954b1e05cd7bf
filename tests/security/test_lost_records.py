"""Calls that can't be recorded are reported once on stderr by every command, with the reason, and by the app."""

from __future__ import annotations

import fcntl
import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import commands
import pytest

from pegboard.history import History
from pegboard.models import ToolCall, ToolResult

Damage = Callable[[Path], object]

PACK = '''
from pegboard.sdk import call_tool, hints

@hints(read_only=True)
def say(*, text: str = "x", times: int = 1) -> str:
    """Says."""
    return text * times

@hints(read_only=True)
def twice() -> str:
    """Repeat a text through another tool."""
    return call_tool("book.say") + call_tool("book.say")
'''

COMMANDS: dict[str, tuple[list[str], int]] = {
    "invoke": (["tools", "invoke", "book.say"], 1),
    "nested": (["tools", "invoke", "book.twice"], 3),
    "script": (["script", "run", "script.sh"], 4),
    "ask": (["ask", "What time is it?"], 1),
    "ask without calls": (["ask", "--with-tools=false", "Hello"], 0),
}
"""Command → its arguments, and the number of its calls."""


@pytest.fixture
def state(home: Path) -> Path:
    return home / "state"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Return a folder with a script, and a pack next to it."""
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs" / "book.py").write_text(PACK)
    (tmp_path / "script.sh").write_text("book.say\nbook.say --text b &\nwait\nbook.say | cat\n")
    return tmp_path


def _run(work: Path, words: Sequence[str], file_size: int | None = None) -> commands.Done:
    words = ["--packs", str(work / "packs"), *words]
    if file_size is None:
        return commands.pegboard(*words, cwd=work)
    command = [str(Path(sys.executable).with_name("pegboard")), *words]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))

    return subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=120, check=False, preexec_fn=limit)


def _file_for_folder(state: Path) -> None:
    state.write_text("a file")


def _folder_for_database(state: Path) -> None:
    (state / "history.db" / "x").mkdir(parents=True)


def _folder_for_lock(state: Path) -> None:
    (state / "history.db.lock").mkdir(parents=True)


def _link_to_nowhere(state: Path) -> None:
    state.symlink_to(state.parent / "gone" / "state")


def _loop(state: Path) -> None:
    state.symlink_to(state)


def _kept(state: Path) -> int:
    """Return the number of calls in the database, without turns."""
    try:
        with closing(sqlite3.connect(state / "history.db", timeout=1)) as database:
            return int(database.execute("SELECT count(*) FROM calls WHERE turn IS NOT id").fetchone()[0])
    except sqlite3.Error:
        return 0


def _said_lost(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if re.search(r"(is|are) not recorded", line)]


def _lost_count(line: str) -> int:
    found = re.search(r"([\d,]+) calls? (?:is|are) not recorded", line)
    return int(found[1].replace(",", "")) if found else 0


@pytest.mark.promise("SEC-7", "STO-1")
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("damage", [_file_for_folder, _folder_for_database, _folder_for_lock, _loop])
def test_every_command_reports_once_the_calls_lost_to_an_unusable_state_folder(
    work: Path, state: Path, name: str, damage: Damage
) -> None:
    damage(state)
    words, calls = COMMANDS[name]
    done = _run(work, words)
    assert done.returncode == 0, done.stderr
    [line] = _said_lost(done.stderr)
    assert _lost_count(line) == calls
    assert "The history can't be kept: " in line
    assert "PEGBOARD_STATE_DIR" in line
    assert ("conversation" in line) == name.startswith("ask")
    assert "To continue" not in done.stderr, "there is no session to continue"


@pytest.mark.promise("SEC-7", "STO-1")
@pytest.mark.parametrize("name", ["invoke", "nested", "script"])
def test_every_command_reports_once_the_calls_lost_to_a_full_disk(work: Path, state: Path, name: str) -> None:
    words, calls = COMMANDS[name]
    done = _run(work, words, file_size=4096)
    assert done.returncode == 0, done.stderr
    [line] = _said_lost(done.stderr)
    assert _lost_count(line) + _kept(state) == calls
    assert "Free some space" in line or "disk I/O" in line


@pytest.mark.promise("SEC-7", "STO-1")
def test_ask_reports_the_messages_lost_to_a_full_disk(work: Path) -> None:
    done = _run(work, COMMANDS["ask"][0], file_size=4096)
    assert "not recorded" in done.stderr or "can't be kept" in done.stderr


@pytest.mark.promise("STO-1")
def test_a_database_that_a_full_disk_keeps_from_opening_advises_to_check_the_free_space(work: Path) -> None:
    assert _run(work, COMMANDS["ask"][0]).returncode == 0
    done = _run(work, COMMANDS["ask"][0], file_size=4096)
    assert "disk I/O error" in done.stderr
    assert "Check that the disk has free space" in done.stderr


_HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode = EXCLUSIVE")
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def _locked(state: Path) -> Iterator[None]:
    """Lock the database like another process, until the block ends."""
    state.mkdir(parents=True, exist_ok=True)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            _HOLDER,
            str(state / "history.db"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield
    finally:
        holder.communicate("", timeout=30)


@pytest.mark.slow
@pytest.mark.promise("SEC-7", "STO-1")
def test_a_command_reports_the_calls_lost_to_a_locked_database_and_ends(work: Path, state: Path) -> None:
    with _locked(state):
        done = _run(work, COMMANDS["script"][0])
    assert done.returncode == 0, done.stderr
    [line] = _said_lost(done.stderr)
    assert _lost_count(line) == 4
    assert "locked" in line
    assert "End the process" in line


@pytest.mark.promise("SEC-7", "STO-3")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_damaged_database_is_set_aside_with_a_message_and_nothing_is_lost(work: Path, state: Path, name: str) -> None:
    state.mkdir()
    (state / "history.db").write_bytes(b"no database " * 1000)
    words, calls = COMMANDS[name]
    done = _run(work, words)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("set aside as history.db.damaged-") == 1
    assert _said_lost(done.stderr) == []
    assert _kept(state) == calls


@pytest.mark.promise("SEC-7")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_whose_calls_are_recorded_prints_no_note(work: Path, state: Path, name: str) -> None:
    words, calls = COMMANDS[name]
    done = _run(work, words)
    assert "history" not in done.stderr
    assert _kept(state) == calls


@pytest.mark.promise("SEC-7", "EXE-6")
def test_a_large_result_that_cant_be_kept_fails_with_its_reason(work: Path, state: Path) -> None:
    state.mkdir()
    (state / "results").write_text("a file")
    done = _run(work, ["tools", "invoke", "book.say", "--arg", "times=3000000"])
    error = json.loads(done.stdout)["result"]["error"]
    assert error["detail"] == "not_kept"
    assert "could not be written" in error["message"]
    assert _kept(state) == 1, "the call itself is recorded"


@pytest.mark.slow
@pytest.mark.promise("SEC-7", "STO-1")
def test_each_of_many_calls_is_recorded_or_counted_as_lost(tmp_path: Path) -> None:
    history = History(tmp_path / "state" / "history.db", tmp_path / "state" / "results")
    (tmp_path / "state").mkdir()
    with (tmp_path / "state" / "history.db.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for number in range(1500):
            call = ToolCall(name="a.x", args={"n": number}, source="cli")
            history.record(call, ToolResult(ok=True, data=number), datetime.now(UTC))
        history.close()
    lost = history.unrecorded
    assert lost is not None
    assert _lost_count(lost.message) == 1500 - _kept(tmp_path / "state") == 1500
    assert os.fspath(tmp_path) in str(lost.file)
    history.flush()
    left = history.unrecorded
    assert left is not None
    assert _lost_count(left.message) + len(history.records(limit=2000)) == 1500
    history.close()


@pytest.mark.promise("ACT-2", "STO-1")
@pytest.mark.parametrize(
    "words",
    [["history", "delete"], ["history", "pin"], ["sessions", "delete"], ["sessions", "rename"]],
    ids=" ".join,
)
def test_a_change_of_a_history_that_cannot_be_written_fails_and_is_not_confirmed(
    work: Path, state: Path, words: list[str]
) -> None:
    assert _run(work, COMMANDS["ask"][0]).returncode == 0
    listing = [words[0], "list", "--json"]
    [kept] = json.loads(_run(work, listing).stdout)
    (state / "history.db.lock").unlink()
    _folder_for_lock(state)
    done = _run(work, [*words, kept["id"], *(["other"] if words[1] == "rename" else [])])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Nothing was changed because the history can't be written: Is a directory.\n")
    assert json.loads(_run(work, listing).stdout) == [kept]
