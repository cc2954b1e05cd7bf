"""New files with safe names."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.results.new_file import write_new


def test_existing_files_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a talk.md").write_text("mine")
    files = [write_new(tmp_path, "a talk", ".md", f"text {number}") for number in range(2)]
    assert [file.name for file in files] == ["a talk (2).md", "a talk (3).md"]
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        "a talk.md": "mine",
        "a talk (2).md": "text 0",
        "a talk (3).md": "text 1",
    }


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("../../etc/passwd", "_.._etc_passwd.md"),
        (". . ", "session.md"),
        ("a\nb\x1b[2J\u202e", "a_b__2J_.md"),
        ("Größe: 5 €", "Größe_ 5 _.md"),
        ("é" * 300, "é" * 60 + ".md"),
        ("\ud800", "_.md"),
    ],
)
def test_any_name_becomes_valid_on_every_file_system(tmp_path: Path, name: str, file: str) -> None:
    assert write_new(tmp_path, name, ".md", "").name == file


def test_a_failed_write_leaves_no_file_behind(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_new(tmp_path / "none", "a", ".md", "text")
    (tmp_path / "a.md").mkdir()
    assert write_new(tmp_path, "a", ".md", "\ud800").read_text() == "\\ud800"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a (2).md", "a.md"]
