"""What the tests of health share: tools that need things, programs made for the test, and a report over them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.discovery import read
from pegboard.health import Health
from pegboard.models import ToolSpec


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a shell script of the given name into the only folder of the PATH besides the system's; gives its file."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def write(name: str, source: str) -> Path:
        file = folder / name
        file.write_text("#!/bin/sh\n" + textwrap.dedent(source), encoding="utf-8")
        file.chmod(0o755)
        return file

    return write


@pytest.fixture
def tools() -> list[ToolSpec]:
    """The tools that there are, to be changed by the test."""
    return []


@pytest.fixture
def needs(tools: list[ToolSpec]) -> Callable[[str], None]:
    """Makes tools of lines such as `f: requires_cli("rg") requires_lib("yaml")`, in the place of those before."""

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
    """Where secrets come from, by their names."""
    return {}


@pytest.fixture
def health(tools: list[ToolSpec], secrets: dict[str, str], tmp_path: Path) -> Health:
    """The report over `tools`; programs have longer to answer than a test may take."""

    def find_secret(name: str) -> tuple[str | None, str]:
        return (secrets[name], "") if name in secrets else (None, f"{name} is not set.")

    environ = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    return Health(lambda: tuple(tools), find_secret=find_secret, environ=environ, timeout=600)
