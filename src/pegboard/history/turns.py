"""Model turns of other agents in the history database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pegboard.history.history import History
from pegboard.history.notify import notify
from pegboard.history.reader import Reader
from pegboard.models.conversation import Usage
from pegboard.models.statistics import TimelineBar
from pegboard.models.turn import ModelTurn

if TYPE_CHECKING:
    from pegboard.history.database import Database

LONGEST_TEXT: Final = 4_000
"""Maximum length of a turn's text, in characters."""
MOST_TURNS: Final = 20_000
"""Number of turns beyond which the oldest are removed."""
_LONGEST_LABEL: Final = 60


def add_turns(history: History, turns: Sequence[ModelTurn]) -> None:
    """Add turns; skip those whose id is already recorded; block.

    Raises:
        StoreError: They can't be written.
    """
    from pegboard.history.rows import microseconds, unicode_of

    def add(database: Database) -> None:
        with database.transaction() as run:
            for turn in turns:
                run(
                    "INSERT OR IGNORE INTO turns (id, session, at, duration_ms, ok, model, text, input_tokens,"
                    " output_tokens) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        turn.id,
                        unicode_of(turn.session),
                        microseconds(turn.at),
                        turn.duration_ms,
                        int(turn.ok),
                        unicode_of(turn.model),
                        unicode_of(turn.text[:LONGEST_TEXT]),
                        turn.usage.input_tokens,
                        turn.usage.output_tokens,
                    ],
                )
            run("DELETE FROM turns WHERE rowid <= (SELECT max(rowid) FROM turns) - ?", [MOST_TURNS])

    history.act(add)
    notify(history.bells)


def turn_bars(reader: Reader, session: str, limit: int) -> list[TimelineBar]:
    """Return the latest turns of a session for its timeline; block.

    Raises:
        StoreError: The database can't be read.
    """
    from pegboard.history.rows import moment

    rows = reader.select(
        "SELECT id, at, duration_ms, ok, model, substr(text, 1, 200), input_tokens, output_tokens FROM turns"
        " WHERE session = ? ORDER BY at DESC LIMIT ?",
        [session, limit],
    )
    bars = []
    for turn, at, duration, ok, model, text, received, sent in rows:
        start = moment(at)
        bars.append(
            TimelineBar(
                kind="turn",
                id=str(turn),
                label=" ".join(str(text).split())[:_LONGEST_LABEL] or str(model),
                start=start,
                end=start + timedelta(milliseconds=min(max(float(duration or 0), 0.0), 1e12)),
                state="ok" if ok else "failed",
                model=str(model),
                usage=Usage(input_tokens=int(received or 0), output_tokens=int(sent or 0)),
            )
        )
    return bars
