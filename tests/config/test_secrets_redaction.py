"""Secrets are removed from texts and values, in every form in which they may be written."""

from __future__ import annotations

import base64
import json
import re
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pegboard.config import Redactor
from pegboard.config.redaction import credentials, is_secret_name

VALUE = 'pä$$/wörd+"\\\n&='
KNOWN = Redactor({"KEY": VALUE, "OTHER": "0123456789"})


@pytest.mark.promise("STO-2")
def test_the_end_of_a_text_that_may_be_the_start_of_any_form_of_a_secret_is_known() -> None:
    for form in KNOWN.forms:
        for length in range(1, len(form)):
            assert KNOWN.unfinished(f"text {form[:length]}") >= length
    assert KNOWN.unfinished("text ") == 0


def encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def in_uppercase(text: str) -> str:
    return re.sub(r"\\u[0-9a-f]{4}", lambda code: f"\\u{code[0][2:].upper()}", text)


FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "JSON": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    "ASCII JSON": lambda value: json.dumps(value)[1:-1],
    "JSON in JSON": lambda value: json.dumps(json.dumps(value)[1:-1])[1:-1],
    "JSON with uppercase digits": lambda value: in_uppercase(json.dumps(value)[1:-1]),
    "JSON in JSON with uppercase digits": lambda value: in_uppercase(json.dumps(json.dumps(value)[1:-1])[1:-1]),
    "JSON with escaped slashes": lambda value: json.dumps(value)[1:-1].replace("/", "\\/"),
    "Python": lambda value: repr(value)[1:-1],
    "URL path": urllib.parse.quote,
    "URL": lambda value: urllib.parse.quote(value, safe=""),
    "URL in lower case": lambda value: re.sub("%..", lambda code: code[0].lower(), urllib.parse.quote(value, safe="")),
    "form": urllib.parse.quote_plus,
    "base64": encoded,
    "base64 without padding": lambda value: encoded(value).rstrip("="),
    "base64 of URLs": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
}


@pytest.mark.promise("STO-2")
@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_found_in_every_form(form: str) -> None:
    written = FORMS[form](VALUE)
    assert KNOWN.text(f"<{written}> and {written}.") == "<«secret KEY»> and «secret KEY»."


@pytest.mark.promise("STO-2")
@given(
    st.text(st.characters(codec="utf-8"), min_size=6, max_size=40), st.sampled_from(list(FORMS)), st.text(max_size=5)
)
def test_every_form_of_every_secret_is_removed(value: str, form: str, around: str) -> None:
    if len(value.strip()) < 6:
        return
    written = FORMS[form](value)
    redacted = Redactor({"K": value}).text(f"{around}{written}{around}")
    assert "«secret K»" in redacted
    assert written not in redacted.replace("«secret K»", "")


@pytest.mark.promise("STO-2")
@pytest.mark.parametrize("user", ["", "u", "us", "use", "user"])
@pytest.mark.parametrize("value", ["secret", "secret1", "secret12"])
def test_a_secret_in_the_middle_of_base64_is_found(user: str, value: str) -> None:
    written = encoded(f"{user}:{value};and more")
    redacted = Redactor({"K": value}).text(written)
    assert "«secret K»" in redacted
    left = redacted.replace("«secret K»", "")
    assert len(written) - len(left) >= len(encoded(value).rstrip("=")) - 2


@pytest.mark.promise("STO-2")
def test_overlapping_values_are_both_removed() -> None:
    redactor = Redactor({"A": "abcdefXYZ", "B": "XYZ12345", "C": "abcdef", "D": "ababab"})
    assert redactor.text("-abcdefXYZ12345-") == "-«secret A»-"
    assert redactor.text("-abcdef-") == "-«secret C»-"
    assert redactor.text("-abababababab-") == "-«secret D»-"
    assert Redactor({"E": "abababa"}).text("-abababaab-abababababa-") == "-«secret E»ab-«secret E»-"
    assert redactor.text("XYZ12345XYZ12345") == "«secret B»«secret B»"


