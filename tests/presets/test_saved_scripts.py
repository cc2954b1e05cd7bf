"""Saved scripts: one bash file each, confined to their folder."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import SavedScriptError
from pegboard.presets import SavedScripts
from pegboard.runtime import Runtime

pytestmark = pytest.mark.promise("STO-3")


@pytest.fixture
def scripts(tmp_path: Path) -> SavedScripts:
    return SavedScripts(tmp_path / "scripts")


def names(scripts: SavedScripts) -> list[str]:
    """Return the names of all scripts."""
    return [script.name for script in scripts.list()]


def test_a_script_is_saved_listed_read_renamed_and_deleted(scripts: SavedScripts, tmp_path: Path) -> None:
    assert scripts.list() == ()
    scripts.write(" late orders ", "echo 1\n")
    scripts.write("late orders.sh", "echo 2\n")
    scripts.write("Überfällig", "echo 3\n")
    file = tmp_path / "scripts" / "late orders.sh"
    assert file.read_text() == "echo 2\n"
    assert file.stat().st_mode & 0o077 == 0, "it may hold secrets"
    assert names(scripts) == ["late orders", "Überfällig"]
    assert abs((datetime.now(UTC) - scripts.list()[0].changed).total_seconds()) < 600

    scripts.rename("late orders", "early orders")
    scripts.rename("U\u0308berfällig", "überfällig")
    assert names(scripts) == ["early orders", "überfällig"]
    assert scripts.read("early orders.sh") == "echo 2\n"
    scripts.delete("early orders")
    assert [path.name for path in (tmp_path / "scripts").iterdir()] == ["überfällig.sh"]


def test_a_script_is_renamed_where_the_file_system_has_no_hard_links(
    scripts: SavedScripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", fail)
    scripts.write("old", "echo 1\n")
    scripts.rename("old", "new")
    assert (names(scripts), scripts.read("new")) == (["new"], "echo 1\n")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40).filter(lambda text: text[:1] != "\ufeff"))
def test_any_text_is_read_back_unchanged(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    scripts = SavedScripts(tmp_path_factory.getbasetemp() / "any text")
    scripts.write("it", text)
    assert scripts.read("it") == text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "Enter a name"),
        (" .sh", "Enter a name"),
        ("../it", "contains '/'"),
        ("/etc/it", "contains '/'"),
        ("a\\b", r"contains '\\\\'"),
        ("C:it", "contains ':'"),
        ("new\nline", r"contains '\\n'"),
        ("\x1b[31m", "contains"),
        ("\ud800", "contains"),
        ("a*", "contains"),
        (".hidden", "start with a dot"),
        ("..", "start with a dot"),
        ("-rf", "start with a dot or a dash"),
        ("it.", "end with a dot"),
        ("con", "Windows"),
        ("Lpt1.old", "Windows"),
        ("x" * 300, "too long"),
        ("ONE", "`one` already exists; the names differ only"),
    ],
)
def test_a_name_that_is_invalid_on_some_system_is_rejected_with_a_reason(
    scripts: SavedScripts, tmp_path: Path, name: str, words: str
) -> None:
    scripts.write("one", "1")
    scripts.write("two", "2")
    with pytest.raises(SavedScriptError, match=words):
        scripts.write(name, "3")
    with pytest.raises(SavedScriptError, match=words):
        scripts.rename("two", name)
    assert {path.name: path.read_text() for path in tmp_path.rglob("*.*")} == {"one.sh": "1", "two.sh": "2"}


@pytest.mark.parametrize("name", ["nobody", "../outside", "/etc/passwd", "..", ""])
def test_an_unknown_name_is_reported_with_the_known_ones(scripts: SavedScripts, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside.sh").write_text("hidden")
    scripts.write("one", "1")
    for act in (scripts.read, scripts.delete, lambda name: scripts.rename(name, "new")):
        with pytest.raises(SavedScriptError, match=r"No saved script is named .*\. Saved scripts: one\.$"):
            act(name)


def test_renaming_never_replaces_another_script(scripts: SavedScripts) -> None:
    scripts.write("one", "1")
    scripts.write("two", "2")
    scripts.rename("one", "one.sh")
    with pytest.raises(SavedScriptError, match="A script named `two` already exists"):
        scripts.rename("one", "two")
    assert (scripts.read("one"), scripts.read("two")) == ("1", "2")


def test_links_pipes_and_folders_are_neither_read_nor_written(scripts: SavedScripts, tmp_path: Path) -> None:
    scripts.write("one", "1")
    outside = tmp_path / "outside"
    outside.write_text("mine")
    folder = tmp_path / "scripts"
    (folder / "link.sh").symlink_to(outside)
    (folder / "folder.sh").mkdir()
    os.mkfifo(folder / "pipe.sh")
    assert names(scripts) == ["one"]
    with pytest.raises(SavedScriptError, match="No saved script"):
        scripts.read("link")
    with pytest.raises(SavedScriptError, match="symbolic link"):
        scripts.write("link", "2")
    with pytest.raises(SavedScriptError, match="can't be written"):
        scripts.write("folder", "2")
    for target in ("link", "folder", "pipe"):
        with pytest.raises(SavedScriptError, match=r"already|link"):
            scripts.rename("one", target)
    assert outside.read_text() == "mine"


def test_unreadable_files_and_folders_are_reported(scripts: SavedScripts, tmp_path: Path) -> None:
    scripts.write("it", "")
    (tmp_path / "scripts" / "it.sh").write_bytes(b"\xff")
    with pytest.raises(SavedScriptError, match="is not UTF-8"):
        scripts.read("it")
    with pytest.raises(SavedScriptError, match="lone surrogate"):
        scripts.write("it", "\ud800")
    (tmp_path / "file").touch()
    elsewhere = SavedScripts(tmp_path / "file" / "scripts")
    with pytest.raises(SavedScriptError, match="can't be read"):
        elsewhere.list()
    with pytest.raises(SavedScriptError, match="can't be"):
        elsewhere.write("it", "")


WRITER = """
import sys
from pathlib import Path
from pegboard.presets import SavedScripts
scripts = SavedScripts(Path(sys.argv[1]))
for round in range(40):
    scripts.write("shared", sys.argv[2] * 20_000)
    assert len(set(scripts.read("shared"))) == 1
    scripts.list()
"""


def test_processes_that_write_concurrently_leave_complete_scripts(scripts: SavedScripts, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path / "scripts")]
    writers = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in "abc"]
    for writer in writers:
        _, told = writer.communicate(timeout=60)
        assert (writer.returncode, told) == (0, "")
    assert [file.name for file in (tmp_path / "scripts").iterdir()] == ["shared.sh"]


def test_the_runtime_keeps_them_in_the_data_folder(home: Path, open_runtime: Callable[..., Runtime]) -> None:
    open_runtime().scripts.saved.write("it", "echo")
    assert (home / "data" / "scripts" / "it.sh").read_text() == "echo"
