"""Fixtures of discovery's tests."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.discovery import read
from pegboard.models import ToolSpec


@pytest.fixture
def tool() -> Callable[[str], ToolSpec]:
    """Return a function that reads a source with exactly one tool and returns the tool."""

    def of(source: str) -> ToolSpec:
        specs, _ = read(textwrap.dedent(source), "/packs/sample.py")
        assert len(specs) == 1, specs
        return specs[0]

    return of


@pytest.fixture
def names() -> Callable[[str], list[str]]:
    """Return a function that reads a source and returns the names of its tools."""

    def of(source: str) -> list[str]:
        specs, _ = read(textwrap.dedent(source), "/packs/sample.py")
        return [spec.name for spec in specs]

    return of


@pytest.fixture
def packs(tmp_path: Path) -> Path:
    """Create a packs folder with two packs, `one` and `two`, each with a tool `run`."""
    folder = tmp_path / "packs"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.py").write_text(f'def run(*, a: int):\n    """Run {name}."""\n')
    return folder
