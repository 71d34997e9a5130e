#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Score `reach` on runs that come to a target, with past runs that ended there.

    python bench/accuracy/reach_past.py FOLDER [--past 12] [--alien 6] [--without]

FOLDER holds collections `NAME.csv.gz` (`curve,step,value`) whose `NAME.json` gives "target" and
"direction". Each of 40 runs that came to its target at its sixth evaluation or later is seen until
30, 50 and 70 % of the way; its budget is three times the true step; past runs are of other groups
(the id up to its last "/"). Printed: the median of |log(median / true step)|, the share of true
steps inside the 10 to 90 % interval, the mean probability and the mean quantile loss of the log
step. `--alien` of the past runs come from another collection of the same direction; `--without`
gives `reach` no past run; `--reached-by curve` asks when the level of a run comes to the target,
while the truth stays the first evaluation at it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import glidepath as gp

LEVELS = (0.1, 0.5, 0.9)
WORST = 3.0  # error in log step that counts for a run which is never expected


@dataclass(frozen=True)
class Collection:
    """Runs with one target, by id."""

    name: str
    target: float
    runs: dict[str, gp.Trace]

    @classmethod
    def read(cls, path: Path) -> Collection | None:
        """Read one file, or nothing where its JSON names no target."""
        said: dict[str, Any] = json.loads(path.with_name(path.name[:-7] + ".json").read_text())
        if "target" not in said:
            return None
        runs = {run.name: positive(run) for run in gp.read_traces(path)}
        return cls(str(said["collection"]), float(said["target"]), runs)


def positive(run: gp.Trace) -> gp.Trace:
    """Shift the steps of a log that begins at or below 0 so that they begin at 1."""
    shift = max(1.0 - float(run.step[0]), 0.0) if run.step[0] <= 0 else 0.0
    return gp.Trace(run.step + shift, run.loss, name=run.name, direction=run.direction)


def first_at(run: gp.Trace, target: float) -> int | None:
    """Index of the first evaluation at the target."""
    there = run.loss >= target if run.direction == "max" else run.loss <= target
    return int(np.argmax(there)) if there.any() else None


def cases(
    collection: Collection, others: list[Collection], runs: int, past: int, alien: int
) -> Iterator[tuple[gp.Trace, float, list[gp.Trace]]]:
    """What was seen of a run, the true step, the past runs."""
    ids = sorted(collection.runs)
    chance, strange = np.random.RandomState(0), np.random.RandomState(1)
    for name in [ids[i] for i in chance.permutation(len(ids))[:runs]]:
        run = collection.runs[name]
        foreign = [i for i in ids if i.rsplit("/", 1)[0] != name.rsplit("/", 1)[0]]
        chosen = [collection.runs[foreign[i]] for i in chance.permutation(len(foreign))[:past]]
        if alien:
            source = list(others[strange.randint(len(others))].runs.values())
            source.sort(key=lambda each: each.name)
            drawn = strange.permutation(len(source))[:alien]
            chosen = chosen[: past - alien] + [source[i] for i in drawn]
        there = first_at(run, collection.target)
        if there is None or there < 5:
            continue
        for share in (0.3, 0.5, 0.7):
            points = max(3, round(share * there))
            if points < there:
                seen = run.until(float(run.step[points - 1]))
                yield seen, float(run.step[there]), chosen


def score(reach: gp.Reach, truth: float) -> tuple[float, float, float, float]:
    """Error of the median, whether the interval holds, probability, quantile loss."""
    at = np.array([reach.quantile(p, if_reached=True) for p in LEVELS])
    late = np.full(3, WORST)
    late[np.isfinite(at)] = np.log(at[np.isfinite(at)] / truth)
    loss = np.mean([2 * max(-p * e, (1 - p) * e) for p, e in zip(LEVELS, late, strict=True)])
    holds = float(at[0] <= truth <= at[2])
    return abs(float(late[1])), holds, 1 - reach.prob_never, float(loss)


def main() -> None:
    """Print a row for each collection and their mean."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--past", type=int, default=12)
    parser.add_argument("--alien", type=int, default=0)
    parser.add_argument("--without", action="store_true")
    parser.add_argument("--reached-by", choices=("curve", "point"), default="point")
    given = parser.parse_args()
    found = [Collection.read(path) for path in sorted(given.folder.glob("*.csv.gz"))]
    collections = [each for each in found if each is not None]
    rows: list[NDArray[np.float64]] = []

    def show(name: str, row: NDArray[np.float64]) -> None:
        print(f"{name:24s} error {row[0]:.3f}  holds {row[1]:.2f}  P {row[2]:.3f}  ", end="")
        print(f"loss {row[3]:.4f}", flush=True)

    def directed(each: Collection) -> str:
        return next(iter(each.runs.values())).direction

    for each in collections:
        rest = [c for c in collections if c is not each]
        others = [c for c in rest if directed(c) == directed(each)] or rest
        scores = []
        for seen, truth, past in cases(each, others, given.runs, given.past, given.alien):
            same = [run for run in past if run.direction == seen.direction]
            known = None if given.without else gp.PastRuns(same, threads=1)
            law = gp.reach(
                seen, each.target, budget=3 * truth, past=known, reached_by=given.reached_by
            )
            scores.append(score(law, truth))
        table = np.array(scores)
        rows.append(np.r_[np.median(table[:, 0]), table[:, 1:].mean(0)])
        show(each.name, rows[-1])
    show(f"mean of {len(rows)}", np.mean(rows, axis=0))


if __name__ == "__main__":
    main()
