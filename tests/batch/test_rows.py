"""Rows of files: their values, and the messages about files that can't be read."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from pegboard.batch.errors import MappingError, RowsError
from pegboard.batch.mapping import ColumnMap
from pegboard.batch.rows import InputRows, Row
from pegboard.errors import FormFaults
from pegboard.models import JsonObject, PackHandler, ToolSpec

pytestmark = pytest.mark.promise("BAT-1")

Read = Callable[..., list[Row]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that writes a file and returns its rows."""

    def read(content: bytes | str, name: str = "rows.csv", encoding: str | None = None) -> list[Row]:
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        rows = InputRows(str(file), encoding=encoding)
        try:
            return list(rows)
        finally:
            rows.close()

    return read


def values(rows: list[Row]) -> list[JsonObject]:
    return [row.values for row in rows]


def test_csv_values_keep_quotes_line_breaks_and_delimiters(read: Read) -> None:
    found = read('name,text\na,"1, 2"\n\n"b ""x""","two\nlines"\n')
    assert values(found) == [{"name": "a", "text": "1, 2"}, {"name": 'b "x"', "text": "two\nlines"}]
    assert [(row.number, row.line) for row in found] == [(1, 2), (2, 4)]


@pytest.mark.parametrize(("delimiter", "name"), [(";", "a.csv"), ("\t", "a.tsv"), ("|", "a.csv")])
def test_the_delimiter_is_found_in_the_header(read: Read, delimiter: str, name: str) -> None:
    assert values(read(f'"a,b"{delimiter}c\n1{delimiter}2\n', name)) == [{"a,b": "1", "c": "2"}]


def test_the_header_is_the_first_line_with_text_and_its_names_have_no_spaces_around_them(read: Read) -> None:
    for first in ("", "sep=,\n", "\nsep=,\r\n"):
        [found] = read(f"\n\r\n{first}\n name ,\ttext\n a , b\n")
        assert (found.values, found.line) == ({"name": " a ", "text": " b"}, 5 + first.count("\n"))


@pytest.mark.parametrize("line", ["sep=;\r\n", "SEP=;\n", '"sep=;"\n'])
def test_a_first_line_may_name_the_delimiter_for_excel(read: Read, line: str) -> None:
    [found] = read(f"{line}a,b;c\n1,2;3\n")
    assert (found.values, found.number, found.line) == ({"a,b": "1,2", "c": "3"}, 1, 3)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "utf-16"])
def test_carriage_returns_may_end_the_lines(read: Read, encoding: str) -> None:
    found = read('name,text\rä,"two\rlines"\r\rb,x\r'.encode(encoding), encoding=encoding)
    assert values(found) == [{"name": "ä", "text": "two\rlines"}, {"name": "b", "text": "x"}]
    assert [(row.number, row.line) for row in found] == [(1, 2), (2, 5)]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_byte_order_mark_sets_the_encoding(read: Read, encoding: str, name: str) -> None:
    text = "word\r\nhéllo\r\n" if name == "a.csv" else '{"word": "héllo"}\n'
    assert values(read(text.encode(encoding), name)) == [{"word": "héllo"}]


def test_another_encoding_is_read_when_it_is_named(read: Read) -> None:
    assert values(read("word\nhéllo\n".encode("latin-1"), encoding="latin-1")) == [{"word": "héllo"}]


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        ("word\nok\nhéllo\n".encode("latin-1"), "a.csv", ["row 2 (line 3)", "0xe9", "--encoding"]),
        (b'{"a": 1}\n{"a": "\xe9"}\n', "a.jsonl", ["row 2 (line 2)", "0xe9", "--encoding"]),
        ('a,b\n1,2\n3,"4\n5,6\n', "a.csv", ["row 2 (line 3)", "quoted value starts here"]),
        ('a,b\n1,2\n3,"4"x\n', "a.csv", ["row 2 (line 3)", "closing quote"]),
        ("", "a.csv", ["the header", "names of its columns"]),
        ("a,a\n1,2\n", "a.csv", ["the header", "'a' occurs twice"]),
        ('[{"a": 1}]', "a.json", ["row 1", "jq -c"]),
    ],
)
def test_what_makes_further_rows_uncertain_ends_reading_with_the_row(
    read: Read, content: bytes | str, name: str, words: list[str]
) -> None:
    with pytest.raises(RowsError) as error:
        read(content, name)
    for word in words:
        assert word in str(error.value)


