#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Score what knowing the schedule is worth, on whole logs and on logs that begin late.

    python bench/accuracy/schedules_late.py FOLDER [COLLECTION ...] [--back] [--runs 60]

FOLDER holds collections `NAME.csv.gz` (`curve,step,value,lr`). Each run with a learning rate is cut
as a resumed run or a branched one would be logged: the first 0, 50 or 80 % of its points are gone,
or all before its rate first falls after a constant stretch (`cooldown`); steps keep their numbers.
The rest is forecast from its first 10 to 80 %, without and with the schedule of that rest (with
`--back`, of the whole run). The error is that of the mean of the last 3 % of the points, in units
of the range of the rest, at most 1. Printed: prefixes, mean errors, their ratio, and the share of
later points inside the two 80 % intervals.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import glidepath as gp

CUTS = ("0", "50 %", "80 %", "cooldown")
SEEN = (0.1, 0.2, 0.4, 0.6, 0.8)
LEVELS = (0.1, 0.5, 0.9)
MIN_POINTS = 20  # of the rest
MIN_FLAT = 0.1  # of the points, before a rate that falls


@dataclass
class Score:
    """Errors and shares inside the interval, without and with the schedule."""

    blind: list[float] = field(default_factory=list)
    known: list[float] = field(default_factory=list)
    blind_holds: list[float] = field(default_factory=list)
    known_holds: list[float] = field(default_factory=list)

    def row(self) -> str:
        """Give one line of the table."""
        blind, known = np.mean(self.blind), np.mean(self.known)
        return (
            f"{len(self.blind):4d}  {blind:.4f}  {known:.4f}  {known / blind:5.2f}  "
            f"{np.mean(self.blind_holds):.2f}  {np.mean(self.known_holds):.2f}"
        )


def first_after(cut: str, lr: NDArray[np.float64]) -> int | None:
    """Index of the first point that is kept."""
    if cut != "cooldown":
        return len(lr) * int(cut.split()[0]) // 100
    falls = np.flatnonzero(lr < 0.999 * np.maximum.accumulate(lr))
    if not len(falls):
        return None
    first = int(falls[0])
    flat = np.count_nonzero(lr[:first] > 0.999 * lr[:first].max()) if first else 0
    return first - 1 if flat >= MIN_FLAT * len(lr) else None


def cases(run: gp.Trace, cut: str, *, back: bool) -> Iterator[tuple[gp.Trace, gp.Schedule, int]]:
    """What is left of a run, its schedule, and how many points are seen."""
    whole = gp.Schedule.logged(run)
    if whole is None:
        return
    lr = np.asarray(whole.at(run.step))
    first = first_after(cut, lr)
    if first is None or len(lr) - first < MIN_POINTS or np.ptp(run.loss[first:]) == 0:
        return
    rest = gp.Trace(run.step[first:], run.loss[first:], lr=lr[first:], direction=run.direction)
    schedule = whole if back else gp.Schedule(rest.step, lr[first:])
    for share in SEEN:
        seen = max(4, int(np.ceil(share * len(rest.step))))
        if seen <= 0.9 * len(rest.step):
            yield rest, schedule, seen


def add(score: Score, rest: gp.Trace, schedule: gp.Schedule, seen: int) -> None:
    """Forecast once without and once with the schedule."""
    final = max(1, round(0.03 * len(rest.step)))
    truth, later = rest.loss[-final:].mean(), rest.loss[seen:]
    for known, errors, holds in (
        (None, score.blind, score.blind_holds),
        (schedule, score.known, score.known_holds),
    ):
        trace = gp.Trace(
            rest.step[:seen],
            rest.loss[:seen],
            lr=np.asarray(known.at(rest.step[:seen])) if known else None,
            direction=rest.direction,
        )
        f = gp.forecast(trace, rest.step[seen:], schedule=known, levels=LEVELS)
        error = abs(f.median[-final:].mean() - truth) / np.ptp(rest.loss)
        errors.append(min(1.0, float(error)))
        holds.append(float(((later >= f.quantiles[0]) & (later <= f.quantiles[2])).mean()))


def usable(run: gp.Trace) -> bool:
    """Whether a run is long enough, finite and moves."""
    return len(run.step) >= MIN_POINTS and bool(np.isfinite(run.loss).all())


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("collections", nargs="*")
    parser.add_argument("--back", action="store_true", help="the schedule of the whole run")
    parser.add_argument("--runs", type=int, default=60, help="most runs of a collection")
    args = parser.parse_args()
    print(f"{'collection':24s} {'cut':9s}   n   blind   known   ratio holds")
    for path in sorted(args.folder.glob("*.csv.gz")):
        name = path.name[:-7]
        if args.collections and name not in args.collections:
            continue
        runs = [run for run in gp.read_traces(path) if run.lr is not None and usable(run)]
        chosen = np.random.RandomState(0).permutation(len(runs))[: args.runs]
        for cut in CUTS:
            score = Score()
            for i in sorted(chosen):
                for case in cases(runs[i], cut, back=args.back):
                    add(score, *case)
            if score.blind:
                print(f"{name:24s} {cut:9s} {score.row()}", flush=True)


if __name__ == "__main__":
    main()
