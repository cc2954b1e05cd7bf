"""Batches of rows that another program writes to a pipe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pegboard.batch.errors import RowsError
from pegboard.batch.plan import BatchPlan
from pegboard.batch.preview import preview
from pegboard.runtime import Runtime

pytestmark = pytest.mark.promise("BAT-1")


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "rows")
    return tmp_path / "rows"


def writer_of(fifo: Path) -> int:
    """Open a FIFO for writing as soon as a process reads it."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.01)
    raise AssertionError("no process reads the FIFO")


def interrupt(process: subprocess.Popen[str]) -> str:
    """Press ctrl+c once, and return the messages of the process that ends."""
    process.send_signal(signal.SIGINT)
    try:
        _, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130, stderr
    return stderr


@pytest.mark.parametrize("source", ["-", "rows"])
def test_ctrl_c_ends_a_batch_that_waits_for_a_row(program: list[str], fifo: Path, source: str) -> None:
    read, write = os.pipe()
    with subprocess.Popen(
        [*program, "rows.double", "--from", source],
        cwd=fifo.parent,
        stdin=read,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        descriptor = write if source == "-" else writer_of(fifo)
        os.write(descriptor, b'{"number": 2}\n')
        assert json.loads(process.stdout.readline())["data"]["double"] == 4
        stderr = interrupt(process)
    for one in {read, write, descriptor}:
        os.close(one)
    assert "1 row, 1 succeeded, 0 failed" in stderr


def test_ctrl_c_ends_a_batch_that_waits_for_the_first_row(program: list[str], fifo: Path) -> None:
    line = [*program, "rows.double", "--from", "rows", "--out", "out.jsonl"]
    with subprocess.Popen(line, cwd=fifo.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        descriptor = writer_of(fifo)
        stderr = interrupt(process)
        os.close(descriptor)
    assert "0 rows" in stderr
    assert "--resume" not in stderr
    assert not (fifo.parent / "out.jsonl").exists()


def test_a_pipe_has_no_preview(packs: str, fifo: Path) -> None:
    runtime = Runtime.from_environment(packs=[Path(packs)])
    runtime.tools.scan()
    spec = runtime.tools.get("rows.double")
    assert spec is not None
    with pytest.raises(RowsError, match="it is not a regular file"):
        preview(BatchPlan(spec=spec, source=str(fifo)))
