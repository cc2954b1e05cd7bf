"""The temporary folders of a cluster's workers."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pegboard.batch.node_folder import NodeFolder

pytestmark = pytest.mark.promise("BAT-2")

_CREATE = "from pegboard.batch.node_folder import NodeFolder; folder = NodeFolder(); print(folder.path, flush=True);"


def _start(parent: Path, then: str) -> tuple[subprocess.Popen[str], Path]:
    """Start a process that creates a folder, and return the process and the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", _CREATE + then],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(parent)},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_the_folder_is_deleted_when_its_process_ends(tmp_path: Path) -> None:
    process, folder = _start(tmp_path, "(folder.path / 'results').mkdir(); input()")
    with process:
        assert folder.parent == tmp_path
        assert folder.is_dir()
        assert folder.stat().st_mode & 0o077 == 0
        process.communicate("\n", timeout=30)
    assert [*tmp_path.iterdir()] == []


def test_the_next_process_deletes_the_folder_of_a_killed_one_but_no_other(tmp_path: Path) -> None:
    other = tmp_path / "pegboard-node-of-mine"
    other.mkdir()  # a process that has just created it has not locked it yet
    link = tmp_path / "pegboard-node-link"
    link.symlink_to(Path(__file__).parent)
    living, kept = _start(tmp_path, "input()")
    killed, left = _start(tmp_path, "input()")
    with living, killed:
        killed.kill()
        killed.communicate(timeout=30)
        assert left.is_dir()
        following, third = _start(tmp_path, "input()")
        with following:
            assert not left.exists()
            assert kept.is_dir()
            assert other.is_dir()
            assert link.is_symlink()
            following.communicate("\n", timeout=30)
        assert not third.exists()
        living.communicate("\n", timeout=30)


def test_a_process_that_starts_at_the_same_time_does_not_delete_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lock = fcntl.flock
    others: list[NodeFolder] = []

    def lock_late(file: int, operation: int) -> None:
        if operation == fcntl.LOCK_EX and not others:
            monkeypatch.setattr(fcntl, "flock", lock)
            others.append(NodeFolder())
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    folder = NodeFolder()
    (other,) = others
    assert folder.path.is_dir()
    assert other.path.is_dir()
    NodeFolder().delete()
    for one in (folder, other):
        assert one.path.is_dir()
        one.delete()
    assert [*tmp_path.iterdir()] == []
