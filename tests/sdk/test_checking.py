"""The report on requirements, without importing the tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.sdk import check_deps

pytestmark = pytest.mark.promise("SDK-9", "SDK-15")

NEEDY = '''
from pegboard.sdk import requires_cli, requires_lib, requires_secret
raise SystemExit("this file is never run")

requires_secret("NEEDY_KEY")

@requires_cli("needy", min_version="2", install="make needy")
def first():
    """Needs a program."""

@requires_lib("no_such_library.below")
@requires_cli("needy")
def second():
    """Needs a library too."""

@requires_cli("needy")
def _helper():
    """Is no tool."""
'''


@pytest.fixture(autouse=True)
def needy(script: Callable[..., None], program: Callable[[str, str], Path]) -> None:
    """Put a pack with many requirements on the path, and a program that is too old for it."""
    script(needy=NEEDY, frugal='def f():\n    """Needs nothing."""\n')
    program("needy", "echo needy 1.9")


def test_each_requirement_of_each_tool_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEEDY_KEY", "hidden value")
    rows = [row for row in check_deps() if row["tool"].startswith(("needy.", "frugal."))]
    assert [(row["tool"], row["kind"], row["name"], row["status"]) for row in rows] == [
        ("needy.first", "secret", "NEEDY_KEY", "ok"),
        ("needy.first", "cli", "needy", "outdated"),
        ("needy.second", "secret", "NEEDY_KEY", "ok"),
        ("needy.second", "lib", "no_such_library.below", "missing"),
        ("needy.second", "cli", "needy", "ok"),
    ]
    assert (rows[1]["version"], rows[1]["minVersion"], rows[1]["install"]) == ("1.9", "2", "make needy")
    assert rows[0]["path"] == "environment"
    assert "hidden value" not in str(rows)


def test_the_report_can_be_limited_to_a_tool_or_pack() -> None:
    assert {row["tool"] for row in check_deps(tool="needy")} == {"needy.first", "needy.second"}
    assert {row["tool"] for row in check_deps("needy.first")} == {"needy.first"}
    assert check_deps("frugal") == []


@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere", "^Pack not found: nowhere$"), ("needy.frist", "Did you mean needy.first"), ("", "^Pack not found: $")],
)
def test_an_unknown_tool_or_pack_is_an_error(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_deps(name)


def test_a_missing_secret_has_a_reason_and_an_instruction() -> None:
    [row] = [row for row in check_deps("needy.first") if row["kind"] == "secret"]
    assert (row["status"], row["error"]) == ("missing", "NEEDY_KEY is not set.")
    assert "NEEDY_KEY" in row["install"]
