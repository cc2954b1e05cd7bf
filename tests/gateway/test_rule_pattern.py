"""Patterns of rules as regular expressions."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.gateway.rule_match import ArgumentValue, Folders, value_matches
from pegboard.gateway.rule_pattern import expression

_TOKENS = re.compile(r"(\[[*?\[]\]|\*\*/|\*\*|\*|\?)")


def simple(pattern: str, *, crosses: bool) -> str:
    """Return the expression that tries every length of each wildcard."""
    one = "." if crosses else "[^/]"
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": f"{one}*", "?": one, "[*]": "[*]", "[?]": "[?]", "[[]": "\\["}
    return "".join(signs.get(part) or re.escape(part) for part in _TOKENS.split(pattern))


@pytest.mark.promise("ASK-7", "SEC-4")
@settings(max_examples=400, deadline=None)
@given(
    tokens=st.lists(st.sampled_from(["a", "b", "/", "*", "**", "**/", "?", "[*]", "\n", "A"]), max_size=9),
    texts=st.lists(st.text("abA/*\n", max_size=12), min_size=20, max_size=40),
    crosses=st.booleans(),
    prefix=st.sampled_from(["", "/a/"]),
)
def test_a_pattern_matches_what_the_search_of_every_length_matches(
    tokens: list[str], texts: list[str], crosses: bool, prefix: str
) -> None:
    pattern = "".join(tokens)
    for flags in (re.DOTALL, re.DOTALL | re.IGNORECASE):
        quick, slow = (re.compile(prefix + one(pattern, crosses=crosses), flags) for one in (expression, simple))
        for text in texts:
            for one in (text, prefix + text):
                assert (quick.fullmatch(one) is None) == (slow.fullmatch(one) is None), (pattern, one)


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("*rm*-rf*", "rm " * 400_000),
        ("*git*push*force*", "git push " * 100_000),
        ("**/a/**/b/**/c", "a/b/" * 20_000),
    ],
    ids=["two words", "three words", "folders"],
)
def test_a_long_text_that_does_not_match_is_not_searched_again_from_every_occurrence(pattern: str, text: str) -> None:
    value = ArgumentValue("command", text, ({"type": "string"},))
    assert not value_matches(pattern, value, Folders(("/",)), strict=False)
