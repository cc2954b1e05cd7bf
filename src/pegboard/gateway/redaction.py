"""Redaction of the events of one call before they are yielded and recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pegboard import storage
from pegboard.models import (
    ApprovalRequested,
    CallEvent,
    Finished,
    Log,
    Progress,
    Started,
    ToolCall,
    ToolResult,
)
from pegboard.ports import Redaction

ArgumentT = TypeVar("ArgumentT")
ValueT = TypeVar("ValueT")

_LARGE = 100_000
"""Bytes of JSON beyond which redaction runs in a thread, to keep the event loop free."""


def redacted_texts(result: ToolResult, redaction: Redaction) -> ToolResult:
    """Return a result without secrets in its error and its metadata; its data is not changed."""
    text, error, meta = redaction.text, result.error, result.meta
    changes: dict[str, object] = {}
    if error is not None:
        faults = tuple(
            fault.model_copy(update={"path": text(fault.path), "message": text(fault.message)})
            for fault in error.faults
        )
        detail = None if error.detail is None else text(error.detail)
        changes["error"] = error.model_copy(update={"message": text(error.message), "detail": detail, "faults": faults})
    if meta.traceback is not None or meta.warnings or meta.server_meta or meta.content:
        changes["meta"] = meta.model_copy(
            update={
                "traceback": None if meta.traceback is None else text(meta.traceback),
                "warnings": tuple(map(text, meta.warnings)),
                "server_meta": redaction.value(meta.server_meta),
                "content": tuple(map(redaction.value, meta.content)),
            }
        )
    return result.model_copy(update=changes) if changes else result


class Redacting:
    """Redaction of the events of one call.

    Args:
        redaction: The known secrets.
    """

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._held: dict[str, Log] = {}

    def call(self, call: ToolCall) -> ToolCall:
        """Return the call without secrets in its arguments, for events and records; never run this one."""
        args = self._redaction.value(call.args)
        return call if args is call.args else call.model_copy(update={"args": args})

    async def events(self, event: CallEvent) -> Sequence[CallEvent]:
        """Return the events to yield for an event: usually the same one, without secrets.

        The end of a piece of output is held back while it could be the start of a secret.
        """
        return (event,) if not self._redaction.has_any else await self._redacted(event)

    async def _redacted(self, event: CallEvent) -> Sequence[CallEvent]:
        match event:
            case Log():
                return [*self._log(event)]
            case Progress(message=message):
                return [event.model_copy(update={"message": self._redaction.text(message)}) if message else event]
            case Started(call=call) | ApprovalRequested(call=call):
                shown = self.call(call)
                return [event if shown is call else event.model_copy(update={"call": shown})]
            case Finished(call=call, result=result):
                finished = Finished.model_construct(call=self.call(call), result=await self._result(result))
                return [*self._held.values(), finished]

    def _log(self, log: Log) -> Iterator[Log]:
        before = self._held.pop(log.stream, None)
        text = self._redaction.text(before.text + log.text if before else log.text)
        held = self._redaction.unfinished(text)
        if held:
            self._held[log.stream] = log.model_copy(update={"text": text[-held:]})
            text = text[:-held]
        if text:
            yield log if text == log.text else log.model_copy(update={"text": text})

    async def _result(self, result: ToolResult) -> ToolResult:
        if result.meta.truncated is not None:
            await _in_thread(self._redact_file, Path(result.meta.truncated.file))
        if result.meta.size > _LARGE:
            data = await _in_thread(self._redaction.value, result.data)
        else:
            data = self._redaction.value(result.data)
        if data is not result.data:
            result = result.model_copy(update={"data": data})
        if result.original is not None:
            original = await _in_thread(self._redaction.value, result.original)
            result = result.model_copy(update={"original": original})
        return redacted_texts(result, self._redaction)

    def _redact_file(self, file: Path) -> None:
        """Remove the secrets from the file of a large result; delete the file if that fails."""
        try:
            written = file.read_text("utf-8")
            if self._redaction.text(written) == written:
                return
            redacted = self._redaction.value(json.loads(written))
            storage.write(file, json.dumps(redacted, ensure_ascii=False, separators=(",", ":")).encode())
        except (OSError, ValueError, RecursionError):
            with suppress(OSError):
                file.unlink()


async def _in_thread(function: Callable[[ArgumentT], ValueT], argument: ArgumentT) -> ValueT:
    import asyncio

    return await asyncio.to_thread(function, argument)
