"""Cost of a model's stream on its way from a provider's server, in another process, to Pegboard's events."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

from provider import Answer, FakeProvider, delta

Row = tuple[str, float, float, str]
CHUNKS = 1000
RATES = (100, 1000, 0)
"""Chunks per second; 0 means as many as possible."""


class Paced:
    """Chunks at a fixed rate, each with the time at which it was sent; both processes read the same clock.

    Args:
        rate: Chunks per second.
    """

    def __init__(self, rate: int) -> None:
        self._rate = rate

    def __iter__(self) -> Iterator[dict[str, Any]]:
        begun = time.monotonic()
        for number in range(CHUNKS):
            if self._rate and (early := begun + number / self._rate - time.monotonic()) > 0:
                time.sleep(early)
            yield delta(content=f"{time.monotonic()} ")
        yield delta("stop")


def measure() -> list[Row]:
    """Return the figures of the stream."""
    server = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout
    assert server.stdin
    try:
        return asyncio.run(_measure(server.stdout.readline().strip()))
    finally:
        server.stdin.close()
        server.wait(30)


async def _measure(url: str) -> list[Row]:
    await _listen(url)  # the imports
    slow, fast, flood = [await _listen(url) for _ in RATES]
    return [
        ("provider: chunk → event at 100 chunks/s, p95, ms", slow[0], 5.0, ""),
        ("provider: chunk → event at 1,000 chunks/s, p95, ms", fast[0], 10.0, ""),
        ("provider: CPU for 1,000 chunks at 1,000 chunks/s, ms", fast[1], 600.0, ""),
        ("provider: CPU for 1,000 chunks as fast as they come, ms", flood[1], 400.0, ""),
    ]


async def _listen(url: str) -> tuple[float, float]:
    """Return the 95th percentile of the delay of a chunk and the CPU of all, in milliseconds."""
    from pegboard.ask.providers import model
    from pegboard.models.conversation import Prompt, TextDelta, UserMessage

    speaker = model("openai:fake", base_url=url, key=lambda _: None)
    begun = time.process_time()
    delays = [
        time.monotonic() - float(event.text)
        async for event in speaker.stream(Prompt(messages=(UserMessage(text="Count"),)))
        if isinstance(event, TextDelta)
    ]
    spent = time.process_time() - begun
    await speaker.close()
    assert len(delays) == CHUNKS
    return quantiles(delays, n=20)[-1] * 1000, spent * 1000


def _serve() -> None:
    """Serve until stdin ends: once to warm up, then at each rate."""
    answers = [Answer(Paced(rate)) for rate in (0, *RATES)]
    with FakeProvider(*answers).running() as fake:
        print(fake.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _serve()
