"""The line of a key is found in any TOML."""

from __future__ import annotations

import pytest

from pegboard.config.lines import key_lines


@pytest.mark.promise("CFG-1")
def test_keys_in_every_notation_have_a_line() -> None:
    text = '''# a comment with a = 1
plain = 1 # [not.a.table]
dotted . key = "x = 1"
"quoted.key" = 'y = [1'
[table]
inner = { a = 1, "b c" = [ { d = 1 } ] }
list = [
  # in between, ] is nothing
  "one", ["]"],
  """two
  three = 3""",
  { four = 4 },
]
literal = \'\'\'
five = 5
\'\'\'
[ table . "sub table" ]
key = 2020-01-01 00:00:00
[[items]]
name = 1
[items.detail]
x = 1
[[items]]
"\\u006eame" = 1
[[items.parts]]
y = 1
'''
    assert key_lines(text) == {
        "plain": 2,
        "dotted": 3,
        "dotted.key": 3,
        "quoted.key": 4,
        "table": 5,
        "table.inner": 6,
        "table.inner.a": 6,
        "table.inner.b c": 6,
        "table.inner.b c.0": 6,
        "table.inner.b c.0.d": 6,
        "table.list": 7,
        "table.list.0": 9,
        "table.list.1": 9,
        "table.list.1.0": 9,
        "table.list.2": 10,
        "table.list.3": 12,
        "table.list.3.four": 12,
        "table.literal": 14,
        "table.sub table": 17,
        "table.sub table.key": 18,
        "items": 19,
        "items.0": 19,
        "items.0.name": 20,
        "items.0.detail": 21,
        "items.0.detail.x": 22,
        "items.1": 23,
        "items.1.name": 24,
        "items.1.parts": 25,
        "items.1.parts.0": 25,
        "items.1.parts.0.y": 26,
    }
