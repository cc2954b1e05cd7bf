"""JSON Pointers (RFC 6901)."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from pegboard.data.pointer import pointer, resolve, steps


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ((), ""),
        (("",), "/"),
        (("a", 0), "/a/0"),
        (("a/b", "m~n"), "/a~1b/m~0n"),
        (("~1", "~0", "~01"), "/~01/~00/~001"),
    ],
)
def test_keys_are_escaped_and_unescaped(keys: tuple[str | int, ...], path: str) -> None:
    assert pointer(*keys) == path
    assert steps(path) == [str(key) for key in keys]


def test_a_pointer_finds_a_value_or_nothing() -> None:
    value: JsonValue = {"~1": [{"a/b": None}], "0": "x"}
    assert resolve(value, "") == (value,)
    assert resolve(value, "/~01/0/a~1b") == (None,)
    assert resolve(value, "/0") == ("x",)
    assert [resolve(value, path) for path in ("/~1", "/~01/1", "/~01/-1", "/0/x", "/~01/0/a")] == [(), (), (), (), ()]
