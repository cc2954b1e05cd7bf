"""Random keys and clicks on every page, with evil tools: `python tests/benchmarks monkey`; crashes come with a seed.

Set `PEGBOARD_MONKEY_STEPS` (10,000 per page), `PEGBOARD_MONKEY_SEED` (of the first run) and `PEGBOARD_MONKEY_PAGES`
(all) to change the run.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

from random_user import PAGES, play

Row = tuple[str, float, float, str]
_STEPS, _STEPS_A_RUN = 10_000, 500


def measure() -> list[Row]:
    """Count the crashes of each page, and print each with the seed that reproduces it."""
    steps = int(os.environ.get("PEGBOARD_MONKEY_STEPS", _STEPS))
    seed = int(os.environ.get("PEGBOARD_MONKEY_SEED", "1"))
    pages = os.environ.get("PEGBOARD_MONKEY_PAGES", ",".join(PAGES)).split(",")
    rows: list[Row] = []
    for page in pages:
        seeds = range(seed, seed + -(-steps // _STEPS_A_RUN))
        crashes = 0
        for one in seeds:
            crash = asyncio.run(play(page, one, min(steps, _STEPS_A_RUN)))
            if crash is not None:
                crashes += 1
                print(crash, flush=True)
            print(f"{page} seed={one}: {'crashed' if crash else 'ok'}", file=sys.stderr, flush=True)
        said = f"seeds {seeds.start} to {seeds.stop - 1}, {min(steps, _STEPS_A_RUN):,} steps each"
        rows.append((f"monkey: crashes on the page {page}", crashes, 0, said))
    return rows
