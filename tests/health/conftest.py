"""Fixtures for health: tools with requirements, programs on a private PATH, and a report on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.discovery import read
from pegboard.health import Health
from pegboard.models import ToolSpec


@pytest.fixture
def tools() -> list[ToolSpec]:
    """Return the current tools, which a test may change."""
    return []


@pytest.fixture
def needs(tools: list[ToolSpec]) -> Callable[[str], None]:
    """Return a function that replaces the tools by lines such as `f: requires_cli("rg") requires_lib("yaml")`."""

    def make(text: str) -> None:
        lines = [line.strip().partition(":")[::2] for line in text.strip().splitlines()]
        functions = [
            "".join(f"@{said}\n" for said in above.split()) + f'def {name}():\n    """Needs things."""\n'
            for name, above in lines
        ]
        tools[:], problems = read("from pegboard.sdk import *\n" + "".join(functions), "/packs/needy.py")
        assert [problem for problem in problems if problem.severity == "error"] == []

    return make


@pytest.fixture
def secrets() -> dict[str, str]:
    """Return the sources of secrets by name."""
    return {}


@pytest.fixture
def health(tools: list[ToolSpec], secrets: dict[str, str], tmp_path: Path) -> Health:
    """Return the report on `tools`; its timeout is longer than that of a test."""

    def find_secret(name: str) -> tuple[str | None, str]:
        return (secrets[name], "") if name in secrets else (None, f"{name} is not set.")

    environ = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    return Health(lambda: tuple(tools), find_secret=find_secret, environ=environ, timeout=600)
