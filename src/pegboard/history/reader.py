"""Second connection to the database for reads that may take long, so that they never delay recording."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

from pegboard.data.unicode import encodable
from pegboard.errors import StoreError
from pegboard.history.history import History
from pegboard.history.schema import TERMS

if TYPE_CHECKING:
    from pegboard.history.database import Database
    from pegboard.history.rows import Column


class Reader:
    """Read-only connection; safe to use from several threads.

    Args:
        history: The history to read. A history in memory is read through its own connection.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0

    def select(self, query: str, parameters: Sequence[Column] = ()) -> list[tuple[Column, ...]]:
        """Return all rows of a query, including all calls recorded before; block.

        Raises:
            StoreError: The database can't be read.
        """
        clean = [encodable(value) if isinstance(value, str) else value for value in parameters]
        is_file, inode = self._history.act(_identity)
        if not is_file:
            return self._history.act(lambda database: database.select(query, clean))
        with self._lock:
            try:
                connection = self._open(inode)
                with closing(connection.execute(query, clean)) as rows:
                    return rows.fetchall()
            except sqlite3.Error as error:
                self._close()
                raise StoreError(str(error)) from error

    def data_version(self) -> int:
        """Return a number that changes when another connection changes the database.

        Raises:
            StoreError: The database can't be read.
        """
        [(version,)] = self.select("PRAGMA data_version")
        return int(version or 0)

    def close(self) -> None:
        """Close the connection; later use opens it again."""
        with self._lock:
            self._close()

    def _open(self, inode: int) -> sqlite3.Connection:
        if self._connection is not None and self._inode != inode:
            self._close()
        if self._connection is None:
            address = f"file:{quote(os.fsencode(self._history.file))}?mode=ro"
            connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=5.0)
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            try:
                connection.execute(TERMS)
            except sqlite3.Error:
                connection.close()
                raise
            self._connection, self._inode = connection, inode
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None


def _identity(database: Database) -> tuple[bool, int]:
    return database.file is not None, database.inode
