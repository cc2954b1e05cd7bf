"""`pegboard new` writes a pack and a test that work as they are, and never over anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.promise("CLI-4")


@pytest.fixture
def run(tmp_path: Path) -> Command:
    """Runs a module of this Python in the temporary folder."""

    def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=100, check=False
        )

    return run_module


@pytest.fixture
def new(run: Command) -> Command:
    """Runs `pegboard new`."""
    return lambda *arguments: run("pegboard", "new", *arguments)


def test_both_files_are_written_and_named_and_the_next_commands_are_told(new: Command, tmp_path: Path) -> None:
    done = new("room")
    assert (done.returncode, done.stdout) == (0, "room.py\ntest_room.py\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["room.py", "test_room.py"]
    for line in ("pegboard --packs . tools invoke room.largest --data", "pytest test_room.py"):
        assert line in done.stderr


@pytest.mark.promise("SDK-15")
def test_the_written_test_passes(new: Command, run: Command) -> None:
    new("room")
    done = run("pytest", "-p", "no:cacheprovider", "test_room.py")
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


@pytest.mark.parametrize(
    "check",
    [
        ("ruff", "check", "--isolated", "--no-cache", "."),
        ("ruff", "format", "--isolated", "--no-cache", "--line-length", "120", "--check", "."),
        ("mypy", "--strict", "--cache-dir", "cache", "room.py", "test_room.py"),
    ],
    ids=["lint", "format", "types"],
)
def test_both_files_are_clean(new: Command, run: Command, check: tuple[str, ...]) -> None:
    new("room")
    done = run(*check)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.promise("DSC-2", "SDK-12")
def test_the_written_pack_is_found_without_a_problem_and_runs(new: Command, run: Command, tmp_path: Path) -> None:
    new("room")
    (tmp_path / "large").write_bytes(b"x" * 100_000)
    listed = run("pegboard", "--packs", ".", "tools", "list", "--json")
    found = {tool["name"]: tool for tool in json.loads(listed.stdout) if "room" in tool["pack"]}
    assert (listed.stderr, set(found)) == ("", {"room.largest", "room.usage"})
    assert {(tool["state"], *tool["problems"]) for tool in found.values()} == {("ready",)}
    invoked = run("pegboard", "--packs", ".", "tools", "invoke", "room.largest", "--arg", "limit=1", "--data")
    assert json.loads(invoked.stdout) == [{"path": "large", "size": 100_000}]
    assert "looked at 3 files" in invoked.stderr
    measured = run("pegboard", "--packs", ".", "tools", "invoke", "room.usage", "--data")
    assert int(measured.stdout) >= 100_000


def test_a_folder_is_made_where_it_is_asked_for(new: Command, tmp_path: Path) -> None:
    done = new("room", "--dir", "my packs")
    assert sorted(path.name for path in (tmp_path / "my packs").iterdir()) == ["room.py", "test_room.py"]
    assert "pegboard --packs 'my packs'\n" in done.stderr
    assert "pytest 'my packs/test_room.py'\n" in done.stderr


@pytest.mark.parametrize("existing", ["room.py", "test_room.py"])
def test_nothing_is_overwritten(new: Command, tmp_path: Path, existing: str) -> None:
    (tmp_path / existing).write_text("mine")
    done = new("room")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{existing} exists.\n")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(existing, "mine")]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("_room", "helpers"),
        ("test_room", "are tests"),
        ("a.b", "letters, digits"),
        ("../room", "letters, digits"),
        ("a b", "letters, digits"),
        ("1room", "letters, digits"),
        ("", "letters, digits"),
        ("class", "letters, digits"),
        ("time", "name of a library"),
        ("pydantic", "name of a library"),
        ("fs", "a pack fs already"),
    ],
)
@pytest.mark.promise("CLI-2")
def test_a_name_that_will_not_do_is_refused(new: Command, tmp_path: Path, name: str, reason: str) -> None:
    done = new(name)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_can_not_be_made_is_told(new: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = new("room", "--dir", "file/inner")
    assert (done.returncode, done.stdout) == (1, "")
    assert "can't be written" in done.stderr
