"""Calls on their way to workers, with an imitation of the client of Dask."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pegboard.batch import node
from pegboard.batch.engines.dask_cluster import DaskCluster
from pegboard.batch.engines.dask_dispatcher import DaskDispatcher, DaskWorker, RemoteCall
from pegboard.models import ToolCall, ToolResult
from pegboard.ports import Granted

pytestmark = [pytest.mark.promise("BAT-2")]


class SharedAnswers:
    """A client that requests the answers of all its tasks together, as Dask's does with those of one moment."""

    def __init__(self) -> None:
        self.come = asyncio.Event()
        self.asked = asyncio.Semaphore(0)
        self._request = asyncio.create_task(self.come.wait())

    def submit(self, *_: object, **_options: object) -> SharedAnswers:
        return self

    def __await__(self) -> Any:
        return self._answer().__await__()

    async def _answer(self) -> str:
        self.asked.release()
        await self._request
        return json.dumps({"answers": [node.answer_of(ToolResult(ok=True, data=1))], "seconds": 0.1})

    def release(self) -> None:
        """Forget a task."""


async def test_a_lost_worker_takes_no_answers_of_other_workers_along() -> None:
    cluster = DaskCluster("dask://local?workers=2")
    client = cluster.client = SharedAnswers()
    dispatcher = DaskDispatcher("batch", cluster)
    for address in ("first", "second"):
        dispatcher.add(DaskWorker(address, address, 1))
    first, second = (RemoteCall(ToolCall(name="rows.double", source="batch"), 1.0, Granted({}, {})) for _ in "ab")
    for call in (first, second):
        dispatcher.send(call)
        await client.asked.acquire()
    dispatcher.remove("first")
    assert await first.answer is None
    client.come.set()
    answer = await asyncio.wait_for(second.answer, 10)
    assert answer == node.answer_of(ToolResult(ok=True, data=1))
    await dispatcher.close()
