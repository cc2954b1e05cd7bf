"""Redaction in retrospect: a value disappears from everything that Pegboard has stored."""

from __future__ import annotations

import base64
import errno
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pegboard.batch.engines.embedded import EmbeddedEngine
from pegboard.batch.plan import BatchPlan
from pegboard.batch.run import Batch
from pegboard.config import Paths
from pegboard.config.trust import FolderFiles, TrustFile
from pegboard.errors import StoreError
from pegboard.models import ToolCall, ToolResult
from pegboard.models.conversation import UserMessage
from pegboard.runtime import Runtime
from pegboard.tui.state.draft import Draft, DraftFile

VALUE = "hunter2/correct horse"
NUMBER = "4111111111"
NOW = datetime.now(UTC)

READER = """
import sqlite3, sys
connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM calls").fetchone()
print("reading", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
print("read", flush=True)
sys.stdin.readline()
for _ in range(50):
    connection.execute("SELECT count(*), max(args) FROM calls").fetchone()
sys.stdin.readline()
"""


@pytest.fixture
def runtime(home: Path) -> Runtime:
    """Return a runtime of an empty home folder."""
    return Runtime.from_environment()


@pytest.fixture
def reader(runtime: Runtime) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Return a function that starts a process that reads the database."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        runtime.history.flush()
        command = [sys.executable, "-c", textwrap.dedent(READER), str(runtime.paths.database)]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout is not None
        assert started[-1].stdout.readline() == "reading\n"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=20)


