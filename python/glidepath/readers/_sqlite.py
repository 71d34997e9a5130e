# SPDX-License-Identifier: Apache-2.0
"""Reading a database that its tool may be writing to: never locked, never changed."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager, closing
from pathlib import Path
from urllib.parse import quote

# A handler is called each so many instructions of a query; it may be called so many times.
_STEPS, _MOST_STEPS = 1_000_000, 5_000


def is_sqlite(head: bytes) -> bool:
    """Whether a file begins as sqlite's do."""
    return head.startswith(b"SQLite format 3\x00")


def reading(path: Path) -> AbstractContextManager[sqlite3.Connection]:
    """Open a database, read-only; a query that does not end, as a view may hold, is broken off."""
    database = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    left = iter(range(_MOST_STEPS))
    database.set_progress_handler(lambda: next(left, None) is None, _STEPS)
    return closing(database)


def columns(path: Path, table: str) -> set[str]:
    """Give the columns of a table; none where there is no such table, or no database."""
    try:
        with reading(path) as database:
            return {
                row[0] for row in database.execute(f"SELECT name FROM pragma_table_info('{table}')")
            }
    except sqlite3.Error:
        return set()
