"""Calls that block for as long as another process likes, such as reading a pipe."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def detached(function: Callable[[], T]) -> T:
    """Return the result of a function that runs in a thread of its own.

    Unlike after `asyncio.to_thread`, neither the end of the event loop nor that of the program waits for the thread.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()

    def work() -> None:
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - the caller raises it
            done.set_exception(error)
        else:
            done.set_result(result)

    threading.Thread(target=work, name="pegboard-input", daemon=True).start()
    return await asyncio.wrap_future(done)