def fill(runtime: Runtime, value: str) -> list[str]:
    """Store a value everywhere; return the ids of the calls."""
    encoded = base64.b64encode(f"user:{value}".encode()).decode()
    results: list[ToolResult] = [
        ToolResult(ok=True, data={"token": value, "text": f"a {value} b", "kept": "kept words"}),
        ToolResult(ok=True, data={"rows": ["x" * 90_000, {"deep": value}]}),
        ToolResult(ok=True, data=encoded),
        ToolResult.failed("execution_error", f"{value} was refused."),
    ]
    ids = []
    for result in results:
        call = ToolCall(name="web.get", args={"password": value, f"key {value}": 1}, source="cli", session="s")
        runtime.history.record(call, result, NOW)
        ids.append(call.id)
    runtime.history.record(ToolCall(name="web.get", args={"other": "words"}, source="cli"), ToolResult(ok=True), NOW)
    runtime.sessions.start("s", system=f"You know {value}.")
    runtime.sessions.append("s", UserMessage(text=f"My password is {value}."))
    runtime.presets.save("web.get", "login", {"password": value, "n": int(NUMBER)})
    paths = runtime.paths
    for file, text in (
        (paths.scripts / "login.sh", f"web.get --password '{value}'\n"),
        (paths.checks / "login.toml", f'tool = "web.get"\narguments.password = "{value}"\n'),
        (paths.interface, json.dumps({"draft": value, "page": "chat"})),
        (paths.log, f"request with {value}\n"),
        (paths.index / "cached.json", json.dumps([value])),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return ids


def stored_with(paths: Paths, *forms: str) -> list[str]:
    """Return the files below the folders of Pegboard that contain one of these texts."""
    return [
        file.name
        for folder in (paths.state, paths.data, paths.cache)
        for file in folder.rglob("*")
        if file.is_file() and any(form.encode() in file.read_bytes() for form in forms)
    ]


@pytest.mark.promise("ACT-4")
def test_a_value_disappears_from_every_store_while_another_process_reads(
    runtime: Runtime, reader: Callable[[], subprocess.Popen[str]]
) -> None:
    ids = fill(runtime, VALUE)
    runtime.history.flush()
    encoded = base64.b64encode(f"user:{VALUE}".encode()).decode()
    # The full-text index stores words without the start that they share with the word before.
    forms = (VALUE, encoded, "hunter2", "unter2")
    assert len(stored_with(runtime.paths, *forms)) >= 7
    process = reader()
    assert process.stdin is not None
    process.stdin.write("\n\n")
    process.stdin.flush()
    report = runtime.activity.redact(VALUE)
    assert report.remaining == ()
    assert (report.calls, report.messages) == (4, 2)
    assert stored_with(runtime.paths, *forms) == []
    assert process.poll() is None
    result = runtime.activity.result(ids[0])
    assert result is not None
    assert result.data == {"token": "«redacted»", "text": "a «redacted» b", "kept": "kept words"}
    find = runtime.activity.parse
    assert runtime.activity.page(find("hunter2").query).calls == ()
    assert {call.id for call in runtime.activity.page(find("redacted").query).calls} >= {*ids[:1], ids[3]}
    assert len(runtime.activity.page(find('"kept words"').query).calls) == 1
    large = runtime.activity.result(ids[1])
    assert large is not None
    assert isinstance(large.data, dict)
    assert large.data["rows"] == ["x" * 90_000, {"deep": "«redacted»"}]
    [entry] = runtime.sessions.entries("s")
    assert entry.message == UserMessage(text="My password is «redacted».")
    [preset] = runtime.presets.list("web.get")
    assert preset.arguments == {"password": "«redacted»", "n": int(NUMBER)}
    assert json.loads(runtime.paths.interface.read_text()) == {"draft": "«redacted»", "page": "chat"}
    assert 'arguments.password = "«redacted»"' in (runtime.paths.checks / "login.toml").read_text()
    assert not (runtime.paths.index / "cached.json").exists()
    assert not runtime.problems()
    runtime.history.close()


@pytest.mark.promise("ACT-4")
def test_a_value_in_names_of_tools_and_sessions_is_redacted_and_sessions_stay_apart(runtime: Runtime) -> None:
    names = [f"at {VALUE}", f"at {base64.b64encode(VALUE.encode()).decode()}"]
    for session in names:
        runtime.sessions.start(session)
        runtime.sessions.append(session, UserMessage(text="Hello"))
        call = ToolCall(name=f"web.{VALUE}", source="ask", session=session)
        runtime.history.record(call, ToolResult.failed("tool_not_found", "No."), NOW)
    runtime.history.record(ToolCall(name="web.get", source="cli"), ToolResult(ok=True), NOW)
    assert runtime.activity.redact(VALUE).remaining == ()
    assert stored_with(runtime.paths, VALUE, "unter2") == []
    sessions = {session.id for session in runtime.sessions.list()}
    assert len(sessions) == 2
    assert all(session.startswith("at «redacted»-") for session in sessions)
    assert {call.session for call in runtime.activity.page().calls} == {*sessions, None}
    assert all(len(runtime.sessions.entries(session)) == 1 for session in sessions)
    assert {one.tool for one in runtime.activity.statistics()} == {"web.«redacted»", "web.get"}
    runtime.history.close()


@pytest.mark.promise("ACT-4")
def test_a_value_in_the_text_of_an_open_app_may_remain_and_its_draft_is_named(runtime: Runtime) -> None:
    app = DraftFile(runtime.paths.state, "chat-draft")
    app.read()
    app.keep(Draft(f"Log in with {VALUE}."))
    app.write()
    (remaining,) = runtime.activity.redact(VALUE).remaining
    assert f"{runtime.paths.state / 'chat-draft.json'} is the unsent text of an open app" in remaining
    app.write()
    app.close()
    assert runtime.activity.redact(VALUE).remaining == ()
    assert stored_with(runtime.paths, VALUE) == []
    runtime.history.close()


@pytest.mark.promise("ACT-4")
@pytest.mark.parametrize("value", ["sécret-1", 'a"b\\secret/é'], ids=["not ASCII", "escaped"])
def test_a_value_in_json_within_json_is_redacted(runtime: Runtime, value: str) -> None:
    for ascii_only in (True, False):
        inner = json.dumps({"token": value}, ensure_ascii=ascii_only)
        outer = json.dumps({"body": inner}, ensure_ascii=ascii_only)
        for text in (inner, outer, json.dumps(outer), json.dumps(json.dumps(inner, ensure_ascii=False))):
            runtime.history.record(ToolCall(name="a.x", args={"text": text}, source="cli"), ToolResult(ok=True), NOW)
    assert runtime.activity.redact(value).calls == 8
    for call in runtime.activity.page().calls:
        found: object = call.args["text"]
        while isinstance(found, str) and found != "«redacted»":
            found = next(iter(parsed.values())) if isinstance(parsed := json.loads(found), dict) else parsed
        assert found == "«redacted»"
    runtime.history.close()


@pytest.mark.promise("ACT-4")
def test_a_value_is_found_wherever_it_is_in_a_file_that_is_read_in_pieces(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.runtime.erase._CHUNK", 100)
    runtime.paths.scripts.mkdir(parents=True)
    for start in range(101):
        (runtime.paths.scripts / f"at{start}.sh").write_text(f"{'#' * start}{VALUE}", encoding="utf-8")
    report = runtime.activity.redact(VALUE)
    assert (len(report.files), report.remaining) == (101, ())
    assert stored_with(runtime.paths, VALUE) == []
    runtime.history.close()


@pytest.mark.promise("ACT-4")
def test_a_value_of_many_lines_is_redacted(runtime: Runtime) -> None:
    value = "\n".join(f"line-{number}/+of the key" for number in range(60))
    call = ToolCall(name="a.x", args={"key": value, "last": "line-59/+of the key"}, source="cli")
    runtime.history.record(call, ToolResult(ok=True), NOW)
    assert runtime.activity.redact(value).is_complete
    [record] = runtime.activity.find([call.id])
    assert record.args == {"key": "«redacted»", "last": "«redacted»"}
    runtime.history.close()


@pytest.mark.promise("ACT-4")
def test_a_number_is_redacted_only_where_it_is_the_whole_number(runtime: Runtime) -> None:
    call = ToolCall(name="a.x", args={"card": int(NUMBER), "longer": int(NUMBER + "5")}, source="cli")
    runtime.history.record(call, ToolResult(ok=True), NOW)
    runtime.presets.save("web.get", "card", {"card": int(NUMBER), "text": f"card {NUMBER}"})
    assert runtime.activity.redact(NUMBER).is_complete
    [record] = runtime.activity.find([call.id])
    assert record.args == {"card": "«redacted»", "longer": int(NUMBER + "5")}
    [preset] = runtime.presets.list("web.get")
    assert preset.arguments == {"card": "«redacted»", "text": "card «redacted»"}
    runtime.history.close()


@pytest.mark.promise("ACT-4")
def test_what_could_not_be_redacted_is_reported(
    runtime: Runtime, reader: Callable[[], subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.history.erase._WAIT_SECONDS", 0.0)
    monkeypatch.setattr("pegboard.history.database.BUSY_SECONDS", 0.2)
    fill(runtime, VALUE)
    aside = runtime.paths.database.with_name("history.db.damaged-20260101T000000000000Z")
    reader()  # which holds its transaction open
    aside.write_text(VALUE)
    runtime.paths.config_file.parent.mkdir(parents=True, exist_ok=True)
    runtime.paths.config_file.write_text(f"# {VALUE}\n")
    report = runtime.activity.redact(VALUE)
    assert not report.is_complete
    text = "\n".join(report.remaining)
    assert "history.db-wal may still contain the value because another process is reading the history." in text
    assert f"{aside} was set aside and still contains the value. Delete it." in text
    assert f"{runtime.paths.config_file} contains the value." in text
    runtime.history.close()


@pytest.mark.promise("ACT-4")
@pytest.mark.parametrize("is_here", [True, False], ids=["the working directory", "another trusted folder"])
def test_a_check_of_a_folder_that_contains_the_value_is_reported_and_kept(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_here: bool
) -> None:
    project = tmp_path / "project"
    check = project / "checks" / "login.toml"
    check.parent.mkdir(parents=True)
    check.write_text(f'tool = "web.get"\narguments.password = "{VALUE}"\n', encoding="utf-8")
    if is_here:
        monkeypatch.chdir(project)
    else:
        TrustFile(runtime.paths.trust).add(FolderFiles.read(project, runtime.paths), restricts=False)
    assert runtime.activity.redact(VALUE).remaining == (
        f"{check} contains the value. Pegboard doesn't change the checks of a folder; edit it.",
    )
    assert VALUE in check.read_text(encoding="utf-8")
    runtime.history.close()


@pytest.mark.promise("ACT-4")
@pytest.mark.parametrize("other", ["1" * 5000, "[" * 5000], ids=["digits", "nesting"])
def test_a_value_disappears_from_a_file_that_is_not_toml(runtime: Runtime, other: str) -> None:
    runtime.presets.save("web.get", "login", {})
    [file] = runtime.paths.presets.rglob("login.toml")
    file.write_text(f'other = {other}\npassword = "{VALUE}"\n')
    assert runtime.activity.redact(VALUE).remaining == ()
    assert file.read_text() == f'other = {other}\npassword = "«redacted»"\n'
    runtime.history.close()


@pytest.mark.promise("ACT-4")
def test_a_running_call_is_reported_because_it_records_the_value_again(runtime: Runtime) -> None:
    call = ToolCall(name="a.x", args={"password": VALUE}, source="cli")
    runtime.history.start(call, NOW)
    runtime.history.flush()
    for _ in range(2):  # The second time, the record doesn't contain the value.
        report = runtime.activity.redact(VALUE)
        assert report.remaining == (
            "Calls or model turns that still run (1) may record the value when they end. Redact it again after that.",
        )
    runtime.history.record(call, ToolResult(ok=True), NOW)
    runtime.history.flush()
    report = runtime.activity.redact(VALUE)
    assert (report.calls, report.remaining) == (1, ())
    runtime.history.close()


@pytest.mark.promise("ACT-4", "BAT-1")
async def test_a_batch_whose_results_were_redacted_can_be_continued(runtime: Runtime, tmp_path: Path) -> None:
    """The process that runs it has the file of results open, and its journal has the size."""
    source = tmp_path / "rows.jsonl"
    values = [f"a {VALUE} é\n", f'"{VALUE}"', int(NUMBER), int(NUMBER + "5"), "kept"]
    source.write_text("".join(json.dumps({"value": one}) + "\n" for one in values))
    runtime.tools.scan()
    spec = runtime.tools.get("tools.echo")
    assert spec is not None
    out = runtime.paths.state / "batches" / "one" / "0.jsonl"
    out.parent.mkdir(parents=True)
    async with runtime:
        await Batch(BatchPlan(spec, str(source), out=out, jobs=1), EmbeddedEngine(runtime)).run()
        before = out.stat()
        for value in (VALUE, NUMBER):
            assert str(out) in runtime.activity.redact(value).files
        assert (out.stat().st_ino, out.stat().st_size) == (before.st_ino, before.st_size)
        with source.open("a") as rows:
            rows.write('{"value": "added"}\n')
        await Batch(BatchPlan(spec, str(source), out=out, jobs=1, resume=True), EmbeddedEngine(runtime)).run()
    found = {one["row"]: one["data"] for one in map(json.loads, out.read_text(encoding="utf-8").splitlines())}
    stars = "*" * len(VALUE)
    assert found == {1: f"a {stars} é\n", 2: f'"{stars}"', 3: "*" * 8, 4: int(NUMBER + "5"), 5: "kept", 6: "added"}


@pytest.mark.promise("ACT-4")
def test_a_short_value_is_refused(runtime: Runtime) -> None:
    with pytest.raises(StoreError, match="fewer than 6 characters"):
        runtime.activity.redact("abc")


@pytest.mark.promise("ACT-4")
def test_a_folder_that_can_not_be_searched_is_reported(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = runtime.paths.presets / "fs.read_file"
    locked.mkdir(parents=True)
    (locked / "mine.toml").write_text(f'path = "{VALUE}"\n', encoding="utf-8")
    scan = os.scandir

    def refuse(folder: str) -> object:
        if Path(folder) == locked:
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))
        return scan(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    report = runtime.activity.redact(VALUE)
    assert report.remaining == (f"{locked} could not be searched: Permission denied.",)
    assert not report.is_complete
