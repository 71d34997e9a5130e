# SPDX-License-Identifier: Apache-2.0
"""Reading a database that its tool may be writing to: never locked, never changed."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager, closing
from pathlib import Path
from urllib.parse import quote


def is_sqlite(head: bytes) -> bool:
    """Whether a file begins as sqlite's do."""
    return head.startswith(b"SQLite format 3\x00")


def reading(path: Path) -> AbstractContextManager[sqlite3.Connection]:
    """Open a database, read-only."""
    return closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True))


def columns(path: Path, table: str) -> set[str]:
    """Give the columns of a table; none where there is no such table, or no database."""
    try:
        with reading(path) as database:
            return {
                row[0] for row in database.execute(f"SELECT name FROM pragma_table_info('{table}')")
            }
    except sqlite3.Error:
        return set()