def test_bad_rows_among_good_ones_are_rows_with_a_problem(read: Read) -> None:
    found = read("a,b\n1,2\n3\n4,5,6\n7,8\n")
    assert [row.problem for row in found] == [
        "", "has 1 value, but the header has 2 columns", "has 3 values, but the header has 2 columns", "",
    ]  # fmt: skip
    found = read('{"a": 1}\nnope\n[1]\n\n{"a": 1, "a": 2}\n', "a.jsonl")
    assert [(row.number, row.line, bool(row.problem)) for row in found] == [
        (1, 1, False), (2, 2, True), (3, 3, True), (4, 5, True),
    ]  # fmt: skip
    assert found[1].problem.startswith("is not JSON: expecting value (column 1)")  # the message also names line 2


@pytest.mark.parametrize("start", [b'a,b\n1,2\n3,"', b"a,b\n1,2\n3,"])
def test_two_gigabytes_after_an_open_quote_or_without_a_line_break_end_in_bounded_memory(
    tmp_path: Path, start: bytes
) -> None:
    file = tmp_path / "large.csv"
    with file.open("wb") as out:  # a sparse file
        out.write(start)
        out.truncate(2 * 2**30)
    rows = InputRows(str(file))
    tracemalloc.start()
    try:
        with pytest.raises(RowsError, match=r"row 2 \(line 3\)"):
            list(rows)
        assert tracemalloc.get_traced_memory()[1] < 120_000_000
    finally:
        tracemalloc.stop()
        rows.close()


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_wide_text_without_a_byte_order_mark_is_a_message(read: Read, encoding: str, name: str) -> None:
    text = "word\nok\n" if name == "a.csv" else '{"word": "ok"}\n'
    with pytest.raises(RowsError, match=r"row 1 .* zero bytes.*--encoding, such as utf-16-le"):
        read(text.encode(encoding), name)
    assert values(read(text.encode(encoding), name, encoding)) == [{"word": "ok"}]


def test_a_missing_file_and_an_unknown_encoding_are_messages(tmp_path: Path) -> None:
    with pytest.raises(RowsError, match="No such file"):
        InputRows(str(tmp_path / "nope.csv"))
    with pytest.raises(RowsError, match="directory"):
        InputRows(os.fspath(tmp_path))
    file = tmp_path / "a.csv"
    file.write_text("a\n1\n")
    for unknown in ("klingon", "hex", "undefined", "a\0b"):
        with pytest.raises(RowsError, match="is unknown"):
            InputRows(str(file), encoding=unknown)
    with pytest.raises(RowsError, match=r"it is not UTF-16. Pass another --encoding"):
        [*InputRows(str(file), encoding="utf-16")]


SPEC = ToolSpec(
    name="t.go",
    pack="t",
    input_schema={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "count": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "filter": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    handler=PackHandler(pack="t", function="go", file="/t.py", line=1),
    parameter_aliases={"maxCount": "count"},
)


def row(**values: str) -> Row:
    return Row(1, 2, dict(values), "")


def test_csv_text_becomes_the_types_of_the_schema() -> None:
    columns = ("file", "maxCount", "tags", "who", "more")
    mapping = ColumnMap(SPEC, ["path=file", "filter.name=who"], given={"count": 1}, format="csv", columns=columns)
    assert mapping.ignored == ("more",)
    cells = row(file="007", maxCount="12", tags='["a", "b"]', who="Ada", more="?")
    assert mapping.arguments(cells) == {"path": "007", "count": 12, "tags": ["a", "b"], "filter": {"name": "Ada"}}
    assert mapping.arguments(row(file="x", maxCount="", tags="", who="")) == {"path": "x", "count": 1}


@pytest.mark.promise("BAT-1")
def test_a_csv_column_does_not_fill_a_parameter_that_a_map_fills_in_parts_or_as_a_whole() -> None:
    parts = ColumnMap(SPEC, ["path=filter", "filter.name=who"], format="csv", columns=("filter", "who"))
    assert parts.arguments(row(filter="a.txt", who="Ada")) == {"path": "a.txt", "filter": {"name": "Ada"}}
    whole = ColumnMap(SPEC, ["filter=all"], format="csv", columns=("path", "filter.name", "all"))
    assert whole.ignored == ("filter.name",)
    cells = row(path="a.txt", all='{"name": "Ada"}')
    cells.values["filter.name"] = "Ben"
    assert whole.arguments(cells) == {"path": "a.txt", "filter": {"name": "Ada"}}


def test_csv_truth_values_may_be_written_as_spreadsheets_do() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"loud": {"type": "boolean"}, "either": {"anyOf": [{"type": "boolean"}, {"type": "string"}]}},
    }
    mapping = ColumnMap(SPEC.model_copy(update={"input_schema": schema}), format="csv", columns=("loud", "either"))
    for text, value in (("TRUE", True), ("FALSE", False), ("True", True), ("false", False)):
        assert mapping.arguments(row(loud=text))["loud"] is value
    assert mapping.arguments(row(loud="true", either="TRUE")) == {"loud": True, "either": "TRUE"}
    assert mapping.arguments(row(loud="true", either="true")) == {"loud": True, "either": True}
    with pytest.raises(FormFaults):
        mapping.arguments(row(loud="yes"))


