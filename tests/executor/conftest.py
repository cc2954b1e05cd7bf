"""Executors with small limits, and handwritten specs of sample packs."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any  # keywords of Executor and arguments of tools
from uuid import uuid4

import pytest
from processes import in_group, workers

from pegboard.executor import Executor
from pegboard.models import CallEvent, Finished, Log, PackHandler, ToolCall, ToolResult, ToolSpec

WILD = Path(__file__).parents[1] / "packs" / "executor_wild.py"


def spec_of(file: Path, function: str) -> ToolSpec:
    """Return the spec of a function of a pack, without a schema."""
    handler = PackHandler(pack=file.stem, function=function, file=str(file), line=1)
    return ToolSpec(name=f"{file.stem}.{function}", pack=file.stem, input_schema={}, handler=handler)


class Harness:
    """Executor with methods to run tools and to inspect their effects."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.spec = spec_of
        self._others = workers()  # those of earlier tests may take a moment to end

    async def events(
        self, function: str, file: Path = WILD, *, limit: float = 30.0, call_id: str | None = None, **args: Any
    ) -> list[CallEvent]:
        """Run a tool and return its events."""
        async with aclosing(self.stream(function, file, limit=limit, call_id=call_id, **args)) as events:
            return [event async for event in events]

    def stream(
        self, function: str, file: Path = WILD, *, limit: float = 30.0, call_id: str | None = None, **args: Any
    ) -> AsyncGenerator[CallEvent]:
        """Run a tool and yield its events."""
        spec = spec_of(file, function)
        call = ToolCall(id=call_id or uuid4().hex, name=spec.name, args=args, source="cli")
        return self.executor.run(spec, call, timeout=limit)

    async def run(self, function: str, file: Path = WILD, *, limit: float = 30.0, **args: Any) -> ToolResult:
        """Run a tool and return its result."""
        return self.result(await self.events(function, file, limit=limit, **args))

    async def still_works(self) -> bool:
        """Return whether the next call succeeds."""
        result = await self.run("echo", value=["fine"])
        return result.ok and result.data == ["fine"]

    @staticmethod
    def result(events: list[CallEvent]) -> ToolResult:
        """Return the result in the events of a call."""
        *_, last = events
        assert isinstance(last, Finished)
        assert sum(isinstance(event, Finished) for event in events) == 1
        return last.result

    @staticmethod
    def text(events: list[CallEvent], stream: str | None = None) -> str:
        """Return the output and log of a tool."""
        return "".join(event.text for event in events if isinstance(event, Log) and stream in {None, event.stream})

    @staticmethod
    def read(file: Path | str) -> Any:
        """Return the content of a JSON file."""
        return json.loads(Path(file).read_bytes())

    @staticmethod
    def mode(file: str) -> int:
        """Return the permission bits of a file."""
        return Path(file).stat().st_mode

    @staticmethod
    def descriptors() -> int:
        """Return the number of open descriptors of this process."""
        return len(list(Path("/proc/self/fd").iterdir()))

    def workers(self) -> frozenset[int]:
        """Return the living worker processes that were started since this was created."""
        return workers() - self._others

    @staticmethod
    def block_until(condition: Callable[[], bool]) -> None:
        """Wait for a condition for at most 20 seconds, and block the event loop meanwhile."""
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.005)


@pytest.fixture
async def open_harness(tmp_path: Path) -> AsyncIterator[Callable[..., Harness]]:
    """Return a function that creates executors, and close them after the test."""
    opened: list[Executor] = []

    def build(**options: Any) -> Harness:
        executor = Executor(results=tmp_path / "results", **{"memory_limit": 400_000_000, **options})
        opened.append(executor)
        return Harness(executor)

    yield build
    for executor in opened:
        await executor.close()


@pytest.fixture
def harness(open_harness: Callable[..., Harness]) -> Harness:
    """Create an executor with one worker, so that a broken worker would affect the next call."""
    return open_harness(workers=1)


@pytest.fixture
def is_gone() -> Callable[[int], bool]:
    """Return a function that checks whether a process group has no living process."""
    return lambda group: not in_group(group)


@pytest.fixture
def wait_for() -> Callable[[Callable[[], bool]], None]:
    """Return a function that waits for a condition for at most 30 seconds, without an event loop."""

    def wait_for(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < deadline, "it took too long"
            time.sleep(0.01)

    return wait_for
