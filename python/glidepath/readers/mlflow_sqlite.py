# SPDX-License-Identifier: Apache-2.0
"""MLflow's database, `mlflow.db`: the table of metrics, read with the sqlite of Python."""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from pathlib import Path

from glidepath._core import IoError
from glidepath._trace import Trace
from glidepath.readers._series import Series, traces_of
from glidepath.readers._sqlite import is_sqlite, rows

_INFINITE = 1.7976931348623157e308  # what MLflow stores for infinity
_QUERY = """
    SELECT runs.run_uuid, key, value, metrics.timestamp, COALESCE(step, 0), is_nan FROM metrics
    JOIN runs ON runs.run_uuid = metrics.run_uuid WHERE lifecycle_stage = 'active'
    ORDER BY runs.start_time, runs.run_uuid, metrics.timestamp, metrics.rowid
"""


def recognises(path: Path, head: bytes) -> bool:
    """Whether it is a sqlite file."""
    return is_sqlite(head)


def unit(path: Path) -> Path:
    """Read each database alone."""
    return path


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read every run that is not deleted, named by its id; runs without the metric are left out."""
    runs: dict[str, dict[str, Series]] = defaultdict(lambda: defaultdict(Series))
    first: dict[str, int] = {}
    try:
        for run, key, value, stamp, step, is_nan in rows(path, _QUERY, "metrics", "runs"):
            if not (isinstance(run, str) and isinstance(key, str)):
                raise TypeError(f"run {run!r} has a metric {key!r}")
            origin = first.setdefault(run, stamp)
            number = math.nan if is_nan else float(value)
            if abs(number) >= _INFINITE:
                number = math.copysign(math.inf, number)
            runs[run][key].add(float(step), number, (stamp - origin) / 1e3)
    except (sqlite3.Error, TypeError, ValueError) as error:
        raise IoError(f"{path}: not a database of MLflow: {error}") from None
    return traces_of(runs, metric, path)
