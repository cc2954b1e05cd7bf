"""The record of a batch: a call of `batch.run`, the parent of the rows' calls."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, Literal

from pegboard.batch.plan import BatchPlan
from pegboard.batch.progress import BatchProgress
from pegboard.models import JsonObject, ResultMeta, ToolCall, ToolResult
from pegboard.ports import Recorder
from pegboard.results.sizes import count

Ended = Literal["complete", "stopped", "failures"]
"""How a batch ended: every row has a result, `stop` was called, or as many rows failed as `stop_after` says."""
_NAME: Final = "batch.run"
_WHY: Final[dict[Ended, str]] = {
    "stopped": "The batch was stopped before its last row.",
    "failures": "The batch was stopped because too many rows failed.",
}
_READ_ENOUGH: Final = "The batch was stopped because the reader of its results, such as `head`, had ended."


class BatchRecord:
    """Record that a batch runs.

    Args:
        recorder: Storage of the record.
        batch: Id of the batch.
        plan: Its options. Values that every row starts from aren't recorded here, but with the rows, redacted.
    """

    def __init__(self, recorder: Recorder, batch: str, plan: BatchPlan) -> None:
        self._recorder = recorder
        args: JsonObject = {"tool": plan.spec.name, "from": plan.source}
        if plan.out is not None:
            args["out"] = str(plan.out)
        self._call = ToolCall(id=batch, name=_NAME, args=args, source="batch")
        self._at = datetime.now(UTC)
        recorder.start(self._call, self._at)

    def finish(self, progress: BatchProgress, ended: Ended, failure: BaseException | None) -> None:
        """Record how the batch ended.

        Args:
            progress: Its counts.
            ended: How it ended, if nothing failed.
            failure: The error after which it couldn't continue.
        """
        counts: JsonObject = {"succeeded": progress.succeeded, "failed": progress.failed}
        if progress.unknown:
            counts["unknown"] = progress.unknown
        if progress.before:
            counts["finished_before"] = progress.before
        meta = ResultMeta(duration_ms=progress.seconds * 1000)
        result = ToolResult(ok=True, data=counts, meta=meta)
        failed, rows = progress.failed + progress.failed_before, progress.done + progress.before
        if failure is not None or ended != "complete" or failed:
            failures = f"{failed:,} of {count(rows, 'row')} failed."
            why = str(failure) if failure is not None else _WHY.get(ended, failures)
            detail = "cancelled" if failure is None and ended == "stopped" else None
            if isinstance(failure, BrokenPipeError):
                why, detail = _READ_ENOUGH, "cancelled"
            error = ToolResult.failed("execution_error", why, detail).error
            result = ToolResult(ok=False, data=counts, error=error, meta=meta)
        self._recorder.record(self._call, result, self._at)
