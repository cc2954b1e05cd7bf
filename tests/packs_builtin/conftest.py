"""A working directory with files."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Provide a working directory with files, links, a pipe and a socket, beside folders with a secret."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "sub" / "deep" / "deeper" / "deepest" / "bottom").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (tmp_path / "workshop").mkdir()
    (tmp_path / "workshop" / "secret.txt").write_text("secret")
    (work / "a.txt").write_text("hello")
    (work / "sub" / "b.txt").write_text("b")
    (work / "sub" / "deep" / "c.txt").write_text("c")
    (work / "sub" / "loop").symlink_to(work)
    (work / "to_file").symlink_to("a.txt")
    (work / "to_sub").symlink_to("sub")
    (work / "to_itself").symlink_to("to_itself")
    (work / "to_nothing").symlink_to("nothing")
    (work / "to_outside").symlink_to(outside)
    (work / "to_secret").symlink_to(outside / "secret.txt")
    os.mkfifo(work / "pipe")
    monkeypatch.chdir(work)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("socket")
    yield work
    listener.close()
