"""The json pack queries with jq, exactly, and shows the structure of a value."""

from __future__ import annotations

import json as json_text
from pathlib import Path

import pytest

from pegboard.packs import json
from pegboard.sdk import ToolFailed

ITEMS = {"items": [{"name": "a", "size": 1}, {"name": "b", "size": 7.5, "tags": ["x"]}], "no.key": None}


def ask(filter_: str, value: object = None, **more: object) -> list[object]:
    return json.query(filter=filter_, value=value, **more)["results"]  # type: ignore[arg-type] # any argument


def test_a_filter_returns_its_results_in_order() -> None:
    assert ask(".items[] | select(.size > 3) | .name", ITEMS) == ["b"]
    assert ask(".items[].name", ITEMS) == ["a", "b"]
    assert ask("empty", ITEMS) == []
    assert ask("def twice: . * 2; twice # a comment", 4) == [8]
    assert ask(".") == [None]


def test_large_numbers_stay_exact() -> None:
    assert ask(".a", {"a": 12345678901234567890}) == [12345678901234567890]
    assert ask("[.[]]", [2**70]) == [[2**70]]


def test_a_file_may_hold_one_value_or_many(work: Path) -> None:
    (work / "one.json").write_text(json_text.dumps(ITEMS))
    (work / "many.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    assert ask(".items | length", file="one.json") == [2]
    assert ask(".a", file="many.jsonl") == [1, 2]
    assert [part["count"] for part in json.shape(file="many.jsonl")] == [2, 2]


def test_a_limited_result_is_marked_as_truncated() -> None:
    assert json.query(filter="range(1e9)", max_results=3) == {"results": [0, 1, 2], "truncated": True}
    assert json.query(filter="range(3)", max_results=3)["truncated"] is False


@pytest.mark.parametrize(
    ("filter_", "message"),
    [
        (".a |", r"syntax error[^)]*\.a \|"),
        (".[0]", "Cannot index object with number"),
        ('error("my words")', "my words"),
        ("nothing_such", "nothing_such/0 is not defined"),
    ],
)
def test_errors_of_jq_are_quoted(filter_: str, message: str) -> None:
    with pytest.raises(ToolFailed, match=message) as failed:
        ask(filter_, {})
    assert failed.value.code == "jq_failed"
    assert "tojson" not in failed.value.message


@pytest.mark.parametrize(
    "filter_",
    [
        'import "x" as $d {search: "FOLDER"}; $d',
        '# hi\r\nimport "x" as $d {search: "FOLDER"}; $d',
        'include "x" {search: "FOLDER"}; 1',
        '1) | import "x" as $d {search: "FOLDER"}; ($d',
        'module {}; import "x" as $d {search: "FOLDER"}; $d',
    ],
)
def test_a_filter_reads_no_files_of_its_own(work: Path, filter_: str) -> None:
    (work.parent / "outside" / "x.json").write_text('"secret"')
    (work.parent / "outside" / "x.jq").write_text("def secret: 1;")
    with pytest.raises(ToolFailed) as failed:
        ask(filter_.replace("FOLDER", str(work.parent / "outside")))
    assert "secret" not in failed.value.message


@pytest.mark.parametrize(
    ("text", "code"), [("{bad", "jq_failed"), ("\xff", "not_text"), (None, "not_found"), ("x" * 99, "too_large")]
)
def test_unsuitable_files_are_rejected(work: Path, text: str | None, code: str) -> None:
    if text is not None:
        (work / "x.json").write_text(text, encoding="latin-1")
    with pytest.raises(ToolFailed) as failed:
        ask(".", file="x.json", max_bytes=50)
    assert failed.value.code == code


def test_a_value_and_a_file_together_are_rejected(work: Path) -> None:
    with pytest.raises(ToolFailed, match="not both"):
        ask(".", 1, file="a.txt")


def test_the_shape_contains_every_path_once_with_types_and_an_example() -> None:
    assert json.shape(value=ITEMS) == [
        {"path": ".", "types": ["object"], "count": 1, "example": "{2}"},
        {"path": ".items", "types": ["array"], "count": 1, "example": "[2]"},
        {"path": ".items[]", "types": ["object"], "count": 2, "example": "{2}"},
        {"path": ".items[].name", "types": ["string"], "count": 2, "example": '"a"'},
        {"path": ".items[].size", "types": ["integer", "number"], "count": 2, "example": "1"},
        {"path": ".items[].tags", "types": ["array"], "count": 1, "example": "[1]"},
        {"path": ".items[].tags[]", "types": ["string"], "count": 1, "example": '"x"'},
        {"path": '.["no.key"]', "types": ["null"], "count": 1, "example": "null"},
    ]


def test_every_path_of_a_shape_is_accepted_by_jq() -> None:
    for part in json.shape(value={"a b": [{"ü": {"": 1}}], "if": [[True]]}):
        assert len(ask(part["path"], {"a b": [{"ü": {"": 1}}], "if": [[True]]})) == part["count"]


def test_invalid_json_and_too_many_paths_have_no_shape(work: Path) -> None:
    (work / "x.json").write_text('{"a": 1}\n{"a" 2}')
    with pytest.raises(ToolFailed, match=r"JSON is invalid.*line 2, column 6"):
        json.shape(file="x.json")
    with pytest.raises(ToolFailed, match="more than 1000 paths"):
        json.shape(value={str(key): key for key in range(2000)})
