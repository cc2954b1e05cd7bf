"""Snapshots of the card of a watched agent's call, and of the header during a pause."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage import GivenRuntime, Stage, as_runtime
from test_health_pictures import SIZES, Compare, after

from pegboard.brake import Question, Questions
from pegboard.tui.app import PegboardApp

pytestmark = pytest.mark.slow


def ask(given: GivenRuntime, *tools: str, via: str = "watch") -> None:
    """Ask about calls, which wait until the end of the test."""
    questions = Questions(given.paths.state)
    for at, tool in enumerate(tools):
        questions.open(
            Question(
                tool=tool,
                args={
                    "path": "/srv/app/config.yaml",
                    "content": "[bold]This text is not markup.[/bold]\nhost: example.org\n" * 2,
                    "mode": 420,
                    "create": True,
                },
                agent="claude-code 2.1.0 (process 4711)",
                server="files",
                reason="A rule of approvals.toml asks before files.write_file runs.",
                asked_at=float(at),
                via=via,
            )
        )


@SIZES
@pytest.mark.promise("WAT-4")
def test_the_card_of_a_waiting_call(tmp_path: Path, snap_compare: Compare, size: tuple[int, int]) -> None:
    given = GivenRuntime(tmp_path)
    ask(given, "files.write_file", "files.move_file")

    async def steps(stage: Stage) -> None:
        await stage.until(lambda: len(stage.app.agent_calls) == 2, "two calls wait")
        await stage.press("f12")
        await stage.until_seen("config.yaml")

    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=after(steps))


@SIZES
@pytest.mark.promise("ASK-7", "WAT-4")
def test_the_card_of_a_call_through_serve(tmp_path: Path, snap_compare: Compare, size: tuple[int, int]) -> None:
    given = GivenRuntime(tmp_path)
    ask(given, "files.write_file", via="serve")

    async def steps(stage: Stage) -> None:
        await stage.until(lambda: len(stage.app.agent_calls) == 1, "a call waits")
        await stage.press("f12")
        await stage.until_seen("config.yaml")

    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=after(steps))


@SIZES
@pytest.mark.promise("WAT-4")
def test_the_header_during_a_pause(tmp_path: Path, snap_compare: Compare, size: tuple[int, int]) -> None:
    given = GivenRuntime(tmp_path)
    ask(given, "files.write_file")
    Questions(given.paths.state).brake.pause()

    async def steps(stage: Stage) -> None:
        await stage.until(lambda: stage.app.agent_calls and stage.app.brake == "paused", "a call waits")

    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=after(steps))
