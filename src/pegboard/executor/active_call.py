"""State of a running call."""

from __future__ import annotations

import asyncio
import codecs
import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Literal  # Any: a message, before it is read

from pegboard.executor.callbacks import ToolQuestions
from pegboard.executor.deadline import CallClock
from pegboard.executor.pool import Pool
from pegboard.executor.process import Stream, WorkerProcess
from pegboard.models import (
    CallEvent,
    Fault,
    Finished,
    Log,
    Progress,
    ResultMeta,
    ToolCall,
    ToolError,
    ToolResult,
    Truncation,
)
from pegboard.ports import Calls, Grants
from pegboard.worker.keeper import MOST_PROCESSES

_LONGEST_LOG = 65_536
_Utf8 = codecs.getincrementaldecoder("utf-8")


class _Text:
    """Output that has not been yielded yet."""

    def __init__(self, stream: Literal["stdout", "stderr", "log"]) -> None:
        self.stream = stream
        self.parts: list[str] = []
        self.length = 0


class ActiveCall:
    """A running call with its pending events and its result; a `CallListener`.

    Args:
        call: The call.
        depth: Nesting depth.
        log_limit: Maximum output to keep, in bytes; the rest is only counted.
    """

    def __init__(self, call: ToolCall, depth: int, log_limit: int) -> None:
        self.call = call
        self.depth = depth
        self.result: ToolResult | None = None
        self.awaited: asyncio.Future[Any] | None = None
        """Future that it awaits before its start: the grants of its pack, then a worker."""
        self.refuse: Callable[[str], None] | None = None
        """Callback for secrets that were requested but not granted."""
        self.process: WorkerProcess | None = None
        """Worker that runs it; None before and after."""
        self.pool: Pool | None = None
        """Pool of its worker."""
        self.clock: CallClock | None = None
        """Time limit, once it runs."""
        self.spent = False
        """Whether its worker must not be reused."""
        self.worker = ""
        self.began = 0.0
        self.loop = asyncio.get_running_loop()
        """Event loop of the caller."""
        self._log_left = log_limit
        self._dropped = 0
        self._decoders: dict[Stream, codecs.IncrementalDecoder] = {
            "stdout": _Utf8("replace"),
            "stderr": _Utf8("replace"),
        }
        self._unseen: deque[_Text | CallEvent] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._make_questions: Callable[[], ToolQuestions] | None = None
        self._questions: ToolQuestions | None = None

    async def next_event(self) -> CallEvent:
        """Wait for the next event; the last one is the call's own `Finished`."""
        while not self._unseen:
            if self.result is not None:
                return Finished(call=self.call, result=self.result)
            self._wake = self.loop.create_future()
            await self._wake
        item = self._unseen.popleft()
        if isinstance(item, _Text):
            return Log(call_id=self.call.id, stream=item.stream, text="".join(item.parts))
        return item

    def end(self, result: ToolResult) -> None:
        """End the call with a result, unless it already has one."""
        if self.result is not None:
            return
        for stream, decoder in self._decoders.items():
            self._add(stream, decoder.decode(b"", final=True))
        self.result = result
        if self.awaited is not None:
            self.awaited.cancel()
        self._notify()

    def fail(self, message: str, detail: str) -> None:
        """Fail the call without an answer of its worker."""
        duration = (self.loop.time() - self.began) * 1000 if self.began else 0.0
        error = ToolError(code="execution_error", message=message, detail=detail)
        self.end(ToolResult(ok=False, error=error, meta=self._meta(duration_ms=duration)))

    def on_message(self, message: dict[str, Any]) -> None:
        """Handle a message other than the answer."""
        if "log" in message:
            text: str = message["log"]
            self._add("log", self._limit_log(text.encode()).decode("utf-8", "ignore"))
            return
        if "ask" in message:
            self._answer_question(message)
            return
        if "refused" in message:
            if self.refuse is not None:
                self.refuse(str(message["refused"]))
            return
        progress = Progress(
            call_id=self.call.id, done=message["done"], total=message["total"], message=message["message"]
        )
        if not math.isfinite(progress.done) or not math.isfinite(progress.total or 0):
            return  # numpy divides by zero without an error, and no share of such progress can be shown
        if self._unseen and isinstance(self._unseen[-1], Progress):
            self._unseen.pop()  # only the latest progress matters
        self._unseen.append(progress)
        self._notify()

    def on_output(self, stream: Stream, data: bytes) -> None:
        """Handle output."""
        self._add(stream, self._decoders[stream].decode(self._limit_log(data)))

    def on_answer(self, answer: dict[str, Any]) -> None:
        """Handle the answer: end the call with its result."""
        self.spent = answer["spent"]
        error, truncated = answer["error"], answer.get("truncated")
        meta = self._meta(
            duration_ms=answer.get("ms", 0.0),
            size=answer["size"],
            truncated=Truncation(**truncated) if truncated else None,
            traceback=error.get("traceback") if error else None,
        )
        # skips validation: the data was just parsed from JSON
        self.end(ToolResult.model_construct(ok=error is None, data=answer["data"], error=_error(error), meta=meta))

    def on_crash(self, reason: str) -> None:
        """Fail the call: its worker ended without an answer."""
        self.spent = True
        self.fail(f"{self.call.name} ended its worker process: {reason}.", "crashed")

    def on_limit(self, limit: str) -> None:
        """Fail the call: its worker and the processes that it started exceeded a limit."""
        self.spent = True
        if limit == "memory":
            why, detail = "it and the processes that it started exceeded the memory limit", "out_of_memory"
        else:
            why, detail = f"it started more than {MOST_PROCESSES} processes", "too_many_processes"
        self.fail(f"{self.call.name} was ended because {why}.", detail)

    def answer_questions(self, calls: Calls | None, grants: Grants | None, clock: CallClock) -> None:
        """Start to answer the tool's questions and to measure its time.

        Args:
            calls: Target of nested calls.
            grants: Source of secrets.
            clock: Time limit.
        """
        self.began = self.loop.time()
        self.clock = clock
        self._make_questions = partial(ToolQuestions, self.call, calls, grants, clock, self._add_event, self._reply)

    async def end_questions(self) -> None:
        """End the nested calls and wait for them."""
        if self._questions is not None:
            await self._questions.end()

    def _answer_question(self, message: dict[str, Any]) -> None:
        if self._questions is None:
            assert self._make_questions is not None, "only started calls ask"
            self._questions = self._make_questions()
        self._questions.answer(message)

    def _add_event(self, event: CallEvent) -> None:
        """Add an event of a nested call."""
        self._unseen.append(event)
        self._notify()

    def _reply(self, message: bytes) -> None:
        if self.process is not None:
            self.process.reply(message)

    def _meta(
        self,
        *,
        duration_ms: float,
        size: int = 0,
        truncated: Truncation | None = None,
        traceback: str | None = None,
    ) -> ResultMeta:
        return ResultMeta(
            duration_ms=duration_ms,
            worker=self.worker or None,
            size=size,
            truncated=truncated,
            traceback=traceback,
            log_bytes_dropped=self._dropped,
        )

    def _limit_log(self, data: bytes) -> bytes:
        kept = data[: self._log_left]
        self._log_left -= len(kept)
        self._dropped += len(data) - len(kept)
        return kept

    def _add(self, stream: Literal["stdout", "stderr", "log"], text: str) -> None:
        if not text:
            return
        last = self._unseen[-1] if self._unseen else None
        if not isinstance(last, _Text) or last.stream != stream or last.length + len(text) > _LONGEST_LOG:
            last = _Text(stream)
            self._unseen.append(last)
        last.parts.append(text)
        last.length += len(text)
        self._notify()

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


def _error(error: dict[str, Any] | None) -> ToolError | None:
    if error is None:
        return None
    faults = tuple(Fault(**fault) for fault in error.get("faults") or ())
    return ToolError(
        code=error["code"],
        message=error["message"],
        detail=error["detail"],
        faults=faults,
        said=error.get("said", False),
    )
