"""Discovery with all kinds of Python files: valid tools or problems, and never an exception."""

from __future__ import annotations

import ast
import importlib.metadata
import random
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pegboard.discovery import read, scan
from pegboard.models import Problem, ToolSpec

STDLIB = Path(sysconfig.get_path("stdlib"))
INSTALLED = Path(sysconfig.get_path("purelib"))

FUZZ = settings(
    max_examples=80,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def folders_with_code(root: Path) -> list[Path]:
    return sorted({path.parent for path in root.rglob("*.py") if "site-packages" not in path.relative_to(root).parts})


def check(specs: Sequence[ToolSpec], problems: Sequence[Problem]) -> None:
    """Check that specs match their model, have a JSON form, and contain valid schemas."""
    known = set(problems)
    for spec in specs:
        assert ToolSpec.model_validate_json(spec.model_dump_json()) == spec
        assert "\n" not in spec.signature
        Draft202012Validator.check_schema(spec.input_schema)
        if spec.output_schema is not None:
            Draft202012Validator.check_schema(spec.output_schema)
        assert known.issuperset(spec.problems)
    for problem in problems:
        assert problem.message
        assert problem.file
        problem.model_dump_json()


@pytest.mark.promise("DSC-7")
@pytest.mark.parametrize("part", [1, 0, *range(2, 8)])  # 0, with the largest folder, is left out without --every-case
def test_the_standard_library_yields_tools_or_problems(part: int, tmp_path: Path) -> None:
    folders = folders_with_code(STDLIB)[part::8]
    specs, problems = scan(folders, index=tmp_path)
    assert specs
    check(specs, problems)


@pytest.mark.promise("DSC-7")
def test_installed_libraries_yield_tools_or_problems() -> None:
    folders = folders_with_code(INSTALLED)
    chosen = random.Random(len(list(importlib.metadata.distributions()))).sample(folders, min(len(folders), 30))
    specs, problems = scan(chosen)
    assert specs
    check(specs, problems)


def statements() -> Iterator[str]:
    """Return the statements of some modules with many kinds of syntax."""
    for name in ("typing", "dataclasses", "functools", "enum", "contextlib", "statistics", "shutil"):
        source = (STDLIB / f"{name}.py").read_text()
        lines = source.splitlines()
        for node in ast.parse(source).body:
            yield "\n".join(lines[node.lineno - 1 : node.end_lineno])


STATEMENTS = list(statements())


@pytest.mark.promise("DSC-7")
@FUZZ
@given(st.data())
def test_sources_with_lines_lost_doubled_and_swapped_are_read(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(STATEMENTS) - 1), min_size=1, max_size=8))
    lines = [line for number in chosen for line in STATEMENTS[number].splitlines()]
    for _ in range(data.draw(st.integers(0, 3))):
        here, there = data.draw(st.integers(0, len(lines) - 1)), data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(["lose", "double", "swap", "cut"])):
            case "lose":
                lines[here] = ""
            case "double":
                lines.insert(there, lines[here])
            case "swap":
                lines[here], lines[there] = lines[there], lines[here]
            case _:
                lines[here] = lines[here][: data.draw(st.integers(0, len(lines[here])))]
    check(*read("\n".join(lines), "/packs/sample.py"))


@pytest.mark.promise("DSC-7")
@FUZZ
@given(st.binary(max_size=200) | st.text(max_size=200))
def test_any_bytes_and_any_text_are_read(source: bytes | str) -> None:
    check(*read(source, "/packs/sample.py"))


NAMES = st.sampled_from(
    [
        "int",
        "str",
        "list",
        "dict",
        "tuple",
        "set",
        "None",
        "Any",
        "Optional",
        "Union",
        "Literal",
        "Annotated",
        "Callable",
        "Field",
        "Ge",
        "Len",
        "Color",
        "Model",
        "Data",
        "Alias",
        "Loop",
        "NewType",
        "TypedDict",
        "Required",
        "Final",
        "ClassVar",
        "Unpack",
        "deque",
        "Path",
        "Decimal",
        "T",
        "missing",
        "t.Optional",
        "t.missing",
        "enum.Enum",
    ]
)
TYPES = st.recursive(
    NAMES | st.sampled_from(["'int'", "'list[Model]'", "'('", "5", "-1", "...", "True", "b'x'", "f'{x}'", "''"]),
    lambda inner: st.one_of(
        st.builds("{}[{}]".format, NAMES, inner),
        st.builds("{}[{}, {}]".format, NAMES, inner, inner),
        st.builds("({} | {})".format, inner, inner),
        st.builds("{}({}, ge={}, default={}, description={})".format, NAMES, inner, inner, inner, inner),
        st.builds("[{}, *{}]".format, inner, inner),
        st.builds("{{{}: {}}}".format, inner, inner),
        st.builds("(lambda: {})()".format, inner),
    ),
    max_leaves=12,
)
HEAD = """
import enum
import typing as t
from collections import deque
from decimal import Decimal
from pathlib import Path
from typing import *
from dataclasses import dataclass, field
from annotated_types import Ge, Len
from pydantic import BaseModel, Field
from pegboard.sdk import aliases, hints
T = TypeVar("T")
Loop = "list[Loop]"
"""


@pytest.mark.promise("DSC-4", "DSC-7")
@FUZZ
@given(st.lists(TYPES, min_size=9, max_size=9))
def test_any_annotation_anywhere_yields_a_tool(types: list[str]) -> None:
    a, b, c, d, e, f, g, h, i = types
    source = f'''{HEAD}
Alias = {a}
class Color(enum.Enum):
    ONE = {b}
    TWO = 2
class Model(BaseModel):
    x: {c} = {d}
    y: {e} = Field({f}, ge={g})
@dataclass
class Data(Model):
    z: {h} = field(default={i})
@hints(timeout={b}, read_only={c})
@aliases({d}, x={e})
def f(*, x: {a}, y: {b} = {c}, m: Model = {d}, n: Data | None = None, k: Color = Color.ONE, **more: {e}) -> {f}:
    """Do it."""
'''
    try:
        ast.parse(source)
    except SyntaxError:
        return
    specs, problems = read(source, "/packs/sample.py")
    assert [spec.name for spec in specs] == ["sample.f"]
    check(specs, problems)


@pytest.mark.promise("DSC-3")
@FUZZ
@given(st.text(alphabet="aN:-* \n\t(),[]|Args:Returns:Parameters:param x:", max_size=300))
def test_any_docstring_is_read(text: str) -> None:
    check(*read(f"def f(*, a: int, N: str):\n    {('x' + text)!r}\n", "/packs/sample.py"))
