# SPDX-License-Identifier: Apache-2.0
"""MLflow's database, `mlflow.db`: the table of metrics, read with the sqlite of Python."""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from pathlib import Path

from glidepath._core import IoError, Series, settings_of_texts
from glidepath._trace import Trace
from glidepath.readers._series import traces_of
from glidepath.readers._sqlite import columns, is_sqlite, rows

_STORED_INFINITY = 1.7976931348623157e308  # what MLflow stores for infinity
_QUERY = """
    SELECT runs.run_uuid, key, value, metrics.timestamp, COALESCE(step, 0), is_nan FROM metrics
    JOIN runs ON runs.run_uuid = metrics.run_uuid WHERE lifecycle_stage = 'active'
    ORDER BY runs.start_time, runs.run_uuid, metrics.timestamp, metrics.rowid
"""
# The database may lack the table, or the log be of so many runs that it has more rows.
_PARAMETERS = """
    SELECT run_uuid, key, value FROM params
    WHERE typeof(key) = 'text' AND typeof(value) = 'text' AND length(value) <= 1000 LIMIT 1000000
"""


def recognises(path: Path, head: bytes) -> bool:
    """Whether it is a sqlite file."""
    return is_sqlite(head)


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
            if abs(number) >= _STORED_INFINITY:
                number = math.copysign(math.inf, number)
            runs[run][key].add(float(step), number, (stamp - origin) / 1e3)
    except (sqlite3.Error, TypeError, ValueError) as error:
        raise IoError(f"{path}: not a database of MLflow: {error}") from None
    settings, notes = _settings(path)
    return traces_of(runs, metric, path, settings=settings, notes=dict.fromkeys(runs, notes))


def _settings(path: Path) -> tuple[dict[str, dict[str, float | str]], list[str]]:
    """Read the parameters of each run; with a note where the table is damaged."""
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    try:
        if columns(path, "params"):
            for run, key, value in rows(path, _PARAMETERS, "params"):
                texts[run][key] = value
    except sqlite3.Error as error:
        return {}, [f"no settings were read of the table params: {error}"]
    return {run: settings_of_texts(own) for run, own in texts.items()}, []
