"""Files and classes stay small, and a class name means one class."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
MOST_LINES = 500
MOST_METHODS = 50
MOST_LINES_OF_APP = 200
MOST_LINES_OF_RUNTIME = 300


@pytest.fixture(scope="module")
def texts() -> dict[Path, str]:
    """Return the text of each module."""
    return {file.relative_to(SOURCE): file.read_text("utf-8") for file in SOURCE.rglob("*.py")}


@pytest.fixture(scope="module")
def classes(texts: dict[Path, str]) -> list[tuple[Path, ast.ClassDef]]:
    """Return the classes at the top level of each module."""
    return [
        (file, node) for file, text in texts.items() for node in ast.parse(text).body if isinstance(node, ast.ClassDef)
    ]


def test_no_file_is_longer_than_500_lines(texts: dict[Path, str]) -> None:
    assert {str(file): n for file, text in texts.items() if (n := text.count("\n")) > MOST_LINES} == {}


def test_the_app_and_the_runtime_stay_short(texts: dict[Path, str]) -> None:
    assert texts[Path("pegboard/tui/app.py")].count("\n") <= MOST_LINES_OF_APP
    assert texts[Path("pegboard/runtime/runtime.py")].count("\n") <= MOST_LINES_OF_RUNTIME


def test_no_class_has_more_than_50_methods(classes: list[tuple[Path, ast.ClassDef]]) -> None:
    methods = {
        f"{file}: {node.name}": sum(isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) for one in node.body)
        for file, node in classes
    }
    assert methods
    assert {name: count for name, count in methods.items() if count > MOST_METHODS} == {}


def test_every_public_class_has_a_name_of_its_own(classes: list[tuple[Path, ast.ClassDef]]) -> None:
    names = Counter(node.name for _, node in classes if not node.name.startswith("_"))
    assert [name for name, count in names.items() if count > 1] == []
