"""Untrusted text on its way to the screen."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.results.clean import clean, clean_line, escaped_json

ANY_TEXT = st.text(st.characters(codec=None)) | st.text(
    st.sampled_from("a\n\r\t\x1b\x9b\u200d\u202e\ud800👩ی\U000e0041\ufe0f\ufe01")
)
DIRECTIONS = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@pytest.mark.promise("TUI-4")
@given(ANY_TEXT)
def test_no_control_sequence_is_left(text: str) -> None:
    left = clean(text)
    assert not {sign for sign in left if unicodedata.category(sign) in {"Cc", "Cs", "Zl", "Zp"}} - {"\n"}
    assert not DIRECTIONS & set(left)
    left.encode()  # what a terminal is written


@given(ANY_TEXT)
def test_cleaning_is_idempotent(text: str) -> None:
    assert clean(clean(text)) == clean(text)
    assert clean_line(clean_line(text)) == clean_line(text)


@given(ANY_TEXT)
def test_a_clean_line_is_one_line(text: str) -> None:
    assert len(clean_line(text).splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("a\x00b\x07c\x7f", "a␀b␇c␡"),
        ("\x9b31m", "\\x9b31m"),
        ("over\rwritten", "over␍written"),
        ("one\r\ntwo\n", "one\ntwo\n"),
        ("a\tb", "a    b"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("ad\u200bmin\ufeff", "ad\\u200bmin\\ufeff"),
        ("ad\u200dmin", "ad\\u200dmin"),
        ("half \ud83d", "half \\ud83d"),
        ("\U000e0041", "\\U000e0041"),
        ("😀\U000e0141\U000e0142", "😀\\U000e0141\\U000e0142"),
        ("😀\ufe0f\ufe01\ufe02", "😀\ufe0f\\ufe01\\ufe02"),
        ("rm\ufe01", "rm\\ufe01"),
        ("rm\u3164\u034f", "rm\\u3164\\u034f"),
        ("[bold]not markup[/]", "[bold]not markup[/]"),
    ],
)
def test_replacements_are_visible(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_text_of_other_scripts_and_emoji_stay_as_they_are() -> None:
    for text in ("שלום עולם", "می\u200cخواهم", "👩\u200d💻 ✔\ufe0f", "日本語", "1\ufe0f\u20e3", "❤\ufe0f\u200d🔥"):
        assert clean(text) == text


def test_line_breaks_are_visible_in_a_single_line() -> None:
    assert clean_line("one\r\ntwo\nthree") == "one⏎two⏎three"


def test_json_with_invisible_characters_stays_json() -> None:
    assert escaped_json('"❤\ufe0f 日本"') == '"❤\ufe0f 日本"'
    hidden = "rm\u202e\u3164\ufe01\U000e0141"
    shown = escaped_json(json.dumps(hidden, ensure_ascii=False))
    assert shown == r'"rm\u202e\u3164\ufe01\udb40\udd41"'
    assert json.loads(shown) == hidden
