"""Results as files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import JsonValue

from pegboard.models import ResultMeta, ToolCall, ToolResult, Truncation
from pegboard.results.export import paged, paged_text, save, suggested_name, whole
from pegboard.results.table import Table

CALL = ToolCall(name="fs.read_file", source="form")
AT = datetime(2026, 7, 31, 14, 2, 59, tzinfo=UTC)


def result(data: JsonValue, cut: Path | None = None, total: int | None = None) -> ToolResult:
    """Return a result, shortened if `cut` names the file of the complete data."""
    truncated = Truncation(shown_bytes=10, total_bytes=total or cut.stat().st_size, file=str(cut)) if cut else None
    return ToolResult(ok=True, data=data, meta=ResultMeta(truncated=truncated))


def test_the_suggested_name_contains_tool_time_and_format() -> None:
    assert suggested_name(CALL, result("text"), AT) == "fs.read_file-20260731-140259.txt"
    assert suggested_name(CALL, result([1]), AT) == "fs.read_file-20260731-140259.json"
    hostile = ToolCall(name="../../etc/x\x1b", source="form")
    assert suggested_name(hostile, result(1), AT) == "_.._etc_x_-20260731-140259.json"


def test_json_is_saved_completely_and_indented(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    written = save(result({"ä": [1, "\x1b"]}), file)
    assert json.loads(file.read_text()) == {"ä": [1, "\x1b"]}
    assert written == file.stat().st_size
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.json"]


def test_text_is_saved_as_it_is(tmp_path: Path) -> None:
    save(result("one\r\n\x1b[31m\ud800"), tmp_path / "r.txt")
    assert (tmp_path / "r.txt").read_bytes() == b"one\r\n\x1b[31m\\ud800"


def test_a_table_is_saved_as_csv_and_nothing_else_is(tmp_path: Path) -> None:
    save(result([{"a": 1}]), tmp_path / "r.CSV")
    assert (tmp_path / "r.CSV").read_bytes() == b"a\r\n1\r\n"
    with pytest.raises(ValueError, match="list of objects"):
        save(result({"a": 1}), tmp_path / "s.csv")
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.CSV"]


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("mine")
    with pytest.raises(FileExistsError, match="already exists"):
        save(result(1), tmp_path / "r.json")
    assert (tmp_path / "r.json").read_text() == "mine"


@pytest.mark.promise("EXE-6")
def test_the_complete_data_of_a_shortened_result_is_saved(tmp_path: Path) -> None:
    stored = tmp_path / "stored.json"
    stored.write_text('[{"a":1},{"a":2}]')
    short = result([{"a": 1}], stored)
    assert whole(short) == [{"a": 1}, {"a": 2}]
    save(short, tmp_path / "r.json")
    assert (tmp_path / "r.json").read_text() == stored.read_text()
    save(short, tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().split() == ["a", "1", "2"]


def test_a_missing_file_is_an_error_that_leaves_no_file_behind(tmp_path: Path) -> None:
    short = result([1], tmp_path / "gone.json", 99)
    with pytest.raises(FileNotFoundError):
        save(short, tmp_path / "r.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("TUI-4")
def test_text_for_a_pager_is_sanitized_and_complete(tmp_path: Path) -> None:
    stored = tmp_path / "stored.json"
    stored.write_text(json.dumps({"a": "\x1b\x9b"}, ensure_ascii=False))
    assert paged(result({}, stored), tmp_path).read_text() == '{\n  "a": "\\u001b\\x9b"\n}'
    assert paged(result({}, stored, total=99_000_000), tmp_path).read_text() == '{"a": "\\u001b\\x9b"}'
    assert paged(result("\x1bx\n"), tmp_path).read_text() == "␛x\n"
    assert paged_text("\x1b", tmp_path).read_text() == "␛"


@pytest.mark.parametrize("chunk", range(1, 9))
def test_a_large_text_for_a_pager_is_not_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chunk: int) -> None:
    monkeypatch.setattr("pegboard.results.export._CHUNK", chunk)
    stored = tmp_path / "stored.json"
    for text in ("", "x", "\n", "\\", '"', 'a\\"\\\\n\n"ü名🙂\\u0041\\\\\\', '\\"' * 9 + "\x07\\"):
        shown = text.replace("\x07", "␇")
        for escapes in (False, True):
            stored.write_text(json.dumps(text, ensure_ascii=escapes), encoding="utf-8")
            assert paged(result(text[:1], stored, total=99_000_000), tmp_path).read_text(encoding="utf-8") == shown


def test_the_rows_and_columns_that_are_shown_are_saved_and_counted(tmp_path: Path) -> None:
    rows: JsonValue = [{"id": 10, "=b": "x"}, {"id": 9, "=b": "X*y"}, {"id": True, "=b": None}, {"=b": "é"}]
    table = Table.of({"total": 7, "rows": rows})
    assert table is not None
    assert (table.is_arranged, table.is_part, table.facts("")) == (False, False, ["total 7", "4 rows"])
    smallest = table.arranged("id").without(frozenset({"=b"}))
    assert [smallest.cell(row, 0) for row in range(4)] == ["9", "10", "true", ""]
    assert (smallest.is_part, smallest.facts("")) == (True, ["4 rows", "1 hidden", "total 7"])
    largest = table.arranged("id", descending=True, wanted="x")
    assert (largest.is_part, largest.facts("x")) == (True, ["2 of 4 rows with x", "total 7"])
    assert largest.cell_path(1, 0) == ("rows", 1, "id")
    exact = table.arranged(None, wanted="X")
    shown = {"smallest": smallest, "largest": largest, "exact": exact, "hidden": table.without(frozenset({"id"}))}
    saved: dict[str, list[str]] = {}
    for name, part in shown.items():
        for suffix in ("json", "csv", "md"):
            save(result(rows), tmp_path / f"{name}.{suffix}", part)
            saved[f"{name}.{suffix}"] = (tmp_path / f"{name}.{suffix}").read_text(encoding="utf-8-sig").splitlines()
    assert json.loads("".join(saved["smallest.json"])) == [{"id": 9}, {"id": 10}, {"id": True}, {}]
    assert json.loads("".join(saved["hidden.json"])) == [{"=b": "x"}, {"=b": "X*y"}, {"=b": None}, {"=b": "é"}]
    assert saved["smallest.csv"] == ["id", "9", "10", "true", '""']
    assert saved["largest.csv"] == ["id,'=b", "10,x", "9,X*y"]
    assert saved["hidden.csv"] == ["'=b", "x", "X*y", '""', "é"]
    assert saved["largest.md"] == ["| id | =b |", "| ---: | --- |", "| 10 | x |", "| 9 | X\\*y |"]
    assert saved["smallest.md"][:3] == ["| id |", "| --- |", "| 9 |"]
    assert saved["exact.md"] == ["| id | =b |", "| ---: | --- |", "| 9 | X\\*y |"]
