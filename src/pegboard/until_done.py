"""Steps that a cancelled task still waits for, because later ones rely on their end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def until_done(step: Awaitable[T]) -> T:
    """Wait until a step has ended, however often the current task is cancelled meanwhile, and return its result.

    A function in a thread runs on when the task that waits for it is cancelled, and is left out if it hasn't begun. The
    step must be short: a scope of anyio repeats its cancellation without a pause until the step has ended.

    Raises:
        asyncio.CancelledError: The task was cancelled; the step has ended.
    """
    task = asyncio.ensure_future(step)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # otherwise asyncio reports it as an unhandled error
        raise cancelled
    return task.result()
