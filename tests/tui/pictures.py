"""Pictures of the app at two sizes from one start: the second is taken after the terminal has changed its size."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from headless import compose_strips
from textual import _doc
from textual.app import App
from textual.pilot import Pilot

Size = tuple[int, int]
Steps = Callable[[Pilot[Any]], Awaitable[None]]
IDS: dict[str, Size] = {"120x40": (120, 40), "80x24": (80, 24)}
"""Ids of a test's cases, and their sizes."""
_STILL = 0.2
"""Seconds without a change after which a picture is taken."""

_taken: dict[tuple[str, Size], str] = {}
"""Pictures for the case of the other size, by the test's name without it."""


@pytest.fixture
def snap_compare(
    snap_compare: Callable[..., bool], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., bool]:
    """Return a function that runs steps in an app and compares a picture of it with the stored one.

    The two cases of a test share an app, in which the steps run at the larger size. With `each_size`, each has its own:
    where a list scrolls, what the picture shows depends on the size at which the steps ran.
    """
    name, case = request.node.nodeid, next((case for case in IDS if case in request.node.nodeid), None)

    def compare(app: App[Any], *, terminal_size: Size, run_before: Steps, each_size: bool = False) -> bool:
        def take(**_: object) -> str:
            if case is None or each_size:
                return _run(app, [terminal_size], run_before)[terminal_size]
            test = name.replace(case, "")
            if (test, terminal_size) not in _taken:
                for size, picture in _run(app, [*IDS.values()], run_before).items():
                    _taken[test, size] = picture
            return _taken.pop((test, terminal_size))

        monkeypatch.setattr(_doc, "take_svg_screenshot", take)
        return snap_compare(app)

    return compare


def _run(app: App[Any], sizes: list[Size], steps: Steps) -> dict[Size, str]:
    """Run the app, take the steps at the first size and a picture at each."""
    pictures: dict[Size, str] = {}

    async def play(pilot: Pilot[Any]) -> None:
        await steps(pilot)
        for size in sizes:
            if app.size != size:
                await pilot.resize_terminal(*size)
            await _come_to_rest(pilot)
            pictures[size] = app.export_screenshot(title=app.title, simplify=True)
        app.exit()

    app.run(headless=True, auto_pilot=play, size=sizes[0])
    return pictures


async def _come_to_rest(pilot: Pilot[Any]) -> None:
    """Wait until nothing changes on the screen: dialogs, the keys below, animations."""
    await pilot.wait_for_scheduled_animations()
    before: object = None
    while before != (before := compose_strips(pilot.app)):
        await pilot.pause(_STILL)
        await pilot.pause()  # on a busy machine, timers that were due meanwhile have only posted their messages
