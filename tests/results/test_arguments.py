"""Arguments of a call as text to read before a decision."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pegboard.results.arguments import argument_parts, arguments_text
from pegboard.results.clean import clean

TEXT = st.text(st.sampled_from(['"', "\\", "\n", "\r", "│", " ", "}", ",", ":", "a", "é", "\ud800", "\u2028"]))
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.promise("ASK-7")
def test_a_text_of_several_lines_is_shown_as_it_is_after_bars() -> None:
    args: JsonValue = {
        "command": 'cd "app"\n\trm -rf build',
        "files": [{"path": "a.txt", "content": "one\ntwo\n"}, "x\ny"],
        "note": "one line\n",
        "none": {},
    }
    assert arguments_text(args).split("\n") == [
        "{",
        '  "command": 2 lines:',
        '    │ cd "app"',
        "    │ \trm -rf build",
        '  "files": [',
        "    {",
        '      "path": "a.txt",',
        '      "content": 3 lines:',
        "        │ one",
        "        │ two",
        "        │ ",
        "    },",
        "    2 lines:",
        "      │ x",
        "      │ y",
        "  ],",
        '  "note": "one line\\n",',
        '  "none": {}',
        "}",
    ]


@pytest.mark.promise("ASK-7", "SEC-2")
def test_blank_lines_do_not_push_the_rest_of_a_text_out_of_sight() -> None:
    hidden = "ls" + "\n" * 200 + "rm -rf ~\n \n\t\n  \n\u3000\nls\n\n\n\nls"
    assert arguments_text({"command": hidden}).split("\n") == [
        "{",
        '  "command": 210 lines:',
        "    │ ls",
        "    … 199 blank lines",
        "    │ rm -rf ~",
        "    … 4 blank lines",
        "    │ ls",
        "    │ ",
        "    │ ",
        "    │ ",
        "    │ ls",
        "}",
    ]


@pytest.mark.promise("ASK-7", "SEC-2")
def test_a_carriage_return_before_a_line_break_is_visible() -> None:
    shown = clean(arguments_text({"command": "rm -rf build\r\n\r\nls"})).split("\n")
    assert shown == ["{", '  "command": 3 lines:', "    │ rm -rf build␍", "    │ ␍", "    │ ls", "}"]


@pytest.mark.promise("ASK-7", "SEC-5")
@given(VALUES)
def test_no_text_looks_like_another_argument(args: JsonValue) -> None:
    lines = clean(arguments_text(args)).split("\n")
    others = [line for line in lines if not line.lstrip(" ").startswith(("│", "… "))]
    for line, plain in zip(others, clean(arguments_text(_without_lines(args))).split("\n"), strict=True):
        before, several, _ = plain.rpartition('"several"')
        assert re.fullmatch(re.escape(before) + r"\d+ lines:", line) if several else line == plain


def _without_lines(value: JsonValue) -> JsonValue:
    match value:
        case str() if "\n" in value.rstrip("\n"):
            return "several"
        case dict():
            return {key: _without_lines(item) for key, item in value.items()}
        case list():
            return [_without_lines(item) for item in value]
    return value


@pytest.mark.promise("ASK-7")
def test_deep_arguments_are_shown_completely() -> None:
    args: JsonValue = "bottom"
    for _ in range(400):
        args = [args]
    text = arguments_text(args)
    assert text.count("[") == text.count("]") == 400
    assert '"bottom"' in text
    assert json.loads(arguments_text({"a": [1, None, "é"]})) == {"a": [1, None, "é"]}


def test_a_line_of_a_text_has_no_colors_of_json() -> None:
    assert argument_parts('    │ "a": 1') == [(4, 6, "muted"), (6, 12, "string")]
    assert [kind for _, _, kind in argument_parts('  "a": 1')] == ["key", "number"]
