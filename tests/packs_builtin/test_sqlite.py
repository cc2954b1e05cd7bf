"""The sqlite pack reads databases, and can't be made to change or open anything else."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pegboard.packs import sqlite
from pegboard.sdk import ToolFailed

from .races import race, swapping


@pytest.fixture
def shop(work: Path) -> Path:
    """Provide a database with two tables, a view, an index, a full-text search and an R*Tree."""
    file = work / "shop.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("""
            CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL DEFAULT 'nobody');
            CREATE TABLE "or der" (
                customer INTEGER REFERENCES customer (id), number INTEGER, paid REAL, note BLOB,
                PRIMARY KEY (customer, number));
            CREATE VIEW paid AS SELECT name, sum(paid) AS total FROM customer, "or der" ON id = customer GROUP BY name;
            CREATE INDEX by_name ON customer (name);
            CREATE VIRTUAL TABLE found USING fts5 (word);
            INSERT INTO found VALUES ('hammer');
            CREATE VIRTUAL TABLE area USING rtree (id, low, high);
            INSERT INTO area VALUES (1, 2.0, 3.0);
            INSERT INTO customer VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Çem');
            INSERT INTO "or der" VALUES (1, 1, 1.5, x'00ff'), (1, 2, 2.5, NULL), (2, 1, 9e999, zeroblob(100));
        """)
    return file


def ask(sql: str, **more: Any) -> list[dict[str, Any]]:
    return sqlite.query(database="shop.db", sql=sql, **more)["rows"]


def test_a_query_returns_columns_and_rows(shop: Path) -> None:
    assert sqlite.query(database="shop.db", sql="SELECT id, name FROM customer ORDER BY id DESC") == {
        "columns": ["id", "name"],
        "rows": [{"id": 3, "name": "Çem"}, {"id": 2, "name": "Bob"}, {"id": 1, "name": "Ann"}],
        "truncated": False,
    }
    assert sqlite.query(database="shop.db", sql="SELECT * FROM customer WHERE 0")["columns"] == ["id", "name"]


def test_parameters_are_bound_by_position_and_by_name(shop: Path) -> None:
    assert ask("SELECT name FROM customer WHERE id = ?", parameters=[2]) == [{"name": "Bob"}]
    assert ask("SELECT :a AS a, :b AS b", parameters={"a": "'; DROP", "b": None}) == [{"a": "'; DROP", "b": None}]
    with pytest.raises(ToolFailed, match="binding"):
        ask("SELECT ?")


def test_columns_of_one_name_are_renamed_and_blobs_are_shown(shop: Path) -> None:
    assert ask("SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a") == [{"a": 1, "a_2": 2, "a_2_2": 3, "a_3": 4}]
    notes = ask('SELECT note FROM "or der"')
    assert [row["note"] for row in notes] == ["x'00ff'", None, f"x'{'00' * 64}'… (100 bytes)"]


def test_a_limited_result_is_marked_as_truncated(shop: Path) -> None:
    found = sqlite.query(database="shop.db", sql="SELECT id FROM customer", max_rows=2)
    assert (len(found["rows"]), found["truncated"]) == (2, True)
    assert sqlite.query(database="shop.db", sql="SELECT id FROM customer", max_rows=3)["truncated"] is False


def test_an_endless_query_is_stopped(shop: Path) -> None:
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(ToolFailed, match=r"took longer than 0\.2 s") as failed:
        ask(endless, seconds=0.2)
    assert failed.value.code == "too_slow"


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM customer",
        "UPDATE sqlite_master SET sql = ''",
        "INSERT INTO customer VALUES (9, 'x')",
        "CREATE TABLE x (a)",
        "CREATE TEMP TABLE x (a)",
        "DROP TABLE customer",
        "ATTACH 'other.db' AS other",
        "ATTACH ':memory:' AS other",
        "VACUUM INTO 'copy.db'",
        "PRAGMA writable_schema = ON",
        "PRAGMA query_only = OFF",
        "PRAGMA user_version = 5",
        "PRAGMA journal_mode = WAL",
        "SELECT load_extension('evil')",
        "WITH gone AS (SELECT 1) DELETE FROM customer",
        "DELETE FROM area_rowid",
        "INSERT INTO area VALUES (2, 0, 1)",
    ],
)
def test_nothing_is_changed_and_no_other_file_is_opened(shop: Path, sql: str) -> None:
    before = shop.read_bytes(), sorted(path.name for path in shop.parent.iterdir())
    with pytest.raises(
        ToolFailed, match=r"Only read-only queries|no such function|not authorized|prohibited|may not be modified"
    ) as failed:
        ask(sql)
    assert failed.value.code in {"read_only", "sql_failed"}
    assert (shop.read_bytes(), sorted(path.name for path in shop.parent.iterdir())) == before


@pytest.mark.parametrize(
    "sql",
    [
        "PRAGMA table_info(customer)",
        "PRAGMA user_version",
        "PRAGMA journal_mode",
        "EXPLAIN QUERY PLAN SELECT * FROM customer",
        "VALUES (1)",
        "SELECT count(*) FROM pragma_table_list",
        "SELECT value FROM json_each('[1, 2]')",
        "SELECT word FROM found WHERE found MATCH 'hammer'",
        "SELECT id FROM area WHERE low < 2.5",
    ],
)
def test_pragmas_that_only_read_are_run(shop: Path, sql: str) -> None:
    assert ask(sql)


@pytest.mark.parametrize(
    ("sql", "more"),
    [
        ("SELEC 1", {}),
        ("SELECT * FROM nothing", {}),
        ("SELECT 1; SELECT 2", {}),
        ("SELECT '\ud800'", {}),
        ("SELECT ?", {"parameters": [2**70]}),
        ("SELECT ?", {"parameters": [[1]]}),
        ("SELECT 1\0", {}),
        ("SELECT zeroblob(100000000)", {}),
    ],
)
def test_errors_of_sqlite_are_quoted(shop: Path, sql: str, more: dict[str, Any]) -> None:
    with pytest.raises(ToolFailed) as failed:
        ask(sql, **more)
    assert failed.value.code == "sql_failed"


def test_tables_are_listed_with_columns_keys_and_indexes(shop: Path) -> None:
    area, *_, customer, found, _, _, _, _, _, order, paid = sqlite.tables(database="shop.db", count_rows=True)
    assert customer["columns"] == [
        {"name": "id", "type": "INTEGER", "not_null": False, "default": None, "primary_key": 1},
        {"name": "name", "type": "TEXT", "not_null": True, "default": "'nobody'", "primary_key": 0},
    ]
    assert (customer["kind"], customer["rows"], customer["indexes"]) == ("table", 3, ["by_name"])
    assert str(customer["sql"]).startswith("CREATE TABLE customer")
    assert (order["name"], order["rows"]) == ("or der", 3)
    assert [column["primary_key"] for column in order["columns"]] == [1, 2, 0, 0]
    assert (found["kind"], found["rows"]) == ("virtual", 1)
    assert (area["kind"], area["rows"], "error" in area) == ("virtual", 1, False)
    assert order["references"] == [{"columns": ["customer"], "table": "customer", "to": ["id"]}]
    assert (paid["kind"], [column["name"] for column in paid["columns"]], paid["rows"]) == (
        "view",
        ["name", "total"],
        2,
    )


def test_generated_columns_are_listed_and_internal_ones_are_not(shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as connection:
        connection.execute("CREATE TABLE net (a, b INT AS (a * 2), c TEXT AS (a || '!') STORED)")
    tables = {table["name"]: table["columns"] for table in sqlite.tables(database="shop.db")}
    assert [(column["name"], column["type"]) for column in tables["net"]] == [("a", ""), ("b", "INT"), ("c", "TEXT")]
    assert [column["name"] for column in tables["found"]] == ["word"]


def test_a_view_that_is_broken_hides_no_table(shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as connection:
        connection.execute("CREATE VIEW broken AS SELECT * FROM missing")
    told = {table["name"]: table.get("error") for table in sqlite.tables(database="shop.db")}
    assert "missing" in str(told.pop("broken"))
    assert set(told.values()) == {None}


@pytest.mark.parametrize(
    ("database", "code"),
    [
        ("a.txt", "not_a_database"),
        ("nothing.db", "not_found"),
        ("sub", "not_a_file"),
        ("pipe", "not_a_file"),
        ("../outside/secret.txt", "outside"),
        ("to_secret", "outside"),
        ("shop.db?mode=rwc", "not_found"),
    ],
)
def test_a_file_that_is_not_a_database_is_rejected(shop: Path, database: str, code: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        sqlite.tables(database=database)
    assert failed.value.code == code
    assert not (shop.parent / "nothing.db").exists()


@pytest.fixture
def shop_in_use(shop: Path) -> Iterator[sqlite3.Connection]:
    """Provide the database in WAL mode, with a row that only the log contains."""
    with closing(sqlite3.connect(shop)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("INSERT INTO customer VALUES (4, 'Dan')")
        connection.commit()
        yield connection


def test_recent_changes_of_other_processes_are_visible(shop_in_use: sqlite3.Connection) -> None:
    assert ask("SELECT name FROM customer WHERE id = 4") == [{"name": "Dan"}]


def test_a_database_with_a_log_is_read_and_nothing_is_left_beside_it(shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    before = sorted(path.name for path in shop.parent.iterdir())
    assert len(ask("SELECT * FROM customer")) == 3
    assert sorted(path.name for path in shop.parent.iterdir()) == before


def test_names_with_special_characters_of_urls_are_plain_names(shop: Path) -> None:
    odd = shop.rename(shop.parent / "50%20 a?b#c.db")
    assert "customer" in {table["name"] for table in sqlite.tables(database=odd.name)}


@pytest.mark.parametrize(
    ("end", "code", "advice"), [("os._exit(0)", "interrupted", "Open it once"), ("input()", "locked", "Retry")]
)
def test_a_database_in_the_middle_of_a_change_is_a_failure_with_advice(
    shop: Path, end: str, code: str, advice: str
) -> None:
    lines = [
        "import os, sqlite3",
        "connection = sqlite3.connect('shop.db', isolation_level=None)",
        "connection.execute('PRAGMA cache_size = 1')",  # so that changes reach the file before they are committed
        "connection.execute('BEGIN EXCLUSIVE')",
        "connection.executemany('INSERT INTO customer (name) VALUES (?)', [('x' * 1000,)] * 100)",
        "print('ready', flush=True)",
        end,
    ]
    command = [sys.executable, "-c", "\n".join(lines)]
    with subprocess.Popen(command, cwd=shop.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        if code == "interrupted":
            process.wait(timeout=60)
        with pytest.raises(ToolFailed, match=advice) as failed:
            ask("SELECT * FROM customer", seconds=0.1)
        process.communicate(b"\n", timeout=60)
    assert failed.value.code == code


_HOLD = """
import sqlite3, sys
path, mode, text = sys.argv[1:]
connection = sqlite3.connect(path)
connection.execute(f"PRAGMA journal_mode = {mode}")
connection.execute("CREATE TABLE t (a)")
connection.execute("INSERT INTO t VALUES (?)", (text,))
connection.commit()
print("ready", flush=True)
sys.stdin.readline()
connection.close()
"""


@contextmanager
def held(database: Path, mode: str, text: str) -> Iterator[subprocess.Popen[str]]:
    """Have another process create a database and keep it open."""
    command = [sys.executable, "-c", _HOLD, str(database), mode, text]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.communicate("\n", timeout=60)


@pytest.mark.promise("PCK-3")
@pytest.mark.parametrize("name", ["sub", "sub/x.db", "sub/x.db-wal"])
@pytest.mark.parametrize("mode", ["delete", "wal", "open wal"])
def test_links_that_are_swapped_meanwhile_reveal_nothing_from_outside(work: Path, name: str, mode: str) -> None:
    outside = work.parent / "outside" / "sub"
    outside.mkdir()
    read = 0

    def attempt() -> None:
        nonlocal read
        with suppress(ToolFailed):
            assert sqlite.query(database="sub/x.db", sql="SELECT * FROM t")["rows"] == [{"a": "public"}]
            read += 1

    journal = mode.removeprefix("open ")
    with held(work / "sub" / "x.db", journal, "public"), held(outside / "x.db", journal, "s3cret"):
        if mode == "open wal":
            run_race(work, name, attempt, outside, lambda: read)
    if mode != "open wal":
        (work / "sub" / "x.db-wal").touch()
        run_race(work, name, attempt, outside, lambda: read)
    assert read


def run_race(
    work: Path, name: str, attempt: Callable[[], None], outside: Path, is_enough: Callable[[], object]
) -> None:
    """Swap a link in while a database is read, and check that nothing was written outside."""
    before = sorted(outside.iterdir())
    with swapping(work / name, work.parent / "outside" / name):
        assert race(attempt, is_enough)
    assert sorted(outside.iterdir()) == before


def test_a_database_that_this_process_has_open_is_read_repeatedly(work: Path) -> None:
    with closing(sqlite3.connect(work / "x.db")) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("CREATE TABLE t (a)")
        for number in range(3):
            connection.execute("INSERT INTO t VALUES (?)", (number,))
            connection.commit()
            assert len(sqlite.query(database="x.db", sql="SELECT * FROM t")["rows"]) == number + 1
