"""The report over tools, before any of them was imported."""

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
    """Puts a pack on the path that needs much, and a program that is too old for it."""
    script(needy=NEEDY, frugal='def f():\n    """Needs nothing."""\n')
    program("needy", "echo needy 1.9")


def test_every_tool_has_a_row_for_each_thing_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_one_tool_or_one_pack_can_be_asked_for() -> None:
    assert {row["tool"] for row in check_deps(tool="needy")} == {"needy.first", "needy.second"}
    assert {row["tool"] for row in check_deps("needy.first")} == {"needy.first"}
    assert check_deps("frugal") == []


@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere", "^Pack not found: nowhere$"), ("needy.frist", "Did you mean needy.first"), ("", "^Pack not found: $")],
)
def test_what_is_not_there_can_not_be_asked_for(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_deps(name)


def test_a_secret_that_is_missing_says_why_and_how_to_set_it() -> None:
    [row] = [row for row in check_deps("needy.first") if row["kind"] == "secret"]
    assert (row["status"], row["error"]) == ("missing", "NEEDY_KEY is not set.")
    assert "NEEDY_KEY" in row["install"]
