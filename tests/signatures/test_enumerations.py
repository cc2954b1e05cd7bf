"""Values of enumerations, compared with those that pydantic accepts."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter, ValidationError

from pegboard.discovery import read
from pegboard.models import ToolSpec

HEAD = """
import enum
from enum import Enum, Flag, IntEnum, IntFlag, StrEnum, auto
from typing import Literal
"""


def tool(head: str, annotation: str = "E") -> ToolSpec:
    """Return a tool whose only parameter `a` has this annotation."""
    (spec,), _ = read(f'{HEAD}{head}\ndef f(*, a: {annotation}):\n    """Do it."""\n', "/packs/sample.py")
    return spec


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    ("head", "offered"),
    [
        ("class E(str, Enum):\n    A = auto()\n    B = auto()", ["1", "2"]),
        ("class E(str, Enum):\n    A = 1\n    B = 'b'", ["1", "b"]),
        ("class E(int, Enum):\n    A = auto()\n    B = 7", [1, 7]),
        ("class E(float, Enum):\n    A = auto()\n    B = 2", [1, 2]),
        ("class E(StrEnum):\n    A = auto()\n    B = 'x'", ["a", "x"]),
        ("class Base(str, Enum):\n    pass\nclass E(Base):\n    A = auto()\n    B = auto()", ["1", "2"]),
        ("class E(str, Enum):\n    A: str = 'a'\n    B = 'x'\n    C: str", ["a", "x"]),
        ("class E(Enum):\n    A: int = auto()\n    B: int = 7", [1, 7]),
        ("E = Enum('E', 'A B', start=5, module=__name__)", [5, 6]),
        ("E = Enum('E', ['A', 'B'], type=str)", ["1", "2"]),
        ("E = Enum('E', {'A': '1', 'B': 2}, type=int)", [1, 2]),
        ("E = Enum('E', {'A': 'a', 'B': 'x'}, type=str, start=7)", ["a", "x"]),
        ("class E(Flag):\n    A = auto()\n    B = auto()", [0, 1, 2, 3]),
        ("class E(IntFlag):\n    A = 1\n    B = 4\n    C = 2", [0, 3, 7]),
    ],
)
def test_the_offered_values_are_those_that_the_enumeration_accepts(head: str, offered: list[object]) -> None:
    spec = tool(head)
    names: dict[str, Any] = {}
    exec(compile(HEAD + head, "sample", "exec", dont_inherit=True), names)
    adapter: TypeAdapter[Any] = TypeAdapter(names["E"])
    validator = Draft202012Validator(spec.input_schema)
    for value in [*range(-1, 9), "1", "2", "a", "b", "x", "A", *offered]:
        try:
            adapter.validate_python(value)
            is_accepted = True
        except ValidationError:
            is_accepted = False
        if value in offered:
            assert is_accepted, value
            assert validator.is_valid({"a": value}), value
        elif not is_accepted:
            assert not validator.is_valid({"a": value}), value
    assert spec.problems == ()


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    ("head", "annotation"),
    [
        ("class E(Enum):\n    A = (1, 2)\n    B = 'b'", "E"),
        ("class E(Enum):\n    A = 1\n    def __new__(cls, value):\n        ...", "E"),
        (
            "class Base(str, Enum):\n    def _generate_next_value_(name, *more): ...\nclass E(Base):\n    A = auto()",
            "E",
        ),
        ("class E(Enum):\n    A = 'a'", "Literal[E.A]"),
        ("import decimal\nE = Enum('E', 'A B', type=decimal.Decimal)", "E"),
        ("E = Enum('E', 'A B', start=len('ab'))", "E"),
    ],
)
def test_values_that_are_unknown_or_cannot_be_passed_are_a_problem(head: str, annotation: str) -> None:
    spec = tool(head, annotation)
    assert spec.input_schema["properties"] == {"a": {}}
    assert len(spec.problems) == 1


@pytest.mark.promise("DSC-4")
def test_a_rule_for_generated_values_does_not_concern_written_ones() -> None:
    spec = tool("class E(Enum):\n    A = 'x'\n    def _generate_next_value_(name, *more): ...")
    assert spec.input_schema["properties"] == {"a": {"const": "x", "type": "string"}}
    assert spec.problems == ()
