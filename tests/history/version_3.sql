-- The tables of a history of version 3 whose index has the escapes of JSON, as Pegboard created them.

CREATE TABLE calls (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    tool TEXT NOT NULL,
    ok INTEGER NOT NULL,
    status INTEGER NOT NULL DEFAULT 1,
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
CREATE INDEX calls_running ON calls (process) WHERE status = 0;
CREATE INDEX calls_by_session ON calls (session) WHERE session IS NOT NULL;
CREATE INDEX calls_by_parent ON calls (parent) WHERE parent IS NOT NULL;
CREATE INDEX calls_by_turn ON calls (turn) WHERE turn IS NOT NULL;
CREATE INDEX calls_deleted ON calls (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE TABLE total (bytes INTEGER NOT NULL);
INSERT INTO total VALUES (0);
CREATE TABLE uses (tool TEXT NOT NULL PRIMARY KEY, calls INTEGER, failures INTEGER, last_at INTEGER) WITHOUT ROWID;
CREATE TABLE facts (name TEXT NOT NULL PRIMARY KEY, value INTEGER) WITHOUT ROWID;
CREATE VIRTUAL TABLE calls_text USING fts5 (
    words, facets, content = '', columnsize = 0, tokenize = 'unicode61 remove_diacritics 2'
);

CREATE TRIGGER call_added AFTER INSERT ON calls BEGIN
    UPDATE total SET bytes = bytes + NEW.bytes;
    INSERT INTO uses (tool, calls, failures, last_at) SELECT NEW.tool, 1, NEW.status = 2, NEW.at WHERE NEW.status <> 0 AND NEW.deleted_at IS NULL AND NEW.turn IS NOT NEW.id ON CONFLICT (tool) DO UPDATE SET calls = calls + 1, failures = failures + excluded.failures, last_at = max(last_at, excluded.last_at);
    INSERT INTO calls_text (rowid, words, facets) SELECT NEW.n, NEW.tool || ' ' || substr(NEW.args, 1, 16000) || ' ' || coalesce(NEW.error, '') || ' ' || substr(coalesce(NEW.data, NEW.excerpt, ''), 1, 16000), 't' || hex(substr(NEW.tool, 1, 500)) || ' o' || hex(NEW.source) || ' r' || NEW.status || ' d' || CASE WHEN NEW.duration_ms < 10 THEN 0 WHEN NEW.duration_ms < 100 THEN 1 WHEN NEW.duration_ms < 300 THEN 2 WHEN NEW.duration_ms < 1000 THEN 3 WHEN NEW.duration_ms < 3000 THEN 4 WHEN NEW.duration_ms < 10000 THEN 5 WHEN NEW.duration_ms < 30000 THEN 6 WHEN NEW.duration_ms < 100000 THEN 7 ELSE 8 END || coalesce(' s' || hex(NEW.session), '') || coalesce(' a' || hex(NEW.agent), '') || CASE WHEN NEW.parent IS NOT NULL THEN '' WHEN NEW.turn IS NULL THEN ' p0' WHEN NEW.turn = NEW.id THEN ' p2' ELSE ' p1' END || CASE WHEN NEW.pinned THEN ' k1' ELSE '' END WHERE NEW.status <> 0 AND NEW.deleted_at IS NULL;
END;
CREATE TRIGGER call_removed AFTER DELETE ON calls BEGIN
    UPDATE total SET bytes = bytes - OLD.bytes;
    UPDATE uses SET calls = calls - 1, failures = failures - (OLD.status = 2) WHERE tool = OLD.tool AND OLD.status <> 0 AND OLD.deleted_at IS NULL AND OLD.turn IS NOT OLD.id;
    INSERT INTO calls_text (calls_text, rowid, words, facets) SELECT 'delete', OLD.n, OLD.tool || ' ' || substr(OLD.args, 1, 16000) || ' ' || coalesce(OLD.error, '') || ' ' || substr(coalesce(OLD.data, OLD.excerpt, ''), 1, 16000), 't' || hex(substr(OLD.tool, 1, 500)) || ' o' || hex(OLD.source) || ' r' || OLD.status || ' d' || CASE WHEN OLD.duration_ms < 10 THEN 0 WHEN OLD.duration_ms < 100 THEN 1 WHEN OLD.duration_ms < 300 THEN 2 WHEN OLD.duration_ms < 1000 THEN 3 WHEN OLD.duration_ms < 3000 THEN 4 WHEN OLD.duration_ms < 10000 THEN 5 WHEN OLD.duration_ms < 30000 THEN 6 WHEN OLD.duration_ms < 100000 THEN 7 ELSE 8 END || coalesce(' s' || hex(OLD.session), '') || coalesce(' a' || hex(OLD.agent), '') || CASE WHEN OLD.parent IS NOT NULL THEN '' WHEN OLD.turn IS NULL THEN ' p0' WHEN OLD.turn = OLD.id THEN ' p2' ELSE ' p1' END || CASE WHEN OLD.pinned THEN ' k1' ELSE '' END WHERE OLD.status <> 0 AND OLD.deleted_at IS NULL;
END;
CREATE TRIGGER call_changed AFTER UPDATE ON calls BEGIN
    UPDATE total SET bytes = bytes - OLD.bytes + NEW.bytes;
    UPDATE uses SET calls = calls - 1, failures = failures - (OLD.status = 2) WHERE tool = OLD.tool AND OLD.status <> 0 AND OLD.deleted_at IS NULL AND OLD.turn IS NOT OLD.id;
    INSERT INTO calls_text (calls_text, rowid, words, facets) SELECT 'delete', OLD.n, OLD.tool || ' ' || substr(OLD.args, 1, 16000) || ' ' || coalesce(OLD.error, '') || ' ' || substr(coalesce(OLD.data, OLD.excerpt, ''), 1, 16000), 't' || hex(substr(OLD.tool, 1, 500)) || ' o' || hex(OLD.source) || ' r' || OLD.status || ' d' || CASE WHEN OLD.duration_ms < 10 THEN 0 WHEN OLD.duration_ms < 100 THEN 1 WHEN OLD.duration_ms < 300 THEN 2 WHEN OLD.duration_ms < 1000 THEN 3 WHEN OLD.duration_ms < 3000 THEN 4 WHEN OLD.duration_ms < 10000 THEN 5 WHEN OLD.duration_ms < 30000 THEN 6 WHEN OLD.duration_ms < 100000 THEN 7 ELSE 8 END || coalesce(' s' || hex(OLD.session), '') || coalesce(' a' || hex(OLD.agent), '') || CASE WHEN OLD.parent IS NOT NULL THEN '' WHEN OLD.turn IS NULL THEN ' p0' WHEN OLD.turn = OLD.id THEN ' p2' ELSE ' p1' END || CASE WHEN OLD.pinned THEN ' k1' ELSE '' END WHERE OLD.status <> 0 AND OLD.deleted_at IS NULL;
    INSERT INTO uses (tool, calls, failures, last_at) SELECT NEW.tool, 1, NEW.status = 2, NEW.at WHERE NEW.status <> 0 AND NEW.deleted_at IS NULL AND NEW.turn IS NOT NEW.id ON CONFLICT (tool) DO UPDATE SET calls = calls + 1, failures = failures + excluded.failures, last_at = max(last_at, excluded.last_at);
    INSERT INTO calls_text (rowid, words, facets) SELECT NEW.n, NEW.tool || ' ' || substr(NEW.args, 1, 16000) || ' ' || coalesce(NEW.error, '') || ' ' || substr(coalesce(NEW.data, NEW.excerpt, ''), 1, 16000), 't' || hex(substr(NEW.tool, 1, 500)) || ' o' || hex(NEW.source) || ' r' || NEW.status || ' d' || CASE WHEN NEW.duration_ms < 10 THEN 0 WHEN NEW.duration_ms < 100 THEN 1 WHEN NEW.duration_ms < 300 THEN 2 WHEN NEW.duration_ms < 1000 THEN 3 WHEN NEW.duration_ms < 3000 THEN 4 WHEN NEW.duration_ms < 10000 THEN 5 WHEN NEW.duration_ms < 30000 THEN 6 WHEN NEW.duration_ms < 100000 THEN 7 ELSE 8 END || coalesce(' s' || hex(NEW.session), '') || coalesce(' a' || hex(NEW.agent), '') || CASE WHEN NEW.parent IS NOT NULL THEN '' WHEN NEW.turn IS NULL THEN ' p0' WHEN NEW.turn = NEW.id THEN ' p2' ELSE ' p1' END || CASE WHEN NEW.pinned THEN ' k1' ELSE '' END WHERE NEW.status <> 0 AND NEW.deleted_at IS NULL;
END;
CREATE TRIGGER turn_removed AFTER DELETE ON calls WHEN OLD.turn = OLD.id BEGIN
    UPDATE calls SET turn = NULL WHERE turn = OLD.id;
END;
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
PRAGMA user_version = 3;
