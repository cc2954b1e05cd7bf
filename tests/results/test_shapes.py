"""Values as trees, tables and text, and the views that fit them."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pegboard.models import ToolError
from pegboard.results.advice import advice
from pegboard.results.chart import chart
from pegboard.results.markdown import pieces
from pegboard.results.paths import JsonPath, jq_path
from pegboard.results.search import find, pattern
from pegboard.results.sizes import amount, count, duration, size, tokens
from pegboard.results.table import Table, nearest_list
from pegboard.results.text import as_text, json_bytes, json_parts, preview
from pegboard.results.tree import Tree
from pegboard.results.views import is_markdown, views
from pegboard.results.wrap import wrap

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


def at(value: JsonValue, path: JsonPath) -> JsonValue:
    """Return the value at a path."""
    for step in path:
        assert isinstance(value, dict | list)
        value = value[step]  # type: ignore[index]  # the path is from this value
    return value


def labels(tree: Tree) -> list[str]:
    """Return the labels of the rows, indented."""
    return ["  " * row.depth + "".join(text for text, _ in row.label()) for row in tree.rows]


# Sizes and paths


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (9_949, "9.9 kB"),
        (9_950, "10 kB"),
        (60_000_000, "60 MB"),
        (999_600, "1.0 MB"),
    ],
)
def test_sizes_use_the_largest_unit_that_fits(number: int, words: str) -> None:
    assert size(number) == words


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0.02, "<0.1 ms"),
        (0.44, "0.4 ms"),
        (12.3, "12 ms"),
        (999.4, "999 ms"),
        (999.6, "1.0 s"),
        (8_000, "8.0 s"),
        (125_000, "2 min 5 s"),
    ],
)
def test_durations_are_rounded_for_reading(milliseconds: float, words: str) -> None:
    assert duration(milliseconds) == words


def test_long_durations_are_in_hours() -> None:
    assert duration(3_780_000) == "1 h 3 min"
    assert duration(59_990) == "1 min 0 s"


def test_counts_have_their_noun() -> None:
    assert (count(1, "line"), count(12_345, "line"), count(2, "entry", "entries")) == (
        "1 line",
        "12,345 lines",
        "2 entries",
    )


def test_only_an_empty_text_has_no_tokens() -> None:
    assert [tokens(length) for length in (0, 1, 4, 7)] == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ((), "."),
        (("results", 3, "title"), ".results[3].title"),
        ((0, "a"), ".[0].a"),
        (("a key", "ß", "1st"), '."a key"."ß"."1st"'),
        (('say "hi"', "a\\(b)"), '."say \\"hi\\""."a\\\\(b)"'),
    ],
)
def test_a_path_is_in_the_syntax_of_jq(path: JsonPath, name: str) -> None:
    assert jq_path(path) == name


# Trees


def test_a_small_value_is_open_at_first() -> None:
    assert labels(Tree({"a": 1, "b": [True, None], "c": {"d": "x"}, "e": {}})) == [
        "4 keys",
        "  a: 1",
        "  b: 2 items",
        "    [0] true",
        "    [1] null",
        "  c: 1 key",
        '    d: "x"',
        "  e: {}",
    ]


def test_a_key_without_visible_characters_is_in_quotes() -> None:
    assert labels(Tree({"": 1, "c": {" ": 2}})) == ["2 keys", '  "": 1', "  c: 1 key", '    " ": 2']
    assert preview({"": 1, " ": 2, "a b": 3}) == '{"": 1, " ": 2, a b: 3}'


def test_a_large_value_shows_a_page_and_how_much_more_there_is() -> None:
    tree = Tree(list(range(12_545)))
    assert labels(tree)[-1] == "  … 12,345 more"
    tree.open(201)
    assert len(tree.rows) == 1 + 400 + 1
    assert labels(tree)[-1] == "  … 12,145 more"


def test_closing_removes_exactly_the_rows_below() -> None:
    tree = Tree({"a": {"b": {"c": 1}}, "z": 2})
    before = labels(tree)
    tree.close(1)
    assert labels(tree) == ["2 keys", "  a: {b: {1}}", "  z: 2"]
    tree.open(1)
    tree.open(2)
    assert labels(tree) == before


def test_a_long_text_opens_into_its_lines() -> None:
    tree = Tree({"text": "first\n" + "x" * 150})
    tree.open(1)
    assert labels(tree) == ["1 key", "  text: 156 characters", "    first", "    " + "x" * 100, "    " + "x" * 50]
    assert tree.rows[3].path == ("text",)


def test_opening_everything_stops_at_a_limit_and_reports_it() -> None:
    few = Tree({"a": [[1, [2, [3]]]] * 50})
    assert not few.open_all(0)
    assert all(row.open for row in few.rows if row.can_open)
    many = Tree([[list(range(150)) for _ in range(150)] for _ in range(150)])
    assert many.open_all(0)
    assert 10_000 < len(many.rows) < 40_000


def test_revealing_opens_only_the_containers_of_the_value() -> None:
    tree = Tree({"a": [{"n": number, "deep": {"x": [number]}} for number in range(5_000)]})
    index = tree.reveal(("a", 4_321, "deep", "x", 0))
    assert tree.rows[index].path == ("a", 4_321, "deep", "x", 0)
    assert tree.rows[index].value == 4_321
    with pytest.raises(LookupError):
        tree.reveal(("b",))


def test_the_parent_of_a_row_is_its_container() -> None:
    tree = Tree({"a": {"b": 1, "c": 2}})
    assert [tree.parent(index) for index in range(4)] == [0, 0, 1, 1]


@given(VALUES)
def test_every_row_has_the_value_at_its_path(value: JsonValue) -> None:
    tree = Tree(value)
    tree.open_all(0)
    for row in tree.rows:
        if row.kind == "value":
            assert at(value, row.path) is row.value
        assert "\n" not in "".join(text for text, _ in row.label(40))


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0.0, "0"), (3.0, "3"), (0.125, "0.125"), (1 / 3, "0.333333"), (1234.0, "1,234"), (999_999.4, "999,999"),
        (999_999.6, "1,000,000"), (5_242_881.0, "5,242,881"), (-2_000_000.0, "-2,000,000"), (2.5e9, "2,500,000,000"),
        (1e300, "1e+300"),
    ],
)  # fmt: skip
def test_an_amount_has_separators_and_the_digits_of_its_integer_part(number: float, shown: str) -> None:
    assert amount(number) == shown


def test_a_number_wider_than_its_row_ends_with_an_ellipsis() -> None:
    tree = Tree([10**50 + 1, 12345])
    assert tree.rows[1].label(60) == [("[0]", "key"), (" ", "muted"), (f"1{'0' * 49}1", "number")]
    assert tree.rows[1].label(24) == [("[0]", "key"), (" ", "muted"), (f"1{'0' * 18}…", "number")]
    assert tree.rows[2].label(16)[-1] == ("12345", "number")


@given(VALUES)
def test_labels_never_hold_control_characters(value: JsonValue) -> None:
    tree = Tree(value)
    tree.open_all(0)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", "".join(labels(tree)))


# Searching


@given(VALUES, st.sampled_from(["a", "0", "tru", "ä", "1."]))
def test_a_search_finds_exactly_the_keys_and_scalars_that_have_the_text(value: JsonValue, wanted: str) -> None:
    rule = pattern(wanted)
    for path in find(value, rule):
        if path is None:
            continue
        here = at(value, path)
        said = [str(step) for step in path[-1:] if isinstance(step, str)]
        said += [here] if isinstance(here, str) else [] if isinstance(here, dict | list) else [json.dumps(here)]
        assert any(rule.search(text) for text in said)


def test_matches_are_in_reading_order() -> None:
    value: JsonValue = {"x": ["x", {"b": "ax"}], "y": {"x": 1}}
    assert [path for path in find(value, pattern("x")) if path is not None] == [
        ("x",),
        ("x", 0),
        ("x", 1, "b"),
        ("y", "x"),
    ]


def test_case_matters_only_if_a_capital_was_typed() -> None:
    assert pattern("abc").search("xABC")
    assert not pattern("Abc").search("abc")
    assert pattern("a.c(").search("A.C(")
    assert not pattern("a.c").search("abc")


# Tables


def test_columns_are_in_the_order_of_first_appearance() -> None:
    table = Table.of([{"b": 1, "a": "x"}, {"c": None, "a": "line\nbreak"}])
    assert table is not None
    assert table.columns == ("b", "a", "c")
    assert [[table.cell(row, column) for column in range(3)] for row in range(2)] == [
        ["1", "x", ""],
        ["", "line⏎break", "null"],
    ]
    assert [table.is_numeric(column) for column in range(3)] == [True, False, False]


def test_a_table_is_found_inside_an_object_with_exactly_one() -> None:
    table = Table.of({"success": True, "count": 2, "results": [{"id": 1}, {"id": 2}]})
    assert table is not None
    assert table.cell_path(1, 0) == ("results", 1, "id")
    assert Table.of({"a": [{"x": 1}], "b": [{"y": 1}]}) is None


def test_a_table_shows_the_other_members_of_the_object_around_it() -> None:
    table = Table.of({"ok": True, "results": [{"id": 1}], "of": "a\x1b[1m" + "x" * 90, "facets": {}}, ("result",))
    assert table is not None
    assert table.path == ("result", "results")
    assert table.beside.startswith("ok true · of ")
    assert table.beside.isprintable()
    assert len(table.beside) < 70


@pytest.mark.parametrize("value", [[], [1], [{}], [{"a": 1}, 2], {"a": 1}, "text", None])
def test_only_a_list_of_objects_is_a_table(value: JsonValue) -> None:
    assert Table.of(value) is None


def test_a_list_of_strings_in_a_cell_is_joined_by_commas() -> None:
    table = Table.of([{"tags": ["open data", "water\x07"], "none": [], "mixed": ["a", 1]}, {"tags": ["word"] * 90}])
    assert table is not None
    assert [table.cell(0, column) for column in range(3)] == ["open data, water␇", "[]", '["a", 1]']
    assert len(table.cell(1, 0)) == 40


@pytest.mark.parametrize("value", ["w" * 41, ["w" * 41], ["w" * 90], ["w" * 39, "x"], ["w"] * 90, {"w" * 90: 1}])
def test_a_cell_that_is_cut_ends_with_an_ellipsis(value: JsonValue) -> None:
    table = Table.of([{"a": value, "b": ["w" * 40]}])
    assert table is not None
    assert "…" in table.cell(0, 0)
    assert table.cell(0, 1) == "w" * 40


def test_a_key_that_is_cut_ends_with_an_ellipsis() -> None:
    assert labels(Tree({"k" * 101: 1, "l" * 100: 2})) == ["2 keys", f"  {'k' * 99}…: 1", f"  {'l' * 100}: 2"]
    table = Table.of({"k" * 41: 1, "rows": [{"a": 1}]})
    assert table is not None
    assert table.beside == f"{'k' * 39}… 1"


def test_a_label_of_a_chart_that_is_cut_ends_with_an_ellipsis() -> None:
    found = chart([{"name": "n" * 25, "v": 1}, {"name": "m" * 24, "v": 2}])
    assert found is not None
    assert found.labels == ("n" * 23 + "…", "m" * 24)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([{"a": 1}], ()),
        ({"ok": True, "result": {"tags": ["a"], "files": [{"a": [{"b": 1}]}], "c": [{"d": 1}]}}, ("result", "files")),
        ([[{"a": 1}]], (0,)),
        ({"a": {"b": [1, {"c": 1}]}}, None),
        ("text", None),
        ([], None),
        ([*range(1_000), [{"a": 1}]], None),
    ],
)  # fmt: skip
def test_the_nearest_list_that_may_be_a_table_is_found(value: JsonValue, path: tuple[str | int, ...] | None) -> None:
    found = nearest_list(value)
    assert (found and found[0]) == path


def test_a_table_leaves_out_columns_beyond_fifty_but_not_from_csv() -> None:
    table = Table.of([{f"k{number}": number for number in range(60)}])
    assert table is not None
    assert (len(table.columns), table.columns_left_out) == (50, 10)
    assert len(next(csv.reader(io.StringIO("".join(table.csv()))))) == 60


def test_csv_keeps_every_value_but_protects_spreadsheets_from_formulas() -> None:
    table = Table.of([{"a": '=1+"2"', "b": None, "c": True}, {"a": "x\ny,z", "d": [1, {"e": "ü"}]}])
    assert table is not None
    assert list(csv.reader(io.StringIO("".join(table.csv()), newline=""))) == [
        ["a", "b", "c", "d"],
        ['\'=1+"2"', "", "true", ""],
        ["x\ny,z", "", "", '[1,{"e":"ü"}]'],
    ]


def test_the_width_and_the_kind_of_a_column_follow_from_its_first_and_last_rows() -> None:
    rows: list[JsonValue] = [{"id": number, "text": "a", "on": True} for number in range(299)]
    table = Table.of([*rows, {"id": "x", "text": "b" * 9}])
    assert table is not None
    assert [table.width(column) for column in range(3)] == [3, 9, 4]
    assert [table.width(column, 3) for column in range(3)] == [3, 3, 3]
    assert [table.is_numeric(column) for column in range(3)] == [False, False, False]
    assert table.with_rows(range(299)).is_numeric(0)


def test_a_search_in_a_table_finds_cells() -> None:
    table = Table.of([{"a": "no", "b": {"deep": ["yes"]}}, {"b": "yes"}])
    assert table is not None
    assert [place for place in table.find(pattern("yes")) if place] == [(0, 1), (1, 1)]


# Text


@given(VALUES)
def test_pretty_json_is_the_same_value(value: JsonValue) -> None:
    assert json.loads(json_bytes(value, indent=2)) == value


def test_lone_surrogates_and_deep_nesting_have_a_text() -> None:
    deep: JsonValue = "\ud800"
    for _ in range(300):
        deep = [deep]
    assert json.loads(as_text(deep)) == deep


@given(VALUES, st.integers(20, 120))
def test_a_preview_is_one_clean_line_of_bounded_length(value: JsonValue, width: int) -> None:
    line = preview(value, width)
    assert line.isprintable() or not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u202e]", line)


def test_a_preview_counts_the_omitted_items() -> None:
    value: JsonValue = {"id": 1, "tags": ["a"], "owner": {}, "b": [1, 2]}
    assert preview(value, 28) == "{id: 1, tags: [1], … 2 more}", "the number fits, too"
    assert preview(value, 27) == "{id: 1, … 3 more}"
    assert preview(value, 37) == "{id: 1, tags: [1], owner: {}, b: [2]}"
    assert preview("x" * 50, 10) == '"' + "x" * 9 + '…"'
    assert len(preview(list(range(100_000)), 60)) < 100


def test_the_tokens_of_a_json_line_have_kinds() -> None:
    line = '  "a \\" b": ["x", -1.5e3, true, null],'
    assert [(line[start:end], part) for start, end, part in json_parts(line)] == [
        ('"a \\" b"', "key"),
        ('"x"', "string"),
        ("-1.5e3", "number"),
        ("true", "constant"),
        ("null", "constant"),
    ]


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])), st.integers(2, 40))
def test_wrapped_rows_join_to_the_line_and_fit(line: str, width: int) -> None:
    from rich.cells import cell_len

    rows = wrap(line, width)
    assert "".join(line[start:end] for start, end in rows) == line
    assert all(end > start for start, end in rows) or line == ""
    # A variation selector widens the character before it.
    assert all(cell_len(line[start:end].replace("\ufe0f", "")) <= width for start, end in rows)


_SYMBOLS = ("⚠️", "1️⃣", "👩‍👩‍👧‍👦", "👍🏽", "🇫🇷", "🏳️‍🌈", "e\u0301", "日", "a", " ")


@given(st.lists(st.sampled_from(_SYMBOLS), max_size=40), st.integers(2, 20))
def test_wrapped_rows_of_emoji_fit_and_no_symbol_is_cut(symbols: list[str], width: int) -> None:
    from rich.cells import cell_len

    line = "".join(symbols)
    rows = wrap(line, width)
    assert "".join(line[start:end] for start, end in rows) == line
    assert all(cell_len(line[start:end]) <= width for start, end in rows)
    assert {start for start, _end in rows} <= {len("".join(symbols[:index])) for index in range(len(symbols) + 1)}


def test_a_row_holds_as_many_emoji_as_fit() -> None:
    assert wrap("👩‍👩‍👧‍👦" * 9, 12) == [(0, 42), (42, 63)]


def test_lines_break_after_words_where_they_can() -> None:
    assert wrap("the quick brown fox", 10) == [(0, 10), (10, 19)]
    assert wrap("word bb日本 日本語", 9) == [(0, 5), (5, 10), (10, 13)]
    assert wrap("x" * 25, 10) == [(0, 10), (10, 20), (20, 25)]


def test_texts_of_several_lines_are_open_at_first_if_all_of_them_fit_a_screen() -> None:
    file: JsonValue = {"file": {"path": "a.md", "content": "# A\n\nWords.\n"}, "note": "one line\n"}
    assert [row.label()[-1][0] for row in Tree(file).rows] == [
        "2 keys",
        "2 keys",
        '"a.md"',
        "12 characters",
        "# A",
        "",
        "Words.",
        "",
        '"one line⏎"',
    ]
    longer: JsonValue = {"first": "a\nb", "second": "line\n" * 40}
    assert len(Tree(longer).rows) == 3


# Views


@pytest.mark.parametrize(
    ("value", "fitting"),
    [
        (None, ("text",)),
        (12, ("text",)),
        ([], ("text",)),
        ("", ("text",)),
        ("plain words", ("text", "markdown")),
        ("# Title\n\nWords.", ("markdown", "text")),
        ({"a": 1}, ("tree", "text")),
        ([{"a": 1}], ("table", "tree", "text")),
        ({"hits": [{"a": 1}]}, ("table", "tree", "text")),
        ({"success": True, "count": 9, "hits": [{"a": 1}]}, ("table", "tree", "text")),
        ({"hits": [{"a": 1}], "facets": {"b": 1}}, ("tree", "table", "text")),
        ({"hits": [{"a": 1}], "notes": "Words. " * 20}, ("tree", "table", "text")),
        ({"hits": [{"a": 1}], **{f"field{number}": number for number in range(9)}}, ("tree", "table", "text")),
        ([1, 2], ("tree", "text", "chart")),
        ([{"a": 1}, {"a": 2}], ("table", "tree", "text", "chart")),
        ([{"a": 1}, {"a": None}, {"b": "x"}], ("table", "tree", "text")),
    ],
)
def test_the_best_view_comes_first(value: JsonValue, fitting: tuple[str, ...]) -> None:
    assert views(value) == fitting


def test_the_output_of_a_program_is_shown_as_it_was_printed() -> None:
    outputs: list[JsonValue] = [
        {"stdout": "done\n", "stderr": "", "exit_code": 0},
        {"stdout": "", "stderr": "failed\n", "interrupted": False, "files": []},
        {"stdout": "alone"},
    ]
    others: list[JsonValue] = [
        {"stdout": "\n", "stderr": " ", "exit_code": 1},
        {"stdout": ["done"]},
        {"stderr": "failed"},
        {"stdout": "done", "rows": [{"a": 1}]},
    ]
    assert {views(value) for value in outputs} == {("output", "tree", "text")}
    assert not any("output" in views(value) for value in others)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("Some **bold** words and\n\n- a\n- list\n", True),
        ("```\ncode\n```\nand [a link](https://example.org)", True),
        ("#!/bin/sh\n# comment\nls -l\n", False),
        ("import os\n\n# a comment\nprint(1)\n", False),
        ("- just\n- a list\n", False),
        ("[" * 100_000, False),
    ],
)
def test_markdown_is_recognised_by_its_syntax(text: str, is_one: bool) -> None:
    assert is_markdown(text) is is_one


@given(st.text(st.sampled_from("ab`~# \n"), max_size=2_000))
def test_pieces_of_markdown_join_to_the_whole(text: str) -> None:
    assert "\n".join(pieces(text)) == text


def test_a_piece_does_not_end_inside_of_fenced_code() -> None:
    text = "words\n\n" * 30 + "```\n" + "code\n\n" * 100 + "```\n" + "words\n\n" * 100
    for piece in pieces(text):
        assert piece.count("```") % 2 == 0


def test_every_failure_that_users_can_fix_has_advice() -> None:
    assert "in the entry of an MCP server" in advice(ToolError(code="execution_error", message="", detail="timeout"))
    assert "the connection" in advice(ToolError(code="execution_error", message="", detail="crashed"))
    assert "spelling" in advice(ToolError(code="tool_not_found", message=""))
    assert advice(ToolError(code="execution_error", message="", detail="of the author")) == ""
