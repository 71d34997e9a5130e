# SPDX-License-Identifier: Apache-2.0
"""MLflow's database, `mlflow.db`: the table of metrics, read with the sqlite of Python."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from glidepath._core import IoError
from glidepath._trace import Trace
from glidepath.readers._series import AbsentError, Series, to_trace

__all__ = ["read", "recognises", "unit"]

_INFINITE = 1.7976931348623157e308  # what MLflow stores for infinity
_QUERY = """
    SELECT runs.run_uuid, key, value, metrics.timestamp, COALESCE(step, 0), is_nan FROM metrics
    JOIN runs ON runs.run_uuid = metrics.run_uuid WHERE lifecycle_stage = 'active'
    ORDER BY runs.start_time, runs.run_uuid, metrics.timestamp, metrics.rowid
"""


def recognises(path: Path, head: bytes) -> bool:
    """Whether it is a sqlite file."""
    return head.startswith(b"SQLite format 3\x00")


def unit(path: Path) -> Path:
    """Read each database alone."""
    return path


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read every run that is not deleted, named by its id; runs without the metric are left out."""
    runs: dict[str, dict[str, Series]] = {}
    first: dict[str, int] = {}
    try:
        # Read-only: a database that a server writes to is never locked or changed.
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
            for run, key, value, stamp, step, is_nan in database.execute(_QUERY):
                origin = first.setdefault(run, stamp)
                number = math.nan if is_nan else float(value)
                if abs(number) >= _INFINITE:
                    number = math.copysign(math.inf, number)
                column = runs.setdefault(run, {}).setdefault(key, Series())
                column.add(step, number, (stamp - origin) / 1e3)
    except (sqlite3.Error, TypeError, ValueError) as error:
        raise IoError(f"{path}: not a database of MLflow: {error}") from None
    traces, absent = [], None
    for run, series in runs.items():
        try:
            traces.append(to_trace(series, metric, path, run))
        except AbsentError as error:
            absent = error
    if not traces:
        raise absent or AbsentError(f"{path}: no metric was logged")
    return traces
