#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Score forecasts of logs that begin late: resumed runs, evaluations that start half way.

    python bench/accuracy/logs_late.py FOLDER ... [--max-curves 40] [--scores]

FOLDER is what `glidepath bench accuracy` reads. Each log is scored by its protocol as it is, and
with the first 50 and 80 % of its points cut away, as that of a run that was resumed; steps keep
their numbers. Only prefixes that begin over five of their mean logging intervals after step 0
count. Printed for each collection and cut, and for all cuts together: prefixes, MAE, CRPS, the
share of truths inside the 80 % interval, MAE of the last value. Losses; with `--scores`, scores.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import glidepath as gp
from glidepath._bench.accuracy.curves import read_logs

CUTS = (0, 50, 80)  # percent of the points
LATE = 5  # logging intervals before the first point
FEWEST = 5  # prefixes that make a row

Row = dict[str, Any]


def without_first(run: gp.Trace, cut: int) -> gp.Trace:
    """Cut the first points of a log away."""
    first = len(run) * cut // 100
    return gp.Trace(run.step[first:], run.loss[first:], name=run.name, direction=run.direction)


def begins_late(run: gp.Trace, seen: int) -> bool:
    """Whether the first `seen` points begin many of their intervals after step 0."""
    step = run.step + max(1.0 - run.step[0], 0.0) if run.step[0] <= 0 else run.step
    return bool(step[0] * (seen - 1) > LATE * (step[seen - 1] - step[0]))


def late_rows(runs: Iterable[gp.Trace], cut: int, most: int) -> list[Row]:
    """Rows of ours and of the last value, of the prefixes that begin late."""
    rests = {run.name: without_first(run, cut) for run in runs if len(run) > 1}
    try:
        scored = gp.bench.accuracy(list(rests.values()), ["glidepath", "last"], max_curves=most)
    except gp.InputError:  # none is long enough
        return []
    return [row for row in scored.rows if begins_late(rests[row["run"]], row["seen"])]


def line(rows: list[Row]) -> str:
    """Give the means of some rows."""
    ours, last = ([r for r in rows if r["method"] == name] for name in ("glidepath", "last"))
    means = [np.mean([row[key] for row in ours]) for key in ("error", "crps", "cov80")]
    naive = np.mean([row["error"] for row in last])
    return f"{len(ours):5d}  {means[0]:.4f}  {means[1]:.4f}  {means[2]:.3f}  {naive:.4f}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--max-curves", type=int, default=40)
    parser.add_argument("--scores", action="store_true")
    given = parser.parse_args()
    print(f"{'collection':26s} {'cut':5s}    n     MAE    CRPS  holds    last")
    for logs in (each for folder in given.folder for each in read_logs(folder, None)):
        runs = [run for run in logs.traces if (run.direction == "max") == given.scores]
        together: list[Row] = []
        for cut in CUTS:
            rows = late_rows(runs, cut, given.max_curves)
            together += rows
            if len(rows) >= 2 * FEWEST:
                print(f"{logs.name:26s} {cut:3d} % {line(rows)}")
        if len(together) >= 2 * FEWEST:
            print(f"{logs.name:26s} all   {line(together)}", flush=True)


if __name__ == "__main__":
    main()
