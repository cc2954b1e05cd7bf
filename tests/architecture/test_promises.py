"""Promises and the tests that verify them."""

from __future__ import annotations

import ast
import runpy
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
PROMISES: dict[str, str] = runpy.run_path(str(TESTS / "promises.py"))["PROMISES"]


@cache
def _ids_named_by_tests() -> dict[str, str]:
    named: dict[str, str] = {}
    for file in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.promise":
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), (
                        f"{file.name}:{node.lineno}: a promise is named by a literal"
                    )
                    named.setdefault(str(argument.value), f"{file.name}:{node.lineno}")
    return named


def test_every_promise_has_a_test() -> None:
    assert set(PROMISES) - set(_ids_named_by_tests()) == set()


def test_no_test_names_an_unknown_promise() -> None:
    unknown = {id_: where for id_, where in _ids_named_by_tests().items() if id_ not in PROMISES}
    assert unknown == {}
