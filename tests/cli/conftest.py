"""A function that runs commands, and a pack for them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import commands
import pytest

PACK = '''
from pegboard.sdk import ToolFailed, aliases, hints, log, progress

@aliases("sayHello", greeting="salutation")
@hints(read_only=True, timeout=3)
def hello(*, name: str, greeting: str = "Hello") -> str:
    """Greets somebody.

    Args:
        name: Who is greeted.
        greeting: The word to do it with.
    """
    return f"{greeting} {name}"

def add(*, a: int, b: int) -> int:
    """Adds."""
    return a + b

def fail() -> None:
    """Fails."""
    raise ToolFailed("No such shelf.", code="no_shelf", data={"shelf": 4})

def rows(*, count: int) -> list[dict[str, object]]:
    """Returns rows."""
    return [{"id": number, "name": f"row ä {number}"} for number in range(count)]

def text(*, count: int) -> str:
    """Returns a text."""
    return 'aé\\n"\\\\😀' * count

def talk() -> str:
    """Prints, logs and tells how far it is."""
    print("printed")
    log("logged")
    progress(1, 2, "half")
    return "done"

def wait() -> None:
    """Says that it runs, then never ends."""
    print("running", flush=True)
    while True:
        pass
'''


@pytest.fixture
def pegboard(home: Path, tmp_path: Path) -> Callable[..., commands.Done]:
    """Return a function that runs `pegboard` in `tmp_path` and returns the finished process."""

    def run(*arguments: str, stdin: str = "", env: dict[str, str] | None = None) -> commands.Done:
        return commands.pegboard(*arguments, cwd=tmp_path, env={**os.environ, **(env or {})}, stdin=stdin)

    return run


@pytest.fixture
def packs(write_pack: Callable[[str, str], Path]) -> str:
    return str(write_pack("greet.py", PACK))
