#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Score forecasts with past runs beside the same without: what past runs gain, and where they harm.

    python bench/accuracy/past_runs.py FOLDER ... [--past N] [--ended PERCENT] [--cut PERCENT]

FOLDER is what `glidepath bench accuracy` reads, and its protocol scores: past runs are of other
groups, 150 at most or N drawn for each group; `--cut` takes the first points of each run that is
forecast away, as of one that was resumed, and leaves the past runs whole; of these `--ended` leaves
the first points, as of runs that ended before the horizon. `--max-curves` is 20. Printed for each
collection: prefixes, CRPS without and with past runs, their ratio, the share of truths inside the
80 % interval without and with; then the geometric mean of the ratios, how many are above 1.02, and
the largest.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

import glidepath as gp
from glidepath._bench.accuracy.curves import Collection, collections, group_of
from glidepath._bench.accuracy.methods import methods_of
from glidepath._bench.accuracy.scores import CUTOFFS, Row, prefixes, score

METHODS = ("glidepath", "glidepath+past")
FEWEST = 30  # prefixes that make a line
HARM = 1.02  # of the CRPS without


def few(runs: Collection, most: int) -> Collection:
    """Leave so many past runs to each group, the same for all of its curves."""
    chosen = {}
    for curve in runs.curves:
        group, others = group_of(curve.name), runs.others(curve)
        order = np.random.default_rng(len(chosen)).permutation(len(others))[:most]
        chosen.setdefault(group, tuple(others[i] for i in sorted(order)))
    return replace(runs, _others=chosen)


def ended(runs: Collection, percent: int) -> Collection:
    """Let past runs end after a part of their points."""

    def part(run: gp.Trace) -> gp.Trace:
        return run.until(run.step[len(run) * percent // 100 - 1])

    chosen = {group_of(curve.name): runs.others(curve) for curve in runs.curves}
    return replace(
        runs,
        _others={
            group: tuple(part(run) for run in others if len(run) * percent >= 100)
            for group, others in chosen.items()
        },
    )


def without_first(run: gp.Trace, percent: int) -> gp.Trace:
    """Cut the first points of a log away."""
    first = len(run) * percent // 100
    return gp.Trace(run.step[first:], run.loss[first:], name=run.name, metric=run.metric)


def rows_of(runs: Collection, percent: int) -> list[Row]:
    """Score both methods on each prefix that has past runs."""
    methods = [replace(method, reach=None) for method in methods_of(METHODS).values()]
    rows = []
    for whole in runs.curves:
        curve = without_first(whole, percent)
        if not runs.others(whole) or not np.ptp(curve.loss) > 0:
            continue
        for prefix in prefixes(runs, curve, CUTOFFS, 0):
            rows += [score(method, prefix, 0.0) for method in methods]
    return rows


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--past", type=int, help="past runs of each group; without it up to 150")
    parser.add_argument("--ended", type=int, default=100, help="percent that past runs show")
    parser.add_argument("--cut", type=int, default=0, help="percent of each run that is cut away")
    parser.add_argument("--max-curves", type=int, default=20)
    given = parser.parse_args()
    ratios: dict[str, float] = {}
    print(f"{'collection':28s}    n  without   with  ratio  holds")
    for folder in given.folder:
        for runs in collections(folder, max_curves=given.max_curves):
            runs = runs if given.past is None else few(runs, given.past)
            rows = rows_of(runs if given.ended == 100 else ended(runs, given.ended), given.cut)
            without, with_past = ([r for r in rows if r["method"] == name] for name in METHODS)
            if len(without) < FEWEST:
                continue
            crps, inside = (
                [np.mean([row[key] for row in part]) for part in (without, with_past)]
                for key in ("crps", "cov80")
            )
            ratios[runs.name] = crps[1] / crps[0]
            print(
                f"{runs.name:28s} {len(without):4d}   {crps[0]:.4f} {crps[1]:.4f}  "
                f"{ratios[runs.name]:.3f}  {inside[0]:.2f} {inside[1]:.2f}",
                flush=True,
            )
    if not ratios:
        parser.error(f"no collection with {FEWEST} prefixes that have past runs")
    all_of = np.array(list(ratios.values()))
    worst = max(ratios, key=lambda name: ratios[name])
    print(
        f"{len(ratios)} collections: geometric mean {np.exp(np.log(all_of).mean()):.4f}, "
        f"{int((all_of > HARM).sum())} above {HARM}, the largest {ratios[worst]:.3f} ({worst})"
    )


if __name__ == "__main__":
    main()
