"""Model turns of other agents on the timeline of their session."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pegboard.history.reader import Reader
from pegboard.history.schema import OK
from pegboard.models.conversation import Usage
from pegboard.models.timeline import TimelineBar

_LONGEST_LABEL: Final = 60


def turn_bars(reader: Reader, session: str, limit: int) -> list[TimelineBar]:
    """Return the latest turns of a session of another agent for its timeline; block.

    Turns of a chat are not among them: its timeline shows each response of the model, which its messages contain.

    Raises:
        StoreError: The database can't be read.
    """
    from pegboard.history.rows import moment

    rows = reader.select(
        # Earlier versions recorded turns in a table of their own.
        "SELECT id, at, duration_ms, ok, model, substr(text, 1, 200), input_tokens, output_tokens FROM turns"  # noqa: S608 - our own number
        f" WHERE session = ? UNION ALL SELECT id, at, duration_ms, status = {OK}, json_extract(args, '$.model'),"
        " substr(json_extract(args, '$.text'), 1, 200), json_extract(args, '$.usage.inputTokens'),"
        " json_extract(args, '$.usage.outputTokens')"
        " FROM calls WHERE session = ? AND turn = id AND source <> 'ask' AND deleted_at IS NULL AND json_valid(args)"
        " ORDER BY at DESC LIMIT ?",
        [session, session, limit],
    )
    bars = []
    for turn, at, duration, ok, model, text, received, sent in rows:
        start = moment(at)
        bars.append(
            TimelineBar(
                kind="turn",
                id=str(turn),
                label=" ".join(str(text or "").split())[:_LONGEST_LABEL] or str(model or ""),
                start=start,
                end=start + timedelta(milliseconds=min(max(float(duration or 0), 0.0), 1e12)),
                state="ok" if ok else "failed",
                model=str(model or ""),
                usage=Usage(input_tokens=int(received or 0), output_tokens=int(sent or 0)),
            )
        )
    return bars
