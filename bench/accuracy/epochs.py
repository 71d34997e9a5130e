# SPDX-License-Identifier: Apache-2.0
"""Score forecasts of losses that fell at the end of an epoch.

    python bench/accuracy/epochs.py FOLDER ... [--constants FILE]

Each FOLDER holds collections `NAME.csv.gz` (`curve,step,value`). Every run is seen to 20, 30, ...,
80 %, and ten later points are forecast with the table of constants and with `epochs 0` in it. Where
the two differ, falls at the ends of epochs were found. Printed of each run that has such a prefix:
how many of its prefixes have it; the CRPS in ranges of the run, and how often the 80 % interval
holds, without and with; then the means over runs.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import glidepath as gp
from glidepath import _core
from glidepath._bench.accuracy.curves import collections
from glidepath.bench import LEVELS

SEEN = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
POINTS = 10
MIN_POINTS = 40
MAX_CURVES = 1000


def score(quantiles: NDArray[np.float64], truth: NDArray[np.float64]) -> tuple[float, float]:
    """Mean CRPS, twice the pinball loss, and the share inside of 80 %."""
    levels = np.array(LEVELS)[:, None]
    error = truth - quantiles
    crps = 2 * np.mean(np.maximum(levels * error, (levels - 1) * error))
    low, high = (quantiles[np.argmin(np.abs(levels[:, 0] - p))] for p in (0.1, 0.9))
    return float(crps), float(np.mean((low <= truth) & (truth <= high)))


def prefixes(run: gp.Trace, tables: tuple[str, str]) -> tuple[list[list[float]], int]:
    """Scores without and with of the prefixes where they differ, and how many were tried."""
    found, tried = [], 0
    step, loss = np.array(run.step), np.array(run.loss)
    for seen in SEEN:
        known = round(seen * len(step))
        if known < MIN_POINTS:
            continue
        tried += 1
        later = np.unique(np.linspace(known, len(step) - 1, POINTS).astype(int))
        trace = gp.Trace(step[:known], loss[:known])
        blind, aware = (
            gp.forecast(trace, step[later], levels=LEVELS, constants=table).quantiles
            for table in tables
        )
        if np.array_equal(blind, aware):
            continue
        (crps, inside), (crps_aware, inside_aware) = (
            score(quantiles, loss[later]) for quantiles in (blind, aware)
        )
        range_of = np.ptp(loss)
        found.append([crps / range_of, crps_aware / range_of, inside, inside_aware])
    return found, tried


def main() -> None:
    """Print a line for each run with such falls."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--constants", type=Path)
    given = parser.parse_args()
    table = given.constants.read_text() if given.constants else _core.learned_table()
    tables = (re.sub(r"(?m)^epochs .*$", "epochs 0", table), table)
    runs, tried, means = 0, 0, []
    for folder in given.folders:
        for collection in collections(folder, max_curves=MAX_CURVES):
            for run in collection.usable:
                if run.direction == "max" or not np.isfinite(run.loss).all():
                    continue
                found, of = prefixes(run, tables)
                runs, tried = runs + (of > 0), tried + of
                if not found:
                    continue
                means.append(np.mean(found, axis=0))
                crps, crps_aware, inside, inside_aware = means[-1]
                print(
                    f"{collection.name} {run.name[-60:]}: {len(found)} of {of} prefixes, "
                    f"CRPS {crps:.4f} -> {crps_aware:.4f}, "
                    f"80 % holds {inside:.2f} -> {inside_aware:.2f}"
                )
    crps, crps_aware, inside, inside_aware = np.mean(means, axis=0)
    print(
        f"{len(means)} of {runs} runs, {tried} prefixes tried: "
        f"CRPS {crps:.4f} -> {crps_aware:.4f}, "
        f"80 % holds {inside:.2f} -> {inside_aware:.2f}"
    )


if __name__ == "__main__":
    main()
