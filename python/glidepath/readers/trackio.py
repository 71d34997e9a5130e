# SPDX-License-Identifier: Apache-2.0
"""Trackio's database of a project, ``PROJECT.db``: a row a call of `log`, its metrics as JSON."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

from glidepath._core import IoError
from glidepath._trace import Trace
from glidepath.readers._rows import flat, tracked
from glidepath.readers._series import traces_of
from glidepath.readers._sqlite import columns, is_sqlite, rows

_COLUMNS = {"run_name", "timestamp", "step", "metrics"}


def recognises(path: Path, head: bytes) -> bool:
    """Whether it is a database with Trackio's table of metrics."""
    return is_sqlite(head) and columns(path, "metrics") >= _COLUMNS


def read(path: Path, metric: str | None) -> list[Trace]:
    """Read every run, by its name; runs without the metric are left out."""
    run = "run_id" if "run_id" in columns(path, "metrics") else "run_name"
    query = f"SELECT {run}, run_name, timestamp, step, metrics FROM metrics ORDER BY id"
    runs: dict[str, list[dict[str, Any]]] = {}
    names: dict[str, str] = {}
    began: dict[str, datetime] = {}
    try:
        for key, name, stamp, step, text in rows(path, query, "metrics"):
            at = datetime.fromisoformat(stamp)
            seconds = (at - began.setdefault(key, at)).total_seconds()
            metrics = flat(json.loads(text, parse_int=float), "/")
            row = {**dict(metrics), "_step": float(step), "_runtime": seconds}
            runs.setdefault(key, []).append(row)
            names[key] = str(name)  # a run may have been renamed
    except (sqlite3.Error, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise IoError(f"{path}: not a database of Trackio: {error}") from None
    return traces_of({key: tracked(each) for key, each in runs.items()}, metric, path, names=names)