@pytest.mark.promise("STO-2")
@given(st.lists(st.text("ab", min_size=6, max_size=9), min_size=1, max_size=3), st.text("abc", max_size=60))
def test_only_secrets_are_removed(values: list[str], text: str) -> None:
    hidden = [False] * len(text)
    for value in values:
        for start in range(len(text)):
            if text.startswith(value, start):
                hidden[start : start + len(value)] = [True] * len(value)
    expected = "".join(character for character, is_hidden in zip(text, hidden, strict=True) if not is_hidden)
    redacted = Redactor(dict(zip("XYZ", values, strict=False))).text(text)
    for name in "XYZ":
        redacted = redacted.replace(f"«secret {name}»", "")
    assert redacted == expected


@pytest.mark.promise("STO-2")
def test_each_line_of_a_long_secret_is_found_alone_but_not_its_frame() -> None:
    redactor = Redactor({"PEM": "-----BEGIN KEY-----\nMIIEvQIBADANBg\nqhkiG9w0BAQEFA\n-----END KEY-----\n"})
    assert redactor.text("line MIIEvQIBADANBg") == "line «secret PEM»"
    assert redactor.text("-----BEGIN KEY-----") == "-----BEGIN KEY-----"


@pytest.mark.promise("STO-2")
def test_short_values_and_no_values_change_nothing() -> None:
    assert Redactor({"K": "12345", "L": "     "}).text("12345      ") == "12345      "
    assert Redactor({}).text("text") == "text"
    value: JsonValue = {"a": [1, "text"]}
    assert Redactor({}).value(value) is value
    assert KNOWN.value(value) is value


@pytest.mark.promise("STO-2")
def test_texts_keys_and_whole_numbers_of_a_value_are_redacted() -> None:
    value: JsonValue = {
        "a": ["0123456789", {VALUE: 1, f"x{VALUE}": None}],
        "n": [12345678, 123456789, 12345678.0, True],
        "0123456789": 1,
        "«secret OTHER»": 2,
    }
    before = json.dumps(value)
    redactor = Redactor({"KEY": VALUE, "OTHER": "0123456789", "PIN": "12345678"})
    assert redactor.value(value) == {
        "a": ["«secret OTHER»", {"«secret KEY»": 1, "x«secret KEY»": None}],
        "n": ["«secret PIN»", 123456789, 12345678.0, True],
        "«secret OTHER» 2": 1,
        "«secret OTHER»": 2,
    }
    assert json.dumps(value) == before


@pytest.mark.promise("STO-2")
def test_a_value_may_be_nested_at_any_depth() -> None:
    deep: JsonValue = VALUE
    for _ in range(50_000):
        deep = [deep]
    redacted = KNOWN.value(deep)
    while isinstance(redacted, list):
        redacted = redacted[0]
    assert redacted == "«secret KEY»"


@pytest.mark.slow
@pytest.mark.promise("STO-2")
@pytest.mark.parametrize("piece", ["abcdefgh", "abcdefgh ", "a", "-", "abcdefg"])
def test_a_long_text_full_of_secrets_or_beginnings_of_secrets_is_redacted(piece: str) -> None:
    text = piece * (5_000_000 // len(piece))
    redactor = Redactor({"A": "a" * 50, "B": "abcdefgh", "C": "-" * 8})
    redacted = redactor.text(text)
    assert not any(form in redacted for form in ("a" * 50, "abcdefgh", "-" * 8))


def test_a_redactor_shows_no_value() -> None:
    assert repr(KNOWN) == "<Redactor of 2 secrets>"


@pytest.mark.promise("CFG-3")
@pytest.mark.parametrize(
    "name",
    ["api_key", "apiKey", "APIKey", "GITHUB_TOKEN", "db-password", "passwd", "pass", "authtoken", "Cookie", "keys"],
)
def test_a_name_that_suggests_a_secret_is_recognized(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.promise("CFG-3")
@pytest.mark.parametrize(
    "name", ["base_url", "path", "author", "timeout", "compass", "host", "passage", "", "tokenizer"]
)
def test_a_name_that_suggests_no_secret_is_not_recognized(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.promise("STO-2")
@pytest.mark.parametrize("text", ["[" * 1_000_000, "https://" * 100_000, "@" + "a:" * 500_000])
def test_long_texts_without_credentials_are_searched_in_linear_time(text: str) -> None:
    assert credentials(text, is_proxy=True) == ()


def test_the_credentials_of_a_url_that_follows_another_one_are_found() -> None:
    assert "pw" in credentials("mail a@http://user:pw@example.org")
