"""The record of a turn: the work on one message of the user, in which the model makes calls."""

from __future__ import annotations

from datetime import UTC, datetime
from time import monotonic

from pegboard.models import ResultMeta, ToolError, ToolResult
from pegboard.models.ask import Outcome
from pegboard.models.call import new_call_id
from pegboard.models.turn import LONGEST_TEXT, ModelTurn
from pegboard.ports import Recorder, Redaction


class TurnRecord:
    """Record of one turn, which is in the history from its start on.

    Args:
        recorder: Storage of the record.
        redaction: The known secrets.
    """

    def __init__(self, recorder: Recorder, redaction: Redaction) -> None:
        self.id = new_call_id()
        """Id of the turn, to which its calls are linked."""
        self._recorder = recorder
        self._redaction = redaction
        self._started: tuple[ModelTurn, str, datetime, float] | None = None
        self.model = ""
        """Name of the model that answers."""

    async def start(self, session: str, message: int, text: str) -> None:
        """Record the start.

        Args:
            session: Id of the session.
            message: Position of the user's message in the session.
            text: The message.
        """
        await self._redaction.renew()
        text = self._redaction.text(text[: 2 * LONGEST_TEXT])[:LONGEST_TEXT]  # no part of a secret remains
        turn, at = ModelTurn(text=text, message=message), datetime.now(UTC)
        self._started = turn, session, at, monotonic()
        self._recorder.start(turn.call(self.id, "ask", session), at)

    def finish(self, outcome: Outcome | None) -> None:
        """Record the end, unless it is recorded already.

        Args:
            outcome: The outcome; None if the caller has disconnected.
        """
        if self._started is None:
            return
        (turn, session, at, begun), self._started = self._started, None
        error = None
        if outcome is None or outcome.stopped_by == "interrupted":
            error = ToolError(code="execution_error", message="The turn was interrupted.", detail="cancelled")
        elif outcome.model_error is not None:
            said = self._redaction.text(outcome.model_error.message)
            error = ToolError(code="execution_error", message=said, detail=outcome.model_error.code)
        known: dict[str, object] = {}
        if outcome is not None:
            known = {"usage": outcome.usage, "steps": outcome.steps, "stopped_by": outcome.stopped_by}
        call = turn.model_copy(update={"model": self.model, **known}).call(self.id, "ask", session)
        meta = ResultMeta(duration_ms=(monotonic() - begun) * 1000)  # the clock may be set meanwhile
        self._recorder.record(call, ToolResult(ok=error is None, error=error, meta=meta), at)
