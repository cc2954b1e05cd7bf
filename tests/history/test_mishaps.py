"""Killed processes, damaged files, full disks, concurrent processes."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard.history import History
from pegboard.history.erase import Replacement, erase
from pegboard.history.reader import Reader
from pegboard.history.statistics import statistics
from pegboard.models import ToolCall, ToolResult

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
OpenHistory = Callable[..., History]

PREAMBLE = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from pegboard.history import History
from pegboard.models import ToolCall, ToolResult

folder = Path(sys.argv[1])
history = History(folder / "history.db", folder / "results")

def record(number, data=None):
    call = ToolCall(name="a.x", args={"n": number}, source="cli")
    history.record(call, ToolResult(ok=True, data=data), datetime.now(UTC))
"""


def start(folder: Path, code: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a process with the variables `folder`, `history` and `record`."""
    program = PREAMBLE + textwrap.dedent(code)
    command = [sys.executable, "-c", program, str(folder), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    return out


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        pause.wait(0.01)


def add(history: History, number: int) -> None:
    history.record(ToolCall(name="a.x", args={"n": number}, source="cli"), ToolResult(ok=True, data=number), NOON)


def numbers(history: History) -> list[str]:
    return sorted(str(record.args["n"]) for record in history.records(limit=100_000))


@pytest.mark.promise("STO-3")
def test_a_killed_process_loses_only_calls_it_had_no_time_to_write(history: History, tmp_path: Path) -> None:
    process = start(tmp_path / "state", "record(1); record(2, 'x' * 70_000); sys.stdin = time.sleep(600)")
    try:
        until(lambda: len(history.records()) == 2)
    finally:
        process.kill()
        process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    results = [history.result(record.id) for record in history.records()]
    assert sorted(len(str(result.data)) for result in results if result) == [4, 70_000]
    assert history.problems == ()


@pytest.mark.promise("STO-3")
def test_a_process_killed_while_writing_leaves_only_complete_records(open_history: OpenHistory, tmp_path: Path) -> None:
    process = start(
        tmp_path / "state",
        """
        for number in range(1_000_000):
            record(number, "x" * (70_000 if number % 10 == 0 else 10))
            history.flush()
            print(number, flush=True)
        """,
    )
    assert process.stdout is not None
    while int(process.stdout.readline()) < 150:
        pass
    process.kill()
    written = int((process.stdout.read().split() or ["150"])[-1])
    process.communicate(timeout=30)
    history = open_history()
    records = history.records(limit=1_000_000)
    # The call being written may be recorded or not.
    assert len(records) in {written + 1, written + 2}
    assert all(history.result(record.id) is not None for record in records)
    assert history.problems == ()
    add(history, -1)
    assert history.last_arguments("a.x") is not None


@pytest.mark.promise("STO-3")
def test_a_process_that_just_ends_writes_everything_first(history: History, tmp_path: Path) -> None:
    finished(start(tmp_path / "state", "for number in range(2000): record(number)"))
    assert history.uses("a.x").calls == 2000


@pytest.mark.promise("STO-1")
def test_several_processes_write_concurrently_without_losses(history: History, tmp_path: Path) -> None:
    code = """
    for number in range(200):
        record(f"{sys.argv[2]}/{number}")
        if number % 20 == 0: assert history.records(limit=1)
    history.close()
    print(history.problems)
    """
    processes = [start(tmp_path / "state", code, str(process)) for process in range(4)]
    assert [finished(process) for process in processes] == ["()\n"] * 4
    assert numbers(history) == sorted(f"{process}/{number}" for process in range(4) for number in range(200))


@pytest.mark.promise("STO-1")
def test_one_process_sees_what_another_wrote_meanwhile(open_history: OpenHistory) -> None:
    first, second = open_history(), open_history()
    add(first, 1)
    assert len(first.records()) == 1
    add(second, 2)
    second.flush()
    assert numbers(first) == ["1", "2"]


def database(tmp_path: Path) -> Path:
    return tmp_path / "state" / "history.db"


def aside(tmp_path: Path, kind: str = "damaged") -> list[Path]:
    return sorted(
        path for path in (tmp_path / "state").glob(f"history.db.{kind}-*") if path.name[-4:] not in {"-wal", "-shm"}
    )


@pytest.mark.promise("STO-3")
@pytest.mark.parametrize(
    "content",
    [b"not a database at all" * 100, b"SQLite format 3\0" + bytes(5000), b"x", b"x" * 150],
    ids=["text", "header", "byte", "short"],
)
def test_a_file_that_is_not_a_database_is_set_aside_and_replaced(
    open_history: OpenHistory, tmp_path: Path, content: bytes
) -> None:
    database(tmp_path).parent.mkdir()
    database(tmp_path).write_bytes(content)
    history = open_history()
    add(history, 1)
    assert numbers(history) == ["1"]
    (kept,) = aside(tmp_path)
    assert kept.read_bytes() == content
    assert kept.name in history.problems[0].fix
    assert history.problems[0].file == str(database(tmp_path))
    assert open_history().problems == ()


@pytest.mark.promise("STO-3")
def test_a_foreign_database_is_set_aside(open_history: OpenHistory, tmp_path: Path) -> None:
    database(tmp_path).parent.mkdir()
    other = sqlite3.connect(database(tmp_path))
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    history = open_history()
    add(history, 1)
    assert numbers(history) == ["1"]
    with sqlite3.connect(aside(tmp_path)[0]) as kept:
        assert kept.execute("SELECT count(*) FROM theirs").fetchone() == (0,)
    kept.close()


@pytest.mark.promise("STO-3")
@pytest.mark.parametrize(
    "damage",
    [
        {
            b"CREATE INDEX calls_by_tool": b"CRE\xffTE INDEX calls_by_tool",
            b"calls_by_toolcalls": b"calls_by_t\xffolcalls",
        },
        {b"CREATE TABLE total": b"CREATE TABLE t\xfftal"},
        {b"UPDATE total SET bytes = bytes +": b"UPDATE tutal SET bytes = bytes +"},
    ],
    ids=["index", "table", "trigger"],
)
def test_a_database_with_broken_names_is_set_aside(
    open_history: OpenHistory, tmp_path: Path, damage: dict[bytes, bytes]
) -> None:
    add(first := open_history(), 1)
    first.close()
    content = database(tmp_path).read_bytes()
    for whole, broken in damage.items():
        assert whole in content
        content = content.replace(whole, broken)
    database(tmp_path).write_bytes(content)
    history = open_history()
    add(history, 2)
    assert numbers(history) == ["2"]
    (kept,) = aside(tmp_path)
    assert kept.read_bytes() == content
    assert kept.name in history.problems[0].fix


@pytest.mark.promise("STO-3")
@pytest.mark.parametrize("value", ["CAST(x'ff22' AS TEXT)", "x'ff'", "'null'", "1 << 60", "-(1 << 62)", "1e999", "''"])
@pytest.mark.parametrize(
    "column",
    ["id", "at", "tool", "args", "ok", "error", "duration_ms", "source", "session", "parent", "meta", "data", "file"],
)
def test_a_damaged_record_does_not_affect_the_others(
    open_history: OpenHistory, tmp_path: Path, column: str, value: str
) -> None:
    add(first := open_history(), 1)
    first.flush()
    asked = ToolCall(name="a.x", args={"n": 2}, source="cli")
    first.record(asked, ToolResult(ok=True, data="x" * 70_000), NOON)
    first.close()
    with sqlite3.connect(database(tmp_path)) as damaged:
        damaged.execute(f"UPDATE calls SET {column} = {value} WHERE id = ?", [asked.id])
    damaged.close()
    history = open_history()
    assert [record.args for record in history.records()][-1] == {"n": 1}
    assert history.uses("a.x").calls in {1, 2}
    assert history.last_arguments("a.x") in ({"n": 1}, {"n": 2})
    history.result(asked.id)
    reader = Reader(history)
    counted = sum(one.calls for one in statistics(reader))
    reader.close()
    assert counted in {1, 2}
    add(history, 3)
    assert "3" in numbers(history)
    assert not aside(tmp_path)


@pytest.mark.promise("STO-3")
def test_unreadable_records_are_reported(open_history: OpenHistory, tmp_path: Path) -> None:
    add(first := open_history(), 1)
    first.close()
    with sqlite3.connect(database(tmp_path)) as damaged:
        damaged.execute("UPDATE calls SET at = 1 << 60")
    damaged.close()
    history = open_history()
    assert history.records() == ()
    assert [problem.message for problem in history.problems] == [
        "The history can't be read completely: a record is damaged."
    ]


@pytest.mark.promise("STO-3")
@pytest.mark.parametrize("total", ["x'ff'", "'much'", "1e999", "-(1 << 62)", None])
def test_calls_are_recorded_even_if_the_stored_size_is_damaged(
    open_history: OpenHistory, tmp_path: Path, total: str | None
) -> None:
    add(first := open_history(), 1)
    first.close()
    with sqlite3.connect(database(tmp_path)) as damaged:
        damaged.execute(f"UPDATE total SET bytes = {total}" if total else "DELETE FROM total")
        damaged.execute("UPDATE calls SET bytes = x'ff', file = 'x' || char(0)")
    damaged.close()
    history = open_history(size_limit=1000)
    for number in range(2, 5):
        add(history, number)
        history.flush()
    assert "4" in numbers(history)
    assert not [problem for problem in history.problems if "can't be written" in problem.message]


@pytest.mark.parametrize(("limit", "given"), [(2**63, 1), (10**30, 1), (0, 0), (-(2**64), 0)])
def test_any_number_of_records_can_be_asked_for(history: History, limit: int, given: int) -> None:
    add(history, 1)
    assert len(history.records(limit=limit)) == given


def test_a_database_names_no_files_outside_the_folder_of_results(open_history: OpenHistory, tmp_path: Path) -> None:
    asked = ToolCall(name="a.x", args={}, source="cli")
    first = open_history()
    first.record(asked, ToolResult(ok=True, data="x" * 70_000), NOON)
    first.close()
    (tmp_path / "kept.json").write_text('"theirs"')
    with sqlite3.connect(database(tmp_path)) as damaged:
        damaged.execute("UPDATE calls SET file = '../../kept.json'")
    damaged.close()
    history = open_history(size_limit=1000)
    assert history.result(asked.id) is None
    add(history, 1)
    assert numbers(history) == ["1"]
    assert (tmp_path / "kept.json").exists()


@pytest.mark.promise("STO-3")
def test_the_database_of_a_later_pegboard_is_set_aside_whole(open_history: OpenHistory, tmp_path: Path) -> None:
    add(first := open_history(), 1)
    first.close()
    later = sqlite3.connect(database(tmp_path))
    later.execute("PRAGMA user_version = 99")
    later.close()
    history = open_history()
    add(history, 2)
    assert numbers(history) == ["2"]
    assert "version 99" in history.problems[0].message
    (kept,) = aside(tmp_path, "newer")
    with sqlite3.connect(kept) as later:
        assert later.execute("SELECT args FROM calls").fetchall() == [('{"n":1}',)]
    later.close()


@pytest.mark.promise("STO-3")
def test_the_database_of_a_later_pegboard_that_is_running_is_set_aside_with_its_log(
    open_history: OpenHistory, tmp_path: Path
) -> None:
    add(first := open_history(), 1)
    first.close()
    later = sqlite3.connect(database(tmp_path), isolation_level=None)
    later.execute("PRAGMA user_version = 99")
    later.execute("UPDATE calls SET tool = 'still in the log'")
    history = open_history()
    add(history, 2)
    assert numbers(history) == ["2"]
    later.close()
    with sqlite3.connect(aside(tmp_path, "newer")[0]) as kept:
        assert kept.execute("SELECT tool FROM calls").fetchall() == [("still in the log",)]
    kept.close()


@pytest.mark.promise("STO-3")
def test_a_database_that_is_found_damaged_later_is_set_aside_then(open_history: OpenHistory, tmp_path: Path) -> None:
    first = open_history()
    for number in range(2000):
        add(first, number)
    first.close()
    content = bytearray(database(tmp_path).read_bytes())
    content[3 * 4096 :] = os.urandom(len(content) - 3 * 4096)
    database(tmp_path).write_bytes(content)
    history, other = open_history(), open_history()
    add(history, 1)
    add(other, 2)
    history.flush()
    other.flush()
    assert numbers(history) == numbers(other) == ["1", "2"], "both use the same new one"
    (kept,) = aside(tmp_path)
    assert kept.stat().st_size >= len(content)


@pytest.mark.promise("STO-3")
@pytest.mark.parametrize("kind", ["damaged", "newer"])
def test_a_process_that_only_records_reports_the_file_it_set_aside(history: History, tmp_path: Path, kind: str) -> None:
    add(history, 0)
    history.close()
    if kind == "newer":
        with sqlite3.connect(database(tmp_path)) as later:
            later.execute("PRAGMA user_version = 99")
        later.close()
    else:
        database(tmp_path).write_bytes(b"not a database at all" * 100)
    out = finished(start(tmp_path / "state", "record(1); history.close(); print(history.problems[0].fix)"))
    (kept,) = aside(tmp_path, kind)
    assert out == f"It was set aside as {kept.name}, and a new one was created.\n"
    assert database(tmp_path).stat().st_mode & 0o077 == 0


@pytest.mark.promise("STO-3")
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limit on the size of files here")
def test_a_database_set_aside_is_reported_even_if_no_new_one_can_be_created(tmp_path: Path) -> None:
    database(tmp_path).parent.mkdir()
    database(tmp_path).write_bytes(b"not a database at all" * 100)
    code = """
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    record(1)
    history.close()
    print(len(history.problems), history.problems[0].fix)
    """
    out = finished(start(tmp_path / "state", code))
    assert out == f"2 It was set aside as {aside(tmp_path)[0].name}, and a new one was created.\n"


@pytest.mark.promise("STO-1")
def test_a_process_without_a_writer_thread_writes_on_the_next_use(history: History, tmp_path: Path) -> None:
    code = """
    import threading
    threading.stack_size(2**46)
    record(1)
    print(history.problems[0].message)
    """
    assert (
        finished(start(tmp_path / "state", code))
        == "The history can't be written in the background: can't start new thread.\n"
    )
    assert numbers(history) == ["1"]


FILLED = 60


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a database of several pages with values in every column."""
    folder = tmp_path_factory.mktemp("healthy")
    history = History(folder / "history.db", folder / "results")
    for number in range(FILLED):
        call = ToolCall(
            name=f"a.x{number % 3}", args={"n": number}, source="cli", session="s", parent="p", id=f"call{number}"
        )
        failed = ToolResult.failed("execution_error", "It failed.")
        result = failed if number % 5 == 0 else ToolResult(ok=True, data="x" * 300 * (number % 20))
        history.record(call, result, NOON)
    history.close()
    return folder / "history.db"


PLACES = st.integers(0, 6 * 1024) | st.integers(0, 2**20)
"""Choose a position, preferring the first pages with the header and the schema."""
DAMAGE = st.lists(st.tuples(PLACES, st.binary(min_size=1, max_size=40)), min_size=1, max_size=4)


@pytest.mark.promise("STO-3")
@given(damage=DAMAGE, cut=st.none() | PLACES)
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_content_of_the_file_raises_or_deletes_anything(
    tmp_path: Path, healthy: Path, damage: list[tuple[int, bytes]], cut: int | None
) -> None:
    content = bytearray(healthy.read_bytes())
    for place, written in damage:
        start = place % len(content)
        content[start : start + len(written)] = written
    del content[cut if cut is None else cut % len(content) :]
    with TemporaryDirectory(dir=tmp_path) as folder:
        file = Path(folder, "history.db")
        file.write_bytes(content)
        history = History(file, Path(folder, "results"))
        history.records(tool="a.x1", limit=5)
        for record in history.records():
            assert record.at.tzinfo is not None
        for number in range(0, FILLED, 7):
            history.result(f"call{number}")
        history.uses("a.x1")
        history.last_arguments("a.x2")
        asked = ToolCall(name="a.y", args={"n": 1}, source="cli")
        history.record(asked, ToolResult(ok=True), NOON)
        history.flush()
        assert history.last_arguments("a.y") == {"n": 1} or history.problems
        history.close()
        kept = [path for path in Path(folder).glob("history.db.damaged-*") if path.name[-4:] not in {"-wal", "-shm"}]
        kept += Path(folder).glob("history.db.newer-*")
        fixes = [problem.fix for problem in history.problems if "set aside" in problem.fix]
        assert sorted(fix.split()[5].rstrip(",") for fix in fixes) == sorted(path.name for path in kept)
        assert len(kept) <= 1
        assert all(path.stat().st_size >= len(content) for path in kept)


@pytest.mark.promise("STO-3")
def test_a_database_that_is_removed_while_in_use_is_created_again(history: History, tmp_path: Path) -> None:
    add(history, 1)
    history.flush()
    for path in (tmp_path / "state").glob("history.db*"):
        path.unlink()
    add(history, 2)
    assert numbers(history) == ["2"]
    assert database(tmp_path).exists()


@pytest.mark.promise("STO-3")
def test_many_processes_that_find_a_damaged_file_set_it_aside_once(history: History, tmp_path: Path) -> None:
    database(tmp_path).parent.mkdir()
    database(tmp_path).write_bytes(b"not a database at all" * 100)
    processes = [start(tmp_path / "state", "record(sys.argv[2]); history.close()", str(n)) for n in range(4)]
    for process in processes:
        finished(process)
    assert len(aside(tmp_path)) == 1
    assert numbers(history) == ["0", "1", "2", "3"]


@pytest.mark.promise("STO-1")
def test_a_folder_that_cannot_be_made_leaves_the_history_in_memory_with_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    history = History(tmp_path / "file" / "state" / "history.db", tmp_path / "file" / "results")
    add(history, 1)
    asked = ToolCall(name="a.x", args={"n": 2}, source="cli")
    history.record(asked, ToolResult(ok=True, data="x" * 70_000), NOON)
    assert numbers(history) == ["1", "2"]
    assert history.result(asked.id) == ToolResult(ok=True, data="x" * 70_000)
    assert "can't be kept" in history.problems[0].message
    assert "not recorded" in history.problems[0].message
    assert "PEGBOARD_STATE_DIR" in history.problems[0].fix
    history.close()


WITHOUT_PRIVILEGES = """
import ctypes, os
class Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]
header, nothing = Header(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert ctypes.CDLL(None).capset(ctypes.byref(header), nothing) == 0
"""
"""Drop root's capability to ignore permission bits."""


@pytest.mark.promise("STO-1")
@pytest.mark.skipif(sys.platform != "linux", reason="permission bits are given back their meaning by a call of Linux")
def test_a_read_only_folder_leaves_the_history_in_memory_with_a_problem(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(0o500)
    code = WITHOUT_PRIVILEGES + textwrap.dedent("""
        record(1)
        print(len(history.records()), history.problems[0].message)
    """)
    try:
        assert finished(start(folder, code)) == (
            "1 The history can't be kept: Permission denied. 1 call is not recorded.\n"
        )
    finally:
        folder.chmod(0o700)


@pytest.mark.promise("STO-1")
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limit on the size of files here")
def test_a_full_disk_is_a_problem_and_what_could_not_be_written_is_tried_again(tmp_path: Path) -> None:
    code = """
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    record(0)
    history.flush()
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, most))
    for number in range(1, 40):
        record(number, "x" * 10_000)
    history.flush()
    print([problem.message.split(":")[0] for problem in history.problems])
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    print(len(history.records()), history.problems)
    """
    lines = finished(start(tmp_path / "state", code)).splitlines()
    assert lines == ['["The history can\'t be written"]', "40 ()"]


@pytest.mark.promise("STO-1")
def test_another_process_that_holds_the_database_delays_but_loses_nothing(history: History, tmp_path: Path) -> None:
    add(history, 0)
    history.flush()
    holder = sqlite3.connect(database(tmp_path), isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    add(history, 1)
    until(lambda: bool(history.problems))
    assert "locked" in history.problems[0].message
    holder.execute("ROLLBACK")
    # No read triggers the write in the meantime.
    until(lambda: holder.execute("SELECT count(*) FROM calls").fetchone() == (2,))
    holder.close()
    until(lambda: history.problems == ())
    assert numbers(history) == ["0", "1"]


@pytest.mark.promise("ACT-4")
def test_a_redaction_counts_the_calls_that_end_or_start_meanwhile(open_history: OpenHistory) -> None:
    history, other = open_history(), open_history()
    ending, starting = (ToolCall(name="a.x", args={"text": "hunter2"}, source="cli") for _ in range(2))

    class Forms(list[str]):
        """Forms of the value; another process acts while the third table is searched for them."""

        def __init__(self, act: Callable[[], object]) -> None:
            super().__init__(["hunter2"])
            self.act, self.tables = act, 0

        def __len__(self) -> int:
            self.tables += 1
            if self.tables == 3:
                self.act()
                other.flush()
            return super().__len__()

    def redact(act: Callable[[], object]) -> str:
        _, problems = erase(
            history, Replacement(Forms(act), lambda text: text.replace("hunter2", "*"), lambda one: one)
        )
        return " ".join(problems)

    other.start(ending, NOON)
    other.flush()
    assert "still run (1)" in redact(lambda: other.record(ending, ToolResult(ok=True), NOON))
    assert redact(lambda: None) == ""
    assert "still run (1)" in redact(lambda: other.start(starting, NOON))
