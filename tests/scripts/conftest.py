"""Shared fixtures of the tests of scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pegboard.runtime import Runtime
from pegboard.scripts import OrchestratorTool, OrchestratorToolBuilder, Sandboxes

SHOP = (Path(__file__).parents[1] / "packs" / "scripted.py").read_text(encoding="utf-8")


class Plain:
    """A `CallableTool` made of a function."""

    def __init__(self, name: str, work: Callable[[list[str], str | None], str]) -> None:
        self.name = name
        self.description = f"Does {name}.\nAnd says so."
        self._work = work

    def call(self, args: list[str], stdin: str | None) -> str:
        return self._work(args, stdin)


@pytest.fixture(scope="session")
def sandboxes() -> Iterator[Sandboxes]:
    """Provide the processes that all scripts of a test share."""
    shared = Sandboxes(512 * 2**20)
    yield shared
    shared.close()


@pytest.fixture
def plain(sandboxes: Sandboxes) -> Callable[..., OrchestratorTool]:
    """Return a function that builds an orchestrator over functions, by name."""

    def build(**tools: Callable[[list[str], str | None], str]) -> OrchestratorTool:
        builder = OrchestratorToolBuilder("shop").short_description("Looks into the shop.").sandboxes(sandboxes)
        for name, work in tools.items():
            builder.tool(Plain(name, work))
        return builder.build()

    return build


@pytest.fixture
def shop(write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]) -> Runtime:
    """Provide a runtime with the pack `shop`."""
    return open_runtime(write_pack("shop.py", SHOP))
