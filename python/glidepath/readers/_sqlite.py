# SPDX-License-Identifier: Apache-2.0
"""Reading a database that its tool may be writing to: never locked, never changed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from glidepath.readers._series import open_plain

# Instructions of a query: some, and more for each byte of the file. Rows of honest tables, sorted
# and joined, take a tenth of that; what damage or a trap makes of a query is broken off.
_STEPS, _STEPS_PER_BYTE, _AT_ONCE = 10_000_000, 20, 100_000
_WAL = b"\x02\x02"  # at byte 18: what was written last may lie in a file beside


def is_sqlite(head: bytes) -> bool:
    """Whether a file begins as sqlite's do."""
    return head.startswith(b"SQLite format 3\x00")


def rows(path: Path, query: str, *tables: str) -> Iterator[tuple[Any, ...]]:
    """Give the rows of a query to some tables; sqlite3.Error where one is none, or a view."""
    with _reading(path) as database:
        for table in tables:
            if not _is_table(database, table):
                raise sqlite3.OperationalError(f"no such table: {table}")
        yield from database.execute(query)


def columns(path: Path, table: str) -> set[str]:
    """Give the columns of a table; none where there is no such table, or no database."""
    try:
        found = rows(path, f"SELECT name FROM pragma_table_info('{table}')", table)
        return {name for (name,) in found}
    except (sqlite3.Error, ValueError):
        return set()


def _is_table(database: sqlite3.Connection, name: str) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return database.execute(query, (name,)).fetchone() is not None


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database, read-only, so that nothing beside it is made or left."""
    with open_plain(path) as file:
        is_wal = file.read(20)[18:] == _WAL
    log = Path(f"{path}-wal")
    size = path.stat().st_size + (log.stat().st_size if log.is_file() else 0)
    if not is_wal or Path(f"{path}-shm").exists():  # which a process that has it open has made
        with _opened(path, "mode=ro", size) as database:
            yield database
    elif not log.is_file():
        with _opened(path, "mode=ro&immutable=1", size) as database:
            yield database
    else:  # a process was killed: to read its last rows means to write beside them
        with TemporaryDirectory() as folder:
            copy = Path(folder) / "copy.db"
            shutil.copyfile(path, copy)
            shutil.copyfile(log, f"{copy}-wal")
            with _opened(copy, "mode=ro", size) as database:
                yield database


@contextmanager
def _opened(path: Path, mode: str, size: int) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True)) as database:
        left = iter(range((_STEPS + _STEPS_PER_BYTE * size) // _AT_ONCE))
        database.set_progress_handler(lambda: next(left, None) is None, _AT_ONCE)
        yield database