def test_csv_truth_values_may_be_written_as_databases_do_unless_a_number_is_meant() -> None:
    flag, either = {"type": ["boolean", "null"]}, {"anyOf": [{"type": "boolean"}, {"type": "integer"}]}
    schema: JsonObject = {"type": "object", "properties": {"loud": flag, "either": either}}  # type: ignore[dict-item]
    mapping = ColumnMap(SPEC.model_copy(update={"input_schema": schema}), format="csv", columns=("loud", "either"))
    for text, value in (("t", True), ("f", False), ("1", True), ("0", False)):
        assert mapping.arguments(row(loud=text, either="1")) == {"loud": value, "either": 1}


def test_json_values_keep_their_types() -> None:
    whole = ColumnMap(SPEC, given={"count": 1})
    assert whole.arguments(Row(1, 1, {"path": "a", "count": 2}, "")) == {"path": "a", "count": 2}
    mapped = ColumnMap(SPEC, ["path=user.file", "filter.name=who"])
    values: JsonObject = {"user": {"file": "a"}, "who": "Ada", "count": 3, "other": None}
    assert mapped.arguments(Row(1, 1, values, "")) == {"count": 3, "path": "a", "filter": {"name": "Ada"}}


def test_a_json_row_that_uses_an_earlier_name_of_a_parameter_wins_and_can_be_mapped() -> None:
    whole = ColumnMap(SPEC, given={"path": "a", "count": 1})
    assert whole.arguments(Row(1, 1, {"maxCount": 2}, "")) == {"path": "a", "count": 2}
    for pairs in (["count=maxCount"], ["maxCount=maxCount"], ["count=n"], ["maxCount=n"]):
        mapped = ColumnMap(SPEC, pairs, given={"count": 1})
        assert mapped.arguments(Row(1, 1, {"path": "a", "maxCount": 2, "n": 2}, "")) == {"path": "a", "count": 2}
        assert mapped.arguments(Row(1, 1, {"path": "a", "maxCount": 2}, "")) == {"path": "a", "count": 2}
    named = ColumnMap(SPEC, ["count=maxCount"]).arguments(Row(1, 1, {"path": "a", "count": 1, "maxCount": 2}, ""))
    assert named == {"path": "a", "count": 2}
    other = ColumnMap(SPEC, ["path=file"], given={"count": 1})
    assert other.arguments(Row(1, 1, {"file": "a", "maxCount": 2}, "")) == {"path": "a", "count": 2}
    both: JsonObject = {"path": "a", "count": 2, "maxCount": 3}
    assert whole.arguments(Row(1, 1, both, "")) == both, "a validation error, as without arguments for all rows"


@pytest.mark.parametrize(
    ("pairs", "columns", "words"),
    [
        (["path"], ("path",), "PARAMETER=COLUMN"),
        (["paht=path"], ("path",), "no parameter 'paht'"),
        (["path=file"], ("fiel",), "no column 'file'"),
        (["path=a", "path=b"], ("a", "b"), "mapped twice"),
        ([], ("x", "y"), "No column of the file is a parameter"),
        ([], ("count",), "requires `path`"),
    ],
)
def test_a_map_that_does_not_fit_is_a_message(pairs: list[str], columns: tuple[str, ...], words: str) -> None:
    with pytest.raises(MappingError, match=words):
        ColumnMap(SPEC, pairs, format="csv", columns=columns)


@pytest.mark.promise("BAT-1")
@pytest.mark.parametrize(("name", "header", "line"), [("in.jsonl", "", '{"n": 1}\n'), ("in.csv", "n,m\n", "1,2\n")])
def test_the_position_in_a_small_file_is_after_the_rows_that_were_read(
    tmp_path: Path, name: str, header: str, line: str
) -> None:
    file = tmp_path / name
    file.write_text(header + line * 100)
    rows = InputRows(str(file))
    assert len([*islice(rows, 25)]) == 25
    assert rows.position == len(header) + len(line) * 25
    rows.close()
