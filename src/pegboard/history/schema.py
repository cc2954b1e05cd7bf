"""Tables, indexes and triggers of the history, and the migration of older files."""

from __future__ import annotations

from typing import Final

VERSION: Final = 3

RUNNING, OK, FAILED, CANCELLED, DENIED, INTERRUPTED = range(6)
"""Values of the column `status`."""

UNREADABLE: Final = (TypeError, ValueError, OverflowError, RecursionError)
"""Errors raised when a damaged row is read, or when a value that isn't JSON is converted to a row."""
INDEXED_TEXT: Final = 16_000
"""Characters of the arguments and of the result that full-text search covers, for each call."""
DURATION_STEPS: Final = (10, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
"""Limits in milliseconds between the classes of durations in the index."""
TOP, IN_TURN, A_TURN = "p0", "p1", "p2"
"""Words in the index for calls that neither a call nor a turn made, for calls that a turn made, and for turns."""
NOT_A_TURN: Final = "turn IS NOT id"
"""Condition on a row of `calls`. The rows of turns have their own id as `turn`."""

EDITED: Final = "INSERT INTO facts VALUES ('edits', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"
"""Statement that makes watchers read everything again, because calls before the newest ones have changed."""

_LAST_ESCAPED: Final = "coalesce((SELECT value FROM facts WHERE name = 'last_escaped'), 0)"
"""The last row whose text was indexed with the escapes of JSON, as each was before. The index has no copy of the texts,
so that the words of these rows have to stay the same until they are removed."""
_KEEP_ESCAPED: Final = "INSERT OR IGNORE INTO facts SELECT 'last_escaped', coalesce(max(n), 0) FROM calls;"


def _facets(row: str) -> str:
    """Return the SQL of the words by which structured filters find a row of `calls`."""
    steps = " ".join(f"WHEN {row}.duration_ms < {limit} THEN {index}" for index, limit in enumerate(DURATION_STEPS))
    return (
        f"'t' || hex(substr({row}.tool, 1, 500)) || ' o' || hex({row}.source) || ' r' || {row}.status"
        f" || ' d' || CASE {steps} ELSE {len(DURATION_STEPS)} END"
        f" || coalesce(' s' || hex({row}.session), '') || coalesce(' a' || hex({row}.agent), '')"
        f" || CASE WHEN {row}.parent IS NOT NULL THEN '' WHEN {row}.turn IS NULL THEN ' {TOP}'"
        f" WHEN {row}.turn = {row}.id THEN ' {A_TURN}' ELSE ' {IN_TURN}' END"
        f" || CASE WHEN {row}.pinned THEN ' k1' ELSE '' END"
    )


def _words(row: str) -> str:
    """Return the SQL of the text that full-text search covers."""
    escaped = (
        f"{row}.tool || ' ' || substr({row}.args, 1, {INDEXED_TEXT}) || ' ' || coalesce({row}.error, '') || ' '"
        f" || substr(coalesce({row}.data, {row}.excerpt, ''), 1, {INDEXED_TEXT})"
    )
    # In JSON, a line break is an escape whose letter would become the beginning of the next word.
    text = escaped
    for escape in (r"\\", r"\n", r"\r", r"\t"):
        text = f"replace({text}, '{escape}', ' ')"
    # Most texts have none, and four replacements take a twentieth of the time of a record.
    has_escape = " OR ".join(f"instr({row}.{column}, '\\')" for column in ("args", "data", "excerpt", "error"))
    return f"CASE WHEN ({has_escape}) AND {row}.n > {_LAST_ESCAPED} THEN {text} ELSE {escaped} END"


def _is_listed(row: str) -> str:
    """Return the SQL for a finished call or turn that was not deleted; only such ones are indexed."""
    return f"{row}.status <> {RUNNING} AND {row}.deleted_at IS NULL"


def _is_counted(row: str) -> str:
    return f"{_is_listed(row)} AND {row}.turn IS NOT {row}.id"


def _index(row: str) -> str:
    return (
        f"INSERT INTO calls_text (rowid, words, facets) SELECT {row}.n, {_words(row)}, {_facets(row)}"
        f" WHERE {_is_listed(row)};"
    )


def _unindex(row: str) -> str:
    return (
        f"INSERT INTO calls_text (calls_text, rowid, words, facets) SELECT 'delete', {row}.n, {_words(row)},"
        f" {_facets(row)} WHERE {_is_listed(row)};"
    )


def _count(row: str) -> str:
    return (
        f"INSERT INTO uses (tool, calls, failures, last_at) SELECT {row}.tool, 1, {row}.status = {FAILED}, {row}.at"
        f" WHERE {_is_counted(row)} ON CONFLICT (tool) DO UPDATE SET calls = calls + 1,"
        " failures = failures + excluded.failures, last_at = max(last_at, excluded.last_at);"
    )


def _uncount(row: str) -> str:
    return (
        f"UPDATE uses SET calls = calls - 1, failures = failures - ({row}.status = {FAILED})"  # noqa: S608 - our own text
        f" WHERE tool = {row}.tool AND {_is_counted(row)};"
    )


_TURN_INDEX: Final = "CREATE INDEX calls_by_turn ON calls (turn) WHERE turn IS NOT NULL;"
# The large columns come last: SQLite reads no further than the last column that a query wants.
_TABLES: Final = f"""
CREATE TABLE calls (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    tool TEXT NOT NULL,
    ok INTEGER NOT NULL,
    status INTEGER NOT NULL DEFAULT {OK},
    duration_ms REAL NOT NULL,
    source TEXT NOT NULL,
    session TEXT,
    parent TEXT,
    turn TEXT,
    agent TEXT,
    process TEXT,
    pinned INTEGER NOT NULL DEFAULT 0,
    deleted_at INTEGER,
    size INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL,
    file TEXT,
    error TEXT,
    args TEXT NOT NULL,
    excerpt TEXT,
    meta TEXT NOT NULL,
    data TEXT
);
CREATE INDEX calls_by_time ON calls (at);
CREATE INDEX calls_by_tool ON calls (tool, at);
CREATE INDEX calls_running ON calls (process) WHERE status = {RUNNING};
CREATE INDEX calls_by_session ON calls (session) WHERE session IS NOT NULL;
CREATE INDEX calls_by_parent ON calls (parent) WHERE parent IS NOT NULL;
{_TURN_INDEX}
CREATE INDEX calls_deleted ON calls (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE TABLE total (bytes INTEGER NOT NULL);
INSERT INTO total VALUES (0);
CREATE TABLE uses (tool TEXT NOT NULL PRIMARY KEY, calls INTEGER, failures INTEGER, last_at INTEGER) WITHOUT ROWID;
CREATE TABLE facts (name TEXT NOT NULL PRIMARY KEY, value INTEGER) WITHOUT ROWID;
CREATE VIRTUAL TABLE calls_text USING fts5 (
    words, facets, content = '', columnsize = 0, tokenize = 'unicode61 remove_diacritics 2'
);
"""  # noqa: S608 - our own text
_TRIGGERS: Final = f"""
CREATE TRIGGER call_added AFTER INSERT ON calls BEGIN
    UPDATE total SET bytes = bytes + NEW.bytes;
    {_count("NEW")}
    {_index("NEW")}
END;
CREATE TRIGGER call_removed AFTER DELETE ON calls BEGIN
    UPDATE total SET bytes = bytes - OLD.bytes;
    {_uncount("OLD")}
    {_unindex("OLD")}
END;
CREATE TRIGGER call_changed AFTER UPDATE ON calls BEGIN
    UPDATE total SET bytes = bytes - OLD.bytes + NEW.bytes;
    {_uncount("OLD")}
    {_unindex("OLD")}
    {_count("NEW")}
    {_index("NEW")}
END;
CREATE TRIGGER turn_removed AFTER DELETE ON calls WHEN OLD.turn = OLD.id BEGIN
    UPDATE calls SET turn = NULL WHERE turn = OLD.id;
END;
"""  # noqa: S608 - our own text

SCHEMA: Final = _TABLES + _TRIGGERS + _KEEP_ESCAPED
IS_CURRENT: Final = "SELECT 1 FROM facts WHERE name = 'last_escaped'"
"""Query that returns a row if the triggers are those of this Pegboard."""
NEW_TRIGGERS: Final = f"""
DROP TRIGGER IF EXISTS call_added;
DROP TRIGGER IF EXISTS call_removed;
DROP TRIGGER IF EXISTS call_changed;
DROP TRIGGER IF EXISTS turn_removed;
{_TRIGGERS}
{_KEEP_ESCAPED}
"""

SESSIONS_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    model TEXT NOT NULL,
    system TEXT
);
CREATE TABLE IF NOT EXISTS messages (
    session TEXT NOT NULL,
    position INTEGER NOT NULL,
    at INTEGER NOT NULL,
    message TEXT NOT NULL,
    text TEXT NOT NULL,
    call TEXT,
    PRIMARY KEY (session, position)
);
CREATE TABLE IF NOT EXISTS reusable (key TEXT NOT NULL PRIMARY KEY, at INTEGER NOT NULL, call TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS turns (
    id TEXT NOT NULL PRIMARY KEY,
    session TEXT NOT NULL,
    at INTEGER NOT NULL,
    duration_ms REAL NOT NULL,
    ok INTEGER NOT NULL,
    model TEXT NOT NULL,
    text TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS turns_by_session ON turns (session, at);
"""
# Histories created before these tables existed get these tables when opened.

TERMS: Final = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.calls_terms USING fts5vocab ('main', 'calls_text', 'instance')"
"""Statement that makes the words of the index readable by a connection."""

_KEPT = "id, at, tool, args, ok, error, duration_ms, source, session, parent, meta, data, file, bytes"
MIGRATION_1: Final = f"""
DROP TRIGGER call_added;
DROP TRIGGER call_removed;
DROP INDEX calls_by_time;
DROP INDEX calls_by_tool;
DROP TABLE total;
ALTER TABLE calls RENAME TO calls_1;
{_TABLES}
INSERT INTO calls ({_KEPT}, status, size)
    SELECT {_KEPT},
        CASE WHEN ok THEN {OK} WHEN instr(coalesce(error, ''), '"detail":"cancelled"') THEN {CANCELLED}
            WHEN instr(coalesce(error, ''), '"detail":"denied"') THEN {DENIED} ELSE {FAILED} END,
        coalesce(length(data), 0)
    FROM calls_1 ORDER BY at, rowid;
DROP TABLE calls_1;
UPDATE total SET bytes = (SELECT coalesce(sum(bytes), 0) FROM calls);
INSERT INTO uses SELECT tool, count(*), sum(status = {FAILED}), max(at) FROM calls GROUP BY tool;
INSERT INTO calls_text (rowid, words, facets) SELECT n, {_words("calls")}, {_facets("calls")} FROM calls;
INSERT INTO facts VALUES ('last_escaped', 0);
{_TRIGGERS}
"""  # noqa: S608 - our own text
MIGRATION_2: Final = f"""
DROP TRIGGER call_added;
DROP TRIGGER call_removed;
DROP TRIGGER call_changed;
ALTER TABLE calls ADD COLUMN turn TEXT;
{_TURN_INDEX}
{_TRIGGERS}
{_KEEP_ESCAPED}
"""
# The index of calls without a turn is as before, so that it needn't be written again.
