"""A call on its way."""

from __future__ import annotations

import asyncio
import codecs
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Literal  # Any: a message, before it is read

from pegboard.executor.callbacks import Questions
from pegboard.executor.deadline import Clock
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
    """Output that nobody has taken yet."""

    def __init__(self, stream: Literal["stdout", "stderr", "log"]) -> None:
        self.stream = stream
        self.parts: list[str] = []
        self.length = 0


class Running:
    """What a call has said so far, and how it ended.

    Args:
        call: The call.
        depth: How many calls it was made within.
        log_limit: Bytes of output that are kept; the rest is counted.
    """

    def __init__(self, call: ToolCall, depth: int, log_limit: int) -> None:
        self.call = call
        self.depth = depth
        self.result: ToolResult | None = None
        self.place: asyncio.Future[Any] | None = None
        """What it waits for before it can begin, while it does: what its pack may know, then a worker."""
        self.refuse: Callable[[str], None] | None = None
        """Learns of secrets that the tool asked for in vain."""
        self.process: WorkerProcess | None = None
        """The worker that runs it, while one does."""
        self.pool: Pool | None = None
        """Where its worker comes from."""
        self.clock: Clock | None = None
        """The time that is left to it, once it runs."""
        self.spent = False
        """Whether its worker should not be used again."""
        self.worker = ""
        self.began = 0.0
        self.loop = asyncio.get_running_loop()
        """Where it was called."""
        self._room = log_limit
        self._dropped = 0
        self._decoders: dict[Stream, codecs.IncrementalDecoder] = {
            "stdout": _Utf8("replace"),
            "stderr": _Utf8("replace"),
        }
        self._unseen: deque[_Text | CallEvent] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._hears_questions: Callable[[], Questions] | None = None
        self._questions: Questions | None = None

    async def next_event(self) -> CallEvent:
        """Waits for the next thing that happens; after its own `Finished` there is nothing more."""
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
        """Ends the call with a result, unless it has one already."""
        if self.result is not None:
            return
        for stream, decoder in self._decoders.items():
            self._add(stream, decoder.decode(b"", final=True))
        self.result = result
        if self.place is not None:
            self.place.cancel()
        self._notify()

    def fail(self, message: str, detail: str) -> None:
        """Ends the call as failed, through no answer of its worker's."""
        duration = (self.loop.time() - self.began) * 1000 if self.began else 0.0
        error = ToolError(code="execution_error", message=message, detail=detail)
        self.end(ToolResult(ok=False, error=error, meta=self._meta(duration_ms=duration)))

    # What the worker says

    def heard(self, message: dict[str, Any]) -> None:
        """Takes a message other than the answer."""
        if "log" in message:
            text: str = message["log"]
            self._add("log", self._kept(text.encode()).decode("utf-8", "ignore"))
            return
        if "ask" in message:
            self._asked(message)
            return
        if "refused" in message:
            if self.refuse is not None:
                self.refuse(str(message["refused"]))
            return
        progress = Progress(
            call_id=self.call.id, done=message["done"], total=message["total"], message=message["message"]
        )
        if self._unseen and isinstance(self._unseen[-1], Progress):
            self._unseen.pop()  # nobody looked yet: only how far it is now matters
        self._unseen.append(progress)
        self._notify()

    def printed(self, stream: Stream, data: bytes) -> None:
        """Takes output."""
        self._add(stream, self._decoders[stream].decode(self._kept(data)))

    def answered(self, answer: dict[str, Any]) -> None:
        """Takes the answer; all output before it has been told."""
        self.spent = answer["spent"]
        error, truncated = answer["error"], answer.get("truncated")
        meta = self._meta(
            duration_ms=answer.get("ms", 0.0),
            size=answer["size"],
            truncated=Truncation(**truncated) if truncated else None,
            traceback=error.get("traceback") if error else None,
        )
        # the data came out of JSON just now: it needs no second look
        self.end(ToolResult.model_construct(ok=error is None, data=answer["data"], error=_error(error), meta=meta))

    def broke(self, reason: str) -> None:
        """Learns that there will be no answer, and why."""
        self.spent = True
        self.fail(f"{self.call.name} ended its worker process: {reason}.", "crashed")

    def outgrew(self, limit: str) -> None:
        """Fail the call: its worker, with all that it started, exceeded a limit."""
        self.spent = True
        if limit == "memory":
            why, detail = "it and the processes that it started used more memory than a tool may have", "out_of_memory"
        else:
            why, detail = f"it started more than {MOST_PROCESSES} processes", "too_many_processes"
        self.fail(f"{self.call.name} was ended because {why}.", detail)

    # What the tool asks

    def hear_questions(self, calls: Calls | None, grants: Grants | None, clock: Clock) -> None:
        """Has what the tool asks answered from now on, for as long as it may take.

        Args:
            calls: Where the calls go that it makes of others.
            grants: Who knows where secrets come from.
            clock: The time that is left to it.
        """
        self.began = self.loop.time()
        self.clock = clock
        self._hears_questions = partial(Questions, self.call, calls, grants, clock, self._happened_within, self._reply)

    async def end_questions(self) -> None:
        """Ends the calls that the tool made of others, and waits until they have ended."""
        if self._questions is not None:
            await self._questions.end()

    def _asked(self, message: dict[str, Any]) -> None:
        if self._questions is None:
            assert self._hears_questions is not None, "only what was started asks"
            self._questions = self._hears_questions()
        self._questions.take(message)

    def _happened_within(self, event: CallEvent) -> None:
        """Takes what happened to a call that was made within this one."""
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

    def _kept(self, data: bytes) -> bytes:
        kept = data[: self._room]
        self._room -= len(kept)
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
