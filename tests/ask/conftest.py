"""A runtime with a pack of tools for a model, and a function that asks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.models.ask import AskEvent, AskFinished, Outcome
from pegboard.runtime import Runtime

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

PACK = '''
import itertools
import time
from pathlib import Path
from pegboard.sdk import ToolFailed, call_tool, hints, log

_count = itertools.count(1)

@hints(read_only=True)
def add(*, a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b

@hints(read_only=True, cache_seconds=60)
def counted(*, step: int = 1) -> int:
    """Counts its own runs."""
    return next(_count)

@hints(read_only=True)
def fail() -> None:
    """Fails."""
    raise ToolFailed("No such shelf.", code="no_shelf", data={"shelf": 4})

@hints(read_only=True)
def fail_at_length(*, size: int) -> None:
    """Fails with long data."""
    text = "".join(f"{number:09d}\\n" for number in range(size // 10))
    raise ToolFailed("Failed.", data=text)

@hints(read_only=True)
def large(*, size: int) -> str:
    """Gives a long text."""
    return "".join(f"{number:09d}\\n" for number in range(size // 10))

@hints(read_only=True, timeout=60)
def wait(*, file: str) -> None:
    """Says that it runs, then never ends."""
    Path(file).write_text("running")
    log("running")
    while True:
        time.sleep(0.05)

@hints(read_only=True, timeout=60)
def meet(*, mine: str, other: str) -> str:
    """Ends as soon as the other one has begun."""
    Path(mine).write_text("here")
    while not Path(other).exists():
        time.sleep(0.01)
    return mine

def write(*, text: str, path: str = "notes.txt") -> str:
    """Says that it changes things by saying nothing."""
    return f"{path}: {text}"

@hints(read_only=True)
def through(*, text: str) -> str:
    """Writes by way of another tool."""
    return call_tool("shop.write", text=text)
'''


@pytest.fixture
def runtime(write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]) -> Runtime:
    """Provide a runtime with the pack `shop`."""
    return open_runtime(write_pack("shop.py", PACK))


@pytest.fixture
def set_up(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, open_runtime: Callable[..., Runtime]
) -> Callable[..., Runtime]:
    """Return a factory of runtimes with the pack and these settings: `ASK__STEPS="3"`."""

    def build(**settings: str) -> Runtime:
        for name, value in settings.items():
            monkeypatch.setenv(f"PEGBOARD_{name}", value)
        return open_runtime(*runtime.folders)

    return build


@pytest.fixture
def asked() -> Callable[..., object]:
    """Return a function that asks within a runtime and returns all events and the outcome."""

    async def ask(runtime: Runtime, text: str = "Go.", **options: object) -> tuple[list[AskEvent], Outcome]:
        asking = runtime.ask(**options)  # type: ignore[arg-type]  # as the test passes them
        events = [event async for event in asking.run(text)]
        assert isinstance(events[-1], AskFinished)
        return events, events[-1].outcome

    return ask
