"""`pegboard trust` shows the settings of a folder, asks, and remembers the answer."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path

import commands
import pytest
import terminals


def pegboard(cwd: Path, *arguments: str) -> commands.Done:
    """Run a command."""
    return commands.pegboard(*arguments, cwd=cwd)


@pytest.fixture
def folder(home: Path, tmp_path: Path) -> Path:
    """Return a folder that restricts tools and sets a key."""
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / "pegboard.toml").write_text('[tools]\nallow = ["time.now"]\n[packs.x]\ntoken = "hunter2"\n')
    (tmp_path / "clone" / ".env").write_text("KEY=hunter2\n")
    return tmp_path / "clone"


@pytest.mark.promise("SEC-3")
def test_a_folder_is_reviewed_trusted_listed_and_removed(folder: Path, tmp_path: Path) -> None:
    done = pegboard(folder, "trust")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'tools.allow = ["time.now"]' in done.stderr
    assert "pass --yes" in done.stderr
    assert "hunter2" not in done.stderr
    assert pegboard(tmp_path, "trust", "clone", "--yes").returncode == 0
    assert json.loads(pegboard(tmp_path, "trust", "--list", "--json").stdout) == [str(folder)]
    shown = pegboard(folder, "config", "show").stdout
    assert f'tools.allow = ["time.now"]  # {folder}/pegboard.toml:2 (trusted folder)' in shown
    assert pegboard(tmp_path, "trust", "clone", "--remove").returncode == 0
    assert json.loads(pegboard(tmp_path, "trust", "--list", "--json").stdout) == []
    listed = pegboard(folder, "config", "show", "--json")
    rows = {(row["key"], row["status"]): row["value"] for row in json.loads(listed.stdout)}
    assert rows["tools.allow", "untrusted"] == ["time.now"]
    assert rows["tools.allow", "used"] is None
    assert "hunter2" not in listed.stdout + listed.stderr
    assert "Run `pegboard trust`" in listed.stderr


@pytest.mark.promise("SEC-3")
@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("y\x04\x04", 1)])
def test_on_a_terminal_only_yes_trusts(folder: Path, answer: str, code: int) -> None:
    with terminals.pegboard("trust", str(folder)) as terminal:
        terminal.read_until("Trust this folder? [y/N]")
        terminal.type(answer)
        assert terminal.read_all() == code, terminal.output
    assert (str(folder) in pegboard(folder, "trust", "--list").stdout) is (code == 0)


@pytest.mark.promise("SEC-3")
def test_a_line_typed_before_the_question_does_not_trust(folder: Path) -> None:
    ahead = "import os, sys; os.write(1, b'ready'); sys.stdin.buffer.raw.read(1); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", ahead, sys.executable, "-m", "pegboard", "trust", str(folder)]
    with closing(terminals.Terminal(command, None, (100, 30))) as terminal:
        terminal.read_until("ready")
        terminal.type("\ny\n")
        terminal.read_until("Trust this folder? [y/N]")
        terminal.type("n\n")
        assert terminal.read_all() == 1, terminal.output
    assert pegboard(folder, "trust", "--list").stdout.count(str(folder)) == 0


@pytest.mark.promise("SEC-3")
def test_what_cannot_be_trusted_is_refused_with_a_reason(folder: Path, tmp_path: Path) -> None:
    assert "is not a folder" in pegboard(tmp_path, "trust", "nowhere", "--yes").stderr
    (folder / "pegboard.toml").write_text("[tools\n")
    broken = pegboard(folder, "trust", "--yes")
    assert (broken.returncode, "can't be reviewed" in broken.stderr) == (1, True)
    assert "No tool runs" not in broken.stdout
    assert pegboard(folder, "tools", "invoke", "fs.list_dir", "--arg", "path=.").returncode == 0
    (tmp_path / "empty").mkdir()
    empty = pegboard(tmp_path, "trust", "empty", "--yes")
    assert (empty.returncode, "contains no pegboard.toml" in empty.stderr) == (0, True)
    assert "To keep checks here, create an empty pegboard.toml first." in empty.stderr
    (tmp_path / "empty" / "pegboard.toml").touch()
    assert pegboard(tmp_path, "trust", "empty", "--yes").returncode == 0
    assert "To keep checks" not in pegboard(tmp_path, "trust", "empty", "--yes").stderr


@pytest.mark.promise("CFG-3")
def test_config_show_reports_an_unknown_theme(home: Path, tmp_path: Path) -> None:
    (home / "config.toml").write_text('[ui]\ntheme = "pegboard-drak"\n')
    done = pegboard(tmp_path, "config", "show")
    assert f"{home / 'config.toml'}:2: Unknown theme `pegboard-drak`. Did you mean `pegboard-dark`?" in done.stderr
