"""Packs and commands for batches."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands
import pytest

PACK = '''
import os
import time
from pathlib import Path

from pegboard.sdk import ToolFailed, get_config, get_secret, hints, requires_cli, requires_secret

@hints(read_only=True)
def double(*, number: int) -> dict:
    """Doubles a number."""
    return {"number": number, "double": 2 * number}

@hints(read_only=True)
def square(*, number: int) -> int:
    """Squares even numbers."""
    if number % 2:
        raise ToolFailed(f"{number} is odd.", code="odd")
    return number * number

def note(*, number: int, file: str) -> int:
    """Appends a number to a file; not idempotent."""
    with open(file, "a") as out:
        out.write(f"{number}\\n")
    time.sleep(0.002)
    return number

@hints(idempotent=True)
def again(*, number: int, file: str) -> int:
    """Appends a number to a file; may be repeated."""
    with open(file, "a") as out:
        out.write(f"{number}\\n")
    time.sleep(0.002)
    return number

@hints(read_only=True)
def flaky(*, folder: str, number: int, error: str = "ConnectionError") -> int:
    """Fails the first two times."""
    seen = Path(folder) / str(number)
    seen.write_text(seen.read_text() + "x" if seen.exists() else "x")
    if len(seen.read_text()) < 3:
        if error == "code":
            raise ToolFailed("Try later.", code="rate_limited")
        import builtins
        raise getattr(builtins, error)("gone")
    return number

def pay(*, error: str) -> int:
    """Fails; not idempotent."""
    import builtins
    raise getattr(builtins, error)("gone") if error.endswith("Error") else ToolFailed("Gone.", code=error)

@hints(read_only=True, timeout=30)
def wait(*, file: str) -> int:
    """Writes its process id and waits."""
    with open(file, "a") as out:
        out.write(f"{os.getpid()}\\n")
    time.sleep(30)
    return 1

@hints(timeout=30)
def wait_once(*, file: str) -> int:
    """Writes its process id and waits; not idempotent."""
    with open(file, "a") as out:
        out.write(f"{os.getpid()}\\n")
    time.sleep(30)
    return 1

@hints(read_only=True, timeout=30)
def nap(*, file: str, seconds: float = 0.0) -> float:
    """Writes a line and waits."""
    with open(file, "a") as out:
        out.write(f"{seconds}\\n")
    time.sleep(seconds)
    return seconds

@hints(read_only=True)
def large(*, number: int) -> str:
    """Returns two megabytes."""
    return "x" * 2_000_000

@hints(read_only=True)
@requires_cli("no-such-program-at-all")
def needy(*, number: int) -> int:
    """Needs a program that is nowhere."""
    return number

@hints(read_only=True)
@requires_secret("BATCH_KEY")
def secret(*, number: int) -> str:
    """Returns the length of a secret, and the secret."""
    value = get_secret("BATCH_KEY") or ""
    return f"{len(value)} {value}"

@hints(read_only=True)
def helped(*, number: int) -> int:
    """Uses a helper module."""
    import _rows_helper
    return _rows_helper.triple(number)

@hints(read_only=True)
def imported(*, number: int) -> int:
    """Uses modules of its project."""
    from core.numbers import triple
    from near import add
    return add(triple(number))

@hints(read_only=True)
def burn(*, number: int) -> int:
    """Computes for 20 ms."""
    end = time.process_time() + 0.02
    while time.process_time() < end:
        pass
    return number
'''


@pytest.fixture
def packs(write_pack: Callable[[str, str], Path]) -> str:
    project = write_pack("near.py", "def add(number):\n    return number + 1\n").parent
    (project / "pyproject.toml").touch()
    (project / "src" / "core").mkdir(parents=True)
    (project / "src" / "core" / "base.py").write_text("def add(number):\n    return number + 1\n")
    (project / "src" / "core" / "numbers.py").write_text(
        "from .base import add\ndef triple(number):\n    return add(3 * number)\n"
    )
    write_pack("_rows_helper.py", "def triple(number):\n    return 3 * number\n")
    return str(write_pack("rows.py", PACK))


@pytest.fixture
def pegboard(tmp_path: Path, packs: str) -> Callable[..., commands.Done]:
    """Return a function that runs `pegboard batch` in `tmp_path` and returns the finished process."""

    def run(*arguments: str, stdin: str = "", env: dict[str, str] | None = None) -> commands.Done:
        line = ("batch", *arguments, "--packs", packs)
        return commands.pegboard(*line, cwd=tmp_path, env={**os.environ, **(env or {})}, stdin=stdin)

    return run


@pytest.fixture
def program(packs: str) -> list[str]:
    """Return the start of a command line that runs `pegboard batch` in a process of its own."""
    return [str(Path(sys.executable).with_name("pegboard")), "--packs", packs, "batch"]


def results(file: Path) -> list[dict[str, Any]]:
    """Return the results in a file of lines."""
    return [json.loads(line) for line in file.read_text().splitlines()]
