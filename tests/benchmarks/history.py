"""The history with 1,000,000 calls: pages, filters, cost of recording, and size."""

from __future__ import annotations

import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pegboard.history import History
from pegboard.history.query import parse_query
from pegboard.history.recorded import RecordedCalls
from pegboard.models import HistoryQuery, ResultMeta, ToolCall, ToolResult

CALLS = 1_000_000
TOOLS = [
    f"{pack}.{name}" for pack in ("ckan", "fs", "git", "web", "shop") for name in ("list", "show", "search", "diff")
]
WORDS = [
    f"{start}{end}" for start in ("or", "cust", "deliv", "inv", "pay") for end in ("der", "omer", "ery", "oice", "ment")
]
FILTERS = (
    "tool:ckan.*",
    "source:ask status:failed",
    "session:s77777",
    "since:2h",
    "slower:10s",
    "slower:1s tool:fs.list",
    "order",
    '"customer payment"',
    "rareword",
    "tool:git.diff status:failed since:1d order",
    "parent:none status:failed",
    "pinned:",
    "or de in cu",
    "cus",
    "pay ord",
)


def measure() -> list[tuple[str, float, float, str]]:
    """Return the figures."""
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small", "history.db"), Path(folder, "large", "history.db")
        content = {file: _fill(file, calls) for file, calls in ((small, 1_000), (large, CALLS))}
        costs = _recording(small, large)
        ratio = statistics.median(costs[large]) / statistics.median(costs[small])
        size = sum(path.stat().st_size for path in large.parent.iterdir() if path.is_file())
        history = History(large, large.parent / "results", size_limit=10**12)
        calls = RecordedCalls(history)
        first = _seconds(lambda: calls.page(HistoryQuery(), limit=100))
        again = min(_seconds(lambda: calls.page(HistoryQuery(parent="none"), limit=100)) for _ in range(3))
        rows = [
            ("history: open and list the first page (s)", first, 0.3, f"then {again:.3f} s"),
            (
                "history: recording at 1,000,000 calls / at 1,000",
                ratio,
                1.1,
                f"{statistics.median(costs[large]) * 1e6:.0f} us per call",
            ),
            (
                "history: size / (1.5 x arguments and results + 1 kB)",
                size / (1.5 * content[large] + CALLS * 1000),
                1.0,
                f"{size / 1e6:.0f} MB, texts {content[large] / 1e6:.0f} MB",
            ),
        ]
        slowest = 0.0
        for text in FILTERS:
            query = parse_query(text).query
            page = min(_seconds(lambda query=query: calls.page(query, limit=100)) for _ in range(3))
            count = min(_seconds(lambda query=query: calls.count(query)) for _ in range(3))
            slowest = max(slowest, page)
            rows.append(
                (f"history: filter {text} (s)", page, 0.1, f"count {count:.3f} s: {calls.count(query).calls:,}")
            )
        deep = _seconds(lambda: calls.page(HistoryQuery(), before=CALLS // 2, limit=100))
        rows.append(("history: page in the middle (s)", deep, 0.1, ""))
        calls.close()
        history.close()
        return rows


def _seconds(act: object) -> float:
    start = time.perf_counter()
    act()  # type: ignore[operator]
    return time.perf_counter() - start


def _recording(*files: Path) -> dict[Path, list[float]]:
    """Return the seconds per call of recording 100 calls, for several batches that alternate between the files."""
    histories = {file: History(file, file.parent / "results", size_limit=10**12) for file in files}
    costs: dict[Path, list[float]] = {file: [] for file in files}
    for batch in range(40):
        for file, history in histories.items():
            history.flush()
            made = [_call(random.Random(batch * 1000 + number)) for number in range(100)]
            start = time.perf_counter()
            for call, result in made:
                history.record(call, result, datetime.now(UTC))
            history.flush()
            costs[file].append((time.perf_counter() - start) / 100)
    for history in histories.values():
        history.close()
    return costs


def _call(chance: random.Random) -> tuple[ToolCall, ToolResult]:
    data = {"rows": [{"id": chance.randrange(10**6), "note": " ".join(chance.choices(WORDS, k=6))} for _ in range(8)]}
    call = ToolCall(
        name=chance.choice(TOOLS),
        args={"query": " ".join(chance.choices(WORDS, k=4)), "limit": chance.randrange(100)},
        source=chance.choice(("ask", "cli", "form", "script")),
    )
    return call, ToolResult(ok=True, data=data, meta=ResultMeta(duration_ms=chance.expovariate(1 / 80)))


def _fill(file: Path, calls: int) -> int:
    """Fill a database with calls of the last 30 days; return the bytes of their arguments and results."""
    history = History(file, file.parent / "results", size_limit=10**12)
    history.record(ToolCall(name="a.x", source="cli"), ToolResult(ok=True), datetime.now(UTC) - timedelta(days=31))
    history.close()
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    columns = (
        "id, at, tool, args, ok, error, duration_ms, source, session, parent, meta, data, file, bytes, status, agent,"
        " process, size, excerpt"
    )
    statement = f"INSERT INTO calls ({columns}) VALUES ({','.join('?' * 19)})"
    total = 0
    rows = _rows(calls)
    done = False
    while not done:
        batch = []
        for row in rows:
            total += len(str(row[3])) + len(str(row[11]))
            batch.append(row)
            if len(batch) == 5_000:
                break
        done = len(batch) < 5_000
        connection.execute("BEGIN")
        connection.executemany(statement, batch)
        connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return total


def _rows(calls: int) -> Iterator[tuple[object, ...]]:
    from pegboard.history.rows import row_of

    samples = [_call(random.Random(seed)) for seed in range(2_000)]
    made = [row_of(call, result, datetime.now(UTC), result.model_dump_json(), None, 0) for call, result in samples]
    chance = random.Random(1)
    now = time.time_ns() // 1000
    step = 30 * 86_400_000_000 // calls
    for number in range(calls):
        row = made[chance.randrange(len(made))]
        at = now - (calls - number) * step
        fails = number % 37 == 0
        data = row.data if number % 200_000 != 5 else '"rareword"'
        yield (
            f"{at // 1000:012x}{number:020x}",
            at,
            row.tool,
            row.args.replace("}", f',"n":{number}}}', 1),
            int(not fails),
            '{"code":"execution_error","message":"It broke."}' if fails else None,
            chance.expovariate(1 / 300),
            row.source,
            f"s{number // 12}" if number % 4 == 0 else None,
            f"p{number // 50}" if number % 3 else None,
            row.meta,
            data,
            None,
            row.bytes,
            2 if fails else 1,
            None,
            None,
            len(data or ""),
            None,
        )
