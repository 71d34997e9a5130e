# SPDX-License-Identifier: Apache-2.0
"""`glidepath metrics`: what a log holds, and what would be read of it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import glidepath as gp
from glidepath._answer import Columns
from glidepath.cli._console import ANSWER, Json, Log, counted, emit, print_rows, progress


def metrics(file: Log, as_json: Json = False) -> int:
    """List the metrics of a log, with points, direction and which is read by default."""
    with progress("reading"):
        rows = [asdict(info) for info in gp.metrics_of(file)]
    if as_json:
        emit(rows)
        return ANSWER
    columns: Columns = {
        "run": "{run}",
        "metric": "{metric}",
        "points": "{points}",
        "better": lambda row: {"min": "low", "max": "high"}[row["direction"]],
        "read": lambda row: "yes" if row["read"] else "",
    }
    print_rows(f"{counted(len(rows), 'metric')} of {Path(file).name}", columns, rows)
    return ANSWER
