"""Journals that don't belong to the results beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import commands
import pytest

pytestmark = pytest.mark.promise("BAT-1")

Command = Callable[..., commands.Done]

_ROWS = "".join(json.dumps({"number": number}) + "\n" for number in range(2, 42, 2))
_LINE = ("rows.square", "--from", "rows.jsonl", "--out", "out.jsonl")


@pytest.fixture
def finished(pegboard: Command, tmp_path: Path) -> Path:
    """Run a batch of a file, and return its results."""
    (tmp_path / "rows.jsonl").write_text(_ROWS)
    assert pegboard(*_LINE).returncode == 0
    return tmp_path / "out.jsonl"


def test_results_of_a_batch_from_stdin_are_not_continued_with_an_earlier_journal(
    pegboard: Command, finished: Path
) -> None:
    wide = "".join(json.dumps({"number": 10**number}) + "\n" for number in range(3, 40))
    assert pegboard("rows.square", "--from", "-", "--out", "out.jsonl", "--force", stdin=wide).returncode == 0
    before = finished.read_bytes()
    done = pegboard(*_LINE, "--resume")
    assert (done.returncode, "There is nothing to resume" in done.stderr) == (2, True)
    assert finished.read_bytes() == before


def test_a_batch_from_stdin_keeps_a_file_that_only_has_the_name_of_the_journal(
    pegboard: Command, tmp_path: Path
) -> None:
    journal = tmp_path / "out.jsonl.journal"
    journal.write_text("my diary\n")
    done = pegboard("rows.square", "--from", "-", "--out", "out.jsonl", "--force", stdin=_ROWS)
    assert (done.returncode, journal.read_text()) == (0, "my diary\n")


def test_a_resume_with_results_that_are_longer_than_expected_changes_no_file(pegboard: Command, finished: Path) -> None:
    finished.write_bytes(b" " + finished.read_bytes())
    check_refused(pegboard, finished, "has other results than its journal recorded")


def test_a_resume_with_a_result_too_many_changes_no_file(pegboard: Command, finished: Path) -> None:
    journal = finished.with_name("out.jsonl.journal")
    # A killed process leaves a result that only the results have.
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]))
    lines = finished.read_bytes().splitlines(keepends=True)
    finished.write_bytes(b"".join([*lines, lines[-1]]))
    check_refused(pegboard, finished, "that its journal doesn't expect")


def check_refused(pegboard: Command, out: Path, reason: str) -> None:
    """Resume, and check that it fails and changes no file."""
    files = out, out.with_name("out.jsonl.journal")
    before = [file.read_bytes() for file in files]
    done = pegboard(*_LINE, "--resume")
    assert (done.returncode, reason in done.stderr) == (2, True), done.stderr
    assert [file.read_bytes() for file in files] == before
