# SPDX-License-Identifier: Apache-2.0
"""The decision log: an SQLite file to which rows are only ever added.

Before an action is sent, a row says `intended`; afterwards a second row says what became of it. An
`intended` without a second row is where a process was killed. The log explains what was done; what
to do next is always read from the cluster.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_COLUMNS = "id, round, at, job, submit, kind, phase, command, why, detail, of"
_INSERT = (
    "INSERT INTO event (round, at, job, submit, kind, phase, command, why, detail, of)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# All at once: whoever opens the log in that moment sees an empty one, or one with all its tables.
_SCHEMA = """
BEGIN;
CREATE TABLE IF NOT EXISTS round (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, mode TEXT NOT NULL, summary TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS event (
  id INTEGER PRIMARY KEY, round INTEGER NOT NULL, at REAL NOT NULL, job TEXT NOT NULL,
  submit REAL NOT NULL, kind TEXT NOT NULL, phase TEXT NOT NULL, command TEXT NOT NULL,
  why TEXT NOT NULL, detail TEXT NOT NULL, of INTEGER);
CREATE INDEX IF NOT EXISTS event_of ON event (of) WHERE of IS NOT NULL;
CREATE INDEX IF NOT EXISTS event_kind ON event (job, kind, phase);
CREATE INDEX IF NOT EXISTS event_at ON event (at);
CREATE TRIGGER IF NOT EXISTS event_kept BEFORE UPDATE ON event
  BEGIN SELECT RAISE(ABORT, 'the decision log only grows'); END;
CREATE TRIGGER IF NOT EXISTS event_stays BEFORE DELETE ON event
  BEGIN SELECT RAISE(ABORT, 'the decision log only grows'); END;
COMMIT;
"""


class LogError(RuntimeError):
    """The log cannot be read or written: full disk, missing folder, another writer."""


@dataclass(frozen=True, slots=True)
class Event:
    """A row of the log: a forecast, or a phase of an action."""

    job: str
    kind: str  # of the action, or "forecast"
    phase: str  # noted, advised, intended, done, changed, refused, gone, unknown
    why: str
    command: str = ""
    detail: dict[str, Any] | None = None
    submit_s: float = 0.0  # tells a job from an older one of the same id
    of: int | None = None  # the `intended` row that this one completes
    id: int = 0
    at_s: float = 0.0
    round: int = 0


_TYPES: tuple[Any, ...] = (int, int, float, str, float, str, str, str, str, str, (int, type(None)))


def _event(row: tuple[Any, ...]) -> Event:
    number, round_, at, job, submit, kind, phase, command, why, detail, of = row
    if not all(isinstance(v, kind) for v, kind in zip(row, _TYPES, strict=True)) or not isinstance(
        found := json.loads(detail), dict
    ):
        raise ValueError(f"event {number} is damaged")
    return Event(job, kind, phase, why, command, found, submit, of, number, at, round_)


def _is_damage(error: Exception) -> bool:
    """Whether it is the file that is wrong, and not the disk or another process."""
    if isinstance(error, sqlite3.Error):  # of a sound file it is one of the subclasses
        return type(error) is sqlite3.DatabaseError
    return isinstance(error, (ValueError, RecursionError)) and not isinstance(
        error, UnicodeEncodeError
    )


class DecisionLog:
    """Open (and make, where `path` does not exist) the log. One process at a time may write.

    Raises
    ------
    LogError
        From every method, with one sentence.
    """

    def __init__(self, path: str | os.PathLike[str] | None, *, readonly: bool = False) -> None:
        self.path = Path(path or "in memory")
        self._lock: int | None = None
        self._connection: sqlite3.Connection | None = None
        try:
            with self._trouble():
                self._open(in_memory=path is None, readonly=readonly)
        except BaseException:
            self.close()  # or nobody could write to it until this process ends
            raise

    def _open(self, *, in_memory: bool, readonly: bool) -> None:
        if in_memory:  # an empty one, which nobody else sees
            self._connection = sqlite3.connect(":memory:", isolation_level=None)
            self._db.executescript(_SCHEMA)
            return
        if readonly:
            if not self._tables():
                self._db.close()  # its writer has just made it, or ended as it did
                self._open(in_memory=True, readonly=True)
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Of the file itself: a link to it is no second log, which another process may write to.
        lock = f"{os.path.realpath(self.path)}.lock"
        self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            self._lock = None
            raise LogError(f"{self.path}: another glidepath writes to it") from None
        self._connection = sqlite3.connect(self.path, isolation_level=None, timeout=5)
        self._connection.text_factory = bytes.decode
        self._db.execute("PRAGMA journal_mode=WAL")
        # A row outlives our process at once, and a power cut after the next checkpoint; more is
        # not needed, for the cluster knows better than the log what was done.
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_SCHEMA)

    def _tables(self) -> int:
        """Open the file for reading; how many tables it has."""
        try:
            return self._tables_as("mode=ro")
        except sqlite3.OperationalError as error:
            # SQLite reads the log by files of its own beside it, which we may not be allowed to
            # make. Where there are none, nobody writes to the log, and it is complete.
            if "locked" in str(error) or Path(f"{os.path.realpath(self.path)}-wal").exists():
                raise
            return self._tables_as("immutable=1")

    def _tables_as(self, how: str) -> int:
        if self._connection is not None:
            self._connection.close()
        uri = f"{self.path.resolve().as_uri()}?{how}"
        self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=5)
        self._connection.text_factory = bytes.decode  # of damaged text a UnicodeDecodeError
        return int(self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])

    @property
    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            raise LogError(f"{self.path}: closed")
        return self._connection

    def __enter__(self) -> DecisionLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let others write."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @contextlib.contextmanager
    def _trouble(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, ValueError, RecursionError) as error:
            if not _is_damage(error):
                raise LogError(f"{self.path}: {error}") from error
            raise LogError(f"{self.path}: damaged ({error}){self._set_aside()}") from error

    def _set_aside(self) -> str:
        """Give a damaged log another name, if we may write, so that a new one can begin."""
        if self._lock is None:
            return ""
        lock, self._lock = self._lock, None
        self.close()
        self._lock = lock
        stem = f"{self.path}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"
        names = (Path(f"{stem}-{number}") for number in itertools.count(1))
        aside = next(name for name in names if not name.exists())
        try:
            for end in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    Path(f"{self.path}{end}").rename(f"{aside}{end}")
        except OSError as error:
            return f": cannot be set aside: {error.strerror}"
        return f": set aside as {aside.name}, the next round begins another"

    def begin_round(self, at_s: float, mode: str, summary: str) -> int:
        """Add a round; its number."""
        with self._trouble():
            cursor = self._db.execute(
                "INSERT INTO round (at, mode, summary) VALUES (?, ?, ?)", (at_s, mode, summary)
            )
            return int(cursor.lastrowid or 0)

    def add(self, round_: int, at_s: float, events: Iterable[Event]) -> list[int]:
        """Add rows, all or none; their numbers."""
        with self._trouble(), self._db:  # which commits, or rolls back
            self._db.execute("BEGIN IMMEDIATE")
            numbers = []
            for e in events:
                detail = json.dumps(e.detail or {})
                row = (round_, at_s, e.job, e.submit_s, e.kind, e.phase, e.command, e.why, detail)
                numbers.append(int(self._db.execute(_INSERT, (*row, e.of)).lastrowid or 0))
            return numbers

    def _events(self, which: str, *values: object) -> list[Event]:
        """Rows of a query, oldest first."""
        with self._trouble():
            query = f"SELECT {_COLUMNS} FROM event WHERE {which} ORDER BY id"
            return [_event(row) for row in self._db.execute(query, values).fetchall()]

    def events(self, job: str | None = None) -> list[Event]:
        """Rows of one job or of all, oldest first."""
        return self._events("1") if job is None else self._events("job = ?", job)

    def of_each(
        self,
        kind: str,
        phases: tuple[str, ...],
        jobs: Mapping[str, tuple[float, float]],
        *,
        first: bool = False,
    ) -> dict[str, Event]:
        """Find the last (or first) row of a kind and phase for each of these jobs.

        `jobs` maps a job to the earliest and latest time at which it was submitted, which tell it
        from an older job with the same number.
        """
        marks = ",".join("?" * len(phases))
        end = "min" if first else "max"
        found = self._events(
            f"id IN (SELECT {end}(event.id)"
            " FROM json_each(?) AS wanted JOIN event ON event.job = wanted.key"
            " AND event.submit BETWEEN json_extract(wanted.value, '$[0]')"
            " AND json_extract(wanted.value, '$[1]')"
            f" AND event.kind = ? AND event.phase IN ({marks})"
            " GROUP BY event.job)",
            json.dumps(jobs),
            kind,
            *phases,
        )
        return {event.job: event for event in found}

    def recent(
        self, kinds: tuple[str, ...], phases: tuple[str, ...], since_s: float
    ) -> list[tuple[str, str, float]]:
        """List (job, kind, submitted) of rows since a time."""
        kind_marks, phase_marks = ",".join("?" * len(kinds)), ",".join("?" * len(phases))
        with self._trouble():
            return self._db.execute(
                f"SELECT job, kind, submit FROM event WHERE at >= ? AND kind IN ({kind_marks})"
                f" AND phase IN ({phase_marks})",
                (since_s, *kinds, *phases),
            ).fetchall()

    def interrupted(self) -> list[Event]:
        """Find actions whose process ended before it could write down their outcome."""
        return self._events(
            "phase = 'intended' AND id NOT IN (SELECT of FROM event WHERE of NOT NULL)"
        )
